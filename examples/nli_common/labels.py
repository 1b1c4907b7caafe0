"""The label sets of the tasks: which labels a file may have, which set they are of, and what a model is measured in."""

from collections.abc import Collection, Sequence

from nli_common.errors import InputError

NO_LABEL = "-"
_TWO_WAY = ("entailment", "not_entailment")
SCHEMES = (
    ("entailment", "neutral", "contradiction"),
    ("entailment", "neutral"),
    _TWO_WAY,
    ("duplicate", "not_duplicate"),
)
"""The label sets of the tasks, in the order that their classes are numbered."""
_OTHER_NAMES = {
    "hidden": NO_LABEL,
    "entails": "entailment",
    "non-entailment": "not_entailment",
}
QUORA = {"1": "duplicate", "0": "not_duplicate"}
"""Quora's labels, which only its own files have: elsewhere these numbers may stand for anything."""
KNOWN = {label: label for scheme in SCHEMES for label in scheme} | {NO_LABEL: NO_LABEL} | _OTHER_NAMES
"""Every label that a file may have, in lower case, and what it is called here."""


NOT_NEEDED = "; without its labels the file can be predicted"
"""What there is to do about a label that a prediction does not need."""


def scheme_of(labels: Collection[str], source: str) -> tuple[str, ...]:
    """The smallest label set that these labels are of.

    Raises:
        InputError: if no task has all of them.
    """
    fitting = [scheme for scheme in SCHEMES if set(labels) <= set(scheme)]
    if not fitting:
        raise InputError(f"{source}: the labels {', '.join(sorted(labels))} are not those of any one task")
    return min(fitting, key=len)


def require_labels(labels: Collection[str], classes: Sequence[str], source: str, advice: str = "") -> None:
    """Raise an ``InputError``, with some advice, if there is a label that is not among a model's classes."""
    strange = [label for label in labels if label not in classes]
    if strange:
        raise InputError(f"{source}: has the label {strange[0]!r}, the model's are {', '.join(classes)}{advice}")


def measured_in(labels: Collection[str], classes: Sequence[str]) -> Sequence[str]:
    """The classes in which a model is measured on pairs of these labels.

    They are the model's own, or entailment against everything else where the pairs are labelled so, as HANS's are, and
    the model tells neutral from entailment.
    """
    two_way = "not_entailment" in labels and set(labels) <= set(_TWO_WAY) and "neutral" in classes
    return _TWO_WAY if two_way else classes


def counted_as(label: str, measured: Sequence[str]) -> str:
    """What one of a model's classes is among those in which it is measured."""
    return label if label in measured else _TWO_WAY[1]
