"""The Trento report's three models against its text: counts, equations, what each can see."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

import models
import oracles_lstm_attention as oracles
from lstm_attention import (
    SCRIPT,
    AttentionModel,
    AttentionModelConfig,
    HybridModel,
    HybridModelConfig,
    LSTMBaseline,
    LSTMBaselineConfig,
)
from models import full, layers_of, linear_of, perceptron_of, reordered, sentences
from nli_common.data import Sentence
from nli_common.lexicon import Lexicon

CONFIGS = {model.__name__: config for config, model in SCRIPT.models.items()}
every_model = pytest.mark.parametrize("name", CONFIGS)
aligning = pytest.mark.parametrize("name", ["HybridModel", "AttentionModel"])


def model_of(name: str, **options: object) -> nn.Module:
    config = CONFIGS[name](**{"hidden_size": 5, **options})
    return models.randomised(SCRIPT.models[CONFIGS[name]](config, models.TINY), scale=0.4)


@pytest.mark.parametrize(
    ("name", "dim", "options", "expected"),
    [
        ("HybridModel", 300, {}, 2_208_203),
        ("HybridModel", 300, {"projection": True}, 2_168_403),
        ("AttentionModel", 300, {}, 382_003),
        ("AttentionModel", 300, {"projection_bias": False}, 381_803),
        ("AttentionModel", 50, {}, 332_003),
        ("AttentionModel", 300, {"num_tags": 46}, 391_203),
        ("AttentionModel", 300, {"hidden_size": 50}, 35_503),
        ("AttentionModel", 300, {"hidden_size": 100}, 111_003),
        ("AttentionModel", 300, {"hidden_size": 300}, 813_003),
        ("LSTMBaseline", 300, {}, 1_967_403),
        ("LSTMBaseline", 50, {}, 1_567_403),
        ("LSTMBaseline", 300, {"num_tags": 46}, 2_041_003),
        ("LSTMBaseline", 300, {"pooling": "max"}, 1_967_403),
        ("LSTMBaseline", 300, {"hidden_size": 50}, 214_353),
        ("LSTMBaseline", 300, {"hidden_size": 100}, 613_703),
        ("LSTMBaseline", 300, {"hidden_size": 300}, 4_061_103),
    ],
)
def test_parameter_counts(name: str, dim: int, options: dict[str, object], expected: int) -> None:
    lexicon, config = Lexicon(["a", "b"], torch.zeros(2, dim)), CONFIGS[name]
    with torch.device("meta"):
        assert models.trainable(SCRIPT.models[config](config(**options), lexicon)) == expected


def test_the_papers_recipe() -> None:
    """Section 4.1; all the 50 epochs are run."""
    recipe = SCRIPT.recipe
    assert (recipe.optimizer, recipe.lr, recipe.epochs, recipe.clip_norm) == ("adam", 2e-4, 50, None)
    assert recipe.patience >= recipe.epochs and recipe.same_lengths and SCRIPT.data.unit_vectors
    for config in (HybridModelConfig(), AttentionModelConfig(), LSTMBaselineConfig()):
        assert (config.hidden_size, config.dropout) == (200, 0.2)


def test_the_papers_best_model_comes_first() -> None:
    assert next(iter(SCRIPT.models)) is HybridModelConfig
    assert [SCRIPT.short_name(kind) for kind in SCRIPT.models] == ["hybrid-model", "attention-model", "lstm-baseline"]


def words_of(model: nn.Module, sentence: Sentence, row: int) -> list[list[float]]:
    """Section 3: the vector of each real word, then its tag among ``num_tags`` numbers."""
    rows = []
    for token, real, tag in zip(sentence.tokens[row], sentence.mask[row], sentence.pos[row], strict=True):
        if real:
            tags = [1.0 if k == int(tag) else 0.0 for k in range(1, 1 + getattr(model.words.tags, "num_tags", 0))]
            rows.append([*models.TINY.vectors[token].tolist(), *tags])
    return rows


def logits_of(model: nn.Module, a: list[list[float]], b: list[list[float]], **how: object) -> list[float]:
    """One pair through the report's text."""
    if isinstance(model, LSTMBaseline):
        parts = layers_of(model.lstm), perceptron_of(model.classify), linear_of(model.scores)
        return oracles.baseline(a, b, *parts, model.pooling)
    if isinstance(model, HybridModel):
        a, b = (oracles.stacked(words, layers_of(model.lstm)) for words in (a, b))
    if isinstance(model.projection, nn.Linear):
        bias = [0.0] * 5 if model.projection.bias is None else model.projection.bias.tolist()
        a, b = ([oracles.linear(x, (model.projection.weight.tolist(), bias)) for x in words] for words in (a, b))
    m = model.attention
    networks = [perceptron_of(part) for part in (m.align.feedforward, m.compare, m.aggregate)]
    return oracles.attention(a, b, *networks, linear_of(m.scores), **how)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("HybridModel", {}),
        ("HybridModel", {"projection": True, "num_tags": 4, "num_layers": 1}),
        ("AttentionModel", {}),
        ("AttentionModel", {"projection_bias": False, "num_tags": 5}),
        ("LSTMBaseline", {}),
        ("LSTMBaseline", {"num_layers": 3, "num_tags": 4}),
        ("LSTMBaseline", {"pooling": "max"}),
        ("LSTMBaseline", {"pooling": "mean"}),
    ],
)
@given(premise=sentences(), hypothesis=sentences())
def test_the_whole_forward_equals_the_loop(
    name: str, options: dict[str, object], premise: Sentence, hypothesis: Sentence
) -> None:
    """Figures 1 and 2 and Eqs 1 to 5, one pair at a time and without padding."""
    model = model_of(name, **options)
    logits = model(premise, hypothesis)
    for row in range(len(logits)):
        expected = logits_of(model, words_of(model, premise, row), words_of(model, hypothesis, row))
        assert_close(logits[row], torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=1e-9)


