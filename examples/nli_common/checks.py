"""What a configuration refuses, in words that name the option."""

import dataclasses
import types
import typing
from typing import Any, Literal


def require_at_least(least: int, config: Any, *names: str) -> None:
    """Raise a ``ValueError`` if one of these fields is smaller."""
    for name in names:
        if getattr(config, name) < least:
            raise ValueError(f"{name} must be at least {least}, got {getattr(config, name)}")


def require_dropout(config: Any, *names: str) -> None:
    """Raise a ``ValueError`` if one of these fields is no probability, or would leave nothing."""
    for name in names or ("dropout",):
        if not 0 <= getattr(config, name) < 1:
            raise ValueError(f"{name} must be at least 0 and below 1, got {getattr(config, name)}")


def require_types(config: Any) -> None:
    """Raise a ``ValueError`` if a field of a configuration from a file is not of its type; 1 may stand for 1.0."""
    hints = typing.get_type_hints(type(config))
    for item in dataclasses.fields(config):
        value, hint = getattr(config, item.name), hints[item.name]
        options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
        if not any(_is_of(value, option) for option in options):
            raise ValueError(f"{item.name} should be {getattr(hint, '__name__', hint)}, got {value!r}")


def _is_of(value: object, hint: Any) -> bool:
    if typing.get_origin(hint) is Literal:
        return value in typing.get_args(hint)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint
