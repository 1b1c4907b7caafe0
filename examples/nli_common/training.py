"""The training loop: early stopping on dev, and a run that was killed goes on to the same numbers."""

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Optimizer

from nli_common.averaging import WeightAverage
from nli_common.batches import PairDataset, Share, evaluation_loader, loader, shared
from nli_common.checkpoints import load_newest, require_weights, save_checkpoint, save_weights
from nli_common.data import Batch
from nli_common.errors import InputError
from nli_common.memory import LEAVE_OUT, memory_for
from nli_common.metrics import predictions
from nli_common.recipe import Recipe, reseed
from nli_common.recorded import MULTIPLE, RecordedGradients
from nli_common.runs import Run

SMALLER_BATCHES = "a smaller --batch-size may fit, or leave such pairs out"


@dataclass
class TrainingState:
    """Where a training stands, all of it in the checkpoint."""

    epoch: int = 0
    step: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    best_epoch: int = -1
    best_accuracy: float = -1.0
    history: list[dict[str, float]] = field(default_factory=list)

    @classmethod
    def read(cls, progress: dict[str, Any], path: Path) -> "TrainingState":
        """What a checkpoint says.

        Raises:
            InputError: if it is no progress that a training makes.
        """
        try:
            at = cls(**progress)
            counts, numbers = (at.epoch, at.step, at.best_epoch + 1), (at.loss, at.seconds, at.best_accuracy)
            figures = [*counts, *numbers, *(figure for row in at.history for figure in row.values())]
            plain = all(type(figure) in (int, float) and math.isfinite(figure) for figure in figures)
            if not plain or any(type(count) is not int or count < 0 for count in counts):
                raise ValueError("its counters or figures are not those of a training run")
            if len(at.history) != at.epoch or any(row.keys() != {"epoch", "loss", "dev"} for row in at.history):
                raise ValueError(f"its history does not cover {at.epoch} epochs")
            if at.best_epoch >= max(at.epoch, 1) or (at.epoch > 0 and at.seconds <= 0):
                raise ValueError(f"its best epoch or its time is impossible after {at.epoch} epochs")
        except (TypeError, AttributeError, ValueError, OverflowError) as error:
            raise InputError(f"{path}: not a checkpoint of this run ({error})") from None
        return at

    def next_epoch(self, loss: float, accuracy: float) -> bool:
        """Close an epoch; True if its dev accuracy is the best so far."""
        better = accuracy > self.best_accuracy
        if better:
            self.best_epoch, self.best_accuracy = self.epoch, accuracy
        self.history.append({"epoch": self.epoch + 1, "loss": loss, "dev": accuracy})
        self.epoch, self.step, self.loss = self.epoch + 1, 0, 0.0
        return better


