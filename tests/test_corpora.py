"""The readers of sentence-pair files, and what they say of files that are not as they should be."""

import gzip
import json
import os
from pathlib import Path

import pytest

from nli_common.corpora import SAMPLE, Pair, read_pairs
from nli_common.data import Corpus, open_corpus
from nli_common.errors import InputError
from nli_common.files import stem, text_lines
from nli_common.inputs import fingerprint
from nli_common.labels import scheme_of
from nli_common.tokens import parse_leaves, split_text

QUORA = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
HEADER = "gold_label\tsentence1\tsentence2\n"


def snli_line(label: str = "entailment", premise: str = "(ROOT (NP (DT A) (NN dog)))", hypothesis: str = "") -> str:
    """A line of SNLI's own schema."""
    row = {
        "annotator_labels": [label],
        "captionID": "1.jpg#0",
        "gold_label": label,
        "pairID": "1.jpg#0r1e",
        "sentence1": "A dog",
        "sentence1_binary_parse": "( A dog )",
        "sentence1_parse": premise,
        "sentence2": "An animal (big).",
        "sentence2_binary_parse": "( An ( animal ( -LRB- ( big ( -RRB- . ) ) ) ) )",
        "sentence2_parse": hypothesis or "(ROOT (NP (DT An) (NN animal) (-LRB- -LRB-) (JJ big) (-RRB- -RRB-) (. .)))",
    }
    return json.dumps(row) + "\n"


def write(path: Path, text: str | bytes) -> Path:
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["snli.jsonl", "snli.jsonl.gz"])
def test_snli_tokens_and_tags_come_from_the_parses(tmp_path: Path, name: str) -> None:
    (pair,) = read_pairs(write(tmp_path / name, snli_line()))
    assert pair == Pair(
        premise=["A", "dog"],
        hypothesis=["An", "animal", "(", "big", ")", "."],
        label="entailment",
        premise_pos=["DT", "NN"],
        hypothesis_pos=["DT", "NN", "-LRB-", "JJ", "-RRB-", "."],
        pair_id="1.jpg#0r1e",
    )


def test_the_parses_of_snlis_table_are_read_too(tmp_path: Path) -> None:
    row = {name: value for name, value in json.loads(snli_line()).items() if isinstance(value, str)}
    text = "\t".join(row) + "\n" + "\t".join(row.values()) + "\n"
    for name in ("snli.tsv", "snli.txt", "snli.txt.gz"):
        assert list(read_pairs(write(tmp_path / name, text))) == list(
            read_pairs(write(tmp_path / "s.jsonl", snli_line()))
        )


RAW, CUT = ("A dog runs.", "It isn't well-known, is it?"), ("A dog runs .", "It is n't well-known , is it ?")


@pytest.mark.parametrize("sentences", [RAW, CUT], ids=["raw", "cut"])
@pytest.mark.parametrize("kind", ["tsv", "jsonl"])
def test_raw_text_is_cut_as_a_treebank_is_and_tokens_are_left_alone(
    tmp_path: Path, kind: str, sentences: tuple[str, str]
) -> None:
    row = dict(zip(("gold_label", "sentence1", "sentence2"), ("neutral", *sentences), strict=True))
    text = json.dumps(row) if kind == "jsonl" else HEADER + "\t".join(row.values())
    (pair,) = read_pairs(write(tmp_path / f"pairs.{kind}", text))
    assert pair.premise == CUT[0].split() and pair.hypothesis == CUT[1].split()
    # One sentence decides nothing about a file: here most marks stand alone.
    text = HEADER + "neutral\tMr. Low naps\tMrs. Low isn't up !\n" + 2 * "neutral\tA dog .\tA dog , too .\n"
    assert next(read_pairs(write(tmp_path / "pairs.tsv", text))).hypothesis == ["Mrs.", "Low", "isn't", "up", "!"]


