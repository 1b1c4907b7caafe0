"""What the attack on precision attacks: every public layer and function, and every reference model at a tiny size."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tests import oracles
from torch import Tensor, nn

from cafe import CAFE, CAFEConfig
from decomposable_attention import DecomposableAttention, DecomposableAttentionConfig
from esim import ESIM, ESIMConfig
from gated_cnn import GatedCNN, GatedCNNConfig
from gaussian_transformer import GaussianTransformer, GaussianTransformerConfig
from hypothesis_only import HypothesisOnly, HypothesisOnlyConfig
from lstm_attention import (
    AttentionModel,
    AttentionModelConfig,
    HybridModel,
    HybridModelConfig,
    LSTMBaseline,
    LSTMBaselineConfig,
)
from nli_common.data import Sentence
from nli_common.lexicon import Lexicon
from nlilayers import (
    AlignmentFactorization,
    CharNgramEmbedding,
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
    functional,
    masking,
)
from nlilayers.masking import lengths_to_mask
from stacked_alignment import StackedAlignment, StackedAlignmentConfig

FEATURES = 6
WORDS = 40
PADDING = WORDS - 1
"""The word that padding holds: no real token is one."""
SIZES = {"d": FEATURES, "e": 4, "h": 3, "k": 3, "f": 2 * FEATURES, "r": 10, "w": 4, "u": 12, "v": WORDS}
TAGS = ["DT", "NN", "VBZ"]

Given = Tensor | Sentence | int | None


@dataclass(frozen=True)
class Case:
    """One layer, function or model.

    Attributes:
        build: makes it, as it starts.
        takes: what it is called with. ``b n d`` is a tensor with these axes, ``~b n m`` one of scores, ``?b n`` a
            mask, ``#b n`` n-grams, ``=n`` a length, ``@n`` a sentence of words, its vectors within the model.
        loop: the same for one sentence as a slow loop in float64, from the module and the sentence's inputs.
        kink: whether its gradient jumps: a unit that rounding switches changes it by any amount.
        finite_padding: whether it asks for finite numbers at padding, other than those of scores.
        terms: sizes of what cancels within the result, from the module and its inputs, in the result's shape.
    """

    build: Callable[[], nn.Module]
    takes: tuple[str, ...]
    loop: Callable[..., Any] | None = None
    kink: bool = False
    finite_padding: bool = False
    terms: Callable[..., Tensor] | None = None

    def draw(self, generator: torch.Generator, batch: int, n: int, m: int) -> list[Given]:
        """Standard normal numbers in float64, and masks of which the first hides nothing."""
        sizes = {**SIZES, "b": batch, "n": n, "m": m}
        masks = {axis: _mask(generator, batch, sizes[axis]) for axis in "nm"}
        given: list[Given] = []
        for kind in self.takes:
            axes = kind.lstrip("~?#=@").split()
            shape = [sizes[axis] for axis in axes]
            if kind.startswith("?"):
                given.append(masks[axes[-1]])
            elif kind.startswith("#"):
                given.append(torch.randint(WORDS, shape, generator=generator))
            elif kind.startswith("="):
                given.append(shape[0])
            elif kind.startswith("@"):
                given.append(_sentence(generator, masks[axes[0]]))
            else:
                given.append(torch.randn(shape, generator=generator, dtype=torch.float64))
        return given


def _mask(generator: torch.Generator, batch: int, length: int) -> Tensor:
    lengths = torch.randint(length + 1, (batch,), generator=generator)
    lengths[:1] = length
    return lengths_to_mask(lengths, length)


def _sentence(generator: torch.Generator, mask: Tensor) -> Sentence:
    tokens = torch.randint(PADDING, mask.shape, generator=generator).masked_fill(~mask, PADDING)
    tags = torch.randint(1 + len(TAGS), mask.shape, generator=generator)
    return Sentence(tokens, mask, tags)


class Function(nn.Module):
    """A function as a module without parameters."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: Any) -> Any:
        """The function of what is given."""
        return self.function(*given)


