"""The Gaussian Transformer against its paper: counts, equations, what each block can see, and its tables."""

import dataclasses
import itertools
import json
import math
import re
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

import models
import oracles
import oracles_gaussian_transformer as loops
import strategies
from gaussian_transformer import (
    PRIORS,
    SCRIPT,
    Aggregation,
    EncodingBlock,
    GaussianTransformer,
    GaussianTransformerConfig,
    InteractionBlock,
    InterAttention,
    Locality,
    PooledAggregation,
    SelfAttention,
    WordsAndCharacters,
)
from nli_common.data import Sentence
from nli_common.lexicon import Lexicon
from nli_common.script import AlignsByHead
from nli_common.transformer import FlatPrior, Residual, SeparableConvolution
from nlilayers import DistancePrior, GaussianPrior, GaussianSelfAttention, HeadPriors, LinearPrior
from nlilayers.masking import lengths_to_mask
from strategies import normal

LOCALITIES = get_args(Locality)
TINY = Lexicon([f"word{i}" for i in range(40)], normal(0, 40, 7))
SIZES = {"hidden_size": 6, "num_heads": 3, "char_size": 5, "num_encoding_blocks": 2}
HEADS = 3
every_locality = pytest.mark.parametrize("locality", LOCALITIES)


def config_of(**options: Any) -> GaussianTransformerConfig:
    return GaussianTransformerConfig(**{**SIZES, **options})


def drawn_anew(module: nn.Module, seed: int = 0) -> Any:
    """In float64 and without dropout, with every parameter drawn: biases of 0 and gains of 1 would hide themselves."""
    module = module.double().eval()
    for k, parameter in enumerate(module.parameters()):
        fan_in = parameter.shape[-1] if parameter.ndim else 1
        parameter.data = normal(seed + 100 + k, *parameter.shape, scale=1.5 / math.sqrt(fan_in))
    for part in module.modules():
        if isinstance(part, nn.LayerNorm):
            part.weight.data.abs_().add_(0.5)
    return module


def model_of(seed: int = 0, lexicon: Lexicon = TINY, **options: Any) -> GaussianTransformer:
    return drawn_anew(GaussianTransformer(config_of(**options), lexicon), seed)


@st.composite
def sentences(draw: st.DrawFn, batch: int = 3) -> Sentence:
    lengths = torch.tensor(draw(st.lists(st.integers(1, 6), min_size=batch, max_size=batch)))
    mask = lengths_to_mask(lengths)
    generator = torch.Generator().manual_seed(draw(strategies.seeds))
    return Sentence(torch.randint(len(TINY), mask.shape, generator=generator), mask)


def sentence(*rows: list[int]) -> Sentence:
    lengths = torch.tensor([len(row) for row in rows])
    tokens = torch.tensor([row + [0] * (int(lengths.max()) - len(row)) for row in rows])
    return Sentence(tokens, lengths_to_mask(lengths))


def real(x: Tensor, mask: Tensor, row: int) -> list[list[float]]:
    return x[row][mask[row]].tolist()


def weights_of(module: nn.Module, locality: Locality = "gaussian-variant") -> dict[str, Any]:
    """The parameters as nested lists, and the bias of each self-attention as a function of the distance."""
    weights = {name: parameter.tolist() for name, parameter in module.named_parameters()}
    for name, part in module.named_modules():
        prior = getattr(part, "prior", None)
        if prior is not None:
            scalars = prior.bias.tolist() if isinstance(prior, DistancePrior) else []
            if isinstance(prior, LinearPrior | GaussianPrior):
                scalars = [prior.w.item()]
            if isinstance(prior, GaussianPrior):
                scalars.append(prior.b.item())
            weights[f"{name}.beta"] = loops.bias_of(locality, scalars)
    return weights


def assert_equal(ours: Tensor, expected: Any) -> None:
    assert_close(ours, torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=1e-9)


# Sizes


@pytest.fixture(scope="module")
def paper_size() -> GaussianTransformer:
    return GaussianTransformer(GaussianTransformerConfig(), Lexicon.random(["a", "b"], 300))


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def test_the_parameters_part_by_part(paper_size: GaussianTransformer) -> None:
    """The paper counts 665k, 0.2 per cent more: it does not say which projections have biases."""
    assert count(paper_size) == 663_613
    assert count(paper_size.projection) == 39_600
    assert [count(block) for block in paper_size.encoding] == [87_122] * 3
    assert [count(block) for block in paper_size.interaction] == [144_962] * 2
    assert (count(paper_size.aggregation), count(paper_size.prediction)) == (43_440, 29_283)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"locality": "none"}, 663_603),
        ({"locality": "zipf"}, 663_603),
        ({"locality": "trainable"}, 663_713),
        ({"locality": "linear"}, 663_608),
        ({"locality": "convolution"}, 663_603 + 5 * (840 + 14_520 + 240)),
        ({"locality": "gaussian"}, 663_608),
        ({"locality": "gaussian-variant"}, 663_613),
        ({"ngrams": "sum"}, 663_613),
        ({"sum_and_difference": True}, 663_613 + 2 * 120 * 120),
        ({"sequential": True}, 663_613),
        ({"prior_scope": "head"}, 663_603 + 4 * 10),
        ({"prior_scope": "model"}, 663_603 + 2),
        ({"prior_scope": "head", "locality": "trainable"}, 663_603 + 4 * 5 * 22),
        ({"attention_biases": True}, 666_973),
        ({"norm": "pre"}, 663_613 + 2 * 240),
        ({"aggregation": "pool"}, 663_613 - 43_440 + 14 * 120 * 120),
        ({"num_classes": 2}, 663_613 - 121),
        ({"num_encoding_blocks": 1, "num_interaction_blocks": 4}, 663_613 - 2 * 87_122 + 2 * 144_962),
    ],
)
def test_the_parameters_of_each_variant(options: dict[str, Any], expected: int) -> None:
    lexicon = Lexicon.random(["a", "b"], 300)
    assert count(GaussianTransformer(GaussianTransformerConfig(**options), lexicon)) == expected


