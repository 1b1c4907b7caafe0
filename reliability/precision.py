"""How far rounding carries each layer and model, and what the most hostile numbers do to them.

    python -m reliability.precision

Writes ``reliability/precision.json``. :func:`page` makes the tables from it.
"""

import argparse
import copy
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from nli_common.data import Sentence
from nli_common.files import write_text
from reliability.precision_cases import CASES, MODELS, PADDING, Case, Given

HERE = Path(__file__).parent
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "autocast": torch.float32,
}
"""The dtype of the parameters and inputs; autocast is to bfloat16."""
ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11, "autocast": 2.0**-8}
"""The largest relative error of one rounding."""
SPREAD = 8 / math.sqrt(3)
"""Eight standard deviations of a rounding, which lies anywhere within its unit; a random change is a whole one.

(Eight, and not six, since the movement is told from eight changes alone.)
"""
LOOPED = 2
"""Sentences of a batch that a loop over scalars computes as well."""
MOVED = frozenset(
    {
        "Alias",
        "AccumulateGrad",
        "Amax",
        "AsStrided",
        "Cat",
        "Chunk",
        "Clamp",
        "Clone",
        "ConstantPadNd",
        "Copy",
        "Embedding",
        "Expand",
        "Flip",
        "Index",
        "IndexSelect",
        "MaskedFill",
        "Max",
        "Neg",
        "Permute",
        "Relu",
        "Repeat",
        "Reshape",
        "Select",
        "Slice",
        "Split",
        "SplitWithSizes",
        "Squeeze",
        "Stack",
        "T",
        "ToCopy",
        "Transpose",
        "Unbind",
        "Unfold",
        "UnsafeSplit",
        "UnsafeView",
        "Unsqueeze",
        "View",
        "Where",
        "Abs",
    }
)
"""Operations that round nothing, by autograd's names for them."""


@dataclass(frozen=True)
class Run:
    """What one call gave: its outputs, and the gradients of what entered and of the parameters."""

    outputs: list[Tensor]
    inputs: list[Tensor]
    parameters: list[Tensor]
    within: list[Tensor]
    """What enters and leaves the modules inside, and the gradients there; only where they were asked for."""
    roundings: float
    """Those between what enters and an output, for each number that enters."""


def moved_to(given: Sequence[Given], device: str, dtype: torch.dtype) -> list[Given]:
    """Everything on the device, its floating-point numbers in the dtype."""

    def move(x: Given) -> Given:
        if isinstance(x, Sentence):
            return Sentence(*(None if part is None else part.to(device) for part in x))
        if isinstance(x, Tensor):
            return x.to(device, dtype) if x.dtype.is_floating_point else x.to(device)
        return x

    return [move(x) for x in given]


def run(
    module: nn.Module,
    given: Sequence[Given],
    *,
    autocast: bool = False,
    record: bool = False,
    backward: bool = True,
    cotangent: float = 1.0,
) -> Run:
    """A forward and a backward pass, with the same cotangents, from -2 to 2 times a power of 2, for every dtype."""
    numbers = [x for x in given if isinstance(x, Tensor) and x.dtype.is_floating_point]
    leaves = {id(x): x.detach().clone().requires_grad_() for x in numbers}
    parameters = [p for p in module.parameters() if p.requires_grad]
    kept: list[Tensor] = []
    watched = module.modules() if record else ()
    handles = [part.register_forward_hook(lambda _, x, y: kept.extend(_floats(x) + _floats(y))) for part in watched]
    with _lowered(_device(module, numbers), autocast):
        outputs = _floats(module(*(leaves.get(id(x), x) for x in given)))
    for handle in handles:
        handle.remove()
    kept = [y for y in kept if y.requires_grad]
    rooted = [y for y in outputs if y.requires_grad]
    wanted = [*leaves.values(), *parameters]
    grads: list[Tensor] = []
    roundings = max((_roundings(y) for y in rooted), default=0.0)
    if backward and rooted and wanted:
        generator = torch.Generator().manual_seed(9)
        # Few digits, which every dtype holds.
        cotangents = [
            (cotangent / 16 * torch.randint(-32, 33, y.shape, generator=generator).double()).to(y) for y in rooted
        ]
        found = torch.autograd.grad(rooted, [*wanted, *kept], cotangents, allow_unused=True)
        zeroed = zip(found, [*wanted, *kept], strict=True)
        grads = [torch.zeros_like(x) if grad is None else grad for grad, x in zeroed]
    count = len(leaves)
    within = [y.detach() for y in kept] + grads[len(wanted) :]
    return Run([y.detach() for y in outputs], grads[:count], grads[count : len(wanted)], within, roundings)


