"""A paper's table trained again: every row over several seeds, each in a folder of its own, ours beside the paper's."""

import contextlib
import dataclasses
import hashlib
import importlib
import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator
from rich.console import Console

from nli_common.categories import accuracy_by_category, read_categories
from nli_common.data import Corpus, open_corpus
from nli_common.errors import InputError
from nli_common.evaluating import evaluate_on
from nli_common.files import TEMPORARY, read_json, stem
from nli_common.inputs import Data, fingerprint
from nli_common.labels import measured_in, require_labels, scheme_of
from nli_common.metrics import Metrics
from nli_common.options import converted, parse_options, require_rate
from nli_common.recipe import Recipe
from nli_common.runs import Run, claim, held_metrics, read_metrics, write_json
from nli_common.script import Script
from nli_common.table_reports import write_table
from nli_common.tables import GENERATED, Row, Table
from nli_common.train_runs import train_run

LONGEST_NAME = 200
"""Bytes of a folder's name that tells a row's options; file systems take 255."""


class Settings(NamedTuple):
    """What a row is trained with."""

    script: Script
    config: Any
    recipe: Recipe
    data: Data
    name: str


class Other(NamedTuple):
    """Another file that every run is tested on: what it is called in a table, its name, its pairs, their categories."""

    key: str
    name: str
    corpus: Corpus
    categories: dict[str, list[int]]


def run_table(
    script: Script,
    name: str,
    data: Data,
    also: Sequence[Path],
    categories: Sequence[Path],
    seeds: int,
    options: Sequence[str],
    output: Path,
) -> None:
    """Train what is left of a table, row by row, and write it anew after each.

    Raises:
        InputError: if an option or a file is bad.
    """
    if seeds < 1:
        raise InputError(f"--seeds must be at least 1, got {seeds}")
    table, changes = script.tables[name], parse_options(options)
    rows = [settle(script, row, changes, data) for row in table.rows]
    _require_used(changes, table, rows)
    unchanged = [settle(script, row, {}, data) for row in table.rows]
    _require_distinct(table, rows, unchanged)
    for row, now, before in zip(table.rows, rows, unchanged, strict=True):
        require_rate(now.recipe, before.recipe, given="lr" in {*changes, *row.options})
    if data.train is not None and data.test is None and any(measure.startswith("test") for measure in table.measures):
        raise InputError(f"--test is needed: {table.title} has a column of it")
    others = open_others(also, categories, data.cache)
    if others:
        labels = scheme_of(rows[0].data.corpora()["train"].labels, "the training corpus")
        for other, path in zip(others, also, strict=True):
            require_labels(other.corpus.labels, measured_in(other.corpus.labels, labels), str(path))
    accelerator = Accelerator()
    main = accelerator.is_main_process
    console = Console(quiet=not main, highlight=False, markup=False, emoji=False)
    facts = {"script": script.name, "data": _named(rows[0].data, also), "options": changes, "seeds": seeds}
    facts["corpus"] = GENERATED if data.train is None else _in_words(data.train)
    facts |= {"torch": torch.__version__, "threads": torch.get_num_threads()}
    with contextlib.ExitStack() as held:
        if main:
            held.callback(claim(output, f".{name}.lock", [f".{name}.*{TEMPORARY}"]).release)
            _require_extended(output / f"{name}.json", facts)
        # A table of fewer seeds is replaced once the new one has as many rows.
        earlier = _rows_in(output / f"{name}.json") if main else 0
        done: list[dict[str, Any]] = []
        for place, (row, settings) in enumerate(zip(table.rows, rows, strict=True), start=1):
            runs = [Run(output / f"{settings.name}-seed{seed}") for seed in range(seeds)]
            for seed, run in enumerate(runs):
                console.rule(f"{name}, row {place} of {len(rows)}: {row.name}, seed {seed}")
                try:
                    train_run(settings.script, settings.config, settings.recipe, settings.data, seed, run)
                except InputError as error:
                    raise InputError(f"row {row.name!r}, seed {seed}: {error}") from None
            done.append(_result(row, settings, runs, others))
            if main and len(done) >= earlier:
                write_table(table, name, done, facts, output)
        if main:
            console.print((output / f"{name}.md").read_text(encoding="utf-8"), soft_wrap=True)
        accelerator.wait_for_everyone()


