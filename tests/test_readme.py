"""The code of the README and of the documentation's pages is run, and the commands they name exist."""

import functools
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from nli_common.commands import main
from nli_common.corpora import Pair, read_pairs
from nli_common.data import Sentence
from runs import run_script, write_corpora

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "examples/README.md"]
WRITTEN = sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("**/*.md") if "_build" not in path.parts
)
CODE = [page for page in ["README.md", *WRITTEN] if "```python" in (ROOT / page).read_text(encoding="utf-8")]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", CODE)
def test_python_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for code in blocks(page, "python"):
        exec(compile(code, page, "exec"), {"__name__": "page"})


def test_a_run_is_used_from_python_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, together, exported, _ = blocks("examples/README.md", "python")
    run = tmp_path / "runs" / "decomposable-attention-snli"
    options = ["--hidden-size", "8", "--vector-size", "8", "--epochs", "1", "--output", run]
    trained = run_script("train", *write_corpora(tmp_path), *options)
    assert trained.returncode == 0, trained.stderr
    assert "note: without --vectors each word's vector is random" in trained.stdout.splitlines()
    monkeypatch.chdir(tmp_path)
    said: dict[str, Any] = {"__name__": "page"}
    exec(compile(alone, "examples/README.md", "exec"), said)
    sentences = ["--premise", "Bob is awake.", "--hypothesis", "Bob sleeps."]
    predicted = run_script("predict", "--run", run, *sentences)
    shares = dict(line.split() for line in predicted.stdout.splitlines())
    assert shares == {label: f"{share:.4f}" for label, share in zip(said["pair"].labels, said["shares"], strict=True)}
    exec(compile(together, "examples/README.md", "exec"), said)
    assert {label: f"{share:.4f}" for label, share in zip(said["labels"], said["shares"][0], strict=True)} == shares
    exec(compile(exported, "examples/README.md", "exec"), said)
    other = Sentence(torch.tensor([[1, 2, 3, 4, 5, 6]]).repeat(3, 1), torch.ones(3, 6, dtype=torch.bool))
    assert_close(said["program"].module()(other, other), said["pair"].model(other, other))


def test_a_csv_becomes_a_file_that_the_scripts_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = 'premise,hypothesis,label\n"A dog, in a\npark.",It sleeps.,2\na,b,-1\n'
    Path("mine.csv").write_text(rows, encoding="utf-8-sig")
    *_, code = blocks("examples/README.md", "python")
    exec(compile(code, "examples/README.md", "exec"), {})
    words = ["A", "dog", ",", "in", "a", "park", "."], ["It", "sleeps", "."]
    assert list(read_pairs(Path("mine.tsv"))) == [Pair(*words, "contradiction"), Pair(["a"], ["b"], "-")]


def test_there_is_code_to_run() -> None:
    assert blocks("README.md", "python") and blocks("README.md", "bash")
    assert len(CODE) > 10


def test_scripts_of_the_pages_exist() -> None:
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in WRITTEN)
    scripts = set(re.findall(r"python (examples/\w+\.py)", text))
    assert scripts and all((ROOT / script).exists() for script in scripts)


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_links_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for target in re.findall(r"^make (\w+)", text, flags=re.MULTILINE):
        assert target in targets
    for script in re.findall(r"python (examples/\w+\.py)", text):
        assert (ROOT / script).exists()
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((ROOT / page).parent / link).exists(), link


@functools.cache
def options_of(name: str, command: str) -> frozenset[str]:
    """Every option that a script's command has, whichever of its models is chosen."""
    script, said = importlib.import_module(name).SCRIPT, []
    models = [script.short_name(kind) for kind in script.models] if len(script.models) > 1 else []
    for words in ([command], *([command, model] for model in models if command == "train")):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as left:
            patch.setattr(sys, "argv", [f"{name}.py", *words, "--help"])
            patch.setattr(sys.stdout, "write", said.append)
            main(script)
        assert left.value.code == 0, words
    return frozenset(re.findall(r"--[a-z][a-z0-9-]*", "".join(said)))


def commands() -> list[tuple[str, str, str]]:
    """Page, script and what follows it, of every command that is written down anywhere."""
    pages = [ROOT / page for page in (*PAGES, *WRITTEN)] + sorted((ROOT / "examples").glob("*.py"))
    found = []
    for page in pages:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for name, words in re.findall(r"(?:python|launch) examples/(\w+)\.py +([a-z][^\n`#|]*)", text):
            if name != "compare":  # it is given folders, and no command
                found.append((page.relative_to(ROOT).as_posix(), name, words.strip()))
    return found


@pytest.mark.parametrize(("page", "name", "words"), commands(), ids=map(" ".join, commands()))
def test_every_option_that_is_written_down_exists(page: str, name: str, words: str) -> None:
    command, *rest = words.split()
    known = options_of(name, command)
    for option in (word.partition("=")[0] for word in rest if word.startswith("--")):
        assert option in known, f"{page}: {name}.py {command} has no {option}"


def test_every_option_that_a_reading_names_exists() -> None:
    scripts = [path.stem for path in (ROOT / "docs" / "models").glob("*.md") if path.stem != "index"]
    known = frozenset().union(*(options_of(name, command) for name in scripts for command in ("train", "evaluate")))
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(--[a-z][a-z0-9-]*)", text))
    assert len(named) > 15 and named <= known


def test_there_are_commands_with_options() -> None:
    assert len(commands()) > 40 and sum(words.count(" --") for *_, words in commands()) > 80
