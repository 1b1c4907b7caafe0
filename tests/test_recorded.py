"""Steps from CUDA graphs: on a machine without a GPU, from the stand-in's."""

import gc
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
from decomposable_attention import SCRIPT, DecomposableAttention, DecomposableAttentionConfig
from gated_cnn import GatedCNN, GatedCNNConfig
from nli_common import recorded as recorded_steps
from nli_common import train_runs, training
from nli_common.batches import PairDataset
from nli_common.data import Batch, Corpus, Sentence
from nli_common.errors import InputError
from nli_common.generated import generated_pairs
from nli_common.inputs import Data
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe
from nli_common.recorded import MULTIPLE, RecordedGradients, padded, recording
from nli_common.runs import Run
from nli_common.train_runs import _require_recordable, train_run
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


OUT_OF_MEMORY = (torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("CUDA error: out of memory"))


def test_an_error_that_is_dealt_with_does_not_hide_the_one_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_graphs.on_the_cpu(monkeypatch)
    with pytest.raises(RuntimeError, match="while"):
        try:
            raise KeyError("before")
        except KeyError:
            with recording(torch.cuda.CUDAGraph(), torch.device("cpu"), None):
                try:
                    raise KeyError("within")
                except KeyError:
                    cuda_graphs.Recording.spoilt = True
                    raise RuntimeError("while") from None


def record(device: str, problem: RuntimeError | None) -> None:
    """Fail to record: by an error, or because a number is read. PyTorch records no other graph in this process."""

    def failing(batch: Batch) -> Tensor:
        cuda_graphs.Recording.spoilt = True  # so that the end of the recording fails, too
        assert problem is not None
        raise problem

    with pytest.MonkeyPatch.context() as patch:
        if device == "cpu":
            cuda_graphs.on_the_cpu(patch)
        training = Training(Two(), device)
        training.model.look = problem is None
        training.recorded(batch_of("ESIM", WIDE, 0))
        if problem is not None:
            training.recorded.gradients = failing
        training.recorded(batch_of("ESIM", WIDE, 1))


def problem_told(device: str, problem: RuntimeError | None) -> BaseException | None:
    if device == "cpu":
        with pytest.raises(Exception) as told:
            record(device, problem)
        return told.value
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(record, device, problem).exception()


def test_what_waits_for_a_value_is_refused(device: str) -> None:
    """And the first error is told, not the one that it leads to when the recording ends."""
    error = problem_told(device, None)
    assert isinstance(error, InputError)
    assert "--cuda-graphs: a step of this model cannot be recorded (" in str(error)
    assert "operation not permitted when stream is capturing" in str(error)


@pytest.mark.parametrize("problem", [*OUT_OF_MEMORY, RuntimeError("a shape is wrong")], ids=["one", "other", "else"])
def test_another_error_is_told_as_it_is(problem: RuntimeError, device: str) -> None:
    error = problem_told(device, problem)
    assert type(error) is type(problem) and str(error) == str(problem)


def test_too_little_memory_is_told_with_the_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Tensor:
        raise OUT_OF_MEMORY[1]

    cuda_graphs.on_the_cpu(monkeypatch)
    trainer = trainer_of(bag(), tmp_path / "run", epochs=2)
    assert trainer.recorded is not None
    trainer.recorded.gradients = full
    with pytest.raises(InputError, match="leave such pairs out; or train without --cuda-graphs, in another folder"):
        trainer.fit()
    monkeypatch.setattr(trainer, "_epoch", lambda at: 0.0)
    monkeypatch.setattr(trainer.unwrapped, "forward", full)
    with pytest.raises(InputError, match="leave out what is that long; or train without --cuda-graphs"):
        trainer.fit()


