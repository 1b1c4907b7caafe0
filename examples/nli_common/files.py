"""Reading lines and writing files so that nothing is half done."""

import contextlib
import gzip
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from uuid import uuid4

from nli_common.errors import InputError

_UMASK = os.umask(0)
os.umask(_UMASK)
TEMPORARY = ".tmp"
_TRUNCATED = "the compressed data ends too early: the file is truncated or still being written"


def write_atomically(path: Path, write: Callable[[Path], object], *, keep: Path | None = None) -> None:
    """Have ``write`` fill a temporary file beside ``path``, then put it in its place in one step.

    A process killed at any instant leaves either the old file or the new one, never a part of one. With ``keep``, the
    old file goes there once the new one is whole.

    Raises:
        InputError: if the system refuses, a full disk included; the old file is as it was.
    """
    temporary = path.with_name(f".{path.name}.{uuid4().hex}{TEMPORARY}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_UMASK)
        if keep is not None and path.exists():
            path.replace(keep)
        temporary.replace(path)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be written ({reason}); mend this and repeat the command") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def stem(path: Path) -> str:
    """The file's name without the suffixes of its format: ``multinli_1.0_dev.jsonl.gz`` → ``multinli_1.0_dev``."""
    return re.sub(r"(\.(jsonl|tsv))?(\.gz)?$", "", path.name)


def binary_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The numbered lines of a plain, ``.gz`` or (single-member) ``.zip`` file.

    Raises:
        InputError: if the file is missing, no archive of its kind, or ends before its data does.
    """
    number = 0
    try:
        with contextlib.ExitStack() as stack:
            for number, line in enumerate(_open(path, stack), start=1):
                yield number, line
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, expected a file") from None
    except EOFError:
        raise InputError.at(path, number + 1, _TRUNCATED) from None
    except (zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
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


def _open(path: Path, stack: contextlib.ExitStack) -> Iterable[bytes]:
    if path.suffix == ".gz":
        return stack.enter_context(contextlib.closing(gzip.open(path, "rb")))
    if path.suffix != ".zip":
        return stack.enter_context(path.open("rb", buffering=1 << 20))
    archive = stack.enter_context(zipfile.ZipFile(path))
    members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        raise InputError(f"{path}: expected one file in the archive, found {len(members)}")
    return stack.enter_context(archive.open(members[0]))
