"""What each model reaches."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

from study.ensembles import held_ensemble
from study.markdown import NO_BREAK, percent, spread, table
from study.pages.claims import behind
from study.peers import OTHER, PEERS, Peer
from study.plan import AVERAGED, BENCHES, ENCODED, OWN_START, QUICK, READERS, jobs
from study.results import Results, kept

COLUMNS = (
    "model",
    "parameters",
    "test",
    "hard",
    "dev",
    "best epochs",
    "five together",
    "public",
)
"""Five together are the mean of five seeds' probabilities."""


def page(results: Results) -> str:
    """A table and the learning curves for each bench."""
    parts = [
        "# Models on real pairs",
        "Accuracy in per cent: mean ± standard deviation over the seeds (their number), on the test pairs and, where "
        "there are any, on those [that are hard](index.md). “Five together” averages the probabilities of five "
        "seeds, where the weights of all five were kept. “Public” is what a [public "
        "implementation](index.md) reached, one model and not five, with another budget. DA is "
        "Decomposable Attention, GT the Gaussian Transformer, GCNN 150 the gated CNN at half its width; LSTM, "
        "attention and hybrid are the Trento report's models. Parameters include a vector for each character that the "
        "bench has, where a model reads them. Dev accuracy is that of the best epoch, and so "
        "optimistic. For each model's speed see [Speed](../speed/index.md). The Gaussian Transformer starts from "
        "weights that are ours, since the paper gives none; [from Glorot's](claims.md) it is "
        f"behind{behind(OWN_START, results)}. [The order of the models](order.md) says how that start was found.",
        "“Averaged” means that an exponential moving average of the weights is chosen on the dev pairs, and tested, in "
        f"place of the weights themselves ({'; '.join(one.family for one in AVERAGED)}); the [claims](claims.md) say "
        "what it is worth. The stacked alignment is [of no paper](../models/stacked_alignment.md).",
        "The models on a frozen encoder are not comparable with the others: all-MiniLM-L6-v2 of sentence-transformers "
        "was trained on SNLI's and MultiNLI's pairs and on Flickr30k's captions, from which SNLI's premises come. Its "
        "parameters are not counted.",
    ]
    for bench in BENCHES:
        lines = list(_models(bench, results))
        if lines:
            curves = (
                "![Dev accuracy of seed 0, epoch by epoch, of each model without an encoder and without averaged "
                f"weights, on {bench}](curves-{bench}.png)"
            )
            share = next(r["largest_class"] for (name, _), found in results.items() if name == bench for r in found)
            empty = ["–"] * (len(COLUMNS) - 3)
            parts += [f"## {bench}", table(COLUMNS, [["largest class", "–", percent(share), *empty], *lines]), curves]
    return "\n\n".join([*parts, *beside_re2(results), "## What was trained", trained(results)]) + "\n"


def _models(bench: str, results: Results) -> Iterator[list[str]]:
    for variant in (*READERS, *ENCODED):
        found = results.get((bench, variant.name), [])
        if found:
            together = held_ensemble(bench, variant)
            hard = of(found, "hard")
            yield [
                variant.name,
                f"{found[0]['parameters']:,}",
                spread(of(found, "test")),
                spread(hard) if hard else "–",
                spread(of(found, "dev")),
                ", ".join(str(r["best_epoch"]) for r in found),
                "–" if together is None else percent(together),
                beside(PEERS.get((bench, variant.name))),
            ]


def beside(peer: Peer | None) -> str:
    """A public implementation's accuracies, as a cell of the table."""
    if peer is None:
        return "–"
    return peer.told("test") if peer.hard is None else f"{peer.told('test')}, hard {peer.hard}"


def beside_re2(results: Results) -> Iterator[str]:
    """The models without an encoder that are best on dev pairs, bench by bench, beside one that has no script here."""
    lines = []
    for bench in BENCHES:
        models = [(v.name, results[bench, v.name]) for v in READERS if (bench, v.name) in results]
        best = sorted(models, key=lambda one: -mean(of(one[1], "dev")))[:2]
        peer = PEERS.get((bench, OTHER))
        if peer is not None and best:
            for which in ("test", "hard") if peer.hard is not None else ("test",):
                ours = "; ".join(f"{name} {spread(of(found, which))}".replace(" ", NO_BREAK) for name, found in best)
                lines.append([f"{bench}, {which}", ours, peer.told(which)])
    if lines:
        yield f"## Beside {OTHER}"
        yield (
            "RE2, a later model, was trained by its authors' code on the same pairs and vectors, with 1.2 million "
            "parameters on `snli10k` and `sick` and 1.8 million on `snli22k`, where it was stopped after 10 epochs. "
            "There is no public implementation's figure for `mnli20k`. No average was taken of RE2's weights. The two "
            "models beside it are those of the tables above, without an encoder, that have the highest dev accuracy."
        )
        yield table(["test pairs", "best two by dev accuracy", OTHER], lines)


def of(found: Sequence[Mapping[str, Any]], which: str) -> list[float]:
    """The accuracies on some test pairs, of the runs that were tested on them."""
    return [r["accuracy"][which] for r in found if which in r["accuracy"]]


def trained(results: Results) -> str:
    """How many runs there are, what they took, and which of the plan are missing."""
    planned = list(jobs("cpu"))
    left: dict[str, dict[str, list[int]]] = {}
    for job in planned:
        if kept(job) is None:
            left.setdefault(job.bench, {}).setdefault(job.variant, []).append(job.seed)
    done = len(planned) - sum(len(seeds) for variants in left.values() for seeds in variants.values())
    runs = [f"- `{bench}`: {'; '.join(_seeds(*one) for one in variants.items())}" for bench, variants in left.items()]
    found = [result for group in results.values() for result in group]
    hours = sum(result["seconds"] for result in found) / 3600
    machines = sorted(
        {f"{r['machine']}, torch {r['torch']}, {r['threads']} thread{'s' * (r['threads'] > 1)} a run" for r in found}
    )
    plan = (
        f"{done} of the {len(planned)} runs of the small budget are done"
        f"{f', and {len(found) - done} more of the large one' * (len(found) > done)}: "
        f"{hours:.1f} hours of training, including pauses but not tuning, on "
        f"{'; '.join(machines) or 'no machine yet'}. The small budget plans five seeds on `snli10k` and `sick`, "
        "except for three of CAFE, the stacked alignment, the LSTM, the "
        "hybrid and the models on a frozen encoder, and one of the gated CNN at its own width, which takes a core up "
        "to an hour per run; on `snli22k` and `mnli20k` three seeds of the models that train fastest "
        f"({'; '.join(QUICK)}; on `mnli20k` without those on an encoder) and one of the others, with the gated CNN at "
        "150 features only. Averaged models have three seeds, Decomposable Attention five, and none on `mnli20k`. "
        "Ablations are on `snli10k` and `sick`, five seeds but for three of CAFE's and of those that take the changes "
        "of one of the gated CNN's apart; "
        "the Gaussian Transformer from Glorot's start is on `snli22k`, too. `snli58k` is left to the large budget."
    )
    left_over = "Missing runs, with their seeds, which `make study DATA=folder ENCODER=folder` trains:"
    return "\n\n".join([plan, left_over, "\n".join(runs)] if runs else [plan])


def _seeds(variant: str, seeds: Sequence[int]) -> str:
    return f"{variant} ({', '.join(map(str, seeds))})"
