r"""Decomposable Attention: Parikh, Täckström, Das, Uszkoreit 2016, https://arxiv.org/abs/1606.01933v1.

Commands::

    python examples/decomposable_attention.py train                     # the generated corpus
    python examples/decomposable_attention.py train --intra-attention
    python examples/decomposable_attention.py predict --run runs/decomposable_attention \
        --premise "Bob is awake." --hypothesis "Bob is asleep."
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from nli_common.checks import require_at_least, require_choices, require_dropout
from nli_common.commands import main
from nli_common.data import Sentence, require_words_first
from nli_common.feedforward import feedforward, start_from_glorot
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe
from nli_common.script import NumClasses, Script
from nli_common.words import WordVectors
from nlilayers import DecomposableAlign, DistancePrior, IntraAlign
from nlilayers.masking import masked_sum
from paper_tables.decomposable_attention import TABLES

Distances = Literal["signed", "absolute", "two-sided"]
READINGS: Mapping[Distances, Mapping[str, Any]] = {
    "signed": {},
    "absolute": {"signed": False},
    "two-sided": {"far_buckets": 2},
}


@dataclass(frozen=True)
class DecomposableAttentionConfig:
    """The model of section 5."""

    intra_attention: bool = False
    """Add each word's self-aligned phrase to it (section 3.4)."""
    hidden_size: int = 200
    """Width of the projection and of every feed-forward layer."""
    projection_bias: bool = False
    """Let the projection of the words have a bias; the paper calls it a matrix."""
    trained_null: bool = False
    """Train the vector of NULL; the paper is silent."""
    dropout: float = 0.2
    """Dropout between the two layers of every feed-forward network (the paper does not say where)."""
    input_dropout: float = 0.0
    """Dropout on the input of every feed-forward network."""
    max_distance: int = 10
    """The largest distance with a bias of its own (intra-attention)."""
    distances: Distances = "signed"
    """Biases (intra-attention): signed with one for greater distances, unsigned, or signed with one for each side."""
    glorot: bool = True
    """Start from Glorot's weights; from torch's own, smaller ones, intra-attention finds word order more easily."""
    num_classes: NumClasses = 3

    def __post_init__(self) -> None:
        """Refuse sizes that make no model."""
        require_at_least(1, self, "hidden_size", "num_classes")
        require_at_least(0, self, "max_distance")
        require_dropout(self, "dropout", "input_dropout")
        require_choices(self)

    def network(self, in_features: int) -> nn.Sequential:
        """F, G, H or F_intra: two rectified layers."""
        d = self.hidden_size
        layers = feedforward(in_features, d, d, dropout=self.dropout)
        return layers.insert(0, nn.Dropout(self.input_dropout)) if self.input_dropout else layers

    @property
    def unread(self) -> dict[str, str]:
        """The options of what the model leaves out."""
        return {} if self.intra_attention else dict.fromkeys(("max_distance", "distances"), "without --intra-attention")

    @property
    def learning_rate(self) -> float:
        """The paper's, for Adagrad."""
        return 0.025 if self.intra_attention else 0.05


class DecomposableAttention(nn.Module):
    """Attend, compare, aggregate: Figure 1, from left to right.

    Args:
        config: the sizes.
        lexicon: its vectors are the fixed word embeddings.
    """

    leading_tokens: ClassVar[tuple[str, ...]] = ("NULL",)

    def __init__(self, config: DecomposableAttentionConfig, lexicon: Lexicon) -> None:
        super().__init__()
        d = config.hidden_size
        fragment = 2 * d if config.intra_attention else d
        self.embedding = WordsBehindNull(lexicon, trained=config.trained_null)
        self.projection = nn.Linear(lexicon.dim, d, bias=config.projection_bias)
        self.intra = None
        if config.intra_attention:
            prior = DistancePrior(config.max_distance, **READINGS[config.distances])
            self.intra = IntraAlign(config.network(d), prior=prior)
        self.attend = DecomposableAlign(config.network(fragment))
        self.compare = config.network(2 * fragment)
        self.aggregate = nn.Sequential(config.network(2 * d), nn.Linear(d, config.num_classes))
        if config.glorot:
            self.apply(start_from_glorot)

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        a, a_mask = self.represent(premise)
        b, b_mask = self.represent(hypothesis)
        beta, alpha = self.attend(a, b, a_mask, b_mask)  # Eqs 1, 2
        v1 = masked_sum(self.compare(torch.cat([a, beta], dim=-1)), a_mask)  # Eqs 3, 4
        v2 = masked_sum(self.compare(torch.cat([b, alpha], dim=-1)), b_mask)
        logits: Tensor = self.aggregate(torch.cat([v1, v2], dim=-1))  # Eq 5
        return logits

    def represent(self, sentence: Sentence) -> tuple[Tensor, Tensor]:
        """NULL and the words as fragments, ``(b, 1 + n, d)`` or, with intra-attention, ``(b, 1 + n, 2 d)``."""
        words, mask = self.embedding(sentence)
        a: Tensor = self.projection(words)
        if self.intra is not None:
            require_words_first(sentence.mask)  # NULL stands before the first of them
            a = torch.cat([a, self.intra(a, mask)], dim=-1)  # Eqs 6, 7
        return a, mask

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """The weights of Eq 2 behind beta, ``(b, 1 + n, 1 + m)``, and alpha, ``(b, 1 + m, 1 + n)``: NULL first."""
        (a, a_mask), (b, b_mask) = self.represent(premise), self.represent(hypothesis)
        return self.attend.alignment_weights(a, b, a_mask, b_mask)


class WordsBehindNull(nn.Module):
    """Fixed word vectors, behind a NULL token that every sentence begins with."""

    def __init__(self, lexicon: Lexicon, *, trained: bool = False) -> None:
        super().__init__()
        self.words = WordVectors(lexicon)
        null = torch.randn(lexicon.dim) * self.words.vectors.std()
        self.null = nn.Parameter(null) if trained else nn.Buffer(null)

    def forward(self, sentence: Sentence) -> tuple[Tensor, Tensor]:
        """Vectors ``(b, 1 + n, dim)`` and the mask of them."""
        words = self.words(sentence)
        null = self.null.expand(words.shape[0], 1, -1)
        return torch.cat([null, words], dim=1), nn.functional.pad(sentence.mask, (1, 0), value=True)


SCRIPT = Script(
    name="decomposable_attention",
    models={DecomposableAttentionConfig: DecomposableAttention},
    recipe=Recipe(optimizer="adagrad", batch_size=4, epochs=50),
    quick=Recipe(lr=1e-3, epochs=10),
    tables=TABLES,
)

if __name__ == "__main__":
    main(SCRIPT)
