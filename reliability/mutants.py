"""Mutants: small changes of the library's code, each of which some test should notice; and the branches tests reach.

    python -m reliability.mutants

Runs mutmut as ``pyproject.toml`` sets it up, in the folder ``mutants``, which takes an hour or so on one core, and
``--resume`` goes on where a run ended. Then coverage.py on the same tests. Writes ``reliability/mutants.json``;
``--only functional/_align.py`` replaces what it holds of some modules. Why those that survive do is told in
``survivors.py``.
"""

import argparse
import ast
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from nli_common.files import write_text
from reliability.survivors import KINDS, REASONS

HERE = Path(__file__).parent
ROOT = HERE.parent
LIBRARY = ROOT / "src" / "nlilayers"
WORK = ROOT / "mutants"
SETTINGS = {"HYPOTHESIS_PROFILE": "mutants", "OMP_NUM_THREADS": "1"}
COUNTED = {
    "killed": "killed",
    "segfault": "killed",
    "timeout": "timeout",
    "caught by type check": "mypy",
    "not checked": "not run",
}


class Mutant(NamedTuple):
    """A mutant that lives: what mutmut calls it, the function it stands in, and the lines that it changes."""

    name: str
    function: str
    was: str
    became: str


def run(processes: int, modules: Sequence[str] = ()) -> None:
    """Every mutant that has no verdict yet, or those of some modules."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(processes)]
    command += [f"nlilayers.{module.removesuffix('.py').replace('/', '.')}.*" for module in modules]
    subprocess.run(command, cwd=ROOT, env=os.environ | SETTINGS | {"PATH": path}, check=True)


def verdicts() -> dict[str, dict[str, str]]:
    """The verdict on each mutant of each module."""
    from mutmut.stats import status_by_exit_code

    found: dict[str, dict[str, str]] = {}
    for path in sorted((WORK / "src").rglob("*.meta")):
        codes = json.loads(path.read_text())["exit_code_by_key"]
        module = str(path.relative_to(WORK / "src" / "nlilayers")).removesuffix(".meta")
        found[module] = {name: status_by_exit_code[code] for name, code in codes.items()}
    return found


def lines_of(name: str, module: str) -> Mutant:
    """The mutant of this name, told by the lines that it changes."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    diff = get_diff_for_mutant(name, path=Path("src/nlilayers") / module).splitlines()[2:]
    was, became = (" ".join(line[1:].strip() for line in diff if line.startswith(sign)) for sign in "-+")
    function = name.partition("__mutmut_")[0].removeprefix("nlilayers.").replace(".x_", ".").replace(".xǁ", ".")
    return Mutant(name, function.replace("ǁ", "."), was, became)


def mutated() -> dict[str, int]:
    """Statements of the library in functions that are mutated, and those that run elsewhere but for imports."""
    counts = Counter(inside=0, outside=0)
    for path in LIBRARY.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node, is_inside in _statements(tree, False):
            if not isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
                counts["inside" if is_inside else "outside"] += 1
    return dict(counts)


