"""The Decomposable Attention model against its paper: counts, equations, what it cannot see."""

import dataclasses
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

import models
import oracles
import strategies
from decomposable_attention import SCRIPT, DecomposableAttention, DecomposableAttentionConfig
from nli_common.data import Sentence
from nli_common.feedforward import feedforward
from nli_common.lexicon import Lexicon
from nlilayers.masking import lengths_to_mask
from strategies import normal

TINY = Lexicon([f"w{i}" for i in range(40)], normal(0, 40, 7))


def model_of(seed: int = 0, lexicon: Lexicon = TINY, **options: object) -> DecomposableAttention:
    torch.manual_seed(seed)
    config = DecomposableAttentionConfig(**{"hidden_size": 11, "max_distance": 2, **options})
    model = DecomposableAttention(config, lexicon).double().eval()
    if model.intra is not None:
        model.intra.prior.bias.data = normal(seed + 1, model.intra.prior.bias.numel())
    return model


@st.composite
def sentence(draw: st.DrawFn, batch: int = 3) -> Sentence:
    lengths = torch.tensor(draw(st.lists(st.integers(1, 6), min_size=batch, max_size=batch)))
    mask = lengths_to_mask(lengths)
    generator = torch.Generator().manual_seed(draw(strategies.seeds))
    return Sentence(torch.randint(len(TINY), mask.shape, generator=generator), mask)


both_models = pytest.mark.parametrize("intra_attention", [False, True], ids=["vanilla", "intra"])


@pytest.mark.parametrize("projection_bias", [False, True])
@pytest.mark.parametrize(("intra_attention", "expected"), [(False, 381_803), (True, 582_225)])
def test_the_papers_parameter_counts(intra_attention: bool, projection_bias: bool, expected: int) -> None:
    """Table 1: 382K and 582K, which cannot tell whether the projection has a bias."""
    lexicon = Lexicon.random(["a", "b"], 300)
    config = DecomposableAttentionConfig(intra_attention=intra_attention, projection_bias=projection_bias)
    model = DecomposableAttention(config, lexicon)
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == expected + 200 * projection_bias


@pytest.mark.parametrize(
    ("options", "more"),
    [({"trained_null": True}, 300), ({"distances": "absolute"}, -10), ({"distances": "two-sided"}, 1)],
)
def test_the_other_readings_parameter_counts(options: dict[str, Any], more: int) -> None:
    config = DecomposableAttentionConfig(intra_attention=True, **options)
    model = DecomposableAttention(config, Lexicon.random(["a", "b"], 300))
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 582_225 + more


def test_a_trained_null_starts_as_the_fixed_one_and_learns() -> None:
    torch.manual_seed(0)
    fixed = DecomposableAttention(DecomposableAttentionConfig(hidden_size=5), TINY)
    torch.manual_seed(0)
    trained = DecomposableAttention(DecomposableAttentionConfig(hidden_size=5, trained_null=True), TINY)
    assert (
        torch.equal(trained.embedding.null, fixed.embedding.null)
        and fixed.state_dict().keys() == trained.state_dict().keys()
    )
    words = Sentence(torch.tensor([[1, 2]]), torch.ones(1, 2, dtype=torch.bool))
    trained(words, words).sum().backward()
    assert trained.embedding.null.grad.abs().max() > 0 and not fixed.embedding.null.requires_grad


def test_dropout_before_every_network_is_where_it_is_said_to_be() -> None:
    model = model_of(intra_attention=True, input_dropout=0.25, dropout=0.5)
    for network in (model.intra.feedforward, model.attend.feedforward, model.compare, model.aggregate[0]):
        assert [part.p for part in network if isinstance(part, torch.nn.Dropout)] == [0.25, 0.5]
        assert isinstance(network[0], torch.nn.Dropout)
    with pytest.raises(ValueError, match=r"^input_dropout must be at least 0 and below 1, got 1\.0"):
        DecomposableAttentionConfig(input_dropout=1.0)


def test_distances_of_no_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="distances must be signed, absolute or two-sided, got 'both'"):
        DecomposableAttentionConfig(distances="both")


@pytest.mark.parametrize(("distances", "evenly"), [("signed", False), ("absolute", True), ("two-sided", False)])
def test_distances_without_signs_see_no_direction(distances: Any, evenly: bool) -> None:
    """Both sentences read backwards: the logits of a model whose words look both ways alike are the same."""
    model = model_of(intra_attention=True, distances=distances, max_distance=1)
    pair = [
        Sentence(torch.tensor([row]), torch.ones(1, len(row), dtype=torch.bool)) for row in ([1, 2, 3, 4], [5, 6, 1])
    ]
    turned = [Sentence(s.tokens.flip(1), s.mask) for s in pair]
    # Without NULL, which stands before the words either way.
    model.embedding.forward = lambda s: (model.embedding.words(s), s.mask)
    ahead = model(*pair)
    assert torch.allclose(model(*turned), ahead, atol=1e-12) == evenly


