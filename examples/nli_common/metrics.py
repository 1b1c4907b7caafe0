"""Accuracy: over all, per class, per phenomenon, and the confusion matrix behind them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.utils.data import DataLoader

from nli_common.data import Batch, Sentence
from nli_common.memory import LEAVE_OUT, memory_for

CELLS = 1 << 22
"""Numbers of a batch's score matrices, pairs times the square of the longest sentence, in one forward pass at most."""


class Metrics(TypedDict):
    """Accuracies are shares of 1; ``confusion`` has gold labels in its rows and predictions in its columns."""

    accuracy: float
    pairs: int
    per_class: dict[str, float]
    per_phenomenon: dict[str, float]
    confusion: list[list[int]]


def predictions(
    model: nn.Module, batches: "DataLoader[Batch]", accelerator: Accelerator, way_out: str = LEAVE_OUT
) -> tuple[Tensor, Tensor, Tensor]:
    """Predicted class, gold label and phenomenon of every pair, in the order of the batches, on every process."""
    rows = []
    for logits, batch in scores(model, batches, way_out):
        told = (logits.argmax(-1), batch.label, batch.phenomenon)
        rows.append(torch.stack(accelerator.gather_for_metrics(told)).cpu())
    predicted, label, phenomenon = torch.cat(rows, dim=1)
    return predicted, label, phenomenon


def scores(model: nn.Module, batches: Iterable[Batch], way_out: str = LEAVE_OUT) -> Iterator[tuple[Tensor, Batch]]:
    """The logits of each batch, ``(b, num_classes)``, and the batch; the model is in evaluation meanwhile.

    Args:
        model: maps sentences to logits.
        batches: on the model's device.
        way_out: what may help where there is not enough memory.
    """
    training = model.training
    model.eval()
    try:
        for batch in batches:
            parts = []
            for premise, hypothesis in _some_at_a_time(batch.premise, batch.hypothesis):
                with memory_for(premise, hypothesis, way_out), torch.inference_mode():
                    parts.append(model(premise, hypothesis))
            yield torch.cat(parts), batch
    finally:
        model.train(training)


def _some_at_a_time(premise: Sentence, hypothesis: Sentence) -> Iterator[tuple[Sentence, Sentence]]:
    """A batch whole or, where its longest sentence would make all of it too large, in parts with less padding."""
    pairs, longest = len(premise.tokens), max(premise.tokens.shape[1], hypothesis.tokens.shape[1])
    size = max(1, CELLS // longest**2)
    if size >= pairs:
        yield premise, hypothesis
        return
    for start in range(0, pairs, size):
        yield _rows(premise, start, start + size), _rows(hypothesis, start, start + size)


def _rows(sentence: Sentence, start: int, end: int) -> Sentence:
    """Some sentences of a batch, padded to the longest of them."""
    mask = sentence.mask[start:end]
    length = int(mask.sum(1).max())
    pos = None if sentence.pos is None else sentence.pos[start:end, :length]
    return Sentence(sentence.tokens[start:end, :length], mask[:, :length], pos)


def metrics_of(
    predicted: Tensor, label: Tensor, phenomenon: Tensor, labels: Sequence[str], phenomena: Sequence[str]
) -> Metrics:
    """The metrics of predictions, each ``(pairs,)`` of class or phenomenon numbers."""
    # It brings scipy and transformers where they are installed: seconds that a command which counts nothing is spared.
    from torchmetrics.functional.classification import multiclass_confusion_matrix

    confusion = multiclass_confusion_matrix(predicted, label, num_classes=len(labels))
    right = (predicted == label).double()
    return Metrics(
        accuracy=float(right.mean()),
        pairs=len(label),
        per_class={name: float(right[label == k].mean()) for k, name in enumerate(labels) if (label == k).any()},
        per_phenomenon={
            name: float(right[phenomenon == k].mean())
            for k, name in enumerate(phenomena)
            if name and (phenomenon == k).any()
        },
        confusion=confusion.tolist(),
    )
