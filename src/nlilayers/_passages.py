"""A long text in passages, one after the other: what each needs is small enough for the next to take its place."""

from collections.abc import Sequence

import torch
from torch import Tensor

SHORTEST_PASSAGE = 4096
"""Words of a passage at least. On a CPU, larger tensors cost more than what is computed with them: the C library gives
them back to the system, and each new one is paid for page by page."""
FEWEST_BLOCKS = 32
"""Blocks of a passage at least: it computes two more for the sake of its neighbours."""


def cut_into_passages(x: Tensor, size: int) -> list[Tensor]:
    """Passages of whole blocks, each between the last block before it and the first after it.

    A text of less than two passages is one, and so is any on a device that keeps what is freed.

    Args:
        x: words.
        size: words of a block.

    Shape:
        ``(b, n, ...)`` → each ``(b, m + 2 size, ...)``, one block less at either end of the text.

    Example::

        >>> [passage.shape for passage in cut_into_passages(torch.zeros(1, 9000, 8), size=20)]
        [torch.Size([1, 4520, 8]), torch.Size([1, 4520, 8])]
    """
    length = x.shape[1]
    count = length // max(SHORTEST_PASSAGE, FEWEST_BLOCKS * size)
    if count < 2 or x.device.type != "cpu":
        return [x]
    words = -(-length // (count * size)) * size
    parts = torch.split(x, words, dim=1)
    before = [x[:, :0], *(part[:, -size:] for part in parts[:-1])]
    after = [*(part[:, :size] for part in parts[1:]), x[:, :0]]
    return [torch.cat(stretch, dim=1) for stretch in zip(before, parts, after, strict=True)]


def join_passages(passages: Sequence[Tensor], size: int) -> Tensor:
    """The text again, from what became of its passages; their neighbours are left out.

    Example::

        >>> x = torch.randn(1, 9000, 8)
        >>> torch.equal(join_passages(cut_into_passages(x, size=20), size=20), x)
        True
    """
    first, *others = passages
    if not others:
        return first
    words = first.shape[1] - size
    return torch.cat([first[:, :words], *(passage[:, size : size + words] for passage in others)], dim=1)
