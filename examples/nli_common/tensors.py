"""Tensors and a note in one safetensors file: written in one step, with a checksum, read without pickle."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from nli_common.files import write_atomically


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
    tensors = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    note = dict(note or {})
    metadata = {"note": json.dumps(note | {"checksum": _checksum(tensors, note)})}
    # safetensors' own save_file has a temporary file of its own, which a killed process would leave behind.
    write_atomically(path, lambda temporary: temporary.write_bytes(save(tensors, metadata)), keep=keep)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save_tensors` wrote; a file without a checksum is taken as it is.

    Raises:
        OSError: if it cannot be read.
        SafetensorError: if it is no such file.
        ValueError: if the note is damaged, or the checksum does not fit.
    """
    with safe_open(path, framework="pt") as file:
        note = json.loads((file.metadata() or {}).get("note", "{}"))
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dictionary
    if note.pop("checksum", None) not in (None, _checksum(tensors, note)):
        raise ValueError("the checksum does not fit")
    return tensors, note


def _checksum(tensors: Mapping[str, Tensor], note: Mapping[str, Any]) -> int:
    total = zlib.crc32(json.dumps(note).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        total = zlib.crc32(tensor.cpu().reshape(-1).view(torch.uint8).numpy().data, total)
    return total
