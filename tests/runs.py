"""Small corpora and runs of the example scripts, for the tests of training and of the command line."""

import os
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch
from reliability import launched

import forks
import launching
from nli_common.generated import generated_pairs

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "examples" / "decomposable_attention.py"


def write_corpora(folder: Path, train: int = 160) -> list[str]:
    """Three .tsv files of the generated corpus, and the options that name them."""
    options = ["--cache", str(folder / "cache")]
    for split, count in (("train", train), ("dev", 60), ("test", 60)):
        path = folder / f"{split}.tsv"
        rows = ["gold_label\tsentence1\tsentence2\tpos1\tpos2\tphenomenon"]
        for pair in generated_pairs(count, split):
            sides = (pair.premise, pair.hypothesis, pair.premise_pos or [], pair.hypothesis_pos or [])
            rows.append("\t".join([pair.label, *map(" ".join, sides), pair.phenomenon]))
        path.write_text("\n".join(rows) + "\n")
        options += [f"--{split}", str(path)]
    return options


def environment(device: str = "cpu") -> dict[str, str]:
    """One thread, so that a busy machine adds no noise to the order of sums."""
    use_cpu = "true" if device == "cpu" else "false"
    return {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": use_cpu, "COLUMNS": "200"}


def run_script(
    *arguments: str | Path, script: Path = SCRIPT, columns: int = 200, device: str = "cpu"
) -> "subprocess.CompletedProcess[str]":
    argv, env = [str(script), *map(str, arguments)], environment(device) | {"COLUMNS": str(columns)}
    if torch.cuda.is_available():  # not to be used in a fork of a process whose imports have looked for it
        command = [sys.executable, *argv]
        return subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=300)
    return forks.run(argv, env, seconds=300)


def launcher(processes: int) -> launched.Launcher:
    """One process, or two that are launched; as forks, where they can be."""
    if torch.cuda.is_available():
        return launched.by_command(processes)
    return launching.Forks(processes)


def start_script(arguments: Sequence[str | Path]) -> BaseProcess:
    """The script on the CPU, which says nothing and runs on."""
    return forks.start([str(SCRIPT), *map(str, arguments)], environment())
