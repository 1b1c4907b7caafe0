"""How the example scripts' data side scales: SNLI's size and schema, and a vector file of GloVe 840B's size.

    python -m benchmarks.scale --pairs 550000 --words 2200000

Each figure is taken in a process of its own, so that its peak memory is its own; the files are made first, in a
temporary folder, and are not timed. Writes ``benchmarks/scale.json`` and ``benchmarks/scale.md``.
"""

import argparse
import json
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.memory import held_at_most
from nli_common.files import write_text

HERE = Path(__file__).parent

VOCABULARY = 36_614
"""Words of SNLI's hypotheses (Nguyen 2019, Table 2)."""
MEASURES = ("read", "open", "batches", "vectors")


def write_snli(path: Path, pairs: int) -> None:
    """SNLI's own schema, its lengths (14 and 8 tokens on average) and its vocabulary, drawn by Zipf's law."""
    rng, labels = random.Random(0), ["entailment", "neutral", "contradiction"]
    words = [f"w{i:x}" for i in range(VOCABULARY)]
    shares = [1 / (i + 1) for i in range(VOCABULARY)]
    drawn = iter(rng.choices(words, shares, k=30 * pairs))

    def sentence(mean: int) -> dict[str, str]:
        tokens = [next(drawn) for _ in range(max(2, round(rng.gauss(mean, 3))))]
        chunks = " ".join(f"(NP (DT {a}) (NN {b}))" for a, b in zip(tokens[::2], tokens[1::2], strict=False))
        rest = f" (VP (VBG {tokens[-1]}))" if len(tokens) % 2 else ""
        return {
            "": " ".join(tokens) + ".",
            "_binary_parse": "( " * len(tokens) + " ) ".join(tokens) + " ) .",
            "_parse": f"(ROOT (S {chunks}{rest} (. .)))",
        }

    with path.open("w") as file:
        for i in range(pairs):
            row = {"annotator_labels": [rng.choice(labels)], "captionID": f"{i}.jpg#0", "pairID": f"{i}.jpg#0r1c"}
            row["gold_label"] = "-" if i % 500 == 0 else row["annotator_labels"][0]
            for name, mean in (("sentence1", 13), ("sentence2", 7)):
                row |= {name + key: text for key, text in sentence(mean).items()}
            file.write(json.dumps(row) + "\n")


def write_vectors(path: Path, words: int) -> None:
    """GloVe 840B's text format: 300 numbers a line, now and then a token with spaces."""
    rng = np.random.default_rng(0)
    tails = [" ".join(f"{x:.5f}" for x in row) for row in rng.normal(0, 0.4, (500, 300))]
    with path.open("w", buffering=1 << 22) as file:
        for i in range(words):
            word = f"w{i:x}" if i % 100_000 != 7 else ". . ."
            file.write(f"{word} {tails[i % 500]}\n")


def read(folder: Path) -> dict[str, float]:
    """Read the .jsonl, index it and write the cache."""
    from nli_common.data import open_corpus

    started = time.perf_counter()
    corpus = open_corpus(folder / "snli.jsonl", folder / "cache")
    return {"seconds": time.perf_counter() - started, "pairs": len(corpus), "dropped": corpus.dropped}


def open_cached(folder: Path) -> dict[str, float]:
    """Open the same corpus from its cache."""
    from nli_common.data import open_corpus

    started = time.perf_counter()
    corpus = open_corpus(folder / "snli.jsonl", folder / "cache")
    return {"seconds": time.perf_counter() - started, "pairs": len(corpus)}


def batches(folder: Path) -> dict[str, float]:
    """Assemble shuffled, length-bucketed, padded batches with tags, through the loader that training uses."""
    from accelerate import Accelerator

    from nli_common.batches import PairDataset, loader
    from nli_common.data import open_corpus
    from nli_common.lexicon import Lexicon

    corpus = open_corpus(folder / "snli.jsonl", folder / "cache")
    dataset = PairDataset(corpus, Lexicon.random(corpus.words, 1, tags=corpus.tags), corpus.labels, corpus.phenomena)
    result: dict[str, float] = {}
    for size in (32, 64, 256):
        prepared = Accelerator().prepare(loader(dataset, size, seed=0))
        started = time.perf_counter()
        count = sum(len(batch.label) for batch in prepared)
        result[f"pairs_per_second_at_{size}"] = count / (time.perf_counter() - started)
    return result


