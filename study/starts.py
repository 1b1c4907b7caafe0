"""What attention finds before anything is learned: a model's start alone may draw it to the same word."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn

from nli_common.batches import PairDataset, evaluation_loader
from nli_common.data import Batch
from nli_common.labels import scheme_of
from nli_common.models import build
from study.alignments import same_words
from study.plan import BENCHES, ENCODED, VARIANTS, Job
from study.results import kept
from study.training import RESULTS, Places, held_result, plan_of, settings_of, write_result
from study.tuning import tuned

SEED = 0


def starts_file(bench: str) -> Path:
    """What is kept of a bench."""
    return RESULTS / bench / "starts.json"


def starts(places: Places) -> None:
    """Every model of every bench that is trained, as it was before."""
    for bench in BENCHES:
        held = held_starts(bench)
        for name, variant in VARIANTS.items():
            job = Job(bench, name, SEED)
            if name in held or kept(job) is None or (variant in ENCODED and places.encoder is None):
                continue
            plan = start_plan(job)
            assert plan is not None
            held[name] = {**plan, "found": start(job, places)}
            write_result(starts_file(bench), held)


def held_starts(bench: str) -> dict[str, Any]:
    """What is kept of a bench, by variant."""
    return as_planned(starts_file(bench), bench)


def as_planned(path: Path, bench: str) -> dict[str, Any]:
    """What a file keeps of untrained models, by variant, as far as it is of the plan's models and files."""
    held = held_result(path)
    plans = {name: start_plan(Job(bench, name, SEED)) for name in held if name in VARIANTS}
    return {name: held[name] for name, plan in plans.items() if plan == _of_plan(held[name])}


def start(job: Job, places: Places) -> float | None:
    """The mean weight on the same word in the test pairs, or ``None`` if the model aligns no words."""
    found = same_words(*untrained(job, places, "test"))
    return None if found is None else found["found"]


def untrained(job: Job, places: Places, split: str) -> tuple[nn.Module, Iterable[Batch]]:
    """The model of a run as it is before training, and the pairs of one of its files."""
    settings = settings_of(job, places, tuned(VARIANTS[job.variant].family) or {})
    corpora = settings.data.corpora()
    labels = scheme_of(corpora["train"].labels, "the training corpus")
    lexicon = settings.data.lexicon(corpora)
    torch.manual_seed(job.seed)
    model = build(settings.script, dataclasses.replace(settings.config, num_classes=len(labels)), lexicon)
    pairs = PairDataset(corpora[split], lexicon, labels, corpora[split].phenomena)
    prepared: tuple[nn.Module, Iterable[Batch]] = Accelerator().prepare(model, evaluation_loader(pairs))
    return prepared


def start_plan(job: Job) -> dict[str, Any] | None:
    """All that decides where a run's model starts, and what it reads, or ``None`` while its family is not tuned."""
    options = tuned(VARIANTS[job.variant].family)
    return None if options is None else _of_plan(plan_of(job, options))


def _of_plan(plan: dict[str, Any]) -> dict[str, Any]:
    return {name: plan[name] for name in ("model", "files", "unit_vectors")}