def _require_extended(path: Path, facts: Mapping[str, Any]) -> None:
    """Raise an ``InputError`` if this would replace a table of other options or files, or of more seeds or files."""
    if not path.exists():
        return
    held = read_json(path)
    for fact in ("script", "options", "corpus"):
        if held.get(fact) != facts[fact]:
            raise InputError(
                f"--output {path.parent}: {path.name} has a table with {fact} {held.get(fact)!r}, "
                f"where this one has {facts[fact]!r}; choose another folder"
            )
    seeds, data = held.get("seeds"), held.get("data")
    if isinstance(seeds, int) and seeds > facts["seeds"]:
        raise InputError(f"--seeds {facts['seeds']}: {path} has a table of {seeds}; choose another folder")
    if isinstance(data, str) and not f"{facts['data']}, ".startswith(f"{data}, "):
        raise InputError(
            f"--output {path.parent}: the runs of {path.name} were {data}, these {facts['data']}; choose another folder"
        )


def _rows_in(path: Path) -> int:
    rows = read_json(path).get("rows") if path.exists() else None
    return len(rows) if isinstance(rows, list) else 0


def _require_used(changes: Mapping[str, str], table: Table, rows: Sequence[Settings]) -> None:
    """Raise an ``InputError`` unless some row takes each change."""
    for option in changes:
        if option == "num_classes":
            raise InputError("--options num_classes: the training pairs tell the number of classes")
        if option in _fields_of(rows[0].data):
            named = option.replace("_", "-")
            raise InputError(f"--options {option}: is an option of the table itself: --{named}")
        if not any(option in _fields_of(part) for row in rows for part in (row.config, row.recipe)):
            raise InputError(f"--options {option}: no row has this option")
        if all(option in row.options for row in table.rows):
            raise InputError(f"--options {option}: every row of this table has its own")
        unread = [_unread(row).get(option) for row in rows if option in _fields_of(row.config) | _fields_of(row.recipe)]
        if all(unread):
            raise InputError(f"--options {option}: changes nothing {unread[0]}")


def _unread(settings: Settings) -> dict[str, str]:
    """The options that a row's others switch off."""
    parts = (settings.config, settings.recipe, settings.data)
    return {name: why for part in parts for name, why in getattr(part, "unread", {}).items()}


def _require_distinct(table: Table, rows: Sequence[Settings], unchanged: Sequence[Settings]) -> None:
    """Raise an ``InputError`` if changes have made two different rows the same."""
    for (row, now, before), (other, also_now, also_before) in combinations(
        zip(table.rows, rows, unchanged, strict=True), 2
    ):
        if now == also_now and before != also_before:
            raise InputError(f"--options: make the rows {row.name!r} and {other.name!r} the same; leave out what does")


def open_others(also: Sequence[Path], categories: Sequence[Path], cache: Path) -> list[Other]:
    """The other test files, the first of them with the first annotations.

    Raises:
        InputError: if a file is bad, or there are more annotations than files.
    """
    if len(categories) > len(also):
        raise InputError(f"--categories: expected at most the {len(also)} files of --also, got {len(categories)}")
    annotated = [read_categories(file, path) for file, path in zip(categories, also, strict=False)]
    annotated += [{}] * (len(also) - len(annotated))
    return [
        Other(f"also {place}", stem(path), open_corpus(path, cache), groups)
        for place, (path, groups) in enumerate(zip(also, annotated, strict=True), start=1)
    ]


def settle(script: Script, row: Row, changes: Mapping[str, str], data: Data) -> Settings:
    """A row's configuration, recipe and data: the script's own, then the changes to all rows, then the row's.

    Raises:
        InputError: if a value is refused, or the row has an option that nothing has.
    """
    owner: Script = importlib.import_module(row.script).SCRIPT if row.script else script
    kind = owner.config_named(row.model) if row.model else next(iter(owner.models))
    recipe = owner.recipe if data.train is not None else owner.quick
    if data.unit_vectors == script.data.unit_vectors:
        data = dataclasses.replace(data, unit_vectors=owner.data.unit_vectors)
    defaults = (kind(), recipe, data)
    unknown = set(row.options).difference(*map(_fields_of, defaults))
    if unknown:
        raise InputError(f"row {row.name!r}: {owner.name} has no option {', '.join(sorted(unknown))}")
    parts: list[Any] = []
    for part in defaults:
        own = {option: value for option, value in row.options.items() if option in _fields_of(part)}
        try:
            parts.append(dataclasses.replace(part, **(converted(part, changes) | own)))
        except (TypeError, ValueError) as error:
            raise InputError(f"row {row.name!r}: {error}") from None
    config, recipe, settled = parts
    if problems := recipe.problems():
        raise InputError(f"row {row.name!r}: {'; '.join(problems)}")
    changed = _changes(defaults[0], config) | _changes(defaults[1], recipe) | _changes(data, settled)
    if data.train is None:
        own_corpus = _changes(Data(), data)
        changed |= {option: own_corpus[option] for option in ("pairs", "vector_size") if option in own_corpus}
    words = [owner.short_name(kind), *(f"{option}={changed[option]}" for option in sorted(changed))]
    return Settings(owner, config, recipe, settled, _folder_name("-".join(words).replace("/", "_")))


