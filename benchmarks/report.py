"""What the measurements say, as a page: tables of ratios and a plot, from the JSON that the measurements wrote."""

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import StrMethodFormatter

from benchmarks import attention
from nli_common.figures import save_figure
from nli_common.files import write_text

NOT_IN_TF32 = " That product is not rounded to TF32, as LSTMs and PyTorch's convolutions are there."

IN_THE_LEGEND = {
    "ours": "ours, with a Gaussian prior",
    "plain attention": "plain attention, without a prior",
    "with the prior as a mask": "plain attention, with the prior as its mask",
    "textbook": "textbook, with the prior",
    "nn.MultiheadAttention": "nn.MultiheadAttention, without a prior",
}


def write_page(measured: Path, folder: Path) -> None:
    """Write ``NAME.md`` and ``NAME.png`` beside each other from ``NAME.json``."""
    held = json.loads(measured.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    if "memory" in held:
        plot_lengths(held, folder / f"{measured.stem}.png")
    write_text(folder / f"{measured.stem}.md", page(held, f"{measured.stem}.png"))


def page(held: dict[str, Any], plot: str) -> str:
    """The whole page in Markdown: a section for each part that is measured."""
    device, dtype = held["device"], held["dtype"]
    apart = " The parts were measured one by one." if held.get("apart") else ""
    parts = [
        f"# {'CUDA' if device == 'cuda' else 'CPU'}, {dtype}",
        f"{held['machine']}; {held['threads']} threads; torch {held['torch']}; `{held['command']}`.{apart}",
    ]
    if "attention" in held:
        parts += [
            "## Self-attention with a trainable Gaussian prior",
            "Forward and backward pass, time of ours divided by the rival's: median of the rounds, quartiles in "
            'brackets. d = 120, 4 heads, `window="auto"`, the prior at its initial values.',
            attention_table(held["attention"]),
        ]
    if "memory" in held:
        beyond = "" if device == "cuda" else f", beyond that of one on {attention.SMALLER} words"
        parts += [
            f"![Time per token and peak memory against length]({plot})",
            f"Peak memory of one sentence's step, MiB{beyond}:",
            memory_table(held["memory"]),
            *kept_memory(held),
        ]
    if "layers" in held:
        parts += [
            "## Other layers",
            "Forward and backward pass. A shape is sentences × words × features, one for each input.",
            layer_table(held["layers"]),
            f"`CharNgramEmbedding(30).table` takes {held['vocabulary_table']['median']:.2f} s for 40,000 words"
            f"{'; the goal is at most 0.5 s' * (device == 'cpu')}.",
        ]
    if "layers_spent" in held:
        parts += ["What the layers' operators are spent on:", spent_table("layer", held["layers_spent"])]
    if "padded" in held:
        parts += [
            "## Padded batches",
            "With a mask, as sentences come, whose lengths here are from half the longest to the longest: time of ours "
            "divided by the rival's, median of the rounds, quartiles in brackets. Training is the forward and the "
            "backward pass. Ours sets padding to 0 before and after, the rivals only keep it from being attended to.",
            *padded_tables(held["padded"]),
        ]
    if "models" in held:
        parts += [
            "## Whole models",
            "Pairs a second with the papers' default sizes and 300-d vectors, median of the rounds; a training step is "
            "the forward pass, the backward pass and Adam's update. The last column is the share of the rate of one "
            f"large matrix product here, {held['product_rate'] / 1e9:.0f} GFLOP/s, that the products of a training "
            f"step reach.{NOT_IN_TF32 if device == 'cuda' else ''}",
            model_table(held["models"]),
            paper_ratios(held),
        ]
        spent = models_spent(held["models"])
        if spent:
            told = "What the operators of a training step are spent on, batches of 64 pairs of 14 and 8 words:"
            parts += [told, spent_table("model", spent)]
    if "compiled" in held:
        parts += [
            "A compiled training step's time divided by that of the same step uncompiled, on the same pairs:",
            compiled_table(held["compiled"]),
        ]
    if "recorded" in held:
        parts += [
            f"A training step with `--cuda-graphs`, {held['recorded'][0]['batch']} pairs in a batch: its time from the "
            "batch on the CPU to the update, divided by the same step's as it is, with its batch on the GPU already. "
            f"The record of one more shape takes {held['memory_of_a_record'] / 2**20:.1f} MiB, beside what all share "
            "(ESIM, shapes smaller than the first).",
            recorded_table(held["recorded"]),
        ]
    return "\n\n".join(parts) + "\n"


def attention_table(rows: list[dict[str, Any]]) -> str:
    """A row for each length; the goal is the largest ratio to plain attention that was asked for."""
    rivals = list(dict.fromkeys(name for row in rows for name in row["ratios"]))
    goals = ["goal"] * any(row["goal"] is not None for row in rows)
    heads = [name.replace("Attention", "\N{ZERO WIDTH SPACE}Attention") for name in rivals]
    lines = [["length", "batch", "ours, ms", *heads, *goals, "µs a token"]]
    for row in rows:
        seconds = row["seconds"]["ours"]["median"]
        ratios = [_ratio(row["ratios"].get(name)) for name in rivals]
        tokens = row["batch"] * row["length"]
        lines.append(
            [
                f"{row['length']:,}",
                f"{row['batch']}",
                f"{1e3 * seconds:.1f}",
                *ratios,
                *([_goal(row)] if goals else []),
                f"{1e6 * seconds / tokens:.2f}",
            ]
        )
    return _table(lines)


def memory_table(rows: list[dict[str, Any]]) -> str:
    """A row for each length, a column for each rival that could hold it."""
    names = list(dict.fromkeys(row["name"] for row in rows))
    peaks = {(row["length"], row["name"]): f"{row['bytes'] / 2**20:,.0f}" for row in rows}
    lengths = sorted({row["length"] for row in rows})
    return _table([["length", *names], *([f"{n:,}", *(peaks.get((n, name), "–") for name in names)] for n in lengths)])


def kept_memory(held: dict[str, Any]) -> list[str]:
    """How the cost of a word grows, with the C library's allocator as it is and told to keep what is freed."""
    if "kept_memory" not in held:
        return []
    kept = held["kept_memory"]
    shortest, longest = sorted(map(int, kept["as_it_is"]))
    growth = {how: kept[how][str(longest)] / kept[how][str(shortest)] for how in ("as_it_is", "kept")}
    cost = {words: f"{1e6 * kept['as_it_is'][str(words)]:.1f} µs" for words in (shortest, longest)}
    return [
        f"Measured again, the two in turn, in a process of their own: a word in a text of {longest:,} words costs "
        f"{cost[longest]}, one in a text of {shortest:,} words {cost[shortest]}, which is {growth['as_it_is']:.2f} "
        f"times as much; {growth['kept']:.2f} times where the C library is told to keep what is freed "
        f"(`GLIBC_TUNABLES={kept['tunables']}`). As it is, it returns tensors of more "
        "than 32 MiB to the system at once, and each new one costs a page fault for each of its pages; so long texts "
        "are attended to in passages, and only their projections still pay this cost."
    ]


def layer_table(rows: list[dict[str, Any]]) -> str:
    """A row for each layer and rival."""
    goals = ["goal"] * any(row["goal"] is not None for row in rows)
    lines = [["layer", "rival", "shapes", "ours, ms", "ours / rival", *goals]]
    for row in rows:
        shapes = ", ".join(" × ".join(map(str, shape)) for shape in row["shapes"])
        cells = [row["layer"], row["rival"], shapes, f"{1e3 * row['seconds']['ours']['median']:.2f}"]
        lines.append([*cells, _ratio(row["ratio"]), *([_goal(row)] if goals else [])])
    return _table(lines)


def padded_tables(rows: list[dict[str, Any]]) -> list[str]:
    """A table for each layer: a row for each length and phase, a column for each rival."""
    tables = []
    for layer in dict.fromkeys(row["layer"] for row in rows):
        own = [row for row in rows if row["layer"] == layer]
        lines = [["length", "batch", "", "ours, ms", *own[0]["ratios"]]]
        for row in own:
            ours = f"{1e3 * row['seconds']['ours']['median']:.2f}"
            lines.append(
                [f"{row['length']:,}", f"{row['batch']}", row["phase"], ours, *map(_ratio, row["ratios"].values())]
            )
        tables += [f"`{layer}`:", _table(lines)]
    return tables


def model_table(rows: list[dict[str, Any]]) -> str:
    """A row for each model at each batch size and length."""
    esim = {(row["batch"], *row["lengths"]): row for row in rows if row["model"] == "ESIM"}
    lines = [["model", "lengths", "batch", "training", "/ ESIM", "inference", "/ ESIM", "share of the rate"]]
    for row in sorted(rows, key=lambda row: (row["lengths"], row["batch"])):
        beside = esim[(row["batch"], *row["lengths"])]
        cells = [row["model"], "/".join(map(str, row["lengths"])), f"{row['batch']}"]
        for phase in ("training", "inference"):
            seconds = row[phase]["median"]
            cells += [f"{row['batch'] / seconds:,.0f}", f"{beside[phase]['median'] / seconds:.1f}"]
        lines.append([*cells, f"{100 * row['share']:.0f} %"])
    return _table(lines)


def models_spent(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The shares of each model, at the smallest batch of the shortest sentences."""
    smallest = min((*row["lengths"], row["batch"]) for row in rows)
    return {
        row["model"]: row["spent"] for row in rows if (*row["lengths"], row["batch"]) == smallest and "spent" in row
    }


def spent_table(of: str, spent: dict[str, dict[str, float]]) -> str:
    """A row for each name, a column for each kind of work."""
    kinds = next(iter(spent.values()))
    lines = [[of, *kinds]]
    lines += [[name, *(f"{100 * shares[kind]:.0f} %" for kind in kinds)] for name, shares in spent.items()]
    return _table(lines)


def compiled_table(rows: list[dict[str, Any]]) -> str:
    """A row for each model."""
    return _table([["model", "compiled / eager"], *([row["model"], _ratio(row["ratio"])] for row in rows)])


def recorded_table(rows: list[dict[str, Any]]) -> str:
    """A row for each model and pair of lengths."""
    lines = [["model", "lengths", "recorded, ms", "recorded / eager"]]
    for row in rows:
        lengths, seconds = "/".join(map(str, row["lengths"])), row["seconds"]["ours"]["median"]
        lines.append([row["model"], lengths, f"{1e3 * seconds:.2f}", _ratio(row["ratio"])])
    return _table(lines)


def paper_ratios(held: dict[str, Any]) -> str:
    """What the papers say of the same ratio."""
    said = "; ".join(f"{model}: {ratio}" for model, ratio in held["paper_ratios"].items())
    return f"Speeds relative to ESIM in the papers, on their machines: {said}."


def plot_lengths(held: dict[str, Any], path: Path) -> None:
    """Time per token, and peak memory, against length."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    times: dict[str, list[tuple[int, float]]] = {}
    for row in held["attention"]:
        for name, timing in row["seconds"].items():
            times.setdefault(name, []).append((row["length"], 1e6 * timing["median"] / row["batch"] / row["length"]))
    peaks: dict[str, list[tuple[int, float]]] = {}
    for row in held["memory"]:
        peaks.setdefault(row["name"], []).append((row["length"], row["bytes"] / 2**20))
    colours = {name: f"C{i}" for i, name in enumerate(times)}
    for axes, series, label in ((left, times, "µs per token"), (right, peaks, "MiB")):
        for name, points in series.items():
            bold = (
                {"linewidth": 2.5, "color": "black"} if name == "ours" else {"linewidth": 1.2, "color": colours[name]}
            )
            axes.plot(*zip(*points, strict=True), marker="o", markersize=4, label=name, **bold)
        axes.set(xlabel="words in a sentence", ylabel=label)
        for axis, set_scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
            set_scale("log", base=4)
            axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axes.grid(alpha=0.3)
    handles, names = left.get_legend_handles_labels()
    labels = [IN_THE_LEGEND.get(name, name) for name in names]
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    left.set_title("time of a training step")
    right.set_title("peak memory of a training step on one sentence")
    save_figure(figure, path)
    plt.close(figure)


def _goal(row: dict[str, Any]) -> str:
    return "–" if row["goal"] is None else f"≤\N{NO-BREAK SPACE}{row['goal']:g}"


def _ratio(timing: dict[str, float] | None) -> str:
    """The median and the quartiles; a line may break between them, not within."""
    if timing is None:
        return "–"
    median, low, high = (_told(timing[name]) for name in ("median", "low", "high"))
    return f"{median} ({low}\N{WORD JOINER}–\N{WORD JOINER}{high})"


def _told(share: float) -> str:
    return f"{share:.2f}" if share >= 0.1 else f"{share:.3f}"


def _table(lines: list[list[str]]) -> str:
    head, *rows = lines
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
