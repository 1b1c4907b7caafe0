"""torch.func and recomputation: what they make of a layer or model, against a plain loop over it."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, stack_module_state, vmap
from torch.utils.checkpoint import checkpoint

from reliability.cases import Case, Tensors, outputs

Parameters = dict[str, Tensor]


def vmap_over_inputs(case: Case, batch: int, length: int) -> float:
    """Three batches at once, one after the other: the largest difference."""
    module = case.module()
    groups = [case.inputs(batch, length, seed) for seed in range(3)]
    together = vmap(lambda *inputs: outputs(module, inputs))(*map(torch.stack, zip(*groups, strict=True)))
    one_by_one = map(torch.stack, zip(*(outputs(module, group) for group in groups), strict=True))
    return difference(together, tuple(one_by_one))


def vmap_over_an_ensemble(case: Case, batch: int, length: int) -> float:
    """Three modules on one batch, their parameters and buffers stacked."""
    modules, inputs = [case.module(seed) for seed in range(3)], case.inputs(batch, length)
    skeleton = case.module()

    def call(parameters: Parameters, buffers: Parameters) -> Tensors:
        return _as_tuple(functional_call(skeleton, (parameters, buffers), inputs))

    if not any(True for _ in skeleton.parameters()) and not any(True for _ in skeleton.buffers()):
        return difference(outputs(skeleton, inputs), outputs(modules[1], inputs))  # there is nothing to stack
    together = vmap(call)(*stack_module_state(modules))
    one_by_one = map(torch.stack, zip(*(outputs(module, inputs) for module in modules), strict=True))
    return difference(together, tuple(one_by_one))


def per_sample_gradients(case: Case, batch: int, length: int) -> float:
    """The gradient of each example's own loss by every parameter: ``vmap(grad)``, and a loop over the examples."""
    module, inputs = case.module(), case.inputs(batch, length)
    parameters = _parameters(module)
    if not parameters:
        return 0.0

    def loss(parameters: Parameters, *example: Tensor) -> Tensor:
        return _scalar(_as_tuple(functional_call(module, parameters, tuple(x[None] for x in example))))

    together = vmap(grad(loss), in_dims=(None, *[0] * len(inputs)))(parameters, *inputs)
    loop = []
    for i in range(batch):
        value = _scalar(outputs(module, tuple(x[i : i + 1] for x in inputs)))
        loop.append(_gradients(value, module))
    return difference(tuple(together.values()), tuple(map(torch.stack, zip(*loop, strict=True))))


def jacobians(case: Case, batch: int, length: int) -> float:
    """``jacrev`` and ``jacfwd`` by every parameter and every input of real numbers, and a loop over the outputs."""
    return max(
        difference(derivative(case, mode, batch, length), _jacobian_by_loop(case, batch, length))
        for mode in (jacrev, jacfwd)
    )


def derivative(case: Case, mode: Callable[..., Callable[..., Tensors]], batch: int, length: int) -> Tensors:
    """The Jacobian of a few sums of the outputs, by ``jacrev`` or ``jacfwd``."""
    module, inputs = case.module(), case.inputs(batch, length)
    places = _moving(case, inputs)
    parameters = _parameters(module)
    names = tuple(parameters)

    def few(*moving: Tensor) -> Tensor:
        changed = list(inputs)
        for place, x in zip(places, moving[len(names) :], strict=True):
            changed[place] = x
        result = functional_call(module, dict(zip(names, moving, strict=False)), tuple(changed))
        return _few(_as_tuple(result))

    leaves = (*parameters.values(), *(inputs[place] for place in places))
    return mode(few, argnums=tuple(range(len(leaves))))(*leaves) if leaves else ()


def _jacobian_by_loop(case: Case, batch: int, length: int) -> Tensors:
    module, inputs = case.module(), list(case.inputs(batch, length))
    places = _moving(case, tuple(inputs))
    for place in places:
        inputs[place] = inputs[place].requires_grad_()
    leaves = [*module.parameters(), *(inputs[place] for place in places)]
    if not leaves:
        return ()
    few = _few(outputs(module, tuple(inputs)))
    rows = [
        [g if g is not None else torch.zeros_like(x) for g, x in zip(_grad(y, leaves), leaves, strict=True)]
        for y in few
    ]
    return tuple(map(torch.stack, zip(*rows, strict=True)))


