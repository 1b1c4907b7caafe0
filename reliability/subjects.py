"""A layer or model as its users call it: in float32, a model given its two sentences, at batches of any shape."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from reliability.cases import CASES, Case, Pairs, as_sentences, full_size
from reliability.transforms import difference


class Shape(NamedTuple):
    """Pairs in a batch, and the words of the longest premise and hypothesis of it."""

    batch: int
    premise: int
    hypothesis: int


SMALL = (
    Shape(7, 11, 13),
    *(Shape(2, 8, 9), Shape(3, 7, 6), Shape(13, 7, 11), Shape(9, 2, 3), Shape(2, 31, 17)),
    *(Shape(4, 5, 5), Shape(6, 4, 6), Shape(8, 8, 2), Shape(5, 5, 5)),
)
LARGE = (
    Shape(32, 41, 23),
    *(Shape(8, 12, 9), Shape(24, 30, 51), Shape(41, 32, 23), Shape(64, 15, 8), Shape(3, 181, 60)),
    *(Shape(16, 20, 20), Shape(25, 25, 14), Shape(19, 37, 19), Shape(17, 17, 17)),
)
"""Ten batches each: a program is made for the first alone, of three sizes that no feature has; in the last four, sizes
are equal that were not."""
ONES = (Shape(1, 5, 3), Shape(3, 1, 2), Shape(3, 4, 1), Shape(1, 1, 1))
"""One pair, or one word."""


@dataclass(frozen=True)
class Subject:
    """A module, and what it is given at a shape.

    Attributes:
        module: in float32 and in evaluation.
        case: where its inputs come from.
    """

    module: nn.Module
    case: Case

    def fitted(self, shape: Shape) -> Shape:
        """A layer for long sentences has longer ones."""
        return shape._replace(premise=self.case.shortest - 1 + shape.premise)

    def inputs(self, shape: Shape, seed: int = 0) -> tuple[Any, ...]:
        """A batch; a model is given a premise and a hypothesis."""
        batch, premise, hypothesis = self.fitted(shape)
        drawn = self.case.inputs(batch, premise, seed, other=hypothesis)
        single = tuple(x.float() if x.is_floating_point() else x for x in drawn)
        return as_sentences(single) if self.case.paired else single


def subject(case: Case, *, full: bool = False) -> Subject:
    """A case's module, with parameters that are drawn anew or, at full size, as it starts."""
    torch.manual_seed(0)
    module = case.build().eval() if full else case.module().float()
    return Subject(module.model if isinstance(module, Pairs) else module, case)


def subjects(*, full: bool) -> dict[str, Subject]:
    """Every public layer and reference model."""
    return {name: subject(case, full=full) for name, case in (full_size() if full else CASES).items()}


def deviation(ours: Any, theirs: Any) -> float:
    """The largest difference of two outputs, as a share of the largest number of their tensor where that is above 1.

    Raises:
        AssertionError: if their shapes differ, or one of them has a number that is not finite.
    """
    return difference(tuple(tree_leaves(ours)), tuple(tree_leaves(theirs)))


def gradients(call: Callable[..., Any], module: nn.Module, inputs: tuple[Any, ...]) -> list[Tensor]:
    """The outputs; and the mean of their squares, differentiated by the parameters and by what is floating point."""
    leaves = tree_map_only(Tensor, lambda x: x.clone().requires_grad_(x.is_floating_point()), inputs)
    wanted = [x for x in tree_leaves(leaves) if x.requires_grad] + [p for p in module.parameters() if p.requires_grad]
    outputs = tree_leaves(call(*leaves))
    if not wanted:
        return outputs
    loss = torch.stack([y.square().mean() for y in outputs]).sum()
    return [*outputs, *torch.autograd.grad(loss, wanted, materialize_grads=True)]
