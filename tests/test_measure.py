"""How speeds and peaks are measured: whose turn it is, what is divided by what, and how far back a step goes."""

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from benchmarks import spent
from benchmarks.measure import Timing, compare, peak_memory, training_step
from torch import nn


class Clock:
    """A timer for steps that say how long they take."""

    turns: ClassVar[list[tuple[Callable[[], float], int]]] = []
    threads: ClassVar[set[int]] = set()

    def __init__(self, stmt: str, globals: dict[str, Callable[[], float]], num_threads: int) -> None:  # noqa: A002 - as it is called
        self.step = globals["step"]
        self.threads.add(num_threads)

    def timeit(self, number: int) -> Any:
        self.turns.append((self.step, number))
        return SimpleNamespace(mean=self.step())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    monkeypatch.setattr("benchmarks.measure.Timer", Clock)
    monkeypatch.setattr(Clock, "turns", [])
    monkeypatch.setattr(Clock, "threads", set())
    return Clock


def taking(*seconds: float) -> Callable[[], float]:
    """A step that takes so long when it is first timed, then so long, …"""
    return iter(seconds).__next__


@pytest.mark.usefixtures("clock")
def test_ours_stands_above_the_line() -> None:
    found = compare(lambda: 4.0, {"fast": lambda: 1.0, "slow": lambda: 8.0}, rounds=3)
    assert {name: ratio.median for name, ratio in found.ratios.items()} == {"fast": 4, "slow": 0.5}
    assert found.seconds["ours"].median == 4 and found.rounds == 3


@pytest.mark.usefixtures("clock")
def test_a_ratio_is_that_of_two_turns_of_one_round() -> None:
    found = compare(taking(7, 7, 1, 2, 9), {"other": taking(7, 7, 2, 8, 3)}, rounds=3)
    assert found.ratios["other"] == Timing(0.5, low=0.375, high=1.75)
    assert (found.seconds["ours"].median, found.seconds["other"].median) == (2, 3)


@pytest.mark.usefixtures("clock")
def test_the_first_calls_are_not_counted() -> None:
    found = compare(taking(100, 50, 1, 1), {"other": taking(200, 100, 1, 1)}, rounds=2)
    assert found.seconds == {"ours": Timing(1, 1, 1), "other": Timing(1, 1, 1)}


def test_each_has_its_turn_in_every_round_and_repeats_its_call_for_about_as_long(clock: type[Clock]) -> None:
    steps = {"ours": lambda: 0.01, "long": lambda: 3.0}
    found = compare(steps["ours"], {"long": steps["long"]}, rounds=3, round_seconds=0.05)
    names = {step: name for name, step in steps.items()}
    turns = [(names[step], number) for step, number in clock.turns]
    assert turns[:-6] == [("ours", 2), ("ours", 1), ("long", 2), ("long", 1)]
    assert turns[-6:] == [("ours", 5), ("long", 1)] * 3
    assert found.seconds["ours"].median == 0.01, "of one call"


def test_all_threads_are_timed(clock: type[Clock], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    compare(lambda: 1.0, {"other": lambda: 1.0}, rounds=1)
    assert clock.threads == {7}


def test_a_timing_has_the_quartiles_of_its_rounds() -> None:
    assert Timing.of([5.0, 1.0, 4.0, 2.0, 3.0]) == Timing(median=3, low=2, high=4)
    assert Timing.of([7.0]) == Timing(7, 7, 7)


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


def test_each_step_of_training_goes_forward_anew() -> None:
    layer, calls = nn.Linear(3, 2), []
    step = training_step(layer, torch.ones(4, 3))
    layer.register_forward_hook(lambda *_: calls.append("forward"))
    by_inputs = [step()[0]]
    with torch.no_grad():
        layer.weight.mul_(2)
    by_inputs.append(step()[0])
    assert len(calls) == 2
    torch.testing.assert_close(by_inputs[1], 2 * by_inputs[0])


def test_shares_are_of_the_time_that_each_operator_takes_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def event(key: str, own: int, total: int) -> Any:
        return SimpleNamespace(key=key, self_cpu_time_total=own, cpu_time_total=total)

    events = [event("aten::linear", 10, 100), event("aten::addmm", 70, 90), event("aten::copy_", 20, 20)]
    record = SimpleNamespace(key_averages=lambda: events)
    monkeypatch.setattr(spent, "profile", lambda activities: nullcontext(record))
    found = spent.shares(lambda: calls.append(1), "cpu")
    assert {kind: share for kind, share in found.items() if share} == {
        "products": 0.7,
        "copies": 0.2,
        "sums and the like": 0.1,
    }
    assert len(calls) == 1 + spent.STEPS


def test_shares_of_a_step_add_up_to_one() -> None:
    shares = spent.shares(training_step(nn.Linear(3, 2), torch.ones(4, 3)), "cpu")
    assert sum(shares.values()) == pytest.approx(1) and shares["products"] > 0


def test_a_peak_is_what_a_step_needs_beyond_what_was_held_before(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [100.0]
    monkeypatch.setattr("benchmarks.measure.held_at_most", lambda: max(held))

    def build() -> Callable[[], None]:
        held.append(held[-1] + 5)
        return lambda: held.extend([held[-1] + 20, held[-1]])

    assert peak_memory(build, "cpu") == 25


def test_a_peak_on_cuda_is_not_that_of_what_ran_before(monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimpleNamespace(now=30, most=1000)

    def allocate(size: int) -> None:
        device.now += size
        device.most = max(device.most, device.now)

    def build() -> Callable[[], None]:
        allocate(5)
        return lambda: (allocate(20), allocate(-20))

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: setattr(device, "most", device.now))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: device.now)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: device.most)
    assert peak_memory(build, "cuda") == 25
