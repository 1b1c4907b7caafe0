"""What a model is given of each word: its fixed vector, its characters, its part-of-speech tag."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor

from nli_common.data import Sentence, is_traced
from nli_common.lexicon import Lexicon
from nlilayers.functional import code_points
from nlilayers.masking import masked_max, zero_padding

LONGEST_WORD = 24
"""The characters of a word beyond these are not read."""


class WordVectors(nn.Module):
    """The vectors of a lexicon's words.

    Args:
        lexicon: its vectors; it keeps them as they are.
        trained: whether they are parameters. Fixed ones are not repeated by weights on disk.
    """

    def __init__(self, lexicon: Lexicon, *, trained: bool = False) -> None:
        super().__init__()
        vectors = lexicon.vectors.to(torch.get_default_dtype())
        if trained:
            self.vectors: Tensor = nn.Parameter(vectors.clone())
            self.lower_case = [lexicon.index.get(word.lower()) for word in lexicon.words]
            self.register_load_state_dict_pre_hook(_with_words_behind)  # type: ignore[no-untyped-call]
        else:
            self.vectors = nn.Buffer(vectors, persistent=False)

    def forward(self, sentence: Sentence) -> Tensor:
        """A sentence's vectors ``(b, n, dim)``, 0 at padding whatever word fills it."""
        return zero_padding(nn.functional.embedding(sentence.tokens, self.vectors), sentence.mask)


def _with_words_behind(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Let trained vectors be loaded for a lexicon that was extended since.

    Its new words keep the vectors that they have; one that had its lower-case form's has what that was trained to.
    """
    assert isinstance(module, WordVectors)
    name, ours = f"{prefix}vectors", module.vectors.detach()
    trained = state.get(name)
    if trained is not None and trained.shape[1:] == ours.shape[1:] and len(trained) < len(ours):
        behind = ours[len(trained) :].to(trained)
        for new, (vector, lower) in enumerate(zip(behind, module.lower_case[len(trained) :], strict=True)):
            if lower is not None and lower < len(trained) and torch.equal(vector, ours[lower].to(trained)):
                behind[new] = trained[lower]
        state[name] = torch.cat([trained, behind])


class WordCharacters(nn.Module):
    """The characters of a lexicon's words as ids: 0 for one outside its alphabet, from 1 for those in it.

    Attributes:
        num_characters: the ids that there are, so many rows has a table of character vectors.
    """

    ids: Tensor
    lengths: Tensor

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__()
        self.num_characters = 1 + len(lexicon.alphabet)
        points = code_points([word[:LONGEST_WORD] for word in lexicon.words])
        if not points.shape[1]:
            points = np.full((len(points), 1), -1, dtype=points.dtype)
        alphabet = np.array([ord(character) for character in lexicon.alphabet], dtype=np.int32)
        places = np.searchsorted(alphabet, points)
        known = np.append(alphabet, -2)[places] == points
        self.register_buffer("ids", torch.from_numpy(np.where(known, places + 1, 0)), persistent=False)
        self.register_buffer("lengths", torch.from_numpy((points >= 0).sum(axis=1)), persistent=False)

    def forward(self, tokens: Tensor, encode: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """What a network makes of each word's characters; on a CPU it reads every distinct word of the batch once.

        Args:
            tokens: word ids ``(b, n)``.
            encode: maps character ids ``(words, k)`` and their mask to vectors ``(words, d)``.

        Shape:
            → ``(b, n, d)``.
        """
        if are_at_hand(tokens, self.lengths):
            words, place = torch.unique(tokens, return_inverse=True)
            longest = max(1, int(self.lengths[words].max())) if len(words) else 1
        else:
            words, place = tokens.flatten(), torch.arange(tokens.numel(), device=tokens.device).view_as(tokens)
            longest = self.ids.shape[1]
        mask = torch.arange(longest, device=tokens.device) < self.lengths[words, None]
        return nn.functional.embedding(place, encode(self.ids[words, :longest], mask))


def are_at_hand(*tensors: Tensor) -> bool:
    """Whether numbers in tensors can decide a shape: not in a trace or under vmap, nor where a GPU is waited for."""
    return not is_traced() and all(x.device.type == "cpu" and not is_functorch_wrapped_tensor(x) for x in tensors)


class CharacterCNN(nn.Module):
    """Rectified filters over 1, 3 and 5 characters of a word, and the largest value of each: a ``WordCharacters``'s.

    Args:
        num_characters: rows of the table of character vectors.
        char_size: width of a character's vector, which is trained.
        num_filters: filters of each width.
    """

    def __init__(self, num_characters: int, char_size: int, num_filters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_characters, char_size)
        self.filters = nn.ModuleList(nn.Conv1d(char_size, num_filters, width, padding="same") for width in (1, 3, 5))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Character ids ``(words, k)`` and their mask → ``(words, 3 * num_filters)``."""
        x = zero_padding(self.embedding(ids), mask).mT
        return torch.cat([masked_max(filters(x).relu().mT, mask) for filters in self.filters], dim=-1)


class SpelledWords(nn.Module):
    """Words by their fixed vectors, beside what a :class:`CharacterCNN` makes of their characters.

    Args:
        lexicon: its vectors, and its words' characters.
        char_size: width of a character's vector.
        num_filters: filters of each width; 0 reads no characters.
    """

    def __init__(self, lexicon: Lexicon, char_size: int, num_filters: int) -> None:
        super().__init__()
        self.dim = lexicon.dim + 3 * num_filters
        self.vectors = WordVectors(lexicon)
        self.characters = WordCharacters(lexicon)
        self.char_cnn = CharacterCNN(self.characters.num_characters, char_size, num_filters) if num_filters else None

    def forward(self, sentence: Sentence) -> Tensor:
        """A sentence's words ``(b, n, dim)``, 0 at padding."""
        vectors: Tensor = self.vectors(sentence)
        if self.char_cnn is None:
            return vectors
        spelled = self.characters(sentence.tokens, self.char_cnn)
        return torch.cat([vectors, zero_padding(spelled, sentence.mask)], dim=-1)


class OneHotTags(nn.Module):
    """Part-of-speech tags as ones and zeros; a word without a known tag has zeros only.

    Args:
        lexicon: its tags.
        num_tags: features, at least one for each of them.

    Raises:
        ValueError: if there are more tags.
    """

    reads_tags = True

    def __init__(self, lexicon: Lexicon, num_tags: int) -> None:
        super().__init__()
        fewest = len(lexicon.tags)
        if num_tags < fewest:
            raise ValueError(
                f"num_tags must be at least {fewest} for the tags of the data, unless they are left out, got {num_tags}"
            )
        self.num_tags = num_tags

    def forward(self, sentence: Sentence, dtype: torch.dtype) -> Tensor:
        """``(b, n, num_tags)``."""
        if sentence.pos is None:
            return torch.zeros(*sentence.tokens.shape, self.num_tags, device=sentence.tokens.device, dtype=dtype)
        # Not one_hot: it reads the tags' values, which vmap does not let it.
        tags = torch.arange(1, self.num_tags + 1, device=sentence.pos.device)
        return (sentence.pos[..., None] == tags).to(dtype)
