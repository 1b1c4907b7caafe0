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
            "The first variant's test accuracy minus the second's, in points, with a 95 per cent interval over other "
            "test pairs of the same kind and other seeds (Student's t for the seeds, the normal distribution for the "
            f"pairs; each side needs {FEWEST_SEEDS} seeds). It does not cover other training pairs or another tuning. "
            "A claim holds, or is reversed, where Holm's procedure decides so at 5 per cent, correcting for every row "
            "of the section that has as many or is planned to. Seeds were added, and verdicts read again, while the "
            "study grew; nothing corrects for this. Undecided does not mean "
            "that there is no difference. The intervals themselves are not corrected for the number of rows, and where "
            "the spread over seeds is several times larger on one side than on the other, small p-values are too "
            "small.",
            "## What a part is worth",
            "The variants of a family (GT, GCNN 150, CAFE 150) share the rate and dropout that were [tuned](tuning.md) "
            "for its whole model; a variant that lacks a part might do better with others. Decomposable Attention with "
            "and without intra-attention, the attention model with and without vectors of unit length, and the models "
            "on a frozen encoder were each tuned on their own. In these ablations CAFE has encoders of 150 features, "
            "10 factors, a prediction layer of 200 and no intra-aligned vector in its LSTM; the gated CNN has 150 "
            "features. The papers' own ablations are on other pairs: Guo et al.'s and Tay et al.'s on MultiNLI's dev "
            "set, Chen et al.'s Table 2 on Quora's question pairs. Guo et al. print differences of 0.1 to 1.2 points "
            "between priors, Tay et al. 0.2 to 3.8 between parts; most of these are too small for intervals of this "
            "width. Rows of one model on one bench share its runs: six differences of the same sign are not six "
            "findings. The Gaussian's w and b hardly move from [their start](priors.md), which is ours.",
            "Unit length is a setting of the Trento report, which does not state its effect. Words without a vector "
            "then get a standard normal one, ten times as long as the others; the “throughout” variant scales those "
            f"too, a case that the report does not mention. Of {PROTOCOL['epochs']} epochs, the best ones range from "
            f"{best_epochs('attention, unit vectors', results)}, for “throughout” from "
            f"{best_epochs('attention, unit vectors throughout', results)}. The aligned head on a "
            "frozen encoder differs from the pooled one in [more than alignment](index.md), and the encoder [was "
            "trained on such pairs](models.md).",
            comparisons(CLAIMS, results),
            "## The order of the models",
            "Models have the papers' sizes, except for GCNN 150, which has half the width; the Gaussian Transformer "
            "starts from weights that are [ours](order.md). The papers' accuracies are on SNLI's test set after "
            "training on all of SNLI, Chen et al.'s on MultiNLI; each paper's LSTM is a different model. Chen et al. "
            "say that without characters and tags their model is nearly level with ESIM, which no test for a "
            "difference can show: compare the two in the [tables](models.md).",
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
        f" With this variance over seeds and pairs, a difference has to reach {points[0]:.1f} to {points[-1]:.1f} "
        f"points, depending on the row (median {median(points):.1f}), to pass the first step of Holm's procedure."
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
