"""The table of parameter counts in examples/README.md is what the models have; so are the figures beside them."""

import dataclasses
import importlib
import json
import re
import string
from pathlib import Path
from statistics import mean

import pytest
import torch
from study.plan import MODELS
from study.results import held_results

from nli_common.lexicon import Lexicon
from nli_common.options import converted, parse_options
from nli_common.script import Script

README = Path(__file__).parent.parent / "examples" / "README.md"
PAGES = sorted((README.parents[1] / "docs" / "models").glob("*.md"))
UNITS = {"K": 1e3, "M": 1e6}
LETTERS = [chr(code) for code in range(33, 33 + 99)]


def rows() -> list[list[str]]:
    lines = README.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| script | options | trainable parameters |"))
    table = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        table.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    return table


def count(name: str, options: str) -> int:
    """Trainable parameters of a script's model with 300-d vectors and a table of 100 characters."""
    script: Script = importlib.import_module(name.removesuffix(".py")).SCRIPT
    model, *words = options.split() if options and "=" not in options.split()[0] else ["", *options.split()]
    kind = {script.short_name(kind): kind for kind in script.models}[model] if model else next(iter(script.models))
    lexicon = Lexicon(LETTERS, torch.zeros(len(LETTERS), 300))
    config = dataclasses.replace(kind(), **converted(kind(), parse_options(words)))
    built = script.models[kind](config, lexicon)
    return sum(parameter.numel() for parameter in built.parameters() if parameter.requires_grad)


def test_the_table_has_every_script() -> None:
    scripts = {path.name for path in README.parent.glob("*.py")} - {"compare.py"}
    assert {row[0] for row in rows()} == scripts


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]} {row[1]}")
def test_counts_and_deviations(row: list[str]) -> None:
    name, options, ours, papers, deviation = row
    counted = count(name, options)
    assert ours == f"{counted:,}"
    if papers == "–":
        assert deviation == "–"
        return
    published = float(papers.rstrip(string.ascii_letters)) * UNITS[papers[-1].upper()]
    assert deviation == f"{100 * (counted / published - 1):+.2f} %"


def index() -> list[tuple[str, ...]]:
    """Each model's file, parameters, accuracy and speed."""
    text = (README.parents[1] / "docs" / "models" / "index.md").read_text(encoding="utf-8")
    return re.findall(r"\((\w+)\.md\) \| [^|]* \| ([\d,]+) \| ([\d.]+) \| ([\d,]+|–) \|", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_pages_of_the_models_have_the_same_counts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.stem == "index":
        defaults = {row[0]: row[2] for row in reversed(rows())}
        assert {f"{name}.py": count for name, count, *_ in index()} == defaults
        return
    lines = [line for line in text.splitlines() if line.startswith("|") and re.search(r"\| [\d,]{6,} \|", line)]
    shown = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    assert shown == [row[1:] for row in rows() if row[0] == f"{page.stem}.py"]


def test_the_index_has_what_was_measured() -> None:
    held = json.loads((README.parents[1] / "benchmarks" / "speed-cpu-float32.json").read_text())
    sizes = {"batch": 64, "lengths": [14, 8]}
    measured = [row for row in held["models"] if sizes.items() <= row.items()]
    speeds = {row["model"]: f"{64 / row['training']['median']:,.0f}" for row in measured}
    results = held_results()
    for name, _, right, speed in index():
        kind = next(iter(importlib.import_module(name).SCRIPT.models)).__name__
        variant = next(one.name for one in MODELS if one.row.script == name and one.row.model in ("", kind))
        tested = [run["accuracy"]["test"] for run in results["snli22k", variant]]
        assert len(tested) == 5 and right == f"{100 * mean(tested):.1f}", name
        assert speed == speeds.get(kind.removesuffix("Config"), "–"), name
