"""Every option of the command line arrives where it belongs."""

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

from decomposable_attention import SCRIPT, DecomposableAttentionConfig
from nli_common import commands
from nli_common.inputs import Data
from nli_common.runs import Run

INPUTS = {
    "--train a --dev b --test c --vectors v --unit-vectors --unit-unknown --cache k": Data(
        *map(Path, "abcv"), unit_vectors=True, unit_unknown=True, cache=Path("k")
    ),
    "--vector-size 7 --pairs 500": Data(vector_size=7, pairs=500),
}
both = pytest.mark.parametrize(("inputs", "data"), INPUTS.items(), ids=["files", "generated"])


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[tuple, dict]]:
    """What each command was given."""
    given: dict[str, tuple[tuple, dict]] = {}
    for name in ("train_run", "evaluate_runs", "predict_pair", "predict_file", "explain_pair", "run_table"):
        monkeypatch.setattr(commands, name, lambda *args, name=name, **named: given.update({name: (args, named)}))
    monkeypatch.setattr(commands.signal, "signal", lambda *_: None)
    return given


def command(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["decomposable_attention.py", *words.split()])
    commands.main(SCRIPT)


@both
def test_a_table_is_given_every_option(
    inputs: str, data: Data, called: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    others = "--also d e --categories f g --seeds 5 --options lr=1 epochs=2 --output o"
    command(monkeypatch, f"table 1 {inputs} {others}")
    assert called == {
        "run_table": (
            (SCRIPT, "1", data),
            {
                "also": (Path("d"), Path("e")),
                "categories": (Path("f"), Path("g")),
                "seeds": 5,
                "options": ("lr=1", "epochs=2"),
                "output": Path("o"),
            },
        )
    }


@both
def test_a_training_is_given_every_option(
    inputs: str, data: Data, called: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    others = "--hidden-size 9 --lr 0.5 --batch-size 3 --seed 5 --output o --checkpoint-seconds 8"
    command(monkeypatch, f"train {inputs} {others}")
    ((script, config, recipe, given, seed, run, seconds), named) = called["train_run"]
    assert (script, config, given, named) == (SCRIPT, DecomposableAttentionConfig(hidden_size=9), data, {})
    assert recipe == dataclasses.replace(SCRIPT.recipe if data.train else SCRIPT.quick, lr=0.5, batch_size=3)
    assert (seed, run.folder, seconds) == (5, Path("o"), 8)


def test_an_evaluation_is_given_every_option(called: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    command(monkeypatch, "evaluate --run r s --test c --vectors v --categories f --cache k --output o")
    ((script, runs, *paths), named) = called["evaluate_runs"]
    assert (script, [run.folder for run in runs], named) == (SCRIPT, [Path("r"), Path("s")], {})
    assert paths == [Path(name) for name in "cvfko"]


@pytest.mark.parametrize(
    ("words", "name", "given"),
    [
        ("predict --premise a --hypothesis b --figure f", "predict_pair", ["a", "b", Path("f")]),
        ("predict --pairs p --vectors v --output o", "predict_file", [Path("p"), Path("v"), Path("o")]),
        ("predict --pairs p", "predict_file", [Path("p"), None, None]),
        ("explain --premise a --hypothesis b --output o", "explain_pair", ["a", "b", Path("o")]),
    ],
    ids=["a pair", "a file of pairs", "pairs to be printed", "a page"],
)
def test_what_is_asked_of_a_run_is_given_every_option(
    words: str, name: str, given: list[Any], called: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    command(monkeypatch, f"{words} --run r")
    ((script, run, *rest), named) = called[name]
    assert isinstance(run, Run) and (script, run.folder, rest, named) == (SCRIPT, Path("r"), given, {})
    assert set(called) == {name}


@pytest.mark.parametrize(
    ("words", "name", "said"),
    [
        ("train", "train_run", "stopped by SIGINT; the same command goes on from its last checkpoint\n"),
        ("table 1", "run_table", "stopped by SIGINT; the same command goes on from its last checkpoint\n"),
        ("predict --run r --pairs p", "predict_file", "stopped by SIGINT\n"),
    ],
)
def test_only_what_trains_goes_on_after_a_stop(
    words: str,
    name: str,
    said: str,
    called: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, name, stopped)
    with pytest.raises(SystemExit, match="130"):
        command(monkeypatch, words)
    assert capsys.readouterr().err == said and not called
