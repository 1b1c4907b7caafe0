"""Each layer against what a user would write, or pick, in its place; forward and backward."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.attention import hidden
from benchmarks.measure import Comparison, Timing, compare, training_step
from benchmarks.spent import shares
from benchmarks.words import random_words
from nlilayers import (
    AlignmentFactorization,
    CharNgramEmbedding,
    DecomposableAlign,
    FactorizationMachine,
    GatedConvBlock,
    Highway,
    IntraAlign,
)

BATCH, LENGTH = 64, 14
"""Pairs, and words: SNLI's mean premise."""


class TextbookMachine(nn.Module):
    """A factorization machine as it is usually written: the square of the sum less the sum of the squares."""

    def __init__(self, in_features: int, num_factors: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, 1)
        self.factors = nn.Parameter(torch.randn(in_features, num_factors) / in_features)

    def forward(self, x: Tensor) -> Tensor:
        """The scalar of each vector."""
        pairs = (x @ self.factors).pow(2) - x.pow(2) @ self.factors.pow(2)
        y: Tensor = self.linear(x).squeeze(-1) + 0.5 * pairs.sum(-1)
        return y


class InstalledMachine(nn.Module):
    """torchfm's pairs, which it takes as the vectors ``x_i v_i``, and a linear layer."""

    def __init__(self, in_features: int, num_factors: int) -> None:
        super().__init__()
        from torchfm.layer import FactorizationMachine as Pairs

        self.linear, self.pairs = nn.Linear(in_features, 1), Pairs()
        self.factors = nn.Parameter(torch.randn(in_features, num_factors) / in_features)

    def forward(self, x: Tensor) -> Tensor:
        """The scalar of each vector."""
        rows = x.reshape(-1, x.shape[-1])
        y: Tensor = (self.linear(rows) + self.pairs(rows[:, :, None] * self.factors)).view(x.shape[:-1])
        return y


class ThreeMachines(nn.Module):
    """CAFE's comparison with three textbook machines."""

    def __init__(self, embed_dim: int, num_factors: int) -> None:
        super().__init__()
        self.machines = nn.ModuleList(TextbookMachine(n, num_factors) for n in (2 * embed_dim, embed_dim, embed_dim))

    def forward(self, x: Tensor, aligned: Tensor) -> Tensor:
        """The three scalars of each word."""
        pairs = (torch.cat([x, aligned], dim=-1), x - aligned, x * aligned)
        return torch.stack([machine(pair) for machine, pair in zip(self.machines, pairs, strict=True)], dim=-1)


class ThreeConvolutions(nn.Module):
    """The three convolutions of a gated block, and nothing else of it."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(features, features, 3, padding=1) for _ in range(3))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Their outputs."""
        x = x.mT
        return tuple(convolution(x).mT for convolution in self.convolutions)


