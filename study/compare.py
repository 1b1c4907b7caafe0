"""Two variants on the same test pairs and seeds: how much better is one, and how sure is that?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2_000


@dataclass(frozen=True)
class Difference:
    """A difference of accuracies in points, and the interval that holds 95 per cent of its resamples."""

    points: float
    low: float
    high: float
    seeds: int

    @property
    def verdict(self) -> str:
        """What it says of the claim that the first is better."""
        if self.seeds < 2:
            return "one seed: undecided"
        if self.low > 0:
            return "holds"
        return "reversed" if self.high < 0 else "undecided"


def difference(better: Sequence[NDArray[np.bool_]], worse: Sequence[NDArray[np.bool_]]) -> Difference:
    """The first's accuracy less the second's.

    The bootstrap draws test pairs and seeds anew, so that its interval holds for other pairs of the kind and for other
    seeds. Seed k of one is paired with seed k of the other: both saw the same pairs in the same order.

    Args:
        better: for each seed, which test pairs are right.
        worse: the same of the other variant, as many seeds.
    """
    gaps = np.stack(better).astype(np.float64) - np.stack(worse)
    seeds, pairs = gaps.shape
    rng = np.random.default_rng(0)
    shares = rng.multinomial(pairs, np.full(pairs, 1 / pairs), size=RESAMPLES) / pairs
    by_seed = shares @ gaps.T
    drawn = by_seed[np.arange(RESAMPLES)[:, None], rng.integers(seeds, size=(RESAMPLES, seeds))].mean(axis=1)
    low, high = np.quantile(100 * drawn, (0.025, 0.975))
    return Difference(100 * float(gaps.mean()), float(low), float(high), seeds)
