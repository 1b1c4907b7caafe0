"""Every reader of files, each with valid files, and with what must hold of anything that it makes of a hostile one."""

import contextlib
import gzip
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from decomposable_attention import SCRIPT, DecomposableAttention, DecomposableAttentionConfig
from nli_common.categories import read_categories
from nli_common.checkpoints import load_checkpoint, load_weights, save_checkpoint, save_weights
from nli_common.corpora import read_pairs
from nli_common.data import Corpus, open_corpus
from nli_common.errors import InputError
from nli_common.labels import scheme_of
from nli_common.lexicon import Lexicon
from nli_common.models import restore
from nli_common.recipe import Recipe
from nli_common.runs import Run, held_metrics, read_metrics
from nli_common.training import TrainingState
from nli_common.vectors import read_vectors
from reliability import mutations
from reliability.fuzzing import Reader

WORDS = ["the", "dog", "Cat", "naïve", "日本", "a"]
WANTED = {*WORDS, ". . .", "x", ""}
COLUMNS = ("gold_label", "sentence1", "sentence2", "pos1", "pos2", "phenomenon", "pairID")
ROWS = [
    ("entailment", "the dog", "a naïve dog", "DT NN", "DT JJ NN", "synonym", "1e"),
    ("neutral", "the 日本 Cat", "a dog", "DT NN NN", "DT NN", "", "2n"),
    ("-", "the", "a", "DT", "DT", "", "3-"),
    ("contradiction", "a dog", "the Cat", "DT NN", "DT NN", "negation", "4c"),
]
MEASURED = {
    "accuracy": 0.5,
    "pairs": 4,
    "per_class": {"neutral": 0.5},
    "per_phenomenon": {"x": 1.0},
    "confusion": [[1, 0], [2, 1]],
}
METRICS = {
    **dict.fromkeys(("test", "dev", "train"), MEASURED),
    "parameters": 7,
    "training_pairs": 4,
    "pairs_per_second": 1.5,
    "inference_pairs_per_second": 2.5,
    "best_epoch": 1,
    "history": [],
}
OPTIMIZERS = {kind: Recipe(optimizer=kind, lr=0.1).make_optimizer for kind in ("adam", "adagrad", "adamwr")}
GLOVE = "\n".join(f"{word} {i}.5 -{i}e-1 1" for i, word in enumerate((*WORDS, ". . ."))).encode()
ARRAYS = {"words": np.array(WORDS), "vectors": np.arange(18, dtype=np.float32).reshape(6, 3)}