def test_abbreviations_are_no_sign_of_raw_text(tmp_path: Path) -> None:
    """Nor is their full stop cut off in a file of tokens that has no other marks."""
    text = HEADER + "neutral\tMr. Low ca n't nap\tMrs. Low is n't up\n"
    pair = next(read_pairs(write(tmp_path / "pairs.tsv", text)))
    assert (pair.premise, pair.hypothesis) == (["Mr.", "Low", "ca", "n't", "nap"], ["Mrs.", "Low", "is", "n't", "up"])
    told = next(read_pairs(write(tmp_path / "raw.tsv", HEADER + "neutral\tMr. Low, can't nap\tLow naps\n")))
    assert told.premise == ["Mr", ".", "Low", ",", "ca", "n't", "nap"]


@pytest.mark.parametrize(
    ("written", "tokens"),
    [
        ("The man isn't here", "The man is n't here"),
        ("It's the cat's", "It 's the cat 's"),
        ("I'd say they've won, we'll see", "I 'd say they 've won , we 'll see"),
    ],
)
def test_contractions_tell_raw_text_where_there_are_no_marks(tmp_path: Path, written: str, tokens: str) -> None:
    for text in (written, tokens):
        (pair,) = read_pairs(write(tmp_path / "pairs.tsv", f"{HEADER}neutral\t{text}\tA man\n"))
        assert pair.premise == tokens.split()
    (pair,) = read_pairs(write(tmp_path / "pairs.tsv", HEADER + "neutral\tIt isn\u2019t\tA man\n"))
    assert pair.premise == ["It", "is", "n't"]
    (pair,) = read_pairs(write(tmp_path / "pairs.tsv", HEADER + "neutral\tO'Neil o'clock\tthe dogs' tails\n"))
    assert (pair.premise, pair.hypothesis) == (["O'Neil", "o'clock"], ["the", "dogs'", "tails"])


@pytest.mark.parametrize(
    "columns",
    [
        ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"),
        ("pair_ID", "sentence_A", "sentence_B", "entailment_label", "relatedness_score", "SemEval_set"),
    ],
    ids=["SemEval", "whole"],
)
def test_sick_is_read_as_published(tmp_path: Path, columns: tuple[str, ...]) -> None:
    given = {"pair_ID": "7", "sentence_A": "A man isn't here", "sentence_B": "A man, a dog", "relatedness_score": "4.5"}
    given |= dict.fromkeys(("entailment_judgment", "entailment_label"), "CONTRADICTION") | {"SemEval_set": "TRAIN"}
    text = "\t".join(columns) + "\n" + "\t".join(given[name] for name in columns) + "\n\n"
    path = write(tmp_path / "SICK.txt", text)
    expected = Pair(["A", "man", "is", "n't", "here"], ["A", "man", ",", "a", "dog"], "contradiction", pair_id="7")
    assert list(read_pairs(path)) == list(read_pairs(path, labelled=False)) == [expected]
    write(path, text.replace("CONTRADICTION", "MAYBE"))
    with pytest.raises(InputError, match=r"SICK.txt:2: unknown label 'MAYBE'"):
        list(read_pairs(path))
    write(path, "pair_ID\tsentence_A\tsentence_B\n7\tA man\tA dog\n")
    assert [pair.label for pair in read_pairs(path, labelled=False)] == ["-"]
    with pytest.raises(InputError, match=r"SICK.txt:1: no column entailment_label or entailment_judgment; there are"):
        list(read_pairs(path))


def test_whether_text_is_raw_is_told_by_the_head_of_the_file(tmp_path: Path) -> None:
    head = HEADER + "neutral\tA dog .\tA cat .\n" * SAMPLE
    read = list(read_pairs(write(tmp_path / "long.tsv", head + "neutral\tA dog.\tA cat.\n" * 2 * SAMPLE)))
    assert len(read) == 3 * SAMPLE and read[-1].premise == ["A", "dog."]


def test_sentences_with_tags_are_tokens(tmp_path: Path) -> None:
    text = "gold_label\tsentence1\tsentence2\tpos1\tpos2\nneutral\tMr. Low\tDr. Low\tA B\tA B\n"
    assert next(read_pairs(write(tmp_path / "pairs.tsv", text))).premise == ["Mr.", "Low"]


