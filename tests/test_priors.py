"""Distance priors: their equations, their signs after training, the bucket table, the gauge freedom."""

import copy
import io
import math
import pickle
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

import oracles
from nlilayers import DistancePrior, GaussianPrior, HeadPriors, IntraAlign, LinearPrior, ZipfPrior, functional
from strategies import FEATURES, normal

PRIORS = {
    "Gaussian": GaussianPrior,
    "Gaussian, Eq 3": lambda **factory: GaussianPrior(b=None, **factory),
    "Zipf": ZipfPrior,
    "Distance": lambda **factory: DistancePrior(2, **factory),
    "Distance, absolute": lambda **factory: DistancePrior(2, signed=False, **factory),
    "Distance, two far buckets": lambda **factory: DistancePrior(2, far_buckets=2, **factory),
    "Linear": LinearPrior,
}
every_prior = pytest.mark.parametrize("build", PRIORS.values(), ids=PRIORS.keys())
LENGTHS = st.integers(0, 30)
OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=1e3),
    "Adam": lambda p: torch.optim.Adam(p, lr=10.0, weight_decay=1.0),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=5.0),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=20.0),
}


@given(n=LENGTHS, m=LENGTHS, w=st.floats(1e-3, 50), b=st.none() | st.floats(-50, 0))
def test_eqs_3_and_4_equal_the_loop(device: str, n: int, m: int, w: float, b: float | None) -> None:
    ours = GaussianPrior(w, b, device=device, dtype=torch.float64)(n, m)
    expected = [[oracles.gaussian_bias(w, b or 0.0, i - j) for j in range(m)] for i in range(n)]
    assert_close(ours.cpu(), torch.tensor(expected, dtype=torch.float64).view(n, m), atol=1e-10, rtol=1e-9)


@given(n=LENGTHS, m=LENGTHS)
def test_eq_18_equals_the_loop(device: str, n: int, m: int) -> None:
    ours = ZipfPrior(device=device, dtype=torch.float64)(n, m)
    expected = [[oracles.zipf_bias(i - j) for j in range(m)] for i in range(n)]
    assert_close(ours.cpu(), torch.tensor(expected, dtype=torch.float64).view(n, m), atol=1e-10, rtol=1e-9)


