"""What becomes of a batch that does not fit into memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from nli_common.data import Sentence
from nli_common.errors import InputError


@contextmanager
def memory_for(premise: Sentence, hypothesis: Sentence) -> Iterator[None]:
    """Let an error say which pairs were too much for the memory.

    Raises:
        InputError: where Python or PyTorch found no memory.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        known = isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)
        if not known:
            raise
        (pairs, n), m = premise.tokens.shape, hypothesis.tokens.shape[1]
        raise InputError(
            f"out of memory: {pairs} pairs, the longest sentences of {n:,} and {m:,} words; "
            "a smaller --batch-size may fit, or leave such pairs out"
        ) from None
