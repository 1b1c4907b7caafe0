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
from nli_common.words import WordVectors
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
    dropout: float = 0.2
    """On the words, between two convolutions, and before every other layer."""
    num_classes: NumClasses = 3

    def __post_init__(self) -> None:
        """Refuse sizes that make no model."""
        require_at_least(1, self, *(name for name, value in vars(self).items() if type(value) is int))
        require_dropout(self)


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
        self.dim = lexicon.dim
        self.words = nn.Sequential(WordVectors(lexicon), nn.Dropout(config.dropout))
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
        self.factorize = AlignmentFactorization(width, config.num_factors)
        self.compare = nn.Sequential(nn.Dropout(p), smooth(4 * width + 3, 2 * d, d, dropout=p))

    def forward(self, a: Tensor, b: Tensor, a_mask: Tensor, b_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Words ``(b, n, dim + known)`` and ``(b, m, dim + known)`` → ``(b, n, dim + d)`` and ``(b, m, dim + d)``."""
        in_a, in_b = self.in_context(a, a_mask), self.in_context(b, b_mask)
        beta, alpha = self.align(in_a, in_b, a_mask, b_mask)
        return self.add(a, self.found(in_a, beta)), self.add(b, self.found(in_b, alpha))

    def alignment_weights(self, a: Tensor, b: Tensor, a_mask: Tensor, b_mask: Tensor) -> tuple[Tensor, Tensor]:
        """The weights behind beta, ``(b, n, m)``, and alpha, ``(b, m, n)``."""
        return self.align.alignment_weights(self.in_context(a, a_mask), self.in_context(b, b_mask), a_mask, b_mask)

    def in_context(self, x: Tensor, mask: Tensor) -> Tensor:
        """Each word beside what its neighbours make of it, ``(b, n, dim + known + d)``."""
        return torch.cat([x, self.encode(x, mask)], dim=-1)

    def found(self, x: Tensor, aligned: Tensor) -> Tensor:
        """What a network finds in words and their counterparts, and in their three factorizations, ``(b, n, d)``."""
        pair = [x, aligned, x - aligned, x * aligned, self.factorize(x, aligned)]
        compared: Tensor = self.compare(torch.cat(pair, dim=-1))
        return compared

    def add(self, x: Tensor, found: Tensor) -> Tensor:
        """A word, and behind it what is known of it: what is found, on top of what was known before."""
        word, known = x[..., : self.dim], x[..., self.dim :]
        return torch.cat([word, (known + found) * 0.5**0.5 if known.shape[-1] else found], dim=-1)


SCRIPT = Script(
    name="stacked_alignment",
    models={StackedAlignmentConfig: StackedAlignment},
    recipe=Recipe(lr=5e-4),
    quick=Recipe(lr=5e-4, epochs=3),
    tables={},
)

if __name__ == "__main__":
    main(SCRIPT)
