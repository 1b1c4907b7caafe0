"""Factorization machines on rows of features; their backward pass goes over memory fewer times than autograd's."""

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch
from torch import Tensor

from nlilayers._precision import product, without_autocast
from nlilayers._values import is_traced, is_transformed

Block: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Some of a machine's features, ``(rows, n)``, and their share of its weight and its factors."""
Backward: TypeAlias = Callable[..., tuple[Tensor | None, ...]]
FROZEN: tuple[Any, Any] = (None, None)
"""The gradients of two tensors that need none."""


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
    projected = _projected(*blocks)
    single = _sum(product(x, weight) for x, weight, _ in blocks)
    squared = _sum(product(x.square(), factors.square().sum(1)) for x, _, factors in blocks)
    return single + 0.5 * (projected.square().sum(1) - squared), projected


def _projected(*blocks: Block) -> Tensor:
    return _sum(product(x, factors) for x, _, factors in blocks)


def _sum(tensors: Iterable[Tensor]) -> Tensor:
    first, *others = tensors
    return sum(others, first)


def _halves(word: Tensor, other: Tensor, weight: Tensor, factors: Tensor) -> tuple[Block, Block]:
    """The blocks of ``[x; a]``, which is never copied."""
    d = word.shape[1]
    return (word, weight[:d], factors[:d]), (other, weight[d:], factors[d:])


def _apply(
    function: type[torch.autograd.Function], plain: Callable[..., tuple[tuple[Tensor, Tensor], ...]], *inputs: Tensor
) -> tuple[Tensor, ...]:
    """The scalars of each machine; where there may be a backward pass, by the function that has its own.

    Compiled, the backward pass is the compiler's, which fuses the passes over memory; transformed, the transform's. A
    trace keeps no Python.
    """
    if not torch.is_grad_enabled() or is_traced() or is_transformed(*inputs):
        return tuple(y for y, _ in plain(*inputs))
    ys: tuple[Tensor, ...] = function.apply(*inputs)  # type: ignore[no-untyped-call]
    return ys


def _as_without_autocast(backward: Backward) -> Backward:
    """A backward pass that autocast does not lower where it is called within it."""

    @functools.wraps(backward)
    def unlowered(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        with without_autocast(grads[0]):
            return backward(ctx, *grads)

    return unlowered


class _OneMachine(torch.autograd.Function):
    """:func:`_one`, and its gradients."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
        return _saved(ctx, inputs, _one(*inputs))

    @staticmethod
    @_as_without_autocast
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, factors, projected = ctx.saved_tensors
        of_features, *of_machine = ctx.needs_input_grad
        block = x, weight, factors
        given = block, grad, _projected_grad(grad, projected, block)
        out = None if _is_differentiated(grad) else torch.empty_like(x)
        grads = _machine_grads(*given, out) if any(of_machine) else FROZEN
        return (_features_grad(*given, out) if of_features else None), *grads


class _ThreeMachines(torch.autograd.Function):
    """:func:`_three`, and its gradients."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
        return _saved(ctx, inputs, _three(*inputs))

    @staticmethod
    @_as_without_autocast
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, projected_c, projected_s, projected_m = ctx.saved_tensors
        word, other, weight_c, factors_c, weight_s, factors_s, weight_m, factors_m = inputs
        grad_c, grad_s, grad_m = grads
        of_words, of_machines = any(ctx.needs_input_grad[:2]), any(ctx.needs_input_grad[2:])
        grad_word, grad_other = grads_c = grads_s = grads_m = FROZEN
        # Features are the difference, then the product; both have their gradient written to the same memory.
        difference = word - other
        outs = (None,) * 4 if _is_differentiated(*grads) else (*(torch.empty_like(word) for _ in range(3)), difference)
        out_word, out_other, out_grad, out_product = outs

        left, right = _halves(word, other, weight_c, factors_c)
        grad_projected = _projected_grad(grad_c, projected_c, left, right)
        given_l, given_r = (left, grad_c, grad_projected), (right, grad_c, grad_projected)
        if of_machines:
            weight_l, factors_l = _machine_grads(*given_l, out_word)
            weight_r, factors_r = _machine_grads(*given_r, out_other)
            grads_c = torch.cat((weight_l, weight_r)), torch.cat((factors_l, factors_r))
        if of_words:
            grad_word, grad_other = _features_grad(*given_l, out_word), _features_grad(*given_r, out_other)

        block = difference, weight_s, factors_s
        given = block, grad_s, _projected_grad(grad_s, projected_s, block)
        if of_machines:
            grads_s = _machine_grads(*given, out_grad)
        if of_words:
            grad_features = _features_grad(*given, out_grad)
            grad_word = torch.add(grad_word, grad_features, out=out_word)
            grad_other = torch.sub(grad_other, grad_features, out=out_other)

        block = torch.mul(word, other, out=out_product), weight_m, factors_m
        given = block, grad_m, _projected_grad(grad_m, projected_m, block)
        if of_machines:
            grads_m = _machine_grads(*given, out_grad)
        if of_words:
            grad_features = _features_grad(*given, out_grad)
            grad_word = torch.addcmul(grad_word, grad_features, other, out=out_word)
            grad_other = torch.addcmul(grad_other, grad_features, word, out=out_other)
        return grad_word, grad_other, *grads_c, *grads_s, *grads_m


def _saved(ctx: Any, inputs: tuple[Tensor, ...], machines: tuple[tuple[Tensor, Tensor], ...]) -> tuple[Tensor, ...]:
    """The scalars of each machine; its ``x V`` and the inputs are saved for the backward pass."""
    ys, projected = zip(*machines, strict=True)
    ctx.save_for_backward(*inputs, *projected)
    return ys


def _is_differentiated(*grads: Tensor) -> bool:
    """Whether the backward pass is differentiated itself, or batched: then nothing is written in place."""
    return torch.is_grad_enabled() or is_transformed(*grads)


def _projected_grad(grad: Tensor, projected: Tensor, *blocks: Block) -> Tensor:
    """The gradient of ``x V``, of which a scalar has half the square."""
    return grad[:, None] * (_projected(*blocks) if torch.is_grad_enabled() else projected)


def _machine_grads(block: Block, grad: Tensor, grad_projected: Tensor, out: Tensor | None) -> tuple[Tensor, Tensor]:
    """The gradients of weight and factors, from those of the scalars and of ``x V``.

    All that is as large as the features is computed in ``out``: new memory takes longer than these sums.
    """
    x, _, factors = block
    squares = torch.mul(x, x, out=out)
    return x.T @ grad, torch.addcmul(x.T @ grad_projected, (squares.T @ grad)[:, None], factors, value=-1)


def _features_grad(block: Block, grad: Tensor, grad_projected: Tensor, out: Tensor | None) -> Tensor:
    """The gradient of the features, computed in ``out`` too."""
    x, weight, factors = block
    grad_x = torch.addcmul(weight, x, factors.square().sum(1), value=-1, out=out)
    grad_x = torch.mul(grad_x, grad[:, None], out=out)
    return torch.addmm(grad_x, grad_projected, factors.T, out=out)
