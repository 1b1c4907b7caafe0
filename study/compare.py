"""Two variants on the same test pairs and seeds: how much better is one, and how sure is that?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

FEWEST_SEEDS = 3
LEVEL = 0.05


@dataclass(frozen=True)
class Difference:
    """A difference of accuracies in points, its 95 per cent interval, and how likely one as large is by chance."""

    points: float
    low: float
    high: float
    p: float
    seeds: int


def difference(better: Sequence[NDArray[np.bool_]], worse: Sequence[NDArray[np.bool_]]) -> Difference:
    r"""The first's accuracy less the second's, for other pairs of the kind and for other seeds.

    Seed k of one is paired with seed k of the other. With :math:`s` seeds, :math:`n` pairs, the variance :math:`u` of
    the seeds' gaps and the variance :math:`v` of the pairs' mean gaps, the standard error is
    :math:`\sqrt{u/s + v/n}`, and Student's t has the degrees of freedom of Welch and Satterthwaite. What a pair does
    by chance for one seed alone is in both terms, so that the interval is rather too wide than too narrow.

    Args:
        better: for each seed, which test pairs are right.
        worse: the same of the other variant, as many seeds.
    """
    gaps = 100 * (np.stack(better).astype(np.float64) - np.stack(worse))
    seeds, pairs = gaps.shape
    points = float(gaps.mean())
    if seeds < FEWEST_SEEDS:
        return Difference(points, -np.inf, np.inf, 1.0, seeds)
    of_seeds = gaps.mean(axis=1).var(ddof=1) / seeds
    of_pairs = gaps.mean(axis=0).var(ddof=1) / pairs
    variance = of_seeds + of_pairs
    if not variance:
        return Difference(points, points, points, 1.0, seeds)
    freedom = variance**2 / (of_seeds**2 / (seeds - 1) + of_pairs**2 / (pairs - 1))
    half = float(student.ppf(1 - LEVEL / 2, freedom) * variance**0.5)
    p = float(2 * student.sf(abs(points) / variance**0.5, freedom))
    return Difference(points, points - half, points + half, p, seeds)


def verdicts(found: Sequence[Difference]) -> list[str]:
    """What each says of the claim that the first is better, by Holm's procedure over all that have enough seeds.

    >>> verdicts([Difference(1, 0.5, 1.5, 0.001, 5), Difference(-1, -2, -0.1, 0.04, 5), Difference(1, 0, 2, 1.0, 2)])
    ['holds', 'reversed', 'too few seeds']
    """
    tested = sorted((i for i, one in enumerate(found) if one.seeds >= FEWEST_SEEDS), key=lambda i: found[i].p)
    said = ["undecided" if one.seeds >= FEWEST_SEEDS else "too few seeds" for one in found]
    for place, i in enumerate(tested):
        if found[i].p > LEVEL / (len(tested) - place):
            break
        said[i] = "holds" if found[i].points > 0 else "reversed"
    return said
