"""Every table of this folder trained again, on the generated corpus.

    python docs/tables/train.py --runs runs/tables --encoder FOLDER

Tables share the runs that they have in common. The same command goes on where it was stopped. ``--only cafe esim``
trains the tables of some scripts; two commands at a time need a folder of runs each.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

TABLES = Path(__file__).parent.resolve()
EXAMPLES = TABLES.parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

from nli_common.corpora import Pair  # noqa: E402 - found by the line above
from nli_common.generated import generated_pairs  # noqa: E402

HARD = ("role reversal", "quantifier")
"""The phenomena that stand in for pairs that were chosen for being hard."""
CATEGORIES = {
    "negation": "NEGATION",
    "antonym": "ANTO",
    "synonym": "PARAPHRASE",
    "number": "QUANTITY/TIME_REASONING",
    "quantifier": "QUANTIFIER",
}
"""The phenomena that stand in for MultiNLI's annotations."""
LONG = 9
"""Words of a long sentence, at least."""
MISMATCHED = ("other-1.jsonl",)
BOTH_HARD = ("hard-1.jsonl", "hard-2.jsonl")
BOTH_OTHERS = ("other-1.jsonl", "other-2.jsonl")
ANNOTATIONS = ("other-1.txt", "other-2.txt")


class Trained(NamedTuple):
    """Some tables of one script, and what their rows are trained with."""

    script: str
    names: tuple[str, ...]
    pairs: int = 8_000
    seeds: int = 2
    also: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


PLAN = (
    Trained("decomposable_attention", ("1", "2")),
    Trained("esim", ("snli", "quora")),
    Trained("cafe", ("snli", "scitail")),
    Trained("cafe", ("multinli",), also=MISMATCHED),
    Trained("cafe", ("linguistic",), also=BOTH_OTHERS, categories=ANNOTATIONS),
    Trained(
        "cafe",
        ("ablations",),
        seeds=1,
        also=MISMATCHED,
        options=(
            "encoder_size=100",
            "lstm_size=100",
            "prediction_size=100",
            "num_factors=20",
            "char_filters=50",
        ),
    ),
    Trained("gaussian_transformer", ("2", "4", "5-snli")),
    Trained("gaussian_transformer", ("3", "5-multinli"), also=MISMATCHED),
    Trained("gaussian_transformer", ("6-snli",), also=BOTH_HARD[:1]),
    Trained("gaussian_transformer", ("6-multinli",), also=BOTH_HARD),
    Trained("gaussian_transformer", ("1",), seeds=1, also=MISMATCHED),
    Trained(
        "gaussian_transformer",
        ("figure-5",),
        4_000,
        1,
        MISMATCHED,
        options=("hidden_size=60",),
    ),
    Trained(
        "gated_cnn",
        ("1",),
        seeds=1,
        also=MISMATCHED,
        options=("hidden_size=100", "char_size=50", "epochs=2"),
    ),
    Trained(
        "gated_cnn",
        ("2",),
        seeds=1,
        options=("hidden_size=100", "char_size=50", "epochs=2"),
    ),
    Trained(
        "lstm_attention",
        ("3-50-6b", "3-300-6b", "3-300-42b", "4", "tags"),
        4_000,
        1,
    ),
    Trained("hypothesis_only", ("models",), seeds=1),
)


def main() -> None:
    """Train what is asked for, and put the tables here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--runs", type=Path, required=True, help="folder of the runs"
    )
    parser.add_argument(
        "--encoder", type=Path, help="folder of the encoder that some rows stand on"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="SCRIPT[/TABLE]",
        help="these scripts' tables alone",
    )
    options = parser.parse_args()
    known = {each.script for each in PLAN}
    known |= {f"{each.script}/{name}" for each in PLAN for name in each.names}
    for name in options.only:
        if name not in known:
            parser.error(
                f"--only {name}: expected one of {', '.join(sorted(known))}"
            )
    if options.encoder is not None and not options.encoder.is_dir():
        parser.error(f"--encoder {options.encoder}: no such folder")
    runs: Path = options.runs.resolve()
    runs.mkdir(parents=True, exist_ok=True)
    write_samples(runs)
    link = runs / "encoder"
    if options.encoder is not None:
        if link.is_symlink() and link.resolve() != options.encoder.resolve():
            parser.error(
                f"--runs {options.runs}: has runs on {link.readlink()}; choose another folder"
            )
        if not link.is_symlink():
            link.symlink_to(options.encoder.resolve())
    for trained in PLAN:
        for name in trained.names:
            if not options.only or {
                trained.script,
                f"{trained.script}/{name}",
            } & set(options.only):
                train(trained, name, runs)


def train(trained: Trained, name: str, runs: Path) -> None:
    """One table, as a user would train it."""
    command = [
        *(sys.executable, str(EXAMPLES / f"{trained.script}.py"), "table", name),
        *(
            "--pairs",
            str(trained.pairs),
            "--seeds",
            str(trained.seeds),
            "--output",
            str(runs),
        ),
        *(["--also", *trained.also] if trained.also else []),
        *(["--categories", *trained.categories] if trained.categories else []),
        *(["--options", *trained.options] if trained.options else []),
    ]
    print(" ".join(command[1:]), flush=True)
    written = [runs / f"{name}.{kind}" for kind in ("json", "md", "png")]
    if (
        written[0].exists()
        and json.loads(written[0].read_text())["script"] != trained.script
    ):
        for path in written:  # another script's table of this name, interrupted
            path.unlink(missing_ok=True)
    subprocess.run(
        command, cwd=runs, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    (TABLES / trained.script).mkdir(exist_ok=True)
    for path in written:
        if path.exists():
            shutil.move(path, TABLES / trained.script / path.name)


def write_samples(folder: Path) -> None:
    """Other samples of the generated corpus, their hard pairs alone, and the categories of their pairs."""
    for seed in (1, 2):
        pairs = [
            pair._replace(pair_id=str(k))
            for k, pair in enumerate(generated_pairs(2_000, "test", seed))
        ]
        write_pairs(pairs, folder / f"other-{seed}.jsonl")
        write_pairs(
            [pair for pair in pairs if pair.phenomenon in HARD],
            folder / f"hard-{seed}.jsonl",
        )
        tagged = ((pair.pair_id, categories(pair)) for pair in pairs)
        lines = (
            f"{number} {' '.join(f'#{tag}' for tag in tags)}\n"
            for number, tags in tagged
            if tags
        )
        (folder / f"other-{seed}.txt").write_text("".join(lines), encoding="utf-8")


def write_pairs(pairs: Sequence[Pair], path: Path) -> None:
    """Pairs as any user's file."""
    with path.open("w", encoding="utf-8") as file:
        for pair in pairs:
            row = {
                "gold_label": pair.label,
                "sentence1": " ".join(pair.premise),
                "sentence2": " ".join(pair.hypothesis),
                "pos1": " ".join(pair.premise_pos or ()),
                "pos2": " ".join(pair.hypothesis_pos or ()),
                "phenomenon": pair.phenomenon,
                "pairID": pair.pair_id,
            }
            file.write(json.dumps(row) + "\n")


def categories(pair: Pair) -> list[str]:
    """What MultiNLI's annotators might have said of a pair."""
    named = [CATEGORIES[pair.phenomenon]] if pair.phenomenon in CATEGORIES else []
    return named + ["LONG_SENTENCE"] * (
        max(len(pair.premise), len(pair.hypothesis)) >= LONG
    )


if __name__ == "__main__":
    main()
