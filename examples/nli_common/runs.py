"""A run's folder: its configuration, who may write there, and what lies in it."""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nli_common.errors import InputError
from nli_common.files import TEMPORARY, read_json, resolved, text_lines, write_text
from nli_common.labels import SCHEMES
from nli_common.options import spelled

METRICS = {"accuracy", "pairs", "per_class", "per_phenomenon", "confusion"}
FIGURES = {"parameters", "training_pairs", "pairs_per_second", "inference_pairs_per_second"}
FIGURE_FILES = ("confusion.png", "alignment.png", "features-premise.png", "features-hypothesis.png")
FILES = ("train", "dev", "test", "vectors")
"""Options that name files, of which a run keeps digests."""
OPTIONS = {
    "seed": "seed",
    "data.unit_vectors": "unit_vectors",
    "data.unit_unknown": "unit_unknown",
    "data.vectors.random": "vector_size",
}
"""What a configuration keeps of the command line, beside the options of the model and of its training."""
LOCK = ".lock"
"""In a run's folder, held while the run is trained."""
MISSING = object()
"""In place of a value that a configuration does not have."""
LARGEST = 1e15
"""No figure of a run comes near it."""


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

    @property
    def unfinished(self) -> bool:
        """Whether a training was interrupted here, and can go on."""
        return (self.checkpoint.exists() or self.previous.exists()) and not self.metrics.exists()

    @property
    def restorable(self) -> bool:
        """Whether a finished run lies here with all that its model is restored from."""
        return all(path.exists() for path in (self.config, self.lexicon, self.weights, self.metrics))

    @property
    def files(self) -> list[Path]:
        """All that training writes here, for itself and for who reads the run."""
        figures = [self.folder / name for name in FIGURE_FILES]
        return [self.config, self.lexicon, self.weights, self.checkpoint, self.previous, self.metrics, *figures]

    def claim(self, config: Mapping[str, Any]) -> FileLock:
        """Take the folder for this configuration; the lock is held until it is released or the process ends.

        Raises:
            InputError: if the folder holds another run or other files, or another process is writing to it.
        """
        self.require_free_for(config)
        lock = claim(self.folder, LOCK, [f".{path.name}.*{TEMPORARY}" for path in self.files])
        self.require_free_for(config)
        write_json(self.config, config)
        return lock

    def require_free_for(self, config: Mapping[str, Any]) -> None:
        """Raise an ``InputError`` if the folder holds another run or other files; nothing is touched."""
        try:
            str(self.folder).encode()
        except UnicodeEncodeError:
            raise InputError(f"--output {self.folder}: expected a name in UTF-8; choose another folder") from None
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
        elif any(entry.name != LOCK and entry.suffix != TEMPORARY for entry in self.folder.iterdir()):
            raise InputError(f"--output {self.folder}: holds files that are not a run; choose a new or an empty folder")

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
        known = any(config.get("labels") == list(scheme) for scheme in SCHEMES)
        named = isinstance(config.get("script"), str) and isinstance(config.get("config"), str)
        if not (known and named and isinstance(config.get("model"), dict)):
            raise InputError(f"{self.config}: not the configuration of a run")
        return config