def _floats(y: object) -> list[Tensor]:
    parts = y if isinstance(y, tuple | list) else (y,)
    flat = [x for part in parts for x in (_floats(part) if isinstance(part, tuple) else (part,))]
    return [x for x in flat if isinstance(x, Tensor) and x.dtype.is_floating_point]


def _device(module: nn.Module, numbers: Sequence[Tensor]) -> str:
    held = [*numbers, *module.parameters(), *module.buffers()]
    return held[0].device.type if held else "cpu"


def _lowered(device: str, autocast: bool) -> AbstractContextManager[object]:
    return torch.autocast(device, dtype=torch.bfloat16) if autocast else nullcontext()


def _roundings(y: Tensor) -> float:
    """Roundings on the ways to a result, over the numbers that enter them: both counted once for each way."""
    counts: dict[Any, tuple[float, float]] = {}
    stack = [y.grad_fn]
    while stack:
        node = stack[-1]
        before = [] if node is None else [following for following, _ in node.next_functions if following is not None]
        unknown = [following for following in before if following not in counts]
        if unknown:
            stack += unknown
            continue
        stack.pop()
        name = type(node).__name__.rstrip("0123456789").removesuffix("Backward")
        rounded, entered = (sum(counts[following][k] for following in before) for k in (0, 1))
        counts[node] = (rounded + (name not in MOVED), entered) if before else (0.0, 1.0)
    rounded, entered = counts[y.grad_fn]
    return rounded / entered


def built(case: Case, seed: int) -> nn.Module:
    """The layer in float64, its vectors moved off their start: a bias of 0 would hide what it does."""
    torch.manual_seed(seed)
    module = case.build().double().eval()
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        if parameter.ndim < 2:
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return module


class Roundings(TorchDispatchMode):
    """Every result of an operation in float64 off by a random relative change."""

    def __init__(self, generator: torch.Generator, step: float) -> None:
        super().__init__()
        self.generator, self.step = generator, step

    def __torch_dispatch__(self, function: Any, types: Any, given: Any = (), options: Any = None) -> Any:
        """The operation, and the change."""
        result = function(*given, **(options or {}))
        floats = isinstance(result, Tensor) and result.dtype.is_floating_point
        # The largest of some numbers is not rounded, and its gradient goes to where it is found again.
        rounded = floats and not function.is_view and function is not torch.ops.aten.amax.default
        return _nudged(result, self.generator, self.step) if rounded else result


def condition(module: nn.Module, given: Sequence[Given], seed: int, base: Run, step: float, samples: int = 8) -> Run:
    """How far a result moves per relative change, of this size, of everything that enters: root mean square of some.

    A gradient's is that per change of the result of each operation, on the way there and back, as well. In the place
    of each result stands its movement plus its own size: no result is better than its own last digit.
    """
    generator = torch.Generator().manual_seed(seed)
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    held = [[y.abs() for y in part] for part in (base.outputs, base.inputs, base.parameters)]
    moves = [[torch.zeros_like(y) for y in part] for part in held]
    for _ in range(samples):
        twin = copy.deepcopy(module)
        for name, x in (*twin.named_parameters(), *twin.named_buffers()):
            x.data = _nudged(state[name].detach(), generator, step)
        nudged = [_nudged(x, generator, step) if isinstance(x, Tensor) else x for x in given]
        forth = run(twin, nudged, backward=False)
        moved = forth
        if base.inputs or base.parameters:
            with Roundings(generator, step):
                moved = run(twin, nudged)
        for squares, ours, theirs in zip(
            moves,
            (forth.outputs, moved.inputs, moved.parameters),
            (base.outputs, base.inputs, base.parameters),
            strict=True,
        ):
            for k, (y, z) in enumerate(zip(ours, theirs, strict=True)):
                squares[k] += ((y - z) / step).square() / samples
    summed = [[a.sqrt() + b for a, b in zip(x, y, strict=True)] for x, y in zip(moves, held, strict=True)]
    return Run(summed[0], summed[1], summed[2], [], base.roundings)


