"""The lexicon and the files that word vectors come in."""

import gzip
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from nli_common.errors import InputError
from nli_common.inputs import Data
from nli_common.lexicon import GLOVE_LENGTH, NUM_HASHED, Lexicon
from nli_common.vectors import read_vectors

GLOVE = "the 0.5 1.0 -2.0\n. . . 9 9 9\nDog 1e-2 0 3\n日本 7 8 9\ndog 4 5 6\n"
EXPECTED = {"the": [0.5, 1.0, -2.0], "Dog": [0.01, 0.0, 3.0], "日本": [7.0, 8.0, 9.0]}


def write_vectors(folder: Path, kind: str, text: str = GLOVE) -> Path:
    path = folder / f"vectors.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("glove.txt", text)
    elif kind == "npz":
        rows = [line.rsplit(" ", 3) for line in text.splitlines()]
        vectors = np.array([[float(x) for x in row[1:]] for row in rows], dtype=np.float16)
        np.savez(path, words=np.array([row[0] for row in rows]), vectors=vectors)
    else:
        path.write_bytes(gzip.compress(text.encode()) if kind == "gz" else text.encode())
    return path


@pytest.mark.parametrize("kind", ["txt", "gz", "zip", "npz"])
def test_only_the_wanted_words_are_kept(tmp_path: Path, kind: str) -> None:
    found = read_vectors(write_vectors(tmp_path, kind), {"the", "Dog", "日本", "absent"})
    assert {word: vector.tolist() for word, vector in found.items()} == {
        word: pytest.approx(vector, rel=1e-3) for word, vector in EXPECTED.items()
    }
    assert all(vector.dtype == np.float32 for vector in found.values())


def test_peer_bug_9_tokens_with_spaces_are_cut_from_the_right(tmp_path: Path) -> None:
    """GloVe 840B has tokens such as ". . .": they neither shift the numbers nor pass for their first part."""
    path = write_vectors(tmp_path, "txt")
    assert read_vectors(path, {"."}) == {}
    assert read_vectors(path, {". . ."})[". . ."].tolist() == [9.0, 9.0, 9.0]


def test_the_first_of_two_rows_of_a_word_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", words=np.array(["a", "b", "a"]), vectors=np.arange(6.0).reshape(3, 2))
    assert read_vectors(tmp_path / "v.npz", {"a"})["a"].tolist() == [0, 1]


def test_the_first_of_two_lines_of_a_word_is_read(tmp_path: Path) -> None:
    found = read_vectors(write_vectors(tmp_path, "txt", "the 1 2 3\na 1 1 1\nthe 4 5 6\n"), {"the"})
    assert found["the"].tolist() == [1.0, 2.0, 3.0]


def test_empty_lines_are_passed_over(tmp_path: Path) -> None:
    found = read_vectors(write_vectors(tmp_path, "txt", "a 1 2\n\n  \nb 3 4\n\n"), {"a", "b"})
    assert {word: vector.tolist() for word, vector in found.items()} == {"a": [1, 2], "b": [3, 4]}


def test_fasttext_header_and_trailing_spaces(tmp_path: Path) -> None:
    text = "2 3\nthe 1 2 3 \ndog 4 5 6 \n"
    for start in ("", "\ufeff"):
        found = read_vectors(write_vectors(tmp_path, "txt", start + text), {"the", "2"})
        assert found["the"].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2 3\na 1 2 3\ndog 1 2\n", r"vectors.txt:3: expected a word and 3 numbers, got 2"),
        ("the 1 2 3\na 1 2 3\ndog 1 2 3 4\n", r"vectors.txt:3: expected a word and 3 numbers, got 4"),
        ("the 1 2 3\ndog 1 two 3\n", r"vectors.txt:2: 'dog' is followed by something that is not a number"),
        ("", r"vectors.txt: has no vectors, expected a word"),
        ("dog\n", r"vectors.txt:1: expected a word and numbers, with spaces between them, got no space"),
        ("dog\t1\t2\ncat\t3\t4\n", r"vectors.txt:1: expected a word .* spaces between them, got no space"),
        ("dog nan 1\n", r"vectors.txt:1: the vector of 'dog' has a number that is not finite"),
        ("dog 1e300 1\n", r"vectors.txt:1: the vector of 'dog' has a number that is not finite"),
    ],
)
def test_bad_text_files_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_vectors(write_vectors(tmp_path, "txt", text), {"dog"})


