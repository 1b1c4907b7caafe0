"""Factorization machines: the equations of Tay et al. 2018."""

import inspect
from typing import Any, TypeAlias

import torch
from torch import Tensor

from nlilayers._precision import without_autocast

Machine: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""The bias, weight and factors of one machine."""


def factorization_machine(x: Tensor, bias: Tensor, weight: Tensor, factors: Tensor) -> Tensor:
    r"""A scalar from all features and all their pairs: Tay et al. 2018, Eqs 6 to 8, after Rendle 2010.

    .. math::

        F_\mathrm{fm}(x) = w_0 + \sum_{i=1}^{n} w_i x_i
                         + \sum_{i=1}^{n} \sum_{j=i+1}^{n} \langle v_i, v_j \rangle\, x_i x_j

    The double sum is half of :math:`\lVert x V \rVert^2 - \sum_i x_i^2 \lVert v_i \rVert^2`, which costs
    :math:`O(nk)`. Computed in at least float32, under autocast too, and returned in the dtype of x: the two terms
    nearly cancel, and a half holds no square of a number above 255.

    Args:
        x: the features.
        bias: :math:`w_0`.
        weight: :math:`w`.
        factors: :math:`V`, a row :math:`v_i` of :math:`k` numbers for each feature.

    Shape:
        ``(..., n)``, ``()``, ``(n,)``, ``(n, k)`` → ``(...)``.

    Example::

        >>> import torch
        >>> from nlilayers.functional import factorization_machine
        >>> factorization_machine(torch.tensor([1.0, 2.0, 3.0]), torch.tensor(0.5), torch.zeros(3), torch.ones(3, 1))
        tensor(11.5000)
    """
    with without_autocast(x):
        raised, bias, weight, factors = _raised(x, bias, weight, factors)
        one_by_one, projected = _parts(raised, weight, factors)
        y = torch.add(bias + one_by_one, projected.square().sum(-1), alpha=0.5)
    return y.to(x.dtype)


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
        ``(..., d)``, ``(..., d)``, and three times ``()``, ``(n,)``, ``(n, k)`` with n = 2 d, d, d → ``(..., 3)``.

    Example::

        >>> import torch
        >>> from nlilayers.functional import alignment_factorization
        >>> def machine(n):
        ...     return torch.zeros(()), torch.ones(n), torch.zeros(n, 1)
        >>> x, aligned = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
        >>> alignment_factorization(x, aligned, machine(4), machine(2), machine(2))
        tensor([10., -4., 11.])
    """
    with without_autocast(x):
        word, other, bias, weight, factors = _raised(x, aligned, *concat)
        d = x.shape[-1]
        parts = (_parts(word, weight[:d], factors[:d]), _parts(other, weight[d:], factors[d:]))
        one_by_one, projected = (first + second for first, second in zip(*parts, strict=True))
        y_c = torch.add(bias + one_by_one, projected.square().sum(-1), alpha=0.5)
        y_s = factorization_machine(word - other, *subtract)
        y_m = factorization_machine(word * other, *multiply)
    return torch.stack((y_c, y_s, y_m), -1).to(x.dtype)


def _parts(x: Tensor, weight: Tensor, factors: Tensor) -> tuple[Tensor, Tensor]:
    """The terms of one feature at a time, the linear ones less half the pairs of a feature with itself; and ``x V``."""
    rows = x.reshape(-1, x.shape[-1])
    # Compiled, the way back is the compiler's own: it fuses the passes, and takes no jvp of ours.
    parts: Any = _Parts.forward if torch.compiler.is_compiling() else _Parts.apply
    one_by_one, projected = parts(rows, weight, factors)
    return one_by_one.view(x.shape[:-1]), projected.view(*x.shape[:-1], factors.shape[1])


class _Parts(torch.autograd.Function):
    """One matrix product, and two on the way back, where autograd's own takes several more passes over x."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, factors: Tensor) -> tuple[Tensor, Tensor]:
        """``x w - x^2 |v|^2 / 2``, ``(rows,)``, and ``x V``, ``(rows, k)``."""
        return torch.addmv(x @ weight, x.square(), factors.square().sum(1), alpha=-0.5), x @ factors

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, one_by_one: Tensor, projected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight, factors = ctx.saved_tensors
        through_factors = projected @ factors.T
        from_itself = torch.addcmul(weight, x, factors.square().sum(1), value=-1)
        # In place, for a new tensor of this size costs more than the sum; but not where this is differentiated again.
        add = through_factors.addcmul if torch.is_grad_enabled() else through_factors.addcmul_
        to_factors = torch.addcmul(x.T @ projected, (x.square().T @ one_by_one)[:, None], factors, value=-1)
        return add(from_itself, one_by_one[:, None]), x.T @ one_by_one, to_factors

    @staticmethod
    def jvp(ctx: Any, x_moves: Tensor, weight_moves: Tensor, factors_move: Tensor) -> tuple[Tensor, Tensor]:
        x, weight, factors = ctx.saved_tensors
        linear = x_moves @ weight + x @ weight_moves
        squares = (x * x_moves) @ factors.square().sum(1) + x.square() @ (factors * factors_move).sum(1)
        return linear - squares, x_moves @ factors + x @ factors_move


# PyTorch reads it anew at every call, which takes longer than a small product.
_Parts.forward.__signature__ = inspect.signature(_Parts.forward)  # type: ignore[attr-defined]


def _raised(*tensors: Tensor) -> list[Tensor]:
    """All in their common dtype, which is at least float32."""
    dtype = torch.float32
    for tensor in tensors:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return [tensor.to(dtype) for tensor in tensors]
