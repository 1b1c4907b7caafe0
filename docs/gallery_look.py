"""How the site's pictures look, and what a reader who cannot see them is told."""

import re
from typing import Any

import matplotlib.pyplot as plt
import torch
from cycler import cycler
from sphinx_gallery.scrapers import matplotlib_scraper

from nli_common.figures import COLOURS

LOOK = {
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "font.size": 10,
    "image.cmap": "Blues",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
}


def apply(conf: Any, script: Any) -> None:
    """Set the look, and one thread, so that every build on a processor has the same numbers. Called for each script."""
    plt.rcParams.update(LOOK)
    torch.set_num_threads(1)


def described_figures(block: Any, variables: Any, conf: Any) -> str:
    """A block's figures, each with its label as the alternative text: ``figure.set_label("What is to be seen")``.

    Raises:
        ValueError: if a figure has none.
    """
    labels = [
        " ".join(str(plt.figure(number).get_label()).split())
        for number in plt.get_fignums()
    ]
    if not all(labels):
        raise ValueError(
            f"{variables['src_file']}: a figure has no description: give it one by set_label"
        )
    rest = iter(labels)
    return re.sub(
        r"(?<=:alt: ).*",
        lambda _: next(rest),
        matplotlib_scraper(block, variables, conf),
    )