def _statements(node: ast.AST, inside: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """Each statement, no docstring among them, and whether mutmut changes its function."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt):
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        yield child, inside
        plain = isinstance(child, ast.FunctionDef) and all(
            isinstance(d, ast.Name) and d.id == "staticmethod" for d in child.decorator_list
        )
        yield from _statements(child, inside or plain)


def branches() -> dict[str, Any]:
    """What the tests that meet the mutants reach of the library, without mutants."""
    with tempfile.TemporaryDirectory() as folder:
        places = {"COVERAGE_FILE": f"{folder}/coverage", "PYTHONPATH": str(LIBRARY.parent)}  # not an installed copy
        settings = os.environ | SETTINGS | places
        coverage, report = [sys.executable, "-m", "coverage"], f"{folder}/coverage.json"
        measure = [*coverage, "run", "--branch", f"--source={LIBRARY}", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        tests = mutmut_settings()["pytest_add_cli_args_test_selection"]
        subprocess.run([*measure, "-o", "addopts=", *tests], cwd=ROOT, env=settings, check=True)
        subprocess.run([*coverage, "json", "-o", report], cwd=ROOT, env=settings, check=True)
        held = json.loads(Path(report).read_text())
    names = ("num_statements", "covered_lines", "num_branches", "covered_branches")
    missed = {
        str(Path(path).resolve().relative_to(LIBRARY)): _not_reached(ROOT / path, file)
        for path, file in held["files"].items()
        if file["missing_lines"] or file["missing_branches"]
    }
    return {name: held["totals"][name] for name in names} | {"missed": missed}


def _not_reached(path: Path, file: dict[str, Any]) -> list[str]:
    lines = path.read_text().splitlines()
    numbers = sorted({*file["missing_lines"], *(start for start, _ in file["missing_branches"])})
    return [lines[number - 1].strip() for number in numbers]


def mutmut_settings() -> dict[str, Any]:
    """What ``pyproject.toml`` says to mutmut, as it reads it."""
    from mutmut.configuration import config

    return vars(config())


def main() -> None:
    """Run all mutants, then measure the branches."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=1, help="mutants at a time")
    parser.add_argument("--resume", action="store_true", help="keep the verdicts of a run before")
    parser.add_argument("--read", action="store_true", help="run no mutant: tell what the folder mutants holds")
    parser.add_argument("--only", nargs="+", default=[], metavar="MODULE", help="the others keep what is held of them")
    options = parser.parse_args()
    os.chdir(ROOT)
    path = HERE / "mutants.json"
    if not options.resume and not options.read:
        shutil.rmtree(WORK, ignore_errors=True)
    if not options.read:
        code = {str(path.relative_to(LIBRARY)): code_of(path) for path in LIBRARY.rglob("*.py")}
        run(options.processes, options.only)
        (WORK / "code.json").write_text(json.dumps(code))
    held: dict[str, Any] = {
        "command": "python -m reliability.mutants",
        "torch": torch.__version__,
        "mutmut": importlib.metadata.version("mutmut"),
        "tests": len(json.loads((WORK / "mutmut-stats.json").read_text())["duration_by_test"]),
        "statements": mutated(),
        "code": json.loads((WORK / "code.json").read_text()),
        "modules": {},
        "survivors": [],
    }
    for module, found in verdicts().items():
        if options.only and module not in options.only:
            continue
        counts: Counter[str] = Counter(mutants=len(found))
        for name, verdict in found.items():
            if verdict in COUNTED:
                counts[COUNTED[verdict]] += 1
                continue
            mutant = lines_of(name, module)
            kind, reason = REASONS.get((mutant.function, mutant.became), ("unexplained", "Not looked into."))
            told = {"module": module, "function": mutant.function, "was": mutant.was, "became": mutant.became}
            held["survivors"].append(told | {"kind": kind, "reason": reason})
            counts["survived" if verdict == "survived" else "not reached"] += 1
        if found:
            held["modules"][module] = dict(counts)
    if options.only:
        held = replaced(json.loads(path.read_text()), held)
    known = {(row["function"], row["became"]) for row in held["survivors"]}
    for function, became in sorted(REASONS.keys() - known):
        print(f"no survivor any more: {function}: {became}", file=sys.stderr)
    if not options.only:
        held["coverage"] = branches()
    write_text(path, json.dumps(held, indent=1, ensure_ascii=False) + "\n")
    print(page(held))


def replaced(before: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """What was held of all modules, with what was found of some."""
    modules = found["modules"].keys()
    survivors = [row for row in before["survivors"] if row["module"] not in modules] + found["survivors"]
    return {
        **before,
        "code": before["code"] | {module: found["code"][module] for module in modules},
        "modules": dict(sorted((before["modules"] | found["modules"]).items())),
        "survivors": sorted(survivors, key=lambda row: row["module"]),
    }


def page(held: dict[str, Any]) -> str:
    """The verdicts module by module, and every survivor with its reason."""
    total: Counter[str] = Counter()
    for counts in held["modules"].values():
        total.update(counts)
    kinds = Counter(row["kind"] for row in held["survivors"])
    killed, equal = total["killed"] + total["timeout"], kinds["equal"]
    typed, whole = total["mypy"], total["mutants"] - total["mypy"]
    inside, outside = held["statements"]["inside"], held["statements"]["outside"]
    reached = held["coverage"]
    parts = [
        "## Mutants",
        f"mutmut {held['mutmut']} changes one thing at a time in `src/nlilayers`: {total['mutants']:,} mutants. mypy "
        f"refuses {typed:,} of them. For each of the other {whole:,}, the tests of the layers that reach its function "
        f"must notice it ({held['tests']:,} tests, Hypothesis's examples fixed; torch {held['torch']}, "
        f"`{held['command']}`). They noticed {killed:,}, {_share(killed, whole)}; with mypy it is "
        f"{_share(killed + typed, total['mutants'])}. Of those that live, {equal} compute the same for every input: "
        f"without them, the tests noticed {_share(killed, whole - equal)}.",
        f"{inside} of {inside + outside} statements, imports and definitions apart, stand in functions that are "
        "changed; the others are properties, constants, and the names that the package exports.",
        *_changed(held["code"]),
        _table(held["modules"] | {"all": dict(total)}),
        "Too slow: stopped after three times the time that its tests take.",
        "### Survivors",
        *_reasons(held["survivors"]),
        "### Branches",
        f"The same tests without mutants reach {reached['covered_lines']:,} of {reached['num_statements']:,} "
        f"statements and {reached['covered_branches']} of {reached['num_branches']} branches, "
        f"{_share(reached['covered_branches'], reached['num_branches'])} (coverage.py, which does not see what is "
        "compiled). Where they do not go on both ways:",
        "\n".join(f"- `{module}`: {_quoted(lines)}" for module, lines in reached["missed"].items()),
    ]
    return "\n\n".join(parts) + "\n"


def code_of(path: Path) -> str:
    """A hash of a module's text without docstrings and empty lines; comments count."""
    text = path.read_text()
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            assert node.end_lineno is not None
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return hashlib.sha256("\n".join(line for line in lines if line.strip()).encode()).hexdigest()[:16]


def _changed(measured: Mapping[str, str]) -> Iterator[str]:
    """A sentence that names the modules whose code is not what was measured, if there are any."""
    paths = [path for path in sorted(LIBRARY.rglob("*.py")) if "def " in path.read_text()]
    changed = [
        f"`{path.relative_to(LIBRARY)}`"
        for path in paths
        if measured.get(str(path.relative_to(LIBRARY))) != code_of(path)
    ]
    if changed:
        yield f"Changed since the run, so that this page describes their earlier code: {', '.join(changed)}."


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def _table(modules: dict[str, dict[str, int]]) -> str:
    heads = {"mutants": "mutants", "mypy": "mypy", "killed": "killed", "timeout": "too slow"}
    heads |= {"survived": "survived", "not reached": "not reached"}
    heads |= {"not run": "not run"} if any("not run" in counts for counts in modules.values()) else {}
    lines = [f"| module | {' | '.join(heads.values())} |", "|---|" + "---:|" * len(heads)]
    for module, counts in modules.items():
        lines.append(f"| {module} | {' | '.join(f'{counts.get(head, 0):,}' for head in heads)} |")
    return "\n".join(lines)


def _reasons(survivors: list[dict[str, str]]) -> Iterator[str]:
    for kind, title in KINDS.items():
        reasons = dict.fromkeys(row["reason"] for row in survivors if row["kind"] == kind)
        if reasons:
            yield title
        for reason in reasons:
            rows = [row for row in survivors if (row["kind"], row["reason"]) == (kind, reason)]
            yield f"{reason}\n\n" + "\n".join(f"- `{row['function']}`: {_quoted([row['became']])}" for row in rows)


def _quoted(lines: list[str]) -> str:
    return ", ".join(f"`` {line} ``" for line in lines)


if __name__ == "__main__":
    main()
