"""What the pairs are that models are tested on: their classes, known premises, words that both sentences have."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from nli_common.data import Corpus
from study.plan import BENCHES, Bench
from study.training import RESULTS, Places, held_result, opened, write_result

COMMONEST = 10
"""Words that are told apart from all others."""


def pairs_file() -> Path:
    """Where the counts are kept."""
    return RESULTS / "pairs.json"


def pairs(places: Places) -> None:
    """Count those of every file that is there, beside what it is tested after, and has not been counted."""
    held = held_pairs()
    for bench in BENCHES.values():
        wanted = [file for file in (bench.test, *bench.others.values()) if (places.data / file).exists()]
        if not (places.data / bench.train).exists() or all(file in held.get(bench.name, {}) for file in wanted):
            continue
        known = set(_premises(opened(bench.train, places)))
        held[bench.name] = held.get(bench.name, {}) | {file: counts(opened(file, places), known) for file in wanted}
        write_result(pairs_file(), held)


def held_pairs() -> dict[str, Any]:
    """What is kept, by bench and file."""
    return held_result(pairs_file())


def held_of(bench: Bench, file: str) -> dict[str, Any]:
    """What is kept of one file, or nothing."""
    held: dict[str, Any] = held_pairs().get(bench.name, {}).get(file, {})
    return held


def counts(corpus: Corpus, known: set[str]) -> dict[str, Any]:
    """The pairs of each class, those with a known premise, and how many shared words are the commonest ones.

    A word of a hypothesis is shared if its premise has it, too; it counts as often as it stands there.
    """
    classes = np.bincount(corpus.label, minlength=len(corpus.labels))
    shared: Counter[str] = Counter()
    for i in range(len(corpus)):
        premise = set(corpus.tokens(corpus.premise, i))
        shared.update(word for word in corpus.tokens(corpus.hypothesis, i) if word in premise)
    commonest = shared.most_common(COMMONEST)
    return {
        "classes": dict(zip(corpus.labels, map(int, classes), strict=True)),
        "known_premises": sum(premise in known for premise in _premises(corpus)),
        "shared_words": shared.total(),
        "commonest": dict(commonest),
    }


def _premises(corpus: Corpus) -> list[str]:
    return [" ".join(corpus.tokens(corpus.premise, i)) for i in range(len(corpus))]
