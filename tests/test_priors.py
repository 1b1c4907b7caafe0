"""Distance priors: the bucket table by enumeration, the gauge freedom, what may be asked of them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import oracles
from nlilayers import DistancePrior, IntraAlign, functional
from strategies import normal


def prior_of(seed: int, max_distance: int = 10, device: str = "cpu") -> DistancePrior:
    prior = DistancePrior(max_distance, device=device, dtype=torch.float64)
    prior.bias.data = normal(seed, 2 * max_distance + 2).to(device)
    return prior


def test_the_paper_has_22_scalars_that_start_at_0() -> None:
    prior = DistancePrior()
    assert [tuple(p.shape) for p in prior.parameters()] == [(22,)]
    assert torch.all(prior.bias == 0)


def test_the_bucket_table_from_minus_12_to_12() -> None:
    far = 21
    expected = [far, far, *range(21), far, far]
    assert functional.distance_buckets(torch.arange(-12, 13), 10).tolist() == expected


@given(n=st.integers(0, 30), m=st.integers(0, 30), max_distance=st.integers(0, 12), seed=st.integers(0, 99))
def test_the_bias_equals_the_loop(device: str, n: int, m: int, max_distance: int, seed: int) -> None:
    prior = prior_of(seed, max_distance, device)
    bias = prior.bias.tolist()
    expected = [[oracles.bucket_bias(bias, i - j, max_distance) for j in range(m)] for i in range(n)]
    ours = prior(n, m)
    assert ours.shape == (n, m) and ours.tolist() == expected


def test_key_length_is_the_query_length_unless_given(device: str) -> None:
    prior = prior_of(0, device=device)
    assert torch.equal(prior(13), prior(13, 13))


def test_gradcheck(device: str) -> None:
    prior = prior_of(0, 2, device)
    assert torch.autograd.gradcheck(
        lambda bias: functional.distance_bias(bias, functional.token_distances(5, 4, bias.device)), prior.bias
    )


@given(seed=st.integers(0, 99), constant=st.floats(-5, 5))
def test_gauge_a_constant_changes_nothing_and_gradients_sum_to_zero(device: str, seed: int, constant: float) -> None:
    x = normal(seed, 2, 9, 5).to(device)
    intra = IntraAlign(prior=prior_of(seed, 3, device))
    before = intra(x)
    (before * normal(seed + 1, 2, 9, 5).to(device)).sum().backward()
    gradient = intra.prior.bias.grad
    assert abs(gradient.sum().item()) < 1e-12 and gradient.abs().max() > 1e-6
    intra.prior.bias.data += constant
    assert_close(intra(x), before, atol=1e-12, rtol=0)


def test_all_far_tokens_share_one_bias(device: str) -> None:
    prior = prior_of(0, 10, device)
    line = prior(60)[0]
    assert torch.all(line[11:] == line[11]) and line[10] != line[11]
    assert prior(60)[59, 0] == line[59]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtype_and_device_are_the_constructors(device: str, dtype: torch.dtype) -> None:
    bias = DistancePrior(4, device=device, dtype=dtype)(3)
    assert bias.dtype == dtype and bias.device.type == device


def test_reset_parameters_goes_back_to_the_start() -> None:
    prior = prior_of(1)
    prior.reset_parameters()
    assert torch.all(prior.bias == 0)


def test_repr_says_the_size() -> None:
    assert repr(DistancePrior(7)) == "DistancePrior(max_distance=7)"


def test_a_negative_distance_is_refused() -> None:
    with pytest.raises(ValueError, match="max_distance must be at least 0, got -1"):
        DistancePrior(-1)
