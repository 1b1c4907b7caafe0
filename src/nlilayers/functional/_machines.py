"""Factorization machines on rows of features, and their way back in fewer passes over memory than autograd's."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch
from torch import Tensor

from nlilayers._values import is_transformed

Block: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Some of a machine's features, ``(rows, n)``, and their share of its weight and its factors."""


def one_machine(x: Tensor, bias: Tensor, weight: Tensor, factors: Tensor) -> Tensor:
    """The scalar of each row, ``(rows,)``, of features ``(rows, n)``."""
    (y,) = _apply(_OneMachine, _one, x, weight, factors)
    return bias + y


def three_machines(word: Tensor, other: Tensor, *machines: Tensor) -> Tensor:
    """The scalars of ``[x; a]``, ``x - a`` and ``x * a``, ``(rows, 3)``: a bias, weight and factors for each."""
    biases, others = machines[::3], (tensor for k, tensor in enumerate(machines) if k % 3)
    ys = _apply(_ThreeMachines, _three, word, other, *others)
    return torch.stack([bias + y for bias, y in zip(biases, ys, strict=True)], 1)


def _one(x: Tensor, weight: Tensor, factors: Tensor) -> tuple[tuple[Tensor, Tensor], ...]:
    return (_machine((x, weight, factors)),)


def _three(word: Tensor, other: Tensor, *machines: Tensor) -> tuple[tuple[Tensor, Tensor], ...]:
    weight_c, factors_c, weight_s, factors_s, weight_m, factors_m = machines
    return (
        _machine(*_halves(word, other, weight_c, factors_c)),
        _machine((word - other, weight_s, factors_s)),
        _machine((word * other, weight_m, factors_m)),
    )


def _machine(*blocks: Block) -> tuple[Tensor, Tensor]:
    """The scalars without their bias, and ``x V``, ``(rows, k)``, of features in blocks."""
    terms = (
        (torch.addcmul(weight, x, factors.square().sum(1), value=-0.5) * x).sum(1) for x, weight, factors in blocks
    )
    projected = _projected(*blocks)
    return torch.add(_sum(terms), projected.square().sum(1), alpha=0.5), projected


def _projected(*blocks: Block) -> Tensor:
    return _sum(x @ factors for x, _, factors in blocks)


def _sum(tensors: Iterable[Tensor]) -> Tensor:
    first, *others = tensors
    return sum(others, first)


def _halves(word: Tensor, other: Tensor, weight: Tensor, factors: Tensor) -> tuple[Block, Block]:
    """The blocks of ``[x; a]``, which is never copied."""
    d = word.shape[1]
    return (word, weight[:d], factors[:d]), (other, weight[d:], factors[d:])


def _apply(
    ours: type[torch.autograd.Function], plain: Callable[..., tuple[tuple[Tensor, Tensor], ...]], *inputs: Tensor
) -> tuple[Tensor, ...]:
    """The scalars of each machine, by the function that has its own way back, and no other transformation.

    Compiled, the way back is the compiler's: it fuses the passes.
    """
    if is_transformed(*inputs):
        return tuple(y for y, _ in plain(*inputs))
    ys: tuple[Tensor, ...] = ours.apply(*inputs)  # type: ignore[no-untyped-call]
    return ys


class _OneMachine(torch.autograd.Function):
    """:func:`_one`, and its gradients."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
        return _kept(ctx, inputs, _one(*inputs))

    @staticmethod
    def backward(ctx: Any, move: Tensor) -> tuple[Tensor, ...]:
        *inputs, projected = ctx.saved_tensors
        x, weight, factors = inputs
        block = x, weight, factors
        place = None if _goes_on(move) else torch.empty_like(x)
        return _back(block, move, _through(move, projected, block), place)


class _ThreeMachines(torch.autograd.Function):
    """:func:`_three`, and its gradients."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
        return _kept(ctx, inputs, _three(*inputs))

    @staticmethod
    def backward(ctx: Any, *moves: Tensor) -> tuple[Tensor, ...]:
        *inputs, projected_c, projected_s, projected_m = ctx.saved_tensors
        word, other, weight_c, factors_c, weight_s, factors_s, weight_m, factors_m = inputs
        concat, subtract, multiply = moves
        # Features are the difference, then the product; what comes back to them is written to a place of its own.
        features = word - other
        places = (None,) * 4 if _goes_on(*moves) else (*(torch.empty_like(word) for _ in range(3)), features)
        at_word, at_other, at_features, of_features = places

        left, right = _halves(word, other, weight_c, factors_c)
        through = _through(concat, projected_c, left, right)
        to_word, *first = _back(left, concat, through, at_word)
        to_other, *second = _back(right, concat, through, at_other)
        to_concat = (torch.cat(pair) for pair in zip(first, second, strict=True))

        block = features, weight_s, factors_s
        to_features, *to_subtract = _back(block, subtract, _through(subtract, projected_s, block), at_features)
        to_word = torch.add(to_word, to_features, out=at_word)
        to_other = torch.sub(to_other, to_features, out=at_other)

        block = torch.mul(word, other, out=of_features), weight_m, factors_m
        to_features, *to_multiply = _back(block, multiply, _through(multiply, projected_m, block), at_features)
        to_word = torch.addcmul(to_word, to_features, other, out=at_word)
        to_other = torch.addcmul(to_other, to_features, word, out=at_other)
        return to_word, to_other, *to_concat, *to_subtract, *to_multiply


def _kept(ctx: Any, inputs: tuple[Tensor, ...], machines: tuple[tuple[Tensor, Tensor], ...]) -> tuple[Tensor, ...]:
    """The scalars of each machine; its ``x V`` and the inputs are what the way back needs."""
    ys, projected = zip(*machines, strict=True)
    ctx.save_for_backward(*inputs, *projected)
    return ys


def _goes_on(*moves: Tensor) -> bool:
    """Whether the way back is followed itself, by another derivative or for many moves at once: nothing in place."""
    return torch.is_grad_enabled() or is_transformed(*moves)


def _through(move: Tensor, projected: Tensor, *blocks: Block) -> Tensor:
    """What comes back to ``x V``, of which a scalar has half the square."""
    return move[:, None] * (_projected(*blocks) if torch.is_grad_enabled() else projected)


def _back(block: Block, move: Tensor, through: Tensor, place: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """What comes back to features, weight and factors, from the scalars and from ``x V``.

    All that is as large as the features is computed in one place: new memory takes longer than these sums.
    """
    x, weight, factors = block
    squares = torch.mul(x, x, out=place)
    to_factors = torch.addcmul(x.T @ through, (squares.T @ move)[:, None], factors, value=-1)
    by_itself = torch.addcmul(weight, x, factors.square().sum(1), value=-1, out=place)
    by_itself = torch.mul(by_itself, move[:, None], out=place)
    return torch.addmm(by_itself, through, factors.T, out=place), x.T @ move, to_factors
