"""What a paper's table of results holds: rows that can be trained again, and the figures that were printed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

GENERATED = "generated corpus"
"""The corpus of rows that are trained without files."""


@dataclass(frozen=True)
class Row:
    """One row of a table: what distinguishes it from the script's defaults, and what the paper reports."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the configuration, the recipe or the data that this row changes, under their names."""
    paper: tuple[float | None, ...] = ()
    """The figures that the paper prints, one for each column of the table; ``None`` where it has none."""
    parameters: str = ""
    """Trainable parameters as the paper prints them: ``"4.7M"``."""
    model: str = ""
    """Another configuration's class, by name, where the row is not of the script's first model."""
    script: str = ""
    """Another script, by name, whose model this row is."""
    ensemble: bool = False
    """Average the class probabilities of this row's seeds, instead of their accuracies."""


@dataclass(frozen=True)
class Table:
    """A table, or a figure, of a paper's results."""

    title: str
    """``"Table 1: the prior over distances"``."""
    columns: tuple[str, ...]
    """The paper's columns of figures: ``("MultiNLI dev, matched", "mismatched")``."""
    rows: tuple[Row, ...]
    measures: tuple[str, ...] = ()
    """What of ours belongs to each column, or what is shown of ours where the paper has none: ``"train"``, ``"dev"``,
    ``"test"``, ``"also 1"`` (the first of the files that are tested too), one of these with a class, phenomenon or
    category behind it (``"dev neutral"``), ``"minutes/epoch"``, ``"seconds/epoch"`` or ``"seconds to test"``. None
    given: test, also 1, also 2 …"""
    note: str = ""
    """What a reader must know of the rows: readings taken, rows that are left out and why."""
    figure: Literal["none", "points", "grid", "sweep"] = "none"
    """How it is drawn: a point for each row; a square for each pair of values of two options; or lines over one
    option, where rows with the same words before the comma are of one line."""
    axes: tuple[str, ...] = ()
    """The options that run across and down a grid, or the one that runs across a sweep."""
    shown: int = 0
    """The column that is drawn."""

    def __post_init__(self) -> None:
        """Fill in the measures, and refuse figures that have no column."""
        if not self.measures:
            measures = ("test", *(f"also {k}" for k in range(1, len(self.columns))))
            object.__setattr__(self, "measures", measures)
        if self.columns and len(self.measures) != len(self.columns):
            raise ValueError(f"{self.title}: expected {len(self.columns)} measures, got {len(self.measures)}")
        for row in self.rows:
            if len(row.paper) not in (0, len(self.columns)):
                raise ValueError(
                    f"{self.title}, {row.name}: expected {len(self.columns)} figures, got {len(row.paper)}"
                )

    def printed(self, row: Row, column: int) -> float | None:
        """The paper's figure in a row and a column; ``None`` where it has none."""
        return row.paper[column] if row.paper else None
