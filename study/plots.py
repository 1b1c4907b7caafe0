"""The pictures of the study's pages."""

from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.ticker import MaxNLocator

from nli_common.figures import save_figure
from study.peers import OTHER, PEERS
from study.plan import ABLATIONS, AVERAGED, BENCHES, ENCODED, HALVED, MODELS, READERS, VARIANTS
from study.results import Results, aligned

SHOWN = (*MODELS, *HALVED)
OF_NO_PAPER = ("stacked_alignment", "hypothesis_only")
"""The scripts whose models are ours."""
COLOURS = (*(f"C{k}" if k != 7 else "teal" for k in range(10)), "black", "navy", "goldenrod", "crimson")
LOOKS = dict(zip((variant.name for variant in SHOWN), zip(COLOURS, "os^v<>DPX*hpdH", strict=True), strict=True))
"""The same colour and marker for a model in every picture."""


def plot_models(results: Results, path: Path) -> None:
    """The test accuracy of each run and of public implementations, a row for each model, in the first bench's order."""
    benches = [bench for bench in BENCHES if any(name == bench for name, _ in results)]
    reached = {key: [100 * run["accuracy"]["test"] for run in runs] for key, runs in results.items()}
    published = {key: [peer.test] for key, peer in PEERS.items()}
    names = [OTHER, *(variant.name for variant in (*READERS, *ENCODED))]
    every = published | reached
    rows = {n: row for row, n in enumerate(sorted(names, key=lambda n: mean(every.get((benches[0], n), [0.0]))))}
    hollow = {"mfc": "none", "mew": 1, "alpha": 1}
    groups: list[tuple[str, list[str], Mapping[tuple[str, str], list[float]], dict[str, Any]]] = []
    for label, of_paper, colour in (("a paper's model", True, "C0"), ("a model of no paper", False, "C1")):
        own = [variant for variant in READERS if (variant.row.script not in OF_NO_PAPER) == of_paper]
        groups += [
            (label, [v.name for v in own if v not in AVERAGED], reached, {"color": colour}),
            (
                f"{label}, weights averaged",
                [v.name for v in own if v in AVERAGED],
                reached,
                {"color": colour, **hollow},
            ),
        ]
    groups += [
        ("on a frozen encoder", [v.name for v in ENCODED], reached, {"color": "0.4"}),
        (
            "public implementation, mean",
            names,
            published,
            {"color": "black", "marker": "d", **hollow},
        ),
    ]
    size = (8.5, 0.24 * len(rows) + 1.3)
    figure, grid = plt.subplots(1, len(benches), figsize=size, sharey=True, layout="constrained", squeeze=False)
    for bench, axes in zip(benches, grid.flat, strict=True):
        for label, members, figures, look in groups:
            points = [(test, rows[name]) for name in members for test in figures.get((bench, name), [])]
            style = {"marker": "o", "alpha": 0.6, "ms": 5, "mew": 0, "linestyle": ""} | look
            axes.plot([test for test, _ in points], [row for _, row in points], label=label, **style)
        axes.set_title(bench, fontsize="medium")
        axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
        axes.set_yticks(list(rows.values()), list(rows))
        axes.grid(alpha=0.3)
    grid[0, len(benches) // 2].set_xlabel("test accuracy, %")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), frameon=False, ncols=2, loc="outside lower center")
    save_figure(figure, path)
    plt.close(figure)


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
    save_figure(figure, path)
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
    groups = [("ablations, averages of weights", parts, "0.7", "."), ("on a frozen encoder", ENCODED, "black", "+")]
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
    save_figure(figure, path)
    plt.close(figure)
