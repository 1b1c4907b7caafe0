"""The two products that every attention is made of: scores, and sums that they weigh."""

import torch
from torch import Tensor

from nlilayers._precision import are_float16, product


def dot_scores(queries: Tensor, keys: Tensor) -> Tensor:
    r"""Decomposed attention scores: Parikh et al. 2016, Eq 1 (and Eq 6, with one sentence on both sides).

    .. math:: e_{ij} = F(\bar a_i)^\top F(\bar b_j)

    Scores of float16 vectors, or under autocast to float16, are computed and returned in float32: float16 holds no
    number above 65,504.

    Args:
        queries: :math:`F(\bar a)`.
        keys: :math:`F(\bar b)`.

    Shape:
        ``(..., n, d)``, ``(..., m, d)`` → ``(..., n, m)``.

    Raises:
        RuntimeError: if the axes or, outside autocast, the dtypes do not match.

    Example::

        >>> import torch
        >>> from nlilayers.functional import dot_scores
        >>> dot_scores(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 4.0], [0.0, 1.0]]]))
        tensor([[[11.,  2.]]])
    """
    if are_float16(queries, keys):
        return product(queries.float(), keys.float().transpose(-2, -1))
    return queries @ keys.transpose(-2, -1)


def scaled_scores(queries: Tensor, keys: Tensor, scale: float) -> Tensor:
    """:func:`dot_scores` times a factor: the queries are multiplied by it, for there are fewer of them than scores."""
    if are_float16(queries, keys):
        queries, keys = queries.float(), keys.float()
    return dot_scores(queries * scale, keys)


def weighted_sum(weights: Tensor, values: Tensor) -> Tensor:
    r"""The sums of Parikh et al. 2016, Eqs 2 and 7: :math:`y_i = \sum_j w_{ij} v_j`.

    Args:
        weights: :math:`w`, a row for each output, of any floating dtype.
        values: :math:`v`, whose dtype the sums have (under autocast, as of any product, the lower one). Those of
            float16 are computed in float32, as are their gradients.

    Shape:
        ``(..., n, m)``, ``(..., m, d)`` → ``(..., n, d)``.

    Raises:
        RuntimeError: if the axes do not match.

    Example::

        >>> import torch
        >>> from nlilayers.functional import weighted_sum
        >>> weighted_sum(torch.tensor([[[0.5, 0.5]]]), torch.tensor([[[1.0], [3.0]]]))
        tensor([[[2.]]])
    """
    if are_float16(values):
        return product(weights.float(), values.float()).to(torch.float16)
    return weights.to(values.dtype) @ values
