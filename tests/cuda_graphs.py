"""CUDA graphs for machines without a GPU: what is recorded is written down, operation by operation, and done again."""

import contextlib
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from nli_common import words

READS = (
    *("aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal"),
    *("aten::nonzero", "aten::masked_select", "aten::_unique", "aten::_unique2", "aten::unique_dim"),
)


class Graph:
    """What ``torch.cuda.CUDAGraph`` is to its users, on the CPU."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, Any, Any, Any]] = []

    def __del__(self) -> None:
        Recording.spoilt |= Recording.now

    def replay(self) -> None:
        for operation, args, kwargs, results in self.done:
            for held, new in zip(tree_leaves(results), tree_leaves(operation(*args, **kwargs)), strict=True):
                if isinstance(held, Tensor) and held.data_ptr() != new.data_ptr():
                    held.detach().copy_(new)


class Recording(TorchDispatchMode):
    """What ``torch.cuda.graph`` is. Nothing counts as done until it is replayed; nothing can be read, nor any graph be
    destroyed."""

    now = spoilt = False

    def __init__(self, graph: Graph, pool: object = None) -> None:
        super().__init__()
        self.graph = graph

    def __enter__(self) -> Any:
        Recording.now, Recording.spoilt = True, False
        self.random = torch.get_rng_state()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        Recording.now = False
        torch.set_rng_state(self.random)
        super().__exit__(*error)
        if Recording.spoilt:
            raise RuntimeError("operation failed due to a previous error during capture")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.name in READS:
            Recording.spoilt = True
            raise RuntimeError(f"operation not permitted when stream is capturing ({func})")
        kwargs = kwargs or {}
        results = func(*args, **kwargs)
        held = tree_map(lambda x: x.detach() if isinstance(x, Tensor) else x, (args, kwargs, results))
        self.graph.done.append((func, *held))
        return results


def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test is over, CUDA graphs are these, and no number on the CPU is read that on a GPU is not."""
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", Recording)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: Recording.now)
    monkeypatch.setattr(words, "are_at_hand", lambda *tensors: False)
