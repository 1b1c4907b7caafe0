"""What a model's file says of itself, and what the commands ask of a model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, runtime_checkable

import tyro
from torch import Tensor, nn

from nli_common.data import Sentence
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe

NumClasses = Annotated[int, tyro.conf.Suppress]
"""The number of classes in a configuration: the training data tells it, not the command line."""


@runtime_checkable
class Aligns(Protocol):
    """A model that can show which words it aligned."""

    leading_tokens: tuple[str, ...]
    """What the model puts before the words of each sentence."""

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """Weights of the hypothesis words (columns) for each premise word (rows), the leading tokens included."""


@dataclass(frozen=True)
class Script:
    """A model's name, class, default configuration and recipe.

    The configuration is a frozen dataclass of the paper's values, with a field ``num_classes`` and the paper's
    ``learning_rate``.
    """

    name: str
    model: Callable[[Any, Lexicon], nn.Module]
    config: Any
    recipe: Recipe
