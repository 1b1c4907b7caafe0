"""CAFE against its paper: counts, equations, what it sees and what it cannot."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.testing import assert_close

import models
import oracles
import oracles_cafe
import strategies
from cafe import CAFE, NUM_TAGS, SCRIPT, CAFEConfig
from nli_common.data import Sentence
from nli_common.figures import plot_lines
from nli_common.lexicon import Lexicon
from nli_common.script import Aligns
from nlilayers import FactorizationMachine
from nlilayers.masking import lengths_to_mask
from paper_tables.cafe import TABLES
from strategies import normal

LETTERS = "abcdefg"
WORDS = [LETTERS[i % 7] * (1 + i % 3) + LETTERS[i // 7] for i in range(41)]
TINY = Lexicon(WORDS, normal(0, 41, 11), tags=["N", "V", "A"], alphabet=LETTERS[:6])
SIZES: dict[str, Any] = {
    "encoder_size": 7,
    "num_factors": 3,
    "lstm_size": 5,
    "prediction_size": 13,
    "char_size": 2,
    "char_filters": 3,
    "tag_size": 2,
}
ABLATIONS: dict[str, dict[str, Any]] = {row.name: dict(row.options) for row in TABLES["ablations"].rows}
ABLATIONS["sum, MLP, no intra-aligned vector"] = {"pooling": "sum", "prediction": "fc", "append_intra": False}
ABLATIONS["averages"] = {"pooling": "avg"}
ABLATIONS["linear units"] = {"factorize": False, "linear_units": True}
ABLATIONS["rectified projection"] = {"rectified_projection": True}
ABLATIONS["rectified units without mul"] = {"factorize": False, "without": "mul"}
every_variant = pytest.mark.parametrize("options", ABLATIONS.values(), ids=ABLATIONS.keys())


def model_of(seed: int = 0, lexicon: Lexicon = TINY, **options: object) -> CAFE:
    """A small model in float64 of which no parameter is at a start that would hide what it does."""
    torch.manual_seed(seed)
    model = CAFE(CAFEConfig(**{**SIZES, **options}), lexicon).double().eval()
    for k, parameter in enumerate(model.parameters()):
        parameter.data += normal(seed + k, *parameter.shape, scale=0.3)
    return model


def words(*ids: int, pos: tuple[int, ...] | None = None) -> Sentence:
    tokens = torch.tensor([ids])
    return Sentence(tokens, torch.ones_like(tokens, dtype=torch.bool), None if pos is None else torch.tensor([pos]))


@st.composite
def sentence(draw: st.DrawFn, batch: int = 3) -> Sentence:
    lengths = torch.tensor(draw(st.lists(st.integers(1, 6), min_size=batch, max_size=batch)))
    mask = lengths_to_mask(lengths)
    generator = torch.Generator().manual_seed(draw(strategies.seeds))
    tokens = torch.randint(len(TINY), mask.shape, generator=generator)
    return Sentence(tokens, mask, torch.randint(4, mask.shape, generator=generator))


def row_of(sentence: Sentence, row: int) -> Sentence:
    """One sentence alone, without its padding."""
    tokens, mask, pos = sentence
    keep = mask[row]
    return Sentence(tokens[row][keep][None], keep[keep][None], None if pos is None else pos[row][keep][None])


# --- the paper's numbers


def linear(i: int, o: int) -> int:
    return i * o + o


def expected_parameters(characters: int, h: int, k: int, mlp: int | None, append: bool, inter: bool, d: int) -> int:
    """PAPERS' formula, with the second bias that torch's LSTM has: the first that the paper's count lacks."""
    alignments = 1 + inter
    machines = alignments * ((1 + 2 * h + 2 * h * k) + 2 * (1 + h + h * k))
    width = h + 3 * alignments + h * append
    lstm = 4 * (width * h + h * h + 2 * h)
    if mlp is None:
        head = 3 * linear(8 * h, 300) + 2 * linear(300, 300) + linear(300, 3)
    else:
        head = linear(4 * h, mlp) + linear(mlp, mlp) + linear(mlp, 3)
    inputs = 20 * characters + 20 * 50 + linear(20, 100) + linear(60, 100) + linear(100, 100) if d > 300 else 0
    encoder = (2 if d == h else 3) * linear(d, h) + 2 * linear(h, h)
    return inputs + encoder + alignments * linear(h, h) + machines + lstm + head


