"""What a run shows: its accuracies on the screen, its confusion matrix and one alignment as figures."""

from pathlib import Path

import torch
from accelerate.utils import send_to_device
from rich.console import Console
from rich.table import Table
from torch import nn

from nli_common.batches import PairDataset
from nli_common.data import Corpus, Sentence
from nli_common.figures import plot_alignment, plot_lines
from nli_common.lexicon import Lexicon
from nli_common.metrics import Metrics
from nli_common.script import Aligns, Propagates


def print_metrics(console: Console, metrics: Metrics, split: str) -> None:
    """A table of accuracies in per cent, on the test or the dev pairs: over all, per class, per phenomenon."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column(f"{split} accuracy", justify="right")
    table.add_row(f"all {metrics['pairs']:,} pairs", f"{100 * metrics['accuracy']:.2f}")
    for group in (metrics["per_class"], metrics["per_phenomenon"]):
        for name, accuracy in group.items():
            table.add_row(f"  {name}", f"{100 * accuracy:.2f}")
    print_table(console, table)


def print_table(console: Console, table: Table) -> None:
    """A table as wide as its names, where it goes to a file or a pipe; a terminal's own width bounds it there."""
    if not console.is_terminal:
        console.width = max(console.width, console.measure(table, options=console.options.update(width=10_000)).maximum)
    console.print(table)


def plot_first_pair(model: nn.Module, corpus: Corpus, lexicon: Lexicon, folder: Path) -> None:
    """Draw what the model can show of a corpus's first pair into a run's folder."""
    plot_pair(model, corpus, lexicon, folder / "alignment.png")
    if isinstance(model, Propagates):
        with torch.inference_mode():
            features = model.propagated_features(*_first_pair(model, corpus, lexicon))
        for side, values in (("premise", features.premise), ("hypothesis", features.hypothesis)):
            words = corpus.tokens(getattr(corpus, side), 0)
            series = dict(zip(features.names, values[0].float().T.tolist(), strict=True))
            plot_lines(series, words, f"what is propagated of each {side} word", folder / f"features-{side}.png")


def plot_pair(model: nn.Module, corpus: Corpus, lexicon: Lexicon, path: Path) -> None:
    """The word alignment of a corpus's first pair, where the model can show one."""
    if not isinstance(model, Aligns):
        return
    with torch.inference_mode():
        weights, _ = model.alignment(*_first_pair(model, corpus, lexicon))
    rows, columns = ([*model.leading_tokens, *corpus.tokens(side, 0)] for side in (corpus.premise, corpus.hypothesis))
    plot_alignment(weights[0], rows, columns, "hypothesis words (columns) for each premise word", path)


def _first_pair(model: nn.Module, corpus: Corpus, lexicon: Lexicon) -> tuple[Sentence, Sentence]:
    batch = PairDataset(corpus, lexicon, corpus.labels, corpus.phenomena)[0]
    premise, hypothesis, *_ = send_to_device(batch, next(model.parameters()).device)
    return premise, hypothesis
