"""A training's state, and a model's weights, in files that are exact to the bit and tell when they are damaged."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from torch import Tensor, nn
from torch.optim import Optimizer

from nli_common.errors import InputError
from nli_common.tensors import load_tensors, save_tensors


class Resumed(NamedTuple):
    """Which checkpoint was restored, the progress in it, and what was wrong with those before it in the list."""

    path: Path
    progress: dict[str, Any]
    problems: list[str]


def save_checkpoint(
    path: Path, model: nn.Module, optimizer: Optimizer, progress: dict[str, Any], *, keep: Path | None = None
) -> None:
    """Write the model, the optimiser and where the training stands.

    Args:
        path: replaced in one step.
        model: its ``state_dict``.
        optimizer: its state, one set of tensors or numbers for each parameter.
        progress: anything that JSON holds.
        keep: where the checkpoint that was there goes to.
    """
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    numbers: dict[str, dict[str, float]] = {}
    state = optimizer.state_dict()
    for parameter, values in state["state"].items():
        for name, value in values.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{parameter}.{name}"] = value
            else:
                numbers.setdefault(str(parameter), {})[name] = value
    note = {"progress": progress, "groups": state["param_groups"], "numbers": numbers}
    save_tensors(path, tensors, note, keep=keep)


def load_checkpoint(path: Path, model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    """Restore what :func:`save_checkpoint` wrote and return the progress.

    Raises:
        InputError: if the file is damaged or belongs to another model.
    """
    try:
        tensors, note = load_tensors(path)
        model.load_state_dict(
            {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
        )
        state: dict[int, dict[str, Tensor | float]] = {int(k): dict(v) for k, v in note["numbers"].items()}
        for name, tensor in tensors.items():
            if name.startswith("optimizer."):
                _, parameter, key = name.split(".", 2)
                state.setdefault(int(parameter), {})[key] = tensor
        optimizer.load_state_dict({"state": state, "param_groups": note["groups"]})
        progress: dict[str, Any] = note["progress"]
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError, OSError) as error:
        raise InputError(f"{path}: not a checkpoint of this run ({_line(error)})") from None
    return progress


def load_newest(paths: Sequence[Path], model: nn.Module, optimizer: Optimizer) -> Resumed | None:
    """Restore the first of these checkpoints that is there and whole; ``None`` if none is there.

    Raises:
        InputError: if all that are there are damaged.
    """
    problems: list[str] = []
    for path in paths:
        if path.exists():
            try:
                return Resumed(path, load_checkpoint(path, model, optimizer), problems)
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
        model.load_state_dict(load_tensors(path)[0])
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; has the run trained for an epoch?") from None
    except (SafetensorError, ValueError, RuntimeError, OSError) as error:
        raise InputError(f"{path}: not the weights of this model ({_line(error)})") from None


def require_weights(path: Path) -> None:
    """Raise an ``InputError`` if the best epoch's weights, which no later epoch brings back, are lost."""
    try:
        load_tensors(path)
    except (SafetensorError, ValueError, OSError) as error:
        raise InputError(
            f"{path}: the weights of the best epoch are lost ({error}); delete the folder, and the same command "
            "starts over"
        ) from None


def _line(error: Exception) -> str:
    """What torch says of tensors that do not fit, which takes it several lines."""
    return " ".join(str(error).split())
