"""How a speed is measured: rivals take turns in one process, and a ratio is the median of their rounds' ratios."""

import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.benchmark import Timer

from benchmarks.memory import held_at_most

Step = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: the median of the rounds, and the quartiles around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Timing":
        """The summary of one figure for each round."""
        if len(seconds) == 1:
            return cls(seconds[0], seconds[0], seconds[0])
        low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
        return cls(median, low, high)


@dataclass(frozen=True)
class Comparison:
    """One thing against its named rivals."""

    seconds: dict[str, Timing]
    ratios: dict[str, Timing]
    """Ours divided by each rival, round by round: what slows a whole round down slows both."""
    rounds: int


def compare(ours: Step, rivals: Mapping[str, Step], *, rounds: int = 15, round_seconds: float = 0.05) -> Comparison:
    """Time each in turn, round after round.

    Args:
        ours: what is measured.
        rivals: what it is measured against.
        rounds: how often each has its turn.
        round_seconds: a turn repeats its call for about so long.
    """
    settle_allocator()
    steps = {"ours": ours, **rivals}
    timers = {
        name: Timer("step()", globals={"step": step}, num_threads=torch.get_num_threads())
        for name, step in steps.items()
    }
    repeats = {}
    for name, timer in timers.items():
        timer.timeit(2)
        repeats[name] = max(1, round(round_seconds / timer.timeit(1).mean))
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, timer in timers.items():
            seconds[name].append(timer.timeit(repeats[name]).mean)
    ratios = {name: Timing.of([a / b for a, b in zip(seconds["ours"], seconds[name], strict=True)]) for name in rivals}
    return Comparison({name: Timing.of(times) for name, times in seconds.items()}, ratios, rounds)


def settle_allocator() -> None:
    """Bring the C library's allocator where a training that runs for a while has it.

    At the start of a process it returns every tensor of some 100 KB to the system; it stops that for tensors up to the
    size of the largest one that was returned, at most 32 MiB. Which of the rivals pays for it would be chance.
    """
    torch.zeros(8_000_000)


def training_step(module: nn.Module, *inputs: Tensor) -> Step:
    """A forward and a backward pass, down to inputs and parameters; nothing is summed up from call to call."""
    leaves = [x.detach().requires_grad_(x.dtype.is_floating_point) for x in inputs]
    wanted = [x for x in leaves if x.requires_grad] + [p for p in module.parameters() if p.requires_grad]
    made = _tensors(module(*leaves))
    cotangents = [torch.randn_like(y) for y in made]

    def step() -> object:
        return torch.autograd.grad(_tensors(module(*leaves)), wanted, cotangents)

    return step


def inference_step(module: nn.Module, *inputs: Tensor) -> Step:
    """A forward pass that keeps nothing for a backward one."""

    def step() -> object:
        with torch.inference_mode():
            return module(*inputs)

    return step


def _tensors(y: object) -> list[Tensor]:
    return list(y) if isinstance(y, tuple) else [y]  # type: ignore[list-item]  # modules return tensors or tuples


def peak_memory(build: Callable[[], Step], device: str) -> float:
    """Bytes that a module, its input and one step need at their peak, beyond what was there before them.

    A process has one peak: on CPU, call it once in a process of its own, and behind a smaller step: the first of all
    takes some 50 MiB for what it loads.
    """
    if device == "cuda":
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        build()()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    before = held_at_most()
    build()()
    return held_at_most() - before
