"""What a model is given of a word: vectors, characters, tags."""

import copy
import pickle
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from nli_common.data import Sentence
from nli_common.lexicon import Lexicon
from nli_common.words import LONGEST_WORD, OneHotTags, SpelledWords, WordCharacters, WordVectors, are_at_hand
from strategies import normal

words = st.lists(st.text(max_size=LONGEST_WORD + 3), min_size=1, max_size=6, unique=True)


def spelled(ids: Tensor, mask: Tensor) -> Tensor:
    """Something that tells every spelling from every other: the characters, padded to one width, and their number."""
    width = LONGEST_WORD - ids.shape[1]
    return torch.cat([nn_pad(ids.masked_fill(~mask, -1), width), mask.sum(1, keepdim=True)], dim=1).double()


def nn_pad(x: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(x, (0, width), value=-1)


@given(words=words, other=words, data=st.data())
def test_characters_are_numbered_by_the_alphabet(words: list[str], other: list[str], data: st.DataObject) -> None:
    lexicon = Lexicon(words, torch.zeros(len(words), 2)).extended(other)
    characters = WordCharacters(lexicon)
    assert characters.num_characters == 1 + len({c for word in words for c in word})
    tokens = torch.tensor(data.draw(st.lists(st.integers(0, len(lexicon) - 1), min_size=1, max_size=9)))[None]
    result = characters(tokens, spelled)
    for place, token in enumerate(tokens[0].tolist()):
        word = lexicon.words[token][:LONGEST_WORD]
        expected = [lexicon.alphabet.index(c) + 1 if c in lexicon.alphabet else 0 for c in word]
        assert result[0, place].tolist() == expected + [-1] * (LONGEST_WORD - len(word)) + [len(word)]


def test_a_network_reads_each_distinct_word_once_and_a_graph_gives_the_same() -> None:
    characters = WordCharacters(Lexicon.random(["a", "bcd", "ef"], 2))
    tokens, seen = torch.tensor([[0, 1, 1], [1, 0, 0]]), []

    def count(ids: Tensor, mask: Tensor) -> Tensor:
        seen.append(len(ids))
        return spelled(ids, mask)

    eager = characters(tokens, count)
    assert seen == [2]
    torch._dynamo.reset()
    compiled = torch.compile(lambda t: characters(t, spelled), fullgraph=True, backend="eager")
    assert torch.equal(compiled(tokens), eager)


@pytest.mark.parametrize("where", ["meta", "cuda", "mps"])
def test_no_number_is_read_where_it_would_be_waited_for(where: str) -> None:
    class Elsewhere:
        device = torch.device(where)

    assert are_at_hand(torch.zeros(1)) and not are_at_hand(torch.zeros(1), Elsewhere())  # type: ignore[arg-type]


def test_the_first_24_characters_of_a_word_are_read() -> None:
    alike, other = "a" * 24, "a" * 23 + "b"
    characters = WordCharacters(Lexicon.random([alike, alike + "b", other, alike * 2], 3))
    first, longer, changed, long = characters.ids.tolist()
    assert first == longer == long != changed and characters.lengths.tolist() == [24] * 4


def test_padding_has_no_characters() -> None:
    """A word that padding alone holds, of letters with huge vectors, reaches nothing, and no gradient reaches it."""
    lexicon = Lexicon(["zz", "ab", "ba"], torch.ones(3, 2))
    words = SpelledWords(lexicon, 4, 3)
    assert words.char_cnn is not None
    table = words.char_cnn.embedding.weight
    z = 1 + lexicon.alphabet.index("z")
    nn.init.constant_(table[z], 1e20)
    features = words(Sentence(torch.tensor([[1, 2], [2, 0]]), torch.tensor([[True, True], [True, False]]), None))
    assert features.shape == (2, 2, words.dim) and words.dim == 2 + 3 * 3
    assert torch.all(features[1, 1] == 0) and torch.all(features[0].abs().sum(-1) > 0)
    (features**2).sum().backward()
    assert table.grad is not None and torch.all(table.grad[z] == 0) and torch.all(table.grad.isfinite())
    assert all(p.grad is not None and torch.all(p.grad.isfinite()) for p in words.parameters())


def test_gradients_of_a_repeated_word_add_up() -> None:
    characters = WordCharacters(Lexicon.random(["a", "b"], 2))
    table = normal(1, 3, 4).requires_grad_()
    out = characters(torch.tensor([[0, 0, 1]]), lambda ids, mask: table[ids[:, 0].long()])
    out.sum().backward()
    assert_close(table.grad, torch.tensor([[0.0], [2.0], [1.0]]).double().expand(3, 4))


def test_word_vectors_are_fixed_and_not_repeated_on_disk() -> None:
    lexicon = Lexicon(["a", "b"], normal(2, 2, 5))
    vectors = WordVectors(lexicon)
    assert not list(vectors.parameters()) and not vectors.state_dict()
    tokens, mask = torch.tensor([[1, 0], [1, 0]]), torch.tensor([[True, True], [False, True]])
    expected = lexicon.vectors[tokens].float().masked_fill(~mask[..., None], 0)
    assert torch.equal(vectors(Sentence(tokens, mask)), expected)


def test_trained_vectors_learn_the_words_they_see_and_leave_the_lexicon_alone() -> None:
    lexicon = Lexicon(["a", "b", "c"], normal(2, 3, 5).float())
    start = lexicon.vectors.clone()
    vectors = WordVectors(lexicon, trained=True)
    tokens, mask = torch.tensor([[1, 0], [1, 2]]), torch.tensor([[True, True], [True, False]])
    assert torch.equal(vectors(Sentence(tokens, mask)), WordVectors(lexicon)(Sentence(tokens, mask)))
    optimizer = torch.optim.SGD(vectors.parameters(), lr=1.0)
    vectors(Sentence(tokens, mask)).sum().backward()
    optimizer.step()
    assert_close(vectors.vectors - start, torch.tensor([[-1.0], [-2.0], [0.0]]).expand(3, 5))
    assert torch.equal(lexicon.vectors, start)


def test_trained_vectors_fit_a_lexicon_that_was_extended_since() -> None:
    """Also a copy, inside a model, in another dtype; nothing else that has another shape is let in.

    What has its lower-case form's vector has the trained one; what has one of its own has that.
    """
    lexicon = Lexicon(["a", "b"], normal(2, 2, 5))
    trained = torch.nn.Sequential(WordVectors(lexicon, trained=True))
    trained[0].vectors.data += 1
    longer = lexicon.with_vectors({"B": normal(3, 5)}, Path("x.npz")).extended(["c", "A"])
    fresh = torch.nn.Sequential(WordVectors(longer, trained=True))
    for model in (fresh, copy.deepcopy(fresh), pickle.loads(pickle.dumps(fresh)), copy.deepcopy(fresh).double()):
        state = trained.state_dict()
        model.load_state_dict(state)
        assert torch.equal(model[0].vectors.float()[:2], trained[0].vectors)
        assert torch.equal(model[0].vectors.float()[2:4], longer.vectors[2:4].float()), "B and c"
        assert torch.equal(model[0].vectors.float()[4], trained[0].vectors[0]), "A"
        assert len(state["0.vectors"]) == 2, "what is loaded is left as it is"
    for words, dim in (("abc", 4), ("a", 5)):
        other = Lexicon(list(words), normal(2, len(words), dim))
        with pytest.raises(RuntimeError, match=r"size mismatch for 0\.vectors"):
            torch.nn.Sequential(WordVectors(other, trained=True)).load_state_dict(trained.state_dict())


@pytest.mark.parametrize("words", [["", "a"], [""]])
def test_words_without_characters_are_read_as_one_that_is_none(words: list[str]) -> None:
    characters = WordCharacters(Lexicon.random(words, 2))
    seen = []
    characters(torch.tensor([[0, 0]]), lambda ids, mask: seen.append((ids, mask)) or torch.zeros(1, 4))
    ((ids, mask),) = seen
    assert ids.shape == mask.shape == (1, 1) and not mask.any()


def test_tags_as_ones_and_zeros() -> None:
    tokens = torch.zeros(1, 3, dtype=torch.long)
    mask = torch.ones(1, 3, dtype=torch.bool)
    tags = OneHotTags(Lexicon.random(["a"], 2, tags=["DT", "NN"]), 3)
    assert tags(Sentence(tokens, mask, torch.tensor([[0, 2, 3]])), torch.float64)[0].tolist() == [
        [0, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
    ]
    assert torch.equal(tags(Sentence(tokens, mask), torch.float64), torch.zeros(1, 3, 3).double())
    with pytest.raises(
        ValueError, match="num_tags must be at least 2 for the tags of the data, unless they are left out, got 1"
    ):
        OneHotTags(Lexicon.random(["a"], 2, tags=["DT", "NN"]), 1)
