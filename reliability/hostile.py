"""Hostile files: every reader is given mutated, spliced and lying files, bombs, pickles and links.

    python -m reliability.hostile

Writes ``reliability/hostile.json``. A reader has two outcomes, a right result or an ``InputError`` of one line that
names the file; memory stays below a bound whatever a file declares, no pickle is loaded, and nothing is written outside
the folder that was asked for.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from nli_common.files import write_text
from reliability.bombs import MEMORY_BOUND, bombs, explode_apart
from reliability.fuzzing import fuzz
from reliability.hostile_commands import command_lines
from reliability.hostile_readers import readers
from reliability.intrusions import escapes, pickles

RESULT = Path(__file__).with_suffix(".json")
FULL_SIZE = 120_000
LINES = 300


def main() -> None:
    """Run the whole attack and write its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=FULL_SIZE, help="mutated files for the readers")
    parser.add_argument("--lines", type=int, default=LINES, help="mutated files and folders for the command line")
    parser.add_argument(
        "--only", choices=names(), help="attack this reader again, with the inputs that it has among all of them"
    )
    asked = parser.parse_args()
    if asked.only:
        held = json.loads(RESULT.read_text(encoding="utf-8"))
        for name, here in conditions(asked.inputs).items():
            if held[name] != here:
                parser.error(f"--only: the others were attacked with {name} {held[name]}, here it is {here}")
        held["readers"] |= fuzz(readers, asked.inputs, only=asked.only)
    else:
        held = attack(asked.inputs, asked.lines)
    text = json.dumps(held, indent=1) + "\n"
    write_text(RESULT, text)
    print(page(held))


def names() -> list[str]:
    """Of all readers."""
    with tempfile.TemporaryDirectory() as folder:
        return list(readers(Path(folder)))


def conditions(inputs: int) -> dict[str, Any]:
    """What the figures of all readers have in common."""
    return {"torch": torch.__version__, "inputs": inputs}


def attack(inputs: int, lines: int) -> dict[str, Any]:
    """Everything, with so many mutated files for the readers and for the command line."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pickles").mkdir()
        return {
            "command": "python -m reliability.hostile",
            **conditions(inputs),
            "memory_bound": MEMORY_BOUND,
            "bombs": [found for bomb in bombs(folder) for found in explode_apart(bomb)],
            "pickles": pickles(folder / "pickles"),
            "escapes": escapes(folder),
            "command_lines": command_lines(lines),
            "readers": fuzz(readers, inputs),
        }


def page(held: dict[str, Any]) -> str:
    """The figures as a section of Markdown."""
    rows = [[name, *_counts(tally)] for name, tally in held["readers"].items()]
    sums = {key: sum(tally[key] for tally in held["readers"].values()) for key in ("inputs", "read", "refused")}
    lines = held["command_lines"]
    exits = " and ".join(f"{code} for {count:,}" for code, count in lines["codes"].items())
    exploded = [
        [bomb["bomb"], bomb["outcome"], f"{bomb['grown'] / 2**20:.0f}", f"{bomb['seconds']:.1f}"]
        for bomb in held["bombs"]
    ]
    parts = [
        "## Hostile files",
        "Valid files are cut off, spliced, re-encoded, and changed bit by bit or field by field, from a fixed seed. "
        "Changes inside archives, JSON, `.npy` headers and safetensors are packed again, so that the "
        "checksums are valid. A file is read, or refused by an `InputError` of one line that names it; what was read "
        f"is used, and must be right. torch {held['torch']}; `{held['command']}`.",
        _table(["reader", "inputs", "read", "refused", "anything else"], [*rows, ["all", *_counts(sums)]]),
        "A damaged cache is not read: it is made again from the file that it was made from. (One whose words were "
        "changed and whose checksum was made to fit them cannot be told from a good one.)",
        f"The command line was given {lines['inputs']:,} such run folders and files to test on. Its exit code "
        f"was {exits}: 0 with a result, 2 with one line that says why there is none. "
        f"It ended otherwise {len(lines['failures'])} times.",
        "### Bombs",
        f"Each was tried in its own process. The third column is the largest growth of that process's resident memory, "
        f"of which {held['memory_bound'] >> 20} MiB were allowed, including what it imported for the purpose. A "
        "compressed file may expand to 200 times its size, or to 16 MiB; a line may have 1 MiB; a model may not be "
        "larger than the file of its weights.",
        _table(["file", "outcome", "grown by, MiB", "s"], exploded),
        "### Pickles",
        "Each would create a folder if it were loaded.",
        _table(
            ["pickle", "outcome", "loaded"], [[p["pickle"], p["outcome"], _yes(p["loaded"])] for p in held["pickles"]]
        ),
        "### Paths",
        "Names and links that lead out of the folder that is written to.",
        _table(
            ["attempt", "outcome", "all outside as it was"],
            [[row["attempt"], row["outcome"], _yes(row["kept"])] for row in held["escapes"]],
        ),
    ]
    failures = [f"- {name}: {what}" for name, tally in held["readers"].items() for what in tally["failures"]]
    failures += [f"- command line: {what}" for what in lines["failures"]]
    return "\n\n".join([*parts, *failures]) + "\n"


def _counts(tally: dict[str, int]) -> list[str]:
    other = tally["inputs"] - tally["read"] - tally["refused"]
    return [f"{count:,}" for count in (tally["inputs"], tally["read"], tally["refused"], other)]


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _table(head: list[str], rows: list[list[str]]) -> str:
    rule = ["---"] + ["---:" if cell[:1].isdigit() else "---" for cell in rows[0][1:]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


if __name__ == "__main__":
    main()
