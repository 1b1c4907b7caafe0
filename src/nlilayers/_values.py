"""What is decided by the numbers in a tensor, where there are numbers to read."""

import torch
from torch import Tensor
from torch.autograd import forward_ad


def read_values(x: Tensor) -> list[float] | None:
    """The numbers in a tensor of one axis; waits for the device.

    ``None`` where there are none to read, or where what was read would stay in a trace: in compiled code, under
    ``vmap`` and tracers, in a CUDA graph that is being recorded, on the meta device.

    Example::

        >>> read_values(torch.tensor([2, 3])), read_values(torch.empty(2, device="meta"))
        ([2, 3], None)
    """
    if is_traced() or _is_recorded():
        return None
    try:
        x = x.cpu()
        total = x.sum().item()  # which a tracer refuses, and tolist would not
        values: list[float] = x.tolist()
    except RuntimeError:
        return None
    return values if type(total) in (int, float) else None


def is_traced() -> bool:
    """Whether code is compiled or traced: what one input decides would be decided for all."""
    return torch.compiler.is_compiling() or is_jit_traced()


def is_jit_traced() -> bool:
    """Whether ``torch.jit.trace`` looks on, which keeps Python's numbers as they are."""
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


def _is_recorded() -> bool:
    """Whether a CUDA graph is recorded: it has no place for a number that is read."""
    started: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return started and torch.cuda.is_current_stream_capturing()


def is_under_functorch() -> bool:
    """Whether a transformation of ``torch.func`` is at work."""
    # It has no public name; ``Function.apply`` asks it.
    return bool(torch._C._are_functorch_transforms_active())


def is_transformed(*tensors: Tensor) -> bool:
    """Whether code is compiled, or under a transformation: ``torch.func``'s, forward mode or batched gradients.

    A ``torch.autograd.Function`` without rules for those cannot take such tensors.
    """
    # What is private has no public name; printing a tensor asks it.
    if torch.compiler.is_compiling() or is_under_functorch():
        return True
    is_batched, parts = torch._C._functorch.is_legacy_batchedtensor, forward_ad.unpack_dual
    return any(is_batched(x) or parts(x).tangent is not None for x in tensors)  # type: ignore[no-untyped-call]
