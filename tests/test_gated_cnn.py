"""The gated CNN for sentence matching against its paper: counts, equations, what it can see and what it cannot."""

import dataclasses
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.testing import assert_close

import models
import oracles_gated_cnn as oracles
import strategies
from gated_cnn import SCRIPT, GatedCNN, GatedCNNConfig, GatedLinearEncoder, GatedLinearUnit, compare
from nli_common.data import Sentence
from nli_common.lexicon import Lexicon
from nli_common.script import Aligns
from nlilayers import GatedConvBlock
from nlilayers.masking import lengths_to_mask
from strategies import normal

WORDS = ["a", "I", "on", "cat", "the", "bird", "with", "young", "piano", "sister", "letters", "children", "elephants"]
TAGS = ["DT", "NN", "VBZ"]
TINY = Lexicon(WORDS, normal(0, len(WORDS), 5), tags=TAGS)
SIZES = {"hidden_size": 7, "context_layers": 2, "char_dim": 2, "char_size": 3, "num_tags": 4}
GATES = {
    "gcnn": ("output", "forget", "candidate"),
    "no-forget-gate": ("output", "candidate"),
    "no-output-gate": ("forget", "candidate"),
    "cnn": ("candidate",),
}
WORDS_ONLY = {"use_chars": False, "use_pos": False}

every_convolution = pytest.mark.parametrize("convolution", [*GATES, "glu", "residual-glu"])


def model_of(seed: int = 0, lexicon: Lexicon = TINY, **options: object) -> GatedCNN:
    """With random biases: one that starts at 0 would hide what it does."""
    torch.manual_seed(seed)
    model = GatedCNN(GatedCNNConfig(**{**SIZES, **options}), lexicon).double().eval()
    for k, parameter in enumerate(model.parameters()):
        if parameter.ndim == 1:
            parameter.data = normal(seed + k, *parameter.shape, scale=0.5)
    model.classify[1][0].bias.data += 1  # seven units: in some draws all of them would be shut
    return model


@st.composite
def sentence(draw: st.DrawFn, batch: int = 3) -> Sentence:
    lengths = torch.tensor(draw(st.lists(st.integers(1, 5), min_size=batch, max_size=batch)))
    mask = lengths_to_mask(lengths)
    generator = torch.Generator().manual_seed(draw(strategies.seeds))
    tokens, pos = (torch.randint(n, mask.shape, generator=generator) for n in (len(WORDS), len(TAGS) + 1))
    return Sentence(tokens, mask, pos)


def row_of(sentence: Sentence, row: int, order: Tensor | list[int] | slice = slice(None)) -> Sentence:
    """One sentence of the batch without its padding, its words in another order if asked for."""
    mask = sentence.mask[row]
    tokens, pos = sentence.tokens[row][mask][order], sentence.pos[row][mask][order]
    return Sentence(tokens[None], torch.ones_like(tokens[None], dtype=torch.bool), pos[None])


def words(*tokens: int) -> Sentence:
    ids = torch.tensor([tokens])
    return Sentence(ids, torch.ones_like(ids, dtype=torch.bool), ids % (len(TAGS) + 1))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (WORDS_ONLY, 8_016_603),
        (WORDS_ONLY | {"num_classes": 2}, 8_016_302),
        ({"use_pos": False}, 8_537_203 + 3 * 40),
        ({}, 8_678_203 + 3 * 40),
        ({"train_vectors": True}, 8_678_203 + 3 * 40 + 2 * 300),
        (WORDS_ONLY | {"kernel_size": 5}, 12_876_603),
        (WORDS_ONLY | {"convolution": "glu"}, 5_224_803),
        (WORDS_ONLY | {"convolution": "residual-glu"}, 5_224_803 + 1200 * 300),
        (WORDS_ONLY | {"convolution": "cnn"}, 3_153_003),
        (WORDS_ONLY | {"convolution": "no-forget-gate"}, 5_584_803),
        (WORDS_ONLY | {"convolution": "no-output-gate"}, 5_584_803),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_parameter_counts(options: dict, expected: int) -> None:
    """Of the paper's sizes, with a row for each of two letters and one for any other character."""
    lexicon = Lexicon(["a", "b"], torch.zeros(2, 300))
    with torch.device("meta"):
        model = GatedCNN(GatedCNNConfig(**options), lexicon)
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == expected


def test_the_papers_recipe() -> None:
    recipe = SCRIPT.recipe
    assert (recipe.optimizer, recipe.lr, recipe.batch_size) == ("adam", 4e-4, 64)


