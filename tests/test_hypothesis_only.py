"""The hypothesis-only baseline: what it is, and what it must never see."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

import models
from hypothesis_only import HypothesisOnly, HypothesisOnlyConfig
from models import full, reordered, sentences
from nli_common.data import Sentence


def model_of(**options: object) -> HypothesisOnly:
    model = models.randomised(HypothesisOnly(HypothesisOnlyConfig(**{"hidden_size": 5, **options}), models.TINY))
    assert isinstance(model, HypothesisOnly)
    return model


def relu_layer(x: list[float], weight: list[list[float]], bias: list[float]) -> list[float]:
    rows = zip(weight, bias, strict=True)
    return [max(0.0, math.fsum(w * v for w, v in zip(row, x, strict=True)) + b) for row, b in rows]


@given(premise=sentences(), hypothesis=sentences())
def test_the_whole_forward_equals_the_loop(premise: Sentence, hypothesis: Sentence) -> None:
    model = model_of()
    word, hidden, scores = (
        (layer.weight.tolist(), layer.bias.tolist()) for layer in model.modules() if isinstance(layer, nn.Linear)
    )
    logits = model(premise, hypothesis)
    for row in range(len(logits)):
        vectors = models.TINY.vectors[hypothesis.tokens[row][hypothesis.mask[row]]].tolist()
        columns = list(zip(*(relu_layer(vector, *word) for vector in vectors), strict=True))
        pooled = [*(max(c) for c in columns), *(math.fsum(c) / len(c) for c in columns)]
        h = relu_layer(pooled, *hidden)
        expected = [math.fsum(w * v for w, v in zip(r, h, strict=True)) + b for r, b in zip(*scores, strict=True)]
        assert_close(logits[row], torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=1e-9)


@pytest.mark.parametrize("place", range(3))
def test_dropout_is_where_it_is_said_to_be(place: int) -> None:
    """On the words' vectors, and before both layers of the classifier: each alone changes what training sees."""
    model = model_of(dropout=0.5).train()
    found = [part for part in model.modules() if isinstance(part, nn.Dropout)]
    assert len(found) == 3
    for k, part in enumerate(found):
        part.p = 0.5 * (k == place)
    seen: list[torch.Tensor] = []
    found[place].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    sentence = full([1, 2, 3])
    expected = model.eval()(sentence, sentence)
    assert any(not torch.equal(model.train()(sentence, sentence), expected) for _ in range(20))
    assert seen[0].shape[-1] == (models.TINY.dim, 10, 5)[place]


@given(premise=sentences(), other=sentences(), hypothesis=sentences())
def test_the_premise_changes_nothing(premise: Sentence, other: Sentence, hypothesis: Sentence) -> None:
    model = model_of()
    logits = model(premise, hypothesis)
    assert torch.equal(model(other, hypothesis), logits)
    assert torch.equal(model(Sentence(torch.full((3, 1), -1), torch.zeros(3, 1, dtype=torch.bool)), hypothesis), logits)


@given(hypothesis=sentences(), data=st.data())
def test_word_order_and_repetition_change_nothing(hypothesis: Sentence, data: st.DataObject) -> None:
    model = model_of()
    logits = model(hypothesis, hypothesis)
    order = data.draw(st.permutations(range(hypothesis.tokens.shape[1])))
    assert_close(model(hypothesis, reordered(hypothesis, order)), logits, atol=1e-12, rtol=1e-12)
    assert_close(model(hypothesis, reordered(hypothesis, 2 * order)), logits, atol=1e-12, rtol=1e-12)


def test_the_hypothesis_changes_something() -> None:
    model, premise = model_of(), full([1, 2])
    assert (model(premise, full([1, 2, 3])) - model(premise, full([1, 2, 4]))).abs().max() > 1e-3
    assert (model(premise, full([1, 2, 2])) - model(premise, full([1, 1, 2]))).abs().max() > 1e-3


@given(premise=sentences(), hypothesis=sentences())
def test_padding_and_batch_mates_change_nothing(premise: Sentence, hypothesis: Sentence) -> None:
    models.padding_and_batch_mates_change_nothing(model_of(), premise, hypothesis)


def test_sentences_without_words_are_harmless() -> None:
    models.sentences_without_words_are_harmless(model_of())


def test_every_parameter_gets_a_gradient() -> None:
    models.every_parameter_gets_a_gradient(model_of(hidden_size=7))


def test_it_overfits_nine_pairs() -> None:
    torch.manual_seed(0)
    model = HypothesisOnly(HypothesisOnlyConfig(hidden_size=30), models.TINY).double()
    models.it_overfits_nine_pairs(model, lr=1e-2)


def test_dropout_is_active_in_training_alone() -> None:
    pair, model = full([1, 2, 3], [4, 5, 6]), model_of(dropout=0.5)
    assert {module.p for module in model.modules() if isinstance(module, nn.Dropout)} == {0.5}
    assert torch.equal(model(pair, pair), model_of(dropout=0.0)(pair, pair))
    assert (model.train()(pair, pair) - model.eval()(pair, pair)).abs().max() > 1e-3


def test_two_classes() -> None:
    pair = full([1, 2])
    assert model_of(num_classes=2)(pair, pair).shape == (1, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
        ({"num_classes": 0}, "num_classes must be at least 1, got 0"),
        ({"dropout": -0.1}, "dropout must be at least 0 and below 1, got -0.1"),
    ],
)
def test_impossible_sizes_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_of(**options)
