"""Word vectors from files, of which only the wanted words are kept in memory."""

import codecs
import math
import sys
import tokenize
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nli_common.errors import InputError
from nli_common.files import DAMAGED_ZIP, binary_lines, largest_expansion, too_large

Vectors = dict[str, npt.NDArray[np.float32]]
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_vectors(path: Path, wanted: Collection[str]) -> Vectors:
    """The vectors of the wanted words that the file has.

    Args:
        path: GloVe's or fastText's text (plain, ``.gz`` or ``.zip``), or ``.npz`` with ``words`` and ``vectors``.
        wanted: words as the corpus writes them.

    Raises:
        InputError: if a vector has another width than the others, or the file is none of these formats.
    """
    return _npz(path, set(wanted)) if path.suffix in (".npz", ".npy") else _text(path, set(wanted))


def _npz(path: Path, wanted: set[str]) -> Vectors:
    try:
        with path.open("rb") as file:
            if file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
                raise InputError(f"{path}: expected an .npz file of words and vectors, got a single array")
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > largest_expansion(path):
                raise InputError(f"{path}: {too_large(largest_expansion(path))}")
            words, vectors = (_array(archive, name, path) for name in ("words", "vectors"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except InputError:
        raise
    except (*DAMAGED_ZIP, tokenize.TokenError, SyntaxError, TypeError, LookupError, OSError, MemoryError) as error:
        raise InputError(f"{path}: not an .npz file of plain arrays ({error})") from None
    fits = words.ndim == 1 and vectors.ndim == 2 and len(words) == len(vectors) and vectors.shape[1] > 0
    if words.dtype.kind != "U" or vectors.dtype.kind != "f" or not fits:
        raise InputError(
            f"{path}: expected words (n,) and floating-point vectors (n, d), "
            f"got {words.dtype} {words.shape} and {vectors.dtype} {vectors.shape}"
        )
    points = words.astype(words.dtype.newbyteorder("=")).view(np.uint32) if words.dtype.itemsize else np.zeros(1)
    if points.max(initial=0) > sys.maxunicode:
        raise InputError(f"{path}: words holds something that is not a character")
    found: Vectors = {}
    with np.errstate(over="ignore"):
        for word, row in zip(words.tolist(), vectors, strict=True):
            if word in wanted:
                found.setdefault(word, row.astype(np.float32))
    for word, vector in found.items():
        if not np.isfinite(vector).all():
            raise InputError(f"{path}: the vector of {word!r} has a number that is not finite")
    return found


def _array(archive: zipfile.ZipFile, name: str, path: Path) -> npt.NDArray[Any]:
    """One array of the archive, read only if what its header declares is what the archive holds."""
    try:
        member = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise InputError(f"{path}: no array named {name}, expected words and vectors") from None
    with archive.open(member) as file:
        read_header = _HEADERS.get(np.lib.format.read_magic(file))
        if read_header is None:
            raise ValueError(f"{name} is of a version that plain arrays do not have")
        shape, _, dtype = read_header(file)
        held = member.file_size - file.tell()
    if dtype.hasobject:
        raise ValueError(f"{name} are pickled objects, which are never read: save them as an array of strings")
    if any(size < 0 for size in shape) or math.prod(shape) * dtype.itemsize != held:
        raise ValueError(f"{name} declares {dtype} {shape}, which is not what its {held:,} bytes hold")
    with archive.open(member) as file:
        array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _text(path: Path, wanted: set[str]) -> Vectors:
    lines = (numbered for numbered in _without_header(binary_lines(path)) if not numbered[1].isspace())
    head = [(number, line.removeprefix(codecs.BOM_UTF8)) for number, line in islice(lines, 100)]
    if not head:
        raise InputError(f"{path}: has no vectors, expected a word and its numbers in each line")
    # Some GloVe words hold spaces, so a line may have more fields than most; the width is what most lines have.
    width = Counter(line.rstrip().count(b" ") for _, line in head).most_common(1)[0][0]
    # A word is looked up by its first part, which is cheap; the rare hits are then cut from the right.
    heads = {word.encode("utf-8", "surrogatepass").split(b" ")[0] for word in wanted}
    found: Vectors = {}
    for number, line in chain(head, lines):
        fields = line.rstrip().count(b" ")
        if width == 0:
            raise InputError.at(path, number, "expected a word and numbers, with spaces between them, got no space")
        if fields < width:
            raise InputError.at(path, number, f"expected a word and {width} numbers, got {fields}")
        if line[: line.find(b" ")] in heads:
            word, *numbers = line.rstrip().rsplit(b" ", width)
            if _all_numbers(word.split(b" ")[1:]):
                raise InputError.at(path, number, f"expected a word and {width} numbers, got {fields}")
            text = word.decode("utf-8", errors="replace")
            if text in wanted and text not in found:
                found[text] = _numbers(numbers, text, path, number)
    return found


def _all_numbers(parts: list[bytes]) -> bool:
    """Whether there are parts, and each is a number: then they are no parts of a word."""
    try:
        return bool(list(map(float, parts)))
    except ValueError:
        return False


def _numbers(fields: list[bytes], word: str, path: Path, number: int) -> npt.NDArray[np.float32]:
    try:
        values = np.array(list(map(float, fields)))
    except ValueError:
        raise InputError.at(path, number, f"{word!r} is followed by something that is not a number") from None
    if not (np.abs(values) <= np.finfo(np.float32).max).all():
        raise InputError.at(path, number, f"the vector of {word!r} has a number that is not finite in float32")
    return values.astype(np.float32)


def _without_header(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """FastText files begin with a line of two integers, the number of words and the width."""
    first = next(lines, None)
    if first is None:
        return
    fields = first[1].removeprefix(codecs.BOM_UTF8).split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        yield first
    yield from lines
