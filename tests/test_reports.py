"""What a run draws of its first pair: the alignment, and what is propagated of each word."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from nli_common import reports
from nli_common.corpora import Pair
from nli_common.data import Corpus, Sentence
from nli_common.figures import plot_lines
from nli_common.generated import generated_corpus
from nli_common.lexicon import Lexicon

CORPUS = generated_corpus(7, "test")
LEXICON = Lexicon.random(CORPUS.words, 3, tags=CORPUS.tags)


class Features(NamedTuple):
    names: tuple[str, ...]
    premise: Tensor
    hypothesis: Tensor


class Silent(nn.Linear):
    def __init__(self) -> None:
        super().__init__(1, 1)


class Aligning(Silent):
    leading_tokens = ("NULL",)

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        n, m = 1 + premise.tokens.shape[1], 1 + hypothesis.tokens.shape[1]
        return torch.rand(1, n, m), torch.rand(1, m, n)


class Propagating(Silent):
    def propagated_features(self, premise: Sentence, hypothesis: Sentence) -> Features:
        return Features(("one", "two"), *(torch.rand(1, side.tokens.shape[1], 2) for side in (premise, hypothesis)))


@pytest.mark.parametrize(
    ("model", "files"),
    [
        (Silent(), []),
        (Aligning(), ["alignment.png"]),
        (Propagating(), ["features-hypothesis.png", "features-premise.png"]),
    ],
)
def test_each_model_shows_what_it_can(model: nn.Module, files: list[str], tmp_path: Path) -> None:
    reports.plot_first_pair(model, CORPUS, LEXICON, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_each_sentences_words_have_their_own_values(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn: dict[str, tuple[dict[str, list[float]], list[str]]] = {}
    monkeypatch.setattr(
        reports, "plot_lines", lambda series, words, title, path: drawn.update({path.name: (series, words)})
    )

    class Counting(Silent):
        def propagated_features(self, premise: Sentence, hypothesis: Sentence) -> Features:
            def places(side: Sentence) -> Tensor:
                return torch.stack([torch.arange(side.tokens.shape[1]), -side.tokens[0]], dim=-1)[None]

            return Features(("place", "word"), places(premise), places(hypothesis))

    reports.plot_first_pair(Counting(), CORPUS, LEXICON, tmp_path)
    corpus: Corpus = CORPUS
    for name in ("premise", "hypothesis"):
        series, words = drawn[f"features-{name}.png"]
        assert words == corpus.tokens(getattr(corpus, name), 0)
        assert series == {"place": list(range(len(words))), "word": [-i for i in LEXICON.ids(words)]}


def test_lines_of_another_length_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one has 2 values, expected 3: one for each word"):
        plot_lines({"one": [1.0, 2.0]}, ["a", "b", "c"], "", tmp_path / "x.png")


def test_a_drawn_alignment_has_the_premise_in_its_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn: list[tuple[Tensor, list[str], list[str]]] = []
    monkeypatch.setattr(
        reports, "plot_alignment", lambda weights, rows, columns, *_: drawn.append((weights, rows, columns))
    )
    pair = Corpus.from_pairs([Pair(["the", "cat", "sat"], ["a", "cat"], "neutral")], "a pair")
    reports.plot_pair(Aligning(), pair, Lexicon.random(pair.words, 3), tmp_path / "a.png")
    [(weights, rows, columns)] = drawn
    assert (rows, columns) == (["NULL", "the", "cat", "sat"], ["NULL", "a", "cat"]) and weights.shape == (4, 3)
