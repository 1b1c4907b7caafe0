"""Five seeds of a model as one: the mean of their probabilities."""

import json
from pathlib import Path

from nli_common.data import open_corpus
from nli_common.evaluating import evaluate_on
from nli_common.runs import Run
from study.plan import BENCHES, MODELS, Job
from study.training import RESULTS, Places, result_file, run_folder, settings_of, slug, write_result
from study.tuning import tuned

SEEDS = 5


def ensemble_file(bench: str, variant: str) -> Path:
    """What is kept of an ensemble."""
    return RESULTS / bench / f"{slug(variant)}-ensemble.json"


def ensembles(places: Places) -> None:
    """Every model whose five seeds are trained, and whose weights are still there."""
    for bench in BENCHES.values():
        for variant in MODELS:
            jobs = [Job(bench.name, variant.name, seed) for seed in range(SEEDS)]
            target = ensemble_file(bench.name, variant.name)
            runs = [Run(run_folder(job, places)) for job in jobs]
            trained = all(result_file(job).exists() for job in jobs) and all(run.weights.exists() for run in runs)
            if target.exists() or not trained:
                continue
            settings = settings_of(jobs[0], places, tuned(variant.family))
            corpus = open_corpus(places.pairs(bench.test), places.cache)
            _, metrics = evaluate_on(settings.script, runs, corpus, bench.test, places.data / bench.vectors)
            write_result(target, {"bench": bench.name, "variant": variant.name, "test": metrics["accuracy"]})


def ensemble_accuracy(bench: str, variant: str) -> float | None:
    """The test accuracy of an ensemble, or ``None`` if it was not tested."""
    path = ensemble_file(bench, variant)
    return float(json.loads(path.read_text())["test"]) if path.exists() else None
