"""How speeds are measured: which of the two stands above the line, and how far back a step goes."""

import time

import torch
from benchmarks.measure import compare, training_step
from torch import nn


def test_ours_stands_above_the_line() -> None:
    found = compare(lambda: time.sleep(0.004), {"fast": lambda: time.sleep(0.001)}, rounds=3, round_seconds=0.01)
    assert found.ratios["fast"].median > 2 and found.seconds["ours"].median > found.seconds["fast"].median


def test_a_training_step_goes_down_to_inputs_and_parameters() -> None:
    layer = nn.Linear(3, 2)
    gradients = training_step(layer, torch.ones(4, 3))()
    assert [gradient.shape for gradient in gradients] == [(4, 3), layer.weight.shape, layer.bias.shape]