def paper_size(options: dict[str, Any], characters: int = 100) -> int:
    """Trainable parameters at full size; no memory is needed to count them."""
    alphabet = [chr(0x400 + i) for i in range(characters - 1)]
    with torch.device("meta"):
        model = CAFE(CAFEConfig(**options), Lexicon(["a"], torch.zeros(1, 300, device="cpu"), alphabet=alphabet))
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


TABLE_1 = {row.name: row for row in TABLES["snli"].rows if not row.script}


@pytest.mark.parametrize(
    ("name", "sizes", "papers", "printed"),
    [
        ("300D CAFE (AvgMax+300D HN)", (300, 150, None, True, True, 620), 4_734_609, 4.7e6),
        ("300D CAFE (Sum+2x600D MLP)", (300, 150, 600, True, True, 620), 3_475_209, 3.5e6),
        ("200D CAFE (Sum+2x400D MLP)", (200, 10, 400, False, True, 620), 1_379_909, 1.4e6),
        ("150D CAFE (Sum+2x200D MLP)", (150, 10, 200, False, True, 620), 749_759, 0.75e6),
    ],
)
def test_table_1s_parameter_counts(
    name: str, sizes: tuple[int, int, int | None, bool, bool, int], papers: int, printed: float
) -> None:
    """With 100 characters: the counts of PAPERS and one more bias for each LSTM gate, within 2 % of those printed."""
    got = paper_size(dict(TABLE_1[name].options))
    assert got == expected_parameters(100, *sizes) == papers + 4 * sizes[0]
    assert abs(got / printed - 1) < 0.02
    assert paper_size(dict(TABLE_1[name].options), characters=27) == got - 20 * 73


def test_the_counts_without_inter_attention() -> None:
    """Table 1 prints 3.7M: words alone come nearest, and the default is as far off as PAPERS finds it."""
    bare = {"inter_attention": False, "char_filters": 0, "tag_size": 0, "append_intra": False}
    assert paper_size(bare) == expected_parameters(0, 300, 150, None, False, False, 300) == 3_699_906 + 1200
    options = dict(TABLE_1["300D CAFE (w/o inter-attention)"].options)
    assert paper_size(options) == expected_parameters(100, 300, 150, None, True, False, 620) == 4_460_706
    assert paper_size({**options, "append_intra": False}) == expected_parameters(100, 300, 150, None, False, False, 620)


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (1, 2 * (2 * 300 + 300 + 300) * -150),
        (2, -(20 * 100 + 18_300 + 3 * 300 * 300)),
        (3, -(20 * 50 + 3 * 20 * 300)),
        (4, -(linear(300, 300) + 3 + 8 * 150 * 150 + 8 * 150 + 4 * 3 * 300)),
        (5, -2 * linear(2400, 300) - linear(300, 300)),
        (6, -2 * linear(620, 300) - linear(300, 300)),
        (7, -2 * (1 + 300 + 300 * 150) - 4 * 2 * 300),
        (8, -2 * (1 + 300 + 300 * 150) - 4 * 2 * 300),
        (9, -2 * (1 + 600 + 600 * 150) - 4 * 2 * 300),
        (10, 4 * (606 * 300 + 300 * 300 + 600) + 3 * 2400 * 300),
    ],
)
def test_table_3s_ablations_change_what_they_name(number: int, change: int) -> None:
    """Each counted by hand: what the ablation removes, or puts in its place."""
    row = TABLES["ablations"].rows[number]
    assert row.name.startswith(f"({number})")
    assert paper_size(dict(row.options)) - paper_size({}) == change


def test_the_papers_recipe() -> None:
    assert (SCRIPT.recipe.optimizer, SCRIPT.recipe.lr, SCRIPT.recipe.batch_size) == ("adam", 3e-4, 256)
    assert CAFEConfig().dropout == pytest.approx(1 - 0.8)