class BareAlignment(nn.Module):
    """Three batched products and two softmaxes; what aligns with padding is left as it comes."""

    def forward(
        self, premise: Tensor, hypothesis: Tensor, p_mask: Tensor | None = None, h_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The two alignments."""
        scores = torch.bmm(premise, hypothesis.mT)
        of_premise, of_hypothesis = _hidden(scores, h_mask), _hidden(scores.mT, p_mask)
        return torch.bmm(of_premise.softmax(2), hypothesis), torch.bmm(of_hypothesis.softmax(2), premise)


class BareIntraAlignment(nn.Module):
    """Two batched products and a softmax; what aligns with padding is left as it comes."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The alignment."""
        return torch.bmm(_hidden(torch.bmm(x, x.mT), mask).softmax(2), x)


def _hidden(scores: Tensor, mask: Tensor | None) -> Tensor:
    return hidden(scores, None if mask is None else mask[:, None])


class TextbookHighway(nn.Module):
    """Two linear layers and a gate."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.transform, self.gate = nn.Linear(features, features), nn.Linear(features, features)

    def forward(self, x: Tensor) -> Tensor:
        """Some of each."""
        gate = torch.sigmoid(self.gate(x))
        return gate * torch.relu(self.transform(x)) + (1 - gate) * x


@dataclass(frozen=True)
class Case:
    """One layer, its rival, and how much of the rival's time it may take."""

    name: str
    rival: str
    goal: float | None
    shapes: tuple[tuple[int, ...], ...]
    """Of what both are given."""
    build: Callable[[], tuple[nn.Module, nn.Module]]
    """The layer and the rival."""


def words(*features: int) -> tuple[tuple[int, ...], ...]:
    """The shape of a batch of sentences for each of these widths."""
    return tuple((BATCH, LENGTH, d) for d in features)


CASES = (
    Case(
        "FactorizationMachine(600, 50)",
        "Linear(600, 50)",
        1.5,
        words(600),
        lambda: (FactorizationMachine(600, 50), nn.Linear(600, 50)),
    ),
    Case(
        "FactorizationMachine(600, 50)",
        "textbook machine",
        None,
        words(600),
        lambda: (FactorizationMachine(600, 50), TextbookMachine(600, 50)),
    ),
    Case(
        "FactorizationMachine(600, 50)",
        "torchfm",
        None,
        words(600),
        lambda: (FactorizationMachine(600, 50), InstalledMachine(600, 50)),
    ),
    Case(
        "AlignmentFactorization(300, 50)",
        "three textbook machines",
        0.6,
        words(300, 300),
        lambda: (AlignmentFactorization(300, 50), ThreeMachines(300, 50)),
    ),
    Case(
        "GatedConvBlock(300, 300)",
        "three Conv1d(300, 300, 3)",
        0.9,
        words(300),
        lambda: (GatedConvBlock(300, 300), ThreeConvolutions(300)),
    ),
    Case(
        "GatedConvBlock(300, 300)",
        "LSTM(300, 300)",
        None,
        words(300),
        lambda: (GatedConvBlock(300, 300), LastOutput(nn.LSTM(300, 300, batch_first=True))),
    ),
    Case(
        "DecomposableAlign()",
        "bmm and two softmaxes",
        1.1,
        ((BATCH, LENGTH, 200), (BATCH, 8, 200)),
        lambda: (DecomposableAlign(), BareAlignment()),
    ),
    Case("IntraAlign()", "bmm and a softmax", None, words(200), lambda: (IntraAlign(), BareIntraAlignment())),
    Case("Highway(300)", "two Linear and a gate", None, words(300), lambda: (Highway(300), TextbookHighway(300))),
)


class LastOutput(nn.Module):
    """A recurrent layer's states without its final ones."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        """The states."""
        y: Tensor = self.layer(x)[0]
        return y


def run(device: str, dtype: torch.dtype) -> Iterator[tuple[Case, Comparison]]:
    """Every case, measured."""
    for case in CASES:
        torch.manual_seed(0)
        ours, rival = case.build()
        inputs = [torch.randn(*shape, device=device, dtype=dtype) for shape in case.shapes]
        steps = [training_step(module.to(device, dtype), *inputs) for module in (ours, rival)]
        yield case, compare(steps[0], {case.rival: steps[1]})


def spent(device: str, dtype: torch.dtype) -> Iterator[tuple[str, dict[str, float]]]:
    """What each layer's time goes to, by name."""
    for case in {case.name: case for case in CASES}.values():
        torch.manual_seed(0)
        ours, _ = case.build()
        inputs = [torch.randn(*shape, device=device, dtype=dtype) for shape in case.shapes]
        yield case.name, shares(training_step(ours.to(device, dtype), *inputs), device)


def vocabulary_table(device: str) -> Timing:
    """Seconds for the vectors of a vocabulary of 40,000 words of 4 to 9 letters."""
    words = random_words(40_000)
    layer = CharNgramEmbedding(30, device=device)
    return compare(lambda: layer.table(words), {}, rounds=7).seconds["ours"]
