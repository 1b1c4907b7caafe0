"""A script under a launcher, in float64: two processes at half the batch each, and one process with all of it."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import psutil
from safetensors.torch import load_file

from nli_common.generated import generated_pairs
from reliability.transforms import difference

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "reliability" / "in_float64.py"
RECIPE = ("--hidden-size", "20", "--dropout", "0", "--intra-attention", "--optimizer", "adagrad", "--lr", "0.05")
BATCH = 16
SAID = 2000
"""Characters that are shown of the end of what a failed run says."""
SECONDS = 200
"""What a run may take."""


class Started(Protocol):
    """All processes of a script that runs."""

    def poll(self) -> int | None:
        """What they ended with; None as long as they run."""
        ...

    def kill(self) -> None:
        """End all of them, at once."""
        ...


class Launcher(Protocol):
    """What starts the processes of a script."""

    def start(self, argv: list[str], folder: Path) -> Started:
        """The script ``argv[0]`` with its arguments, which writes to files ``stdout*`` and ``stderr*`` in a folder."""
        ...


class _CommandStarted:
    """What a command line started, and all that this started in turn."""

    def __init__(self, command: list[str], folder: Path) -> None:
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, env=environment())

    def poll(self) -> int | None:
        return self.process.poll()

    def kill(self) -> None:
        launcher = psutil.Process(self.process.pid)
        for each in (*launcher.children(recursive=True), launcher):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self.process.wait()


class Command:
    """A launcher that is the beginning of a command line."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def start(self, argv: list[str], folder: Path) -> Started:
        """See ``Launcher``."""
        return _CommandStarted([*self.words, *argv], folder)


def torchrun() -> Launcher:
    """Torch's own launcher, two processes."""
    port = str(free_port())
    return Command(
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
        *("--master-addr", "127.0.0.1", "--master-port", port),
    )


