"""What is kept of the plan as it stands."""

from collections import defaultdict
from typing import Any

from study.plan import BENCHES, VARIANTS, Job, jobs
from study.training import held, options_of, result_file
from study.tuning import tuned

Results = dict[tuple[str, str], list[dict[str, Any]]]


def kept(job: Job) -> dict[str, Any] | None:
    """A run's figures, if its family is tuned, and it was trained and tested as the plan says."""
    options = tuned(VARIANTS[job.variant].family)
    result = None if options is None else held(result_file(job), options_of(job, options))
    tested = {"dev", "test", *BENCHES[job.bench].others}
    return result if result is not None and result["accuracy"].keys() == tested else None


def held_results() -> Results:
    """Every figure that is kept, by bench and variant, seed by seed."""
    found: Results = defaultdict(list)
    planned = {job for budget in ("cpu", "gpu") for job in jobs(budget)}
    for job in sorted(planned, key=lambda job: job.seed):
        result = kept(job)
        if result is not None:
            found[job.bench, job.variant].append(result)
    return found
