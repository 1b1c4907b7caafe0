"""The two products that every attention is made of: scores, and sums that they weigh."""

import torch
from torch import Tensor

from nlilayers._precision import are_float16, product


def dot_scores(queries: Tensor, keys: Tensor, scale: float | None = None) -> Tensor:
    r"""Dot products of every query and every key: Parikh et al. 2016, Eqs 1 and 6; Guo et al. 2019, Eq 1.

    .. math:: s_{ij} = \tau\, q_i^\top k_j

    Both papers print :math:`\tau = 1`. The Transformer has :math:`\tau = 1/\sqrt d`, with the features :math:`d` of a
    head. Scores of float16 vectors, or under autocast to float16, are computed and returned in float32: float16 holds
    no number above 65,504.

    Args:
        queries: :math:`q`; :math:`F(\bar a)` in Parikh et al. 2016.
        keys: :math:`k`; :math:`F(\bar b)`, likewise.
        scale: :math:`\tau`; ``None`` means 1.

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
    in_float32 = are_float16(queries, keys)
    if in_float32:
        queries, keys = queries.float(), keys.float()
    if scale is not None:  # a graph would be compiled anew for a number that it is compared with
        queries = queries * scale  # there are fewer of them than scores
    keys = keys.transpose(-2, -1)
    return product(queries, keys) if in_float32 else queries @ keys


def weighted_sum(weights: Tensor, values: Tensor) -> Tensor:
    r"""The sums of Parikh et al. 2016, Eqs 2 and 7, and Guo et al. 2019, Eqs 1 to 4: :math:`y_i = \sum_j w_{ij} v_j`.

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
