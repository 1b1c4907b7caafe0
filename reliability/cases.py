"""Every public layer and every reference model, tiny and in float64 or as wide as in the papers, and what they read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

import nlilayers
from cafe import CAFE, CAFEConfig
from decomposable_attention import DecomposableAttention, DecomposableAttentionConfig
from esim import ESIM, ESIMConfig
from gated_cnn import GatedCNN, GatedCNNConfig
from gaussian_transformer import GaussianTransformer, GaussianTransformerConfig
from hypothesis_only import HypothesisOnly, HypothesisOnlyConfig
from lstm_attention import (
    AttentionModel,
    AttentionModelConfig,
    HybridModel,
    HybridModelConfig,
    LSTMBaseline,
    LSTMBaselineConfig,
)
from nli_common.data import Sentence
from nli_common.lexicon import Lexicon
from stacked_alignment import StackedAlignment, StackedAlignmentConfig

TAGS = 3
WORDS = 40
Tensors = tuple[Tensor, ...]
Draw = Callable[[int, int, int, torch.Generator], Tensors]


@dataclass(frozen=True)
class Case:
    """A module, and how batches for it are drawn.

    Attributes:
        build: makes the module; its random weights depend on torch's seed.
        draw: inputs for so many sentences of so many words, and so many in the other sentence, from a generator.
        shortest: words of a sentence that it is for, at least.
        paired: whether it is a reference model, and its inputs two sentences.
        recurrent: whether an LSTM is in it.
        spread: the standard deviation of its parameters, which must not make its numbers so large that nothing could be
            compared to a few roundings.
    """

    build: Callable[[], nn.Module]
    draw: Draw
    shortest: int = 1
    paired: bool = False
    recurrent: bool = False
    spread: float = 0.5

    def module(self, seed: int = 0) -> nn.Module:
        """In float64 and in evaluation, every parameter drawn anew: a small start would hide what it does."""
        torch.manual_seed(seed)
        module = self.build().double().eval()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.normal_(std=self.spread)
        return module

    def inputs(self, batch: int, length: int, seed: int = 0, other: int | None = None) -> Tensors:
        """A batch that the seed alone decides; the other sentence has two words more if nothing else is said."""
        other = length + 2 if other is None else other
        return self.draw(batch, max(length, self.shortest), other, torch.Generator().manual_seed(seed))


class Pairs(nn.Module):
    """A reference model, given its sentences as tensors: tokens, mask and tags of each."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *tensors: Tensor) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        logits: Tensor = self.model(*as_sentences(tensors))
        return logits


def as_sentences(tensors: Tensors) -> tuple[Sentence, Sentence]:
    """The premise and the hypothesis from tokens, mask and tags of each."""
    return Sentence(*tensors[:3]), Sentence(*tensors[3:])


class Distances(nn.Module):
    """A distance prior as an additive part of what it is given: priors have no input of their own."""

    def __init__(self, prior: nn.Module) -> None:
        super().__init__()
        self.prior = prior

    def forward(self, x: Tensor) -> Tensor:
        """``(b, n, m)`` → the same."""
        y: Tensor = x + self.prior(x.shape[1], x.shape[2])
        return y


def outputs(module: nn.Module, inputs: Tensors) -> Tensors:
    """What a module returns, always as a tuple."""
    result = module(*inputs)
    return result if isinstance(result, tuple) else (result,)


def _normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _mask(batch: int, length: int, generator: torch.Generator) -> Tensor:
    """Right-padded, one word at least."""
    real = torch.randint(1, length + 1, (batch, 1), generator=generator)
    return torch.arange(length) < real


def _words(*features: int, masked: bool = True) -> Draw:
    """Sentences of one length, each of its own width, and their mask."""

    def draw(batch: int, length: int, other: int, generator: torch.Generator) -> Tensors:
        words = tuple(_normal(generator, batch, length, width) for width in features)
        return (*words, _mask(batch, length, generator)) if masked else words

    return draw


def _two_sentences(features: int) -> Draw:
    def draw(batch: int, length: int, other: int, generator: torch.Generator) -> Tensors:
        a, b = _normal(generator, batch, length, features), _normal(generator, batch, other, features)
        return a, b, _mask(batch, length, generator), _mask(batch, other, generator)

    return draw


def _ngrams(batch: int, length: int, other: int, generator: torch.Generator) -> Tensors:
    return (torch.randint(0, 33, (batch, length, other), generator=generator),)


def _rectangle(batch: int, length: int, other: int, generator: torch.Generator) -> Tensors:
    return (_normal(generator, batch, length, other),)


def _pairs(words: int) -> Draw:
    def draw(batch: int, length: int, other: int, generator: torch.Generator) -> Tensors:
        tensors: list[Tensor] = []
        for width in (length, other):
            mask = _mask(batch, width, generator)
            tokens = torch.randint(words, mask.shape, generator=generator)
            tensors += [tokens, mask, torch.randint(1 + TAGS, mask.shape, generator=generator) * mask]
        return tuple(tensors)

    return draw


def _feedforward(features: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 11), nn.Tanh())


LONG = 200
"""Words of a sentence that attention takes in blocks."""