class HiddenAndCell(nn.Module):
    """A gated convolution that is given the words as its cells as well."""

    def __init__(self) -> None:
        super().__init__()
        self.block = GatedConvBlock(FEATURES, FEATURES)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states and cells."""
        hidden, cell = self.block(x, x, mask)
        return hidden, cell


def _function(function: Callable[..., Any], *takes: str, **options: Any) -> Case:
    return Case(lambda: Function(function), takes, **options)


def _feedforward() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, 7), nn.Tanh())


def _attention(prior: Callable[[], nn.Module] | None = None, **options: Any) -> Callable[[], nn.Module]:
    return lambda: GaussianSelfAttention(
        FEATURES, 3, prior=None if prior is None else prior(), **{"bias": True, "window": None, **options}
    )


def _align_loop(layer: Any, a: Tensor, b: Tensor) -> tuple[Any, Any]:
    def embed(x: Sequence[float]) -> list[float]:
        return layer.feedforward(torch.tensor(x, dtype=torch.float64)).tolist()

    words = a.tolist(), b.tolist()
    return oracles.align(*words, oracles.scores(*words, embed))


def _intra_loop(layer: Any, a: Tensor) -> Any:
    def embed(x: Sequence[float]) -> list[float]:
        return layer.feedforward(torch.tensor(x, dtype=torch.float64)).tolist()

    bias, words = layer.prior.bias.tolist(), a.tolist()
    scores = oracles.scores(words, words, embed)
    return oracles.intra_align(words, scores, lambda distance: oracles.bucket_bias(bias, distance, 2))


def _attention_loop(layer: Any, x: Tensor) -> Any:
    w, b = layer.prior.w.item(), layer.prior.b.item()
    q, k, v = (rows.view(3, -1, FEATURES).tolist() for rows in layer.in_proj.weight.chunk(3))
    return oracles.multi_head_self_attention(
        x.tolist(),
        range(len(x)),
        list(zip(q, k, v, strict=True)),
        layer.out_proj.weight.tolist(),
        lambda distance: oracles.gaussian_bias(w, b, distance),
    )


def _conv_loop(layer: Any, x: Tensor) -> Any:
    hidden, cell = x.tolist(), [[0.0] * layer.hidden_size for _ in x]
    for block in layer.blocks:
        parts = zip(block.weight.mT.chunk(3), block.bias.chunk(3), strict=True)
        output, forget, candidate = ((weight.tolist(), bias.tolist()) for weight, bias in parts)
        projection = None if block.projection is None else block.projection.weight.tolist()
        hidden, cell = oracles.gated_convolution(hidden, cell, candidate, forget, output, projection)
    return hidden


def _machine(fm: Any) -> tuple[float, list[float], list[list[float]]]:
    return fm.bias.item(), fm.weight.tolist(), fm.factors.tolist()


def _factorization_loop(layer: Any, x: Tensor) -> Any:
    return [oracles.factorization_machine(word, *_machine(layer)) for word in x.tolist()]


def _comparison_loop(layer: Any, x: Tensor, aligned: Tensor) -> Any:
    machines = [_machine(fm) for fm in (layer.concat, layer.subtract, layer.multiply)]
    pairs = zip(x.tolist(), aligned.tolist(), strict=True)
    return [oracles.alignment_factorization(word, other, *machines) for word, other in pairs]


def _squares_of(x: Tensor, factors: Tensor) -> Tensor:
    """The pairs of a feature with itself, which a factorization adds to its sum and takes off again."""
    return x.square() @ factors.detach().square().sum(1)


def _squares(layer: Any, x: Tensor) -> Tensor:
    return _squares_of(x, layer.factors)


def _three_squares(x: Tensor, y: Tensor, *factors: Tensor) -> Tensor:
    pairs = zip((torch.cat([x, y], dim=-1), x - y, x * y), factors, strict=True)
    return torch.stack([_squares_of(z, v) for z, v in pairs], dim=-1)


def _compared_squares(layer: Any, x: Tensor, y: Tensor) -> Tensor:
    return _three_squares(x, y, *(fm.factors for fm in (layer.concat, layer.subtract, layer.multiply)))


def _position_loop(layer: Any, x: Tensor) -> Any:
    encoding = [oracles.sinusoidal_encoding(i, FEATURES) for i in range(1, 1 + len(x))]
    return (x + torch.tensor(encoding, dtype=torch.float64).view_as(x)).tolist()


LAYERS: Mapping[str, Case] = {
    "DecomposableAlign": Case(
        lambda: DecomposableAlign(_feedforward()), ("b n d", "b m d", "?b n", "?b m"), _align_loop
    ),
    "DecomposableAlign, dot product": Case(DecomposableAlign, ("b n d", "b m d", "?b n", "?b m"), _align_loop),
    "IntraAlign": Case(lambda: IntraAlign(_feedforward(), prior=DistancePrior(2)), ("b n d", "?b n"), _intra_loop),
    "IntraAlign, dot product": Case(IntraAlign, ("b n d", "?b n")),
    "GaussianSelfAttention": Case(_attention(bias=False), ("b n d", "?b n"), _attention_loop),
    "GaussianSelfAttention, Eq 3": Case(_attention(lambda: GaussianPrior(b=None)), ("b n d", "?b n")),
    "GaussianSelfAttention, Zipf": Case(_attention(ZipfPrior), ("b n d", "?b n")),
    "GaussianSelfAttention, bucketed": Case(_attention(lambda: DistancePrior(2)), ("b n d", "?b n")),
    "GaussianSelfAttention, linear": Case(_attention(LinearPrior), ("b n d", "?b n")),
    "GaussianSelfAttention, a prior for each head": Case(
        _attention(lambda: HeadPriors([GaussianPrior(), LinearPrior(), DistancePrior(2)])), ("b n d", "?b n")
    ),
    "GaussianSelfAttention, window of 2": Case(_attention(window=2), ("b n d", "?b n")),
    "GatedConvBlock": Case(HiddenAndCell, ("b n d", "?b n")),
    "GatedConvEncoder": Case(lambda: GatedConvEncoder(FEATURES, 5, 2), ("b n d", "?b n"), _conv_loop),
    "GatedConvEncoder, no forget gate": Case(
        lambda: GatedConvEncoder(FEATURES, 5, 2, forget_gate=False), ("b n d", "?b n")
    ),
    "GatedConvEncoder, no output gate": Case(
        lambda: GatedConvEncoder(FEATURES, 5, 2, output_gate=False), ("b n d", "?b n"), kink=True
    ),
    "FactorizationMachine": Case(
        lambda: FactorizationMachine(FEATURES, 3), ("b n d",), _factorization_loop, terms=_squares
    ),
    "AlignmentFactorization": Case(
        lambda: AlignmentFactorization(FEATURES, 3), ("b n d", "b n d"), _comparison_loop, terms=_compared_squares
    ),
    "Highway": Case(lambda: Highway(FEATURES, 5, 2), ("b n d",), kink=True),
    "Highway, tanh": Case(lambda: Highway(FEATURES, activation=torch.tanh), ("b n d",)),
    "CharNgramEmbedding": Case(lambda: CharNgramEmbedding(5, num_embeddings=WORDS), ("#b n",)),
    "SinusoidalPositionalEncoding": Case(lambda: SinusoidalPositionalEncoding(FEATURES), ("b n d",), _position_loop),
    "GaussianPrior": Case(GaussianPrior, ("=n", "=m")),
    "ZipfPrior": Case(ZipfPrior, ("=n", "=m")),
    "DistancePrior": Case(lambda: DistancePrior(2), ("=n", "=m")),
    "LinearPrior": Case(LinearPrior, ("=n", "=m")),
    "HeadPriors": Case(lambda: HeadPriors([GaussianPrior(), ZipfPrior()]), ("=n", "=m")),
}


def _biased(function: Callable[..., Tensor], size: int = 9) -> Callable[..., Tensor]:
    """A prior's function at the distances from 1 - size to size - 1, its scalars brought to their signs."""
    signs = {functional.gaussian_bias: (1, -1), functional.linear_bias: (-1,)}[function]

    def bias(*scalars: Tensor) -> Tensor:
        signed = (sign * scalar.abs() for sign, scalar in zip(signs, scalars, strict=True))
        return function(*signed, functional.token_distances(size, device=scalars[0].device))

    return bias


