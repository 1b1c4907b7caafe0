"""What layers ask of their arguments: an error says the name, what was expected and what came."""

import sys
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def is_integer(value: object) -> bool:
    """Whether a value is a whole number: Python's, numpy's, a traced one, or a tensor without axes; flags are none.

    Example::

        >>> is_integer(3), is_integer(torch.tensor(3)), is_integer(True), is_integer(torch.tensor(3.0))
        (True, True, False, False)
    """
    if isinstance(value, Tensor):
        dtype = value.dtype
        return value.ndim == 0 and not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)
    return isinstance(value, (Integral, torch.SymInt)) and not isinstance(value, bool)


def require_integers(**sizes: object) -> None:
    """Each of the named sizes is an integer: Python's, numpy's, torch's or a traced one.

    Example::

        >>> require_integers(in_features=3, out_features=4.0)
        Traceback (most recent call last):
        TypeError: out_features must be an integer, got 4.0
    """
    for name, size in sizes.items():
        if not is_integer(size):
            raise TypeError(f"{name} must be an integer, got {size!r}")


def require_positive(**sizes: int) -> None:
    """Each of the named sizes is an integer of at least 1.

    Example::

        >>> require_positive(in_features=3, out_features=0)
        Traceback (most recent call last):
        ValueError: out_features must be at least 1, got 0
    """
    require_integers(**sizes)
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")


def require_even(**sizes: int) -> None:
    """Each of the named sizes is an even integer of at least 2.

    Example::

        >>> require_even(embed_dim=3)
        Traceback (most recent call last):
        ValueError: embed_dim must be even and at least 2, got 3
    """
    require_integers(**sizes)
    for name, size in sizes.items():
        if size < 2 or size % 2:
            raise ValueError(f"{name} must be even and at least 2, got {size}")