def test_the_labels_that_multinli_hides_are_none(tmp_path: Path) -> None:
    (pair,) = read_pairs(write(tmp_path / "blind.jsonl", snli_line("hidden")))
    assert pair.label == "-"


def test_letters_with_marks_are_one_character() -> None:
    assert split_text("Zu\u0308rich") == ["Z\u00fcrich"]


def test_a_phenomenon_stands_before_a_genre(tmp_path: Path) -> None:
    row = json.loads(snli_line()) | {"genre": "fiction", "phenomenon": "negation"}
    (pair,) = read_pairs(write(tmp_path / "mnli.jsonl", json.dumps(row)))
    assert pair.phenomenon == "negation"


@pytest.mark.parametrize("row", ["neutral\tb\tb\n", "neutral\ta\ta\n", "entailment\ta\tb\n"])
def test_corpora_that_differ_anywhere_have_other_digests(tmp_path: Path, row: str) -> None:
    head = HEADER + "neutral\ta b\ta b\nentailment\ta\ta\n"
    first, other = (write(tmp_path / f"{k}.tsv", head + last) for k, last in enumerate(("neutral\ta\tb\n", row)))
    assert open_corpus(first, tmp_path).digest != open_corpus(other, tmp_path).digest


def test_a_folder_whose_name_is_no_text_can_be_read(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    path = write(folder / "pairs.tsv", HEADER + "neutral\ta\tb\n")
    for _ in range(2):
        assert len(open_corpus(path, tmp_path / "cache")) == 1


def test_multinli_keeps_the_genre(tmp_path: Path) -> None:
    row = json.loads(snli_line()) | {"genre": "fiction"}
    (pair,) = read_pairs(write(tmp_path / "mnli.jsonl", json.dumps(row)))
    assert pair.phenomenon == "fiction"


def test_pairs_without_a_gold_label_are_dropped_and_counted(tmp_path: Path) -> None:
    text = snli_line("-") + snli_line("neutral") + snli_line("-")
    corpus = open_corpus(write(tmp_path / "snli.jsonl", text), tmp_path / "cache")
    assert (len(corpus), corpus.dropped, corpus.labels[corpus.label[0]]) == (1, 2, "neutral")


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.tsv.gz"])
def test_tsv_with_tags(tmp_path: Path, name: str) -> None:
    text = 'gold_label\tsentence1\tsentence2\tpos1\tpos2\nneutral\ta "dog\tcat\tDT UH NN\tNN\n'
    with pytest.raises(InputError, match=rf"{name}:2: the premise has 2 tokens but 3 tags"):
        list(read_pairs(write(tmp_path / name, text)))
    (pair,) = read_pairs(write(tmp_path / name, text.replace(" UH", "")))
    assert pair == Pair(["a", '"dog'], ["cat"], "neutral", ["DT", "NN"], ["NN"])


def test_plain_jsonl(tmp_path: Path) -> None:
    row = {"gold_label": "contradiction", "sentence1": "a b", "sentence2": "c", "phenomenon": "negation"}
    (pair,) = read_pairs(write(tmp_path / "p.jsonl", "\n" + json.dumps(row) + "\n"))
    assert pair == Pair(["a", "b"], ["c"], "contradiction", phenomenon="negation")


def test_scitail(tmp_path: Path) -> None:
    text = "Cells don't divide.\tThey grow.\tentails\nA cell.\tA wall.\tneutral\n"
    first, second = read_pairs(write(tmp_path / "scitail_1.0_train.tsv", text))
    assert first == Pair(["Cells", "do", "n't", "divide", "."], ["They", "grow", "."], "entailment")
    assert second.label == "neutral"
    corpus = open_corpus(tmp_path / "scitail_1.0_train.tsv", tmp_path / "cache")
    assert corpus.labels == ("entailment", "neutral")


def test_quora_release_with_quoted_line_ends_and_an_empty_question(tmp_path: Path) -> None:
    text = QUORA + '0\t1\t2\t"What\nis it?"\tWhat is it?\t1\n1\t3\t4\tWho?\t\t0\n2\t5\t6\tWho?\tWhy?\t0\n'
    first, second, third = read_pairs(write(tmp_path / "quora.tsv", text))
    assert first == Pair(["What", "is", "it", "?"], ["What", "is", "it", "?"], "duplicate")
    assert (second.label, third.label) == ("-", "not_duplicate")
    assert len(list(read_pairs(write(tmp_path / "quora.tsv", text + "\n\n")))) == 3, "blank lines"
    with pytest.raises(InputError, match=r"quora.tsv:2: expected 6 columns, got 2"):
        list(read_pairs(write(tmp_path / "quora.tsv", QUORA + "0\t1\n")))
    with pytest.raises(InputError, match=r"quora.tsv:2: unknown label '7'"):
        list(read_pairs(write(tmp_path / "quora.tsv", QUORA + "0\t1\t2\ta\tb\t7\n")))


def test_quora_split_without_header(tmp_path: Path) -> None:
    first, second = read_pairs(write(tmp_path / "train.tsv", "1\tWho is it?\tWho?\t7\n0\tWho?\tWhy?\t8\n"))
    assert first == Pair(["Who", "is", "it", "?"], ["Who", "?"], "duplicate")
    assert second.label == "not_duplicate"
    with pytest.raises(InputError, match=r"rte.tsv:2: unknown label '1', expected one of entailment"):
        list(read_pairs(write(tmp_path / "rte.tsv", HEADER + "1\ta\tb\n")))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.tsv",
            "gold_label\tsentence1\nneutral\ta\n",
            r"a.tsv:1: no column sentence2; there are gold_label, sentence1; the first line has to name the columns",
        ),
        ("a.jsonl", '{"gold_label": "neutral"}\n', r"a.jsonl:1: no column sentence1"),
        (
            "a.tsv",
            "gold_label\tsentence1\tsentence2\tsentence1\nneutral\ta\tb\tc\n",
            r"a.tsv:1: sentence1 should be the name of one column, but is that of several",
        ),
        ("a.jsonl", snli_line().replace("sentence2_parse", "parse"), r"a.jsonl:1: no column sentence2_parse"),
        ("a.tsv", HEADER + "neutral\ta\tb\nmaybe\ta\tb\n", r"a.tsv:3: unknown label 'maybe', expected one of entail"),
        ("a.jsonl", snli_line() + snli_line("?"), r"a.jsonl:2: unknown label '\?'"),
        (
            "a.tsv",
            HEADER + "neutral\ta\tb\nneutral\t \tb\n",
            r"a.tsv:3: the premise is empty, expected at least one token",
        ),
        ("a.jsonl", snli_line(premise="(ROOT)"), r"a.jsonl:1: the premise is empty"),
        ("a.tsv", HEADER + "neutral\ta\n", r"a.tsv:2: expected 3 columns, got 2"),
        ("a.tsv", "", r"a.tsv: is empty, expected a header line"),
        ("a.jsonl", "", r"a.jsonl: no labelled pair in it \(and none without a gold label\)"),
        ("a.jsonl", snli_line("-"), r"a.jsonl: no labelled pair in it \(1 without a gold label\)"),
        ("a.jsonl", "{\n", r"a.jsonl:1: not JSON: "),
        ("a.jsonl", "[1]\n", r"a.jsonl:1: expected a JSON object, got list"),
        (
            "a.jsonl",
            '{"gold_label": 1, "sentence1": "a", "sentence2": "b"}',
            r"a.jsonl:1: gold_label should be a string",
        ),
        ("a.tsv", HEADER.encode() + b"neutral\ta\tb\nneutral\t\xff\tb\n", r"a.tsv:3: invalid UTF-8 at byte 8"),
        ("a.csv", "x", r"a.csv: expected a file named .jsonl, .tsv"),
        (
            "a.tsv",
            HEADER + "duplicate\ta\tb\nneutral\ta\tb\n",
            r"a.tsv: the labels duplicate, neutral are not those of any one",
        ),
        (
            "a.tsv",
            QUORA + "1\t1\t2\ta\tb\t0\n2\t3\t4\t" + "a " * 80_000 + "\tb\t0\n",
            r"a.tsv:3: not tab-separated values: field larger than field limit",
        ),
        ("a.tsv", QUORA + '1\t1\t2\t"a\nb"\tb\t0\n2\t3\t4\n', r"a.tsv:4: expected 6 columns, got 3"),
    ],
)
def test_bad_files_name_file_and_line(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        open_corpus(write(tmp_path / name, text), tmp_path / "cache")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "cache").exists()


