"""Reading lines and writing files so that nothing is half done."""

import contextlib
import glob
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from nli_common.errors import InputError

TEMPORARY = ".tmp"
FORGOTTEN = 24 * 60 * 60
"""Seconds after which nobody is still writing a temporary file."""
LONGEST_LINE = 1 << 20
"""Bytes of a line; no sentence pair and no vector comes near it, and a file without line ends would fill the memory."""
LARGEST_JSON = 64 << 20
"""Bytes of a JSON file that is read as a whole."""
DEEPEST_JSON = 50
LARGEST_RATIO = 200
"""How many times its size on disk a compressed file may expand to; text reaches some 30, a bomb 1,000."""
UNSUSPECTED = 16 << 20
"""Bytes that any compressed file may expand to."""
DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError)
"""What zipfile raises for archives that are damaged, encrypted or of a kind that it does not know."""
_TRUNCATED = "the compressed data ends too early: the file is truncated or still being written"


def resolved(path: Path) -> Path:
    """The path without symbolic links and dots; a loop of links, at which ``resolve`` fails, is left as it is."""
    return Path(os.path.realpath(path))


def write_atomically(path: Path, write: Callable[[Path], object], *, keep: Path | None = None) -> None:
    """Have ``write`` fill a temporary file beside ``path``, then put it in its place in one step.

    A process killed at any instant leaves either the old file or the new one, never a part of one. With ``keep``, the
    old file goes there once the new one is whole; a process killed right then leaves it there alone.

    A symbolic link is replaced, not what it points to. What is no file, a device for one, is left alone.

    Raises:
        InputError: if the system refuses, a full disk included; the old file is as it was, or whole at ``keep``.
    """
    temporary = path.with_name(f".{path.name}.{uuid4().hex}{TEMPORARY}")
    _clear_forgotten(path)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError(f"{path}: expected the name of a file to write, got that of a device, a pipe or a socket")
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        if keep is not None and path.exists():
            path.replace(keep)
        temporary.replace(path)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be written ({reason}); fix this and repeat the command") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8 as :func:`write_atomically` writes a file."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def _clear_forgotten(path: Path) -> None:
    """Remove what processes that were killed long ago left of this file."""
    with contextlib.suppress(OSError):
        for temporary in path.parent.glob(f".{glob.escape(path.name)}.*{TEMPORARY}"):
            if time.time() - temporary.stat().st_mtime > FORGOTTEN:
                temporary.unlink(missing_ok=True)


def version_key(path: Path, form: int) -> str:
    """A name for what is made from a file: a hash of its place, size and time of change, and of the form it gets.

    Raises:
        OSError: if the file cannot be read.
    """
    status = path.stat()
    version = f"|{status.st_size}|{status.st_mtime_ns}|{form}"
    return hashlib.sha256(os.fsencode(path.resolve()) + version.encode()).hexdigest()


def stem(path: Path) -> str:
    """The file's name without the suffixes of its format: ``multinli_1.0_dev.jsonl.gz`` → ``multinli_1.0_dev``."""
    return re.sub(r"(\.(jsonl|tsv|txt))?(\.gz)?$", "", path.name)


def binary_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The numbered lines of a plain, ``.gz`` or (single-member) ``.zip`` file.

    Raises:
        InputError: if the file is missing, no archive of its kind, or ends before its data does; if it expands to far
            more than text does, or has a line that is longer than any line of text.
    """
    number = size = 0
    try:
        with contextlib.ExitStack() as stack:
            file = _open(path, stack)
            largest = None if path.suffix not in (".gz", ".zip") else largest_expansion(path)
            while line := file.readline(LONGEST_LINE + 1):
                number, size = number + 1, size + len(line)
                if len(line) > LONGEST_LINE:
                    raise InputError.at(path, number, f"the line is longer than {LONGEST_LINE:,} bytes")
                if largest is not None and size > largest:
                    raise InputError.at(path, number, too_large(largest))
                yield number, line
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, expected a file") from None
    except EOFError:
        raise InputError.at(path, number + 1, _TRUNCATED) from None
    except (gzip.BadGzipFile, *DAMAGED_ZIP) as error:
        raise InputError.at(path, number + 1, f"damaged compressed data ({error})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines as text, without their line ends.

    Raises:
        InputError: as :func:`binary_lines`, or where a line is not UTF-8.
    """
    for number, line in binary_lines(path):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError.at(path, number, f"invalid UTF-8 at byte {error.start} of the line") from None
        yield number, text.rstrip("\r\n")


def largest_expansion(path: Path) -> int:
    """Bytes that a compressed file may expand to before it is taken for a bomb."""
    return max(UNSUSPECTED, LARGEST_RATIO * path.stat().st_size)


def too_large(largest: int) -> str:
    """What is said of a bomb."""
    return f"the compressed data expands to more than {largest:,} bytes, over {LARGEST_RATIO} times the file's size"


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        InputError: if it is missing, damaged, or so large or deeply nested as no run writes it.
    """
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_JSON + 1)
        if len(text) > LARGEST_JSON:
            raise ValueError(f"larger than {LARGEST_JSON:,} bytes")
        value = json.loads(text.decode("utf-8"))
        require_shallow(value)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; is this the folder of a run?") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: expected a JSON object")
    return value


def require_shallow(value: object, depth: int = DEEPEST_JSON) -> None:
    """Raise a ``ValueError`` if JSON is nested deeper than anything that is written here."""
    if depth == 0:
        raise ValueError(f"nested deeper than {DEEPEST_JSON} levels")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(item, dict | list):
            require_shallow(item, depth - 1)


def _open(path: Path, stack: contextlib.ExitStack) -> IO[bytes]:
    if path.suffix == ".gz":
        return stack.enter_context(io.BufferedReader(stack.enter_context(gzip.GzipFile(path, "rb")), 1 << 17))
    if path.suffix != ".zip":
        return stack.enter_context(path.open("rb", buffering=1 << 20))
    archive = stack.enter_context(zipfile.ZipFile(path))
    members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        names = ": " + ", ".join(m.filename for m in members[:4]) if members else ""
        raise InputError(
            f"{path}: expected one file in the archive, found {len(members)}{names}; unpack the one you want"
        )
    member = stack.enter_context(archive.open(members[0]))
    return stack.enter_context(io.BufferedReader(member, 1 << 17))  # type: ignore[type-var]  # it has readinto
