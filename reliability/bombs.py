"""Files that are small on disk and declare or expand to far more; each is set off in a process of its own.

python -m reliability.bombs "zip bomb of 1 KB, one line"
"""

import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from benchmarks.memory import held_at_most
from torch import nn

from decomposable_attention import SCRIPT
from nli_common.categories import read_categories
from nli_common.checkpoints import load_weights
from nli_common.corpora import read_pairs
from nli_common.data import Corpus
from nli_common.errors import InputError
from nli_common.figures import plot_alignment
from nli_common.inputs import fingerprint
from nli_common.lexicon import Lexicon
from nli_common.models import restore
from nli_common.runs import Run, held_metrics
from reliability.hostile_readers import make_run, pairs_of, vectors_of

MEMORY_BOUND = 512 << 20
"""Bytes by which a process may grow while it reads any one of the bombs."""
ADDRESS_SPACE = 6 << 30
HEADER = b"gold_label\tsentence1\tsentence2\n"
MIB = bytes(1 << 20)
ROWS, LINES = b"neutral\ta dog\tthe cat\n" * 40_000, b"dog 1 2 3\n" * 100_000
Bombs = dict[str, Callable[[], object]]


def bombs(folder: Path) -> Bombs:
    """Every bomb; its file is made when it is called. It must be refused, or read within the bound."""
    return {**long_lines(folder), **archives(folder), **tensors(folder), **nested(folder), **models(folder)}


def long_lines(folder: Path) -> Bombs:
    """Lines that do not end, words and sentences that are no language's."""

    def sparse(name: str, head: bytes = b"") -> Path:
        path = _written(folder / name, head)
        os.truncate(path, 1 << 30)
        return path

    def endless(name: str) -> Path:
        (folder / name).symlink_to("/dev/zero")
        return folder / name

    def long_word() -> object:
        words = " ".join(f"word{i}" for i in range(10_000)).encode()
        rows = b"neutral\t%s\ta\nneutral\ta\t%s\n" % (words, b"x" * 1_000_000)
        path = _written(folder / "a.tsv", HEADER + rows)
        return Lexicon.random(["a"], 3).extended(Corpus.from_pairs(read_pairs(path), str(path)).words)

    def long_figure() -> object:
        words = [f"word{i}" for i in range(1000)]
        return plot_alignment(torch.rand(1000, 1000), words, words, "", folder / "alignment.png")

    return {
        "line of 1 GiB, sparse .jsonl": lambda: pairs_of(sparse("a.jsonl")),
        "line of 1 GiB, sparse .tsv": lambda: pairs_of(sparse("a.tsv", HEADER)),
        "line of 1 GiB, sparse vectors": lambda: vectors_of(sparse("v.txt")),
        "line of 1 GiB, sparse annotations": lambda: read_categories(sparse("x.txt"), folder / "a.jsonl"),
        "line without end, /dev/zero as .tsv": lambda: pairs_of(endless("a.tsv")),
        "hash of /dev/zero as vectors": lambda: fingerprint(endless("v.txt")),
        "word of 1 MB among 10,000": long_word,
        "figure of 1,000 by 1,000 words": long_figure,
        "config.json of 1 GiB, sparse": lambda: Run(sparse("config.json").parent).read_config(),
    }


def archives(folder: Path) -> Bombs:
    """Archives that expand, or declare arrays that they do not hold."""

    def gzipped(name: str, block: bytes, times: int, head: bytes = b"") -> Path:
        """A gzip file of many members, so that a gigabyte is made in no time."""
        return _written(folder / name, gzip.compress(head) + gzip.compress(block) * times)

    def zipped(name: str, member: str, block: bytes, times: int) -> Path:
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(member, "w") as file:
            for _ in range(times):
                file.write(block)
        return folder / name

    def lying_npz(shape: str, descr: str) -> Path:
        text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
        array = b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text + b"\n" + bytes(64)
        with zipfile.ZipFile(folder / "v.npz", "w") as archive:
            archive.writestr("words.npy", array)
            archive.writestr("vectors.npy", array)
        return folder / "v.npz"

    def indexed(path: Path) -> object:
        return Corpus.from_pairs(read_pairs(path), str(path))

    return {
        "line of 1 GiB, .tsv.gz": lambda: pairs_of(gzipped("a.tsv.gz", MIB, 1024, HEADER)),
        "line of 1 GiB, .jsonl.gz": lambda: pairs_of(gzipped("a.jsonl.gz", b"[" * (1 << 20), 1024)),
        "line of 1 GiB, vectors .gz": lambda: vectors_of(gzipped("v.gz", MIB, 1024)),
        "90 MB of rows, .tsv.gz": lambda: indexed(gzipped("a.tsv.gz", ROWS, 100, HEADER)),
        "100 MB of lines, vectors .gz": lambda: vectors_of(gzipped("v.gz", LINES, 100)),
        "64 MiB of empty lines, .jsonl.gz": lambda: pairs_of(gzipped("a.jsonl.gz", b"\n" * (1 << 20), 64)),
        "zip bomb of 1 KB, one line": lambda: vectors_of(zipped("v.zip", "v.txt", bytes(1_000_000), 1)),
        "zip bomb, 256 MiB in one line": lambda: vectors_of(zipped("v.zip", "v.txt", MIB, 256)),
        "zip bomb, 100 MB of lines": lambda: vectors_of(zipped("v.zip", "v.txt", LINES, 100)),
        ".npz that declares 10 GB": lambda: vectors_of(lying_npz("(2500000000,)", "<f4")),
        ".npz that declares 10 EB": lambda: vectors_of(lying_npz("(2500000000, 1000000000)", "<f4")),
        ".npz of one word of 2 GB": lambda: vectors_of(lying_npz("(1,)", "<U500000000")),
        ".npz with 256 MiB of zeros in 256 KB": lambda: vectors_of(zipped("v.npz", "words.npy", MIB, 256)),
        ".npz header nested without end": lambda: vectors_of(lying_npz("(" * 5000, "<f4")),
    }


