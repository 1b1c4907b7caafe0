"""Training and inference of every reference model, in pairs a second, beside ESIM; and how near they come to the limit.

The limit is this machine's own matrix product of 2,048 by 2,048, measured in the same process: the share of it that a
model reaches is the arithmetic of its matrix products, divided by time and by that rate.
"""

import copy
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from accelerate.utils import send_to_device
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import spent
from benchmarks.measure import Comparison, Step, Timing, compare
from benchmarks.words import random_words
from nli_common.data import Batch, Sentence
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe
from nli_common.recorded import RecordedGradients

SCRIPTS = (
    "decomposable_attention",
    "cafe",
    "gaussian_transformer",
    "gated_cnn",
    "lstm_attention",
    "esim",
    "stacked_alignment",
)
LENGTHS = ((14, 8), (30, 30))
"""Words of premise and hypothesis: SNLI's means, and long ones."""
BATCHES = (64, 256)
WORDS = 10_000
RIVAL = "ESIM"
PAPER_RATIOS = {
    "GaussianTransformer": "3.6 in training, 7.8 in inference (Guo et al. 2019)",
    "GatedCNN": "2.4 in training, 4.0 without characters and tags (Chen et al. 2019)",
}
"""Speeds against ESIM that papers report, on their machines and batches."""


@dataclass(frozen=True)
class Speed:
    """One model at one batch size and length."""

    model: str
    batch: int
    lengths: tuple[int, int]
    training: Timing
    """Seconds of a step of Adam."""
    inference: Timing
    """Seconds of a forward pass without gradients."""
    flops: float
    """Multiplications and additions in the matrix products of a training step."""
    spent: dict[str, float]
    """The share of each kind of work in a training step."""


def models(device: str) -> dict[str, nn.Module]:
    """Every reference model with its defaults, over a lexicon of random words of 4 to 9 letters, without tags."""
    lexicon = Lexicon.random(dict.fromkeys(random_words(WORDS)), 300)
    made: dict[str, nn.Module] = {}
    for name in SCRIPTS:
        for config, model in importlib.import_module(name).SCRIPT.models.items():
            torch.manual_seed(0)
            made[config.__name__.removesuffix("Config")] = model(config(), lexicon).to(device)
    return made