def _nudged(x: Tensor, generator: torch.Generator, step: float) -> Tensor:
    if not x.dtype.is_floating_point:
        return x
    signs = 2.0 * torch.randint(2, x.shape, generator=generator) - 1
    return x * (1 + step * signs.to(x))


@dataclass
class Error:
    """The largest errors found, in roundings of the dtype.

    Attributes:
        plain: of a result, where the largest number of it has 1.
        result: of a result, where its condition number (plus its own size) has 1.
        gradient: of a gradient with regard to what enters, likewise; ``None`` where it jumps.
        parameters: of one with regard to parameters, or to what a batch shares, which adds up over its words.
    """

    plain: float = 0.0
    result: float = 0.0
    gradient: float | None = 0.0
    parameters: float | None = 0.0


@dataclass(frozen=True)
class Measured:
    """One layer's errors by dtype, with the bounds on ``result``, ``gradient`` and ``parameters``.

    Attributes:
        draws: sentences that were computed in every dtype.
        looped: those of them that a loop computed, too.
    """

    draws: int
    looped: int
    roundings: float
    bound: float
    gradient_bound: float
    parameters_bound: float
    errors: dict[str, Error]


def measure(name: str, *, rounds: int, batch: int = 32, device: str = "cpu") -> Measured:
    """The errors of one case against float64: new parameters in each round, and ``batch`` new sentences.

    Both are rounded to the dtype first, so that what is measured is the layer's own rounding. On a GPU, cuDNN's LSTMs
    and convolutions would round to TF32, and its LSTMs are coarser than float32 even without; here the models take
    torch's own, and the layers have none.
    """
    case = CASES[name]
    errors = {label: Error(0.0, 0.0, *(2 * [None if case.kink else 0.0])) for label in DTYPES}
    if case.loop is None:
        del errors["float64"]
    roundings, looped = 0.0, 0
    for seed in range(rounds):
        module, given = _drawn(case, seed, batch)
        base = run(module, given, backward=not case.kink)
        # As large as the roundings: a softmax that they turn over is not linear.
        steps = {ROUNDING[label] for label in errors if label != "float64"}
        scales = {step: condition(module, given, seed, base, step) for step in steps}
        terms = [y.abs() for y in _floats(case.terms(module, *given))] if case.terms else []
        roundings = max(roundings, base.roundings)
        for label, error in errors.items():
            if label == "float64":
                looped += _compare_with_loop(case, module, given, base, scales[ROUNDING["float32"]], terms, error)
                continue
            low = copy.deepcopy(module).to(DTYPES[label])
            lowered = moved_to(given, device, DTYPES[label])
            exact = run(copy.deepcopy(low).double(), moved_to(lowered, "cpu", torch.float64), backward=not case.kink)
            with torch.backends.cudnn.flags(enabled=name not in MODELS):
                ours = run(low.to(device), lowered, autocast=label == "autocast", backward=not case.kink)
            _update(error, ours, exact, scales[ROUNDING[label]], terms, label, batch)
    bound = SPREAD * math.sqrt(1 + roundings)
    # Partial sums of random numbers, one after the other: s of them carry the roundings of s / 2 whole ones.
    summed = SPREAD * math.sqrt(1 + 7 * batch / 2)
    return Measured(rounds * batch, looped, roundings, bound, SPREAD * math.sqrt(2), summed, errors)


def _drawn(case: Case, seed: int, batch: int, n: int = 7, m: int = 4) -> tuple[nn.Module, list[Given]]:
    generator = torch.Generator().manual_seed(seed)
    return built(case, seed), case.draw(generator, batch, n, m)


def largest(*numbers: float) -> float:
    """The largest, or NaN if one of them is: Python's ``max`` leaves it out.

    >>> largest(1.0, 2.0), largest(0.0, math.nan)
    (2.0, nan)
    """
    return math.nan if any(map(math.isnan, numbers)) else max(numbers)


