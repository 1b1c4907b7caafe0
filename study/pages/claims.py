"""The papers' comparisons, ours beside what they say."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from study.compare import FEWEST_SEEDS, LEVEL, Difference, difference, verdicts
from study.markdown import NO_BREAK, table
from study.plan import BENCHES, CLAIMS, NEARLY_EQUAL, ORDER, OWN_CLAIMS, PROTOCOL, TAKEN_APART, Claim, jobs
from study.results import Results
from study.training import unpacked

Row = tuple[Claim, str, Difference]
"""A claim, a bench, and what was measured there."""


def page(results: Results) -> str:
    """What a part is worth, and the order of the models."""
    return "\n\n".join(
        (
            "# The papers' claims",
            "Each row is the first variant's test accuracy minus the second's, in points. DA is Decomposable "
            "Attention, GT the Gaussian Transformer, GCNN 150 and CAFE 150 are the gated CNN and CAFE at half their "
            "width; FM stands for factorization machine, FC for fully connected layer, GLU for gated linear unit. The "
            "[study](index.md) says what the benches are.",
            "- The 95 per cent interval is over other test pairs of the same kind and other seeds: Student's t for the "
            f"seeds, the normal distribution for the pairs. Each side needs {FEWEST_SEEDS} seeds.\n"
            "- It does not cover other training pairs or another tuning, and it is not corrected for the number of "
            "rows. Where the spread over seeds is several times larger on one side than on the other, small p-values "
            "are too small.\n"
            "- A claim holds, or is reversed, where Holm's procedure decides so at 5 per cent, correcting for every "
            "row of its section that has enough seeds or is planned to. Undecided does not mean that there is no "
            "difference.\n"
            "- Seeds were added, and verdicts read again, while the study grew; nothing corrects for this.\n"
            "- “Paper” is what the paper prints, in points: a number for each corpus on which it has both.",
            "## What a part is worth",
            "The variants of a family (GT, GCNN 150, CAFE 150) share the rate and dropout that were [tuned](tuning.md) "
            "for its whole model; a variant that lacks a part might do better with others. Decomposable Attention with "
            "and without intra-attention were each tuned on their own. In these ablations CAFE has encoders of 150 "
            "features, 10 factors, two prediction layers of 200 and no intra-aligned vector in its LSTM; the gated CNN "
            "has 150 features. The papers' own ablations are on other pairs: Guo et al.'s and Tay et al.'s on "
            "MultiNLI's dev sets, matched and mismatched (Table 1 of Tay et al. is on SNLI), Chen et al.'s Table 1 on "
            "its test sets and Table 2 on Quora's question pairs, Parikh et al.'s on SNLI's test set. Most of what "
            "they print is too small for "
            "intervals of this width. Rows of one model on one bench share its runs: six differences of the same sign "
            "are not six findings. The Gaussian's w and b hardly move from [their start](priors.md), which is ours. "
            "Two rows of these tables are not trained here: convolutions before self-attention, (v) of Guo et al.'s "
            "Table 1, and a BiLSTM, (10) of Tay et al.'s Table 3. Nor are Guo et al.'s depths (Figure 5), CAFE's sums "
            "in place of its pools, and what papers say changes nothing: tags in the Trento report, another "
            "aggregation and another prediction in Guo et al.'s.",
            comparisons(CLAIMS, results),
            *beside_the_papers(CLAIMS, results),
            "## One change at a time",
            "Two of Chen et al.'s ablations of the gated CNN change more than their name says. Without its output gate "
            "it also has a ReLU in place of the candidate's tanh, because, they say, that is better then. And a GLU as "
            "in their Eq 1 has no shortcuts past its layers, which all other variants have. Here these changes are "
            "made one at a time. The rows of the output gate were added when the [ablation](order.md) had been decided "
            "against the paper, as it was while fewer rows had enough seeds; those of the GLU when the one without "
            "shortcuts had been. Corrected together with the rows above, "
            f"{as_once(TAKEN_APART, results)} would be decided.",
            comparisons(TAKEN_APART, results),
            "## What no paper says",
            "Unit length is a setting of the Trento report, which does not state its effect. Words without a vector "
            "then get a standard normal one, 10 times as long as the others where they have 100 features, 17 times "
            "where they have 300; the “throughout” variant scales those "
            f"too, a case that the report does not mention. Of {PROTOCOL['epochs']} epochs, the best ones range from "
            f"{best_epochs('attention, unit vectors', results)}, for “throughout” from "
            f"{best_epochs('attention, unit vectors throughout', results)}. The attention model with and without "
            "vectors of unit length, and the models on a frozen encoder, were each tuned on their own. The aligned "
            "head on a frozen encoder differs from the pooled one in [more than alignment](index.md), and the encoder "
            "[was trained on such pairs](models.md). A model whose weights are averaged is compared with the plain "
            "one seed by seed: trained alike, the two take the same steps, as those of "
            f"{same_steps(results)} pairs of runs may, whose recorded conditions are alike. (The others make the "
            "comparison less sharp, not wrong.) These "
            "rows once shared Holm's procedure with the papers', and averages were compared with all seeds of the "
            f"plain models; {as_once(OWN_CLAIMS, results)} would be decided that way.",
            comparisons(OWN_CLAIMS, results),
            "## The order of the models",
            "Models have the papers' sizes, except for GCNN 150, which has half the width; the Gaussian Transformer "
            "starts from weights that are [ours](order.md). The papers' accuracies are on SNLI's test set after "
            "training on all of SNLI, Chen et al.'s on MultiNLI; each paper's LSTM is a different model. On MultiNLI, "
            "too, Guo et al. have their model above CAFE and CAFE above ESIM (80.0, 78.7 and 76.8 on its matched "
            "pairs), and so have Tay et al. the latter two (78.7 and 76.3). Of the Trento report's columns it is the "
            "one with the best figures. Chen et al. say that without characters and tags their model is nearly equal "
            "to ESIM on MultiNLI (76.6 to 76.8 on its matched pairs, 75.8 to 75.5 on the others), which no test for a "
            f"difference can show, and better on Quora's questions: here it is behind{behind(NEARLY_EQUAL, results)}.",
            comparisons(ORDER, results) + "\n",
        )
    )


def comparisons(claims: Sequence[Claim], results: Results) -> str:
    """How many rows were decided how; a table for each paper, each claim on each bench that has both its variants."""
    found, said = judged(claims, results)
    lines: dict[str, list[list[str]]] = {}
    before = None
    for (claim, bench, gap), verdict in zip(found, said, strict=True):
        known = (f"{gap.low:+.1f} to {gap.high:+.1f}", f"{gap.p:.2g}") if gap.seeds >= FEWEST_SEEDS else ("–", "–")
        counts = dict.fromkeys(len(side) for side in compared_runs(claim, bench, results))
        gains = ", ".join(f"{gain:+.1f}" for gain in claim.gains) or "–"
        printed = "" if claim == before and claim.gains else gains
        points = f"{round(gap.points, 1) + 0.0:+.1f}"
        numbers = [printed, points, *known, " and ".join(map(str, counts)), verdict]
        told = ("", "") if claim == before else (claim.says, f"{claim.better} – {claim.worse}")
        line = [*told, bench, *(number.replace(" ", NO_BREAK) for number in numbers)]
        lines.setdefault(claim.paper, []).append(line)
        before = claim
    head = ["says", "difference", "bench", "paper", "points", "interval", "p", "seeds", "here"]
    tables = [table(head, rows) for rows in lines.values()]
    if len(lines) > 1:
        tables = [f"### {paper}\n\n{told}" for paper, told in zip(lines, tables, strict=True)]
    return "\n\n".join([f"{counted(said)}{least(found, decidable(claims, found))}", *tables])


def judged(claims: Sequence[Claim], results: Results) -> tuple[list[Row], list[str]]:
    """Every row that has both its variants, and what Holm's procedure says of it."""
    pairs = ((claim, bench, compared(claim, bench, results)) for claim in claims for bench in BENCHES)
    found = [(claim, bench, gap) for claim, bench, gap in pairs if gap is not None]
    return found, verdicts([gap for _, _, gap in found], decidable(claims, found))