def test_the_rows_of_the_tables_are_the_papers_models() -> None:
    assert [table.measures[-1] for table in SCRIPT.tables.values()] == 2 * ["seconds/epoch"]
    for table in SCRIPT.tables.values():
        esim = [row.name for row in table.rows if row.script == "esim"]
        configs = [GatedCNNConfig(**row.options) for row in table.rows if row.script != "esim"]
        assert len(set(configs)) == len(configs) == len(table.rows) - len(esim) and "ESIM (our implement)" in esim
        assert configs[4] == GatedCNNConfig() and configs[2] == GatedCNNConfig(**WORDS_ONLY)


def of(module: nn.Module) -> Callable[[list], list]:
    return lambda x: module(torch.tensor(x, dtype=torch.float64)).tolist()


def encoder_by_loop(encoder: nn.Module, convolution: str) -> oracles.Encoder:
    """The slow loop with the parameters of an encoder; which equations it runs is the option's word alone."""
    if convolution in GATES:
        blocks = [gates_of(block, GATES[convolution]) for block in encoder.blocks]
        return lambda x: oracles.gcnn(x, blocks)
    units = []
    for unit in encoder.units:
        (w, v), (b, c) = unit.weight.chunk(2), unit.bias.chunk(2)
        shortcut = None
        if convolution == "residual-glu":
            shortcut = unit.shortcut.weight.tolist() if w.shape[0] != w.shape[2] else True
        units.append({"value": (w.mT.tolist(), b.tolist()), "gate": (v.mT.tolist(), c.tolist()), "shortcut": shortcut})
    return lambda x: oracles.glu(x, units)


def gates_of(block: GatedConvBlock, names: tuple[str, ...]) -> dict:
    weights, biases = block.weight.chunk(len(names)), block.bias.chunk(len(names))
    parts = {name: (w.mT.tolist(), b.tolist()) for name, w, b in zip(names, weights, biases, strict=True)}
    projection = None if block.projection is None else block.projection.weight.tolist()
    return {"output": None, "forget": None, "projection": projection} | parts


def embedded_by_loop(model: GatedCNN, convolution: str, sentence: Sentence) -> list:
    """One row, word by word and character by character."""
    composed, rows = model.embedding.composed, []
    for token, tag in zip(sentence.tokens[0].tolist(), sentence.pos[0].tolist(), strict=True):
        characters = [composed.vectors.weight[1 + TINY.alphabet.index(c)].tolist() for c in WORDS[token]]
        vector, encoder = model.embedding.words.vectors[token].tolist(), encoder_by_loop(composed.encoder, convolution)
        rows.append(oracles.features(vector, characters, encoder, tag, getattr(model.embedding.tags, "num_tags", 0)))
    return rows


@every_convolution
@given(premise=sentence(), hypothesis=sentence(), kernel_size=st.integers(1, 4), seed=st.integers(0, 99))
def test_the_whole_forward_equals_the_loop(
    convolution: str, premise: Sentence, hypothesis: Sentence, kernel_size: int, seed: int
) -> None:
    """Eqs 1 to 9, one pair at a time and without padding."""
    model = model_of(seed, convolution=convolution, kernel_size=kernel_size)
    logits = model(premise, hypothesis)
    row = seed % len(logits)
    expected = oracles.gated_cnn(
        embedded_by_loop(model, convolution, row_of(premise, row)),
        embedded_by_loop(model, convolution, row_of(hypothesis, row)),
        encoder_by_loop(model.context, convolution),
        encoder_by_loop(model.aggregation, convolution),
        of(model.classify),
    )
    assert_close(logits[row], torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=1e-9)


@given(seed=strategies.seeds)
def test_comparison_has_four_parts(seed: int) -> None:
    """Eq 7: the absolute difference is not negative and, as the product, does not ask who is compared with whom."""
    x, y = normal(seed, 2, 3, 5), normal(seed + 1, 2, 3, 5)
    first, second, difference, product = compare(x, y).chunk(4, dim=-1)
    assert torch.equal(first, x) and torch.equal(second, y)
    assert torch.all(difference >= 0) and torch.equal(difference.square(), (x - y).square())
    assert torch.equal(product, x * y)
    turned = compare(y, x).chunk(4, dim=-1)
    assert torch.equal(turned[2], difference) and torch.equal(turned[3], product)
    same = compare(x, x).chunk(4, dim=-1)
    assert torch.all(same[2] == 0) and torch.equal(same[3], x.square())


