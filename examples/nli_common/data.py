"""Sentence pairs as arrays: what a model is given, and what a corpus is stored as."""

import contextlib
import hashlib
import json
import sys
from array import array as IntArray
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.serialization import add_safe_globals
from torch.utils._pytree import _register_namedtuple

from nli_common.corpora import Pair, read_pairs
from nli_common.errors import InputError
from nli_common.files import stem, version_key
from nli_common.labels import NO_LABEL, scheme_of
from nli_common.tensors import DAMAGED, load_tensors, save_tensors

Ints = npt.NDArray[np.integer]
_FORMAT = 9


class Sentence(NamedTuple):
    """A batch of sentences: token ids ``(b, n)`` int64, mask ``(b, n)`` bool (True = real), tag ids or ``None``.

    Padding stands behind the words: models that read words in order count on it.
    """

    tokens: Tensor
    mask: Tensor
    pos: Tensor | None = None


# By this name a program that torch.export saved knows what it is given; its example is loaded without pickle.
_register_namedtuple(Sentence, serialized_type_name="nli_common.data.Sentence")
add_safe_globals([Sentence])


def is_traced() -> bool:
    """Whether code is compiled or traced: what the numbers of one batch decide would be decided for all."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]


def require_words_first(mask: Tensor) -> None:
    """Raise a ``ValueError`` where padding stands before a word.

    A GPU is not waited for, and what is compiled, traced or transformed has no values to look at: there, nothing is
    asked.

    >>> require_words_first(torch.tensor([[True, True, False], [False, True, True]]))
    Traceback (most recent call last):
    ValueError: mask must have the real words of each sentence first, got padding before a word in sentence 1
    """
    if is_traced() or mask.device.type != "cpu":
        return
    try:
        early = (mask[:, 1:] & ~mask[:, :-1]).any(1).tolist()
    except RuntimeError:
        return
    if True in early:
        raise ValueError(
            "mask must have the real words of each sentence first, "
            f"got padding before a word in sentence {early.index(True)}"
        )


class Batch(NamedTuple):
    """What a training step sees; ``label`` and ``phenomenon`` are ``(b,)`` int64."""

    premise: Sentence
    hypothesis: Sentence
    label: Tensor
    phenomenon: Tensor


class Ragged(NamedTuple):
    """Sentences of different lengths, one behind the other: sentence i is ``offsets[i]:offsets[i + 1]``."""

    tokens: Ints
    offsets: Ints
    pos: Ints | None

    @property
    def lengths(self) -> Ints:
        """Tokens of each sentence."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class Corpus:
    """Labelled pairs with every word, tag, label and phenomenon as an index into its own list of strings."""

    words: list[str]
    tags: list[str]
    labels: tuple[str, ...]
    phenomena: list[str]
    premise: Ragged
    hypothesis: Ragged
    label: Ints
    phenomenon: Ints
    dropped: int
    digest: str

    def __len__(self) -> int:
        """The labelled pairs."""
        return len(self.label)

    @classmethod
    def from_pairs(cls, pairs: Iterable[Pair], source: str) -> "Corpus":
        """Index the pairs; those without a gold label are dropped and counted.

        Raises:
            InputError: if no labelled pair is left, or the labels belong to no known task.
        """
        builder = _Builder()
        for pair in pairs:
            builder.add(pair, source)
        return builder.corpus(source)

    def tokens(self, side: Ragged, i: int) -> list[str]:
        """The words of sentence ``i`` of one side."""
        return [self.words[w] for w in side.tokens[side.offsets[i] : side.offsets[i + 1]]]


def open_corpus(path: Path, cache: Path) -> Corpus:
    """A sentence-pair file, indexed; the first time writes the arrays to ``cache``, later times read them from there.

    The cache is keyed by the file's place, size and time of change, so that an edited file is read anew.
    """
    try:
        key = version_key(path, _FORMAT)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    cached = cache / f"{stem(path)}-{key[:16]}.safetensors"
    with contextlib.suppress(*DAMAGED):
        return _load(cached, key)
    corpus = Corpus.from_pairs(read_pairs(path), str(path))
    try:
        _save(corpus, cached, key)
    except InputError as error:
        print(f"warning: {error}; the corpus is not kept for the next time", file=sys.stderr)
    return corpus


