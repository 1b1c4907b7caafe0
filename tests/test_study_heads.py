"""The study's two heads on a frozen encoder: both are what they say they are, and padding is nothing to them."""

import pytest
import torch
from hypothesis import given
from study.heads import AlignedHead, AlignedHeadConfig, PooledHead, PooledHeadConfig
from torch import Tensor, nn
from torch.testing import assert_close

import models
import oracles
from models import TINY, alone, full, perceptron_of, sentences
from nli_common.data import Sentence
from nli_common.lexicon import Lexicon
from oracles_lstm_attention import linear, perceptron
from strategies import normal

Words = list[list[float]]
LAYERS, DIM, SIZE = 3, 5, 4


class Encoder(nn.Module):
    """Layers of an encoder for which a word is the same everywhere."""

    num_layers, dim = LAYERS, DIM

    def __init__(self, folder: str, lexicon: Lexicon) -> None:
        super().__init__()
        self.table = normal(7, LAYERS, len(lexicon), DIM)

    def forward(self, sentence: Sentence) -> Tensor:
        return self.table[:, sentence.tokens] * sentence.mask[..., None]


@pytest.fixture(params=["pooled", "aligned"])
def head(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    monkeypatch.setattr("study.heads.ContextualVectors", Encoder)
    if request.param == "pooled":
        return models.randomised(PooledHead(PooledHeadConfig("", SIZE, dropout=0.3, num_classes=3), TINY))
    return models.randomised(AlignedHead(AlignedHeadConfig("", SIZE, dropout=0.3, num_classes=3, num_factors=2), TINY))


def words_of(head: nn.Module, sentence: Sentence, row: int) -> Words:
    """The mixture of the layers of each real word, projected."""
    mix, (projection,) = head.words.mix, perceptron_of(head.words.project)
    weights = [mix.gamma.item() * share for share in oracles.softmax(mix.s.tolist())]
    tokens = sentence.tokens[row][sentence.mask[row]].tolist()
    layers = head.words.vectors.table.tolist()
    mixed = [oracles.combine(weights, [layer[token] for layer in layers]) for token in tokens]
    return [linear(word, projection) for word in mixed]


def classified(head: nn.Module, features: list[float]) -> list[float]:
    *hidden, last = perceptron_of(head.classify)
    return linear(perceptron(features, hidden), last)


def mean(words: Words) -> list[float]:
    return [sum(column) / len(words) for column in zip(*words, strict=True)]


def pooled(head: nn.Module, premise: Words, hypothesis: Words) -> list[float]:
    """[u; v; |u - v|; u * v] of the means."""
    u, v = mean(premise), mean(hypothesis)
    apart = [abs(p - q) for p, q in zip(u, v, strict=True)]
    product = [p * q for p, q in zip(u, v, strict=True)]
    return classified(head, [*u, *v, *apart, *product])


def aligned(head: nn.Module, premise: Words, hypothesis: Words) -> list[float]:
    """Each word beside what is aligned to it in the other sentence and three scalars of both; the mean, the largest."""
    f = perceptron_of(head.align.feedforward)
    scores = oracles.scores(premise, hypothesis, lambda word: perceptron(word, f))
    beta, alpha = oracles.align(premise, hypothesis, scores)
    machines = [
        (machine.bias.item(), machine.weight.tolist(), machine.factors.tolist())
        for machine in (head.factorize.concat, head.factorize.subtract, head.factorize.multiply)
    ]
    features = []
    for words, others in ((premise, beta), (hypothesis, alpha)):
        compared = [
            perceptron([*x, *y, *oracles.alignment_factorization(x, y, *machines)], perceptron_of(head.compare))
            for x, y in zip(words, others, strict=True)
        ]
        features += [*mean(compared), *(max(column) for column in zip(*compared, strict=True))]
    return classified(head, features)


@given(premise=sentences(), hypothesis=sentences())
def test_a_head_is_the_loop_over_its_words(head: nn.Module, premise: Sentence, hypothesis: Sentence) -> None:
    oracle = pooled if isinstance(head, PooledHead) else aligned
    rows = [oracle(head, words_of(head, premise, row), words_of(head, hypothesis, row)) for row in range(3)]
    expected = torch.tensor(rows, dtype=torch.float64)
    assert_close(head(premise, hypothesis), expected, atol=1e-9, rtol=1e-9)


@given(premise=sentences(), hypothesis=sentences())
def test_padding_is_nothing_to_a_head(head: nn.Module, premise: Sentence, hypothesis: Sentence) -> None:
    models.padding_and_batch_mates_change_nothing(head, premise, hypothesis)


def test_sentences_without_words_harm_no_head(head: nn.Module) -> None:
    models.sentences_without_words_are_harmless(head)


def test_every_parameter_of_a_head_is_trained(head: nn.Module) -> None:
    models.every_parameter_gets_a_gradient(head)


def test_dropout_is_of_words_and_within_the_pooled_heads_network(head: nn.Module) -> None:
    dropouts = {name: module.p for name, module in head.named_modules() if isinstance(module, nn.Dropout)}
    network = {"classify.2": 0.3} if isinstance(head, PooledHead) else {}
    assert dropouts == {"words.project.0": 0.3} | network


@pytest.mark.parametrize("head", ["aligned"], indirect=True)
def test_the_weights_that_a_head_tells_are_those_it_aligns_by(head: nn.Module) -> None:
    premise, hypothesis = full([1, 2, 3, 4]), full([5, 2, 6])
    a, b = head.words(premise), head.words(hypothesis)
    beta, alpha = head.alignment(premise, hypothesis)
    assert_close((beta @ b, alpha @ a), head.align(a, b, premise.mask, hypothesis.mask))
    row = words_of(head, alone(premise, 0), 0)
    assert_close(a[0], torch.tensor(row, dtype=torch.float64))
