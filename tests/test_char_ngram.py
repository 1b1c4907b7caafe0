"""Character n-grams: Guo et al. 2019, Eq 6, the hash, and the laws of PAPERS that follow from them."""

import copy
import enum
import io
import os
import pickle
import subprocess
import sys
from collections import UserList
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import oracles
from nlilayers import CharNgramEmbedding, _char_ngram, functional

DIM = 7
CHARACTERS = st.characters(codec="utf-8") | st.sampled_from("abc<>é中😀\0")
WORDS = st.text(CHARACTERS, max_size=9)
VOCABULARIES = st.lists(WORDS, min_size=1, max_size=5)
SIZES = st.integers(1, 6)


def embedding(**options) -> CharNgramEmbedding:
    options = {"num_embeddings": 101, "dtype": torch.float64} | options
    return CharNgramEmbedding(DIM, **options)


def hashes_of(*strings: str) -> list[int]:
    return functional.fnv1a(functional.code_points(strings)).tolist()


def test_fnv1a_has_its_authors_values() -> None:
    assert hashes_of("", "a", "foobar") == [0x811C9DC5, 0xE40C292C, 0xBF9CF968]
    assert [oracles.fnv1a(s) for s in (b"", b"a", b"foobar")] == [0x811C9DC5, 0xE40C292C, 0xBF9CF968]


@given(words=st.lists(WORDS, max_size=5))
def test_fnv1a_equals_the_loop_over_utf8_bytes(words: list[str]) -> None:
    assert hashes_of(*words) == [oracles.fnv1a(word.encode()) for word in words]


def test_every_width_of_utf8_at_its_edges() -> None:
    edges = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF]
    words = [chr(edge) + "x" for edge in edges]
    assert hashes_of(*words) == [oracles.fnv1a(word.encode()) for word in words]


@pytest.mark.parametrize("point", [0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF])
def test_a_character_has_its_hash_whatever_stands_beside_it(point: int) -> None:
    assert hashes_of(chr(point)) == [oracles.fnv1a(chr(point).encode())]


def test_no_words_have_no_characters_and_a_lone_surrogate_is_one() -> None:
    assert functional.code_points([]).shape == functional.code_points([""])[:0].shape == (0, 0)
    assert functional.code_points(["\ud800", ""]).tolist() == [[0xD800], [-1]]
    assert functional.code_points(["a"]).dtype == np.int32
    assert functional.fnv1a(functional.code_points([])).tolist() == []


@given(words=VOCABULARIES, n=SIZES, num_embeddings=st.integers(1, 200))
def test_ids_equal_the_loop(words: list[str], n: int, num_embeddings: int) -> None:
    ids = embedding(ngram_size=n, num_embeddings=num_embeddings).encode(words)
    expected = [
        [1 + oracles.fnv1a(g.encode()) % num_embeddings for g in oracles.char_ngrams(word, n)] for word in words
    ]
    assert ids.dtype == torch.int64 and ids.shape == (len(words), max(map(len, expected)))
    assert [row[: len(e)] for row, e in zip(ids.tolist(), expected, strict=True)] == expected
    assert all(not any(row[len(e) :]) for row, e in zip(ids.tolist(), expected, strict=True))
    assert ids.min() >= 0 and ids.max() <= num_embeddings


@given(words=VOCABULARIES, n=SIZES)
def test_eq_6_equals_the_loop(device: str, words: list[str], n: int) -> None:
    layer = embedding(ngram_size=n, device=device)
    vectors, ids = layer.weight.tolist(), layer.encode(words)
    expected = [
        oracles.char_ngram_embedding([vectors[1 + oracles.fnv1a(g.encode()) % 101] for g in oracles.char_ngrams(w, n)])
        for w in words
    ]
    expected = torch.tensor(expected, dtype=torch.float64, device=device)
    assert torch.equal(layer(ids), expected) and torch.equal(layer.table(words), expected)


@given(words=VOCABULARIES)
def test_module_equals_function(words: list[str]) -> None:
    layer = embedding()
    ids = layer.encode(words)
    assert torch.equal(layer(ids), functional.char_ngram_embedding(ids, layer.weight))


