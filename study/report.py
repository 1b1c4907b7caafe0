"""The study's pages, from what is kept of its runs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nlilayers import GaussianPrior
from study.compare import FEWEST_SEEDS, Difference, difference, verdicts
from study.ensembles import held_ensemble
from study.markdown import NO_BREAK, percent, spread, table, uncounted
from study.pairs import COMMONEST, held_of
from study.peers import PEERS
from study.plan import (
    BENCHES,
    CLAIMS,
    ENCODED,
    HALVED,
    MODELS,
    ORDER,
    OWN_START,
    PROTOCOL,
    QUICK,
    SMALL,
    TUNING_EPOCHS,
    VARIANTS,
    Claim,
    jobs,
    seeds_on_cpu,
)
from study.plots import plot_alignments, plot_curves
from study.results import Results, aligned, held_results, kept
from study.starts import held_starts
from study.training import priors as priors_of
from study.training import unpacked
from study.tuning import held_tuning
from study.windows import TEXTS, WORDS, held_window

PAGES = Path(__file__).parent.parent / "docs" / "study"
COLUMNS = (
    "model",
    "parameters",
    "test",
    "hard",
    "dev",
    "best epochs",
    "five together",
    "public implementation",
)
"""Of the tables of models; five together are the mean of five seeds' probabilities."""


def write(folder: Path = PAGES) -> None:
    """Every page and picture."""
    folder.mkdir(parents=True, exist_ok=True)
    found = held_results()
    for bench in dict.fromkeys(bench for bench, _ in found):
        plot_curves(bench, found, folder / f"curves-{bench}.png")
    plot_alignments(found, folder / "alignments.png")
    pages = {
        "models": models_page(found),
        "claims": claims_page(found),
        "transfer": transfer_page(found),
        "alignments": alignments_page(found),
        "priors": priors_page(found),
        "tuning": tuning_page(),
    }
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def models_page(results: Results) -> str:
    """A table and the learning curves for each bench."""
    parts = [
        "# Models on real pairs",
        "Accuracy in per cent: mean ± standard deviation over the seeds (their number). Five together is what the mean "
        "of five seeds' probabilities reaches, where the weights of all five were kept; the public implementations' "
        "figures are of single models, with [other budgets](index.md). How fast each model is has "
        "[its own page](../speed/index.md). The Gaussian Transformer starts from weights that are ours, the paper "
        f"being silent: [from Glorot's](claims.md) it is behind{behind(OWN_START, results)} (of few seeds), and "
        "[the order of the models](order.md) says how it came to them.",
        "The models on a frozen encoder are no peers of the others: all-MiniLM-L6-v2 of sentence-transformers was "
        "trained on SNLI's and MultiNLI's pairs and on captions of Flickr30k, which SNLI's premises are. Its "
        "parameters are not counted.",
    ]
    for bench in BENCHES:
        lines = list(_models(bench, results))
        if lines:
            curves = (
                f"![Dev accuracy of seed 0 of each model that reads words, epoch by epoch, {bench}](curves-{bench}.png)"
            )
            share = next(r["largest_class"] for (name, _), found in results.items() if name == bench for r in found)
            empty = ["–"] * (len(COLUMNS) - 3)
            largest = ["largest class", "–", percent(share), *empty]
            re2 = ["RE2", "–", "–", *empty[1:], PEERS.get((bench, "RE2"), "–")]
            parts += [f"## {bench}", table(COLUMNS, [largest, *lines, re2]), curves]
    return "\n\n".join([*parts, "## What is missing", missing(results)]) + "\n"


def _models(bench: str, results: Results) -> Iterator[list[str]]:
    for variant in (*MODELS, *HALVED, *ENCODED):
        found = results.get((bench, variant.name), [])
        if found:
            together = held_ensemble(bench, variant)
            hard = [r["accuracy"]["hard"] for r in found if "hard" in r["accuracy"]]
            yield [
                variant.name,
                f"{found[0]['parameters']:,}",
                spread([r["accuracy"]["test"] for r in found]),
                spread(hard) if hard else "–",
                spread([r["accuracy"]["dev"] for r in found]),
                ", ".join(str(r["best_epoch"]) for r in found),
                "–" if together is None else percent(together),
                PEERS.get((bench, variant.name), "–"),
            ]


