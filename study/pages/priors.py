"""What the Gaussian priors learn, and what their window changes."""

from collections.abc import Mapping
from typing import Any

from nlilayers import GaussianPrior
from study.markdown import table
from study.plan import BENCHES
from study.results import Results
from study.training import priors as priors_of
from study.windows import TEXTS, WORDS, held_window

PASSED = 0.1
"""Of a step, what a softplus passes on where it is 0.1."""


def page(results: Results) -> str:
    """What w and b became, block by block."""
    lines: list[list[str]] = []
    starts, moved, shares, steps = priors_of(GaussianPrior())[0], [0.0], [0.0], []
    for (bench, variant), found in results.items():
        runs = [result for result in found if result["priors"]]
        priors = [result["priors"] for result in runs]
        for result in runs:
            steps.append(steps_of(result))
            furthest = max(abs(pair[i] - starts[i]) for pair in result["priors"] for i in (0, 1) if pair[i])
            moved.append(furthest)
            shares.append(furthest / (PASSED * result["options"]["lr"] * steps[-1]))
        for depth, block in enumerate(zip(*priors, strict=True), start=1):
            w, b = ([pair[i] for pair in block] for i in (0, 1))
            ends = [w, b] if any(b) else [w]  # Eq 3 has no b
            cells = [", ".join(f"{value:.3f}" for value in values) for values in ends]
            lines.append([bench, variant, str(depth), *cells, *["–"] * (2 - len(ends))])
    rates = {run["options"]["lr"] for found in results.values() for run in found if run["priors"]}
    allowed = ", ".join(f"{1000 * PASSED * rate:.2f} at a rate of {rate:g}" for rate in sorted(rates)) or "0"
    return "\n\n".join(
        (
            "# What the priors learn",
            "The scalars w and b of each Gaussian prior of the Gaussian Transformer, one value per seed, from the "
            "first encoding block to the last interaction block. They start at "
            f"{starts[0]:.1f} and {starts[1]:.1f}, and none has moved by more than {max(moved):.3f}. At values near "
            f"0.1, a softplus passes on a tenth of each step, so in 1,000 steps Adam can move them by some {allowed}; "
            f"up to their best epochs these runs took {min(steps, default=0):,} to "
            f"{max(steps, default=0):,}. No run has moved a scalar by more than {100 * max(shares):.0f} per cent of "
            "what its steps allow.",
            table(["bench", "variant", "block", "w", "b"], lines),
            *window_section(),
        )
    )


def steps_of(result: Mapping[str, Any]) -> int:
    """Steps to a run's best epoch."""
    pairs = round(result["seconds"] * result["pairs_per_second"] / len(result["dev"]))
    steps: int = result["best_epoch"] * -(-pairs // result["options"]["batch_size"])
    return steps


def window_section() -> tuple[str, str, str]:
    """What the attention's window changes."""
    lines = []
    for bench, held in ((bench, held_window(bench)) for bench in BENCHES):
        for texts, found in (held["texts"] if held else {}).items():
            counts = (f"{found[name]:,}" for name in ("pairs", "windows", "other_predictions"))
            sizes = (f"{found[name]:.2g}" for name in ("largest_difference", "largest_logit"))
            lines.append([bench, texts, *counts, *sizes])
    head = ["bench", "texts", "pairs", "windows", "other predictions", "largest difference", "largest logit"]
    return (
        "## Their window",
        "By default, attention leaves out weights that its prior makes too small to matter. Here the same weights "
        "(seed 0) ran once with every score and once with the automatic window, on the test pairs, nearly all of "
        f"them too short for a window to pay off, and on {TEXTS} texts of {WORDS:,} words made of the test set's "
        "premises: how many attentions used a window, how many predictions changed, and the largest difference between "
        "logits.",
        table(head, lines) + "\n",
    )
