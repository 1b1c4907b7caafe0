"""A run that is killed at any instant goes on to the same numbers, bit for bit; what a run leaves behind."""

import io
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState
from filelock import FileLock
from rich.console import Console
from safetensors.torch import load_file
from torch import nn
from torch.testing import assert_close

import lstm_attention
from decomposable_attention import SCRIPT, DecomposableAttention, DecomposableAttentionConfig
from nli_common import metrics, train_runs, training
from nli_common.checkpoints import load_checkpoint, load_weights, save_checkpoint, save_weights
from nli_common.corpora import Pair
from nli_common.data import Corpus
from nli_common.errors import InputError
from nli_common.files import FORGOTTEN, write_atomically
from nli_common.inputs import Data
from nli_common.lexicon import Lexicon
from nli_common.metrics import Metrics, metrics_of
from nli_common.recipe import Recipe
from nli_common.runs import Run, write_json
from nli_common.train_runs import _print_coverage, _print_sizes, train_run
from runs import ROOT, run_script, start_script, write_corpora

RECIPE = [
    *("--epochs", "4", "--hidden-size", "20", "--intra-attention", "--same-lengths", "--clip-norm", "1"),
    *("--optimizer", "adamwr", "--lr", "1e-3", "--min-lr", "1e-4"),
    *("--restart-epochs", "3", "--normalized-decay", "0.05", "--ema-decay", "0.9"),
]


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return ["train", *write_corpora(tmp_path_factory.mktemp("corpora")), *RECIPE]


