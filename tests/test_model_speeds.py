"""How whole models are timed: what a step does, under which name it goes, and what its products count."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from benchmarks import models
from benchmarks.measure import Comparison, Timing
from torch import Tensor, nn
from torch.testing import assert_close

import cuda_graphs
from nli_common.data import Sentence


class Small(nn.Module):
    """A model that keeps how it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.classes = nn.Embedding(models.WORDS, 4), nn.Linear(8, 3)
        self.calls: list[tuple[bool, bool]] = []

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        self.calls.append((self.training, torch.is_grad_enabled()))
        sides = [(self.words(side.tokens) * side.mask[..., None]).sum(1) for side in (premise, hypothesis)]
        return self.classes(torch.cat(sides, dim=-1))


PAIR = (models.sentence(5, 7, "cpu", 0), models.sentence(5, 4, "cpu", 1))


def moved(model: nn.Module, step: Callable[[], object]) -> bool:
    before = [parameter.clone() for parameter in model.parameters()]
    step()
    return not all(map(torch.equal, before, model.parameters()))


def test_training_moves_the_weights_and_inference_leaves_them() -> None:
    model = Small()
    train, infer = models.steps(model, *PAIR)
    assert moved(model, train) and not moved(model, infer) and moved(model, train)
    assert model.calls == [(True, True), (False, False), (True, True)]


def test_a_recorded_step_moves_the_weights_as_the_step_does(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_graphs.on_the_cpu(monkeypatch)
    model, twin = Small(), Small()
    twin.load_state_dict(model.state_dict())
    step, (train, _) = models.recorded_step(model, *PAIR), models.steps(twin, *PAIR)
    for _ in range(4):
        assert moved(model, step)
        train()
    assert_close(list(model.parameters()), list(twin.parameters()))
    assert len(model.calls) == 2 and len(twin.calls) == 4, "the third and fourth were replayed"


def test_every_recorded_step_is_compared_with_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_graphs.on_the_cpu(monkeypatch)
    monkeypatch.setattr(models, "models", lambda device: {"small": Small()})
    compared: list[tuple[Any, Any]] = []

    def compare(ours: Callable[[], Tensor], rivals: Mapping[str, Callable[[], Tensor]], **_: Any) -> Comparison:
        compared.append((ours().detach(), rivals["eager"]().detach()))
        return Comparison({}, {}, 1)

    monkeypatch.setattr(models, "compare", compare)
    found = [(name, lengths) for name, lengths, _ in models.recorded("cpu")]
    assert found == [("small", lengths) for lengths in models.LENGTHS]
    assert all(float(ours) == pytest.approx(float(eager), rel=1e-4) for ours, eager in compared)


def test_the_memory_of_a_record_leaves_out_what_all_share(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_graphs.on_the_cpu(monkeypatch)
    monkeypatch.setattr(models, "models", lambda device: {models.RIVAL: Small()})
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    free = iter([900.0, 500.0, *(500.0 - 3 * k for k in range(1, 29))])
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (next(free), 1000.0))
    assert models.memory_of_a_record("cpu") == 3


def test_no_step_of_training_makes_the_next_ones_another_task() -> None:
    """A model that has learnt its batch has gradients so small that some processors take tens of times as long."""
    train, _ = models.steps(Small(), *PAIR)
    losses = [train().item() for _ in range(300)]
    assert losses[0] > 0.1 and losses[-1] == pytest.approx(losses[0], rel=1e-3)


def test_inference_keeps_nothing_for_a_backward_pass() -> None:
    _, infer = models.steps(Small(), *PAIR)
    assert infer().is_inference()


def test_sentences_are_masked_behind_their_ends() -> None:
    drawn = models.sentence(40, 9, "cpu", 0)
    lengths = drawn.mask.sum(1).tolist()
    assert drawn.tokens.shape == drawn.mask.shape == (40, 9)
    assert lengths[0] == 9 and set(lengths) == {5, 6, 7, 8, 9}
    assert drawn.mask.tolist() == [[place < length for place in range(9)] for length in lengths]
    assert not drawn.tokens[~drawn.mask].any() and drawn.tokens[drawn.mask].any()


def test_products_are_counted_as_by_hand() -> None:
    x = torch.randn(3, 7, 5)
    linear, lstm = nn.Linear(5, 4), nn.LSTM(5, 4, batch_first=True)
    assert models.product_flops(lambda: linear(x)) == 2 * (3 * 7) * 5 * 4
    assert models.product_flops(lambda: lstm(x)) == 2 * (3 * 7) * (5 + 4) * (4 * 4)
    backward = models.product_flops(lambda: linear(x).sum().backward())
    assert backward == 2 * models.product_flops(lambda: linear(x)), "words need no gradient"


def test_the_rate_of_a_product_counts_what_a_models_products_do(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[float] = []

    def compare(ours: Callable[[], object], rivals: object, rounds: int) -> Comparison:
        counted.append(models.product_flops(ours))
        return Comparison({"ours": Timing.of([2.0])}, {}, rounds)

    monkeypatch.setattr(models, "compare", compare)
    assert models.product_rate("cpu") == counted[0] / 2


def test_every_figure_is_that_of_its_model_and_of_its_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a model is its name, a step its model and phase; a step's time is the step."""

    def compare(ours: Any, rivals: Mapping[str, Any], **_: object) -> Comparison:
        return Comparison({"ours": ours, **rivals}, {}, 1)

    monkeypatch.setattr(models, "models", lambda device: {name: name for name in ("A", models.RIVAL, "B")})
    monkeypatch.setattr(models, "steps", lambda model, *pair: ((model, "train"), (model, "infer")))
    monkeypatch.setattr(models, "product_flops", lambda step: step)
    monkeypatch.setattr(models, "compare", compare)
    monkeypatch.setattr(models.spent, "shares", lambda step, device: step)
    found = list(models.run("cpu"))
    places = [(n, b, name) for n in models.LENGTHS for b in models.BATCHES for name in ("A", models.RIVAL, "B")]
    assert [(speed.lengths, speed.batch, speed.model) for speed in found] == places
    for speed in found:
        assert speed.training == speed.flops == speed.spent == (speed.model, "train")
        assert speed.inference == (speed.model, "infer")


def test_a_compiled_step_stands_above_the_line_and_the_same_models_own_below(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Small()
    monkeypatch.setattr(models, "models", lambda device: {"Small": small})
    monkeypatch.setattr(models, "steps", lambda model, *pair: (model, None))
    monkeypatch.setattr(models, "compare", lambda ours, rivals, **_: (ours, rivals))
    monkeypatch.setattr(nn.Module, "compile", lambda self, **_: setattr(self, "is_compiled", True))
    [(name, (ours, rivals))] = models.compiled("cpu")
    assert name == "Small" and rivals == {"eager": small}
    assert ours.is_compiled and not hasattr(small, "is_compiled")
    assert all(map(torch.equal, ours.parameters(), small.parameters()))
