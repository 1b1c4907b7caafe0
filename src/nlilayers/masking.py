"""Masks of real tokens: how they are made, and sequences, softmaxes and pools that keep to them.

A mask is boolean, ``(batch, length)``, and **True marks a real token**. (The ``key_padding_mask`` of
:class:`torch.nn.MultiheadAttention` marks the padding instead: pass its negation here.) A padded position never
influences a real one, in value or in gradient, whatever it holds; a sentence without a real token gives 0.

>>> import torch
>>> from nlilayers import masking
>>> mask = masking.lengths_to_mask(torch.tensor([2, 3]))
>>> mask
tensor([[ True,  True, False],
        [ True,  True,  True]])
>>> masking.masked_mean(torch.tensor([[[1.0], [3.0], [999.0]], [[1.0], [2.0], [6.0]]]), mask)
tensor([[2.],
        [3.]])
"""

from typing import Any

import torch
from torch import Tensor

from nlilayers._checks import (
    require_integers,
    require_lengths,
    require_mask,
    require_scores,
    require_sequence,
    require_tensor,
)
from nlilayers._hiding import hide_masked
from nlilayers._precision import at_least_float32
from nlilayers._values import is_jit_traced, read_values
from nlilayers._zeroing import zero_masked

__all__ = [
    "lengths_to_mask",
    "masked_max",
    "masked_mean",
    "masked_softmax",
    "masked_sum",
    "pair_mask",
    "zero_padding",
]


def lengths_to_mask(lengths: Tensor, max_length: int | None = None) -> Tensor:
    """The mask of sentences that are padded on the right.

    Args:
        lengths: real tokens of each sentence, integers of shape ``(batch,)``.
        max_length: columns of the mask; ``None`` takes the longest sentence's length, which cannot be read under
            ``vmap``, on the meta device or while a CUDA graph is recorded. Either way the lengths are read to be
            checked, which waits for their device.

    Shape:
        ``(batch,)`` → ``(batch, max_length)``, boolean.

    Raises:
        TypeError: if ``lengths`` is not a tensor, or ``max_length`` not an integer.
        ValueError: if ``lengths`` is not one-dimensional and of integers, if ``max_length`` is negative, or if a length
            is negative or above ``max_length``. (The last two read the lengths: compiled code, ``vmap``, a CUDA graph
            that is recorded and the meta device leave them out.)

    Example::

        >>> lengths_to_mask(torch.tensor([1, 0]), max_length=2)
        tensor([[ True, False],
                [False, False]])
    """
    require_tensor("lengths", lengths)
    if lengths.ndim != 1 or lengths.dtype.is_floating_point or lengths.dtype.is_complex or lengths.dtype == torch.bool:
        raise ValueError(
            f"lengths must be integers of shape (batch,), got {lengths.dtype} of shape {tuple(lengths.shape)}"
        )
    if max_length is not None:
        require_lengths(max_length=max_length)
    lengths = lengths.long()  # torch compares no unsigned integers of more than 8 bits
    known = read_values(lengths) if lengths.numel() else [0]
    if known and (min(known) < 0 or (max_length is not None and max(known) > max_length)):
        wanted = "be at least 0" if max_length is None else f"lie between 0 and max_length={max_length}"
        raise ValueError(f"lengths must {wanted}, got values from {min(known)} to {max(known)}")
    longest: Any = max_length
    if longest is None:
        longest = _longest(lengths) if known is None else max(known)
    return torch.arange(longest, device=lengths.device) < lengths[:, None]


def _longest(lengths: Tensor) -> Any:
    """As a tensor where a number would be kept for all calls."""
    longest = lengths.max()
    return longest if is_jit_traced() else longest.item()


def zero_padding(x: Tensor, mask: Tensor | None) -> Tensor:
    """The sequence with every padded position set to exactly 0; no gradient flows back into the padding.

    Args:
        x: floating-point sequence, ``(batch, length, features)``.
        mask: real tokens, ``(batch, length)``; ``None`` means all.

    Shape:
        ``(batch, length, features)`` → the same: a new tensor, or ``x`` itself without a mask.

    Raises:
        TypeError: if ``x`` or ``mask`` is not a tensor.
        ValueError: if ``x`` or ``mask`` has another dtype or shape.

    Example::

        >>> zero_padding(torch.tensor([[[1.0], [float("nan")]]]), torch.tensor([[True, False]]))
        tensor([[[1.],
                 [0.]]])
    """
    require_sequence("x", x)
    require_mask("mask", mask, x.shape[:2])
    return x if mask is None else zero_masked(x, mask[..., None])