class Trainer:
    """Trains a model until the last epoch, or until dev has not improved for ``recipe.patience`` of them.

    Every random number depends on the seed, the epoch and the step alone, so that the result does not depend on how
    often the run was interrupted. Several processes share each batch, and take the step that a single one would take
    with all of it. (Only their dropout differs.)

    Args:
        model: is trained in place.
        optimizer: of the model's parameters.
        train: what it learns from.
        dev: what chooses the best epoch.
        recipe: how it learns.
        seed: of the order of the pairs, and of dropout.
        run: the folder of its checkpoints, and of the best epoch's weights.
        accelerator: knows the device, and the other processes.
        console: is told of each epoch.
        checkpoint_seconds: time between two checkpoints; each epoch ends with one too.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        *,
        train: PairDataset,
        dev: PairDataset,
        recipe: Recipe,
        seed: int,
        run: Run,
        accelerator: Accelerator,
        console: Console,
        checkpoint_seconds: float,
    ) -> None:
        self.recipe, self.seed, self.run = recipe, seed, run
        self.accelerator, self.console, self.checkpoint_seconds = accelerator, console, checkpoint_seconds
        self.pairs = len(train)
        self.global_batch = recipe.batch_size * accelerator.num_processes
        whole = loader(train, self.global_batch, seed, same_lengths=recipe.same_lengths)
        self.batches = shared(whole, accelerator.process_index, accelerator.num_processes)
        self.unwrapped = model  # is saved and restored; `model` is evaluated
        self.model, self.optimizer, self.dev_batches = accelerator.prepare(model, optimizer, evaluation_loader(dev))
        self.average = None if recipe.ema_decay is None else WeightAverage(model, recipe.ema_decay)
        # Evaluation has its own batch size and no gradient, and would be compiled once more.
        trained = torch.compile(self.model, dynamic=True) if recipe.compile else self.model
        # No method of this object: what holds it would outlive the training, with all records, until it is collected.
        self.gradients = partial(_gradients, trained, accelerator)
        self.recorded = None
        if recipe.cuda_graphs:
            multiple = 1 if recipe.same_lengths else MULTIPLE
            self.recorded = RecordedGradients(self.gradients, model.parameters(), accelerator.device, multiple)

    def fit(self) -> TrainingState:
        """Train, from the folder's newest checkpoint that is whole, where there is one.

        The weights of the best epoch on dev lie in the folder at the end.

        Raises:
            InputError: if the loss or a weight is no longer a finite number, a batch does not fit into memory, a file
                cannot be written, or what is needed to go on is damaged.
        """
        at = self._resumed()
        while self._goes_on(at):
            loss = self._epoch(at)
            with self.average.in_use() if self.average is not None else contextlib.nullcontext():
                outcome = predictions(self.model, self.dev_batches, self.accelerator, self._way_out(LEAVE_OUT))
                predicted, label, _ = outcome
                accuracy = float((predicted == label).double().mean())
                better = at.next_epoch(loss, accuracy)
                if better and self.accelerator.is_main_process:
                    save_weights(self.run.weights, self.unwrapped)
            self._save(at)
            rate = at.epoch * self.pairs / at.seconds
            self.console.print(
                f"epoch {at.epoch:3}   loss {loss:.4f}   dev {100 * accuracy:5.2f}"
                f"{' *' if better else '  '}   {rate:,.0f} pairs/s"
            )
        self.accelerator.wait_for_everyone()
        return at

    def _resumed(self) -> TrainingState:
        """Where the training stands, with the model and the optimiser as they were there."""
        paths = self.run.checkpoint, self.run.previous
        resumed = load_newest(paths, self.unwrapped, self.optimizer, self.average)
        self.accelerator.wait_for_everyone()
        if resumed is None:
            return TrainingState()
        at = TrainingState.read(resumed.progress, resumed.path)
        if at.best_epoch >= 0:
            require_weights(self.run.weights)
        for problem in resumed.problems:
            self.console.print(f"{problem}; going on from the one before it", soft_wrap=True)
        if self.accelerator.is_main_process and resumed.path != self.run.checkpoint:
            resumed.path.replace(self.run.checkpoint)
        place = f"at epoch {at.epoch + 1}, step {at.step}" if self._goes_on(at) else f"after the last epoch, {at.epoch}"
        self.console.print(f"resuming {place}")
        return at

    def _goes_on(self, at: TrainingState) -> bool:
        """Whether there is another epoch to train, or the rest of one."""
        return at.epoch < self.recipe.epochs and at.epoch - at.best_epoch <= self.recipe.patience

    def _epoch(self, at: TrainingState) -> float:
        """Take the rest of an epoch's steps; their mean loss."""
        part = self.batches.batch_sampler
        assert isinstance(part, Share)
        part.batches.start_epoch(at.epoch)
        loss_sum = torch.tensor(at.loss, device=self.accelerator.device)
        self.model.train()
        started = saved = time.perf_counter()
        with self._bar() as bar:
            task = bar.add_task(f"epoch {at.epoch + 1}", total=len(self.batches), completed=at.step)
            for batch, weight in islice(zip(self.batches, part.weights(), strict=True), at.step, None):
                with memory_for(batch.premise, batch.hypothesis, self._way_out(SMALLER_BATCHES)):
                    loss_sum += self._step(at, batch, weight)
                at.step += 1
                bar.advance(task)
                if time.perf_counter() - saved > self.checkpoint_seconds:
                    at.loss = _finite(float(loss_sum), self.unwrapped, at)
                    at.seconds += time.perf_counter() - started
                    self._save(at)
                    started = saved = time.perf_counter()
        mean = _finite(float(loss_sum), self.unwrapped, at) / at.step
        at.seconds += time.perf_counter() - started
        return mean

    def _step(self, at: TrainingState, batch: Batch, weight: float) -> Tensor:
        """One step of the optimiser; the loss over the batch of all processes, before it."""
        reseed(self.seed, self.accelerator.process_index, at.epoch * len(self.batches) + at.step)
        epoch = at.epoch + at.step / len(self.batches)
        self.recipe.schedule(self.optimizer, epoch, self.pairs, self.global_batch)
        self.optimizer.zero_grad()
        if self.recorded is None:
            loss = self.gradients(send_to_device(batch, self.accelerator.device), weight)
        else:
            loss = self.recorded(batch)
        if self.recipe.clip_norm is not None:
            self.accelerator.clip_grad_norm_(self.model.parameters(), self.recipe.clip_norm)
        self.optimizer.step()
        if self.average is not None:
            self.average.update()
        mean: Tensor = self.accelerator.reduce(loss, "mean")
        return mean

    def _way_out(self, way: str) -> str:
        return way if self.recorded is None else f"{way}; or train without --cuda-graphs, in another folder"

    def _save(self, at: TrainingState) -> None:
        if self.accelerator.is_main_process:
            state = self.unwrapped, self.optimizer, asdict(at)
            save_checkpoint(self.run.checkpoint, *state, average=self.average, keep=self.run.previous)

    def _bar(self) -> Progress:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        visible = self.accelerator.is_main_process and self.console.is_terminal
        return Progress(*columns, console=self.console, transient=True, disable=not visible)


def _gradients(model: Callable[..., Tensor], accelerator: Accelerator, batch: Batch, weight: float = 1.0) -> Tensor:
    """Add a batch's gradients to those of the parameters; its loss."""
    loss = weight * cross_entropy(model(batch.premise, batch.hypothesis), batch.label)
    accelerator.backward(loss)
    return loss.detach()


def _finite(loss: float, model: nn.Module, at: TrainingState) -> float:
    """The loss, if it and the weights, which the next loss would come from, are finite."""
    way_on = f"in epoch {at.epoch + 1}; try a lower --lr, in another folder"
    if not math.isfinite(loss):
        raise InputError(f"the loss became {loss} {way_on}")
    if not all(p.isfinite().all() for p in model.parameters() if p.requires_grad):
        raise InputError(f"the weights became infinite or nan {way_on}")
    return loss