def hessian_vector_product(case: Case, batch: int, length: int) -> float:
    """Forward over reverse mode, ``jvp(grad)``, and reverse over reverse."""
    module, inputs = case.module(), case.inputs(batch, length)
    parameters = _parameters(module)
    if not parameters:
        return 0.0
    generator = torch.Generator().manual_seed(1)
    direction = {k: torch.randn(p.shape, generator=generator, dtype=p.dtype) for k, p in parameters.items()}

    def loss(parameters: Parameters) -> Tensor:
        return _scalar(_as_tuple(functional_call(module, parameters, inputs)))

    forward_over_reverse = jvp(grad(loss), (parameters,), (direction,))[1]
    leaves = list(module.parameters())
    first = torch.autograd.grad(_scalar(outputs(module, inputs)), leaves, create_graph=True, allow_unused=True)
    along = sum((g * v).sum() for g, v in zip(first, direction.values(), strict=True) if g is not None)
    assert isinstance(along, Tensor)
    twice = (
        [
            torch.zeros_like(x) if g is None else g
            for g, x in zip(torch.autograd.grad(along, leaves, allow_unused=True), leaves, strict=True)
        ]
        if along.requires_grad
        else [torch.zeros_like(x) for x in leaves]
    )
    return difference(tuple(forward_over_reverse.values()), tuple(twice))


def recomputed(case: Case, batch: int, length: int) -> float:
    """``torch.utils.checkpoint``: outputs and gradients, with dropout where the module has some."""
    values = []
    for again in (False, True):
        module, inputs = case.module(), list(case.inputs(batch, length))
        module.train()
        for place in _real(tuple(inputs)):
            inputs[place] = inputs[place].requires_grad_()
        torch.manual_seed(5)
        result = checkpoint(module, *inputs, use_reentrant=False) if again else module(*inputs)
        ys = _as_tuple(result)
        if ys[0].requires_grad:
            _scalar(ys).backward()
        leaves = [*module.parameters(), *(x for x in inputs if x.requires_grad)]
        values.append((*ys, *(torch.zeros_like(x) if x.grad is None else x.grad for x in leaves)))
    return difference(*values)


ATTACKS: dict[str, Callable[[Case, int, int], float]] = {
    "vmap over inputs": vmap_over_inputs,
    "vmap over an ensemble": vmap_over_an_ensemble,
    "per-sample gradients": per_sample_gradients,
    "jacrev and jacfwd": jacobians,
    "Hessian-vector product": hessian_vector_product,
    "checkpoint": recomputed,
}


BEYOND_AN_LSTM = ("vmap over inputs", "vmap over an ensemble", "per-sample gradients")
"""What torch cannot do to an ``nn.LSTM`` in float64, and so to the models with one."""


def possible(case: Case, attack: str) -> bool:
    """Whether torch can do it to this module."""
    return not (case.recurrent and attack in BEYOND_AN_LSTM)


def refusal(case: Case, attack: str, batch: int, length: int) -> str:
    """What torch says where it cannot; nothing where it can."""
    try:
        ATTACKS[attack](case, batch, length)
    except RuntimeError as error:
        return str(error).split("\n")[0]
    return ""


def difference(ours: Tensors, theirs: Tensors) -> float:
    """The largest difference of two numbers, as a share of the largest of their tensor where that is above 1."""
    largest = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape:
            raise AssertionError(f"shapes differ: {tuple(a.shape)} and {tuple(b.shape)}")
        if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
            raise AssertionError("a number is not finite")
        if a.numel():
            largest = max(largest, float((a - b).detach().abs().max() / b.detach().abs().max().clamp(min=1)))
    return largest


def _parameters(module: nn.Module) -> Parameters:
    return {name: parameter.detach() for name, parameter in module.named_parameters()}


def _as_tuple(result: Tensor | Tensors) -> Tensors:
    return result if isinstance(result, tuple) else (result,)


def _scalar(ys: Tensors) -> Tensor:
    """One number that every output has a share in, of its own size and curvature."""
    total = torch.zeros((), dtype=torch.float64)
    for k, y in enumerate(ys):
        weights = torch.linspace(-1, 2, y.numel(), dtype=y.dtype).view(y.shape)
        total = total + (weights * (y + 0.1 * k).sin()).sum()
    return total


def _few(ys: Tensors) -> Tensor:
    """Three numbers that every output has a share in."""
    return torch.stack([_scalar(tuple(y * scale for y in ys)) for scale in (0.5, 0.9, 1.3)])


def _real(inputs: Tensors) -> list[int]:
    return [place for place, x in enumerate(inputs) if x.dtype.is_floating_point]


def _moving(case: Case, inputs: Tensors) -> list[int]:
    """The inputs that a Jacobian is by: those of a long sentence are too many."""
    return _real(inputs) if case.shortest == 1 else []


def _grad(y: Tensor, leaves: list[Tensor]) -> tuple[Tensor | None, ...]:
    return torch.autograd.grad(y, leaves, retain_graph=True, allow_unused=True)


def _gradients(value: Tensor, module: nn.Module) -> Tensors:
    leaves = list(module.parameters())
    return tuple(torch.zeros_like(x) if g is None else g for g, x in zip(_grad(value, leaves), leaves, strict=True))