@given(n=LENGTHS, m=LENGTHS, w=st.floats(-50, -1e-3))
def test_eq_20_equals_the_loop(device: str, n: int, m: int, w: float) -> None:
    ours = LinearPrior(w, device=device, dtype=torch.float64)(n, m)
    expected = [[oracles.linear_bias(w, i - j) for j in range(m)] for i in range(n)]
    assert_close(ours.cpu(), torch.tensor(expected, dtype=torch.float64).view(n, m), atol=1e-10, rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_scalars_are_those_of_at_least_float32(dtype: torch.dtype) -> None:
    gaussian, linear = GaussianPrior(0.3, -0.7, dtype=dtype), LinearPrior(-0.3, dtype=dtype)
    expected = torch.float64 if dtype == torch.float64 else torch.float32
    for scalar, held in ((gaussian.w, gaussian.rho), (-gaussian.b, gaussian.kappa), (-linear.w, linear.theta)):
        assert scalar.dtype == expected
        assert scalar.item() == pytest.approx(nn.functional.softplus(held.double()).item(), rel=1e-6)


def test_zipfs_prior_has_nothing_but_a_0_that_says_where_it_is() -> None:
    prior = ZipfPrior(device="meta").to_empty(device="cpu")
    prior.reset_parameters()
    assert prior.state_dict() == {"like": torch.zeros(1)} and not list(prior.parameters())


@pytest.mark.parametrize("build", PRIORS.values(), ids=PRIORS.keys())
def test_what_two_priors_hold_lies_in_two_places(build: Callable[[], nn.Module]) -> None:
    """Tensors of one place, such as those without a number, are saved once, and missed where they are loaded."""
    places = [held.data_ptr() for held in nn.ModuleList([build(), build()]).state_dict().values()]
    assert len(set(places)) == len(places) and 0 not in places


def test_the_paper_has_at_most_two_scalars_for_each_of_its_priors() -> None:
    """But for the bias of each distance."""
    counts = [2, 1, 0, 6, 4, 7, 1]
    assert [sum(p.numel() for p in build().parameters()) for build in PRIORS.values()] == counts


def test_priors_start_where_they_are_told(device: str) -> None:
    prior = GaussianPrior(0.3, -2.5, device=device, dtype=torch.float64)
    assert prior.w.item() == pytest.approx(0.3, abs=1e-12) and prior.b.item() == pytest.approx(-2.5, abs=1e-12)
    assert LinearPrior(-0.7, device=device, dtype=torch.float64).w.item() == pytest.approx(-0.7, abs=1e-12)
    assert GaussianPrior(b=None).b.item() == 0
    for w in (19.9, 20.1, 39.9, 40.1, 1e3):
        prior = GaussianPrior(w, -w, device=device, dtype=torch.float64)
        assert [prior.w.item(), -prior.b.item()] == [pytest.approx(w, rel=1e-15)] * 2
    for w in (1e-6, 1e-2, 1e2, 1e4):
        assert GaussianPrior(w, -w).w.item() == pytest.approx(w, rel=1e-5)
        assert GaussianPrior(w, -w).b.item() == pytest.approx(-w, rel=1e-5)


@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS.keys())
@pytest.mark.parametrize("direction", [1.0, -1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_feasibility_signs_hold_after_any_step(optimiser, direction: float, dtype: torch.dtype) -> None:
    gaussian, linear = GaussianPrior(dtype=dtype), LinearPrior(dtype=dtype)
    steps = optimiser([*gaussian.parameters(), *linear.parameters()])
    start = gaussian.w.item()
    for _ in range(30):
        steps.zero_grad()
        (direction * (gaussian.w - gaussian.b - linear.w)).backward()
        steps.step()
        assert gaussian.w.item() > 0 and gaussian.b.item() <= 0 and linear.w.item() < 0
        assert all(math.isfinite(v.item()) for v in (gaussian.w, gaussian.b, linear.w))
    assert gaussian.w.item() != start


@given(w=st.floats(0.01, 10), c=st.floats(0.01, 10))
def test_eq_4s_peak_leaves_the_centre_exactly_when_w_is_below_2c(device: str, w: float, c: float) -> None:
    bias = GaussianPrior(w, -c, device=device, dtype=torch.float64)(1, 2)[0]
    if abs(w - 2 * c) > 1e-6:
        assert (bias[0] < bias[1]).item() == (w < 2 * c)


def test_eq_4s_centre_ties_with_its_neighbours_at_w_equal_to_2c() -> None:
    for w, c, sign in ((1.0, 0.5, 0), (1.0, 0.25, 1), (1.0, 1.0, -1)):
        line = functional.gaussian_bias(torch.tensor(w), torch.tensor(-c), torch.arange(-3, 4))
        assert torch.sign(line[3] - line[2]) == sign and torch.sign(line[3] - line[4]) == sign


@given(w=st.floats(0.01, 2), c=st.floats(0.01, 20))
def test_eq_4_rises_up_to_its_peak_and_falls_beyond(w: float, c: float) -> None:
    line = GaussianPrior(w, -c, dtype=torch.float64)(1, 60)[0]
    peak, distance = math.sqrt(c / w), torch.arange(60)
    rising = line.diff() >= 0
    assert torch.all(rising[distance[1:] < peak]) and not torch.any(rising[distance[:-1] > peak])


@given(w=st.floats(0.01, 10))
def test_eq_4_with_b_0_is_eq_3(w: float) -> None:
    distances, scalar = torch.arange(-9, 10), torch.tensor(w, dtype=torch.float64)
    literal = functional.gaussian_bias(scalar, torch.zeros((), dtype=torch.float64), distances)
    assert torch.equal(literal, -scalar * distances.square())
    assert torch.equal(GaussianPrior(w, None)(5), GaussianPrior(w, 0.0)(5))


def test_the_kink_of_eq_4_passes_no_gradient(device: str) -> None:
    w, b = (torch.tensor(v, device=device, requires_grad=True) for v in (0.25, -1.0))
    functional.gaussian_bias(w, b, torch.tensor([-2, 2], device=device)).sum().backward()
    assert w.grad == 0 and b.grad == 0


@every_prior
def test_every_prior_depends_on_the_distance_alone(build, device: str) -> None:
    prior = build(device=device, dtype=torch.float64)
    for parameter in prior.parameters():
        parameter.data = normal(3, *parameter.shape).to(device)
    bias = prior(7, 11)
    assert torch.equal(bias[1:, 1:], bias[:-1, :-1])
    if not (isinstance(prior, DistancePrior) and prior.signed):
        assert torch.equal(prior(11, 7), bias.mT)


@every_prior
def test_every_prior_holds_far_distances_in_half_precision(build, device: str) -> None:
    """A distance of 300 squares to 90,000, which is more than float16 holds."""
    prior = build(device=device, dtype=torch.float16)
    bias = prior(301)
    assert torch.isfinite(bias).all()
    if bias.requires_grad:
        bias[0].softmax(-1)[0].backward()
    assert all(torch.isfinite(p.grad).all() for p in prior.parameters())


@every_prior
def test_gradcheck_of_every_prior(build) -> None:
    prior = build(dtype=torch.float64)
    names = [name for name, _ in prior.named_parameters()]

    def call(*values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(prior, dict(zip(names, values, strict=True)), (5, 4))

    values = tuple(p.detach().clone().requires_grad_() for p in prior.parameters())
    assert not values or torch.autograd.gradcheck(call, values)


@every_prior
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_every_prior_fits_intra_align_in_every_dtype(build, device: str, dtype: torch.dtype) -> None:
    intra = IntraAlign(nn.Linear(FEATURES, 3), prior=build()).to(device, dtype)
    x = normal(0, 2, 7, FEATURES).to(device, dtype)
    exact = copy.deepcopy(intra).double()(x.double())
    assert intra(x).dtype == dtype
    assert_close(intra(x).double(), exact, atol=0.1 if dtype == torch.bfloat16 else 0.02, rtol=0)


@every_prior
def test_dtype_and_device_are_the_constructors_or_those_moved_to(build, device: str) -> None:
    prior = build(device=device, dtype=torch.float64)
    assert prior(3).dtype == torch.float64 and prior(3).device.type == device
    assert prior.to(torch.float32)(3).dtype == torch.float32
    assert build(device="meta")(3).device.type == "meta"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_buckets_gradient_is_a_sum_in_float32(device: str, dtype: torch.dtype) -> None:
    """Added up in a half, ones stick at 256 or 2,048: the next is less than half the distance to the next number."""
    prior = DistancePrior(1, device=device, dtype=dtype)
    bias = prior(70)
    assert bias.dtype == torch.float32
    bias.sum().backward()
    exact = torch.tensor([69.0, 70.0, 69.0, 70.0**2 - 70 - 2 * 69])
    assert prior.bias.grad is not None and prior.bias.grad.dtype == dtype
    assert torch.equal(prior.bias.grad.cpu(), exact.to(dtype))


@every_prior
def test_copies_of_priors_agree(build) -> None:
    prior = build()
    for parameter in prior.parameters():
        parameter.data = normal(3, *parameter.shape).float()
    fresh, buffer = build(), io.BytesIO()
    torch.save(prior.state_dict(), buffer)
    buffer.seek(0)
    fresh.load_state_dict(torch.load(buffer, weights_only=True), strict=True)
    for twin in (fresh, copy.deepcopy(prior), pickle.loads(pickle.dumps(prior))):
        assert torch.equal(twin(6), prior(6))


@every_prior
def test_reset_parameters_goes_back_to_the_start(build) -> None:
    prior, fresh = build(), build()
    for parameter in prior.parameters():
        nn.init.constant_(parameter, 3.0)
    prior.reset_parameters()
    assert torch.equal(prior(6), fresh(6))


def test_repr_says_the_start() -> None:
    assert repr(GaussianPrior(0.5, None)) == "GaussianPrior(w=0.5, b=None)"
    assert repr(ZipfPrior()) == "ZipfPrior()"
    assert repr(LinearPrior(-0.25)) == "LinearPrior(w=-0.25)"


def test_scalars_of_the_wrong_sign_are_refused() -> None:
    for w in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match=f"w must be a finite number above 0 in torch.float32, got {w}"):
            GaussianPrior(w)
        with pytest.raises(ValueError, match=f"w must be a finite number below 0 in torch.float32, got {-w}"):
            LinearPrior(-w)
    for b in (0.1, -math.inf, math.nan):
        with pytest.raises(
            ValueError, match=f"b must be None or a finite number of at most 0 in torch.float32, got {b}"
        ):
            GaussianPrior(0.1, b)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_scalars_that_the_dtype_cannot_hold_are_refused(dtype: torch.dtype) -> None:
    """They would become infinite, and the distance 0 no number."""
    largest = torch.finfo(dtype).max
    priors = (
        GaussianPrior(largest, dtype=dtype),
        GaussianPrior(0.1, -largest, dtype=dtype),
        LinearPrior(-largest, dtype=dtype),
    )
    for prior in priors:
        assert torch.isfinite(prior(1, 1)).all()
    for build in (
        lambda w: GaussianPrior(w, dtype=dtype),
        lambda w: GaussianPrior(0.1, -w, dtype=dtype),
        lambda w: LinearPrior(-w, dtype=dtype),
    ):
        with pytest.raises(ValueError, match=f"in {dtype}, got"):
            build(1.01 * largest)


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


OTHER_READINGS = {
    "absolute": ({"signed": False}, 12, oracles.absolute_bucket_bias),
    "two far buckets": ({"far_buckets": 2}, 23, oracles.two_sided_bucket_bias),
}


@pytest.mark.parametrize(("reading", "scalars", "beta"), OTHER_READINGS.values(), ids=OTHER_READINGS)
@given(n=st.integers(0, 30), m=st.integers(0, 30), max_distance=st.integers(0, 12), seed=st.integers(0, 99))
def test_the_other_readings_equal_their_loops(
    device: str, reading, scalars: int, beta, n: int, m: int, max_distance: int, seed: int
) -> None:
    assert DistancePrior(**reading).bias.shape == (scalars,)
    prior = DistancePrior(max_distance, **reading, device=device, dtype=torch.float64)
    prior.bias.data = normal(seed, *prior.bias.shape).to(device)
    bias = prior.bias.tolist()
    assert prior(n, m).tolist() == [[beta(bias, i - j, max_distance) for j in range(m)] for i in range(n)]


def test_the_other_readings_tables_from_minus_3_to_3() -> None:
    line = torch.arange(-3, 4)
    assert functional.distance_buckets(line, 2, signed=False).tolist() == [3, 2, 1, 0, 1, 2, 3]
    assert functional.distance_buckets(line, 2, far_buckets=2).tolist() == [6, 0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
@pytest.mark.parametrize("reading", [{}, *(reading for reading, *_ in OTHER_READINGS.values())], ids=str)
def test_buckets_are_of_the_integers_of_the_distances(reading: dict[str, int], dtype: torch.dtype) -> None:
    assert functional.distance_buckets(torch.arange(-3, 4, dtype=dtype), 2, **reading).dtype == dtype


def test_distances_have_signs_unless_it_is_said() -> None:
    bias, line = normal(1, 6), torch.arange(-3, 4)
    assert functional.distance_bias(bias, line[None])[0].tolist() == [
        oracles.bucket_bias(bias.tolist(), d, 2) for d in line.tolist()
    ]
    assert functional.distance_buckets(line, 2).tolist() == [5, 0, 1, 2, 3, 4, 5]


def test_the_functions_refuse_what_the_layers_refuse() -> None:
    line = torch.arange(-3, 4)
    with pytest.raises(ValueError, match="far_buckets must be 1 or 2, got 3"):
        functional.distance_buckets(line, 2, far_buckets=3)
    with pytest.raises(ValueError, match="far_buckets must be 1 without signs, got 2"):
        functional.distance_buckets(line, 2, signed=False, far_buckets=2)


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


def test_repr_says_the_size() -> None:
    assert repr(DistancePrior(7)) == "DistancePrior(max_distance=7, signed=True, far_buckets=1)"


def test_a_negative_distance_is_refused() -> None:
    with pytest.raises(ValueError, match="max_distance must be at least 0, got -1"):
        DistancePrior(-1)


def test_a_tensor_is_no_length(device: str) -> None:
    words = torch.zeros(2, 3, 4, device=device)
    wrong = r"query_length must be an integer, got tensor"
    for prior in (prior_of(0, 10, device), GaussianPrior(), HeadPriors([ZipfPrior()])):
        with pytest.raises(TypeError, match=wrong):
            prior(words)
    with pytest.raises(TypeError, match=wrong):
        IntraAlign(prior_of(0, 10, device))(words)


def test_the_functions_raise_half_precision_too() -> None:
    half, far = torch.tensor(0.1, dtype=torch.float16), torch.tensor([0, 300])
    assert_close(functional.gaussian_bias(half, -half, far), torch.tensor([-0.1, -8999.9]), atol=3.0, rtol=1e-3)
    assert functional.linear_bias(-half, far).dtype == torch.float32


class Level(nn.Module):
    """A prior of one number, which has to be told both lengths."""

    def forward(self, query_length: int, key_length: int) -> torch.Tensor:
        return torch.zeros(())


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16])
def test_the_functions_take_distances_whose_squares_their_dtype_does_not_hold(dtype: torch.dtype) -> None:
    largest = min(torch.iinfo(dtype).max, 10**5) if not dtype.is_floating_point else 60_000
    distances = torch.tensor([-largest, -largest // 2, -12, 0, 16, largest]).to(dtype)
    w, b = torch.tensor(0.1), torch.tensor(-0.2)
    for bias in (
        lambda d: functional.gaussian_bias(w, b, d),
        lambda d: functional.linear_bias(-w, d),
        functional.zipf_bias,
    ):
        ours, expected = bias(distances), bias(distances.double())
        assert ours.dtype == torch.float32 and expected.dtype == torch.float64
        assert_close(ours.double(), expected, atol=0, rtol=1e-6)
    lowest = torch.tensor([torch.iinfo(torch.int8).min], dtype=torch.int8)
    assert_close(functional.zipf_bias(lowest), -torch.log(torch.tensor([129.0])))


def test_heads_have_their_priors_in_order() -> None:
    priors = [GaussianPrior(0.3), ZipfPrior(), DistancePrior(2), LinearPrior(-2.0)]
    priors[2].bias.data = normal(1, 6).float()
    heads = HeadPriors(priors)
    for n, m in ((5, 5), (4, 7), (0, 3), (1, 1)):
        bias = heads(n, m)
        assert bias.shape == (4, n, m)
        for ours, prior in zip(bias, priors, strict=True):
            assert torch.equal(ours, prior(n, m))
    assert torch.equal(heads(6), heads(6, 6))
    assert HeadPriors([Level(), GaussianPrior()])(3).shape == (2, 3, 3)


def test_heads_go_back_to_their_starts_and_learn_apart() -> None:
    heads = HeadPriors(GaussianPrior(w) for w in (0.1, 0.2))
    start = heads(4)
    assert len(list(heads.parameters())) == 4 and not torch.equal(start[0], start[1])
    (gradient,) = torch.autograd.grad(start[1].sum(), heads.priors[0].rho, allow_unused=True)
    assert gradient is None or gradient == 0
    for parameter in heads.parameters():
        nn.init.constant_(parameter, 3.0)
    heads.reset_parameters()
    assert torch.equal(heads(4), start)
    HeadPriors([Level()]).reset_parameters()


def test_what_is_no_prior_is_refused_by_name() -> None:
    for wrong in (GaussianPrior(), 3, None):
        with pytest.raises(TypeError, match=f"priors must be an iterable of modules, got a {type(wrong).__name__}"):
            HeadPriors(wrong)
    with pytest.raises(TypeError, match="priors must all be modules, got a float"):
        HeadPriors([GaussianPrior(), 0.1])
    nested = HeadPriors([GaussianPrior(), HeadPriors([ZipfPrior(), ZipfPrior()])])
    with pytest.raises(ValueError, match=r"each prior must give a log-bias of shape \(5, 5\), got shape \(2, 5, 5\)"):
        nested(5)


class Misfit(nn.Module):
    """A column too many."""

    def forward(self, query_length: int, key_length: int) -> Tensor:
        return torch.zeros(query_length, key_length + 1)


def test_a_matrix_of_other_lengths_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"each prior must give a log-bias of shape \(5, 5\), got shape \(5, 6\)"):
        HeadPriors([GaussianPrior(), Misfit()])(5)
    with pytest.raises(ValueError, match=r"prior must give a log-bias of shape \(5, 5\), got shape \(5, 6\)"):
        IntraAlign(prior=Misfit())(torch.zeros(2, 5, 3))


def test_no_priors_and_one_head_that_would_get_several_are_refused() -> None:
    with pytest.raises(ValueError, match="priors must have at least one prior, got none"):
        HeadPriors([])
    with pytest.raises(ValueError, match=r"prior must give a log-bias of shape \(5, 5\), got shape \(2, 5, 5\)"):
        IntraAlign(prior=HeadPriors([ZipfPrior(), ZipfPrior()]))(torch.zeros(2, 5, 3))


@pytest.mark.parametrize("options", [{}, {"signed": False}, {"far_buckets": 2}], ids=str)
@pytest.mark.parametrize("lengths", [(1, 1), (1, 6), (6, 1), (7, 7), (4, 9), (9, 4), (0, 3), (3, 0), (0, 0)], ids=str)
def test_a_distance_is_looked_up_once_and_stands_along_its_diagonal(
    options: dict, lengths: tuple[int, int], device: str
) -> None:
    prior = DistancePrior(3, **options, device=device, dtype=torch.float64)
    torch.nn.init.normal_(prior.bias)
    distances = functional.token_distances(*lengths, device=device)
    with Lookups() as lookups:
        ours = prior(*lengths)
    expected = functional.distance_bias(prior.bias, distances, signed=prior.signed)
    assert torch.equal(ours, expected) and ours.shape == lengths
    assert sum(lookups.sizes) <= max(sum(lengths) - 1, 0)
    upstream = torch.randn_like(ours)
    gradients = [torch.autograd.grad(bias, prior.bias, upstream)[0] for bias in (ours, expected)]
    assert_close(*gradients, atol=1e-12, rtol=1e-12)


class Lookups(TorchDispatchMode):
    """How much is looked up in tables."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if operator is torch.ops.aten.embedding.default:
            self.sizes.append(args[1].numel())
        return operator(*args, **(kwargs or {}))
