"""The pictures of the study's pages: each point is where its run's figures put it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from study import plots
from study.plots import plot_alignments, plot_curves, plot_models

PUBLIC = "public implementation, mean"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    figures: list[Figure] = []
    monkeypatch.setattr(plots, "save_figure", lambda figure, path: figures.append(figure))
    return figures


def points(axes: Axes) -> dict[str, list[tuple[float, float]]]:
    """Of every line that has a name."""
    lines = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    return {str(line.get_label()): list(zip(*map(np.ravel, line.get_data()), strict=True)) for line in lines}


def test_a_models_row_has_its_runs_and_the_public_implementations(drawn: list[Figure]) -> None:
    def run(test: float) -> dict[str, Any]:
        return {"accuracy": {"test": test}}

    results = {
        ("snli22k", "DA"): [run(0.5), run(0.75)],
        ("snli22k", "ESIM"): [run(0.8125)],
        ("snli22k", "attention"): [run(0.6875)],
        ("sick", "DA"): [run(0.25)],
        ("sick", "stacked alignment"): [run(0.875)],
        ("sick", "DA, averaged"): [run(0.375)],
        ("sick", "stacked alignment, averaged"): [run(0.625)],
        ("sick", "frozen encoder, pooled"): [run(0.9375)],
        ("sick", "GT, Zipf"): [run(0.125)],
    }
    plot_models(results, Path("models.png"))
    panels = {axes.get_title(): axes for axes in drawn[0].axes}
    first = panels["snli22k"]
    names = [text.get_text() for text in first.get_yticklabels()]
    rows = dict(zip(names, first.get_yticks(), strict=True))
    assert rows["ESIM"] > rows["RE2"] > rows["attention"] > rows["DA"] > rows["CAFE"], "ours, where there are both"
    assert "GT, Zipf" not in rows
    shown = {bench: points(axes) for bench, axes in panels.items()}
    public = {"snli22k": shown["snli22k"].pop(PUBLIC), "sick": shown["sick"].pop(PUBLIC)}
    assert public["snli22k"] == [(77.2, rows["RE2"]), (72.8, rows["DA"])]
    assert set(public["sick"]) == {
        (81.3, rows["RE2"]),
        (58.7, rows["hypothesis only"]),
        (74.0, rows["DA"]),
        (79.4, rows["ESIM"]),
    }
    own, encoded = "a model of no paper", "on a frozen encoder"
    averaged = "a paper's model, weights averaged"
    assert shown == {
        "snli22k": {
            "a paper's model": [
                (50, rows["DA"]),
                (75, rows["DA"]),
                (68.75, rows["attention"]),
                (81.25, rows["ESIM"]),
            ],
            averaged: [],
            own: [],
            f"{own}, weights averaged": [],
            encoded: [],
        },
        "sick": {
            "a paper's model": [(25, rows["DA"])],
            averaged: [(37.5, rows["DA, averaged"])],
            own: [(87.5, rows["stacked alignment"])],
            f"{own}, weights averaged": [(62.5, rows["stacked alignment, averaged"])],
            encoded: [(93.75, rows["frozen encoder, pooled"])],
        },
    }
    assert [axes.get_xlabel() for axes in drawn[0].axes] == ["", "test accuracy, %"]


def test_a_curve_is_the_dev_accuracy_of_seed_0_from_the_first_epoch_on(drawn: list[Figure]) -> None:
    results: dict[tuple[str, str], list[dict[str, Any]]] = {
        ("sick", "DA"): [{"seed": 1, "dev": [0.1, 0.2]}, {"seed": 0, "dev": [0.5, 0.625, 0.75]}],
        ("sick", "ESIM"): [{"seed": 1, "dev": [0.3]}],
        ("snli10k", "CAFE"): [{"seed": 0, "dev": [0.4]}],
    }
    plot_curves("sick", results, Path("curves.png"))
    (axes,) = drawn[0].axes
    assert points(axes) == {"DA": [(1, 50), (2, 62.5), (3, 75)]}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("epoch", "dev accuracy, %")
    assert axes.get_title() == "sick, seed 0"


def test_an_alignment_is_drawn_with_what_it_finds_across_and_its_accuracy_upwards(drawn: list[Figure]) -> None:
    def run(found: float, even: float, test: float) -> dict[str, Any]:
        return {"same_words": {"found": found, "even": even}, "accuracy": {"test": test}}

    results = {
        ("snli22k", "ESIM"): [run(0.75, 0.125, 0.5)],
        ("sick", "DA"): [run(0.25, 0.0625, 0.5), run(0.5, 0.0625, 0.75)],
        ("sick", "LSTM"): [{"same_words": None, "accuracy": {"test": 0.5}}],
        ("sick", "GT, Zipf"): [run(0.375, 0.0625, 0.625)],
    }
    plot_alignments(results, Path("alignments.png"))
    panels = {axes.get_title(): axes for axes in drawn[0].axes}
    assert {bench: points(axes) for bench, axes in panels.items()} == {
        "snli22k": {"ESIM": [(75, 50)], "every word alike": [(12.5, 0), (12.5, 1)]},
        "sick": {
            "DA": [(25, 50), (50, 75)],
            "ablations, averages of weights": [(37.5, 62.5)],
            "every word alike": [(6.25, 0), (6.25, 1)],
        },
    }
    labels = {(axes.get_xlabel(), axes.get_ylabel()) for axes in panels.values()}
    assert labels == {("weight on the same word, %", "test accuracy, %")}
    assert {text.get_text() for text in drawn[0].legends[0].get_texts()} == {
        "DA",
        "ESIM",
        "ablations, averages of weights",
        "every word alike",
    }


def test_the_legend_of_an_odd_number_of_benches_takes_the_place_that_is_left(drawn: list[Figure]) -> None:
    run = {"same_words": {"found": 0.5, "even": 0.1}, "accuracy": {"test": 0.5}}
    benches = ("snli22k", "snli10k", "sick")
    plot_alignments({(bench, "DA"): [run] for bench in benches}, Path("alignments.png"))
    *panels, last = drawn[0].axes
    assert {axes.get_title() for axes in panels} == set(benches) and all(axes.get_legend() is None for axes in panels)
    assert not last.axison and not drawn[0].legends
    assert [text.get_text() for text in last.get_legend().get_texts()] == ["DA", "every word alike"]
