"""What the parts of a page of speeds hold: whose figures, under which goals, from which process."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
import torch
from benchmarks import speed
from benchmarks.measure import Comparison, Timing
from benchmarks.models import Speed

ONE = Timing.of([1.0])


def whole(part: Any) -> dict[str, Any]:
    return {name: value for found in part for name, value in found.items()}


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_goals_are_those_of_a_cpu(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = SimpleNamespace(name="layer", rival="rival", goal=0.5, shapes=((64, 14, 3),))
    compared = Comparison({"ours": ONE}, {"rival": ONE}, 1)
    monkeypatch.setattr(speed.attention, "run", lambda *_: [(2, n, compared) for n in (16, 17, 2048)])
    monkeypatch.setattr(speed, "peaks", lambda *_: [])
    monkeypatch.setattr(speed, "kept_memory", dict)
    monkeypatch.setattr(speed.layers, "run", lambda *_: [(case, compared)])
    monkeypatch.setattr(speed.layers, "spent", lambda *_: [])
    monkeypatch.setattr(speed.layers, "vocabulary_table", lambda *_: ONE)
    attention = whole(speed.measure_attention(where, torch.float32))
    layers = whole(speed.measure_layers(where, torch.float32))
    wanted = speed.attention.GOALS
    assert [row["length"] for row in attention["attention"]] == [16, 17, 2048]
    goals = [row["goal"] for row in attention["attention"] + layers["layers"]]
    assert goals == ([wanted[16], None, wanted[2048], 0.5] if where == "cpu" else [None] * 4)
    assert ("kept_memory" in attention) == (where == "cpu")


def test_a_row_of_padded_batches_says_what_was_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    case, compared = SimpleNamespace(name="layer"), Comparison({"ours": ONE}, {"rival": ONE}, 1)
    monkeypatch.setattr(speed.padded, "run", lambda *_: [(case, 64, 16, "inference", compared)])
    (row,) = whole(speed.measure_padded("cpu", torch.float32))["padded"]
    assert (row["layer"], row["batch"], row["length"], row["phase"]) == ("layer", 64, 16, "inference")
    assert row["ratios"]["rival"]["median"] == 1.0


def test_the_share_of_the_rate_is_that_of_a_training_step(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Speed("model", 64, (14, 8), Timing.of([4.0]), Timing.of([1.0]), 200.0, {})
    monkeypatch.setattr(speed.models, "product_rate", lambda device: 100.0)
    monkeypatch.setattr(speed.models, "run", lambda device: [found])
    (row,) = whole(speed.measure_models("cpu", torch.float32))["models"]
    assert row["share"] == 0.5, "200 in 4 seconds, of 100 in one"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Sequence[str], Mapping[str, str]]]:
    """The processes that would be started; each prints its number."""
    kept: list[tuple[Sequence[str], Mapping[str, str]]] = []

    def run(command: Sequence[str], env: Mapping[str, str] | None = None, **_: object) -> Any:
        kept.append((command, env or {}))
        return SimpleNamespace(stdout=str(len(kept)))

    monkeypatch.setattr(subprocess, "run", run)
    return kept


def test_each_peak_is_of_a_process_of_its_own_with_its_dtype(started: list[tuple[Sequence[str], Any]]) -> None:
    rows = speed.peaks("ours", "cpu", torch.bfloat16)
    assert [(row["name"], row["length"]) for row in rows] == [("ours", n) for n in speed.MEMORY_LENGTHS]
    assert [row["bytes"] for row in rows] == list(range(1, 1 + len(rows)))
    asked = [tuple(command[3:]) for command, _ in started]
    assert asked == [("--dtype", "bfloat16", "--memory", "ours", str(n)) for n in speed.MEMORY_LENGTHS]


@pytest.mark.parametrize(("name", "longest"), [("ours", 65536), (speed.PLAIN, 16384), ("textbook", 4096)])
def test_rivals_are_spared_the_lengths_that_they_cannot_hold(
    name: str, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed.attention, "memory", lambda *_: 1.0)
    found = [row["length"] for row in speed.peaks(name, "cuda", torch.float32)]
    assert found == [length for length in speed.MEMORY_LENGTHS if length <= longest]


def test_memory_is_kept_in_the_process_that_is_told_to(
    started: list[tuple[Sequence[str], Mapping[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    found = speed.kept_memory()
    assert found["tunables"] == speed.KEEP_MEMORY
    for how, tunables in (("as_it_is", None), ("kept", speed.KEEP_MEMORY)):
        command, environment = started[found[how] - 1]
        assert command[-1] == "--growth" and environment.get("GLIBC_TUNABLES") == tunables


def test_a_process_prints_what_it_measured(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed.attention, "memory", lambda *given: given)
    monkeypatch.setattr(speed.attention, "growth", lambda: {"8": 1.5})
    monkeypatch.setattr("sys.argv", ["speed", "--dtype", "bfloat16", "--memory", "textbook", "7"])
    speed.main()
    assert capsys.readouterr().out == f"{('textbook', 7, 'cpu', torch.bfloat16)}\n"
    monkeypatch.setattr("sys.argv", ["speed", "--growth"])
    speed.main()
    assert json.loads(capsys.readouterr().out) == {"8": 1.5}


def test_a_rival_that_is_not_installed_is_told_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: object) -> NoReturn:
        raise AssertionError("measured")

    monkeypatch.setattr(speed, "PARTS", dict.fromkeys(speed.PARTS, measured))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("sys.argv", ["speed", "--parts", "padded", "layers"])
    with pytest.raises(SystemExit):
        speed.main()
    told = capsys.readouterr().err
    assert "layers are compared with torchfm, too: pip install -c constraints.txt -e '.[dev,bench]'" in told
