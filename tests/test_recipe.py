"""Recipes: which numbers are refused, what the penalty is, and AdamWR's schedule against its paper."""

import importlib
import math
from dataclasses import asdict, replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from nli_common.errors import InputError
from nli_common.options import require_effect
from nli_common.recipe import Recipe
from nli_common.restarts import cosine_restarts, normalized_decay_rate


def slow_schedule(epoch: float, first: int, factor: int) -> tuple[float, int]:
    """Restart by restart: appendix B of the AdamWR paper."""
    cycles = [first * factor**k for k in range(60)]
    starts = [sum(cycles[:k]) for k in range(60)]
    k = max(k for k in range(60) if starts[k] <= epoch)
    return 0.5 + 0.5 * math.cos(math.pi * (epoch - starts[k]) / cycles[k]), cycles[k]


@given(epoch=st.floats(0, 50), first=st.integers(1, 12), factor=st.integers(1, 3))
def test_the_schedule_equals_the_slow_one(epoch: float, first: int, factor: int) -> None:
    share, cycle = cosine_restarts(epoch, first, factor)
    expected, expected_cycle = slow_schedule(epoch, first, factor)
    assert cycle == expected_cycle and share == pytest.approx(expected, abs=1e-9)


def test_the_schedule_restarts() -> None:
    assert cosine_restarts(0, 10) == (1.0, 10) and cosine_restarts(10, 10) == (1.0, 10)
    assert cosine_restarts(5, 10)[0] == pytest.approx(0.5) and cosine_restarts(9.999, 10)[0] < 1e-6
    assert cosine_restarts(10, 10, 2) == (1.0, 20) and cosine_restarts(30, 10, 2) == (1.0, 40)


def test_the_decay_of_the_papers_corpora() -> None:
    """PAPERS' own arithmetic for SNLI and MultiNLI at batch size 64 and ten epochs."""
    assert normalized_decay_rate(1 / 600, 64, 549_367, 10) == pytest.approx(5.689e-6, rel=1e-4)
    assert normalized_decay_rate(1 / 600, 64, 392_702, 10) == pytest.approx(6.728e-6, rel=1e-4)


def adamwr_by_hand(weight: float, gradients: list[float], steps_per_epoch: int, recipe: Recipe) -> float:
    """The update rule, one number and one step at a time: the decay is not multiplied by the learning rate."""
    m = v = 0.0
    for step, g in enumerate(gradients):
        share, cycle = slow_schedule(step / steps_per_epoch, recipe.restart_epochs, recipe.restart_factor)
        decay = recipe.normalized_decay * math.sqrt(8 / (100 * cycle))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        m_hat, v_hat = m / (1 - 0.9 ** (step + 1)), v / (1 - 0.999 ** (step + 1))
        lr = recipe.min_lr + (recipe.lr - recipe.min_lr) * share
        weight -= lr * m_hat / (math.sqrt(v_hat) + 1e-8) + share * decay * weight
    return weight


@pytest.mark.parametrize("factor", [1, 2])
def test_adamwr_equals_its_update_rule(factor: int) -> None:
    numbers = {"lr": 0.03, "min_lr": 0.004, "restart_epochs": 2, "normalized_decay": 0.7, "restart_factor": factor}
    recipe = Recipe(optimizer="adamwr", **numbers)
    layer = nn.Linear(1, 1, bias=False).double()
    nn.init.constant_(layer.weight, 2.0)
    optimizer = recipe.make_optimizer(layer)
    gradients = [math.sin(step) + 0.3 for step in range(30)]
    for step, gradient in enumerate(gradients):
        layer.weight.grad = torch.full_like(layer.weight, gradient)
        recipe.schedule(optimizer, step / 5, 100, 8)
        optimizer.step()
    assert layer.weight.item() == pytest.approx(adamwr_by_hand(2.0, gradients, 5, recipe), rel=1e-9)