@pytest.fixture(scope="module")
def uninterrupted(options: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("run") / "whole"
    done = run_script(*options, "--output", output)
    assert done.returncode == 0, done.stderr
    return output


def numbers(folder: Path) -> dict[str, object]:
    metrics = json.loads((folder / "metrics.json").read_text())
    del metrics["pairs_per_second"], metrics["inference_pairs_per_second"]
    return metrics


def train_again(config: Mapping[str, Any], options: list[str], run: Run) -> None:
    """What a run's configuration says, in this process."""
    given = {name.removeprefix("--"): Path(path) for name, path in zip(options[1:9:2], options[2:9:2], strict=True)}
    model, recipe = SCRIPT.config_named(config["config"])(**config["model"]), Recipe(**config["recipe"])
    train_run(SCRIPT, model, recipe, Data(**given), config["seed"], run)


def test_a_killed_run_ends_in_the_same_numbers(options: list[str], uninterrupted: Path, tmp_path: Path) -> None:
    """SIGKILL at random instants, five times; then the same command to its end."""
    output, clock = tmp_path / "killed", random.Random(0)
    checkpoint, kills = output / "checkpoint.safetensors", 0
    while kills < 5:
        process = start_script([*options, "--output", output, "--checkpoint-seconds", "0.02"])
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        while process.is_alive():
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns > before:
                time.sleep(clock.uniform(0, 0.15))
                process.kill()
                break
            time.sleep(0.002)
        process.join()
        if process.exitcode == 0:
            break
        kills += 1
    assert kills >= 2, "the run ended before it could be killed"
    done = run_script(*options, "--output", output)
    assert done.returncode == 0, done.stderr
    assert numbers(output) == numbers(uninterrupted)
    assert (output / "model.safetensors").read_bytes() == (uninterrupted / "model.safetensors").read_bytes()
    assert (output / "lexicon.safetensors").read_bytes() == (uninterrupted / "lexicon.safetensors").read_bytes()


def test_a_finished_run_is_not_run_again(options: list[str], uninterrupted: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in uninterrupted.iterdir() if path.suffix == ".safetensors"}
    again = run_script(*options, "--output", uninterrupted)
    assert again.returncode == 0 and "this run is finished" in again.stdout
    assert before == {path.name: path.stat().st_mtime_ns for path in uninterrupted.iterdir() if path.name in before}


def test_a_run_that_ended_before_its_test_goes_on_after_the_last_epoch(
    options: list[str], uninterrupted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("nli_common.train_runs.predictions", killed)
        train_again(Run(uninterrupted).read_config(), options, Run(tmp_path))
    done = run_script(*options, "--output", tmp_path)
    assert done.returncode == 0 and "resuming after the last epoch, 4\n" in done.stdout
    assert numbers(tmp_path) == numbers(uninterrupted)


def test_a_finished_run_whose_figures_are_damaged_says_the_way_out(
    options: list[str], uninterrupted: Path, tmp_path: Path
) -> None:
    output = shutil.copytree(uninterrupted, tmp_path / "run")
    (output / "metrics.json").write_text("{")
    told = run_script(*options, "--output", output)
    assert told.returncode == 2 and "delete it, and the same command trains anew" in told.stderr
    (output / "metrics.json").unlink()
    done = run_script(*options, "--output", output)
    assert done.returncode == 0 and numbers(output) == numbers(uninterrupted)


def test_a_run_on_other_files_is_told_by_the_option(tmp_path: Path) -> None:
    held = {"data": {"train": "a", "vectors": "v", "unit_vectors": False}}
    write_json(Run(tmp_path).config, held)
    for name, told in (
        ("train", "holds a run with another --train than this one"),
        ("vectors", "holds a run with another --vectors than this one"),
        ("unit_vectors", "with --no-unit-vectors where this one has --unit-vectors"),
    ):
        with pytest.raises(InputError, match=re.escape(told)):
            Run(tmp_path).require_free_for({"data": {**held["data"], name: True}})
    Run(tmp_path).require_free_for(held)


def test_how_many_words_have_a_vector_is_told() -> None:
    lexicon = Lexicon(["a", "b"], torch.eye(2)).extended(["x", "y", "A"])

    def told(premise: str, hypothesis: str) -> str:
        file = io.StringIO()
        corpus = Corpus.from_pairs([Pair(premise.split(), hypothesis.split(), "neutral")], "pairs")
        _print_coverage(Console(file=file, width=20), lexicon, corpus)
        return file.getvalue()

    head = "3 of these words (60.0%) have a vector in the file, and so have"
    assert told("b a A", "a x") == f"{head} 80.0% of the words of the training text\n"
    asked = "of the words of the training text; are the file's words written as the corpus's are?\n"
    assert told("b a A x", "x x a a") == f"{head} 62.5% {asked}"


def test_training_pairs_of_one_class_are_told() -> None:
    told = []
    for labels in (["neutral"] * 2, ["neutral", "entailment"]):
        file = io.StringIO()
        corpus = Corpus.from_pairs([Pair(["a"], ["b"], label) for label in labels], "pairs")
        _print_sizes(Console(file=file), {"train": corpus}, ["entailment", "neutral"])
        told.append(file.getvalue().splitlines()[1:])
    classes = "classes: entailment, neutral"
    assert told == [[classes, "note: all training pairs are of one class, neutral"], [classes]]


def test_a_folder_of_another_run_is_refused_and_left_alone(options: list[str], uninterrupted: Path) -> None:
    before = {path.name: path.read_bytes() for path in uninterrupted.iterdir()}
    other = run_script(*("2e-3" if word == "1e-3" else word for word in options), "--output", uninterrupted)
    assert other.returncode == 2
    assert "holds another run, with --lr 0.001 where this one has --lr 0.002" in other.stderr
    assert other.stderr.count("\n") == 1
    assert before == {path.name: path.read_bytes() for path in uninterrupted.iterdir()}


@pytest.mark.parametrize(("change", "told"), [("add", "with model.old"), ("drop", "without model.dropout")])
def test_a_run_of_another_version_is_refused(
    options: list[str], uninterrupted: Path, tmp_path: Path, change: str, told: str
) -> None:
    output = shutil.copytree(uninterrupted, tmp_path / "run")
    held = json.loads((output / "config.json").read_text())
    if change == "add":
        held["model"]["old"] = 1
    else:
        del held["model"]["dropout"]
    (output / "config.json").write_text(json.dumps(held))
    refused = run_script(*options, "--output", output)
    assert refused.returncode == 2 and f"holds a run of another version, {told}; choose another" in refused.stderr


def test_what_a_run_leaves_behind(uninterrupted: Path) -> None:
    assert sorted(path.name for path in uninterrupted.iterdir()) == [
        ".lock", "alignment.png", "config.json", "confusion.png", "lexicon.safetensors", "metrics.json",
        "model.safetensors",
    ]  # fmt: skip
    metrics = json.loads((uninterrupted / "metrics.json").read_text())
    for split in ("test", "dev"):
        confusion = torch.tensor(metrics[split]["confusion"])
        assert confusion.sum() == metrics[split]["pairs"] == 60
        assert metrics[split]["accuracy"] == pytest.approx(confusion.trace().item() / 60)
        assert set(metrics[split]["per_class"]) == {"entailment", "neutral", "contradiction"}
        assert "role reversal" in metrics[split]["per_phenomenon"]
    assert metrics["pairs_per_second"] > 0 and len(metrics["history"]) == 4
    config = DecomposableAttentionConfig(intra_attention=True, hidden_size=20)
    model = DecomposableAttention(config, Lexicon.random(["a"], 300))
    assert metrics["parameters"] == sum(p.numel() for p in model.parameters())
    best = max(metrics["history"], key=lambda epoch: epoch["dev"])
    assert metrics["best_epoch"] == best["epoch"] and metrics["dev"]["accuracy"] == best["dev"]
    assert (uninterrupted / "confusion.png").read_bytes().startswith(b"\x89PNG")


def test_only_the_first_of_equal_epochs_is_the_best_and_patience_counts_from_there(tmp_path: Path) -> None:
    """A learning rate too small to change a prediction: dev never improves after the first epoch."""
    options = write_corpora(tmp_path, train=20)
    arguments = ["--epochs", "30", "--patience", "3", "--optimizer", "adam", "--lr", "1e-12", "--hidden-size", "4"]
    done = run_script("train", *options, *arguments, "--output", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["best_epoch"] == 1 and len(metrics["history"]) == 4


def test_a_loss_that_is_no_number_ends_the_run_with_a_message(tmp_path: Path) -> None:
    options = write_corpora(tmp_path, train=40)
    done = run_script(
        "train", *options, "--optimizer", "adam", "--lr", "1e30", "--epochs", "3", "--output", tmp_path / "r"
    )
    assert done.returncode == 2 and "try a lower --lr" in done.stderr and done.stderr.count("\n") == 1


def test_a_second_process_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    lock = Run(tmp_path / "run").claim({"a": 1})
    with pytest.raises(InputError, match="another process is training there"):
        Run(tmp_path / "run").claim({"a": 1})
    lock.release()
    Run(tmp_path / "run").claim({"a": 1}).release()


def test_a_run_killed_before_its_first_file_leaves_a_folder_that_can_be_used(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    names = ("config.json", "checkpoint.safetensors", "confusion.png")
    for name in names:
        (tmp_path / f".{name}.0123.tmp").write_text("{")
    Run(tmp_path).claim({"a": 1}).release()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "config.json"]


def test_a_start_leaves_alone_what_another_command_is_writing(tmp_path: Path) -> None:
    """As evaluate and explain do, which hold no lock."""
    run = Run(tmp_path)

    def slowly(temporary: Path) -> None:
        temporary.write_text("figures")
        run.claim({"a": 1}).release()

    write_atomically(tmp_path / "evaluation-x.json", slowly)
    assert (tmp_path / "evaluation-x.json").read_text() == "figures"


def test_what_a_killed_process_left_is_cleared_a_day_later(tmp_path: Path) -> None:
    old, new, other = (tmp_path / f".{name}.tmp" for name in ("a.tsv.01", "a.tsv.02", "b.tsv.03"))
    for path, age in ((old, 2 * FORGOTTEN), (new, FORGOTTEN // 2), (other, 2 * FORGOTTEN)):
        path.touch()
        os.utime(path, (time.time() - age,) * 2)
    write_atomically(tmp_path / "a.tsv", lambda temporary: temporary.write_text("whole"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [new.name, other.name, "a.tsv"]


def train_here(folder: Path) -> None:
    """A run of one short epoch in this process."""
    config = DecomposableAttentionConfig(hidden_size=4)
    recipe = Recipe(optimizer="adagrad", lr=0.05, epochs=1, batch_size=32)
    train_run(SCRIPT, config, recipe, Data(pairs=100, vector_size=4), 0, Run(folder))


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "4", "gradient_accumulation_steps must be 1, got 4"),
        ("ACCELERATE_MIXED_PRECISION", "fp16", "mixed_precision must be no or bf16, got fp16"),
    ],
)
def test_what_accelerate_is_asked_for_is_done_or_refused(
    tmp_path: Path, variable: str, value: str, problem: str
) -> None:
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", variable: value}
    code = "import sys; sys.path[:0] = sys.argv[2:]; from test_training import *; train_here(Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, "run", *sys.path]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert f"InputError: Accelerate's {problem}" in done.stderr and not (tmp_path / "run").exists()


def test_the_speed_is_that_of_the_predictions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And of nothing that is imported or counted after them."""
    seconds = itertools.count()

    def count_slowly(*rows: Any) -> Metrics:
        return [next(seconds) for _ in range(1000)] and metrics_of(*rows)

    monkeypatch.setattr(train_runs, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))
    monkeypatch.setattr(train_runs, "metrics_of", count_slowly)
    run = Run(tmp_path / "run")
    train_here(run.folder)
    metrics = json.loads(run.metrics.read_text())
    assert metrics["inference_pairs_per_second"] == metrics["test"]["pairs"]


def test_a_run_in_another_precision_is_another_run(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    train_here(run.folder)
    config = json.loads(run.config.read_text())
    assert config["mixed_precision"] == "no"
    run.config.write_text(json.dumps(config | {"mixed_precision": "bf16"}))
    with pytest.raises(InputError, match="with mixed_precision='bf16' where this one has 'no'"):
        train_here(run.folder)


@pytest.fixture
def in_bf16(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What Accelerate is asked for by its environment, which it reads once."""
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.usefixtures("in_bf16")
def test_a_run_in_bf16_is_tested_in_full_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As evaluate and predict read it, whatever Accelerate is asked for then."""
    trained: set[torch.dtype] = set()
    tested: set[torch.dtype] = set()

    def predictions(model: nn.Module, *rest: Any) -> Any:
        for part in model.modules():  # what leaves the whole model is float32 under Accelerate's bf16, too
            if isinstance(part, nn.Linear):
                part.register_forward_hook(lambda _, __, y: tested.add(y.dtype))
        return metrics.predictions(model, *rest)

    def gradients(model: nn.Module, *rest: Any) -> Any:
        model.aggregate[-1].register_forward_hook(lambda _, __, y: trained.add(y.dtype))
        return take_gradients(model, *rest)

    take_gradients = training._gradients
    monkeypatch.setattr(train_runs, "predictions", predictions)
    monkeypatch.setattr(training, "_gradients", gradients)
    train_here(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "config.json").read_text())["mixed_precision"] == "bf16"
    assert (trained, tested) == ({torch.bfloat16}, {torch.float32})


def test_a_checkpoint_is_written_as_often_as_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is one second further whenever it is read, once a step; a checkpoint itself takes two."""
    steps: list[int] = []
    seconds = itertools.count()

    def save(path: Path, model: nn.Module, optimizer: Any, progress: dict[str, Any], **rest: Any) -> None:
        steps.append(progress["step"])
        save_checkpoint(path, model, optimizer, progress, **rest)

    monkeypatch.setattr(training, "save_checkpoint", save)
    monkeypatch.setattr(training, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))
    config, recipe = DecomposableAttentionConfig(hidden_size=4), Recipe(lr=0.01, epochs=1, batch_size=10)
    train_run(SCRIPT, config, recipe, Data(pairs=250, vector_size=4), 0, Run(tmp_path / "run"), 9.5)
    assert steps == [10, 20, 0], "and after the epoch, at the start of the next"


def test_what_a_run_needs_to_go_on_is_kept_until_it_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, finished = Run(tmp_path / "run"), []
    drop = Run.drop_checkpoints
    monkeypatch.setattr(Run, "drop_checkpoints", lambda run: finished.append(run.metrics.exists()) or drop(run))
    train_here(run.folder)
    assert finished == [True] and not run.checkpoint.exists()
    run.checkpoint.write_text("of a process that was killed right then")
    train_here(run.folder)
    assert finished == [True, True] and not run.checkpoint.exists()


def test_what_is_said_of_each_epoch_is_what_the_metrics_keep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path / "run")
    config, recipe = DecomposableAttentionConfig(hidden_size=4), Recipe(lr=0.01, epochs=6, patience=6)
    train_run(SCRIPT, config, recipe, Data(pairs=400, vector_size=4), 0, run)
    metrics, told = json.loads(run.metrics.read_text()), capsys.readouterr().out
    epochs = re.findall(r"epoch +(\d+)   loss ([\d.]+)   dev +([\d.]+)( \*|  )   ([\d,]+) pairs/s", told)
    dev = [100 * row["dev"] for row in metrics["history"]]
    assert [(int(k), accuracy) for k, _, accuracy, *_ in epochs] == [(k + 1, f"{x:.2f}") for k, x in enumerate(dev)]
    assert [star == " *" for *_, star, _ in epochs] == [x > max(dev[:k], default=-1) for k, x in enumerate(dev)]
    assert epochs[-1][-1] == f"{metrics['pairs_per_second']:,.0f}"
    assert f"best epoch {1 + dev.index(max(dev))} of 6, " in told and metrics["best_epoch"] == 1 + dev.index(max(dev))


def test_the_confusion_is_that_of_the_test_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[Any, str]] = []
    monkeypatch.setattr(train_runs, "plot_confusion", lambda confusion, _, title, __: drawn.append((confusion, title)))
    run = Run(tmp_path / "run")
    train_here(run.folder)
    test = json.loads(run.metrics.read_text())["test"]
    assert drawn == [(test["confusion"], f"test, accuracy {100 * test['accuracy']:.1f} %")]


def test_the_readme_says_on_how_many_training_pairs_a_run_is_tested() -> None:
    assert f"first {train_runs.TRAIN_SAMPLE:,} pairs" in " ".join((ROOT / "examples" / "README.md").read_text().split())


def test_a_step_is_compiled_if_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(torch, "compile", lambda model, **how: asked.append((type(model).__name__, how)) or model)
    for compiled in (False, True):
        recipe = Recipe(lr=0.01, epochs=1, compile=compiled)
        config = DecomposableAttentionConfig(hidden_size=4)
        train_run(SCRIPT, config, recipe, Data(pairs=100, vector_size=4), 0, Run(tmp_path / str(compiled)))
    assert asked == [("DecomposableAttention", {"dynamic": True})]


def test_pairs_without_a_label_are_told() -> None:
    file = io.StringIO()
    corpus = Corpus.from_pairs([Pair(["a"], ["b"], label) for label in ("neutral", "-")], "pairs")
    _print_sizes(Console(file=file), {"train": corpus}, ["entailment", "neutral"])
    assert file.getvalue().startswith("train         1 pairs (1 without a gold label dropped)\n")


def test_a_model_that_reads_tags_is_told_that_there_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{label}\ta dog\ta cat\n" for label in ("neutral", "entailment", "contradiction"))
    (tmp_path / "pairs.tsv").write_text(f"gold_label\tsentence1\tsentence2\n{rows}")
    data = Data(tmp_path / "pairs.tsv", tmp_path / "pairs.tsv", vector_size=4, cache=tmp_path / "cache")
    for tags in (0, 3):
        config = lstm_attention.AttentionModelConfig(hidden_size=4, num_tags=tags)
        train_run(lstm_attention.SCRIPT, config, Recipe(lr=0.1, epochs=1), data, 0, Run(tmp_path / f"run-{tags}"))
        told = "note: this model reads part-of-speech tags, and the training pairs have none" in capsys.readouterr().out
        assert told == (tags > 0)


def test_a_failed_start_claims_nothing(tmp_path: Path) -> None:
    options = ["train", *write_corpora(tmp_path, train=20), "--output", tmp_path / "run"]
    (tmp_path / "bad.txt").write_text("the 1 2\nis 1\n")
    for wrong, problem in (
        (["--vectors", tmp_path / "bad.txt"], "bad.txt:2: expected a word and 2 numbers, got 1"),
        (["--seed", "-1"], "--seed must be between 0 and"),
        (["--dropout", "2"], "dropout must be at least 0 and"),
    ):
        done = run_script(*options, *wrong)
        assert done.returncode == 2 and problem in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not (tmp_path / "run").exists()


def test_a_compiled_model_learns_the_same(tmp_path: Path) -> None:
    """Without dropout, whose random numbers are others when compiled.

    With this seed the first batch's premises are not as long as its hypotheses, which would be compiled by themselves.
    """
    options = ["train", *write_corpora(tmp_path), "--epochs", "2", "--hidden-size", "20", "--dropout", "0"]
    options += ["--seed", "3"]
    weights = []
    for name, compiled in (("plain", []), ("compiled", ["--compile"])):
        done = run_script(*options, *compiled, "--output", tmp_path / name)
        assert done.returncode == 0, done.stderr
        weights.append(load_file(tmp_path / name / "model.safetensors"))
    for name, expected in weights[0].items():
        assert_close(weights[1][name], expected, atol=1e-4, rtol=1e-4)


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="holds files that are not a run"):
        Run(tmp_path).claim({"a": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InputError, match=r"thesis.tex: is a file, expected a folder"):
        Run(tmp_path / "thesis.tex").claim({"a": 1})


def one_layer() -> nn.Module:
    return nn.Linear(3, 5)


def two_layers_with_one_weight() -> nn.Module:
    layers = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    layers[1].weight = layers[0].weight
    return layers


@pytest.mark.parametrize("build", [one_layer, two_layers_with_one_weight])
@pytest.mark.parametrize("optimizer", ["adam", "adagrad", "adamwr"])
def test_a_checkpoint_restores_every_bit(tmp_path: Path, optimizer: str, build: Callable[[], nn.Module]) -> None:
    def trained(steps: int, layer: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for step in range(steps):
            optimiser.zero_grad()
            layer(torch.full((2, 3), 1.0 + step)).square().sum().backward()
            optimiser.step()

    recipe = Recipe(optimizer=optimizer, lr=0.1, l2=0.01, normalized_decay=0.1)
    torch.manual_seed(0)
    first, second = build(), build()
    one, two = (recipe.make_optimizer(layer) for layer in (first, second))
    trained(3, first, one)
    save_checkpoint(tmp_path / "c", first, one, {"epoch": 3, "loss": 0.1 + 0.2})
    assert load_checkpoint(tmp_path / "c", second, two) == {"epoch": 3, "loss": 0.1 + 0.2}
    trained(2, first, one)
    trained(2, second, two)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    save_weights(tmp_path / "w", first)
    third = build()
    load_weights(tmp_path / "w", third)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), third.parameters(), strict=True))


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    layer = nn.Linear(3, 5)
    optimizer = Recipe(lr=0.1).make_optimizer(layer)
    save_checkpoint(tmp_path / "c", layer, optimizer, {})
    save_weights(tmp_path / "w", layer)
    other = nn.Linear(4, 5)
    with pytest.raises(InputError, match="c: not a checkpoint of this run"):
        load_checkpoint(tmp_path / "c", other, Recipe(lr=0.1).make_optimizer(other))
    with pytest.raises(InputError, match="w: not the weights of this model"):
        load_weights(tmp_path / "w", other)
    for name in ("c", "w"):
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:40])
    with pytest.raises(InputError, match="c: not a checkpoint"):
        load_checkpoint(tmp_path / "c", layer, optimizer)
    with pytest.raises(InputError, match="w: not the weights"):
        load_weights(tmp_path / "w", layer)
    with pytest.raises(InputError, match="none: no such file"):
        load_weights(tmp_path / "none", layer)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fails(temporary: Path) -> None:
        temporary.write_text("half")
        raise OSError("disk full")

    with pytest.raises(InputError, match=r"file: cannot be written \(disk full\)"):
        write_atomically(path, fails)
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["file"]
    write_atomically(path, lambda temporary: temporary.write_text("new"))
    (tmp_path / "plain").touch()
    assert path.read_text() == "new" and path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="pipe: expected the name of a file to write, got that of a device, a pipe"):
        write_atomically(pipe, lambda temporary: temporary.write_text("new"))
    assert pipe.is_fifo()
    with pytest.raises(InputError, match=r"cannot be written \(File name too long\)"):
        write_atomically(tmp_path / ("x" * 300), lambda temporary: temporary.write_text("new"))


