"""Every layer and reference model compiled, exported, in ONNX and on the meta device, beside itself as it is.

All of them run in float32 and in evaluation, so that dropout is no difference.
"""

import copy
import importlib
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import onnxruntime
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

import nlilayers
from nli_common.data import Sentence
from nli_common.feedforward import feedforward
from nli_common.lexicon import Lexicon

TOLERANCE = 1e-5
SCRIPTS = (
    "decomposable_attention",
    "cafe",
    "gaussian_transformer",
    "gated_cnn",
    "lstm_attention",
    "esim",
    "hypothesis_only",
)
TINY: Mapping[str, Mapping[str, Any]] = {
    "DecomposableAttention": {"hidden_size": 14, "intra_attention": True, "max_distance": 2},
    "CAFE": {
        "encoder_size": 14,
        "num_factors": 2,
        "lstm_size": 3,
        "prediction_size": 15,
        "char_size": 2,
        "char_filters": 3,
        "tag_size": 2,
    },
    "GaussianTransformer": {"hidden_size": 16, "char_size": 3, "num_encoding_blocks": 2, "num_interaction_blocks": 1},
    "GatedCNN": {
        "hidden_size": 14,
        "context_layers": 2,
        "aggregation_layers": 1,
        "char_dim": 2,
        "char_size": 3,
        "char_layers": 1,
        "num_tags": 4,
    },
    "HybridModel": {"hidden_size": 3},
    "AttentionModel": {"hidden_size": 14},
    "LSTMBaseline": {"hidden_size": 3},
    "ESIM": {"hidden_size": 3},
    "HypothesisOnly": {"hidden_size": 14},
}
"""Options that make each model small, at widths that no batch or sentence has."""
TAGS = ("DT", "NN", "VBZ")


class Shape(NamedTuple):
    """Pairs in a batch, and the words of the longest premise and hypothesis of it: three different numbers."""

    batch: int
    premise: int
    hypothesis: int


SMALL = tuple(Shape(k, k + 2, 2 * k + 3) for k in range(2, 12))
LARGE = tuple(Shape(8 * k, 5 + 3 * k, 4 + 2 * k) for k in range(2, 12))
"""Ten shapes each; the first is what is exported, the others are new to the exported program."""


@dataclass(frozen=True)
class Case:
    """A layer or a model, and what it is given at a shape."""

    name: str
    module: nn.Module
    inputs: Callable[[Shape], tuple[Any, ...]]


@dataclass(frozen=True)
class Compiled:
    """What ten shapes made of a compiled module."""

    graphs: int
    """Compilations of a graph, in all."""
    deviation: float


def models(full: bool) -> dict[str, Case]:
    """Every reference model: with its paper's sizes, or tiny."""
    words, dim = (2_000, 300) if full else (40, 17)
    generator = torch.Generator().manual_seed(0)
    letters = torch.randint(97, 123, (words, 9), generator=generator).tolist()
    spelled = dict.fromkeys("".join(map(chr, row[: 4 + row[8] % 6])) for row in letters)
    lexicon = Lexicon.random(spelled, dim, tags=list(TAGS))
    cases = {}
    for script in SCRIPTS:
        for config, model in importlib.import_module(script).SCRIPT.models.items():
            name = model.__name__
            torch.manual_seed(0)
            made = model(config(**({} if full else TINY[name])), lexicon).eval()
            cases[name] = Case(name, made, lambda shape: pair(shape, len(lexicon)))
    return cases


def layers(full: bool) -> dict[str, Case]:
    """Every public layer: as wide as in the papers, or narrow."""
    d, k, heads = (120, 30, 4) if full else (14, 3, 2)
    align = feedforward(d, d)
    made: dict[str, tuple[nn.Module, Callable[[Shape], tuple[Any, ...]]]] = {
        "DecomposableAlign": (nlilayers.DecomposableAlign(align), lambda s: two_sides(s, d)),
        "IntraAlign": (nlilayers.IntraAlign(align, prior=nlilayers.DistancePrior()), lambda s: one_side(s, d)),
        "GaussianSelfAttention": (nlilayers.GaussianSelfAttention(d, heads), lambda s: one_side(s, d)),
        "GatedConvBlock": (Hidden(nlilayers.GatedConvBlock(d, d)), lambda s: one_side(s, d)),
        "GatedConvEncoder": (nlilayers.GatedConvEncoder(d, 2 * d, 2), lambda s: one_side(s, d)),
        "FactorizationMachine": (nlilayers.FactorizationMachine(d, k), lambda s: one_side(s, d)[:1]),
        "AlignmentFactorization": (nlilayers.AlignmentFactorization(d, k), lambda s: 2 * one_side(s, d)[:1]),
        "CharNgramEmbedding": (nlilayers.CharNgramEmbedding(d, num_embeddings=211), ngrams),
        "SinusoidalPositionalEncoding": (nlilayers.SinusoidalPositionalEncoding(d), lambda s: one_side(s, d)[:1]),
        "Highway": (nlilayers.Highway(d, 2 * d, 2), lambda s: one_side(s, d)[:1]),
    }
    for prior in (nlilayers.GaussianPrior, nlilayers.ZipfPrior, nlilayers.DistancePrior, nlilayers.LinearPrior):
        made[prior.__name__] = (Bias(prior()), lambda s: two_sides(s, d)[:2])
    return {name: Case(name, module.eval(), inputs) for name, (module, inputs) in made.items()}


