"""The command line of a script: train, evaluate, predict."""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

import torch
import tyro
from accelerate import Accelerator
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from nli_common.batches import PairDataset, loader
from nli_common.checkpoints import load_weights
from nli_common.corpora import Pair
from nli_common.data import Corpus, Sentence, open_corpus
from nli_common.errors import InputError
from nli_common.figures import plot_alignment, plot_confusion
from nli_common.generated import generated_corpus
from nli_common.lexicon import Lexicon
from nli_common.metrics import Metrics, evaluate
from nli_common.recipe import Recipe
from nli_common.runs import Run, write_json
from nli_common.tokens import split_text
from nli_common.training import EVALUATION_BATCH, fit

GENERATED = {"train": 16_000, "dev": 2_000, "test": 4_000}
"""Pairs of the generated corpus, which stands in where no file is given."""


NumClasses = Annotated[int, tyro.conf.Suppress]
"""A configuration's number of classes, which the training data tells."""


class Config(Protocol):
    """A model's frozen dataclass of paper values."""

    num_classes: int

    @property
    def learning_rate(self) -> float:
        """The paper's."""


@runtime_checkable
class Aligns(Protocol):
    """A model that can show which words it aligned."""

    leading_tokens: tuple[str, ...]
    """What the model puts before the words of each sentence."""

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """Weights of the hypothesis words (columns) for each premise word (rows), the leading tokens included."""


@dataclass(frozen=True)
class Script:
    """What a model's file says of itself."""

    name: str
    model: Callable[[Any, Lexicon], nn.Module]
    config: Any
    recipe: Recipe


@dataclass(frozen=True)
class Data:
    """Where the sentence pairs and the word vectors come from."""

    train: Path | None = None
    """Training pairs: .jsonl or .tsv, plain or .gz. Without it, the generated corpus is used."""
    dev: Path | None = None
    """Pairs that choose the best epoch; needed with --train."""
    test: Path | None = None
    """Pairs that are tested once, at the end."""
    vectors: Path | None = None
    """Word vectors: GloVe or fastText text (plain, .gz, .zip), or .npz. Without them each word's vector is random."""
    vector_size: int = 300
    """Width of the random vectors, where no vectors are given."""
    cache: Path = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "nlilayers"
    """Where indexed corpora are kept for the next time."""


def main(script: Script) -> None:
    """Run the script's command line; bad input ends with one line on stderr and exit code 2."""
    torch.set_float32_matmul_precision("high")
    config_type: Any = type(script.config)

    def train(
        config: config_type = script.config,
        recipe: Recipe = script.recipe,
        data: Data = Data(),  # noqa: B008 - frozen
        seed: int = 0,
        output: Path = Path("runs") / script.name,
        checkpoint_seconds: float = 60.0,
    ) -> None:
        _train(script, config, recipe, data, seed, Run(output), checkpoint_seconds)

    def evaluate_run(run: Path, test: Path, vectors: Path | None = None, cache: Path = Data.cache) -> None:
        _evaluate(script, Run(run), test, vectors, cache)

    def predict(run: Path, premise: str, hypothesis: str, figure: Path | None = None) -> None:
        _predict(script, Run(run), premise, hypothesis, figure)

    train.__doc__ = f"""Train the model; the same command again goes on with an interrupted run.

    Args:
        config: The model.
        recipe: How it is trained.
        data: The files.
        seed: Of the initial weights, the order of the pairs, and dropout.
        output: Folder of this run: configuration, lexicon, weights, metrics.json, figures.
        checkpoint_seconds: Write a checkpoint this often, besides one at the end of each epoch.
    """
    evaluate_run.__doc__ = """Evaluate a run on another file, without training.

    Args:
        run: Folder that train wrote.
        test: Pairs, in any format that train takes.
        vectors: Vectors for words that the run has not seen; without it they are hashed.
        cache: Where indexed corpora are kept for the next time.
    """
    predict.__doc__ = """Classify one pair with a run's folder alone; words never seen in training work too.

    Args:
        run: Folder that train wrote.
        premise: What is given, as text.
        hypothesis: What may follow from it, as text.
        figure: Write the word alignment to this PNG file.
    """
    commands = {"train": train, "evaluate": evaluate_run, "predict": predict}
    try:
        tyro.extras.subcommand_cli_from_dict(commands, prog=f"{script.name}.py", config=(tyro.conf.OmitArgPrefixes,))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from the last checkpoint", file=sys.stderr)
        sys.exit(130)


