"""Layers and models on the meta device, where nothing is computed, and what is made elsewhere all the same."""

import copy
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from reliability.subjects import Shape, Subject, gradients


class _Elsewhere(TorchDispatchMode):
    """Notes which operators make a tensor that is not on the meta device."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, and look where its outputs are."""
        made = func(*args, **(kwargs or {}))
        if any(isinstance(y, Tensor) and not y.is_meta for y in tree_leaves(made)):
            self.operators.add(str(func))
        return made


def elsewhere(subject: Subject, shape: Shape) -> list[str]:
    """The operators that make tensors elsewhere while a module on the meta device goes forwards and backwards.

    Raises:
        AssertionError: if outputs or gradients have other shapes or dtypes there than on the CPU.
    """
    inputs = subject.inputs(shape)
    module = copy.deepcopy(subject.module).to("meta")
    moved = tree_map_only(Tensor, lambda x: x.to("meta"), inputs)
    with _Elsewhere() as found:
        ours = [module(*moved), gradients(module, module, moved)]
    theirs = [subject.module(*inputs), gradients(subject.module, subject.module, inputs)]
    for a, b in zip(tree_leaves(ours), tree_leaves(theirs), strict=True):
        if (a.shape, a.dtype, a.device.type) != (b.shape, b.dtype, "meta"):
            raise AssertionError(f"{tuple(a.shape)} of {a.dtype} on {a.device} for {tuple(b.shape)} of {b.dtype}")
    return sorted(found.operators)
