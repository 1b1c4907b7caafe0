"""The pictures of the study's pages."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.ticker import MaxNLocator

from study.plan import ABLATIONS, AVERAGED, BENCHES, ENCODED, HALVED, MODELS, VARIANTS
from study.results import Results, aligned

SHOWN = (*MODELS, *HALVED)
COLOURS = (*(f"C{k}" for k in range(10)), "black", "navy", "goldenrod", "crimson")
LOOKS = dict(zip((variant.name for variant in SHOWN), zip(COLOURS, "os^v<>DPX*hpdH", strict=True), strict=True))
"""The same colour and marker for a model in every picture."""


def plot_curves(bench: str, results: Results, path: Path) -> None:
    """Dev accuracy of seed 0 after each epoch."""
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for variant in SHOWN:
        first = next((r for r in results.get((bench, variant.name), []) if r["seed"] == 0), None)
        if first:
            percent = [100 * share for share in first["dev"]]
            colour, marker = LOOKS[variant.name]
            axes.plot(range(1, len(percent) + 1), percent, color=colour, marker=marker, ms=5, label=variant.name)
    axes.set(title=f"{bench}, seed 0", xlabel="epoch", ylabel="dev accuracy, %")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def plot_alignments(results: Results, path: Path) -> None:
    """The test accuracy of each run, by what its attention finds."""
    benches = [bench for bench in BENCHES if any(aligned(bench, name, results) for name in VARIANTS)]
    rows = -(-len(benches) // 2)
    figure, grid = plt.subplots(rows, 2, figsize=(9.5, 4 * rows), layout="constrained", squeeze=False)
    panels = grid.flat[: len(benches)]
    empty = grid.flat[len(benches) :]
    for axes in empty:
        axes.set_axis_off()
    parts = [variant for variant in (*ABLATIONS, *AVERAGED) if variant not in HALVED]
    groups = [("ablations, averages of weights", parts, "0.7", "."), ("on a frozen encoder", ENCODED, "0.4", "+")]
    groups += [(model.name, (model,), *LOOKS[model.name]) for model in SHOWN]
    for bench, axes in zip(benches, panels, strict=True):
        for label, variants, colour, marker in groups:
            points = [point for variant in variants for point in aligned(bench, variant.name, results)]
            found, test = ([100 * pair["found"] for pair, _ in points], [100 * share for _, share in points])
            axes.plot(found, test, marker, color=colour, label=label if points else None)
        even = next(pair["even"] for name in VARIANTS for pair, _ in aligned(bench, name, results))
        axes.axvline(100 * even, color="0.7", linewidth=1, label="every word alike")
        axes.set(title=bench, xlabel="weight on the same word, %", ylabel="test accuracy, %")
        axes.grid(alpha=0.3)
    shown: dict[str, Artist] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        shown |= dict(zip(labels, handles, strict=True))
    legend = {"handles": list(shown.values()), "labels": list(shown), "frameon": False}
    if len(empty):
        empty[0].legend(**legend, loc="center left")
    else:
        figure.legend(**legend, fontsize=8, loc="outside right upper")
    figure.savefig(path, dpi=150)
    plt.close(figure)
