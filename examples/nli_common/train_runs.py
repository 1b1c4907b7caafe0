"""One run: a model trained in a folder of its own, tested once."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from rich.console import Console
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

from nli_common.batches import PairDataset, loader
from nli_common.checkpoints import load_weights
from nli_common.checks import require_types
from nli_common.corpora import scheme_of
from nli_common.errors import InputError
from nli_common.figures import plot_confusion
from nli_common.inputs import Data
from nli_common.lexicon import Lexicon
from nli_common.metrics import Metrics, evaluate
from nli_common.recipe import Recipe
from nli_common.reports import plot_first_pair, print_metrics
from nli_common.runs import Run, held_metrics, write_json
from nli_common.script import Script
from nli_common.training import EVALUATION_BATCH, fit

TRAIN_SAMPLE = 4_000
"""The accuracy on training pairs is measured on so many of them, the first of the file."""
_ENTRY = 50
"""Bytes that the name, type and place of a tensor take in a file, at least; each of its numbers takes one or more."""
_TABLES = 1 << 26
"""Numbers that a model may compute for itself, beside its weights."""


def train_run(
    script: Script, config: Any, recipe: Recipe, data: Data, seed: int, run: Run, checkpoint_seconds: float = 60.0
) -> None:
    """Train, or go on with what was interrupted; a run that is finished is only shown.

    Raises:
        InputError: if an option or a file is bad, or the folder belongs to another run.
    """
    if recipe.lr is None and recipe.optimizer != script.recipe.optimizer:
        raise InputError(
            f"--lr is needed with --optimizer {recipe.optimizer}: the paper's is for {script.recipe.optimizer}"
        )
    if recipe.lr is None:
        recipe = dataclasses.replace(recipe, lr=getattr(config, "learning_rate", script.recipe.lr))
    problems = recipe.problems()
    if not 0 <= seed < 2**31:
        problems.append(f"--seed must be between 0 and {2**31 - 1}, got {seed}")
    if not checkpoint_seconds >= 0:
        problems.append(f"--checkpoint-seconds must be at least 0, got {checkpoint_seconds}")
    if problems:
        raise InputError("; ".join(problems))
    # Every process has the same word vectors: sent round anew for each step, they would take most of its time.
    accelerator = Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(broadcast_buffers=False)])
    console = Console(quiet=not accelerator.is_main_process, highlight=False, markup=False, emoji=False)
    corpora = data.corpora()
    labels = scheme_of(corpora["train"].labels, "the training corpus")
    phenomena = list(dict.fromkeys(name for corpus in corpora.values() for name in corpus.phenomena))
    config = dataclasses.replace(config, num_classes=len(labels))
    described = {
        "script": script.name,
        "config": type(config).__name__,
        "model": asdict(config),
        "recipe": asdict(recipe),
        "seed": seed,
        "processes": accelerator.num_processes,
        "labels": list(labels),
        "data": data.identity(corpora),
    }
    run.require_free_for(described)
    for name, corpus in corpora.items():
        dropped = f" ({corpus.dropped:,} without a gold label dropped)" if corpus.dropped else ""
        told = ", which have no part-of-speech tags" if corpora["train"].tags and not corpus.tags else ""
        console.print(f"{name:5} {len(corpus):>9,} pairs{dropped}{told}")
    shown = "test" if "test" in corpora else "dev"
    if run.metrics.exists():
        if accelerator.is_main_process:
            run.drop_checkpoints()
        console.print(f"this run is finished: {run.metrics}")
        with _with_a_way_out("delete it, and the same command trains anew"):
            held = held_metrics(run.metrics)[1]
        print_metrics(console, held)
        return

    if run.lexicon.exists():
        with _with_a_way_out("delete it, and the same command writes it anew"):
            lexicon = Lexicon.load(run.lexicon)
    else:
        lexicon = data.lexicon(corpora)
    torch.manual_seed(seed)
    model = build(script, config, lexicon)
    accelerator.wait_for_everyone()
    with contextlib.ExitStack() as held:
        if accelerator.is_main_process:
            held.callback(run.claim(described).release)
            if run.metrics.exists():
                raise InputError(
                    f"--output {run.folder}: another process has finished this run; the same command shows it"
                )
        if accelerator.is_main_process and not run.lexicon.exists():
            lexicon.save(run.lexicon)
        datasets = {name: PairDataset(corpus, lexicon, labels, phenomena) for name, corpus in corpora.items()}
        parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
        console.print(f"{parameters:,} trainable parameters, {len(lexicon):,} words of {lexicon.dim} dimensions")
        at = fit(
            model,
            recipe.make_optimizer(model),
            datasets["train"],
            datasets["dev"],
            labels,
            recipe,
            seed,
            run,
            accelerator,
            console,
            checkpoint_seconds,
        )

        best = build(script, config, lexicon)
        load_weights(run.weights, best)
        prepared = accelerator.prepare(best)
        results: dict[str, Metrics] = {}
        figures: dict[str, Any] = {"parameters": parameters}
        figures["training_pairs"] = len(datasets["train"])
        figures["pairs_per_second"] = at.epoch * len(datasets["train"]) / at.seconds
        for name in ("test", "dev", "train"):
            if name in datasets:
                limit = TRAIN_SAMPLE if name == "train" else None
                batches = accelerator.prepare(loader(datasets[name], EVALUATION_BATCH, None, limit=limit))
                started = time.perf_counter()
                results[name] = evaluate(prepared, batches, accelerator, labels, phenomena)
                if name == shown:
                    figures["inference_pairs_per_second"] = results[name]["pairs"] / (time.perf_counter() - started)
        if accelerator.is_main_process:
            title = f"{shown}, accuracy {100 * results[shown]['accuracy']:.1f} %"
            plot_confusion(results[shown]["confusion"], labels, title, run.folder / "confusion.png")
            plot_first_pair(best, corpora[shown], lexicon, run.folder)
            write_json(run.metrics, {**results, **figures, "best_epoch": at.best_epoch + 1, "history": at.history})
            run.drop_checkpoints()
        accelerator.wait_for_everyone()
        console.print(f"best epoch {at.best_epoch + 1} of {at.epoch}, {at.seconds:.0f} s of training, in {run.folder}")
        print_metrics(console, results[shown])


@contextlib.contextmanager
def _with_a_way_out(way_out: str) -> Iterator[None]:
    """What is wrong with a file of a run is told with what mends it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{error}; {way_out}") from None


