"""A run that is killed, stopped, starved of space or damaged: nothing is lost, and one line says what to do."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from reliability.faults import CASES, HERE, Attack, TableAttack, Tally, page, workplace


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
    for whole, same in ((True, True), (False, True), (False, False), (True, True)):
        tally.strike("random kill", whole=whole, same=same)
    assert (tally.strikes, tally.broken, len(tally.failures)) == (4, 2, 3)


def test_every_attack_held() -> None:
    found = json.loads((HERE / "faults.json").read_text())
    assert sum(row["strikes"] or 0 for row in found["attacks"]) > 150
    assert not [failure for row in found["attacks"] for failure in row["failures"]]
