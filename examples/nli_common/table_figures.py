"""A table of results as a picture: points, a grid, or a sweep."""

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nli_common.figures import save_figure
from nli_common.tables import GENERATED, Row, Table

Results = Sequence[Mapping[str, Any]]
OURS, PAPERS = "tab:blue", "tab:orange"


def plot_table(table: Table, results: Results, corpus: str, path: Path) -> None:
    """Draw the rows that are trained on a corpus, in the way that the table names."""
    draw = {"points": _points, "grid": _grid, "sweep": _sweep}.get(table.figure)
    if draw is None or not results:
        return
    figure = Figure(
        figsize=(7, 2.2 + 0.34 * len(table.rows)) if table.figure == "points" else (6, 4.2), layout="constrained"
    )
    draw(figure, table, results, corpus)
    figure.suptitle(table.title, fontsize="medium")
    save_figure(figure, path)


def _points(figure: Figure, table: Table, results: Results, corpus: str) -> None:
    """Ours beside the paper's: on an axis of their own where the pairs are no pairs of the paper's."""
    rows = table.rows[: len(results)]
    places = range(len(rows))
    means, spreads = zip(*(_ours(result, table) for result in results), strict=True)
    printed = {place: v for place, row in enumerate(rows) if (v := table.printed(row, table.shown)) is not None}
    panels = _panels(figure, apart=bool(printed) and corpus == GENERATED, sharey=True)
    ours, papers = panels[0], panels[-1]
    label = f"ours: {corpus}{_seeds(results, table)}"
    ours.errorbar(means, places, xerr=_bars(spreads), fmt="o", capsize=3, color=OURS, label=label)
    if printed:
        title = f"paper: {table.columns[table.shown]}"
        papers.plot([*printed.values()], [*printed], "D", color=PAPERS, label=title)
    ours.set_yticks(places, [row.name for row in rows])
    ours.set_ylim(len(rows) - 0.5, -0.5)
    for axes in panels:
        axes.grid(axis="x", alpha=0.3)
        axes.set_xlabel("accuracy in per cent")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, frameon=False, fontsize="small")


def _grid(figure: Figure, table: Table, results: Results, corpus: str) -> None:
    axes = figure.subplots()
    across, down = table.axes
    rows = table.rows[: len(results)]
    columns, lines = (sorted({row.options[option] for row in table.rows}) for option in (across, down))
    values = {
        (row.options[down], row.options[across]): _ours(r, table)[0] for row, r in zip(rows, results, strict=True)
    }
    square = [[values.get((line, column), float("nan")) for column in columns] for line in lines]
    image = axes.imshow(square, cmap="viridis")
    middle = (min(values.values()) + max(values.values())) / 2
    for (line, column), value in values.items():
        colour = "white" if value < middle else "black"
        axes.text(columns.index(column), lines.index(line), f"{value:.1f}", ha="center", va="center", color=colour)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(lines)), lines)
    axes.set_xlabel(across.replace("_", " "))
    axes.set_ylabel(down.replace("_", " "))
    figure.colorbar(image, ax=axes, label=f"accuracy in per cent, {corpus}")


def _sweep(figure: Figure, table: Table, results: Results, corpus: str) -> None:
    """Ours beside the paper's, as :func:`_points`."""
    (across,) = table.axes
    is_printed = any(table.printed(row, table.shown) is not None for row in table.rows)
    panels = _panels(figure, apart=is_printed and corpus == GENERATED)
    ours, papers = panels[0], panels[-1]
    for k, series in enumerate(dict.fromkeys(_series(row) for row in table.rows)):
        points = [(row, r) for row, r in zip(table.rows, results, strict=False) if _series(row) == series]
        if not points:
            continue
        at = [row.options[across] for row, _ in points]
        means, spreads = zip(*(_ours(result, table) for _, result in points), strict=True)
        colour = f"C{k}"
        label = f"{series}, {corpus}{_seeds([result for _, result in points], table)}"
        ours.errorbar(at, means, yerr=_bars(spreads), color=colour, marker="o", capsize=3, label=label)
        printed = [
            (row.options[across], value) for row, _ in points if (value := table.printed(row, table.shown)) is not None
        ]
        if printed:
            papers.plot(*zip(*printed, strict=True), "--D", color=colour, alpha=0.6, label=f"{series}, paper")
    for axes in panels:
        axes.set_xlabel(across.replace("_", " "))
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), frameon=False, fontsize="small")
    ours.set_ylabel("accuracy in per cent")


def _panels(figure: Figure, *, apart: bool, sharey: bool = False) -> list[Axes]:
    """One for ours and the paper's, or one for each where the pairs are no pairs of the paper's."""
    return list(figure.subplots(1, 1 + apart, sharey=sharey, squeeze=False)[0])


def _bars(spreads: Sequence[float]) -> Sequence[float] | None:
    """The lengths of error bars; a single seed has none."""
    return spreads if any(spreads) else None


def _seeds(results: Results, table: Table) -> str:
    """A word on results without a spread."""
    single = all(len(result["ours"].get(table.measures[table.shown], [])) <= 1 for result in results)
    return ", one seed" if single else ""


def _series(row: Row) -> str:
    """Rows of one line have one name before the comma."""
    return row.name.partition(",")[0]


def _ours(result: Mapping[str, Any], table: Table) -> tuple[float, float]:
    """Mean and standard deviation of what is drawn."""
    values = result["ours"].get(table.measures[table.shown], [])
    if not values:
        return math.nan, 0.0
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0
