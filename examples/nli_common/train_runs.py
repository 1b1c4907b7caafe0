"""One run: a model trained in a folder of its own, tested once."""

import contextlib
import dataclasses
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from rich.console import Console
from torch import nn

from nli_common.batches import PairDataset, evaluation_loader
from nli_common.checkpoints import load_weights
from nli_common.data import Corpus
from nli_common.errors import InputError
from nli_common.figures import plot_confusion
from nli_common.inputs import Data
from nli_common.labels import scheme_of
from nli_common.lexicon import Lexicon
from nli_common.metrics import Metrics, metrics_of, predictions
from nli_common.models import build, encoder_fingerprint, require_restorable
from nli_common.recipe import Recipe
from nli_common.reports import plot_first_pair, print_metrics
from nli_common.runs import Run, held_metrics, write_json
from nli_common.script import ReadsFolder, Script, reads_tags
from nli_common.training import Trainer, TrainingState

TRAIN_SAMPLE = 4_000
"""The accuracy on training pairs is measured on so many of them, the first of the file."""


def train_run(
    script: Script, config: Any, recipe: Recipe, data: Data, seed: int, run: Run, checkpoint_seconds: float = 60.0
) -> None:
    """Train, or go on with what was interrupted; a run that is finished is only shown.

    Raises:
        InputError: if an option or a file is bad, or the folder belongs to another run.
    """
    recipe = _with_rate(recipe, script, config)
    _require_options(recipe, seed, checkpoint_seconds)
    # Every process has the same word vectors: sent round anew for each step, they would take most of its time. PyTorch
    # has another name for this, which Accelerate does not know.
    warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
    accelerator = Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(broadcast_buffers=False)])
    _require_environment(accelerator)
    console = Console(quiet=not accelerator.is_main_process, highlight=False, markup=False, emoji=False)
    corpora = data.corpora()
    labels = scheme_of(corpora["train"].labels, "the training corpus")
    phenomena = list(dict.fromkeys(name for corpus in corpora.values() for name in corpus.phenomena))
    config = _settled(config, len(labels))
    described = _description(script, config, recipe, seed, accelerator, labels, data.identity(corpora))
    run.require_free_for(described)
    _print_sizes(console, corpora, labels)
    shown = "test" if "test" in corpora else "dev"
    if run.metrics.exists():
        if accelerator.is_main_process:
            run.drop_checkpoints()
        _show_finished(run, console)
        return
    if recipe.cuda_graphs:
        _require_recordable(accelerator, on_encoder="encoder" in described)

    lexicon = _lexicon(run, data, corpora)
    require_restorable(script, config, lexicon)
    torch.manual_seed(seed)
    model = build(script, config, lexicon)
    accelerator.wait_for_everyone()
    with contextlib.ExitStack() as stack:
        if accelerator.is_main_process:
            stack.callback(run.claim(described).release)
            if run.metrics.exists():
                raise InputError(
                    f"--output {run.folder}: another process has finished this run; the same command shows it"
                )
        if accelerator.is_main_process and not run.lexicon.exists():
            lexicon.save(run.lexicon)
        datasets = {name: PairDataset(corpus, lexicon, labels, phenomena) for name, corpus in corpora.items()}
        if reads_tags(model) and not corpora["train"].tags:
            console.print("note: this model reads part-of-speech tags, and the training pairs have none")
        _print_model(console, model, lexicon, data, corpora["train"], on_encoder="encoder" in described)
        at = Trainer(
            model,
            recipe.make_optimizer(model),
            train=datasets["train"],
            dev=datasets["dev"],
            recipe=recipe,
            seed=seed,
            run=run,
            accelerator=accelerator,
            console=console,
            checkpoint_seconds=checkpoint_seconds,
        ).fit()

        best = build(script, config, lexicon).eval()
        load_weights(run.weights, best)
        results, seconds = _tested(best, datasets, accelerator, labels, phenomena)
        if accelerator.is_main_process:
            title = f"{shown}, accuracy {100 * results[shown]['accuracy']:.1f} %"
            plot_confusion(results[shown]["confusion"], labels, title, run.folder / "confusion.png")
            plot_first_pair(best, corpora[shown], lexicon, run.folder)
            tested = results[shown]["pairs"] / seconds[shown]
            write_json(run.metrics, {**results, **_figures(best, at, len(datasets["train"]), tested)})
            run.drop_checkpoints()
        accelerator.wait_for_everyone()
        console.print(
            f"best epoch {at.best_epoch + 1} of {at.epoch}, {at.seconds:.0f} s of training, in {run.folder}",
            soft_wrap=True,
        )
        print_metrics(console, results[shown], shown)