def test_truncated_and_damaged_gzip(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv.gz", HEADER + "".join(f"neutral\tword{i}\tb\n" for i in range(9999)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"a.tsv.gz:\d+: the compressed data ends too early"):
        list(read_pairs(path))
    path.write_bytes(b"this is no gzip")
    with pytest.raises(InputError, match=r"a.tsv.gz:1: damaged compressed data"):
        list(read_pairs(path))
    path.write_bytes(whole[:100] + bytes(50) + whole[150:])
    with pytest.raises(InputError, match=r"a.tsv.gz:1: damaged compressed data \(Error -3"):
        list(read_pairs(path))


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.tsv: no such file"):
        open_corpus(tmp_path / "none.tsv", tmp_path / "cache")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"none.tsv: cannot be read \(Not a directory\)"):
        open_corpus(tmp_path / "file" / "none.tsv", tmp_path / "cache")
    (tmp_path / "folder.tsv").mkdir()
    with pytest.raises(InputError, match=r"folder.tsv: is a folder, expected a file"):
        open_corpus(tmp_path / "folder.tsv", tmp_path / "cache")


def same(one: Corpus, other: Corpus) -> bool:
    arrays = (
        (*one.premise, *one.hypothesis, one.label, one.phenomenon),
        (*other.premise, *other.hypothesis, other.label, other.phenomenon),
    )
    strings = all(getattr(one, k) == getattr(other, k) for k in ("words", "tags", "labels", "phenomena", "digest"))
    return strings and all(
        (x is None and y is None) or (x is not None and y is not None and x.tolist() == y.tolist())
        for x, y in zip(*arrays, strict=True)
    )