def test_truncated_archives_name_the_file(tmp_path: Path) -> None:
    long = "".join(f"word{i} {i} {i + 0.5} 2\n" for i in range(5000))
    messages = {
        "gz": r"vectors.gz:1: the compressed data ends too early: the file is truncated or still being written",
        "zip": r"vectors.zip:1: damaged compressed data \(File is not a zip file\)",
        "npz": r"vectors.npz: not an .npz file of plain arrays \(File is not a zip file\)",
    }
    for kind, message in messages.items():
        path = write_vectors(tmp_path, kind, long)
        path.write_bytes(path.read_bytes()[:2000])
        with pytest.raises(InputError, match=message):
            read_vectors(path, {"word4999"})


def test_an_archive_of_two_files_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.txt", GLOVE)
        archive.writestr("b.txt", GLOVE)
    with pytest.raises(
        InputError, match=r"two.zip: expected one file in the archive, found 2: .*, .*; unpack the one you want"
    ):
        read_vectors(tmp_path / "two.zip", {"the"})


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"words": np.array(["a"]), "vectors": np.ones((2, 3))}, r"expected words \(n,\) and floating-point vectors"),
        ({"words": np.array(["a"])}, r"no array named vectors"),
        ({"words": np.array([["a"]]), "vectors": np.ones((1, 3))}, r"expected words \(n,\)"),
        ({"words": np.array(["a"]), "vectors": np.ones((1, 0))}, r"expected words \(n,\)"),
        ({"words": np.array(["a"]), "vectors": np.full((1, 3), np.nan)}, r"the vector of 'a' has a number that is not"),
        ({"words": np.array(["a"], dtype=object), "vectors": np.ones((1, 3))}, r"words are pickled objects"),
    ],
)
def test_bad_npz_files(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(InputError, match=message):
        read_vectors(tmp_path / "bad.npz", {"a"})


def test_a_single_array_is_no_npz(tmp_path: Path) -> None:
    np.save(tmp_path / "array.npy", np.ones((2, 3)))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    shutil.copy(tmp_path / "array.npz", tmp_path / "array.npy")
    for name in ("array.npz", "array.npy"):
        with pytest.raises(InputError, match=f"{name}: expected an .npz file of words and vectors, got a single array"):
            read_vectors(tmp_path / name, {"a"})


def test_a_byte_order_mark_hides_no_word(tmp_path: Path) -> None:
    assert read_vectors(write_vectors(tmp_path, "txt", "\ufeff" + GLOVE), {"the", "\ud800"}).keys() == {"the"}


def test_a_missing_vector_file(tmp_path: Path) -> None:
    for name in ("none.npz", "none.txt"):
        with pytest.raises(InputError, match=f"{name}: no such file"):
            read_vectors(tmp_path / name, {"a"})


def lexicon_of(path: Path) -> Lexicon:
    return Lexicon.from_file(path, ["the", "THE", "Dog", "unknown"], tags=["DT", "NN"])


def test_words_without_a_vector_take_their_lower_case_or_a_hashed_one(tmp_path: Path) -> None:
    lexicon = lexicon_of(write_vectors(tmp_path, "txt"))
    assert sorted(lexicon.words) == ["Dog", "THE", "the", "unknown"]
    of = {word: lexicon.vectors[i] for word, i in lexicon.index.items()}
    assert of["the"].tolist() == EXPECTED["the"] and torch.equal(of["THE"], of["the"])
    assert of["Dog"].tolist() == pytest.approx(EXPECTED["Dog"])
    assert torch.equal(of["unknown"], lexicon.hashed[fnv1a("unknown") % NUM_HASHED])
    assert lexicon.known.count(True) == 3
    assert lexicon.extended(["zebra", "DOG", "tHE"]).known[-3:] == [False, False, True], "DOG is Dog's, no dog's"


def test_new_words_come_behind_the_old_ones(tmp_path: Path) -> None:
    lexicon = lexicon_of(write_vectors(tmp_path, "txt"))
    more = lexicon.extended(["Dog", "zebra", "zebra", "THe"])
    assert more.words == [*lexicon.words, "zebra", "THe"]
    assert torch.equal(more.vectors[: len(lexicon)], lexicon.vectors)
    assert torch.equal(more.vectors[-2], lexicon.hashed[fnv1a("zebra") % NUM_HASHED])
    assert torch.equal(more.vectors[-1], more.vectors[more.index["the"]])
    assert torch.equal(lexicon.extended(["ZEBRA"]).vectors[-1], more.vectors[-2])
    assert lexicon.extended(["the"]) is lexicon


def learned(lexicon: Lexicon, path: Path, words: list[str]) -> Lexicon:
    return lexicon.with_vectors(lexicon.missing_vectors(path, words), path)


def test_new_words_can_bring_their_vectors(tmp_path: Path) -> None:
    path = write_vectors(tmp_path, "txt")
    lexicon = learned(lexicon_of(path), path, ["dog", "the", "zebra"])
    assert lexicon.vectors[lexicon.index["dog"]].tolist() == [4.0, 5.0, 6.0] and "zebra" not in lexicon.index
    assert "The" not in learned(lexicon_of(path), path, ["The"]).index, "its lower-case form is here, with a vector"
    written = write_vectors(tmp_path, "gz", "the 1 2 3\nThe 4 5 6\n")
    assert learned(lexicon_of(path), written, ["The"]).vectors[-1].tolist() == [4.0, 5.0, 6.0], "as it is written"
    other = write_vectors(tmp_path, "gz", "cat 1 2\n")
    with pytest.raises(InputError, match=r"vectors.gz: has vectors of 2 dimensions, the run's have 3"):
        learned(lexicon, other, ["cat"])


def test_a_file_that_knows_no_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has a vector for none of the corpus's 1 words"):
        Lexicon.from_file(write_vectors(tmp_path, "txt"), ["absent"])


def test_peer_bug_10_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    lexicon = lexicon_of(write_vectors(tmp_path, "txt"))
    lexicon.save(tmp_path / "lexicon.safetensors")
    loaded = Lexicon.load(tmp_path / "lexicon.safetensors")
    assert loaded.words == lexicon.words and loaded.tags == lexicon.tags
    assert torch.equal(loaded.vectors, lexicon.vectors) and torch.equal(loaded.hashed, lexicon.hashed)
    (tmp_path / "lexicon.safetensors").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"lexicon.safetensors: not a lexicon"):
        Lexicon.load(tmp_path / "lexicon.safetensors")
    with pytest.raises(InputError, match=r"absent: no such file"):
        Lexicon.load(tmp_path / "absent")


