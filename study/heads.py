"""Two small models on the same frozen features of an encoder: one pools each sentence, one aligns their words first."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from nli_common.checks import require_at_least, require_dropout
from nli_common.contextual import ContextualVectors, LayerMix
from nli_common.data import Sentence
from nli_common.feedforward import feedforward, start_from_glorot
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe
from nli_common.script import NumClasses, Script
from nlilayers import AlignmentFactorization, DecomposableAlign
from nlilayers.masking import masked_max, masked_mean


@dataclass(frozen=True)
class _Head:
    encoder: str = ""
    """Folder of a Hugging Face encoder, which is not trained."""
    hidden_size: int = 200
    """Features of a word."""
    dropout: float = 0.2
    """Of words, and between the layers of the pooled head's network."""
    num_classes: NumClasses = 3

    def __post_init__(self) -> None:
        """Refuse sizes that make no model."""
        require_at_least(1, self, "hidden_size", "num_classes")
        require_dropout(self)

    @property
    def encoder_folder(self) -> Path:
        """What is read beside the model's own weights."""
        return Path(self.encoder)


@dataclass(frozen=True)
class PooledHeadConfig(_Head):
    """Two sentence vectors, compared once."""


@dataclass(frozen=True)
class AlignedHeadConfig(_Head):
    """Each word compared with what is aligned to it."""

    num_factors: int = 10
    """Factors of each factorization machine."""


class Words(nn.Module):
    """A learned mixture of a frozen encoder's layers, in the width of the head."""

    def __init__(self, config: _Head, lexicon: Lexicon) -> None:
        super().__init__()
        self.vectors = ContextualVectors(config.encoder, lexicon)
        self.mix = LayerMix(self.vectors.num_layers)
        self.project = nn.Sequential(nn.Dropout(config.dropout), nn.Linear(self.vectors.dim, config.hidden_size))

    def forward(self, sentence: Sentence) -> Tensor:
        """Words ``(b, n, hidden_size)``."""
        projected: Tensor = self.project(self.mix(self.vectors(sentence)))
        return projected


class PooledHead(nn.Module):
    """Mean of the words, ``[u; v; |u - v|; u * v]``, a network."""

    def __init__(self, config: PooledHeadConfig, lexicon: Lexicon) -> None:
        super().__init__()
        d = config.hidden_size
        self.words = Words(config, lexicon)
        self.classify = feedforward(4 * d, d, d, dropout=config.dropout)
        self.classify.append(nn.Linear(d, config.num_classes))
        self.apply(start_from_glorot)

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        u = masked_mean(self.words(premise), premise.mask)
        v = masked_mean(self.words(hypothesis), hypothesis.mask)
        logits: Tensor = self.classify(torch.cat([u, v, (u - v).abs(), u * v], dim=-1))
        return logits


class AlignedHead(nn.Module):
    """Align, compare by three scalars and a network, pool, a network."""

    leading_tokens: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: AlignedHeadConfig, lexicon: Lexicon) -> None:
        super().__init__()
        d = config.hidden_size
        self.words = Words(config, lexicon)
        self.align = DecomposableAlign(feedforward(d, d))
        self.factorize = AlignmentFactorization(d, config.num_factors)
        self.compare = feedforward(2 * d + 3, d)
        self.classify = feedforward(4 * d, d)
        self.classify.append(nn.Linear(d, config.num_classes))
        self.apply(start_from_glorot)

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        a, b = self.words(premise), self.words(hypothesis)
        beta, alpha = self.align(a, b, premise.mask, hypothesis.mask)
        pair = [*self.summary(a, beta, premise.mask), *self.summary(b, alpha, hypothesis.mask)]
        logits: Tensor = self.classify(torch.cat(pair, dim=-1))
        return logits

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """The weights behind beta, ``(b, n, m)``, and alpha, ``(b, m, n)``."""
        return self.align.alignment_weights(self.words(premise), self.words(hypothesis), premise.mask, hypothesis.mask)

    def summary(self, x: Tensor, aligned: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the largest of each feature of the compared words."""
        compared = self.compare(torch.cat([x, aligned, self.factorize(x, aligned)], dim=-1))
        return masked_mean(compared, mask), masked_max(compared, mask)


SCRIPT = Script(
    name="heads",
    models={PooledHeadConfig: PooledHead, AlignedHeadConfig: AlignedHead},
    recipe=Recipe(lr=5e-4),
    quick=Recipe(lr=5e-4),
    tables={},
)
