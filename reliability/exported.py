"""``torch.export`` and ONNX beside eager, at shapes that neither has seen."""

import io
from collections.abc import Sequence
from typing import Any

import onnxruntime
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from reliability.subjects import Shape, Subject, deviation


def program(subject: Subject, seen: Shape) -> torch.export.ExportedProgram:
    """What ``torch.export`` makes of a module for batches of any shape, from one."""
    inputs = subject.inputs(seen)
    with torch.no_grad():
        return torch.export.export(subject.module, inputs, dynamic_shapes=dynamic_shapes(subject.fitted(seen), inputs))


def dynamic_shapes(seen: Shape, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Every axis that is as long as the batch or a sentence may be another one, 1 among them; all others stay."""
    axes = {size: torch.export.Dim(name, min=1, max=4096) for name, size in seen._asdict().items()}
    return tree_map_only(Tensor, lambda x: {i: axes[size] for i, size in enumerate(x.shape) if size in axes}, inputs)


def exported(subject: Subject, seen: Shape, unseen: Sequence[Shape]) -> float:
    """The deviation of a program that was saved and loaded."""
    buffer = io.BytesIO()
    torch.export.save(program(subject, seen), buffer)
    buffer.seek(0)
    loaded = torch.export.load(buffer).module()
    with torch.no_grad():
        return max(
            deviation(loaded(*subject.inputs(shape)), subject.module(*subject.inputs(shape))) for shape in unseen
        )


def onnx(subject: Subject, seen: Shape, unseen: Sequence[Shape]) -> float:
    """The deviation of an ONNX program in onnxruntime."""
    inputs = subject.inputs(seen)
    made = torch.onnx.export(
        subject.module, inputs, dynamo=True, dynamic_shapes=dynamic_shapes(subject.fitted(seen), inputs), verbose=False
    )
    assert made is not None
    buffer = io.BytesIO()
    made.save(buffer)
    session = onnxruntime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    worst = 0.0
    for shape in unseen:
        inputs = subject.inputs(shape)
        feed = {i.name: x.numpy() for i, x in zip(session.get_inputs(), tree_leaves(inputs), strict=True)}
        with torch.no_grad():
            theirs = subject.module(*inputs)
        worst = max(worst, deviation([torch.from_numpy(y) for y in session.run(None, feed)], theirs))
    return worst
