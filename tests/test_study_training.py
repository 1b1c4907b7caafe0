"""The study's runs: each in a folder of its own, as its plan says, and what is kept of it is what was measured."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from study import training, tuning
from study.ensembles import ensembles
from study.plan import BENCHES, Bench, Job, jobs
from study.training import (
    Places,
    fingerprint_of_weights,
    options_of,
    plan_of,
    result_file,
    run_folder,
    run_job,
    settings_of,
)
from study.tuning import grid, tune, tuned
from study.windows import MODEL, compared, held_window, long_texts, windows
from torch import nn

from nli_common.data import Batch, Sentence
from nli_common.files import read_json
from nli_common.runs import Run
from nlilayers import GaussianPrior, GaussianSelfAttention
from study_files import hold, hold_tuning

OPTIONS = {"lr": 1e-3, "dropout": 0.3}
METRICS = {
    "parameters": 7,
    "training_pairs": 60,
    "pairs_per_second": 20.0,
    "inference_pairs_per_second": 90.0,
    "best_epoch": 2,
    "history": [{"loss": 1.0, "dev": 0.4}, {"loss": 0.9, "dev": 0.6}, {"loss": 0.7, "dev": 0.5}],
    "dev": {"accuracy": 0.61},
    "test": {"confusion": [[1, 1, 0], [0, 1, 1], [0, 3, 1]]},
}
"""Of three epochs; of eight test pairs, four are of the third class, and five are predicted as the second."""
RIGHT = torch.tensor([True, False, True, True, False, False, False, False])


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """With an encoder whose weights are two files, and pairs that need not be cut."""
    monkeypatch.setattr(Places, "pairs", lambda self, name: self.data / name)
    places = Places(tmp_path / "data", tmp_path / "runs", tmp_path / "encoder")
    (tmp_path / "encoder").mkdir()
    for k in (1, 2):
        (tmp_path / "encoder" / f"model-{k}.safetensors").write_text(f"weights {k}")
    return places


Kept = Callable[[Job], dict[str, Any]]


@pytest.fixture
def kept_of(kept_in: Path, places: Places, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """What is kept of a run whose figures are these."""

    def train_run(script: Any, config: Any, recipe: Any, data: Any, seed: int, run: Run) -> None:
        run.folder.mkdir()
        run.metrics.write_text(json.dumps(METRICS))
        run.config.write_text(json.dumps({"seed": seed}))

    monkeypatch.setattr("study.training.train_run", train_run)
    monkeypatch.setattr("study.training.tested", lambda *_: ({"test": 0.375, "hard": 0.25}, RIGHT))
    monkeypatch.setattr("study.training.reread", lambda *_: (torch.nn.Linear(1, 1), []))

    def kept(job: Job) -> dict[str, Any]:
        run_job(job, places, OPTIONS)
        result: dict[str, Any] = json.loads(result_file(job).read_text())
        return result

    return kept


def test_each_run_has_its_seed(kept_of: Kept, places: Places) -> None:
    for seed in (0, 3):
        job = Job("sick", "DA", seed)
        assert kept_of(job)["seed"] == read_json(Run(run_folder(job, places)).config)["seed"] == seed


def test_what_is_kept_is_what_was_measured(kept_of: Kept) -> None:
    found = kept_of(Job("sick", "DA", 1))
    assert (found["parameters"], found["pairs_per_second"], found["best_epoch"], found["pairs"]) == (7, 20.0, 2, 8)
    assert found["dev"] == [0.4, 0.6, 0.5], "after each epoch"
    assert found["seconds"] == 3 * 60 / 20, "of all epochs"
    assert found["accuracy"] == {"dev": 0.61, "test": 0.375, "hard": 0.25}, "of the best epoch"
    assert found["largest_class"] == 4 / 8, "by the labels, not by what was predicted"


def test_only_a_run_on_an_encoder_is_of_its_weights(kept_of: Kept, places: Places) -> None:
    assert places.encoder is not None
    assert kept_of(Job("sick", "frozen encoder, pooled", 0))["encoder"] == fingerprint_of_weights(places.encoder)
    assert kept_of(Job("sick", "DA", 0))["encoder"] is None


def test_a_fingerprint_is_of_all_weights_and_of_nothing_else(places: Places) -> None:
    assert places.encoder is not None
    seen = {fingerprint_of_weights(places.encoder)}
    for k in (1, 2):
        (places.encoder / f"model-{k}.safetensors").write_text("other weights")
        seen.add(fingerprint_of_weights(places.encoder))
    (places.encoder / "config.json").write_text("{}")
    assert len(seen) == 3 and fingerprint_of_weights(places.encoder) in seen


def test_no_two_runs_share_a_folder_or_a_file(places: Places) -> None:
    planned = {job for budget in ("cpu", "gpu") for job in jobs(budget)}
    assert len({run_folder(job, places) for job in planned}) == len(planned)
    assert len({result_file(job) for job in planned}) == len(planned)


def test_the_variants_options_come_before_tuned_ones_and_those_before_the_protocols() -> None:
    job = Job("sick", "GT, Zipf", 0)
    taken = options_of(job, {"epochs": 10, "locality": "none"})
    assert (taken["epochs"], taken["locality"], taken["patience"]) == (10, "zipf", 4)
    assert plan_of(job, {"epochs": 10})["options"]["epochs"] == 10


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_a_gpu_records_the_steps_of_what_stands_on_no_encoder(
    where: str, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is no part of the plan: a run is kept whatever took its steps."""
    monkeypatch.setattr(training, "PartialState", lambda: SimpleNamespace(device=torch.device(where)))
    for variant in ("ESIM", "CAFE 150, no tags", "GT on a frozen encoder"):
        job = Job("sick", variant, 0)
        assert settings_of(job, places, OPTIONS).recipe.cuda_graphs == (where == "cuda" and "encoder" not in variant)
        assert "cuda_graphs" not in plan_of(job, OPTIONS)["options"]


