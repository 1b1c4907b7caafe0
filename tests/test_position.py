"""Sinusoidal positions: Guo et al. 2019, Eqs 7 and 8, and the laws of PAPERS that follow from them."""

import copy
import math
import pickle
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import oracles
from nlilayers import SinusoidalPositionalEncoding, functional
from strategies import normal

EVEN = st.integers(1, 6).map(lambda k: 2 * k)
STARTS = st.integers(-3, 100)


def encoding(length: int, embed_dim: int, start: int = 1) -> torch.Tensor:
    return functional.sinusoidal_encoding(length, embed_dim, start, dtype=torch.float64)


@given(n=st.integers(0, 9), d=EVEN, start=STARTS)
def test_eqs_7_and_8_equal_the_loop(device: str, n: int, d: int, start: int) -> None:
    x = normal(0, 2, n, d)
    ours = SinusoidalPositionalEncoding(d, start=start)(x.to(device)).cpu()
    rows = [oracles.sinusoidal_encoding(start + i, d) for i in range(n)]
    assert_close(ours, x + torch.tensor(rows, dtype=torch.float64).view(n, d), atol=1e-10, rtol=1e-9)


@given(n=st.integers(0, 9), d=EVEN, start=STARTS)
def test_all_sines_may_stand_before_all_cosines(device: str, n: int, d: int, start: int) -> None:
    x = normal(0, 2, n, d)
    ours = SinusoidalPositionalEncoding(d, start=start, layout="halves")(x.to(device)).cpu()
    rows = [oracles.sinusoidal_encoding(start + i, d) for i in range(n)]
    halves = torch.tensor([row[0::2] + row[1::2] for row in rows], dtype=torch.float64).view(n, d)
    assert_close(ours, x + halves, atol=1e-10, rtol=1e-9)


def test_the_first_word_is_at_1() -> None:
    first = SinusoidalPositionalEncoding(2)(torch.zeros(1, 1, 2, dtype=torch.float64))
    assert first.flatten().tolist() == pytest.approx([math.sin(1), math.cos(1)], abs=1e-12)


@given(n=st.integers(1, 40), d=EVEN, start=STARTS)
def test_every_position_has_the_same_length_and_lies_within_1(n: int, d: int, start: int) -> None:
    p = encoding(n, d, start)
    assert_close(p.square().sum(1), torch.full((n,), d / 2, dtype=torch.float64), atol=1e-12, rtol=0)
    assert torch.all(p.abs() <= 1)