def test_the_cache_holds_all_and_notices_changes(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "a.jsonl", snli_line() + snli_line("-")), tmp_path / "cache"
    fresh = open_corpus(path, cache)
    (cached,) = cache.iterdir()
    again = open_corpus(path, cache)
    assert same(fresh, again) and again.dropped == 1
    cached.write_bytes(cached.read_bytes()[:50])
    assert same(open_corpus(path, cache), fresh), "a damaged cache is built anew"
    write(path, snli_line("neutral") + snli_line("-"))
    assert open_corpus(path, cache).labels[int(open_corpus(path, cache).label[0])] == "neutral"


def test_task_label_sets_and_the_labels_that_occur(tmp_path: Path) -> None:
    corpus = open_corpus(write(tmp_path / "a.tsv", HEADER + "entailment\ta\tb\n"), tmp_path / "cache")
    assert corpus.labels == ("entailment",)
    assert scheme_of({"entailment"}, "a") == ("entailment", "neutral")
    assert scheme_of({"entailment", "contradiction"}, "a") == ("entailment", "neutral", "contradiction")
    assert scheme_of({"not_entailment"}, "a") == ("entailment", "not_entailment")


def test_labels_are_read_in_any_case_and_by_what_else_they_are_called(tmp_path: Path) -> None:
    written = ["Entailment", "NEUTRAL", "non-entailment", "not_entailment", "Hidden", "-"]
    path = write(tmp_path / "a.tsv", HEADER + "".join(f"{label}\ta\tb\n" for label in written))
    assert [pair.label for pair in read_pairs(path)] == [
        "entailment",
        "neutral",
        "not_entailment",
        "not_entailment",
        "-",
        "-",
    ]