def missing(results: Results) -> str:
    """What of the plan is not there, and what the rest took."""
    planned = list(jobs("cpu"))
    done = sum(kept(job) is not None for job in planned)
    found = [result for group in results.values() for result in group]
    hours = sum(result["seconds"] for result in found) / 3600
    machines = sorted(
        {f"{r['machine']}, torch {r['torch']}, {r['threads']} thread{'s' * (r['threads'] > 1)} a run" for r in found}
    )
    return (
        f"{done} of the {len(planned)} runs of the small budget are done, {hours:.1f} hours of training, pauses "
        f"included and tuning not, on {'; '.join(machines) or 'no machine yet'}. `make study DATA=folder "
        "ENCODER=folder` trains the others. The small budget leaves out `snli58k`. On `snli10k` and `sick` it has five "
        "seeds; of CAFE, the LSTM, the hybrid, the models on a frozen encoder and the gated CNN with 150 features it "
        "has three, and of the gated CNN at its own width, which takes a core an hour for a run, one. `snli22k` has "
        f"three seeds of the models that train fastest ({'; '.join(QUICK)}), and one of the others; `mnli20k` has one; "
        "both have the gated CNN with 150 features alone. Ablations are trained on `snli10k` and `sick`, the Gaussian "
        "Transformer's from Glorot's start once on `snli22k`, too."
    )


def claims_page(results: Results) -> str:
    """The papers' comparisons, ours beside what they say."""
    return "\n\n".join(
        (
            "# The papers' claims",
            "The first variant's test accuracy less the second's, in points, with its 95 per cent interval for other "
            "pairs of the kind and other seeds (Student's t for the seeds, the normal distribution for the pairs; "
            f"{FEWEST_SEEDS} seeds of each are the fewest). It is not an interval for other training pairs, or for "
            "another tuning. A claim holds, or is reversed, where Holm's procedure says so at 5 per cent, over all "
            "rows of its section that the small budget has enough seeds of, measured or not. With so few seeds that "
            "takes a large difference: undecided is no sign of none, and an interval without 0 speaks for its own row "
            "alone.",
            "## What a part is worth",
            "Variants of one family (GT, GCNN 150, CAFE 150, attention) are trained with the rate and dropout that "
            "were [tuned](tuning.md) for its whole model: one that lacks a part might do better with others. "
            "Decomposable Attention with and without intra-attention, and the two on a frozen encoder, were tuned each "
            "for itself. Here CAFE has encoders of 150 features, 10 factors, a prediction of 200 and no intra-aligned "
            "vector in its LSTM, and the gated CNN 150 features. Vectors of unit length are a setting of the report, "
            "which does not say what they bring; words without a vector then have a normal one, ten times as long, "
            "unless these have unit length, too, of which it says nothing. With the other's rate their best epochs are "
            f"late ({best_epochs('attention, unit vectors', results)} of {PROTOCOL['epochs']}, throughout "
            f"{best_epochs('attention, unit vectors throughout', results)}). The aligned head on a frozen encoder "
            "differs from the pooled one in [more than alignment](index.md). Between the priors the paper itself "
            "prints differences of 0.1 to 1.2 points, on MultiNLI's dev pairs, which intervals of this width cannot "
            "tell from nothing.",
            comparisons(CLAIMS, results),
            "## The order of the models",
            "At the papers' sizes but for GCNN 150, which has half of them; the Gaussian Transformer from weights that "
            "are [ours](order.md). The papers' accuracies are of SNLI's test set after training on all of SNLI, Chen "
            "et al.'s of MultiNLI's; an LSTM is another one in each paper.",
            comparisons(ORDER, results) + "\n",
        )
    )


def comparisons(claims: Sequence[Claim], results: Results) -> str:
    """How many rows were decided how; a table for each paper, each claim on each bench that has both its variants."""
    pairs = ((claim, bench, compared(claim, bench, results)) for claim in claims for bench in BENCHES)
    found = [(claim, bench, gap) for claim, bench, gap in pairs if gap is not None]
    lines: dict[str, list[list[str]]] = {}
    said = verdicts([gap for _, _, gap in found], sum(decidable(claim, bench) for claim in claims for bench in SMALL))
    before = None
    for (claim, bench, gap), verdict in zip(found, said, strict=True):
        known = (f"{gap.low:+.1f} to {gap.high:+.1f}", f"{gap.p:.2g}") if gap.seeds >= FEWEST_SEEDS else ("–", "–")
        counts = dict.fromkeys(len(results[bench, name]) for name in (claim.better, claim.worse))
        numbers = [f"{round(gap.points, 1) + 0.0:+.1f}", *known, " and ".join(map(str, counts)), verdict]
        told = ("", "") if claim == before else (claim.says, f"{claim.better} – {claim.worse}")
        line = [*told, bench, *(number.replace(" ", NO_BREAK) for number in numbers)]
        lines.setdefault(claim.paper, []).append(line)
        before = claim
    head = ["says", "difference", "bench", "points", "interval", "p", "seeds", "here"]
    tables = (f"### {paper[0].upper()}{paper[1:]}\n\n{table(head, rows)}" for paper, rows in lines.items())
    decided = ", ".join(f"{verdict} {number}" for verdict, number in Counter(said).most_common())
    return "\n\n".join([f"Of {len(found)} rows: {decided}.", *tables])


