"""Self-attention within a window, in blocks of tokens: time and memory linear in the length."""

import torch
from einops import rearrange
from torch import Tensor

from nlilayers._checks import require_addends, require_mask
from nlilayers._precision import at_least_float32
from nlilayers._zeroing import zero_masked
from nlilayers.functional._dot_product import dot_scores, weighted_sum


def windowed_scores(
    queries: Tensor, keys: Tensor, log_bias: Tensor, mask: Tensor | None = None, scale: float | None = None
) -> Tensor:
    r"""What Guo et al. 2019, Eqs 1 to 4, put into the softmax, for the tokens of a block and of the two beside it.

    .. math:: s_{ij} = \tau\, q_i^\top k_j + \beta(i - j)

    A sentence is cut into blocks of w tokens, the last one filled up, and :math:`j` runs over three blocks. So each
    token sees all tokens up to the distance w at least, and those to which the bias is :math:`-\infty` not at all
    (the token itself must not be among them). Tokens that are not real have the lowest finite score.

    Args:
        queries: :math:`q`.
        keys: :math:`k`.
        log_bias: :math:`\beta`, of the tokens of any block for those of the block before it, its own and the next one.
        mask: real tokens; ``None`` means all.
        scale: :math:`\tau`; ``None`` means 1.

    Shape:
        ``(b, h, n, d)``, ``(b, h, n, d)``, ``(w, 3 w)`` or ``(h, w, 3 w)``, ``(b, n)`` →
        ``(b, h, blocks, w, 3 w)``, in at least float32.

    Raises:
        TypeError: if the mask or the bias is not a tensor.
        ValueError: if the mask has another dtype or shape, or the bias is boolean or complex.

    Example::

        >>> import torch
        >>> from nlilayers.functional import windowed_scores
        >>> x = torch.zeros(1, 1, 4, 2)
        >>> windowed_scores(x, x, torch.zeros(2, 6)).softmax(-1).squeeze()[:, 0]
        tensor([[0.0000, 0.0000, 0.2500, 0.2500, 0.2500, 0.2500],
                [0.2500, 0.2500, 0.2500, 0.2500, 0.0000, 0.0000]])
    """
    require_addends("log_bias", log_bias)
    require_mask("mask", mask, (queries.shape[0], queries.shape[2]))
    size, length = log_bias.shape[-2], queries.shape[2]
    rows = rearrange(_filled(queries, size), "b h (blocks i) d -> b h blocks i d", i=size)
    scores = dot_scores(rows, _with_neighbours(keys, size), scale)
    real = torch.ones(1, length, dtype=torch.bool, device=keys.device) if mask is None else mask
    columns = rearrange(_with_neighbours(real[:, None, :, None], size), "b h blocks j one -> b h blocks one j")
    dtype = at_least_float32(scores.dtype)
    biased = (scores + log_bias.to(torch.promote_types(log_bias.dtype, dtype)).unsqueeze(-3)).to(dtype)
    # Not minus infinity: the softmax of padding with no real token near it stays finite.
    lowest = biased.new_zeros(()).masked_fill(~columns, torch.finfo(biased.dtype).min)
    return zero_masked(biased, columns) + lowest


def attend_windows(weights: Tensor, values: Tensor) -> Tensor:
    r"""The sums of Guo et al. 2019, Eqs 1 to 4, over three blocks: :math:`y_i = \sum_j A_{ij} v_j`.

    Args:
        weights: :math:`A`, the softmax of :func:`windowed_scores`.
        values: :math:`v`; padded positions hold finite numbers (0, say).

    Shape:
        ``(b, h, blocks, w, 3 w)``, ``(b, h, n, d)`` → ``(b, h, n, d)``.

    Example::

        >>> import torch
        >>> from nlilayers.functional import attend_windows
        >>> weights = torch.tensor([[[[[0.0, 0.5, 0.5]], [[0.5, 0.5, 0.0]]]]])  # two blocks of one token
        >>> attend_windows(weights, torch.tensor([[[[1.0], [3.0]]]])).flatten()
        tensor([2., 2.])
    """
    y = weighted_sum(weights, _with_neighbours(values, weights.shape[3]))
    return rearrange(y, "b h blocks i d -> b h (blocks i) d")[:, :, : values.shape[2]]


def _filled(x: Tensor, size: int, beside: int = 0) -> Tensor:
    """``(b, h, n, d)`` with n filled up to a multiple of the size, and so many zeros on either side."""
    return torch.nn.functional.pad(x, (0, 0, beside, beside + -x.shape[2] % size))


def _with_neighbours(x: Tensor, size: int) -> Tensor:
    """Each block between the one before it and the one after it: ``(b, h, n, d)`` → ``(b, h, blocks, 3 size, d)``."""
    blocks = rearrange(_filled(x, size, beside=size), "b h (blocks i) d -> b h blocks i d", i=size)
    return torch.cat([blocks[:, :, :-2], blocks[:, :, 1:-1], blocks[:, :, 2:]], dim=3)