@given(ids=st.lists(st.integers(1, 101), min_size=1, max_size=8), data=st.data())
def test_only_the_set_of_ngrams_matters(device: str, ids: list[int], data: st.DataObject) -> None:
    """Neither their order, nor how often one occurs, nor where the padding stands."""
    layer = embedding(device=device)
    other = data.draw(st.permutations(ids + data.draw(st.lists(st.sampled_from([*ids, 0]), max_size=5))))
    one, two = (torch.tensor(i, device=device) for i in (ids, other))
    assert torch.equal(layer(one), layer(two))


@given(s=st.lists(st.integers(1, 101), min_size=1), t=st.lists(st.integers(1, 101), min_size=1))
def test_pooling_a_union_is_the_maximum_of_both_pools(s: list[int], t: list[int]) -> None:
    layer = embedding()
    pool_s, pool_t, union = (layer(torch.tensor(ids)) for ids in (s, t, s + t))
    assert torch.equal(union, torch.maximum(pool_s, pool_t)) and torch.equal(layer(torch.tensor(s + s)), pool_s)
    assert torch.all(pool_s <= union)


@given(word=st.text("abc", min_size=4, max_size=12), data=st.data())
def test_a_typo_changes_at_most_as_many_ngrams_as_one_has_characters(word: str, data: st.DataObject) -> None:
    """And every feature whose largest n-gram survives can only stay or grow."""
    position = data.draw(st.integers(0, len(word) - 1))
    typo = word[:position] + "x" + word[position + 1 :]
    layer = embedding(num_embeddings=65536)
    right, wrong = (layer.encode([w])[0] for w in (word, typo))
    assert len(right) == len(word) + 2 - 5 + 1 and (right != wrong).sum() <= 5
    survives = torch.isin(right[layer.weight[right].argmax(0)], wrong)
    assert torch.all(layer(wrong)[survives] >= layer(right)[survives])


@given(word=WORDS, others=st.lists(WORDS, max_size=3))
def test_a_words_vector_does_not_depend_on_the_words_around_it(word: str, others: list[str]) -> None:
    alone = embedding().table([word])[0]
    assert torch.equal(embedding().table([*others, word, *others])[len(others)], alone)
    assert torch.isfinite(alone).all()


@pytest.mark.parametrize("n", [1, 2, 3, 5, 50])
def test_peer_bug_11_words_shorter_than_an_ngram_have_one(n: int) -> None:
    """Character CNNs die on them. The empty word is "<>", and a lone surrogate is a character too."""
    layer = embedding(ngram_size=n)
    assert torch.isfinite(layer.table(["", "a", "I", "的", "\ud800", "word"])).all()
    assert (layer.encode(["a"]) > 0).sum() == max(1, 3 - n + 1)
    assert hashes_of("<>")[0] % 101 + 1 == embedding(ngram_size=5).encode([""]).item()


def test_words_of_padding_alone_give_0(device: str) -> None:
    layer = embedding(device=device)
    ids = torch.tensor([[[0, 0], [3, 0]], [[0, 5], [0, 0]]], device=device)
    vectors = layer(ids)
    assert vectors.shape == (2, 2, DIM) and torch.all(vectors[0, 0] == 0) and torch.all(vectors[1, 1] == 0)
    assert torch.equal(vectors[0, 1], layer.weight[3]) and torch.equal(vectors[1, 0], layer.weight[5])


def test_padding_never_wins_the_maximum(device: str) -> None:
    layer = embedding(device=device)
    layer.weight.fill_(-1.0)[0] = 0
    assert torch.all(layer(layer.encode(["a", "longer"])) == -1)


def test_no_words_no_ngrams_and_any_leading_shape(device: str) -> None:
    layer = embedding(device=device)
    assert layer.encode([]).shape == (0, 0) and layer.table([]).shape == (0, DIM)
    without = layer(torch.zeros(3, 0, dtype=torch.int64, device=device))
    assert without.shape == (3, DIM) and torch.all(without == 0)
    ids = layer.encode(["one", "two", "threefold"])
    assert torch.equal(layer(ids[2]), layer(ids)[2])
    assert torch.equal(layer(ids[None, :, None])[0, :, 0], layer(ids))
    assert torch.equal(layer(ids.int()), layer(ids))