def _train(
    script: Script, config: Any, recipe: Recipe, data: Data, seed: int, run: Run, checkpoint_seconds: float
) -> None:
    problems = recipe.problems()
    if problems:
        raise InputError("; ".join(problems))
    accelerator = Accelerator()
    console = Console(quiet=not accelerator.is_main_process, highlight=False)
    corpora = _corpora(data)
    train, dev = corpora["train"], corpora["dev"]
    config = dataclasses.replace(config, num_classes=len(train.labels))
    phenomena = list(dict.fromkeys(name for corpus in corpora.values() for name in corpus.phenomena))
    described = {
        "script": script.name,
        "model": asdict(config),
        "recipe": asdict(recipe),
        "seed": seed,
        "labels": list(train.labels),
        "data": {name: corpus.digest for name, corpus in corpora.items()},
        "vectors": _identity(data),
    }
    lock = run.claim(described) if accelerator.is_main_process else None
    accelerator.wait_for_everyone()
    for name, corpus in corpora.items():
        dropped = f" ({corpus.dropped:,} without a gold label dropped)" if corpus.dropped else ""
        console.print(f"{name:5} {len(corpus):>9,} pairs{dropped}")
    if run.metrics.exists():
        console.print(f"this run is finished: {run.metrics}")
        _print_metrics(console, json.loads(run.metrics.read_text())["test" if "test" in corpora else "dev"])
        return
    if not run.lexicon.exists() and accelerator.is_main_process:
        _lexicon(corpora, data).save(run.lexicon)
    accelerator.wait_for_everyone()
    lexicon = Lexicon.load(run.lexicon)
    torch.manual_seed(seed)
    model = script.model(config, lexicon)
    optimizer = recipe.make_optimizer(model.parameters(), config.learning_rate)
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    console.print(f"{parameters:,} trainable parameters, {len(lexicon):,} words of {lexicon.dim} dimensions")
    datasets = {name: PairDataset(corpus, lexicon, train.labels, phenomena) for name, corpus in corpora.items()}
    at = fit(
        model,
        optimizer,
        datasets["train"],
        datasets["dev"],
        train.labels,
        recipe,
        seed,
        run,
        accelerator,
        console,
        checkpoint_seconds,
    )
    best = script.model(config, lexicon)
    load_weights(run.weights, best)
    prepared = accelerator.prepare(best)
    results: dict[str, Metrics] = {}
    for name in ("test", "dev"):
        if name in datasets:
            batches = accelerator.prepare(loader(datasets[name], EVALUATION_BATCH, None))
            results[name] = evaluate(prepared, batches, accelerator, train.labels, phenomena)
    if not accelerator.is_main_process:
        return
    shown = "test" if "test" in results else "dev"
    plot_confusion(
        results[shown]["confusion"],
        train.labels,
        f"{shown}, accuracy {100 * results[shown]['accuracy']:.1f} %",
        run.folder / "confusion.png",
    )
    _plot_first_pair(best, corpora[shown], lexicon, run.folder / "alignment.png")
    write_json(
        run.metrics,
        {
            **results,
            "parameters": parameters,
            "best_epoch": at.best_epoch + 1,
            "history": at.history,
            "pairs_per_second": at.epoch * len(train) / at.seconds,
        },
    )
    run.checkpoint.unlink(missing_ok=True)
    console.print(
        f"best epoch {at.best_epoch + 1} of {at.epoch}, {at.seconds:.0f} s of training; results in {run.folder}"
    )
    _print_metrics(console, results[shown])
    del lock


def _evaluate(script: Script, run: Run, test: Path, vectors: Path | None, cache: Path) -> None:
    corpus = open_corpus(test, cache)
    lexicon, held = Lexicon.load(run.lexicon), run.read_config()
    _require_labels(corpus, held["labels"], test)
    if vectors is not None:
        lexicon = lexicon.learned_from(vectors, corpus.words)
    unseen = sum(word not in lexicon.index for word in corpus.words)
    lexicon = lexicon.extended(corpus.words)
    model = _restore(script, run, lexicon)
    accelerator = Accelerator()
    dataset = PairDataset(corpus, lexicon, held["labels"], corpus.phenomena)
    prepared, batches = accelerator.prepare(model, loader(dataset, EVALUATION_BATCH, None))
    metrics = evaluate(prepared, batches, accelerator, held["labels"], corpus.phenomena)
    console = Console(quiet=not accelerator.is_main_process, highlight=False)
    console.print(
        f"{len(corpus):,} pairs, {unseen:,} of {len(corpus.words):,} words hashed; {corpus.dropped:,} dropped"
    )
    _print_metrics(console, metrics)
    if accelerator.is_main_process:
        write_json(run.folder / f"evaluation-{test.name.split('.')[0]}.json", {"test": metrics})


