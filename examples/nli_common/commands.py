"""The command line of a script: train, evaluate, predict."""

import dataclasses
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Union

import torch
import tyro
from accelerate import Accelerator
from rich.console import Console
from torch import nn

from nli_common.batches import PairDataset, loader
from nli_common.checkpoints import load_weights
from nli_common.corpora import Pair, scheme_of
from nli_common.data import Corpus, open_corpus
from nli_common.errors import InputError
from nli_common.figures import plot_confusion
from nli_common.files import stem
from nli_common.inputs import CACHE, Data, require_labels
from nli_common.lexicon import Lexicon
from nli_common.metrics import Metrics, evaluate
from nli_common.recipe import Recipe
from nli_common.reports import plot_first_pair, print_metrics
from nli_common.runs import Run, held_metrics, write_json
from nli_common.script import Script
from nli_common.tokens import split_text
from nli_common.training import EVALUATION_BATCH, fit


def main(script: Script) -> None:
    """Run the script's command line; bad input ends with one line on stderr and exit code 2."""
    config_type: Any
    config_type, config_default = _configurations(script)
    own_corpus = any(word == "--train" or word.startswith("--train=") for word in sys.argv)

    def train(
        config: config_type = config_default,
        recipe: Recipe = script.recipe if own_corpus else script.quick,
        data: Data = script.data,
        seed: int = 0,
        output: Path = Path("runs") / script.name,
        checkpoint_seconds: float = 60.0,
    ) -> None:
        """Train the model; the same command again goes on with an interrupted run.

        Args:
            config: The model.
            recipe: How it is trained: the paper's recipe with --train, and a short one for the generated corpus.
            data: The files.
            seed: Of the initial weights, the order of the pairs, and dropout.
            output: Folder of this run: configuration, lexicon, weights, metrics.json, figures.
            checkpoint_seconds: Write a checkpoint this often, besides one at the end of each epoch.
        """
        _train(script, config, recipe, data, seed, Run(output), checkpoint_seconds)

    def evaluate(run: Path, test: Path, vectors: Path | None = None, cache: Path = CACHE) -> None:
        """Evaluate a run on another file, without training.

        Args:
            run: Folder that train wrote; the figures go to evaluation-NAME.json there.
            test: Pairs, in any format that train takes.
            vectors: Vectors for words that the run has not seen; without it they are hashed.
            cache: Where indexed corpora are kept for the next time.
        """
        _evaluate(script, Run(run), test, vectors, cache)

    def predict(run: Path, premise: str, hypothesis: str, figure: Path | None = None) -> None:
        """Classify one pair with a run's folder alone; words never seen in training work too.

        Args:
            run: Folder that train wrote.
            premise: What is given, as text.
            hypothesis: What may follow from it, as text.
            figure: Write the word alignment to this PNG file.
        """
        _predict(script, Run(run), premise, hypothesis, figure)

    commands: dict[str, Any] = {"train": train, "evaluate": evaluate, "predict": predict}
    style = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)
    try:
        tyro.extras.subcommand_cli_from_dict(commands, prog=f"{script.name}.py", config=style)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from the last checkpoint", file=sys.stderr)
        sys.exit(130)


def _configurations(script: Script) -> tuple[Any, Any]:
    """The type of the configuration option and its default; with several models, each is a word of the command line."""
    types = list(script.models)
    if len(types) == 1:
        return types[0], types[0]()
    named = (Annotated[kind, tyro.conf.subcommand(name=script.short_name(kind))] for kind in types)
    return Union[tuple(named)], types[0]()  # noqa: UP007 - the members are not known here