def counted(said: Sequence[str]) -> str:
    """How many rows have which verdict."""
    decided = ", ".join(f"{verdict} {number}" for verdict, number in Counter(said).most_common())
    return f"Of {len(said)} rows: {decided}."


def least(found: Sequence[Row], rows: int) -> str:
    """How large a difference would have had to be, by the number of seeds."""
    gaps = [gap for _, _, gap in found if gap.seeds >= FEWEST_SEEDS]
    told = []
    for seeds in sorted({gap.seeds for gap in gaps}, reverse=True):
        points = sorted(gap.reach(LEVEL / rows) for gap in gaps if gap.seeds == seeds)
        told.append(f"with {seeds} seeds a side {points[0]:.1f} to {points[-1]:.1f} (median {median(points):.1f})")
    if not told:
        return ""
    return (
        " With this variance over seeds and pairs, a difference has to reach so many points, depending on the row, to "
        f"pass the first step of Holm's procedure: {'; '.join(told)}."
    )


def beside_the_papers(claims: Sequence[Claim], results: Results) -> Iterator[str]:
    """Which intervals leave out all that a paper prints, on which side."""
    rows = [
        (f"{claim.better} – {claim.worse} on {bench}", gap, claim.gains)
        for claim, bench, gap in judged(claims, results)[0]
        if claim.gains and gap.seeds >= FEWEST_SEEDS
    ]
    smaller = [row for row, gap, gains in rows if gap.high < min(gains)]
    larger = [row for row, gap, gains in rows if gap.low > max(gains)]
    if smaller or larger:
        yield (
            f"Of {len(rows)} intervals beside gains that a paper prints, {len(smaller) + len(larger)} leave all of "
            "them out, where at most one in twenty would if those gains held here:"
        )
        sides = ((smaller, "less than the paper's"), (larger, "more than the paper's"))
        yield "\n".join(f"- {side}: {'; '.join(names)}" for names, side in sides if names)


