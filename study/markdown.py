"""Tables and figures as text."""

import statistics
from collections.abc import Iterable, Sequence

NO_BREAK = "\N{NO-BREAK SPACE}"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, without the columns in which every line has a dash.

    >>> print(table(["model", "test", "hard"], [["DA", "67.4", "–"], ["ESIM", "71.0", "–"]]))
    | model | test |
    | --- | --- |
    | DA | 67.4 |
    | ESIM | 71.0 |
    """
    lines = list(lines)
    told = [k for k in range(len(head)) if not lines or any(line[k] != "–" for line in lines)]
    rows = ([cells[k] for k in told] for cells in (head, ["---"] * len(head), *lines))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.5)
    '50.0'
    """
    return f"{100 * share:.1f}"


def spread(shares: Sequence[float]) -> str:
    r"""Shares in per cent: mean, standard deviation, and how many; a line does not break within them.

    >>> spread([0.5, 0.52, 0.54]), spread([0.5])
    ('52.0\xa0±\xa02.0\xa0(3)', '50.0\xa0(1)')
    """
    return f"{uncounted(shares)} ({len(shares)})".replace(" ", NO_BREAK)


def uncounted(shares: Sequence[float]) -> str:
    r"""Shares in per cent: mean and standard deviation.

    >>> uncounted([0.5, 0.52, 0.54]), uncounted([0.5])
    ('52.0 ±\xa02.0', '50.0')
    """
    mean = percent(statistics.mean(shares))
    return mean if len(shares) == 1 else f"{mean} ±{NO_BREAK}{percent(statistics.stdev(shares))}"