ADDED = {"epochs": 20, "patience": 5, "clip_norm": None, "l2": 0.0, "same_lengths": False}
"""What most papers leave open, as docs/decisions.md lists it."""
PAPERS: dict[str, dict[str, Any]] = {
    "decomposable_attention": {"optimizer": "adagrad", "batch_size": 4, "epochs": 50},
    "cafe": {"optimizer": "adam", "lr": 3e-4, "batch_size": 256, "l2": 1e-6, "epochs": 40},
    "gaussian_transformer": {
        "optimizer": "adamwr",
        "lr": 3e-4,
        "min_lr": 4e-5,
        "restart_epochs": 10,
        "restart_factor": 1,
        "batch_size": 64,
        "normalized_decay": 1 / 600,
        "epochs": 30,
        "patience": 20,
    },
    "gated_cnn": {"optimizer": "adam", "lr": 4e-4, "batch_size": 64},
    "lstm_attention": {
        "optimizer": "adam",
        "lr": 2e-4,
        "batch_size": 32,
        "same_lengths": True,
        "epochs": 50,
        "patience": 50,
    },
    "esim": {"optimizer": "adam", "lr": 4e-4, "batch_size": 32, "clip_norm": 10.0},
    "hypothesis_only": {"optimizer": "adam", "lr": 1e-3, "batch_size": 32},
    "stacked_alignment": {"optimizer": "adam", "lr": 5e-4, "batch_size": 32},
}


@pytest.mark.parametrize("name", PAPERS)
def test_the_recipes_are_those_that_are_documented(name: str) -> None:
    recipe = asdict(importlib.import_module(name).SCRIPT.recipe)
    wanted = ADDED | {"warmup_epochs": 0.0, "ema_decay": None, "compile": False, "cuda_graphs": False} | PAPERS[name]
    assert {option: recipe[option] for option in wanted} == wanted


@pytest.mark.parametrize("name", ["adam", "adagrad", "adamwr"])
def test_weights_of_any_number_of_axes_decay(name: str) -> None:
    """A convolution's have three. AdamWR's decay takes biases, too; the penalty does not."""
    layer = nn.Conv1d(2, 3, 4)
    recipe = Recipe(optimizer=name, lr=0.1, l2=0.5, normalized_decay=0.5)
    optimizer = recipe.make_optimizer(layer)
    recipe.schedule(optimizer, 0.0, 100, 8)
    decays = {id(p): group["weight_decay"] > 0 for group in optimizer.param_groups for p in group["params"]}
    assert decays == {id(layer.weight): True, id(layer.bias): name == "adamwr"}


@pytest.mark.parametrize("name", ["adam", "adagrad"])
def test_the_penalty_is_on_weight_matrices_alone(name: str) -> None:
    """Half the squared norm: one step equals that of a loss with the penalty written out."""
    torch.manual_seed(3)
    plain = nn.Linear(3, 5).double()
    layer = nn.Linear(3, 5).double()
    layer.load_state_dict(plain.state_dict())
    x = torch.randn(7, 3, dtype=torch.float64)
    with_penalty = Recipe(optimizer=name, lr=0.1, l2=0.4).make_optimizer(layer)
    without = Recipe(optimizer=name, lr=0.1).make_optimizer(plain)
    for _ in range(3):
        for module, optimizer, l2 in ((layer, with_penalty, 0.0), (plain, without, 0.4)):
            optimizer.zero_grad()
            (module(x).square().sum() + 0.5 * l2 * module.weight.square().sum()).backward()
            optimizer.step()
    assert_close(layer.weight, plain.weight)
    assert_close(layer.bias, plain.bias)


def test_other_optimisers_have_no_schedule() -> None:
    layer = nn.Linear(2, 2)
    recipe = Recipe(lr=0.1, l2=0.2)
    optimizer = recipe.make_optimizer(layer)
    before = [dict(group, params=None) for group in optimizer.param_groups]
    recipe.schedule(optimizer, 7.0, 100, 8)
    assert [dict(group, params=None) for group in optimizer.param_groups] == before


@pytest.mark.parametrize("optimizer", ["adam", "adagrad", "adamwr"])
def test_the_learning_rate_warms_up_along_a_line(optimizer: str) -> None:
    """200 pairs in batches of 8 are 25 steps an epoch, half an epoch 12.5 of them."""
    cold = Recipe(optimizer=optimizer, lr=0.2, min_lr=0.05, normalized_decay=0.3)
    warming = replace(cold, warmup_epochs=0.5)
    optimizers = [recipe.make_optimizer(nn.Linear(2, 2)) for recipe in (cold, warming)]
    for step in range(30):
        for recipe, steps in zip((cold, warming), optimizers, strict=True):
            recipe.schedule(steps, step / 25, 200, 8)
        (full, decay), (now, warm_decay) = (
            (steps.param_groups[0]["lr"], steps.param_groups[0]["weight_decay"]) for steps in optimizers
        )
        assert now == pytest.approx(full * min(1.0, (step + 1) / 12.5))
        assert warm_decay * now == pytest.approx(decay * full) if optimizer == "adamwr" else warm_decay == decay


