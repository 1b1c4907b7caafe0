"""Batches of pairs of similar length, in an order that depends on the seed and the epoch alone."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler, Subset

from nli_common.data import Batch, Corpus, Ints, Ragged, Sentence
from nli_common.lexicon import Lexicon

BATCHES_PER_POOL = 50
EVALUATION_BATCH = 256


class PairDataset(Dataset[Batch]):
    """A corpus in the ids of a lexicon; asked for a list of indices, it answers with a padded batch.

    Args:
        corpus: the pairs.
        lexicon: knows every word of the corpus.
        labels: the model's classes, which the corpus's labels are among.
        phenomena: the report's groups, which the corpus's phenomena are among.
    """

    def __init__(self, corpus: Corpus, lexicon: Lexicon, labels: Sequence[str], phenomena: Sequence[str]) -> None:
        words, tags = np.array(lexicon.ids(corpus.words)), np.array(lexicon.tag_ids(corpus.tags))
        self.premise = _Side(corpus.premise, words, tags)
        self.hypothesis = _Side(corpus.hypothesis, words, tags)
        self.label = torch.tensor([labels.index(name) for name in corpus.labels])[torch.from_numpy(corpus.label)]
        groups = torch.tensor([phenomena.index(name) for name in corpus.phenomena])
        self.phenomenon = groups[torch.from_numpy(corpus.phenomenon)]

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, index: int) -> Batch:
        return self.__getitems__([index])

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        """The pairs of these indices, each side padded to its longest sentence."""
        rows = np.asarray(indices)
        labels = torch.from_numpy(rows)
        return Batch(
            self.premise.padded(rows), self.hypothesis.padded(rows), self.label[labels], self.phenomenon[labels]
        )


class LengthBuckets(Sampler[list[int]]):
    """Lists of indices, each of sentences of similar premise length, so that little of a batch is padding.

    Pairs are shuffled and cut into pools; a pool is sorted by premise length and cut into batches; the batches are
    shuffled. (Sorting by hypothesis length would put labels together, for it tells something of the label.)

    Args:
        lengths: premise length of each pair.
        batch_size: pairs in a batch; the last one may have fewer.
        seed: of the order; ``None`` keeps a fixed order by length, for evaluation.
    """

    def __init__(self, lengths: Ints, batch_size: int, seed: int | None) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.lengths, self.seed, self.epoch = lengths, seed, 0
        self.largest = batch_size
        self.batch_size: int | None = batch_size  # which, like the next, Accelerate reads of a batch sampler
        self.drop_last = False

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.largest)

    def start_epoch(self, epoch: int) -> None:
        """Choose the order of this epoch.

        (A method named ``set_epoch`` would be called by Accelerate with its own count, which starts anew at a resume.)
        """
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        if self.seed is None:
            yield from self._cut(np.argsort(self.lengths, kind="stable"))
            return
        generator = np.random.default_rng([self.seed, self.epoch])
        order = generator.permutation(len(self.lengths))
        pool = self.largest * BATCHES_PER_POOL
        batches: list[list[int]] = []
        for start in range(0, len(order), pool):
            part = order[start : start + pool]
            batches += self._cut(part[np.argsort(self.lengths[part], kind="stable")])
        for i in generator.permutation(len(batches)):
            yield batches[i]

    def _cut(self, order: Ints) -> list[list[int]]:
        return [order[i : i + self.largest].tolist() for i in range(0, len(order), self.largest)]


class SameLengths(LengthBuckets):
    """Lists of indices, each of pairs whose premises, and whose hypotheses, have one length: nothing is padding.

    Args:
        lengths: premise and hypothesis length of each pair, ``(pairs, 2)``.
        batch_size: pairs in a batch, at most.
        seed: of the order; ``None`` keeps a fixed order by length.
    """

    def __init__(self, lengths: Ints, batch_size: int, seed: int | None) -> None:
        super().__init__(lengths, batch_size, seed)
        # Accelerate would take a batch that is not full for the last one.
        self.batch_size = None
        _, counts = np.unique(lengths, axis=0, return_counts=True)
        self.batches = int((-(-counts // batch_size)).sum())

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[list[int]]:
        generator = None if self.seed is None else np.random.default_rng([self.seed, self.epoch])
        order = np.arange(len(self.lengths)) if generator is None else generator.permutation(len(self.lengths))
        order = order[np.lexsort(self.lengths[order].T)]
        changes = np.flatnonzero(np.diff(self.lengths[order], axis=0).any(axis=1)) + 1
        batches = [batch for group in np.split(order, changes) for batch in self._cut(group)]
        for i in range(len(batches)) if generator is None else generator.permutation(len(batches)):
            yield batches[i]


class Share(Sampler[list[int]]):
    """One process's part of every batch, so that all processes together see what a single one would.

    A batch is dealt out like cards, and the parts differ by a pair at most. A process that has none left over for it
    is given the batch's first pair, with a weight of 0: every process takes every step.

    Args:
        batches: the batches of all processes together.
        process: of this one, from 0.
        processes: all of them.
    """

    def __init__(self, batches: LengthBuckets, process: int, processes: int) -> None:
        self.batches, self.process, self.processes = batches, process, processes

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.batches:
            yield batch[self.process :: self.processes] or batch[:1]

    def weights(self) -> Iterator[float]:
        """What the mean over each part is multiplied by, so that the processes' mean is that over the whole batch."""
        for batch in self.batches:
            yield self.processes * len(batch[self.process :: self.processes]) / len(batch)


