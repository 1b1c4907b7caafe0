"""The linguistic categories that 1,000 dev pairs of MultiNLI were annotated with (Williams et al. 2018, section 4)."""

from collections import defaultdict
from pathlib import Path

from torch import Tensor

from nli_common.corpora import read_pairs
from nli_common.errors import InputError
from nli_common.files import text_lines
from nli_common.labels import NO_LABEL

CATEGORIES = {
    "acti": "active/passive",
    "anto": "antonym",
    "beli": "belief",
    "cond": "conditional",
    "core": "coreference",
    "long": "long sentence",
    "moda": "modal",
    "nega": "negation",
    "para": "paraphrase",
    "quantif": "quantifier",
    "quantit": "quantity/time",
    "tens": "tense difference",
    "word": "word overlap",
}
"""What the categories are called here, by what their tags begin with."""


def read_categories(annotations: Path, pairs: Path) -> dict[str, list[int]]:
    """Which labelled pairs of a file have which category.

    Args:
        annotations: in each line a pair's ID and its categories, each behind a ``#``.
        pairs: a ``.jsonl`` file with a ``pairID`` in each row.

    Returns:
        the places of a category's pairs among the labelled ones.

    Raises:
        InputError: if a line has another form, or no pair of the file is annotated.
    """
    of_pair: defaultdict[str, dict[str, None]] = defaultdict(dict)  # in their order, each once
    for number, line in text_lines(annotations):
        fields = line.split()
        if not fields:
            continue
        if len(fields) < 2 or not all(field.startswith("#") and len(field) > 1 for field in fields[1:]):
            raise InputError.at(annotations, number, f"expected a pair's ID and its #CATEGORIES, got {line!r}")
        of_pair[fields[0]] |= dict.fromkeys(_category_of(field[1:].lower()) for field in fields[1:])
    places: defaultdict[str, list[int]] = defaultdict(list)
    labelled = (pair for pair in read_pairs(pairs) if pair.label != NO_LABEL)
    for place, pair in enumerate(labelled):
        for category in of_pair.get(pair.pair_id, ()):
            places[category].append(place)
    if not places:
        raise InputError(f"{annotations}: annotates no pair of {pairs}, which needs a pairID in each row")
    return dict(sorted(places.items()))


def accuracy_by_category(places: dict[str, list[int]], right: Tensor) -> dict[str, float]:
    """The accuracy within each category."""
    return {f"#{category}": float(right[rows].double().mean()) for category, rows in places.items()}


def _category_of(tag: str) -> str:
    return next((name for start, name in CATEGORIES.items() if tag.startswith(start)), tag)