@given(premise=sentence(), hypothesis=sentence())
def test_the_largest_is_no_less_than_the_mean(premise: Sentence, hypothesis: Sentence) -> None:
    """Eq 8, in its order; a sentence of one word is its own maximum and mean."""
    model = model_of()
    a, b = model.represent(premise), model.represent(hypothesis)
    alpha, _ = model.align(a, b, premise.mask, hypothesis.mask)
    largest, mean = model.aggregate(compare(a, alpha), premise.mask).chunk(2, dim=-1)
    assert torch.all(largest >= mean - 1e-12)
    single = premise.mask.sum(1) == 1
    assert_close(largest[single], mean[single], atol=1e-12, rtol=0)
    assert torch.all((largest - mean)[~single].amax(-1) > 1e-6) or not (~single).any()


@every_convolution
@given(premise=sentence(), hypothesis=sentence(), kernel_size=st.integers(2, 5))
def test_padding_and_batch_mates_change_nothing(
    convolution: str, premise: Sentence, hypothesis: Sentence, kernel_size: int
) -> None:
    model = model_of(convolution=convolution, kernel_size=kernel_size)
    logits = model(premise, hypothesis)
    for row in range(len(logits)):
        alone = model(row_of(premise, row), row_of(hypothesis, row))
        assert_close(alone[0], logits[row], atol=1e-12, rtol=1e-12)
    garbled = (
        Sentence(s.tokens.masked_fill(~s.mask, len(WORDS) - 1), s.mask, s.pos.masked_fill(~s.mask, 2))
        for s in (premise, hypothesis)
    )
    assert_close(model(*garbled), logits, atol=1e-12, rtol=1e-12)
    longer = (Sentence(*(nn.functional.pad(x, (0, 3)) for x in s)) for s in (premise, hypothesis))
    assert_close(model(*longer), logits, atol=1e-12, rtol=1e-12)
    models.padding_before_words_is_refused_or_changes_nothing(model, premise, hypothesis)


@every_convolution
def test_a_sentence_of_padding_alone_is_finite(convolution: str) -> None:
    model, full = model_of(convolution=convolution), words(1, 2, 3)
    empty = Sentence(full.tokens, torch.zeros_like(full.mask), full.pos)
    for pair in ((empty, full), (full, empty), (empty, empty)):
        model.zero_grad()
        logits = model(*pair)
        logits.sum().backward()
        assert torch.isfinite(logits).all()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@given(premise=sentence(), hypothesis=sentence())
def test_both_sentences_go_the_same_way(premise: Sentence, hypothesis: Sentence) -> None:
    """Swapped sentences give the swapped halves of Eq 8: all layers below the classifier are shared."""
    model, mirrored = model_of(), model_of()
    first = mirrored.classify[1][0]
    first.weight.data = first.weight.data.roll(14, dims=1)
    assert_close(mirrored(hypothesis, premise), model(premise, hypothesis), atol=1e-12, rtol=1e-12)
    one, other = row_of(premise, 0), words(4, 9, 2, 7)
    if not torch.equal(one.tokens, other.tokens):
        assert (model(one, other) - model(other, one)).abs().max() > 1e-6


@every_convolution
@given(premise=sentence(1), hypothesis=sentence(1))
def test_reversed_sentences_and_kernels_give_the_same_logits(
    convolution: str, premise: Sentence, hypothesis: Sentence
) -> None:
    model, mirrored = model_of(convolution=convolution), model_of(convolution=convolution)
    for encoder in (mirrored.context, mirrored.aggregation):
        for parameter in encoder.parameters():
            if parameter.ndim == 3:
                parameter.data = parameter.data.flip(1)
    turned = [row_of(s, 0, torch.arange(s.tokens.shape[1]).flip(0)) for s in (premise, hypothesis)]
    assert_close(mirrored(*turned), model(premise, hypothesis), atol=1e-12, rtol=1e-12)


@every_convolution
def test_windows_of_one_word_see_a_bag_and_wider_ones_see_order(convolution: str) -> None:
    premise, hypothesis, turned = words(3, 9, 4, 10, 6), words(10, 2, 5), words(6, 4, 10, 3, 9)
    turned = turned._replace(pos=turned.tokens % (len(TAGS) + 1))
    bag = model_of(convolution=convolution, kernel_size=1)
    assert_close(bag(turned, hypothesis), bag(premise, hypothesis), atol=1e-12, rtol=1e-12)
    assert_close(bag(hypothesis, turned), bag(hypothesis, premise), atol=1e-12, rtol=1e-12)
    for kernel_size in (2, 3):
        model = model_of(convolution=convolution, kernel_size=kernel_size)
        assert (model(turned, hypothesis) - model(premise, hypothesis)).abs().max() > 1e-5
        assert (model(hypothesis, turned) - model(hypothesis, premise)).abs().max() > 1e-5


