"""Word vectors from character n-grams."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from nlilayers import functional
from nlilayers._checks import require_integers, require_positive, require_strings, require_tensor

CHARACTERS_AT_ONCE = 65_536
"""Characters of the words, padding included, whose n-grams' vectors ``table`` has in memory at once."""


class CharNgramEmbedding(nn.Module):
    r"""A frozen random vector for every word that can be spelled: Guo et al. 2019, Eq 6.

    https://doi.org/10.1609/aaai.v33i01.33016489

    .. math:: x^{(c)} = \max_t\, x^{(c)}_t E_c

    over the character n-grams :math:`t` of a word, feature by feature, with the one-hot vector :math:`x^{(c)}_t` of
    each. The vectors :math:`E_c` are standard normal,
    drawn from a seed, and never trained: they are a buffer, and the layer has no parameters. A misspelt word shares
    with the right one the n-grams that the typo does not touch, and a word never seen before has a vector like any
    other.

    A word stands between ``<`` and ``>``; one that is then no longer than an n-gram is a single n-gram. N-grams are of
    characters, not of bytes; the 32-bit FNV-1a hash of their UTF-8 bytes, modulo ``num_embeddings``,
    chooses the vector. The hash is the same in every process and on every machine. (The paper gives neither
    boundaries, nor short words, nor a hash.)

    Args:
        embedding_dim: features of a word.
        ngram_size: characters of an n-gram.
        num_embeddings: vectors that the n-grams share.
        seed: what the vectors are drawn from, an integer of 64 bits.

    Attributes:
        weight: :math:`E_c`, a buffer, ``(num_embeddings + 1, embedding_dim)``; row 0 is that of padding, and 0.

    Shape:
        ids ``(..., k)``, 0 for padding → ``(..., embedding_dim)``; 0 for a word of padding alone.

    Raises:
        ValueError: if a size is below 1, if the seed has more than 64 bits, or if ids are not int64 or int32, or
            have no dimension.
        TypeError: if a size or the seed is not an integer, if ids are no tensor, or if ``encode`` or ``table`` is given
            one string, not a sequence of them.

    Example::

        >>> from nlilayers import CharNgramEmbedding
        >>> embedding = CharNgramEmbedding(30)
        >>> ids = embedding.encode(["a", "sentence"])
        >>> ids.shape, embedding(ids).shape
        (torch.Size([2, 6]), torch.Size([2, 30]))
        >>> embedding.table(["a", "vocabulary"]).shape
        torch.Size([2, 30])
    """

    weight: Tensor

    def __init__(
        self,
        embedding_dim: int,
        *,
        ngram_size: int = 5,
        num_embeddings: int = 65536,
        seed: int = 0,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_positive(embedding_dim=embedding_dim, ngram_size=ngram_size, num_embeddings=num_embeddings)
        require_integers(seed=seed)
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"seed must lie between -2**63 and 2**64 - 1, got {seed}")
        self.embedding_dim, self.ngram_size = int(embedding_dim), int(ngram_size)
        self.num_embeddings = int(num_embeddings)
        self.seed = seed
        self.register_buffer("weight", torch.empty(self.num_embeddings + 1, embedding_dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the vectors from the seed again: on the CPU and in float32, to be the same on every device.

        Processors without AVX2 compute torch's normal numbers otherwise in their last digits.
        """
        generator = torch.Generator().manual_seed(self.seed)
        vectors = torch.randn(
            self.num_embeddings, self.embedding_dim, generator=generator, device="cpu", dtype=torch.float32
        )
        self.weight[0] = 0
        self.weight[1:] = vectors

    def encode(self, words: Sequence[str]) -> Tensor:
        """The ids of each word's n-grams, from 1 to ``num_embeddings``, and 0 after the last.

        Args:
            words: any strings; each is put between ``<`` and ``>``, so that the empty one becomes ``<>``.

        Returns:
            ``(len(words), k)``, int64, on the vectors' device; k is the largest number of n-grams of any of the words.
            One long word makes the ids of all as wide, and their vectors take as much memory; ``table`` keeps it apart.

        Raises:
            TypeError: if words is a string or no sequence, or holds anything other than strings.
        """
        if torch.compiler.is_dynamo_compiling():
            ids: Tensor = torch.compiler.disable(self._ids)(words)  # type: ignore[no-untyped-call]
            return ids  # by NumPy, whose views are not to be compiled
        return self._ids(words)

    def _ids(self, words: Sequence[str]) -> Tensor:
        hashes, counts = functional.char_ngrams(words, self.ngram_size)
        ids = np.zeros((len(words), counts.max(initial=0)), dtype=np.int64)
        ids[np.arange(ids.shape[1]) < counts[:, None]] = 1 + hashes.astype(np.int64) % self.num_embeddings
        return torch.from_numpy(ids).to(self.weight.device)

    def forward(self, ids: Tensor) -> Tensor:
        """The vector of each word."""
        require_tensor("ids", ids)
        if ids.ndim < 1 or ids.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"ids must be int64 or int32 of shape (..., k), got {ids.dtype} of shape {tuple(ids.shape)}"
            )
        return functional.char_ngram_embedding(ids, self.weight)

    def table(self, words: Sequence[str]) -> Tensor:
        """The vectors of a whole vocabulary, computed once: looking them up is far cheaper than hashing n-grams.

        Args:
            words: any strings.

        Returns:
            ``(len(words), embedding_dim)``.

        Raises:
            TypeError: if words is a string or no sequence, or holds anything other than strings.
        """
        require_strings("words", words)
        words = list(words)
        order = sorted(range(len(words)), key=lambda k: len(words[k]))
        batches = list(_batches(order, [len(word) for word in words])) or [[]]
        vectors = torch.cat([self(self.encode([words[k] for k in batch])) for batch in batches])
        return vectors[torch.tensor(order, dtype=torch.int64, device=vectors.device).argsort()]

    def extra_repr(self) -> str:
        """The sizes, for ``repr``."""
        return (
            f"embedding_dim={self.embedding_dim}, ngram_size={self.ngram_size}, "
            f"num_embeddings={self.num_embeddings}, seed={self.seed}"
        )


def _batches(order: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """Words from the shortest to the longest, so many at a time that no long one makes all the others long."""
    batch: list[int] = []
    for k in order:
        if batch and (len(batch) + 1) * lengths[k] > CHARACTERS_AT_ONCE:
            yield batch
            batch = []
        batch.append(k)
    if batch:
        yield batch
