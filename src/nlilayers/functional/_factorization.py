"""Factorization machines: the equations of Tay et al. 2018."""

from typing import TypeAlias

import torch
from torch import Tensor

from nlilayers.functional._machines import one_machine, three_machines

Machine: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""The bias, weight and factors of one machine."""


def factorization_machine(x: Tensor, bias: Tensor, weight: Tensor, factors: Tensor) -> Tensor:
    r"""A scalar from all features and all their pairs: Tay et al. 2018, Eqs 6 to 8, after Rendle 2010.

    .. math::

        F_\mathrm{fm}(x) = w_0 + \sum_{i=1}^{n} w_i x_i
                         + \sum_{i=1}^{n} \sum_{j=i+1}^{n} \langle v_i, v_j \rangle\, x_i x_j

    The double sum is half of :math:`\lVert x V \rVert^2 - \sum_i x_i^2 \lVert v_i \rVert^2`, which costs
    :math:`O(nk)`. Computed in at least float32, under autocast too, and returned in the dtype of x: the two terms
    nearly cancel, and float16 holds no square of a number above 255.

    Args:
        x: the features.
        bias: :math:`w_0`.
        weight: :math:`w`.
        factors: :math:`V`, a row :math:`v_i` of :math:`k` numbers for each feature.

    Shape:
        ``(..., n)``, ``()``, ``(n,)``, ``(n, k)`` → ``(...)``; of integers in the weights' dtype.

    Example::

        >>> import torch
        >>> from nlilayers.functional import factorization_machine
        >>> factorization_machine(torch.tensor([1.0, 2.0, 3.0]), torch.tensor(0.5), torch.zeros(3), torch.ones(3, 1))
        tensor(11.5000)
    """
    features, bias, weight, factors = _raised(x, bias, weight, factors)
    y = one_machine(_rows(features), bias, weight, factors)
    return _lowered(y.view(x.shape[:-1]), x.dtype)


def alignment_factorization(
    x: Tensor, aligned: Tensor, concat: Machine, subtract: Machine, multiply: Machine
) -> Tensor:
    r"""Three comparisons of a word with what was aligned to it: Tay et al. 2018, Eqs 9 to 14.

    .. math::

        y_c = F_\mathrm{fm}([x; a]) \qquad y_s = F_\mathrm{fm}(x - a) \qquad y_m = F_\mathrm{fm}(x \odot a)

    with the word :math:`x`, the aligned vector :math:`a` and a machine of its own for each. (The paper has the word
    first in Eqs 12 to 14 and second in Eqs 9 to 11, which is the same but for the sign of a weight and the order of
    rows.) Computed as :func:`factorization_machine` is, without a copy of :math:`[x; a]`.

    Args:
        x: :math:`x`.
        aligned: :math:`a`.
        concat: bias, weight and factors of the machine on :math:`[x; a]`, the rows of :math:`x` first.
        subtract: those of the machine on :math:`x - a`.
        multiply: those of the machine on :math:`x \odot a`.

    Shape:
        ``(..., d)``, ``(..., d)``, and three times ``()``, ``(n,)``, ``(n, k)`` with n = 2 d, d, d → ``(..., 3)``; of
        integers in the weights' dtype.

    Raises:
        RuntimeError: if x and aligned have shapes that cannot be broadcast.

    Example::

        >>> import torch
        >>> from nlilayers.functional import alignment_factorization
        >>> def machine(n):
        ...     return torch.zeros(()), torch.ones(n), torch.zeros(n, 1)
        >>> x, aligned = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
        >>> alignment_factorization(x, aligned, machine(4), machine(2), machine(2))
        tensor([10., -4., 11.])
    """
    if x.shape != aligned.shape:
        x, aligned = torch.broadcast_tensors(x, aligned)  # type: ignore[no-untyped-call]
    word, other, *machines = _raised(x, aligned, *concat, *subtract, *multiply)
    y = three_machines(_rows(word), _rows(other), *machines)
    return _lowered(y.view(*x.shape[:-1], 3), x.dtype)


def _rows(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1])


def _raised(*tensors: Tensor) -> list[Tensor]:
    """All in their common dtype, which is at least float32."""
    dtype = torch.float32
    for tensor in tensors:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return [tensor.to(dtype) for tensor in tensors]


def _lowered(y: Tensor, dtype: torch.dtype) -> Tensor:
    """In the dtype of the features, unless that holds integers alone."""
    return y.to(dtype) if dtype.is_floating_point else y
