"""DistributedDataParallel and FSDP2 on two gloo processes: the losses and parameters of one process."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

import nlilayers
from nlilayers import masking
from reliability.cases import MODELS, Tensors
from reliability.transforms import difference

PROCESSES = 2
BATCH = 7
"""Pairs or sentences in a step: four for the first process, three for the second."""
Trained = dict[str, Any]


class SmallNet(nn.Module):
    """Five layers of the library, one upon the other: character n-grams to classes."""

    def __init__(self) -> None:
        super().__init__()
        self.characters = nlilayers.CharNgramEmbedding(8, num_embeddings=64)
        self.attention = nlilayers.GaussianSelfAttention(8, 2)
        self.convolution = nlilayers.GatedConvBlock(8, 8)
        self.compare = nlilayers.AlignmentFactorization(8, 3)
        self.highway = nlilayers.Highway(11, 5)
        self.classify = nn.Linear(5, 3)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """n-grams ``(b, n, k)`` and their words' mask → ``(b, 3)``."""
        x = self.characters(ids)
        hidden, _ = self.convolution(self.attention(x, mask), None, mask)
        compared = self.compare(x, hidden)
        logits: Tensor = self.classify(masking.masked_mean(self.highway(torch.cat([hidden, compared], -1)), mask))
        return logits


NETS: dict[str, Callable[[], nn.Module]] = {
    "five layers": SmallNet,
    "DecomposableAttention": MODELS["DecomposableAttention"].build,
    "GaussianTransformer": MODELS["GaussianTransformer"].build,
    "GatedCNN": MODELS["GatedCNN"].build,
}
WAYS = ("DistributedDataParallel", "fully_shard")


def spread_training(steps: int) -> dict[tuple[str, str], dict[str, float]]:
    """Each net trained each way: the largest difference of its losses, and of its parameters, to one process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        together(_train_all, folder, steps)
        found = {}
        for net in NETS:
            alone = _train(net, None, steps)
            for way in WAYS:
                ours = torch.load(folder / f"{net} {way}.pt")
                if ours["parameters"].keys() != alone["parameters"].keys():
                    raise AssertionError(f"{way} has other parameters than {net}")
                found[net, way] = {
                    "losses": difference((ours["losses"],), (alone["losses"],)),
                    "parameters": difference(tuple(ours["parameters"].values()), tuple(alone["parameters"].values())),
                    "moved": float(alone["moved"]),
                }
    return found


def refusal_of_scalars() -> str:
    """What ``fully_shard`` says of a layer with a scalar parameter, in a group of one process."""
    with tempfile.TemporaryDirectory() as name:
        _join(0, 1, Path(name))
        try:
            fully_shard(nlilayers.FactorizationMachine(4, 2), mesh=init_device_mesh("cpu", (1,)))
        except ValueError as error:
            return str(error)
        finally:
            dist.destroy_process_group()
    return ""


def together(task: Callable[..., None], folder: Path, *arguments: Any) -> None:
    """Do a task in processes of one group, to their end; it is given the folder, in which they meet, and the rest."""
    mp.spawn(_run, args=(task, folder, *arguments), nprocs=PROCESSES)


def _join(rank: int, size: int, folder: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=size)


def _run(rank: int, task: Callable[..., None], folder: Path, *arguments: Any) -> None:
    """One of the processes that do a task together."""
    torch.set_num_threads(1)
    _join(rank, PROCESSES, folder)
    task(folder, *arguments)
    # Caches of DTensor keep the group, whose threads abort a process if one is busy while the interpreter goes.
    os._exit(0)


def _train_all(folder: Path, steps: int) -> None:
    for net in NETS:
        for way in WAYS:
            save(_train(net, way, steps), folder / f"{net} {way}.pt")


def with_axes(model: nn.Module) -> nn.Module:
    """The model with an axis for each scalar parameter, as ``fully_shard`` asks for."""
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.ndim == 0:
                setattr(module, name, nn.Parameter(parameter.detach().reshape(1)))
    return model


def save(found: dict[str, Any], path: Path) -> None:
    """What all processes know, written by the first."""
    if dist.get_rank() == 0:
        torch.save(found, path)


def _train(net: str, way: str | None, steps: int) -> Trained:
    """Some steps with momentum, alone or as one process of several; the whole model at the end in each of them."""
    torch.manual_seed(0)
    model = NETS[net]().double()
    start = [p.detach().clone() for p in model.parameters()]
    rank, size = (0, 1) if way is None else (dist.get_rank(), dist.get_world_size())
    called: nn.Module = model
    if way == "DistributedDataParallel":
        called = DistributedDataParallel(model)
    elif way == "fully_shard":
        mesh = init_device_mesh("cpu", (size,))
        for layer in _layers(with_axes(model)):
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for *inputs, label in _batches(net, steps):
        part = slice(rank, None, size)
        loss = nn.functional.cross_entropy(called(*(x[part] for x in inputs)), label[part])
        loss = loss * (size * len(label[part]) / len(label))
        optimizer.zero_grad()
        loss.backward()
        mean = loss.detach().clone()
        if way is not None:
            dist.all_reduce(mean)
            mean /= size
        optimizer.step()
        losses.append(mean)
    whole = {name: whole_of(p.detach()) for name, p in model.named_parameters()}
    if way == "fully_shard":
        whole = {name: p.reshape(q.shape) for (name, p), q in zip(whole.items(), start, strict=True)}
    moved = max(float((p - q).abs().max()) for p, q in zip(whole.values(), start, strict=True))
    return {"losses": torch.stack(losses), "parameters": whole, "moved": moved}


def _layers(model: nn.Module) -> Iterator[nn.Module]:
    """The innermost modules that can be sharded by themselves: those whose ``forward`` alone reads their parameters."""
    for module in model.modules():
        if isinstance(
            module,
            (
                nlilayers.GatedConvBlock,
                nlilayers.GaussianSelfAttention,
                nlilayers.AlignmentFactorization,
                nlilayers.Highway,
            ),
        ):
            yield module


def whole_of(x: Tensor) -> Tensor:
    """The tensor, of which each process may have a shard."""
    return x.full_tensor() if isinstance(x, DTensor) else x


def _batches(net: str, steps: int) -> Iterator[Tensors]:
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        label = torch.randint(3, (BATCH,), generator=generator)
        if net == "five layers":
            mask = torch.arange(6) < torch.randint(1, 7, (BATCH, 1), generator=generator)
            yield torch.randint(0, 65, (BATCH, 6, 4), generator=generator), mask, label
        else:
            yield (*MODELS[net].inputs(BATCH, 6, seed=step), label)
