"""Boxes and arrows: the figure of how data go through a layer or a model."""

from dataclasses import dataclass

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

PREMISE, HYPOTHESIS, BOTH, PLAIN = "#cfe2f6", "#fbdcc0", "#dcecd4", "#f1f1f1"
"""What a box holds: the premise, the hypothesis, both sentences, or neither."""
INK = "#333333"


@dataclass(frozen=True)
class Box:
    """A box around its middle."""

    x: float
    y: float
    width: float
    height: float


class Flow:
    """A figure in inches, with y upwards; boxes first, then the arrows between them."""

    def __init__(self, width: float, height: float) -> None:
        figure = plt.figure(figsize=(width, height))
        self.axes: Axes = figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, width), ylim=(0, height))
        self.axes.axis("off")

    def box(
        self,
        x: float,
        y: float,
        text: str,
        colour: str = PLAIN,
        width: float = 1.5,
        height: float = 0.42,
    ) -> Box:
        """A box with words in it."""
        self.axes.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - height / 2),
                width,
                height,
                boxstyle="round,pad=0,rounding_size=0.08",
                facecolor=colour,
                edgecolor=INK,
                linewidth=0.8,
            )
        )
        self.note(x, y, text)
        return Box(x, y, width, height)

    def note(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 8.5,
        align: str = "center",
    ) -> None:
        """Words without a box."""
        self.axes.text(
            x,
            y,
            text,
            ha=align,
            va="center",
            fontsize=size,
            color=INK,
            linespacing=1.25,
        )

    def arrow(self, start: Box, end: Box, bend: float = 0.0) -> None:
        """From the edge of one box to that of another, the one above or beside it."""
        (a, b), (c, d) = _ends(start, end)
        self.axes.add_patch(
            FancyArrowPatch(
                (a, b),
                (c, d),
                arrowstyle="-|>",
                mutation_scale=9,
                linewidth=0.9,
                color=INK,
                shrinkA=1,
                shrinkB=1,
                connectionstyle=f"arc3,rad={bend}",
            )
        )

    def arrows(self, *pairs: tuple[Box, Box]) -> None:
        """Several straight ones."""
        for start, end in pairs:
            self.arrow(start, end)


def _ends(start: Box, end: Box) -> tuple[tuple[float, float], tuple[float, float]]:
    if abs(end.y - start.y) > (start.height + end.height) / 2:
        up = 1 if end.y > start.y else -1
        return (start.x, start.y + up * start.height / 2), (
            end.x,
            end.y - up * end.height / 2,
        )
    right = 1 if end.x > start.x else -1
    return (start.x + right * start.width / 2, start.y), (
        end.x - right * end.width / 2,
        end.y,
    )
