"""The accuracy of a finished run, or of an ensemble of several, on other pairs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator
from rich.console import Console
from torch import Tensor, nn
from torch.utils.data import DataLoader

from nli_common.batches import PairDataset, evaluation_loader, order_of
from nli_common.categories import accuracy_by_category, read_categories
from nli_common.data import Batch, Corpus, open_corpus
from nli_common.errors import InputError
from nli_common.files import read_json, stem
from nli_common.inputs import fingerprint
from nli_common.labels import counted_as, measured_in, require_labels
from nli_common.lexicon import Lexicon
from nli_common.metrics import Metrics, metrics_of, scores
from nli_common.models import restore
from nli_common.reports import print_metrics
from nli_common.runs import Run, require_distinct, require_replaceable, require_writable, write_json
from nli_common.script import Script, reads_tags

UNFINISHED = "this run is not finished; these are its best weights so far"
EVALUATION = {"test", "data", "weights"}
"""What tells a file of figures from anything else, a run's own metrics included."""
UNTAGGED = "the run's pairs had part-of-speech tags, which this model reads; there are none here"
MERGED = "every class but entailment counts as not_entailment here"
SHOWN_TAGS = 5
"""Tags that a note names."""


def evaluate_runs(
    script: Script,
    runs: Sequence[Run],
    test: Path,
    vectors: Path | None,
    categories: Path | None,
    cache: Path,
    output: Path | None,
) -> None:
    """Print and write the metrics of one run, or of the ensemble of several, on a file.

    Raises:
        InputError: if a folder or a file is bad, the runs do not belong together, or ``output`` is a file that is
            read, a run's own, or any other that does not hold such metrics.
    """
    if not runs:
        raise InputError("--run: expected at least one folder")
    require_distinct(run.folder for run in runs)
    require_replaceable("output", output, runs, test=test, vectors=vectors, categories=categories)
    if output is not None:
        _require_figures(output)
    elif len(runs) == 1:
        require_writable(runs[0])
    corpus = open_corpus(test, cache)
    annotated = None if categories is None else read_categories(categories, test)
    place = runs[0].folder / f"evaluation-{stem(test)}.json" if output is None and len(runs) == 1 else output
    if output is None and place is not None:
        _require_same_file(place, corpus, test)
    evaluated = _evaluate(script, runs, corpus, str(test), vectors)
    metrics = evaluated.metrics
    main = Accelerator().is_main_process
    console = Console(quiet=not main, highlight=False, markup=False, emoji=False)
    for run in runs:
        if run.unfinished:
            console.print(f"note: {run.folder}: {UNFINISHED}", soft_wrap=True)
    console.print(
        f"{evaluated.hashed:,} of {len(corpus.words):,} words are new and hashed; "
        f"{corpus.dropped:,} {'pair' if corpus.dropped == 1 else 'pairs'} without a label dropped",
        soft_wrap=True,
    )
    for note in evaluated.notes:
        console.print(f"note: {note}", soft_wrap=True)
    if annotated is not None:
        metrics["per_phenomenon"] |= accuracy_by_category(annotated, evaluated.right)
    print_metrics(console, metrics, "test")
    if place is not None and main:
        facts = {
            "data": corpus.digest,
            "weights": [fingerprint(run.weights) for run in runs],
            "vectors": None if vectors is None else fingerprint(vectors),
            "finished": not any(run.unfinished for run in runs),
        }
        write_json(place, {"test": metrics, **facts})
        console.print(f"written to {place}", soft_wrap=True)


def _require_figures(place: Path) -> None:
    """Nothing but earlier figures is replaced."""
    if place.is_file() and not EVALUATION.issubset(_held(place)):
        raise InputError(f"--output {place}: holds something other than what evaluate writes; choose another file")


def _require_same_file(place: Path, corpus: Corpus, test: Path) -> None:
    """Two files of one name have other figures, which would replace each other's."""
    if _held(place).get("data", corpus.digest) != corpus.digest:
        raise InputError(
            f"{place}: holds the figures of pairs other than those of {test}; choose another file with --output"
        )


def _held(place: Path) -> dict[str, Any]:
    """What a file holds; nothing if it is none, or not JSON."""
    try:
        return read_json(place)
    except InputError:
        return {}


def evaluate_on(
    script: Script, runs: Sequence[Run], corpus: Corpus, source: str, vectors: Path | None = None
) -> tuple[Tensor, Metrics]:
    """Whether each pair of a corpus is predicted rightly, in the corpus's order, and the metrics.

    Raises:
        InputError: if a folder is bad, or its labels or words do not fit.
    """
    evaluated = _evaluate(script, runs, corpus, source, vectors)
    return evaluated.right, evaluated.metrics


class _Evaluated(NamedTuple):
    right: Tensor
    metrics: Metrics
    hashed: int
    notes: list[str]


