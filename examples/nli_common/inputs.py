"""The files that a run is given: sentence pairs, or the generated corpus, and word vectors."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import DisallowNone

from nli_common.data import Corpus, open_corpus
from nli_common.errors import InputError
from nli_common.generated import Split, generated_corpus
from nli_common.labels import require_labels, scheme_of
from nli_common.lexicon import Lexicon

GENERATED: dict[Split, float] = {"train": 1, "dev": 0.125, "test": 0.25}
"""How many times ``--pairs`` each split of the generated corpus has, which stands in where no file is given."""
WIDEST = 10_000
"""No vector of a word is wider."""


def default_cache() -> Path:
    """The user's folder for caches; the system's for temporary files where the user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nlilayers"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / "nlilayers"


CACHE = default_cache()


@dataclass(frozen=True)
class Data:
    """Where the sentence pairs and the word vectors come from."""

    train: DisallowNone[Path | None] = None
    """Training pairs: .jsonl, .tsv or .txt, plain or .gz. Without it, the generated corpus is used."""
    dev: DisallowNone[Path | None] = None
    """Pairs that choose the best epoch; needed with --train."""
    test: DisallowNone[Path | None] = None
    """Pairs that are tested once, at the end."""
    vectors: DisallowNone[Path | None] = None
    """Word vectors: GloVe or fastText text (plain, .gz, .zip), or .npz. Without them each word's vector is random."""
    vector_size: int = 300
    """Width of the random vectors, where no vectors are given."""
    unit_vectors: bool = False
    """Divide each word's vector by its length; words without a vector then have standard normal ones."""
    unit_unknown: bool = False
    """With --unit-vectors: divide the random vectors of words without one by their length, too."""
    pairs: int = 16_000
    """Training pairs of the generated corpus, where no file is given; dev has an eighth as many, test a quarter."""
    cache: Path = CACHE
    """Folder in which indexed corpora are cached."""

    @property
    def unread(self) -> dict[str, str]:
        """The options that files take the place of, or that another one has to go with."""
        unread: dict[str, str] = {}
        if self.train is not None:
            unread["pairs"] = "with --train"
        if self.vectors is not None:
            unread["vector_size"] = "with --vectors"
        if not self.unit_vectors:
            unread["unit_unknown"] = "without --unit-vectors"
        return unread

    def corpora(self) -> dict[str, Corpus]:
        """The indexed corpora: train, dev and, if there is one, test.

        Raises:
            InputError: if an option is missing, a file is bad, or dev or test has a label that train has not.
        """
        names = {"train": self.train, "dev": self.dev, "test": self.test}
        given = {name: path for name, path in names.items() if path is not None}
        if not given:
            if self.pairs < 100:
                raise InputError(f"--pairs must be at least 100, got {self.pairs}")
            return {name: generated_corpus(int(share * self.pairs), name) for name, share in GENERATED.items()}
        for name in ("train", "dev"):
            if name not in given:
                raise InputError(f"--{name} is needed with --{' --'.join(given)}")
        corpora = {name: open_corpus(path, self.cache) for name, path in given.items()}
        labels = scheme_of(corpora["train"].labels, str(self.train))
        for name, corpus in corpora.items():
            require_labels(corpus.labels, labels, str(given[name]))
        return corpora

    def lexicon(self, corpora: dict[str, Corpus]) -> Lexicon:
        """Every word of the corpora with its vector.

        Raises:
            InputError: if the vector file is bad, no vector is as wide as the random ones should be, or unknown words
                alone should have unit length.
        """
        if self.unit_unknown and not self.unit_vectors:
            raise InputError("--unit-unknown: needs --unit-vectors, too")
        words = list(dict.fromkeys(word for corpus in corpora.values() for word in corpus.words))
        tags = corpora["train"].tags
        if self.vectors is None:
            if not 1 <= self.vector_size <= WIDEST:
                raise InputError(f"--vector-size must lie between 1 and {WIDEST:,}, got {self.vector_size}")
            lexicon = Lexicon.random(words, self.vector_size, tags=tags)
            return lexicon.of_unit_length(unknown=self.unit_unknown) if self.unit_vectors else lexicon
        unit, unit_unknown = self.unit_vectors, self.unit_unknown
        return Lexicon.from_file(self.vectors, words, tags=tags, unit=unit, unit_unknown=unit_unknown)

    def identity(self, corpora: dict[str, Corpus]) -> dict[str, Any]:
        """What tells these inputs from others, wherever they lie.

        Raises:
            InputError: if the vector file is missing.
        """
        digests: dict[str, Any] = {name: corpus.digest for name, corpus in corpora.items()}
        digests |= {"unit_vectors": self.unit_vectors, "unit_unknown": self.unit_unknown}
        if self.vectors is None:
            return digests | {"vectors": {"random": self.vector_size}}
        return digests | {"vectors": fingerprint(self.vectors)}


def fingerprint(path: Path) -> str:
    """A hash of a large file's size, first and last megabyte; an archive's end has the checksums of all it holds.

    Raises:
        InputError: if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            head = file.read(1 << 20)
            file.seek(max(0, size - (1 << 20)))
            return hashlib.sha256(f"{size} ".encode() + head + file.read(1 << 20)).hexdigest()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
