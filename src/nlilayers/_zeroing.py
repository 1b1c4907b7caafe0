"""Numbers set to 0, whatever they are; on a CPU by their bits, which is several times as fast as a choice."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nlilayers._values import is_traced, is_transformed

INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""The integers that have as many bytes as a floating-point number."""


def zero_masked(x: Tensor, mask: Tensor) -> Tensor:
    """The numbers where the mask, which broadcasts to them, is True, and 0 in place of all others, NaN included.

    Example::

        >>> zero_masked(torch.tensor([1.0, float("nan"), float("inf")]), torch.tensor([True, False, False]))
        tensor([1., 0., 0.])
    """
    if is_traced() or not _has_bits(x) or is_transformed(x):
        return torch.where(mask, x, 0)
    if not (x.requires_grad and torch.is_grad_enabled()):
        return _masked_bits(x, mask)  # with no backward pass, a function of autograd's would only take time
    zeroed: Tensor = _ZeroMasked.apply(x, mask)  # type: ignore[no-untyped-call]
    return zeroed


def stop_gradients(y: Tensor, mask: Tensor | None) -> Tensor:
    """A result that is 0 at padding; gradients that arrive there, be they NaN, go no further back.

    Args:
        y: 0 where the mask is False.
        mask: of the dimensions of y, or of all but its last; ``None`` means that there is no padding.

    Example::

        >>> x = torch.ones(1, 2, 1, requires_grad=True)
        >>> y = stop_gradients(2 * x * torch.tensor([[[1.0], [0.0]]]), torch.tensor([[True, False]]))
        >>> y.backward(torch.tensor([[[1.0], [float("nan")]]]))
        >>> x.grad.flatten()
        tensor([2., 0.])
    """
    if mask is None:
        return y
    real = mask if mask.ndim == y.ndim else mask[..., None]
    if type(y) is not Tensor or is_traced() or is_transformed(y):
        return torch.where(real, y, 0)
    if y._is_view():  # what made it is another once it is written to
        return zero_masked(y, real)
    if y.grad_fn is not None:  # a hook on what made it costs no pass over memory forwards
        place = y.output_nr  # what made it may have made other tensors, too
        real = real.clone()  # the caller's may have changed by the time that gradients arrive

        def stop(grads: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
            return tuple(g if g is None or k != place else zero_masked(g, real) for k, g in enumerate(grads))

        y.grad_fn.register_prehook(stop)
    return y


class _ZeroMasked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(mask)
        return _masked_bits(x, mask)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (mask,) = ctx.saved_tensors
        return zero_masked(grad, mask), None


def _masked_bits(x: Tensor, mask: Tensor) -> Tensor:
    integers = INTEGERS[x.dtype.itemsize]
    all_bits_or_none = -mask.to(integers)  # True is -1, whose bits are all set
    return (x.view(integers) & all_bits_or_none).view(x.dtype)


def _has_bits(x: Tensor) -> bool:
    """Whether these are numbers in this machine's memory, and not what stands for some."""
    plain = type(x) in (Tensor, nn.Parameter) and x.device.type == "cpu"
    return plain and x.dtype.itemsize in INTEGERS and not x.is_neg()