@given(d=EVEN, start=STARTS)
def test_inner_products_depend_on_the_distance_alone(d: int, start: int) -> None:
    gram = encoding(12, d, start) @ encoding(12, d, start).T
    frequencies = torch.tensor([10000 ** (-2 * k / d) for k in range(d // 2)], dtype=torch.float64)
    distances = functional.token_distances(12, 12)
    assert_close(gram, (distances[..., None] * frequencies).cos().sum(-1), atol=1e-10, rtol=0)
    assert_close(gram[1:, 1:], gram[:-1, :-1], atol=1e-10, rtol=0)


def rotation(shift: int, d: int) -> torch.Tensor:
    """Turns each pair (sin, cos) by shift times its frequency."""
    blocks = []
    for k in range(d // 2):
        angle = torch.tensor(shift / 10000 ** (2 * k / d), dtype=torch.float64)
        blocks.append(torch.stack((torch.stack((angle.cos(), angle.sin())), torch.stack((-angle.sin(), angle.cos())))))
    return torch.block_diag(*blocks)


@given(d=EVEN, s=st.integers(0, 20), t=st.integers(0, 20))
def test_a_shift_is_a_rotation_and_rotations_compose(d: int, s: int, t: int) -> None:
    p = encoding(50, d)
    assert_close(p[s:], p[: 50 - s] @ rotation(s, d).T, atol=1e-10, rtol=0)
    assert_close(rotation(s + t, d), rotation(s, d) @ rotation(t, d), atol=1e-10, rtol=0)


def test_frequencies_fall_from_1() -> None:
    angles = torch.atan2(encoding(1, 12)[0, 0::2], encoding(1, 12)[0, 1::2])
    assert angles[0].item() == pytest.approx(1.0) and torch.all(angles.diff() < 0)
    assert angles[-1].item() == pytest.approx(10000 ** (-10 / 12))


@given(n=st.integers(1, 20), extra=st.integers(1, 20), d=EVEN)
def test_longer_sentences_keep_the_positions_of_shorter_ones(n: int, extra: int, d: int) -> None:
    assert torch.equal(encoding(n + extra, d)[:n], encoding(n, d))


def test_another_start_is_a_shift() -> None:
    assert torch.equal(encoding(9, 6, start=1), encoding(10, 6, start=0)[1:])


def test_it_holds_nothing() -> None:
    layer = SinusoidalPositionalEncoding(6)
    assert not list(layer.parameters()) and not list(layer.buffers()) and not layer.state_dict()
    x = normal(0, 2, 3, 6)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x), layer(x))


def test_gradcheck() -> None:
    assert torch.autograd.gradcheck(SinusoidalPositionalEncoding(6), normal(0, 2, 3, 6).requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_dtype_and_device_are_those_of_the_words(device: str, dtype: torch.dtype) -> None:
    """A half cannot count to 3,000; the angles are taken in at least float32."""
    x = torch.zeros(1, 3000, 6, device=device, dtype=dtype)
    y = SinusoidalPositionalEncoding(6)(x)
    assert y.dtype == dtype and y.device.type == device
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-3}.get(dtype, 5e-3)
    assert_close(y[0].double().cpu(), encoding(3000, 6), atol=tolerance, rtol=0)


class WithoutFloat64(TorchDispatchMode):
    """A device that cannot hold float64, as Apple's GPUs cannot: here meta, which every machine has."""

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = operation(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            if isinstance(x, torch.Tensor) and x.is_meta and x.dtype == torch.float64:
                raise TypeError("the device has no float64")
        return result


@pytest.mark.parametrize("by_default", [False, True])
def test_a_device_without_float64_is_sent_the_result(by_default: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def on_meta() -> torch.Tensor:
        with WithoutFloat64():
            if not by_default:
                return functional.sinusoidal_encoding(9, 6, device="meta")
            with torch.device("meta"):
                return functional.sinusoidal_encoding(9, 6)

    with pytest.raises(TypeError, match="no float64"):
        on_meta()
    monkeypatch.setattr(functional._position, "WITHOUT_FLOAT64", {"meta"})
    assert on_meta().is_meta and on_meta().dtype == torch.float32


def test_apples_gpus_are_known_to_have_no_float64() -> None:
    assert "mps" in functional._position.WITHOUT_FLOAT64


def test_the_functions_own_dtype_is_float32() -> None:
    assert torch.equal(functional.sinusoidal_encoding(9, 6), encoding(9, 6).float())


def test_the_function_compiles_without_being_told_a_device() -> None:
    compiled = torch.compile(lambda n: functional.sinusoidal_encoding(n, 6), backend="eager", fullgraph=True)
    assert torch.equal(compiled(9), functional.sinusoidal_encoding(9, 6))


def test_module_equals_function() -> None:
    x = normal(0, 2, 3, 6)
    assert torch.equal(SinusoidalPositionalEncoding(6, start=4)(x), x + encoding(3, 6, start=4))


def test_repr_says_the_sizes() -> None:
    assert repr(SinusoidalPositionalEncoding(6, start=0)) == (
        "SinusoidalPositionalEncoding(embed_dim=6, start=0, layout='interleaved')"
    )


def test_what_does_not_fit_is_refused() -> None:
    for odd in (5, 1, 0, -2):
        with pytest.raises(ValueError, match=f"embed_dim must be even and at least 2, got {odd}"):
            SinusoidalPositionalEncoding(odd)
        with pytest.raises(ValueError, match=f"embed_dim must be even and at least 2, got {odd}"):
            functional.sinusoidal_encoding(7, odd)
    with pytest.raises(ValueError, match=r"x must be floating point of shape \(batch, length, 6\), got .* \(2, 3, 4\)"):
        SinusoidalPositionalEncoding(6)(torch.ones(2, 3, 4))
    with pytest.raises(ValueError, match=r"x must be floating point .* got torch.int64"):
        SinusoidalPositionalEncoding(6)(torch.ones(2, 3, 6, dtype=torch.int64))
