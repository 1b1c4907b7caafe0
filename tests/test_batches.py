"""Length-bucketed batches: complete, reproducible, padded to the longest sentence and no further."""

from itertools import chain, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nli_common.batches import LengthBuckets, PairDataset, evaluation_loader, loader, order_of, shared
from nli_common.corpora import Pair
from nli_common.data import Corpus
from nli_common.generated import generated_corpus
from nli_common.lexicon import Lexicon


@pytest.fixture(scope="module")
def dataset() -> PairDataset:
    corpus = generated_corpus(500, "train")
    lexicon = Lexicon.random(reversed(corpus.words), 3, tags=corpus.tags[:-1])
    return PairDataset(corpus, lexicon, corpus.labels[::-1], corpus.phenomena[::-1])


def test_a_batch_is_the_pairs_themselves(dataset: PairDataset) -> None:
    corpus = generated_corpus(500, "train")
    lexicon = Lexicon.random(reversed(corpus.words), 3, tags=corpus.tags[:-1])
    rows = [7, 3, 499]
    batch = dataset.__getitems__(rows)
    for side, sentence in ((corpus.premise, batch.premise), (corpus.hypothesis, batch.hypothesis)):
        assert sentence.tokens.dtype == torch.int64 and sentence.mask.dtype == torch.bool
        assert sentence.tokens.shape[1] == max(len(corpus.tokens(side, i)) for i in rows)
        assert torch.all(sentence.tokens[~sentence.mask] == 0)
        assert sentence.pos is not None and torch.all(sentence.pos[~sentence.mask] == 0)
        assert side.pos is not None
        for row, i in enumerate(rows):
            real = sentence.tokens[row][sentence.mask[row]].tolist()
            assert [lexicon.words[t] for t in real] == corpus.tokens(side, i)
            tags = [corpus.tags[t] for t in side.pos[side.offsets[i] : side.offsets[i + 1]]]
            assert sentence.pos[row][sentence.mask[row]].tolist() == lexicon.tag_ids(tags)
    assert [corpus.labels[::-1][k] for k in batch.label] == [corpus.labels[corpus.label[i]] for i in rows]
    assert [corpus.phenomena[::-1][k] for k in batch.phenomenon] == [
        corpus.phenomena[corpus.phenomenon[i]] for i in rows
    ]


@given(count=st.integers(1, 400), size=st.integers(1, 17), seed=st.one_of(st.none(), st.integers(0, 9)))
def test_every_pair_comes_once_in_each_epoch(count: int, size: int, seed: int | None) -> None:
    buckets = LengthBuckets(np.random.default_rng(count).integers(1, 30, count), size, seed)
    batches = list(buckets)
    assert sorted(i for batch in batches for i in batch) == list(range(count))
    assert len(batches) == len(buckets) and all(len(batch) <= size for batch in batches)


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    lengths = np.random.default_rng(0).integers(1, 30, 300)
    first, twin, other = (LengthBuckets(lengths, 8, seed) for seed in (1, 1, 2))
    torch.manual_seed(5)
    assert list(first) == list(twin) != list(other)
    first.start_epoch(1)
    assert list(first) != list(twin)
    first.start_epoch(0)
    assert list(first) == list(twin)


def test_seed_and_epoch_are_not_added_up() -> None:
    lengths = np.random.default_rng(0).integers(1, 30, 300)
    first, second = LengthBuckets(lengths, 8, 0), LengthBuckets(lengths, 8, 1)
    first.start_epoch(1)
    assert list(first) != list(second)


@pytest.mark.parametrize("same_lengths", [False, True])
def test_batches_are_of_other_pairs_in_each_epoch(dataset: PairDataset, same_lengths: bool) -> None:
    """Not the same ones in another order."""
    sampler = loader(dataset, 8, 0, same_lengths=same_lengths).batch_sampler
    full = [{frozenset(batch) for batch in sampler if len(batch) == 8}]
    sampler.start_epoch(1)
    full.append({frozenset(batch) for batch in sampler if len(batch) == 8})
    assert full[0] and len(full[0] & full[1]) < len(full[0]) / 2