def test_it_is_frozen() -> None:
    layer = embedding()
    before = layer.weight.clone()
    assert not list(layer.parameters()) and not layer(layer.encode(["word"])).requires_grad
    model = torch.nn.Sequential(layer, torch.nn.Linear(DIM, 2, dtype=torch.float64))
    steps = torch.optim.AdamW(model.parameters(), lr=1.0, weight_decay=1.0)
    model(layer.encode(["word"])).sum().backward()
    steps.step()
    assert torch.equal(layer.weight, before) and "weight" in layer.state_dict()


@pytest.mark.parametrize("seed", [-(2**63), 2**64 - 1])
def test_a_seed_has_64_bits(seed: int) -> None:
    """With a sign or without, as torch's generators take them."""
    assert embedding(seed=seed).weight.ne(0).any()
    beyond = seed - 1 if seed < 0 else seed + 1
    with pytest.raises(ValueError, match=rf"seed must lie between -2\*\*63 and 2\*\*64 - 1, got {beyond}"):
        embedding(seed=beyond)


def test_the_vectors_follow_from_the_seed_on_every_device(device: str) -> None:
    torch.manual_seed(1)
    one = embedding(device=device)
    torch.manual_seed(2)
    assert torch.equal(one.weight, embedding(device=device).weight)
    assert torch.equal(one.weight.cpu(), embedding().weight)
    assert not torch.equal(one.weight, embedding(seed=1, device=device).weight)
    assert torch.equal(one.weight.float(), embedding(dtype=torch.float32, device=device).weight)
    one.weight.zero_()
    one.reset_parameters()
    assert torch.equal(one.weight.cpu(), embedding().weight)


def test_the_vectors_do_not_follow_the_defaults_around_them() -> None:
    usual = CharNgramEmbedding(DIM, num_embeddings=101)
    torch.set_default_dtype(torch.float64)
    try:
        wide = CharNgramEmbedding(DIM, num_embeddings=101, dtype=torch.float32)
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        elsewhere = CharNgramEmbedding(DIM, num_embeddings=101, device="cpu")
    assert torch.equal(wide.weight, usual.weight) and torch.equal(elsewhere.weight, usual.weight)
    assert usual.to("meta").encode(["word"]).device.type == "meta"


def test_the_vectors_are_standard_normal_but_for_that_of_padding() -> None:
    weight = CharNgramEmbedding(30).weight
    assert weight.shape == (65537, 30) and torch.all(weight[0] == 0)
    assert abs(weight.mean().item()) < 0.01 and abs(weight.std().item() - 1) < 0.01


def test_hash_stability_ids_are_the_same_in_every_process() -> None:
    words = ["a", "naïve", "中文", "sentence"]
    program = f"from nlilayers import CharNgramEmbedding as C; print(C(3).encode({words}).tolist())"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert outputs == {str(CharNgramEmbedding(3).encode(words).tolist())}


class Colour(str, enum.Enum):
    RED = "red"


def test_a_member_of_an_enum_of_strings_is_its_string() -> None:
    """Formatted, it would be another from Python 3.11 on."""
    embedding = CharNgramEmbedding(2, ngram_size=3, num_embeddings=100)
    assert embedding.encode([Colour.RED]).tolist() == embedding.encode(["red"]).tolist()


def test_words_are_encoded_together_without_a_call_for_each_ngram() -> None:
    """Each of these words has eight."""
    letters = np.random.default_rng(0).choice(list("abcdefghijklmnopqrstuvwxyzé中"), (4_000, 12))
    words, layer, calls = ["".join(row) for row in letters], CharNgramEmbedding(30), 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        layer.encode(words)
    finally:
        sys.setprofile(None)
    assert calls < 2 * len(words)


def test_a_table_is_the_same_for_many_words() -> None:
    words = [str(k) for k in range(9000)]
    layer = embedding()
    assert torch.equal(layer.table(words), layer(layer.encode(words)))


def test_a_long_word_makes_no_other_longer() -> None:
    layer, lengths = embedding(), []
    words = [*map(str, range(9_000)), "x" * 30_000, *map(str, range(9_000))]
    layer.register_forward_pre_hook(lambda _, given: lengths.append(given[0].shape))
    table = layer.table(words)
    assert max(rows * width for rows, width in lengths) < 2 * 65_536 and sum(rows for rows, _ in lengths) == len(words)
    assert torch.equal(table[:9_000], table[9_001:]) and torch.equal(table[9_000], layer.table(words[9_000:9_001])[0])