@every_convolution
def test_a_bag_does_not_count_its_repetitions(convolution: str) -> None:
    """Attention, maximum and mean of a sentence said twice are those of the sentence; a sum would be doubled."""
    once, twice, other = words(3, 9, 4), words(3, 9, 4, 3, 9, 4), words(10, 2, 5, 7)
    bag = model_of(convolution=convolution, kernel_size=1)
    assert_close(bag(twice, other), bag(once, other), atol=1e-12, rtol=1e-12)
    assert_close(bag(other, twice), bag(other, once), atol=1e-12, rtol=1e-12)
    model = model_of(convolution=convolution)
    assert (model(twice, other) - model(once, other)).abs().max() > 1e-5


@every_convolution
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_words_context_is_as_wide_as_the_layers_make_it(convolution: str, layers: int) -> None:
    """L (k - 1) + 1 words, no more and no less."""
    model = model_of(convolution=convolution, context_layers=layers)
    line = words(*[3] * 11)
    before = model.represent(line)
    for place in range(11):
        changed = line.tokens.clone()
        changed[0, place] = 9
        difference = (model.represent(line._replace(tokens=changed)) - before)[0, 5].abs().max()
        assert (difference > 1e-12) == (abs(place - 5) <= layers)


@given(premise=sentence(), hypothesis=sentence())
def test_alignment_is_a_distribution_over_the_other_sentence(premise: Sentence, hypothesis: Sentence) -> None:
    model = model_of()
    assert isinstance(model, Aligns) and model.leading_tokens == ()
    sides = (premise, hypothesis)
    for weights, (x, y) in zip(model.alignment(premise, hypothesis), (sides, sides[::-1]), strict=True):
        assert weights.shape == (*x.tokens.shape, y.tokens.shape[1])
        assert_close(weights.sum(-1), x.mask.double(), atol=1e-12, rtol=0)
        assert torch.all(weights.masked_fill(y.mask[:, None], 0) == 0)
        a, b = model.represent(x), model.represent(y)
        for row, (length, others) in enumerate(zip(x.mask.sum(1), y.mask.sum(1), strict=True)):
            expected = (a[row, :length] @ b[row, :others].T).softmax(-1)
            assert_close(weights[row, :length, :others], expected, atol=1e-12, rtol=1e-9)


@every_convolution
def test_characters_of_a_word_are_read_to_its_end(convolution: str) -> None:
    """Eq 9 for words of 1 to 9 letters: neither the padding nor the batch's other words change a word's vector."""
    composed = model_of(convolution=convolution).embedding.composed
    together = composed(torch.arange(len(WORDS))[None])[0]
    assert together.shape == (len(WORDS), 3)
    for k, word in enumerate(WORDS):
        ids = torch.tensor([[1 + TINY.alphabet.index(c) for c in word]])
        alone = composed.compose(ids, torch.ones_like(ids, dtype=torch.bool))[0]
        assert_close(together[k], alone, atol=1e-12, rtol=1e-12)
        assert_close(composed(torch.tensor([[k]]))[0, 0], alone, atol=1e-12, rtol=1e-12)
        padded, mask = nn.functional.pad(ids, (0, 4), value=5), torch.arange(ids.shape[1] + 4) < ids.shape[1]
        assert_close(composed.compose(padded, mask[None])[0], alone, atol=1e-12, rtol=1e-12)
    assert len({tuple(row.tolist()) for row in together}) == len(WORDS)


def test_an_empty_word_has_a_vector_of_zeros() -> None:
    composed = model_of().embedding.composed
    empty = composed.compose(torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 3, dtype=torch.bool))
    assert torch.equal(empty, torch.zeros(2, 3, dtype=torch.float64))


