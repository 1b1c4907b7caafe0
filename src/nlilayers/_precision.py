"""Where half precision is not enough: softmaxes, factorizations and distance priors run in at least float32."""

import contextlib
from typing import Any

import torch
from torch import Tensor

from nlilayers._values import is_under_functorch


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


def product(x: Tensor, y: Tensor) -> Tensor:
    """``x @ y`` of a matrix or a vector y, lowered by autocast neither forwards nor, compiled, backwards."""
    compiled = torch.compiler.is_compiling() and not is_under_functorch()
    own_backward = compiled and autocast_dtype(x) is not None
    with without_autocast(x):
        z: Tensor = _Product.apply(x, y) if own_backward else x @ y  # type: ignore[no-untyped-call]
    return z


class _Product(torch.autograd.Function):
    """A compiled backward pass runs under the autocast that is around the forward pass: this one puts it off."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x @ y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        with torch.autocast(grad.device.type, enabled=False):
            if y.ndim == 1:
                return torch.outer(grad, y), x.mT @ grad
            return (grad @ y.mT).sum_to_size(x.shape), (x.mT @ grad).sum_to_size(y.shape)


def are_float16(*tensors: Tensor) -> bool:
    """Whether products of these are taken in float16, by their own dtype or for autocast."""
    return all((autocast_dtype(x) or x.dtype) == torch.float16 for x in tensors)


def autocast_dtype(x: Tensor) -> torch.dtype | None:
    """What autocast lowers products with ``x`` to; ``None`` where it does not."""
    device = x.device.type
    if x.is_meta or x.dtype == torch.float64 or not torch.is_autocast_enabled(device):
        return None
    return torch.get_autocast_dtype(device)