def test_an_evaluation_reads_short_premises_first(dataset: PairDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nli_common.batches.EVALUATION_BATCH", 16)
    lengths = dataset.premise.lengths[order_of(evaluation_loader(dataset)).numpy()]
    assert lengths.tolist() == sorted(dataset.premise.lengths.tolist())


def test_batches_hold_sentences_of_similar_length() -> None:
    lengths = np.random.default_rng(0).integers(1, 40, 5000)
    padding = sum(int((lengths[batch].max() - lengths[batch]).sum()) for batch in LengthBuckets(lengths, 32, 0))
    assert padding < 0.05 * lengths.sum()


def test_the_loader_gives_whole_batches(dataset: PairDataset) -> None:
    batches = list(loader(dataset, 64, 0))
    assert sum(len(batch.label) for batch in batches) == 500
    assert all(len(batch.label) == len(batch.premise.tokens) == len(batch.hypothesis.mask) for batch in batches)


def test_a_batch_needs_a_pair() -> None:
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        LengthBuckets(np.ones(3, dtype=np.int64), 0, 0)


@given(batch_size=st.integers(1, 40), epoch=st.integers(0, 3), seed=st.none() | st.integers(0, 5))
def test_batches_of_the_same_lengths_are_complete_and_have_no_padding(
    dataset: PairDataset, batch_size: int, epoch: int, seed: int | None
) -> None:
    batches = loader(dataset, batch_size, seed, same_lengths=True)
    batches.batch_sampler.start_epoch(epoch)
    order = list(batches.batch_sampler)
    assert len(order) == len(batches)
    assert sorted(i for batch in order for i in batch) == list(range(len(dataset)))
    assert order == list(batches.batch_sampler)
    for batch in batches:
        assert len(batch.label) <= batch_size and batch.premise.mask.all() and batch.hypothesis.mask.all()


def test_batches_of_the_same_lengths_are_shuffled(dataset: PairDataset) -> None:
    """Lengths that lie together in an epoch would be forgotten by its end."""
    batches = loader(dataset, 8, 0, same_lengths=True).batch_sampler
    lengths = [int(dataset.premise.lengths[batch[0]]) for batch in batches]
    assert sum(a > b for a, b in pairwise(lengths)) > len(lengths) / 5


def test_an_evaluation_reads_no_more_than_it_is_told(dataset: PairDataset) -> None:
    for limit, count in ((7, 7), (None, 500), (900, 500)):
        batches = evaluation_loader(dataset, limit)
        assert sum(len(batch.label) for batch in batches) == count == len(order_of(batches))
    seven = torch.cat([batch.label for batch in evaluation_loader(dataset, 7)])
    assert sorted(seven.tolist()) == sorted(dataset.__getitems__(list(range(7))).label.tolist())


def test_batches_of_the_same_lengths_depend_on_seed_and_epoch(dataset: PairDataset) -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        sampler = loader(dataset, 8, seed, same_lengths=True).batch_sampler
        sampler.start_epoch(epoch)
        return list(sampler)

    assert order(0, 0) != order(0, 1) and order(0, 0) != order(1, 0)
    sizes = {tuple(dataset.premise.lengths[b] + 100 * dataset.hypothesis.lengths[b]) for b in order(0, 0)}
    assert all(len(set(lengths)) == 1 for lengths in sizes)


@pytest.mark.parametrize("processes", [2, 3, 4])
@pytest.mark.parametrize("same_lengths", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_several_processes_share_every_batch_of_one(
    dataset: PairDataset, processes: int, same_lengths: bool, seed: int
) -> None:
    """Wherever in the order a batch stands that is not full, and even if some process has no pair of it."""
    whole = loader(dataset, 8, seed, same_lengths=same_lengths)
    parts = [shared(whole, process, processes).batch_sampler for process in range(processes)]
    for batch, *shares in zip(
        whole.batch_sampler, *(zip(part, part.weights(), strict=True) for part in parts), strict=True
    ):
        weight = dict.fromkeys(batch, 0.0)
        for indices, share in shares:
            for i in indices:
                weight[i] += share / len(indices) / processes
        assert list(weight) == batch
        assert list(weight.values()) == pytest.approx([1 / len(batch)] * len(batch), rel=1e-12)
    assert {len(part) for part in parts} == {len(list(parts[0]))} == {len(whole)}


@pytest.mark.parametrize("same_lengths", [False, True])
def test_a_limit_takes_the_first_pairs(dataset: PairDataset, same_lengths: bool) -> None:
    batches = loader(dataset, 16, None, same_lengths=same_lengths, limit=37)
    assert sorted(i for batch in batches.batch_sampler for i in batch) == list(range(37))
    assert sum(len(batch.label) for batch in batches) == 37


def test_an_evaluation_keeps_pairs_of_one_length_in_their_order() -> None:
    lengths = np.tile([5, 3], 500)
    order = [*chain.from_iterable(LengthBuckets(lengths, 32, None))]
    assert order == [*range(1, 1000, 2), *range(0, 1000, 2)]


def test_batches_come_in_no_order_of_length() -> None:
    """Pools are cut into batches of like lengths; what is short is not always trained first."""
    lengths = np.random.default_rng(0).integers(1, 40, 5000)
    means = [lengths[batch].mean() for batch in LengthBuckets(lengths, 100, 0)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.4


def test_tags_are_numbered_by_the_lexicon() -> None:
    corpus = Corpus.from_pairs([Pair(["a", "dog"], ["a"], "neutral", ["DT", "NN"], ["XX"])], "this test")
    lexicon = Lexicon.random(corpus.words, 2, tags=["NN", "VB", "DT"])
    batch = PairDataset(corpus, lexicon, corpus.labels, corpus.phenomena)[0]
    assert (batch.premise.pos.tolist(), batch.hypothesis.pos.tolist()) == ([[3, 1]], [[0]])
