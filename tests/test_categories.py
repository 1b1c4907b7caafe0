"""MultiNLI's annotated categories: which pairs have them, and the accuracy within each."""

import json
from pathlib import Path

import pytest
import torch

from nli_common.categories import CATEGORIES, accuracy_by_category, read_categories
from nli_common.errors import InputError
from paper_tables.cafe import TABLES


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    rows = [("1n", "neutral"), ("2e", "-"), ("3c", "contradiction"), ("4e", "entailment")]
    path = tmp_path / "dev.jsonl"
    lines = (
        json.dumps({"pairID": name, "gold_label": label, "sentence1": "a b", "sentence2": "c"}) for name, label in rows
    )
    path.write_text("\n".join(lines))
    return path


def test_places_are_those_of_the_labelled_pairs(pairs: Path, tmp_path: Path) -> None:
    annotations = tmp_path / "matched.txt"
    annotations.write_text(
        "4e\t#MODAL #COREF\n1n #MODAL #QUANTITY/TIME_REASONING #OTHER\n2e #NEGATION\n\n99n #BELIEF\n"
    )
    places = read_categories(annotations, pairs)
    assert places == {"coreference": [2], "modal": [0, 2], "other": [0], "quantity/time": [0]}
    right = torch.tensor([True, False, False])
    assert accuracy_by_category(places, right) == {
        "#coreference": 0.0,
        "#modal": 0.5,
        "#other": 1.0,
        "#quantity/time": 1.0,
    }


def test_a_pair_counts_once_in_each_of_its_categories(pairs: Path, tmp_path: Path) -> None:
    annotations = tmp_path / "matched.txt"
    annotations.write_text("1n #NEGATION #NEGATION\n3c #TENSEDIFF #TENSE\n4e #MODAL\n4e #BELIEF\n")
    places = {"belief": [2], "modal": [2], "negation": [0], "tense difference": [1]}
    assert read_categories(annotations, pairs) == places


@pytest.mark.parametrize("line", ["1n", "1n MODAL", "1n #MODAL coref", "1n #"])
def test_other_lines_are_refused(pairs: Path, tmp_path: Path, line: str) -> None:
    annotations = tmp_path / "matched.txt"
    annotations.write_text(f"4e #MODAL\n{line}\n")
    with pytest.raises(InputError, match=r"matched.txt:2: expected a pair's ID and its #CATEGORIES"):
        read_categories(annotations, pairs)


def test_annotations_of_other_pairs_are_refused(pairs: Path, tmp_path: Path) -> None:
    annotations = tmp_path / "matched.txt"
    annotations.write_text("99n #MODAL\n")
    with pytest.raises(InputError, match="annotates no pair of"):
        read_categories(annotations, pairs)


def test_every_column_of_the_linguistic_table_is_a_category() -> None:
    measures = {f"also {k} #{category}" for category in CATEGORIES.values() for k in (1, 2)}
    assert set(TABLES["linguistic"].measures) == measures and len(CATEGORIES) == 13
