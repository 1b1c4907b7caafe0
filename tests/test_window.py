"""Windowed Gaussian attention: the theorem, the smallest window, the certificate, and the layer that rests on them."""

import math
import random
import warnings
from contextlib import AbstractContextManager
from itertools import pairwise
from unittest import mock

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

import strategies
from nlilayers import (
    DistancePrior,
    GaussianPrior,
    GaussianSelfAttention,
    HeadPriors,
    LinearPrior,
    ZipfPrior,
    _passages,
    functional,
    masking,
)
from nlilayers._blocks import FEWEST_SCORES_IN_BLOCKS, narrow_window
from nlilayers._passages import cut_into_passages, join_passages
from strategies import normal

EMBED_DIM, HEADS = 8, 2
WIDTHS = st.floats(1e-3, 3)
CENTRES = st.floats(0, 4)
RANGES = st.floats(0, 200)
TOLERANCES = st.sampled_from([1e-3, 1e-6, 2**-24, 1e-12])


def bias(w: float, c: float, length: int) -> Tensor:
    return functional.gaussian_bias(*torch.tensor([w, -c], dtype=torch.float64), torch.arange(length))


def worst_ratio(w: float, c: float, length: int, window: int) -> tuple[float, int]:
    """The largest ln(T / G) of all rows and the row that has it: Theorem 1, key by key."""

    def log_sum(values: list[float]) -> float:
        top = max(values, default=-math.inf)
        return top if top == -math.inf else top + math.log(sum(math.exp(v - top) for v in values))

    ratios = []
    for i in range(length):
        beta = {j: -abs(w * (i - j) ** 2 - c) for j in range(length)}
        far = [beta[j] for j in beta if abs(i - j) > window]
        ratios.append(log_sum(far) - log_sum([beta[j] for j in beta if abs(i - j) <= window]))
    return max(ratios), ratios.index(max(ratios))


@given(w=WIDTHS, c=CENTRES, length=st.integers(1, 40), score_range=RANGES, tolerance=TOLERANCES)
def test_the_smallest_window_is_that_of_the_theorem(
    w: float, c: float, length: int, score_range: float, tolerance: float
) -> None:
    limit = math.log(tolerance / (1 - tolerance))
    fits = [d for d in range(length) if worst_ratio(w, c, length, d)[0] + score_range <= limit]
    found = functional.smallest_window(bias(w, c, length), score_range, tolerance)
    on_the_edge = {d for d in range(length) if abs(worst_ratio(w, c, length, d)[0] + score_range - limit) < 1e-9}
    assert found == fits[0] or found in on_the_edge


@given(w=WIDTHS, c=CENTRES, length=st.integers(1, 40), score_range=st.floats(0, 5), tolerance=st.floats(0.01, 0.99))
@example(w=0.14, c=3.0, length=21, score_range=0.4, tolerance=0.59)
@example(w=0.054, c=1.7, length=23, score_range=3.1, tolerance=0.66)
def test_a_generous_tolerance_is_kept_too(
    w: float, c: float, length: int, score_range: float, tolerance: float
) -> None:
    """Even where it is so large that a window short of the peak could keep it in the rows that were looked at."""
    found = functional.smallest_window(bias(w, c, length), score_range, tolerance)
    assert functional.largest_discarded_mass(bias(w, c, length), found, score_range) <= tolerance * (1 + 1e-9)
    assert found >= bias(w, c, length).argmax()
    if found > math.sqrt(c / w) + 1:
        worst, _ = worst_ratio(w, c, length, found - 1)
        assert 1 / (1 + math.exp(-worst - score_range)) > tolerance * (1 - 1e-9)


@pytest.mark.parametrize(
    ("w", "windows"), [(0.01, (39, 46, 47, 49)), (0.05, (17, 21, 21, 22)), (0.1, (12, 15, 15, 16)), (1, (4, 4, 4, 5))]
)
def test_the_windows_of_known_priors(w: float, windows: tuple[int, ...]) -> None:
    asked = [(64, 1e-3), (64, 1e-6), (512, 1e-6), (512, 2**-24)]
    found = [functional.smallest_window(bias(w, 0, n), 10.0, tolerance) for n, tolerance in asked]
    assert tuple(found) == windows
    wide = [functional.smallest_window(bias(0.1, 0, 512), r, 1e-6) for r in (0.0, 2.0, 5.0, 20.0, 40.0, 80.0)]
    assert wide == [11, 12, 13, 18, 22, 30]


@pytest.mark.parametrize(
    ("w", "windows"),
    [
        (0.01, {0.01: (39, 47), 1: (40, 48), 2: (41, 49)}),
        (0.05, {0.05: (17, 21), 1: (18, 21), 2: (18, 22)}),
        (0.1, {0.1: (12, 15), 1: (13, 15), 2: (13, 15)}),
        (1, {1: (4, 4), 2: (4, 5)}),
    ],
)
def test_the_windows_of_priors_with_a_punished_centre(w: float, windows: dict[float, tuple[int, int]]) -> None:
    for c, expected in windows.items():
        found = [functional.smallest_window(bias(w, c, 512), 10.0, tolerance) for tolerance in (1e-3, 1e-6)]
        assert tuple(found) == expected


def test_other_decays_need_wide_windows() -> None:
    distances = torch.arange(512, dtype=torch.float64)
    linear = functional.linear_bias(torch.tensor(-0.1, dtype=torch.float64), distances)
    assert functional.smallest_window(linear, 10.0, 1e-6) == 238
    assert functional.smallest_window(functional.zipf_bias(distances), 10.0, 1e-6) == 511


@given(w=WIDTHS, c=CENTRES, length=st.integers(2, 40), score_range=RANGES, window=st.integers(0, 40))
def test_no_smaller_bound_holds_for_all_scores(
    w: float, c: float, length: int, score_range: float, window: int
) -> None:
    """The bound is what the worst row loses when all keys outside the window score R and all within score 0."""
    bound = functional.largest_discarded_mass(bias(w, c, length), window, score_range)
    _, row = worst_ratio(w, c, length, window)
    distance = (torch.arange(length) - row).abs()
    scores = score_range * (distance > window).double() + bias(w, c, length)[distance]
    assert scores.softmax(0)[distance > window].sum().item() == pytest.approx(bound, rel=1e-9, abs=1e-300)
    single = bias(w, c, length).float()
    exact = functional.largest_discarded_mass(single.double(), window, score_range)
    assert functional.largest_discarded_mass(single, window, score_range) == exact


@given(w=WIDTHS, c=CENTRES, score_range=RANGES)
def test_the_bound_falls_with_the_window(w: float, c: float, score_range: float) -> None:
    bounds = [functional.largest_discarded_mass(bias(w, c, 30), d, score_range) for d in range(31)]
    assert all(a >= b for a, b in pairwise(bounds)) and bounds[29] == bounds[30] == 0


@given(heads=st.lists(st.tuples(WIDTHS, CENTRES, RANGES), min_size=1, max_size=4), window=st.integers(0, 40))
def test_the_bound_of_several_heads_is_the_largest_of_theirs(heads: list[tuple[float, ...]], window: int) -> None:
    apart = [functional.largest_discarded_mass(bias(w, c, 30), window, r) for w, c, r in heads]
    biases = torch.stack([bias(w, c, 30) for w, c, _ in heads])
    assert functional.largest_discarded_mass(
        biases, window, torch.tensor([r for *_, r in heads], dtype=torch.float64)
    ) == max(apart)


@given(w=WIDTHS, c=CENTRES, score_range=RANGES, tolerance=TOLERANCES, seed=strategies.seeds)
def test_with_holes_every_word_finds_itself(
    w: float, c: float, score_range: float, tolerance: float, seed: int
) -> None:
    """Wherever the padding lies, the worst scores of each row lose no more than the tolerance."""
    length = 24
    window = functional.smallest_window(bias(w, c, length), score_range, tolerance, holes=True)
    real = normal(seed, length) > 0
    distance = functional.token_distances(length).abs()
    scores = score_range * (distance > window).double() + bias(w, c, length)[distance]
    weights = masking.masked_softmax(scores, real[None, :] | (distance == 0))
    assert (weights * (distance > window)).sum(1).max() <= tolerance * (1 + 1e-9)


