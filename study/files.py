"""The files of the data folder as the benches write them: lower-cased, words and marks cut apart."""

import csv
import gzip
import html
import re
from pathlib import Path

from nli_common.files import version_key, write_atomically

_FORMAT = 1
LABELS = ("entailment", "neutral", "contradiction")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def prepared(source: Path, folder: Path) -> Path:
    """A file that is cut into tokens: itself, or its copy in the folder. Pairs of other labels are left out."""
    with gzip.open(source, "rt", encoding="utf-8") as file:
        columns = file.readline().rstrip("\n").split("\t")
    if "sentence1_raw" in columns:
        return source
    target = folder / version_key(source, _FORMAT)[:16] / source.name
    if not target.exists():
        write_atomically(target, lambda path: _cut(source, path))
    return target


def _cut(source: Path, target: Path) -> None:
    with gzip.open(source, "rt", encoding="utf-8", newline="") as old, gzip.open(target, "wt", encoding="utf-8") as new:
        new.write("gold_label\tsentence1\tsentence2\n")
        for row in csv.DictReader(old, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["gold_label"] in LABELS:
                sides = (row[name if name in row else f"{name}_tok"] for name in ("sentence1", "sentence2"))
                new.write("\t".join([row["gold_label"], *map(tokens, sides)]) + "\n")


def tokens(text: str) -> str:
    """Words and marks, lower-cased.

    >>> tokens("It&apos;s a well-known Dog.")
    "it ' s a well - known dog ."
    """
    return " ".join(_TOKEN.findall(html.unescape(text).lower()))