def fnv1a(text: str) -> int:
    """The hash as its definition has it, byte by byte."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 % 2**32
    return value


def test_the_hash_is_the_same_in_every_process() -> None:
    code = (
        "import torch; from nli_common.lexicon import Lexicon; "
        "print(Lexicon(['a'], torch.arange(2.0)[None]).extended(['Größe']).vectors[1].tolist())"
    )
    hashed = Lexicon(["a"], torch.arange(2.0)[None]).hashed[fnv1a("größe") % NUM_HASHED].tolist()
    another = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    environment = {"PYTHONHASHSEED": another, "PYTHONPATH": str(Path(__file__).parents[1] / "examples")}
    printed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert json.loads(printed.stdout) == hashed


def test_tags_count_from_1_and_0_is_any_other() -> None:
    assert Lexicon(["a"], torch.ones(1, 2), tags=["DT", "NN"]).tag_ids(["NN", "XX", "DT"]) == [2, 0, 1]


def test_hashed_vectors_differ_where_the_known_ones_are_all_alike() -> None:
    assert Lexicon(["a"], torch.ones(1, 20)).hashed.std() == pytest.approx(1, abs=0.1)


def test_hashed_vectors_spread_as_the_known_ones() -> None:
    lexicon = Lexicon([f"w{i}" for i in range(400)], 0.37 * torch.randn(400, 50))
    assert lexicon.hashed.std().item() == pytest.approx(0.37, rel=0.05)
    assert torch.equal(lexicon.hashed, Lexicon(lexicon.words, lexicon.vectors).hashed)


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["a", "a"], torch.ones(2, 3), r"words must be distinct, got 2 with 1 different"),
        (
            ["a"],
            torch.ones(2, 3),
            r"vectors must be floating point of shape \(1, d\), got torch.float32 of shape \(2, 3\)",
        ),
        (["a"], torch.ones(1, 3, dtype=torch.long), r"vectors must be floating point .* got torch.int64"),
    ],
)
def test_what_does_not_fit_is_refused(words: list[str], vectors: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Lexicon(words, vectors)
    with pytest.raises(ValueError, match=r"hashed must be of shape \(100, 3\), got \(1, 3\)"):
        Lexicon(["a"], torch.ones(1, 3), hashed=torch.ones(1, 3))


def test_vectors_of_unit_length(tmp_path: Path) -> None:
    """Nguyen 2019, section 3: known words are normalised, also those learned later; hashed ones are N(0, 1)."""
    np.savez(tmp_path / "v.npz", words=np.array(["dog", "cat"]), vectors=np.array([[3.0, 4.0], [0.0, 2.0]]))
    lexicon = Lexicon.from_file(tmp_path / "v.npz", ["dog", "quokka"], unit=True)
    assert_close(lexicon.vectors[lexicon.index["dog"]], torch.tensor([0.6, 0.8]))
    assert any(torch.equal(lexicon.vectors[lexicon.index["quokka"]], row) for row in lexicon.hashed)
    assert lexicon.hashed.std() == pytest.approx(1, abs=0.1) and lexicon.hashed.mean() == pytest.approx(0, abs=0.2)
    lexicon.save(tmp_path / "l")
    later = learned(Lexicon.load(tmp_path / "l"), tmp_path / "v.npz", ["cat"])
    assert_close(later.vectors[later.index["cat"]], torch.tensor([0.0, 1.0]))
    random = Lexicon.random(["a", "b"], 7).of_unit_length()
    assert_close(random.vectors.norm(dim=1), torch.ones(2))
    assert random.hashed.norm(dim=1).mean() == pytest.approx(7**0.5, rel=0.1)


def test_unknown_words_of_unit_length(tmp_path: Path) -> None:
    """The same directions, each of length 1, and those of words learned later, too."""
    np.savez(tmp_path / "v.npz", words=np.array(["dog"]), vectors=np.array([[3.0, 4.0, 0.0, 0.0, 0.0]]))
    long, short = (
        Lexicon.from_file(tmp_path / "v.npz", ["dog", "quokka"], unit=True, unit_unknown=unknown)
        for unknown in (False, True)
    )
    assert_close(short.hashed, long.hashed / long.hashed.norm(dim=1, keepdim=True))
    assert torch.equal(short.vectors[0], long.vectors[0]) and short.unit
    short.save(tmp_path / "l")
    later = Lexicon.load(tmp_path / "l").extended(["numbat"])
    assert_close(later.vectors.norm(dim=1), torch.ones(3))
    assert_close(Lexicon.random(["a"], 7).of_unit_length(unknown=True).hashed.norm(dim=1), torch.ones(100))


def test_lengths_that_data_asks_for(tmp_path: Path) -> None:
    """The options reach the lexicon, from a file and without one, and tell one run's inputs from another's."""
    vectors = tmp_path / "v.npz"
    known = Data(pairs=100).corpora()["train"].words[0]
    np.savez(vectors, words=np.array([known]), vectors=np.array([[3.0, 4.0, 0.0, 0.0]]))
    lengths, identities = [], []
    for unit, unknown in ((False, False), (True, False), (True, True)):
        for place in ({"vectors": vectors}, {"vector_size": 4}):
            data = Data(pairs=100, unit_vectors=unit, unit_unknown=unknown, **place)
            corpora = data.corpora()
            lexicon = data.lexicon(corpora)
            lengths.append((lexicon.vectors[lexicon.index[known]].norm(), lexicon.hashed.norm(dim=1).std()))
            identities.append(data.identity(corpora))
    assert_close(torch.stack([length for length, _ in lengths[::2]]), torch.tensor([5.0, 1.0, 1.0]))
    assert [bool(spread > 0.1) for _, spread in lengths] == [True] * 4 + [False] * 2
    assert all(one not in identities[:place] for place, one in enumerate(identities))


def files_of(folder: Path, dev: str = "a cat", dev_tags: str = "A B", vectors: str = "1 2") -> Data:
    """A corpus of one training and one dev pair, and a file of vectors."""
    head = "gold_label\tsentence1\tsentence2\tpos1\tpos2\n"
    (folder / "train.tsv").write_text(head + "neutral\ta dog\ta cat\tX Y\tX Z\n")
    (folder / "dev.tsv").write_text(head + f"neutral\t{dev}\t{dev}\t{dev_tags}\t{dev_tags}\n")
    (folder / "v.txt").write_text(f"a {vectors}\n")
    return Data(folder / "train.tsv", folder / "dev.tsv", vectors=folder / "v.txt", cache=folder / "cache")


@pytest.mark.parametrize("other", [{"dev": "a dog"}, {"dev_tags": "A A"}, {"vectors": "1 3"}])
def test_inputs_are_told_by_what_the_files_hold_and_not_by_their_names(tmp_path: Path, other: dict[str, str]) -> None:
    identities = []
    for options in ({}, {}, other):
        data = files_of(tmp_path, **options)
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        identities.append(data.identity(data.corpora()))
    assert identities[0] == identities[1] != identities[2]


def test_tags_are_those_of_the_training_pairs(tmp_path: Path) -> None:
    data = files_of(tmp_path)
    assert data.lexicon(data.corpora()).tags == ["X", "Y", "Z"]


@pytest.mark.parametrize("dim", [20, 300])
def test_random_vectors_are_as_long_as_gloves_and_of_their_seed(dim: int) -> None:
    words = [str(k) for k in range(500)]
    first, twin, other = (Lexicon.random(words, dim, seed=seed).vectors for seed in (0, 0, 1))
    assert torch.equal(first, twin) and not torch.equal(first, other)
    assert float(first.square().sum(1).mean().sqrt()) == pytest.approx(GLOVE_LENGTH, rel=0.05)


def test_the_alphabet_is_that_of_the_first_words(tmp_path: Path) -> None:
    lexicon = Lexicon.random(["cab", "naïve"], 3)
    assert lexicon.alphabet == ["a", "b", "c", "e", "n", "v", "ï"]
    lexicon.save(tmp_path / "l")
    assert Lexicon.load(tmp_path / "l").extended(["xyz"]).alphabet == lexicon.alphabet
    np.savez(tmp_path / "v.npz", words=np.array(["dog", "xi"]), vectors=np.eye(2))
    read = Lexicon.from_file(tmp_path / "v.npz", ["dog", "cat"])
    assert read.alphabet == ["a", "c", "d", "g", "o", "t"]
    assert learned(read, tmp_path / "v.npz", ["xi"]).alphabet == read.alphabet


def test_vectors_of_unit_length_keep_the_alphabet(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", words=np.array(["dog", "xi"]), vectors=np.eye(2))
    read = Lexicon.from_file(tmp_path / "v.npz", ["dog", "cat"], unit=True)
    assert read.alphabet == ["a", "c", "d", "g", "o", "t"]
