"""A table of results as Markdown, JSON and a figure: ours beside the paper's."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nli_common.files import write_atomically
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
    write_atomically(folder / f"{name}.md", lambda temporary: temporary.write_text(text, encoding="utf-8"))
    plot_table(table, results, folder / f"{name}.png")


def markdown(table: Table, results: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> str:
    """The table with a line for each row; a row that is not trained yet has the paper's figures alone."""
    splits = list(dict.fromkeys(split for result in results for split in result["accuracy"]))
    head = ["", "parameters", *splits, "training pairs/s", "inference pairs/s"]
    head += ["paper: parameters"] * any(row.parameters for row in table.rows)
    head += [f"paper: {column}" for column in table.columns]
    lines = [f"# {table.title}", "", _line(head), _line(["---", *["---:"] * (len(head) - 1)])]
    for place, row in enumerate(table.rows):
        result = results[place] if place < len(results) else None
        cells = [row.name, "" if result is None else f"{result['parameters']:,}"]
        cells += ["" if result is None else _spread(result["accuracy"].get(split, [])) for split in splits]
        for speed in ("pairs_per_second", "inference_pairs_per_second"):
            cells.append("" if result is None else f"{result[speed]:,.0f}")
        cells += [row.parameters] * ("paper: parameters" in head)
        printed = [*row.paper, *[None] * (len(table.columns) - len(row.paper))]
        lines.append(_line([*cells, *("–" if figure is None else f"{figure:g}" for figure in printed)]))
    seeds = facts["seeds"]
    options = "".join(f", {option}={value}" for option, value in facts["options"].items())
    counted = f"{seeds} seeds (mean ± standard deviation)" if seeds > 1 else "1 seed"
    lines += ["", f"Ours: accuracy in per cent on the {facts['data']}; {counted}{options}."]
    return "\n".join([*lines, *(["", table.note] if table.note else []), ""])


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    mean = f"{100 * statistics.mean(values):.1f}"
    return mean if len(values) == 1 else f"{mean} ± {100 * statistics.stdev(values):.1f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