class Hidden(nn.Module):
    """A gated block whose memory is what it reads; both outputs."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Words ``(b, n, d)``."""
        hidden, cell = self.block(x, x, mask)
        return hidden, cell


class Bias(nn.Module):
    """A prior over the distances between the words of two sentences."""

    def __init__(self, prior: nn.Module) -> None:
        super().__init__()
        self.prior = prior

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Words ``(b, n, d)`` and ``(b, m, d)`` → ``(n, m)``, added to the words' sums so that it depends on them."""
        scores: Tensor = x.sum(-1)[:, :, None] + y.sum(-1)[:, None]
        return scores + self.prior(x.shape[1], y.shape[1])


def pair(shape: Shape, words: int) -> tuple[Sentence, Sentence]:
    """A premise and a hypothesis for every pair, with tags; the first is full, and no other is empty."""
    return sentence(shape.batch, shape.premise, words, 1), sentence(shape.batch, shape.hypothesis, words, 2)


def sentence(batch: int, length: int, words: int, seed: int) -> Sentence:
    """Sentences of one to ``length`` words."""
    generator = torch.Generator().manual_seed(seed)
    mask = lengths_of(batch, length)
    tokens = torch.randint(words, mask.shape, generator=generator) * mask
    return Sentence(tokens, mask, torch.randint(1 + len(TAGS), mask.shape, generator=generator) * mask)


def lengths_of(batch: int, length: int) -> Tensor:
    """A mask of sentences that become shorter from the first to the last."""
    lengths = torch.linspace(length, 1, batch).round()
    return torch.arange(length) < lengths[:, None]


def one_side(shape: Shape, features: int) -> tuple[Tensor, Tensor]:
    """Words ``(b, n, d)`` and their mask."""
    x = torch.randn(shape.batch, shape.premise, features, generator=torch.Generator().manual_seed(3))
    return x, lengths_of(shape.batch, shape.premise)


def two_sides(shape: Shape, features: int) -> tuple[Tensor, ...]:
    """Words ``(b, n, d)`` and ``(b, m, d)``, and the masks of both."""
    x, x_mask = one_side(shape, features)
    y, y_mask = one_side(Shape(shape.batch, shape.hypothesis, 0), features)
    return x, y, x_mask, y_mask


def ngrams(shape: Shape) -> tuple[Tensor]:
    """Hashed n-grams of words ``(b, n, k)``, as many of them as a hypothesis has words; 0 is padding."""
    return (torch.randint(211, tuple(shape), generator=torch.Generator().manual_seed(4)),)


def deviation(ours: Any, theirs: Any) -> float:
    """The largest difference of two outputs: relative above 1, absolute below.

    Raises:
        AssertionError: if their shapes differ, or one of them has a number that is not finite.
    """
    largest = 0.0
    for a, b in zip(tree_leaves(ours), tree_leaves(theirs), strict=True):
        assert a.shape == b.shape and a.isfinite().all() and b.isfinite().all()
        if a.numel():
            largest = max(largest, float(((a - b).abs() / b.abs().clamp(min=1)).max()))
    return largest


def compiled(case: Case, shapes: Sequence[Shape], backend: str) -> Compiled:
    """Inference compiled as one graph for every shape, against eager."""
    torch._dynamo.reset()
    counter, worst = CompileCounterWithBackend(backend), 0.0
    twin = torch.compile(case.module, fullgraph=True, dynamic=True, backend=counter)
    with torch.no_grad():
        for shape in shapes:
            inputs = case.inputs(shape)
            worst = max(worst, deviation(twin(*inputs), case.module(*inputs)))
    return Compiled(counter.frame_count, worst)