def _evaluate(script: Script, runs: Sequence[Run], corpus: Corpus, source: str, vectors: Path | None) -> _Evaluated:
    classes = runs[0].read_config()["labels"]
    for run in runs[1:]:
        if run.read_config()["labels"] != classes:
            raise InputError(f"--run {run.folder}: has other labels than {runs[0].folder}")
    measured = measured_in(corpus.labels, classes)
    require_labels(corpus.labels, measured, source)
    accelerator = Accelerator()
    logits, hashed, notes = [], 0, dict.fromkeys(notes_on_vectors(runs, vectors))
    for run, known in zip(runs, lexicons_for(runs, corpus, vectors), strict=True):
        lexicon = known.extended(corpus.words)
        model = restore(script, run, lexicon).to(accelerator.device)
        dataset = PairDataset(corpus, lexicon, measured, corpus.phenomena)
        batches = evaluation_loader(dataset)
        order = order_of(batches)
        logits.append(_logits(model, accelerator.prepare(batches), accelerator))
        hashed = max(hashed, lexicon.known.count(False) - known.known.count(False))
        notes |= dict.fromkeys(notes_on_tags([model], lexicon, corpus))
    counted = torch.tensor([measured.index(counted_as(label, measured)) for label in classes])[chosen(logits)]
    gold = dataset.label[order]
    right = torch.empty(len(corpus), dtype=torch.bool)
    right[order] = counted == gold
    metrics = metrics_of(counted, gold, dataset.phenomenon[order], measured, corpus.phenomena)
    return _Evaluated(right, metrics, hashed, [*notes, *([] if measured == classes else [MERGED])])


def _logits(model: nn.Module, batches: "DataLoader[Batch]", accelerator: Accelerator) -> Tensor:
    """The logits of every pair, ``(pairs, classes)``, in the order of the batches, on every process."""
    parts = [accelerator.gather_for_metrics(part).cpu() for part, _ in scores(model, batches)]
    return torch.cat(parts)


def chosen(logits: Sequence[Tensor]) -> Tensor:
    """The class of each pair: that of the largest logit of a model or, of several, of the largest mean probability.

    Example::

        >>> sure, one, another = torch.tensor([[4.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 1.0]])
        >>> chosen([one]), chosen([sure, one, another])
        (tensor([1]), tensor([0]))
    """
    if len(logits) == 1:
        return logits[0].argmax(-1)
    return torch.stack([each.float().softmax(-1) for each in logits]).mean(dim=0).argmax(-1)


def lexicons_for(runs: Sequence[Run], corpus: Corpus, vectors: Path | None) -> list[Lexicon]:
    """Each run's lexicon, with the vectors that a file has for a corpus's words; it is read once for runs of one list.

    Raises:
        InputError: if a file is bad, or a run's words have random vectors and a file's are given.
    """
    lexicons = [Lexicon.load(run.lexicon) for run in runs]
    if vectors is None:
        return lexicons
    fingerprint(vectors)  # a file that cannot be read is refused even where no word is looked up in it
    for run in runs:
        if isinstance(_vectors_of(run), dict):
            raise InputError(f"--vectors {vectors}: the run's own are random, and no file's fit them ({run.folder})")
    found: dict[frozenset[str], dict[str, Tensor]] = {}
    extended = []
    for lexicon in lexicons:
        words = frozenset(lexicon.words)
        if words not in found:
            found[words] = lexicon.missing_vectors(vectors, corpus.words)
        extended.append(lexicon.with_vectors(found[words], vectors))
    return extended


def notes_on_vectors(runs: Sequence[Run], vectors: Path | None) -> Iterator[str]:
    """What a reader has to know where new words have another file's vectors than training had."""
    if vectors is None:
        return
    known = (None, fingerprint(vectors))
    if any(_vectors_of(run) not in known for run in runs):
        yield f"{vectors} is not the file of vectors that training had; those of another space mean nothing here"


def _vectors_of(run: Run) -> Any:
    """The fingerprint of a run's vector file, or a dictionary where they are random."""
    data = run.read_config().get("data")
    return data.get("vectors") if isinstance(data, dict) else None


def notes_on_tags(models: Sequence[nn.Module], lexicon: Lexicon, corpus: Corpus) -> Iterator[str]:
    """What a reader has to know where models were trained to read part-of-speech tags that these pairs have not."""
    if not lexicon.tags or not any(map(reads_tags, models)):
        return
    new = sorted(set(corpus.tags).difference(lexicon.tags))
    if not corpus.tags:
        yield UNTAGGED
    elif new:
        named = ", ".join(new[:SHOWN_TAGS]) + (", …" if len(new) > SHOWN_TAGS else "")
        yield f"{len(new):,} of {len(corpus.tags):,} part-of-speech tags are new to the run, and read as none: {named}"
