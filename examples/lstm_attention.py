r"""LSTM, attention, and attention upon an LSTM: Nguyen 2019, Self-Attention Model for NLI (University of Trento).

Commands::

    python examples/lstm_attention.py train                             # the hybrid, on the generated corpus
    python examples/lstm_attention.py train attention-model --hidden-size 100
    python examples/lstm_attention.py train --output runs/lstm lstm-baseline
    python examples/lstm_attention.py predict --run runs/lstm_attention \
        --premise "A man sells donuts." --hypothesis "A woman drinks her coffee."
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from nli_common.checks import require_at_least, require_choices, require_dropout
from nli_common.commands import main
from nli_common.data import Sentence
from nli_common.feedforward import feedforward, start_from_glorot
from nli_common.inputs import Data
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe
from nli_common.recurrent import SentenceLSTM
from nli_common.script import NumClasses, Script
from nli_common.words import OneHotTags, WordVectors
from nlilayers import DecomposableAlign
from nlilayers.masking import masked_max, masked_mean, masked_sum
from paper_tables.lstm_attention import TABLES

POOLS = {"max": masked_max, "mean": masked_mean}


@dataclass(frozen=True)
class Sizes:
    """What the three models have in common."""

    hidden_size: int = 200
    """Width of the linear function, of every layer of a perceptron, and of an LSTM's state in each direction."""
    dropout: float = 0.2
    """Dropout between the two layers of a perceptron, and between those of the LSTM."""
    num_tags: int = 0
    """Part-of-speech tags, appended to each word's vector as one-hot vectors; SNLI has 46, and 0 leaves them out."""
    glorot: bool = True
    """Start linear layers from Glorot's weights (the report is silent); with torch's smaller ones it aligns later."""
    num_classes: NumClasses = 3

    def __post_init__(self) -> None:
        """Refuse sizes that make no model."""
        require_at_least(1, self, *(n for n in ("hidden_size", "num_layers", "num_classes") if hasattr(self, n)))
        require_at_least(0, self, "num_tags")
        require_dropout(self)
        require_choices(self)


@dataclass(frozen=True)
class HybridModelConfig(Sizes):
    """The model of section 3.3."""

    num_layers: int = 2
    """Bidirectional LSTM layers."""
    projection: bool = False
    """Apply the linear function of Eq 1 to the LSTM's states (the paper uses the states in its place)."""


@dataclass(frozen=True)
class AttentionModelConfig(Sizes):
    """The model of section 3.2."""

    projection_bias: bool = True
    """Let the linear function of Eq 1 have a bias."""


@dataclass(frozen=True)
class LSTMBaselineConfig(Sizes):
    """The model of section 3.1."""

    num_layers: int = 2
    """Bidirectional LSTM layers."""
    pooling: Literal["last", "max", "mean"] = "last"
    """How a sentence's states become one vector, by default the final ones; the report gives only its width."""


class AttendingModel(nn.Module):
    """Attention between the words of two sentences, whatever represents them."""

    leading_tokens: ClassVar[tuple[str, ...]] = ()
    attention: "AttendCompareAggregate"

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        logits: Tensor = self.attention(self.represent(premise), self.represent(hypothesis), premise, hypothesis)
        return logits

    def represent(self, sentence: Sentence) -> Tensor:
        """Each word of a sentence, ``(b, n, features)``."""
        raise NotImplementedError

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """The weights of Eq 3 behind beta, ``(b, n, m)``, and alpha, ``(b, m, n)``."""
        a, b = self.represent(premise), self.represent(hypothesis)
        return self.attention.align.alignment_weights(a, b, premise.mask, hypothesis.mask)


class HybridModel(AttendingModel):
    """Attention between the states of an LSTM.

    Args:
        config: the sizes.
        lexicon: its vectors are the fixed word embeddings.
    """

    def __init__(self, config: HybridModelConfig, lexicon: Lexicon) -> None:
        super().__init__()
        self.words = Words(lexicon, config.num_tags)
        self.lstm = bidirectional_lstm(self.words.dim, config)
        states = 2 * config.hidden_size
        self.projection = nn.Linear(states, config.hidden_size) if config.projection else nn.Identity()
        self.attention = AttendCompareAggregate(config.hidden_size if config.projection else states, config)
        if config.glorot:
            self.apply(start_from_glorot)

    def represent(self, sentence: Sentence) -> Tensor:
        """Each word in its context, ``(b, n, 2 * hidden_size)`` or, with the projection, ``(b, n, hidden_size)``."""
        states, _ = self.lstm(self.words(sentence), sentence.mask)
        represented: Tensor = self.projection(states)
        return represented