def tensors(folder: Path) -> Bombs:
    """Headers of safetensors files that declare what is not there."""

    def weights(shape: list[int], end: int, size: int | None = None, nested: int = 0) -> object:
        entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}
        text = b"[" * nested + json.dumps({"weight": entry}).encode()
        length = (len(text) if size is None else size).to_bytes(8, "little")
        return load_weights(_written(folder / "w", length + text + bytes(64)), nn.Linear(3, 5))

    return {
        "safetensors of a huge shape": lambda: weights([2**30, 2**20], 2**52),
        "safetensors of a shape that overflows": lambda: weights([2**62, 2**62], 2**63),
        "safetensors with a header of 2^63 bytes": lambda: weights([3], 12, size=2**63),
        "safetensors with a header of 90 MB": lambda: weights([3], 12, size=90_000_000),
        "safetensors with a nested header": lambda: weights([3], 12, nested=100_000),
    }


def nested(folder: Path) -> Bombs:
    """JSON that is nested without end."""
    return {
        "nested .jsonl": lambda: pairs_of(_written(folder / "a.jsonl", b"[" * 1_000_000)),
        "nested config.json": lambda: Run(_written(folder / "config.json", b'{"a":' * 10_000_000).parent).read_config(),
        "nested metrics.json": lambda: held_metrics(_written(folder / "metrics.json", b"[" * 10_000_000)),
    }


def models(folder: Path) -> Bombs:
    """Configurations of models that are larger than the weights."""

    def restored(change: dict[str, Any]) -> object:
        lexicon, run = make_run(folder / "run"), Run(folder / "run")
        config = json.loads(run.config.read_text())
        config["model"] |= change
        _written(run.config, json.dumps(config).encode())
        return restore(SCRIPT, run, lexicon)

    return {
        "config.json of a model of 4 TB": lambda: restored({"hidden_size": 10**6}),
        "config.json of 10^18 features": lambda: restored({"hidden_size": 10**18}),
        "config.json of a bias for 10^9 distances": lambda: restored({"intra_attention": True, "max_distance": 10**9}),
        "config.json with a size as text": lambda: restored({"hidden_size": "3"}),
    }


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def explode(name: str) -> dict[str, Any]:
    """Set off one bomb in this process: what came of it, and the bytes that the process grew by."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        pairs_of(_written(folder / "warm.tsv", HEADER + b"neutral\ta\tb\n"))
        before, started = held_at_most(), time.perf_counter()
        try:
            bombs(folder)[name]()
            outcome, message = "read", ""
        except InputError as error:
            outcome, message = "refused", str(error).replace(place, "").lstrip("/")
        except BaseException as error:  # a panic of Rust's is no Exception
            outcome, message = "failed", f"{type(error).__name__}: {error}"[:300]
        found = {"bomb": name, "outcome": outcome, "message": message}
        return found | {"grown": held_at_most() - before, "seconds": time.perf_counter() - started}


def explode_apart(*names: str) -> list[dict[str, Any]]:
    """The same, one after the other, in a process of their own, which has a peak of its own."""
    command = [sys.executable, "-m", "reliability.bombs", *names]
    root = Path(__file__).parents[1]
    paths = os.pathsep.join(str(root / part) for part in ("src", "examples", ""))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)
    if done.returncode != 0:
        return [{"bomb": names[-1], "outcome": "failed", "message": done.stderr[-300:], "grown": 0, "seconds": 0.0}]
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps(explode(name)))