def as_once(own: Sequence[Claim], results: Results) -> str:
    """How many of our own rows would be decided together with the papers', and without pairs of seeds."""
    unpaired = [replace(claim, paired=False) for claim in own]
    found, said = judged([*CLAIMS, *unpaired], results)
    verdicts = [verdict for (claim, *_), verdict in zip(found, said, strict=True) if claim in unpaired]
    return f"{sum(verdict in ('holds', 'reversed') for verdict in verdicts)} of the {len(verdicts)}"


def decidable(claims: Sequence[Claim], found: Sequence[Row]) -> int:
    """The rows that have enough seeds of both variants, or get them by the small budget."""
    seeds = Counter((job.bench, job.variant) for job in jobs("cpu"))
    measured = {(claim, bench) for claim, bench, gap in found if gap.seeds >= FEWEST_SEEDS}
    planned = {
        (claim, bench)
        for claim in claims
        for bench in BENCHES
        if min(seeds[bench, claim.better], seeds[bench, claim.worse]) >= FEWEST_SEEDS
    }
    return len(measured | planned)


def compared(claim: Claim, bench: str, results: Results) -> Difference | None:
    """The difference over all seeds of both, or ``None``."""
    sides = compared_runs(claim, bench, results)
    if not all(sides):
        return None
    right = ([unpacked(r["right"], r["pairs"]).numpy() for r in side] for side in sides)
    return difference(*right, paired=claim.paired)


def compared_runs(claim: Claim, bench: str, results: Results) -> list[list[dict[str, Any]]]:
    """The runs of both variants: all of them, or those of the seeds that both have."""
    sides = [results.get((bench, name), []) for name in (claim.better, claim.worse)]
    if not claim.paired:
        return sides
    shared = set.intersection(*({run["seed"] for run in side} for side in sides))
    return [[run for run in side if run["seed"] in shared] for side in sides]


def same_steps(results: Results) -> str:
    """How many of the pairs of runs that are compared seed by seed were trained alike."""
    conditions = ("machine", "torch", "threads", "cuda_graphs")
    pairs = [
        pair
        for claim in OWN_CLAIMS
        if claim.paired
        for bench in BENCHES
        for pair in zip(*compared_runs(claim, bench, results), strict=True)
    ]
    alike = sum(
        all((one.get(name) or None) == (other.get(name) or None) for name in conditions) for one, other in pairs
    )
    return f"{alike} of {len(pairs)}"


def behind(claim: Claim, results: Results) -> str:
    """By how much the worse variant is, on each bench that has both; nothing where none has."""
    gaps = [gap.points for gap in (compared(claim, bench, results) for bench in BENCHES) if gap is not None]
    return f" by {min(gaps):.1f} to {max(gaps):.1f} points" if gaps else ""


def best_epochs(variant: str, results: Results) -> str:
    """The earliest and the latest of all runs of a variant."""
    found = [r["best_epoch"] for (_, name), group in results.items() if name == variant for r in group]
    return f"{min(found)} to {max(found)}" if found else "none yet"