def _sinusoidal(x: Tensor) -> Tensor:
    dtype = torch.promote_types(x.dtype, torch.float32)
    return functional.sinusoidal_encoding(x.shape[1], FEATURES, device=x.device, dtype=dtype)


FUNCTIONS: Mapping[str, Case] = {
    "align": _function(functional.align, "~b n m", "b n d", "b m d", "?b n", "?b m", finite_padding=True),
    "alignment_factorization": _function(
        lambda x, y, b, w, v: functional.alignment_factorization(
            x, y, (b, w, v), (b, w[:FEATURES], v[:FEATURES]), (b, w[FEATURES:], v[FEATURES:])
        ),
        *("b n d", "b n d", "", "f", "f k"),
        terms=lambda _, x, y, b, w, v: _three_squares(x, y, v, v[:FEATURES], v[FEATURES:]),
    ),
    "alignment_weights": _function(functional.alignment_weights, "~b n m", "?b n", "?b m"),
    "attend_windows": _function(functional.attend_windows, "b h k w u", "b h r e"),
    "char_ngram_embedding": _function(functional.char_ngram_embedding, "#b n", "v e"),
    "discarded_mass_certificate": _function(functional.discarded_mass_certificate, "~b n", "~b n", "~b n"),
    "distance_bias": _function(
        lambda bias: functional.distance_bias(bias, functional.token_distances(9, device=bias.device)), "f"
    ),
    "dot_scores": _function(functional.dot_scores, "b n d", "b m d"),
    "factorization_machine": _function(
        functional.factorization_machine,
        "b n d",
        "",
        "d",
        "d k",
        terms=lambda _, x, b, w, v: _squares_of(x, v),
    ),
    "gated_cell": _function(functional.gated_cell, *5 * ("b n d",)),
    "gaussian_bias": _function(_biased(functional.gaussian_bias), "", ""),
    "highway": _function(functional.highway, *3 * ("b n d",)),
    "intra_alignment_weights": _function(
        lambda scores, bias, mask: functional.intra_alignment_weights(scores, bias, mask), "~b n n", "n n", "?b n"
    ),
    "linear_bias": _function(_biased(functional.linear_bias), ""),
    "same_convolution": _function(functional.same_convolution, "b n d", "f k d", "f"),
    "score_bound": _function(functional.score_bound, "b h n e", "b h m e"),
    "score_range": _function(functional.score_range, "b h n e", "b h m e"),
    "self_attention_weights": _function(functional.self_attention_weights, "~b h n n", "n n", "?b n"),
    "sinusoidal_encoding": _function(_sinusoidal, "b n d"),
    "weighted_sum": _function(functional.weighted_sum, "b n m", "b m d"),
    "windowed_scores": _function(
        # What is no real token has the lowest number of the dtype, which is none that rounding could be measured on.
        lambda q, k, bias, mask: functional.windowed_scores(q, k, bias, mask).softmax(-1),
        *("b h n e", "b h n e", "w u", "?b n"),
        finite_padding=True,
    ),
    "zipf_bias": _function(lambda x: functional.zipf_bias(x), "b n"),
    "masked_softmax": _function(masking.masked_softmax, "~b n", "?b n"),
    "masked_sum": _function(masking.masked_sum, "b n d", "?b n"),
    "masked_mean": _function(masking.masked_mean, "b n d", "?b n"),
    "masked_max": _function(masking.masked_max, "b n d", "?b n"),
    "zero_padding": _function(masking.zero_padding, "b n d", "?b n"),
}


