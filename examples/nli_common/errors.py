"""The one error that a user can mend: a file, an option or a folder that is not as it should be."""

import re
from pathlib import Path

LONGEST = 2_000
"""Of a message, in characters: what a file holds may be quoted in it, and a file may hold anything."""


class InputError(ValueError):
    """One line that says where the input is wrong, what was expected and what came; a script exits with code 2."""

    def __init__(self, message: str) -> None:
        super().__init__(_one_line(message))

    @classmethod
    def at(cls, path: Path, line: int, problem: str) -> "InputError":
        """The problem with its place, as compilers print it: ``path:line: problem``."""
        return cls(f"{path}:{line}: {problem}")


def _one_line(text: str) -> str:
    """Without line ends and control characters, whatever was quoted, and cut in the middle where it is very long."""
    text = re.sub(r"\s*[\r\n]\s*", " ", _cut(text))
    return _cut("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2 - 5]} ... {text[-LONGEST // 2 :]}"