def test_hans_is_grouped_by_heuristic_and_whether_that_is_right(tmp_path: Path) -> None:
    names = ("gold_label", "sentence1_parse", "sentence2_parse", "sentence1", "sentence2", "pairID", "heuristic")
    parse = "(ROOT (S (NP (DT the) (NN dog)) (VP (VBD ran))))"
    rows = [
        (label, parse, parse, "the dog ran", "the dog ran", f"ex{n}", "lexical_overlap")
        for n, label in enumerate(("entailment", "non-entailment"))
    ]
    path = write(tmp_path / "hans.txt", "".join("\t".join(row) + "\n" for row in (names, *rows)))
    told = [(pair.label, pair.phenomenon, pair.pair_id, pair.premise_pos) for pair in read_pairs(path)]
    assert told == [
        ("entailment", "lexical_overlap, entailment", "ex0", ["DT", "NN", "VBD"]),
        ("not_entailment", "lexical_overlap, non-entailment", "ex1", ["DT", "NN", "VBD"]),
    ]


def test_what_is_read_without_labels_has_no_empty_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "sentence1\tsentence2\na\tb\n\n \tb\n")
    with pytest.raises(InputError, match=r"a.tsv:4: the premise is empty, expected at least one token"):
        list(read_pairs(path, labelled=False))
    path = write(tmp_path / "b.tsv", QUORA + "1\t1\t2\ta\tb\t0\n2\t3\t4\t\tb\t0\n")
    assert [pair.label for pair in read_pairs(path)] == ["not_duplicate", "-"]
    with pytest.raises(InputError, match=r"b.tsv:3: the premise is empty"):
        list(read_pairs(path, labelled=False))


def test_unlabelled_pairs_may_be_empty_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", HEADER + "-\t\tb\n\nneutral\ta\tb\n\n")
    assert [pair.label for pair in read_pairs(path)] == ["-", "neutral"]
    path = write(tmp_path / "b.tsv", "A cell.\tA wall.\tneutral\n\n")
    assert len(list(read_pairs(path))) == 1


def test_byte_order_marks_and_windows_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "\ufeff" + HEADER.replace("\n", "\r\n") + "neutral\ta\tb c\r\n")
    assert list(read_pairs(path)) == [Pair(["a"], ["b", "c"], "neutral")]


def test_only_a_files_first_character_is_a_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "\ufeffone\n\ufefftwo\n")
    assert list(text_lines(path)) == [(1, "one"), (2, "\ufefftwo")]


def test_tokens_are_cut_at_spaces_alone(tmp_path: Path) -> None:
    row = {
        "gold_label": "neutral",
        "sentence1": "1\u00a01/2  cups",
        "sentence2": "a\u2028b",
        "pos1": "CD NNS",
        "pos2": "X",
    }
    (pair,) = read_pairs(write(tmp_path / "a.jsonl", json.dumps(row, ensure_ascii=False)))
    assert pair.premise == ["1\u00a01/2", "cups"] and pair.hypothesis == ["a\u2028b"]


def test_tags_for_all_pairs_or_for_none(tmp_path: Path) -> None:
    bare = json.dumps({"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}) + "\n"
    with pytest.raises(InputError, match=r"a.jsonl: pair 2 differs from those before it: all have tags, or none has"):
        open_corpus(write(tmp_path / "a.jsonl", snli_line() + bare), tmp_path / "cache")
    half = json.dumps({"gold_label": "neutral", "sentence1": "a", "sentence2": "b", "pos1": "X"})
    with pytest.raises(InputError, match=r"a.jsonl:1: no column pos2"):
        open_corpus(write(tmp_path / "a.jsonl", half), tmp_path / "cache")


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    corpus = open_corpus(write(tmp_path / "a.jsonl", snli_line()), tmp_path / "file" / "cache")
    assert len(corpus) == 1 and "the corpus is not kept for the next time" in capsys.readouterr().err


def test_parse_leaves_restore_what_the_treebank_escapes() -> None:
    assert parse_leaves(r"(NP (CD 1\u00a01\/2) (CC and\/or) (SYM \*))".replace("\\u00a0", "\u00a0"))[0] == [
        "1\u00a01/2",
        "and/or",
        "*",
    ]


def test_parse_leaves_of_deep_trees() -> None:
    parse = "(ROOT (S (NP (NP (NNS Kids)) (PP (IN at) (NP (NN camp)))) (VP (VBP sing)) (. .)))"
    assert parse_leaves(parse) == (["Kids", "at", "camp", "sing", "."], ["NNS", "IN", "NN", "VBP", "."])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("She isn't John's.", "She is n't John 's ."),
        ("don’t", "do n't"),
        ("the 1st of 1990s 3D, 4x4", "the 1st of 1990s 3D , 4x4"),
        ("3,000.50 at 10:30 on 1/2", "3,000.50 at 10:30 on 1/2"),
        ("the U.S. economy ...", "the U.S. economy ..."),
        ("a well-known naïve Größe, 東京!", "a well-known naïve Größe , 東京 !"),
        ("He cannot swim. CANNOT he?", "He can not swim . CAN NOT he ?"),
        ('"Stop," she said ("now")', "`` Stop , '' she said ( `` now '' )"),
        ("“Stop”, ‘now’", "`` Stop '' , ` now '"),
        ("a dog -- a big one", "a dog -- a big one"),
        ("wait---what", "wait --- what"),
        ("cannots", "cannots"),
        ("  ", ""),
    ],
)
def test_split_text(text: str, tokens: str) -> None:
    assert split_text(text) == tokens.split()