def vectors(folder: Path) -> dict[str, float]:
    """Scan the vector file for the corpus's words."""
    from nli_common.vectors import read_vectors

    wanted = {f"w{i:x}" for i in range(VOCABULARY)}
    started = time.perf_counter()
    found = read_vectors(folder / "vectors.txt", wanted)
    seconds = time.perf_counter() - started
    size = (folder / "vectors.txt").stat().st_size
    return {"seconds": seconds, "megabytes_per_second": size / 1e6 / seconds, "found": len(found), "bytes": size}


RUN: dict[str, Callable[[Path], dict[str, float]]] = dict(
    zip(MEASURES, (read, open_cached, batches, vectors), strict=True)
)


def measured(name: str, folder: Path) -> dict[str, float]:
    """One measure in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.scale", "--measure", name, "--folder", str(folder)]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    """Make the files, take every measure, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=550_000, help="pairs of the .jsonl file")
    parser.add_argument("--words", type=int, default=2_200_000, help="words of the vector file")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each measure")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        figures = RUN[options.measure](options.folder)
        print(json.dumps(figures | {"peak_gib": held_at_most() / 1024**3}))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_snli(folder / "snli.jsonl", options.pairs)
        runs: dict[str, list[dict[str, float]]] = {}
        for measure in MEASURES:
            if measure == "vectors":
                write_vectors(folder / "vectors.txt", options.words)
            for _ in range(options.repeats):
                if measure == "read":
                    for cached in (folder / "cache").glob("*"):
                        cached.unlink()
                runs.setdefault(measure, []).append(measured(measure, folder))
        size = (folder / "snli.jsonl").stat().st_size
    result = {
        "command": "python -m benchmarks.scale "
        f"--pairs {options.pairs} --words {options.words} --repeats {options.repeats}",
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "jsonl_bytes": size,
        "runs": runs,
    }
    write_text(HERE / "scale.json", json.dumps(result, indent=2) + "\n")
    write_text(HERE / "scale.md", table(result))
    print(table(result))


def table(result: dict) -> str:
    """The figures as Markdown: medians, with the least and the greatest."""

    def row(title: str, measure: str, key: str, digits: int = 1) -> str:
        values = [run[key] for run in result["runs"][measure]]
        spread = f"{min(values):,.{digits}f} to {max(values):,.{digits}f}"
        return f"| {title} | {statistics.median(values):,.{digits}f} | {spread} |"

    pairs, words = int(result["runs"]["read"][0]["pairs"]), int(result["runs"]["vectors"][0]["found"])
    rows = [
        f"`{result['command']}`, {result['machine']}",
        "",
        f"A `.jsonl` in SNLI's schema, {result['jsonl_bytes'] / 1e6:,.0f} MB, {pairs:,} labelled pairs; a GloVe text "
        f"file, {result['runs']['vectors'][0]['bytes'] / 1e9:.1f} GB, of which {words:,} words are kept.",
        "",
        "| measure | median | least to greatest |",
        "|---|---:|---:|",
        row("read, index and cache the corpus, s", "read", "seconds"),
        row("… peak memory, GiB", "read", "peak_gib", 2),
        row("open it from the cache, s", "open", "seconds", 2),
        row("batches of 32, pairs/s", "batches", "pairs_per_second_at_32", 0),
        row("batches of 64, pairs/s", "batches", "pairs_per_second_at_64", 0),
        row("batches of 256, pairs/s", "batches", "pairs_per_second_at_256", 0),
        row("scan the vector file, MB/s", "vectors", "megabytes_per_second", 0),
        row("… peak memory, GiB", "vectors", "peak_gib", 2),
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
