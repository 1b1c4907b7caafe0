"""The study's gated CNN with the other activation: its blocks are what they say they are, and nothing else differs."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from study.gates import OtherActivation, OtherActivationConfig
from torch.testing import assert_close

import oracles
import strategies
from gated_cnn import GatedCNN, GatedCNNConfig
from models import TINY, full, randomised
from nlilayers import GatedConvBlock
from strategies import normal

SIZES = {"use_chars": False, "use_pos": False, "hidden_size": 4, "context_layers": 2, "aggregation_layers": 1}


def part_of(layer: GatedConvBlock, part: int) -> tuple[list, list[float]]:
    """The matrices and the bias of a gate or of the candidate, which is the last part."""
    count = 1 + layer.forget_gate + layer.output_gate
    return layer.weight.chunk(count)[part].mT.tolist(), layer.bias.chunk(count)[part].tolist()


def convolved(layer: GatedConvBlock, part: int, words: list[list[float]]) -> list[list[float]]:
    return oracles.convolve(words, *part_of(layer, part))


@pytest.mark.parametrize("forget_gate", [True, False])
@pytest.mark.parametrize("output_gate", [True, False])
@given(seed=strategies.seeds, length=st.integers(1, 5), before=st.integers(0, 2), after=st.integers(0, 2))
def test_a_block_equals_the_loop(
    output_gate: bool, forget_gate: bool, seed: int, length: int, before: int, after: int
) -> None:
    layer = OtherActivation(3, 2, forget_gate=forget_gate, output_gate=output_gate).double()
    for place, parameter in enumerate(layer.parameters()):
        parameter.data = normal(seed + place, *parameter.shape)
    x, cell = normal(seed + 7, 1, before + length + after, 3), normal(seed + 8, 1, before + length + after, 2)
    mask = torch.zeros(x.shape[:2], dtype=torch.bool)
    mask[:, before : before + length] = True
    cell = cell * mask[..., None]
    words, cells = x[mask].tolist(), cell[mask].tolist()
    candidate = convolved(layer, -1, words)
    cell_of = {"forget": part_of(layer, -2) if forget_gate else None, "projection": layer.projection.weight.tolist()}
    _, expected_cell = oracles.gated_convolution(words, cells, part_of(layer, -1), output=None, **cell_of)
    if output_gate:
        gates = convolved(layer, 0, words)
        added = [
            [oracles.sigmoid(o) * max(0.0, g) for o, g in zip(*row, strict=True)]
            for row in zip(gates, candidate, strict=True)
        ]
    else:
        added = [[math.tanh(g) for g in row] for row in candidate]
    hidden, new_cell = layer(x, cell, mask)
    assert_close(new_cell[mask].tolist(), expected_cell)
    expected = [[a + c for a, c in zip(*row, strict=True)] for row in zip(added, expected_cell, strict=True)]
    assert_close(hidden[mask].tolist(), expected)
    assert not hidden[~mask].any()
    assert not new_cell[~mask].any()


@pytest.mark.parametrize("convolution", ["gcnn", "no-output-gate"])
def test_the_model_differs_in_its_activations_alone(convolution: str) -> None:
    own = randomised(GatedCNN(GatedCNNConfig(**SIZES, convolution=convolution), TINY))
    other = randomised(GatedCNN(OtherActivationConfig(**SIZES, convolution=convolution), TINY))
    blocks = [module for module in other.modules() if isinstance(module, GatedConvBlock)]
    assert len(blocks) == 3
    assert all(type(block) is OtherActivation for block in blocks)
    pair = full([3, 9, 27, 4]), full([9, 5, 3])
    assert not torch.allclose(own(*pair), other(*pair))
    for module in other.modules():
        if isinstance(module, OtherActivation):
            module.__class__ = GatedConvBlock
    assert_close(own(*pair), other(*pair))


def test_it_starts_as_the_models_own_blocks_do() -> None:
    torch.manual_seed(0)
    block = OtherActivation(300, 300)
    torch.manual_seed(0)
    assert_close(block.weight, GatedConvBlock(300, 300).weight)


@pytest.mark.parametrize("convolution", ["glu", "residual-glu"])
def test_a_convolution_without_a_candidate_is_refused(convolution: str) -> None:
    with pytest.raises(ValueError, match="convolution must be one with a candidate of its own, got"):
        GatedCNN(OtherActivationConfig(**SIZES, convolution=convolution), TINY)