def layers(d: int, even: int, heads: int, hidden: int, factors: int) -> dict[str, Case]:
    """Every public layer.

    Args:
        d: features of a word.
        even: the same where positions are encoded, or attention has heads.
        heads: they divide it.
        hidden: features of what a layer makes of a word.
        factors: of factorization machines.
    """
    attention = nlilayers.GaussianSelfAttention
    distances = nlilayers.DistancePrior
    return {
        "GaussianSelfAttention": Case(lambda: attention(even, heads, bias=True), _words(even)),
        f"GaussianSelfAttention, window=3, {LONG} words": Case(
            lambda: attention(even, heads, window=3), _words(even), LONG
        ),
        "GaussianSelfAttention, DistancePrior": Case(lambda: attention(even, heads, prior=distances(2)), _words(even)),
        "GaussianSelfAttention, HeadPriors": Case(
            lambda: attention(even, heads, prior=nlilayers.HeadPriors(distances(2) for _ in range(heads))),
            _words(even),
        ),
        "DecomposableAlign": Case(lambda: nlilayers.DecomposableAlign(_feedforward(d)), _two_sentences(d)),
        "IntraAlign": Case(lambda: nlilayers.IntraAlign(_feedforward(d), prior=distances(2)), _words(d)),
        "FactorizationMachine": Case(lambda: nlilayers.FactorizationMachine(d, factors), _words(d, masked=False)),
        "AlignmentFactorization": Case(
            lambda: nlilayers.AlignmentFactorization(d, factors), _words(d, d, masked=False)
        ),
        "GatedConvBlock": Case(lambda: nlilayers.GatedConvBlock(d, hidden), _words(d, hidden)),
        "GatedConvEncoder": Case(lambda: nlilayers.GatedConvEncoder(d, hidden, 2), _words(d)),
        "CharNgramEmbedding": Case(lambda: nlilayers.CharNgramEmbedding(d, num_embeddings=32), _ngrams),
        "SinusoidalPositionalEncoding": Case(
            lambda: nlilayers.SinusoidalPositionalEncoding(even), _words(even, masked=False)
        ),
        "Highway": Case(lambda: nlilayers.Highway(d, hidden, 2), _words(d, masked=False)),
        "GaussianPrior": Case(lambda: Distances(nlilayers.GaussianPrior()), _rectangle),
        "ZipfPrior": Case(lambda: Distances(nlilayers.ZipfPrior()), _rectangle),
        "LinearPrior": Case(lambda: Distances(nlilayers.LinearPrior()), _rectangle),
        "DistancePrior": Case(lambda: Distances(distances(2)), _rectangle),
    }


@cache
def lexicon(words: int = WORDS, dim: int = 7) -> Lexicon:
    """Words with tags: made once, on the CPU, whatever device a model is built on."""
    return Lexicon.random([f"w{i}" for i in range(words)], dim, tags=["DT", "NN", "VBZ"])


CONFIGS: Mapping[str, tuple[Callable[[Any, Lexicon], nn.Module], Any]] = {
    "DecomposableAttention": (DecomposableAttention, DecomposableAttentionConfig(True, 6, dropout=0.0)),
    "GaussianTransformer": (
        GaussianTransformer,
        # Where it starts by itself, sub-layers that add nothing would hide what happens inside them.
        GaussianTransformerConfig(
            num_encoding_blocks=1,
            num_interaction_blocks=1,
            hidden_size=6,
            num_heads=3,
            char_size=3,
            dropout=0.0,
            start="glorot",
        ),
    ),
    "GatedCNN": (
        GatedCNN,
        GatedCNNConfig(
            hidden_size=5, context_layers=2, aggregation_layers=1, char_dim=3, char_size=4, char_layers=1, num_tags=TAGS
        ),
    ),
    "AttentionModel": (AttentionModel, AttentionModelConfig(5, dropout=0.0, num_tags=TAGS)),
    "HypothesisOnly": (HypothesisOnly, HypothesisOnlyConfig(5, dropout=0.0)),
    "CAFE": (
        CAFE,
        CAFEConfig(
            encoder_size=5,
            num_factors=2,
            lstm_size=4,
            prediction_size=3,
            char_size=2,
            char_filters=2,
            tag_size=2,
            dropout=0.0,
        ),
    ),
    "StackedAlignment": (
        StackedAlignment,
        StackedAlignmentConfig(hidden_size=4, num_factors=2, char_size=2, char_filters=2, dropout=0.0),
    ),
    "ESIM": (ESIM, ESIMConfig(4, dropout=0.0)),
    "HybridModel": (HybridModel, HybridModelConfig(4, dropout=0.0)),
    "LSTMBaseline": (LSTMBaseline, LSTMBaselineConfig(4, dropout=0.0, num_layers=1)),
}
RECURRENT = ("CAFE", "ESIM", "HybridModel", "LSTMBaseline")
SPREADS = {"StackedAlignment": 0.2}
"""Of the parameters of models in which product follows upon product."""


def _models(full: bool) -> dict[str, Case]:
    words, dim = (2000, 300) if full else (WORDS, 7)

    def build(model: Callable[[Any, Lexicon], nn.Module], config: Any) -> Callable[[], nn.Module]:
        # As wide as its paper's; where one is to start otherwise than by itself, it does so at both sizes.
        start = {"start": config.start} if hasattr(config, "start") else {}
        return lambda: Pairs(model(type(config)(**start) if full else config, lexicon(words, dim)))

    return {
        name: Case(
            build(*parts), _pairs(words), paired=True, recurrent=name in RECURRENT, spread=SPREADS.get(name, 0.5)
        )
        for name, parts in CONFIGS.items()
    }


LAYERS: Mapping[str, Case] = layers(d=5, even=6, heads=2, hidden=3, factors=3)
MODELS: Mapping[str, Case] = _models(full=False)
CASES: Mapping[str, Case] = {**LAYERS, **MODELS}


def full_size() -> dict[str, Case]:
    """Layers as wide as in the papers, and models with their papers' configurations."""
    return layers(d=300, even=120, heads=4, hidden=300, factors=150) | _models(full=True)
