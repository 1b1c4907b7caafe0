"""Figures of a run."""

import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from nli_common.errors import InputError
from nli_common.files import write_atomically

FORMATS = ("png", "pdf", "svg")
STROKES = ("o--", "s-", "^:")
LONGEST_DRAWN = 40
"""Words of a sentence in a figure; those behind them are left out."""
LONGEST_SHOWN = 40
"""Characters of a word in a figure."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe's and Ito's, which the colour-blind tell apart."""


def plot_confusion(confusion: Sequence[Sequence[int]], labels: Sequence[str], title: str, path: Path) -> None:
    """The confusion matrix, each row coloured by its shares and written with counts."""
    figure = Figure(figsize=(1.9 + len(labels), 1.5 + 0.9 * len(labels)), layout="constrained")
    axes = figure.subplots()
    totals = [max(sum(row), 1) for row in confusion]
    shares = [[count / total for count in row] for row, total in zip(confusion, totals, strict=True)]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for i, row in enumerate(confusion):
        for j, count in enumerate(row):
            colour = "white" if shares[i][j] > 0.5 else "black"
            axes.text(j, i, f"{count:,}\n{shares[i][j]:.0%}", ha="center", va="center", color=colour)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xlabel("predicted")
    axes.set_ylabel("gold")
    axes.set_title(title)
    save_figure(figure, path)


def plot_alignment(weights: Tensor, rows: Sequence[str], columns: Sequence[str], title: str, path: Path) -> None:
    """How much of each row's word is aligned to each column's word: ``(rows, columns)``, rows that sum to 1."""
    if max(len(rows), len(columns)) > LONGEST_DRAWN:
        title = f"{title}, the first {LONGEST_DRAWN} of each"
    rows, columns = rows[:LONGEST_DRAWN], columns[:LONGEST_DRAWN]
    weights = weights[:LONGEST_DRAWN, :LONGEST_DRAWN]
    figure = Figure(figsize=(max(4.7, 2.2 + 0.5 * len(columns)), 1.8 + 0.36 * len(rows)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(weights.detach().float().cpu().numpy(), cmap="viridis", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(
        range(len(columns)), shown(columns), rotation=45, ha="right", rotation_mode="anchor", parse_math=False
    )
    axes.set_yticks(range(len(rows)), shown(rows), parse_math=False)
    axes.set_title(title, fontsize="medium")
    figure.colorbar(image, ax=axes, label="weight", shrink=0.9)
    save_figure(figure, path)


def plot_lines(series: Mapping[str, Sequence[float]], words: Sequence[str], title: str, path: Path) -> None:
    """A line over the words of a sentence for each series.

    What a name has before its last underscore chooses the stroke, what stands behind it the colour.

    Raises:
        ValueError: if a series has not one value for each word.
    """
    for name, values in series.items():
        if len(values) != len(words):
            raise ValueError(f"{name} has {len(values)} values, expected {len(words)}: one for each word")
    if len(words) > LONGEST_DRAWN:
        title = f"{title}, the first {LONGEST_DRAWN} words"
    words = words[:LONGEST_DRAWN]
    series = {name: values[:LONGEST_DRAWN] for name, values in series.items()}
    figure = Figure(figsize=(max(5.5, 3.2 + 0.55 * len(words)), 3.6), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color="0.8", linewidth=0.8)
    groups, kinds = (list(dict.fromkeys(name.rpartition("_")[end] for name in series)) for end in (0, 2))
    for name, values in series.items():
        group, _, kind = name.rpartition("_")
        stroke, colour = STROKES[groups.index(group) % len(STROKES)], COLOURS[kinds.index(kind) % len(COLOURS)]
        axes.plot(values, stroke, label=name, color=colour, markersize=5, markerfacecolor="white", clip_on=False)
    axes.set_xticks(range(len(words)), shown(words), rotation=45, ha="right", rotation_mode="anchor", parse_math=False)
    axes.set_xlim(-0.4, len(words) - 0.6)
    axes.grid(axis="x", color="0.93")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize="medium")
    figure.legend(loc="outside right center", frameon=False, handlelength=3)
    save_figure(figure, path)


def shown(words: Sequence[str]) -> list[str]:
    """What a font can be asked to draw: half a surrogate pair is no character."""
    short = (word if len(word) <= LONGEST_SHOWN else word[: LONGEST_SHOWN - 1] + "…" for word in words)
    return [word.encode("utf-8", "replace").decode() for word in short]


def format_of(path: Path) -> str:
    """What a figure of this name is written as.

    Raises:
        InputError: if the name does not end in one of the formats.
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise InputError(f"{path}: expected a name that ends in {', '.join(f'.{known}' for known in FORMATS)}")
    return kind


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in one step, in the format that its name ends in.

    Raises:
        InputError: if the name has no such end.
    """
    kind = format_of(path)
    FigureCanvasAgg(figure)
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # it is drawn as a box
        figure.savefig(drawn, dpi=150, format=kind)
    write_atomically(path, lambda temporary: temporary.write_bytes(drawn.getvalue()))
