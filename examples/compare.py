"""Test accuracy (dev, where there was no test) of several runs side by side: all pairs, each class, each phenomenon.

    python examples/compare.py runs/demo/vanilla runs/demo/intra

Runs of the same model under other seeds are put together with ``--group``: mean ± standard deviation by folder name
without its last part, as in ``snli-0 snli-1 snli-2``.
"""

import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from nli_common.errors import InputError
from nli_common.exits import told_in_one_line
from nli_common.files import resolved
from nli_common.reports import print_table
from nli_common.runs import Run, differences, held_metrics, require_distinct


def compare(runs: tyro.conf.Positional[tuple[Path, ...]], group: bool = False) -> None:
    """Print a table of runs.

    Args:
        runs: Folders that train wrote.
        group: Put runs that differ in their last part, behind a hyphen, into one column.
    """
    if not runs:
        raise InputError("expected the folder of at least one run")
    require_distinct(runs)
    runs = tuple(resolved(run) if run.name in ("", "..") else run for run in runs)  # those are no names
    stems = [run.with_name(run.name.rpartition("-")[0] or run.name) if group else run for run in runs]
    spelled: dict[Path, Path] = {}
    stems = [spelled.setdefault(resolved(stem), stem) for stem in stems]  # as the first of them is spelled
    if group:
        for stem in set(stems):
            _require_alike([run for run, its in zip(runs, stems, strict=True) if its == stem])
    alike = Counter(stem.name for stem in dict.fromkeys(stems))
    columns: dict[str, list[dict[str, Any]]] = {}
    tested = set()
    for stem, run in zip(stems, runs, strict=True):
        if Run(run).unfinished:
            raise InputError(f"{run}: this run is not finished; the command that began it goes on with it")
        split, metrics = held_metrics(Run(run).metrics)
        if Run(run).config.exists():
            tested.add(Run(run).read_config().get("data", {}).get(split))
        title = stem.name if alike[stem.name] == 1 else str(stem)
        columns.setdefault(title if split == "test" else f"{title} (dev)", []).append(metrics)
    rows = dict.fromkeys(key for column in columns.values() for metrics in column for key in accuracies(metrics))
    table = Table(box=None, pad_edge=False)
    table.add_column("accuracy")
    for name, column in columns.items():
        table.add_column(name if len(column) == 1 else f"{name} ({len(column)} runs)", justify="right")
    for row in rows:
        cells = (cell([accuracies(metrics).get(row) for metrics in column]) for column in columns.values())
        table.add_row(row[1], *cells)
    print_table(Console(markup=False, emoji=False), table)
    if len(tested) > 1:
        print("note: not all of these runs were tested on the same pairs", file=sys.stderr)


def _require_alike(runs: Sequence[Path]) -> None:
    """Raise an ``InputError`` if runs differ in more than their seed."""
    configs = [Run(run).read_config() | {"seed": None} if Run(run).config.exists() else {} for run in runs]
    for run, config in zip(runs, configs, strict=True):
        for name, _, _ in differences(configs[0], config):
            raise InputError(
                f"--group: {run} and {runs[0]} are runs with another {name}, not only with another seed; "
                "leave --group out, or name fewer runs"
            )


def accuracies(metrics: dict[str, Any]) -> dict[tuple[str, str], float]:
    """Every accuracy of a run under its group, for a class and a phenomenon may share a name, and its row's name."""
    groups = ("per_class", "per_phenomenon")
    rows = {(group, f"  {name}"): value for group in groups for name, value in metrics[group].items()}
    return {("", "all"): metrics["accuracy"]} | rows


def cell(values: list[float | None]) -> str:
    """The mean in per cent, with the standard deviation where there is more than one value."""
    known = [100 * value for value in values if value is not None]
    if len(known) < 2:
        return f"{known[0]:.1f}" if known else ""
    return f"{statistics.mean(known):.1f} ± {statistics.stdev(known):.1f}"


if __name__ == "__main__":
    with told_in_one_line():
        tyro.cli(compare)
