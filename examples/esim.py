r"""ESIM: Chen, Zhu, Ling, Wei, Jiang, Inkpen 2017, https://arxiv.org/abs/1609.06038; the baseline of later papers.

Commands::

    python examples/esim.py train                                       # the generated corpus
    python examples/esim.py predict --run runs/esim --premise "Bob is awake." --hypothesis "Bob is asleep."
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nli_common.checks import require_at_least, require_dropout
from nli_common.commands import main
from nli_common.data import Sentence
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe
from nli_common.recurrent import SentenceLSTM
from nli_common.script import NumClasses, Script
from nli_common.words import WordVectors
from nlilayers import DecomposableAlign
from nlilayers.masking import masked_max, masked_mean
from paper_tables.esim import TABLES


@dataclass(frozen=True)
class ESIMConfig:
    """The sequential model of section 3, without the tree-LSTM."""

    hidden_size: int = 300
    """Width of an LSTM's state in each direction, and of both feed-forward layers."""
    dropout: float = 0.5
    """Dropout before every LSTM and before the layers of the classifier, and after the comparison."""
    train_vectors: bool = False
    """Train the word vectors, as the paper does, instead of keeping them fixed, as the other models do."""
    num_classes: NumClasses = 3

    def __post_init__(self) -> None:
        """Refuse sizes that make no model."""
        require_at_least(1, self, "hidden_size", "num_classes")
        require_dropout(self)


class ESIM(nn.Module):
    """Encode, align, compare, compose, pool: Figure 1, left, from bottom to top.

    Args:
        config: the sizes.
        lexicon: its vectors are the word embeddings.
    """

    leading_tokens: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: ESIMConfig, lexicon: Lexicon) -> None:
        super().__init__()
        d = config.hidden_size
        self.words = WordVectors(lexicon, trained=config.train_vectors)
        self.encode = SentenceLSTM(lexicon.dim, d, bidirectional=True)
        self.align = DecomposableAlign()
        self.compare = nn.Sequential(nn.Linear(8 * d, d), nn.ReLU(), nn.Dropout(config.dropout))
        self.compose = SentenceLSTM(d, d, bidirectional=True)
        self.classify = nn.Sequential(
            nn.Dropout(config.dropout),
            nn.Linear(8 * d, d),
            nn.Tanh(),
            nn.Dropout(config.dropout),
            nn.Linear(d, config.num_classes),
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        a, b = self.represent(premise), self.represent(hypothesis)
        a_aligned, b_aligned = self.align(a, b, premise.mask, hypothesis.mask)  # Eqs 11 to 13
        v = [*self.summary(a, a_aligned, premise.mask), *self.summary(b, b_aligned, hypothesis.mask)]
        logits: Tensor = self.classify(torch.cat(v, dim=-1))  # Eq 20
        return logits

    def represent(self, sentence: Sentence) -> Tensor:
        """Each word in its context, ``(b, n, 2 * hidden_size)``: Eqs 1 and 2."""
        states: Tensor = self.encode(self.dropout(self.words(sentence)), sentence.mask)[0]
        return states

    def summary(self, x: Tensor, aligned: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the largest of each feature of a sentence that was compared with the other."""
        m = torch.cat([x, aligned, x - aligned, x * aligned], dim=-1)  # Eqs 14, 15
        composed, _ = self.compose(self.compare(m), mask)  # the LSTM that stands for the tree-LSTM of Eqs 16, 17
        return masked_mean(composed, mask), masked_max(composed, mask)  # Eqs 18, 19

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """The weights of Eqs 12 and 13, ``(b, n, m)`` and ``(b, m, n)``."""
        a, b = self.represent(premise), self.represent(hypothesis)
        return self.align.alignment_weights(a, b, premise.mask, hypothesis.mask)


SCRIPT = Script(
    name="esim",
    models={ESIMConfig: ESIM},
    recipe=Recipe(lr=4e-4, batch_size=32, epochs=20, clip_norm=10.0),
    quick=Recipe(optimizer="adamwr", lr=1e-3, epochs=2, restart_epochs=2, clip_norm=10.0),
    tables=TABLES,
)

if __name__ == "__main__":
    main(SCRIPT)
