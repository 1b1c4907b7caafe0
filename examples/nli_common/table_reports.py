"""A table of results as Markdown, JSON and a figure: ours beside the paper's."""

import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nli_common.files import write_text
from nli_common.runs import write_json
from nli_common.table_figures import plot_table
from nli_common.tables import Table


def write_table(
    table: Table, name: str, results: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], folder: Path
) -> None:
    """Write ``NAME.md``, ``NAME.json`` and, if the table has a figure, ``NAME.png``, each in one step.

    Args:
        table: its title, columns and rows.
        name: of the files.
        results: of its rows, as far as they are trained.
        facts: what was the same for all rows.
        folder: where to.
    """
    write_json(folder / f"{name}.json", {"title": table.title, "columns": table.columns, **facts, "rows": results})
    text = markdown(table, results, facts)
    if table.figure != "none":
        text += f"\n![{table.title}]({name}.png)\n"
    write_text(folder / f"{name}.md", text)
    plot_table(table, results, facts["corpus"], folder / f"{name}.png")


def markdown(table: Table, results: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> str:
    """The table, ours beside the paper's in each column; a row that is not trained yet has the paper's alone.

    A table with more than two columns for each row is turned, so that it can be read.
    """
    lines = _cells(table, results)
    if len(table.columns) > 2 * len(table.rows):
        lines = [list(column) for column in zip(*lines, strict=True)]
    head, *body = lines
    seeds = facts["seeds"]
    counted = f"{seeds} seeds (mean ± standard deviation)" if seeds > 1 else "1 seed"
    options = "".join(f", {option}={value}" for option, value in facts["options"].items())
    text = [f"# {table.title}", "", f"Ours: accuracies in per cent; {facts['data']}; {counted}{options}.", ""]
    text += [_line(head), _line(["---", *["---:"] * (len(head) - 1)]), *map(_line, body)]
    return "\n".join([*text, *(["", table.note] if table.note else []), ""])


def _cells(table: Table, results: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Heads and cells, row by row; columns without any figure are left out."""
    found = [*results, *[None] * (len(table.rows) - len(results))]
    rows = list(zip(table.rows, found, strict=True))
    columns = [["", *(row.name for row in table.rows)]]
    columns.append(["parameters", *("" if result is None else f"{result['parameters']:,}" for result in found)])
    columns.append(["paper: parameters", *(row.parameters for row in table.rows)])
    for place, measure in enumerate(table.measures):
        ours = ["" if result is None else _spread(result["ours"].get(measure, [])) for result in found]
        printed = [table.printed(row, place) for row in table.rows]
        columns.append([f"ours: {measure}", *ours])
        columns.append([f"paper: {table.columns[place] if table.columns else measure}", *_as_printed(printed)])
    tested = dict.fromkeys(measure for result in results for measure in result["ours"])
    for measure in (measure for measure in tested if re.fullmatch(r"also \d+", measure)):
        if measure not in table.measures:
            columns.append(
                [f"ours: {measure}", *("" if result is None else _spread(result["ours"][measure]) for result in found)]
            )
    for title, speed in (("training pairs/s", "pairs_per_second"), ("pairs/s", "inference_pairs_per_second")):
        columns.append([title, *("" if result is None else f"{result[speed]:,.0f}" for _, result in rows)])
    columns = [columns[0], *(column for column in columns[1:] if any(column[1:]))]
    return [list(cells) for cells in zip(*columns, strict=True)]


def _as_printed(figures: Sequence[float | None]) -> list[str]:
    """A column's figures, each with as many decimals as the longest of them has: 88.0 has one, 88 none."""
    decimals = max((len(str(figure).partition(".")[2]) for figure in figures if figure is not None), default=0)
    return ["" if figure is None else f"{figure:.{decimals}f}" for figure in figures]


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    mean = f"{statistics.mean(values):.1f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.1f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