def loader(
    dataset: PairDataset, batch_size: int, seed: int | None, *, same_lengths: bool = False, limit: int | None = None
) -> "DataLoader[Batch]":
    """A data loader over batches of similar, or of the same, lengths; of the first ``limit`` pairs, if given."""
    premise, hypothesis = dataset.premise.lengths[:limit], dataset.hypothesis.lengths[:limit]
    if same_lengths:
        sampler: LengthBuckets = SameLengths(np.stack([premise, hypothesis], axis=1), batch_size, seed)
    else:
        sampler = LengthBuckets(premise, batch_size, seed)
    pairs = dataset if limit is None else Subset(dataset, range(min(limit, len(dataset))))
    return DataLoader(pairs, batch_sampler=sampler, collate_fn=_as_it_is)


def evaluation_loader(dataset: PairDataset, limit: int | None = None) -> "DataLoader[Batch]":
    """Batches in a fixed order, by premise length; of the first ``limit`` pairs, if given."""
    return loader(dataset, EVALUATION_BATCH, None, limit=limit)


def order_of(batches: "DataLoader[Batch]") -> Tensor:
    """The place in the dataset of each pair that the batches bring, ``(pairs,)``; their order is a fixed one."""
    assert batches.batch_sampler is not None
    return torch.tensor([i for rows in batches.batch_sampler for i in rows])


def shared(batches: "DataLoader[Batch]", process: int, processes: int) -> "DataLoader[Batch]":
    """A data loader over one process's part of each of these batches.

    (Accelerate would give each process whole batches, and drop those around one that is not full but not the last.)
    """
    assert isinstance(batches.batch_sampler, LengthBuckets)
    part = Share(batches.batch_sampler, process, processes)
    return DataLoader(batches.dataset, batch_sampler=part, collate_fn=_as_it_is)


def _as_it_is(batch: Any) -> Any:
    """The dataset has made the batch already."""
    return batch


class _Side:
    """One side's sentences in lexicon ids."""

    def __init__(self, side: Ragged, words: Ints, tags: Ints) -> None:
        self.starts, self.lengths = side.offsets[:-1], side.lengths
        self.tokens = words[side.tokens]
        self.pos = None if side.pos is None else tags[side.pos]

    def padded(self, rows: Ints) -> Sentence:
        lengths = self.lengths[rows]
        columns = np.arange(lengths.max())
        mask = columns < lengths[:, None]
        places = np.where(mask, self.starts[rows, None] + columns, 0)
        return Sentence(
            _ids(self.tokens[places], mask),
            torch.from_numpy(mask),
            None if self.pos is None else _ids(self.pos[places], mask),
        )


def _ids(values: Ints, mask: npt.NDArray[np.bool_]) -> Tensor:
    return torch.from_numpy(np.where(mask, values, 0).astype(np.int64, copy=False))