def test_a_recipe_without_a_learning_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="no learning rate"):
        Recipe().make_optimizer(nn.Linear(1, 1))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("lr", 0.0, "--lr must be positive and finite, got 0.0"),
        ("batch_size", 0, "--batch-size must be at least 1, got 0"),
        ("epochs", 0, "--epochs must be at least 1, got 0"),
        ("patience", 0, "--patience must be at least 1, got 0"),
        ("restart_epochs", 0, "--restart-epochs must be at least 1, got 0"),
        ("restart_factor", 0, "--restart-factor must be at least 1, got 0"),
        ("clip_norm", 0.0, "--clip-norm must be positive, got 0.0"),
        ("ema_decay", 1.0, "--ema-decay must be at least 0 and below 1, got 1.0"),
        ("ema_decay", -0.1, "--ema-decay must be at least 0 and below 1, got -0.1"),
        ("ema_decay", math.nan, "--ema-decay must be at least 0 and below 1, got nan"),
        ("l2", -1.0, "--l2 must be 0 or more and finite, got -1.0"),
        ("min_lr", math.inf, "--min-lr must be 0 or more and finite, got inf"),
        ("warmup_epochs", -0.5, "--warmup-epochs must be 0 or more and finite, got -0.5"),
        ("normalized_decay", math.nan, "--normalized-decay must be 0 or more and finite, got nan"),
    ],
)
def test_numbers_that_make_no_recipe(name: str, value: float, message: str) -> None:
    assert Recipe(**{name: value}).problems() == [message]
    assert Recipe().problems() == []


def test_a_compiled_step_is_not_recorded() -> None:
    assert Recipe(compile=True).problems() == Recipe(cuda_graphs=True).problems() == []
    assert Recipe(compile=True, cuda_graphs=True).problems() == ["--compile and --cuda-graphs exclude each other"]


def test_the_rate_falls_to_none_above_its_start() -> None:
    assert Recipe(optimizer="adamwr", lr=1e-5, min_lr=4e-5).problems() == [
        "--min-lr must be at most --lr, 1e-05, got 4e-05"
    ]
    for recipe in (
        Recipe("adamwr", lr=4e-5, min_lr=4e-5),
        Recipe("adamwr", min_lr=1.0),
        Recipe("adam", 1e-5, min_lr=1),
    ):
        assert recipe.problems() == []


def test_adamwr_decays_matrices_and_no_scalar() -> None:
    """Decay would draw a softplus's argument to 0, and its value away from it."""
    layer = nn.Linear(2, 2)
    layer.scale = nn.Parameter(torch.tensor(3.0))
    recipe = Recipe(optimizer="adamwr", lr=0.1, normalized_decay=0.5)
    optimizer, before = recipe.make_optimizer(layer), layer.weight.detach().clone()
    for parameter in layer.parameters():
        parameter.grad = torch.zeros_like(parameter)
    recipe.schedule(optimizer, 0.0, 100, 8)
    optimizer.step()
    assert layer.scale == 3 and layer.weight.abs().sum() < before.abs().sum()


def test_adagrads_accumulator_starts_at_a_tenth() -> None:
    layer = nn.Linear(1, 1, bias=False)
    optimizer = Recipe(optimizer="adagrad", lr=0.1).make_optimizer(layer)
    assert optimizer.state[layer.weight]["sum"].item() == pytest.approx(0.1)


def test_options_that_an_optimiser_does_not_read_are_told() -> None:
    paper = Recipe("adamwr", lr=1e-3, min_lr=1e-4)
    require_effect((paper, paper), (replace(paper, optimizer="adam"), paper))
    with pytest.raises(InputError) as told:
        require_effect((replace(paper, optimizer="adam", min_lr=0.1, l2=0.1, restart_factor=2), paper))
    assert str(told.value) == (
        "--min-lr 0.1: changes nothing with --optimizer adam; --restart-factor 2: changes nothing with --optimizer adam"
    )
    with pytest.raises(InputError, match=r"^--l2 0\.1: changes nothing with --optimizer adamwr$"):
        require_effect((replace(paper, l2=0.1), paper))