def _update(error: Error, ours: Run, exact: Run, scale: Run, terms: Sequence[Tensor], label: str, batch: int) -> None:
    unit = ROUNDING[label]
    smallest = 0.5 * torch.finfo(DTYPES[label]).smallest_normal * torch.finfo(DTYPES[label]).eps
    for y, z, s in zip(ours.outputs, exact.outputs, scale.outputs, strict=True):
        rows = batch if y.ndim and len(y) == batch else 1
        off = (y.double().cpu() - z).abs().reshape(rows, -1)
        if off.numel() == 0:
            continue
        # What cancels within the result does so in at least float32.
        allowed = unit * s + (min(unit, ROUNDING["float32"]) * terms[0] if terms else 0)
        sizes = [x.reshape(rows, -1).amax(1) for x in (unit * z.abs(), allowed)]
        plain, result = (float((off.amax(1) / (size + smallest)).max()) for size in sizes)
        error.plain, error.result = largest(error.plain, plain), largest(error.result, result)
    if error.gradient is None:
        return
    triples = [
        (y.double().cpu(), z, s)
        for part in ("inputs", "parameters")
        for y, z, s in zip(*(getattr(x, part) for x in (ours, exact, scale)), strict=True)
    ]
    for name, of_batch in (("gradient", True), ("parameters", False)):
        some = [triple for triple in triples if (triple[1].shape[:1] == (batch,)) == of_batch]
        if some:
            off_by = largest(*(float((y - z).abs().max()) for y, z, _ in some))
            allowed = unit * max(float(s.max()) for _, _, s in some) + smallest
            setattr(error, name, largest(getattr(error, name), off_by / allowed))


def _compare_with_loop(
    case: Case, module: nn.Module, given: Sequence[Given], base: Run, scale: Run, terms: Sequence[Tensor], error: Error
) -> int:
    """The first sentences of a batch, whose padding the loop never sees; how many of them have words to compare."""
    assert case.loop is not None
    compared = 0
    numbers = [x for x in given if isinstance(x, Tensor) and x.dtype.is_floating_point]
    masks = [x for x in given if isinstance(x, Tensor) and x.dtype == torch.bool]
    error.gradient = error.parameters = None
    for row in range(LOOPED):
        keep = [masks[k][row] if masks else torch.ones(len(x[row]), dtype=torch.bool) for k, x in enumerate(numbers)]
        words = [x[row][real] for x, real in zip(numbers, keep, strict=True)]
        if not all(len(x) for x in words):
            continue
        compared += 1
        expected = case.loop(module, *words)
        wanted = expected if isinstance(expected, tuple) else (expected,)
        for k, (y, z, s) in enumerate(zip(base.outputs, wanted, scale.outputs, strict=True)):
            off = float((y[row][keep[k]] - torch.tensor(z, dtype=torch.float64)).abs().max())
            error.plain = largest(error.plain, off / (ROUNDING["float64"] * float(y[row].abs().max())))
            allowed = s[row] + (terms[0][row] if terms else 0)
            error.result = largest(error.result, off / (ROUNDING["float64"] * float(allowed.max())))
    return compared


# What the most hostile numbers do


HOSTILE = ("±1e4", "±1e12", "denormals", "-0.0", "identical rows", "one-hot rows", "scores of 1e30", "parameters ±1e4")
SMALL = 2.0**-4
"""Of the cotangents then, so that few gradients leave float16."""
LENGTHS = (0, 1, 2, 4096)
GARBAGE = {"NaN": math.nan, "inf": math.inf, "-inf": -math.inf, "largest": None}


def hostile(kind: str, x: Tensor, generator: torch.Generator, dtype: torch.dtype, *, scores: bool = False) -> Tensor:
    """Numbers of this kind, in the shape of x."""
    signs = 2.0 * torch.randint(2, x.shape, generator=generator).double() - 1
    if kind in ("±1e4", "parameters ±1e4"):
        return 1e4 * signs
    if kind == "±1e12":
        return 1e12 * signs
    if kind == "denormals":
        smallest = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
        return smallest * torch.randint(-3, 4, x.shape, generator=generator).double()
    if kind == "-0.0":
        return torch.full_like(x, -0.0)
    if kind == "scores of 1e30":
        return x * 1e30 if scores else 1e15 * signs
    if x.ndim < 2:
        return x
    if kind == "identical rows":
        return x[..., :1, :].expand_as(x)
    return torch.nn.functional.one_hot(torch.randint(x.shape[-1], x.shape[:-1], generator=generator), x.shape[-1]).to(x)