class _Builder:
    def __init__(self) -> None:
        self.words, self.tags, self.labels, self.phenomena = (_numbering() for _ in range(4))
        self.sides: tuple[_Column, ...] = tuple(_Column() for _ in range(2))
        self.pos: tuple[_Column, ...] = tuple(_Column() for _ in range(2))
        self.label, self.phenomenon = _Column(), _Column()
        self.dropped = 0

    def add(self, pair: Pair, source: str) -> None:
        if pair.label == NO_LABEL:
            self.dropped += 1
            return
        if self.label.values and (pair.premise_pos is not None) != bool(self.pos[0].values):
            number = len(self.label.values) + self.dropped + 1
            raise InputError(f"{source}: pair {number} differs from those before it: all have tags, or none has")
        self.label.append(self.labels[pair.label])
        self.phenomenon.append(self.phenomena[pair.phenomenon])
        for k, (tokens, tags) in enumerate(((pair.premise, pair.premise_pos), (pair.hypothesis, pair.hypothesis_pos))):
            self.sides[k].extend(tokens, self.words)
            if tags is not None:
                self.pos[k].extend(tags, self.tags)

    def corpus(self, source: str) -> Corpus:
        if not self.label.values:
            raise InputError(f"{source}: no labelled pair in it ({self.dropped or 'and none'} without a gold label)")
        seen = list(self.labels)
        scheme_of(seen, source)
        premise, hypothesis = (
            Ragged(side.array(), side.offsets(), pos.array() if pos.values else None)
            for side, pos in zip(self.sides, self.pos, strict=True)
        )
        words, tags, phenomena = list(self.words), list(self.tags), list(self.phenomena)
        label, phenomenon = self.label.array(), self.phenomenon.array()
        digest = hashlib.sha256(json.dumps([words, tags, seen, phenomena]).encode())
        for array in (*premise, *hypothesis, label, phenomenon):
            digest.update(b"" if array is None else array.tobytes())
        return Corpus(
            words=words,
            tags=tags,
            labels=tuple(seen),
            phenomena=phenomena,
            premise=premise,
            hypothesis=hypothesis,
            label=label,
            phenomenon=phenomenon,
            dropped=self.dropped,
            digest=digest.hexdigest(),
        )


class _Column:
    """A growing column of small integers, four bytes each, and where its rows end."""

    def __init__(self) -> None:
        self.values = IntArray("i")
        self.ends = IntArray("q", [0])

    def append(self, value: int) -> None:
        self.values.append(value)

    def extend(self, strings: Sequence[str], numbering: Mapping[str, int]) -> None:
        self.values.extend(map(numbering.__getitem__, strings))
        self.ends.append(len(self.values))

    def array(self) -> Ints:
        return np.frombuffer(self.values, dtype=np.int32)

    def offsets(self) -> Ints:
        return np.frombuffer(self.ends, dtype=np.int64)


def _numbering() -> "defaultdict[str, int]":
    """A dictionary that gives each new key the next number."""
    numbering: defaultdict[str, int] = defaultdict()
    numbering.default_factory = numbering.__len__
    return numbering


def _save(corpus: Corpus, path: Path, key: str) -> None:
    arrays = {"label": corpus.label, "phenomenon": corpus.phenomenon}
    for name, side in (("premise", corpus.premise), ("hypothesis", corpus.hypothesis)):
        arrays |= {f"{name}.{k}": array for k, array in side._asdict().items() if array is not None}
    strings = {
        "words": corpus.words,
        "tags": corpus.tags,
        "labels": corpus.labels,
        "phenomena": corpus.phenomena,
        "dropped": corpus.dropped,
        "digest": corpus.digest,
    }
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    tensors["strings"] = torch.frombuffer(bytearray(json.dumps(strings).encode()), dtype=torch.uint8)
    save_tensors(path, tensors, {"key": key})


def _load(path: Path, key: str) -> Corpus:
    tensors, note = load_tensors(path)
    if note.get("key") != key:
        raise ValueError("the cache is that of another file")
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    strings = json.loads(arrays["strings"].tobytes())
    premise, hypothesis = (
        Ragged(arrays[f"{name}.tokens"], arrays[f"{name}.offsets"], arrays.get(f"{name}.pos"))
        for name in ("premise", "hypothesis")
    )
    strings |= {"labels": tuple(strings["labels"]), "label": arrays["label"], "phenomenon": arrays["phenomenon"]}
    corpus = Corpus(premise=premise, hypothesis=hypothesis, **strings)
    _require_whole(corpus)
    return corpus


def _require_whole(corpus: Corpus) -> None:
    """Raise a ``ValueError`` if sentences, labels and lists of strings do not belong together."""
    lists = (corpus.words, corpus.tags, [*corpus.labels, corpus.digest], corpus.phenomena)
    if not all(isinstance(item, str) for strings in lists for item in strings) or type(corpus.dropped) is not int:
        raise ValueError("a string is none, or a count")
    scheme_of(corpus.labels, "the cache")
    columns = [(corpus.label, corpus.labels), (corpus.phenomenon, corpus.phenomena)]
    for side in (corpus.premise, corpus.hypothesis):
        columns += [(side.tokens, corpus.words), *([] if side.pos is None else [(side.pos, corpus.tags)])]
        ends = [0, len(side.tokens)] if side.pos is None else [0, len(side.pos)]
        if side.offsets.dtype != np.int64 or side.offsets.ndim != 1:
            raise ValueError("the ends of the sentences are no places")
        if len(side.offsets) != len(corpus) + 1 or (side.lengths < 1).any():
            raise ValueError("there are not as many sentences as labels")
        if side.offsets[[0, -1]].tolist() != ends or len(side.tokens) != ends[1]:
            raise ValueError("the sentences do not cover their words")
    for column, strings in columns:
        if column.dtype.kind != "i" or column.ndim != 1 or not 0 <= column.min() <= column.max() < len(strings):
            raise ValueError("an index is out of its list")
    if len(corpus.phenomenon) != len(corpus):
        raise ValueError("there are not as many phenomena as labels")
