"""The two products that every attention is made of: scores, and sums that they weigh."""

from torch import Tensor


def dot_scores(queries: Tensor, keys: Tensor) -> Tensor:
    r"""Decomposed attention scores: Parikh et al. 2016, Eq 1 (and Eq 6, with one sentence on both sides).

    .. math:: e_{ij} = F(\bar a_i)^\top F(\bar b_j)

    Args:
        queries: :math:`F(\bar a)`.
        keys: :math:`F(\bar b)`.

    Shape:
        ``(..., n, d)``, ``(..., m, d)`` → ``(..., n, m)``.

    Raises:
        RuntimeError: if the axes do not match.

    Example::

        >>> import torch
        >>> from nlilayers.functional import dot_scores
        >>> dot_scores(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 4.0], [0.0, 1.0]]]))
        tensor([[[11.,  2.]]])
    """
    return queries @ keys.mT


def weighted_sum(weights: Tensor, values: Tensor) -> Tensor:
    r"""The sums of Parikh et al. 2016, Eqs 2 and 7: :math:`y_i = \sum_j w_{ij} v_j`.

    Args:
        weights: :math:`w`, a row for each output.
        values: :math:`v`.

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
    return weights @ values
