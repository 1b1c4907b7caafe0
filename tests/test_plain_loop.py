"""A run against the loop that it stands for, written out: what two runs of the same code could not tell."""

import dataclasses
import json
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load_file
from torch import Tensor, nn

from decomposable_attention import SCRIPT, DecomposableAttention, DecomposableAttentionConfig
from nli_common.averaging import WeightAverage
from nli_common.batches import PairDataset, loader
from nli_common.data import Sentence
from nli_common.errors import InputError
from nli_common.evaluating import evaluate_on
from nli_common.inputs import Data
from nli_common.models import build
from nli_common.recipe import Recipe, reseed
from nli_common.runs import Run
from nli_common.train_runs import train_run
from nli_common.training import save_weights

DATA, CONFIG = Data(pairs=200, vector_size=6), DecomposableAttentionConfig(hidden_size=8)
RECIPE = Recipe(
    optimizer="adamwr",
    lr=3e-3,
    clip_norm=0.1,
    warmup_epochs=0.5,
    epochs=2,
    restart_epochs=3,
    normalized_decay=0.1,
    batch_size=32,
)


def history(recipe: Recipe, seed: int, folder: Path) -> list[dict[str, Any]]:
    train_run(SCRIPT, CONFIG, recipe, DATA, seed, Run(folder))
    told: list[dict[str, Any]] = json.loads((folder / "metrics.json").read_text())["history"]
    return told


def plain_loop(recipe: Recipe, seed: int) -> Iterator[tuple[int, nn.Module, float]]:
    """After each step: its epoch, the model, and the loss before it."""
    corpora = DATA.corpora()
    lexicon, labels = DATA.lexicon(corpora), ("entailment", "neutral", "contradiction")
    dataset = PairDataset(corpora["train"], lexicon, labels, corpora["train"].phenomena)
    torch.manual_seed(seed)
    model = build(SCRIPT, CONFIG, lexicon)
    optimizer, batches = recipe.make_optimizer(model), loader(dataset, recipe.batch_size, seed)
    for epoch in range(recipe.epochs):
        batches.batch_sampler.start_epoch(epoch)
        model.train()
        for step, batch in enumerate(batches):
            reseed(seed, 0, epoch * len(batches) + step)
            recipe.schedule(optimizer, epoch + step / len(batches), len(dataset), recipe.batch_size)
            loss = nn.functional.cross_entropy(model(batch.premise, batch.hypothesis), batch.label)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            yield epoch, model, loss.item()


def test_a_run_takes_the_steps_of_the_plain_loop(tmp_path: Path) -> None:
    losses: list[list[float]] = [[] for _ in range(RECIPE.epochs)]
    for epoch, _, loss in plain_loop(RECIPE, 3):
        losses[epoch].append(loss)
    expected = [sum(of_epoch) / len(of_epoch) for of_epoch in losses]
    found = [epoch["loss"] for epoch in history(RECIPE, 3, tmp_path / "run")]
    assert found == pytest.approx(expected, rel=1e-5)