def pair_mask(query_mask: Tensor | None, key_mask: Tensor | None) -> Tensor | None:
    """The mask of all (query, key) pairs in which both tokens are real, with an axis of 1 where nothing is masked.

    Args:
        query_mask: real queries, ``(b, n)``; ``None`` means all.
        key_mask: real keys, ``(b, m)``; ``None`` means all.

    Shape:
        ``(b, n)``, ``(b, m)`` → ``(b, n, m)``; ``(b, n, 1)`` or ``(b, 1, m)`` where the other is ``None``, and
        ``None`` where both are.

    Raises:
        TypeError: if a mask is not a tensor.
        ValueError: if a mask is not boolean of two dimensions, or if they are of different batches.

    Example::

        >>> pair_mask(torch.tensor([[True, False]]), torch.tensor([[True, True, False]]))
        tensor([[[ True,  True, False],
                 [False, False, False]]])
    """
    for name, mask in (("query_mask", query_mask), ("key_mask", key_mask)):
        if mask is not None:
            require_tensor(name, mask)
            if mask.dtype != torch.bool or mask.ndim != 2:
                raise ValueError(
                    f"{name} must be torch.bool of shape (batch, length) with True for real tokens, "
                    f"got {mask.dtype} of shape {tuple(mask.shape)}"
                )
    if query_mask is None:
        return None if key_mask is None else key_mask[:, None, :]
    if key_mask is None:
        return query_mask[:, :, None]
    if query_mask.shape[0] != key_mask.shape[0]:
        raise ValueError(
            "query_mask and key_mask must have the same batch, "
            f"got {tuple(query_mask.shape)} and {tuple(key_mask.shape)}"
        )
    return query_mask[:, :, None] & key_mask[:, None, :]


def masked_softmax(scores: Tensor, mask: Tensor | None, dim: int = -1) -> Tensor:
    r"""A softmax over the real entries of ``dim``.

    .. math:: p_j = \frac{m_j \exp(s_j)}{\sum_k m_k \exp(s_k)}

    with the scores :math:`s` and the mask :math:`m`. It is computed in at least float32 and returned in the dtype of
    the scores. Masked entries get exactly 0 and pass no gradient; a row with no real entry is 0 throughout. The
    gradients that arrive at masked entries have to be finite, as they are not for :math:`\ln p`: fill :math:`p` with
    1 there before you take its logarithm.

    Args:
        scores: real numbers, of one or more dimensions. :math:`-\infty` gets 0; a row whose real scores are all
            :math:`-\infty` is NaN throughout, as in :func:`torch.softmax`: mask such entries instead.
        mask: either of as many dimensions as the scores, each equal to theirs or 1; or ``(batch, length)`` with the
            length of ``dim``: the mask of the tokens that the softmax runs over. ``None`` means all real.
        dim: the dimension that sums to 1.

    Shape:
        any → the same.

    Raises:
        TypeError: if the scores or the mask are not a tensor, or ``dim`` is not an integer.
        ValueError: if the scores are not floating point, if they have no such dimension, or if the mask is not boolean
            or fits neither form.

    Example::

        >>> masked_softmax(torch.zeros(2, 3), torch.tensor([[True, True, False], [False, False, False]]))
        tensor([[0.5000, 0.5000, 0.0000],
                [0.0000, 0.0000, 0.0000]])
    """
    require_scores(scores)
    require_integers(dim=dim)
    if not -scores.ndim <= dim < scores.ndim:
        raise ValueError(f"dim must be one of the {scores.ndim} dimensions of the scores, got {dim}")
    raised = scores.to(at_least_float32(scores.dtype))
    if mask is None:
        return raised.softmax(dim).to(scores.dtype)
    mask = _with_all_dimensions(mask, scores, dim)
    has_real = mask.any(dim, keepdim=True)
    weights = hide_masked(raised, mask, has_real).softmax(dim)
    return (weights * has_real).to(scores.dtype)


