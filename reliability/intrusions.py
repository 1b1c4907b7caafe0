"""Files that would act: pickles in the place of arrays, and names and links that lead out of the output folder."""

import contextlib
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from decomposable_attention import SCRIPT
from nli_common.checkpoints import load_weights, save_weights
from nli_common.contextual import ContextualVectors
from nli_common.data import open_corpus
from nli_common.errors import InputError
from nli_common.inputs import Data
from nli_common.lexicon import Lexicon
from nli_common.runs import Run, write_json
from nli_common.table_runs import settle
from nli_common.tables import Row
from nli_common.tensors import save_tensors
from nli_common.vectors import read_vectors
from reliability import mutations
from reliability.hostile_commands import PREDICT, command_line, evaluate_named
from reliability.hostile_readers import OPTIMIZERS, load_model, load_state, make_run, pairs_of, vectors_of

Act = Callable[[Path, Path], object]
"""Does something in a folder, given a file outside of it."""


class Canary:
    """Unpickled, it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        """What a hostile pickle does."""
        return os.mkdir, (str(self.path),)


def pickles(folder: Path) -> list[dict[str, Any]]:
    """Pickles in the place of every file that holds arrays: none is loaded, each is refused."""
    canary = folder / "canary"
    pickle.loads(pickle.dumps(Canary(canary)))
    assert canary.exists(), "the canary itself does not work"
    canary.rmdir()
    objects = np.array([Canary(canary)], dtype=object)
    arrays = {"words": np.array(["dog"]), "vectors": np.ones((1, 3))}
    torch.save(Canary(canary), folder / "saved")
    plain, saved = pickle.dumps(Canary(canary)), (folder / "saved").read_bytes()
    tried: list[tuple[str, str, bytes, Callable[[Path], object]]] = [
        (f"objects as {name}", "v.npz", mutations.npz(arrays | {name: objects}, pickled=True), _found)
        for name in arrays
    ]
    for name, content in (("pickle", plain), ("torch.save", saved)):
        tried += [(name, file, content, read) for file, read in PLACES.items()]
    found = []
    for name, file, content, read in tried:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(content)
        outcome = _outcome(lambda read=read, file=file: read(folder / file))
        found.append({"pickle": f"{name} in {file}", "outcome": outcome, "loaded": canary.exists()})
        with contextlib.suppress(OSError):
            canary.rmdir()
    return found


def _found(path: Path) -> object:
    return read_vectors(path, {"dog"})


def _load_encoder(path: Path) -> object:
    """A BERT whose weights are this file."""
    from transformers import BertConfig, BertTokenizerFast

    sizes = {"hidden_size": 4, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 3}
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "dog"]
    BertConfig(vocab_size=len(words), **sizes).save_pretrained(path.parent)
    BertTokenizerFast(vocab={word: k for k, word in enumerate(words)}).save_pretrained(path.parent)
    vectors = ContextualVectors(path.parent, Lexicon.random(["dog"], 3), path.parent / "cache.sqlite3")
    return vectors._encoder


PLACES: dict[str, Callable[[Path], object]] = {
    "v.npz": _found,
    "v.txt": vectors_of,
    "a.jsonl": pairs_of,
    "model.safetensors": load_model,
    "lexicon.safetensors": Lexicon.load,
    "checkpoint.safetensors": load_state(OPTIMIZERS["adam"]),
    "encoder/pytorch_model.bin": _load_encoder,
}


def escapes(folder: Path) -> list[dict[str, Any]]:
    """Names and links that point outside: whether anything there was written, changed or removed."""
    found = []
    for number, (name, act) in enumerate(ESCAPES.items()):
        place = folder / str(number)
        outside, inside = place / "outside", place / "inside"
        (outside / "folder").mkdir(parents=True)
        inside.mkdir()
        victim = outside / "victim"
        victim.write_text("precious")
        outcome = _outcome(lambda act=act, inside=inside, victim=victim: act(inside, victim))
        entries = sorted(str(path.relative_to(place)) for path in place.rglob("*") if inside not in path.parents)
        kept = entries == ["inside", "outside", "outside/folder", "outside/victim"] and victim.read_text() == "precious"
        found.append({"attempt": name, "outcome": outcome, "kept": kept})
    return found


def _outcome(act: Callable[[], object]) -> str:
    try:
        act()
    except InputError:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return "done"


def _metrics(inside: Path, victim: Path) -> None:
    (inside / "metrics.json").symlink_to(victim)
    write_json(Run(inside).metrics, {"accuracy": 1.0})


def _weights(inside: Path, victim: Path) -> None:
    (inside / "model.safetensors").symlink_to(victim)
    save_weights(Run(inside).weights, nn.Linear(3, 5))


def _cached(inside: Path, victim: Path) -> None:
    source, cache = inside / "a.tsv", inside / "cache"
    source.write_text("gold_label\tsentence1\tsentence2\nneutral\ta\tb\n")
    open_corpus(source, cache)
    (held,) = cache.iterdir()
    held.unlink()
    held.symlink_to(victim)
    open_corpus(source, cache)


def _claimed(name: str, target: str = "victim") -> Act:
    def act(inside: Path, victim: Path) -> None:
        (inside / name).symlink_to(victim.parent / target)
        Run(inside).claim({"a": 1}).release()

    return act


def _temporary_folder(inside: Path, victim: Path) -> None:
    (inside / ".x.tmp" / "y").mkdir(parents=True)
    Run(inside).claim({"a": 1}).release()


def _zip_member(inside: Path, victim: Path) -> object:
    (inside / "v.zip").write_bytes(mutations.zipped(b"dog 1 2 3\n", "../outside/new"))
    return _found(inside / "v.zip")


def _npz_member(inside: Path, victim: Path) -> object:
    (inside / "v.npz").write_bytes(mutations.npz({"../../outside/new": np.ones(3), "words": np.array(["dog"])}))
    return _found(inside / "v.npz")


def _tensor(inside: Path, victim: Path) -> None:
    save_tensors(inside / "model.safetensors", {"../../outside/new": torch.ones(3)})
    load_weights(inside / "model.safetensors", nn.Linear(3, 5))


def _row(inside: Path, victim: Path) -> None:
    named = settle(SCRIPT, Row("../../outside/new", {"optimizer": "../../outside/new"}), {}, Data())
    Run(inside / f"{named.name}-seed0").claim({"a": 1}).release()


def _phenomenon(inside: Path, victim: Path) -> None:
    make_run(inside / "run")
    (inside / "run" / "evaluation-..x.json").symlink_to(victim)
    evaluate_named(inside, "../../outside/new")


def _script(inside: Path, victim: Path) -> None:
    make_run(inside / "run")
    config = json.loads((inside / "run" / "config.json").read_text()) | {"script": "../../outside/new"}
    (inside / "run" / "config.json").write_text(json.dumps(config))
    code, text = command_line([*PREDICT, "--run", str(inside / "run")])
    assert code == 2, text
    raise InputError(text)


ESCAPES: dict[str, Act] = {
    "metrics.json is a link": _metrics,
    "model.safetensors is a link": _weights,
    "a cached corpus is a link": _cached,
    "the lock is a link": _claimed(".lock"),
    "a temporary file is a link": _claimed(".x.tmp"),
    "a temporary file is a link to a folder": _claimed(".y.tmp", "folder"),
    "a temporary file is a folder": _temporary_folder,
    "a member of a .zip is named ../": _zip_member,
    "an array of an .npz is named ../": _npz_member,
    "a tensor is named ../": _tensor,
    "a table's row is named ../": _row,
    "a phenomenon is named ../, the evaluation is a link": _phenomenon,
    "the script in config.json is named ../": _script,
}