def test_spelling_matters_and_so_does_its_order() -> None:
    """Two words with one vector differ by their letters alone, and by the order of the letters."""
    lexicon = Lexicon(["stop", "post", "pots"], torch.ones(3, 5))
    model = model_of(lexicon=lexicon)
    logits = torch.cat([model(words(k, 0), words(0, 1)._replace(pos=None)) for k in range(3)])
    assert torch.pdist(logits).min() > 1e-6
    unspelled = model_of(lexicon=lexicon, use_chars=False)
    pairs = [(words(k, 0)._replace(pos=None), words(0, 1)._replace(pos=None)) for k in range(3)]
    assert torch.equal(unspelled(*pairs[0]), unspelled(*pairs[1]))
    bag = model_of(lexicon=lexicon, kernel_size=1)
    assert_close(bag(*pairs[0]), bag(*pairs[1]), atol=1e-12, rtol=1e-12)


def test_tags_are_features_and_unknown_ones_are_zeros() -> None:
    model, pair = model_of(), words(3, 9, 4)
    embedded = model.embedding(pair._replace(pos=torch.tensor([[1, 3, 0]])))
    assert embedded.shape == (1, 3, 5 + 3 + 4)
    assert embedded[0, :, -4:].tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert torch.equal(embedded[0, :, :5], model.embedding.words.vectors[[3, 9, 4]])
    untagged, unknown = pair._replace(pos=None), pair._replace(pos=torch.zeros_like(pair.tokens))
    assert torch.equal(model(untagged, pair), model(unknown, pair))
    assert (model(untagged, pair) - model(pair, pair)).abs().max() > 1e-6
    tagless = model_of(use_pos=False)
    assert torch.equal(tagless(untagged, pair), tagless(pair, pair))
    assert model_of(lexicon=Lexicon(WORDS, TINY.vectors))(untagged, untagged).shape == (1, 3)


def test_more_tags_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(
        ValueError, match="num_tags must be at least 3 for the tags of the data, unless they are left out, got 2"
    ):
        model_of(num_tags=2)
    assert model_of(num_tags=3) and model_of(num_tags=2, use_pos=False)


def unit_of(gate_bias: float, residual: bool = False, width: int = 3) -> GatedLinearUnit:
    """The gate does not look at its input."""
    unit = GatedLinearUnit(5, width, kernel_size=3, residual=residual).double()
    unit.bias.data[:width] = normal(1, width)
    unit.weight.data[width:], unit.bias.data[width:] = 0, gate_bias
    return unit


@given(words=strategies.sentences())
def test_a_gated_linear_unit_without_its_gate_is_linear(words: strategies.Sentences) -> None:
    """Eq 1: a gate at 0 lets half through, an open one all, a shut one nothing."""
    half, whole, shut = (unit_of(bias) for bias in (0.0, torch.inf, -torch.inf))
    whole.load_state_dict(half.state_dict() | {"bias": torch.cat([half.bias[:3], torch.full((3,), torch.inf)])})
    assert_close(2 * half(words.x, words.mask), whole(words.x, words.mask), atol=1e-12, rtol=1e-12)
    assert torch.all(shut(words.x, words.mask) == 0)
    sentence = nn.functional.pad(words.x.masked_fill(~words.mask[..., None], 0).mT, (1, 1))
    convolved = nn.functional.conv1d(sentence, whole.weight[:3].mT, whole.bias[:3]).mT
    assert_close(whole(words.x, words.mask), convolved * words.mask[..., None], atol=1e-12, rtol=1e-12)


@given(words=strategies.sentences())
def test_a_residual_unit_adds_what_enters(words: strategies.Sentences) -> None:
    real = words.mask[..., None]
    same, narrower = unit_of(-torch.inf, residual=True, width=5), unit_of(-torch.inf, residual=True)
    assert torch.equal(same(words.x, words.mask), words.x * real)
    assert_close(narrower(words.x, words.mask), narrower.shortcut(words.x) * real, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("num_layers", [1, 3])
def test_dropout_lies_between_gated_linear_units_and_not_before_the_first(num_layers: int) -> None:
    encoder = GatedLinearEncoder(4, 5, num_layers, kernel_size=3, dropout=0.9, residual=False)
    x, mask = torch.randn(2, 6, 4), torch.ones(2, 6, dtype=torch.bool)
    seen: list[Tensor] = []
    encoder.dropout.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    dropped = encoder.train()(x, mask)
    assert [y.shape[-1] for y in seen] == (num_layers - 1) * [5]
    assert torch.equal(dropped, encoder.eval()(x, mask)) == (num_layers == 1)


@pytest.mark.parametrize(("residual", "least", "largest"), [(False, 0.75, 1.5), (True, 1.2, 1.4)])
def test_gated_linear_units_start_near_the_variance_of_their_input(
    residual: bool, least: float, largest: float
) -> None:
    x, mask = torch.randn(8, 40, 200), torch.ones(8, 40, dtype=torch.bool)
    stack = GatedLinearEncoder(200, 200, 1, kernel_size=3, dropout=0.0, residual=residual)
    assert least < stack(x, mask).var().item() < largest


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(GatedCNNConfig)])
def test_every_option_has_an_effect(field: str) -> None:
    other: dict[str, object] = {"convolution": "cnn", "use_chars": False, "use_pos": False, "dropout": 0.5}
    other["train_vectors"] = True
    default = getattr(GatedCNNConfig(**SIZES), field)
    pair = words(3, 9, 4, 10), words(2, 8)
    first, second = (model_of(**{field: value}).train() for value in (default, other.get(field, default and 5)))
    torch.manual_seed(1)
    ours, theirs = first(*pair), second(*pair)
    changed = ours.shape != theirs.shape or (ours - theirs).abs().max() > 1e-6
    assert changed or models.trainable(first) != models.trainable(second)


