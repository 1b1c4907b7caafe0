"""How speeds are measured: which of the two stands above the line, and how far back a step goes."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from benchmarks.measure import compare, training_step
from torch import nn


class Clock:
    """A timer for steps that say how long they take."""

    def __init__(self, stmt: str, globals: dict[str, Callable[[], float]], num_threads: int) -> None:  # noqa: A002 - as it is called
        self.step = globals["step"]

    def timeit(self, number: int) -> Any:
        return SimpleNamespace(mean=self.step())


def test_ours_stands_above_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.measure.Timer", Clock)
    found = compare(lambda: 4.0, {"fast": lambda: 1.0, "slow": lambda: 8.0}, rounds=3)
    assert {name: ratio.median for name, ratio in found.ratios.items()} == {"fast": 4, "slow": 0.5}
    assert found.seconds["ours"].median == 4 and found.rounds == 3


def test_a_training_step_goes_down_to_inputs_and_parameters() -> None:
    layer = nn.Linear(3, 2)
    gradients = training_step(layer, torch.ones(4, 3))()
    assert [gradient.shape for gradient in gradients] == [(4, 3), layer.weight.shape, layer.bias.shape]