def _description(
    script: Script,
    config: Any,
    recipe: Recipe,
    seed: int,
    accelerator: Accelerator,
    labels: Sequence[str],
    files: Mapping[str, Any],
) -> dict[str, Any]:
    """What a run is: another one has no place in its folder."""
    encoder = encoder_fingerprint(config)
    return {
        "script": script.name,
        "config": type(config).__name__,
        "model": asdict(config),
        "recipe": asdict(recipe),
        "seed": seed,
        "processes": accelerator.num_processes,
        "mixed_precision": accelerator.mixed_precision,
        "labels": list(labels),
        "data": dict(files),
    } | ({} if encoder is None else {"encoder": encoder})


def _show_finished(run: Run, console: Console) -> None:
    console.print(f"this run is finished: {run.metrics}", soft_wrap=True)
    with _with_a_way_out("delete it, and the same command trains anew"):
        shown, held = held_metrics(run.metrics)
    print_metrics(console, held, shown)


def _tested(
    model: nn.Module,
    datasets: Mapping[str, PairDataset],
    accelerator: Accelerator,
    labels: Sequence[str],
    phenomena: Sequence[str],
) -> tuple[dict[str, Metrics], dict[str, float]]:
    """The metrics of each corpus that there is, in full precision, and the seconds that its predictions took."""
    results: dict[str, Metrics] = {}
    seconds: dict[str, float] = {}
    model.to(accelerator.device)  # without Accelerate's lower precision, as the other commands have it
    for name in ("test", "dev", "train"):
        if name in datasets:
            batches = accelerator.prepare(evaluation_loader(datasets[name], TRAIN_SAMPLE if name == "train" else None))
            started = time.perf_counter()
            predicted = predictions(model, batches, accelerator)
            seconds[name] = time.perf_counter() - started
            results[name] = metrics_of(*predicted, labels, phenomena)
    return results, seconds


def _figures(model: nn.Module, at: TrainingState, training_pairs: int, tested_per_second: float) -> dict[str, Any]:
    """What a finished run tells of its training."""
    return {
        "parameters": _num_trainable(model),
        "training_pairs": training_pairs,
        "pairs_per_second": at.epoch * training_pairs / at.seconds,
        "inference_pairs_per_second": tested_per_second,
        "best_epoch": at.best_epoch + 1,
        "history": at.history,
    }


