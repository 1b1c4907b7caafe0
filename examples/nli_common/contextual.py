"""Vectors of words in their sentence: every layer of a pretrained encoder, which stays as it is."""

import hashlib
import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from einops import einsum
from safetensors import SafetensorError
from torch import Tensor, nn

from nli_common.data import Sentence
from nli_common.errors import InputError
from nli_common.inputs import CACHE
from nli_common.lexicon import Lexicon

SENTENCES_AT_ONCE = 32
"""The encoder reads so many in one batch."""
_HALF = np.dtype("<f2")


class ContextualVectors(nn.Module):
    """Every layer of a Hugging Face encoder for each word of a sentence; the encoder reads a sentence once, ever.

    What it made of the sentence is kept in a file, in half precision: ``2 num_layers dim`` bytes for each word. So a
    sentence has the same vectors in every epoch, batch and run. A word is the mean of its sub-words; one that the
    encoder's tokenizer drops, or that lies beyond the longest text which the encoder takes, is 0.

    The encoder is no part of the model: its weights are neither among the parameters nor in the ``state_dict``, and
    are not even loaded while the file has all that is asked for.

    Args:
        folder: what ``save_pretrained`` wrote, of the encoder and of its tokenizer. Nothing is downloaded.
        lexicon: tells the words behind the token ids.
        cache: the file of the sentences read so far, by any encoder; ``None`` is one in the folder of caches.

    Attributes:
        num_layers: layers of the encoder, its embeddings among them.
        dim: features of a word in each layer.

    Shape:
        a sentence of tokens ``(b, n)`` → ``(num_layers, b, n, dim)``, 0 at padding.

    Raises:
        InputError: if transformers is not installed, if the folder holds no encoder, or if the file cannot be used.
    """

    like: Tensor

    def __init__(self, folder: str | Path, lexicon: Lexicon, cache: Path | None = None) -> None:
        super().__init__()
        self.folder, self.words = Path(folder), lexicon.words
        self.cache = VectorCache(CACHE / "contextual.sqlite3" if cache is None else cache)
        config = self._from_pretrained("AutoConfig")
        self.num_layers, self.dim = int(config.num_hidden_layers) + 1, int(config.hidden_size)
        # Holds nothing: it is there to be moved with the module, and to say where the module is.
        self.register_buffer("like", torch.empty(0), persistent=False)

    def forward(self, sentence: Sentence) -> Tensor:
        """The layers of every word, where the module is and in its precision."""
        tokens, mask = sentence.tokens.cpu(), sentence.mask.cpu()
        batch = [
            tuple(self.words[token] for token in row[real].tolist()) for row, real in zip(tokens, mask, strict=True)
        ]
        layers_of = self._layers_of([words for words in dict.fromkeys(batch) if words])
        layers = np.zeros((self.num_layers, *sentence.tokens.shape, self.dim), dtype=_HALF)
        for row, words in enumerate(batch):
            if words:
                layers[:, row, mask[row].numpy()] = layers_of[words]
        return torch.from_numpy(layers).to(self.like)

    def __getstate__(self) -> dict[str, Any]:
        """All but the encoder, which a copy loads anew if it needs it."""
        return {name: value for name, value in vars(self).items() if name != "_encoder"}

    @cached_property
    def fingerprint(self) -> str:
        """What tells this encoder's vectors from another's; its files are read when the first sentence is."""
        return fingerprint_of_folder(self.folder)

    def extra_repr(self) -> str:
        """The folder and the sizes, for ``repr``."""
        return f"{self.folder}, num_layers={self.num_layers}, dim={self.dim}"

    def _layers_of(self, sentences: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], Any]:
        """The layers of distinct sentences, each ``(num_layers, n, dim)``, as the file has them."""
        keys = [hashlib.sha256(json.dumps([self.fingerprint, words]).encode()).digest() for words in sentences]
        held = self.cache.read(keys)
        missing = [item for item in zip(keys, sentences, strict=True) if item[0] not in held]
        for start in range(0, len(missing), SENTENCES_AT_ONCE):
            some = dict(missing[start : start + SENTENCES_AT_ONCE])
            self.cache.add(zip(some, self._encode(list(some.values())), strict=True))
            held |= self.cache.read(some)  # another process may have been faster: its vectors are the sentence's
        return {
            words: np.frombuffer(held[key], _HALF).reshape(self.num_layers, len(words), self.dim)
            for key, words in zip(keys, sentences, strict=True)
        }

    def _encode(self, sentences: Sequence[tuple[str, ...]]) -> Iterator[bytes]:
        """What the encoder makes of each sentence, as the file holds it."""
        tokenizer, encoder = self._encoder
        device = self.like.device
        # Half a character, which a .jsonl file may hold, is none that a tokenizer takes.
        texts = [[word.encode("utf-8", "replace").decode() for word in words] for words in sentences]
        inputs = tokenizer(texts, is_split_into_words=True, padding=True, truncation=True, return_tensors="pt")
        with torch.inference_mode(), torch.autocast(device.type, enabled=False):
            states = encoder.to(device)(**inputs.to(device), output_hidden_states=True).hidden_states
            for row, words in enumerate(sentences):
                owners = torch.tensor([-1 if word is None else word for word in inputs.word_ids(row)], device=device)
                parts = owners == torch.arange(len(words), device=device)[:, None]
                mean = parts / parts.sum(dim=1, keepdim=True).clamp(min=1)
                layers = einsum(mean, torch.stack([state[row] for state in states]), "n t, l t d -> l n d")
                limit = torch.finfo(torch.float16).max
                yield layers.clamp(-limit, limit).cpu().numpy().astype(_HALF).tobytes()

    @cached_property
    def _encoder(self) -> tuple[Any, Any]:
        """Tokenizer and encoder, loaded when a sentence is first missing; a tuple is no sub-module."""
        tokenizer = self._from_pretrained("AutoTokenizer", add_prefix_space=True)
        files = sorted({"tokenizer.json", *tokenizer.vocab_files_names.values()})
        if not any((self.folder / name).is_file() for name in files):  # transformers would make one that knows no word
            raise InputError(f"{self.folder}: holds no tokenizer, expected one of {', '.join(files)}")
        if not tokenizer.is_fast:
            raise InputError(f"{self.folder}: its tokenizer does not report which sub-words belong to a word")
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token  # which one does not matter: it is masked
        with torch.random.fork_rng(devices=[]):  # what the weights are loaded into is drawn first
            encoder = self._from_pretrained("AutoModel", dtype=torch.float32, use_safetensors=True).eval()
        if encoder.config.is_encoder_decoder:
            encoder = encoder.get_encoder()
        tokenizer.model_max_length = min(tokenizer.model_max_length, _positions(encoder))
        return tokenizer, encoder

    def _from_pretrained(self, kind: str, **options: Any) -> Any:
        try:
            import transformers
        except ImportError:
            raise InputError("an encoder needs transformers: pip install 'nlilayers[contextual]'") from None
        if not (self.folder / "config.json").is_file():
            raise InputError(f"{self.folder}: not the folder of an encoder (it has no config.json)")
        transformers.utils.logging.disable_progress_bar()
        try:
            # Neither code nor pickle from the folder is ever run.
            return getattr(transformers, kind).from_pretrained(
                str(self.folder), local_files_only=True, trust_remote_code=False, **options
            )
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise InputError(f"{self.folder}: holds no {kind} ({str(error).splitlines()[0]})") from None


