"""The study's pages, from what is kept of its runs."""

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from study.compare import Difference, difference
from study.ensembles import ensemble_accuracy
from study.markdown import spread, table
from study.peers import PEERS
from study.plan import BENCHES, CLAIMS, ENCODED, MODELS, TUNING_EPOCHS, Claim, jobs
from study.training import RESULTS, result_file, results, unpacked
from study.windows import TEXTS, WORDS, held_windows

PAGES = Path(__file__).parent.parent / "docs" / "study"
COLUMNS = (
    "model",
    "parameters",
    "test",
    "hard",
    "dev",
    "best epochs",
    "pairs/s",
    "five together",
    "public implementation",
)
"""Of the tables of models; five together are the mean of five seeds' probabilities."""
Results = dict[tuple[str, str], list[dict[str, Any]]]


def write(folder: Path = PAGES) -> None:
    """Every page and picture."""
    folder.mkdir(parents=True, exist_ok=True)
    kept: Results = defaultdict(list)
    for result in results():
        kept[result["bench"], result["variant"]].append(result)
    for bench in {bench for bench, _ in kept}:
        plot_curves(bench, kept, folder / f"curves-{bench}.png")
    pages = {
        "models": models_page(kept),
        "claims": claims_page(kept),
        "transfer": transfer_page(kept),
        "priors": priors_page(kept),
        "tuning": tuning_page(),
    }
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def models_page(kept: Results) -> str:
    """A table and the learning curves for each bench."""
    parts = [
        "# Models on real pairs",
        "Test accuracy in per cent: mean ± standard deviation over the seeds (their number). Pairs a second are those "
        "of the training, two runs at a time and other work beside them; [speed](../speed/index.md) has its own page.",
    ]
    for bench in BENCHES:
        lines = list(_models(bench, kept))
        if lines:
            curves = f"![Dev accuracy of every model after each epoch on {bench}](curves-{bench}.png)"
            share = next(r["majority"] for (name, _), found in kept.items() if name == bench for r in found)
            majority = ["majority", "–", f"{100 * share:.1f}", *["–"] * 6]
            re2 = ["RE2", *["–"] * 7, PEERS.get((bench, "RE2"), "–")]
            parts += [f"## {bench}", table(COLUMNS, [majority, *lines, re2]), curves]
    return "\n\n".join([*parts, "## What is missing", missing(kept)]) + "\n"


def _models(bench: str, kept: Results) -> Iterator[list[str]]:
    for variant in (*MODELS, *ENCODED):
        found = kept.get((bench, variant.name), [])
        if found:
            together = ensemble_accuracy(bench, variant.name)
            hard = [r["accuracy"]["hard"] for r in found if "hard" in r["accuracy"]]
            yield [
                variant.name,
                f"{found[0]['parameters']:,}",
                spread([r["accuracy"]["test"] for r in found]),
                spread(hard) if hard else "–",
                spread([r["accuracy"]["dev"] for r in found]),
                ", ".join(str(r["best_epoch"]) for r in found),
                f"{statistics.median(r['pairs_per_second'] for r in found):,.0f}",
                "–" if together is None else f"{100 * together:.1f}",
                PEERS.get((bench, variant.name), "–"),
            ]


def missing(kept: Results) -> str:
    """What of the plan is not there, and what the rest took."""
    planned = list(jobs("cpu"))
    done = sum(result_file(job).exists() for job in planned)
    found = [result for group in kept.values() for result in group]
    hours = sum(result["seconds"] for result in found) / 3600
    machines = sorted(
        {f"{r['machine']}, torch {r['torch']}, {r['threads']} thread{'s' * (r['threads'] > 1)} a run" for r in found}
    )
    return (
        f"{done} of the {len(planned)} runs of the small budget are done, {hours:.1f} hours of training in all, on "
        f"{'; '.join(machines) or 'no machine yet'}. `python -m study --data DATA` trains the others."
    )


def claims_page(kept: Results) -> str:
    """The papers' comparisons, ours beside what they say."""
    lines = []
    for claim in CLAIMS:
        for bench in ("snli10k", "sick"):
            found = compared(claim, bench, kept)
            if found is not None:
                gap = f"{found.points:+.1f} ({found.low:+.1f} to {found.high:+.1f})"
                pair = [claim.better, claim.worse, bench, gap, str(found.seeds), found.verdict]
                lines.append([claim.paper, claim.says, *pair])
    return "\n\n".join(
        (
            "# The papers' claims",
            "The first variant's test accuracy less the second's, in points, with the interval that holds 95 per "
            "cent of 2,000 resamples of test pairs and seeds; seed k of one is paired with seed k of the other. CAFE "
            "and the gated CNN are half as wide as their papers'.",
            table(["paper", "says", "better", "than", "bench", "points", "seeds", "here"], lines) + "\n",
        )
    )