def accelerate(*options: str) -> Launcher:
    """Accelerate's launcher, two processes."""
    port = str(free_port())
    command = (sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch")
    return Command(*command, "--num_processes", "2", "--main_process_port", port, *options)


def by_command(processes: int) -> Launcher:
    """One process as it is, two by torch's launcher."""
    return Command(sys.executable) if processes == 1 else torchrun()


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def write_corpora(folder: Path, train: int) -> list[str]:
    """Files of the generated corpus, and the options that name them."""
    options = ["--cache", str(folder / "cache")]
    for split, count in (("train", train), ("dev", 61), ("test", 67)):
        path = folder / f"{split}.tsv"
        rows = ["gold_label\tsentence1\tsentence2\tphenomenon"]
        for pair in generated_pairs(count, split):
            rows.append("\t".join([pair.label, " ".join(pair.premise), " ".join(pair.hypothesis), pair.phenomenon]))
        path.write_text("\n".join(rows) + "\n")
        options += [f"--{split}", str(path)]
    return options


def environment() -> dict[str, str]:
    """One thread for each process, on the CPU."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "COLUMNS": "200"}


def run(launcher: Launcher, arguments: list[str], script: Path = SCRIPT) -> "subprocess.CompletedProcess[str]":
    """The script's command line under a launcher, to its end.

    Raises:
        subprocess.TimeoutExpired: if it does not end.
    """
    argv, late = [str(script), *arguments], time.monotonic() + SECONDS
    with tempfile.TemporaryDirectory() as folder:
        started = launcher.start(argv, Path(folder))
        try:
            while (code := started.poll()) is None:
                if time.monotonic() > late:
                    raise subprocess.TimeoutExpired(argv, SECONDS)
                time.sleep(0.02)
        finally:
            if started.poll() is None:
                started.kill()
        return subprocess.CompletedProcess(argv, code, said(Path(folder), "stdout"), said(Path(folder), "stderr"))


def said(folder: Path, stream: str) -> str:
    """What all processes wrote to a stream."""
    return "".join(path.read_text(errors="replace") for path in sorted(folder.glob(f"{stream}*")))


def training(options: list[str], batch: int, epochs: int, output: Path) -> list[str]:
    """The arguments of ``train``; the batch is each process's."""
    return ["train", *options, *RECIPE, "--batch-size", str(batch), "--epochs", str(epochs), "--output", str(output)]


def run_and_kill(launcher: Launcher, arguments: list[str], checkpoint: Path) -> bool:
    """Kill every process of a run soon after it has written a checkpoint; whether it was killed before its end.

    Raises:
        AssertionError: if it fails by itself.
    """
    argv = [str(SCRIPT), *arguments, "--checkpoint-seconds", "0.02"]
    before = _written_at(checkpoint)
    with tempfile.TemporaryDirectory() as folder:
        started = launcher.start(argv, Path(folder))
        while started.poll() is None and _written_at(checkpoint) <= before:
            time.sleep(0.002)
        time.sleep(0.2)
        code = started.poll()
        if code is None:
            started.kill()
        elif code:
            raise AssertionError(f"the run ended with {code}: {said(Path(folder), 'stderr')[-SAID:]}")
    return code is None


def _written_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def numbers(folder: Path) -> dict[str, Any]:
    """The metrics of a run without its speeds."""
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    del metrics["pairs_per_second"], metrics["inference_pairs_per_second"]
    return metrics


def compare(one: Path, two: Path) -> dict[str, float]:
    """Two runs' folders: the largest differences of their losses and weights; all other metrics must be equal."""
    ours, theirs = numbers(two), numbers(one)
    losses = [[epoch.pop("loss") for epoch in metrics["history"]] for metrics in (ours, theirs)]
    if ours != theirs:
        raise AssertionError(f"metrics differ: {ours} and {theirs}")
    weights = [load_file(folder / "model.safetensors") for folder in (two, one)]
    return {
        "losses": max(abs(a - b) for a, b in zip(*losses, strict=True)),
        "weights": difference(tuple(weights[0].values()), tuple(weights[1].values())),
    }


def both_ways(
    folder: Path,
    train: int,
    epochs: int,
    same_lengths: bool,
    kills: int = 3,
    launcher: Callable[[int], Launcher] = by_command,
) -> dict[str, Any]:
    """One process, two of them, and two that were killed so often and started again: how far apart they end.

    Args:
        folder: where all of it is written.
        train: training pairs.
        epochs: of each run.
        same_lengths: whether batches are of pairs that need no padding.
        kills: how often.
        launcher: what starts one process, or two.

    Raises:
        AssertionError: if a run fails, if one of the metrics but the loss differs, or if the run that was killed ends
            in another bit than the one that was not.
    """
    options = [*write_corpora(folder, train), *["--same-lengths"] * same_lengths]
    one, two, killed = folder / "one", folder / "two", folder / "killed"
    done = run(launcher(1), training(options, BATCH, epochs, one))
    if done.returncode:
        raise AssertionError(done.stderr)
    done = run(launcher(2), training(options, BATCH // 2, epochs, two))
    if done.returncode:
        raise AssertionError(done.stderr)
    if done.stdout.count("best epoch") != 1:
        raise AssertionError(f"more than one process reports: {done.stdout}")
    struck = 0
    while not (killed / "metrics.json").exists() and struck < kills:
        struck += run_and_kill(
            launcher(2), training(options, BATCH // 2, epochs, killed), killed / "checkpoint.safetensors"
        )
    done = run(launcher(2), training(options, BATCH // 2, epochs, killed))
    if done.returncode:
        raise AssertionError(done.stderr)
    for name in ("model.safetensors", "lexicon.safetensors"):
        if (killed / name).read_bytes() != (two / name).read_bytes():
            raise AssertionError(f"a killed run ends in another {name}")
    if numbers(killed) != numbers(two):
        raise AssertionError("a killed run ends in other metrics")
    if len({tuple(sorted(path.name for path in run.iterdir())) for run in (one, two, killed)}) != 1:
        raise AssertionError("two processes leave other files behind")
    return {"pairs": train, "epochs": epochs, "same lengths": same_lengths, "kills": struck, **compare(one, two)}
