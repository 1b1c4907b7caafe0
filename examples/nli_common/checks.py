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


def require_choices(config: Any) -> None:
    """Raise a ``ValueError`` if a field with a few values to choose from has another one."""
    for name, hint in typing.get_type_hints(type(config)).items():
        options = _options(hint)
        choices = [choice for option in options for choice in _choices(option)]
        if any(typing.get_origin(option) is Literal for option in options) and getattr(config, name) not in choices:
            raise ValueError(f"{name} must be {_one_of(choices)}, got {getattr(config, name)!r}")


def _one_of(choices: list[Any]) -> str:
    *others, last = map(str, choices)
    return f"{', '.join(others)} or {last}" if others else last


def _options(hint: Any) -> tuple[Any, ...]:
    """What a union is of, or the hint alone."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _choices(option: Any) -> tuple[Any, ...]:
    if option is type(None):
        return (None,)
    return typing.get_args(option) if typing.get_origin(option) is Literal else ()


def require_types(config: Any) -> None:
    """Raise a ``ValueError`` if a field of a configuration from a file is not of its type; 1 may stand for 1.0."""
    hints = typing.get_type_hints(type(config))
    for item in dataclasses.fields(config):
        value, hint = getattr(config, item.name), hints[item.name]
        if not any(_is_of(value, option) for option in _options(hint)):
            raise ValueError(f"{item.name} should be {getattr(hint, '__name__', hint)}, got {value!r}")


def _is_of(value: object, hint: Any) -> bool:
    if typing.get_origin(hint) is Literal:
        return value in _choices(hint)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint
