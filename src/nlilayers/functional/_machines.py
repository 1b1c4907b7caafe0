"""Factorization machines on rows of features, and their way back in fewer passes over memory than autograd's."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from nlilayers._values import is_transformed


def one_machine(x: Tensor, bias: Tensor, weight: Tensor, factors: Tensor) -> Tensor:
    """The scalar of each row, ``(rows,)``, of features ``(rows, n)``."""
    return _apply(_OneMachine, _one, x, bias, weight, factors)


def three_machines(word: Tensor, other: Tensor, *machines: Tensor) -> Tensor:
    """The scalars of ``[x; a]``, ``x - a`` and ``x * a``, ``(rows, 3)``: a bias, weight and factors for each."""
    return _apply(_ThreeMachines, _three, word, other, *machines)


def _machine(bias: Tensor, *blocks: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The scalars and ``x V``, ``(rows, k)``, of features in blocks, each with its share of the weight and factors."""
    y = bias
    for x, weight, factors in blocks:
        y = torch.addmv(torch.addmv(y, x, weight), x.square(), factors.square().sum(1), alpha=-0.5)
    first, *others = (x @ factors for x, _, factors in blocks)
    projected = sum(others, first)
    return torch.add(y, projected.square().sum(1), alpha=0.5), projected


def _one(x: Tensor, bias: Tensor, weight: Tensor, factors: Tensor) -> tuple[Tensor, ...]:
    return _machine(bias, (x, weight, factors))


def _three(word: Tensor, other: Tensor, *machines: Tensor) -> tuple[Tensor, ...]:
    bias_c, weight_c, factors_c, bias_s, weight_s, factors_s, bias_m, weight_m, factors_m = machines
    d = word.shape[1]
    concat, projected_c = _machine(bias_c, (word, weight_c[:d], factors_c[:d]), (other, weight_c[d:], factors_c[d:]))
    subtract, projected_s = _machine(bias_s, (word - other, weight_s, factors_s))
    multiply, projected_m = _machine(bias_m, (word * other, weight_m, factors_m))
    return torch.stack((concat, subtract, multiply), 1), projected_c, projected_s, projected_m


class _OneMachine(torch.autograd.Function):
    """:func:`_one`, and the gradients of its scalars."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        y, projected = _one(*inputs)
        ctx.save_for_backward(*inputs, projected)
        return y

    @staticmethod
    def backward(ctx: Any, move: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, projected = ctx.saved_tensors
        if torch.is_grad_enabled() or is_transformed(move):
            return _derived(_one, inputs, move)
        x, _, weight, factors = inputs
        to_x = torch.empty_like(x)
        to_weight, to_factors = _back(x, weight, factors, move, projected * move[:, None], to_x)
        return to_x, move.sum(), to_weight, to_factors


class _ThreeMachines(torch.autograd.Function):
    """:func:`_three`, and the gradients of its scalars."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        y, *projected = _three(*inputs)
        ctx.save_for_backward(*inputs, *projected)
        return y

    @staticmethod
    def backward(ctx: Any, move: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, projected_c, projected_s, projected_m = ctx.saved_tensors
        if torch.is_grad_enabled() or is_transformed(move):
            return _derived(_three, inputs, move)
        word, other, _, weight_c, factors_c, _, weight_s, factors_s, _, weight_m, factors_m = inputs
        d = word.shape[1]
        concat, subtract, multiply = move.T.contiguous()
        to_word, to_other, to_features = (torch.empty_like(word) for _ in range(3))

        through = projected_c * concat[:, None]
        first = _back(word, weight_c[:d], factors_c[:d], concat, through, to_word)
        second = _back(other, weight_c[d:], factors_c[d:], concat, through, to_other)
        to_concat = (torch.cat(pair) for pair in zip(first, second, strict=True))

        features = word - other
        to_subtract = _back(features, weight_s, factors_s, subtract, projected_s * subtract[:, None], to_features)
        to_word.add_(to_features)
        to_other.sub_(to_features)

        torch.mul(word, other, out=features)
        to_multiply = _back(features, weight_m, factors_m, multiply, projected_m * multiply[:, None], to_features)
        to_word.addcmul_(to_features, other)
        to_other.addcmul_(to_features, word)

        sums = (concat.sum(), subtract.sum(), multiply.sum())
        return to_word, to_other, sums[0], *to_concat, sums[1], *to_subtract, sums[2], *to_multiply


def _back(
    x: Tensor, weight: Tensor, factors: Tensor, move: Tensor, through: Tensor, to_x: Tensor
) -> tuple[Tensor, Tensor]:
    """What comes back to the weight and the factors; what comes back to x is written to ``to_x``.

    Of moves of the scalars, ``(rows,)``, and of ``x V``, ``(rows, k)``. All that is as large as x is computed in the
    memory of ``to_x``: to write to new memory takes longer than these sums.
    """
    squares = torch.mul(x, x, out=to_x)
    to_factors = torch.addcmul(x.T @ through, (squares.T @ move)[:, None], factors, value=-1)
    torch.addcmul(weight, x, factors.square().sum(1), value=-1, out=to_x)
    to_x.mul_(move[:, None]).addmm_(through, factors.T)
    return x.T @ move, to_factors


def _apply(ours: type[torch.autograd.Function], plain: Callable[..., tuple[Tensor, ...]], *inputs: Tensor) -> Tensor:
    """By our own way back, where nothing but a way back is wanted: compiled, the compiler fuses the passes."""
    if is_transformed(*inputs):
        return plain(*inputs)[0]
    y: Tensor = ours.apply(*inputs)  # type: ignore[no-untyped-call]
    return y


def _derived(
    plain: Callable[..., tuple[Tensor, ...]], inputs: Sequence[Tensor], move: Tensor
) -> tuple[Tensor | None, ...]:
    """What autograd's own way back makes of the move."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        y = plain(*inputs)[0]
    wanted = [x for x in inputs if x.requires_grad]
    back = iter(torch.autograd.grad(y, wanted, move, create_graph=again))
    return tuple(next(back) if x.requires_grad else None for x in inputs)