class AttentionModel(AttendingModel):
    """Attention between the words themselves, without their order: Figure 2, from left to right.

    Args:
        config: the sizes.
        lexicon: its vectors are the fixed word embeddings.
    """

    def __init__(self, config: AttentionModelConfig, lexicon: Lexicon) -> None:
        super().__init__()
        self.words = Words(lexicon, config.num_tags)
        self.projection = nn.Linear(self.words.dim, config.hidden_size, bias=config.projection_bias)
        self.attention = AttendCompareAggregate(config.hidden_size, config)
        if config.glorot:
            self.apply(start_from_glorot)

    def represent(self, sentence: Sentence) -> Tensor:
        """Each word by itself, ``(b, n, hidden_size)``."""
        projected: Tensor = self.projection(self.words(sentence))  # Eq 1
        return projected


class LSTMBaseline(nn.Module):
    """Two sentence vectors, side by side: Figure 1.

    Args:
        config: the sizes.
        lexicon: its vectors are the fixed word embeddings.
    """

    def __init__(self, config: LSTMBaselineConfig, lexicon: Lexicon) -> None:
        super().__init__()
        self.words = Words(lexicon, config.num_tags)
        self.lstm = bidirectional_lstm(self.words.dim, config)
        self.pooling = config.pooling
        self.classify = perceptron(4 * config.hidden_size, config)
        self.scores = nn.Linear(config.hidden_size, config.num_classes)
        if config.glorot:
            self.apply(start_from_glorot)

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        both = torch.cat([self.represent(premise), self.represent(hypothesis)], dim=-1)
        logits: Tensor = self.scores(self.classify(both))
        return logits

    def represent(self, sentence: Sentence) -> Tensor:
        """One vector of a sentence, ``(b, 2 * hidden_size)``."""
        states, final = self.lstm(self.words(sentence), sentence.mask)
        return final if self.pooling == "last" else POOLS[self.pooling](states, sentence.mask)


class AttendCompareAggregate(nn.Module):
    """From the represented words of two sentences to the scores of the classes: sections 3.2.2 and 3.2.3."""

    def __init__(self, features: int, sizes: Sizes) -> None:
        super().__init__()
        self.align = DecomposableAlign(perceptron(features, sizes))
        self.compare = perceptron(2 * features, sizes)
        self.aggregate = perceptron(2 * sizes.hidden_size, sizes)
        self.scores = nn.Linear(sizes.hidden_size, sizes.num_classes)

    def forward(self, a: Tensor, b: Tensor, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """Words ``(b, n, features)`` and ``(b, m, features)`` → ``(b, num_classes)``."""
        beta, alpha = self.align(a, b, premise.mask, hypothesis.mask)  # Eqs 2, 3
        u = self.compare(torch.cat([a, beta], dim=-1))  # Eq 4
        v = self.compare(torch.cat([b, alpha], dim=-1))
        sums = torch.cat([masked_sum(u, premise.mask), masked_sum(v, hypothesis.mask)], dim=-1)
        logits: Tensor = self.scores(self.aggregate(sums))  # Eq 5
        return logits


class Words(nn.Module):
    """Fixed word vectors and, behind them, one-hot tags."""

    def __init__(self, lexicon: Lexicon, num_tags: int) -> None:
        super().__init__()
        self.vectors = WordVectors(lexicon)
        self.tags = OneHotTags(lexicon, num_tags) if num_tags else None
        self.dim = lexicon.dim + num_tags

    def forward(self, sentence: Sentence) -> Tensor:
        """Words ``(b, n)`` → ``(b, n, dim)``."""
        vectors: Tensor = self.vectors(sentence)
        return vectors if self.tags is None else torch.cat([vectors, self.tags(sentence, vectors.dtype)], dim=-1)


def perceptron(in_features: int, sizes: Sizes) -> nn.Sequential:
    """The paper's M: two rectified layers."""
    return feedforward(in_features, sizes.hidden_size, sizes.hidden_size, dropout=sizes.dropout)


def bidirectional_lstm(in_features: int, config: HybridModelConfig | LSTMBaselineConfig) -> SentenceLSTM:
    """The paper's LSTM, as section 3.1 gives it."""
    layers, dropout = config.num_layers, config.dropout
    return SentenceLSTM(in_features, config.hidden_size, num_layers=layers, bidirectional=True, dropout=dropout)


SCRIPT = Script(
    name="lstm_attention",
    models={HybridModelConfig: HybridModel, AttentionModelConfig: AttentionModel, LSTMBaselineConfig: LSTMBaseline},
    recipe=Recipe(lr=2e-4, same_lengths=True, epochs=50, patience=50),
    quick=Recipe(optimizer="adamwr", lr=1e-3, batch_size=16, epochs=4, restart_epochs=5),
    tables=TABLES,
    data=Data(unit_vectors=True),
)

if __name__ == "__main__":
    main(SCRIPT)