def compiled_gradients(case: Case, shapes: Sequence[Shape], backend: str, *, fullgraph: bool = True) -> Compiled:
    """The gradients of a compiled step against eager ones; without ``fullgraph`` it may be several graphs."""
    torch._dynamo.reset()
    counter, worst = CompileCounterWithBackend(backend), 0.0
    twin = torch.compile(case.module, fullgraph=fullgraph, dynamic=True, backend=counter)
    for shape in shapes:
        inputs = case.inputs(shape)
        worst = max(worst, deviation(gradients(twin, case.module, inputs), gradients(case.module, case.module, inputs)))
    return Compiled(counter.frame_count, worst)


def gradients(call: Callable[..., Any], module: nn.Module, inputs: tuple[Any, ...]) -> list[Tensor]:
    """The mean of the squared outputs, differentiated by the parameters and by what enters as floating point."""
    leaves = tree_map_only(Tensor, lambda x: x.clone().requires_grad_(x.is_floating_point()), inputs)
    wanted = [x for x in tree_leaves(leaves) if isinstance(x, Tensor) and x.requires_grad]
    wanted += [p for p in module.parameters() if p.requires_grad]
    loss = torch.stack([y.square().mean() for y in tree_leaves(call(*leaves))]).sum()
    return list(torch.autograd.grad(loss, wanted, materialize_grads=True))


def dynamic_shapes(shape: Shape, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Every axis that is as long as the batch or a sentence of this shape may be another one; all others stay."""
    batch, premise, hypothesis = (torch.export.Dim(name, min=2, max=4096) for name in Shape._fields)
    axes = dict(zip(shape, (batch, premise, hypothesis), strict=True))
    return tree_map_only(Tensor, lambda x: {i: axes[size] for i, size in enumerate(x.shape) if size in axes}, inputs)


def exported(case: Case, shapes: Sequence[Shape]) -> float:
    """The deviation of a ``torch.export`` program at shapes it never saw, after it was saved and loaded."""
    seen = case.inputs(shapes[0])
    with torch.no_grad():
        program = torch.export.export(case.module, seen, dynamic_shapes=dynamic_shapes(shapes[0], seen))
        buffer = io.BytesIO()
        torch.export.save(program, buffer)
        buffer.seek(0)
        loaded = torch.export.load(buffer).module()
        return max(deviation(loaded(*case.inputs(shape)), case.module(*case.inputs(shape))) for shape in shapes[1:])


def onnx(case: Case, shapes: Sequence[Shape]) -> float:
    """The deviation of an ONNX program in onnxruntime at shapes that its export never saw."""
    seen = case.inputs(shapes[0])
    program = torch.onnx.export(
        case.module, seen, dynamo=True, dynamic_shapes=dynamic_shapes(shapes[0], seen), verbose=False
    )
    assert program is not None
    buffer, worst = io.BytesIO(), 0.0
    program.save(buffer)
    session = onnxruntime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    for shape in shapes[1:]:
        inputs = case.inputs(shape)
        feed = {i.name: x.numpy() for i, x in zip(session.get_inputs(), tree_leaves(inputs), strict=True)}
        with torch.no_grad():
            theirs = case.module(*inputs)
        worst = max(worst, deviation([torch.from_numpy(y) for y in session.run(None, feed)], theirs))
    return worst


class Elsewhere(TorchDispatchMode):
    """Notes which operators make a tensor that is not on the meta device."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, and look where its outputs are."""
        made = func(*args, **(kwargs or {}))
        if any(isinstance(y, Tensor) and not y.is_meta for y in tree_leaves(made)):
            self.operators.add(str(func))
        return made


def elsewhere(case: Case, shape: Shape) -> list[str]:
    """The operators that make tensors elsewhere while a module on the meta device goes forwards and backwards.

    Raises:
        AssertionError: if outputs or gradients have other shapes or dtypes there than on the CPU.
    """
    inputs = case.inputs(shape)
    module = copy.deepcopy(case.module).to("meta")
    moved = tree_map_only(Tensor, lambda x: x.to("meta"), inputs)
    with Elsewhere() as found:
        ours = [module(*moved), gradients(module, module, moved)]
    theirs = [case.module(*inputs), gradients(case.module, case.module, inputs)]
    for a, b in zip(tree_leaves(ours), tree_leaves(theirs), strict=True):
        assert (a.shape, a.dtype, a.device.type) == (b.shape, b.dtype, "meta")
    return sorted(found.operators)