def test_table_4_says_what_the_text_says_of_it() -> None:
    """Section 4.6: ahead of ESIM on 12 of 13 mismatched categories, and behind by one point on active/passive."""
    table = TABLES["linguistic"]
    esim, cafe = (row.paper[1::2] for row in table.rows)
    behind = [column for column, e, c in zip(table.columns[1::2], esim, cafe, strict=True) if c < e]
    assert behind == ["Active/passive, mismatched"] and table.measures[13] == "also 2 #active/passive"
    matched = dict(zip(table.columns[::2], zip(*(row.paper[::2] for row in table.rows), strict=True), strict=True))
    assert matched["Coreference, matched"] == (83, 80) and matched["Paraphrase, matched"] == (89, 88)


# --- the equations


def loops(model: CAFE) -> tuple[Callable[[Sentence, int], list[list[float]]], dict[str, Any]]:
    """The model's weights as the oracle's functions: of the words of a sentence, and of everything above them."""
    weights = {name: parameter.tolist() for name, parameter in model.state_dict().items()}

    def pair(name: str) -> tuple[Any, Any]:
        return weights[f"{name}.weight"], weights[f"{name}.bias"]

    def layer(name: str) -> Callable[[Any], list[float]]:
        if f"{name}.0.weight" in weights:
            return lambda x: oracles_cafe.rectified(x, *pair(f"{name}.0"))
        if f"{name}.weight" in weights:
            return lambda x: oracles.linear(x, *pair(name))
        projection = pair(f"{name}.projection") if f"{name}.projection.weight" in weights else None
        highway = oracles_cafe.nonlinear_highway if model.config.rectified_projection else oracles.highway
        return lambda x: highway(x, pair(f"{name}.transforms.0"), pair(f"{name}.gates.0"), projection)

    def compare(name: str) -> Callable[[Any, Any], list[float]]:
        def machine(part: str) -> tuple[Any, Any, Any]:
            return tuple(weights[f"{name}.{part}.{of}"] for of in ("bias", "weight", "factors"))

        if f"{name}.concat.bias" in weights:
            return lambda x, y: list(
                oracles.alignment_factorization(x, y, *map(machine, ("concat", "subtract", "multiply")))
            )

        def scalars(x: list[float], y: list[float]) -> list[float]:
            vectors = {
                "cat": [*x, *y],
                "sub": [a - b for a, b in zip(x, y, strict=True)],
                "mul": [a * b for a, b in zip(x, y, strict=True)],
            }
            result = []
            for part, vector in vectors.items():
                if f"{name}.units.{part}.factors" in weights:
                    result.append(oracles.factorization_machine(vector, *machine(f"units.{part}")))
                elif f"{name}.units.{part}.0.weight" in weights:
                    unit = oracles.linear if model.config.linear_units else oracles_cafe.rectified
                    result += unit(vector, *pair(f"{name}.units.{part}.0"))
            return result

        return scalars

    def read(u: list[list[float]]) -> list[list[float]]:
        def one_way(u: list[list[float]], way: str) -> list[list[float]]:
            w_i, w_s, b_i, b_s = (
                weights[f"lstm.{way}.0.{part}_l0"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            return oracles_cafe.lstm(u, w_i, w_s, [a + b for a, b in zip(b_i, b_s, strict=True)])

        if not model.config.bidirectional:
            return one_way(u, "rightward")
        forward, backward = one_way(u, "rightward"), one_way(u[::-1], "leftward")[::-1]
        return [[*f, *b] for f, b in zip(forward, backward, strict=True)]

    def embed(sentence: Sentence, row: int) -> list[list[float]]:
        vectors = []
        for token, tag in zip(
            *(x[row][sentence.mask[row]].tolist() for x in (sentence.tokens, sentence.pos)), strict=True
        ):
            vector = TINY.vectors[token].float().tolist()
            if model.config.char_filters:
                known = [1 + LETTERS.index(c) if c in LETTERS[:6] else 0 for c in WORDS[token]]
                table = weights["encode.0.words.char_cnn.embedding.weight"]
                convolutions = [pair(f"encode.0.words.char_cnn.filters.{i}") for i in range(3)]
                vector += oracles_cafe.character_features([table[c] for c in known], convolutions)
            if model.config.tag_size:
                vector += weights["encode.0.tags.weight"][tag]
            vectors.append(vector)
        return vectors

    inter = model.config.inter_attention
    parts = {
        "encoder": [layer("encode.1"), layer("encode.3")],
        "f": layer("inter_align.feedforward.0") if inter else None,
        "g": layer("intra_align.feedforward.0"),
        "inter": compare("inter_compare") if inter else None,
        "intra": compare("intra_compare"),
        "read": read,
        "pooling": model.config.pooling,
        "predict": [layer("predict.0"), layer("predict.2"), layer("predict.4")],
        "append_intra": model.config.append_intra,
    }
    return embed, parts


@every_variant
@settings(max_examples=4)
@given(premise=sentence(batch=2), hypothesis=sentence(batch=2))
def test_the_whole_forward_equals_the_loop(options: dict[str, Any], premise: Sentence, hypothesis: Sentence) -> None:
    """Eqs 1 to 19 for every ablation, one pair at a time and without padding."""
    sizes = {name: size for name, size in SIZES.items() if name not in options}
    model = model_of(**sizes, **options)
    embed, parts = loops(model)
    logits = model(premise, hypothesis)
    for row in range(len(logits)):
        expected = oracles_cafe.cafe(embed(premise, row), embed(hypothesis, row), **parts)
        assert_close(logits[row], torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=1e-9)


@given(premise=sentence(batch=1), hypothesis=sentence(batch=1))
def test_the_propagated_features_equal_the_loop(premise: Sentence, hypothesis: Sentence) -> None:
    """Figure 2's six lines, in the order of their names, for both sentences."""
    model = model_of()
    embed, parts = loops(model)
    encoded = [[oracles_cafe.through(parts["encoder"], w) for w in embed(s, 0)] for s in (premise, hypothesis)]
    expected = oracles_cafe.features(*encoded, *(parts[name] for name in ("f", "g", "inter", "intra")))
    features = model.propagated_features(premise, hypothesis)
    assert features.names == ("intra_cat", "intra_sub", "intra_mul", "inter_cat", "inter_sub", "inter_mul")
    for got, wanted, side in zip(features[1:], expected, (premise, hypothesis), strict=True):
        real = got[0][side.mask[0]]
        assert_close(real, torch.tensor(wanted, dtype=torch.float64), atol=1e-10, rtol=1e-9)
        assert torch.all(got[0][~side.mask[0]] == 0)


# --- padding


@every_variant
@settings(max_examples=10)
@given(premise=sentence(), hypothesis=sentence())
def test_padding_and_batch_mates_change_nothing(
    options: dict[str, Any], premise: Sentence, hypothesis: Sentence
) -> None:
    model = model_of(**options)
    logits = model(premise, hypothesis)
    for row in range(len(logits)):
        alone = model(row_of(premise, row), row_of(hypothesis, row))
        assert_close(alone[0], logits[row], atol=1e-12, rtol=1e-12)
    garbled = [
        Sentence(s.tokens.masked_fill(~s.mask, 40), s.mask, s.pos.masked_fill(~s.mask, 3))
        for s in (premise, hypothesis)
    ]
    assert_close(model(*garbled), logits, atol=1e-12, rtol=1e-12)
    longer = [Sentence(*(nn.functional.pad(x, (0, 3)) for x in s)) for s in (premise, hypothesis)]
    assert_close(model(*longer), logits, atol=1e-12, rtol=1e-12)
    models.padding_before_words_is_refused_or_changes_nothing(model, premise, hypothesis)


@given(premise=sentence(), hypothesis=sentence())
def test_what_is_shown_of_a_pair_does_not_depend_on_its_batch(premise: Sentence, hypothesis: Sentence) -> None:
    model = model_of()
    (beta, alpha), features = model.alignment(premise, hypothesis), model.propagated_features(premise, hypothesis)
    assert_close(beta.sum(-1), premise.mask.double(), atol=1e-12, rtol=1e-12)
    assert_close(alpha.sum(-1), hypothesis.mask.double(), atol=1e-12, rtol=1e-12)
    for row in range(3):
        pair = row_of(premise, row), row_of(hypothesis, row)
        n, m = pair[0].tokens.shape[1], pair[1].tokens.shape[1]
        for alone, together in zip(model.alignment(*pair), (beta[row, :n, :m], alpha[row, :m, :n]), strict=True):
            assert_close(alone[0], together, atol=1e-12, rtol=1e-12)
        for alone, together in zip(model.propagated_features(*pair)[1:], features[1:], strict=True):
            assert_close(alone[0], together[row, : alone.shape[1]], atol=1e-12, rtol=1e-12)


@every_variant
def test_a_sentence_without_words_has_finite_logits_and_gradients(options: dict[str, Any]) -> None:
    model = model_of(**options)
    empty = Sentence(torch.tensor([[1, 2]]), torch.zeros(1, 2, dtype=torch.bool), torch.tensor([[1, 2]]))
    for pair in ((empty, words(3, 4)), (words(3, 4), empty), (empty, empty)):
        model.zero_grad()
        logits = model(*pair)
        logits[0, 0].backward()
        assert torch.isfinite(logits).all()
        assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


# --- laws


@given(premise=sentence(), hypothesis=sentence())
def test_both_sentences_are_treated_alike_up_to_the_prediction(premise: Sentence, hypothesis: Sentence) -> None:
    """Swapped sentences swap the features and the two vectors, so that Eq 18's difference changes its sign."""
    model = model_of()
    given, swapped = model.propagated_features(premise, hypothesis), model.propagated_features(hypothesis, premise)
    assert_close(given.premise, swapped.hypothesis, atol=1e-12, rtol=1e-12)
    assert_close(given.hypothesis, swapped.premise, atol=1e-12, rtol=1e-12)
    entered: list[Tensor] = []
    handle = model.predict.register_forward_pre_hook(lambda _, inputs: entered.append(inputs[0]))
    logits, other = model(premise, hypothesis), model(hypothesis, premise)
    handle.remove()
    (p, h, product, difference), (p2, h2, product2, difference2) = (x.chunk(4, dim=-1) for x in entered)
    for ours, theirs in ((p, h2), (h, p2), (product, product2), (difference, -difference2)):
        assert_close(ours, theirs, atol=1e-12, rtol=1e-12)
    if not torch.equal(premise.tokens, hypothesis.tokens):
        assert (logits - other).abs().max() > 1e-9, "but the logits are not symmetric"


@given(premise=sentence(batch=1), hypothesis=sentence(batch=1), data=st.data())
def test_only_the_lstm_sees_word_order(premise: Sentence, hypothesis: Sentence, data: st.DataObject) -> None:
    """Eqs 1 to 14 have no positions: the features go with their words, and do not change the other sentence's."""
    model = model_of()
    order = data.draw(st.permutations(range(hypothesis.tokens.shape[1])))
    other = Sentence(*(x[:, order] for x in hypothesis))
    features, moved = model.propagated_features(premise, hypothesis), model.propagated_features(premise, other)
    assert_close(moved.premise, features.premise, atol=1e-12, rtol=1e-12)
    assert_close(moved.hypothesis, features.hypothesis[:, order], atol=1e-12, rtol=1e-12)


def test_word_order_changes_the_logits() -> None:
    """Who chases whom: the same words in another order, as a bag-of-words model could not tell."""
    model = model_of()
    assert (model(words(1, 2, 3), words(1, 2, 3)) - model(words(1, 2, 3), words(3, 2, 1))).abs().max() > 1e-4


def test_the_lstm_reads_from_left_to_right_only() -> None:
    """A later word changes no earlier state; a BiLSTM's second half sees it."""
    for bidirectional in (False, True):
        model = model_of(bidirectional=bidirectional)
        states: list[Tensor] = []
        model.lstm.register_forward_hook(lambda _, __, output, states=states: states.append(output[0]))
        u = normal(3, 1, 4, 7 + 6 + 7)
        mask = torch.ones(1, 4, dtype=torch.bool)
        model.summarise(u, mask)
        u[0, 3] += 1
        model.summarise(u, mask)
        change = (states[0] - states[1])[0, :3].abs()
        assert torch.all(change[:, :5] == 0)
        assert not bidirectional or change[:, 5:].max() > 1e-4


def test_a_word_that_is_aligned_to_itself_has_the_bias_as_its_difference() -> None:
    """y_s = w_0 where a = b: one word against the same word."""
    model = model_of()
    features = model.propagated_features(words(5, pos=(1,)), words(5, pos=(1,)))
    for attention, machines in (("intra", model.intra_compare), ("inter", model.inter_compare)):
        k = features.names.index(f"{attention}_sub")
        assert_close(features.premise[0, 0, k], machines.subtract.bias, atol=1e-12, rtol=1e-12)
        assert (features.premise[0, 0, k + 1] - machines.multiply.bias).abs() > 1e-6


@given(sentence=sentence())
def test_the_poolings(sentence: Sentence) -> None:
    """The largest is at least the mean, over real words alone though padding be larger; a sum is the mean times n."""
    u = normal(1, *sentence.tokens.shape, 7 + 6 + 7)
    vectors, lstm = {}, model_of().lstm
    for pooling in ("avgmax", "avg", "sum"):
        model = model_of(pooling=pooling)
        model.lstm = lstm
        vectors[pooling] = model.summarise(u, sentence.mask)
    largest, mean = vectors["avgmax"].chunk(2, dim=-1)
    assert torch.all(largest >= mean - 1e-12)
    assert_close(vectors["sum"], mean * sentence.mask.sum(1, keepdim=True), atol=1e-12, rtol=1e-12)
    assert_close(vectors["avg"], mean, atol=1e-12, rtol=1e-12)


# --- words


def test_characters_are_read() -> None:
    """Words of one vector that are spelt differently are different words, unless characters are not read."""
    vectors = normal(0, 1, 11).expand(4, 11)
    lexicon = Lexicon(["abc", "acb", "abz", "abq"], vectors, alphabet="abc")
    for filters, differ in ((3, True), (0, False)):
        model = model_of(lexicon=lexicon, char_filters=filters)
        first, second, third, fourth = (model(words(i), words(0)) for i in range(4))
        assert ((first - second).abs().max() > 1e-6) == differ
        assert ((first - third).abs().max() > 1e-6) == differ
        assert_close(third, fourth, atol=1e-12, rtol=1e-12)  # two letters that are not of the alphabet


def test_tags_are_read() -> None:
    """Tags change the logits, unless they are not read; no tags are unknown ones."""
    for size, differ in ((2, True), (0, False)):
        model = model_of(tag_size=size)
        given, other = (
            model(words(1, 2, pos=(1, 2)), words(3, pos=(3,))),
            model(words(1, 2, pos=(1, 1)), words(3, pos=(3,))),
        )
        assert ((given - other).abs().max() > 1e-6) == differ
        unknown = model(words(1, 2, pos=(0, 0)), words(3, pos=(0,)))
        assert torch.equal(unknown, model(words(1, 2), words(3)))


@pytest.mark.parametrize("count", [NUM_TAGS - 1, NUM_TAGS + 20])
def test_the_last_tag_is_read_however_many_there_are(count: int) -> None:
    tags = [f"T{k}" for k in range(count)]
    model = model_of(lexicon=Lexicon(TINY.words, TINY.vectors, tags=tags, alphabet=TINY.alphabet))
    last, unknown = (model(words(1, 2, pos=(tag, 0)), words(3, pos=(0,))) for tag in (count, 0))
    assert (last - unknown).abs().max() > 1e-6


@pytest.mark.parametrize("options", [{"factorize": False}, {"without": "sub"}, {"factorize": False, "without": "cat"}])
def test_nothing_is_made_that_is_not_kept(options: dict[str, Any]) -> None:
    """Else a run's model could not be told from one that is larger than its weights."""
    made: list[torch.Tensor] = []
    hook = register_module_parameter_registration_hook(lambda _, __, parameter: made.append(parameter))
    try:
        model = model_of(**options)
    finally:
        hook.remove()
    kept = {id(parameter) for parameter in model.parameters()}
    assert {id(parameter) for parameter in made if parameter is not None} == kept


def test_the_words_vectors_are_fixed_and_not_repeated_on_disk() -> None:
    model = model_of()
    assert not any("vectors" in name for name, _ in model.named_parameters())
    assert not any("vectors" in name or "characters" in name for name in model.state_dict())


# --- options


@pytest.mark.parametrize(
    "options",
    [
        {"encoder_size": 17},
        {"num_factors": 2},
        {"lstm_size": 17},
        {"prediction_size": 17},
        {"pooling": "sum"},
        {"pooling": "avg"},
        {"append_intra": False},
        {"char_size": 17},
        {"char_filters": 1},
        {"tag_size": 17},
        {"encoder": "fc"},
        {"prediction": "fc"},
        {"factorize": False},
        {"inter_attention": False},
        {"without": "cat"},
        {"without": "sub"},
        {"without": "mul"},
        {"bidirectional": True},
    ],
    ids=str,
)
def test_every_option_has_an_effect(options: dict[str, Any]) -> None:
    pair = words(1, 2, 3), words(4, 5)
    model, other = model_of(), model_of(**options)
    assert (model(*pair) - other(*pair)).abs().max() > 1e-6
    shapes, others = ({name: p.shape for name, p in m.state_dict().items()} for m in (model, other))
    assert shapes != others


def test_dropout_falls_on_the_lstms_states() -> None:
    """Before they are pooled: what a pool keeps is not dropped by itself."""
    model, seen = model_of(dropout=0.5).train(), []
    model.lstm.register_forward_hook(lambda _, inputs, states: seen.append(states[0]))
    model.dropout.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(words(1, 2, 3, pos=(1, 2, 3)), words(4, 5, pos=(1, 2)))
    assert len(seen) == 4 and torch.equal(seen[0], seen[1]) and torch.equal(seen[2], seen[3])


def test_machines_start_as_they_do_by_themselves() -> None:
    """Xavier's bounds are for matrices that multiply a vector."""
    torch.manual_seed(0)
    model = CAFE(CAFEConfig(), TINY)
    ours = [
        float(machine.factors.detach().std())
        for machine in model.modules()
        if isinstance(machine, FactorizationMachine)
    ]
    theirs = [float(FactorizationMachine(n, 150).factors.detach().std()) for n in (600, 300)]
    assert ours and all(any(abs(a / b - 1) < 0.05 for b in theirs) for a in ours)


def test_dropout_follows_each_layer_in_training_alone() -> None:
    """Two encoder layers, F, G, the LSTM and two prediction layers; and it reaches the logits from each of them."""
    model, pair = model_of(dropout=0.5), (words(1, 2, 3), words(4, 5))
    places = [module for module in model.modules() if isinstance(module, nn.Dropout) and module.p]
    assert len(places) == 7 and all(place.p == 0.5 for place in places)
    expected = model(*pair)
    for place in places:
        place.train()
        assert any((model(*pair) - expected).abs().max() > 1e-9 for _ in range(20))
        place.eval()
    assert torch.equal(model(*pair), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder_size": 0}, "encoder_size must be at least 1, got 0"),
        ({"num_factors": -1}, "num_factors must be at least 1, got -1"),
        ({"lstm_size": 0}, "lstm_size must be at least 1, got 0"),
        ({"prediction_size": 0}, "prediction_size must be at least 1, got 0"),
        ({"char_size": 0}, "char_size must be at least 1, got 0"),
        ({"num_classes": 0}, "num_classes must be at least 1, got 0"),
        ({"char_filters": -1}, "char_filters must be at least 0, got -1"),
        ({"tag_size": -1}, "tag_size must be at least 0, got -1"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"dropout": -0.1}, "dropout must be at least 0 and below 1, got -0.1"),
        ({"without": "div"}, "without must be cat, sub, mul or None, got 'div'"),
        ({"pooling": "max"}, "pooling must be avgmax, sum or avg, got 'max'"),
        ({"encoder": "mlp"}, "encoder must be highway or fc, got 'mlp'"),
    ],
    ids=str,
)
def test_impossible_configurations_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CAFEConfig(**options)