def compared(claim: Claim, bench: str, kept: Results) -> Difference | None:
    """The difference over the seeds that both have, or ``None``."""
    better, worse = ({r["seed"]: r for r in kept.get((bench, name), [])} for name in (claim.better, claim.worse))
    seeds = sorted(better.keys() & worse.keys())
    if not seeds:
        return None
    return difference(
        *([unpacked(side[seed]["right"], side[seed]["pairs"]).numpy() for seed in seeds] for side in (better, worse))
    )


def transfer_page(kept: Results) -> str:
    """Models of snli22k on other pairs."""
    names = ["test", *BENCHES["snli22k"].others]
    rows = ((variant.name, kept.get(("snli22k", variant.name), [])) for variant in MODELS)
    lines = [[name, *(spread([r["accuracy"][file] for r in found]) for file in names)] for name, found in rows if found]
    return "\n\n".join(
        (
            "# Elsewhere than they were trained",
            "Models of snli22k on other pairs, accuracy in per cent. MoNLI has no contradictions, and Breaking NLI few "
            "neutral pairs; a prediction of a class that a file does not have is wrong. Pairs of FraCaS without an "
            "answer are left out. Only SNLI's and SICK's pairs have part-of-speech tags.",
            table(["model", *names], lines) + "\n",
        )
    )


def priors_page(kept: Results) -> str:
    """What w and b became, block by block."""
    lines = []
    for (bench, variant), found in kept.items():
        priors = [result["priors"] for result in found if result["priors"]]
        for depth, block in enumerate(zip(*priors, strict=True), start=1):
            w, b = ([f"{pair[i]:.3f}" for pair in block] for i in (0, 1))
            lines.append([bench, variant, str(depth), ", ".join(w), ", ".join(b)])
    return "\n\n".join(
        (
            "# What the priors learn",
            "w and b of each Gaussian prior of the Gaussian Transformer, a column for each seed, from the first "
            "encoding block to the last interaction block. They start at 0.1 and −0.1.",
            table(["bench", "variant", "block", "w", "b"], lines),
            *window_section(),
        )
    )


def window_section() -> tuple[str, str, str]:
    """What the attention's window changes."""
    lines = []
    for held in held_windows():
        for texts, found in held["texts"].items():
            counts = (f"{found[name]:,}" for name in ("pairs", "windows", "other_predictions"))
            sizes = (f"{found[name]:.2g}" for name in ("largest_difference", "largest_logit"))
            lines.append([held["bench"], texts, *counts, *sizes])
    head = ["bench", "texts", "pairs", "windows", "other predictions", "largest difference", "largest logit"]
    return (
        "## Their window",
        "By default the attention leaves out what its prior makes too small to matter. The same weights, seed 0, once "
        "with every score and once so: of the test pairs, whose sentences are so short that no window pays, and of "
        f"{TEXTS} texts of {WORDS:,} words made of the test set's premises; how many attentions took a window, how "
        "many predictions became others, and how far the logits are apart.",
        table(head, lines) + "\n",
    )


def tuning_page() -> str:
    """What was tried for each family."""
    lines = []
    for path in sorted((RESULTS / "tuning").glob("*.json")):
        held = json.loads(path.read_text())
        tried = [(one["options"]["lr"], one["options"]["dropout"], 100 * one["dev"]) for one in held["tried"]]
        said = "; ".join(f"{lr:g}, {dropout}: {dev:.1f}" for lr, dropout, dev in tried)
        lines.append([held["family"], said, f"{held['chosen']['lr']:g}, {held['chosen']['dropout']}"])
    return "\n\n".join(
        (
            "# Tuning",
            f"Dev accuracy of snli10k after at most {TUNING_EPOCHS} epochs, seed 0, for each learning rate and dropout "
            "that was tried: the rates at dropout 0.2, then two more dropouts at the best rate.",
            table(["family", "rate, dropout: dev accuracy", "chosen"], lines) + "\n",
        )
    )


def plot_curves(bench: str, kept: Results, path: Path) -> None:
    """Dev accuracy of seed 0 after each epoch."""
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for variant in MODELS:
        first = next((r for r in kept.get((bench, variant.name), []) if r["seed"] == 0), None)
        if first:
            percent = [100 * share for share in first["dev"]]
            axes.plot(range(1, len(percent) + 1), percent, marker="o", markersize=3, label=variant.name)
    axes.set(xlabel="epoch", ylabel="dev accuracy, %")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=150)
    plt.close(figure)