def _train(
    script: Script, config: Any, recipe: Recipe, data: Data, seed: int, run: Run, checkpoint_seconds: float
) -> None:
    problems = recipe.problems()
    if not 0 <= seed < 2**31:
        problems.append(f"--seed must be between 0 and {2**31 - 1}, got {seed}")
    if problems:
        raise InputError("; ".join(problems))
    accelerator = Accelerator()
    console = Console(quiet=not accelerator.is_main_process, highlight=False)
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
        "labels": list(labels),
        "data": data.identity(corpora),
    }
    run.require_free_for(described)
    for name, corpus in corpora.items():
        dropped = f" ({corpus.dropped:,} without a gold label dropped)" if corpus.dropped else ""
        console.print(f"{name:5} {len(corpus):>9,} pairs{dropped}")
    shown = "test" if "test" in corpora else "dev"
    if run.metrics.exists():
        console.print(f"this run is finished: {run.metrics}")
        print_metrics(console, held_metrics(run.metrics)[1])
        return

    lexicon = Lexicon.load(run.lexicon) if run.lexicon.exists() else data.lexicon(corpora)
    torch.manual_seed(seed)
    model = _build(script, config, lexicon)
    accelerator.wait_for_everyone()
    lock = run.claim(described) if accelerator.is_main_process else None
    if lock is not None and not run.lexicon.exists():
        lexicon.save(run.lexicon)
    datasets = {name: PairDataset(corpus, lexicon, labels, phenomena) for name, corpus in corpora.items()}
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    console.print(f"{parameters:,} trainable parameters, {len(lexicon):,} words of {lexicon.dim} dimensions")
    optimizer = recipe.make_optimizer(model.parameters(), getattr(config, "learning_rate", math.nan))
    at = fit(
        model,
        optimizer,
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

    best = _build(script, config, lexicon)
    load_weights(run.weights, best)
    prepared = accelerator.prepare(best)
    results: dict[str, Metrics] = {}
    for name in ("test", "dev"):
        if name in datasets:
            batches = accelerator.prepare(loader(datasets[name], EVALUATION_BATCH, None))
            results[name] = evaluate(prepared, batches, accelerator, labels, phenomena)
    if lock is None:
        return
    title = f"{shown}, accuracy {100 * results[shown]['accuracy']:.1f} %"
    plot_confusion(results[shown]["confusion"], labels, title, run.folder / "confusion.png")
    plot_first_pair(best, corpora[shown], lexicon, run.folder / "alignment.png")
    figures = {"parameters": parameters, "pairs_per_second": at.epoch * len(datasets["train"]) / at.seconds}
    write_json(run.metrics, {**results, **figures, "best_epoch": at.best_epoch + 1, "history": at.history})
    run.checkpoint.unlink(missing_ok=True)
    console.print(f"best epoch {at.best_epoch + 1} of {at.epoch}, {at.seconds:.0f} s of training, in {run.folder}")
    print_metrics(console, results[shown])


def _evaluate(script: Script, run: Run, test: Path, vectors: Path | None, cache: Path) -> None:
    held, lexicon = run.read_config(), Lexicon.load(run.lexicon)
    corpus = open_corpus(test, cache)
    require_labels(corpus, held["labels"], test)
    if vectors is not None:
        lexicon = lexicon.learned_from(vectors, corpus.words)
    hashed = sum(word not in lexicon.index for word in corpus.words)
    lexicon = lexicon.extended(corpus.words)
    dataset = PairDataset(corpus, lexicon, held["labels"], corpus.phenomena)
    accelerator = Accelerator()
    model, batches = accelerator.prepare(_restore(script, run, lexicon), loader(dataset, EVALUATION_BATCH, None))
    metrics = evaluate(model, batches, accelerator, held["labels"], corpus.phenomena)
    if accelerator.is_main_process:
        console = Console(highlight=False)
        console.print(
            f"{hashed:,} of {len(corpus.words):,} words hashed; {corpus.dropped:,} pairs without a label dropped"
        )
        print_metrics(console, metrics)
        write_json(run.folder / f"evaluation-{stem(test)}.json", {"test": metrics})


def _predict(script: Script, run: Run, premise: str, hypothesis: str, figure: Path | None) -> None:
    sides = []
    for name, text in (("--premise", premise), ("--hypothesis", hypothesis)):
        sides.append(split_text(text))
        if not sides[-1]:
            raise InputError(f"{name}: expected a sentence, got no word in {text!r}")
    labels = run.read_config()["labels"]
    corpus = Corpus.from_pairs([Pair(sides[0], sides[1], labels[0])], "the pair")
    lexicon = Lexicon.load(run.lexicon).extended(corpus.words)
    model = _restore(script, run, lexicon)
    batch = PairDataset(corpus, lexicon, labels, corpus.phenomena)[0]
    with torch.inference_mode():
        shares = model(batch.premise, batch.hypothesis).softmax(-1)[0].tolist()
    for share, label in sorted(zip(shares, labels, strict=True), reverse=True):
        print(f"{label:14} {share:.4f}")
    if figure is not None:
        plot_first_pair(model, corpus, lexicon, figure)


def _restore(script: Script, run: Run, lexicon: Lexicon) -> nn.Module:
    held = run.read_config()
    if held.get("script") != script.name:
        raise InputError(f"--run {run.folder}: was written by {held.get('script')}, this is {script.name}")
    try:
        config = script.config_named(held["config"])(**held["model"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{run.config}: {error}") from None
    model = _build(script, config, lexicon)
    load_weights(run.weights, model)
    return model.eval()


def _build(script: Script, config: Any, lexicon: Lexicon) -> nn.Module:
    try:
        return script.models[type(config)](config, lexicon)
    except (ValueError, RuntimeError) as error:
        raise InputError(f"the model cannot be built: {error}") from None
