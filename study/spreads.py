"""How far a model tells words apart before anything is learned: the standard deviation of its attention's scores."""

from pathlib import Path
from typing import Any

from study.alignments import score_spread
from study.plan import MODELS, OWN_START, TUNING_BENCH, VARIANTS, Job
from study.starts import as_planned, start_plan, untrained
from study.training import RESULTS, Places, write_result

SEEDS = 5
MEASURED = (*MODELS, VARIANTS[OWN_START.worse])


def spreads_file() -> Path:
    """What is kept of the one bench that it is measured on."""
    return RESULTS / TUNING_BENCH / "spreads.json"


def spreads(places: Places) -> None:
    """Every model of the main tables, and the Gaussian Transformer from the usual initial weights, on dev pairs."""
    held = held_spreads()
    for variant in MEASURED:
        plan = start_plan(Job(TUNING_BENCH, variant.name, 0))
        if variant.name in held or plan is None:
            continue
        jobs = [Job(TUNING_BENCH, variant.name, seed) for seed in range(SEEDS)]
        held[variant.name] = {**plan, "spreads": [score_spread(*untrained(job, places, "dev")) for job in jobs]}
        write_result(spreads_file(), held)


def held_spreads() -> dict[str, Any]:
    """What is kept, by variant."""
    return as_planned(spreads_file(), TUNING_BENCH)
