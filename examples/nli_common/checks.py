"""What a configuration refuses, in words that name the option."""

from typing import Any


def require_at_least(least: int, config: Any, *names: str) -> None:
    """Raise a ``ValueError`` if one of these fields is smaller."""
    for name in names:
        if getattr(config, name) < least:
            raise ValueError(f"{name} must be at least {least}, got {getattr(config, name)}")


def require_dropout(dropout: float) -> None:
    """Raise a ``ValueError`` if nothing would be left, or it is no probability."""
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, got {dropout}")