def behind(claim: Claim, results: Results) -> str:
    """By how much the worse variant is, on each bench that has both; nothing where none has."""
    gaps = [gap.points for gap in (compared(claim, bench, results) for bench in BENCHES) if gap is not None]
    return f" by {min(gaps):.1f} to {max(gaps):.1f} points" if gaps else ""


def best_epochs(variant: str, results: Results) -> str:
    """The earliest and the latest of all runs of a variant."""
    found = [r["best_epoch"] for (_, name), group in results.items() if name == variant for r in group]
    return f"{min(found)} to {max(found)}" if found else "none yet"


def decidable(claim: Claim, bench: str) -> bool:
    """Whether the small budget has enough seeds of both variants."""
    return min(seeds_on_cpu(bench, name) for name in (claim.better, claim.worse)) >= FEWEST_SEEDS


def compared(claim: Claim, bench: str, results: Results) -> Difference | None:
    """The difference over all seeds of both, or ``None``."""
    sides = [results.get((bench, name), []) for name in (claim.better, claim.worse)]
    if not all(sides):
        return None
    return difference(*([unpacked(r["right"], r["pairs"]).numpy() for r in side] for side in sides))


def transfer_page(results: Results) -> str:
    """Models of snli22k on other pairs."""
    bench = BENCHES["snli22k"]
    files = {"test": bench.test, **bench.others}
    known = [held_of(bench, file) for file in files.values()]
    classes = [file["classes"].values() if file else () for file in known]
    rows = ((variant.name, results.get((bench.name, variant.name), [])) for variant in (*MODELS, *HALVED, *ENCODED))
    lines = [
        ["pairs", *(f"{sum(pairs):,}" if pairs else "–" for pairs in classes)],
        ["with a premise of a training pair", *(f"{file['known_premises']:,}" if file else "–" for file in known)],
        ["largest class", *(percent(max(pairs) / sum(pairs)) if pairs else "–" for pairs in classes)],
        *(
            [f"{name} ({len(found)})", *(uncounted([r["accuracy"][file] for r in found]) for file in files)]
            for name, found in rows
            if found
        ),
    ]
    return "\n\n".join(
        (
            "# Elsewhere than they were trained",
            "Models of snli22k on other pairs, accuracy in per cent, mean ± standard deviation over the seeds; read "
            "each beside what always saying the largest class would be worth there. MoNLI has no contradictions, and "
            "Breaking NLI few neutral pairs; a prediction of a class that a file does not have is wrong. Pairs of "
            "FraCaS without an answer are left out. Only SNLI's and SICK's pairs have part-of-speech tags, which CAFE "
            "and the gated CNN with tags are trained to read. Pairs of Breaking NLI differ in one word; where it has "
            "no vector, it shares a random one with others.",
            "Breaking NLI (Glockner et al. 2018) replaces a word of SNLI's premises. The revised pairs (Kaushik et al. "
            "2020) are SNLI's with a premise or a hypothesis that was changed by hand, so that the label is another. "
            "MoNLI (Geiger et al. 2020) replaces a word by a more general or a more special one, in its negative pairs "
            "under a negation. FraCaS (Cooper et al. 1996) has textbook problems of semantics.",
            table(["model (seeds)", *files], lines) + "\n",
        )
    )


def alignments_page(results: Results) -> str:
    """How far attention finds the same word, bench by bench."""
    benches = [bench for bench in BENCHES if any(name == bench for name, _ in results)]
    before = {bench: held_starts(bench) for bench in benches}
    lines = []
    for variant in VARIANTS:
        found = [[pair["found"] for pair, _ in aligned(bench, variant, results)] for bench in benches]
        if any(found):
            known = [before[bench].get(variant, {}).get("found") for bench in benches]
            cells = [
                f"{'?' if start is None else percent(start)} → {spread(shares)}" if shares else "–"
                for start, shares in zip(known, found, strict=True)
            ]
            lines.append([variant, *cells])
    even = [[pair["even"] for v in VARIANTS for pair, _ in aligned(bench, v, results)] for bench in benches]
    lines.append(["every word alike", *(percent(shares[0]) if shares else "–" for shares in even)])
    return "\n\n".join(
        (
            "# What attention finds",
            "Where a word of a hypothesis stands in its premise, too: how much of the attention that it pays to the "
            "premise is on that very word, in per cent, the mean over all such words of the test pairs: before "
            "training (seed 0) → after it, mean ± standard deviation over the seeds (their number). The Gaussian "
            "Transformer's is that of its last block, the mean of its heads.",
            "It is one figure for much: a few words, “a” and “the” among them, are much of all of them, as the second "
            "table says; a model may rightly attend to another word than the same; and much of it may be there from "
            "the start, where equal words have equal vectors. A model whose row is as the last one pays equal words no "
            "heed. A question mark is a start that was not measured.",
            table(["model", *benches], lines),
            table(["test pairs", "shared words", f"the {COMMONEST} commonest are", "of all"], commonest(benches)),
            "A point for each run, its test accuracy above what its attention finds; the line is where every word has "
            "the same weight:",
            "![Test accuracy of every run above the weight on the same word, for each bench](alignments.png)\n",
        )
    )


