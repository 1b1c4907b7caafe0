"""The words that a run knows, each with its fixed vector."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from nli_common.errors import InputError
from nli_common.tensors import DAMAGED, load_tensors, require_finite, save_tensors
from nli_common.tokens import LONGEST_TOKEN
from nli_common.vectors import read_vectors
from nlilayers.functional import code_points, fnv1a

NUM_HASHED = 100
GLOVE_LENGTH = 6.5
"""Typical Euclidean norm of GloVe 840B's vectors, measured on 3,107 common words."""


class Lexicon:
    """Words, numbered as they are listed, and a vector for each.

    A word without a vector of its own has that of its lower-case form or else one of 100 random vectors, chosen by a
    hash of that form (Parikh et al. 2016, section 5: "OOV words are hashed to one of 100 random embeddings"). So
    every word of a corpus has its own id, and a word that is new at prediction is added by :meth:`extended`.

    Args:
        words: distinct; the id of a word is its place.
        vectors: ``(len(words), d)``, floating point.
        hashed: the 100 vectors for words that have none, ``(100, d)``; ``None`` draws them with the vectors' spread.
        tags: part-of-speech tags, numbered from 1; 0 is any other tag.
        alphabet: distinct characters, sorted, numbered from 1; 0 is any other character. ``None`` takes those of the
            words; a lexicon that is extended keeps its own.
        unit: whether vectors that are learned later are divided by their length, as these were.

    Raises:
        ValueError: if the words are not distinct, or the shapes do not fit.
    """

    def __init__(
        self,
        words: Sequence[str],
        vectors: Tensor,
        *,
        hashed: Tensor | None = None,
        tags: Sequence[str] = (),
        alphabet: Sequence[str] | None = None,
        unit: bool = False,
    ) -> None:
        self.words = list(words)
        self.tags = list(tags)
        self.unit = unit
        self.alphabet = sorted(set().union(*self.words)) if alphabet is None else list(alphabet)
        self.index = {word: i for i, word in enumerate(self.words)}
        if len(self.index) != len(self.words):
            raise ValueError(f"words must be distinct, got {len(self.words)} with {len(self.index)} different ones")
        if vectors.ndim != 2 or len(vectors) != len(self.words) or not vectors.dtype.is_floating_point:
            raise ValueError(
                f"vectors must be floating point of shape ({len(self.words)}, d), "
                f"got {vectors.dtype} of shape {tuple(vectors.shape)}"
            )
        self.vectors = vectors
        self.hashed = _hashed_vectors(vectors) if hashed is None else hashed
        if self.hashed.shape != (NUM_HASHED, vectors.shape[1]):
            raise ValueError(
                f"hashed must be of shape ({NUM_HASHED}, {vectors.shape[1]}), got {tuple(self.hashed.shape)}"
            )

    def __len__(self) -> int:
        return len(self.words)

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return self.vectors.shape[1]

    @property
    def known(self) -> list[bool]:
        """Whether each word has a vector of its own or of its lower-case form, and not a hashed one."""
        rows, hashed = (part.contiguous().view(torch.uint8).numpy() for part in (self.vectors, self.hashed))
        unknown = {row.tobytes() for row in hashed}
        return [row.tobytes() not in unknown for row in rows]

    @classmethod
    def random(cls, words: Iterable[str], dim: int = 300, *, seed: int = 0, tags: Sequence[str] = ()) -> "Lexicon":
        """Every word with a normal vector of its own, about as long as GloVe's are: for lack of pretrained ones."""
        words = list(words)
        generator = torch.Generator().manual_seed(seed)
        return cls(words, GLOVE_LENGTH / dim**0.5 * torch.randn(len(words), dim, generator=generator), tags=tags)

    def of_unit_length(self, *, unknown: bool = False) -> "Lexicon":
        """This lexicon with every vector divided by its length, and standard normal vectors for words without one.

        (Nguyen 2019, section 3: the vectors are normalised, those of unknown words are drawn from N(0, 1).)

        Args:
            unknown: divide these by their length, too. The report does not say; standard normal ones are the square
                root of their width as long as the others.
        """
        generator = torch.Generator().manual_seed(0)
        hashed = torch.randn(NUM_HASHED, self.dim, generator=generator).to(self.vectors.dtype)
        hashed = nn.functional.normalize(hashed, dim=1) if unknown else hashed
        vectors = nn.functional.normalize(self.vectors, dim=1)
        return Lexicon(self.words, vectors, hashed=hashed, tags=self.tags, alphabet=self.alphabet, unit=True)

    @classmethod
    def from_file(
        cls,
        path: Path,
        words: Iterable[str],
        *,
        tags: Sequence[str] = (),
        unit: bool = False,
        unit_unknown: bool = False,
    ) -> "Lexicon":
        """The vectors of a GloVe, fastText or ``.npz`` file; only the given words are kept.

        Args:
            path: the file.
            words: distinct; those without a vector stand behind the others.
            tags: part-of-speech tags.
            unit: make them :meth:`of_unit_length`.
            unit_unknown: those of words without a vector, too.

        Raises:
            InputError: if the file cannot be read, or has none of the words.
        """
        words = list(words)
        known = _vectors_of(words, path)
        if not known:
            raise InputError(f"{path}: has a vector for none of the corpus's {len(words):,} words")
        alphabet = sorted(set().union(*words))
        lexicon = cls(list(known), torch.stack(list(known.values())), tags=tags, alphabet=alphabet)
        return (lexicon.of_unit_length(unknown=unit_unknown) if unit else lexicon).extended(words)

    def missing_vectors(self, path: Path, words: Iterable[str]) -> dict[str, Tensor]:
        """What a vector file has for those of the words that this lexicon lacks.

        A word whose lower-case form is here is looked for only as it is written.

        Raises:
            InputError: if the file cannot be read.
        """
        missing = [word for word in words if word not in self.index]
        return _vectors_of(missing, path, {word for word in missing if word.lower() in self.index}) if missing else {}

    def with_vectors(self, known: Mapping[str, Tensor], path: Path) -> "Lexicon":
        """This lexicon with new words and what the vector file has for them.

        Raises:
            InputError: if the vectors have another width.
        """
        if not known:
            return self
        vectors = torch.stack(list(known.values()))
        if vectors.shape[1] != self.dim:
            raise InputError(f"{path}: has vectors of {vectors.shape[1]} dimensions, the run's have {self.dim}")
        return self._with(known, nn.functional.normalize(vectors, dim=1) if self.unit else vectors)

    def extended(self, words: Iterable[str]) -> "Lexicon":
        """This lexicon with the words that it lacks behind its own, in their order."""
        new = [word for word in dict.fromkeys(words) if word not in self.index]
        if not new:
            return self
        rows = torch.stack([self._vector_of_unknown(*item) for item in zip(new, _buckets(new), strict=True)])
        return self._with(new, rows)

    def ids(self, words: Iterable[str]) -> list[int]:
        """The ids of words that are all known; see :meth:`extended`."""
        return [self.index[word] for word in words]

    def tag_ids(self, tags: Iterable[str]) -> list[int]:
        """The ids of tags, from 1; 0 for a tag that was never seen."""
        numbers = {tag: i for i, tag in enumerate(self.tags, start=1)}
        return [numbers.get(tag, 0) for tag in tags]

    def save(self, path: Path) -> None:
        """Write words, tags and vectors to one safetensors file."""
        note = {"words": self.words, "tags": self.tags, "alphabet": self.alphabet, "unit": self.unit}
        strings = json.dumps(note).encode()
        tensors = {
            "vectors": self.vectors,
            "hashed": self.hashed,
            "strings": torch.frombuffer(bytearray(strings), dtype=torch.uint8),
        }
        save_tensors(path, tensors)

    @classmethod
    def load(cls, path: Path) -> "Lexicon":
        """Read what :meth:`save` wrote.

        Raises:
            InputError: if the file is missing or damaged.
        """
        try:
            tensors, _ = load_tensors(path)
            strings = json.loads(tensors["strings"].numpy().tobytes())
            _require_strings(strings)
            require_finite({name: tensors[name] for name in ("vectors", "hashed")})
            return cls(strings.pop("words"), tensors["vectors"], hashed=tensors["hashed"], **strings)
        except FileNotFoundError:
            raise InputError(f"{path}: no such file") from None
        except DAMAGED as error:
            raise InputError(f"{path}: not a lexicon ({error})") from None

    def _with(self, words: Iterable[str], vectors: Tensor) -> "Lexicon":
        return Lexicon(
            [*self.words, *words],
            torch.cat([self.vectors, vectors]),
            hashed=self.hashed,
            tags=self.tags,
            alphabet=self.alphabet,
            unit=self.unit,
        )

    def _vector_of_unknown(self, word: str, bucket: int) -> Tensor:
        lower = self.index.get(word.lower())
        return self.hashed[bucket] if lower is None else self.vectors[lower]