def masked_sum(x: Tensor, mask: Tensor | None) -> Tensor:
    r"""The sum over the real tokens, :math:`y = \sum_i m_i x_i`; 0 where there is none.

    Args:
        x: floating-point sequence, ``(batch, length, features)``.
        mask: real tokens, ``(batch, length)``; ``None`` means all.

    Shape:
        ``(batch, length, features)`` → ``(batch, features)``.

    Raises:
        TypeError: if ``x`` or ``mask`` is not a tensor.
        ValueError: if ``x`` or ``mask`` has another dtype or shape.

    Example::

        >>> masked_sum(torch.tensor([[[1.0], [2.0], [4.0]]]), torch.tensor([[True, False, True]]))
        tensor([[5.]])
    """
    return zero_padding(x, mask).sum(1)


def masked_mean(x: Tensor, mask: Tensor | None) -> Tensor:
    r"""The mean over the real tokens, :math:`y = \sum_i m_i x_i / \sum_i m_i`; 0 where there is none.

    The sum is taken in at least float32, so that a long half-precision sequence does not overflow on the way.

    Args:
        x: floating-point sequence, ``(batch, length, features)``.
        mask: real tokens, ``(batch, length)``; ``None`` means all.

    Shape:
        ``(batch, length, features)`` → ``(batch, features)``.

    Raises:
        TypeError: if ``x`` or ``mask`` is not a tensor.
        ValueError: if ``x`` or ``mask`` has another dtype or shape.

    Example::

        >>> masked_mean(torch.tensor([[[1.0], [2.0], [4.0]]]), torch.tensor([[True, False, True]]))
        tensor([[2.5000]])
    """
    total = zero_padding(x, mask).sum(1, dtype=at_least_float32(x.dtype))
    count = torch.full_like(total[:, :1], x.shape[1]) if mask is None else mask.sum(1, keepdim=True)
    return (total / count.clamp(min=1)).to(x.dtype)


def masked_max(x: Tensor, mask: Tensor | None) -> Tensor:
    r"""The largest value of each feature over the real tokens, :math:`y_c = \max_{i: m_i} x_{ic}`; 0 where none is.

    Padding never wins, even over values that are all negative. Tied tokens share the gradient equally (padding takes
    a share where the largest real value is :math:`-\infty`).

    Args:
        x: floating-point sequence, ``(batch, length, features)``.
        mask: real tokens, ``(batch, length)``; ``None`` means all.

    Shape:
        ``(batch, length, features)`` → ``(batch, features)``.

    Raises:
        TypeError: if ``x`` or ``mask`` is not a tensor.
        ValueError: if ``x`` or ``mask`` has another dtype or shape.

    Example::

        >>> masked_max(torch.tensor([[[-3.0], [-2.0], [9.0]]]), torch.tensor([[True, True, False]]))
        tensor([[-2.]])
    """
    require_sequence("x", x)
    require_mask("mask", mask, x.shape[:2])
    if x.shape[1] == 0:
        return x.sum(1)
    if mask is None:
        return x.amax(1)
    largest = x.masked_fill(~mask[..., None], float("-inf")).amax(1)
    return largest.masked_fill(~mask.any(1, keepdim=True), 0)


def _with_all_dimensions(mask: Tensor, scores: Tensor, dim: int) -> Tensor:
    """The mask with as many dimensions as the scores, to which it broadcasts."""
    require_tensor("mask", mask)
    fits = mask.ndim == scores.ndim and all(m in (1, s) for m, s in zip(mask.shape, scores.shape, strict=True))
    # By ndim first: a graph would keep a comparison of lengths as a condition, and refuse squares of scores.
    over_tokens = mask.ndim == 2 and scores.ndim > 2 and dim % scores.ndim > 0
    tokens = over_tokens and tuple(mask.shape) == (scores.shape[0], scores.shape[dim])
    if mask.dtype != torch.bool or not (fits or tokens):
        raise ValueError(
            f"mask must be torch.bool with True for real tokens, of a shape that broadcasts to {tuple(scores.shape)} "
            f"with as many dimensions, or (batch, length) for the tokens of dimension {dim}, "
            f"got {mask.dtype} of shape {tuple(mask.shape)}"
        )
    if fits:
        return mask
    shape = [1] * scores.ndim
    shape[0], shape[dim] = mask.shape
    return mask.view(shape)
