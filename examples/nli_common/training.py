"""The training loop: early stopping on dev, and a run that was killed goes on to the same numbers."""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import Optimizer

from nli_common.batches import PairDataset, Share, loader, shared
from nli_common.checkpoints import load_newest, require_weights, save_checkpoint, save_weights
from nli_common.errors import InputError
from nli_common.metrics import evaluate
from nli_common.recipe import Recipe, reseed
from nli_common.runs import Run

EVALUATION_BATCH = 256


@dataclass
class Progressed:
    """Where a training stands, all of it in the checkpoint."""

    epoch: int = 0
    step: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    best_epoch: int = -1
    best_accuracy: float = -1.0
    history: list[dict[str, float]] = field(default_factory=list)

    @classmethod
    def read(cls, progress: dict[str, Any], path: Path) -> "Progressed":
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
                raise ValueError("its numbers are none of a training")
            if len(at.history) != at.epoch or any(row.keys() != {"epoch", "loss", "dev"} for row in at.history):
                raise ValueError(f"its history is not that of {at.epoch} epochs")
            if at.best_epoch >= max(at.epoch, 1) or (at.epoch > 0 and at.seconds <= 0):
                raise ValueError(f"no training of {at.epoch} epochs has this best epoch, or takes no time")
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


def fit(
    model: nn.Module,
    optimizer: Optimizer,
    train: PairDataset,
    dev: PairDataset,
    labels: Sequence[str],
    recipe: Recipe,
    seed: int,
    run: Run,
    accelerator: Accelerator,
    console: Console,
    checkpoint_seconds: float,
) -> Progressed:
    """Train until the last epoch or until dev has not improved for ``recipe.patience`` of them.

    The folder's newest checkpoint that is whole, where there is one, is where it starts. Every random number depends
    on the seed, the epoch and the step alone, so that the result does not depend on how often the run was interrupted.
    The weights of the best epoch on dev lie in the folder at the end.

    Several processes share each batch, and take the step that a single one would take with all of it. (Only their
    dropout differs.)

    Raises:
        InputError: if the loss or a weight is no longer a finite number, a file cannot be written, or what is needed
            to go on is damaged.
    """
    global_batch = recipe.batch_size * accelerator.num_processes
    whole = loader(train, global_batch, seed, same_lengths=recipe.same_lengths)
    batches = shared(whole, accelerator.process_index, accelerator.num_processes)
    part = batches.batch_sampler
    assert isinstance(part, Share)
    plain = model
    model, optimizer, dev_batches = accelerator.prepare(model, optimizer, loader(dev, EVALUATION_BATCH, None))
    # Evaluation has its own batch size and no gradient, and would be compiled once more.
    mode = "reduce-overhead" if recipe.cuda_graphs else "default"
    stepped = torch.compile(model, dynamic=True, mode=mode) if recipe.compile or recipe.cuda_graphs else model
    at = Progressed()
    resumed = load_newest((run.checkpoint, run.previous), plain, optimizer)
    accelerator.wait_for_everyone()
    if resumed is not None:
        at = Progressed.read(resumed.progress, resumed.path)
        if at.best_epoch >= 0:
            require_weights(run.weights)
        for problem in resumed.problems:
            console.print(f"{problem}; going on from the one before it", soft_wrap=True)
        if accelerator.is_main_process and resumed.path != run.checkpoint:
            resumed.path.replace(run.checkpoint)
        console.print(f"resuming at epoch {at.epoch + 1}, step {at.step}")
    while at.epoch < recipe.epochs and at.epoch - at.best_epoch <= recipe.patience:
        part.batches.start_epoch(at.epoch)
        loss_sum = torch.tensor(at.loss, device=accelerator.device)
        model.train()
        started = saved = time.perf_counter()
        with _bar(console, accelerator.is_main_process) as bar:
            task = bar.add_task(f"epoch {at.epoch + 1}", total=len(batches), completed=at.step)
            for batch, weight in islice(zip(batches, part.weights(), strict=True), at.step, None):
                batch = send_to_device(batch, accelerator.device)
                reseed(seed, accelerator.process_index, at.epoch * len(batches) + at.step)
                recipe.schedule(optimizer, at.epoch + at.step / len(batches), len(train), global_batch)
                loss = weight * cross_entropy(stepped(batch.premise, batch.hypothesis), batch.label)
                optimizer.zero_grad()
                accelerator.backward(loss)
                if recipe.clip_norm is not None:
                    accelerator.clip_grad_norm_(model.parameters(), recipe.clip_norm)
                optimizer.step()
                loss_sum += accelerator.reduce(loss.detach(), "mean")
                at.step += 1
                bar.advance(task)
                if time.perf_counter() - saved > checkpoint_seconds:
                    at.loss = _finite(float(loss_sum), plain, at)
                    at.seconds += time.perf_counter() - started
                    if accelerator.is_main_process:
                        save_checkpoint(run.checkpoint, plain, optimizer, asdict(at), keep=run.previous)
                    started = saved = time.perf_counter()
        loss_mean = _finite(float(loss_sum), plain, at) / at.step
        at.seconds += time.perf_counter() - started
        accuracy = evaluate(model, dev_batches, accelerator, labels, [""])["accuracy"]
        better = at.next_epoch(loss_mean, accuracy)
        if accelerator.is_main_process:
            if better:
                save_weights(run.weights, plain)
            save_checkpoint(run.checkpoint, plain, optimizer, asdict(at), keep=run.previous)
            rate = at.epoch * len(train) / at.seconds
            console.print(
                f"epoch {at.epoch:3}   loss {loss_mean:.4f}   dev {100 * accuracy:5.2f}"
                f"{' *' if better else '  '}   {rate:,.0f} pairs/s"
            )
    accelerator.wait_for_everyone()
    return at


def _finite(loss: float, model: nn.Module, at: Progressed) -> float:
    """The loss, if it and the weights, which the next loss would come from, are finite."""
    way_on = f"in epoch {at.epoch + 1}; try a lower --lr, in another folder"
    if not math.isfinite(loss):
        raise InputError(f"the loss became {loss} {way_on}")
    if not all(p.isfinite().all() for p in model.parameters() if p.requires_grad):
        raise InputError(f"the weights became infinite or nan {way_on}")
    return loss


def _bar(console: Console, visible: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not (visible and console.is_terminal))
