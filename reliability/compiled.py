"""``torch.compile(fullgraph=True, dynamic=True)`` beside eager, over batches of many shapes."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch._dynamo.utils import counters

from reliability.subjects import Shape, Subject, deviation, gradients


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
            inputs = subject.inputs(shape)
            worst = max(worst, deviation(taken(compiled, inputs), taken(subject.module, inputs)))
    return Compiled(counters["stats"]["unique_graphs"], worst)