def test_a_run_that_another_process_finished_is_left_alone(
    tmp_path: Path, options: list[str], uninterrupted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not finished when this one looked, and was when this one had read its vectors."""
    run = Run(shutil.copytree(uninterrupted, tmp_path / "run"))
    before = {path.name: path.read_bytes() for path in run.folder.iterdir()}
    config, claim = run.read_config(), Run.claim
    run.metrics.unlink()

    def finished_meanwhile(self: Run, described: Mapping[str, Any]) -> FileLock:
        self.metrics.write_bytes(before[self.metrics.name])
        return claim(self, described)

    monkeypatch.setattr(Run, "claim", finished_meanwhile)
    with pytest.raises(InputError, match="another process has finished this run; the same command shows it"):
        train_again(config, options, run)
    assert {path.name: path.read_bytes() for path in run.folder.iterdir()} == before


@pytest.mark.parametrize("seconds", ["nan", "-5"])
def test_a_time_between_checkpoints_is_no_less_than_0(tmp_path: Path, seconds: str) -> None:
    done = run_script("train", f"--checkpoint-seconds={seconds}", "--output", tmp_path / "run")
    assert done.returncode == 2 and f"--checkpoint-seconds must be at least 0, got {float(seconds)}" in done.stderr


@pytest.mark.parametrize(
    "wrong", [{"lr": 0.0}, {"lr": float("nan")}, {"batch_size": 0}, {"epochs": 0}, {"patience": 0}, {"clip_norm": -1.0}]
)
def test_recipes_that_make_no_sense(wrong: dict[str, float]) -> None:
    (problem,) = Recipe(**wrong).problems()
    assert (
        problem.startswith(f"--{next(iter(wrong)).replace('_', '-')} must be")
        and str(next(iter(wrong.values()))) in problem
    )
    assert not Recipe().problems()
