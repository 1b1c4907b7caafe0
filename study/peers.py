"""What public implementations reach on the same splits."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """Accuracies in per cent, over so many seeds.

    >>> Peer(67.0, spread=0.1, seeds=3).told("test"), Peer(72.8, hard=54.3).told("hard")
    ('67.0 ± 0.1 (3)', '54.3 (1)')
    >>> Peer(58.1, what="logistic regression").told("test")
    '58.1 (logistic regression)'
    """

    test: float
    spread: float | None = None
    """Standard deviation over the seeds, on the test pairs."""
    seeds: int = 1
    hard: float | None = None
    """On the hard ones of the test pairs."""
    what: str = ""
    """The model, where it is another one than ours."""

    def told(self, which: str) -> str:
        """One of the accuracies, with what it is of."""
        spread = f" ± {self.spread}" if which == "test" and self.spread is not None else ""
        return f"{getattr(self, which)}{spread} ({self.what or self.seeds})"


OTHER = "RE2"
"""A model that has no script here."""
PEERS = {
    ("snli10k", "hypothesis only"): Peer(58.1, what="logistic regression"),
    ("snli10k", "DA"): Peer(67.0, spread=0.1, seeds=3),
    ("snli10k", "ESIM"): Peer(65.8, spread=0.1, seeds=2),
    ("snli10k", OTHER): Peer(71.7, spread=0.6, seeds=2),
    ("sick", "hypothesis only"): Peer(58.7, what="logistic regression"),
    ("sick", "DA"): Peer(74.0, spread=7.7, seeds=5),
    ("sick", "ESIM"): Peer(79.4),
    ("sick", OTHER): Peer(81.3, spread=0.2, seeds=2),
    ("snli22k", "DA"): Peer(72.8, hard=54.3),
    ("snli22k", OTHER): Peer(77.2, hard=59.3),
    ("mnli20k", "hypothesis only"): Peer(49.4, what="logistic regression"),
}
"""By bench and model: bastings/interpretable_predictions (DA), coetaur0/ESIM and
alibaba-edu/simple-effective-text-matching-pytorch (RE2), their code unchanged, on the same splits and vectors; and a
logistic regression on the hypothesis's words."""
