"""How a model is trained: the numbers that a paper's experiment section gives."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.optim import Adagrad, Adam, Optimizer


@dataclass(frozen=True)
class Recipe:
    """A training recipe; each script's defaults are its paper's."""

    optimizer: Literal["adam", "adagrad"] = "adam"
    """Adagrad's accumulator starts at 0.1, as TensorFlow's does and torch's does not."""
    lr: float | None = None
    """Learning rate; None takes the paper's for the chosen model."""
    batch_size: int = 32
    """Pairs in a batch, in each process."""
    epochs: int = 20
    """Passes over the training pairs, at most."""
    patience: int = 5
    """Stop after this many epochs without a better dev accuracy."""
    clip_norm: float | None = None
    """Largest norm of the gradient; None clips nothing."""

    def make_optimizer(self, parameters: Iterable[nn.Parameter], paper_lr: float) -> Optimizer:
        """The optimiser of the trainable parameters."""
        trainable = [parameter for parameter in parameters if parameter.requires_grad]
        lr = paper_lr if self.lr is None else self.lr
        if self.optimizer == "adagrad":
            return Adagrad(trainable, lr=lr, initial_accumulator_value=0.1)
        return Adam(trainable, lr=lr)

    def problems(self) -> list[str]:
        """What is wrong with the numbers, in words."""
        checks = {
            f"--lr must be positive and finite, got {self.lr}": self.lr is not None and not 0 < self.lr < math.inf,
            f"--batch-size must be at least 1, got {self.batch_size}": self.batch_size < 1,
            f"--epochs must be at least 1, got {self.epochs}": self.epochs < 1,
            f"--patience must be at least 1, got {self.patience}": self.patience < 1,
            f"--clip-norm must be positive, got {self.clip_norm}": self.clip_norm is not None
            and not self.clip_norm > 0,
        }
        return [problem for problem, wrong in checks.items() if wrong]


def reseed(seed: int, process: int, step: int) -> None:
    """Make a step's dropout depend on seed, process and step alone, so that a resumed run repeats it."""
    torch.manual_seed((seed * 1_000_003 + step) * 4099 + process)
