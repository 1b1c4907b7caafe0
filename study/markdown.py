"""Tables and figures as text."""

import statistics
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.5)
    '50.0'
    """
    return f"{100 * share:.1f}"


def spread(shares: Sequence[float]) -> str:
    """Shares in per cent: mean, standard deviation, and how many.

    >>> spread([0.5, 0.52, 0.54]), spread([0.5])
    ('52.0 ± 2.0 (3)', '50.0 (1)')
    """
    if len(shares) == 1:
        return f"{percent(shares[0])} (1)"
    return f"{percent(statistics.mean(shares))} ± {percent(statistics.stdev(shares))} ({len(shares)})"
