"""Training steps that a GPU has recorded: it takes less time for a small batch's kernels than Python to launch them."""

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from accelerate.utils import send_to_device
from torch import Tensor, nn
from torch.nn.functional import pad

from nli_common.data import Batch, Sentence
from nli_common.errors import InputError

MULTIPLE = 4
"""Sentences are padded to a multiple of it, so that there are fewer shapes to record."""

Gradients = Callable[[Batch], Tensor]
"""Adds a batch's gradients to those of the parameters, and returns its loss."""


class RecordedGradients:
    """A batch's gradients from a CUDA graph, one for each shape of batch.

    The first batch of a shape is taken as ever, so that all libraries are ready for it. The second is recorded. From
    then on the record is replayed: all kernels of the forward and the backward pass by one call, with the dropout of
    the generator's seed.

    Args:
        gradients: is recorded; it must not wait for a value.
        parameters: get their gradients. They must stay where they are.
        device: a CUDA device.
    """

    def __init__(self, gradients: Gradients, parameters: Iterable[nn.Parameter], device: torch.device) -> None:
        self.gradients, self.device = gradients, device
        self.held = {weight: torch.zeros_like(weight) for weight in parameters if weight.requires_grad}
        self.records: dict[tuple[torch.Size, torch.Size], _Record | None] = {}
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, batch: Batch) -> Tensor:
        """The loss of a batch, until the next call; the parameters have its gradients, and no others.

        Args:
            batch: on the CPU.

        Raises:
            InputError: if it cannot be recorded.
        """
        batch = batch._replace(premise=_padded(batch.premise), hypothesis=_padded(batch.hypothesis))
        shape = batch.premise.tokens.shape, batch.hypothesis.tokens.shape
        if shape not in self.records:
            self.records[shape] = None
            self._give(())
            return self.gradients(send_to_device(batch, self.device))
        record = self.records[shape] = self.records[shape] or self._record(send_to_device(batch, self.device))
        for mine, given in zip(_tensors(record.batch), _tensors(batch), strict=True):
            mine.copy_(given)
        record.graph.replay()
        self._give(record.trained)
        return record.loss

    def _record(self, batch: Batch) -> "_Record":
        self._give(())
        graph = torch.cuda.CUDAGraph()
        try:
            with _no_garbage_collected(), torch.cuda.graph(graph, pool=self.pool):
                loss = self.gradients(batch)
                found = {weight: weight.grad for weight in self.held if weight.grad is not None}
                # The records share their memory: what is to last beyond the next one's replay has its own place.
                torch._foreach_copy_([self.held[weight] for weight in found], list(found.values()))
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            problem = str(error).splitlines()[0]
            raise InputError(f"--cuda-graphs: a step of this model cannot be recorded ({problem})") from error
        return _Record(graph, batch, loss, list(found))

    def _give(self, trained: Iterable[nn.Parameter]) -> None:
        for weight in self.held:
            weight.grad = None
        for weight in trained:
            weight.grad = self.held[weight]


class _Record(NamedTuple):
    graph: torch.cuda.CUDAGraph
    batch: Batch
    """What the graph reads."""
    loss: Tensor
    """What it writes, beside gradients."""
    trained: list[nn.Parameter]
    """The parameters that it has gradients of."""


@contextlib.contextmanager
def _no_garbage_collected() -> Iterator[None]:
    """Within: another graph among the garbage, of an earlier training, would spoil the record as it is destroyed."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _padded(sentence: Sentence) -> Sentence:
    extra = (0, -sentence.tokens.shape[1] % MULTIPLE)
    tags = None if sentence.pos is None else pad(sentence.pos, extra)
    return Sentence(pad(sentence.tokens, extra), pad(sentence.mask, extra), tags)


def _tensors(batch: Batch) -> list[Tensor]:
    return [part for part in (*batch.premise, *batch.hypothesis, batch.label) if part is not None]
