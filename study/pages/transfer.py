"""Models of one bench on other pairs."""

from collections.abc import Collection, Mapping, Sequence
from statistics import mean
from typing import Any

from study.markdown import percent, table, uncounted
from study.pairs import held_of
from study.plan import BENCHES, ENCODED, HALVED, MODELS
from study.results import Results


def page(results: Results) -> str:
    """Models of snli22k on other pairs."""
    bench = BENCHES["snli22k"]
    files = {"test": bench.test, **bench.others}
    known = [held_of(bench, file) for file in files.values()]
    classes = [file["classes"].values() if file else () for file in known]
    models = {v.name: results.get((bench.name, v.name), []) for v in (*MODELS, *HALVED, *ENCODED)}
    trained = {name: found for name, found in models.items() if found}
    lines = [
        ["pairs", *(f"{sum(pairs):,}" if pairs else "–" for pairs in classes)],
        ["with a premise of a training pair", *(f"{file['known_premises']:,}" if file else "–" for file in known)],
        ["largest class", *(percent(max(pairs) / sum(pairs)) if pairs else "–" for pairs in classes)],
        ["standard error of 50.0", *(percent(0.5 * sum(pairs) ** -0.5) if pairs else "–" for pairs in classes)],
        *(
            [f"{name} ({len(found)})", *(uncounted([r["accuracy"][file] for r in found]) for file in files)]
            for name, found in trained.items()
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
            "The models on a frozen encoder [have seen](models.md) SNLI and MultiNLI. Standard errors are those that "
            f"the pairs alone leave.{below(trained, dict(zip(files, classes, strict=True)))}",
            table(["model (seeds)", *files], lines) + "\n",
        )
    )


def below(trained: Mapping[str, Sequence[Mapping[str, Any]]], classes: Mapping[str, Collection[int]]) -> str:
    """On which files the largest class alone is worth as much as the best model."""
    if not trained:
        return ""
    largest = {file: max(pairs) / sum(pairs) for file, pairs in classes.items() if pairs}
    best = {file: max(mean(r["accuracy"][file] for r in found) for found in trained.values()) for file in largest}
    lost = [file for file, share in largest.items() if best[file] <= share]
    return f" No model is above the largest class on: {', '.join(lost)}." if lost else ""
