"""Two variants on the same test pairs and seeds: how much better is one, and how sure is that?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm as normal
from scipy.stats import t as student

FEWEST_SEEDS = 3
LEVEL = 0.05
LEAST = 1e-12
"""No probability is said to be smaller."""


@dataclass(frozen=True)
class Difference:
    """A difference of accuracies in points, and the chance that is in it."""

    points: float
    seeds: int
    """Of the side that has fewer."""
    of_seeds: float
    """The variance that other seeds would bring, the sum over both sides, with its degrees of freedom."""
    freedom: float
    of_pairs: float
    """The variance that other pairs would bring."""

    def reach(self, level: float = LEVEL) -> float:
        """How far the interval of a level goes to either side: a difference as large would be decided at it."""
        t, z = student.isf(level / 2, self.freedom), normal.isf(level / 2)
        return float(np.sqrt(t**2 * self.of_seeds + z**2 * self.of_pairs))

    @property
    def low(self) -> float:
        """Where the 95 per cent interval begins."""
        return self.points - self.reach()

    @property
    def high(self) -> float:
        """Where it ends."""
        return self.points + self.reach()

    @cached_property
    def p(self) -> float:
        """How likely a difference as large is by chance: the level whose interval ends at 0."""
        points = abs(self.points)
        if points == 0 or self.seeds < FEWEST_SEEDS:
            return 1.0
        if self.reach(LEAST) <= points:
            return LEAST
        return float(10.0 ** brentq(lambda power: self.reach(10.0**power) - points, np.log10(LEAST), 0.0))


def difference(
    better: Sequence[NDArray[np.bool_]], worse: Sequence[NDArray[np.bool_]], *, paired: bool = False
) -> Difference:
    r"""The first's accuracy less the second's, for other pairs of the kind and for other seeds.

    Seeds and pairs are two sources of chance. With :math:`u` the sum of each side's variance over its seeds divided by
    their number, :math:`\nu` its degrees of freedom by Welch and Satterthwaite, and :math:`v` the variance of the
    pairs' gaps, each the mean over the seeds, divided by the number of pairs, the interval reaches

    .. math:: \sqrt{t_{\nu}^2\, u + z^2\, v}

    to either side, with Student's and the normal distribution's quantiles: seeds are few, and pairs are many. (One
    Student's t for both would have the more degrees of freedom the closer the seeds come to lie by chance, and call far
    too much certain.) ``p`` is the level whose interval ends at 0. What a pair does by chance for one seed alone is in
    both terms, so that the interval is rather too wide than too narrow, but where few seeds spread several times as far
    as the other side's more: there a small ``p`` is too small.

    Args:
        better: for each seed, which test pairs are right.
        worse: the same of the other variant, of any number of seeds.
        paired: the two of a seed differ in nothing else, and come in the same order: :math:`u` is the variance of their
            gaps over the seeds, divided by the number of seeds, with one degree of freedom less than there are seeds.
    """
    if paired and len(better) != len(worse):
        raise ValueError(f"worse: expected as many seeds as the other side has, {len(better)}, got {len(worse)}")
    sides = [100 * np.stack(side).astype(np.float64) for side in (better, worse)]
    gaps = sides[0].mean(axis=0) - sides[1].mean(axis=0)
    points, seeds = float(gaps.mean()), min(map(len, sides))
    if seeds < FEWEST_SEEDS:
        return Difference(points, seeds, np.inf, np.inf, np.inf)
    by_seed = [sides[0] - sides[1]] if paired else sides
    means = [side.mean(axis=1).var(ddof=1) / len(side) for side in by_seed]
    of_seeds, of_pairs = float(sum(means)), float(gaps.var(ddof=1) / len(gaps))
    terms = float(sum(mean**2 / (len(side) - 1) for mean, side in zip(means, by_seed, strict=True)))
    freedom = of_seeds**2 / terms if terms else np.inf
    return Difference(points, seeds, of_seeds, freedom, of_pairs)


def verdicts(found: Sequence[Difference], rows: int) -> list[str]:
    """What each says of the claim that the first is better, by Holm's procedure.

    Args:
        found: those that have been measured.
        rows: how many are to be measured in all; the others may yet be the surest.

    >>> verdicts([Difference(points, seeds, 0.0, 4.0, 0.2) for points, seeds in [(2, 5), (-1, 3), (2, 2)]], 2)
    ['holds', 'reversed', 'too few seeds']
    """
    tested = sorted((i for i, one in enumerate(found) if one.seeds >= FEWEST_SEEDS), key=lambda i: found[i].p)
    said = ["undecided" if one.seeds >= FEWEST_SEEDS else "too few seeds" for one in found]
    for place, i in enumerate(tested):
        if found[i].p > LEVEL / (max(rows, len(tested)) - place):
            break
        said[i] = "holds" if found[i].points > 0 else "reversed"
    return said
