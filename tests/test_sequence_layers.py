"""Every sequence layer obeys every universal law, alone and two deep with random biases."""

import dataclasses
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import laws
import strategies
from nlilayers import (
    AlignmentFactorization,
    DecomposableAlign,
    DistancePrior,
    FactorizationMachine,
    GatedConvBlock,
    GatedConvEncoder,
    GaussianPrior,
    GaussianSelfAttention,
    HeadPriors,
    Highway,
    IntraAlign,
    LinearPrior,
    SinusoidalPositionalEncoding,
    ZipfPrior,
    masking,
)
from strategies import FEATURES, Sentences, normal


def feedforward() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, 11), nn.Tanh())


class TwoAlignments(nn.Module):
    """Each sentence plus what was aligned to it, aligned again."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = DecomposableAlign(feedforward()), DecomposableAlign(feedforward())

    def forward(
        self,
        premise: Tensor,
        hypothesis: Tensor,
        premise_mask: Tensor | None = None,
        hypothesis_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        beta, alpha = self.first(premise, hypothesis, premise_mask, hypothesis_mask)
        return self.second(beta, alpha, premise_mask, hypothesis_mask)


class TwoDeep(nn.Module):
    """One layer's output through another."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.second(self.first(x, mask), mask)


def attention(prior: nn.Module | None = None, **options: object) -> nn.Module:
    return GaussianSelfAttention(FEATURES, FEATURES, prior=prior, bias=True, **options)


class Weights(nn.Module):
    """The weights behind a layer's output, as an output."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *sentences_and_masks: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        if isinstance(self.layer, GaussianSelfAttention):
            return self.layer.attention_weights(*sentences_and_masks).movedim(1, -1)
        return self.layer.alignment_weights(*sentences_and_masks)


class HiddenAndCell(nn.Module):
    """A gated convolution that is given the words as its cells as well; both its outputs, side by side."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return torch.cat(self.block(x, x, mask), -1)


def conv(layers: int = 2, **options: object) -> nn.Module:
    return GatedConvEncoder(FEATURES, 3, layers, **options)