def require_number(name: str, value: object) -> None:
    """The value is a real number.

    Example::

        >>> require_number("dropout", "0.1")
        Traceback (most recent call last):
        TypeError: dropout must be a number, got '0.1'
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")


def require_finite(name: str, value: float) -> None:
    """The value is a number, neither infinite nor NaN, nor an integer that no float64 holds.

    Example::

        >>> require_finite("scale", float("nan"))
        Traceback (most recent call last):
        ValueError: scale must be a finite number, got nan
    """
    require_number(name, value)
    if not -sys.float_info.max <= value <= sys.float_info.max:
        raise ValueError(f"{name} must be a finite number, got {value}")


def require_flags(**flags: object) -> None:
    """Each of the named flags is True or False.

    Example::

        >>> require_flags(signed="no")
        Traceback (most recent call last):
        TypeError: signed must be True or False, got 'no'
    """
    for name, flag in flags.items():
        if not isinstance(flag, (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False, got {flag!r}")


def require_function(name: str, value: object) -> None:
    """The value is a module or a function, and no class of modules.

    Example::

        >>> require_function("activation", "relu")
        Traceback (most recent call last):
        TypeError: activation must be a module or a function of a tensor, got 'relu'
    """
    if isinstance(value, type) or not callable(value):
        raise TypeError(f"{name} must be a module or a function of a tensor, got {value!r}")


def require_prior(prior: object) -> None:
    """A prior is a module, for its scalars are trained with the layer's.

    Example::

        >>> require_prior("gaussian")
        Traceback (most recent call last):
        TypeError: prior must be a module that maps two lengths to a log-bias, got 'gaussian'
    """
    if not isinstance(prior, nn.Module):
        raise TypeError(f"prior must be a module that maps two lengths to a log-bias, got {prior!r}")


def require_probability(name: str, value: float) -> None:
    """The value lies between 0 and 1.

    Example::

        >>> require_probability("dropout", 2.0)
        Traceback (most recent call last):
        ValueError: dropout must be a probability, got 2.0
    """
    require_number(name, value)
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be a probability, got {value}")


def require_tolerance(tolerance: float) -> None:
    """A share of a word's weights that may be left out: neither none nor all.

    Example::

        >>> require_tolerance(1.0)
        Traceback (most recent call last):
        ValueError: tolerance must lie between 0 and 1, got 1.0
    """
    require_number("tolerance", tolerance)
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance must lie between 0 and 1, got {tolerance}")


def require_lengths(**lengths: int) -> None:
    """Each of the named lengths or distances is an integer of at least 0.

    Example::

        >>> require_lengths(window=-1)
        Traceback (most recent call last):
        ValueError: window must be at least 0, got -1
    """
    require_integers(**lengths)
    for name, length in lengths.items():
        if length < 0:
            raise ValueError(f"{name} must be at least 0, got {length}")


def widened(size: Any) -> Any:
    """A whole number with room for sums: numpy's and torch's may have as little as 8 bits. A traced one stays as it is.

    Example::

        >>> 2 * widened(np.uint8(200))
        400
    """
    if isinstance(size, np.integer):
        return int(size)
    return size.to(torch.int64) if isinstance(size, Tensor) else size


def require_scores(scores: object, ndim: int | None = None) -> None:
    """Scores are a floating-point tensor, of so many dimensions if that is asked for.

    Example::

        >>> require_scores(torch.ones(2, 3, dtype=torch.int64))
        Traceback (most recent call last):
        ValueError: scores must be floating point, got torch.int64 of shape (2, 3)
    """
    require_tensor("scores", scores)
    assert isinstance(scores, Tensor)
    if not scores.dtype.is_floating_point or ndim not in (None, scores.ndim):
        of = "" if ndim is None else f" of {ndim} dimensions"
        raise ValueError(f"scores must be floating point{of}, got {scores.dtype} of shape {tuple(scores.shape)}")


def require_addends(name: str, bias: object) -> None:
    """What is added to scores are real numbers, and no mask: those of one would be 0 and 1.

    Example::

        >>> require_addends("log_bias", torch.tensor([True, False]))
        Traceback (most recent call last):
        ValueError: log_bias must be real numbers to add to scores (-inf hides a word), and no mask, got torch.bool
    """
    require_tensor(name, bias)
    assert isinstance(bias, Tensor)
    if bias.dtype == torch.bool or bias.is_complex():
        raise ValueError(
            f"{name} must be real numbers to add to scores (-inf hides a word), and no mask, got {bias.dtype}"
        )


def require_log_bias(name: str, bias: object, shape: tuple[int, int], heads: int | None = None) -> None:
    """What a prior gave are numbers of this shape, or broadcast to it; with heads, it may be a matrix for each.

    Example::

        >>> require_log_bias("prior", torch.zeros(1, 5), (4, 5))
        >>> require_log_bias("prior", torch.zeros(4), (4, 5), heads=2)
        Traceback (most recent call last):
        ValueError: prior must give a log-bias of shape (4, 5) or (2, 4, 5), got shape (4,)
    """
    if not isinstance(bias, Tensor):
        raise TypeError(f"{name} must give a tensor, got a {type(bias).__name__}")
    require_addends(f"what {name} gives", bias)
    # The wanted size first: comparing it with 1 first would keep a graph from taking lengths of 1.
    sizes = zip(reversed(bias.shape), reversed(shape), strict=False)
    is_matrix = bias.ndim <= 2 and all(size in (wanted, 1) for size, wanted in sizes)
    if not is_matrix and (heads is None or bias.shape != (heads, *shape)):
        each = "" if heads is None else f" or {(heads, *shape)}"
        raise ValueError(f"{name} must give a log-bias of shape {shape}{each}, got shape {tuple(bias.shape)}")


def require_words(name: str, features: object, shape: tuple[int, ...]) -> None:
    """What a network gave are features of as many words as it was given, ``(batch, length, features)``.

    Example::

        >>> require_words("feedforward", torch.ones(2, 5), (2, 5))
        Traceback (most recent call last):
        ValueError: feedforward must give (2, 5, features) for words (2, 5), got shape (2, 5)
    """
    if not isinstance(features, Tensor):
        raise TypeError(f"{name} must give a tensor, got a {type(features).__name__}")
    if features.ndim != 3 or features.shape[:2] != shape:
        wanted = ", ".join(map(str, shape))
        raise ValueError(
            f"{name} must give ({wanted}, features) for words ({wanted}), got shape {tuple(features.shape)}"
        )


def require_tensor(name: str, x: object) -> None:
    """Raise a ``TypeError`` naming ``name`` unless ``x`` is a tensor, and no nested one.

    Example::

        >>> require_tensor("lengths", [2, 3])
        Traceback (most recent call last):
        TypeError: lengths must be a tensor, got a list
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a tensor, got a {type(x).__name__}")
    if x.is_nested:
        raise TypeError(f"{name} must be a padded tensor with a mask beside it, got a nested one")


