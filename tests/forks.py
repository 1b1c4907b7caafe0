"""Scripts in processes of their own, which begin with most of their imports made."""

import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from reliability.forks import FORKS, begin
from reliability.launched import environment, free_port

ROOT = Path(__file__).parent.parent
NOWHERE = Path(os.devnull)
PATHS_OF_TESTS = [str(ROOT), str(ROOT / "examples"), str(ROOT / "tests")]
"""What pytest adds to ``sys.path``, and a script does not have."""


def run(argv: Sequence[str], env: Mapping[str, str], *, seconds: float) -> "subprocess.CompletedProcess[str]":
    """What ``subprocess.run`` would tell of ``python *argv``."""
    with tempfile.TemporaryDirectory() as folder:
        streams = Path(folder) / "stdout", Path(folder) / "stderr"
        process = start(argv, env, *streams)
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(argv, seconds)
        stdout, stderr = (stream.read_text() for stream in streams)
    return subprocess.CompletedProcess(argv, process.exitcode, stdout, stderr)


def start(argv: Sequence[str], env: Mapping[str, str], out: Path = NOWHERE, err: Path = NOWHERE) -> BaseProcess:
    """``python *argv``, which runs on."""
    process = FORKS.Process(target=_as_script, args=(argv, env, out, err))
    process.start()
    return process


class Launcher:
    """What torch's launcher does on one machine: each of several processes is told of the others by its environment."""

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def start(self, argv: list[str], folder: Path) -> "Started":
        count, started = str(self.processes), []
        all_have = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1"}
        all_have["MASTER_PORT"] = str(free_port())
        for rank in map(str, range(self.processes)):
            env = {**all_have, "RANK": rank, "LOCAL_RANK": rank} if self.processes > 1 else {}
            streams = folder / f"stdout{rank}", folder / f"stderr{rank}"
            started.append(start(argv, environment() | env, *streams))
        return Started(started)


class Started:
    """Processes that end together, and with the first of them that fails."""

    def __init__(self, processes: list[BaseProcess]) -> None:
        self.processes = processes

    def poll(self) -> int | None:
        codes = [process.exitcode for process in self.processes]
        failed = next((code for code in codes if code), None)
        if failed is not None:
            self.kill()
        return failed if failed is not None else None if None in codes else 0

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()


def _as_script(argv: Sequence[str], env: Mapping[str, str], out: Path, err: Path) -> None:
    begin(out, err)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = list(argv)
    sys.path[:] = [str(Path(argv[0]).parent), *(path for path in sys.path if path not in PATHS_OF_TESTS)]
    runpy.run_path(argv[0], run_name="__main__")
