"""How a command ends: with one line on stderr where something it was given is at fault."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

from rich.console import Console

from nli_common.errors import InputError


@contextlib.contextmanager
def told_in_one_line() -> Iterator[None]:
    """Bad input and what the system refuses end the command with one line and exit code 2, a closed pipe with none."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be no text
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        Console().on_broken_pipe()
    except InputError as error:
        _end(str(error))
    except OSError as error:
        _leave_what_cannot_be_written()
        place = f"{error.filename}: " if error.filename else ""
        _end(f"{place}{error.strerror or error}")


def _end(problem: str) -> NoReturn:
    print(f"error: {problem}", file=sys.stderr)
    sys.exit(2)


def _leave_what_cannot_be_written() -> None:
    """The interpreter writes the rest of the output as it goes, and would fail over a full disk once more."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