def attacked(
    case: Case, kind: str, dtype: torch.dtype, *, seed: int = 0, batch: int = 5
) -> tuple[nn.Module, list[Given]] | None:
    """A case with hostile numbers in the place of its inputs, its word vectors or its parameters.

    ``None`` where the dtype cannot hold them, or the case has no place for them.
    """
    torch.manual_seed(seed)
    module, generator = case.build().double().eval(), torch.Generator().manual_seed(seed)
    given = case.draw(generator, batch, 7, 4)
    if kind in ("±1e12", "scores of 1e30") and dtype == torch.float16:
        return None
    if kind == "parameters ±1e4":
        if any(isinstance(x, Tensor | Sentence) for x in given):
            return None
        for parameter in module.parameters():
            parameter.data = hostile(kind, parameter.data, generator, dtype)
        return module, given
    if all(isinstance(x, int) for x in given):
        return None
    have_scores = any(kind.startswith("~") for kind in case.takes)
    for k, x in enumerate(given):
        if isinstance(x, Tensor) and x.dtype.is_floating_point:
            scores = case.takes[k].startswith("~")
            if kind != "scores of 1e30" or scores or not have_scores:
                given[k] = hostile(kind, x, generator, dtype, scores=scores)
    for buffer in module.buffers():
        if buffer.dtype.is_floating_point and buffer.numel():
            buffer.data = hostile(kind, buffer.data, generator, dtype)
    return module, given


def outcome(name: str, kind: str, label: str, *, seed: int = 0, device: str = "cpu") -> str | None:
    """``finite``; ``overflow`` where an exact number of the layer's is beyond the dtype; or ``not finite``, a defect.

    The exact numbers are those in float64 that enter and leave the layer and the modules inside it, and the gradients
    there. The scores of an attention are none of them: their overflow excuses nothing.
    """
    case, dtype = CASES[name], DTYPES[label]
    pair = attacked(case, kind, dtype, seed=seed)
    # Words of 1e15 make such scores: where two are equal once they are rounded, the gradient is some 1e45.
    forth = kind == "scores of 1e30" and not any(takes.startswith("~") for takes in case.takes)
    return None if pair is None else _outcome(*pair, label, device, backward=not forth)


def outcome_of_lengths(name: str, n: int, m: int, label: str, *, device: str = "cpu") -> str:
    """What sentences of these lengths, with standard normal numbers, give; a batch of two, one where they are long."""
    module, given = _drawn(CASES[name], 0, 1 if max(n, m) > 99 else 2, n, m)
    return _outcome(module, given, label, device)


def _outcome(module: nn.Module, given: Sequence[Given], label: str, device: str, *, backward: bool = True) -> str:
    dtype, autocast = DTYPES[label], label == "autocast"
    module = module.to(dtype)
    lowered = moved_to(given, device, dtype)
    ours = run(copy.deepcopy(module).to(device), lowered, autocast=autocast, backward=backward, cotangent=SMALL)
    if _finite(ours):
        return "finite"
    exact = run(module.double(), moved_to(lowered, "cpu", torch.float64), record=True, cotangent=SMALL)
    largest = torch.finfo(torch.bfloat16 if autocast else dtype).max
    numbers = (*exact.outputs, *exact.inputs, *exact.parameters, *exact.within)
    return "overflow" if any(bool((x.abs() > largest).any()) for x in numbers) else "not finite"


def _finite(ours: Run) -> bool:
    return all(bool(x.isfinite().all()) for x in (*ours.outputs, *ours.inputs, *ours.parameters))


def garbage_matters(name: str, label: str, *, seed: int = 0, device: str = "cpu") -> list[str]:
    """The kinds of garbage in the padding that change an output or a gradient in any bit; there must be none."""
    case, dtype = CASES[name], DTYPES[label]
    module, given = _drawn(case, seed, 5)
    module = module.to(dtype).to(device)
    given = moved_to(given, device, dtype)
    clean = run(*_with_padding(case, module, given, 0.0), autocast=label == "autocast")
    wrong = []
    for garbage, value in GARBAGE.items():
        number = torch.finfo(dtype).max if value is None else value
        ours = run(*_with_padding(case, module, given, number), autocast=label == "autocast")
        pairs = zip(
            (*clean.outputs, *clean.inputs, *clean.parameters),
            (*ours.outputs, *ours.inputs, *ours.parameters),
            strict=True,
        )
        if not all(torch.equal(x, y) for x, y in pairs):
            wrong.append(garbage)
    return wrong