def sentence(batch: int, length: int, device: str, seed: int) -> Sentence:
    """Sentences whose lengths vary: the longest is full, the shortest half of it."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint((length + 1) // 2, length + 1, (batch, 1), generator=generator)
    lengths[0] = length
    mask = torch.arange(length) < lengths
    tokens = torch.randint(WORDS // 2, (batch, length), generator=generator) * mask
    return Sentence(tokens.to(device), mask.to(device), None)


def steps(model: nn.Module, premise: Sentence, hypothesis: Sentence) -> tuple[Step, Step]:
    """A step of training, as the scripts do it but so small that nothing is learnt, and one of inference.

    A model that has learnt its batch by heart has gradients of less than 1e-38, and a product of such denormal numbers
    takes some processors tens of times as long.
    """

    def infer() -> Tensor:
        model.eval()
        with torch.inference_mode():
            logits: Tensor = model(premise, hypothesis)
        return logits

    batch = _batch(premise, hypothesis)
    return _training_step(model, lambda: _gradients(model, batch)), infer


def product_flops(step: Step) -> float:
    """Multiplications and additions of the matrix products; recurrent layers are taken apart to be counted."""
    with (
        torch.backends.mkldnn.flags(enabled=False),
        torch.backends.cudnn.flags(enabled=False),
        FlopCounterMode(display=False) as counter,
    ):
        step()
    return counter.get_total_flops()


def compiled(device: str) -> Iterator[tuple[str, Comparison]]:
    """Every model's step compiled, as ours, against the same model's as it is, on short sentences."""
    for name, model in models(device).items():
        pair = tuple(sentence(BATCHES[0], length, device, seed) for seed, length in enumerate(LENGTHS[0]))
        twin = copy.deepcopy(model).to(device)  # which brings an LSTM's weights together again, for cuDNN
        twin.compile(dynamic=True)
        yield name, compare(steps(twin, *pair)[0], {"eager": steps(model, *pair)[0]}, rounds=7, round_seconds=0.2)


def recorded(device: str) -> Iterator[tuple[str, tuple[int, int], Comparison]]:
    """Every model's step as ``--cuda-graphs`` takes it, as ours, against the same model's as it is."""
    for name, model in models(device).items():
        for lengths in LENGTHS:
            pair = tuple(sentence(BATCHES[0], length, device, seed) for seed, length in enumerate(lengths))
            rivals = {"eager": steps(model, *pair)[0]}
            yield name, lengths, compare(recorded_step(model, *pair), rivals, rounds=7, round_seconds=0.2)


def recorded_step(model: nn.Module, premise: Sentence, hypothesis: Sentence) -> Step:
    """The same step of training, its forward and backward pass replayed; the batch comes from the CPU each time."""
    gradients = RecordedGradients(partial(_gradients, model), model.parameters(), premise.tokens.device)
    batch: Batch = send_to_device(_batch(premise, hypothesis), "cpu")
    return _training_step(model, lambda: gradients(batch))


def memory_of_a_record(device: str) -> float:
    """Bytes of the GPU that the record of one more shape takes, the mean of the rival's 28 shapes below the largest."""
    lengths = [(premise, hypothesis) for premise in range(60, 0, -4) for hypothesis in (32, 16)]
    model, free = models(device)[RIVAL], []
    gradients = RecordedGradients(partial(_gradients, model), model.parameters(), torch.device(device))
    for pair in lengths:
        batch = _batch(*(sentence(BATCHES[0], length, "cpu", 0) for length in pair))
        for _ in range(3):
            gradients(batch)
        torch.cuda.synchronize()
        free.append(torch.cuda.mem_get_info()[0])
    return (free[1] - free[-1]) / (len(free) - 2)


def _training_step(model: nn.Module, gradients: Callable[[], Tensor]) -> Step:
    optimizer = Recipe(lr=1e-8).make_optimizer(model)

    def train() -> Tensor:
        model.train()
        optimizer.zero_grad()
        loss = gradients()
        optimizer.step()
        return loss

    return train


def _gradients(model: nn.Module, batch: Batch) -> Tensor:
    loss = nn.functional.cross_entropy(model(batch.premise, batch.hypothesis), batch.label)
    loss.backward()
    return loss.detach()


def _batch(premise: Sentence, hypothesis: Sentence) -> Batch:
    labels = torch.zeros(len(premise.tokens), dtype=torch.int64, device=premise.tokens.device)
    return Batch(premise, hypothesis, labels, labels)


def product_rate(device: str) -> float:
    """Multiplications and additions a second of one large matrix product."""
    a, b = (torch.randn(2048, 2048, device=device) for _ in range(2))
    return 2 * 2048**3 / compare(lambda: a @ b, {}, rounds=7).seconds["ours"].median


def run(device: str) -> Iterator[Speed]:
    """Every model at every batch size and length; each takes its turn in each round."""
    every = models(device)
    for lengths in LENGTHS:
        for batch in BATCHES:
            pair = tuple(sentence(batch, length, device, seed) for seed, length in enumerate(lengths))
            both = {name: steps(model, *pair) for name, model in every.items()}
            flops = {name: product_flops(train) for name, (train, _) in both.items()}
            timed = []
            for phase in (0, 1):
                rivals = {name: phases[phase] for name, phases in both.items()}
                ours = rivals.pop(RIVAL)
                seconds = compare(ours, rivals, rounds=5, round_seconds=0.1).seconds
                timed.append({RIVAL if name == "ours" else name: timing for name, timing in seconds.items()})
            for name, (train, _) in both.items():
                shares = spent.shares(train, device)
                yield Speed(name, batch, lengths, timed[0][name], timed[1][name], flops[name], shares)
