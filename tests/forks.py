"""Scripts in processes of their own, which begin with most of their imports made."""

import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from reliability.forks import FORKS, begin

ROOT = Path(__file__).parent.parent
PATHS_OF_TESTS = [str(ROOT), str(ROOT / "examples"), str(ROOT / "tests")]
"""What pytest adds to ``sys.path``, and a script does not have."""


def run(argv: Sequence[str], env: Mapping[str, str], *, seconds: float) -> "subprocess.CompletedProcess[str]":
    """What ``subprocess.run`` would tell of ``python *argv``."""
    with tempfile.TemporaryDirectory() as folder:
        streams = Path(folder) / "stdout", Path(folder) / "stderr"
        process = FORKS.Process(target=_as_script, args=(argv, env, streams))
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(argv, seconds)
        stdout, stderr = (stream.read_text() for stream in streams)
    return subprocess.CompletedProcess(argv, process.exitcode, stdout, stderr)


def _as_script(argv: Sequence[str], env: Mapping[str, str], streams: tuple[Path, Path]) -> None:
    begin(*streams)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = list(argv)
    sys.path[:] = [str(Path(argv[0]).parent), *(path for path in sys.path if path not in PATHS_OF_TESTS)]
    runpy.run_path(argv[0], run_name="__main__")
