"""Models of one bench on other pairs."""

from collections.abc import Collection, Mapping, Sequence
from statistics import mean
from typing import Any

from study.markdown import percent, table, uncounted
from study.pairs import held_of
from study.plan import BENCHES, ENCODED, READERS
from study.results import Results


def page(results: Results) -> str:
    """Models of snli22k on other pairs."""
    bench = BENCHES["snli22k"]
    files = {"test": bench.test, **bench.others}
    known = [held_of(bench, file) for file in files.values()]
    classes = [file["classes"].values() if file else () for file in known]
    models = {v.name: results.get((bench.name, v.name), []) for v in (*READERS, *ENCODED)}
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
            "# On pairs from other corpora",
            "Models trained on snli22k, tested on other pairs: accuracy in per cent, mean ± standard deviation over "
            "the seeds. Compare each with the row of the largest class. MoNLI has no contradictions and Breaking NLI "
            "few neutral pairs; predicting a class that a file does not have counts as wrong. Pairs of FraCaS without "
            "an answer are left out. Only SNLI's and SICK's pairs have part-of-speech tags (from an automatic "
            "tagger), which CAFE and the gated CNN with tags are trained to read. Pairs of Breaking NLI differ in one "
            "word; if it has no vector, it shares a random one with others.",
            "Breaking NLI (Glockner et al. 2018) replaces one word of an SNLI premise. The revised pairs (Kaushik et "
            "al. 2020) are SNLI's with the premise or the hypothesis edited by hand so that the label changes. MoNLI "
            "(Geiger et al. 2020) replaces a word by a more general or a more specific one; its negative pairs do so "
            "under a negation. FraCaS (Cooper et al. 1996) has textbook problems of semantics.",
            "The encoder of the last rows [was trained](models.md) on SNLI and MultiNLI. Standard errors reflect the "
            f"sampling of pairs only, not seeds.{below(trained, dict(zip(files, classes, strict=True)))}",
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
    return f" No model beats the largest class on: {'; '.join(lost)}." if lost else ""
