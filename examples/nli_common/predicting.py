"""A finished run's prediction for each pair of a file, labelled or not."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor

from nli_common.batches import PairDataset, evaluation_loader, order_of
from nli_common.corpora import NO_LABEL, Pair, read_pairs, require_sentences
from nli_common.data import Corpus
from nli_common.errors import InputError
from nli_common.evaluating import UNFINISHED, UNTAGGED, lexicon_for
from nli_common.files import write_atomically
from nli_common.lexicon import Lexicon
from nli_common.metrics import scores
from nli_common.models import restore
from nli_common.runs import Run
from nli_common.script import Script


def predict_file(script: Script, run: Run, pairs: Path, vectors: Path | None, output: Path) -> None:
    """Write the probabilities of the classes for every pair of a file, in its order, as tab-separated values.

    Raises:
        InputError: if the folder or the file is bad, a sentence is empty, or ``output`` is a file that is read.
    """
    for name, path in (("pairs", pairs), ("vectors", vectors)):
        if path is not None and output.resolve() == path.resolve():
            raise InputError(f"--output {output}: expected another file than that of --{name}, which it would replace")
    labels = run.read_config()["labels"]
    read = list(read_pairs(pairs))
    for number, pair in enumerate(read, 1):
        require_sentences(pair, f"{pairs}, pair {number}")
    if not read:
        raise InputError(f"{pairs}: expected pairs, found none")
    strange = {pair.label for pair in read} - {*labels, NO_LABEL}
    if strange:
        raise InputError(f"{pairs}: has the label {min(strange)}, the model's are {', '.join(labels)}")
    # A pair without a gold label has to have one to be indexed: any will do.
    corpus = Corpus.from_pairs((pair._replace(label=labels[0]) for pair in read), str(pairs))
    lexicon = lexicon_for(run, corpus, vectors)
    shares = _shares(script, run, corpus, lexicon)
    if run.unfinished:
        print(f"note: {run.folder}: {UNFINISHED}", file=sys.stderr)
    if lexicon.tags and not corpus.tags:
        print(f"note: {UNTAGGED}", file=sys.stderr)

    predictions = [labels[best] for best in shares.argmax(1).tolist()]
    head = ["pairID", "gold_label", "prediction", *labels, "sentence1", "sentence2"]

    def write(path: Path) -> None:
        with path.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            for fields in (head, *_rows(read, predictions, shares)):
                file.write("\t".join(re.sub(r"[\t\r\n]", " ", field) for field in fields) + "\n")

    write_atomically(output, write)
    known = sum(pair.label != NO_LABEL for pair in read)
    told = sum(prediction == pair.label for prediction, pair in zip(predictions, read, strict=True))
    right = f"; {told:,} of {known:,} labelled ones are right" if known else ""
    print(f"{len(read):,} {'pair' if len(read) == 1 else 'pairs'}{right}: {output}")


def _rows(pairs: list[Pair], predictions: list[str], shares: Tensor) -> Iterator[list[str]]:
    for pair, prediction, row in zip(pairs, predictions, shares.tolist(), strict=True):
        numbers = (f"{share:.6f}" for share in row)
        yield [pair.pair_id, pair.label, prediction, *numbers, " ".join(pair.premise), " ".join(pair.hypothesis)]


def _shares(script: Script, run: Run, corpus: Corpus, lexicon: Lexicon) -> Tensor:
    """The probability of each class, ``(pairs, classes)``, in the corpus's order."""
    model = restore(script, run, lexicon)
    batches = evaluation_loader(PairDataset(corpus, lexicon, run.read_config()["labels"], corpus.phenomena))
    order = order_of(batches)
    model, prepared = Accelerator().prepare(model, batches)
    in_batches = torch.cat([part.float().softmax(-1).cpu() for part, _ in scores(model, prepared)])
    return torch.empty_like(in_batches).index_copy(0, order, in_batches)
