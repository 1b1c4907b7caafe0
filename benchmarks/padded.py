"""Layers on padded batches, as sentences come, in training and in inference, against what a user would take instead."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks import attention
from benchmarks.layers import BareAlignment, BareIntraAlignment
from benchmarks.measure import Comparison, Step, compare, inference_step, training_step
from nlilayers import DecomposableAlign, IntraAlign
from nlilayers.masking import zero_padding

FEATURES = 200
"""Features of the words that are aligned: Decomposable Attention's."""
SHAPES = ((64, 16), (64, 32), (64, 64))
"""Batch and length."""
LONGER = ((32, 128), (8, 512))
"""Those that self-attention is measured on, too."""
PHASES: dict[str, Callable[..., Step]] = {"training": training_step, "inference": inference_step}


class ZeroPadding(nn.Module):
    """What every layer does to its input first."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """The sequence with 0 at padding."""
        return zero_padding(x, mask)


class Choice(nn.Module):
    """The same as it is usually written."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Each number or 0."""
        return torch.where(mask[..., None], x, 0)


@dataclass(frozen=True)
class Case:
    """A layer, what it is measured against, and what all of them are given."""

    name: str
    layers: Callable[[str, torch.dtype], dict[str, nn.Module]]
    """Ours, and the rivals by name."""
    features: int
    sentences: int
    shapes: tuple[tuple[int, int], ...]


def bare(ours: nn.Module, rival: nn.Module, name: str) -> Callable[[str, torch.dtype], dict[str, nn.Module]]:
    """Layers without weights."""
    return lambda device, dtype: {"ours": ours, name: rival}


CASES = (
    Case(
        f"GaussianSelfAttention({attention.EMBED_DIM}, {attention.HEADS})",
        lambda device, dtype: {name: attention.layer(name, device, dtype) for name in ("ours", *attention.RIVALS)},
        attention.EMBED_DIM,
        1,
        SHAPES + LONGER,
    ),
    Case(
        "DecomposableAlign()", bare(DecomposableAlign(), BareAlignment(), "bmm and two softmaxes"), FEATURES, 2, SHAPES
    ),
    Case("IntraAlign()", bare(IntraAlign(), BareIntraAlignment(), "bmm and a softmax"), FEATURES, 1, SHAPES),
    Case("masking.zero_padding", bare(ZeroPadding(), Choice(), "torch.where"), FEATURES, 1, SHAPES),
)


def batch_of(sentences: int, features: int, batch: int, length: int) -> list[Tensor]:
    """Words and then masks of as many sentences a pair; lengths from half to the whole, which the first one has."""
    words = [torch.randn(batch, length, features) for _ in range(sentences)]
    lengths = torch.randint((length + 1) // 2, length + 1, (sentences, batch, 1))
    lengths[:, 0] = length
    return [*words, *(torch.arange(length) < lengths)]


def run(device: str, dtype: torch.dtype) -> Iterator[tuple[Case, int, int, str, Comparison]]:
    """Every layer at every shape in both phases: the case, batch, length, phase and comparison."""
    for case in CASES:
        for batch, length in case.shapes:
            torch.manual_seed(0)
            given = batch_of(case.sentences, case.features, batch, length)
            there = [x.to(device, dtype) if x.dtype.is_floating_point else x.to(device) for x in given]
            layers = case.layers(device, dtype)
            for phase, step in PHASES.items():
                steps = {name: step(layer, *there) for name, layer in layers.items()}
                yield case, batch, length, phase, compare(steps.pop("ours"), steps)