def test_every_file_of_a_bench_is_tested_with_the_vectors_of_the_bench(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, asked = BENCHES["snli22k"], []

    def evaluated(script: Any, runs: list[Run], corpus: str, source: str, vectors: Path) -> Any:
        asked.append((corpus, source, vectors))
        return RIGHT, {"accuracy": len(asked)}

    monkeypatch.setattr("study.training.open_corpus", lambda path, cache: path)
    monkeypatch.setattr("study.training.evaluate_on", evaluated)
    accuracies, right = training.tested(SimpleNamespace(script=None), Run(places.runs), bench, places)
    files = [bench.test, *bench.others.values()]
    assert asked == [(places.data / file, file, places.data / bench.vectors) for file in files]
    assert list(accuracies) == ["test", *bench.others] and list(accuracies.values()) == list(range(1, 10))
    assert right is RIGHT


def test_a_short_run_has_its_rate_its_dropout_and_ten_epochs_in_a_folder_of_its_own(
    kept_in: Path, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = []

    def train(settings: Any, seed: int, folder: Path) -> tuple[None, dict[str, Any]]:
        folders.append(folder)
        asked = {"lr": settings.recipe.lr, "dropout": settings.config.dropout}
        assert asked == grid(2e-4)[len(folders) - 1]
        assert (settings.recipe.epochs, seed, settings.data.test) == (10, 0, None)
        assert settings.data.train == places.data / BENCHES["snli10k"].train
        assert settings.data.dev == places.data / BENCHES["snli10k"].dev
        return None, {"dev": {"accuracy": 0.5}, "best_epoch": 4, "seconds": 9.0}

    monkeypatch.setattr("study.tuning.train", train)
    tune("DA", places)
    assert len(set(folders)) == 5
    held = tuning.held_tuning("DA")
    assert held is not None and held["tried"] == [
        {"options": options, "dev": 0.5, "best_epoch": 4, "seconds": 9.0} for options in grid(2e-4)
    ]


RATE, HIGH, LOW = 5e-4, 1e-3, 2e-4


@pytest.mark.parametrize(
    ("dev", "chosen"),
    [
        ({(RATE, 0.2): 0.7, (RATE, 0.1): 0.6, (RATE, 0.3): 0.8}, (RATE, 0.3)),
        ({(RATE, 0.2): 0.8, (RATE, 0.1): 0.6, (RATE, 0.3): 0.7}, (RATE, 0.2)),
        ({(HIGH, 0.2): 0.6, (HIGH, 0.1): 0.7, (HIGH, 0.3): 0.7}, (HIGH, 0.1)),
        ({(RATE, 0.2): 0.6, (HIGH, 0.2): 0.6}, (RATE, 0.2)),
        ({}, (LOW, 0.2)),
    ],
    ids=["best rate, then best dropout", "the first dropout is best", "equal dropouts", "equal rates", "all equal"],
)
def test_the_best_rate_is_tuned_then_the_best_dropout_and_the_earlier_of_two_equals(
    dev: dict[tuple[float, float], float], chosen: tuple[float, float], kept_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "study.tuning._try",
        lambda family, places, one: {"options": one, "dev": dev.get((one["lr"], one["dropout"]), 0.5)},
    )
    tune("DA", Places(kept_in, kept_in))
    assert tuned("DA") == dict(zip(("lr", "dropout"), chosen, strict=True))


def test_what_was_chosen_among_others_than_the_plans_is_not_taken(kept_in: Path) -> None:
    hold_tuning(kept_in, "DA")
    assert tuned("DA") is not None
    for change in ({"lr": 3e-3}, {"dropout": 0.4}):
        tried = [{"options": options, "dev": 0.5} for options in grid(5e-4)]
        tried[1] = {"options": {**grid(5e-4)[1], **change}, "dev": 0.5}
        hold_tuning(kept_in, "DA", tried=tried)
        assert tuned("DA") is None


def finish(job: Job, places: Places) -> Path:
    """All that a finished run leaves in its folder."""
    run = Run(run_folder(job, places))
    run.folder.mkdir(parents=True)
    for file in (run.config, run.lexicon, run.weights, run.metrics):
        file.write_text('{"history": [{"dev": 0.5}]}')
    return run.folder


def test_an_ensemble_reads_the_vectors_of_its_bench(
    kept_in: Path, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, Path]] = []

    def evaluated(script: Any, runs: list[Run], corpus: Path, source: str, vectors: Path) -> Any:
        asked.append((source, vectors))
        return None, {"accuracy": 0.5}

    monkeypatch.setattr("study.ensembles.opened", lambda file, places: file)
    monkeypatch.setattr("study.ensembles.evaluate_on", evaluated)
    options = hold_tuning(kept_in, "DA")
    for seed in range(5):
        job = Job("snli22k", "DA", seed)
        hold(kept_in, f"snli22k/da-seed{seed}", **plan_of(job, options), dev=[0.5])
        finish(job, places)
    ensembles(places)
    bench = BENCHES["snli22k"]
    assert asked == [(bench.test, places.data / bench.vectors)]


class Attentive(nn.Module):
    """One self-attention over the premise's words."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = GaussianSelfAttention(4, 2, prior=GaussianPrior())

    def forward(self, premise: Sentence, hypothesis: Sentence) -> torch.Tensor:
        return self.attention(nn.functional.one_hot(premise.tokens % 4, 4).float(), premise.mask).sum(dim=1)


def test_the_model_of_seed_0_is_compared_on_the_test_pairs_and_on_long_texts_of_them(
    kept_in: Path, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = hold_tuning(kept_in, MODEL)
    folders = []
    for seed in range(2):
        job = Job("sick", MODEL, seed)
        hold(kept_in, f"sick/{result_file(job).stem}", **plan_of(job, options), dev=[0.5])
        folders.append(finish(job, places))
    model, asked = Attentive(), []
    sentence = Sentence(torch.randint(0, 9, (30, 50)), torch.ones(30, 50, dtype=torch.bool))

    def reread(settings: Any, run: Run, bench: Bench, places: Places) -> tuple[nn.Module, list[Batch]]:
        asked.append((run.folder, bench.name))
        return model, [Batch(sentence, sentence, torch.zeros(30), torch.zeros(30))]

    monkeypatch.setattr("study.windows.reread", reread)
    windows(places)
    assert asked == [(folders[0], "sick")]
    held, pairs = held_window("sick"), [(sentence, sentence)]
    assert held is not None and held["texts"] == {
        "test pairs": compared(model, pairs),
        "long texts": compared(model, list(long_texts(pairs))),
    }
    assert [found["pairs"] for found in held["texts"].values()] == [30, 1], "1,500 words make a text of 1,024"