def _positions(encoder: nn.Module) -> float:
    """How many sub-words a text may have; a table whose first rows are for padding, as RoBERTa's, has fewer."""
    longest = getattr(encoder.config, "max_position_embeddings", None) or math.inf
    tables = (part for name, part in encoder.named_modules() if name.endswith("position_embeddings"))
    reserved = max(
        (table.padding_idx + 1 for table in tables if getattr(table, "padding_idx", None) is not None), default=0
    )
    return longest - reserved


class LayerMix(nn.Module):
    r"""One vector from all layers: :math:`\gamma \sum_j \mathrm{softmax}(s)_j\, h_j` (Peters et al. 2018, Eq 1).

    Args:
        num_layers: layers to mix; they start with equal weights.

    Shape:
        ``(num_layers, b, n, dim)`` → ``(b, n, dim)``.
    """

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.s = nn.Parameter(torch.zeros(num_layers))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, layers: Tensor) -> Tensor:
        """The mixture."""
        return self.gamma * einsum(self.s.softmax(dim=0), layers, "l, l b n d -> b n d")


class LayerInsertion(nn.Module):
    """A model's own vectors, with a mixture of an encoder's layers beside them, in their old width.

    Args:
        num_layers: layers of the encoder.
        dim: features of a word in each of them.
        features: features of the model's own vectors.

    Shape:
        x ``(b, n, features)``, layers ``(num_layers, b, n, dim)`` → ``(b, n, features)``.
    """

    def __init__(self, num_layers: int, dim: int, features: int) -> None:
        super().__init__()
        self.mix = LayerMix(num_layers)
        self.projection = nn.Linear(features + dim, features)

    def forward(self, x: Tensor, layers: Tensor) -> Tensor:
        """Both, projected."""
        y: Tensor = self.projection(torch.cat([x, self.mix(layers)], dim=-1))
        return y


class VectorCache:
    """Bytes under keys in one SQLite file, which several processes may use at once and which outlives any of them.

    What was added stays as it is: a key that is added again keeps its first value. A process killed in the middle
    of an addition leaves all of it or nothing.

    Args:
        path: the file; it is made with the first use.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that there are."""
        with self._open() as connection:
            query = "SELECT key, value FROM vectors WHERE key = ?"
            return dict(row for key in keys for row in connection.execute(query, (key,)))

    def add(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Add values under new keys."""
        with self._open() as connection:
            connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", items)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=60)) as connection, connection:
                connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"{self.path}: not a usable cache of vectors ({error})") from None


def fingerprint_of_folder(folder: Path) -> str:
    """A hash of the names and contents of a folder's files.

    Raises:
        InputError: if the folder cannot be read.
    """
    total = hashlib.sha256()
    try:
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            with path.open("rb") as file:
                total.update(f"{path.name} {_hash(file)}\n".encode())
    except OSError as error:
        raise InputError(f"{folder}: not the folder of an encoder ({error.strerror})") from None
    return total.hexdigest()


def _hash(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()