def require_strings(name: str, strings: Sequence[str]) -> None:
    """Raise a ``TypeError`` naming the argument unless it is a sequence of strings.

    Example::

        >>> require_strings("words", "a word")
        Traceback (most recent call last):
            ...
        TypeError: words must be a sequence of strings, got the string 'a word'
    """
    if isinstance(strings, str):
        raise TypeError(f"{name} must be a sequence of strings, got the string {strings!r}")
    if not (hasattr(strings, "__len__") and hasattr(strings, "__getitem__")):
        raise TypeError(f"{name} must be a sequence of strings, got a {type(strings).__name__}")
    for string in strings:
        if not isinstance(string, str):
            raise TypeError(f"{name} must be a sequence of strings, got one with {string!r}")


def require_mask(name: str, mask: Tensor | None, shape: tuple[int, ...]) -> None:
    """Raise a ``ValueError`` naming ``name`` unless ``mask`` is ``None`` or boolean of exactly this shape.

    Example::

        >>> require_mask("premise_mask", torch.ones(2, 5), (2, 5))
        Traceback (most recent call last):
        ValueError: premise_mask must be torch.bool of shape (2, 5) with True for real tokens, got torch.float32 of
        shape (2, 5)
    """
    if mask is None:
        return
    require_tensor(name, mask)
    if mask.dtype != torch.bool or tuple(mask.shape) != tuple(shape):
        raise ValueError(
            f"{name} must be torch.bool of shape {tuple(shape)} with True for real tokens, "
            f"got {mask.dtype} of shape {tuple(mask.shape)}"
        )


def require_layout(layout: str) -> None:
    """Raise a ``ValueError`` unless the layout of an encoding is one that there is.

    Example::

        >>> require_layout("half")
        Traceback (most recent call last):
        ValueError: layout must be 'interleaved' or 'halves', got 'half'
    """
    if layout not in ("interleaved", "halves"):
        raise ValueError(f"layout must be 'interleaved' or 'halves', got {layout!r}")


def require_far_buckets(far_buckets: int, *, signed: bool) -> None:
    """Raise a ``ValueError`` unless far distances have one bucket or, with signs, two.

    Example::

        >>> require_far_buckets(2, signed=False)
        Traceback (most recent call last):
        ValueError: far_buckets must be 1 without signs, got 2
    """
    if far_buckets not in ((1, 2) if signed else (1,)):
        raise ValueError(f"far_buckets must be 1{' or 2' if signed else ' without signs'}, got {far_buckets}")


def require_features(name: str, x: Tensor, features: int) -> None:
    """Raise a ``ValueError`` naming ``name`` unless ``x`` is floating point of shape ``(..., features)``.

    Example::

        >>> require_features("x", torch.ones(2, 5), 4)
        Traceback (most recent call last):
        ValueError: x must be floating point of shape (..., 4), got torch.float32 of shape (2, 5)
    """
    require_tensor(name, x)
    if x.ndim < 1 or x.shape[-1] != features or not x.dtype.is_floating_point:
        raise ValueError(
            f"{name} must be floating point of shape (..., {features}), got {x.dtype} of shape {tuple(x.shape)}"
        )


def require_sequence(name: str, x: Tensor, features: int | None = None) -> None:
    """Raise a ``ValueError`` naming ``name`` unless ``x`` is floating point of shape ``(batch, length, features)``.

    With ``features`` it must have that many of them.

    Example::

        >>> require_sequence("x", torch.ones(2, 5))
        Traceback (most recent call last):
        ValueError: x must be floating point of shape (batch, length, features), got torch.float32 of shape (2, 5)
    """
    require_tensor(name, x)
    if x.ndim != 3 or not x.dtype.is_floating_point or (features is not None and x.shape[2] != features):
        wanted = "features" if features is None else features
        raise ValueError(
            f"{name} must be floating point of shape (batch, length, {wanted}), got {x.dtype} of shape {tuple(x.shape)}"
        )
