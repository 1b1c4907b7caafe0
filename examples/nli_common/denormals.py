"""Denormal numbers: those of less than 1e-38, with which a CPU computes many times as slowly."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def flushed_denormals() -> Iterator[None]:
    """Have the CPU take them for 0, where it can.

    Gradients become as small where gates are shut and units are off, and a step may then take five times as long.
    Threads do as the one that starts them did at that time: so this comes before all computation.
    """
    before = are_flushed()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def are_flushed() -> bool:
    """Whether this thread takes them for 0."""
    return (torch.tensor(torch.finfo(torch.float32).tiny) / 2).item() == 0