def has_padding(case: Case) -> bool:
    """Whether there is padding that may hold anything."""
    masked = any(kind.startswith(("?", "@")) for kind in case.takes)
    return masked and not (case.finite_padding and not any(kind.startswith("~") for kind in case.takes))


def _with_padding(
    case: Case, module: nn.Module, given: Sequence[Given], value: float
) -> tuple[nn.Module, Sequence[Given]]:
    """The same with this number at padding: in sequences, in scores, and in the vector of the word that fills it."""
    masks = {kind.split()[-1]: x for kind, x in zip(case.takes, given, strict=True) if kind.startswith("?")}
    filled: list[Given] = []
    for kind, x in zip(case.takes, given, strict=True):
        axes = kind.lstrip("~").split()
        fits = axes[:1] == ["b"] and not (case.finite_padding and not kind.startswith("~"))
        if not isinstance(x, Tensor) or not x.dtype.is_floating_point or not fits:
            filled.append(x)
            continue
        for axis, mask in masks.items():
            for place in [k for k, a in enumerate(axes) if a == axis]:
                shape = [1] * x.ndim
                shape[0], shape[place] = mask.shape
                x = x.masked_fill(~mask.view(shape), value)
        filled.append(x)
    module = copy.deepcopy(module)
    for buffer in module.buffers():
        if buffer.dtype.is_floating_point and buffer.ndim == 2 and len(buffer) == PADDING + 1:
            buffer.data[PADDING] = value
    return module, filled


# At full size