@pytest.mark.parametrize("without", ["cat", "sub", "mul"])
@pytest.mark.parametrize("factorize", [True, False])
def test_an_ablated_feature_is_missing_and_the_others_stay(without: str, factorize: bool) -> None:
    """Ablations 7 to 9 remove a column of both attentions, and nothing else where the machines are the same."""
    model, ablated = model_of(), model_of(without=without, factorize=factorize)
    features = ablated.propagated_features(words(1, 2), words(3))
    kept = [k for k, name in enumerate(model.config.features) if not name.endswith(without)]
    assert features.names == tuple(model.config.features[k] for k in kept) and len(kept) == 4
    assert features.premise.shape == (1, 2, 4) and list(ablated.inter_compare.units) == [
        name for name in ("cat", "sub", "mul") if name != without
    ]
    if factorize:
        for part in ("encode", "intra_align", "inter_align"):
            setattr(ablated, part, getattr(model, part))
        for part in ("intra_compare", "inter_compare"):
            for name, machine in (("cat", "concat"), ("sub", "subtract"), ("mul", "multiply")):
                if name != without:
                    getattr(ablated, part).units[name] = getattr(getattr(model, part), machine)
        ours, theirs = (m.propagated_features(words(1, 2), words(3)).premise for m in (ablated, model))
        assert_close(ours, theirs[..., kept], atol=1e-12, rtol=1e-12)


