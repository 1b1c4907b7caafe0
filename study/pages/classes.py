"""How often models are right on the pairs of each class."""

from collections.abc import Iterator, Mapping
from typing import Any

from study.classes import held_classes
from study.files import LABELS
from study.markdown import percent, spread, table
from study.plan import BENCHES, ENCODED, READERS
from study.results import Results


def page(results: Results) -> str:
    """A table for each bench."""
    held = {bench: held_classes(bench) for bench in BENCHES}
    parts = [
        "# Class by class",
        "The share of a bench's training and test pairs in each class, and each model's accuracy on the test pairs of "
        "that class, in per cent: mean ± standard deviation over the seeds (their number). [Models](models.md) says "
        "what the names stand for.",
        "Models learn how frequent a class is, too: few of `snli58k`'s training pairs are neutral, while a third of "
        "its test pairs are, and every model trained on it is right on fewer of these than of the others.",
        *(
            f"## {bench}\n\n{table(['', *LABELS], _lines(bench, counted, results))}"
            for bench, counted in held.items()
            if counted
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _lines(bench: str, counted: Mapping[str, Any], results: Results) -> Iterator[list[str]]:
    yield ["training pairs", *_shares(counted["train"])]
    yield ["test pairs", *_shares(counted["test"])]
    for variant in (*READERS, *ENCODED):
        right = counted["right"].get(variant.name, {})
        seeds = [str(run["seed"]) for run in results.get((bench, variant.name), [])]
        runs = [right[seed] for seed in seeds if seed in right]
        if runs:
            yield [variant.name, *(spread([run[label] / counted["test"][label] for run in runs]) for label in LABELS)]


def _shares(pairs: Mapping[str, int]) -> list[str]:
    return [percent(pairs[label] / sum(pairs.values())) for label in LABELS]
