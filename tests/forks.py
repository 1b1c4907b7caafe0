"""Scripts in processes of their own, which begin with most of their imports made.

A fork imports this module before it has its environment: so it imports nothing of ours that reads that.
"""

import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from reliability.forks import FORKS, begin

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


def _as_script(argv: Sequence[str], env: Mapping[str, str], out: Path, err: Path) -> None:
    begin(out, err)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = list(argv)
    sys.path[:] = [str(Path(argv[0]).parent), *(path for path in sys.path if path not in PATHS_OF_TESTS)]
    runpy.run_path(argv[0], run_name="__main__")
