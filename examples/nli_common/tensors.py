"""Tensors and a note in one safetensors file: written in one step, with a checksum, read without pickle."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from nli_common.files import write_atomically

DAMAGED = (
    *(SafetensorError, AttributeError, LookupError, TypeError, ValueError, RuntimeError),
    *(OSError, OverflowError, MemoryError),
)
"""What a damaged or hostile file raises where it is read, and where what was read is made use of."""
NUMBERS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
"""What every layer and optimiser computes with."""


def save_tensors(
    path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, Any] | None = None, *, keep: Path | None = None
) -> None:
    """Write tensors, a note and the checksum of both.

    Args:
        path: replaced in one step.
        tensors: by name.
        note: anything that JSON holds.
        keep: where the file that was there goes to, instead of being lost.
    """
    # safetensors' own save_file has a temporary file of its own, which a killed process would leave behind.
    write_atomically(path, lambda temporary: temporary.write_bytes(packed(tensors, note or {})), keep=keep)


def packed(tensors: Mapping[str, Tensor], note: Mapping[str, Any]) -> bytes:
    """The bytes of such a file."""
    tensors = _apart({name: tensor.detach().contiguous() for name, tensor in tensors.items()})
    metadata = {"note": json.dumps({**note, "checksum": _checksum(tensors, note)})}
    return save(tensors, metadata)


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that have no memory in common, which safetensors refuses: of a part of two parents each has a copy."""
    apart: dict[str, Tensor] = {}
    taken: set[int] = set()
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        apart[name] = tensor.clone() if place in taken else tensor
        taken.add(place)
    return apart


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save_tensors` wrote; a file without a checksum is taken as it is.

    Raises:
        FileNotFoundError: if there is none.
        DAMAGED: one of these if it cannot be read or is no such file, or the checksum does not match.
    """
    with safe_open(path, framework="pt") as file:
        note = json.loads((file.metadata() or {}).get("note", "{}"))
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dictionary
    if note.pop("checksum", None) not in (None, _checksum(tensors, note)):
        raise ValueError("the checksum does not match")
    return tensors, note


def require_finite(tensors: Mapping[str, Tensor]) -> None:
    """Raise a ``ValueError`` if a tensor is not floating point, or has a number that is not finite in float32."""
    for name, tensor in tensors.items():
        if tensor.dtype not in NUMBERS:
            raise ValueError(f"{name} is {tensor.dtype}, expected floating point")
        if not tensor.float().isfinite().all():
            raise ValueError(f"{name} has a number that is not finite")


def _checksum(tensors: Mapping[str, Tensor], note: Mapping[str, Any]) -> int:
    total = zlib.crc32(json.dumps(note).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        total = zlib.crc32(tensor.cpu().reshape(-1).view(torch.uint8).numpy().data, total)
    return total
