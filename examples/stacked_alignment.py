r"""Stacked alignment: a model of no paper, built of this library's layers.

It aligns two sentences more than once, as RE2 does (Yang et al. 2019, https://arxiv.org/abs/1908.00300): what one block
finds out about a word is read by the next, beside the word itself. The convolutions are gated (Chen et al. 2019), and
factorization machines compare the words, too (Tay et al. 2018).

Commands::

    python examples/stacked_alignment.py train                          # the generated corpus
    python examples/stacked_alignment.py train --num-blocks 3
    python examples/stacked_alignment.py predict --run runs/stacked_alignment \
        --premise "Bob is awake." --hypothesis "Bob is asleep."
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nli_common.checks import require_at_least, require_dropout
from nli_common.commands import main
from nli_common.data import Sentence
from nli_common.feedforward import feedforward
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe
from nli_common.script import NumClasses, Script
from nli_common.words import SpelledWords
from nlilayers import AlignmentFactorization, DecomposableAlign, GatedConvEncoder
from nlilayers.masking import masked_max, masked_mean

smooth = partial(feedforward, activation=nn.GELU)
"""Networks of Gaussian error linear units, which learn in fewer epochs here than rectified ones."""


@dataclass(frozen=True)
class StackedAlignmentConfig:
    """Two blocks, each of two convolutions, an alignment and a comparison."""

    num_blocks: int = 2
    """How often the sentences are aligned."""
    hidden_size: int = 150
    """Features of a word in its context, of the space that words are aligned in, and of what a block finds."""
    context_layers: int = 2
    """Convolutions of a block."""
    kernel_size: int = 3
    """Words in a window of a convolution."""
    num_factors: int = 5
    """Factors of each factorization machine."""
    char_size: int = 20
    """Width of a character's vector."""
    char_filters: int = 50
    """Filters of each width, over 1, 3 and 5 characters; 0 reads none."""
    dropout: float = 0.2
    """On the words, between two convolutions, and before what aligns, what merges and what decides."""
    num_classes: NumClasses = 3

    def __post_init__(self) -> None:
        """Refuse sizes that make no model."""
        sizes = {name for name, value in vars(self).items() if type(value) is int} - {"char_filters"}
        require_at_least(1, self, *sorted(sizes))
        require_at_least(0, self, "char_filters")
        require_dropout(self)

    @property
    def unread(self) -> dict[str, str]:
        """The options of what the model leaves out."""
        return {} if self.char_filters else {"char_size": "with --char-filters 0"}


