"""Readers of sentence-pair files: one function, :func:`read_pairs`, for every format, told apart by their content.

* ``.jsonl`` as SNLI and MultiNLI are distributed: tokens and tags come from ``sentence1_parse``, ``sentence2_parse``.
* any other ``.jsonl``: ``gold_label``, ``sentence1``, ``sentence2`` and, optionally, ``pos1``, ``pos2``; tokens and
  tags are separated by spaces. Without tags, sentences whose marks are written to their words are raw text, and are
  cut as a treebank's are. A ``phenomenon`` (or MultiNLI's ``genre``) is kept for the report.
* ``.tsv`` with a header line that names those same columns; the ``.txt`` of SNLI, MultiNLI and HANS are read so, too.
* SciTail's ``.tsv``: premise, hypothesis, label, no header.
* SICK's ``.txt`` as published, or in SemEval-2014's splits: ``sentence_A``, ``sentence_B`` and an entailment label.
* Quora's ``.tsv``: the release with its header (``question1``, ``question2``, ``is_duplicate``), or the usual split of
  label, question, question, id, no header.

Each may be compressed (``.gz``).
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from nli_common.errors import InputError
from nli_common.files import text_lines
from nli_common.labels import KNOWN, NO_LABEL, NOT_NEEDED, QUORA
from nli_common.tokens import LONGEST_TOKEN, parse_leaves, split_text

SAMPLE = 1_000
"""Rows at the head of a file that tell whether its sentences are raw text."""
_CONTRACTED = r"(?:n['’]t|['’](?:s|m|d|re|ve|ll))(?=[ .,!?;:]|$)"
_ALONE = re.compile(rf"(?:^| )(?:[.,!?;:](?= |$)|{_CONTRACTED})")
_WRITTEN_TO_A_WORD = re.compile(rf"\w(?:[,!?;:](?= |$)|\.$|{_CONTRACTED})")
"""A full stop within a sentence is no sign: a treebank leaves an abbreviation its own."""
_SPACES = re.compile(r"\s+", flags=re.ASCII)
_SICK_HEADER = {"sentence_A", "sentence_B"}
_SICK_LABELS = ("entailment_label", "entailment_judgment")
_QUORA_HEADER = {"question1", "question2", "is_duplicate"}
Lines = Iterator[tuple[int, str]]
Row = Mapping[str, object]
Numbered = Iterator[tuple[int, "Pair"]]
"""Each pair with the line that it stands in."""


class Pair(NamedTuple):
    """One example; ``label`` is ``"-"`` where the annotators did not agree."""

    premise: list[str]
    hypothesis: list[str]
    label: str
    premise_pos: list[str] | None = None
    hypothesis_pos: list[str] | None = None
    phenomenon: str = ""
    pair_id: str = ""


def read_pairs(path: Path, *, labelled: bool = True) -> Iterator[Pair]:
    """The pairs of a file, in its order.

    Args:
        path: the file.
        labelled: whether it must say a label for each pair, and sentences only where it does; without, a file that has
            no ``gold_label`` will do, and every sentence must have a word.

    Raises:
        InputError: naming file and line, for whatever is not as the format says.
    """
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    if suffixes[-1:] == [".jsonl"]:
        rows = _jsonl(path)
        pairs = _from_rows(rows if labelled else _with_labels(rows), path)
    elif suffixes[-1:] in ([".tsv"], [".txt"]):
        pairs = _tsv(path, labelled=labelled)
    else:
        raise InputError(
            f"{path}: expected a file named .jsonl, .tsv or .txt, or one of these and .gz"
            f"{'; its columns can be written as .tsv' if suffixes[-1:] == ['.csv'] else ''}"
        )
    return (_checked(pair, path, number, labelled=labelled) for number, pair in pairs)


def _jsonl(path: Path) -> Iterator[tuple[int, Row]]:
    for number, line in text_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError.at(path, number, f"not JSON: {error}") from None
        if not isinstance(row, dict):
            raise InputError.at(path, number, f"expected a JSON object, got {type(row).__name__}")
        yield number, row


def _with_labels(rows: Iterator[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    return ((number, {**row, "gold_label": NO_LABEL} if row.get("gold_label") is None else row) for number, row in rows)


def _from_rows(rows: Iterator[tuple[int, Row]], path: Path) -> Numbered:
    head = list(islice(rows, SAMPLE))
    raw = _is_raw_text(row for _, row in head)
    for number, row in chain(head, rows):
        parsed = "sentence1_parse" in row
        yield number, _parsed(row, path, number) if parsed else _tokenised(row, path, number, raw=raw)


def _is_raw_text(rows: Iterable[Row]) -> bool:
    """Whether more marks and contractions are written to their words than stand alone."""
    alone = written_to_a_word = 0
    for row in rows:
        for text in (row.get("sentence1"), row.get("sentence2")):
            if isinstance(text, str):
                alone += len(_ALONE.findall(text.strip()))
                written_to_a_word += len(_WRITTEN_TO_A_WORD.findall(text.strip()))
    return written_to_a_word > alone


def _tsv(path: Path, *, labelled: bool) -> Numbered:
    lines = text_lines(path)
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path}: is empty, expected a header line")
    columns = first[1].split("\t")
    if set(columns) >= _QUORA_HEADER:
        return _quora_release(columns, lines, path)
    if set(columns) >= _SICK_HEADER:
        return _sick(columns, lines, path, labelled=labelled)
    if len(columns) == 3 and columns[2] in ("entails", "neutral"):
        return _headerless(chain([first], lines), path, columns=("premise", "hypothesis", "label"), names={})
    if len(columns) == 4 and columns[0] in ("0", "1"):
        return _headerless(chain([first], lines), path, columns=("label", "premise", "hypothesis", "id"), names=QUORA)
    return _with_header(columns, lines, path, labelled=labelled)


def _with_header(columns: list[str], lines: Lines, path: Path, *, labelled: bool) -> Numbered:
    _require(columns, path, 1, labelled=labelled)
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise InputError.at(path, 1, f"{', '.join(twice)} should be the name of one column, but is that of several")
    rows = ((number, _row(columns, line, path, number)) for number, line in lines if line)
    yield from _from_rows(rows if labelled else _with_labels(rows), path)


def _headerless(lines: Lines, path: Path, columns: tuple[str, ...], names: Mapping[str, str]) -> Numbered:
    for number, line in lines:
        if not line:
            continue
        row = _row(columns, line, path, number)
        premise, hypothesis = split_text(row["premise"]), split_text(row["hypothesis"])
        yield number, Pair(premise, hypothesis, names.get(row["label"], row["label"]))


def _sick(columns: list[str], lines: Lines, path: Path, *, labelled: bool) -> Numbered:
    """Raw text, whatever its marks say."""
    label = next((name for name in _SICK_LABELS if name in columns), None)
    if label is None and labelled:
        raise InputError.at(path, 1, f"no column {' or '.join(_SICK_LABELS)}; there are {', '.join(columns)}")
    for number, line in lines:
        if not line:
            continue
        row = _row(columns, line, path, number)
        premise, hypothesis = split_text(row["sentence_A"]), split_text(row["sentence_B"])
        gold = NO_LABEL if label is None else row[label]
        yield number, Pair(premise, hypothesis, gold, pair_id=_name(row, "pair_ID", path, number))


def _quora_release(columns: list[str], lines: Lines, path: Path) -> Numbered:
    """Its fields may be quoted, with line ends inside; a few of its questions are empty, and count as unlabelled."""
    place = 1

    def text() -> Iterator[str]:
        nonlocal place
        for number, line in lines:
            place = number
            yield line + "\n"

    rows = csv.reader(text(), delimiter="\t")
    while True:
        try:
            fields = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError.at(path, place, f"not tab-separated values: {error}") from None
        if not fields:
            continue
        if len(fields) != len(columns):
            raise InputError.at(path, place, f"expected {len(columns)} columns, got {len(fields)}")
        row = dict(zip(columns, fields, strict=True))
        questions = split_text(row["question1"]), split_text(row["question2"])
        label = QUORA.get(row["is_duplicate"], row["is_duplicate"])
        yield place, Pair(*questions, label if all(questions) else NO_LABEL)


def _parsed(row: Row, path: Path, number: int) -> Pair:
    _require(row, path, number, "sentence2_parse")
    premise, premise_pos = parse_leaves(_string(row, "sentence1_parse", path, number))
    hypothesis, hypothesis_pos = parse_leaves(_string(row, "sentence2_parse", path, number))
    label = _string(row, "gold_label", path, number)
    group, pair_id = _group(row, path, number), _name(row, "pairID", path, number)
    return Pair(premise, hypothesis, label, premise_pos, hypothesis_pos, group, pair_id)


def _tokenised(row: Row, path: Path, number: int, *, raw: bool) -> Pair:
    _require(row, path, number)
    label = _string(row, "gold_label", path, number)
    tagged = "pos1" in row or "pos2" in row
    if tagged:
        _require(row, path, number, "pos1", "pos2")
    cut = _cut if raw and not tagged else _split
    premise, hypothesis = (cut(row, name, path, number) for name in ("sentence1", "sentence2"))
    pos1, pos2 = (_split(row, name, path, number) if tagged else None for name in ("pos1", "pos2"))
    group, pair_id = _group(row, path, number), _name(row, "pairID", path, number)
    return Pair(premise, hypothesis, label, pos1, pos2, group, pair_id)


def _checked(pair: Pair, path: Path, number: int, *, labelled: bool) -> Pair:
    label = KNOWN.get(pair.label.lower())
    if label is None:
        advice = "" if labelled else NOT_NEEDED
        raise InputError.at(path, number, f"unknown label {pair.label!r}, expected one of {', '.join(KNOWN)}{advice}")
    if label != NO_LABEL or not labelled:
        _require_sentences(pair, path, number)
    return pair._replace(label=label)


def _require_sentences(pair: Pair, path: Path, number: int) -> None:
    sides = (("the premise", pair.premise, pair.premise_pos), ("the hypothesis", pair.hypothesis, pair.hypothesis_pos))
    for name, tokens, tags in sides:
        if not tokens:
            raise InputError.at(path, number, f"{name} is empty, expected at least one token")
        if any(len(token) > LONGEST_TOKEN for token in tokens):
            raise InputError.at(path, number, f"{name} has a token of more than {LONGEST_TOKEN:,} characters")
        if tags is not None and len(tags) != len(tokens):
            raise InputError.at(path, number, f"{name} has {len(tokens)} tokens but {len(tags)} tags")


def _require(row: Row | list[str], path: Path, number: int, *more: str, labelled: bool = True) -> None:
    wanted = ("sentence1", "sentence2", *(["gold_label"] if labelled else []), *more)
    missing = [name for name in wanted if name not in row]
    if missing:
        header = "; the first line has to name the columns" if isinstance(row, list) else ""
        raise InputError.at(path, number, f"no column {missing[0]}; there are {', '.join(row) or 'none'}{header}")


def _row(columns: list[str] | tuple[str, ...], line: str, path: Path, number: int) -> dict[str, str]:
    fields = line.split("\t")
    if len(fields) != len(columns):
        raise InputError.at(path, number, f"expected {len(columns)} columns, got {len(fields)}")
    return dict(zip(columns, fields, strict=True))


def _string(row: Row, name: str, path: Path, number: int) -> str:
    value = row[name]
    if not isinstance(value, str):
        raise InputError.at(path, number, f"{name} should be a string, got {_kind(value)}")
    return value


def _cut(row: Row, name: str, path: Path, number: int) -> list[str]:
    return split_text(_string(row, name, path, number))


def _split(row: Row, name: str, path: Path, number: int) -> list[str]:
    """Cut at ASCII's white space alone: a token may hold a no-break space, as some treebanks' fractions do."""
    return [token for token in _SPACES.split(_string(row, name, path, number)) if token]


def _group(row: Row, path: Path, number: int) -> str:
    heuristic = _name(row, "heuristic", path, number)
    if heuristic:  # HANS is reported by heuristic, with the pairs apart for which that is right
        return f"{heuristic}, {_name(row, 'gold_label', path, number)}"
    return _name(row, "phenomenon", path, number) or _name(row, "genre", path, number)


def _name(row: Row, column: str, path: Path, number: int) -> str:
    """What stands in a column that not every file has; it is printed and written, so it is text that UTF-8 has."""
    value = row.get(column)
    if value is None:
        return ""
    if not isinstance(value, str | int | float):
        raise InputError.at(path, number, f"{column} should be a string, got {_kind(value)}")
    return str(value).encode("utf-8", "replace").decode()


def _kind(value: object) -> str:
    """What JSON has in the place of a string; a container is not shown, for it may be nested without end."""
    return type(value).__name__ if isinstance(value, dict | list) else repr(value)