def _folder_name(name: str) -> str:
    """A name that every file system takes, with room for what stands behind it; a long one ends in its hash."""
    whole = name.encode()
    if len(whole) <= LONGEST_NAME:
        return name
    return f"{whole[:LONGEST_NAME].decode(errors='ignore')}-{hashlib.sha256(whole).hexdigest()[:12]}"


def _changes(before: Any, after: Any) -> dict[str, Any]:
    """The options of a dataclass that have another value."""
    return {name: getattr(after, name) for name in _fields_of(after) if getattr(after, name) != getattr(before, name)}


def _named(data: Data, also: Sequence[Path]) -> str:
    """What the rows were trained and tested on, in words."""
    if data.train is None:
        text = f"trained and tested on the generated corpus, {data.pairs:,} training pairs"
    else:
        files = {"trained on": data.train, "dev": data.dev, "test": data.test, "vectors": data.vectors}
        text = ", ".join(f"{name} {_in_words(path)}" for name, path in files.items() if path is not None)
    return text + "".join(f", also {k}: {_in_words(path)}" for k, path in enumerate(also, start=1))


def _in_words(path: Path) -> str:
    """A file's name, which may be no text, as text that UTF-8 has."""
    return path.name.encode("utf-8", "backslashreplace").decode()


def _fields_of(part: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(part)}


def _result(row: Row, settings: Settings, runs: Sequence[Run], others: Sequence[Other]) -> dict[str, Any]:
    held = [read_metrics(run.metrics) for run in runs]
    vectors = settings.data.vectors
    figures = [
        _figures(settings.script, run, metrics, others, vectors) for run, metrics in zip(runs, held, strict=True)
    ]
    if row.ensemble:
        corpora = [
            *([("test", settings.data.corpora()["test"])] if "test" in held[0] else []),
            *((o.key, o.corpus) for o in others),
        ]
        of_ensemble = {key: evaluate_on(settings.script, runs, corpus, key, vectors)[1] for key, corpus in corpora}
        figures = [{key: 100 * metrics["accuracy"] for key, metrics in of_ensemble.items()}]
    members = len(runs) if row.ensemble else 1
    return {
        "row": row.name,
        "options": dict(row.options),
        "settings": settings.name,
        "parameters": held[0]["parameters"] * members,
        "paper_parameters": row.parameters,
        "paper": list(row.paper),
        "ours": {key: [figure[key] for figure in figures if key in figure] for key in figures[0]},
        "pairs_per_second": statistics.median(metrics["pairs_per_second"] for metrics in held) / members,
        "inference_pairs_per_second": (
            statistics.median(metrics["inference_pairs_per_second"] for metrics in held) / members
        ),
    }


def _figures(
    script: Script, run: Run, metrics: Mapping[str, Any], others: Sequence[Other], vectors: Path | None
) -> dict[str, float]:
    """Everything that a column of a table may ask for: accuracies in per cent, and times."""
    splits = {split: metrics[split] for split in ("train", "dev", "test") if split in metrics}
    splits |= {other.key: _on_other(script, run, other, vectors) for other in others}
    figures = {}
    for split, measured in splits.items():
        figures[split] = 100 * measured["accuracy"]
        for group in ("per_phenomenon", "per_class"):  # a class keeps its name
            figures |= {f"{split} {name}": 100 * value for name, value in measured[group].items()}
    figures["seconds/epoch"] = metrics["training_pairs"] / metrics["pairs_per_second"]
    figures["minutes/epoch"] = figures["seconds/epoch"] / 60
    shown = splits.get("test", splits["dev"])
    figures["seconds to test"] = shown["pairs"] / metrics["inference_pairs_per_second"]
    return figures


def _on_other(script: Script, run: Run, other: Other, vectors: Path | None) -> Metrics:
    """A run's metrics on another file, measured once."""
    path = run.folder / f"evaluation-{other.name}-{other.corpus.digest[:8]}.json"
    facts: dict[str, Any] = {"digest": other.corpus.digest, "categories": other.categories}
    facts["weights"] = fingerprint(run.weights)
    facts["vectors"] = None if vectors is None else fingerprint(vectors)
    if path.exists():
        known = read_json(path)
        if all(known.get(key) == fact for key, fact in facts.items()):
            held: Metrics = held_metrics(path)[1]
            return held
    right, metrics = evaluate_on(script, [run], other.corpus, other.name, vectors)
    metrics["per_phenomenon"] |= accuracy_by_category(other.categories, right)
    accelerator = Accelerator()
    if accelerator.is_main_process:
        write_json(path, {"test": metrics, **facts})
    accelerator.wait_for_everyone()  # or another row, of the same run, would be measured by some processes alone
    return metrics