def _num_trainable(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def _settled(config: Any, num_classes: int) -> Any:
    """The configuration with what the files tell: the number of classes, and the whole path of its encoder."""
    config = dataclasses.replace(config, num_classes=num_classes)
    folder = config.encoder_folder if isinstance(config, ReadsFolder) else None
    return config if folder is None else dataclasses.replace(config, encoder=str(folder.resolve()))


def _with_rate(recipe: Recipe, script: Script, config: Any) -> Recipe:
    """The recipe with the paper's learning rate for this configuration, where none is given."""
    if recipe.lr is not None:
        return recipe
    if recipe.optimizer != script.recipe.optimizer:
        raise InputError(
            f"--lr is needed with --optimizer {recipe.optimizer}: the paper's is for {script.recipe.optimizer}"
        )
    return dataclasses.replace(recipe, lr=getattr(config, "learning_rate", script.recipe.lr))


def _require_environment(accelerator: Accelerator) -> None:
    """Refuse what Accelerate's environment or configuration asks for and a training here does not do."""
    steps, precision = accelerator.gradient_accumulation_steps, accelerator.mixed_precision
    if steps != 1:
        raise InputError(
            f"Accelerate's gradient_accumulation_steps must be 1, got {steps}: no gradients are accumulated here"
        )
    if precision not in ("no", "bf16"):
        raise InputError(
            f"Accelerate's mixed_precision must be no or bf16, got {precision}: its loss scale would not "
            "survive an interruption"
        )


def _require_recordable(accelerator: Accelerator, *, on_encoder: bool) -> None:
    """Refuse what a CUDA graph has no place for."""
    if accelerator.device.type != "cuda":
        raise InputError(f"--cuda-graphs needs a CUDA device, got {accelerator.device.type}")
    if accelerator.num_processes != 1:
        raise InputError(f"--cuda-graphs needs a single process, got {accelerator.num_processes}")
    if on_encoder:
        raise InputError("--cuda-graphs cannot record an --encoder: each step waits for its features")


def _require_options(recipe: Recipe, seed: int, checkpoint_seconds: float) -> None:
    """Raise one ``InputError`` that tells all numbers that are bad."""
    problems = recipe.problems()
    if not 0 <= seed < 2**31:
        problems.append(f"--seed must be between 0 and {2**31 - 1}, got {seed}")
    if not checkpoint_seconds >= 0:
        problems.append(f"--checkpoint-seconds must be at least 0, got {checkpoint_seconds}")
    if problems:
        raise InputError("; ".join(problems))


def _print_sizes(console: Console, corpora: Mapping[str, Corpus], classes: Sequence[str]) -> None:
    for name, corpus in corpora.items():
        dropped = f" ({corpus.dropped:,} without a gold label dropped)" if corpus.dropped else ""
        told = ", which have no part-of-speech tags" if corpora["train"].tags and not corpus.tags else ""
        console.print(f"{name:5} {len(corpus):>9,} pairs{dropped}{told}")
    for one, other in combinations(corpora, 2):
        if corpora[one].digest == corpora[other].digest:
            console.print(f"note: --{one} and --{other} are the same pairs")
    console.print(f"classes: {', '.join(classes)}")
    labels = corpora["train"].labels
    if len(labels) == 1:
        console.print(f"note: all training pairs are of one class, {labels[0]}")


def _print_model(
    console: Console, model: nn.Module, lexicon: Lexicon, data: Data, corpus: Corpus, *, on_encoder: bool
) -> None:
    """How large a model is, and what its words' vectors are."""
    words = f"{len(lexicon):,} words of {lexicon.dim} dimensions"
    console.print(f"{_num_trainable(model):,} trainable parameters, {words}")
    if data.vectors is not None:
        _print_coverage(console, lexicon, corpus)
    elif data.train is not None and not on_encoder:
        console.print("note: without --vectors each word's vector is random")


def _print_coverage(console: Console, lexicon: Lexicon, corpus: Corpus) -> None:
    """How many words have pretrained vectors: with few of them a model learns far less, and nothing else tells.

    The vectors of a file are mostly those of frequent words, so that many words without one may be little of a text.
    """
    known = np.array(lexicon.known)
    text = known[lexicon.ids(corpus.words)][np.concatenate([corpus.premise.tokens, corpus.hypothesis.tokens])].mean()
    hint = "; are the file's words written as the corpus's are?" if text < 0.8 else ""
    console.print(
        f"{known.sum():,} of these words ({known.mean():.1%}) have a vector in the file, "
        f"and so have {text:.1%} of the words of the training text{hint}",
        soft_wrap=True,
    )


def _lexicon(run: Run, data: Data, corpora: dict[str, Corpus]) -> Lexicon:
    """The run's own, where it has begun: its vectors need not be read again."""
    if not run.lexicon.exists():
        return data.lexicon(corpora)
    with _with_a_way_out("delete it, and the same command writes it anew"):
        return Lexicon.load(run.lexicon)


@contextlib.contextmanager
def _with_a_way_out(way_out: str) -> Iterator[None]:
    """What is wrong with a file of a run is told with what mends it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{error}; {way_out}") from None