def test_as_many_words_at_a_time_as_the_longest_of_them_allows() -> None:
    batches = list(_char_ngram._batches(range(8_193), [16] * 8_192 + [70_000]))
    assert [len(batch) for batch in batches] == [4_096, 4_096, 1]
    assert [k for batch in batches for k in batch] == list(range(8_193))


def test_a_table_lies_where_the_layer_does() -> None:
    layer = embedding()
    expected = layer.table(["the", "a", "longer"])
    with torch.device("meta"):
        assert torch.equal(layer.table(["the", "a", "longer"]), expected)


def test_copies_agree() -> None:
    layer, fresh, buffer = embedding(seed=3), embedding(), io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    fresh.load_state_dict(torch.load(buffer, weights_only=True), strict=True)
    for twin in (fresh, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin.table(["word"]), layer.table(["word"]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_dtype_and_device_are_the_constructors_or_those_moved_to(device: str, dtype: torch.dtype) -> None:
    layer = embedding(device=device, dtype=dtype)
    vectors = layer(layer.encode(["word"]))
    assert vectors.dtype == dtype and vectors.device.type == device
    assert_close(embedding(dtype=torch.float64).to(device, dtype).table(["word"]), vectors)


def test_compiles_and_exports_with_any_number_of_words() -> None:
    layer = CharNgramEmbedding(DIM, num_embeddings=101)
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    seen, unseen = layer.encode(["one", "threefold"])[:, None], layer.encode(["a", "more words", "here"])[:, None]
    dims = {0: torch.export.Dim("batch"), 2: torch.export.Dim("ngrams", min=2)}
    exported = torch.export.export(layer, (seen,), dynamic_shapes=(dims,)).module()
    for ids in (seen, unseen):
        assert torch.equal(compiled(ids), layer(ids)) and torch.equal(exported(ids), layer(ids))


def test_compiled_code_spells_words() -> None:
    layer = CharNgramEmbedding(DIM, num_embeddings=101)
    vectors_of = torch.compile(lambda words: 2 * layer(layer.encode(words)), backend="eager")
    for words in (["one", "threefold"], ["a"], ["more words", "here", "x" * 30]):
        assert torch.equal(vectors_of(words), 2 * layer.table(words))


def test_repr_says_the_sizes() -> None:
    expected = "CharNgramEmbedding(embedding_dim=7, ngram_size=4, num_embeddings=101, seed=2)"
    assert repr(embedding(ngram_size=4, seed=2)) == expected


def test_what_does_not_fit_is_refused() -> None:
    for name in ("embedding_dim", "ngram_size", "num_embeddings"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            CharNgramEmbedding(**({"embedding_dim": 3} | {name: 0}))
    with pytest.raises(TypeError, match="words must be a sequence of strings, got the string 'word'"):
        embedding().encode("word")
    with pytest.raises(TypeError, match="words must be a sequence of strings, got the string 'word'"):
        embedding().table("word")
    for words in (b"word", [b"word"], ["word", None]):
        for method in (embedding().encode, embedding().table):
            with pytest.raises(TypeError, match="words must be a sequence of strings, got one with"):
                method(words)
    with pytest.raises(ValueError, match=r"ids must be int64 or int32 of shape \(\.\.\., k\), got torch.float32"):
        embedding()(torch.ones(2))
    with pytest.raises(
        ValueError, match=r"ids must be int64 or int32 of shape \(\.\.\., k\), got torch.int64 of shape \(\)"
    ):
        embedding()(torch.tensor(1))


class Labelled(UserList[str]):
    """Words that are asked for by labels, not by places, as a shuffled column of a table is."""

    def __getitem__(self, label: Any) -> Any:
        return self.data[-1 - label]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)


def test_a_vocabulary_is_read_in_its_own_order_whatever_holds_it() -> None:
    embedding, words = CharNgramEmbedding(6, num_embeddings=50), ["one", "three", "a"]
    assert torch.equal(embedding.table(Labelled(words)), embedding.table(words))
    assert torch.equal(embedding.table(dict.fromkeys(words)), embedding.table(words))


def test_a_seed_is_an_integer_of_any_kind() -> None:
    table = CharNgramEmbedding(2, num_embeddings=5, seed=3).weight
    for seed in (torch.tensor(3), np.int64(3), np.uint8(3)):
        assert torch.equal(CharNgramEmbedding(2, num_embeddings=5, seed=seed).weight, table)