def test_a_run_keeps_the_average_of_its_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights after each step, averaged as a loop averages them; steps and checkpoints are those of any run."""
    recipe = dataclasses.replace(RECIPE, ema_decay=0.3)
    average: dict[str, Tensor] = {}
    ends: list[tuple[dict[str, Tensor], dict[str, Tensor]]] = [({}, {})] * recipe.epochs
    for step, (epoch, model, _) in enumerate(plain_loop(recipe, 3)):
        kept = min(0.3, (step + 1) / (10 + step)) if step else 0.0
        for name, weight in model.named_parameters():
            average[name] = kept * average.get(name, 0.0) + (1 - kept) * weight.detach()
        ends[epoch] = {name: weight.detach().clone() for name, weight in model.named_parameters()}, dict(average)
    saved: list[tuple[dict[str, Tensor], list[Tensor]]] = []

    def save(path: Path, model: nn.Module, *state: Any, average: WeightAverage, **where: Any) -> None:
        weights = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        saved.append((weights, [weight.clone() for weight in average.module.parameters()]))

    monkeypatch.setattr("nli_common.training.save_checkpoint", save)
    assert len(history(recipe, 3, tmp_path / "run")) == len(saved) == recipe.epochs
    close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-6)
    for (weights, mean), (own, expected) in zip(saved, ends, strict=True):
        close(weights, own)
        close(mean, list(expected.values()))
        assert max((weights[name] - expected[name]).abs().max() for name in own) > 1e-3
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    held, (_, best) = load_file(tmp_path / "run" / "model.safetensors"), ends[metrics["best_epoch"] - 1]
    assert held.keys() == model.state_dict().keys()
    close({name: held[name] for name in best}, best)
    assert metrics["history"][metrics["best_epoch"] - 1]["dev"] == metrics["dev"]["accuracy"]


class Clock:
    """A second for every look at it."""

    def __init__(self) -> None:
        self.seconds = 0

    def perf_counter(self) -> int:
        self.seconds += 1
        return self.seconds


@pytest.mark.parametrize("checkpoint_seconds", [0.0, 1e9])
def test_the_seconds_of_a_training_are_those_of_its_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint_seconds: float
) -> None:
    """Each counted once, those before a checkpoint as well as those behind it, and those after the best epoch."""
    clock, gold = Clock(), torch.zeros(10)
    monkeypatch.setattr("nli_common.training.time", clock)
    monkeypatch.setattr("nli_common.training.predictions", lambda *_: (gold, gold, gold))
    train_run(SCRIPT, CONFIG, RECIPE, DATA, 3, Run(tmp_path / "run"), checkpoint_seconds)
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    seconds = RECIPE.epochs * DATA.pairs / metrics["pairs_per_second"]
    steps = RECIPE.epochs * -(-DATA.pairs // RECIPE.batch_size)
    assert metrics["best_epoch"] == 1 and steps <= seconds <= clock.seconds


def test_the_speed_of_reading_is_that_of_the_test_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nli_common.train_runs.time", Clock())
    history(dataclasses.replace(RECIPE, epochs=1), 0, tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["inference_pairs_per_second"] == metrics["test"]["pairs"] == 50


def test_the_dev_accuracy_of_the_best_epoch_is_that_of_all_pairs(tmp_path: Path) -> None:
    """Not the mean of its batches, of which the last is smaller."""
    data = dataclasses.replace(DATA, pairs=8 * 300)
    train_run(SCRIPT, CONFIG, dataclasses.replace(RECIPE, epochs=1), data, 0, Run(tmp_path / "run"))
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["dev"]["pairs"] == 300
    assert metrics["history"][0]["dev"] == pytest.approx(metrics["dev"]["accuracy"], abs=1e-12)


@pytest.mark.parametrize(
    "without", [{"same_lengths": True}, {"clip_norm": None}, {"warmup_epochs": 0.0}, {"normalized_decay": 0.0}]
)
def test_each_part_of_the_recipe_has_an_effect(without: dict[str, Any], tmp_path: Path) -> None:
    """So the loop above would tell a run that lacks it."""
    whole = history(RECIPE, 3, tmp_path / "whole")
    part = history(dataclasses.replace(RECIPE, **without), 3, tmp_path / "part")
    assert abs(whole[-1]["loss"] - part[-1]["loss"]) > 1e-4 * whole[-1]["loss"]


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    losses = {history(RECIPE, seed, tmp_path / str(seed))[0]["loss"] for seed in (0, 1)}
    assert len(losses) == 2


def test_the_best_epochs_weights_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right, kept = iter([5, 9, 7]), []
    gold = torch.zeros(10)
    monkeypatch.setattr("nli_common.training.predictions", lambda *_: (torch.arange(10) >= next(right), gold, gold))
    monkeypatch.setattr(
        "nli_common.training.save_weights", lambda path, model: kept.append(path) or save_weights(path, model)
    )
    history(dataclasses.replace(RECIPE, epochs=3), 0, tmp_path / "run")
    assert len(kept) == 2, "after the first epoch and after the second"


def test_what_a_run_reports_is_of_the_best_epochs_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right, gold, run = iter([9, 5, 7, 6]), torch.zeros(10), Run(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr("nli_common.training.predictions", lambda *_: (torch.arange(10) >= next(right), gold, gold))
        history(dataclasses.replace(RECIPE, epochs=4, lr=0.03), 0, run.folder)
    metrics = json.loads(run.metrics.read_text())
    assert metrics["best_epoch"] == 1
    corpora = DATA.corpora()
    for split in ("test", "dev", "train"):
        _, told = evaluate_on(SCRIPT, [run], corpora[split], split)
        assert metrics[split] == told


def test_a_run_reports_all_of_dev_and_test_and_the_first_training_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nli_common.train_runs.TRAIN_SAMPLE", 10)
    history(dataclasses.replace(RECIPE, epochs=1), 0, tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert {split: metrics[split]["pairs"] for split in ("train", "dev", "test")} == {
        "train": 10,
        "dev": 25,
        "test": 50,
    }


def test_what_a_run_draws_is_of_its_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr("nli_common.train_runs.plot_confusion", lambda confusion, *_: drawn.append(confusion))
    monkeypatch.setattr("nli_common.train_runs.plot_first_pair", lambda _, corpus, *__: drawn.append(corpus.digest))
    history(dataclasses.replace(RECIPE, epochs=1), 0, tmp_path / "run")
    test = json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]
    assert drawn == [test["confusion"], DATA.corpora()["test"].digest]


def test_dropout_is_drawn_anew_for_every_seed_process_and_step() -> None:
    def drawn(seed: int, process: int, step: int) -> float:
        reseed(seed, process, step)
        return float(torch.rand(()))

    places = list(product(range(3), range(3), range(20)))
    assert len({drawn(*place) for place in places}) == len(places)
    assert drawn(2, 1, 7) == drawn(2, 1, 7)


def test_what_a_run_draws_is_of_the_model_without_dropout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr("nli_common.train_runs.plot_first_pair", lambda model, *_: drawn.append(model.training))
    history(dataclasses.replace(RECIPE, epochs=1), 0, tmp_path / "run")
    assert drawn == [False]


def test_a_training_that_needs_more_memory_than_there_is_says_so(tmp_path: Path) -> None:
    class Huge(DecomposableAttention):
        def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
            torch.empty(1 << 60)
            return super().forward(premise, hypothesis)

    script = dataclasses.replace(SCRIPT, models={DecomposableAttentionConfig: Huge})
    with pytest.raises(InputError, match=r"out of memory: 32 pairs, .* a smaller --batch-size may fit"):
        train_run(script, CONFIG, RECIPE, DATA, 0, Run(tmp_path / "run"))


@pytest.mark.parametrize(("intra_attention", "rate"), [(False, 0.05), (True, 0.025)])
def test_without_a_rate_the_configurations_is_taken(intra_attention: bool, rate: float, tmp_path: Path) -> None:
    config = dataclasses.replace(CONFIG, intra_attention=intra_attention)
    recipe = dataclasses.replace(SCRIPT.recipe, epochs=1, batch_size=50)
    train_run(SCRIPT, config, recipe, DATA, 0, Run(tmp_path / "run"))
    assert json.loads((tmp_path / "run" / "config.json").read_text())["recipe"]["lr"] == rate


def test_each_process_draws_a_dropout_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("nli_common.training.reseed", lambda *place: seen.append(place))
    monkeypatch.setattr(Accelerator, "process_index", 1)
    history(dataclasses.replace(RECIPE, epochs=1), 3, tmp_path / "run")
    assert seen == [(3, 1, step) for step in range(-(-DATA.pairs // RECIPE.batch_size))]
