"""Every public layer and every reference model, in float64, with inputs that are plain tensors."""

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

TAGS = 3
WORDS = 40
Tensors = tuple[Tensor, ...]


@dataclass(frozen=True)
class Case:
    """A module, and how batches for it are drawn.

    Attributes:
        build: makes the module; its random weights depend on torch's seed.
        draw: inputs for so many sentences of so many words, from a generator.
        shortest: words of a sentence that it is for, at least.
        recurrent: whether an LSTM is in it.
    """

    build: Callable[[], nn.Module]
    draw: Callable[[int, int, torch.Generator], Tensors]
    shortest: int = 1
    recurrent: bool = False

    def module(self, seed: int = 0) -> nn.Module:
        """In float64 and in evaluation, every parameter drawn anew: a small start would hide what it does."""
        torch.manual_seed(seed)
        module = self.build().double().eval()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.normal_(std=0.5)
        return module

    def inputs(self, batch: int, length: int, seed: int = 0) -> Tensors:
        """A batch that the seed alone decides."""
        return self.draw(batch, max(length, self.shortest), torch.Generator().manual_seed(seed))


class Pairs(nn.Module):
    """A reference model, given its sentences as tensors: tokens, mask and tags of each."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *tensors: Tensor) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        logits: Tensor = self.model(Sentence(*tensors[:3]), Sentence(*tensors[3:]))
        return logits


class Distances(nn.Module):
    """A distance prior as an additive part of what it is given: priors have no input of their own."""

    def __init__(self, prior: nn.Module) -> None:
        super().__init__()
        self.prior = prior

    def forward(self, x: Tensor) -> Tensor:
        """``(b, n, n)`` → the same."""
        y: Tensor = x + self.prior(x.shape[1])
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


def _words(features: int, masked: bool) -> Callable[[int, int, torch.Generator], Tensors]:
    def draw(batch: int, length: int, generator: torch.Generator) -> Tensors:
        x = _normal(generator, batch, length, features)
        return (x, _mask(batch, length, generator)) if masked else (x,)

    return draw


def _two_words(batch: int, length: int, generator: torch.Generator) -> Tensors:
    return _normal(generator, batch, length, 5), _normal(generator, batch, length, 5)


def _two_sentences(batch: int, length: int, generator: torch.Generator) -> Tensors:
    a, b = _normal(generator, batch, length, 5), _normal(generator, batch, length + 2, 5)
    return a, b, _mask(batch, length, generator), _mask(batch, length + 2, generator)


def _hidden_and_cell(batch: int, length: int, generator: torch.Generator) -> Tensors:
    hidden, cell = _normal(generator, batch, length, 5), _normal(generator, batch, length, 3)
    return hidden, cell, _mask(batch, length, generator)


def _ngrams(batch: int, length: int, generator: torch.Generator) -> Tensors:
    return (torch.randint(0, 33, (batch, length, 4), generator=generator),)


def _square(batch: int, length: int, generator: torch.Generator) -> Tensors:
    return (_normal(generator, batch, length, length),)


def _pairs(batch: int, length: int, generator: torch.Generator) -> Tensors:
    tensors: list[Tensor] = []
    for words in (length, length + 2):
        mask = _mask(batch, words, generator)
        tokens = torch.randint(WORDS, mask.shape, generator=generator)
        tensors += [tokens, mask, torch.randint(1 + TAGS, mask.shape, generator=generator) * mask]
    return tuple(tensors)


def _feedforward() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 11), nn.Tanh())


@cache
def lexicon() -> Lexicon:
    """Forty words with tags: made once, on the CPU, whatever device a model is built on."""
    return Lexicon.random([f"w{i}" for i in range(WORDS)], 7, tags=["DT", "NN", "VBZ"])


def _model(model: Callable[[Any, Lexicon], nn.Module], config: Any) -> Callable[[], nn.Module]:
    return lambda: Pairs(model(config, lexicon()))


_attention = nlilayers.GaussianSelfAttention
LONG = 200
"""Words of a sentence that attention takes in blocks."""
LAYERS: Mapping[str, Case] = {
    "GaussianSelfAttention": Case(lambda: _attention(6, 2, bias=True), _words(6, True)),
    "GaussianSelfAttention, window=3, 200 words": Case(lambda: _attention(6, 2, window=3), _words(6, True), LONG),
    "GaussianSelfAttention, DistancePrior": Case(
        lambda: _attention(6, 2, prior=nlilayers.DistancePrior(2)), _words(6, True)
    ),
    "DecomposableAlign": Case(lambda: nlilayers.DecomposableAlign(_feedforward()), _two_sentences),
    "IntraAlign": Case(lambda: nlilayers.IntraAlign(_feedforward(), prior=nlilayers.DistancePrior(2)), _words(5, True)),
    "FactorizationMachine": Case(lambda: nlilayers.FactorizationMachine(5, 3), _words(5, False)),
    "AlignmentFactorization": Case(lambda: nlilayers.AlignmentFactorization(5, 3), _two_words),
    "GatedConvBlock": Case(lambda: nlilayers.GatedConvBlock(5, 3), _hidden_and_cell),
    "GatedConvEncoder": Case(lambda: nlilayers.GatedConvEncoder(5, 3, 2), _words(5, True)),
    "CharNgramEmbedding": Case(lambda: nlilayers.CharNgramEmbedding(5, num_embeddings=32), _ngrams),
    "SinusoidalPositionalEncoding": Case(lambda: nlilayers.SinusoidalPositionalEncoding(6), _words(6, False)),
    "Highway": Case(lambda: nlilayers.Highway(5, 3, 2), _words(5, False)),
    "GaussianPrior": Case(lambda: Distances(nlilayers.GaussianPrior()), _square),
    "ZipfPrior": Case(lambda: Distances(nlilayers.ZipfPrior()), _square),
    "LinearPrior": Case(lambda: Distances(nlilayers.LinearPrior()), _square),
    "DistancePrior": Case(lambda: Distances(nlilayers.DistancePrior(2)), _square),
}
CONFIGS: Mapping[str, tuple[Callable[[Any, Lexicon], nn.Module], Any]] = {
    "DecomposableAttention": (DecomposableAttention, DecomposableAttentionConfig(True, 6, dropout=0.0)),
    "GaussianTransformer": (
        GaussianTransformer,
        GaussianTransformerConfig(
            num_encoding_blocks=1, num_interaction_blocks=1, hidden_size=6, num_heads=3, char_size=3, dropout=0.0
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
    "ESIM": (ESIM, ESIMConfig(4, dropout=0.0)),
    "HybridModel": (HybridModel, HybridModelConfig(4, dropout=0.0)),
    "LSTMBaseline": (LSTMBaseline, LSTMBaselineConfig(4, dropout=0.0)),
}
RECURRENT = ("CAFE", "ESIM", "HybridModel", "LSTMBaseline")
MODELS: Mapping[str, Case] = {
    name: Case(_model(*parts), _pairs, recurrent=name in RECURRENT) for name, parts in CONFIGS.items()
}
CASES: Mapping[str, Case] = {**LAYERS, **MODELS}
