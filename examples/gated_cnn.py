r"""Gated CNN for sentence matching: Chen, Guo, Chen, Sun, You, Interspeech 2019.

Commands::

    python examples/gated_cnn.py train                                  # the generated corpus
    python examples/gated_cnn.py train --no-use-chars --no-use-pos --convolution glu
    python examples/gated_cnn.py predict --run runs/gated_cnn \
        --premise "Bob is awake." --hypothesis "Bob is asleep."
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from nli_common.checks import require_at_least, require_choices, require_dropout
from nli_common.commands import main
from nli_common.data import Sentence
from nli_common.feedforward import feedforward
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe
from nli_common.script import NumClasses, Script
from nli_common.words import OneHotTags, WordCharacters, WordVectors
from nlilayers import DecomposableAlign, GatedConvEncoder
from nlilayers.functional import same_convolution
from nlilayers.masking import masked_max, masked_mean, zero_padding
from paper_tables.gated_cnn import TABLES

Convolution = Literal["gcnn", "no-forget-gate", "no-output-gate", "cnn", "glu", "residual-glu"]


@dataclass(frozen=True)
class GatedCNNConfig:
    """The best model of section 4. Sentences are read to their end; the paper cuts them at 60, 30 or 40 words."""

    use_chars: bool = True
    """Add to each word the vector that is composed of its characters (section 2.3)."""
    use_pos: bool = True
    """Add to each word its part-of-speech tag (section 2.3)."""
    train_vectors: bool = False
    """Train the vectors of words; the paper is silent."""
    convolution: Convolution = "gcnn"
    """The layers of every encoder: Eqs 2 and 3, the same without one gate or both, or Eq 1."""
    hidden_size: int = 300
    """Width of the convolutions over words, and of the classifier's hidden layer (the latter is not in the paper)."""
    context_layers: int = 4
    """Convolutions over the words of a sentence."""
    aggregation_layers: int = 2
    """Convolutions over its comparison vectors."""
    char_dim: int = 40
    """Width of a character's vector, which is trained."""
    char_size: int = 100
    """Width of the vector that is composed of a word's characters."""
    char_layers: int = 2
    """Convolutions over the characters of a word."""
    num_tags: int = 47
    """Largest number of different part-of-speech tags."""
    kernel_size: int = 3
    """Words, or characters, in a window (the paper's example; for its experiments it gives none)."""
    dropout: float = 0.0
    """Dropout between two convolutions, and around the classifier's hidden layer (the paper gives none)."""
    num_classes: NumClasses = 3

    def __post_init__(self) -> None:
        """Refuse sizes that make no model."""
        require_at_least(1, self, *(name for name, value in vars(self).items() if type(value) is int))
        require_dropout(self)
        require_choices(self)

    @property
    def unread(self) -> dict[str, str]:
        """The options of what the model leaves out."""
        unread: dict[str, str] = {}
        if not self.use_chars:
            unread |= dict.fromkeys(("char_dim", "char_size", "char_layers"), "with --no-use-chars")
        if not self.use_pos:
            unread["num_tags"] = "with --no-use-pos"
        return unread

    def encoder(self, in_features: int, hidden_size: int, num_layers: int) -> nn.Module:
        """A stack of the chosen convolutions."""
        make = ENCODERS[self.convolution]
        return make(in_features, hidden_size, num_layers, kernel_size=self.kernel_size, dropout=self.dropout)


class GatedCNN(nn.Module):
    """Section 2.2, from the word embedding layer to the prediction layer.

    Args:
        config: the sizes.
        lexicon: its vectors are the word embeddings.
    """

    leading_tokens: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: GatedCNNConfig, lexicon: Lexicon) -> None:
        super().__init__()
        d = config.hidden_size
        self.embedding = WordFeatures(config, lexicon)
        self.context = config.encoder(self.embedding.dim, d, config.context_layers)
        self.align = DecomposableAlign()
        self.aggregation = config.encoder(4 * d, d, config.aggregation_layers)
        self.classify = nn.Sequential(
            nn.Dropout(config.dropout),
            feedforward(4 * d, d),
            nn.Dropout(config.dropout),
            nn.Linear(d, config.num_classes),
        )

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        a, b = self.represent(premise), self.represent(hypothesis)  # Eq 4
        alpha, beta = self.align(a, b, premise.mask, hypothesis.mask)  # Eqs 5, 6: the layer's beta is their alpha
        v_a = self.aggregate(compare(a, alpha), premise.mask)  # Eqs 7, 8
        v_b = self.aggregate(compare(b, beta), hypothesis.mask)
        logits: Tensor = self.classify(torch.cat([v_a, v_b], dim=-1))
        return logits

    def represent(self, sentence: Sentence) -> Tensor:
        """Each word in its context, ``(b, n, d)``."""
        context: Tensor = self.context(self.embedding(sentence), sentence.mask)
        return context

    def aggregate(self, compared: Tensor, mask: Tensor) -> Tensor:
        """One sentence's half of Eq 8, the largest and the mean, ``(b, 2 d)``."""
        v = self.aggregation(compared, mask)
        return torch.cat([masked_max(v, mask), masked_mean(v, mask)], dim=-1)

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """The weights of Eq 6 behind alpha, ``(b, n, m)``, and behind beta, ``(b, m, n)``."""
        a, b = self.represent(premise), self.represent(hypothesis)
        return self.align.alignment_weights(a, b, premise.mask, hypothesis.mask)