def test_the_papers_recipe() -> None:
    recipe = SCRIPT.recipe
    assert (recipe.optimizer, recipe.batch_size, DecomposableAttentionConfig().dropout) == ("adagrad", 4, 0.2)
    assert [DecomposableAttentionConfig(intra_attention=intra).learning_rate for intra in (False, True)] == [
        0.05,
        0.025,
    ]


def test_peer_bug_8_adagrads_accumulator_starts_at_a_tenth() -> None:
    model = model_of()
    optimizer = dataclasses.replace(SCRIPT.recipe, lr=0.05).make_optimizer(model)
    assert all(torch.all(state["sum"] == 0.1) for state in optimizer.state.values())


@both_models
@given(premise=sentence(), hypothesis=sentence())
def test_the_whole_forward_equals_the_loop(intra_attention: bool, premise: Sentence, hypothesis: Sentence) -> None:
    """Eqs 1 to 7, with NULL before each sentence, one pair at a time and without padding."""
    model = model_of(intra_attention=intra_attention)

    def words(sentence: Sentence, row: int) -> list[list[float]]:
        vectors = [model.embedding.words.vectors[t] for t in sentence.tokens[row][sentence.mask[row]]]
        a = [model.projection(v).tolist() for v in (model.embedding.null, *vectors)]
        if model.intra is None:
            return a
        bias = model.intra.prior.bias.tolist()
        f = oracles.scores(a, a, of(model.intra.feedforward))
        aligned = oracles.intra_align(a, f, lambda distance: oracles.bucket_bias(bias, distance, max_distance=2))
        return [[*a_i, *aligned_i] for a_i, aligned_i in zip(a, aligned, strict=True)]

    def of(module: torch.nn.Module):
        return lambda x: module(torch.tensor(x, dtype=torch.float64)).tolist()

    logits = model(premise, hypothesis)
    for row in range(len(logits)):
        expected = oracles.decomposable_attention(
            words(premise, row),
            words(hypothesis, row),
            of(model.attend.feedforward),
            of(model.compare),
            of(model.aggregate),
        )
        assert_close(logits[row], torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=1e-9)


@both_models
@given(premise=sentence(), hypothesis=sentence())
def test_padding_and_batch_mates_change_nothing(intra_attention: bool, premise: Sentence, hypothesis: Sentence) -> None:
    model = model_of(intra_attention=intra_attention)
    logits = model(premise, hypothesis)
    for row in range(len(logits)):
        alone = (
            Sentence(s.tokens[row][s.mask[row]][None], s.mask[row][s.mask[row]][None]) for s in (premise, hypothesis)
        )
        assert_close(model(*alone)[0], logits[row], atol=1e-12, rtol=1e-12)
    garbled = (Sentence(s.tokens.masked_fill(~s.mask, 39), s.mask) for s in (premise, hypothesis))
    assert torch.equal(model(*garbled), logits)
    models.padding_before_words_is_refused_or_changes_nothing(model, premise, hypothesis)


@given(premise=sentence(), hypothesis=sentence())
def test_every_hypothesis_word_twice_doubles_what_it_adds_up_to(premise: Sentence, hypothesis: Sentence) -> None:
    """And leaves the premise's sum as it is: NULL, which nobody doubles, aside."""
    model = model_of()
    model.embedding.forward = lambda s: (model.embedding.words(s), s.mask)
    sums = []
    model.aggregate.register_forward_pre_hook(lambda _, inputs: sums.append(inputs[0].chunk(2, dim=-1)))
    model(premise, hypothesis)
    model(premise, Sentence(hypothesis.tokens.repeat(1, 2), hypothesis.mask.repeat(1, 2)))
    (v1, v2), (v1_of_twice, v2_of_twice) = sums
    assert_close(v1_of_twice, v1, atol=1e-12, rtol=1e-12)
    assert_close(v2_of_twice, 2 * v2, atol=1e-12, rtol=1e-12)


@given(factor=st.floats(0.01, 100))
def test_a_network_without_biases_scales_with_its_input(factor: float) -> None:
    network = feedforward(4, 7, 3).double()
    for part in network:
        if isinstance(part, torch.nn.Linear):
            part.bias.data.zero_()
    x = normal(0, 5, 4)
    assert_close(network(factor * x), factor * network(x), atol=1e-12, rtol=1e-12)


def shuffled(sentence: Sentence, order: list[int]) -> Sentence:
    return Sentence(sentence.tokens[:, order], sentence.mask[:, order])


@given(premise=sentence(), hypothesis=sentence(), data=st.data())
def test_vanilla_sees_a_bag_of_words(premise: Sentence, hypothesis: Sentence, data: st.DataObject) -> None:
    """The permutation law: whoever does what to whom, the logits are the same."""
    model = model_of()
    other = shuffled(hypothesis, data.draw(st.permutations(range(hypothesis.tokens.shape[1]))))
    assert_close(model(premise, other), model(premise, hypothesis), atol=1e-12, rtol=1e-12)
    other = shuffled(premise, data.draw(st.permutations(range(premise.tokens.shape[1]))))
    assert_close(model(other, hypothesis), model(premise, hypothesis), atol=1e-12, rtol=1e-12)