class StackedAlignment(nn.Module):
    """Block after block, each beside the words and what the blocks before it found; then pools and a perceptron.

    Args:
        config: the sizes.
        lexicon: its vectors are the fixed word embeddings.
    """

    leading_tokens: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: StackedAlignmentConfig, lexicon: Lexicon) -> None:
        super().__init__()
        d = config.hidden_size
        words = SpelledWords(lexicon, config.char_size, config.char_filters)
        self.dim = words.dim
        self.words = nn.Sequential(words, nn.Dropout(config.dropout))
        self.blocks = nn.ModuleList(AlignmentBlock(self.dim, d if k else 0, config) for k in range(config.num_blocks))
        self.classify = nn.Sequential(
            nn.Dropout(config.dropout),
            smooth(8 * d, d),
            nn.Dropout(config.dropout),
            nn.Linear(d, config.num_classes),
        )

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        a, b = self.words(premise), self.words(hypothesis)
        for block in self.blocks:
            a, b = block(a, b, premise.mask, hypothesis.mask)
        u, v = pool(a[..., self.dim :], premise.mask), pool(b[..., self.dim :], hypothesis.mask)
        logits: Tensor = self.classify(torch.cat([u, v, (u - v).abs(), u * v], dim=-1))
        return logits

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """The last block's weights behind beta, ``(b, n, m)``, and alpha, ``(b, m, n)``."""
        beta, alpha = self.alignment_by_head(premise, hypothesis)
        return beta[:, -1, 0], alpha[:, -1, 0]

    def alignment_by_head(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """Every block's, which has one head: ``(b, blocks, 1, n, m)`` and ``(b, blocks, 1, m, n)``."""
        a, b = self.words(premise), self.words(hypothesis)
        blocks: Any = self.blocks
        weights = []
        for block in blocks:
            weights.append(block.alignment_weights(a, b, premise.mask, hypothesis.mask))
            a, b = block(a, b, premise.mask, hypothesis.mask)
        beta, alpha = (torch.stack(of_blocks, dim=1)[:, :, None] for of_blocks in zip(*weights, strict=True))
        return beta, alpha


def pool(x: Tensor, mask: Tensor) -> Tensor:
    """The largest and the mean of each feature over a sentence's words, ``(b, n, d)`` → ``(b, 2 d)``."""
    return torch.cat([masked_max(x, mask), masked_mean(x, mask)], dim=-1)


class AlignmentBlock(nn.Module):
    """Reads both sentences, aligns them, and adds what comparing their words has found to what was known of each.

    Args:
        dim: features of a word itself.
        known: features that blocks before this one found, behind those.
        config: the sizes.
    """

    def __init__(self, dim: int, known: int, config: StackedAlignmentConfig) -> None:
        super().__init__()
        self.dim = dim
        d, p, in_features = config.hidden_size, config.dropout, dim + known
        self.encode = GatedConvEncoder(in_features, d, config.context_layers, kernel_size=config.kernel_size, dropout=p)
        width = in_features + d
        self.align = DecomposableAlign(nn.Sequential(nn.Dropout(p), smooth(width, d)))
        self.compare = Comparison(width, config)

    def forward(self, a: Tensor, b: Tensor, a_mask: Tensor, b_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Words ``(b, n, dim + known)`` and ``(b, m, dim + known)`` → ``(b, n, dim + d)`` and ``(b, m, dim + d)``."""
        in_a, in_b = self.in_context(a, a_mask), self.in_context(b, b_mask)
        beta, alpha = self.align(in_a, in_b, a_mask, b_mask)
        return self.add(a, self.compare(in_a, beta)), self.add(b, self.compare(in_b, alpha))

    def alignment_weights(self, a: Tensor, b: Tensor, a_mask: Tensor, b_mask: Tensor) -> tuple[Tensor, Tensor]:
        """The weights behind beta, ``(b, n, m)``, and alpha, ``(b, m, n)``."""
        return self.align.alignment_weights(self.in_context(a, a_mask), self.in_context(b, b_mask), a_mask, b_mask)

    def in_context(self, x: Tensor, mask: Tensor) -> Tensor:
        """Each word beside what its neighbours make of it, ``(b, n, dim + known + d)``."""
        return torch.cat([x, self.encode(x, mask)], dim=-1)

    def add(self, x: Tensor, found: Tensor) -> Tensor:
        """A word, and behind it what is known of it: what is found, on top of what was known before."""
        word, known = x[..., : self.dim], x[..., self.dim :]
        return torch.cat([word, (known + found) * 0.5**0.5 if known.shape[-1] else found], dim=-1)


class Comparison(nn.Module):
    """What networks and factorization machines find in words and their counterparts.

    Each of three networks, and of three machines, compares in a way of its own: by both, by their difference, by their
    product. The networks see the word itself, too.

    Args:
        width: features of a word and of its counterpart.
        config: the sizes.
    """

    def __init__(self, width: int, config: StackedAlignmentConfig) -> None:
        super().__init__()
        d = config.hidden_size
        self.networks = nn.ModuleList(smooth(2 * width, d) for _ in range(3))
        self.factorize = AlignmentFactorization(width, config.num_factors)
        self.merge = nn.Sequential(nn.Dropout(config.dropout), smooth(3 * d + 3, d))

    def forward(self, x: Tensor, aligned: Tensor) -> Tensor:
        """Words and counterparts, ``(b, n, width)`` each → ``(b, n, d)``."""
        others = aligned, x - aligned, x * aligned
        found = [network(torch.cat([x, other], dim=-1)) for network, other in zip(self.networks, others, strict=True)]
        merged: Tensor = self.merge(torch.cat([*found, self.factorize(x, aligned)], dim=-1))
        return merged


SCRIPT = Script(
    name="stacked_alignment",
    models={StackedAlignmentConfig: StackedAlignment},
    recipe=Recipe(lr=5e-4),
    quick=Recipe(lr=5e-4, epochs=3),
    tables={},
)

if __name__ == "__main__":
    main(SCRIPT)
