"""A training state in one safetensors file: written in one step, read without pickle, exact to the bit."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from nli_common.errors import InputError
from nli_common.files import write_atomically


def save_checkpoint(path: Path, model: nn.Module, optimizer: Optimizer, progress: dict[str, Any]) -> None:
    """Write the model, the optimiser and where the training stands.

    Args:
        path: replaced in one step.
        model: its ``state_dict``.
        optimizer: its state, one set of tensors or numbers for each parameter.
        progress: anything that JSON holds.
    """
    tensors = {f"model.{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
    numbers: dict[str, dict[str, float]] = {}
    state = optimizer.state_dict()
    for parameter, values in state["state"].items():
        for name, value in values.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{parameter}.{name}"] = value.contiguous()
            else:
                numbers.setdefault(str(parameter), {})[name] = value
    note = {"progress": progress, "groups": state["param_groups"], "numbers": numbers}
    write_atomically(path, lambda temporary: save_file(tensors, temporary, {"note": json.dumps(note)}))


def load_checkpoint(path: Path, model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    """Restore what :func:`save_checkpoint` wrote and return the progress.

    Raises:
        InputError: if the file is damaged or belongs to another model.
    """
    try:
        with safe_open(path, framework="pt") as file:
            note = json.loads(file.metadata()["note"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dictionary
        model.load_state_dict(
            {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
        )
        state: dict[int, dict[str, Tensor | float]] = {int(k): dict(v) for k, v in note["numbers"].items()}
        for name, tensor in tensors.items():
            if name.startswith("optimizer."):
                _, parameter, key = name.split(".", 2)
                state.setdefault(int(parameter), {})[key] = tensor
        optimizer.load_state_dict({"state": state, "param_groups": note["groups"]})
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError, OSError) as error:
        raise InputError(f"{path}: not a checkpoint of this run ({_line(error)})") from None
    progress: dict[str, Any] = note["progress"]
    return progress


def save_weights(path: Path, model: nn.Module) -> None:
    """Write the model's ``state_dict`` alone."""
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    write_atomically(path, lambda temporary: save_file(tensors, temporary))


def load_weights(path: Path, model: nn.Module) -> None:
    """Read what :func:`save_weights` wrote.

    Raises:
        InputError: if the file is missing, damaged, or has other tensors than the model.
    """
    try:
        with safe_open(path, framework="pt") as file:
            model.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118 - it is no dictionary
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; has the run trained for an epoch?") from None
    except (SafetensorError, RuntimeError, OSError) as error:
        raise InputError(f"{path}: not the weights of this model ({_line(error)})") from None


def _line(error: Exception) -> str:
    """What torch says of tensors that do not fit, which takes it several lines."""
    return " ".join(str(error).split())
