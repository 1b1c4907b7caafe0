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
    device = x.device.type
    # The meta device has no autocast, and refuses the question.
    lowered = device != "meta" and torch.is_autocast_enabled(device)
    return torch.autocast(device, enabled=False) if lowered else contextlib.nullcontext()
