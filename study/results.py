"""What is kept of the plan as it stands."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from nli_common.files import read_json
from study.plan import ENCODED, VARIANTS, Job, jobs
from study.training import plan_of, result_file
from study.tuning import tuned

Results = dict[tuple[str, str], list[dict[str, Any]]]


def held(path: Path, job: Job) -> dict[str, Any] | None:
    """What a file keeps of a run, or ``None`` if it was not trained as the plan says: its figures are another's."""
    options = tuned(VARIANTS[job.variant].family)
    if options is None or not path.exists():
        return None
    result = read_json(path)
    plan = plan_of(job, options)
    return result if plan == {name: result.get(name) for name in plan} else None


def kept(job: Job) -> dict[str, Any] | None:
    """A run's figures, if it was trained and tested as the plan says."""
    return held(result_file(job), job)


def held_results() -> Results:
    """Every figure that is kept, by bench and variant, seed by seed."""
    found: Results = defaultdict(list)
    planned = dict.fromkeys(job for budget in ("cpu", "gpu") for job in jobs(budget))
    for job in sorted(planned, key=lambda job: job.seed):
        result = kept(job)
        if result is not None:
            found[job.bench, job.variant].append(result)
    return found


def aligned(bench: str, variant: str, results: Results) -> list[tuple[dict[str, float], float]]:
    """What the attention of each seed finds, and the seed's test accuracy; nothing if there is no attention."""
    found = results.get((bench, variant), [])
    return [(r["same_words"], r["accuracy"]["test"]) for r in found if r["same_words"] is not None]


def encoders() -> set[str]:
    """The fingerprints of the encoders that the runs on one stand on."""
    names = [variant.name for variant in ENCODED]
    return {run["encoder"] for (_, name), runs in held_results().items() if name in names for run in runs}
