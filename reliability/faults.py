"""Faults in a training run: kills, a full disk, damaged files, signals, numbers that are none, other processes.

    python -m reliability.faults

Writes ``reliability/faults.json``. Every run is the command line of an example in a process of its own, forked from one
that has imported the library and done nothing else; one plain command line tells whether that makes a difference.
"""

import argparse
import ctypes
import errno
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from nli_common import commands
from nli_common.files import write_text
from nli_common.tensors import DAMAGED, load_tensors
from reliability.forks import FORKS, begin

HERE = Path(__file__).parent
SMALL = (
    *("--pairs", "100", "--vector-size", "6", "--batch-size", "34", "--epochs", "3"),
    *("--lr", "0.01", "--optimizer", "adam"),
)


@dataclass(frozen=True)
class Case:
    """A script and its model's options."""

    script: str
    model: tuple[str, ...]

    def train(self, output: Path, *more: str) -> list[str]:
        """The command's words; a checkpoint after every step."""
        small = [word for pair in zip(SMALL[::2], SMALL[1::2], strict=True) if pair[0] not in more for word in pair]
        return ["train", *small, "--checkpoint-seconds", "0", "--output", str(output), *more, *self.model]


CASES = {
    "Decomposable Attention, averaged weights": Case(
        "decomposable_attention", ("--hidden-size", "8", "--intra-attention", "--ema-decay", "0.9")
    ),
    "LSTM and attention": Case("lstm_attention", ("hybrid-model", "--hidden-size", "8")),
}


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    def one_line(self, code: int, *parts: str) -> bool:
        """Whether it ended with this code and one line on stderr that has these parts."""
        return self.code == code and self.err.count("\n") == 1 and all(part in self.err for part in parts)


class Fault(NamedTuple):
    """What happens at which instant of a process's writes, from 1; at 0 nothing happens, and the instants are printed.

    ``kill``: SIGKILL when half of a file is written, when all of it is, and behind each renaming. ``full``: the disk is
    full when half of a file is written; the error is raised here, not by the system.
    """

    kind: Literal["kill", "full"]
    at: int