def restore(script: Script, run: Run, lexicon: Lexicon) -> nn.Module:
    """The model of a finished run, for words that its lexicon was extended by too.

    Raises:
        InputError: if the folder is not of this script, or damaged.
    """
    held = run.read_config()
    if held.get("script") != script.name:
        raise InputError(f"--run {run.folder}: was written by {held.get('script')}, this is {script.name}")
    try:
        config = script.config_named(held["config"])(**held["model"])
        require_types(config)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{run.config}: {error}") from None
    if config.num_classes != len(held["labels"]):
        raise InputError(f"{run.config}: has {config.num_classes} classes and {len(held['labels'])} labels")
    _require_size(script, config, lexicon, run)
    model = build(script, config, lexicon)
    load_weights(run.weights, model)
    return model.eval()


def _require_size(script: Script, config: Any, lexicon: Lexicon, run: Run) -> None:
    """Raise an ``InputError`` if the configuration's model is larger than its weights; takes no memory for it."""
    if not run.weights.is_file():
        raise InputError(f"{run.weights}: no such file; has the run trained for an epoch?")
    room = {"parameters": run.weights.stat().st_size, "tables": _TABLES}

    def count(kind: str, tensor: Tensor | None) -> None:
        room[kind] -= 0 if tensor is None else _ENTRY + tensor.numel()
        if room[kind] < 0:
            raise ValueError(f"it is larger than what {run.weights} holds")

    few = Lexicon(
        lexicon.words[:1], lexicon.vectors[:1], hashed=lexicon.hashed, tags=lexicon.tags, alphabet=lexicon.alphabet
    )
    with contextlib.ExitStack() as stack:
        stack.callback(register_module_parameter_registration_hook(lambda _, __, p: count("parameters", p)).remove)
        stack.callback(register_module_buffer_registration_hook(lambda _, __, b: count("tables", b)).remove)
        stack.enter_context(torch.device("meta"))
        try:
            build(script, config, few)
        except InputError as error:
            raise InputError(f"{run.config}: {error}") from None


def build(script: Script, config: Any, lexicon: Lexicon) -> nn.Module:
    """The script's model of this configuration.

    Raises:
        InputError: if its options do not fit together, or do not fit the words.
    """
    try:
        return script.models[type(config)](config, lexicon)
    except (ValueError, RuntimeError, TypeError) as error:
        raise InputError(f"the model cannot be built: {error}") from None
