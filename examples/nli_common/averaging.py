"""An exponential moving average of a model's weights, which often does better than the weights themselves.

At a constant learning rate the weights move about a good place without coming to rest in it; their average does
(Polyak, Juditsky 1992, https://doi.org/10.1137/0330046).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

Tensors: TypeAlias = tuple[Tensor, ...] | list[Tensor]


class WeightAverage(AveragedModel):
    """After the first step θ, the weights; after step t > 1, γ average + (1 - γ) θ with γ = min(decay, t / (9 + t)).

    So the first steps, of a model that knows little, are soon forgotten. Weights that are not trained are left out.

    Args:
        model: whose weights are averaged.
        decay: γ in the long run.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        trained = nn.ParameterList(p for p in model.parameters() if p.requires_grad)
        super().__init__(trained, multi_avg_fn=self._fade)
        self.decay = decay
        self._trained = (trained,)  # in a tuple, so that they are no part of this module's own state

    def update(self) -> None:
        """Take in the weights as they are after a step."""
        self.update_parameters(*self._trained)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Within, the model's weights are the average; afterwards they are its own again."""
        (trained,) = self._trained
        own = [weight.detach().clone() for weight in trained]
        try:
            self._give(self.module.parameters())
            yield
        finally:
            self._give(own)

    @torch.no_grad()
    def _fade(self, averages: Tensors, weights: Tensors, steps: Tensor | int) -> None:
        # n_averaged lies on the CPU, the same number in `steps` beside the weights: reading it would stop a GPU.
        t = 1 + int(self.n_averaged)
        torch._foreach_lerp_(averages, weights, 1 - min(self.decay, t / (9 + t)))

    @torch.no_grad()
    def _give(self, values: Iterable[Tensor]) -> None:
        for weight, value in zip(*self._trained, values, strict=True):
            weight.copy_(value)
