"""The one error that a user can mend: a file, an option or a folder that is not as it should be."""

from pathlib import Path


class InputError(ValueError):
    """One line that says where the input is wrong, what was expected and what came; a script exits with code 2."""

    @classmethod
    def at(cls, path: Path, line: int, problem: str) -> "InputError":
        """The problem with its place, as compilers print it: ``path:line: problem``."""
        return cls(f"{path}:{line}: {problem}")