@pytest.mark.parametrize("name", [name for name, v in vars(GatedCNNConfig()).items() if type(v) is int])
def test_impossible_sizes_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        GatedCNNConfig(**{name: 0})


@pytest.mark.parametrize("convolution", ["gcnn", "glu"])
def test_dropout_acts_in_training_alone_everywhere(convolution: str) -> None:
    model, plain, pair = (
        model_of(convolution=convolution, dropout=0.5),
        model_of(convolution=convolution),
        words(3, 9, 4, 10),
    )
    assert torch.equal(model(pair, pair), plain(pair, pair))
    model.train()
    for part in (
        model.embedding,
        model.represent,
        lambda s: model.aggregation(compare(*2 * [plain.represent(s)]), s.mask),
    ):
        assert not torch.equal(part(pair), part(pair))
    v = normal(0, 1, 28)
    assert not torch.equal(model.classify(v), model.classify(v))
    hidden = model.classify[1](v)
    assert not torch.equal(model.classify[2:](hidden), model.classify[2:](hidden))
    assert not torch.equal(model.classify[:2](v), model.classify[:2](v))


@every_convolution
def test_every_parameter_is_used(convolution: str) -> None:
    model = model_of(convolution=convolution, char_size=16)  # with fewer, some letter is never the largest
    model(words(*range(len(WORDS))), words(5, 6, 7))[0, 0].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name
    rows = model.embedding.composed.vectors.weight.grad.abs().amax(1) > 0
    assert rows.tolist() == [False] + len(TINY.alphabet) * [True]


@every_convolution
def test_it_overfits_nine_pairs(convolution: str) -> None:
    models.it_overfits_nine_pairs(model_of(convolution=convolution), lr=5e-3, steps=80, words=len(WORDS))


def test_word_vectors_are_fixed_and_character_vectors_are_trained() -> None:
    model = model_of()
    names = {name for name, _ in model.named_parameters()}
    assert "embedding.composed.vectors.weight" in names and not any(
        name.startswith("embedding.words") for name in names
    )
    assert set(model.state_dict()) == names


def test_vectors_and_models_of_any_precision_fit() -> None:
    pair = words(3, 9, 4)
    for dtype in (torch.float16, torch.float64):
        lexicon = Lexicon(WORDS, TINY.vectors.to(dtype), tags=TAGS)
        assert GatedCNN(GatedCNNConfig(**SIZES), lexicon)(pair, pair).dtype == torch.float32
    model = model_of()
    exact = model(pair, pair)
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 0.2)):
        logits = model_of().to(dtype)(pair, pair)
        assert logits.dtype == dtype
        assert_close(logits.double(), exact, atol=tolerance, rtol=tolerance)


def test_the_whole_model_is_one_graph_at_every_length() -> None:
    """Character by character too: words that occur twice are then read twice, to the same end."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("eager")
    model = model_of()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=counter)
    for n in range(3, 7):
        pair = words(*range(n)), words(*range(1, n + 3))
        assert_close(compiled(*pair), model(*pair), atol=1e-12, rtol=1e-12)
    assert counter.frame_count == 1


def test_two_classes() -> None:
    logits: Tensor = model_of(num_classes=2)(words(1, 2), words(3))
    assert logits.shape == (1, 2)


def test_dropout_of_everything_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dropout must be at least 0 and below 1, got 1\.0"):
        GatedCNNConfig(dropout=1.0)
