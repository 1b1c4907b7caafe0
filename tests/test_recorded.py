"""Steps from CUDA graphs: on a machine without a GPU, from the stand-in's."""

import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from reliability.cases import CASES
from reliability.subjects import Shape, subject
from rich.console import Console
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

import cuda_graphs
import nlilayers
from decomposable_attention import DecomposableAttention, DecomposableAttentionConfig
from gaussian_transformer import GaussianTransformerConfig
from nli_common.batches import PairDataset
from nli_common.data import Batch, Corpus, Sentence
from nli_common.errors import InputError
from nli_common.generated import generated_pairs
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe
from nli_common.recorded import MULTIPLE, RecordedGradients
from nli_common.runs import Run
from nli_common.train_runs import _require_recordable
from nli_common.training import Trainer
from runs import run_script, write_corpora
from strategies import normal

MODELS = [name for name, case in CASES.items() if case.paired]
NARROW, WIDE = Shape(3, 8, 4), Shape(3, 8, 12)


@pytest.fixture
def _graphs(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "cpu":
        cuda_graphs.on_the_cpu(monkeypatch)


def batch_of(name: str, shape: Shape, seed: int) -> Batch:
    premise, hypothesis = subject(CASES[name]).inputs(shape, seed)
    labels = torch.randint(3, (shape.batch,), generator=torch.Generator().manual_seed(seed))
    return Batch(premise, hypothesis, labels, torch.zeros_like(labels))


class Training:
    """A model with dropout, and its gradients with and without a record."""

    def __init__(self, model: nn.Module, device: str) -> None:
        self.model, self.device = model.to(device).train(), torch.device(device)
        self.read: list[tuple[int, int]] = []
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.3
        self.recorded = RecordedGradients(self.gradients, model.parameters(), self.device)

    def gradients(self, batch: Batch) -> Tensor:
        self.read.append((batch.premise.tokens.shape[1], batch.hypothesis.tokens.shape[1]))
        loss = cross_entropy(self.model(batch.premise, batch.hypothesis), batch.label)
        loss.backward()
        return loss.detach()

    def given(self, loss: Tensor) -> list[Tensor | None]:
        return [loss.clone(), *(None if p.grad is None else p.grad.clone() for p in self.model.parameters())]

    def both(self, batch: Batch, seed: int) -> Iterator[list[Tensor | None]]:
        """Loss and gradients of a batch as recorded and as they are, with one seed's dropout."""
        torch.manual_seed(seed)
        yield self.given(self.recorded(batch))
        self.model.zero_grad()
        torch.manual_seed(seed)
        yield self.given(self.gradients(send_to_device(batch, self.device)))


@pytest.mark.usefixtures("_graphs")
@pytest.mark.parametrize("name", MODELS)
def test_a_replayed_step_has_the_loss_and_gradients_of_the_batch_it_is_given(name: str, device: str) -> None:
    """With the dropout of the seed, whatever was replayed before, and after the weights have changed."""
    training = Training(subject(CASES[name]).module, device)
    for seed, shape in enumerate((NARROW, WIDE, NARROW, WIDE, WIDE, NARROW, WIDE)):
        recorded, plain = training.both(batch_of(name, shape, seed), seed)
        assert_close(recorded, plain, rtol=1e-5, atol=1e-5 * max(float(x.abs().max()) for x in plain if x is not None))
        with torch.no_grad():
            for parameter in training.model.parameters():
                parameter.mul_(0.9)
    assert len(training.read) == 4 + 7, "each shape's first and second time, and what they are compared with"


@pytest.mark.usefixtures("_graphs")
def test_sentences_are_padded_so_that_there_are_few_shapes(device: str) -> None:
    """Which changes nothing but the words that dropout draws for."""
    name = "DecomposableAttention"
    training = Training(subject(CASES[name]).module, device)
    training.model.eval()
    for seed, shape in enumerate((Shape(3, 5, 8), Shape(3, 7, 6), Shape(3, 8, 5))):
        recorded, plain = training.both(batch_of(name, shape, seed), seed)
        assert_close(recorded, plain, rtol=1e-5, atol=1e-5)
    assert training.read == [(8, 8), (5, 8), (8, 8), (7, 6), (8, 5)] and MULTIPLE == 4


class Two(nn.Module):
    """Two linear layers over the tokens' numbers, of which longer hypotheses use the second too."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 3), nn.Linear(8, 3)
        self.look = False

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        y = self.first(premise.tokens.float())
        if self.look and y.isnan().any():
            raise AssertionError
        return y + self.second(premise.tokens.float()) if hypothesis.tokens.shape[1] > 4 else y


@pytest.mark.usefixtures("_graphs")
def test_a_parameter_without_a_part_in_a_batch_gets_no_gradient_of_another(device: str) -> None:
    training = Training(Two(), device)
    for seed, shape in enumerate((WIDE, WIDE, NARROW, NARROW, WIDE, NARROW)):
        recorded, plain = training.both(batch_of("ESIM", shape, seed), seed)
        assert (recorded[-1] is None) == (shape == NARROW)
        assert_close(recorded, plain)


def record(device: str, problem: Literal["look", "memory"]) -> None:
    """Fail to record; what is recorded afterwards in this process may fail, too."""

    def full(batch: Batch) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.MonkeyPatch.context() as patch:
        if device == "cpu":
            cuda_graphs.on_the_cpu(patch)
        training = Training(Two(), device)
        training.model.look = problem == "look"
        training.recorded(batch_of("ESIM", WIDE, 0))
        if problem == "memory":
            training.recorded.gradients = full
        training.recorded(batch_of("ESIM", WIDE, 1))


def problem_told(device: str, problem: str) -> BaseException | None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(record, device, problem).exception()


def test_what_waits_for_a_value_is_refused(device: str) -> None:
    error = problem_told(device, "look")
    assert isinstance(error, InputError)
    assert "--cuda-graphs: a step of this model cannot be recorded (" in str(error) and "captur" in str(error)


def test_too_little_memory_for_a_record_is_told_as_that(device: str) -> None:
    assert isinstance(problem_told(device, "memory"), torch.OutOfMemoryError)


@pytest.mark.usefixtures("_graphs")
def test_attention_in_blocks_is_recorded(device: str) -> None:
    """Its window is that of every batch: what the first one's scores allow is not read."""
    attention = nlilayers.GaussianSelfAttention(8, 2, window="auto").to(device)
    words = [normal(seed, 2, 600, 8).float().to(device) for seed in range(2)]
    expected = [attention(x) for x in words]
    graph, held = torch.cuda.CUDAGraph(), words[0].clone()
    with torch.no_grad(), torch.cuda.graph(graph, pool=torch.cuda.graph_pool_handle()):
        found = attention(held)
    for x, y in zip(reversed(words), reversed(expected), strict=True):
        held.copy_(x)
        graph.replay()
        assert_close(found, y, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("_graphs")
def test_a_record_of_an_earlier_training_is_not_collected_while_another_is_made(device: str) -> None:
    """Which CUDA would not let go by: two trainings in one process, and the first in a circle of references."""
    earlier = Training(Two(), device)
    assert earlier.recorded.gradients.__self__ is earlier  # type: ignore[attr-defined]
    for seed in range(2):
        earlier.recorded(batch_of("ESIM", WIDE, seed))
    training = Training(subject(CASES["ESIM"]).module, device)
    training.recorded(batch_of("ESIM", WIDE, 0))
    often, before = 1, gc.get_threshold()
    del earlier
    gc.set_threshold(often)
    try:
        recorded, plain = training.both(batch_of("ESIM", WIDE, 1), 1)
    finally:
        gc.set_threshold(*before)
    assert_close(recorded, plain, rtol=1e-5, atol=1e-5)


def test_nothing_holds_the_records_when_a_training_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are of the GPU's memory, which the next one may need."""
    cuda_graphs.on_the_cpu(monkeypatch)
    corpus = Corpus.from_pairs(generated_pairs(40, "train"), "generated")
    lexicon = Lexicon.random(corpus.words, 5, tags=corpus.tags)
    pairs = PairDataset(corpus, lexicon, corpus.labels, corpus.phenomena)
    model = DecomposableAttention(DecomposableAttentionConfig(False, 4), lexicon)
    recipe = Recipe(lr=0.01, epochs=2, batch_size=20, cuda_graphs=True)
    trainer = Trainer(
        model,
        recipe.make_optimizer(model),
        train=pairs,
        dev=pairs,
        recipe=recipe,
        seed=0,
        run=Run(tmp_path / "run"),
        accelerator=Accelerator(),
        console=Console(quiet=True),
        checkpoint_seconds=60.0,
    )
    trainer.fit()
    records = trainer.recorded
    assert records is not None and any(records.records.values())
    held = weakref.ref(records)
    gc.disable()
    try:
        del trainer, records
        assert held() is None
    finally:
        gc.enable()


def test_a_training_by_graphs_learns_the_same(device: str, tmp_path: Path) -> None:
    options = ["train", *write_corpora(tmp_path), "--epochs", "3", "--hidden-size", "20", "--dropout", "0"]
    if device == "cpu":
        done = run_script(*options, "--cuda-graphs", "--output", tmp_path / "graphs")
        assert done.returncode == 2 and "--cuda-graphs needs a CUDA device, got cpu" in done.stderr
        return
    weights = []
    for name, graphs in (("plain", []), ("graphs", ["--cuda-graphs"])):
        done = run_script(*options, *graphs, "--output", tmp_path / name, device=device)
        assert done.returncode == 0, done.stderr
        weights.append(load_file(tmp_path / name / "model.safetensors"))
    assert_close(weights[1], weights[0], atol=1e-4, rtol=1e-4)


def test_what_has_no_graph_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    def accelerator(device: str, processes: int) -> Any:
        return SimpleNamespace(device=torch.device(device), num_processes=processes)

    plain = DecomposableAttentionConfig()
    _require_recordable(accelerator("cuda", 1), plain)
    with pytest.raises(InputError, match="--cuda-graphs needs a single process, got 2"):
        _require_recordable(accelerator("cuda", 2), plain)
    with pytest.raises(InputError, match="--cuda-graphs needs a CUDA device, got mps"):
        _require_recordable(accelerator("mps", 1), plain)
    with pytest.raises(InputError, match="--cuda-graphs cannot record an --encoder: each step waits for its features"):
        _require_recordable(accelerator("cuda", 1), GaussianTransformerConfig(encoder=str(tmp_path)))
