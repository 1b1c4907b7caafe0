"""What a softmax is given in place of masked scores."""

import torch
from torch import Tensor


def hide_masked(scores: Tensor, mask: Tensor, has_real: Tensor) -> Tensor:
    r"""What a softmax is given: :math:`-\infty` at masked entries, and 0 throughout rows that have no other.

    A softmax of 0, and so its gradient, stays finite, which one of :math:`-\infty` throughout would not.

    Args:
        scores: scores, or a bias to be added to them.
        mask: real entries.
        has_real: rows that have one: ``mask.any(dim, keepdim=True)`` over the dimension of the softmax.
    """
    fill = torch.zeros_like(has_real, dtype=scores.dtype).masked_fill(has_real, float("-inf"))
    return torch.where(mask, scores, fill)