class MaskedAround(nn.Module):
    """A layer that sees one word at a time and takes no mask, as its caller uses it."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return masking.zero_padding(self.layer(masking.zero_padding(x, mask)), mask)


class Factorized(nn.Module):
    """Both factorizations of a word, compared with itself turned round."""

    def __init__(self) -> None:
        super().__init__()
        self.compare, self.machine = AlignmentFactorization(FEATURES, 2), FactorizationMachine(FEATURES, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((self.compare(x, x.flip(-1)), self.machine(x)[..., None]), -1)


class Positioned(nn.Module):
    """Positions on an even number of features."""

    def __init__(self) -> None:
        super().__init__()
        self.encoding = SinusoidalPositionalEncoding(2 * FEATURES)

    def forward(self, x: Tensor) -> Tensor:
        return self.encoding(torch.cat((x, -x), -1))


@dataclasses.dataclass(frozen=True)
class Layer:
    """A layer as the laws see it: how it is made, what its masks are called (one for each sentence it takes).

    One layer of each family compiles to machine code; its variants go through the same graph capture without it.
    """

    build: Callable[[], nn.Module]
    masks: tuple[str, ...] = ("mask",)
    backend: str = "inductor"

    def on(self, device: str) -> nn.Module:
        return laws.randomised(self.build()).to(device)

    def sizes(self, size: int, device: str) -> Sentences:
        """A batch whose batch, lengths and features all differ."""
        tensors = tuple(normal(size + k, size, size + 2 + 3 * k, FEATURES) for k in range(len(self.masks)))
        masks = tuple(torch.arange(x.shape[1]) < torch.arange(size)[:, None] + 1 for x in tensors)
        return Sentences(tensors, masks).to(device)


GRAPH = "aot_eager"
PAIR = ("premise_mask", "hypothesis_mask")
LAYERS = {
    "DecomposableAlign": Layer(lambda: DecomposableAlign(feedforward()), PAIR),
    "DecomposableAlign, dot product": Layer(DecomposableAlign, PAIR, GRAPH),
    "DecomposableAlign, two deep": Layer(TwoAlignments, PAIR, GRAPH),
    "IntraAlign": Layer(lambda: IntraAlign(feedforward(), prior=DistancePrior(2))),
    "IntraAlign, distances without signs": Layer(
        lambda: IntraAlign(prior=DistancePrior(2, signed=False)), backend=GRAPH
    ),
    "IntraAlign, two far buckets": Layer(lambda: IntraAlign(prior=DistancePrior(2, far_buckets=2)), backend=GRAPH),
    "IntraAlign, no prior": Layer(IntraAlign, backend=GRAPH),
    "IntraAlign, two deep": Layer(
        lambda: TwoDeep(IntraAlign(feedforward(), prior=DistancePrior(2)), IntraAlign(feedforward())), backend=GRAPH
    ),
    "GaussianSelfAttention": Layer(attention),
    "GaussianSelfAttention, Eq 3": Layer(lambda: attention(GaussianPrior(b=None)), backend=GRAPH),
    "GaussianSelfAttention, Zipf": Layer(lambda: attention(ZipfPrior()), backend=GRAPH),
    "GaussianSelfAttention, bucketed": Layer(lambda: attention(DistancePrior(2)), backend=GRAPH),
    "GaussianSelfAttention, linear": Layer(lambda: attention(LinearPrior()), backend=GRAPH),
    "GaussianSelfAttention, a prior for each head": Layer(
        lambda: attention(HeadPriors([GaussianPrior(), DistancePrior(2), *(LinearPrior(),) * (FEATURES - 2)])),
        backend=GRAPH,
    ),
    "GaussianSelfAttention, window": Layer(lambda: attention(window=2), backend=GRAPH),
    "GaussianSelfAttention, two deep": Layer(lambda: TwoDeep(attention(), attention(window=1)), backend=GRAPH),
    "GatedConvBlock": Layer(lambda: HiddenAndCell(GatedConvBlock(FEATURES, FEATURES)), backend=GRAPH),
    "GatedConvEncoder": Layer(conv),
    "GatedConvEncoder, -forget": Layer(lambda: conv(forget_gate=False), backend=GRAPH),
    "GatedConvEncoder, -output": Layer(lambda: conv(output_gate=False), backend=GRAPH),
    "GatedConvEncoder, neither gate": Layer(lambda: conv(forget_gate=False, output_gate=False), backend=GRAPH),
    "GatedConvEncoder, even kernel": Layer(lambda: conv(kernel_size=4), backend=GRAPH),
    "GatedConvEncoder, four deep": Layer(lambda: conv(4), backend=GRAPH),
    "Factorizations": Layer(lambda: MaskedAround(Factorized())),
    "Highway": Layer(lambda: MaskedAround(Highway(FEATURES, 3, 2))),
    "Highway, same width": Layer(lambda: MaskedAround(Highway(FEATURES, activation=nn.GELU())), backend=GRAPH),
    "SinusoidalPositionalEncoding": Layer(lambda: MaskedAround(Positioned())),
}
DRAWN = [
    laws.garbage_in_padding_changes_nothing,
    laws.appended_padding_changes_nothing,
    laws.padded_outputs_are_zero,
    laws.no_gradient_reaches_padding,
    laws.what_arrives_at_padding_goes_no_further,
    laws.sentences_without_words_give_zero,
    laws.examples_do_not_see_each_other,
    laws.permuting_the_batch_permutes_the_output,
    laws.memory_layout_does_not_matter,
    laws.no_mask_means_all_real,
]
FIXED = [
    laws.dtype_follows,
    laws.autocast_agrees,
    laws.an_empty_batch_gives_an_empty_batch,
    laws.gradients_are_right,
    laws.a_mask_that_changes_later_changes_no_gradient,
]
every_layer = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS.keys())


@every_layer
@pytest.mark.parametrize("law", DRAWN, ids=lambda law: law.__name__)
@given(data=st.data())
def test_law_on_drawn_sentences(layer: Layer, law: Callable[..., None], device: str, data: st.DataObject) -> None:
    law(layer.on(device), data.draw(strategies.sentences(sides=len(layer.masks))).to(device))


@every_layer
@pytest.mark.parametrize("law", FIXED, ids=lambda law: law.__name__)
def test_law(layer: Layer, law: Callable[..., None], device: str) -> None:
    law(layer.on(device), layer.sizes(3, device))


@every_layer
def test_copies_agree(layer: Layer, device: str) -> None:
    laws.copies_agree(layer.on(device), layer.build(), layer.sizes(3, device))


@every_layer
def test_wrong_masks_are_refused(layer: Layer, device: str) -> None:
    laws.wrong_masks_are_refused(layer.on(device), layer.sizes(3, device), layer.masks)


WEIGHTS = {
    "DecomposableAlign": Layer(lambda: Weights(DecomposableAlign(feedforward())), PAIR),
    "IntraAlign": Layer(lambda: Weights(IntraAlign(feedforward(), prior=DistancePrior(2)))),
    "GaussianSelfAttention": Layer(lambda: Weights(attention())),
}
every_weight = pytest.mark.parametrize("layer", WEIGHTS.values(), ids=WEIGHTS.keys())


@every_weight
@given(data=st.data())
def test_garbage_in_padding_reaches_no_weight_and_no_gradient_of_one(
    layer: Layer, device: str, data: st.DataObject
) -> None:
    sentences = data.draw(strategies.sentences(sides=len(layer.masks))).to(device)
    laws.garbage_in_padding_changes_nothing(layer.on(device), sentences)
    laws.no_gradient_reaches_padding(layer.on(device), sentences)


@every_weight
def test_an_entropy_of_weights_has_the_gradients_of_that_of_real_ones(layer: Layer, device: str) -> None:
    """Its own gradient is infinite at a weight of 0."""
    sentences, weights = layer.sizes(3, device), layer.on(device)
    words = tuple(x.requires_grad_() for x in sentences.tensors)
    gradients = []
    for entropy in (torch.special.entr, lambda p: -(p * p.masked_fill(p == 0, 1).log())):
        loss = sum(entropy(p).sum() for p in laws.outputs(weights, sentences))
        gradients.append(torch.autograd.grad(loss, words))
    for ours, expected in zip(*gradients, strict=True):
        assert expected.isfinite().all() and expected.ne(0).any()
        torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize(
    "weights",
    [
        GaussianSelfAttention(FEATURES, 1).attention_weights,
        GaussianSelfAttention(FEATURES, 1, window=2).attention_weights,
        IntraAlign(prior=GaussianPrior()).alignment_weights,
    ],
    ids=["denormals", "window", "intra"],
)
def test_an_entropy_of_weights_that_their_distance_makes_0_has_finite_gradients(
    weights: Callable[[Tensor], Tensor],
) -> None:
    x = torch.randn(2, 40, FEATURES, generator=torch.Generator().manual_seed(0)).requires_grad_()
    gradients = []
    for entropy in (torch.special.entr, lambda p: -(p * p.masked_fill(p == 0, 1).log())):
        p = weights(x)
        assert (p == 0).any() and (p > 0).any()
        gradients += torch.autograd.grad(entropy(p).sum(), x)
    assert gradients[1].isfinite().all() and gradients[1].ne(0).any()
    torch.testing.assert_close(*gradients)


@every_weight
@pytest.mark.parametrize("garbage", [float("nan"), float("inf")])
def test_what_arrives_at_weights_of_padding_goes_no_further(layer: Layer, device: str, garbage: float) -> None:
    """Neither at those of padded words nor at those given to them."""
    sentences, weights = layer.sizes(3, device), layer.on(device)
    words = tuple(x.requires_grad_() for x in sentences.tensors)
    ys, inputs = laws.outputs(weights, sentences), (*words, *weights.parameters())
    gradients = []
    for fill in (0.0, garbage):
        upstream = [normal(k, *y.shape).to(device).masked_fill(y == 0, fill) for k, y in enumerate(ys)]
        gradients.append(torch.autograd.grad(ys, inputs, upstream, retain_graph=True, allow_unused=True))
    for ours, expected in zip(*reversed(gradients), strict=True):
        assert ours is expected is None or torch.equal(ours, expected)


@every_weight
def test_a_mask_that_changes_later_changes_no_gradient_of_weights(layer: Layer, device: str) -> None:
    laws.a_mask_that_changes_later_changes_no_gradient(layer.on(device), layer.sizes(3, device))


@every_weight
def test_weights_refuse_wrong_masks_by_name(layer: Layer, device: str) -> None:
    laws.wrong_masks_are_refused(layer.on(device), layer.sizes(3, device), layer.masks)


@every_layer
def test_one_word(layer: Layer, device: str) -> None:
    words = tuple(normal(k, 2, 1, FEATURES) for k in range(len(layer.masks)))
    one = Sentences(words, tuple(torch.ones(2, 1, dtype=torch.bool) for _ in words)).to(device)
    for y, x in zip(laws.outputs(layer.on(device), one), one.tensors, strict=True):
        assert y.shape[:2] == x.shape[:2] and torch.isfinite(y).all()


@every_layer
def test_compiles(layer: Layer, device: str) -> None:
    laws.compiles(layer.on(device), lambda size: layer.sizes(size, device), layer.backend)


@every_layer
def test_exports(layer: Layer, device: str) -> None:
    """ONNX is made of the same program, since each export takes seconds, and of one layer of each family."""
    model = layer.on(device)
    program = laws.exports(model, lambda size: layer.sizes(size, device))
    if device == "cpu" and layer.backend == "inductor":
        laws.onnx_by_export_agrees(model, lambda size: layer.sizes(size, device), program)


@every_layer
def test_is_traced_and_kept(layer: Layer, device: str) -> None:
    laws.is_traced_and_kept(layer.on(device), lambda size: layer.sizes(size, device))


@every_layer
def test_onnx_agrees(layer: Layer) -> None:
    laws.onnx_by_tracing_agrees(layer.on("cpu"), lambda size: layer.sizes(size, "cpu"))


@every_layer
def test_sentences_of_no_length_at_all(layer: Layer, device: str) -> None:
    sentences = layer.sizes(3, device)
    nothing = Sentences(tuple(x[:, :0] for x in sentences.tensors), tuple(mask[:, :0] for mask in sentences.masks))
    model = layer.on(device)
    outputs = laws.outputs(model, nothing)
    assert [y.shape[:2] for y in outputs] == [(3, 0)] * len(outputs)
    if any(True for _ in model.parameters()):
        laws.every_parameter_has_a_gradient_of_zero(model, outputs)
