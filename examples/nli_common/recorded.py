"""Training steps that a GPU has recorded: it takes less time for a small batch's kernels than Python to launch them."""

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import torch
from accelerate.utils import send_to_device
from torch import Tensor, nn
from torch.nn.functional import pad

from nli_common.data import Batch, Sentence
from nli_common.errors import InputError

MULTIPLE = 4
"""Sentences are padded to a multiple of it, so that there are fewer shapes to record."""
MOST = 256
"""Shapes that are recorded at most; batches of further ones are taken without a graph."""

_Shape: TypeAlias = tuple[torch.Size, torch.Size]
Gradients: TypeAlias = Callable[[Batch], Tensor]
"""Adds a batch's gradients to those of the parameters, and returns its loss."""


class RecordedGradients:
    """A batch's gradients from a CUDA graph, one for each shape of batch.

    The first batch of a shape is taken without a graph, so that all libraries are ready for it. The second is
    recorded. From then on the record is replayed: all kernels of the forward and the backward pass by one call, with
    the dropout of the generator's seed. What is learnt does not depend on which batches are.

    Args:
        gradients: is recorded; it must not wait for a value.
        parameters: get their gradients. They must stay where they are.
        device: a CUDA device.
        multiple: what the lengths of sentences are padded to.
    """

    def __init__(
        self,
        gradients: Gradients,
        parameters: Iterable[nn.Parameter],
        device: torch.device,
        multiple: int = MULTIPLE,
    ) -> None:
        self.gradients, self.device, self.multiple = gradients, device, multiple
        self.held = {weight: torch.zeros_like(weight) for weight in parameters if weight.requires_grad}
        self.records: dict[_Shape, _Record] = {}
        self.seen: set[_Shape] = set()
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, batch: Batch) -> Tensor:
        """The loss of a batch, until the next call; the parameters have its gradients, and no others.

        Args:
            batch: on the CPU.

        Raises:
            InputError: if it cannot be recorded.
        """
        premise, hypothesis = (padded(side, self.multiple) for side in (batch.premise, batch.hypothesis))
        batch = batch._replace(premise=premise, hypothesis=hypothesis)
        shape = premise.tokens.shape, hypothesis.tokens.shape
        if shape not in self.records:
            if shape not in self.seen or len(self.records) == MOST:
                self.seen.add(shape)
                self._give(())
                return self.gradients(send_to_device(batch, self.device))
            self.records[shape] = self._record(send_to_device(batch, self.device))
        record = self.records[shape]
        for mine, given in zip(_tensors(record.batch), _tensors(batch), strict=True):
            mine.copy_(given)
        record.graph.replay()
        self._give(record.trained)
        return record.loss

    def _record(self, batch: Batch) -> "_Record":
        self._give(())
        graph = torch.cuda.CUDAGraph()
        try:
            with recording(graph, self.device, self.pool):
                loss = self.gradients(batch)
                found = {weight: weight.grad for weight in self.held if weight.grad is not None}
                # The records share their memory: what is to last beyond the next one's replay has its own place.
                torch._foreach_copy_([self.held[weight] for weight in found], list(found.values()))
        except RuntimeError as error:
            if "captur" not in str(error):
                raise
            problem = str(error).partition("\n")[0]
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
def recording(graph: torch.cuda.CUDAGraph, device: torch.device, pool: Any) -> Iterator[None]:
    """Within, a device does nothing, and a graph takes down what it would have done.

    An error from within is the one that is raised, and not the one that it leads to at the end.
    """
    first: Exception | None = None
    was = gc.isenabled()
    # A graph among the garbage, of an earlier training, would spoil this one as it is destroyed.
    gc.disable()
    try:
        with (
            torch.cuda.device(device),
            torch.cuda.stream(torch.cuda.current_stream(device)),  # where torch.cuda.graph does not return if it fails
            torch.cuda.graph(graph, pool=pool),
        ):
            try:
                yield
            except Exception as error:
                first = error
                raise
    except Exception:
        if first is None:
            raise
        raise first from None
    finally:
        if was:
            gc.enable()


def padded(sentence: Sentence, multiple: int) -> Sentence:
    """Sentences with as much padding more as makes their length a multiple of a number."""
    extra = (0, -sentence.tokens.shape[1] % multiple)
    tags = None if sentence.pos is None else pad(sentence.pos, extra)
    return Sentence(pad(sentence.tokens, extra), pad(sentence.mask, extra), tags)


def _tensors(batch: Batch) -> list[Tensor]:
    return [part for part in (*batch.premise, *batch.hypothesis, batch.label) if part is not None]