def _require_strings(strings: object) -> None:
    """Raise a ``ValueError`` if this is not what a lexicon writes beside its vectors."""
    if not isinstance(strings, dict) or strings.keys() != {"words", "tags", "alphabet", "unit"}:
        raise ValueError("expected words, tags, alphabet and unit")
    for name in ("words", "tags", "alphabet"):
        if not isinstance(strings[name], list) or not all(isinstance(item, str) for item in strings[name]):
            raise ValueError(f"{name} is not a list of strings")
    if any(len(word) > LONGEST_TOKEN for word in strings["words"]):
        raise ValueError(f"a word has more than {LONGEST_TOKEN:,} characters")
    alphabet = strings["alphabet"]
    if any(len(character) != 1 for character in alphabet) or alphabet != sorted(set(alphabet)):
        raise ValueError("alphabet does not consist of sorted characters")
    if not isinstance(strings["unit"], bool):
        raise ValueError(f"unit should be true or false, got {type(strings['unit']).__name__}")


def _buckets(words: Sequence[str]) -> list[int]:
    """Which of the hashed vectors each word has: the same on every machine and in every process."""
    buckets: list[int] = (fnv1a(code_points([word.lower() for word in words])) % NUM_HASHED).tolist()
    return buckets


def _vectors_of(words: list[str], path: Path, as_written: Collection[str] = ()) -> dict[str, Tensor]:
    """The vectors of those words that the file has, as they are written or else, but for some, in lower case."""
    allowed = {word: [word] if word in as_written else [word.lower(), word] for word in words}
    found = read_vectors(path, set().union(*allowed.values()))
    forms = {word: form for word, either in allowed.items() for form in either if form in found}
    return {word: torch.from_numpy(found[form]) for word, form in forms.items()}


def _hashed_vectors(vectors: Tensor) -> Tensor:
    """Random vectors whose entries spread as the known words' do."""
    spread = float(vectors.float().std(correction=0)) if vectors.numel() else 1.0
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(NUM_HASHED, vectors.shape[1], generator=generator) * (spread or 1.0)).to(vectors.dtype)
