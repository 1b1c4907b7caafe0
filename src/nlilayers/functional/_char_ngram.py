"""Character n-grams: the hash of their names, and Eq 6 of Guo et al. 2019."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nlilayers._checks import require_positive, require_strings
from nlilayers.masking import masked_max

_OFFSET_BASIS, _PRIME = np.uint32(0x811C9DC5), np.uint32(0x01000193)


def code_points(strings: Sequence[str]) -> npt.NDArray[np.int32]:
    """The characters of each string as numbers, with -1 after its end.

    Args:
        strings: any strings.

    Shape:
        → ``(len(strings), length of the longest)``.

    Raises:
        TypeError: if ``strings`` is a string or no sequence, or holds anything other than strings.

    Example::

        >>> from nlilayers.functional import code_points
        >>> code_points(["ab", "é"]).tolist()
        [[97, 98], [233, -1]]
    """
    require_strings("strings", strings)
    return _code_points(strings)


def _code_points(strings: Sequence[str]) -> npt.NDArray[np.int32]:
    lengths = np.fromiter(map(len, strings), dtype=np.int64, count=len(strings))
    points = np.full((len(strings), lengths.max(initial=0)), -1, dtype=np.int32)
    # A lone surrogate is no character, but a string may hold one.
    flat = np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), dtype="<i4")
    points[np.arange(points.shape[1]) < lengths[:, None]] = flat
    return points


def fnv1a(points: npt.NDArray[np.int32]) -> npt.NDArray[np.uint32]:
    r"""The 32-bit FNV-1a hash of each string's UTF-8 bytes, for all strings at once.

    .. math:: h \leftarrow (h \oplus \mathrm{byte}) \cdot 16777619 \bmod 2^{32}

    for one byte after the other, from :math:`h = 2166136261`. It is the same in every process and on every machine,
    which Python's ``hash`` is not.

    Args:
        points: the strings as :func:`code_points` gives them.

    Shape:
        ``(n, length)`` → ``(n,)``.

    Example::

        >>> from nlilayers.functional import code_points, fnv1a
        >>> [hex(h) for h in fnv1a(code_points(["", "a", "foobar"]))]
        ['0x811c9dc5', '0xe40c292c', '0xbf9cf968']
    """
    hashes = np.full(points.shape[0], _OFFSET_BASIS)
    for column in points.T:
        for byte, real in _utf8(column):
            hashes = np.where(real, (hashes ^ byte) * _PRIME, hashes)
    return hashes


def _utf8(points: npt.NDArray[np.int32]) -> list[tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]]:
    """The first, second, third and fourth byte of each character, and whether it has one."""
    unsigned = points.astype(np.uint32)
    width = 1 + (points >= 0x80).astype(np.uint32) + (points >= 0x800) + (points >= 0x10000)
    lead = np.array([0x00, 0x00, 0xC0, 0xE0, 0xF0], dtype=np.uint32)[width]
    first = lead | (unsigned >> (6 * (width - 1)))
    if points.max(initial=0) < 0x80:
        return [(first, points >= 0)]
    rest = [(0x80 | ((unsigned >> (6 * (width - 1 - k) % 32)) & 0x3F), width > k) for k in (1, 2, 3)]
    return [(first, points >= 0), *rest]


def char_ngrams(words: Sequence[str], ngram_size: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """The hashes of every word's character n-grams: those that enter Guo et al. 2019, Eq 6.

    A word is put between ``<`` and ``>``; if it is then no longer than an n-gram, it is one n-gram by itself, so that
    every word has one. (The paper does not say how short words are handled: without boundaries, "a" has no 5-gram.)

    Args:
        words: any strings.
        ngram_size: characters of an n-gram.

    Shape:
        → all hashes, word after word, and how many each word has, ``(len(words),)``.

    Raises:
        TypeError: if ``words`` is a string or no sequence, or holds anything other than strings, or if ``ngram_size``
            is not an integer.
        ValueError: if it is below 1.

    Example::

        >>> from nlilayers.functional import char_ngrams, code_points, fnv1a
        >>> hashes, counts = char_ngrams(["a", "word"], 5)
        >>> counts.tolist()
        [1, 2]
        >>> (hashes == fnv1a(code_points(["<a>", "<word", "word>"]))).all()
        np.True_
    """
    require_strings("words", words)
    require_positive(ngram_size=ngram_size)
    ngram_size = int(ngram_size)
    points = _code_points(["<" + word + ">" for word in words])  # formatted, a member of an enum has another name
    lengths = (points >= 0).sum(1)
    missing = max(ngram_size - points.shape[1], 0)
    points = np.pad(points, ((0, 0), (0, missing)), constant_values=-1)
    windows = np.lib.stride_tricks.sliding_window_view(points, ngram_size, axis=1)
    counts = np.maximum(lengths - ngram_size + 1, 1)
    return fnv1a(windows[np.arange(windows.shape[1]) < counts[:, None]]), counts


def char_ngram_embedding(ids: Tensor, vectors: Tensor) -> Tensor:
    r"""The largest value of each feature over a word's n-grams: Guo et al. 2019, Eq 6.

    .. math:: x^{(c)} = \max_t\, x^{(c)}_t E_c

    with the one-hot vector :math:`x^{(c)}_t` of a word's n-gram :math:`t`, so that :math:`x^{(c)}_t E_c` is its row.

    Args:
        ids: each word's n-grams as rows of the vectors; 0 is padding.
        vectors: :math:`E_c`, with a row 0 that is never seen.

    Shape:
        ``(..., k)``, ``(rows, embedding_dim)`` → ``(..., embedding_dim)``; 0 for a word of padding alone.

    Example::

        >>> import torch
        >>> from nlilayers.functional import char_ngram_embedding
        >>> vectors = torch.tensor([[9.0, 9.0], [1.0, -2.0], [-1.0, -1.0]])
        >>> char_ngram_embedding(torch.tensor([[1, 2], [1, 0], [0, 0]]), vectors)
        tensor([[ 1., -1.],
                [ 1., -2.],
                [ 0.,  0.]])
    """
    words = ids.reshape(math.prod(ids.shape[:-1]), ids.shape[-1])
    pooled = masked_max(torch.nn.functional.embedding(words, vectors), words != 0)
    return pooled.view(*ids.shape[:-1], vectors.shape[1])
