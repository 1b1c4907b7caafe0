"""How often each run is right on the test pairs of each class, and how many pairs of each class it was trained on."""

from pathlib import Path
from typing import Any

import numpy as np

from nli_common.data import Corpus
from study.plan import BENCHES
from study.results import held_results
from study.training import RESULTS, Places, held_result, opened, unpacked, write_result


def classes_file(bench: str) -> Path:
    """What is kept of a bench."""
    return RESULTS / bench / "classes.json"


def classes(places: Places) -> None:
    """Count for every bench that has runs and whose pairs are there."""
    found = held_results()
    for name, bench in BENCHES.items():
        runs = {variant: kept for (of, variant), kept in found.items() if of == name}
        if not runs or not all((places.data / file).exists() for file in (bench.train, bench.test)):
            continue
        train, test = (opened(file, places) for file in (bench.train, bench.test))
        right = {
            variant: {
                str(run["seed"]): _by_class(test, test.label[unpacked(run["right"], run["pairs"]).numpy()])
                for run in kept
                if run["pairs"] == len(test)
            }
            for variant, kept in runs.items()
        }
        pairs = {"train": _by_class(train, train.label), "test": _by_class(test, test.label)}
        write_result(classes_file(name), {**pairs, "right": right})


def held_classes(bench: str) -> dict[str, Any]:
    """What is kept of a bench, or nothing."""
    return held_result(classes_file(bench))


def _by_class(corpus: Corpus, labels: np.ndarray) -> dict[str, int]:
    return dict(zip(corpus.labels, map(int, np.bincount(labels, minlength=len(corpus.labels))), strict=True))