def _predict(script: Script, run: Run, premise: str, hypothesis: str, figure: Path | None) -> None:
    sides = {"--premise": split_text(premise), "--hypothesis": split_text(hypothesis)}
    for name, tokens in sides.items():
        if not tokens:
            raise InputError(
                f"{name}: expected a sentence, got no word in {premise if name == '--premise' else hypothesis!r}"
            )
    labels = run.read_config()["labels"]
    pair = Pair(*sides.values(), label=labels[0])
    corpus = Corpus.from_pairs([pair], "the pair")
    lexicon = Lexicon.load(run.lexicon).extended(corpus.words)
    model = _restore(script, run, lexicon)
    batch = PairDataset(corpus, lexicon, labels, corpus.phenomena)[0]
    with torch.inference_mode():
        probabilities = model(batch.premise, batch.hypothesis).softmax(-1)[0].tolist()
    for share, label in sorted(zip(probabilities, labels, strict=True), reverse=True):
        print(f"{label:14} {share:.4f}")
    if figure is not None:
        _plot_first_pair(model, corpus, lexicon, figure)


def _restore(script: Script, run: Run, lexicon: Lexicon) -> nn.Module:
    held = run.read_config()
    if held.get("script") != script.name:
        raise InputError(f"--run {run.folder}: was written by {held.get('script')}, this is {script.name}")
    model = script.model(type(script.config)(**held["model"]), lexicon)
    load_weights(run.weights, model)
    return model.eval()


def _corpora(data: Data) -> dict[str, Corpus]:
    given = {name: getattr(data, name) for name in ("train", "dev", "test") if getattr(data, name) is not None}
    if not given:
        return {name: generated_corpus(count, name) for name, count in GENERATED.items()}  # type: ignore[arg-type]
    for name in ("train", "dev"):
        if name not in given:
            raise InputError(f"--{name} is needed beside --{' --'.join(given)}")
    corpora = {name: open_corpus(path, data.cache) for name, path in given.items()}
    for name, corpus in corpora.items():
        _require_labels(corpus, corpora["train"].labels, given[name])
    return corpora


def _require_labels(corpus: Corpus, labels: Sequence[str], path: Path) -> None:
    strange = [name for name in corpus.labels if name not in labels]
    if strange:
        raise InputError(f"{path}: has the label {strange[0]!r}, the model's are {', '.join(labels)}")


def _lexicon(corpora: dict[str, Corpus], data: Data) -> Lexicon:
    words = list(dict.fromkeys(word for corpus in corpora.values() for word in corpus.words))
    tags = corpora["train"].tags
    if data.vectors is None:
        return Lexicon.random(words, data.vector_size, tags=tags)
    return Lexicon.from_file(data.vectors, words, tags=tags)


def _identity(data: Data) -> dict[str, Any]:
    path = data.vectors
    if path is None:
        return {"random": data.vector_size}
    try:
        return {"name": path.name, "bytes": path.stat().st_size}
    except OSError:
        raise InputError(f"{path}: no such file") from None


def _plot_first_pair(model: nn.Module, corpus: Corpus, lexicon: Lexicon, path: Path) -> None:
    if not isinstance(model, Aligns):
        return
    batch = PairDataset(corpus, lexicon, corpus.labels, corpus.phenomena)[0]
    premise, hypothesis = (
        [*model.leading_tokens, *corpus.tokens(side, 0)] for side in (corpus.premise, corpus.hypothesis)
    )
    device = next(model.parameters()).device
    sides = (
        Sentence(*(None if t is None else t.to(device) for t in side)) for side in (batch.premise, batch.hypothesis)
    )
    with torch.inference_mode():
        weights = model.alignment(*sides)[0]
    plot_alignment(weights, premise, hypothesis, "hypothesis words (columns) for each premise word", path)


def _print_metrics(console: Console, metrics: Metrics) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("accuracy", justify="right")
    table.add_row(f"all {metrics['pairs']:,} pairs", f"{100 * metrics['accuracy']:.2f}")
    for group in (metrics["per_class"], metrics["per_phenomenon"]):
        for name, accuracy in group.items():
            table.add_row(f"  {name}", f"{100 * accuracy:.2f}")
    console.print(table)
