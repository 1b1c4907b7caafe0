"""``torch.compile(fullgraph=True, dynamic=True)`` beside eager, over batches of many shapes."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._dynamo.utils import counters
from torch.utils._pytree import tree_map_only

from reliability.subjects import Shape, Subject, deviation, gradients

DRAWS = 5
UNDECIDED = 1e-5
"""A larger difference between float32 and float64 is a unit on the other side of 0."""


class Compiled(NamedTuple):
    """What so many shapes made of a module: the graphs that were compiled, and the largest deviation."""

    graphs: int
    deviation: float


def inference(subject: Subject, shapes: Sequence[Shape], backend: str) -> Compiled:
    """Outputs, without gradients."""

    def outputs(call: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
        with torch.no_grad():
            return call(*inputs)

    return _compiled(subject, shapes, backend, outputs)


def step(subject: Subject, shapes: Sequence[Shape], backend: str) -> Compiled:
    """Outputs and gradients of a training step."""
    return _compiled(subject, shapes, backend, lambda call, inputs: gradients(call, subject.module, inputs))


def _compiled(
    subject: Subject, shapes: Sequence[Shape], backend: str, taken: Callable[[Callable[..., Any], tuple[Any, ...]], Any]
) -> Compiled:
    torch._dynamo.reset()
    # A backend counts its calls, and is called again when a trace starts over, as it does with dropout's probability.
    counters.clear()
    worst = 0.0
    with torch._dynamo.config.patch(allow_rnn=subject.case.recurrent):
        compiled = torch.compile(subject.module, fullgraph=True, dynamic=True, backend=backend)
        for shape in shapes:
            inputs = decided(subject, shape)
            worst = max(worst, deviation(taken(compiled, inputs), taken(subject.module, inputs)))
    return Compiled(counters["stats"]["unique_graphs"], worst)


def decided(subject: Subject, shape: Shape) -> tuple[Any, ...]:
    """A batch whose gradients float32 has as float64 has them, the first that the seeds draw.

    A rectified unit within rounding of 0 has a gradient on one side of it and none on the other: on such a batch eager
    float32 is as far from float64 as compiled code is from eager.
    """
    exact = copy.deepcopy(subject.module).double()
    for seed in range(DRAWS):
        inputs = subject.inputs(shape, seed)
        raised = tree_map_only(Tensor, lambda x: x.double() if x.is_floating_point() else x, inputs)
        single, double = gradients(subject.module, subject.module, inputs), gradients(exact, exact, raised)
        if deviation([x.double() for x in single], double) < UNDECIDED:
            return inputs
    raise AssertionError(f"{shape}: none of {DRAWS} batches has the gradients of float64 in float32")
