"""What becomes of a batch that does not fit into memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from nli_common.data import Sentence
from nli_common.errors import InputError

SAID = ("can't allocate memory", "CUDA error: out of memory", "STATUS_ALLOC_FAILED")
"""In errors that have no class of their own: of PyTorch on a CPU, of CUDA, of its libraries."""
LEAVE_OUT = "leave out what is that long"


@contextmanager
def memory_for(premise: Sentence, hypothesis: Sentence, way_out: str = LEAVE_OUT) -> Iterator[None]:
    """Let an error say which pairs were too much for the memory, and what may help.

    Raises:
        InputError: where Python or PyTorch found no memory.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError | torch.OutOfMemoryError) and not any(part in str(error) for part in SAID):
            raise
        (pairs, n), m = premise.tokens.shape, hypothesis.tokens.shape[1]
        some = "a pair" if pairs == 1 else f"{pairs} pairs"
        raise InputError(f"out of memory: {some}, the longest sentences of {n:,} and {m:,} words; {way_out}") from None
