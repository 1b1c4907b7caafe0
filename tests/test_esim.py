"""ESIM against its paper: counts, equations, masks."""

import pytest
import torch
from hypothesis import given
from torch import nn
from torch.testing import assert_close

import models
import oracles_esim as oracles
from esim import ESIM, SCRIPT, ESIMConfig
from models import full, layers_of, linear_of, reordered, sentences
from nli_common.data import Sentence
from nli_common.lexicon import Lexicon


def model_of(**options: object) -> ESIM:
    model = models.randomised(ESIM(ESIMConfig(**{"hidden_size": 3, **options}), models.TINY))
    assert isinstance(model, ESIM)
    return model


def test_the_papers_parameter_count() -> None:
    """4.3M; torch's LSTM has two biases where the paper's has one, which is 4,800 more."""
    lexicon = Lexicon(["a", "b"], torch.zeros(2, 300))
    with torch.device("meta"):
        model = ESIM(ESIMConfig(), lexicon)
    assert models.trainable(model) == 4_331_103
    assert models.trainable(model) - sum(p.numel() for n, p in model.named_parameters() if "bias_hh" in n) == 4_326_303


def test_trained_vectors_are_parameters() -> None:
    trained, fixed = model_of(train_vectors=True), model_of()
    assert models.trainable(trained) == models.trainable(fixed) + models.TINY.vectors.numel()
    models.every_parameter_gets_a_gradient(trained)


def test_the_papers_recipe() -> None:
    recipe, config = SCRIPT.recipe, ESIMConfig()
    assert (recipe.optimizer, recipe.lr, recipe.batch_size, recipe.clip_norm) == ("adam", 4e-4, 32, 10.0)
    assert (config.hidden_size, config.dropout) == (300, 0.5)


@given(premise=sentences(), hypothesis=sentences())
def test_the_whole_forward_equals_the_loop(premise: Sentence, hypothesis: Sentence) -> None:
    model = model_of()
    (encoder,), (composer,) = layers_of(model.encode), layers_of(model.compose)
    hidden, scores = (linear_of(layer) for layer in model.classify if isinstance(layer, nn.Linear))
    logits = model(premise, hypothesis)
    for row in range(len(logits)):
        a, b = (models.TINY.vectors[s.tokens[row][s.mask[row]]].tolist() for s in (premise, hypothesis))
        expected = oracles.esim(a, b, encoder, linear_of(model.compare[0]), composer, hidden, scores)
        assert_close(logits[row], torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=1e-9)


@given(premise=sentences(), hypothesis=sentences())
def test_padding_and_batch_mates_change_nothing(premise: Sentence, hypothesis: Sentence) -> None:
    models.padding_and_batch_mates_change_nothing(model_of(), premise, hypothesis)


def test_sentences_without_words_are_harmless() -> None:
    models.sentences_without_words_are_harmless(model_of())


def test_it_sees_word_order_on_both_sides() -> None:
    model, premise, hypothesis = model_of(), full([1, 2, 3, 1, 4]), full([1, 2, 3, 4])
    logits = model(premise, hypothesis)
    assert (model(premise, reordered(hypothesis, [3, 1, 2, 0])) - logits).abs().max() > 1e-4
    assert (model(reordered(premise, [4, 1, 2, 3, 0]), hypothesis) - logits).abs().max() > 1e-4


def test_the_logits_are_not_symmetric() -> None:
    model, premise, hypothesis = model_of(), full([1, 2, 3, 4]), full([5, 6, 7])
    assert (model(premise, hypothesis) - model(hypothesis, premise)).abs().max() > 1e-4


def test_a_sentence_beside_itself_gives_the_classifier_two_equal_halves() -> None:
    """The premise's half of the pooled vector is made as the hypothesis's is."""
    model, seen = model_of(), []
    model.classify.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    premise, hypothesis = full([1, 2, 3, 4]), full([5, 6, 7])
    model(premise, premise)
    model(premise, hypothesis)
    model(hypothesis, premise)
    (a, a_again), forth, back = (torch.chunk(x, 2, dim=-1) for x in seen)
    assert_close(a, a_again, atol=1e-12, rtol=1e-12)
    assert_close(forth[0], back[1], atol=1e-12, rtol=1e-12)
    assert_close(forth[1], back[0], atol=1e-12, rtol=1e-12)


@given(premise=sentences(shortest=0), hypothesis=sentences(shortest=0))
def test_the_alignment_is_of_real_words_alone(premise: Sentence, hypothesis: Sentence) -> None:
    model = model_of()
    beta, alpha = model.alignment(premise, hypothesis)
    assert model.leading_tokens == ()
    real = premise.mask[:, :, None] & hypothesis.mask[:, None, :]
    for weights, of_both in ((beta, real), (alpha, real.mT)):
        assert weights.shape == of_both.shape
        assert torch.all(weights[~of_both] == 0) and torch.all(weights[of_both] > 0)
        assert_close(weights.sum(-1), of_both.any(-1).double(), atol=1e-12, rtol=0)


def test_the_word_vectors_stay_fixed() -> None:
    model = model_of()
    assert not any("words" in key for key in (*dict(model.named_parameters()), *model.state_dict()))


def test_every_parameter_gets_a_gradient() -> None:
    models.every_parameter_gets_a_gradient(model_of(hidden_size=7))


def test_it_overfits_nine_pairs() -> None:
    torch.manual_seed(0)
    model = ESIM(ESIMConfig(hidden_size=20, dropout=0.2), models.TINY).double()
    models.it_overfits_nine_pairs(model, lr=1e-2, steps=120)


def test_dropout_stands_before_every_layer_in_training_alone() -> None:
    """What enters the two LSTMs, and the two layers of the classifier."""
    model, pair, seen = model_of(dropout=0.5), full([1, 2, 3, 4], [5, 6, 7, 8]), {}
    assert torch.equal(model(pair, pair), model_of(dropout=0.0)(pair, pair))
    layers = {
        "encode": model.encode,
        "compose": model.compose,
        "hidden": model.classify[1],
        "scores": model.classify[4],
    }
    for name, layer in layers.items():
        layer.register_forward_hook(lambda module, inputs, output, name=name: seen.__setitem__(name, inputs[0]))
    with torch.no_grad():
        model.compare[0].bias.fill_(50.0)
        model.train()(pair, pair)
    assert all(0.1 < (x == 0).double().mean() < 0.9 for x in seen.values()) and len(seen) == 4
    model.eval()(pair, pair)
    assert not any(torch.any(x == 0) for x in seen.values())


def test_two_classes() -> None:
    pair = full([1, 2])
    assert model_of(num_classes=2)(pair, pair).shape == (1, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
        ({"num_classes": 0}, "num_classes must be at least 1, got 0"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
    ],
)
def test_impossible_sizes_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_of(**options)