@pytest.mark.usefixtures("_graphs")
def test_attention_in_blocks_is_recorded(device: str) -> None:
    """Its window is that of every batch: what the first one's scores allow is not read."""
    attention = nlilayers.GaussianSelfAttention(8, 2, window="auto").to(device)
    words = [normal(seed, 2, 600, 8).float().to(device) for seed in range(2)]
    expected = [attention(x) for x in words]
    graph, held = torch.cuda.CUDAGraph(), words[0].clone()
    with torch.no_grad(), recording(graph, held.device, None):
        found = attention(held)
    for x, y in zip(reversed(words), reversed(expected), strict=True):
        held.copy_(x)
        graph.replay()
        assert_close(found, y, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("_graphs")
def test_what_is_not_trained_has_no_place_for_a_gradient(device: str) -> None:
    model = Two()
    model.second.requires_grad_(False)
    training = Training(model, device)
    for seed in range(3):
        recorded, plain = training.both(batch_of("ESIM", WIDE, seed), seed)
        assert_close(recorded, plain)
        assert recorded[-1] is None
    assert list(training.recorded.held) == list(model.first.parameters())


@pytest.mark.parametrize("collecting", [True, False])
def test_a_recording_leaves_the_collector_as_it_was(collecting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_graphs.on_the_cpu(monkeypatch)
    (gc.enable if collecting else gc.disable)()
    try:
        with recording(torch.cuda.CUDAGraph(), torch.device("cpu"), None):
            assert not gc.isenabled()
        assert gc.isenabled() == collecting
    finally:
        gc.enable()


@pytest.mark.usefixtures("_graphs")
def test_a_record_of_an_earlier_training_is_not_collected_while_another_is_made(device: str) -> None:
    """Which CUDA would not let go by: two trainings in one process, and the first in a circle of references."""
    earlier = Training(Two(), device)
    training = Training(subject(CASES["ESIM"]).module, device)
    training.recorded(batch_of("ESIM", WIDE, 0))
    for seed in range(2):
        earlier.recorded(batch_of("ESIM", WIDE, seed))
    young: list[Any] = [earlier.recorded.records.popitem()[1]]

    def leaving_garbage(batch: Batch) -> Tensor:
        if young:
            circle = [young.pop()]
            circle.append(circle)
            del circle
            assert len([[] for _ in range(10 * gc.get_threshold()[0])]) > 0  # enough to have it collected
        return training.gradients(batch)

    training.recorded.gradients = leaving_garbage
    recorded, plain = training.both(batch_of("ESIM", WIDE, 1), 1)
    assert_close(recorded, plain, rtol=1e-5, atol=1e-5)


def spelling() -> GatedCNN:
    """It drops features of what it makes of characters, too."""
    sizes = {"hidden_size": 5, "context_layers": 1, "aggregation_layers": 1, "char_dim": 3, "char_size": 4}
    config = GatedCNNConfig(**sizes, char_layers=2, use_pos=False, dropout=0.3)
    return GatedCNN(config, LEXICON)


def bag() -> DecomposableAttention:
    return DecomposableAttention(DecomposableAttentionConfig(False, 4, dropout=0.3), LEXICON)


CORPUS = Corpus.from_pairs(generated_pairs(100, "train"), "generated")
LEXICON = Lexicon.random(CORPUS.words, 5, tags=CORPUS.tags)


def trainer_of(model: nn.Module, folder: Path, **recipe: Any) -> Trainer:
    pairs = PairDataset(CORPUS, LEXICON, CORPUS.labels, CORPUS.phenomena)
    chosen = Recipe(lr=0.01, batch_size=20, cuda_graphs=True, **recipe)
    return Trainer(
        model,
        chosen.make_optimizer(model),
        train=pairs,
        dev=pairs,
        recipe=chosen,
        seed=0,
        run=Run(folder),
        accelerator=Accelerator(),
        console=Console(quiet=True),
        checkpoint_seconds=0.0,
    )


@pytest.mark.parametrize("build", [bag, spelling])
def test_a_killed_training_by_graphs_goes_on_to_the_same_weights(
    build: Callable[[], nn.Module], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shapes that it had recorded are new to the process that goes on."""
    cuda_graphs.on_the_cpu(monkeypatch)
    finished: list[dict[str, Tensor]] = []
    save, kept = training.save_checkpoint, iter(range(12))

    def killed(*arguments: Any, **options: Any) -> None:
        save(*arguments, **options)
        if next(kept, None) is None:
            raise KeyboardInterrupt

    for folder in ("whole", "killed"):
        torch.manual_seed(0)
        if folder == "killed":
            with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
                patch.setattr(training, "save_checkpoint", killed)
                trainer_of(build(), tmp_path / folder, epochs=4).fit()
        trainer = trainer_of(build(), tmp_path / folder, epochs=4)
        trainer.fit()
        assert trainer.recorded is not None and trainer.recorded.records
        finished.append(trainer.unwrapped.state_dict())
    assert_close(finished[1], finished[0], rtol=0, atol=0)


def test_nothing_holds_the_records_when_a_training_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are of the GPU's memory, which the next one may need."""
    cuda_graphs.on_the_cpu(monkeypatch)
    trainer = trainer_of(bag(), tmp_path / "run", epochs=2)
    trainer.fit()
    assert trainer.recorded is not None and trainer.recorded.records
    held = weakref.ref(trainer.recorded)
    gc.disable()
    try:
        del trainer
        assert held() is None
    finally:
        gc.enable()


def test_pairs_of_the_same_lengths_are_not_padded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_graphs.on_the_cpu(monkeypatch)
    trainer = trainer_of(bag(), tmp_path / "run", epochs=2, same_lengths=True)
    trainer.fit()
    assert trainer.recorded is not None
    assert any(premise[1] % MULTIPLE for premise, _ in trainer.recorded.seen)


@pytest.mark.usefixtures("_graphs")
def test_a_network_that_drops_features_of_characters_drops_the_same_ones(device: str) -> None:
    torch.manual_seed(0)
    training = Training(spelling(), device)
    pairs = PairDataset(CORPUS, LEXICON, CORPUS.labels, CORPUS.phenomena)
    batch = pairs.__getitems__(range(20))
    for seed in range(3):
        recorded, plain = training.both(_padded_batch(batch), seed)
        assert_close(recorded, plain, rtol=1e-4, atol=1e-5)


def _padded_batch(batch: Batch) -> Batch:
    """So that dropout draws for the same words."""
    return batch._replace(premise=padded(batch.premise, MULTIPLE), hypothesis=padded(batch.hypothesis, MULTIPLE))


@pytest.mark.usefixtures("_graphs")
def test_no_more_shapes_are_recorded_than_there_may_be(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_steps, "MOST", 1)
    training = Training(Two(), device)
    for seed, shape in enumerate((WIDE, WIDE, NARROW, NARROW, NARROW, WIDE)):
        recorded, plain = training.both(batch_of("ESIM", shape, seed), seed)
        assert_close(recorded, plain)
    assert len(training.recorded.records) == 1 and len(training.read) == 2 + 3 + 6


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


def test_a_finished_training_by_graphs_is_shown_where_there_is_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, cache, *named = write_corpora(tmp_path)
    train, dev, test = map(Path, named[1::2])
    data = Data(train=train, dev=dev, test=test, cache=Path(cache))
    recipe = Recipe(lr=0.01, epochs=2, cuda_graphs=True)
    again = partial(train_run, SCRIPT, DecomposableAttentionConfig(False, 4), recipe, data, 0, Run(tmp_path / "run"))
    with pytest.raises(InputError, match="needs a CUDA device"):
        again()
    with monkeypatch.context() as patch:
        cuda_graphs.on_the_cpu(patch)
        patch.setattr(train_runs, "_require_recordable", lambda *_, **__: None)
        again()
    capsys.readouterr()
    again()
    assert "this run is finished" in capsys.readouterr().out


def test_what_has_no_graph_is_refused() -> None:
    def accelerator(device: str, processes: int) -> Any:
        return SimpleNamespace(device=torch.device(device), num_processes=processes)

    _require_recordable(accelerator("cuda", 1), on_encoder=False)
    with pytest.raises(InputError, match="--cuda-graphs needs a single process, got 2"):
        _require_recordable(accelerator("cuda", 2), on_encoder=False)
    with pytest.raises(InputError, match="--cuda-graphs needs a CUDA device, got mps"):
        _require_recordable(accelerator("mps", 1), on_encoder=False)
    with pytest.raises(InputError, match="--cuda-graphs cannot record an --encoder: each step waits for its features"):
        _require_recordable(accelerator("cuda", 1), on_encoder=True)
