"""Several processes: DistributedDataParallel, FSDP2, a launched script, loaders' workers, and copies that travel."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from reliability import copies, launched, parallel
from reliability.cases import CASES, Case
from reliability.spread import page
from torch import nn

from nli_common.checkpoints import load_weights, save_weights
from nli_common.errors import InputError
from nlilayers import FactorizationMachine
from runs import write_corpora

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def test_two_processes_train_as_one_does() -> None:
    for (net, way), figures in parallel.spread_training(steps=5).items():
        assert figures["losses"] < 1e-12 and figures["parameters"] < 1e-12, (net, way, figures)
        assert figures["moved"] > 1e-3, f"{net} learned nothing"


def test_fully_shard_takes_no_scalar_parameter() -> None:
    assert parallel.refusal_of_scalars().startswith("fully_shard doesn't support scalar parameters. ")


def test_a_launched_script_ends_as_one_process_does_and_goes_on_when_killed(tmp_path: Path) -> None:
    """161 pairs in batches of 16: one batch in the middle has a single pair, which one process goes without."""
    found = launched.both_ways(tmp_path, train=161, epochs=3, same_lengths=False)
    assert found["kills"] >= 1, "the run ended before it could be killed"
    assert found["losses"] < 1e-5 and found["weights"] < 1e-4


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_make_the_same_batches(method: str) -> None:
    assert sum(copies.batches_by_workers(method, 120).values()) > 20


def test_everything_goes_to_another_process_and_back() -> None:
    assert set(copies.in_a_fresh_process(list(CASES)).values()) == {0.0}
    assert copies.configurations_in_a_fresh_process() == 10


@every_case
@pytest.mark.parametrize("copied", [copies.there_and_back, copies.assigned, copies.filled], ids=lambda f: f.__name__)
def test_a_state_is_all_that_a_module_is(case: Case, copied: Callable[[Case], float]) -> None:
    assert copied(case) == 0


@every_case
def test_a_state_that_does_not_fit_is_refused_by_its_key(case: Case) -> None:
    assert copies.refusals(case) == len(case.module().state_dict())
