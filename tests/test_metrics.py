"""Accuracies and the confusion matrix, counted by hand."""

import pytest
import torch

from nli_common.metrics import metrics_of


def test_metrics_counted_by_hand() -> None:
    predicted, label = torch.tensor([0, 2, 2, 1, 0, 0]), torch.tensor([0, 0, 2, 1, 1, 0])
    found = metrics_of(predicted, label, torch.tensor([1, 1, 2, 2, 2, 0]), ("a", "b", "c"), ("", "x", "y"))
    assert found["confusion"] == [[2, 0, 1], [1, 1, 0], [0, 0, 1]], "gold labels in rows"
    assert found["per_class"] == pytest.approx({"a": 2 / 3, "b": 1 / 2, "c": 1.0})
    assert found["per_phenomenon"] == pytest.approx({"x": 1 / 2, "y": 2 / 3})
    assert found["accuracy"] == pytest.approx(4 / 6) and found["pairs"] == 6
