"""Readers that are given thousands of mutated files, and what becomes of each."""

import contextlib
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nli_common.errors import LONGEST, InputError
from reliability.mutations import Mutation, mutated


@dataclass(frozen=True)
class Reader:
    """A reader, valid files for it, and what else can be done to these than to any bytes."""

    read: Callable[[Path], object]
    """Reads the file and uses what it held; raises an ``AssertionError`` where that is wrong."""
    name: str
    """Of the file that is attacked."""
    valid: Sequence[bytes]
    mutation: Mutation
    share: int = 4
    """Of all inputs, relative to the other readers."""
    beside: str = ""
    """A file in the same folder that a message may name instead: the two do not belong together."""


@dataclass
class Tally:
    """What became of a reader's inputs."""

    inputs: int = 0
    read: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)

    def give(self, reader: Reader, content: bytes, folder: Path) -> None:
        """Give the reader a file with this content and note what comes of it."""
        path = folder / reader.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.inputs += 1
        try:
            reader.read(path)
            self.read += 1
        except InputError as error:
            problem = wrong_with(str(error), path, reader.beside or reader.name)
            self.refused += not problem
            self.failures += [problem] if problem else []
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a panic of Rust's is no Exception
            self.failures.append(f"{type(error).__name__}: {error}"[:200])

    def attack(self, reader: Reader, rng: random.Random, folder: Path, others: Sequence[bytes]) -> None:
        """Give the reader a hostile file, which may have parts of other readers' files."""
        self.give(reader, made(reader, rng, others), folder)


def made(reader: Reader, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """A hostile file: a valid one changed as its format, or as any file, can be; now and then, something else."""
    content, kind = rng.choice(reader.valid), rng.random()
    if kind > 0.99:
        return rng.choice((b"", b"\n", b"\0" * 4096, rng.randbytes(3000), b"\x80\x04N."))
    with contextlib.suppress(UnicodeEncodeError):  # half a surrogate pair goes into no archive
        return reader.mutation(rng, content) if kind < 0.5 else mutated(rng, content, [*others, *reader.valid])
    return content


def wrong_with(message: str, path: Path, beside: str) -> str:
    """What a message lacks of one line that names the file, or the one beside it; empty if nothing."""
    if not message.isprintable():
        return f"more than one printable line: {message[:200]!r}"
    if not any(name in message for name in (path.name, beside, f"--run {path.parent}")):
        return f"the file is not named: {message[:200]!r}"
    return f"{len(message)} characters" if len(message) > LONGEST else ""


def fuzz(
    make: Callable[[Path], dict[str, Reader]], inputs: int, seed: int = 0, *, only: str = ""
) -> dict[str, dict[str, Any]]:
    """Attack every reader that ``make`` makes in a folder, with so many inputs in all; or one, with its share."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        readers = make(folder)
        others = [content for reader in readers.values() for content in reader.valid]
        total = sum(reader.share for reader in readers.values())
        for key in [only] if only else readers:
            reader = readers[key]
            rng, tally, started = random.Random(f"{seed} {key}"), Tally(), time.perf_counter()
            for _ in range(-(-inputs * reader.share // total)):
                tally.attack(reader, rng, folder, others)
            found[key] = {"inputs": tally.inputs, "read": tally.read, "refused": tally.refused}
            found[key] |= {"failures": dict(Counter(tally.failures).most_common(20))}
            found[key] |= {"seconds": time.perf_counter() - started}
    return found
