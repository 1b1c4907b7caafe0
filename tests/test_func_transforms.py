"""torch.func and torch.utils.checkpoint make of every layer and model what a plain loop over it makes."""

from collections.abc import Callable

import pytest
import torch
from reliability import transforms
from reliability.cases import CASES, LONG, MODELS, Case, outputs
from reliability.transforms import difference
from torch.func import functional_call, grad, jacfwd, vmap
from torch.testing import assert_close

from nlilayers import GaussianPrior, GaussianSelfAttention, masking
from strategies import normal


@pytest.mark.parametrize("attack", transforms.ATTACKS.values(), ids=transforms.ATTACKS.keys())
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_layer_and_model_equals_its_loop(case: Case, attack: Callable[[Case, int, int], float]) -> None:
    assert attack(case, 3, 4) < 1e-11


def test_dropout_is_recomputed_as_it_was() -> None:
    """The random numbers of a checkpointed call are drawn again."""
    case = Case(lambda: GaussianSelfAttention(6, 2, dropout=0.5), CASES["GaussianSelfAttention"].draw)
    assert transforms.recomputed(case, 3, 4) == 0
