"""A baseline that never reads the premise: whatever it learns about the label, the hypotheses alone give away.

Gururangan et al. 2018, https://arxiv.org/abs/1803.02324, and Poliak et al. 2018, https://arxiv.org/abs/1805.01042,
show how much that is on SNLI. On the generated corpus it stays at chance.

Commands::

    python examples/hypothesis_only.py train                            # the generated corpus: chance
    python examples/hypothesis_only.py train --train TRAIN.tsv --dev DEV.tsv --test TEST.tsv --vectors VECTORS.txt
"""

from dataclasses import dataclass

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
from nlilayers.masking import masked_max, masked_mean
from paper_tables.hypothesis_only import TABLES


@dataclass(frozen=True)
class HypothesisOnlyConfig:
    """A bag of the hypothesis's words."""

    hidden_size: int = 200
    """Width of every layer."""
    dropout: float = 0.2
    """Dropout on the word vectors, and before the layers of the classifier."""
    num_classes: NumClasses = 3

    def __post_init__(self) -> None:
        """Refuse sizes that make no model."""
        require_at_least(1, self, "hidden_size", "num_classes")
        require_dropout(self)


class HypothesisOnly(nn.Module):
    """A rectified layer on each word of the hypothesis, the largest and the mean of each feature, a perceptron.

    Args:
        config: the sizes.
        lexicon: its vectors are the fixed word embeddings.
    """

    def __init__(self, config: HypothesisOnlyConfig, lexicon: Lexicon) -> None:
        super().__init__()
        d = config.hidden_size
        self.words = nn.Sequential(WordVectors(lexicon), nn.Dropout(config.dropout), feedforward(lexicon.dim, d))
        self.classify = nn.Sequential(
            nn.Dropout(config.dropout),
            feedforward(2 * d, d),
            nn.Dropout(config.dropout),
            nn.Linear(d, config.num_classes),
        )

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        words, mask = self.words(hypothesis), hypothesis.mask
        logits: Tensor = self.classify(torch.cat([masked_max(words, mask), masked_mean(words, mask)], dim=-1))
        return logits


SCRIPT = Script(
    name="hypothesis_only",
    models={HypothesisOnlyConfig: HypothesisOnly},
    recipe=Recipe(lr=1e-3),
    quick=Recipe(lr=1e-3, epochs=3),
    tables=TABLES,
)

if __name__ == "__main__":
    main(SCRIPT)