def commonest(benches: Sequence[str]) -> list[list[str]]:
    """Which shared words there are most of, bench by bench."""
    lines = []
    for bench in (BENCHES[name] for name in benches):
        if file := held_of(bench, bench.test):
            words = " ".join(f"`{word}`" for word in file["commonest"])
            share = sum(file["commonest"].values()) / max(file["shared_words"], 1)
            lines.append([bench.name, f"{file['shared_words']:,}", words, f"{percent(share)} %"])
    return lines


def priors_page(results: Results) -> str:
    """What w and b became, block by block."""
    lines: list[list[str]] = []
    starts, moved, steps = priors_of(GaussianPrior())[0], [0.0], []
    for (bench, variant), found in results.items():
        priors = [result["priors"] for result in found if result["priors"]]
        steps += [steps_of(result) for result in found if result["priors"]]
        for depth, block in enumerate(zip(*priors, strict=True), start=1):
            w, b = ([pair[i] for pair in block] for i in (0, 1))
            ends = [w, b] if any(b) else [w]  # Eq 3 has no b
            cells = [", ".join(f"{value:.3f}" for value in values) for values in ends]
            lines.append([bench, variant, str(depth), *cells, *["–"] * (2 - len(ends))])
            moved += [abs(value - start) for values, start in zip(ends, starts, strict=False) for value in values]
    return "\n\n".join(
        (
            "# What the priors learn",
            "w and b of each Gaussian prior of the Gaussian Transformer, a column for each seed, from the first "
            "encoding block to the last interaction block. They start at "
            f"{starts[0]:.1f} and {starts[1]:.1f}, and the furthest has moved by {max(moved):.3f}. Near 0.1 a softplus "
            "passes on a tenth of a step, so that Adam at a rate of 0.0002 moves them by some 0.02 in 1,000 steps at "
            f"most; to their best epochs these runs took {min(steps, default=0):,} to {max(steps, default=0):,}. So "
            "they could have moved much further, and hardly did.",
            table(["bench", "variant", "block", "w", "b"], lines),
            *window_section(),
        )
    )


def steps_of(result: Mapping[str, Any]) -> int:
    """Steps to a run's best epoch."""
    pairs = round(result["seconds"] * result["pairs_per_second"] / len(result["dev"]))
    steps: int = result["best_epoch"] * -(-pairs // result["options"]["batch_size"])
    return steps


def window_section() -> tuple[str, str, str]:
    """What the attention's window changes."""
    lines = []
    for bench, held in ((bench, held_window(bench)) for bench in BENCHES):
        for texts, found in (held["texts"] if held else {}).items():
            counts = (f"{found[name]:,}" for name in ("pairs", "windows", "other_predictions"))
            sizes = (f"{found[name]:.2g}" for name in ("largest_difference", "largest_logit"))
            lines.append([bench, texts, *counts, *sizes])
    head = ["bench", "texts", "pairs", "windows", "other predictions", "largest difference", "largest logit"]
    return (
        "## Their window",
        "By default the attention leaves out what its prior makes too small to matter. The same weights, seed 0, once "
        "with every score and once so: of the test pairs, whose sentences are so short that no window pays, and of "
        f"{TEXTS} texts of {WORDS:,} words made of the test set's premises; how many attentions took a window, how "
        "many predictions became others, and how far the logits are apart.",
        table(head, lines) + "\n",
    )


def tuning_page() -> str:
    """What was tried for each family."""
    lines = []
    for held in filter(None, map(held_tuning, dict.fromkeys(variant.family for variant in VARIANTS.values()))):
        tried = [(one["options"]["lr"], one["options"]["dropout"], 100 * one["dev"]) for one in held["tried"]]
        said = "; ".join(f"{lr:g}, {dropout}: {dev:.1f}" for lr, dropout, dev in tried)
        lines.append([held["family"], said, f"{held['chosen']['lr']:g}, {held['chosen']['dropout']}"])
    return "\n\n".join(
        (
            "# Tuning",
            f"Dev accuracy of snli10k after at most {TUNING_EPOCHS} epochs, seed 0, for each learning rate and dropout "
            "that was tried: the rates at dropout 0.2, then two more dropouts at the best rate. What was chosen is "
            "used on every bench. With 1,000 dev pairs and one seed, differences of a point or so are noise, and ten "
            "epochs favour what learns fast: Decomposable Attention is not done by then.",
            table(["family", "rate, dropout: dev accuracy", "chosen"], lines) + "\n",
        )
    )
