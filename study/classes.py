"""How many pairs of each class the files have that models are tested on."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from nli_common.data import open_corpus
from study.plan import BENCHES
from study.training import RESULTS, Places, write_result


def classes_file() -> Path:
    """Where the counts are kept."""
    return RESULTS / "classes.json"


def classes(places: Places) -> None:
    """Count those of every file that is there and has not been counted."""
    held = held_classes()
    for name in (name for bench in BENCHES.values() for name in (bench.test, *bench.others.values())):
        if name not in held and (places.data / name).exists():
            corpus = open_corpus(places.pairs(name), places.cache)
            counts = np.bincount(corpus.label, minlength=len(corpus.labels))
            held[name] = dict(zip(corpus.labels, map(int, counts), strict=True))
            write_result(classes_file(), held)


def held_classes() -> dict[str, Any]:
    """What is kept, by file and class."""
    counts: dict[str, Any] = json.loads(classes_file().read_text()) if classes_file().exists() else {}
    return counts
