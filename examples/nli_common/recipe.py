"""How a model is trained: the numbers that a paper's experiment section gives."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.optim import Adagrad, Adam, AdamW, Optimizer

from nli_common.restarts import cosine_restarts, normalized_decay_rate

_OF_RESTARTS = ("min_lr", "restart_epochs", "restart_factor", "normalized_decay")


@dataclass(frozen=True)
class Recipe:
    """A training recipe; each script's defaults are its paper's, as far as it gives them."""

    optimizer: Literal["adam", "adagrad", "adamwr"] = "adam"
    """Adagrad's accumulator starts at 0.1, as TensorFlow's; adamwr is Adam with restarts and a decay of its own."""
    lr: float | None = None
    """Learning rate; None takes the paper's for the chosen model."""
    batch_size: int = 32
    """Pairs in a batch, in each process."""
    same_lengths: bool = False
    """Batches of pairs whose premises, and whose hypotheses, have the same length, so that there is no padding."""
    epochs: int = 20
    """Passes over the training pairs, at most."""
    patience: int = 5
    """Stop after this many epochs without a better dev accuracy."""
    warmup_epochs: float = 0.0
    """Epochs at the start, possibly a fraction, during which the learning rate rises linearly from 0."""
    clip_norm: float | None = None
    """Largest norm of the gradient; None clips nothing."""
    l2: float = 0.0
    """Weight of the penalty, half the squared norm of every weight matrix, in the loss (adam, adagrad)."""
    ema_decay: float | None = None
    """Decay of a moving average, which is then chosen on dev, kept and tested in place of the weights; None: none."""
    min_lr: float = 0.0
    """Adamwr: the learning rate falls to this along a cosine, and restarts."""
    restart_epochs: int = 10
    """Adamwr: epochs from the start to the first restart."""
    restart_factor: int = 1
    """Adamwr: how many times longer each cycle is than the one before it."""
    normalized_decay: float = 0.0
    """Adamwr: normalised weight decay; a step's: this times the cosine and the root of batch / (pairs * epochs)."""
    compile: bool = False
    """Compile the training step's model: takes some minutes at the start; worthwhile for a long training."""
    cuda_graphs: bool = False
    """On a GPU, record a step of each shape of batch and replay it: faster where batches are small."""

    def make_optimizer(self, model: nn.Module) -> Optimizer:
        """The optimiser of a model's trainable parameters, weight matrices apart from the rest.

        Adamwr (Loshchilov, Hutter 2019) leaves scalars their size.

        Raises:
            ValueError: if the recipe has no learning rate.
        """
        lr = self._rate()
        trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if self.optimizer == "adamwr":
            scalars = [p for p in trainable if p.ndim == 0]
            groups = [{"params": [p for p in trainable if p.ndim > 0], "decays": True}]
            # A scalar is no weight: decay would draw a softplus's argument to 0, and its value away from it.
            return AdamW(groups + [{"params": scalars, "decays": False}] * bool(scalars), lr=lr, fused=True)
        matrices, others = [p for p in trainable if p.ndim >= 2], [p for p in trainable if p.ndim < 2]
        groups = [{"params": group, "weight_decay": l2} for group, l2 in ((matrices, self.l2), (others, 0.0)) if group]
        if self.optimizer == "adagrad":
            return Adagrad(groups, lr=lr, initial_accumulator_value=0.1)
        return Adam(groups, lr=lr, fused=True)

    def schedule(self, optimizer: Optimizer, epoch: float, pairs: int, batch_size: int) -> None:
        """Set the learning rate and the decay of the next step.

        Args:
            optimizer: what :meth:`make_optimizer` made.
            epoch: passes over the training pairs until now, with their fraction.
            pairs: training pairs.
            batch_size: pairs in a batch of all processes together.
        """
        warmth = min(1.0, (epoch + batch_size / pairs) / self.warmup_epochs) if self.warmup_epochs else 1.0
        if self.optimizer != "adamwr":
            for group in optimizer.param_groups:
                group["lr"] = self._rate() * warmth
            return
        share, cycle = cosine_restarts(epoch, self.restart_epochs, self.restart_factor)
        now = (self.min_lr + (self._rate() - self.min_lr) * share) * warmth
        rate = share * normalized_decay_rate(self.normalized_decay, batch_size, pairs, cycle)
        for group in optimizer.param_groups:
            # torch multiplies the decay by the learning rate, the paper does not.
            group["lr"], group["weight_decay"] = now, rate / now if group["decays"] and now > 0 else 0.0

    def _rate(self) -> float:
        if self.lr is None:
            raise ValueError("the recipe has no learning rate: set lr")
        return self.lr

    @property
    def unread(self) -> dict[str, str]:
        """The options that this optimiser does not read."""
        names = ("l2",) if self.optimizer == "adamwr" else _OF_RESTARTS
        return dict.fromkeys(names, f"with --optimizer {self.optimizer}")

    def problems(self) -> list[str]:
        """What is wrong with the numbers, in words."""
        problems = []
        if self.lr is not None and not 0 < self.lr < math.inf:
            problems.append(f"--lr must be positive and finite, got {self.lr}")
        if self.clip_norm is not None and not self.clip_norm > 0:
            problems.append(f"--clip-norm must be positive, got {self.clip_norm}")
        if self.optimizer == "adamwr" and self.lr is not None and self.lr < self.min_lr < math.inf:
            problems.append(f"--min-lr must be at most --lr, {self.lr}, got {self.min_lr}")
        if self.compile and self.cuda_graphs:
            problems.append("--compile and --cuda-graphs exclude each other")
        if self.ema_decay is not None and not 0 <= self.ema_decay < 1:
            problems.append(f"--ema-decay must be at least 0 and below 1, got {self.ema_decay}")
        for name in ("batch_size", "epochs", "patience", "restart_epochs", "restart_factor"):
            value = getattr(self, name)
            if value < 1:
                problems.append(f"--{name.replace('_', '-')} must be at least 1, got {value}")
        for name in ("l2", "min_lr", "normalized_decay", "warmup_epochs"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                problems.append(f"--{name.replace('_', '-')} must be 0 or more and finite, got {value}")
        return problems


def reseed(seed: int, process: int, step: int) -> None:
    """Make a step's dropout depend on seed, process and step alone, so that a resumed run repeats it."""
    torch.manual_seed((seed * 1_000_003 + step) * 4099 + process)