def test_intra_attention_sees_order_through_its_bias_alone() -> None:
    tokens = torch.tensor([[1, 2, 3, 1, 4]])
    mask = torch.ones_like(tokens, dtype=torch.bool)
    one, turned = Sentence(tokens, mask), Sentence(tokens[:, [3, 4, 2, 0, 1]], mask)
    model = model_of(intra_attention=True)
    assert (model(one, turned) - model(one, one)).abs().max() > 1e-4
    model.intra.prior.bias.data.fill_(0.3)
    assert_close(model(one, turned), model(one, one), atol=1e-12, rtol=1e-12)


@given(premise=sentence(), hypothesis=sentence())
def test_the_logits_are_not_symmetric(premise: Sentence, hypothesis: Sentence) -> None:
    model = model_of()
    assert (model(premise, hypothesis) - model(hypothesis, premise)).abs().max() > 1e-6 or all(
        torch.equal(a, b) for a, b in zip(premise[:2], hypothesis[:2], strict=True)
    )


def test_null_is_as_long_as_the_words_are() -> None:
    vectors = normal(0, 40, 7)
    small, large = (model_of(lexicon=Lexicon(TINY.words, size * vectors)).embedding for size in (1, 100))
    assert_close(large.null, 100 * small.null)
    assert 0.2 < float(small.null.std() / vectors.std()) < 5


def test_every_layer_of_a_network_is_rectified() -> None:
    """Parikh et al. 2016, section 3: feed-forward networks of ReLU units, the last layer's as well."""
    network, x = feedforward(3, 4, 5).double(), normal(0, 20, 3, scale=3)
    (w1, b1), (w2, b2) = ((layer.weight, layer.bias) for layer in network if isinstance(layer, torch.nn.Linear))
    assert_close(network(x), (w2 @ (w1 @ x.mT + b1[:, None]).clamp(min=0) + b2[:, None]).clamp(min=0).mT)
    assert network(x).min() == 0 < network(x).max()


def test_null_is_a_real_token_that_training_leaves_alone() -> None:
    model, pair = model_of(), Sentence(torch.tensor([[1, 2]]), torch.tensor([[True, True]]))
    beta, alpha = model.alignment(pair, pair._replace(tokens=torch.tensor([[1, 3]])))
    assert beta.shape == alpha.shape == (1, 3, 3) and torch.all(beta > 0) and torch.all(alpha > 0)
    for weights in (beta, alpha):
        assert_close(weights.sum(-1), torch.ones(1, 3).double(), atol=1e-12, rtol=0)
    before = model(pair, pair)
    model.embedding.null.add_(1.0)
    assert (model(pair, pair) - before).abs().max() > 1e-4
    names = {name for name, _ in model.named_parameters()}
    assert not any(name.startswith("embedding") for name in names)
    assert "embedding.null" in model.state_dict() and "embedding.vectors" not in model.state_dict()


@both_models
def test_it_overfits_nine_pairs(intra_attention: bool) -> None:
    models.it_overfits_nine_pairs(model_of(intra_attention=intra_attention, hidden_size=30))


@both_models
def test_every_parameter_is_used(intra_attention: bool) -> None:
    model = model_of(intra_attention=intra_attention)
    pair = Sentence(torch.tensor([[1, 2, 3, 4]]), torch.ones(1, 4, dtype=torch.bool))
    other = Sentence(torch.tensor([[5, 6]]), torch.ones(1, 2, dtype=torch.bool))
    model(pair, other)[0, 0].backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.parameters())


def test_glorots_start_has_no_biases_and_its_bounds() -> None:
    glorot, plain = model_of(hidden_size=30).compare[0], model_of(hidden_size=30, glorot=False).compare[0]
    assert torch.all(glorot.bias == 0) and glorot.bias.shape == plain.bias.shape and plain.bias.abs().max() > 0
    bound = (6 / (60 + 30)) ** 0.5
    assert 0.9 * bound < glorot.weight.abs().max() <= bound and plain.weight.abs().max() <= 60**-0.5 < 0.9 * bound


def test_vectors_of_any_precision_fit() -> None:
    pair = Sentence(torch.tensor([[1, 2]]), torch.tensor([[True, True]]))
    for dtype in (torch.float16, torch.float64):
        lexicon = Lexicon(TINY.words, TINY.vectors.to(dtype))
        logits = DecomposableAttention(DecomposableAttentionConfig(hidden_size=5), lexicon)(pair, pair)
        assert logits.dtype == torch.float32


def test_two_classes() -> None:
    pair = Sentence(torch.tensor([[1, 2]]), torch.tensor([[True, True]]))
    logits: Tensor = model_of(num_classes=2)(pair, pair)
    assert logits.shape == (1, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
        ({"num_classes": 0}, "num_classes must be at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must be at least 0 and below 1, got 1\.0"),
    ],
)
def test_what_makes_no_model_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DecomposableAttentionConfig(**options)
