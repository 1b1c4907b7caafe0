"""What is decided by the numbers in a tensor, where there are numbers to read."""

import torch
from torch import Tensor


def read_values(x: Tensor) -> list[float] | None:
    """The numbers in a tensor of one axis; waits for the device.

    ``None`` where there are none to read, or where what was read would stay in a trace: in compiled code, under
    ``vmap`` and tracers, on the meta device.

    Example::

        >>> read_values(torch.tensor([2, 3])), read_values(torch.empty(2, device="meta"))
        ([2, 3], None)
    """
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return None
    try:
        x = x.cpu()
        total = x.sum().item()  # which a tracer refuses, and tolist would not
        values: list[float] = x.tolist()
    except (RuntimeError, NotImplementedError):
        return None
    return values if type(total) in (int, float) else None


def is_transformed() -> bool:
    """Whether a transformation of ``torch.func`` is under way, or code is compiled."""
    # What torch.autograd.Function.apply asks; there is no public name for it.
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