def compare(x: Tensor, aligned: Tensor) -> Tensor:
    """Words and what was aligned to them, ``(b, n, d)`` twice → ``(b, n, 4 d)``: Eq 7."""
    return torch.cat([x, aligned, (x - aligned).abs(), x * aligned], dim=-1)


class WordFeatures(nn.Module):
    """What is known of each word: its vector and, if asked for, its characters' and its tag, side by side.

    Attributes:
        dim: the features of a word.
    """

    def __init__(self, config: GatedCNNConfig, lexicon: Lexicon) -> None:
        super().__init__()
        self.words = WordVectors(lexicon, trained=config.train_vectors)
        self.composed = ComposedCharacters(config, lexicon) if config.use_chars else None
        self.tags = OneHotTags(lexicon, config.num_tags) if config.use_pos else None
        self.dim = lexicon.dim + config.use_chars * config.char_size + config.use_pos * config.num_tags

    def forward(self, sentence: Sentence) -> Tensor:
        """``(b, n, dim)``."""
        features: list[Tensor] = [self.words(sentence)]
        if self.composed is not None:
            features.append(self.composed(sentence.tokens))
        if self.tags is not None:
            features.append(self.tags(sentence, features[0].dtype))
        return torch.cat(features, dim=-1)


class ComposedCharacters(nn.Module):
    """A vector for each word, composed of its characters: Eq 9."""

    def __init__(self, config: GatedCNNConfig, lexicon: Lexicon) -> None:
        super().__init__()
        self.spelling = WordCharacters(lexicon)
        self.vectors = nn.Embedding(self.spelling.num_characters, config.char_dim)
        self.encoder = config.encoder(config.char_dim, config.char_size, config.char_layers)

    def forward(self, tokens: Tensor) -> Tensor:
        """Word ids ``(b, n)`` → ``(b, n, char_size)``."""
        composed: Tensor = self.spelling(tokens, self.compose)
        return composed

    def compose(self, characters: Tensor, mask: Tensor) -> Tensor:
        """Character ids ``(words, k)`` and their mask → ``(words, char_size)``."""
        return masked_max(self.encoder(self.vectors(characters), mask), mask)


class GatedLinearUnit(nn.Module):
    r"""One layer of the GLU baseline, :math:`h^L = (h^{L-1} * W + b) \odot \sigma(h^{L-1} * V + c)`: Eq 1."""

    def __init__(self, in_features: int, out_features: int, *, kernel_size: int, residual: bool) -> None:
        super().__init__()
        # Four times the variance of what enters: a gate that is half open leaves a quarter of it. Added to what enters,
        # a quarter is enough: with all of it, six layers would make the gradient a hundred times as large.
        bound = ((3 if residual else 12) / (in_features * kernel_size)) ** 0.5
        self.weight = nn.Parameter(torch.empty(2 * out_features, kernel_size, in_features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(2 * out_features))  # W and b above V and c
        self.shortcut: nn.Module | None = None
        if residual:
            same = in_features == out_features
            self.shortcut = nn.Identity() if same else nn.Linear(in_features, out_features, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``(b, n, in_features)`` → ``(b, n, out_features)``, 0 at padding."""
        x = zero_padding(x, mask)
        gated = nn.functional.glu(same_convolution(x, self.weight, self.bias))
        return zero_padding(gated if self.shortcut is None else gated + self.shortcut(x), mask)


class GatedLinearEncoder(nn.Module):
    """A stack of gated linear units; each adds what enters it if ``residual``, which Eq 1 does not."""

    def __init__(
        self, in_features: int, hidden_size: int, num_layers: int, *, kernel_size: int, dropout: float, residual: bool
    ) -> None:
        super().__init__()
        widths = pairwise([in_features, *num_layers * [hidden_size]])
        unit = partial(GatedLinearUnit, kernel_size=kernel_size, residual=residual)
        self.units = nn.ModuleList(unit(m, n) for m, n in widths)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Each word in its context, ``(b, n, hidden_size)``, 0 at padding."""
        for layer, unit in enumerate(self.units):
            x = unit(self.dropout(x) if layer else x, mask)
        return x


ENCODERS: Mapping[Convolution, Callable[..., nn.Module]] = {
    "gcnn": GatedConvEncoder,
    "no-forget-gate": partial(GatedConvEncoder, forget_gate=False),
    "no-output-gate": partial(GatedConvEncoder, output_gate=False),
    "cnn": partial(GatedConvEncoder, forget_gate=False, output_gate=False),
    "glu": partial(GatedLinearEncoder, residual=False),
    "residual-glu": partial(GatedLinearEncoder, residual=True),
}

SCRIPT = Script(
    name="gated_cnn",
    models={GatedCNNConfig: GatedCNN},
    recipe=Recipe(lr=4e-4, batch_size=64),
    quick=Recipe(lr=4e-4, batch_size=64, epochs=1),
    tables=TABLES,
)

if __name__ == "__main__":
    main(SCRIPT)
