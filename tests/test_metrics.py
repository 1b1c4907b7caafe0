"""Accuracies and the confusion matrix, counted by hand."""

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from nli_common import metrics
from nli_common.batches import PairDataset, evaluation_loader
from nli_common.corpora import Pair
from nli_common.data import Batch, Corpus, Sentence
from nli_common.errors import InputError
from nli_common.lexicon import Lexicon
from nli_common.memory import memory_for
from nli_common.metrics import metrics_of, predictions


def test_metrics_counted_by_hand() -> None:
    predicted, label = torch.tensor([0, 2, 2, 1, 0, 0]), torch.tensor([0, 0, 2, 1, 1, 0])
    found = metrics_of(predicted, label, torch.tensor([1, 1, 2, 2, 2, 0]), ("a", "b", "c"), ("", "x", "y"))
    assert found["confusion"] == [[2, 0, 1], [1, 1, 0], [0, 0, 1]], "gold labels in rows"
    assert found["per_class"] == pytest.approx({"a": 2 / 3, "b": 1 / 2, "c": 1.0})
    assert found["per_phenomenon"] == pytest.approx({"x": 1 / 2, "y": 2 / 3})
    assert found["accuracy"] == pytest.approx(4 / 6) and found["pairs"] == 6


def test_accuracy_is_of_pairs_and_not_of_batches() -> None:
    """257 pairs: 256 that are right, and one by itself that is wrong."""
    label = torch.zeros(257, dtype=torch.long)
    predicted = label.index_fill(0, torch.tensor([256]), 1)
    found = metrics_of(predicted, label, label, ("a", "b"), [""])
    assert found["accuracy"] == pytest.approx(256 / 257, abs=1e-6)


class Longer(nn.Module):
    """Class 1 where the premise has more words than the hypothesis; remembers how much it was given at once."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[tuple[int, int, int]] = []

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        self.shapes.append((len(premise.tokens), premise.tokens.shape[1], hypothesis.tokens.shape[1]))
        assert premise.pos is not None and premise.pos.shape == premise.tokens.shape
        longer = premise.mask.sum(1) > hypothesis.mask.sum(1)
        return torch.stack([~longer, longer], dim=1).float()


def test_long_sentences_are_read_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair of 3,000 words would otherwise pad 255 others to its length, and their matrices of scores with them."""
    lengths = [(2, 3), (40, 1), (5, 4), (1, 60), (3, 2), (6, 7), (2, 1), (9, 9)]
    pairs = [
        Pair(["a"] * n, ["b"] * m, "entailment" if n <= m else "neutral", ["X"] * n, ["Y"] * m) for n, m in lengths
    ]
    corpus = Corpus.from_pairs(pairs, "this test")
    lexicon = Lexicon.random(corpus.words, 2, tags=corpus.tags)
    batches = evaluation_loader(PairDataset(corpus, lexicon, ("entailment", "neutral"), [""]))
    model = Longer()
    whole = predictions(model, batches, Accelerator(cpu=True))
    assert model.shapes == [(8, 40, 60)] and torch.equal(whole[0], whole[1])
    model.shapes.clear()
    monkeypatch.setattr(metrics, "CELLS", 2 * 60**2 + 1)
    few = predictions(model, batches, Accelerator(cpu=True))
    assert [pairs for pairs, *_ in model.shapes] == [2, 2, 2, 2]
    assert all(pairs * max(n, m) ** 2 <= metrics.CELLS for pairs, n, m in model.shapes)
    assert min(max(n, m) for _, n, m in model.shapes) < 10, "padded no further than need be"
    assert all(map(torch.equal, whole, few))
    monkeypatch.setattr(metrics, "CELLS", 1)
    model.shapes.clear()
    assert torch.equal(predictions(model, batches, Accelerator(cpu=True))[0], whole[0])
    assert len(model.shapes) == 8, "one that is too long by itself is read by itself"


@pytest.mark.parametrize("training", [True, False])
def test_a_model_is_in_evaluation_while_it_is_read_and_then_as_before(training: bool) -> None:
    class Watched(Longer):
        def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
            assert not self.training
            return super().forward(premise, hypothesis)

    corpus = Corpus.from_pairs([Pair(["a"], ["b"], "neutral", ["X"], ["Y"])], "this test")
    lexicon = Lexicon.random(corpus.words, 2, tags=corpus.tags)
    batches = evaluation_loader(PairDataset(corpus, lexicon, ("entailment", "neutral"), [""]))
    model = Watched().train(training)
    predictions(model, batches, Accelerator(cpu=True))
    assert model.training == training


class Huge(Longer):
    """Wants more memory than there is for a sentence of 60 words."""

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        if hypothesis.tokens.shape[1] == 60:
            torch.empty(1 << 60)
        return super().forward(premise, hypothesis)


@pytest.mark.parametrize(
    "said",
    [
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "CUDA error: out of memory",
    ],
)
def test_a_gpu_that_finds_no_memory_has_several_ways_to_say_it(said: str) -> None:
    one = Sentence(torch.ones(2, 3, dtype=torch.long), torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(InputError, match="out of memory: 2 pairs"), memory_for(one, one):
        raise RuntimeError(said)
    with pytest.raises(RuntimeError, match="no kernel image"), memory_for(one, one):
        raise RuntimeError("CUDA error: no kernel image is available for execution on the device")


def test_too_little_memory_is_told_with_the_pairs_that_need_it() -> None:
    pairs = [Pair(["a"] * 9, ["b"] * m, "neutral", ["X"] * 9, ["Y"] * m) for m in (3, 60)]
    corpus = Corpus.from_pairs(pairs, "this test")
    lexicon = Lexicon.random(corpus.words, 2, tags=corpus.tags)
    batches = evaluation_loader(PairDataset(corpus, lexicon, ("entailment", "neutral"), [""]))
    with pytest.raises(InputError, match="out of memory: 2 pairs, the longest sentences of 9 and 60 words"):
        predictions(Huge(), batches, Accelerator(cpu=True))


def test_tags_go_with_their_sentences_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = torch.arange(1, 13).reshape(4, 3)
    side, zeros = Sentence(tokens, torch.ones(4, 3, dtype=torch.bool), tokens + 100), torch.zeros(4, dtype=torch.long)

    sizes = []

    class Told(nn.Module):
        def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
            sizes.append(len(premise.tokens))
            assert all(torch.equal(s.pos, s.tokens + 100) for s in (premise, hypothesis))
            return torch.zeros(len(premise.tokens), 2)

    monkeypatch.setattr(metrics, "CELLS", 2 * 3**2)
    [(logits, _)] = metrics.scores(Told(), [Batch(side, side, zeros, zeros)])
    assert len(logits) == 4 and sizes == [2, 2]


def test_a_class_that_is_never_predicted_has_its_accuracy() -> None:
    label = torch.tensor([0, 0, 1])
    found = metrics_of(torch.tensor([0, 2, 0]), label, label, ("a", "b", "c"), ("", ""))
    assert found["per_class"] == {"a": 0.5, "b": 0.0}
