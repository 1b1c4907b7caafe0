"""The moving average of weights against its formula, and against a loop that keeps every step."""

import contextlib

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from nli_common.averaging import WeightAverage
from strategies import normal


def moved(model: nn.Module, step: int) -> list[torch.Tensor]:
    """The weights after they were drawn anew."""
    for k, parameter in enumerate(model.parameters()):
        parameter.data.copy_(normal(100 * step + k, *parameter.shape))
    return [parameter.detach().clone() for parameter in model.parameters()]


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9, 0.999])
def test_the_average_is_that_of_all_steps(decay: float) -> None:
    """Each with the weight that the decays of the steps behind it leave to it."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).double()
    average, steps = WeightAverage(model, decay), []
    for step in range(1, 30):
        steps.append(moved(model, step))
        average.update()
        shares = [1.0]
        for t in range(2, step + 1):
            kept = min(decay, t / (9 + t))
            shares = [share * kept for share in shares] + [1 - kept]
        expected = [sum(w * x[k] for w, x in zip(shares, steps, strict=True)) for k in range(4)]
        with average.in_use():
            assert_close(list(model.parameters()), expected, atol=1e-12, rtol=0, check_dtype=False)
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), steps[-1], strict=True))


def test_the_start_is_forgotten_soon() -> None:
    """Of the first step's weights, a ten-thousandth is left after 22 steps, however slow the decay in the long run."""
    model = nn.Linear(1, 1, bias=False).double()
    average = WeightAverage(model, 0.9999)
    for step in range(23):
        model.weight.data.fill_(float(step == 0))
        average.update()
    with average.in_use():
        assert 0 < model.weight.item() < 1e-4


def test_weights_that_are_not_trained_are_left_out() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[0].requires_grad_(False)
    average = WeightAverage(model, 0.5)
    assert [tuple(x.shape) for x in average.state_dict().values()] == [(), (3, 3), (3,)]
    frozen = moved(model, 1)[:2]
    average.update()
    moved(model, 2)[2:]
    model[0].load_state_dict(dict(zip(("weight", "bias"), frozen, strict=True)))
    with average.in_use():
        assert torch.equal(model[0].weight, frozen[0]) and torch.equal(model[0].bias, frozen[1])


def test_a_weight_of_two_layers_is_one() -> None:
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    average = WeightAverage(model, 0.5)
    first = moved(model, 1)
    average.update()
    moved(model, 2)
    with average.in_use():
        assert model[1].weight is model[0].weight and torch.equal(model[0].weight, first[0])


def test_an_error_within_gives_the_model_its_own_weights_back() -> None:
    model = nn.Linear(3, 2)
    average = WeightAverage(model, 0.5)
    moved(model, 1)
    average.update()
    own = moved(model, 2)
    with pytest.raises(KeyboardInterrupt), average.in_use():
        assert not torch.equal(model.weight, own[0])
        raise KeyboardInterrupt
    assert torch.equal(model.weight, own[0]) and torch.equal(model.bias, own[1])


@pytest.mark.parametrize("operation", range(5))
def test_an_interruption_at_the_entry_costs_neither_the_weights_nor_the_average(operation: int) -> None:
    """At any operation before the block is entered, of which there are four: the weights are kept, and exchanged."""

    class Interrupted(TorchDispatchMode):
        left = operation

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            result = function(*args, **(kwargs or {}))
            if function in (torch.ops.aten.clone.default, torch.ops.aten.copy_.default):
                self.left -= 1
                if self.left == -1:
                    raise KeyboardInterrupt
            return result

    model = nn.Linear(3, 2)
    average = WeightAverage(model, 0.5)
    first = moved(model, 1)
    average.update()
    own, interrupted = moved(model, 2), Interrupted()
    with interrupted, contextlib.suppress(KeyboardInterrupt), average.in_use():
        assert operation == 4
        interrupted.left = 100
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), own, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(average.module.parameters(), first, strict=True))


def test_an_average_learns_from_the_weights_alone() -> None:
    """It goes on from what a checkpoint kept, and its use leaves no trace."""
    model = nn.Linear(3, 2).double()
    first, second = WeightAverage(model, 0.9), WeightAverage(model, 0.9)
    for step in range(5):
        moved(model, step)
        first.update()
        with first.in_use():
            pass
    second.load_state_dict(first.state_dict())
    for average in (first, second):
        for step in range(5, 8):
            moved(model, step)
            average.update()
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert int(first.n_averaged) == 8
