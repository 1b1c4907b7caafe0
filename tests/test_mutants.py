"""Mutants: what lives has a reason, which is about code that is still there."""

import json
from pathlib import Path
from typing import Any

from reliability.mutants import HERE, LIBRARY, mutated, replaced

HELD: dict[str, Any] = json.loads((HERE / "mutants.json").read_text())


def code(path: Path) -> str:
    return " ".join(path.read_text().split())


def test_every_survivor_has_a_reason_and_its_line_still_stands() -> None:
    for row in HELD["survivors"]:
        assert row["kind"] != "unexplained" and row["reason"], row
        assert " ".join(row["was"].split()) in code(LIBRARY / row["module"]), (
            f"{row['was']} is no more: run the mutants again"
        )


def test_of_twenty_mutants_that_mypy_takes_the_tests_notice_nineteen() -> None:
    counts = HELD["modules"].values()
    noticed = sum(row.get(name, 0) for row in counts for name in ("killed", "timeout"))
    assert noticed >= 0.95 * sum(row["mutants"] - row.get("mypy", 0) for row in counts)


def test_nearly_all_branches_are_reached() -> None:
    reached = HELD["coverage"]
    assert reached["covered_branches"] >= 0.98 * reached["num_branches"]


def test_all_but_properties_and_constants_is_mutated() -> None:
    counts = mutated()
    assert counts["inside"] >= 0.9 * (counts["inside"] + counts["outside"])


def test_what_is_found_of_some_modules_replaces_what_was_held_of_them() -> None:
    def facts(command: str, code: str, *modules: str) -> dict[str, Any]:
        survivors = [{"module": module, "was": code} for module in modules]
        return {
            "command": command,
            "code": dict.fromkeys(modules, code),
            "modules": {module: {"mutants": len(code)} for module in modules},
            "survivors": survivors,
        }

    now = replaced(facts("all", "old", "a", "b", "c"), facts("some", "newer", "b"))
    assert now["command"] == "all" and now["code"] == {"a": "old", "b": "newer", "c": "old"}
    assert now["modules"] == {"a": {"mutants": 3}, "b": {"mutants": 5}, "c": {"mutants": 3}}
    assert [(row["module"], row["was"]) for row in now["survivors"]] == [("a", "old"), ("b", "newer"), ("c", "old")]
