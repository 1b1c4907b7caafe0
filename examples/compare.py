"""Test accuracy (dev, where there was no test) of several runs side by side: all pairs, each class, each phenomenon.

    python examples/compare.py runs/demo/vanilla runs/demo/intra

Runs of the same model under other seeds are put together with ``--group``: mean ± standard deviation by folder name
without its last part, as in ``snli-0 snli-1 snli-2``.
"""

import statistics
import sys
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from nli_common.errors import InputError
from nli_common.runs import Run, held_metrics


def compare(runs: tyro.conf.Positional[tuple[Path, ...]], group: bool = False) -> None:
    """Print a table of runs.

    Args:
        runs: Folders that train wrote.
        group: Put runs that differ in their last part, behind a hyphen, into one column.
    """
    if not runs:
        raise InputError("expected the folder of at least one run")
    for place, run in enumerate(runs):
        if run.resolve() in [other.resolve() for other in runs[:place]]:
            raise InputError(f"{run}: is named twice")
    names = [run.name if [other.name for other in runs].count(run.name) == 1 else str(run) for run in runs]
    columns: dict[str, list[dict[str, Any]]] = {}
    for name, run in zip(names, runs, strict=True):
        split, metrics = held_metrics(Run(run).metrics)
        title = name.rpartition("-")[0] if group and "-" in name else name
        columns.setdefault(title if split == "test" else f"{title} (dev)", []).append(metrics)
    rows = dict.fromkeys(key for column in columns.values() for key in accuracies(column[0]))
    table = Table(box=None, pad_edge=False)
    table.add_column("accuracy")
    for name, column in columns.items():
        table.add_column(name if len(column) == 1 else f"{name} ({len(column)} runs)", justify="right")
    for row in rows:
        table.add_row(row, *(cell([accuracies(metrics).get(row) for metrics in column]) for column in columns.values()))
    Console(markup=False, emoji=False).print(table)


def accuracies(metrics: dict[str, Any]) -> dict[str, float]:
    """Every accuracy of a run under the name of its row."""
    groups = {**metrics["per_class"], **metrics["per_phenomenon"]}
    return {"all": metrics["accuracy"]} | {f"  {name}": value for name, value in groups.items()}


def cell(values: list[float | None]) -> str:
    """The mean in per cent, with the standard deviation where there is more than one value."""
    known = [100 * value for value in values if value is not None]
    if len(known) < 2:
        return f"{known[0]:.1f}" if known else ""
    return f"{statistics.mean(known):.1f} ± {statistics.stdev(known):.1f}"


if __name__ == "__main__":
    try:
        tyro.cli(compare)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
