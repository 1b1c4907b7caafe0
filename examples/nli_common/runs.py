"""A run's folder: its configuration, who may write there, and what lies in it."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nli_common.errors import InputError
from nli_common.files import TEMPORARY, write_atomically

METRICS = {"accuracy", "pairs", "per_class", "per_phenomenon", "confusion"}


class Run:
    """The files of one run.

    A folder belongs to the configuration that was first written to it: the same one goes on with the run, another
    one is refused before anything is touched.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "config.json"
        self.lexicon = folder / "lexicon.safetensors"
        self.weights = folder / "model.safetensors"
        self.checkpoint = folder / "checkpoint.safetensors"
        self.previous = folder / "checkpoint-previous.safetensors"
        self.metrics = folder / "metrics.json"

    def claim(self, config: Mapping[str, Any]) -> FileLock:
        """Take the folder for this configuration; the lock is held until it is released or the process ends.

        Raises:
            InputError: if the folder holds another run or other files, or another process is writing to it.
        """
        self.require_free_for(config)
        lock = claim(self.folder, ".lock", f".*{TEMPORARY}")
        self.require_free_for(config)
        write_json(self.config, config)
        return lock

    def require_free_for(self, config: Mapping[str, Any]) -> None:
        """Raise an ``InputError`` if the folder holds another run or other files; nothing is touched."""
        try:
            if not self.folder.exists():
                return
            held = self.config.exists()
        except OSError as error:
            raise InputError(
                f"--output {self.folder}: cannot be read ({error.strerror}); choose another folder"
            ) from None
        if not self.folder.is_dir():
            raise InputError(f"--output {self.folder}: is a file, expected a folder")
        if held:
            _require_same(read_json(self.config), json.loads(json.dumps(config)), self.folder)
        elif any(entry.name != ".lock" and entry.suffix != TEMPORARY for entry in self.folder.iterdir()):
            raise InputError(f"--output {self.folder}: holds files that are no run; choose a new or an empty folder")

    def drop_checkpoints(self) -> None:
        """Remove what only an unfinished run needs, where the system allows it."""
        with contextlib.suppress(OSError):
            for path in (self.checkpoint, self.previous):
                path.unlink(missing_ok=True)

    def read_config(self) -> dict[str, Any]:
        """The configuration that the folder belongs to.

        Raises:
            InputError: if there is none, or it is damaged.
        """
        config = read_json(self.config)
        labels = config.get("labels")
        if not (isinstance(config.get("model"), dict) and isinstance(labels, list) and labels and "script" in config):
            raise InputError(f"{self.config}: not the configuration of a run")
        return config


def claim(folder: Path, name: str, leftovers: str) -> FileLock:
    """Lock a folder, which is made if need be, and clear away what killed processes left half-written there.

    Args:
        folder: an output folder.
        name: the lock's file.
        leftovers: the pattern of the temporary files that only the lock's holder writes.

    Raises:
        InputError: if another process has the lock, or the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / name)
        lock.acquire(timeout=0)
        for leftover in folder.glob(leftovers):
            leftover.unlink()
    except Timeout:
        raise InputError(
            f"--output {folder}: another process is training there; wait for it, or choose another folder"
        ) from None
    except OSError as error:
        raise InputError(
            f"--output {folder}: cannot be written to ({error.strerror}); make it writable, or choose another folder"
        ) from None
    return lock


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        InputError: if it is missing or damaged.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; is this the folder of a run?") from None
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: expected a JSON object")
    return value


def held_metrics(path: Path) -> tuple[str, Any]:
    """The test metrics of a ``metrics.json``, or the dev ones where there was no test, and which of the two.

    Raises:
        InputError: if it has neither.
    """
    metrics = read_json(path)
    for split in ("test", "dev"):
        if isinstance(metrics.get(split), dict) and metrics[split].keys() >= METRICS:
            return split, metrics[split]
    raise InputError(f"{path}: holds no metrics of a run")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object in one step."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def _require_same(held: Mapping[str, Any], wanted: Mapping[str, Any], folder: Path, place: str = "") -> None:
    for key in dict.fromkeys([*held, *wanted]):
        ours, theirs = held.get(key), wanted.get(key)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            _require_same(ours, theirs, folder, f"{place}{key}.")
        elif ours != theirs:
            raise InputError(
                f"--output {folder}: holds another run, with {place}{key}={ours!r} where this one has {theirs!r}; "
                "choose another folder"
            )
