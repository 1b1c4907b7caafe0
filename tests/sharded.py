"""Layers whose parameters, or whose batch, two gloo processes have in parts."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from reliability.cases import Tensors
from reliability.parallel import PROCESSES, save, together, whole_of, with_axes
from reliability.transforms import difference
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_module, distribute_tensor

import nlilayers

WIDE: dict[str, Callable[[], nn.Module]] = {
    "GaussianSelfAttention": lambda: nlilayers.GaussianSelfAttention(64, 4, bias=True),
    "GatedConvBlock": lambda: nlilayers.GatedConvBlock(64, 32),
    "GatedConvBlock, no output gate": lambda: nlilayers.GatedConvBlock(64, 32, output_gate=False),
    "FactorizationMachine": lambda: nlilayers.FactorizationMachine(2048, 5),
    "AlignmentFactorization": lambda: nlilayers.AlignmentFactorization(2048, 5),
    "Highway": lambda: nlilayers.Highway(64, 32, 2),
    "DistancePrior": lambda: nlilayers.DistancePrior(8),
}
"""Layers with so many numbers that these show what they were drawn from."""


def sharded_starts() -> dict[str, dict[str, tuple[Tensor, Tensor]]]:
    """Each layer's parameters, made by one process, and made on the meta device, sharded and reset by two."""
    with tempfile.TemporaryDirectory() as folder:
        together(_start_all, Path(folder))
        sharded = torch.load(Path(folder) / "starts.pt")
    found = {}
    for layer, build in WIDE.items():
        torch.manual_seed(0)
        found[layer] = {name: (p.detach(), sharded[layer][name]) for name, p in build().named_parameters()}
    return found


def share_of_a_batch() -> float:
    """A gated convolution on a batch of which each process has a part: the largest difference to one process."""
    with tempfile.TemporaryDirectory() as folder:
        together(_convolve, Path(folder))
        found: dict[str, Tensors] = torch.load(Path(folder) / "convolved.pt")
    return difference(found["shared"], found["whole"])


def _start_all(folder: Path) -> None:
    mesh, starts = init_device_mesh("cpu", (PROCESSES,)), {}
    for layer, build in WIDE.items():
        torch.manual_seed(0)
        with torch.device("meta"):
            module = build()
        fully_shard(with_axes(module), mesh=mesh)
        module.to_empty(device="cpu")
        for part in reversed(list(module.modules())):
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()
        starts[layer] = {name: whole_of(p.detach()) for name, p in module.named_parameters()}
    save(starts, folder / "starts.pt")


def _convolve(folder: Path) -> None:
    torch.manual_seed(0)
    mesh, x = init_device_mesh("cpu", (PROCESSES,)), torch.randn(4, 5, 8, dtype=torch.float64)
    block = nlilayers.GatedConvBlock(8, 8, dtype=torch.float64)

    def with_gradients(x: Tensor) -> Tensors:
        hidden, _ = block(x)
        gradients = torch.autograd.grad(hidden.square().sum(), list(block.parameters()))
        return tuple(whole_of(y.detach()) for y in (hidden, *gradients))

    whole = with_gradients(x)
    distribute_module(block, mesh)
    save({"whole": whole, "shared": with_gradients(distribute_tensor(x, mesh, [Shard(0)]))}, folder / "convolved.pt")
