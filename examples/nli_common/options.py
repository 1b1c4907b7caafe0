"""Options of a dataclass as words: ``epochs=3``."""

import contextlib
import dataclasses
import io
import typing
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import tyro

from nli_common.errors import InputError
from nli_common.recipe import Recipe


def parse_options(words: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` words as a dictionary.

    Raises:
        InputError: if a word has another form, or names an option again.
    """
    options = {}
    for word in words:
        option, equals, value = word.partition("=")
        option = option.replace("-", "_")
        if not (equals and option.isidentifier()):
            raise InputError(f"--options: expected NAME=VALUE, got {word!r}")
        if option in options:
            raise InputError(f"--options {option}: is given twice")
        options[option] = value
    return options


def converted(part: Any, options: Mapping[str, str]) -> dict[str, Any]:
    """Those options that are fields of a dataclass, each read as the command line would read it.

    Raises:
        InputError: if a value is none of its field's type.
    """
    hints = typing.get_type_hints(type(part))
    names = [field.name for field in dataclasses.fields(part)]
    return {name: _read(name, options[name], hints[name]) for name in names if name in options}


def require_effect(*parts: tuple[Any, Any]) -> None:
    """Refuse options that others switch off: parts of the command line, each with its defaults.

    A part names in ``unread`` those that it switches off, its own or another part's.

    Raises:
        InputError: if an option that is not read differs from its default.
    """
    unread = {name: why for part, _ in parts for name, why in getattr(part, "unread", {}).items()}
    idle = [
        f"{spelled(name, getattr(part, name))}: changes nothing {why}"
        for name, why in unread.items()
        for part, default in parts
        if hasattr(part, name) and getattr(part, name) != getattr(default, name)
    ]
    if idle:
        raise InputError("; ".join(idle))


def require_named_once(words: Sequence[str]) -> None:
    """Refuse a command line that names an option again, of which only the last value would be read.

    Raises:
        InputError: if it does.
    """
    options = Counter(word.partition("=")[0].replace("_", "-") for word in words if word.startswith("--"))
    for option, times in options.items():
        if times > 1:
            raise InputError(f"{option}: is given {times} times, expected once, with all of its values behind it")


def require_rate(recipe: Recipe, default: Recipe, *, given: bool) -> None:
    """Refuse another optimiser with the learning rate of the default one.

    Raises:
        InputError: if no rate of its own is given.
    """
    if recipe.optimizer != default.optimizer and default.lr is not None and not given:
        raise InputError(f"--lr is needed with --optimizer {recipe.optimizer}: {default.lr} is for {default.optimizer}")


def spelled(name: str, value: object) -> str:
    """A field and its value as the command line has them: ``--hidden-size 200``, ``--no-glorot``."""
    option = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{option}" if value else f"--no-{option}"
    return f"--{option} {value}"


def _read(name: str, value: str, hint: Any) -> Any:
    silent = io.StringIO()
    try:
        with contextlib.redirect_stderr(silent), contextlib.redirect_stdout(silent):
            return tyro.cli(hint, args=[value])
    except SystemExit:
        expected = "True or False" if hint is bool else str(getattr(hint, "__name__", hint)).replace("typing.", "")
        if typing.get_origin(hint) is typing.Literal:
            expected = "one of " + ", ".join(map(str, typing.get_args(hint)))
        raise InputError(f"--options {name}: expected {expected}, got {value!r}") from None
