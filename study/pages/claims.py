"""The papers' comparisons, ours beside what they say."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

from study.compare import FEWEST_SEEDS, LEVEL, Difference, difference, verdicts
from study.markdown import NO_BREAK, table
from study.plan import BENCHES, CLAIMS, NO_PAPER, ORDER, PROTOCOL, Claim, jobs
from study.results import Results
from study.training import unpacked

Row = tuple[Claim, str, Difference]
"""A claim, a bench, and what was measured there."""


def page(results: Results) -> str:
    """What a part is worth, and the order of the models."""
    return "\n\n".join(
        (
            "# The papers' claims",
            "The first variant's test accuracy less the second's, in points, with its 95 per cent interval for other "
            "pairs of the kind and other seeds (Student's t for the seeds, the normal distribution for the pairs; "
            f"{FEWEST_SEEDS} seeds of each are the fewest). It is not an interval for other training pairs, or for "
            "another tuning. A claim holds, or is reversed, where Holm's procedure says so at 5 per cent, over all "
            "rows of its section that the small budget has enough seeds of, measured or not. Undecided does not mean "
            "that there is no difference. An interval that leaves out 0 is not corrected for the number of rows. Where "
            "the seeds of one side spread several times as far as those of the other, a small p is too small. Verdicts "
            "are those of the seeds there are: until all are trained, these are interim looks.",
            "## What a part is worth",
            "Variants of one family (GT, GCNN 150, CAFE 150) are trained with the rate and dropout that were "
            "[tuned](tuning.md) for its whole model: one that lacks a part might do better with others. Decomposable "
            "Attention with and without intra-attention, the attention model with and without vectors of unit length, "
            "and the two on a frozen encoder were tuned each for itself. Here CAFE has encoders of 150 features, 10 "
            "factors, a prediction of 200 and no intra-aligned vector in its LSTM, and the gated CNN 150 features. "
            "The papers' own ablations are on other pairs: Guo et al.'s and Tay et al.'s on MultiNLI's dev set, Chen "
            "et al.'s Table 2 on Quora's question pairs. Guo et al. print differences of 0.1 to 1.2 points between "
            "priors, Tay et al. 0.2 to 3.8 between parts, which intervals of this width cannot tell from nothing. The "
            "rows of one model on one bench share its runs: six differences of the same sign are not six findings. "
            "The Gaussian's w and b hardly move from [their start](priors.md), which is ours.",
            "Unit length is a setting of the Trento report, which does not say what it brings; words without a vector "
            "then have a normal one, ten times as long, unless these have unit length, too, of which it says nothing. "
            f"Of {PROTOCOL['epochs']} epochs {best_epochs('attention, unit vectors', results)} are the best, "
            f"throughout {best_epochs('attention, unit vectors throughout', results)}. The aligned head on a frozen "
            "encoder differs from the pooled one in "
            "[more than alignment](index.md), and the encoder [has seen such pairs](models.md).",
            comparisons(CLAIMS, results),
            "## The order of the models",
            "At the papers' sizes but for GCNN 150, which has half of them; the Gaussian Transformer from weights that "
            "are [ours](order.md). The papers' accuracies are of SNLI's test set after training on all of SNLI, Chen "
            "et al.'s of MultiNLI's; an LSTM is another one in each paper. Chen et al. say that without characters and "
            "tags their model is nearly level with ESIM, which no test of a difference can show: the two stand in the "
            "[tables](models.md).",
            comparisons(ORDER, results) + "\n",
        )
    )


def comparisons(claims: Sequence[Claim], results: Results) -> str:
    """How many rows were decided how; a table for each paper, each claim on each bench that has both its variants."""
    pairs = ((claim, bench, compared(claim, bench, results)) for claim in claims for bench in BENCHES)
    found = [(claim, bench, gap) for claim, bench, gap in pairs if gap is not None]
    rows = decidable(claims)
    said = verdicts([gap for _, _, gap in found], rows)
    lines: dict[str, list[list[str]]] = {}
    before = None
    for (claim, bench, gap), verdict in zip(found, said, strict=True):
        known = (f"{gap.low:+.1f} to {gap.high:+.1f}", f"{gap.p:.2g}") if gap.seeds >= FEWEST_SEEDS else ("–", "–")
        counts = dict.fromkeys(len(results[bench, name]) for name in (claim.better, claim.worse))
        numbers = [f"{round(gap.points, 1) + 0.0:+.1f}", *known, " and ".join(map(str, counts)), verdict]
        told = ("", "") if claim == before else (claim.says, f"{claim.better} – {claim.worse}")
        line = [*told, bench, *(number.replace(" ", NO_BREAK) for number in numbers)]
        lines.setdefault(claim.paper, []).append(line)
        before = claim
    head = ["says", "difference", "bench", "points", "interval", "p", "seeds", "here"]
    tables = (f"### {paper[0].upper()}{paper[1:]}\n\n{table(head, rows)}" for paper, rows in lines.items())
    return "\n\n".join([f"{counted(found, said)}{least(found, rows)}", *tables])


def counted(found: Sequence[Row], said: Sequence[str]) -> str:
    """How many of the papers' rows, and of ours, have which verdict."""
    sentences = []
    for ours in (False, True):
        verdicts_of = [verdict for (claim, *_), verdict in zip(found, said, strict=True) if ours == _is_ours(claim)]
        decided = ", ".join(f"{verdict} {number}" for verdict, number in Counter(verdicts_of).most_common())
        if decided:
            whose = "that no paper claims" if ours else "of the papers"
            sentences.append(f"Of {len(verdicts_of)} rows {whose}: {decided}.")
    return " ".join(sentences)


def least(found: Sequence[Row], rows: int) -> str:
    """How large a difference would have had to be."""
    gaps = [gap for _, _, gap in found if gap.seeds >= FEWEST_SEEDS]
    if not gaps:
        return ""
    points = sorted(gap.reach(LEVEL / max(rows, len(gaps))) for gap in gaps)
    return (
        f" As seeds and pairs spread, the first step of Holm's procedure takes {points[0]:.1f} to {points[-1]:.1f} "
        f"points, {median(points):.1f} in the middle row."
    )


def _is_ours(claim: Claim) -> bool:
    return claim.paper == NO_PAPER


def decidable(claims: Sequence[Claim]) -> int:
    """The rows of both of whose variants the small budget has enough seeds."""
    seeds = Counter((job.bench, job.variant) for job in jobs("cpu"))
    sides = ((seeds[bench, claim.better], seeds[bench, claim.worse]) for claim in claims for bench in BENCHES)
    return sum(min(pair) >= FEWEST_SEEDS for pair in sides)


def compared(claim: Claim, bench: str, results: Results) -> Difference | None:
    """The difference over all seeds of both, or ``None``."""
    sides = [results.get((bench, name), []) for name in (claim.better, claim.worse)]
    if not all(sides):
        return None
    return difference(*([unpacked(r["right"], r["pairs"]).numpy() for r in side] for side in sides))


def behind(claim: Claim, results: Results) -> str:
    """By how much the worse variant is, on each bench that has both; nothing where none has."""
    gaps = [gap.points for gap in (compared(claim, bench, results) for bench in BENCHES) if gap is not None]
    return f" by {min(gaps):.1f} to {max(gaps):.1f} points" if gaps else ""


def best_epochs(variant: str, results: Results) -> str:
    """The earliest and the latest of all runs of a variant."""
    found = [r["best_epoch"] for (_, name), group in results.items() if name == variant for r in group]
    return f"{min(found)} to {max(found)}" if found else "none yet"