@aligning
def test_eq_3_as_printed_is_another_model(name: str) -> None:
    """Its weights do not sum to 1 where the sentences are equally long, and do not exist where they are not."""
    model = model_of(name)
    premise, hypothesis = full([1, 2, 3], pos=[[0, 0, 0]]), full([4, 5, 6], pos=[[0, 0, 0]])
    a, b = words_of(model, premise, 0), words_of(model, hypothesis, 0)
    printed = torch.tensor(logits_of(model, a, b, normalise=oracles.weights_as_printed), dtype=torch.float64)
    assert (model(premise, hypothesis)[0] - printed).abs().max() > 1e-3
    beta, alpha = oracles.weights_as_printed([[1.0, 2.0], [0.5, 0.0]])
    assert all(abs(sum(row) - 1) > 0.05 for row in (*beta, *alpha))


@every_model
@pytest.mark.parametrize("num_tags", [0, 3])
@given(premise=sentences(), hypothesis=sentences())
def test_padding_and_batch_mates_change_nothing(
    name: str, num_tags: int, premise: Sentence, hypothesis: Sentence
) -> None:
    """So batches of identical lengths, as the report has them, and padded batches train alike."""
    models.padding_and_batch_mates_change_nothing(model_of(name, num_tags=num_tags), premise, hypothesis)


@every_model
def test_sentences_without_words_are_harmless(name: str) -> None:
    models.sentences_without_words_are_harmless(model_of(name))


