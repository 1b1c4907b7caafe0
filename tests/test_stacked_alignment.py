"""The stacked alignment against its description: counts, loops, masks."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

import models
import oracles
import oracles_cafe
import oracles_stacked_alignment
from models import full, linear_of, perceptron_of, reordered, sentences
from nli_common.data import Sentence
from nli_common.lexicon import Lexicon
from nlilayers import AlignmentFactorization, GatedConvEncoder
from stacked_alignment import AlignmentBlock, StackedAlignment, StackedAlignmentConfig

SMALL = {"hidden_size": 4, "num_factors": 2, "char_size": 2, "char_filters": 3}
LEXICON = Lexicon(models.TINY.words, models.TINY.vectors, alphabet="135w")
DIM = 7 + 3 * 3
"""Of a word in a model of these sizes."""


def model_of(seed: int = 0, **options: object) -> StackedAlignment:
    """Its parameters are small: of a small difference, the products of several blocks would leave a large one."""
    model = StackedAlignment(StackedAlignmentConfig(**{**SMALL, **options}), LEXICON)
    model = models.randomised(model, seed, scale=0.25)
    assert isinstance(model, StackedAlignment)
    return model


def test_the_parameter_count() -> None:
    model = StackedAlignment(StackedAlignmentConfig(), Lexicon(["a", "b"], torch.zeros(2, 300)))
    d, total = 150, 0
    total += 20 * 3 + sum(50 * 20 * width + 50 for width in (1, 3, 5))  # "a", "b" and any other; the filters
    for words in (450, 450 + d):
        width = words + d
        total += 3 * (3 * words * d + d) + words * d + 3 * (3 * d * d + d)  # two gated convolutions, and W_p
        total += width * d + d
        total += sum(1 + n + 5 * n for n in (2 * width, width, width))
        total += 3 * (2 * width * d + d) + (3 * d + 3) * d + d
    total += 8 * d * d + d + d * 3 + 3
    assert models.trainable(model) == total == 3_758_919


def smooth(layers: nn.Module) -> Callable[[list[float]], list[float]]:
    """Layers of Gaussian error linear units as loops."""

    def through(x: list[float]) -> list[float]:
        for weight, bias in perceptron_of(layers):
            x = [oracles_stacked_alignment.gelu(y) for y in oracles.linear(x, weight, bias)]
        return x

    return through


def classifier(layers: nn.Sequential) -> Callable[[list[float]], list[float]]:
    """A layer of such units, and one that is linear."""
    hidden, last = layers[1], linear_of(layers[3])
    assert len(perceptron_of(hidden)) == 1 and len(layers) == 4
    return lambda x: oracles.linear(smooth(hidden)(x), *last)


def convolutions(encoder: GatedConvEncoder) -> list[dict]:
    found = []
    for block in encoder.blocks:
        weights, biases = block.weight.chunk(3), block.bias.chunk(3)
        parts = zip(("output", "forget", "candidate"), weights, biases, strict=True)
        projection = None if block.projection is None else block.projection.weight.tolist()
        found.append({name: (w.mT.tolist(), b.tolist()) for name, w, b in parts} | {"projection": projection})
    return found


def machines(layer: AlignmentFactorization) -> list[tuple]:
    """Concatenation, difference and product."""
    return [
        tuple(getattr(machine, name).tolist() for name in ("bias", "weight", "factors"))
        for machine in (layer.concat, layer.subtract, layer.multiply)
    ]


def block_by_loop(block: AlignmentBlock) -> oracles_stacked_alignment.Block:
    return {
        "context": convolutions(block.encode),
        "project": smooth(block.align.feedforward),
        "networks": [smooth(network) for network in block.compare.networks],
        "machines": machines(block.compare.factorize),
        "merge": smooth(block.compare.merge),
    }


def embedded(model: StackedAlignment, token: int) -> list[float]:
    """A word's vector beside its characters'."""
    vector: list[float] = LEXICON.vectors[token].tolist()
    parts = model.words[0].char_cnn
    if parts is None:
        return vector
    assert parts.embedding.embedding_dim == SMALL["char_size"]
    known = [1 + "135w".index(c) if c in "135w" else 0 for c in LEXICON.words[token]]
    table = parts.embedding.weight.tolist()
    convolutions = [(layer.weight.tolist(), layer.bias.tolist()) for layer in parts.filters]
    return vector + oracles_cafe.character_features([table[c] for c in known], convolutions)


@given(
    premise=sentences(),
    hypothesis=sentences(),
    blocks=st.integers(1, 3),
    layers=st.integers(1, 2),
    kernel_size=st.integers(1, 4),
    filters=st.integers(0, 2),
    seed=st.integers(0, 99),
)
def test_the_whole_forward_equals_the_loop(
    premise: Sentence, hypothesis: Sentence, blocks: int, layers: int, kernel_size: int, filters: int, seed: int
) -> None:
    sizes = {"num_blocks": blocks, "context_layers": layers, "kernel_size": kernel_size, "char_filters": filters}
    model = model_of(seed, **sizes)
    for block in model.blocks:
        assert {(len(block.encode.blocks), part.kernel_size) for part in block.encode.blocks} == {(layers, kernel_size)}
        assert block.compare.factorize.concat.factors.shape[1] == SMALL["num_factors"]
    logits = model(premise, hypothesis)
    row = seed % len(logits)
    a, b = ([embedded(model, token) for token in s.tokens[row][s.mask[row]]] for s in (premise, hypothesis))
    expected = oracles_stacked_alignment.stacked_alignment(
        a, b, [block_by_loop(block) for block in model.blocks], classifier(model.classify)
    )
    assert_close(logits[row], torch.tensor(expected, dtype=torch.float64), atol=1e-9, rtol=1e-9)


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


def test_the_classifier_reads_both_sentences_their_difference_and_their_product() -> None:
    model, seen = model_of(), []
    model.classify.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    premise, hypothesis = full([1, 2, 3, 4]), full([5, 6, 7])
    model(premise, hypothesis)
    model(hypothesis, premise)
    (u, v, distance, product), (v_again, u_again, *symmetric) = (x.chunk(4, dim=-1) for x in seen)
    assert_close((u_again, v_again), (u, v), atol=1e-10, rtol=1e-10)
    assert_close(tuple(symmetric), (distance, product), atol=1e-10, rtol=1e-10)
    assert not torch.allclose(u, v)


def test_blocks_leave_the_words_as_they_are_and_add_to_what_is_known() -> None:
    """Of as many features as before, and with half the variance of the sum."""
    model = model_of()
    a, b = (torch.randn(2, n, DIM).double() for n in (3, 4))
    masks = torch.ones(2, 3, dtype=torch.bool), torch.ones(2, 4, dtype=torch.bool)
    once = model.blocks[0](a, b, *masks)
    twice = model.blocks[1](*once, *masks)
    for given_words, first, second in zip((a, b), once, twice, strict=True):
        assert first.shape == second.shape == (*given_words.shape[:2], DIM + 4)
        assert torch.equal(first[..., :DIM], given_words) and torch.equal(second[..., :DIM], given_words)
    last = model.blocks[1].compare.merge[1][0]
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    for first, second in zip(once, model.blocks[1](*once, *masks), strict=True):
        assert_close(second[..., DIM:], first[..., DIM:] / 2**0.5, atol=1e-12, rtol=1e-12)


@given(premise=sentences(shortest=0), hypothesis=sentences(shortest=0), blocks=st.integers(1, 3))
def test_the_alignment_is_of_real_words_alone(premise: Sentence, hypothesis: Sentence, blocks: int) -> None:
    model = model_of(num_blocks=blocks)
    real = premise.mask[:, :, None] & hypothesis.mask[:, None, :]
    last = model.alignment(premise, hypothesis)
    for weights, of_last, of_both in zip(
        model.alignment_by_head(premise, hypothesis), last, (real, real.mT), strict=True
    ):
        assert weights.shape == (len(real), blocks, 1, *of_both.shape[1:])
        assert torch.equal(weights[:, -1, 0], of_last)
        for k in range(blocks):
            assert torch.all(weights[:, k, 0][~of_both] == 0) and torch.all(weights[:, k, 0][of_both] > 0)
            assert_close(weights[:, k, 0].sum(-1), of_both.any(-1).double(), atol=1e-12, rtol=0)


def test_the_shown_weights_are_those_that_align() -> None:
    """In every block: recorded from the layer while the model runs."""
    model, premise, hypothesis, seen = model_of(), full([1, 2, 3, 4]), full([5, 6, 7]), []
    for block in model.blocks:
        block.align.register_forward_hook(
            lambda layer, inputs, output: seen.append((layer.alignment_weights(*inputs), inputs, output))
        )
    model(premise, hypothesis)
    shown = model.alignment_by_head(premise, hypothesis)
    for k, ((beta, alpha), (a, b, *_), (aligned_a, aligned_b)) in enumerate(seen[:2]):
        assert torch.equal(shown[0][:, k, 0], beta) and torch.equal(shown[1][:, k, 0], alpha)
        assert_close((beta @ b, alpha @ a), (aligned_a, aligned_b), atol=1e-12, rtol=1e-12)


def test_characters_are_read() -> None:
    """Words of one vector that are spelt differently are different words, unless characters are not read."""
    lexicon = Lexicon(["abc", "acb", "abz", "abq"], LEXICON.vectors[:1].expand(4, 7), alphabet="abc")
    for filters, differ in ((3, True), (0, False)):
        model = StackedAlignment(StackedAlignmentConfig(**SMALL | {"char_filters": filters}), lexicon)
        models.randomised(model, scale=0.25)
        first, second, third, fourth = (model(full([i]), full([0])) for i in range(4))
        assert ((first - second).abs().max() > 1e-6) == differ
        assert ((first - third).abs().max() > 1e-6) == differ
        assert_close(third, fourth, atol=1e-12, rtol=1e-12)  # two letters that are not of the alphabet


def test_the_words_vectors_are_fixed_and_not_repeated_on_disk() -> None:
    model = model_of()
    assert not any("vectors" in name for name, _ in model.named_parameters())
    assert not any("vectors" in name or "characters" in name for name in model.state_dict())


def test_every_parameter_gets_a_gradient() -> None:
    models.every_parameter_gets_a_gradient(model_of(hidden_size=7))


def test_it_overfits_nine_pairs() -> None:
    torch.manual_seed(0)
    model = StackedAlignment(StackedAlignmentConfig(hidden_size=20, dropout=0.1), LEXICON).double()
    models.it_overfits_nine_pairs(model, lr=5e-3, steps=120)


def test_dropout_stands_where_it_is_said_to_in_training_alone() -> None:
    """On the words, between two convolutions, before the alignment, the last comparison and each layer that decides."""
    pair = full([1, 2, 3, 4], [5, 6, 7, 8])
    assert torch.equal(model_of(dropout=0.5)(pair, pair), model_of(dropout=0.0)(pair, pair))
    model = model_of(dropout=0.5).train()
    found = [name for name, part in model.named_modules() if isinstance(part, nn.Dropout)]
    inside = [f"blocks.{k}.{part}" for k in range(2) for part in ("encode.dropout", "align.feedforward.0")]
    inside += [f"blocks.{k}.compare.merge.0" for k in range(2)]
    assert sorted(found) == sorted(["words.1", *inside, "classify.0", "classify.2"])
    assert {model.get_submodule(name).p for name in found} == {0.5}
    for name in found:
        model.get_submodule(name).p = 0.0
    expected = model(pair, pair)
    assert_close(expected, model_of()(pair, pair), atol=1e-12, rtol=1e-12)
    for name in found:
        model.get_submodule(name).p = 0.5
        assert any(not torch.allclose(model(pair, pair), expected) for _ in range(20)), name
        model.get_submodule(name).p = 0.0


def test_two_classes() -> None:
    pair = full([1, 2])
    assert model_of(num_classes=2)(pair, pair).shape == (1, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_blocks": 0}, "num_blocks must be at least 1, got 0"),
        ({"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
        ({"context_layers": 0}, "context_layers must be at least 1, got 0"),
        ({"kernel_size": 0}, "kernel_size must be at least 1, got 0"),
        ({"num_factors": 0}, "num_factors must be at least 1, got 0"),
        ({"char_size": 0}, "char_size must be at least 1, got 0"),
        ({"char_filters": -1}, "char_filters must be at least 0, got -1"),
        ({"num_classes": 0}, "num_classes must be at least 1, got 0"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
    ],
)
def test_impossible_sizes_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_of(**options)
