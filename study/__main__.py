"""Train what is left of the study, and write its pages."""

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import torch

from study import report
from study.ensembles import ensembles
from study.plan import ENCODED, VARIANTS, jobs
from study.training import Places, result_file, run_job
from study.tuning import families, tune, tuned, tuned_file
from study.windows import windows


def main() -> None:
    """Tune, train, report."""
    parser = argparse.ArgumentParser(prog="python -m study", description="Train what is left of the study.")
    parser.add_argument("--data", type=Path, help="the folder with bench, corpora and the vectors")
    parser.add_argument("--encoder", type=Path, help="folder of a Hugging Face encoder, for the rows on it")
    parser.add_argument("--budget", choices=("cpu", "gpu"), default="cpu", help="which runs, and how many seeds")
    parser.add_argument("--runs", type=Path, default=Path("runs/study"), help="folder of the runs and their weights")
    parser.add_argument("--workers", type=int, default=2, help="runs at the same time, each on its share of the cores")
    parser.add_argument("--only", default="", help="train only runs whose 'bench/variant' has this in it")
    parser.add_argument("--report", action="store_true", help="train nothing, write the pages")
    options = parser.parse_args()
    if not options.report:
        if options.data is None or not (options.data / "bench").is_dir():
            parser.error(f"--data: expected a folder with a folder 'bench', got {options.data}")
        encoder = options.encoder and options.encoder.resolve()
        places = Places(options.data.resolve(), options.runs.resolve(), encoder)
        wanted = [job for job in jobs(options.budget) if options.only in f"{job.bench}/{job.variant}"]
        if encoder is None:
            wanted = [job for job in wanted if VARIANTS[job.variant] not in ENCODED]
        threads = max(1, (torch.get_num_threads()) // options.workers)
        with ProcessPoolExecutor(options.workers, get_context("spawn"), torch.set_num_threads, (threads,)) as pool:
            needed = {VARIANTS[job.variant].family for job in wanted}
            untuned = [name for name in families() if name in needed and not tuned_file(name).exists()]
            failed = wait("tuned", untuned, [pool.submit(tune, name, places) for name in untuned])
            ready = [job for job in wanted if not result_file(job).exists()]
            ready = [job for job in ready if tuned_file(VARIANTS[job.variant].family).exists()]
            submitted = [pool.submit(run_job, job, places, tuned(VARIANTS[job.variant].family)) for job in ready]
            failed += wait("trained", ready, submitted)
        ensembles(places)
        windows(places)
    report.write()
    if not options.report and failed:
        sys.exit(f"{failed} runs failed; the same command tries them again")


def wait(what: str, names: Sequence[object], futures: Sequence["Future[None]"]) -> int:
    """Say what is done as it gets done; how many failed."""
    started, failed = time.monotonic(), 0
    named = dict(zip(futures, names, strict=True))
    for place, future in enumerate(as_completed(futures), start=1):
        error = future.exception()
        failed += error is not None
        outcome = what if error is None else f"failed: {error}"
        print(f"{time.monotonic() - started:7.0f} s  {place}/{len(futures)}  {named[future]}: {outcome}", flush=True)
    return failed


if __name__ == "__main__":
    main()