def corpora() -> dict[str, list[bytes]]:
    """Sentence pairs in every format, as ``.jsonl`` and ``.tsv``."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
    tree = {"sentence1_parse": "(ROOT (NP (DT the) (NN dog)))", "sentence2_parse": "(ROOT (NP (DT A) (-LRB- -LRB-)))"}
    plain = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    parsed = "\n".join(json.dumps(row | tree | {"genre": "fiction"}) for row in rows)
    tsv = "\n".join("\t".join(row) for row in (COLUMNS, *ROWS))
    scitail = "A cell is small.\tCells are small.\tentails\nA wall.\tIt isn't 3,000.5 U.S. walls...\tneutral\n"
    quora = 'id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t1\t2\t"What\n\'s"\tWho?\t1\n2\t3\t4\t\tWhy?\t0\n'
    split = "1\tWhat is it?\tWho?\t3\n0\tA b\tC d\t4\n"
    made = {".jsonl": [plain, parsed], ".tsv": [tsv, scitail, quora, split]}
    return {suffix: [text.encode() for text in texts] for suffix, texts in made.items()}


def make_run(folder: Path) -> Lexicon:
    """The folder of a tiny run that could have been trained, and its lexicon."""
    folder.mkdir(parents=True)
    config, lexicon = DecomposableAttentionConfig(hidden_size=3), Lexicon(WORDS, torch.randn(6, 3), tags=["DT"])
    described = {"script": SCRIPT.name, "config": type(config).__name__, "model": asdict(config), "seed": 0}
    described["labels"] = ["entailment", "neutral", "contradiction"]
    (folder / "config.json").write_text(json.dumps(described))
    lexicon.save(folder / "lexicon.safetensors")
    save_weights(folder / "model.safetensors", DecomposableAttention(config, lexicon))
    (folder / "metrics.json").write_text(json.dumps(METRICS))
    return lexicon


def checkpoints(folder: Path) -> list[bytes]:
    """A checkpoint of each optimiser, in the order of ``OPTIMIZERS``."""
    layer = nn.Linear(3, 5)
    held = []
    for make in OPTIMIZERS.values():
        optimizer = make(layer)
        layer(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        history = [{"epoch": 1, "loss": 0.5, "dev": 0.5}]
        at = TrainingState(1, 2, 0.1, 1.5, best_epoch=0, best_accuracy=0.5, history=history)
        save_checkpoint(folder / "c", layer, optimizer, asdict(at))
        held.append((folder / "c").read_bytes())
    return held


def pairs_of(path: Path) -> None:
    """The pairs of a file, indexed: nothing is lost, and no sentence is empty."""
    pairs = list(read_pairs(path))
    corpus = Corpus.from_pairs(pairs, str(path))
    scheme_of(corpus.labels, str(path))
    labelled = [pair for pair in pairs if pair.label != "-"]
    assert [corpus.tokens(corpus.premise, i) for i in range(len(corpus))] == [pair.premise for pair in labelled]
    assert all(pair.premise and pair.hypothesis for pair in labelled)
    "".join(corpus.phenomena).encode()


def vectors_of(path: Path, wanted: set[str] = WANTED) -> None:
    """The vectors of a file: one width, finite numbers, words that were asked for."""
    found = read_vectors(path, wanted)
    assert len({vector.shape for vector in found.values()}) <= 1 and found.keys() <= wanted
    assert all(np.isfinite(vector).all() and len(vector) for vector in found.values())


def load_model(path: Path) -> None:
    """Weights: what they make of finite numbers is finite."""
    model = nn.Linear(3, 5)
    load_weights(path, model)
    assert model(torch.ones(2, 3)).isfinite().all()


def load_state(optimizer: Callable[[nn.Module], torch.optim.Optimizer]) -> Callable[[Path], None]:
    """A checkpoint: the training can make its next step."""

    def load(path: Path) -> None:
        model = nn.Linear(3, 5)
        made = optimizer(model)
        at = TrainingState.read(load_checkpoint(path, model, made), path)
        model(torch.ones(2, 3)).sum().backward()
        made.step()
        at.next_epoch(0.5, 0.5)

    return load


def load_lexicon(path: Path) -> None:
    """A lexicon: it can be extended, and a model can be built on it."""
    held = Lexicon.load(path).extended(["new", "the"])
    model = DecomposableAttention(DecomposableAttentionConfig(hidden_size=3), held)
    assert model.embedding.words.vectors.isfinite().all()
    assert held.ids(["new"]) and held.tag_ids(["DT", "x"])


def load_metrics(path: Path) -> None:
    """Metrics: a report can be made of them."""
    with contextlib.suppress(InputError):
        _report(held_metrics(path)[1])
    held = read_metrics(path)
    assert held["training_pairs"] / held["pairs_per_second"] > 0
    for split in ("dev", "test"):
        _report(held.get(split, MEASURED))


def _report(metrics: dict[str, Any]) -> str:
    groups = {**metrics["per_class"], **metrics["per_phenomenon"]}
    counts = [f"{count:,}" for row in metrics["confusion"] for count in row]
    return f"{metrics['pairs']:,} {100 * metrics['accuracy']:.1f} {[100 * value for value in groups.values()]} {counts}"


def readers(folder: Path) -> dict[str, Reader]:
    """Every reader, with what it needs in the folder."""
    held = corpora()
    jsonl, tsv = held[".jsonl"], held[".tsv"]
    lexicon = make_run(folder / "run")
    run = Run(folder / "run")
    make_run(folder / "weighed")
    save_weights(folder / "weights", nn.Linear(3, 5))
    (folder / "pairs.jsonl").write_bytes(jsonl[0])

    def load_run(path: Path) -> None:
        restore(SCRIPT, Run(path.parent), lexicon)

    def categories(path: Path) -> None:
        read_categories(path, folder / "pairs.jsonl")

    made = {
        "pairs, .jsonl": Reader(pairs_of, "a.jsonl", jsonl, mutations.json_lines, 16),
        "pairs, .tsv": Reader(pairs_of, "a.tsv", tsv, mutations.table, 20),
        "pairs, .jsonl.gz": Reader(pairs_of, "a.jsonl.gz", _gzipped(jsonl), mutations.in_gzip(mutations.json_lines), 6),
        "pairs, .tsv.gz": Reader(pairs_of, "a.tsv.gz", _gzipped(tsv), mutations.in_gzip(mutations.table), 6),
        "vectors, text": Reader(vectors_of, "v.txt", [GLOVE, b"7 3\n" + GLOVE], mutations.words, 14),
        "vectors, .gz": Reader(vectors_of, "v.gz", _gzipped([GLOVE]), mutations.in_gzip(mutations.words), 5),
        "vectors, .zip": Reader(vectors_of, "v.zip", [mutations.zipped(GLOVE)], mutations.in_zip, 8),
        "vectors, .npz": Reader(vectors_of, "v.npz", [mutations.npz(ARRAYS)], mutations.in_npz, 8),
        "metrics.json": Reader(load_metrics, "metrics.json", [json.dumps(METRICS).encode()], mutations.json_file, 8),
        "config.json": Reader(
            load_run, "run/config.json", [run.config.read_bytes()], mutations.json_file, 4, "model.safetensors"
        ),
        "annotations": Reader(
            categories, "x.txt", [b"1e\t#NEGATION #WORD_OVERLAP\n2n #Tense\n\n4c\t#x\n"], mutations.words
        ),
        "corpus cache": _cache(folder, tsv[0]),
    }
    tensors = {
        "lexicon": (load_lexicon, [run.lexicon.read_bytes()]),
        "weights": (load_model, [(folder / "weights").read_bytes()]),
        "a run's weights": (load_run, [Run(folder / "weighed").weights.read_bytes()]),
    }
    for (kind, make), content in zip(OPTIMIZERS.items(), checkpoints(folder), strict=True):
        tensors[f"checkpoint, {kind}"] = (load_state(make), [content])
    for key, (read, valid) in tensors.items():
        name = "weighed/model.safetensors" if key == "a run's weights" else f"{key}.safetensors"
        made[key] = Reader(read, name, valid, mutations.in_safetensors, 2 if key == "a run's weights" else 4)
    return made


def _gzipped(contents: list[bytes]) -> list[bytes]:
    return [gzip.compress(content, 1) for content in contents]


def _cache(folder: Path, tsv: bytes) -> Reader:
    """The cache of an indexed file, which is made again where it is not what was written."""
    source, cache = folder / "cached.tsv", folder / "cache"
    source.write_bytes(tsv)
    fresh = open_corpus(source, cache)
    (cached,) = cache.iterdir()

    def load(path: Path) -> None:
        path.replace(cached)
        again = open_corpus(source, cache)
        assert len(again) == len(again.phenomenon) and set(again.labels) <= set(fresh.labels)
        for side in (again.premise, again.hypothesis):
            assert all(again.tokens(side, i) for i in range(len(again)))

    return Reader(load, "c.safetensors", [cached.read_bytes()], mutations.in_safetensors, 1)
