"""What the constructors take unless they are told."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from nlilayers import (
    CharNgramEmbedding,
    DistancePrior,
    GatedConvBlock,
    GatedConvEncoder,
    GaussianPrior,
    GaussianSelfAttention,
    Highway,
    LinearPrior,
    SinusoidalPositionalEncoding,
    functional,
)
from strategies import normal

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "embedding_dim=3, ngram_size=5, num_embeddings=65536, seed=0": lambda: CharNgramEmbedding(3),
    "max_distance=10, signed=True, far_buckets=1": DistancePrior,
    "in_features=4, out_features=3, kernel_size=3, forget_gate=True, output_gate=True": lambda: GatedConvBlock(4, 3),
    "in_features=4, hidden_size=3, num_layers=2": lambda: GatedConvEncoder(4, 3, 2),
    "w=0.1, b=-0.1": GaussianPrior,
    "embed_dim=8, num_heads=2, window='auto', scale=0.5": lambda: GaussianSelfAttention(8, 2),
    "in_features=4, out_features=4, num_layers=1": lambda: Highway(4),
    "w=-0.1": LinearPrior,
    "embed_dim=4, start=1, layout='interleaved'": lambda: SinusoidalPositionalEncoding(4),
}


@pytest.mark.parametrize(("text", "build"), LAYERS.items(), ids=LAYERS.keys())
def test_sizes_and_options(text: str, build: Callable[[], nn.Module]) -> None:
    assert build().extra_repr() == text


def test_nothing_is_dropped_and_no_projection_of_attention_has_a_bias() -> None:
    attention, encoder = GaussianSelfAttention(8, 2), GatedConvEncoder(4, 3, 2)
    assert attention.dropout.p == encoder.dropout.p == 0
    assert attention.in_proj.bias is None and attention.out_proj.bias is None
    assert attention.tolerance == 2**-24
    assert isinstance(attention.prior, GaussianPrior) and attention.prior.extra_repr() == "w=0.1, b=-0.1"


def test_blocks_of_an_encoder_are_those_of_their_own() -> None:
    texts = [block.extra_repr() for block in GatedConvEncoder(4, 3, 2).blocks]
    assert texts == [GatedConvBlock(4, 3).extra_repr(), GatedConvBlock(3, 3).extra_repr()]


def test_a_highway_is_rectified() -> None:
    layer, x = Highway(4, num_layers=1), normal(0, 5, 4).float()
    with torch.no_grad():
        nn.init.constant_(layer.gates[0].bias, 99.0)
    assert torch.all(layer(x) >= 0) and torch.any(layer(x) == 0)


def test_the_equations() -> None:
    x: Tensor = normal(0, 2, 3, 5, 4)
    assert torch.equal(functional.dot_scores(x, x), functional.dot_scores(x, x, 1.0))
    assert torch.equal(functional.sinusoidal_encoding(3, 4), functional.sinusoidal_encoding(3, 4, 1))