@given(premise=sentences(), hypothesis=sentences(), data=st.data())
def test_attention_alone_sees_a_bag_of_words(premise: Sentence, hypothesis: Sentence, data: st.DataObject) -> None:
    model = model_of("AttentionModel", num_tags=3)
    logits = model(premise, hypothesis)
    other = reordered(hypothesis, data.draw(st.permutations(range(hypothesis.tokens.shape[1]))))
    assert_close(model(premise, other), logits, atol=1e-12, rtol=1e-12)
    other = reordered(premise, data.draw(st.permutations(range(premise.tokens.shape[1]))))
    assert_close(model(other, hypothesis), logits, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("name", ["HybridModel", "LSTMBaseline"])
def test_an_lstm_sees_word_order(name: str) -> None:
    model, premise, hypothesis = model_of(name), full([1, 2, 3, 1, 4]), full([1, 2, 3, 4])
    logits = model(premise, hypothesis)
    assert (model(premise, reordered(hypothesis, [3, 1, 2, 0])) - logits).abs().max() > 1e-4
    assert (model(reordered(premise, [4, 1, 2, 3, 0]), hypothesis) - logits).abs().max() > 1e-4


@every_model
def test_the_logits_are_not_symmetric(name: str) -> None:
    model, premise, hypothesis = model_of(name), full([1, 2, 3, 4]), full([5, 6, 7])
    assert (model(premise, hypothesis) - model(hypothesis, premise)).abs().max() > 1e-4


@aligning
@given(premise=sentences(shortest=0), hypothesis=sentences(shortest=0))
def test_the_alignment_is_of_real_words_alone(name: str, premise: Sentence, hypothesis: Sentence) -> None:
    """No NULL and no other leading token; each real row sums to 1, where there is a word to align with."""
    model = model_of(name)
    beta, alpha = model.alignment(premise, hypothesis)
    assert model.leading_tokens == ()
    real = premise.mask[:, :, None] & hypothesis.mask[:, None, :]
    for weights, of_both in ((beta, real), (alpha, real.mT)):
        assert weights.shape == of_both.shape
        assert torch.all(weights[~of_both] == 0) and torch.all(weights[of_both] > 0)
        assert_close(weights.sum(-1), of_both.any(-1).double(), atol=1e-12, rtol=0)


@aligning
def test_the_score_network_reads_each_word_once(name: str) -> None:
    """Section 3.2.2: M1 is executed l_a + l_b times."""
    model, calls = model_of(name), []
    model.attention.align.feedforward.register_forward_hook(lambda module, inputs, output: calls.append(inputs[0]))
    model(full([1, 2, 3, 4]), full([5, 6, 7]))
    assert sum(x.shape[:2].numel() for x in calls) == 4 + 3


@every_model
def test_the_word_vectors_stay_fixed(name: str) -> None:
    model = model_of(name)
    assert not any("words" in key for key in (*dict(model.named_parameters()), *model.state_dict()))


@every_model
@pytest.mark.parametrize("num_tags", [0, 3])
def test_every_parameter_gets_a_gradient(name: str, num_tags: int) -> None:
    model = model_of(name, num_tags=num_tags, hidden_size=11)
    models.every_parameter_gets_a_gradient(model)


@every_model
def test_it_overfits_nine_pairs(name: str) -> None:
    torch.manual_seed(0)
    config = CONFIGS[name](hidden_size=20)
    models.it_overfits_nine_pairs(SCRIPT.models[CONFIGS[name]](config, models.TINY).double(), lr=1e-2, steps=150)


@every_model
def test_tags_are_seen_where_they_are_asked_for(name: str) -> None:
    one, other = (full([1, 2, 3], pos=[tags]) for tags in ([1, 2, 3], [1, 3, 3]))
    unknown, untagged = full([1, 2, 3], pos=[[0, 0, 0]]), full([1, 2, 3])
    plain, tagged = model_of(name), model_of(name, num_tags=3)
    assert torch.equal(plain(one, one), plain(other, untagged))
    assert (tagged(one, one) - tagged(one, other)).abs().max() > 1e-4
    assert (tagged(one, one) - tagged(other, one)).abs().max() > 1e-4
    assert torch.equal(tagged(unknown, one), tagged(untagged, one))


@every_model
def test_dropout_is_active_in_training_alone(name: str) -> None:
    pair = full([1, 2, 3], [4, 5, 6])
    model = model_of(name, dropout=0.5)
    assert {module.p for module in model.modules() if isinstance(module, nn.Dropout)} == {0.5}
    assert torch.equal(model(pair, pair), model_of(name, dropout=0.0)(pair, pair))
    assert (model.train()(pair, pair) - model.eval()(pair, pair)).abs().max() > 1e-3


def test_more_layers_and_the_projection_have_an_effect() -> None:
    pair = full([1, 2, 3], [4, 5, 6])
    for name, options in (
        ("HybridModel", {"num_layers": 1}),
        ("HybridModel", {"projection": True}),
        ("LSTMBaseline", {"num_layers": 1}),
        ("AttentionModel", {"projection_bias": False}),
    ):
        assert (model_of(name, **options)(pair, pair) - model_of(name)(pair, pair)).abs().max() > 1e-4


@every_model
def test_glorots_start_is_of_linear_layers_alone(name: str) -> None:
    def start(glorot: bool) -> nn.Module:
        torch.manual_seed(0)
        return SCRIPT.models[CONFIGS[name]](CONFIGS[name](hidden_size=30, glorot=glorot), models.TINY)

    glorot, plain = start(True), start(False)
    for one, other in zip(glorot.modules(), plain.modules(), strict=True):
        if isinstance(one, nn.Linear):
            bound = (6 / sum(one.weight.shape)) ** 0.5
            assert torch.all(one.bias == 0) and 0.9 * bound < one.weight.abs().max() <= bound
            assert other.bias.abs().max() > 0 and other.weight.abs().max() <= one.weight.shape[1] ** -0.5
        if isinstance(one, nn.LSTM):
            assert max(p.abs().max() for p in one.parameters()) <= 30**-0.5 and one.bias_ih_l0.abs().max() > 0


@every_model
def test_two_classes(name: str) -> None:
    pair = full([1, 2])
    assert model_of(name, num_classes=2)(pair, pair).shape == (1, 2)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("AttentionModel", {"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
        ("HybridModel", {"num_layers": 0}, "num_layers must be at least 1, got 0"),
        ("LSTMBaseline", {"num_tags": -1}, "num_tags must be at least 0, got -1"),
        ("LSTMBaseline", {"num_classes": 0}, "num_classes must be at least 1, got 0"),
        ("LSTMBaseline", {"pooling": "sum"}, "pooling must be last, max or mean, got 'sum'"),
        ("HybridModel", {"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        (
            "HybridModel",
            {"num_tags": 2},
            "num_tags must be at least 3 for the tags of the data, unless they are left out, got 2",
        ),
    ],
)
def test_impossible_sizes_are_refused(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_of(name, **options)


def test_the_papers_tables() -> None:
    """Every row names a model and its options; the figures of Table 4 follow those of the text."""
    for table in SCRIPT.tables.values():
        for row in table.rows:
            config = SCRIPT.config_named(row.model)(**row.options)
            assert len(row.paper) == len(table.columns) and type(config) in SCRIPT.models
    assert [row.paper for row in SCRIPT.tables["3-300-42b"].rows] == [(80.56,), (85.59,), (85.75,)]
    assert [row.paper[0] for row in SCRIPT.tables["4"].rows] == [78.20, 84.14, 83.99, 79.66, 84.14, 85.06]


def test_attention_is_shared_by_both_of_its_models() -> None:
    """The hybrid is the attention model with an LSTM in the place of its linear function."""
    hybrid, attention = model_of("HybridModel", projection=True), model_of("AttentionModel")
    shapes = [[p.shape for p in model.attention.parameters()] for model in (hybrid, attention)]
    assert isinstance(hybrid, HybridModel) and isinstance(attention, AttentionModel) and shapes[0] == shapes[1]
