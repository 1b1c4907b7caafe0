"""Train what is left of the study, and write its pages."""

import argparse
import sys
from pathlib import Path

from study import report
from study.classes import classes
from study.ensembles import ensembles
from study.pairs import pairs
from study.plan import ENCODED, VARIANTS, jobs
from study.queue import Queue, work
from study.results import encoders
from study.spreads import spreads
from study.starts import starts
from study.training import Places, fingerprint_of_weights
from study.windows import windows


def main() -> None:
    """Tune, train, report."""
    parser = argparse.ArgumentParser(prog="python -m study", description="Train what is left of the study.")
    parser.add_argument("--data", type=Path, help="the folder with bench, corpora and the vectors")
    parser.add_argument("--encoder", type=Path, help="folder of a Hugging Face encoder, for the rows on it")
    parser.add_argument("--budget", choices=("cpu", "gpu"), default="cpu", help="which runs, and how many seeds")
    parser.add_argument("--runs", type=Path, default=Path("runs/study"), help="folder of the runs and their weights")
    parser.add_argument("--workers", type=int, default=2, help="runs at the same time, each on its share of the cores")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        metavar="PART",
        help="train only runs whose 'bench/variant' has one in it: those of the first one first",
    )
    parser.add_argument("--report", action="store_true", help="train nothing, write the pages")
    options = parser.parse_args()
    if options.workers < 1:
        parser.error(f"--workers: expected at least 1, got {options.workers}")
    if options.report and options != parser.parse_args(["--report"]):
        parser.error("--report: trains nothing, so that no other option has an effect")
    if not options.report:
        if options.data is None or not (options.data / "bench").is_dir():
            parser.error(f"--data: expected a folder with a folder 'bench', got {options.data}")
        encoder = options.encoder and options.encoder.resolve()
        if encoder is not None:
            if not any(encoder.glob("*.safetensors")):
                parser.error(f"--encoder: expected a folder with *.safetensors, got {options.encoder}")
            mine, held = fingerprint_of_weights(encoder), encoders()
            if held - {mine}:
                parser.error(f"--encoder: kept runs are of weights {', '.join(held)}, those in {encoder} are {mine}")
        places = Places(options.data.resolve(), options.runs.resolve(), encoder)
        able = [job for job in jobs(options.budget) if encoder or VARIANTS[job.variant] not in ENCODED]
        parts = {part: [job for job in able if part in f"{job.bench}/{job.variant}"] for part in options.only}
        for part, has_it in parts.items():
            if not has_it:
                parser.error(f"--only: expected a part of 'bench/variant', got {part!r}, which no run has")
        wanted = dict.fromkeys(job for has_it in parts.values() for job in has_it)
        failed = work(Queue(wanted), places, options.workers)
        ensembles(places)
        windows(places)
        starts(places)
        spreads(places)
        pairs(places)
        classes(places)
    report.write()
    if not options.report and failed:
        sys.exit(f"{failed} runs failed; the same command tries them again")


if __name__ == "__main__":
    main()