def test_the_papers_recipe(paper_size: GaussianTransformer) -> None:
    recipe = SCRIPT.recipe
    assert (recipe.optimizer, recipe.batch_size, recipe.restart_epochs) == ("adamwr", 64, 10)
    assert (recipe.min_lr, recipe.lr, recipe.normalized_decay) == (4e-5, 3e-4, 1 / 600)
    assert recipe.patience >= recipe.restart_epochs, "a cycle begins with worse epochs than the last one's best"
    dropouts = [part for part in paper_size.modules() if isinstance(part, nn.Dropout)]
    assert [part.p for part in dropouts if part.p] == (3 * 2 + 2 * 3) * [0.1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_encoding_blocks": 0}, "num_encoding_blocks must be at least 1, got 0"),
        ({"num_interaction_blocks": 0}, "num_interaction_blocks must be at least 1, got 0"),
        ({"num_heads": 0}, "num_heads must be at least 1, got 0"),
        ({"char_size": 0}, "^char_size must be at least 1, got 0"),
        ({"num_classes": 0}, "num_classes must be at least 1, got 0"),
        ({"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
        ({"hidden_size": 10}, "hidden_size must be even and a multiple of 3 heads, got 10"),
        ({"prior_scope": "heads"}, "prior_scope must be layer, head or model, got 'heads'"),
        ({"norm": "before"}, "norm must be post or pre, got 'before'"),
        ({"locality": "near"}, "locality must be none, zipf, .* or gaussian-variant, got 'near'"),
        ({"hidden_size": 9}, "hidden_size must be even and a multiple of 3 heads, got 9"),
        ({"dropout": 1.0}, "^dropout must be at least 0 and below 1, got 1.0"),
        ({"attention_dropout": -0.1}, "^attention_dropout must be at least 0 and below 1, got -0.1"),
        ({"inner_dropout": 2.0}, "^inner_dropout must be at least 0 and below 1, got 2.0"),
    ],
)
def test_impossible_sizes_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config_of(**options)


def test_a_configuration_survives_json() -> None:
    config = config_of(locality="zipf", encoder="some/folder")
    assert GaussianTransformerConfig(**json.loads(json.dumps(dataclasses.asdict(config)))) == config


# How it starts


def started(start: str, seed: int = 0) -> GaussianTransformer:
    torch.manual_seed(seed)
    lexicon = Lexicon(TINY.words, TINY.vectors.repeat(1, 8))
    sizes = {"hidden_size": 60, "num_heads": 2, "num_encoding_blocks": 3}
    return GaussianTransformer(config_of(**sizes, start=start), lexicon).eval()


@torch.no_grad()
def weight_on_the_same_word(model: GaussianTransformer) -> float:
    """The mean of all blocks and heads, over 10 words in two orders: 0.1 is that of words that are all alike."""
    words = list(range(10))
    generator = torch.Generator().manual_seed(1)
    order = torch.randperm(10, generator=generator).tolist()
    beta, _ = model.alignment_by_head(sentence(words), sentence(order))
    return float(beta[..., words, [order.index(word) for word in words]].mean())


def test_it_starts_where_words_meet_as_they_came() -> None:
    """Self-attention and networks add nothing: after them stands each word's own vector, layer-normed."""
    model, pair = started("aligning"), sentence([3, 1, 4, 1], [2, 0])
    expected = model.position(model.projection(model.words(pair)))
    for _ in range(3 * 2):
        expected = nn.functional.layer_norm(expected, (60,))
    assert_close(model.encode(pair)[pair.mask], expected[pair.mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_it_starts_where_equal_words_attend_to_each_other(seed: int) -> None:
    assert weight_on_the_same_word(started("aligning", seed)) > 0.3
    assert weight_on_the_same_word(started("glorot", seed)) < 0.13


def test_only_the_start_is_another() -> None:
    """The networks of the aggregation and the prediction, the first layers and the priors are Glorot's in both."""
    aligning, glorot = started("aligning").state_dict(), started("glorot").state_dict()
    changed = {name for name, values in glorot.items() if not torch.equal(values, aligning[name])}
    assert changed == {
        name
        for name in glorot
        if name.endswith(("out_proj.weight", "inter_attention.sublayer.key.weight", "feedforward.sublayer.1.weight"))
    }


def test_every_weight_learns_from_where_it_starts() -> None:
    """A layer behind one of zeros has no gradient in the first step, and one in the second."""
    model = started("aligning")
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        logits = model(sentence([3, 1, 4, 1], [2, 0]), sentence([1, 5], [2, 6, 5]))
        nn.functional.cross_entropy(logits, torch.tensor([0, 2])).backward()
        optimizer.step()
    dead = {name for name, parameter in model.named_parameters() if not parameter.grad.abs().max() > 0}
    assert not dead


# Words


@pytest.mark.parametrize("ngrams", ["max", "sum"])
def test_a_word_is_its_vector_beside_that_of_its_5_grams(ngrams: str) -> None:
    """Eqs 5 and 6, in words shorter and longer than an n-gram; 65,536 normal vectors share all n-grams."""
    names = ["a", "cat", "sleep", "understandable", "naïve"]
    lexicon = Lexicon(names, normal(0, 5, 7))
    table = torch.randn(65536, 5, generator=torch.Generator().manual_seed(0))
    ours = WordsAndCharacters(config_of(ngrams=ngrams), lexicon)(sentence([3, 0], [4, 2, 1]))
    for row, ids in enumerate(([3, 0], [4, 2, 1])):
        for place, token in enumerate(ids):
            grams = [table[oracles.fnv1a(g.encode()) % 65536].tolist() for g in oracles.char_ngrams(names[token], 5)]
            pool = (
                oracles.char_ngram_embedding(grams) if ngrams == "max" else [sum(c) for c in zip(*grams, strict=True)]
            )
            assert_close(
                ours[row, place], torch.tensor([*lexicon.vectors[token].tolist(), *pool]), atol=1e-5, rtol=1e-5
            )


def test_the_vectors_of_words_are_fixed_and_the_same_in_every_model() -> None:
    one, other = model_of(0), model_of(1)
    assert torch.equal(one.words.vectors, other.words.vectors)
    names = {name for name, _ in one.named_parameters()}
    assert not any(name.startswith("words") for name in {*names, *one.state_dict()})
    assert {"projection.weight"} == {name for name in names if name.startswith("projection")}
    half = Lexicon(TINY.words, TINY.vectors.half())
    pair = sentence([1, 2])
    assert GaussianTransformer(config_of(), half)(pair, pair).dtype == torch.float32


# Blocks against loops


def pair_of_batches() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    p_mask, h_mask = lengths_to_mask(torch.tensor([5, 1, 3])), lengths_to_mask(torch.tensor([2, 4, 4]))
    return normal(1, 3, 5, 6), normal(2, 3, 4, 6), p_mask, h_mask


@every_locality
def test_an_encoding_block_equals_its_loop(locality: Locality) -> None:
    """The post-norm Transformer, with Eqs 3, 4, 10 to 12 and 18 to 20."""
    block = drawn_anew(EncodingBlock(config_of(locality=locality)))
    x, _, mask, _ = pair_of_batches()
    y = block(x, mask)
    for row in range(3):
        assert_equal(y[row][mask[row]], loops.encoding_block(real(x, mask, row), weights_of(block, locality), HEADS))


@every_locality
def test_an_interaction_block_equals_its_loop(locality: Locality) -> None:
    block = drawn_anew(InteractionBlock(config_of(locality=locality)))
    p, h, p_mask, h_mask = pair_of_batches()
    p_new, h_new = block(p, h, p_mask, h_mask)
    for row in range(3):
        words = real(p, p_mask, row), real(h, h_mask, row)
        expected = loops.interaction_block(*words, weights_of(block, locality), HEADS)
        assert_equal(p_new[row][p_mask[row]], expected[0])
        assert_equal(h_new[row][h_mask[row]], expected[1])


def test_the_convolution_equals_its_loop() -> None:
    convolution = drawn_anew(SeparableConvolution(3, 7))
    x, mask = normal(3, 2, 11, 3), lengths_to_mask(torch.tensor([11, 2]))
    for row in range(2):
        expected = loops.separable_convolution(real(x, mask, row), weights_of(convolution))
        assert_equal(convolution(x, mask)[row][mask[row]], expected)


def test_the_aggregation_equals_its_loop() -> None:
    """Eqs 13 to 15: the length is that of the sentence, not of the batch."""
    aggregation = drawn_anew(Aggregation(6))
    x, aligned, mask = normal(1, 3, 5, 6), normal(2, 3, 5, 6), lengths_to_mask(torch.tensor([5, 1, 3]))
    for row in range(3):
        expected = loops.aggregate(real(x, mask, row), real(aligned, mask, row), weights_of(aggregation))
        assert_equal(aggregation(x, aligned, mask)[row], expected)


@every_locality
def test_the_whole_forward_equals_the_loop(locality: Locality) -> None:
    model = model_of(locality=locality)
    premise, hypothesis = sentence([1, 2, 3, 4, 5], [6]), sentence([7, 8], [9, 10, 11, 1])
    weights = weights_of(model, locality)
    logits = model(premise, hypothesis)
    for row in range(2):
        words = [real(model.words(s), s.mask, row) for s in (premise, hypothesis)]
        assert_equal(logits[row], loops.gaussian_transformer(*words, weights, (2, 2), HEADS))


def test_the_last_interaction_is_what_is_compared_with_the_last_encoding() -> None:
    """x_i and x~_i of Eq 13, whatever the numbers of blocks."""
    premise, hypothesis = sentence([1, 2, 3]), sentence([7, 8])
    for blocks in ((1, 1), (1, 2), (3, 1)):
        sizes = dict(zip(("num_encoding_blocks", "num_interaction_blocks"), blocks, strict=True))
        model = model_of(**sizes)
        words = [real(model.words(s), s.mask, 0) for s in (premise, hypothesis)]
        expected = loops.gaussian_transformer(*words, weights_of(model), blocks, HEADS)
        assert_equal(model(premise, hypothesis)[0], expected)


# Padding, batches, precision

VARIANTS = [
    *({"locality": locality} for locality in LOCALITIES),
    {"ngrams": "sum"},
    {"sum_and_difference": True},
    {"sequential": True},
    {"aggregation": "pool"},
    {"prior_scope": "head"},
    {"prior_scope": "model"},
    {"attention_biases": True},
    {"norm": "pre"},
]
every_variant = pytest.mark.parametrize("options", VARIANTS, ids=lambda options: "-".join(map(str, options.values())))


@every_variant
@settings(max_examples=10)
@given(premise=sentences(), hypothesis=sentences())
def test_padding_and_batch_mates_change_nothing(
    options: dict[str, Any], premise: Sentence, hypothesis: Sentence
) -> None:
    model = model_of(**options)
    logits = model(premise, hypothesis)
    for row in range(len(logits)):
        alone = (
            Sentence(s.tokens[row][s.mask[row]][None], s.mask[row][s.mask[row]][None]) for s in (premise, hypothesis)
        )
        assert_close(model(*alone)[0], logits[row], atol=1e-12, rtol=1e-12)
    garbled = (Sentence(s.tokens.masked_fill(~s.mask, 39), s.mask) for s in (premise, hypothesis))
    assert torch.equal(model(*garbled), logits)
    longer = (
        Sentence(nn.functional.pad(s.tokens, (0, 9), value=17), nn.functional.pad(s.mask, (0, 9)))
        for s in (premise, hypothesis)
    )
    assert_close(model(*longer), logits, atol=1e-12, rtol=1e-12)
    models.padding_before_words_is_refused_or_changes_nothing(model, premise, hypothesis)


@every_variant
def test_a_sentence_without_words_is_harmless(options: dict[str, Any]) -> None:
    model = model_of(**options)
    empty = Sentence(torch.zeros(2, 3, dtype=torch.int64), torch.tensor([[False] * 3, [True, True, False]]))
    for pair in ((empty, sentence([1, 2], [3, 4])), (sentence([1, 2], [3, 4]), empty), (empty, empty)):
        model.zero_grad()
        logits = model(*pair)
        logits.sum().backward()
        assert torch.isfinite(logits).all()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_the_padding_holds_nothing_that_a_gradient_reaches() -> None:
    model, hypothesis = model_of(locality="convolution"), sentence([7, 8], [9, 10])
    premise = sentence([1, 2, 3], [4])
    vectors = model.words.vectors[premise.tokens].clone().requires_grad_()
    model.words = nn.Module()
    model.words.forward = lambda s: vectors if s is premise else TINY_VECTORS[s.tokens]
    model(premise, hypothesis).sum().backward()
    assert torch.all(vectors.grad[~premise.mask] == 0) and torch.all(vectors.grad[premise.mask] != 0)


TINY_VECTORS = normal(5, 40, 12)


# What the blocks see


def turned(s: Sentence, order: list[int]) -> Sentence:
    return Sentence(s.tokens[:, order], s.mask[:, order])


@every_locality
def test_locality_alone_tells_the_blocks_an_order(locality: Locality) -> None:
    """Without positions and without a prior, permuting the words permutes what becomes of them."""
    model = model_of(locality=locality)
    model.position = nn.Identity()
    one, order = sentence([1, 2, 3, 4, 5]), [3, 1, 4, 2, 0]
    change = (model.encode(turned(one, order)) - model.encode(one)[:, order]).abs().max()
    if locality == "none":
        assert change < 1e-12
        assert_close(model(turned(one, order), one), model(one, one), atol=1e-12, rtol=1e-12)
    else:
        assert change > 1e-4


def test_positions_tell_an_order_too() -> None:
    model, one, order = model_of(locality="none"), sentence([1, 2, 3, 4, 5]), [3, 1, 4, 2, 0]
    assert (model.encode(turned(one, order)) - model.encode(one)[:, order]).abs().max() > 1e-4


@every_locality
def test_reversal(locality: Locality) -> None:
    """All biases but the signed trainable one are even: without positions, a reversed sentence is encoded reversed."""
    model = model_of(locality=locality)
    model.position = nn.Identity()
    for part in model.modules():
        if isinstance(part, SeparableConvolution):
            part.depthwise.weight.data = part.depthwise.weight.data + part.depthwise.weight.data.flip(2)
    one = sentence([1, 2, 3, 4, 5])
    change = (model.encode(turned(one, [4, 3, 2, 1, 0])) - model.encode(one).flip(1)).abs().max()
    assert change > 1e-4 if locality == "trainable" else change < 1e-12


@every_locality
def test_left_padding_moves_nothing_without_positions(locality: Locality, monkeypatch: pytest.MonkeyPatch) -> None:
    """With positions, which count columns, it is refused."""
    monkeypatch.setattr("gaussian_transformer.require_words_first", lambda mask: None)
    model = model_of(locality=locality)
    model.position = nn.Identity()
    one = sentence([1, 2, 3, 4])
    right = Sentence(nn.functional.pad(one.tokens, (3, 0), value=9), nn.functional.pad(one.mask, (3, 0)))
    assert_close(model.encode(right)[:, 3:], model.encode(one), atol=1e-12, rtol=1e-12)


def test_encoding_sees_one_sentence_and_interaction_both() -> None:
    model, premise = model_of(), sentence([1, 2, 3])
    one, other = sentence([4, 5]), sentence([4, 6])
    p = model.encode(premise)
    block = model.interaction[0]
    p_one, _ = block(p, model.encode(one), premise.mask, one.mask)
    p_other, _ = block(p, model.encode(other), premise.mask, other.mask)
    assert (p_one - p_other).abs().amax(-1).min() > 1e-6, "every word of the premise sees the hypothesis"
    batch = sentence([1, 2, 3], [4, 5, 6])
    assert_close(model.encode(batch)[:1], p, atol=1e-12, rtol=1e-12)


@every_locality
def test_swapping_the_sentences_swaps_what_a_block_returns(locality: Locality) -> None:
    block = drawn_anew(InteractionBlock(config_of(locality=locality)))
    p, h, p_mask, h_mask = pair_of_batches()
    p_new, h_new = block(p, h, p_mask, h_mask)
    h_swapped, p_swapped = block(h, p, h_mask, p_mask)
    assert_close(p_swapped, p_new, atol=1e-12, rtol=1e-12)
    assert_close(h_swapped, h_new, atol=1e-12, rtol=1e-12)


def test_one_sentence_after_the_other_would_not_be_swap_equivariant() -> None:
    """The reading that is not taken: the hypothesis attends to a premise that attended already."""
    block = drawn_anew(InteractionBlock(config_of()))
    p, h, p_mask, h_mask = pair_of_batches()
    p, h = block.self_attention(p, p_mask), block.self_attention(h, h_mask)
    p_first = block.inter_attention(p, h, h_mask)
    h_second = block.inter_attention(h, p_first, p_mask)
    assert (h_second - block.inter_attention(h, p, p_mask))[h_mask].abs().max() > 1e-3


@given(premise=sentences(), hypothesis=sentences())
def test_the_logits_are_not_symmetric(premise: Sentence, hypothesis: Sentence) -> None:
    model = model_of()
    same = premise.tokens.shape == hypothesis.tokens.shape and torch.equal(premise.mask, hypothesis.mask)
    same = same and torch.equal(premise.tokens[premise.mask], hypothesis.tokens[hypothesis.mask])
    assert same or (model(premise, hypothesis) - model(hypothesis, premise)).abs().max() > 1e-6


def test_a_premise_is_updated_first_where_that_is_asked_for() -> None:
    """Its words change as they do otherwise, and the hypothesis's see the changed ones."""
    model, default = model_of(sequential=True), model_of()
    default.load_state_dict(model.state_dict())
    p, h = model.encode(sentence([1, 2, 3])), model.encode(sentence([4, 5]))
    masks = torch.ones(1, 3, dtype=torch.bool), torch.ones(1, 2, dtype=torch.bool)
    block, plain = model.interaction[0], default.interaction[0]
    (p_new, h_new), (p_old, h_old) = block(p, h, *masks), plain(p, h, *masks)
    assert torch.equal(p_new, p_old) and (h_new - h_old).abs().max() > 1e-4
    p_seen, h_seen = plain.self_attention(p, masks[0]), plain.self_attention(h, masks[1])
    met = plain.inter_attention(p_seen, h_seen, masks[1])
    assert_close(h_new, plain.feedforward(plain.inter_attention(h_seen, met, masks[0])), atol=1e-12, rtol=1e-12)
    beta, alpha = block.weights(p, h, *masks)
    assert torch.equal(beta, plain.weights(p, h, *masks)[0])
    assert torch.equal(alpha, plain.inter_attention.sublayer.weights(h_seen, met, masks[0]))


def test_priors_belong_to_layers_to_heads_or_to_the_model() -> None:
    priors = {
        scope: [part.prior for part in model_of(prior_scope=scope).modules() if isinstance(part, GaussianSelfAttention)]
        for scope in ("layer", "head", "model")
    }
    assert all(len(each) == 4 for each in priors.values())
    assert len(set(priors["layer"])) == len(set(priors["head"])) == 4 and len(set(priors["model"])) == 1
    assert all(isinstance(prior, GaussianPrior) for prior in priors["layer"] + priors["model"])
    for each in priors["head"]:
        assert isinstance(each, HeadPriors) and len(set(each.priors)) == HEADS


@every_locality
def test_heads_with_equal_priors_are_those_of_a_layer(locality: Locality) -> None:
    """Also where the prior is a single 0, or has no parameters."""
    default, model = model_of(locality=locality), model_of(locality=locality, prior_scope="head")
    state = default.state_dict()
    model.load_state_dict({name: state[re.sub(r"prior\.priors\.\d", "prior", name)] for name in model.state_dict()})
    pair = sentence([1, 2, 3], [7, 8]), sentence([4, 5], [9])
    assert_close(model(*pair), default(*pair), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("sequential", [False, True])
def test_norms_stand_before_the_sub_layers_where_that_is_asked_for(sequential: bool) -> None:
    """x + Sublayer(LayerNorm(x)), both sentences normed where they meet, and a norm behind each stack."""
    model = model_of(norm="pre", sequential=sequential)
    p, h = sentence([1, 2, 3]), sentence([4, 5])

    def alone(layer: Any, x: Tensor, *context: Tensor) -> Tensor:
        return x + layer.sublayer(layer.norm(x), *context)

    encoded = []
    for s in (p, h):
        x = model.position(model.projection(model.words(s)))
        for block in model.encoding:
            x = alone(block.feedforward, alone(block.self_attention[0], x, s.mask))
        encoded.append(model.norm_encoded(x))
        assert_close(model.encode(s), encoded[-1], atol=1e-12, rtol=1e-12)
    x, y = encoded
    for block in model.interaction:
        x, y = alone(block.self_attention[0], x, p.mask), alone(block.self_attention[0], y, h.mask)
        norm, attend = block.inter_attention.norm, block.inter_attention.sublayer
        x_new = x + attend(norm(x), norm(y), h.mask)
        met = norm(x_new) if sequential else norm(x)
        weights = attend.weights(norm(x), norm(y), h.mask), attend.weights(norm(y), met, p.mask)
        x, y = alone(block.feedforward, x_new), alone(block.feedforward, y + attend(norm(y), met, p.mask))
    last = model.alignment_by_head(p, h)
    for ours, expected in zip(last, weights, strict=True):
        assert_close(ours[:, -1], expected, atol=1e-12, rtol=1e-12)
    x, y = (
        model.aggregation(first, model.norm_interacted(z), s.mask)
        for first, z, s in zip(encoded, (x, y), (p, h), strict=True)
    )
    assert_close(model(p, h), model.prediction(torch.cat([x, y], dim=-1)), atol=1e-12, rtol=1e-12)
    assert model.norm_encoded is not model.norm_interacted


@pytest.mark.parametrize(
    ("option", "parts"),
    [("attention_dropout", {"GaussianSelfAttention": 4, "InterAttention": 2}), ("inner_dropout", {"Sequential": 4})],
)
def test_dropout_of_weights_and_of_hidden_units_has_its_place(option: str, parts: dict[str, int]) -> None:
    model = model_of(dropout=0.0, **{option: 0.25})
    owners = [
        type(part).__name__
        for part in model.modules()
        for child in part.children()
        if isinstance(child, nn.Dropout) and child.p == 0.25
    ]
    assert {name: owners.count(name) for name in owners} == parts
    pair = sentence([1, 2, 3]), sentence([4, 5])
    assert torch.equal(model(*pair), model(*pair))
    model.train()
    assert not torch.equal(model(*pair), model(*pair))


@every_locality
@pytest.mark.parametrize("scope", ["layer", "head", "model"])
def test_every_prior_is_where_the_model_is(locality: Locality, scope: Any) -> None:
    """A scalar of the CPU would mix with tensors of any device, and a matrix would not."""
    with torch.device("meta"):
        block = EncodingBlock(config_of(locality=locality, prior_scope=scope))
        x, mask = torch.empty(2, 5, 6), torch.ones(2, 5, dtype=torch.bool)
        assert block(x, mask).device.type == "meta"
    moved = EncodingBlock(config_of(locality=locality, prior_scope=scope)).to("meta")
    assert moved(x, mask).device.type == "meta"
    assert moved.self_attention[-1].sublayer.prior(5, 5).device.type == "meta"


def test_weights_between_sentences_are_dropped_in_training_alone() -> None:
    attention = drawn_anew(InterAttention(6, 3, dropout=0.25))
    x, other, mask = normal(1, 2, 4, 6), normal(2, 2, 5, 6), torch.arange(5) < torch.tensor([[5], [3]])
    weights, values = attention.weights(x, other, mask), attention.value(other).unflatten(2, (3, 2)).transpose(1, 2)
    torch.manual_seed(0)
    kept = nn.functional.dropout(weights, 0.25)
    assert (kept == 0).any() and (kept != weights).any()
    attention.train()
    torch.manual_seed(0)
    expected = attention.output((kept @ values).transpose(1, 2).flatten(2))
    assert_close(attention(x, other, mask), expected, atol=1e-12, rtol=1e-12)


def test_attention_biases_are_where_they_are_said_to_be() -> None:
    model = model_of(attention_biases=True)
    biased = {name.rsplit(".", 2)[1] for name, _ in model.named_parameters() if name.endswith(".bias")}
    assert {"in_proj", "out_proj", "query", "key", "value", "output"} <= biased
    fresh = GaussianTransformer(config_of(attention_biases=True), TINY)
    assert all(p.abs().max() == 0 for n, p in fresh.named_parameters() if n.endswith("proj.bias"))


def test_the_aggregation_that_the_paper_rejects_pools_what_stands_side_by_side() -> None:
    """Maxima and means of [x : x~ : x - x~ : x * x~], word by word in plain Python."""
    x, seen = [[1.0, -2.0], [3.0, 0.5], [9.0, 9.0]], [[0.5, 1.0], [-1.0, 2.0], [9.0, 9.0]]
    mask = torch.tensor([[True, True, False]])
    rows = [[1.0, -2.0, 0.5, 1.0, 0.5, -3.0, 0.5, -2.0], [3.0, 0.5, -1.0, 2.0, 4.0, -1.5, -3.0, 1.0]]
    expected = [*map(max, *rows), *((one + two) / 2 for one, two in zip(*rows, strict=True))]
    pooled = PooledAggregation()(torch.tensor([x]), torch.tensor([seen]), mask)
    assert_close(pooled, torch.tensor([expected]), atol=1e-6, rtol=1e-6)


def test_the_sum_and_the_difference_are_those_of_the_sentences() -> None:
    """[p : h : p + h : p - h]: swapping the sentences keeps the sum and turns the difference around."""
    model = model_of(sum_and_difference=True)
    premise, hypothesis = sentence([1, 2, 3]), sentence([4, 5])
    first = model.prediction[0][0]
    kept = first.weight.data.clone()
    for half, swapped in ((slice(12, 18), 1), (slice(18, 24), -1)):
        first.weight.data = torch.zeros_like(kept)
        first.weight.data[:, half] = kept[:, half]
        forward = model(premise, hypothesis)
        first.weight.data *= swapped
        assert_close(model(hypothesis, premise), forward, atol=1e-12, rtol=1e-12)
        assert (forward - model(premise, premise)).abs().max() > 1e-4


# The parts


def test_a_residual_normalises_what_it_adds_up() -> None:
    """LayerNorm(x + Sublayer(x)): zero mean and unit variance, x's own scale and mean gone where nothing is added."""
    x = normal(4, 2, 3, 7)
    for sublayer in (nn.Linear(7, 7).double(), nn.Identity()):
        y = Residual(sublayer, 7).double()(x)
        assert_close(y.mean(-1), torch.zeros(2, 3, dtype=torch.float64), atol=1e-12, rtol=0)
        assert_close(y.var(-1, correction=0), torch.ones(2, 3, dtype=torch.float64), atol=1e-3, rtol=0)
    nothing = nn.Linear(7, 7).double()
    nothing.weight.data.zero_()
    nothing.bias.data.zero_()
    residual = drawn_anew(Residual(nn.Identity(), 7))
    residual.sublayer = nothing
    assert_close(residual(x), residual.norm(x), atol=1e-12, rtol=1e-12)
    assert_close(residual(1e3 * x + 5), residual(1e3 * x), atol=1e-6, rtol=1e-6)


def test_a_residual_drops_what_the_sublayer_adds_and_nothing_of_x() -> None:
    residual = Residual(nn.Identity(), 7, dropout=0.5).double().train()
    residual.norm = nn.Identity()
    x = normal(4, 20, 30, 7)
    shares = (residual(x) / x).round(decimals=6)
    assert set(shares.unique().tolist()) == {1.0, 3.0}


class TestInterAttention:
    layer = staticmethod(lambda: drawn_anew(InterAttention(6, HEADS)))

    def test_it_equals_its_loop(self) -> None:
        p, h, p_mask, h_mask = pair_of_batches()
        layer = self.layer()
        for row in range(3):
            expected = loops.inter_attention(real(p, p_mask, row), real(h, h_mask, row), weights_of(layer), HEADS)
            assert_equal(layer(p, h, h_mask)[row][p_mask[row]], expected)

    def test_it_has_no_order(self) -> None:
        """Equivariant in its own words, invariant in the other's, and blind to how often all of those are said."""
        layer, (p, h, _, h_mask) = self.layer(), pair_of_batches()
        y = layer(p, h, h_mask)
        assert_close(layer(p[:, [3, 1, 4, 2, 0]], h, h_mask), y[:, [3, 1, 4, 2, 0]], atol=1e-12, rtol=1e-12)
        order = [2, 0, 3, 1]
        assert_close(layer(p, h[:, order], h_mask[:, order]), y, atol=1e-12, rtol=1e-12)
        twice = layer(p, torch.cat([h, h], 1), torch.cat([h_mask, h_mask], 1))
        assert_close(twice, y, atol=1e-12, rtol=1e-12)

    def test_a_single_word_is_all_there_is_to_see(self) -> None:
        layer, (p, h, _, _) = self.layer(), pair_of_batches()
        y = layer(p, h[:, :1], torch.ones(3, 1, dtype=torch.bool))
        assert_close(y, layer.output(layer.value(h[:, :1])).expand_as(y), atol=1e-12, rtol=1e-12)

    def test_heads_may_change_places_and_queries_may_trade_length_with_keys(self) -> None:
        layer, (p, h, _, h_mask) = self.layer(), pair_of_batches()
        y = layer(p, h, h_mask)
        order = [4, 5, 0, 1, 2, 3]  # the last head first
        for part in (layer.query, layer.key, layer.value):
            part.weight.data = part.weight.data[order]
        layer.output.weight.data = layer.output.weight.data[:, order]
        layer.query.weight.data *= 8
        layer.key.weight.data /= 8
        assert_close(layer(p, h, h_mask), y, atol=1e-12, rtol=1e-12)
        layer.output.weight.data = layer.output.weight.data[:, order]
        assert (layer(p, h, h_mask) - y).abs().max() > 1e-3

    def test_its_weights_are_distributions_over_real_words(self) -> None:
        layer, (p, h, _, h_mask) = self.layer(), pair_of_batches()
        weights = layer.weights(p, h, h_mask)
        assert weights.shape == (3, HEADS, 5, 4)
        assert torch.all(weights.masked_select(~h_mask[:, None, None]) == 0)
        assert_close(weights.sum(-1), torch.ones(3, HEADS, 5, dtype=torch.float64), atol=1e-12, rtol=0)


class TestAggregation:
    aggregation = staticmethod(lambda: drawn_anew(Aggregation(6)))
    x, aligned = normal(1, 1, 5, 6), normal(2, 1, 5, 6)
    mask = torch.ones(1, 5, dtype=torch.bool)

    def test_saying_it_twice_is_worth_the_square_root_of_two(self) -> None:
        aggregation = self.aggregation()
        once = aggregation(self.x, self.aligned, self.mask)
        twice = aggregation(self.x.repeat(1, 2, 1), self.aligned.repeat(1, 2, 1), self.mask.repeat(1, 2))
        assert_close(twice, math.sqrt(2) * once, atol=1e-12, rtol=1e-12)

    def test_it_has_no_order_but_keeps_pairs_together(self) -> None:
        aggregation, order = self.aggregation(), [3, 1, 4, 2, 0]
        once = aggregation(self.x, self.aligned, self.mask)
        assert_close(aggregation(self.x[:, order], self.aligned[:, order], self.mask), once, atol=1e-12, rtol=1e-12)
        assert (aggregation(self.x[:, order], self.aligned, self.mask) - once).abs().max() > 1e-3
        assert (aggregation(self.aligned, self.x, self.mask) - once).abs().max() > 1e-3

    def test_equal_words_grow_with_the_root_of_their_number(self) -> None:
        aggregation = self.aggregation()
        one = aggregation(self.x[:, :1], self.aligned[:, :1], self.mask[:, :1])
        five = aggregation(self.x[:, :1].expand(1, 5, 6), self.aligned[:, :1].expand(1, 5, 6), self.mask)
        assert_close(five, math.sqrt(5) * one, atol=1e-12, rtol=1e-12)


def test_each_locality_is_its_row_of_table_1() -> None:
    assert tuple(PRIORS) == LOCALITIES
    for locality in LOCALITIES:
        layers = SelfAttention(config_of(locality=locality))
        assert len(layers) == (2 if locality == "convolution" else 1)
        assert isinstance(layers[-1].sublayer.prior, FlatPrior) == (locality in ("none", "convolution"))
    gaussian, variant = PRIORS["gaussian"](), PRIORS["gaussian-variant"]()
    assert isinstance(gaussian, GaussianPrior) and gaussian.kappa is None
    assert isinstance(variant, GaussianPrior) and variant.kappa is not None


@every_locality
def test_each_self_attention_has_a_prior_of_its_own(locality: Locality) -> None:
    """The parameters at various depths are different; the sentences' are the same."""
    model = model_of(locality=locality)
    priors = [part.prior for part in model.modules() if hasattr(part, "prior")]
    assert len(priors) == 4 and len({id(prior) for prior in priors}) == 4


# Alignment


def test_the_alignment_is_shown_by_block_and_head() -> None:
    model = model_of(num_interaction_blocks=2)
    premise, hypothesis = sentence([1, 2, 3, 4, 5], [6]), sentence([7, 8], [9, 10, 11])
    weights, shown = weights_of(model), model.alignment_by_head(premise, hypothesis)
    assert isinstance(model, AlignsByHead) and model.leading_tokens == ()
    for row in range(2):
        p, h = (real(model.encode(s), s.mask, row) for s in (premise, hypothesis))
        for k in range(2):
            block = loops.under(weights, f"interaction.{k}")
            u, v = (loops.local(x, loops.under(block, "self_attention"), HEADS) for x in (p, h))
            for ours, x, y, shape in ((shown[0], u, v, (5, 3)), (shown[1], v, u, (3, 5))):
                tables = loops.inter_attention_weights(x, y, loops.under(block, "inter_attention.sublayer"), HEADS)
                expected = torch.zeros(HEADS, *shape, dtype=torch.float64)
                expected[:, : len(x), : len(y)] = torch.tensor(tables, dtype=torch.float64)
                assert_close(ours[row, k], expected, atol=1e-10, rtol=1e-9)
            p, h = loops.interaction_block(p, h, block, HEADS)


def test_the_alignment_is_the_last_blocks_mean_over_heads() -> None:
    model = model_of(num_interaction_blocks=2)
    pair = sentence([1, 2, 3, 4, 5], [6]), sentence([7, 8], [9, 10, 11])
    for ours, by_head in zip(model.alignment(*pair), model.alignment_by_head(*pair), strict=True):
        assert_close(ours, sum(by_head[:, 1, k] for k in range(HEADS)) / HEADS, atol=1e-12, rtol=0)


# Training


@every_variant
def test_every_parameter_is_used(options: dict[str, Any]) -> None:
    model = model_of(**options)
    pair = sentence([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]), sentence([5, 6, 9])
    model(*pair)[0, 0].backward()
    for name, parameter in model.named_parameters():
        dead = name.endswith("key.bias")  # it shifts whole rows of scores
        assert parameter.grad is not None and (dead or parameter.grad.abs().max() > 1e-12), name


@every_variant
def test_every_option_has_an_effect(options: dict[str, Any]) -> None:
    """The same weights, where both have them, and other logits."""
    pair = sentence([1, 2, 3, 4, 5]), sentence([5, 6, 9])
    default = {"locality": "gaussian-variant", "ngrams": "max"}
    if options.items() <= default.items():
        return
    ours, theirs = model_of(**options), model_of()
    shared = {
        name: value
        for name, value in theirs.state_dict().items()
        if name in ours.state_dict() and ours.state_dict()[name].shape == value.shape
    }
    ours.load_state_dict(shared, strict=False)
    assert (ours(*pair) - theirs(*pair)).abs().max() > 1e-4


@pytest.mark.parametrize("locality", ["none", "gaussian-variant"])
def test_it_overfits_nine_pairs(locality: Locality) -> None:
    torch.manual_seed(0)
    model = GaussianTransformer(config_of(hidden_size=12, locality=locality, dropout=0.0), TINY).double()
    models.it_overfits_nine_pairs(model, steps=100)


def test_dropout_is_for_training() -> None:
    model, pair = model_of(dropout=0.5), (sentence([1, 2, 3]), sentence([4, 5]))
    assert torch.equal(model(*pair), model(*pair))
    model.train()
    assert not torch.equal(model(*pair), model(*pair))


def test_two_classes() -> None:
    assert model_of(num_classes=2)(sentence([1, 2]), sentence([3])).shape == (1, 2)


# Tables


def test_every_row_of_the_tables_is_a_configuration() -> None:
    for table in SCRIPT.tables.values():
        for row in table.rows:
            assert len(row.paper) in (0, len(table.columns)), row.name
            if not row.script:
                GaussianTransformerConfig(**row.options)


def test_the_tables_hold_the_papers_best_figures() -> None:
    rows = {(name, row.name): row for name, table in SCRIPT.tables.items() for row in table.rows}
    assert [row.options["locality"] for row in SCRIPT.tables["1"].rows] == list(LOCALITIES)
    assert rows["1", "+ Gaussian prior variant (vii)"].paper == (80.3, 80.5)
    assert rows["2", "120D Gaussian Transformer"].paper == (89.2,)
    assert rows["3", "Gaussian Transformer, ensemble"].paper == (81.6, 80.7)
    assert rows["4", "Gauss. Trans."].paper == (8, 4)
    assert rows["5-snli", "Gaussian Transformer(ELMo)"].paper == (89.4,)
    assert rows["5-multinli", "Gaussian Transformer(ELMo)"].paper == (81.0, 80.6)
    assert rows["6-snli", "Gaussian Transformer"].paper == (78.1,)
    assert rows["6-multinli", "Gaussian Transformer"].paper == (69.8, 68.5)
    grid = SCRIPT.tables["figure-5"]
    places = [tuple(row.options[axis] for axis in grid.axes) for row in grid.rows]
    assert set(places) == set(itertools.product(range(1, 6), range(1, 5))) and len(places) == 20
