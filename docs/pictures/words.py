"""A matrix of weights with its words beside it."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from torch import Tensor


def draw(
    axes: Axes,
    weights: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
) -> AxesImage:
    """A heat map from white, 0, to the darkest blue, 1; columns' words stand above."""
    image = axes.imshow(weights.detach(), cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="left")
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xlabel(title, labelpad=8)
    axes.spines[:].set_visible(False)
    return image