def claim(folder: Path, name: str, leftovers: Iterable[str]) -> FileLock:
    """Lock a folder, which is made if need be, and clear away what killed processes left half-written there.

    Args:
        folder: an output folder.
        name: the lock's file.
        leftovers: the patterns of the temporary files that only the lock's holder writes.

    Raises:
        InputError: if another process has the lock, or the folder cannot be written to.
    """
    if folder.is_file():
        raise InputError(f"--output {folder}: is a file, expected a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / name)
        lock.acquire(timeout=0)
        for leftover in chain.from_iterable(map(folder.glob, leftovers)):
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


def require_writable(run: Run) -> None:
    """Raise an ``InputError`` if nothing can be added to a run's folder, as a file without a name of its own is."""
    if run.folder.is_dir() and not os.access(run.folder, os.W_OK):
        raise InputError(f"--run {run.folder}: cannot be written to; name the file to be written with --output")


def require_replaceable(option: str, path: Path | None, runs: Iterable[Run], **read: Path | None) -> None:
    """Raise an ``InputError`` if a file to be written is one of those that are read, or of what training wrote."""
    if path is None:
        return
    place = resolved(path)
    try:
        is_folder, beside = path.is_dir(), Run(place.parent)
        known = [*runs, *([beside] if beside.config.exists() else [])]
    except OSError as error:
        raise InputError(f"--{option} {path}: cannot be written ({error.strerror}); choose another file") from None
    if is_folder or path == Path("-"):
        raise InputError(f"--{option} {path}: expected the name of a file, got {'a folder' if is_folder else 'a dash'}")
    for name, source in read.items():
        if source is not None and place == resolved(source):
            raise InputError(f"--{option} {path}: expected a file other than that of --{name}, which it would replace")
    for run in known:
        if place in map(resolved, (*run.files, run.folder / LOCK)):
            raise InputError(f"--{option} {path}: expected a file other than a run's own, which it would replace")


def require_alike(option: str, path: Path | None, begins: str | tuple[str, ...], command: str) -> None:
    """Raise an ``InputError`` if a file to be written is there, and does not begin as what is written begins."""
    if path is None or not path.is_file():
        return
    try:
        _, first = next(text_lines(path), (1, ""))
    except InputError:
        first = ""
    if not first.startswith(begins):
        raise InputError(f"--{option} {path}: holds something other than what {command} writes; choose another file")


def require_distinct(folders: Iterable[Path]) -> None:
    """Raise an ``InputError`` if one of these is named twice."""
    seen = set()
    for folder in folders:
        if resolved(folder) in seen:
            raise InputError(f"{folder}: is named twice")
        seen.add(resolved(folder))


def read_metrics(path: Path) -> dict[str, Any]:
    """The whole ``metrics.json`` of a finished run.

    Raises:
        InputError: if it is missing or damaged, or is none.
    """
    metrics = read_json(path)
    splits = [metrics[split] for split in ("train", "dev", "test") if split in metrics]
    figures = [metrics.get(name) for name in FIGURES]
    if "dev" not in metrics or not all(map(_are_metrics, splits)) or not all(map(_is_positive, figures)):
        raise InputError(f"{path}: holds no metrics of a run")
    return metrics


def held_metrics(path: Path) -> tuple[str, Any]:
    """The test metrics of a ``metrics.json``, or the dev ones where there was no test, and which of the two.

    Raises:
        InputError: if it has neither.
    """
    metrics = read_json(path)
    for split in ("test", "dev"):
        if _are_metrics(metrics.get(split)):
            return split, metrics[split]
    raise InputError(f"{path}: holds no metrics of a run")


def _are_metrics(value: object) -> bool:
    if not (isinstance(value, dict) and value.keys() >= METRICS):
        return False
    groups, rows = (value["per_class"], value["per_phenomenon"]), value["confusion"]
    return (
        _is_number(value["accuracy"])
        and _is_number(value["pairs"])
        and all(isinstance(group, dict) and all(map(_is_number, group.values())) for group in groups)
        and isinstance(rows, list)
        and all(isinstance(row, list) and all(map(_is_number, row)) for row in rows)
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -LARGEST < value < LARGEST


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object in one step."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def differences(held: Mapping[str, Any], wanted: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """What differs between two configurations: its name, dots within it, and either value, or ``MISSING``."""
    for key in dict.fromkeys([*held, *wanted]):
        there, here = held.get(key, MISSING), wanted.get(key, MISSING)
        if isinstance(there, dict) and isinstance(here, dict):
            yield from differences(there, here, f"{place}{key}.")
        elif there != here:
            yield f"{place}{key}", there, here


def _require_same(held: Mapping[str, Any], wanted: Mapping[str, Any], folder: Path) -> None:
    for name, there, here in differences(held, wanted):
        raise InputError(f"--output {folder}: holds {_told(name, there, here, folder)}choose another folder")


def _told(name: str, there: object, here: object, folder: Path) -> str:
    """What another run is called that has this difference, and what else there is to do than to leave its folder."""
    file = name.removeprefix("data.")
    if file in FILES and there is MISSING:
        return f"a run without --{file}; test it with evaluate --run {folder} --{file} FILE, or "
    if file in FILES:
        other = f"a run with another --{file} than this one, or another number of generated --pairs; "
        return f"a run with --{file}; " if here is MISSING else other
    if there is MISSING or here is MISSING:
        return f"a run of another version, {'without' if there is MISSING else 'with'} {name}; "
    part, _, option = name.partition(".")
    if name in OPTIONS or (part in ("model", "recipe") and option != "num_classes"):
        option = OPTIONS.get(name, option)
        return f"another run, with {spelled(option, there)} where this one has {spelled(option, here)}; "
    return f"another run, with {name}={there!r} where this one has {here!r}; "
