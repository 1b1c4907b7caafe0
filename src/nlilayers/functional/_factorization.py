"""Factorization machines: the equations of Tay et al. 2018."""

import inspect
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import torch
from torch import Tensor

from nlilayers._precision import without_autocast
from nlilayers._values import is_transformed

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
        y = _total(bias, *_parts((_rows(raised), weight, factors)))
    return y.view(x.shape[:-1]).to(x.dtype)


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
        word, other, *machines = _raised(x, aligned, *concat, *subtract, *multiply)
        bias_c, weight_c, factors_c, bias_s, weight_s, factors_s, bias_m, weight_m, factors_m = machines
        d, word, other = x.shape[-1], _rows(word), _rows(other)
        first, second, difference, product = _parts(
            (word, weight_c[:d], factors_c[:d]),
            (other, weight_c[d:], factors_c[d:]),
            (word - other, weight_s, factors_s),
            (word * other, weight_m, factors_m),
        )
        y_c = _total(bias_c, first, second)
        y_s = _total(bias_s, difference)
        y_m = _total(bias_m, product)
    return torch.stack((y_c, y_s, y_m), -1).view(*x.shape[:-1], 3).to(x.dtype)


def _total(bias: Tensor, first: Sequence[Tensor], *others: Sequence[Tensor]) -> Tensor:
    """A machine's scalar from the parts of its features: the terms of one feature at a time, and ``x V``."""
    one_by_one, projected = first
    for terms, projection in others:
        one_by_one, projected = one_by_one + terms, projected + projection
    return torch.add(bias + one_by_one, projected.square().sum(-1), alpha=0.5)


def _rows(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1])


def _parts(*blocks: tuple[Tensor, Tensor, Tensor]) -> list[tuple[Tensor, ...]]:
    """The part of each block of features, ``(rows, d)``, given with its share of the weight and the factors."""
    # Compiled, the way back is the compiler's own: it fuses the passes, and takes no jvp of ours. Under torch.func,
    # forward mode within forward mode loses what is saved for a way forth of one's own.
    parts: Any = _Parts.forward if is_transformed() else _Parts.apply
    return list(_by(2, parts(*chain.from_iterable(blocks))))


def _by(size: int, tensors: Sequence[Tensor]) -> Iterator[tuple[Tensor, ...]]:
    """So many at a time."""
    return zip(*(tensors[k::size] for k in range(size)), strict=True)


class _Parts(torch.autograd.Function):
    """A matrix product for each block, and two on the way back, where autograd's own takes several more passes."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*blocks: Tensor) -> tuple[Tensor, ...]:
        """``x w - x^2 |v|^2 / 2``, ``(rows,)``, and ``x V``, ``(rows, k)``, for each x, w and V."""
        parts: list[Tensor] = []
        for x, weight, factors in _by(3, blocks):
            parts += [torch.addmv(x @ weight, x.square(), factors.square().sum(1), alpha=-0.5), x @ factors]
        return tuple(parts)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, *moves: Tensor) -> tuple[Tensor, ...]:
        back: list[Tensor] = []
        for (x, weight, factors), (one_by_one, projected) in zip(_by(3, ctx.saved_tensors), _by(2, moves), strict=True):
            through_factors = projected @ factors.T
            from_itself = torch.addcmul(weight, x, factors.square().sum(1), value=-1)
            # In place, for a new tensor of this size costs more than the sum; but not to be differentiated again.
            add = through_factors.addcmul if torch.is_grad_enabled() else through_factors.addcmul_
            to_factors = torch.addcmul(x.T @ projected, (x.square().T @ one_by_one)[:, None], factors, value=-1)
            back += [add(from_itself, one_by_one[:, None]), x.T @ one_by_one, to_factors]
        return tuple(back)

    @staticmethod
    def jvp(ctx: Any, *moves: Tensor) -> tuple[Tensor, ...]:
        forth: list[Tensor] = []
        for (x, weight, factors), (to_x, to_weight, to_factors) in zip(
            _by(3, ctx.saved_tensors), _by(3, moves), strict=True
        ):
            linear = to_x @ weight + x @ to_weight
            squares = (x * to_x) @ factors.square().sum(1) + x.square() @ (factors * to_factors).sum(1)
            forth += [linear - squares, to_x @ factors + x @ to_factors]
        return tuple(forth)


# PyTorch reads it anew at every call, which takes longer than a small product.
_Parts.forward.__signature__ = inspect.signature(_Parts.forward)  # type: ignore[attr-defined]


def _raised(*tensors: Tensor) -> list[Tensor]:
    """All in their common dtype, which is at least float32."""
    dtype = torch.float32
    for tensor in tensors:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return [tensor.to(dtype) for tensor in tensors]
