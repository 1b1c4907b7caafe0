"""Where half precision is not enough: softmaxes, factorizations and distance priors run in at least float32."""

import contextlib

import torch
from torch import Tensor


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """The dtype itself, or float32 where it is a half.

    Example::

        >>> at_least_float32(torch.bfloat16), at_least_float32(torch.float64)
        (torch.float32, torch.float64)
    """
    return torch.promote_types(dtype, torch.float32)


def without_autocast(x: Tensor) -> contextlib.AbstractContextManager[object]:
    """A context in which autocast does not lower the operations on ``x``; none where it would not anyway."""
    return contextlib.nullcontext() if autocast_dtype(x) is None else torch.autocast(x.device.type, enabled=False)


def autocast_dtype(x: Tensor) -> torch.dtype | None:
    """What autocast lowers products with ``x`` to; ``None`` where it does not."""
    device = x.device.type
    if x.is_meta or x.dtype == torch.float64 or not torch.is_autocast_enabled(device):
        return None
    return torch.get_autocast_dtype(device)