def main() -> None:
    """Run the whole attack and write what it found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=16, help="times that a layer's parameters are drawn")
    parser.add_argument("--batch", type=int, default=128, help="sentences for each of them")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    command = f"python -m reliability.precision --rounds {options.rounds} --batch {options.batch}"
    held: dict[str, Any] = {
        "command": command + ("" if options.device == "cpu" else f" --device {options.device}"),
        "torch": torch.__version__,
        "device": options.device,
        "errors": {},
        "hostile": {},
        "lengths": {},
        "padding": {},
    }
    for name, case in CASES.items():
        started = time.perf_counter()
        measured = measure(name, rounds=options.rounds, batch=options.batch, device=options.device)
        held["errors"][name] = asdict(measured)
        held["hostile"][name] = {kind: dict(_outcomes(name, kind, options.device)) for kind in HOSTILE}
        held["lengths"][name] = {label: dict(_lengths(name, label, options.device)) for label in DTYPES}
        if has_padding(case):
            found = {label: garbage_matters(name, label, device=options.device) for label in DTYPES}
            held["padding"][name] = found
        print(f"{name}: {time.perf_counter() - started:.1f} s", flush=True)
    path = HERE / f"precision{'' if options.device == 'cpu' else '-' + options.device}.json"
    write_text(path, json.dumps(held, indent=1, ensure_ascii=False) + "\n")
    print(page(held))


def _outcomes(name: str, kind: str, device: str) -> Iterator[tuple[str, str]]:
    for label in DTYPES:
        found = outcome(name, kind, label, device=device)
        if found is not None:
            yield label, found


def _lengths(name: str, label: str, device: str) -> Iterator[tuple[str, str]]:
    for n in LENGTHS:
        if label == "float64" and n > 99:  # what is there to overflow takes longest
            continue
        yield str(n), outcome_of_lengths(name, n, min(n, 2) if n > 2 else n, label, device=device)


def page(held: Mapping[str, Any]) -> str:
    """The figures as a section of Markdown."""
    draws = max(row["draws"] for row in held["errors"].values())
    looped = sorted(row["looped"] for row in held["errors"].values() if "float64" in row["errors"])
    parts = [
        "## Numbers",
        f"`{held['command']}`; torch {held['torch']}, {held['device']}.",
        "### Rounding",
        f"The largest error of {draws:,} sentences, with the float64 result of the same rounded numbers as the "
        "reference. The unit is one rounding of the dtype (2⁻²⁴ in float32, 2⁻⁸ in bfloat16 and under autocast to it, "
        "2⁻¹¹ in float16) times the condition number: how far the exact result moves per relative change of everything "
        "that enters, parameters included, by one rounding, and its own size. In brackets, the same error in roundings "
        "of the largest number of the result alone. The bound is 8 √((1 + r) / 3) with r roundings for each number "
        "that enters: eight standard deviations of independent roundings. In the float64 column, slow loops over "
        f"scalars are the reference, for {looped[0]:,} to {looped[-1]:,} of the sentences.",
        _errors_table(held["errors"]),
        "Gradients with respect to the inputs, and with respect to parameters, which add up over the words of a "
        "batch, except where they jump, as at a rectified unit's kink. The unit is the effect on them of one rounding "
        "after each operation of the forward and backward passes.",
        _gradients_table(held["errors"]),
        "### Hostile numbers",
        "Results of the forward and backward passes; the inputs of a model are word vectors. ∞ marks a dtype in "
        "which an exact number of the layer's own, or an exact gradient, is too large for it. NaN or infinity without "
        "such a reason would be marked NaN. Where the inputs are not scores, scores of 1e30 come from words of 1e15, "
        "and only the forward pass is run: where rounding makes two such scores equal, their gradient is about 1e45.",
        _hostile_table(held["hostile"]),
        "### Lengths",
        f"Sentences of {', '.join(map(str, LENGTHS))} words (the longest not in float64): "
        + _lengths_said(held["lengths"]),
        "### Padding",
        _padding_said(held["padding"]),
    ]
    return "\n\n".join(parts) + "\n"


def _errors_table(rows: Mapping[str, Any]) -> str:
    lines = [["", *DTYPES, "bound"]]
    for name, row in rows.items():
        found = [row["errors"].get(label) for label in DTYPES]
        cells = ["–" if error is None else f"{error['result']:.2f} ({error['plain']:.3g})" for error in found]
        lines.append([name, *cells, f"{row['bound']:.1f}"])
    return _table(lines)


def _gradients_table(rows: Mapping[str, Any]) -> str:
    labels = [label for label in DTYPES if label != "float64"]
    lines = [["", *labels, "bounds"]]
    for name, row in rows.items():
        found = [row["errors"][label] for label in labels]
        if any(error["gradient"] or error["parameters"] for error in found):
            cells = [f"{error['gradient']:.2f} / {error['parameters']:.2f}" for error in found]
            lines.append([name, *cells, f"{row['gradient_bound']:.1f} / {row['parameters_bound']:.0f}"])
    return _table(lines)


def _hostile_table(rows: Mapping[str, Any]) -> str:
    lines = [["", *HOSTILE]]
    for name, kinds in rows.items():
        lines.append([name, *(_said(kinds[kind]) for kind in HOSTILE)])
    return _table(lines)


def _said(found: Mapping[str, str]) -> str:
    if not found:
        return "–"
    beyond = [label for label, what in found.items() if what == "overflow"]
    broken = [label for label, what in found.items() if what == "not finite"]
    said = [f"∞ {', '.join(beyond)}"] if beyond else []
    said += [f"NaN {', '.join(broken)}"] if broken else []
    return "; ".join(said) or "finite"


def _lengths_said(rows: Mapping[str, Any]) -> str:
    wrong = [
        f"{name} in {label} at {length}"
        for name, labels in rows.items()
        for label, lengths in labels.items()
        for length, what in lengths.items()
        if what != "finite"
    ]
    count = sum(len(lengths) for labels in rows.values() for lengths in labels.values())
    said = f"outputs and gradients of {count - len(wrong)} of {count} runs were finite"
    return said + (f", all but those of {', '.join(wrong)}." if wrong else ".")


def _padding_said(rows: Mapping[str, Any]) -> str:
    wrong = [
        f"{name} in {label} ({', '.join(kinds)})" for name, ls in rows.items() for label, kinds in ls.items() if kinds
    ]
    count = len(GARBAGE) * sum(len(labels) for labels in rows.values())
    kinds = ", ".join(GARBAGE)
    said = f"In padding, {kinds} of the dtype: {count} runs of {len(rows)} layers, functions and models in 5 dtypes. "
    if wrong:
        return said + f"Some bit of an output or a gradient changed in {'; '.join(wrong)}."
    return said + "Outputs and gradients were bit-identical to those with 0 there."


def _table(lines: list[list[str]]) -> str:
    head, *rows = lines
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


if __name__ == "__main__":
    main()
