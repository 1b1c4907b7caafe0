"""A run that is killed, stopped, starved of space or damaged: nothing is lost, and one line says what to do."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from reliability import faults
from reliability.faults import CASES, HERE, Attack, Ended, TableAttack, Tally, numbers, page, whole, workplace

from nli_common.tensors import save_tensors

KILLED = -signal.SIGKILL


@pytest.fixture(scope="module")
def attack() -> Iterator[Attack]:
    with workplace() as folder:
        yield Attack(CASES["Decomposable Attention, averaged weights"], Path(folder))


def held(tally: Tally, strikes: int) -> None:
    assert tally.strikes >= strikes
    assert not tally.failures


def test_a_run_killed_within_its_writes_ends_in_the_same_numbers(attack: Attack) -> None:
    held(attack.kills_in_writes(every=13), 5)


def test_a_run_killed_at_random_ends_in_the_same_numbers(attack: Attack) -> None:
    held(attack.kills_at_random(4), 4)


def test_a_run_in_a_process_of_its_own_has_the_same_numbers(attack: Attack) -> None:
    held(attack.plain_command(), 1)


def test_a_full_disk_costs_nothing_but_the_steps_since_the_last_checkpoint(attack: Attack) -> None:
    held(attack.full_disk(every=5), 3)


def test_a_damaged_checkpoint_is_told_and_the_one_before_it_stands_in(attack: Attack) -> None:
    held(attack.damaged_checkpoints(), 9)


def test_files_damaged_beyond_repair_are_named_with_the_way_on(attack: Attack) -> None:
    held(attack.damaged_beyond_repair(), 4)


def test_signals_end_a_run_with_one_line(attack: Attack) -> None:
    held(attack.signals(2), 2)


def test_numbers_that_are_none_get_into_no_file(attack: Attack) -> None:
    held(attack.no_number(), 2)


def test_a_second_process_is_refused_and_the_first_undisturbed(attack: Attack) -> None:
    held(attack.second_process(), 1)


def test_a_folder_that_cannot_be_written_to_is_named(attack: Attack) -> None:
    held(attack.read_only(), 3)


def test_a_table_killed_or_failing_goes_on_to_the_same_numbers() -> None:
    with workplace() as folder:
        table = TableAttack(Path(folder))
        held(table.kills(every=17), 2)
        held(table.failures(), 2)


def test_the_page_says_what_was_found() -> None:
    found = json.loads((HERE / "faults.json").read_text())
    row = found["attacks"][0]
    assert f"| {row['strikes']} of {row['strikes']} |" in page(found)
    row["failures"], row["broken"] = ["instant 3: not same", "instant 3: not whole", "instant 7: not same"], 2
    assert f"| {row['strikes'] - 2} of {row['strikes']} |" in page(found)
    assert "instant 7: not same" in page(found)


def test_every_strike_that_broke_something_counts_once() -> None:
    """Whatever it is called: random kills have one name."""
    tally = Tally()
    for intact, same in ((True, True), (False, True), (False, False), (True, True)):
        tally.strike("random kill", whole=intact, same=same)
    assert (tally.strikes, tally.broken, len(tally.failures)) == (4, 2, 3)


def leave_a_run(folder: Path, accuracy: float = 0.5) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    metrics = {"accuracy": accuracy, "pairs_per_second": 1, "inference_pairs_per_second": 1}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    for name in ("model", "lexicon"):
        save_tensors(folder / f"{name}.safetensors", {"x": torch.ones(3)})


class Told(Attack):
    """An attack on a command that ends as it is told, with right numbers where nothing else is said."""

    def __init__(self, work: Path, ends: list[int | str]) -> None:
        self.case, self.work, self.seconds, self.ends = CASES["LSTM and attention"], work, 0.0, iter(ends)
        leave_a_run(work / "whole")
        self.numbers = numbers(work / "whole")

    def start(self, output: Path, *_: Any, **__: Any) -> Any:
        end = next(self.ends, 0)
        leave_a_run(output, 0.25 if end == "wrong" else 0.5)
        if end == "torn":
            (output / "metrics.json").write_text("{")
        if end == "gone":
            (output / "metrics.json").unlink()
        code = {"wrong": 0, "gone": 0, "torn": KILLED}.get(end, end)
        process = SimpleNamespace(is_alive=lambda: False)
        return SimpleNamespace(process=process, send=lambda number: None, ended=lambda: Ended(code, "", ""))


@pytest.mark.parametrize(
    ("ends", "broken", "failures"),
    [
        ([KILLED, KILLED, 0, KILLED, KILLED], 0, 0),
        ([KILLED, 0, KILLED, KILLED, 2, KILLED], 2, 1),  # a refused resumption
        ([KILLED, KILLED, "wrong", KILLED, KILLED], 2, 1),
        ([KILLED, KILLED, "gone", KILLED, KILLED], 2, 1),
        ([KILLED, 0, KILLED, KILLED, KILLED, "wrong"], 3, 1),  # undisturbed, at the end
        ([KILLED, "torn", KILLED, 2, KILLED], 3, 2),
        ([0, 1, *4 * [KILLED]], 0, 1),  # that no kill came before
        (1000 * [2], 1, 202),  # that no kill ends
    ],
)
def test_a_random_kill_is_survived_if_its_run_ends_in_the_same_numbers(
    ends: list[int | str], broken: int, failures: int, tmp_path: Path
) -> None:
    tally = Told(tmp_path, ends).kills_at_random(4)
    assert tally.strikes == (4 if KILLED in ends else 0)
    assert (tally.broken, len(tally.failures)) == (broken, failures)


def test_signals_that_end_no_run_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reliability.faults._wait_for", lambda output, name: None)
    tally = Told(tmp_path, 1000 * [0]).signals(2)
    assert (tally.broken, tally.failures) == (1, ["only 0 of 2 signals ended a run"])


@pytest.mark.parametrize("name", ["metrics.json", "model.safetensors", "figures/alignment.png"])
def test_a_damaged_file_is_told_and_ends_no_attack(name: str, tmp_path: Path) -> None:
    leave_a_run(tmp_path)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "alignment.png").write_bytes(b"\x89PNG...IEND\xaeB`\x82")
    (tmp_path / ".hidden.json").write_text("{")
    assert whole(tmp_path)
    for damage in (lambda data: data[:-2], lambda data: b"", lambda data: b"\xff" + data[1:-1] + b"\xff"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(damage(content))
        assert not whole(tmp_path)
        (tmp_path / name).write_bytes(content)


def test_a_table_that_ends_in_other_numbers_is_a_strike_that_broke_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ToldTable(TableAttack):
        def __init__(self) -> None:
            self.work, self.numbers = tmp_path, {"table": "another"}

        def start(self, output: Path, fault: object = None, lr: str = "0.01") -> Any:
            said = "row 'Our approach (vanilla)', seed 0: the loss became nan; try a lower --lr\n"
            done = Ended(2, "", said) if lr == "1e30" else Ended(0, "", "")
            return SimpleNamespace(send=lambda number: None, ended=lambda: done)

    monkeypatch.setattr(faults, "_wait_for", lambda folder, pattern: None)
    tally = ToldTable().failures()
    assert (tally.strikes, tally.broken) == (2, 2)
    assert "failing row: not same" in tally.failures


def test_every_attack_held() -> None:
    found = json.loads((HERE / "faults.json").read_text())
    assert sum(row["strikes"] or 0 for row in found["attacks"]) > 150
    assert not [failure for row in found["attacks"] for failure in row["failures"]]
