"""How speeds are measured: which of the two stands above the line, and how far back a step goes."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from benchmarks import spent
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


@pytest.mark.parametrize(
    ("name", "kind"),
    {
        "aten::addmm": "products",
        "aten::bmm": "products",
        "aten::baddbmm": "products",
        "aten::addmv_": "products",
        "aten::convolution_backward": "products",
        "ampere_sgemm_32x128_nn": "products",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64>": "products",
        "aten::_fused_adam_": "optimiser",
        "multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>": "optimiser",
        "aten::_softmax_backward_data": "softmax and activations",
        "distribution_elementwise_grid_stride_kernel<float>": "random numbers",
        "aten::index_select": "gathering",
        "Memcpy DtoD (Device -> Device)": "copies",
        "Memset (Device)": "copies",
        "GammaBetaBackwardCUDAKernel<float>": "sums and the like",
        "aten::mul": "sums and the like",
        "aten::summary": "sums and the like",
    }.items(),
)
def test_work_is_told_apart_by_its_name(name: str, kind: str) -> None:
    assert spent.kind(name) == kind


def test_a_training_step_goes_down_to_inputs_and_parameters() -> None:
    layer = nn.Linear(3, 2)
    gradients = training_step(layer, torch.ones(4, 3))()
    assert [gradient.shape for gradient in gradients] == [(4, 3), layer.weight.shape, layer.bias.shape]
