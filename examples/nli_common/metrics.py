"""Accuracy: over all, per class, per phenomenon, and the confusion matrix behind them."""

from collections.abc import Sequence
from typing import TypedDict

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torchmetrics.functional.classification import multiclass_confusion_matrix

from nli_common.data import Batch


class Metrics(TypedDict):
    """Accuracies are shares of 1; ``confusion`` has gold labels in its rows and predictions in its columns."""

    accuracy: float
    pairs: int
    per_class: dict[str, float]
    per_phenomenon: dict[str, float]
    confusion: list[list[int]]


def evaluate(
    model: nn.Module,
    batches: "DataLoader[Batch]",
    accelerator: Accelerator,
    labels: Sequence[str],
    phenomena: Sequence[str],
) -> Metrics:
    """The metrics of a model over all batches; every process of a distributed run returns the same."""
    return metrics_of(*predictions(model, batches, accelerator), labels, phenomena)


@torch.inference_mode()
def predictions(
    model: nn.Module, batches: "DataLoader[Batch]", accelerator: Accelerator
) -> tuple[Tensor, Tensor, Tensor]:
    """Predicted class, gold label and phenomenon of every pair, in the order of the batches."""
    training = model.training
    model.eval()
    rows = []
    for batch in batches:
        predicted = model(batch.premise, batch.hypothesis).argmax(-1)
        rows.append(torch.stack(accelerator.gather_for_metrics((predicted, batch.label, batch.phenomenon))).cpu())
    model.train(training)
    predicted, label, phenomenon = torch.cat(rows, dim=1)
    return predicted, label, phenomenon


def metrics_of(
    predicted: Tensor, label: Tensor, phenomenon: Tensor, labels: Sequence[str], phenomena: Sequence[str]
) -> Metrics:
    """The metrics of predictions, each ``(pairs,)`` of class or phenomenon numbers."""
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
