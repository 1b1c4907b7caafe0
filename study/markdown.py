"""Tables and figures as text."""

import statistics
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


def spread(shares: Sequence[float]) -> str:
    """Shares in per cent: mean, standard deviation, and how many.

    >>> spread([0.5, 0.52, 0.54]), spread([0.5])
    ('52.0 ± 2.0 (3)', '50.0 (1)')
    """
    percent = [100 * share for share in shares]
    if len(percent) == 1:
        return f"{percent[0]:.1f} (1)"
    return f"{statistics.mean(percent):.1f} ± {statistics.stdev(percent):.1f} ({len(percent)})"