def test_the_cache_notices_a_change_that_keeps_the_size(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "a.tsv", HEADER + "entailment\ta dog\tb\n"), tmp_path / "cache"
    assert "dog" in open_corpus(path, cache).words
    write(path, HEADER + "entailment\ta cat\tb\n")
    os.utime(path, ns=(1, 1))
    assert "cat" in open_corpus(path, cache).words


def test_a_digest_is_of_every_label_and_phenomenon() -> None:
    pairs = [Pair(["a"], ["b"], label, None, None, "x") for label in ("neutral", "entailment", "neutral")]
    pairs.append(pairs[0]._replace(phenomenon="y"))
    digest = Corpus.from_pairs(pairs, "x").digest
    for change in ({"label": "entailment"}, {"phenomenon": "y"}):
        changed = [*pairs[:2], pairs[2]._replace(**change), pairs[3]]
        assert Corpus.from_pairs(changed, "x").digest != digest


def test_a_fingerprint_is_of_both_ends(tmp_path: Path) -> None:
    prints = set()
    for name, (first, last) in {"a": (0, 0), "b": (1, 0), "c": (0, 1)}.items():
        (tmp_path / name).write_bytes(bytes([first]) + bytes((3 << 20) - 2) + bytes([last]))
        prints.add(fingerprint(tmp_path / name))
    assert len(prints) == 3


@pytest.mark.parametrize("suffix", ["jsonl", "tsv", "txt"])
def test_a_name_loses_the_suffixes_of_its_format(suffix: str) -> None:
    assert stem(Path(f"nli_1.0_dev.{suffix}")) == stem(Path(f"nli_1.0_dev.{suffix}.gz")) == "nli_1.0_dev"


def test_a_quora_split_may_begin_with_any_label(tmp_path: Path) -> None:
    first, second = read_pairs(write(tmp_path / "dev.tsv", "0\tWho?\tWhy?\t8\n1\tWho is it?\tWho?\t7\n"))
    assert (first, second.label) == (Pair(["Who", "?"], ["Why", "?"], "not_duplicate"), "duplicate")


def test_parse_leaves_restore_every_bracket() -> None:
    parse = "(NP (-LSB- -LSB-) (NN a) (-RSB- -RSB-) (-LCB- -LCB-) (NN b) (-RCB- -RCB-))"
    assert parse_leaves(parse)[0] == ["[", "a", "]", "{", "b", "}"]


def test_the_pair_without_tags_is_counted_among_all(tmp_path: Path) -> None:
    bare = json.dumps({"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}) + "\n"
    path = write(tmp_path / "a.jsonl", snli_line() + snli_line("-") + bare)
    with pytest.raises(InputError, match=r"a.jsonl: pair 3 differs from those before it"):
        open_corpus(path, tmp_path / "cache")
