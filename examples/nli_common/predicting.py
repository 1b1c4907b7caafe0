"""A finished run's predictions: for one pair from the command line, or for each pair of a file, labelled or not."""

import gzip
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from torch import Tensor, nn

from nli_common.batches import PairDataset, evaluation_loader, order_of
from nli_common.corpora import Pair, read_pairs
from nli_common.data import Corpus, Sentence
from nli_common.errors import InputError
from nli_common.evaluating import UNFINISHED, lexicons_for, notes_on_tags, notes_on_vectors
from nli_common.figures import format_of
from nli_common.files import write_atomically
from nli_common.labels import NO_LABEL, NOT_NEEDED, counted_as, measured_in, require_labels
from nli_common.lexicon import Lexicon
from nli_common.memory import memory_for
from nli_common.metrics import scores
from nli_common.models import restore
from nli_common.reports import plot_pair
from nli_common.runs import Run, require_alike, require_replaceable
from nli_common.script import Aligns, Script
from nli_common.tokens import LONGEST_TOKEN, split_text

HEAD = ("pairID", "gold_label", "prediction")
"""The first columns of a file of predictions."""
BEGINNINGS = ("\t".join(HEAD), '{"prediction": "')
"""What a file of predictions begins with, of tab-separated values or of JSON."""


class Predictions(NamedTuple):
    """What a finished run says of pairs.

    Attributes:
        labels: the classes.
        shares: the probability of each class, ``(pairs, classes)``, in the order of the pairs.
    """

    labels: Sequence[str]
    shares: Tensor


class PreparedPair(NamedTuple):
    """One pair, as a finished run's model is given it.

    The model knows the run's words and this pair's. Where these are new to the run, their ids are those of other words
    in another pair: each pair goes to the model that was prepared with it.
    """

    model: nn.Module
    labels: Sequence[str]
    corpus: Corpus
    lexicon: Lexicon
    premise: Sentence
    hypothesis: Sentence


def prepare_pair(script: Script, run: Run, premise: str, hypothesis: str) -> PreparedPair:
    """Split two texts into words, and restore the run's model for these words; notes on it go to stderr.

    Raises:
        InputError: if a sentence is empty, or the folder is bad.
    """
    labels = run.read_config()["labels"]
    pair = Pair(_words_of("--premise", premise), _words_of("--hypothesis", hypothesis), labels[0])
    corpus = Corpus.from_pairs([pair], "the pair")
    lexicon = Lexicon.load(run.lexicon).extended(corpus.words)
    model = restore(script, run, lexicon)
    _print_notes(run, model, lexicon, corpus)
    batch = PairDataset(corpus, lexicon, labels, corpus.phenomena)[0]
    return PreparedPair(model, labels, corpus, lexicon, batch.premise, batch.hypothesis)


def _words_of(name: str, text: str) -> list[str]:
    words = split_text(text)
    if not words:
        raise InputError(f"{name}: expected a sentence, got no word in {text!r}")
    if any(len(word) > LONGEST_TOKEN for word in words):
        raise InputError(f"{name}: has a token of more than {LONGEST_TOKEN:,} characters")
    return words


def predict_texts(script: Script, run: Run, pairs: Iterable[tuple[str, str]]) -> Predictions:
    """What a run says of premises and hypotheses, each a text; the model is restored once. Notes go to stderr.

    Raises:
        InputError: if there is no pair, a sentence is empty, or the folder is bad.
    """
    read = []
    for n, (premise, hypothesis) in enumerate(pairs, start=1):
        sides = _words_of(f"the premise of pair {n}", premise), _words_of(f"the hypothesis of pair {n}", hypothesis)
        read.append(Pair(*sides, NO_LABEL))
    return _predicted(script, run, read, "the pairs", None, Accelerator())


def predict_pair(script: Script, run: Run, premise: str, hypothesis: str, figure: Path | None) -> None:
    """Print the probability of each class, and draw the word alignment if asked.

    Raises:
        InputError: if a sentence is empty or does not fit into memory, the folder is bad, or the figure would replace
            the run's own file.
    """
    require_replaceable("figure", figure, [run])
    if figure is not None:
        format_of(figure)  # a name that has none is refused before anything is predicted
    pair = prepare_pair(script, run, premise, hypothesis)
    if figure is not None and not isinstance(pair.model, Aligns):
        raise InputError(f"--figure: {type(pair.model).__name__} aligns no words")
    with memory_for(pair.premise, pair.hypothesis), torch.inference_mode():
        shares = pair.model(pair.premise, pair.hypothesis).softmax(-1)[0].tolist()
    for share, label in sorted(zip(shares, pair.labels, strict=True), reverse=True):
        print(f"{label:14} {share:.4f}")
    if figure is not None:
        plot_pair(pair.model, pair.corpus, pair.lexicon, figure)


