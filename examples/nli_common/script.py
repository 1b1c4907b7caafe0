"""What a model's file says of itself, and what the commands ask of a model."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

import tyro
from torch import Tensor, nn

from nli_common.data import Sentence
from nli_common.inputs import Data
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe
from nli_common.tables import Table

NumClasses = Annotated[int, tyro.conf.Suppress]
"""The number of classes in a configuration: the training data tells it, not the command line."""


@runtime_checkable
class Aligns(Protocol):
    """A model that can show which words it aligned."""

    leading_tokens: tuple[str, ...]
    """What the model puts before the words of each sentence."""

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """Weights of the hypothesis words for each premise word, ``(b, n, m)``, and the reverse, ``(b, m, n)``.

        The leading tokens are counted among the words; each row of a real word sums to 1.
        """


@runtime_checkable
class AlignsByHead(Protocol):
    """A model that aligns words more than once: in several blocks, and in several heads of each."""

    def alignment_by_head(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """As ``alignment``, of each block and head: ``(b, blocks, heads, n, m)`` and ``(b, blocks, heads, m, n)``."""


class ScalarsByWord(Protocol):
    """Scalars of each word of two sentences, by name."""

    @property
    def names(self) -> tuple[str, ...]:
        """The scalars."""

    @property
    def premise(self) -> Tensor:
        """``(b, n, len(names))``."""

    @property
    def hypothesis(self) -> Tensor:
        """``(b, m, len(names))``."""


@runtime_checkable
class Propagates(Protocol):
    """A model that can show which scalars it gives each word."""

    def propagated_features(self, premise: Sentence, hypothesis: Sentence) -> ScalarsByWord:
        """The scalars of each word of both sentences."""


@runtime_checkable
class ReadsFolder(Protocol):
    """A configuration whose model reads an encoder's folder beside its own weights."""

    @property
    def encoder_folder(self) -> Path | None:
        """The folder, or ``None`` where it reads none."""


@runtime_checkable
class ReadsTags(Protocol):
    """The part of a model that represents words, and may read their part-of-speech tags."""

    @property
    def reads_tags(self) -> bool:
        """Whether it does."""


def reads_tags(model: nn.Module) -> bool:
    """Whether some part of a model reads part-of-speech tags."""
    return any(isinstance(part, ReadsTags) and part.reads_tags for part in model.modules())


EXPLAINING = ("alignment", "propagated_features")
"""What a model that can be explained has one of."""


@dataclass(frozen=True)
class Script:
    """What the command line of a model's file is made from.

    A configuration is a frozen dataclass of the paper's values, with a field ``num_classes`` and, where the recipe
    names no learning rate, a ``learning_rate``.
    """

    name: str
    """Of the file, and of the folder that runs go to."""
    models: Mapping[type, Callable[[Any, Lexicon], nn.Module]]
    """The class of each configuration and what is built from one; the first is trained unless another is named."""
    recipe: Recipe
    """How the paper trains it, as far as it says."""
    quick: Recipe
    """How it learns the generated corpus in a minute or two."""
    tables: Mapping[str, Table] = field(default_factory=dict)
    """The paper's tables of results under the names that ``table`` takes."""
    data: Data = field(default_factory=Data)
    """What the paper does to the word vectors."""

    @property
    def explains(self) -> bool:
        """Whether one of the models can show what it makes of a pair's words."""
        return any(hasattr(model, shown) for model in self.models.values() for shown in EXPLAINING)

    def config_named(self, name: str) -> type:
        """The configuration's class of this name; a ``KeyError`` if there is none."""
        return {kind.__name__: kind for kind in self.models}[name]

    def short_name(self, kind: type) -> str:
        """The name of a configuration on the command line: ``attention-model`` for ``AttentionModelConfig``."""
        words = re.findall("[A-Z]+(?![a-z])|[A-Z][a-z]+", kind.__name__.removesuffix("Config"))
        return "-".join(words).lower()
