"""A training's state, and a model's weights, in files that are exact to the bit and tell when they are damaged."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nli_common.averaging import WeightAverage
from nli_common.errors import InputError
from nli_common.tensors import DAMAGED, NUMBERS, load_tensors, require_finite, save_tensors


class Resumed(NamedTuple):
    """Which checkpoint was restored, the progress in it, and what was wrong with those before it in the list."""

    path: Path
    progress: dict[str, Any]
    problems: list[str]


def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: Optimizer,
    progress: dict[str, Any],
    *,
    average: WeightAverage | None = None,
    keep: Path | None = None,
) -> None:
    """Write the model, the optimiser and where the training stands.

    Args:
        path: replaced in one step.
        model: its ``state_dict``.
        optimizer: its state, one set of tensors for each parameter; its options are those of the recipe.
        progress: anything that JSON holds.
        average: of the model's weights.
        keep: where the checkpoint that was there goes to.
    """
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for parameter, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{parameter}.{name}": value for name, value in values.items()}
    if average is not None:
        tensors |= {f"average.{name}": tensor for name, tensor in average.state_dict().items()}
    save_tensors(path, tensors, {"progress": progress}, keep=keep)


def load_checkpoint(
    path: Path, model: nn.Module, optimizer: Optimizer, average: WeightAverage | None = None
) -> dict[str, Any]:
    """Restore what :func:`save_checkpoint` wrote and return the progress.

    Raises:
        InputError: if the file is damaged or belongs to another model.
    """
    try:
        tensors, note = load_tensors(path)
        _load(model, _part("model.", tensors))
        if average is not None:
            _load_average(average, _part("average.", tensors))
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _part("optimizer.", tensors).items():
            parameter, key = name.split(".", 1)
            state.setdefault(int(parameter), {})[key] = tensor
        _require_fitting(state, optimizer)
        optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
        progress: dict[str, Any] = dict(note["progress"])
    except DAMAGED as error:
        raise InputError(f"{path}: not a checkpoint of this run ({error})") from None
    return progress


def load_newest(
    paths: Sequence[Path], model: nn.Module, optimizer: Optimizer, average: WeightAverage | None = None
) -> Resumed | None:
    """Restore the first of these checkpoints that is there and whole; ``None`` if none is there.

    Raises:
        InputError: if all that are there are damaged.
    """
    problems: list[str] = []
    for path in paths:
        if path.exists():
            try:
                return Resumed(path, load_checkpoint(path, model, optimizer, average), problems)
            except InputError as error:
                problems.append(str(error))
    if problems:
        raise InputError(f"{'; '.join(problems)}; delete it, and the same command starts over")
    return None


def save_weights(path: Path, model: nn.Module) -> None:
    """Write the model's ``state_dict`` alone."""
    save_tensors(path, model.state_dict())


def load_weights(path: Path, model: nn.Module) -> None:
    """Read what :func:`save_weights` wrote.

    Raises:
        InputError: if the file is missing, damaged, or has other tensors than the model.
    """
    try:
        _load(model, load_tensors(path)[0])
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; has the run trained for an epoch?") from None
    except DAMAGED as error:
        raise InputError(f"{path}: not the weights of this model ({error})") from None


def require_weights(path: Path) -> None:
    """Raise an ``InputError`` if the best epoch's weights, which no later epoch brings back, are lost."""
    try:
        load_tensors(path)
    except DAMAGED as error:
        raise InputError(
            f"{path}: the weights of the best epoch are lost ({error}); delete the folder, and the same command "
            "starts over"
        ) from None


def _part(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _load(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    require_finite(tensors)
    model.load_state_dict(tensors)


def _load_average(average: WeightAverage, tensors: dict[str, Tensor]) -> None:
    steps = tensors["n_averaged"]
    require_finite({name: tensor for name, tensor in tensors.items() if tensor is not steps})
    if steps.dtype != torch.int64 or steps.ndim or steps < 0:
        raise ValueError(f"it averages {steps.tolist()} steps")
    average.load_state_dict(tensors)


def _require_fitting(state: dict[int, dict[str, Tensor]], optimizer: Optimizer) -> None:
    """Raise a ``ValueError`` if the optimiser could not make a step from this state."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    kept = _kept(optimizer)
    for number, values in state.items():
        if number not in range(len(parameters)) or values.keys() != kept:
            raise ValueError(f"parameter {number} has {', '.join(sorted(values))}, expected {', '.join(sorted(kept))}")
        for name, value in values.items():
            shape = () if name == "step" else parameters[number].shape
            if value.shape != shape or value.dtype not in NUMBERS:
                raise ValueError(f"{name} of parameter {number} is {value.dtype} of shape {tuple(value.shape)}")


def _kept(optimizer: Optimizer) -> set[str]:
    """What an optimiser of this class keeps of each parameter, learned from a step of one number."""
    number = nn.Parameter(torch.zeros(1))
    number.grad = torch.zeros(1)
    kind: Any = type(getattr(optimizer, "optimizer", optimizer))  # Accelerate wraps it
    trial = kind([number])
    trial.step()
    return set(trial.state[number])