@given(w=WIDTHS, c=CENTRES, score_range=RANGES, window=st.integers(0, 30))
def test_with_holes_no_smaller_bound_holds_either(w: float, c: float, score_range: float, window: int) -> None:
    """The bound is what a word loses when all of its neighbours are padding and all words beyond them score R."""
    distance = functional.token_distances(24).abs()
    scores = score_range * (distance > window).double() + bias(w, c, 24)[distance]
    weights = masking.masked_softmax(scores, (distance > window) | (distance == 0))
    bound = functional.largest_discarded_mass(bias(w, c, 24), window, score_range, holes=True)
    assert (weights * (distance > window)).sum(1).max().item() == pytest.approx(bound, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("score_range", [math.nan, math.inf, 1e9])
def test_scores_without_a_bound_leave_nothing_out(score_range: float) -> None:
    assert functional.smallest_window(bias(0.1, 0.1, 50), score_range, 1e-6) == 49


def test_what_is_no_number_is_never_said_to_lose_nothing() -> None:
    """The window keeps every key; the bound is no number either."""
    known, unknown = bias(0.1, 0.1, 50), bias(0.1, 0.1, 50).index_fill(0, torch.tensor([7]), math.nan)
    assert functional.smallest_window(unknown, 1.0, 1e-6) == 49
    assert functional.smallest_window(torch.stack([known, unknown]), 1.0, 1e-6) == 49
    assert math.isnan(functional.largest_discarded_mass(unknown, 3, 1.0))
    assert math.isnan(functional.largest_discarded_mass(torch.stack([known, unknown]), 3, 1.0))
    assert math.isnan(functional.largest_discarded_mass(known, 3, math.nan))


@given(seed=strategies.seeds, scale=st.floats(-2, 2), size=st.floats(0.01, 100))
def test_no_score_exceeds_its_bound(seed: int, scale: float, size: float) -> None:
    q, k = normal(seed, 2, 3, 9, 4, scale=size), normal(seed + 1, 2, 3, 9, 4) + 5
    scores = functional.dot_scores(q, k, scale)
    slack = 1e-12 * (1 + scores.abs().max())
    assert torch.all(scores.amax(3) <= functional.score_bound(q, k, scale) + slack)
    spread = (scores.amax(3) - scores.amin(3)).amax(2)
    assert torch.all(spread <= functional.score_range(q, k, scale) + slack)
    assert torch.equal(functional.score_bound(q, k), functional.score_bound(q, k, 1.0))
    assert torch.equal(functional.score_range(q, k), functional.score_range(q, k, 1.0))


@given(seed=strategies.seeds, keys=st.integers(1, 9), shift=st.floats(-9, 9))
def test_what_all_keys_share_widens_no_bound(seed: int, keys: int, shift: float) -> None:
    """It adds the same to all scores of a query, and so to their bound, and nothing to their range."""
    q, k, shared = normal(seed, 2, 3, 5, 4), normal(seed + 1, 2, 3, keys, 4), shift * normal(seed + 2, 2, 3, 1, 4)
    added = 0.7 * (q * shared).sum(3)
    assert_close(functional.score_bound(q, k + shared, 0.7), functional.score_bound(q, k, 0.7) + added)
    assert_close(functional.score_range(q, k + shared, 0.7), functional.score_range(q, k, 0.7))
    if keys == 1:
        assert_close(functional.score_bound(q, k, 0.7), functional.dot_scores(q, k, 0.7)[..., 0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_bounds_on_the_scores_of_halves_are_in_float32(dtype: torch.dtype) -> None:
    q, k = normal(0, 1, 2, 40, 4, scale=200).to(dtype), normal(1, 1, 2, 40, 4, scale=200).to(dtype)
    for bound in (functional.score_bound, functional.score_range):
        ours, exact = bound(q, k), bound(q.double(), k.double())
        assert ours.dtype == torch.float32
        assert_close(ours, exact.float(), atol=0, rtol=1e-4)
    zero = torch.zeros(8, 24, dtype=dtype)
    assert functional.windowed_scores(q, k, zero).dtype == torch.float32
    assert torch.equal(functional.windowed_scores(q, k, zero), functional.windowed_scores(q, k, zero, None, 1.0))


def case(number: int) -> tuple[Tensor, Tensor, Tensor, GaussianPrior, Tensor]:
    """Queries, keys and values, a prior and a mask: plain ones, long ones, and far keys that outshout the near ones."""
    draw = random.Random(number)
    n, d = draw.randint(1, 90), 4
    q, k, v = (normal(3 * number + i, 1, 2, n, d, scale=draw.choice([0.1, 1.0, 4.0])) for i in range(3))
    if draw.random() < 0.4:
        k[:, :, draw.randrange(n)] += draw.choice([3.0, 30.0]) * q[:, :, draw.randrange(n)]
    if draw.random() < 0.2:
        q, k = q + 20, k + 20
    prior = GaussianPrior(10 ** draw.uniform(-2, 0.5), draw.choice([None, -0.1, -2.0]), dtype=torch.float64)
    mask = torch.arange(n)[None] < draw.randint(1, n) if draw.random() < 0.6 else torch.ones(1, n, dtype=torch.bool)
    if draw.random() < 0.2:
        mask = normal(number, 1, n) > -0.5
    return q, k, v, prior, mask


def dense(q: Tensor, k: Tensor, v: Tensor, prior: nn.Module, mask: Tensor) -> Tensor:
    n = q.shape[2]
    weights = functional.self_attention_weights(functional.dot_scores(q, k, 0.5), prior(n, n), mask)
    return functional.weighted_sum(weights, v)


def windowed(q: Tensor, k: Tensor, v: Tensor, prior: nn.Module, mask: Tensor, window: int) -> Tensor:
    size = max(window, 1)
    scores = functional.windowed_scores(q, k, prior(3 * size, 3 * size)[size : 2 * size], mask, 0.5)
    return functional.attend_windows(scores.softmax(-1), v)


@pytest.mark.parametrize("hundred", range(10))
def test_a_thousand_sentences_lose_no_more_than_the_tolerance(hundred: int) -> None:
    """Outputs and the gradients of queries, keys, values and prior against the dense ones: Lemma 1's bounds."""
    for number in range(100 * hundred, 100 * hundred + 100):
        q, k, v, prior, mask = case(number)
        tolerance = 10 ** random.Random(number + 1).uniform(-9, -3)
        n, real = q.shape[2], mask[:, None, :, None]
        score_range = functional.score_range(q, k, 0.5).amax().item()
        holes = bool((mask[:, 1:] & ~mask[:, :-1]).any())
        log_bias = functional.gaussian_bias(prior.w.detach(), prior.b.detach(), torch.arange(n))
        window = functional.smallest_window(log_bias, score_range, tolerance, holes=holes)
        inputs = [x.requires_grad_() for x in (q, k, v)] + list(prior.parameters())
        cotangent = normal(number, *v.shape)
        results = []
        for y in (dense(q, k, v, prior, mask), windowed(q, k, v, prior, mask, window)):
            y = y.masked_fill(~real, 0)
            results.append((y, torch.autograd.grad((y * cotangent).sum(), inputs, materialize_grads=True)))
        (expected, gradients), (ours, our_gradients) = results
        values = v[mask[:, None].expand(-1, 2, -1)].detach()
        diameter = 2 * values.norm(dim=-1).max().item() if len(values) else 0.0
        assert (ours - expected).norm(dim=-1).max() <= tolerance * diameter + 1e-12, number
        # A row's derivative by its scores is off by 3 tau times the diameter in all, that by the values by 2 tau.
        moved = (cotangent * real).norm(dim=-1)
        by_scores = 3 * tolerance * diameter * moved
        radius = ((k * real).sum(2, keepdim=True) / real.sum(2, keepdim=True).clamp(min=1) - k).masked_fill(~real, 0)
        bounds = [
            (0.5 * by_scores * radius.norm(dim=-1).amax(-1, keepdim=True)).amax(),
            (0.5 * by_scores * q.norm(dim=-1)).sum(),
            2 * tolerance * moved.sum(),
            by_scores.sum() * (n - 1) ** 2,
            by_scores.sum(),
        ]
        for a, b, bound in zip(our_gradients, gradients, bounds, strict=False):
            assert (a - b).abs().max() <= bound + 1e-9 * (1 + b.abs().max()), number


@given(number=st.integers(0, 10**6), window=st.integers(0, 30))
def test_the_certificate_is_never_below_what_was_lost(number: int, window: int) -> None:
    q, k, _, prior, mask = case(number)
    n = q.shape[2]
    scores = functional.dot_scores(q, k, 0.5) + prior(n, n)
    distance = functional.token_distances(n).abs()
    weights = masking.masked_softmax(scores, mask[:, None, None, :])
    lost = (weights * (distance > window)).sum(3)
    near = mask[:, None, None, :] & (distance <= window)
    log_normalizer = scores.masked_fill(~near, -math.inf).logsumexp(3)
    log_tail = prior(n, n).masked_fill(distance <= window, -math.inf).logsumexp(1)
    bound = functional.discarded_mass_certificate(log_normalizer, functional.score_bound(q, k, 0.5), log_tail)
    assert torch.all((lost <= bound * (1 + 1e-9) + 1e-15)[:, :, mask[0]])


@given(number=st.integers(0, 10**6))
def test_the_certificate_falls_with_the_window(number: int) -> None:
    q, k, _, prior, mask = case(number)
    n = q.shape[2]
    scores, bound = functional.dot_scores(q, k, 0.5) + prior(n, n), functional.score_bound(q, k, 0.5)
    distance = functional.token_distances(n).abs()
    certificates = []
    for window in range(n):
        near = mask[:, None, None, :] & (distance <= window)
        log_normalizer = scores.masked_fill(~near, -math.inf).logsumexp(3)
        log_tail = prior(n, n).masked_fill(distance <= window, -math.inf).logsumexp(1)
        certificates.append(functional.discarded_mass_certificate(log_normalizer, bound, log_tail)[:, :, mask[0]])
    assert all(torch.all(b <= a * (1 + 1e-12)) for a, b in pairwise(certificates))
    assert torch.all(certificates[-1] == 0)


def test_padding_stays_out_however_low_the_real_scores_are() -> None:
    q = torch.ones(1, 1, 6, 1, dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False, False, False]])
    k = -1e6 * mask[:, None, :, None].double()
    weights = functional.windowed_scores(q, k, torch.zeros(2, 6, dtype=torch.float64), mask).softmax(-1)
    assert_close(weights.sum(-1).flatten()[:3], torch.ones(3, dtype=torch.float64))
    assert_close(weights[0, 0, 0, 0], torch.tensor([0, 0, 1, 1, 1, 0], dtype=torch.float64) / 3)


@given(number=st.integers(0, 10**6), window=st.integers(0, 100), spare=st.integers(0, 5))
def test_blocks_with_a_cut_equal_a_band_of_the_whole_matrix(number: int, window: int, spare: int) -> None:
    """With a bias of minus infinity beyond the window, and blocks of that size or a larger one."""
    q, k, v, prior, mask = case(number)
    n, size = q.shape[2], max(window, 1) + spare
    distances = functional.token_distances(3 * size)[size : 2 * size]
    log_bias = prior(3 * size, 3 * size)[size : 2 * size].masked_fill(distances.abs() > window, -math.inf)
    scores = functional.windowed_scores(q, k, log_bias, mask, 0.5)
    ours = functional.attend_windows(scores.softmax(-1), v)
    weights = functional.self_attention_weights(functional.dot_scores(q, k, 0.5), prior(n, n), mask, window)
    real = mask[:, None, :, None]
    assert torch.all(ours.isfinite())
    assert_close(ours.masked_fill(~real, 0), functional.weighted_sum(weights, v), atol=1e-10, rtol=1e-10)


def attention(window: int | str | None = "auto", seed: int = 0, **options) -> GaussianSelfAttention:
    layer = GaussianSelfAttention(EMBED_DIM, HEADS, window=window, **options).double()
    for k, parameter in enumerate([*layer.in_proj.parameters(), *layer.out_proj.parameters()]):
        parameter.data = normal(seed + 100 + k, *parameter.shape, scale=0.5)
    return layer


def mask_of(*lengths: int, width: int) -> Tensor:
    return masking.lengths_to_mask(torch.tensor(lengths), width)


def blocks_used(layer: GaussianSelfAttention, x: Tensor, mask: Tensor | None = None) -> bool:
    """Whether the layer computed less than the whole matrix of scores."""
    with Largest() as largest:
        layer(x, mask)
    return largest.numel < x.shape[0] * layer.num_heads * x.shape[1] ** 2


class Largest(TorchDispatchMode):
    """Elements of the largest tensor made in this context."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (tuple, list)) else [made]:
            if isinstance(tensor, Tensor) and not func.is_view:
                self.numel = max(self.numel, tensor.numel())
        return made


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("lengths", [(400, 400), (400, 37), (400, 0), None])
def test_auto_equals_the_whole_matrix(
    lengths: tuple[int, ...] | None, bias: bool, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nlilayers._blocks.FEWEST_SCORES_IN_BLOCKS", {})
    layer, whole = attention(bias=bias).to(device), attention(None, bias=bias).to(device)
    x = normal(1, 2, 400, EMBED_DIM).to(device).requires_grad_()
    mask = None if lengths is None else mask_of(*lengths, width=400).to(device)
    assert blocks_used(layer, x, mask)
    results = []
    for model in (layer, whole):
        y = model(x, mask)
        y.backward(normal(2, *y.shape).to(device))
        results.append([y.detach(), x.grad, *(p.grad for p in model.parameters())])
        x.grad = None
    for ours, expected in zip(*results, strict=True):
        assert_close(ours, expected, atol=2e-6 * expected.abs().max().item(), rtol=0)
    if mask is not None:
        assert torch.all(results[0][0][~mask] == 0)
    bound = layer.discarded_mass_bound(x, mask)
    assert bound.shape == (2, HEADS, 400) and torch.all(bound <= layer.tolerance)
    nothing = torch.zeros(2, HEADS, 400, dtype=torch.float64, device=device)
    assert torch.equal(whole.discarded_mass_bound(x, mask), nothing)


def test_a_far_word_that_outshouts_the_near_ones_widens_the_window() -> None:
    """Its score of several hundred beats the prior at a distance of 60: the output must be its value."""
    layer, whole = attention(), attention(None)
    x = normal(3, 1, 600, EMBED_DIM)
    x[0, 100] *= 40
    x[0, 160] *= 40
    assert_close(layer(x), whole(x), atol=1e-5, rtol=1e-5)
    narrow = attention(window=20)
    assert (narrow(x) - whole(x)).abs().max() > 1e-2, "nothing was at stake"


def test_the_layers_certificate_covers_what_its_window_leaves_out() -> None:
    """Nearly equal scores, for which the bound is tight but for its second side at both ends of the sentence."""
    prior, x, distance = GaussianPrior(0.02), normal(15, 1, 300, EMBED_DIM, scale=1e-3), functional.token_distances(300)
    layer = attention(8, prior=prior)
    weights = attention(None, prior=prior).attention_weights(x)
    lost, bound = (weights * (distance.abs() > 8)).sum(3), layer.discarded_mass_bound(x)
    assert torch.all(lost <= bound)
    assert torch.all((bound <= 1.01 * lost)[:, :, 30:-30]) and torch.all(bound <= 2.1 * lost)


@pytest.mark.parametrize("prior", [ZipfPrior(), LinearPrior(-0.05), DistancePrior(), GaussianPrior(0.001)], ids=repr)
def test_a_certificate_is_of_the_real_words_alone(prior: nn.Module) -> None:
    """A short sentence in a long batch loses nothing, one with holes no more than is said."""
    mask = mask_of(10, 200, 200, width=200)
    mask[1, 5:180] = False
    x = normal(17, 3, 200, EMBED_DIM)
    layer, whole = (attention(window, prior=prior.double()) for window in (16, None))
    assert blocks_used(layer, x, mask)
    bound = layer.discarded_mass_bound(x, mask)
    lost = (whole.attention_weights(x, mask) * (functional.token_distances(200).abs() > 16)).sum(3)
    assert torch.all(lost <= bound + 1e-12)
    assert torch.all(bound[0] == 0)
    beyond = (mask[:, None] & (functional.token_distances(200).abs() > 16)).any(2) & mask
    assert torch.equal(bound > 0, beyond[:, None].expand_as(bound))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("padded", [True, False])
def test_a_certificate_counts_the_words_beyond_the_window(dtype: torch.dtype, padded: bool) -> None:
    """With a nearly flat prior, each word beyond may weigh as much as the nearest of them; each head has its own."""
    length, priors = 700, (LinearPrior(-1e-6), LinearPrior(-0.3))
    layer = attention(16, prior=HeadPriors([prior.double() for prior in priors]))
    x, mask = normal(19, 2, length, EMBED_DIM, scale=0.3), mask_of(18, 650, width=length) if padded else None
    real = torch.ones(2, length, dtype=torch.bool) if mask is None else mask
    distance = functional.token_distances(length).abs()
    q, k, _ = layer.in_proj(masking.zero_padding(x, mask)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    beta = layer.prior(length, length)
    scores = functional.dot_scores(q, k, layer.scale) + beta
    near = real[:, None, None, :] & (distance <= 16)
    sums = scores.masked_fill(~near, -math.inf).logsumexp(3)
    count = (real[:, None] & (distance > 16)).sum(2).double()
    side = layer.prior(1, length)[:, 0, 17:]
    tail = torch.minimum(side.logsumexp(1)[:, None] + math.log(2), side.amax(1)[:, None] + count.log()[:, None])
    expected = functional.discarded_mass_certificate(
        sums, functional.score_bound(q, k, layer.scale, key_mask=mask), tail
    )
    assert (tail[:, 0] < side.logsumexp(1)[:, None] + math.log(2)).any(), "no count is felt"
    ours = layer.to(dtype).discarded_mass_bound(x.to(dtype), mask)
    rounding = {"atol": 1e-12, "rtol": 1e-9} if dtype == torch.float64 else {"atol": 0.02, "rtol": 0.1}
    assert_close(ours.movedim(1, 2)[real].double(), expected.movedim(1, 2)[real], **rounding)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_layers_certificate_is_the_functions(dtype: torch.dtype) -> None:
    """With padding, holes and a scale, from the whole matrix of scores."""
    layer = attention(8, prior=Strict(), scale=3.0)
    assert layer(torch.ones(1, 5, EMBED_DIM, dtype=torch.float64)).shape == (1, 5, EMBED_DIM)
    x, mask = normal(16, 2, 200, EMBED_DIM, scale=0.3), mask_of(200, 150, width=200)
    mask[0, 40:60] = mask[0, 62:90] = False
    distance = functional.token_distances(200).abs()
    q, k, _ = layer.in_proj(masking.zero_padding(x, mask)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    near = mask[:, None, None, :] & (distance <= 8)
    scores = functional.dot_scores(q, k, 3.0) + Strict()(200, 200)
    sums = scores.masked_fill(~near, -math.inf).logsumexp(3)
    tail = Strict()(1, 200)[0, 9:].logsumexp(0) + math.log(2)
    expected = functional.discarded_mass_certificate(sums, functional.score_bound(q, k, 3.0, key_mask=mask), tail)
    ours = layer.to(dtype).discarded_mass_bound(x.masked_fill(~mask[..., None], math.nan).to(dtype), mask)
    assert ours.dtype == torch.promote_types(dtype, torch.float32) and torch.all(ours.movedim(1, 2)[~mask] == 0)
    rounding = {"atol": 1e-12, "rtol": 1e-9} if dtype == torch.float64 else {"atol": 0.05, "rtol": 0.2}
    assert_close(ours.movedim(1, 2)[mask].double(), expected.movedim(1, 2)[mask], **rounding)


@pytest.mark.parametrize("length", [5, 40, 191])
@pytest.mark.parametrize("padded", [False, True])
def test_a_window_that_is_a_mask_has_a_certificate_too(length: int, padded: bool) -> None:
    layer, whole = (attention(window, prior=GaussianPrior(0.02, None)) for window in (3, None))
    x, mask = normal(18, 2, length, EMBED_DIM), mask_of(length, length // 2, width=length) if padded else None
    assert not blocks_used(layer, x, mask)
    far = functional.token_distances(length).abs() > 3
    lost, bound = (whole.attention_weights(x, mask) * far).sum(3), layer.discarded_mass_bound(x, mask)
    assert_close(bound, lost, atol=1e-12, rtol=1e-9)
    assert lost.max() > 1e-3, "nothing was at stake"
    with torch.autocast("cpu", torch.bfloat16):
        lowered = layer.float().discarded_mass_bound(x.float(), mask)
    halves = layer.to(torch.bfloat16).discarded_mass_bound(x.bfloat16(), mask)
    assert halves.dtype == lowered.dtype == torch.float32
    assert_close(lowered.double(), lost, atol=0.05, rtol=0)
    assert_close(halves.double(), lost, atol=0.05, rtol=0)


def test_where_nothing_is_left_out_the_certificate_is_0_in_float32() -> None:
    bound = attention(None).bfloat16().discarded_mass_bound(normal(18, 2, 7, EMBED_DIM).bfloat16())
    assert bound.dtype == torch.float32 and torch.equal(bound, torch.zeros(2, HEADS, 7))


def test_a_prior_that_has_to_be_told_both_lengths_has_a_certificate() -> None:
    layer, whole, x = attention(3, prior=Strict()), attention(None, prior=Strict()), normal(18, 2, 12, EMBED_DIM)
    far = functional.token_distances(12).abs() > 3
    assert_close(layer.discarded_mass_bound(x), (whole.attention_weights(x) * far).sum(3))


def test_one_real_key_is_its_own_centre() -> None:
    q, k, mask = normal(0, 1, 2, 5, 4), normal(1, 1, 2, 6, 4), torch.arange(6)[None] == 2
    assert_close(functional.score_bound(q, k, 1.0, key_mask=mask), functional.dot_scores(q, k)[..., 2])
    assert torch.all(functional.score_range(q, k, key_mask=mask) < 1e-12)


@pytest.mark.usefixtures("compiling")
def test_compiled_code_has_the_certificate_of_its_window() -> None:
    x = normal(18, 1, 300, EMBED_DIM)
    lost = (attention(None).attention_weights(x) * (functional.token_distances(300).abs() > 6)).sum(3)
    assert_close(attention(6).discarded_mass_bound(x), lost)


def test_a_half_does_not_round_the_certificate_to_nothing() -> None:
    layer = attention(14, prior=GaussianPrior(0.1, None)).half()
    x = normal(19, 1, 400, EMBED_DIM, scale=0.1).half()
    bound = layer.discarded_mass_bound(x)
    assert bound.dtype == torch.float32 and torch.all((bound[:, :, 20:-20] > 0) & (bound[:, :, 20:-20] < 1e-7))


class Strict(nn.Module):
    """A prior of one's own, which has to be told both lengths, and says what it is."""

    of_distance = True

    def forward(self, query_length: int, key_length: int) -> Tensor:
        return -0.02 * (torch.arange(query_length)[:, None] - torch.arange(key_length)).abs().double()


def elements_of(layer: GaussianSelfAttention, x: Tensor, mask: Tensor | None = None) -> int:
    """Those of the largest tensor that the layer makes."""
    with Largest() as made:
        layer(x, mask)
    return made.numel


@pytest.mark.parametrize("size", [0.3, 1.0, 2.0])
def test_auto_looks_no_farther_than_the_scores_ask(size: float) -> None:
    layer, x = attention(prior=GaussianPrior(0.05, None, dtype=torch.float64)), normal(17, 1, 900, EMBED_DIM)
    q, k, _ = layer.in_proj(size * x).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    score_range = 1.001 * functional.score_range(q, k, layer.scale).max().item()
    window = functional.smallest_window(bias(0.05, 0, 900), score_range, layer.tolerance)
    assert window > 16
    blocks = math.ceil(900 / window)
    assert elements_of(layer, size * x) == HEADS * blocks * window * 3 * window


@pytest.mark.parametrize("shared", [0.0, 30.0])
@pytest.mark.parametrize("bias", [False, True])
def test_padding_at_the_end_widens_no_window(shared: float, bias: bool) -> None:
    """Nor does it where it lies far from the words, which have much in common."""
    layer = attention(prior=GaussianPrior(0.1, -20.0), bias=bias)
    x = normal(14, 1, 400, EMBED_DIM, scale=1e-3) + shared * normal(20, EMBED_DIM)
    mask = mask_of(399, width=400)
    assert elements_of(layer, x, mask) == elements_of(layer, x)
    layer.window = 20
    alone, padded = layer.discarded_mass_bound(x[:, :399]), layer.discarded_mass_bound(x, mask)
    assert_close(padded[:, :, :399], alone, atol=0, rtol=0.01)


def test_a_query_of_padding_widens_no_window() -> None:
    """Where words take back what the biases add, only padding asks for much."""
    layer = attention(prior=GaussianPrior(0.1, None), bias=True)
    layer.in_proj.weight.data[:EMBED_DIM] = torch.eye(EMBED_DIM)
    layer.in_proj.bias.data[:EMBED_DIM] = 50
    x, mask = normal(14, 1, 400, EMBED_DIM, scale=0.1) - 50, mask_of(399, width=400)
    assert blocks_used(layer, x) and elements_of(layer, x, mask) == elements_of(layer, x)


@given(seed=strategies.seeds, shift=st.floats(-9, 9))
def test_keys_and_queries_of_padding_have_no_share_in_the_bounds(seed: int, shift: float) -> None:
    q, k, mask = normal(seed, 2, 3, 5, 4), normal(seed + 1, 2, 3, 9, 4) + shift, normal(seed + 2, 2, 9) > -0.5
    mask[:, 0] = True
    far = torch.where(mask[:, None, :, None], k, 1e6)
    bound = functional.score_bound(q, far, 0.7, key_mask=mask)
    spread = functional.score_range(q, far, 0.7, key_mask=mask)
    words = mask[:, :5]
    asked = functional.score_range(
        torch.where(words[:, None, :, None], q, 1e6), far, 0.7, query_mask=words, key_mask=mask
    )
    for i in range(2):
        real = k[i : i + 1, :, mask[i]]
        assert_close(bound[i : i + 1], functional.score_bound(q[i : i + 1], real, 0.7))
        assert_close(spread[i : i + 1], functional.score_range(q[i : i + 1], real, 0.7))
        assert_close(asked[i : i + 1], functional.score_range(q[i : i + 1, :, words[i]], real, 0.7))
    nothing = torch.zeros_like(mask)
    assert torch.all(functional.score_range(q, far, 0.7, key_mask=nothing) == 0)
    assert torch.all(functional.score_bound(q, far, 0.7, key_mask=nothing) == 0)


def test_a_window_is_known_without_numbers() -> None:
    """On the meta device, where nothing that was made elsewhere would fit."""
    x = torch.empty(1, 300, EMBED_DIM, device="meta", dtype=torch.float64)
    for window in (8, "auto"):
        assert attention(window).to("meta")(x).shape == x.shape
    assert attention(8).to("meta")(x[:, :50]).shape == (1, 50, EMBED_DIM), "a mask of the whole matrix"
    assert attention(8).to("meta").discarded_mass_bound(x).shape == (1, HEADS, 300)


@pytest.mark.parametrize("first", [[], [0]], ids=["alone", "behind the first word"])
def test_a_word_alone_among_padding_looks_farther(first: list[int]) -> None:
    """Its own place is punished, and the near ones that would outweigh a far word are not there."""
    prior = GaussianPrior(0.1, -20.0, dtype=torch.float64)
    log_bias = functional.gaussian_bias(prior.w.detach(), prior.b.detach(), torch.arange(400))
    near, far = (functional.smallest_window(log_bias, 0.01, 2**-24, holes=holes) for holes in (False, True))
    assert near < far
    x, mask = normal(14, 1, 400, EMBED_DIM, scale=1e-3), torch.zeros(1, 400, dtype=torch.bool)
    mask[0, [*first, 5 * near - 1, 6 * near]] = True  # the last word of a block, and the first of the next but one
    layer, whole = attention(prior=prior), attention(None, prior=prior)
    assert blocks_used(layer, x, mask)
    assert_close(layer(x, mask), whole(x, mask), atol=1e-9, rtol=1e-5)
    assert torch.all(layer.discarded_mass_bound(x, mask) <= layer.tolerance)


@pytest.mark.parametrize("window", [0, 1, 7, 16, 20])
def test_an_integer_window_is_a_band_of_the_whole_matrix(window: int) -> None:
    layer = attention(window)
    x, mask = normal(4, 2, 300, EMBED_DIM), mask_of(300, 211, width=300)
    assert blocks_used(layer, x, mask)
    v = layer.in_proj(x)[..., -EMBED_DIM:].unflatten(2, (HEADS, -1))
    expected = torch.einsum("bhnm,bmhd->bnhd", layer.attention_weights(x, mask), v).flatten(2)
    assert_close(layer(x, mask), layer.out_proj(expected).masked_fill(~mask[..., None], 0), atol=1e-10, rtol=1e-10)


def in_passages_of(words: int, blocks: int) -> AbstractContextManager[object]:
    """A context in which passages have that many words and blocks at least."""
    return mock.patch.multiple(_passages, SHORTEST_PASSAGE=words, FEWEST_BLOCKS=blocks)


@given(length=st.integers(0, 300), size=st.integers(1, 20), words=st.integers(1, 60), blocks=st.integers(2, 5))
def test_a_text_is_its_passages_each_between_its_neighbours(length: int, size: int, words: int, blocks: int) -> None:
    x = normal(length, 2, length, 3)
    with in_passages_of(words, blocks):
        passages = cut_into_passages(x, size)
    assert torch.equal(join_passages(passages, size), x)
    shortest = max(words, blocks * size)
    assert len(passages) <= max(1, length // shortest)
    assert len(passages) > 1 or length < 2 * shortest
    if len(passages) == 1:
        assert torch.equal(passages[0], x)
        return
    inside = passages[0].shape[1] - size
    assert inside % size == 0 and shortest <= inside + size and inside * (len(passages) - 1) < length
    for k, passage in enumerate(passages):
        assert torch.equal(passage, x[:, max(k * inside - size, 0) : (k + 1) * inside + size])


@pytest.mark.parametrize(("window", "lengths"), [("auto", (700, 411)), (5, (700, 64)), (33, None), ("auto", None)])
def test_passages_change_no_output_and_no_gradient(window: int | str, lengths: tuple[int, ...] | None) -> None:
    layer = attention(window, bias=True)
    x = normal(5, 2, 700, EMBED_DIM).requires_grad_()
    mask = None if lengths is None else mask_of(*lengths, width=700)
    if mask is not None:
        mask[0, 130:140] = mask[0, 143:180] = False
    results, largest = [], []
    for words in (10**6, 70):
        with in_passages_of(words, blocks=2), Largest() as made:
            y = layer(x, mask)
        largest.append(made.numel)
        inputs = [x, *layer.parameters()]
        results.append([y, *torch.autograd.grad((y * normal(2, *y.shape)).sum(), inputs)])
    assert largest[1] < largest[0] / 2
    for ours, expected in zip(*results, strict=True):
        assert_close(ours, expected, atol=1e-11 * expected.abs().max().item(), rtol=1e-11)


def test_a_long_text_needs_no_larger_tensor_than_its_projections() -> None:
    """But a short one's passage is the whole of it, and so is any on a device that keeps what is freed."""
    for length in (40_000, 80_000):
        assert elements_of(attention(16), normal(0, 1, length, EMBED_DIM)) == 3 * EMBED_DIM * length
    x = torch.empty(1, 20_000, EMBED_DIM, device="meta")
    assert [len(cut_into_passages(text, 16)) for text in (x, x.new_zeros(1, 8191, 2, device="cpu"))] == [1, 1]
    assert len(cut_into_passages(x.new_zeros(1, 8192, 2, device="cpu"), 16)) == 2


@pytest.mark.parametrize("window", ["auto", 12])
@pytest.mark.parametrize("prior", [None, LinearPrior(-0.4)])
def test_padding_on_either_side_changes_nothing(window: int | str, prior: nn.Module | None) -> None:
    layer, x = attention(window, prior=prior), normal(5, 1, 300, EMBED_DIM)
    expected = layer(x)
    for left, right in ((3, 0), (0, 40), (29, 111)):
        padded = nn.functional.pad(x, (0, 0, left, right), value=math.nan)
        mask = nn.functional.pad(torch.ones(1, 300, dtype=torch.bool), (left, right))
        assert_close(layer(padded, mask)[:, left : left + 300], expected, atol=1e-6, rtol=1e-6)


def test_time_and_memory_are_linear_in_the_length() -> None:
    """No tensor of a step, forwards or backwards, grows by more than the length does."""
    layer, largest = attention(), []
    for length in (1024, 4096):
        x = normal(6, 1, length, EMBED_DIM).requires_grad_()
        with Largest() as made:
            layer(x).sum().backward()
        largest.append(made.numel)
    assert largest[1] <= 4.4 * largest[0]


def test_where_blocks_would_not_pay_the_whole_matrix_is_taken() -> None:
    x = normal(7, 1, 400, EMBED_DIM)
    assert not blocks_used(attention(prior=GaussianPrior(1e-4)), x), "the window is the sentence"
    assert not blocks_used(attention(prior=LinearPrior(-0.1)), x), "the theorem's search is for the Gaussian"
    assert not blocks_used(attention(window=300), x)
    assert not blocks_used(attention(), x[:, :60]), "short"
    assert not blocks_used(attention(None), x)


class EvenDistances(nn.Module):
    """A prior that leaves every second word out, and no word itself."""

    of_distance = True

    def forward(self, query_length: int, key_length: int) -> Tensor:
        distances = functional.token_distances(query_length, key_length)
        return torch.zeros(query_length, key_length).double().masked_fill(distances % 2 == 1, -math.inf)


class EvenDistancesUnpromised(EvenDistances):
    """The same, which has the whole matrix."""

    of_distance = False


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_bias_for_all_distances_is_one_for_those_of_a_block(shape: tuple[int, ...]) -> None:
    class Constant(nn.Module):
        of_distance = True

        def forward(self, query_length: int, key_length: int) -> Tensor:
            return torch.full(shape, 0.3, dtype=torch.float64)

    x = normal(7, 1, 400, EMBED_DIM)
    layer, plain = attention(6, prior=Constant()), attention(6, prior=LinearPrior(-1e-300, dtype=torch.float64))
    assert blocks_used(layer, x)
    assert_close(layer(x), plain(x), atol=1e-12, rtol=1e-12)
    assert_close(layer.discarded_mass_bound(x), plain.discarded_mass_bound(x), atol=1e-12, rtol=1e-12)


class Lowest(Strict):
    """As masks are often made: the lowest number that there is, in place of minus infinity."""

    def forward(self, query_length: int, key_length: int) -> Tensor:
        distances = functional.token_distances(query_length, key_length)
        return torch.zeros(query_length, key_length).masked_fill(distances == 0, torch.finfo(torch.float32).min)


def test_a_word_with_the_lowest_bias_for_itself_is_no_padding() -> None:
    layer, x = attention(6, prior=Lowest()).float(), normal(7, 1, 400, EMBED_DIM).float()
    mask = torch.arange(400)[None] == 0
    assert_close(layer(x, mask)[:, :20], layer(x[:, :20], mask[:, :20]))


def test_what_a_window_costs_at_most_is_a_number_for_every_range() -> None:
    log_bias = bias(0.1, 0, 30)
    ranges = torch.tensor([math.inf, 3.0], dtype=torch.float64, requires_grad=True)
    with warnings.catch_warnings(action="error"):
        assert functional.largest_discarded_mass(log_bias, 29, math.inf) == 0
        assert functional.largest_discarded_mass(log_bias, 5, ranges) == 1


def test_with_holes_a_word_that_may_not_see_itself_needs_every_key() -> None:
    """The one key that is real may lie at any distance; alone in its window, it is all that a word has."""
    log_bias = torch.tensor([-math.inf, 0.0, -1.0, -2.0, -3.0, -4.0])
    assert functional.smallest_window(log_bias, 1.0, 1e-6, holes=True) == 5
    bounds = [functional.largest_discarded_mass(log_bias, window, 1.0, holes=True) for window in range(6)]
    assert bounds == [1, 1, 1, 1, 1, 0]
    nothing = torch.full((4,), -math.inf)
    for holes in (False, True):
        assert functional.smallest_window(nothing, 1.0, 1e-6, holes=holes) == 0
        assert functional.largest_discarded_mass(nothing, 1, 1.0, holes=holes) == 0


def test_a_prior_that_leaves_others_out_is_taken_in_blocks() -> None:
    x = normal(7, 1, 400, EMBED_DIM)
    layer, whole = attention(6, prior=EvenDistances()), attention(6, prior=EvenDistancesUnpromised())
    assert blocks_used(layer, x) and not blocks_used(whole, x)
    assert_close(layer(x), whole(x), atol=1e-12, rtol=1e-12)
    assert (layer(x) - attention(6, prior=LinearPrior(-1e-300, dtype=torch.float64))(x)).abs().max() > 1e-3


class Biased(nn.Module):
    """Priors of which all but one, ``one side``, are no functions of the distance alone."""

    of_distance = False

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, query_length: int, key_length: int) -> Tensor:
        distance = functional.token_distances(query_length, key_length).double()
        far = torch.arange(key_length)
        return {
            "share of the length": -20 * distance.abs() / max(query_length, key_length),
            "the first word": -0.1 * distance.abs() + (far == 0),
            "one side": -0.1 * distance.abs() - 1.0 * (distance > 0),
            "one word of a block": -0.1 * distance.abs() + (far == 55),
            "one word beyond three blocks": -0.1 * distance.abs() + 3 * (far == 200),
            "paragraphs": -0.1 * distance.abs() - 3 * (torch.arange(query_length)[:, None] // 100 != far // 100),
        }[self.kind]


class HalfGaussian(GaussianPrior):
    """Derived from a prior of the distance, and none."""

    def forward(self, query_length: int, key_length: int | None = None) -> Tensor:
        return super().forward(query_length, key_length) * (torch.arange(query_length) % 2)[:, None]


class HalfHeads(HeadPriors):
    """Several priors of the distance, and what is made of them is none."""

    def forward(self, query_length: int, key_length: int | None = None) -> Tensor:
        return super().forward(query_length, key_length) * (torch.arange(query_length) % 2)[:, None]


def test_signed_distances_have_their_sides_in_blocks() -> None:
    prior = DistancePrior(3, far_buckets=2, dtype=torch.float64)
    prior.bias.data = normal(5, 9)
    layer, x, mask = attention(7, prior=prior), normal(4, 2, 300, EMBED_DIM), mask_of(300, 211, width=300)
    assert blocks_used(layer, x, mask)
    values = layer.in_proj(x)[..., -EMBED_DIM:].unflatten(2, (HEADS, -1))
    y = torch.einsum("bhnm,bmhd->bnhd", layer.attention_weights(x, mask), values).flatten(2)
    assert_close(layer(x, mask), layer.out_proj(y).masked_fill(~mask[..., None], 0), atol=1e-10, rtol=1e-10)


def test_a_hole_in_any_sentence_of_a_batch_is_seen() -> None:
    prior, distances = GaussianPrior(0.1, -20.0, dtype=torch.float64), torch.arange(400)
    near = functional.smallest_window(
        functional.gaussian_bias(prior.w.detach(), prior.b.detach(), distances), 0.01, 2**-24
    )
    x, mask = normal(14, 2, 400, EMBED_DIM, scale=1e-3), torch.ones(2, 400, dtype=torch.bool)
    mask[1] = False
    mask[1, [5 * near - 1, 6 * near]] = True
    assert_close(attention(prior=prior)(x, mask), attention(None, prior=prior)(x, mask), atol=1e-9, rtol=1e-5)


@pytest.mark.parametrize("window", [20, "auto"])
@pytest.mark.parametrize("way", ["a hook", "a hook before", "an instance's forward"])
@pytest.mark.parametrize("several", [False, True])
def test_what_hangs_on_a_prior_is_seen(window: int | str, way: str, several: bool) -> None:
    """Something that changes words in the middle alone, where neither the first blocks nor the ends would tell."""

    def changed(bias: Tensor) -> Tensor:
        i, j = torch.arange(bias.shape[-2])[:, None], torch.arange(bias.shape[-1])
        return bias + 9.0 * ((i - j).abs() == 9) * (i > 180)

    prior = GaussianPrior(0.1, dtype=torch.float64)
    whole = HeadPriors([GaussianPrior(0.1, dtype=torch.float64), prior]) if several else prior
    x = normal(9, 1, 400, EMBED_DIM, scale=0.1)
    assert blocks_used(attention(window, prior=whole), x)
    if way == "a hook":
        prior.register_forward_hook(lambda _, __, bias: changed(bias))
    elif way == "a hook before":
        prior.register_forward_pre_hook(lambda _, lengths: lengths)
    else:
        forward = prior.forward
        prior.forward = lambda *lengths: changed(forward(*lengths))  # type: ignore[method-assign]
    layer = attention(window, prior=whole)
    weights = layer.attention_weights(x)
    values = layer.in_proj(x).unflatten(2, (3, HEADS, -1))[:, :, 2]
    expected = layer.out_proj(torch.einsum("bhij,bjhd->bihd", weights, values).flatten(2))
    assert_close(layer(x), expected, atol=1e-9, rtol=1e-9)
    assert not blocks_used(layer, x)


KINDS = ["share of the length", "the first word", "one word of a block", "one word beyond three blocks", "paragraphs"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_holds_for_a_prior_that_is_no_function_of_the_distance(kind: str) -> None:
    """Blocks ask the prior for three blocks alone: such a prior has to be asked for the whole sentence."""
    x = normal(9, 1, 400, EMBED_DIM)
    halves = HalfGaussian(), HalfHeads([LinearPrior(), GaussianPrior()])
    priors = Biased(kind), HeadPriors([LinearPrior(), Biased(kind)]), *halves
    for prior in priors:
        layer = attention(20, prior=prior)
        weights = attention(None, prior=prior).attention_weights(x) * (functional.token_distances(400).abs() <= 20)
        weights = weights / weights.sum(-1, keepdim=True)
        assert_close(layer.attention_weights(x), weights, atol=1e-12, rtol=1e-9)
        values = layer.in_proj(x).unflatten(2, (3, HEADS, -1))[:, :, 2]
        expected = layer.out_proj(torch.einsum("bhij,bjhd->bihd", weights, values).flatten(2))
        assert_close(layer(x), expected, atol=1e-9, rtol=1e-9)
        assert not blocks_used(layer, x)


@pytest.mark.parametrize("prior", [Strict(), ZipfPrior(), LinearPrior(), DistancePrior()])
def test_any_prior_that_says_it_is_of_the_distance_is_read_in_blocks_of_a_window(prior: nn.Module) -> None:
    x = normal(9, 1, 400, EMBED_DIM)
    assert blocks_used(attention(20, prior=prior), x)
    assert blocks_used(attention(20, prior=HeadPriors([GaussianPrior(), prior])), x)


def test_a_prior_of_ones_own_that_says_nothing_is_not_read_in_blocks() -> None:
    for prior in (Biased("one side"), HeadPriors([GaussianPrior(), Biased("one side")])):
        assert not blocks_used(attention(20, prior=prior), normal(9, 1, 400, EMBED_DIM))


@given(
    scalars=st.lists(st.tuples(WIDTHS, CENTRES, RANGES), min_size=1, max_size=4),
    length=st.integers(1, 40),
    tolerance=TOLERANCES,
    holes=st.booleans(),
)
def test_the_window_of_several_heads_is_the_largest_of_theirs(
    scalars: list[tuple[float, float, float]], length: int, tolerance: float, holes: bool
) -> None:
    biases, ranges = [bias(w, c, length) for w, c, _ in scalars], [score_range for *_, score_range in scalars]
    alone = [
        functional.smallest_window(beta, score_range, tolerance, holes=holes)
        for beta, score_range in zip(biases, ranges, strict=True)
    ]
    each = torch.tensor(ranges, dtype=torch.float64)
    assert functional.smallest_window(torch.stack(biases), each, tolerance, holes=holes) == max(alone)
    together = functional.smallest_window(torch.stack(biases), max(ranges), tolerance, holes=holes)
    assert together == max(functional.smallest_window(b, max(ranges), tolerance, holes=holes) for b in biases)


def test_a_head_whose_scores_have_no_bound_sees_everything() -> None:
    biases = torch.stack([bias(1.0, 0.0, 50)] * 2)
    assert functional.smallest_window(biases, torch.tensor([1.0, math.inf]), 1e-3) == 49
    assert functional.smallest_window(biases, torch.tensor([1.0, math.nan]), 1e-3) == 49


def heads(*widths: float) -> HeadPriors:
    return HeadPriors(GaussianPrior(w, -0.1, dtype=torch.float64) for w in widths)


@pytest.mark.parametrize("lengths", [(600, 600), (600, 37), None])
@pytest.mark.parametrize("window", ["auto", 20])
def test_heads_of_their_own_widths_equal_the_whole_matrix(window: int | str, lengths: tuple[int, ...] | None) -> None:
    prior = heads(*(0.1 * 2.0**k for k in range(HEADS)))
    layer, x = attention(window, prior=prior), normal(1, 2, 600, EMBED_DIM, scale=0.5).requires_grad_()
    mask = None if lengths is None else mask_of(*lengths, width=600)
    assert blocks_used(layer, x, mask)
    near = None if window == "auto" else (functional.token_distances(600).abs() <= window)[None, None]
    results = []
    for model in (layer, attention(None, prior=prior)):
        if model is layer:
            y = model(x, mask)
        else:
            q, k, v = model.in_proj(x).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            scores = functional.dot_scores(q, k, model.scale) + prior(600)
            seen = torch.ones(2, 1, 1, 600, dtype=torch.bool) if mask is None else mask[:, None, None]
            weights = masking.masked_softmax(scores, seen if near is None else seen & near)
            y = masking.zero_padding(
                model.out_proj(functional.weighted_sum(weights, v).transpose(1, 2).flatten(2)), mask
            )
        y.backward(normal(2, *y.shape))
        results.append([y.detach(), x.grad, *(p.grad.clone() for p in model.parameters())])
        x.grad = None
        prior.zero_grad()
    for ours, expected in zip(*results, strict=True):
        assert_close(ours, expected, atol=2e-6 * expected.abs().max().item(), rtol=0)


@pytest.mark.parametrize("widest", range(HEADS))
def test_the_head_that_looks_farthest_decides_the_window(widest: int) -> None:
    """By its prior, or by how far apart its scores lie; one alone, not the widest prior with the largest range."""
    widths = [0.4] * HEADS
    widths[widest] = 0.05
    x, alone = normal(17, 1, 900, EMBED_DIM), attention(prior=GaussianPrior(0.05, dtype=torch.float64))
    layer = attention(prior=heads(*widths))
    size = EMBED_DIM // HEADS
    for model in (layer, alone):
        # The keys of the other heads are nearly alike: the head with the widest prior decides.
        model.in_proj.weight.data[EMBED_DIM : 2 * EMBED_DIM] *= 1e-3
        model.in_proj.weight.data[EMBED_DIM + widest * size : EMBED_DIM + (widest + 1) * size] *= 1e3
    assert elements_of(layer, x) == elements_of(alone, x) > elements_of(attention(prior=heads(*[0.4] * HEADS)), x)
    # The widest range beside a narrow prior asks for less than beside the widest.
    layer.in_proj.weight.data[EMBED_DIM + widest * size : EMBED_DIM + (widest + 1) * size] *= 1e-3
    other = (widest + 1) % HEADS
    layer.in_proj.weight.data[EMBED_DIM + other * size : EMBED_DIM + (other + 1) * size] *= 1e3
    assert elements_of(layer, x) < elements_of(alone, x)
    assert torch.all(layer.discarded_mass_bound(x) <= layer.tolerance)


def test_the_certificate_of_heads_is_each_ones_own() -> None:
    prior, x = heads(*(0.02 * 2.0**k for k in range(HEADS))), normal(15, 1, 300, EMBED_DIM, scale=1e-3)
    layer, distance = attention(8, prior=prior), functional.token_distances(300)
    lost = (attention(None, prior=prior).attention_weights(x) * (distance.abs() > 8)).sum(3)
    bound = layer.discarded_mass_bound(x)
    assert torch.all(lost <= bound) and torch.all((bound <= 1.01 * lost)[:, :, 30:-30])
    assert torch.all(bound[:, 1:] < 0.5 * bound[:, :-1])


def test_two_gaussians_among_three_priors_choose_no_window() -> None:
    priors = HeadPriors([GaussianPrior(), LinearPrior(-0.1), GaussianPrior()])
    layer, x = GaussianSelfAttention(6, 3, prior=priors), normal(7, 1, 400, 6).float()
    assert not blocks_used(layer, x)


@pytest.mark.parametrize("place", range(HEADS))
def test_heads_with_any_other_prior_take_the_whole_matrix(place: int) -> None:
    x = normal(7, 1, 400, EMBED_DIM)
    for other in (LinearPrior(-0.1), Wide(), WideBehind()):
        priors = [GaussianPrior() for _ in range(HEADS)]
        assert blocks_used(attention(prior=HeadPriors(priors)), x)
        priors[place] = other
        assert not blocks_used(attention(prior=HeadPriors(priors)), x)
    assert not blocks_used(attention(prior=HeadPriors([GaussianPrior(), *[LinearPrior()] * (HEADS - 1)])), x)


def test_vmap_and_the_meta_device_have_no_numbers_to_choose_a_window_by() -> None:
    layer, x = attention(), normal(8, 3, 1, 300, EMBED_DIM)
    assert_close(torch.func.vmap(layer)(x), torch.stack([layer(each) for each in x]), atol=1e-6, rtol=1e-6)
    meta = GaussianSelfAttention(EMBED_DIM, HEADS, device="meta")
    assert meta(torch.empty(2, 300, EMBED_DIM, device="meta")).shape == (2, 300, EMBED_DIM)


def test_code_that_is_traced_has_no_numbers_to_choose_a_window_by() -> None:
    """A window of the numbers at hand would stay in the trace, whatever it is given later."""
    layer, whole, x = attention(), attention(None), normal(8, 1, 300, EMBED_DIM, scale=0.1)
    assert blocks_used(layer, x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated, and reports every shape that is read
        traces = [make_fx(layer)(x), torch.jit.trace(layer, (x,))]
    y, move = torch.func.linearize(layer, x)
    assert_close(y, whole(x))
    assert_close(move(x), torch.func.jvp(whole, (x,), (x,))[1])
    for trace in traces:
        assert_close(trace(40 * x), whole(40 * x))


class Wide(GaussianPrior):
    """A prior that is no longer what its w and b say."""

    def forward(self, query_length: int, key_length: int | None = None) -> Tensor:
        return 0.01 * super().forward(query_length, key_length)


class WideAhead(GaussianPrior):
    """A prior that is what its w and b say of the words before a word, and not of those behind it."""

    def forward(self, query_length: int, key_length: int | None = None) -> Tensor:
        ahead = functional.token_distances(query_length, key_length) < 0
        return torch.where(ahead, 0.01, 1.0) * super().forward(query_length, key_length)


class WideBehind(GaussianPrior):
    """The reverse."""

    def forward(self, query_length: int, key_length: int | None = None) -> Tensor:
        behind = functional.token_distances(query_length, key_length) > 0
        return torch.where(behind, 0.01, 1.0) * super().forward(query_length, key_length)


@pytest.mark.parametrize("prior", [WideAhead, WideBehind])
def test_a_prior_that_looks_further_on_one_side_has_its_own_window(prior: type[GaussianPrior]) -> None:
    shared, x = prior(), normal(8, 1, 400, EMBED_DIM)
    assert_close(attention(prior=shared)(x), attention(None, prior=shared)(x), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("hooked", [False, True])
def test_a_prior_that_was_made_wider_has_its_own_window(hooked: bool) -> None:
    prior = GaussianPrior() if hooked else Wide()
    if hooked:
        prior.register_forward_hook(lambda module, lengths, log_bias: 0.01 * log_bias)
    layer, whole, x = attention(prior=prior), attention(None, prior=prior), normal(8, 1, 400, EMBED_DIM)
    assert_close(layer(x), whole(x), atol=1e-6, rtol=1e-6)
    assert torch.all(layer.discarded_mass_bound(x) <= layer.tolerance)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("window", ["auto", 3])
@pytest.mark.parametrize("length", [20, 400])
def test_the_default_device_is_no_concern_of_the_window(length: int, window: int | str, masked: bool) -> None:
    layer, x = attention(window), normal(8, 2, length, EMBED_DIM)
    mask = mask_of(length, length - 10, width=length) if masked else None
    expected = layer(x, mask), layer.discarded_mass_bound(x, mask)
    with torch.device("meta"):
        assert_close((layer(x, mask), layer.discarded_mass_bound(x, mask)), expected, atol=0, rtol=0)
        assert functional.smallest_window(bias_on_cpu(), 10.0, 1e-6) == 15
        assert functional.largest_discarded_mass(bias_on_cpu(), 15, 10.0) == pytest.approx(6.2e-8, rel=0.01)


def bias_on_cpu() -> Tensor:
    return -0.1 * torch.arange(512, dtype=torch.float64, device="cpu").square()


def test_export_takes_the_whole_matrix() -> None:
    layer, x = attention(), normal(9, 1, 300, EMBED_DIM)
    length = torch.export.Dim("length", min=2, max=4096)
    program = torch.export.export(layer, (x,), dynamic_shapes=({1: length},))
    other = normal(10, 1, 470, EMBED_DIM)
    assert_close(program.module()(other), layer(other), atol=1e-6, rtol=1e-6)


@pytest.mark.usefixtures("compiling")
def test_compiled_code_takes_the_whole_matrix() -> None:
    assert not blocks_used(attention(8), normal(7, 1, 400, EMBED_DIM))


def test_blocks_pay_from_192_words_on_and_from_eight_of_them() -> None:
    x = normal(7, 1, 192, EMBED_DIM)
    assert blocks_used(attention(8), x) and not blocks_used(attention(8), x[:, :191])
    assert blocks_used(attention(24), x) and not blocks_used(attention(25), x)
    with Largest() as made:
        attention(8)(x)
    assert made.numel == HEADS * 12 * 16 * 3 * 16, "twelve blocks of the least size, for three blocks of keys each"


def test_blocks_pay_from_as_many_words_as_a_head_has_features() -> None:
    def window(length: int) -> int | None:
        words = normal(8, 1, 1, length, 200)
        return narrow_window(8, GaussianPrior(), words, words, None, scale=1.0, tolerance=1e-7)

    assert window(200) == 8 and window(199) is None


def test_on_some_devices_blocks_pay_from_so_many_scores_on(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU is one; here the CPU is made one, too."""
    fewest = FEWEST_SCORES_IN_BLOCKS.get(device, 3 * HEADS * 400**2)
    monkeypatch.setitem(FEWEST_SCORES_IN_BLOCKS, device, fewest)
    fitting = -(-fewest // (HEADS * 400**2)) - 1
    x = normal(7, fitting + 1, 400, EMBED_DIM).to(device)
    assert not blocks_used(attention(8).to(device), x[:fitting]) and blocks_used(attention(8).to(device), x)


def test_no_sentences_at_all_have_no_window() -> None:
    assert attention()(normal(7, 0, 400, EMBED_DIM)).shape == (0, 400, EMBED_DIM)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_lower_precision_stays_as_near_as_the_whole_matrix(dtype: torch.dtype) -> None:
    x = normal(11, 1, 400, EMBED_DIM)
    exact = attention(None)(x)
    errors = [(attention(w).to(dtype)(x.to(dtype)).double() - exact).abs().max() for w in ("auto", None)]
    assert errors[0] <= 1.5 * errors[1] + 1e-6


def test_dropout_drops_weights_in_blocks_too() -> None:
    x = normal(12, 1, 400, EMBED_DIM)
    layer = attention(dropout=0.5)
    torch.manual_seed(0)
    assert (layer(x) - layer(x)).abs().max() > 1e-3
    assert torch.equal(layer.eval()(x), attention()(x))
    torch.manual_seed(0)
    mean = torch.stack([layer.train()(x) for _ in range(400)]).mean(0)
    assert_close(mean, attention()(x), atol=0.5, rtol=0)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -1e-3, math.nan])
def test_a_tolerance_lies_between_0_and_1(tolerance: float) -> None:
    with pytest.raises(ValueError, match=r"tolerance must lie between 0 and 1, got"):
        attention(tolerance=tolerance)


@given(tolerance=st.sampled_from([1e-2, 1e-4, 1e-8]))
def test_a_larger_tolerance_takes_a_smaller_window(tolerance: float) -> None:
    x = normal(13, 1, 400, EMBED_DIM)
    whole = attention(None)(x)
    sizes = []
    for allowed in (tolerance, tolerance / 1e4):
        layer = attention(tolerance=allowed)
        with Largest() as made:
            y = layer(x)
        sizes.append(made.numel)
        assert (y - whole).abs().max() <= allowed * 100
    assert sizes[0] < sizes[1]


class Near(nn.Module):
    """A prior of one's own that gives numbers of any type."""

    of_distance = True

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, query_length: int, key_length: int) -> Tensor:
        return (5 - functional.token_distances(query_length, key_length).abs()).clamp(min=0).to(self.dtype)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64, torch.float16])
def test_numbers_of_any_type_are_a_bias_in_blocks_too(dtype: torch.dtype) -> None:
    x = normal(7, 1, 400, EMBED_DIM)
    layer = attention(6, prior=Near(dtype))
    whole = attention(6, prior=Near(dtype))
    whole.prior.of_distance = False
    assert blocks_used(layer, x) and not blocks_used(whole, x)
    assert_close(layer(x), whole(x), atol=1e-12, rtol=1e-12)
    assert_close(layer.attention_weights(x), whole.attention_weights(x))
    assert torch.all(layer.discarded_mass_bound(x) >= whole.discarded_mass_bound(x) - 1e-12)


def test_a_prior_that_is_called_otherwise_has_the_whole_matrix() -> None:
    class Louder(GaussianPrior):
        def __call__(self, *lengths: int) -> Tensor:
            return 3 * super().__call__(*lengths)

    x = normal(7, 1, 400, EMBED_DIM)
    layer, whole = attention("auto", prior=Louder().double()), attention(None, prior=Louder().double())
    assert not blocks_used(layer, x)
    assert torch.equal(layer(x), whole(x))


def test_a_window_wider_than_any_integer_of_torchs_is_none() -> None:
    x = normal(7, 1, 20, EMBED_DIM)
    for window in (2**63, 2**70):
        assert_close(attention(window)(x), attention(None)(x))