def predict_file(script: Script, run: Run, pairs: Path, vectors: Path | None, output: Path | None) -> None:
    """Write the probabilities of the classes for every pair of a file, in its order.

    They are tab-separated values, or JSON objects where the name ends in .jsonl; a name that ends in .gz is that of a
    compressed file. Without a name they are printed, and what is said of them goes to stderr.

    Of several processes, the main one does it alone.

    Raises:
        InputError: if the folder or the file is bad, a sentence is empty, or ``output`` is a file that is read, the
            run's own, or any other that holds no predictions.
    """
    accelerator = Accelerator()
    if not accelerator.is_main_process:
        return
    require_replaceable("output", output, [run], pairs=pairs, vectors=vectors)
    if output is not None and output.suffix in (".json", ".csv"):
        raise InputError(f"--output {output}: expected a name in .tsv or .jsonl, got one in {output.suffix}")
    require_alike("output", output, BEGINNINGS, "predict")
    labels = run.read_config()["labels"]
    read = list(read_pairs(pairs, labelled=False))
    gold = sorted({pair.label for pair in read} - {NO_LABEL})
    measured = measured_in(gold, labels)
    require_labels(gold, measured, str(pairs), NOT_NEEDED)
    _, shares = _predicted(script, run, read, str(pairs), vectors, accelerator)
    predictions = [labels[best] for best in shares.argmax(1).tolist()]
    columns = [*HEAD, *labels, "sentence1", "sentence2"]
    rows = _rows(read, predictions, shares)
    as_json = output is not None and output.name.endswith((".jsonl", ".jsonl.gz"))
    lines = _objects(columns, rows) if as_json else _separated([columns, *rows])
    summary = _summary(read, [counted_as(prediction, measured) for prediction in predictions])
    if output is None:
        for line in lines:
            print(line)
        print(f"note: {summary}", file=sys.stderr)
    else:
        _write(lines, output)
        print(f"{summary}: {output}")


def _predicted(
    script: Script, run: Run, pairs: Sequence[Pair], source: str, vectors: Path | None, accelerator: Accelerator
) -> Predictions:
    if not pairs:
        raise InputError(f"{source}: expected pairs, found none")
    labels = run.read_config()["labels"]
    # A pair without a gold label has to have one to be indexed: any will do.
    corpus = Corpus.from_pairs((pair._replace(label=labels[0]) for pair in pairs), source)
    [lexicon] = (known.extended(corpus.words) for known in lexicons_for([run], corpus, vectors))
    model = restore(script, run, lexicon)
    shares = _shares(model, PairDataset(corpus, lexicon, labels, corpus.phenomena), accelerator)
    _print_notes(run, model, lexicon, corpus, vectors)
    return Predictions(labels, shares)


def _summary(pairs: Sequence[Pair], predictions: Sequence[str]) -> str:
    """How many pairs there are and, where some have labels, how many of these are predicted rightly."""
    count = f"{len(pairs):,} {'pair' if len(pairs) == 1 else 'pairs'}"
    known = sum(pair.label != NO_LABEL for pair in pairs)
    right = sum(prediction == pair.label for prediction, pair in zip(predictions, pairs, strict=True))
    return f"{count}; {right:,} of {known:,} labelled ones are right" if known else count


def _write(lines: Iterable[str], output: Path) -> None:
    def write(path: Path) -> None:
        opened = gzip.open if output.suffix == ".gz" else open
        with opened(path, "wt", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)

    write_atomically(output, write)


def _separated(rows: Iterable[Sequence[str | float]]) -> Iterator[str]:
    """Lines of tab-separated values; numbers have six decimals."""
    for row in rows:
        fields = (f"{field:.6f}" if isinstance(field, float) else re.sub(r"[\t\r\n]", " ", field) for field in row)
        yield "\t".join(fields)


def _objects(columns: Sequence[str], rows: Iterable[Sequence[str | float]]) -> Iterator[str]:
    """JSON objects, each in a line, with the prediction first: no file of pairs begins so."""
    for row in rows:
        rounded = (round(field, 6) if isinstance(field, float) else field for field in row)
        told = dict(zip(columns, rounded, strict=True))
        yield json.dumps({"prediction": told.pop("prediction")} | told, ensure_ascii=False)


def _print_notes(run: Run, model: nn.Module, lexicon: Lexicon, corpus: Corpus, vectors: Path | None = None) -> None:
    """Say on stderr what a reader has to know of these predictions."""
    if run.unfinished:
        print(f"note: {run.folder}: {UNFINISHED}", file=sys.stderr)
    for note in (*notes_on_vectors([run], vectors), *notes_on_tags([model], lexicon, corpus)):
        print(f"note: {note}", file=sys.stderr)


def _rows(pairs: list[Pair], predictions: list[str], shares: Tensor) -> Iterator[list[str | float]]:
    for pair, prediction, row in zip(pairs, predictions, shares.tolist(), strict=True):
        yield [pair.pair_id, pair.label, prediction, *row, " ".join(pair.premise), " ".join(pair.hypothesis)]


def _shares(model: nn.Module, pairs: PairDataset, accelerator: Accelerator) -> Tensor:
    """The probability of each class, ``(pairs, classes)``, in the dataset's order."""
    batches = evaluation_loader(pairs)
    placed = model.to(accelerator.device)
    moved = (send_to_device(batch, accelerator.device) for batch in batches)
    in_batches = torch.cat([part.float().softmax(-1).cpu() for part, _ in scores(placed, moved)])
    return torch.empty_like(in_batches).index_copy(0, order_of(batches), in_batches)