class Running:
    """A command that runs."""

    def __init__(
        self, script: str, words: list[str], work: Path, fault: Fault | None = None, powerless: bool = False
    ) -> None:
        self.log = Path(tempfile.mkdtemp(dir=work, prefix="log-"))
        self.process: BaseProcess = FORKS.Process(target=_child, args=(script, words, self.log, fault, powerless))
        self.process.start()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it, if it still runs."""
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, number)

    def ended(self, within: float = 120) -> Ended:
        """Wait for its end."""
        self.process.join(within)
        if self.process.exitcode is None:
            self.process.kill()
            raise AssertionError("the command did not end")
        texts = [(self.log / name).read_text() if (self.log / name).exists() else "" for name in ("out", "err")]
        return Ended(self.process.exitcode, *texts)


def _child(script: str, words: list[str], log: Path, fault: Fault | None, powerless: bool) -> None:
    begin(log / "out", log / "err")
    os.environ |= {"ACCELERATE_USE_CPU": "true", "COLUMNS": "200"}
    # A shell without job control has what it starts in the background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)
    if powerless and os.getuid() == 0:
        _heed_permissions()
    if fault is not None:
        _arm(fault)
    sys.argv = [f"{script}.py", *words]
    commands.main(importlib.import_module(script).SCRIPT)


def _heed_permissions() -> None:
    """Take from a superuser on Linux what lets it read and write where the permissions of a file forbid it."""
    system = ctypes.CDLL(None)
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert system.capget(header, sets) == 0
    sets[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert system.capset(header, sets) == 0


def _arm(fault: Fault) -> None:
    """Strike at the given instant of this process's writes."""
    count = 0
    fsync, replace = os.fsync, Path.replace

    def instant(strike: Callable[[], None]) -> None:
        nonlocal count
        count += 1
        if not fault.at:
            print("instant", flush=True)
        elif count == fault.at:
            strike()

    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def half(file: int) -> None:
        path = Path(f"/proc/self/fd/{file}").readlink()
        os.truncate(path, path.stat().st_size // 2)
        if fault.kind == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        kill()

    def synced(file: int) -> None:
        instant(lambda: half(file))
        fsync(file)
        if fault.kind == "kill":
            instant(kill)

    def replaced(path: Path, target: Path) -> Path:
        result = replace(path, target)
        if fault.kind == "kill":
            instant(kill)
        return result

    os.fsync = synced
    Path.replace = replaced  # type: ignore[assignment,method-assign]


@dataclass
class Tally:
    """How often an attack struck, and what did not hold."""

    strikes: int = 0
    broken: int = 0
    """The strikes after which something did not hold."""
    failures: list[str] = field(default_factory=list)

    def strike(self, what: str, **held: bool) -> None:
        """Count one strike and what it should not have broken."""
        self.strikes += 1
        self.broken += not all(held.values())
        self.failures += [f"{what}: not {name}" for name, holds in held.items() if not holds]

    def spoil(self, failure: str, strikes: int) -> None:
        """Count what shows later, and so many strikes before it that seemed to break nothing."""
        self.broken += strikes
        self.failures.append(failure)


def numbers(folder: Path) -> dict[str, Any]:
    """All that a run leaves but its speed: metrics, weights and lexicon byte for byte, the names of its files."""
    metrics = json.loads((folder / "metrics.json").read_text())
    for rate in ("pairs_per_second", "inference_pairs_per_second"):
        del metrics[rate]
    held = {name: (folder / name).read_bytes() for name in ("model.safetensors", "lexicon.safetensors")}
    return {"metrics": metrics, "names": sorted(path.name for path in folder.iterdir()), **held}


def whole(folder: Path) -> bool:
    """Whether every file in the folder, and in those within it, is as it was meant; hidden files are not looked at."""
    try:
        return all(_readable(path) for path in folder.rglob("[!.]*") if path.is_file())
    except DAMAGED:
        return False


def _readable(path: Path) -> bool:
    if path.suffix == ".safetensors":
        load_tensors(path)
    elif path.suffix == ".json":
        json.loads(path.read_bytes())
    return path.suffix != ".png" or path.read_bytes().endswith(b"IEND\xaeB`\x82")


def tidy(folder: Path) -> bool:
    """Whether no temporary file is left."""
    return not list(folder.rglob("*.tmp*"))


class Attack:
    """One case's uninterrupted run, and the attacks on others like it.

    Args:
        case: what is trained.
        work: an empty folder that every user can read.
    """

    def __init__(self, case: Case, work: Path) -> None:
        self.case, self.work = case, work
        instants = self.instants("kill")
        self.whole = self.folder("whole")
        started = time.perf_counter()
        done = self.run(self.whole)
        self.seconds = time.perf_counter() - started
        assert done.code == 0, done.err
        self.numbers = numbers(self.whole)
        self.midway = self.folder("midway")
        at, wanted = instants * 2 // 3, {"checkpoint", "checkpoint-previous", "model"}
        while not wanted <= {path.stem for path in self.midway.glob("*.safetensors")}:
            self.run(self.folder("midway"), Fault("kill", at))
            at += 1

    def folder(self, name: str) -> Path:
        """A place for a run that is not there yet."""
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def copy(self) -> Path:
        """A run that was killed when two thirds of its writes were done, with both checkpoints and weights."""
        return Path(shutil.copytree(self.midway, self.folder("copy")))

    def start(self, output: Path, fault: Fault | None = None, *more: str, powerless: bool = False) -> Running:
        """Begin the case's command."""
        return Running(self.case.script, self.case.train(output, *more), self.work, fault, powerless)

    def run(self, output: Path, fault: Fault | None = None, *more: str) -> Ended:
        """The case's command to its end."""
        return self.start(output, fault, *more).ended()

    def instants(self, kind: Literal["kill", "full"]) -> int:
        """How many instants an uninterrupted run's writes have."""
        return self.run(self.folder("counted"), Fault(kind, 0)).out.count("instant\n")

    def same(self, output: Path) -> bool:
        """Whether the same command, now undisturbed, ends in the uninterrupted run's numbers and files."""
        return self.reproduced(self.run(output), output)

    def reproduced(self, done: Ended, output: Path) -> bool:
        """Whether a command ended in the uninterrupted run's numbers and files."""
        return done.code == 0 and _equal(numbers, output, self.numbers)

    def plain_command(self) -> Tally:
        """The same in a process of its own from the start."""
        tally, output = Tally(), self.folder("plain")
        script = HERE.parent / "examples" / f"{self.case.script}.py"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
        subprocess.run([sys.executable, script, *self.case.train(output)], env=environment, capture_output=True)
        tally.strike("plain command", same=_equal(numbers, output, self.numbers))
        return tally

    def kills_in_writes(self, every: int = 1) -> Tally:
        """SIGKILL at every instant of every write, or at some of them; then the same command."""
        tally = Tally()
        for at in range(1, self.instants("kill") + 1, every):
            output = self.folder("killed")
            code = self.run(output, Fault("kill", at)).code
            tally.strike(f"instant {at}", killed=code == -signal.SIGKILL, whole=whole(output), same=self.same(output))
        return tally

    def kills_at_random(self, kills: int, seed: int = 0) -> Tally:
        """SIGKILL at random times, the same command each time; each second kill waits for a temporary file.

        Which of the kills in a folder spoilt it is not known: where its run ends in another way than it should, none of
        them was survived.
        """
        tally, clock, unhurt, output = Tally(), random.Random(seed), 0, self.folder("random")
        for _ in range(50 * kills):
            if tally.strikes == kills:
                break
            running = self.start(output)
            time.sleep(clock.uniform(0, self.seconds))
            if tally.strikes % 2:
                while running.process.is_alive() and not list(output.glob("*.tmp*")):
                    pass
            running.send(signal.SIGKILL)
            done = running.ended()
            if done.code == -signal.SIGKILL:
                intact = whole(output)
                tally.strike("random kill", whole=intact)
                unhurt += intact
                continue
            if not self.reproduced(done, output):
                tally.spoil(f"run that ended with {done.code} after {tally.strikes} kills: not same", unhurt)
            unhurt, output = 0, self.folder("random")
        if not self.same(output):
            tally.spoil("last run: not same", unhurt)
        if tally.strikes < kills:
            tally.spoil(f"only {tally.strikes} of {kills} kills ended a run", 1)
        return tally

    def full_disk(self, every: int = 1) -> Tally:
        """No space in the middle of each write in turn; then there is space again."""
        tally = Tally()
        for at in range(1, self.instants("full") + 1, every):
            output = self.folder("full")
            done = self.run(output, Fault("full", at))
            held = {"one_line": done.one_line(2, "cannot be written (No space left on device)", "repeat the command")}
            tally.strike(f"write {at}", **held, whole=whole(output), tidy=tidy(output), same=self.same(output))
        return tally

    def small_disk(self, sizes: tuple[int, ...]) -> Tally | None:
        """A file system of so many KiB, which then grows; ``None`` where none may be mounted."""
        tally, disk = Tally(), self.folder("disk")
        disk.mkdir()
        for size in sizes:
            mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", str(disk)]
            if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
                return None
            try:
                output = disk / "run"
                done = self.run(output)
                held = {"one_line": done.one_line(2, "(No space left on device)"), "whole": whole(disk)}
                subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
                tally.strike(f"disk of {size} KiB", **held, tidy=tidy(disk), same=self.same(output))
            finally:
                subprocess.run(["umount", str(disk)], check=True)
        return tally

    def damaged_checkpoints(self) -> Tally:
        """The newest checkpoint cut off or changed: the one before it stands in."""
        tally = Tally()
        for name, damaged in _damages((self.midway / "checkpoint.safetensors").read_bytes()).items():
            output = self.copy()
            (output / "checkpoint.safetensors").write_bytes(damaged)
            done = self.run(output)
            said = [line for line in done.out.splitlines() if "going on from the one before it" in line]
            told = len(said) == 1 and "checkpoint.safetensors: not a checkpoint of this run" in said[0]
            tally.strike(name, told=told, same=self.reproduced(done, output))
        output = self.copy()
        (output / "checkpoint.safetensors").unlink()
        tally.strike("no newest", same=self.same(output))
        return tally

    def damaged_beyond_repair(self) -> Tally:
        """Both checkpoints, or another file that is needed: a line that names it, and the way on works."""
        tally = Tally()
        both = ["checkpoint.safetensors", "checkpoint-previous.safetensors"]
        for names, way_on in (
            (both, "delete it, and the same command starts over"),
            (["model.safetensors"], "delete the folder, and the same command starts over"),
            (["lexicon.safetensors"], "delete it, and the same command writes it anew"),
            (["config.json"], "config.json: not JSON"),
        ):
            output = self.copy()
            for name in names:
                path = output / name
                path.write_bytes(path.read_bytes()[:-9])
            before = _contents(output)
            done = self.run(output)
            held = {"one_line": done.one_line(2, way_on, *names), "left_alone": _contents(output) == before}
            if way_on.startswith("delete the folder") or names == ["config.json"]:
                shutil.rmtree(output)
            else:
                for name in names:
                    (output / name).unlink()
            tally.strike(names[0], **held, same=self.same(output))
        return tally

    def signals(self, times: int, seed: int = 0) -> Tally:
        """Ctrl-C and SIGTERM at random times after the folder is claimed."""
        tally, clock = Tally(), random.Random(seed)
        for _ in range(50 * times):
            if tally.strikes == times:
                break
            number = (signal.SIGINT, signal.SIGTERM)[tally.strikes % 2]
            output = self.folder("stopped")
            running = self.start(output)
            _wait_for(output, "config.json")
            time.sleep(clock.uniform(0, self.seconds / 2))
            running.send(number)
            done = running.ended()
            if done.code:
                line = done.one_line(128 + number, f"stopped by {number.name}; the same command goes on")
                held = {"one_line": line, "whole": whole(output), "tidy": tidy(output)}
                tally.strike(number.name, **held, same=self.same(output))
        if tally.strikes < times:  # what is ignored ends no run, however often it is sent
            tally.spoil(f"only {tally.strikes} of {times} signals ended a run", 1)
        return tally

    def no_number(self) -> Tally:
        """A loss that is none, and weights that are none behind the last step of all: neither gets into a file."""
        tally = Tally()
        for name, options in (
            ("loss", ("--lr", "1e30")),
            ("weights", ("--lr", "1e39", "--epochs", "1", "--batch-size", "100")),
        ):
            output = self.folder("nan")
            done = self.run(output, None, *options)
            paths = output.glob("*.safetensors")
            finite = whole(output) and all(bool(t.isfinite().all()) for p in paths for t in load_tensors(p)[0].values())
            line = done.one_line(2, f"the {name} became", "in epoch 1; try a lower --lr, in another folder")
            tally.strike(name, one_line=line, finite=finite, unfinished=not (output / "metrics.json").exists())
        return tally

    def second_process(self) -> Tally:
        """The same command while the first stands still, which then goes on undisturbed."""
        tally, output = Tally(), self.folder("twice")
        first = self.start(output)
        _wait_for(output, "checkpoint.safetensors")
        first.send(signal.SIGSTOP)
        before = _contents(output)
        line = self.run(output).one_line(2, "another process is training there; wait for it, or choose another folder")
        held = {"one_line": line, "left_alone": _contents(output) == before}
        first.send(signal.SIGCONT)
        tally.strike("second", **held, same=self.reproduced(first.ended(), output))
        return tally

    def read_only(self) -> Tally:
        """A folder that cannot be made, one that cannot be looked into, and one that is locked in mid-run."""
        tally = Tally()
        for mode, problem in ((0o555, "cannot be written to (Permission denied)"), (0o000, "cannot be read")):
            parent = self.folder("closed")
            parent.mkdir()
            parent.chmod(mode)
            done = self.start(parent / "run", powerless=True).ended()
            parent.chmod(0o755)
            held = {"one_line": done.one_line(2, problem, "choose another folder")}
            tally.strike(f"mode {mode:o}", **held, untouched=not list(parent.iterdir()))
        output = self.folder("locked")
        output.mkdir()
        running = self.start(output, powerless=True)
        _wait_for(output, "checkpoint.safetensors")
        output.chmod(0o555)
        done = running.ended()
        output.chmod(0o755)
        held = {"one_line": done.one_line(2, "cannot be written (Permission denied)", "repeat the command")}
        held |= {"whole": whole(output)}
        again = self.start(output, powerless=True).ended()
        tally.strike("in mid-run", **held, same=self.reproduced(again, output))
        return tally


class TableAttack:
    """A table of two rows, killed or failing."""

    WORDS = ("hidden_size=8", "epochs=2", "batch_size=34", "optimizer=adam")

    def __init__(self, work: Path) -> None:
        self.work = work
        self.whole = work / "table"
        assert self.run(self.whole).code == 0
        self.numbers = _table(self.whole)

    def run(self, output: Path, fault: Fault | None = None, lr: str = "0.01") -> Ended:
        """The table's command to its end."""
        return self.start(output, fault, lr).ended()

    def start(self, output: Path, fault: Fault | None = None, lr: str = "0.01") -> Running:
        """Begin the table's command."""
        words = ["table", "1", "--pairs", "100", "--vector-size", "6", "--seeds", "1", "--output", str(output)]
        return Running("decomposable_attention", [*words, "--options", *self.WORDS, f"lr={lr}"], self.work, fault)

    def same(self, output: Path) -> bool:
        """Whether the table's command, now undisturbed, ends in the uninterrupted table."""
        return self.reproduced(self.run(output), output)

    def reproduced(self, done: Ended, output: Path) -> bool:
        """Whether a command ended in the uninterrupted table."""
        return done.code == 0 and _equal(_table, output, self.numbers)

    def kills(self, every: int = 1) -> Tally:
        """SIGKILL at every instant of the table's writes, or at some; finished rows are not trained again."""
        tally, output = Tally(), self.work / "killed-table"
        instants = self.run(self.work / "counted-table", Fault("kill", 0)).out.count("instant\n")
        for at in range(1, instants + 1, every):
            shutil.rmtree(output, ignore_errors=True)
            code = self.run(output, Fault("kill", at)).code
            done = {path: path.stat().st_mtime_ns for path in output.glob("*/metrics.json")}
            held = {"killed": code == -signal.SIGKILL, "whole": whole(output)}
            same = self.same(output) and tidy(output)
            kept = all(path.stat().st_mtime_ns == changed for path, changed in done.items())
            tally.strike(f"instant {at}", **held, same=same, kept=kept)
        return tally

    def failures(self) -> Tally:
        """A row whose loss becomes no number, and a second process."""
        tally, output = Tally(), self.work / "failing-table"
        done = self.run(output, lr="1e30")
        line = done.one_line(2, "row 'Our approach (vanilla)', seed 0: the loss became", "try a lower --lr")
        tally.strike("failing row", one_line=line, whole=whole(output), same=self.same(output))
        output = self.work / "double-table"
        first = self.start(output)
        _wait_for(output, "*/checkpoint.safetensors")
        first.send(signal.SIGSTOP)
        line = self.run(output).one_line(2, "another process is training there")
        first.send(signal.SIGCONT)
        tally.strike("second", one_line=line, same=self.reproduced(first.ended(), output))
        return tally


def _table(folder: Path) -> dict[str, Any]:
    """A table without its speeds, its runs' numbers."""
    table = json.loads((folder / "1.json").read_text())
    for row in table["rows"]:
        del row["pairs_per_second"], row["inference_pairs_per_second"]
        row["ours"] = {key: value for key, value in row["ours"].items() if "seconds" not in key and "/" not in key}
    runs = [numbers(folder / f"{row['settings']}-seed0") for row in table["rows"]]
    return {"table": table, "runs": runs}


def _equal(read: Callable[[Path], dict[str, Any]], folder: Path, expected: dict[str, Any]) -> bool:
    """Whether a folder holds these numbers; one that lacks some of them, or has them damaged, does not."""
    try:
        return read(folder) == expected
    except DAMAGED:
        return False


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


def _damages(data: bytes) -> dict[str, bytes]:
    """A checkpoint's bytes after what disks and copies do to them."""

    def changed(place: int) -> bytes:
        return data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]

    return {
        "empty": b"",
        "first half": data[: len(data) // 2],
        "one byte short": data[:-1],
        "zeros": bytes(len(data)),
        "a bit of the header's length": changed(0),
        "a digit of the progress": changed(data.index(b"epoch") + len('epoch\\": ')),
        "a bit of a weight": changed(len(data) * 2 // 3),
        "the last byte's bit": changed(len(data) - 1),
    }


def _wait_for(folder: Path, pattern: str) -> None:
    for _ in range(20_000):
        if any(folder.glob(pattern)):
            return
        time.sleep(0.001)
    raise AssertionError(f"{pattern} was not written")


def workplace() -> "tempfile.TemporaryDirectory[str]":
    """A temporary folder that every user can read."""
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    Path(folder.name).chmod(0o755)
    return folder


ATTACKS: dict[str, Callable[[Attack], Tally | None]] = {
    "SIGKILL in the steps of the writes, each third": lambda attack: attack.kills_in_writes(3),
    "SIGKILL at random, half of them when a temporary file is there": lambda attack: attack.kills_at_random(20),
    "the disk full in the middle of each write, raised within the process": Attack.full_disk,
    "a small file system (tmpfs) that is full, then larger": lambda attack: attack.small_disk((4, 8, 16, 32, 48, 64)),
    "the newest checkpoint cut off, changed or gone": Attack.damaged_checkpoints,
    "both checkpoints, weights, lexicon or configuration cut off": Attack.damaged_beyond_repair,
    "SIGINT and SIGTERM at random": lambda attack: attack.signals(10),
    "a loss or weights that are no numbers": Attack.no_number,
    "a second process in the same folder": Attack.second_process,
    "a folder that is read-only, closed, or becomes read-only": Attack.read_only,
    "the plain command, nothing forked": Attack.plain_command,
}
TABLE = {
    "SIGKILL in the steps of a table's writes, each sixth": lambda attack: attack.kills(6),
    "a row that fails, a second process": TableAttack.failures,
}


def main() -> None:
    """Every attack on every case."""
    argparse.ArgumentParser(prog="python -m reliability.faults", description=__doc__).parse_args()
    # Each fork imports this file under one more name.
    os.environ["PYTHONWARNINGS"] = "ignore::RuntimeWarning:runpy"
    rows = []
    for name, case in CASES.items():
        with workplace() as folder:
            attack = Attack(case, Path(folder))
            rows += [_row(name, what, strike(attack)) for what, strike in ATTACKS.items()]
    with workplace() as folder:
        table = TableAttack(Path(folder))
        rows += [_row("a table of Decomposable Attention", what, strike(table)) for what, strike in TABLE.items()]
    held = {"command": "python -m reliability.faults", "torch": torch.__version__, "attacks": rows}
    path = HERE / "faults.json"
    write_text(path, json.dumps(held, indent=1) + "\n")
    print(page(held))


def _row(model: str, what: str, tally: Tally | None) -> dict[str, Any]:
    row: dict[str, Any] = {"model": model, "attack": what, "strikes": None, "broken": 0, "failures": []}
    if tally is not None:
        row |= {"strikes": tally.strikes, "broken": tally.broken, "failures": tally.failures}
    print(model, what, row["strikes"], *row["failures"], sep="; ", file=sys.stderr, flush=True)
    return row


def page(held: dict[str, Any]) -> str:
    """The figures as a section of Markdown."""
    models = list(dict.fromkeys(row["model"] for row in held["attacks"]))
    lines = [f"| | {' | '.join(models)} |", "|---|" + "---:|" * len(models)]
    for attack in dict.fromkeys(row["attack"] for row in held["attacks"]):
        found = {row["model"]: row for row in held["attacks"] if row["attack"] == attack}
        lines.append(f"| {attack} | {' | '.join(_cell(found.get(model)) for model in models)} |")
    parts = [
        "## Faults in a training run",
        f"Tiny models on the generated corpus, a checkpoint after every step; torch {held['torch']}; "
        f"`{held['command']}`.",
        "\n".join(lines),
        "How many faults, of how many, were survived. A fault was survived if every file was intact afterwards, if a "
        "process that could still print ended with one line that says what happened and what to do, and if the same "
        "command (for damage that leaves no whole copy: once that file is deleted) then reproduced the uninterrupted "
        "run's metrics and, byte for byte, its weights. A loss that is NaN or infinite recurs with the same command: "
        "there, no file may contain NaN or infinity. Checkpoints have a checksum, and the one before the newest is "
        "kept to replace a damaged one.",
    ]
    parts += [f"- {row['model']}, {row['attack']}: {failure}" for row in held["attacks"] for failure in row["failures"]]
    return "\n\n".join(parts) + "\n"


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if row["strikes"] is None:
        return "not possible"
    return f"{row['strikes'] - row['broken']} of {row['strikes']}"


if __name__ == "__main__":
    main()