def test_a_model_without_inter_attention_aligns_nothing() -> None:
    model, bare = model_of(), model_of(inter_attention=False)
    assert isinstance(model, Aligns) and model.leading_tokens == ()
    assert not isinstance(bare, Aligns)
    assert bare.propagated_features(words(1, 2), words(3)).names == ("intra_cat", "intra_sub", "intra_mul")
    features = [bare.propagated_features(words(1, 2), words(i)).premise for i in (3, 4)]
    assert torch.equal(*features), "no word sees the other sentence"


# --- training


@every_variant
def test_every_parameter_is_used(options: dict[str, Any]) -> None:
    """Through the logits of pairs that have every character and an unknown one, every table row too but for tags."""
    model = model_of(3, **options)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.bias.data += 1  # no rectified unit is shut for every word
    everything = words(*range(41), pos=tuple(range(41)))
    model(everything, words(7, 8, 9, pos=(41, 42, 43)))[0, 0].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name
    if model.config.char_filters:
        assert torch.all(model.encode[0].words.char_cnn.embedding.weight.grad.abs().amax(1) > 0)


@pytest.mark.parametrize("options", [{}, {"inter_attention": False}, {"factorize": False}], ids=str)
def test_it_overfits_nine_pairs(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = CAFE(CAFEConfig(**{**SIZES, "encoder_size": 23, "lstm_size": 23, **options}), TINY)
    models.it_overfits_nine_pairs(model, steps=200, words=41)


def test_it_starts_as_the_paper_says() -> None:
    """Xavier's bounds, forget gates that start open by the sum of their biases, and highway gates that mostly carry."""
    torch.manual_seed(0)
    model = CAFE(CAFEConfig(encoder_size=97, lstm_size=53, bidirectional=True), TINY)
    reader, tags = model.lstm.rightward[0], model.encode[0].tags
    for weight in (model.encode[1].projection.weight, reader.weight_ih_l0, tags.weight):
        bound = (6 / sum(weight.shape)) ** 0.5
        assert 0.95 * bound < weight.abs().max() <= bound
    for lstm in (*model.lstm.rightward, *model.lstm.leftward):
        biases = lstm.bias_ih_l0 + lstm.bias_hh_l0
        assert biases.view(4, 53).tolist() == [[0.0] * 53, [1.0] * 53, [0.0] * 53, [0.0] * 53]
    assert all(torch.all(gate.bias == -1) for highway in (model.encode[1], model.predict[0]) for gate in highway.gates)
    assert torch.all(model.predict[-1].bias == 0) and torch.all(model.inter_align.feedforward[0][0].bias == 0)
    assert model.inter_compare.concat.factors.std() < 0.1, "the machines keep their own start"


def test_two_classes_and_any_precision() -> None:
    """SciTail's two classes; vectors of half precision make a model in float32."""
    lexicon = Lexicon(TINY.words, TINY.vectors.half(), tags=TINY.tags)
    logits = CAFE(CAFEConfig(**SIZES, num_classes=2), lexicon)(words(1, 2), words(3))
    assert logits.shape == (1, 2) and logits.dtype == torch.float32


def test_the_figure_of_the_features(tmp_path: Path) -> None:
    features = model_of().propagated_features(words(1, 2, 3), words(4, 5))
    series = {name: features.premise[0, :, k].tolist() for k, name in enumerate(features.names)}
    plot_lines(series, ["A", "$x_1$", "\ud800"], "premise", tmp_path / "lines.png")
    assert (tmp_path / "lines.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="intra_cat has 3 values, expected 2: one for each word"):
        plot_lines(series, ["A", "B"], "premise", tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()
