"""What Hypothesis draws: sizes, masks and seeds; tensors are made from them by a seeded generator.

Sizes are small and axes differ, so that a swapped axis cannot pass unnoticed.
"""

import dataclasses

import torch
from hypothesis import strategies as st
from torch import Tensor

FEATURES = 5


@dataclasses.dataclass(frozen=True)
class Sentences:
    """One batch for each sentence side of a layer, with its mask; ``x`` and ``mask`` name the first."""

    tensors: tuple[Tensor, ...]
    masks: tuple[Tensor, ...]

    @property
    def x(self) -> Tensor:
        return self.tensors[0]

    @property
    def mask(self) -> Tensor:
        return self.masks[0]

    def to(self, *args: object) -> "Sentences":
        """Tensors in another dtype or on another device; masks only move."""
        tensors = tuple(t.to(*args) for t in self.tensors)
        return Sentences(tensors, tuple(m.to(tensors[0].device) for m in self.masks))


def normal(seed: int, *shape: int, scale: float = 1.0) -> Tensor:
    """Standard normal float64 numbers that depend on the seed alone."""
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


seeds = st.integers(0, 2**31 - 1)
scales = st.sampled_from([0.0, 0.1, 1.0, 5.0])


@st.composite
def masks(draw: st.DrawFn, batch: int, length: int) -> Tensor:
    """Right-padded masks half of the time, and any pattern otherwise; empty sentences included."""
    if draw(st.booleans()):
        lengths = draw(st.lists(st.integers(0, length), min_size=batch, max_size=batch))
        return torch.tensor([[i < real for i in range(length)] for real in lengths]).view(batch, length)
    rows = st.lists(st.booleans(), min_size=length, max_size=length)
    return torch.tensor(draw(st.lists(rows, min_size=batch, max_size=batch)), dtype=torch.bool).view(batch, length)


@st.composite
def sentences(draw: st.DrawFn, sides: int = 1, features: int = FEATURES) -> Sentences:
    """One to three sentences of one to seven words on each side."""
    batch = draw(st.integers(1, 3))
    lengths = [draw(st.integers(1, 7)) for _ in range(sides)]
    seed, scale = draw(seeds), draw(scales)
    return Sentences(
        tuple(normal(seed + k, batch, n, features, scale=scale) for k, n in enumerate(lengths)),
        tuple(draw(masks(batch, n)) for n in lengths),
    )
