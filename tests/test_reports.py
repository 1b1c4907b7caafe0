"""What a run shows: its accuracies, its confusion matrix, and of its first pair what is aligned and propagated."""

import io
import itertools
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from matplotlib.figure import Figure
from rich.console import Console
from torch import Tensor, nn

from nli_common import figures, reports
from nli_common.corpora import Pair
from nli_common.data import Corpus, Sentence
from nli_common.figures import plot_alignment, plot_confusion, plot_lines
from nli_common.generated import generated_corpus
from nli_common.lexicon import Lexicon
from nli_common.metrics import Metrics

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


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that would be written."""
    kept: list[Figure] = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: kept.append(figure))
    return kept


def test_a_confusion_matrix_has_the_shares_of_its_rows(drawn: list[Figure]) -> None:
    plot_confusion([[1, 3], [0, 0]], ["no", "yes"], "title", Path("x.png"))
    axes = drawn[0].axes[0]
    assert axes.images[0].get_array().tolist() == [[0.25, 0.75], [0, 0]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted", "gold")
    texts = {text.get_position(): text.get_text() for text in axes.texts}
    assert texts[0, 0] == "1\n25%" and texts[1, 0] == "3\n75%"
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        assert [label.get_text() for label in labels] == ["no", "yes"]


def test_an_alignments_rows_are_drawn_as_rows(drawn: list[Figure]) -> None:
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]])
    plot_alignment(weights, ["a", "b"], ["x", "y", "z"], "title", Path("x.png"))
    axes = drawn[0].axes[0]
    assert axes.images[0].get_array().tolist() == weights.tolist()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y", "z"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


@pytest.mark.parametrize(("rows", "columns"), [(41, 3), (3, 41), (40, 40)])
def test_a_figure_says_that_it_has_not_all_words(rows: int, columns: int, drawn: list[Figure]) -> None:
    plot_alignment(torch.ones(rows, columns), rows * ["a"], columns * ["b"], "title", Path("x.png"))
    plot_lines({"w": rows * [0.5]}, rows * ["a"], "title", Path("x.png"))
    titles = [figure.axes[0].get_title() for figure in drawn]
    cut = max(rows, columns) > 40, rows > 40
    ends = ("title, the first 40 of each", "title, the first 40 words")
    assert titles == [end if some else "title" for some, end in zip(cut, ends, strict=True)]


def test_a_character_that_the_font_lacks_is_drawn_without_a_word(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_alignment(torch.ones(1, 1), ["東京"], ["b"], "title", tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 1000


def test_lines_of_one_group_have_one_stroke_and_of_one_kind_one_colour(drawn: list[Figure]) -> None:
    names = [f"{group}_{kind}" for group in ("inter", "intra") for kind in ("concat", "subtract", "multiply")]
    plot_lines({name: [float(i), -1.0] for i, name in enumerate(names)}, ["a", "b"], "title", Path("x.png"))
    lines = {line.get_label(): line for line in drawn[0].axes[0].lines}
    assert [list(lines[name].get_ydata()) for name in names] == [[i, -1] for i in range(len(names))]
    for one, other in itertools.combinations(names, 2):
        same_group, same_kind = (one.split("_")[k] == other.split("_")[k] for k in (0, 1))
        assert (lines[one].get_marker() == lines[other].get_marker()) == same_group
        assert (lines[one].get_color() == lines[other].get_color()) == same_kind


def test_accuracies_are_printed_in_per_cent() -> None:
    told = io.StringIO()
    metrics = Metrics(
        pairs=1234, accuracy=0.5, per_class={"neutral": 0.25}, per_phenomenon={"negation": 0.125}, confusion=[]
    )
    reports.print_metrics(Console(file=told, width=80), metrics, "dev")
    assert told.getvalue().split(maxsplit=2)[:2] == ["dev", "accuracy"]
    lines = [line.rsplit(None, 1) for line in told.getvalue().splitlines()]
    assert {name.strip(): figure for name, figure in lines[1:]} == {
        "all 1,234 pairs": "50.00",
        "neutral": "25.00",
        "negation": "12.50",
    }
