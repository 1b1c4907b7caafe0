"""Five seeds of a model as one: the mean of their probabilities."""

from pathlib import Path

from nli_common.evaluating import evaluate_on
from nli_common.runs import Run
from study.plan import AVERAGED, BENCHES, MODELS, Job, Variant
from study.results import held, kept
from study.training import RESULTS, Places, lies_in, opened, plan_of, run_folder, settings_of, slug, write_result
from study.tuning import tuned

SEEDS = 5


def ensemble_file(bench: str, variant: str) -> Path:
    """What is kept of an ensemble."""
    return RESULTS / bench / f"{slug(variant)}-ensemble.json"


def ensembles(places: Places) -> None:
    """Every model whose five seeds are trained, and whose weights are still there."""
    for bench in BENCHES.values():
        for variant in (*MODELS, *AVERAGED):
            jobs = [Job(bench.name, variant.name, seed) for seed in range(SEEDS)]
            runs = [Run(run_folder(job, places)) for job in jobs]
            trained = all(lies_in(run, kept(job)) for run, job in zip(runs, jobs, strict=True))
            options = tuned(variant.family)
            if options is None or not trained or held_ensemble(bench.name, variant) is not None:
                continue
            settings = settings_of(jobs[0], places, options)
            corpus = opened(bench.test, places)
            _, metrics = evaluate_on(settings.script, runs, corpus, bench.test, places.data / bench.vectors)
            write_result(
                ensemble_file(bench.name, variant.name),
                {
                    "bench": bench.name,
                    "variant": variant.name,
                    **plan_of(jobs[0], options),
                    "test": metrics["accuracy"],
                },
            )


def held_ensemble(bench: str, variant: Variant) -> float | None:
    """The test accuracy of an ensemble, or ``None`` if it was not tested."""
    result = held(ensemble_file(bench, variant.name), Job(bench, variant.name, 0))
    return None if result is None else float(result["test"])