def _lexicon() -> Lexicon:
    generator = torch.Generator().manual_seed(0)
    words = ["ab"[i % 2] * (1 + i % 3) + "cdefg"[i % 5] + str(i) for i in range(WORDS)]
    return Lexicon(words, torch.randn(WORDS, 7, generator=generator, dtype=torch.float64), tags=TAGS)


def _model(model: Callable[..., nn.Module], config: Any) -> Case:
    return Case(lambda: model(config, _lexicon()), ("@n", "@m"), kink=True)


_CAFE: dict[str, Any] = {
    "encoder_size": 7,
    "num_factors": 3,
    "lstm_size": 5,
    "prediction_size": 13,
    "char_size": 2,
    "char_filters": 3,
    "tag_size": 2,
}
_GATED: dict[str, Any] = {"hidden_size": 7, "context_layers": 2, "char_dim": 2, "char_size": 3, "num_tags": 4}
_GAUSSIAN: dict[str, Any] = {
    "hidden_size": 6,
    "num_heads": 3,
    "char_size": 5,
    "num_encoding_blocks": 2,
    "start": "glorot",  # layers of zeros would hide what is before them
}

MODELS: Mapping[str, Case] = {
    "DecomposableAttention": _model(DecomposableAttention, DecomposableAttentionConfig(hidden_size=11)),
    "DecomposableAttention, intra-attention": _model(
        DecomposableAttention, DecomposableAttentionConfig(hidden_size=11, max_distance=2, intra_attention=True)
    ),
    "CAFE": _model(CAFE, CAFEConfig(**_CAFE)),
    "CAFE, no factorization": _model(CAFE, CAFEConfig(**_CAFE, factorize=False, without="mul")),
    "GaussianTransformer": _model(GaussianTransformer, GaussianTransformerConfig(**_GAUSSIAN)),
    "GaussianTransformer, convolution": _model(
        GaussianTransformer, GaussianTransformerConfig(**_GAUSSIAN, locality="convolution")
    ),
    "GatedCNN": _model(GatedCNN, GatedCNNConfig(**_GATED)),
    "GatedCNN, GLU": _model(GatedCNN, GatedCNNConfig(**_GATED, convolution="residual-glu")),
    "LSTMBaseline": _model(LSTMBaseline, LSTMBaselineConfig(hidden_size=5, num_tags=4)),
    "AttentionModel": _model(AttentionModel, AttentionModelConfig(hidden_size=5, num_tags=4)),
    "HybridModel": _model(HybridModel, HybridModelConfig(hidden_size=5)),
    "ESIM": _model(ESIM, ESIMConfig(hidden_size=3)),
    "StackedAlignment": _model(
        StackedAlignment, StackedAlignmentConfig(hidden_size=5, num_factors=3, char_size=2, char_filters=2)
    ),
    "HypothesisOnly": _model(HypothesisOnly, HypothesisOnlyConfig(hidden_size=5)),
}
CASES: Mapping[str, Case] = {**LAYERS, **FUNCTIONS, **MODELS}
