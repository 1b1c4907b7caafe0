"""How far attention finds the same word."""

from collections.abc import Sequence
from statistics import mean, stdev

import numpy as np
from scipy.stats import permutation_test, rankdata, zscore

from study.markdown import NO_BREAK, percent, spread, table
from study.pairs import COMMONEST, held_of
from study.plan import BENCHES, HALVED, MODELS, TUNING_BENCH, VARIANTS
from study.results import Results, aligned
from study.spreads import SEEDS, held_spreads
from study.starts import held_starts

FEWEST_MODELS = 4
"""For a correlation over them."""


def page(results: Results) -> str:
    """How far attention finds the same word, bench by bench."""
    benches = [bench for bench in BENCHES if any(name == bench for name, _ in results)]
    before = {bench: held_starts(bench) for bench in benches}
    lines = []
    for variant in VARIANTS:
        found = [[pair["found"] for pair, _ in aligned(bench, variant, results)] for bench in benches]
        if any(found):
            known = [before[bench].get(variant, {}).get("found") for bench in benches]
            cells = [
                f"{'?' if start is None else percent(start)} → {spread(shares)}" if shares else "–"
                for start, shares in zip(known, found, strict=True)
            ]
            lines.append([variant, *cells])
    even = [[pair["even"] for v in VARIANTS for pair, _ in aligned(bench, v, results)] for bench in benches]
    lines.append(["every word alike", *(percent(shares[0]) if shares else "–" for shares in even)])
    unmeasured = (
        " A question mark is a start that was not measured."
        if any("? →" in cell for line in lines for cell in line)
        else ""
    )
    return "\n\n".join(
        (
            "# What attention finds",
            "For hypothesis words that also occur in the premise: the percentage of their attention that falls on the "
            "same word there, averaged over all such words of the test pairs, before training (seed 0) → after it, "
            "mean ± standard deviation over the seeds (their number). The Gaussian Transformer's figure is the mean "
            f"over the heads of its last block, the stacked alignment's that of its last block.{unmeasured}",
            "Read the figures with care. A few words, “a” and “the” among them, make up much of the total, as the "
            "second table shows; a model may rightly attend to a word other than the same one; and much of the weight "
            "may be there from the start, where equal words have equal vectors. A model near the last row attends to "
            "equal words no more than to others.",
            table(["model", *benches], lines),
            table(["test pairs", "shared words", f"the {COMMONEST} most frequent", "share"], commonest(benches)),
            "Each point below is a run: its test accuracy (vertical) against its attention on the same word "
            f"(horizontal); the vertical line is attention on every word alike.{ranks(benches, results)}",
            "![Test accuracy of every run against the weight on the same word, for each bench](alignments.png)\n"
            + before_training(),
        )
    )


def before_training() -> str:
    """How far each model tells words apart before it is trained."""
    measured = {name: held["spreads"] for name, held in held_spreads().items() if None not in held["spreads"]}
    if not measured:
        return ""
    lines = [
        [name, f"{mean(spreads):.3f} ±{NO_BREAK}{stdev(spreads):.3f}", f"{min(spreads):.3f}", f"{max(spreads):.3f}"]
        for name, spreads in sorted(measured.items(), key=lambda pair: -mean(pair[1]))
    ]
    return "\n".join(
        (
            "\n## Before training\n",
            "A word whose scores are all alike attends to every word alike. This is the standard deviation of a "
            "hypothesis word's scores over the words of the premise, averaged over the words of "
            f"`{TUNING_BENCH}`'s dev pairs, before training: mean ± standard deviation over {SEEDS} seeds, the least "
            "and the largest. Scores are taken as logarithms of the weights, at least -87; of several heads, as that "
            "of the mean weight.\n",
            table(["model", "standard deviation", "least", "largest"], lines) + "\n",
        )
    )


def ranks(benches: Sequence[str], results: Results) -> str:
    """How far the models whose attention finds more are the better ones."""
    said = []
    for bench in benches:
        found = [aligned(bench, variant.name, results) for variant in (*MODELS, *HALVED)]
        weights = [mean(pair["found"] for pair, _ in runs) for runs in found if runs]
        tested = [mean(share for _, share in runs) for runs in found if runs]
        if len(weights) >= FEWEST_MODELS:
            correlation, p = rank_correlation(weights, tested)
            said.append(f"{correlation:.2f} on {bench} (p = {p:.2g}, {len(weights)} models)")
    if not said:
        return ""
    where = ", ".join(said)
    return (
        f" Spearman's rank correlation over the models, without ablations, averaged weights and encoders, is {where}. "
        "(p is that of a permutation test.)"
    )


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Spearman's, and how many of all pairings have one as far from 0; of many pairings, of some that a seed draws.

    >>> correlation, p = rank_correlation([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])
    >>> round(correlation, 6), round(p, 6)
    (1.0, 0.083333)
    """
    ranks, others = (zscore(rankdata(numbers)) for numbers in (one, other))
    found = permutation_test(
        (ranks,),
        lambda paired, axis: (paired * others).mean(axis),
        vectorized=True,
        permutation_type="pairings",
        n_resamples=99_999,
        rng=np.random.default_rng(0),
    )
    return float(found.statistic), float(found.pvalue)


def commonest(benches: Sequence[str]) -> list[list[str]]:
    """Which shared words there are most of, bench by bench."""
    lines = []
    for bench in (BENCHES[name] for name in benches):
        if file := held_of(bench, bench.test):
            words = " ".join(f"`{word}`" for word in file["commonest"])
            share = sum(file["commonest"].values()) / max(file["shared_words"], 1)
            lines.append([bench.name, f"{file['shared_words']:,}", words, f"{percent(share)} %"])
    return lines
