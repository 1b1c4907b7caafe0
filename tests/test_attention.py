"""Gaussian self-attention: Guo et al. 2019, Eqs 1 to 4 and 18 to 20, and the laws of PAPERS that follow from them."""

import copy
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

import laws
import oracles
import strategies
from nlilayers import (
    DistancePrior,
    GatedConvEncoder,
    GaussianPrior,
    GaussianSelfAttention,
    HeadPriors,
    LinearPrior,
    ZipfPrior,
    functional,
)
from nlilayers.functional._attention import weights_with_themselves
from strategies import Sentences, normal

EMBED_DIM, HEADS = 6, 3
SENTENCES = strategies.sentences(features=EMBED_DIM)
WINDOWS = st.none() | st.integers(0, 8)
POSITIVE = st.floats(0.01, 5)


class NoPrior(nn.Module):
    def forward(self, query_length: int, key_length: int | None = None) -> Tensor:
        return torch.zeros(query_length, key_length or query_length, dtype=torch.float64)


def asymmetric() -> DistancePrior:
    prior = DistancePrior(2, dtype=torch.float64)
    prior.bias.data = normal(5, 6)
    return prior


EVEN_PRIORS = {
    "Eq 3": (lambda: GaussianPrior(0.3, None), lambda d: oracles.gaussian_bias(0.3, 0.0, d)),
    "Eq 4": (lambda: GaussianPrior(0.3, -0.7), lambda d: oracles.gaussian_bias(0.3, -0.7, d)),
    "Eq 18": (ZipfPrior, oracles.zipf_bias),
    "Eq 20": (lambda: LinearPrior(-0.4), lambda d: oracles.linear_bias(-0.4, d)),
}
PRIORS = EVEN_PRIORS | {
    "Eq 1": (NoPrior, lambda d: 0.0),
    "Eq 19": (asymmetric, lambda d: oracles.bucket_bias(asymmetric().bias.tolist(), d, 2)),
}


class CountingPasses(TorchDispatchMode):
    """The operators that make a tensor of so many numbers, views of one apart."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.names = size, []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        made = operator(*args, **(kwargs or {}))
        given = {x.untyped_storage().data_ptr() for x in args if isinstance(x, Tensor)}
        if isinstance(made, Tensor) and made.numel() == self.size and made.untyped_storage().data_ptr() not in given:
            self.names.append(operator.overloadpacket.__name__)
        return made


def parametrised(priors):
    return pytest.mark.parametrize(("build", "beta"), priors.values(), ids=priors.keys())


def exact(prior: nn.Module) -> nn.Module:
    """The prior in float64, starting where its constructor says to float64 precision."""
    prior = prior.double()
    if hasattr(prior, "initial_w"):
        prior.reset_parameters()
    return prior


def attention(device: str = "cpu", seed: int = 0, **options) -> GaussianSelfAttention:
    """Random projections and biases, the prior as it was given."""
    layer = GaussianSelfAttention(EMBED_DIM, HEADS, **options).double()
    for k, parameter in enumerate([*layer.in_proj.parameters(), *layer.out_proj.parameters()]):
        parameter.data = normal(seed + 100 + k, *parameter.shape, scale=0.5)
    exact(layer.prior)
    return layer.to(device)


def weights(scores: Tensor, log_bias: Tensor | None = None, window: int | None = None) -> Tensor:
    """One head of one sentence: (n, n) → (n, n)."""
    return functional.self_attention_weights(scores[None, None], log_bias, window=window)[0, 0]


def gaussian(w: float, b: float, n: int) -> Tensor:
    w_b = (torch.tensor(v, dtype=torch.float64) for v in (w, b))
    return functional.gaussian_bias(*w_b, functional.token_distances(n, n))


def squares(n: int) -> Tensor:
    return functional.token_distances(n, n).square().double()


@parametrised(PRIORS)
@given(sentence=SENTENCES, window=WINDOWS)
def test_one_literal_head_equals_the_loop(device: str, build, beta, sentence: Sentences, window: int | None) -> None:
    """Eqs 1 to 4 and 18 to 20 as printed: words are their own queries, keys and values, and the scale is 1."""
    there, prior = sentence.to(device), exact(build())
    x, n = there.x[:, None], there.x.shape[1]
    a = functional.self_attention_weights(functional.dot_scores(x, x), prior(n, n).to(device), there.mask, window)
    ours = functional.weighted_sum(a, x)[:, 0].cpu()
    for b, mask in enumerate(sentence.mask):
        words, positions = sentence.x[b][mask].tolist(), mask.nonzero()[:, 0].tolist()
        expected = oracles.self_attention(words, words, words, positions, beta, 1.0, window)
        assert_close(
            ours[b][mask], torch.tensor(expected, dtype=torch.float64).view(-1, EMBED_DIM), atol=1e-10, rtol=1e-9
        )
        assert torch.all(ours[b][~mask] == 0)


@parametrised(PRIORS)
@given(sentence=SENTENCES, window=WINDOWS, seed=strategies.seeds)
def test_multi_head_attention_equals_the_loop(build, beta, sentence: Sentences, window: int | None, seed: int) -> None:
    layer = attention(seed=seed, prior=build(), window=window)
    blocks = [w.split(EMBED_DIM // HEADS) for w in layer.in_proj.weight.chunk(3)]
    heads = [tuple(block[h].tolist() for block in blocks) for h in range(HEADS)]
    ours = layer(sentence.x, sentence.mask)
    for b, mask in enumerate(sentence.mask):
        words, positions = sentence.x[b][mask].tolist(), mask.nonzero()[:, 0].tolist()
        expected = oracles.multi_head_self_attention(
            words, positions, heads, layer.out_proj.weight.tolist(), beta, window
        )
        assert_close(
            ours[b][mask], torch.tensor(expected, dtype=torch.float64).view(-1, EMBED_DIM), atol=1e-10, rtol=1e-9
        )


HEAD_PRIORS = [PRIORS[name] for name in ("Eq 4", "Eq 19", "Eq 20")]


@given(sentence=SENTENCES, window=WINDOWS, seed=strategies.seeds)
def test_each_head_can_have_a_prior_of_its_own(sentence: Sentences, window: int | None, seed: int) -> None:
    layer = attention(seed=seed, prior=HeadPriors(exact(build()) for build, _ in HEAD_PRIORS), window=window)
    blocks = [w.split(EMBED_DIM // HEADS) for w in layer.in_proj.weight.chunk(3)]
    identity = torch.eye(EMBED_DIM // HEADS).tolist()
    ours = layer(sentence.x, sentence.mask)
    for b, mask in enumerate(sentence.mask):
        words, positions = sentence.x[b][mask].tolist(), mask.nonzero()[:, 0].tolist()
        expected = [[] for _ in words]
        for h, (_, beta) in enumerate(HEAD_PRIORS):
            head = tuple(block[h].tolist() for block in blocks)
            alone = oracles.multi_head_self_attention(words, positions, [head], identity, beta, window)
            for row, y in zip(expected, alone, strict=True):
                row += y
        expected = [oracles.linear(row, layer.out_proj.weight.tolist()) for row in expected]
        assert_close(
            ours[b][mask], torch.tensor(expected, dtype=torch.float64).view(-1, EMBED_DIM), atol=1e-10, rtol=1e-9
        )


def test_heads_that_share_a_prior_are_heads_with_equal_ones() -> None:
    x, mask = normal(1, 2, 9, EMBED_DIM), torch.arange(9) < torch.tensor([[9], [6]])
    shared, apart = attention(), attention(prior=HeadPriors(exact(GaussianPrior()) for _ in range(HEADS)))
    assert_close(apart(x, mask), shared(x, mask), atol=1e-12, rtol=1e-12)
    assert "(0-2): 3 x GaussianPrior(w=0.1, b=-0.1)" in repr(apart.prior)


class Shaped(nn.Module):
    """A prior of one's own that gives a bias of any shape."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, query_length: int, key_length: int) -> Tensor:
        sizes = [{-1: query_length, -2: key_length}.get(size, size) for size in self.shape]
        return torch.linspace(-1, 0, math.prod(sizes), dtype=torch.float64).view(sizes)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (-2,), (1, -2), (-1, 1), (-1, -2), (HEADS, -1, -2)])
@pytest.mark.parametrize("length", [5, 400])
def test_a_prior_of_fewer_axes_is_one_for_all_that_it_lacks(shape: tuple[int, ...], length: int) -> None:
    """Also in blocks, for the prior of three of which they ask; where it holds for all, that is no prior."""
    layer, x = attention(prior=Shaped(*shape), window=None), normal(1, HEADS, length, EMBED_DIM)
    q, k, _ = layer.in_proj(x).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    scores = functional.dot_scores(q, k, layer.scale) + Shaped(*shape)(length, length)
    assert_close(layer.attention_weights(x), scores.softmax(-1))
    if shape in ((), (1,), (1, 1)):
        narrow, plain = (attention(prior=prior, window=3) for prior in (Shaped(*shape), NoPrior()))
        assert_close(narrow(x), plain(x), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize(
    "shape", [(1, -1, -2), (2, -1, -2), (HEADS, 1, 1), (2, HEADS, -1, -2), (1, 1, -1, -2), (6, 6), (-1, 4), (2,)]
)
def test_a_prior_of_any_other_shape_is_refused(shape: tuple[int, ...]) -> None:
    """One for each sentence would pass for one for each head where there are as many."""
    layer = attention(prior=Shaped(*shape))
    with pytest.raises(ValueError, match=r"prior must give a log-bias of shape \(5, 5\) or \(3, 5, 5\), got shape \("):
        layer(normal(1, 2, 5, EMBED_DIM))
    layer = attention(prior=ZipfPrior())
    layer.prior = HeadPriors([ZipfPrior()])
    with pytest.raises(ValueError, match=r"got shape \(1, 5, 5\)"):
        layer(normal(1, 2, 5, EMBED_DIM))


def test_as_many_priors_as_heads() -> None:
    with pytest.raises(ValueError, match="prior must have one prior for each of the 3 heads, got 2"):
        attention(prior=HeadPriors([GaussianPrior(), ZipfPrior()]))


@given(sentence=SENTENCES, window=WINDOWS, bias=st.booleans())
def test_peer_bug_5_weights_and_outputs_agree(device: str, sentence: Sentences, window: int | None, bias: bool) -> None:
    sentence = sentence.to(device)
    layer = attention(device, bias=bias, window=window)
    a = layer.attention_weights(sentence.x, sentence.mask)
    v = layer.in_proj(sentence.x)[..., -EMBED_DIM:].unflatten(2, (HEADS, -1))
    expected = layer.out_proj(torch.einsum("bhnm,bmhd->bnhd", a, v).flatten(2))
    ours = layer(sentence.x, sentence.mask)
    assert_close(ours[sentence.mask], expected[sentence.mask], atol=1e-12, rtol=1e-12)
    assert torch.all(ours[~sentence.mask] == 0)


@given(sentence=SENTENCES, window=WINDOWS)
def test_rows_are_distributions_over_the_real_words_in_reach(
    device: str, sentence: Sentences, window: int | None
) -> None:
    sentence = sentence.to(device)
    a = attention(device, window=window).attention_weights(sentence.x, sentence.mask)
    n = sentence.x.shape[1]
    near = torch.ones(n, n, dtype=torch.bool) if window is None else functional.token_distances(n, n).abs() <= window
    pairs = sentence.mask[:, :, None] & sentence.mask[:, None] & near.to(device)
    assert torch.equal(a > 0, pairs[:, None].expand_as(a))
    assert_close(a.sum(-1), sentence.mask[:, None].double().expand(-1, HEADS, -1), atol=1e-12, rtol=0)


@given(seed=strategies.seeds, c=st.floats(0, 5))
def test_limits_w_to_0_forgets_distance_and_w_to_infinity_sees_only_the_word_itself(seed: int, c: float) -> None:
    scores = normal(seed, 7, 7)
    assert_close(weights(scores, gaussian(1e-12, 0.0, 7)), scores.softmax(-1), atol=1e-9, rtol=0)
    for b in (0.0, -c):
        assert_close(weights(scores, gaussian(1e4, b, 7)), torch.eye(7).double(), atol=1e-12, rtol=0)


@given(seed=strategies.seeds, w=POSITIVE, step=st.floats(1e-6, 1))
def test_continuity_weights_move_no_faster_than_w_times_the_largest_square(seed: int, w: float, step: float) -> None:
    scores = normal(seed, 7, 7)
    moved = weights(scores, gaussian(w + step, 0.0, 7)) - weights(scores, gaussian(w, 0.0, 7))
    assert torch.all(moved.abs().sum(-1) <= 36 * step + 1e-12)


@given(seed=strategies.seeds)
def test_eq_3_with_w_pi_is_the_multiplied_and_renormalised_prior_of_eq_2(seed: int) -> None:
    scores = normal(seed, 7, 7)
    product = scores.softmax(-1) * torch.exp(-math.pi * squares(7))
    expected = product / product.sum(-1, keepdim=True)
    assert_close(weights(scores, gaussian(math.pi, 0.0, 7)), expected, atol=1e-12, rtol=0)


@given(seed=strategies.seeds, w=POSITIVE, u=POSITIVE)
def test_semigroup_a_larger_w_tilts_the_weights_of_a_smaller(seed: int, w: float, u: float) -> None:
    scores = normal(seed, 7, 7)
    tilted = weights(scores, gaussian(w, 0.0, 7)) * torch.exp(-u * squares(7))
    expected = tilted / tilted.sum(-1, keepdim=True)
    assert_close(weights(scores, gaussian(w + u, 0.0, 7)), expected, atol=1e-12, rtol=1e-9)


@parametrised(PRIORS)
@given(seed=strategies.seeds)
def test_log_odds_of_two_words_do_not_depend_on_the_others(build, beta, seed: int) -> None:
    scores, i, j, k = normal(seed, 7, 7), 2, 1, 5
    for other in (scores, torch.where(torch.tensor([[m in (j, k) for m in range(7)]]), scores, normal(seed + 1, 7, 7))):
        a = weights(other, exact(build())(7, 7))
        odds = scores[i, j] - scores[i, k] + beta(i - j) - beta(i - k)
        assert (a[i, j] / a[i, k]).log().item() == pytest.approx(odds.item(), abs=1e-10)


@parametrised(PRIORS)
def test_translation_inner_rows_are_copies_of_each_other(build, beta) -> None:
    """At equal scores and far from both ends. Zipf's tail and the far bucket never end, so they are cut by a window."""
    a = weights(torch.zeros(60, 60, dtype=torch.float64), exact(build())(60, 60), window=20)
    assert_close(a[25, 5:46], a[32, 12:53], atol=1e-12, rtol=0)


@parametrised(PRIORS)
@given(sentence=SENTENCES, left=st.integers(1, 4))
def test_translation_padding_on_the_left_changes_nothing(build, beta, sentence: Sentences, left: int) -> None:
    layer = attention(prior=build(), bias=True)
    x = nn.functional.pad(sentence.x, (0, 0, left, 0), value=float("nan"))
    mask = nn.functional.pad(sentence.mask, (left, 0), value=False)
    assert_close(layer(x, mask)[:, left:], layer(sentence.x, sentence.mask), atol=1e-12, rtol=1e-12)


@parametrised(EVEN_PRIORS)
@given(sentence=SENTENCES)
def test_reversing_the_sentence_reverses_the_output(build, beta, sentence: Sentences) -> None:
    layer = attention(prior=build())
    ours = layer(sentence.x.flip(1), sentence.mask.flip(1))
    assert_close(ours, layer(sentence.x, sentence.mask).flip(1), atol=1e-12, rtol=1e-12)


def test_reversal_is_broken_by_a_signed_prior() -> None:
    layer, x = attention(prior=asymmetric()), normal(0, 2, 7, EMBED_DIM)
    assert (layer(x.flip(1)) - layer(x).flip(1)).abs().max() > 1e-2


@given(w=POSITIVE)
def test_closeness_at_equal_scores_nearer_words_weigh_more(w: float) -> None:
    a = weights(torch.zeros(9, 9, dtype=torch.float64), gaussian(w, 0.0, 9))[4]
    for near, far in ((0, 1), (1, 2)):
        assert a[4 + near] > a[4 + far] and a[4 - near] > a[4 - far]
    assert_close(a, a.flip(0), atol=1e-14, rtol=1e-12)


@pytest.mark.parametrize(("w", "c", "sign"), [(1.0, 0.25, 1), (1.0, 0.5, 0), (1.0, 1.0, -1), (0.25, 1.0, -1)])
def test_closeness_eq_4s_centre_is_above_level_with_or_below_its_neighbours(w: float, c: float, sign: int) -> None:
    a = weights(torch.zeros(9, 9, dtype=torch.float64), gaussian(w, -c, 9))[4]
    assert torch.sign(a[4] - a[5]) == sign and torch.sign(a[4] - a[3]) == sign
    peak = math.sqrt(c / w)
    for d in range(4):
        if d + 1 <= peak:
            assert a[4 + d + 1] > a[4 + d]
        if d >= peak:
            assert a[4 + d + 1] < a[4 + d]


@given(seed=strategies.seeds, w=POSITIVE, step=POSITIVE)
def test_the_mean_squared_distance_falls_with_w(seed: int, w: float, step: float) -> None:
    scores = normal(seed, 7, 7)
    spread = [(weights(scores, gaussian(v, 0.0, 7)) * squares(7)).sum(-1) for v in (w, w + step)]
    assert torch.all(spread[1] < spread[0])


@given(seed=strategies.seeds, w=POSITIVE, c=st.none() | POSITIVE)
def test_gradients_of_w_and_b_are_the_papers_covariances(seed: int, w: float, c: float | None) -> None:
    """dy_i/dw = -sum_j A_ij sgn(w d^2 + b) d^2 (v_j - y_i), and dy_i/db the same without d^2."""
    scores, v = normal(seed, 7, 7), normal(seed + 1, 7)
    w_b = tuple(torch.tensor(p, dtype=torch.float64) for p in (w, -(c or 0.0)))
    distances = functional.token_distances(7, 7)

    def y(w: Tensor, b: Tensor) -> Tensor:
        return weights(scores, functional.gaussian_bias(w, b, distances)) @ v

    dw, db = torch.autograd.functional.jacobian(y, w_b)
    a, sign = weights(scores, functional.gaussian_bias(*w_b, distances)), torch.sign(w_b[0] * squares(7) + w_b[1])
    centred = v - (a @ v)[:, None]
    assert_close(dw, -(a * sign * squares(7) * centred).sum(-1), atol=1e-10, rtol=1e-9)
    assert_close(db, -(a * sign * centred).sum(-1), atol=1e-10, rtol=1e-9)


@given(seed=strategies.seeds, window=WINDOWS)
def test_values_are_averaged_linearly_within_their_hull(seed: int, window: int | None) -> None:
    a = weights(normal(seed, 7, 7), gaussian(0.3, -0.2, 7), window)[None, None]
    v, u = normal(seed + 1, 1, 1, 7, 2), normal(seed + 2, 1, 1, 7, 2)
    y = functional.weighted_sum(a, v)
    assert_close(
        functional.weighted_sum(a, 2 * v - 3 * u), 2 * y - 3 * functional.weighted_sum(a, u), atol=1e-12, rtol=1e-12
    )
    assert torch.all(y <= v.amax(2, keepdim=True) + 1e-12) and torch.all(y >= v.amin(2, keepdim=True) - 1e-12)
    assert_close(functional.weighted_sum(a, torch.ones_like(v)), torch.ones_like(v), atol=1e-12, rtol=0)


@given(sentence=SENTENCES, seed=strategies.seeds)
def test_score_shift_a_key_bias_is_dead(device: str, sentence: Sentences, seed: int) -> None:
    sentence, layer = sentence.to(device), attention(device, bias=True)
    y = layer(sentence.x, sentence.mask)
    (y * normal(seed, *y.shape).to(device)).sum().backward()
    gradient = layer.in_proj.bias.grad
    assert gradient[EMBED_DIM : 2 * EMBED_DIM].abs().max() < 1e-10
    layer.in_proj.bias.data[EMBED_DIM : 2 * EMBED_DIM] += normal(seed, EMBED_DIM).to(device)
    assert_close(layer(sentence.x, sentence.mask), y, atol=1e-10, rtol=1e-10)
    rows = normal(seed, 7, 7)
    assert_close(weights(rows + normal(seed + 1, 7, 1)), weights(rows), atol=1e-12, rtol=1e-12)


def test_the_other_biases_are_alive() -> None:
    layer, x = attention(bias=True), normal(0, 2, 7, EMBED_DIM)
    layer(x).square().sum().backward()
    query, _, value = layer.in_proj.bias.grad.chunk(3)
    assert min(g.abs().max() for g in (query, value, layer.out_proj.bias.grad)) > 1e-3


@parametrised(PRIORS)
def test_a_sentence_of_one_word_is_its_value(build, beta) -> None:
    layer, x = attention(prior=build()), normal(0, 2, 1, EMBED_DIM)
    assert_close(layer(x), layer.out_proj(layer.in_proj(x)[..., -EMBED_DIM:]), atol=1e-12, rtol=1e-12)


@parametrised(PRIORS)
def test_word_order_is_known_through_the_prior_alone(build, beta) -> None:
    layer, x = attention(prior=build()), normal(0, 2, 7, EMBED_DIM)
    order = torch.tensor([3, 1, 6, 0, 2, 5, 4])
    difference = (layer(x[:, order]) - layer(x)[:, order]).abs().max().item()
    assert difference < 1e-12 if build is NoPrior else difference > 1e-3


def test_zipf_and_linear_ratios_at_equal_scores() -> None:
    flat = torch.zeros(9, 9, dtype=torch.float64)
    a = weights(flat, exact(ZipfPrior())(9, 9))
    for i, j, k in ((0, 3, 8), (4, 4, 0), (2, 7, 1)):
        assert (a[i, j] / a[i, k]).item() == pytest.approx((1 + abs(i - k)) / (1 + abs(i - j)), rel=1e-12)
    a = weights(flat, exact(LinearPrior(-0.4))(9, 9))[0]
    assert_close(a[1:] / a[:-1], torch.full((8,), math.exp(-0.4)).double(), atol=1e-7, rtol=0)


@given(seed=strategies.seeds, constant=st.floats(-5, 5))
def test_gauge_the_gradients_of_a_bucketed_prior_sum_to_zero(seed: int, constant: float) -> None:
    layer, x = attention(prior=asymmetric()), normal(seed, 2, 7, EMBED_DIM)
    y = layer(x)
    (y * normal(seed + 1, *y.shape)).sum().backward()
    gradient = layer.prior.bias.grad
    assert abs(gradient.sum().item()) < 1e-10 and gradient.abs().max() > 1e-6
    layer.prior.bias.data += constant
    assert_close(layer(x), y, atol=1e-12, rtol=1e-12)


@given(sentence=SENTENCES)
def test_one_head_with_identity_projections_is_the_literal_equation(sentence: Sentences) -> None:
    layer = GaussianSelfAttention(EMBED_DIM, 1, scale=1.0, dtype=torch.float64)
    layer.in_proj.weight.data = torch.eye(EMBED_DIM).double().repeat(3, 1)
    layer.out_proj.weight.data = torch.eye(EMBED_DIM).double()
    x = sentence.x[:, None]
    n = x.shape[2]
    a = functional.self_attention_weights(functional.dot_scores(x, x), layer.prior(n, n), sentence.mask)
    expected = functional.weighted_sum(a, x)[:, 0]
    assert_close(layer(sentence.x, sentence.mask), expected, atol=1e-12, rtol=1e-12)
    assert torch.equal(layer.attention_weights(sentence.x, sentence.mask), a)


def test_permuting_the_heads_with_their_rows_and_columns_changes_nothing() -> None:
    layer, x, order = attention(bias=True), normal(0, 2, 7, EMBED_DIM), [2, 0, 1]
    permuted = copy.deepcopy(layer)
    rows = layer.in_proj.weight.view(3, HEADS, -1, EMBED_DIM)[:, order].reshape(3 * EMBED_DIM, EMBED_DIM)
    permuted.in_proj.weight.data = rows
    permuted.in_proj.bias.data = layer.in_proj.bias.view(3, HEADS, -1)[:, order].flatten()
    permuted.out_proj.weight.data = layer.out_proj.weight.view(EMBED_DIM, HEADS, -1)[:, order].flatten(1)
    assert_close(permuted(x), layer(x), atol=1e-12, rtol=1e-12)


@given(factor=st.floats(0.1, 10))
def test_queries_scaled_up_and_keys_scaled_down_change_nothing(factor: float) -> None:
    layer, x = attention(), normal(0, 2, 7, EMBED_DIM)
    before = layer(x)
    layer.in_proj.weight.data[:EMBED_DIM] *= factor
    layer.in_proj.weight.data[EMBED_DIM : 2 * EMBED_DIM] /= factor
    assert_close(layer(x), before, atol=1e-10, rtol=1e-10)


@parametrised(PRIORS)
@given(sentence=SENTENCES)
def test_equals_scaled_dot_product_attention_with_an_added_bias(device: str, build, beta, sentence: Sentences) -> None:
    sentence, layer = sentence.to(device), attention(device, prior=build(), bias=True)
    if build is NoPrior:
        layer.prior.forward = lambda n, m: torch.zeros(n, m, dtype=torch.float64, device=device)
    n = sentence.x.shape[1]
    q, k, v = (p.unflatten(2, (HEADS, -1)).transpose(1, 2) for p in layer.in_proj(sentence.x).chunk(3, -1))
    bias = layer.prior(n, n).masked_fill(~sentence.mask[:, None, None], -math.inf)
    y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    expected = layer.out_proj(y.transpose(1, 2).flatten(2))
    assert_close(layer(sentence.x, sentence.mask)[sentence.mask], expected[sentence.mask], atol=1e-10, rtol=1e-9)


def test_the_scale_multiplies_the_scores_alone() -> None:
    """With a scale of 0 only the prior is left."""
    x = normal(0, 1, 7, EMBED_DIM)
    a = attention(scale=0.0).attention_weights(x)[0, 0]
    assert_close(a, exact(GaussianPrior())(7).softmax(-1), atol=1e-12, rtol=0)
    assert GaussianSelfAttention(EMBED_DIM, HEADS).scale == 1 / math.sqrt(2)


@given(seed=strategies.seeds, window=st.integers(0, 8))
def test_a_window_restricts_the_weights_and_normalises_them_again(seed: int, window: int) -> None:
    scores, bias = normal(seed, 7, 7), gaussian(0.1, -0.1, 7)
    near = functional.token_distances(7, 7).abs() <= window
    restricted = weights(scores, bias) * near
    expected = restricted / restricted.sum(-1, keepdim=True)
    assert_close(weights(scores, bias, window), expected, atol=1e-12, rtol=1e-12)
    discarded = 1 - restricted.sum(-1)
    distance = (weights(scores, bias) - weights(scores, bias, window)).abs().sum(-1) / 2
    assert_close(distance, discarded, atol=1e-12, rtol=0)


@given(sentence=SENTENCES, window=st.integers(6, 100))
def test_windows_that_reach_everything_and_auto_are_dense(sentence: Sentences, window: int) -> None:
    dense = attention(window=None)(sentence.x, sentence.mask)
    assert torch.equal(attention(window=window)(sentence.x, sentence.mask), dense)
    assert torch.equal(attention(window="auto")(sentence.x, sentence.mask), dense)


def test_no_gradient_comes_from_beyond_the_window() -> None:
    x = normal(0, 1, 9, EMBED_DIM).requires_grad_()
    attention(window=2)(x)[0, 4].sum().backward()
    touched = x.grad[0].abs().sum(-1) > 0
    assert touched.tolist() == [2 <= j <= 6 for j in range(9)]


def test_each_layer_has_a_prior_of_its_own() -> None:
    first, second = GaussianSelfAttention(EMBED_DIM, HEADS), GaussianSelfAttention(EMBED_DIM, HEADS)
    assert isinstance(first.prior, GaussianPrior) and first.prior is not second.prior
    assert first.prior.w.item() == pytest.approx(0.1) and first.prior.b.item() == pytest.approx(-0.1)
    assert sum(p.numel() for p in first.parameters()) == 4 * EMBED_DIM**2 + 2
    biased = GaussianSelfAttention(EMBED_DIM, HEADS, bias=True)
    assert sum(p.numel() for p in biased.parameters()) == 4 * EMBED_DIM**2 + 4 * EMBED_DIM + 2


def test_dropout_acts_on_the_weights_in_training_alone() -> None:
    layer, x = attention(dropout=0.5), normal(0, 2, 7, EMBED_DIM)
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.attention_weights(x), layer.attention_weights(x))
    layer.eval()
    assert torch.equal(layer(x), attention()(x))
    assert torch.all(attention(dropout=1.0)(x) == 0)


def test_dropout_drops_words_not_features() -> None:
    """Values that are 1 throughout show each row's sum of what is left of its weights, the same for all features."""
    layer = GaussianSelfAttention(EMBED_DIM, HEADS, dropout=0.5, dtype=torch.float64)
    layer.in_proj.weight.data[-EMBED_DIM:] = 1 / EMBED_DIM
    layer.out_proj.weight.data = torch.eye(EMBED_DIM, dtype=torch.float64)
    sums = layer(torch.ones(2, 7, EMBED_DIM, dtype=torch.float64)).view(2, 7, HEADS, -1)
    assert_close(sums[..., 0], sums[..., 1], atol=1e-12, rtol=0)
    assert sums[..., 0].std() > 0.1


def test_initialisation_keeps_the_variance_of_words_that_agree() -> None:
    """Averaging leaves equal words alone; independent ones lose what an average loses."""
    layer = GaussianSelfAttention(240, 4)
    word = torch.randn(64, 1, 240)
    assert 0.8 < layer(word.expand(64, 9, 240)).var().item() < 1.25
    scores = layer.in_proj(word)[..., :480].view(64, 2, 4, 60)
    assert 0.8 < (layer.scale * (scores[:, 0] * scores[:, 1].roll(1, 0)).sum(-1)).var().item() < 1.25
    x = torch.randn(64, 9, 240)
    expected = layer.attention_weights(x).square().sum(-1).mean().item()
    assert layer(x).var().item() == pytest.approx(expected, rel=0.2)


def test_initialisation_is_glorots_for_each_projection_alone() -> None:
    torch.manual_seed(0)
    layer, bound = GaussianSelfAttention(120, 2), math.sqrt(6 / 240)
    for block in (*layer.in_proj.weight.split(120), layer.out_proj.weight):
        assert 0.99 * bound < block.abs().max() <= bound


@pytest.mark.parametrize("weigh", [functional.self_attention_weights, weights_with_themselves])
@pytest.mark.parametrize("masked", [True, False])
def test_weights_are_computed_in_float32(weigh: Callable[..., Tensor], masked: bool) -> None:
    scores = torch.linspace(-4, 4, 64, dtype=torch.float16).expand(1, 1, 64, 64)
    log_bias, mask = gaussian(0.1, -0.1, 64).float(), torch.ones(1, 64).bool() if masked else None
    expected = (scores.float() + log_bias).softmax(-1).half()
    assert torch.equal(weigh(scores, log_bias, mask), expected)


@parametrised(PRIORS)
@given(sentence=SENTENCES, window=WINDOWS)
def test_rows_that_are_not_zeroed_are_the_same_for_real_words_and_finite_for_padding(
    device: str, build, beta, sentence: Sentences, window: int | None
) -> None:
    sentence = sentence.to(device)
    n, mask = sentence.x.shape[1], sentence.mask
    scores, log_bias = functional.dot_scores(sentence.x[:, None], sentence.x[:, None]), build()(n, n).to(device)
    zeroed = functional.self_attention_weights(scores, log_bias, mask, window)
    as_they_are = weights_with_themselves(scores, log_bias, mask, window)
    rows = mask[:, None].expand(as_they_are.shape[:3])
    assert torch.equal(as_they_are[rows], zeroed[rows])
    assert torch.all(zeroed[~rows] == 0) and torch.all(as_they_are.isfinite())


def test_padding_that_a_prior_lets_see_no_real_word_stays_finite(device: str) -> None:
    layer, mask = attention(device, prior=GaussianPrior(1e37)), torch.arange(12, device=device)[None] < 2
    layer = layer.float()
    x = normal(0, 1, 12, EMBED_DIM).float().to(device).requires_grad_()
    assert torch.any(layer.prior(12)[2:, :2] == -math.inf)
    layer(x, mask).sum().backward()
    assert torch.all(x.grad.isfinite()) and all(torch.all(p.grad.isfinite()) for p in layer.parameters())


class OfType(nn.Module):
    """Nearer words count more, in numbers of any type."""

    def __init__(self, dtype: torch.dtype, constant: float = 0) -> None:
        super().__init__()
        self.dtype, self.constant = dtype, constant

    def forward(self, query_length: int, key_length: int) -> Tensor:
        distances = functional.token_distances(query_length, key_length).abs()
        return self.constant - distances.to(self.dtype)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("window", [None, 2])
def test_a_prior_may_give_numbers_of_any_type(dtype: torch.dtype, window: int | None) -> None:
    layer, x, mask = (
        attention(prior=OfType(dtype), window=window),
        normal(0, 1, 6, EMBED_DIM),
        torch.arange(6)[None] < 4,
    )
    assert_close(layer(x, mask)[:, :4], layer(x[:, :4]))
    if dtype != torch.uint8:  # which has no numbers below 0
        expected = attention(prior=OfType(torch.float64), window=window)
        expected.prior.forward = lambda n, m: layer.prior(n, m).double()
        assert_close(layer(x, mask), expected(x, mask))


@pytest.mark.parametrize("masked", [False, True])
def test_a_prior_keeps_the_digits_that_the_scores_have_not(masked: bool) -> None:
    x, mask = normal(0, 1, 6, EMBED_DIM).float(), torch.arange(6)[None] < 4 if masked else None
    scores = functional.dot_scores(x[:, None], x[:, None])

    def weights(constant: float) -> Tensor:
        return functional.self_attention_weights(scores, OfType(torch.float64, constant)(6, 6), mask)

    assert weights(1e8).dtype == torch.float32
    assert_close(weights(1e8), weights(0), atol=1e-6, rtol=0)  # a constant changes nothing
    flat = functional.self_attention_weights(torch.zeros_like(scores), None, mask)
    assert_close(weights(-1e39), flat)  # no digit is left of the rest, and float32 has no such number


@pytest.mark.parametrize("length", [12, 400])
@pytest.mark.parametrize("window", [None, 3])
def test_padding_whose_scores_overflow_matters_to_none(length: int, window: int | None) -> None:
    """Projections with biases that real words cancel: the products of padding with padding are infinite."""
    layer = GaussianSelfAttention(2, 1, bias=True, window=window, scale=1.0)
    with torch.no_grad():
        layer.in_proj.bias.copy_(torch.tensor([1e20, 0, 1e20, 0, 0, 0]))
        layer.in_proj.weight[0] = layer.in_proj.weight[2] = torch.tensor([-1e20, 0.0])
    x, mask = torch.ones(1, length, 2, requires_grad=True), torch.arange(length)[None] < length // 2
    y = layer(x, mask)
    y.sum().backward()
    assert torch.all(layer.attention_weights(x, mask).isfinite())
    assert torch.all(y.isfinite()) and torch.all(x.grad.isfinite())
    assert all(torch.all(parameter.grad.isfinite()) for parameter in layer.parameters())


@pytest.mark.parametrize("largest", [1.28e19, 1.31e19, 1.8e19])
def test_scores_near_the_lowest_number_are_no_padding(largest: float) -> None:
    """A word's score for itself is -largest², the others' the same: it sees the mean of those in its window."""
    layer = GaussianSelfAttention(1, 1, prior=ZipfPrior(), window=3, scale=1.0)
    with torch.no_grad():
        layer.in_proj.weight.copy_(torch.tensor([[1.0], [-1.0], [1.0]]))
        layer.out_proj.weight.fill_(1)
    y = layer(torch.full((1, 400, 1), largest))
    assert_close(y / largest, torch.ones_like(y))


@pytest.mark.parametrize("masked", [False, True])
def test_a_bias_near_the_lowest_number_is_no_padding(masked: bool) -> None:
    x, mask = normal(0, 1, 400, 8).float(), torch.arange(400)[None] % 60 == 0 if masked else None
    blocks = GaussianSelfAttention(8, 2, prior=GaussianPrior(0.1, -2e38), window=3)
    dense = copy.deepcopy(blocks)
    dense.prior.register_forward_hook(lambda *_: None)  # which has the whole matrix computed
    assert_close(blocks(x, mask), dense(x, mask))


def test_infinite_scores_matter_to_none_that_do_not_see_them() -> None:
    scores = torch.zeros(1, 1, 4, 4)
    scores[..., 0, 3] = math.inf
    expected = torch.tensor([0.5, 0.5, 0, 0])
    assert torch.equal(functional.self_attention_weights(scores, None, None, 1)[0, 0, 0], expected)
    zipf, unseen = functional.zipf_bias(functional.token_distances(4).float()), torch.zeros(4, 4)
    unseen[0, 2:] = -math.inf
    assert torch.equal(functional.self_attention_weights(scores, unseen)[0, 0, 0], expected)
    near = weights_with_themselves(scores, zipf, None, 1)[0, 0, 0]
    assert_close(near, torch.tensor([2 / 3, 1 / 3, 0, 0]))


@pytest.mark.parametrize("window", ["auto", 3])
def test_seven_passes_over_the_scores_of_which_two_are_for_the_mask(window: int | str) -> None:
    """With fewer features than words, the matrices of scores are the largest tensors: each pass makes another."""
    layer, x, mask = attention(window=window), normal(0, 2, 40, EMBED_DIM).requires_grad_(), torch.ones(2, 40).bool()
    with CountingPasses(2 * HEADS * 40 * 40) as passes:
        layer(x, mask).sum().backward()
    assert passes.names == ["bmm", "bitwise_and", "add", "_softmax", "bmm", "_softmax_backward_data", "bitwise_and"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_long_sentences_are_finite_in_half_precision(device: str, dtype: torch.dtype) -> None:
    layer = GaussianSelfAttention(EMBED_DIM, HEADS, device=device, dtype=dtype)
    x = normal(0, 1, 400, EMBED_DIM).to(device, dtype).requires_grad_()
    y = layer(x)
    y.float().square().sum().backward()
    assert torch.isfinite(y).all() and torch.isfinite(x.grad).all()
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters())


@given(sentence=SENTENCES)
def test_module_equals_function(sentence: Sentences) -> None:
    layer = attention(bias=True, window=2)
    q, k, v = (p.unflatten(2, (HEADS, -1)).transpose(1, 2) for p in layer.in_proj(sentence.x).chunk(3, -1))
    n = sentence.x.shape[1]
    a = functional.self_attention_weights(functional.dot_scores(q, k, layer.scale), layer.prior(n, n), sentence.mask, 2)
    y = layer.out_proj(functional.weighted_sum(a, v).transpose(1, 2).flatten(2))
    ours = layer(sentence.x, sentence.mask)
    assert_close(ours[sentence.mask], y[sentence.mask], atol=1e-12, rtol=1e-12)


def test_device_and_dtype_are_the_constructors(device: str) -> None:
    layer = GaussianSelfAttention(EMBED_DIM, HEADS, bias=True, device=device, dtype=torch.float64)
    assert {(p.dtype, p.device.type) for p in layer.parameters()} == {(torch.float64, device)}
    assert laws.outputs(layer.to(torch.bfloat16), Sentences((normal(0, 1, 3, EMBED_DIM).to(device).bfloat16(),), ()))


@pytest.mark.parametrize("priors", [1, HEADS])
def test_a_scalar_may_have_an_axis(priors: int) -> None:
    """As FSDP asks for, which shards no scalars."""
    prior = GaussianPrior() if priors == 1 else HeadPriors([GaussianPrior(w) for w in (0.05, 0.1, 0.2)])
    layer, x = GaussianSelfAttention(EMBED_DIM, HEADS, prior=prior).double(), normal(1, 1, 200, EMBED_DIM)
    expected = layer(x)
    for each in prior.modules():
        if isinstance(each, GaussianPrior):
            each.rho, each.kappa = (nn.Parameter(scalar.detach().reshape(1)) for scalar in (each.rho, each.kappa))
    assert torch.equal(layer(x), expected)


class Levels(nn.Module):
    """A table of biases that have the module's dtype, as users write them."""

    of_distance = True

    def __init__(self, level: float) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.tensor([level + 0.5, level, level - 1.0, -math.inf]))

    def forward(self, query_length: int, key_length: int) -> Tensor:
        return self.bias[functional.token_distances(query_length, key_length).abs().clamp(max=3)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("window", [None, 3])
def test_a_constant_of_a_half_precision_prior_changes_nothing(dtype: torch.dtype, window: int | None) -> None:
    """Added to scores of its own dtype, it would round them to its last digit."""
    x = normal(1, 1, 200, EMBED_DIM, scale=3.0).to(dtype)
    ours, shifted = (attention(window=window, prior=Levels(level)).to(dtype) for level in (0.0, -128.0))
    assert_close(shifted(x), ours(x), atol=0.01, rtol=0.01)
    assert_close(shifted.attention_weights(x), ours.attention_weights(x), atol=0.004, rtol=0.01)


def test_a_gaussian_with_a_width_for_each_head() -> None:
    """In one module that says so by its property: all its words are attended to, for its window is not known."""

    class Widths(GaussianPrior):
        @property
        def w(self) -> Tensor:
            return torch.tensor([0.05, 0.1, 0.2], dtype=torch.float64)[:, None, None]

    x, ours = normal(1, 1, 200, EMBED_DIM), attention(prior=Widths())
    by_head = HeadPriors([GaussianPrior(w, dtype=torch.float64) for w in (0.05, 0.1, 0.2)])
    theirs = attention(prior=by_head, window=None)
    assert_close(ours(x), theirs(x), atol=1e-12, rtol=0)


@pytest.mark.parametrize("length", [100, 200])
def test_a_parametrization_that_is_cached_has_its_gradient(length: int) -> None:
    class Twice(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * x

    layer, x = GaussianSelfAttention(EMBED_DIM, HEADS).double(), normal(1, 1, length, EMBED_DIM)
    nn.utils.parametrize.register_parametrization(layer.prior, "rho", Twice())
    original = layer.prior.parametrizations.rho.original
    (expected,) = torch.autograd.grad(layer(x).square().sum(), original)
    with nn.utils.parametrize.cached():
        (gradient,) = torch.autograd.grad(layer(x).square().sum(), original)
    assert gradient.ne(0) and torch.equal(gradient, expected)


def test_a_parametrization_that_draws_has_no_window_of_an_earlier_draw() -> None:
    """A narrow Gaussian whenever it is read first, and a wide one then."""
    drawn: list[Tensor] = []

    class Drawn(nn.Module):
        def forward(self, rho: Tensor) -> Tensor:
            drawn.append(rho + (-8 if len(drawn) % 2 else 3))
            return drawn[-1]

    layer, x = attention(prior=GaussianPrior()), normal(1, 1, 300, EMBED_DIM)
    whole = copy.deepcopy(layer)
    whole.window = None
    nn.utils.parametrize.register_parametrization(layer.prior, "rho", Drawn())
    drawn.clear()
    ours = layer(x)
    nn.init.constant_(whole.prior.rho, drawn[-1].item())
    assert_close(ours, whole(x), atol=1e-6, rtol=0)


def test_a_projection_of_another_width_is_refused() -> None:
    """It would else be cut into queries, keys and values of another width."""
    layer = GaussianSelfAttention(EMBED_DIM, 1).double()
    layer.in_proj = nn.Linear(EMBED_DIM, 3 * EMBED_DIM // 2, dtype=torch.float64)
    with pytest.raises(ValueError, match="in_proj must give 18 features, got 9"):
        layer(normal(0, 2, 5, EMBED_DIM))


def test_reset_parameters_draws_anew_and_leaves_the_prior() -> None:
    layer = GaussianSelfAttention(EMBED_DIM, HEADS, bias=True)
    for parameter in layer.parameters():
        nn.init.constant_(parameter, 3.0)
    layer.reset_parameters()
    bound = math.sqrt(6 / (EMBED_DIM + EMBED_DIM))  # Glorot's, of each projection
    for weight in (layer.in_proj.weight, layer.out_proj.weight):
        assert 0.8 * bound < weight.abs().max() <= bound and weight.min() < 0 < weight.max()
    assert torch.all(layer.in_proj.bias == 0) and torch.all(layer.out_proj.bias == 0)
    assert layer.prior.rho.item() == 3.0


def test_repr_says_the_sizes() -> None:
    expected = "embed_dim=6, num_heads=3, window=2, scale=0.7071"
    assert GaussianSelfAttention(6, 3, window=2).extra_repr() == expected
    assert "window='auto'" in repr(GaussianSelfAttention(6, 3))
    trained = GaussianSelfAttention(6, 3)
    trained.register_parameter("temperature", nn.Parameter(torch.tensor(0.25)))
    trained.scale = trained.temperature
    assert "scale=0.25" in repr(trained)
    assert "(dropout): Dropout(p=0.1" in repr(GaussianSelfAttention(6, 3, dropout=0.1))


@pytest.mark.parametrize("window", [-1, "dense", 2.0, True, float("nan")])
def test_a_bad_window_is_refused(window: object) -> None:
    with pytest.raises(ValueError, match=f"window must be None, 'auto' or an integer of at least 0, got {window!r}"):
        GaussianSelfAttention(6, 3, window=window)


def test_bad_sizes_are_refused() -> None:
    for embed_dim, num_heads in ((6, 4), (0, 1), (6, 0), (6, -3)):
        with pytest.raises(
            ValueError, match=f"multiple of num_heads, got embed_dim={embed_dim}, num_heads={num_heads}"
        ):
            GaussianSelfAttention(embed_dim, num_heads)
    for dropout in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=f"dropout must be a probability, got {dropout}"):
            GaussianSelfAttention(6, 3, dropout=dropout)
    with pytest.raises(ValueError, match=r"x must be floating point of shape \(batch, length, 6\), got .* \(2, 3, 5\)"):
        GaussianSelfAttention(6, 3)(torch.ones(2, 3, 5))
    with pytest.raises(ValueError, match=r"x must be floating point of shape .*, got torch.float32 of shape \(3, 6\)"):
        GaussianSelfAttention(6, 3).attention_weights(torch.ones(3, 6))


@given(sentence=SENTENCES, seed=strategies.seeds)
def test_reversal_holds_for_a_bucketed_prior_with_an_even_table(sentence: Sentences, seed: int) -> None:
    """Eq 19 without signs; an asymmetric table breaks it."""
    prior = DistancePrior(2, dtype=torch.float64)
    near = normal(seed, 3)
    prior.bias.data = torch.cat((near.flip(0)[:2], near, normal(seed + 1, 1)))
    layer = attention(prior=prior)
    ours = layer(sentence.x.flip(1), sentence.mask.flip(1))
    assert_close(ours, layer(sentence.x, sentence.mask).flip(1), atol=1e-12, rtol=1e-12)


@given(seed=strategies.seeds, w=POSITIVE)
def test_the_mean_squared_distance_falls_with_w_at_the_rate_of_its_variance(seed: int, w: float) -> None:
    scores = normal(seed, 7, 7)

    def mean(w: Tensor) -> Tensor:
        a = weights(scores, functional.gaussian_bias(w, torch.zeros_like(w), functional.token_distances(7, 7)))
        return (a * squares(7)).sum(-1)

    a = weights(scores, gaussian(w, 0.0, 7))
    variance = (a * squares(7).square()).sum(-1) - (a * squares(7)).sum(-1).square()
    slope = torch.autograd.functional.jacobian(mean, torch.tensor(w, dtype=torch.float64))
    assert_close(slope, -variance, atol=1e-10, rtol=1e-9)


@given(seed=strategies.seeds)
def test_eq_18s_bias_is_the_multiplied_and_renormalised_prior(seed: int) -> None:
    scores = normal(seed, 7, 7)
    product = scores.softmax(-1) / (functional.token_distances(7, 7).abs() + 1)
    assert_close(weights(scores, exact(ZipfPrior())(7, 7)), product / product.sum(-1, keepdim=True), atol=1e-12, rtol=0)


class Others(nn.Module):
    """No attention of a word to itself: Shen et al. 2017. A lone word has nothing to attend to."""

    of_distance = True

    def forward(self, query_length: int, key_length: int) -> Tensor:
        distances = functional.token_distances(query_length, key_length)
        return (-0.01 * distances.square().double()).masked_fill(distances == 0, -math.inf)


class OthersInOneHead(nn.Module):
    def forward(self, query_length: int, key_length: int) -> Tensor:
        others = Others()(query_length, key_length)
        return torch.stack([others, torch.zeros_like(others), others])


def distances_but_0() -> DistancePrior:
    prior = DistancePrior(2, dtype=torch.float64)
    prior.bias.data[2] = -math.inf
    return prior


def hooked() -> GaussianPrior:
    """Made one that looks at others alone, by a hook."""
    prior = exact(GaussianPrior())
    prior.register_forward_hook(lambda _, lengths, bias: bias + Others()(*lengths))
    return prior


OTHERS = {
    "one's own": Others,
    "trained": distances_but_0,
    "hooked": hooked,
    "one for each head": lambda: HeadPriors([Others(), distances_but_0(), hooked()]),
}


@pytest.mark.parametrize("prior", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("window", [None, 3, "auto"])
@pytest.mark.parametrize("length", [5, 400])
def test_a_word_that_a_prior_leaves_none_to_attend_to_has_a_sum_of_0(
    length: int, window: int | str | None, prior: Callable[[], nn.Module]
) -> None:
    layer = attention(prior=prior(), window=window, bias=True)
    layer.in_proj.bias.data, layer.out_proj.bias.data = normal(5, 3 * EMBED_DIM), normal(6, EMBED_DIM)
    x = normal(1, 2, length, EMBED_DIM).requires_grad_()
    mask = torch.arange(length) == torch.tensor([[2], [0]])
    mask[0, length // 2 :] = mask[0, 3] = True
    weights = layer.attention_weights(x, mask)
    assert torch.all(weights[1] == 0)
    assert_close(weights[0].sum(-1), mask[0].double().expand(HEADS, -1))
    y = layer(x, mask)
    assert_close(y[1, 0], layer.out_proj.bias)
    y.sum().backward()
    for gradient in (x.grad, *(parameter.grad for parameter in layer.parameters())):
        assert gradient is not None and torch.all(gradient.isfinite())


def test_a_head_that_sees_none_leaves_the_others_as_they_are() -> None:
    layer, x = attention(prior=OthersInOneHead()), normal(1, 1, 1, EMBED_DIM)
    assert layer.attention_weights(x).flatten().tolist() == [0, 1, 0]
    assert torch.all(layer.discarded_mass_bound(x) == 0)


def test_a_projection_of_another_kind_is_not_reset() -> None:
    layer = GaussianSelfAttention(6, 2)
    layer.in_proj = nn.Sequential(layer.in_proj)
    inner, outer = layer.in_proj[0].weight.clone(), layer.out_proj.weight.clone()
    layer.reset_parameters()
    assert torch.equal(layer.in_proj[0].weight, inner) and not torch.equal(layer.out_proj.weight, outer)


def test_a_window_that_is_set_later_is_checked() -> None:
    layer = GaussianSelfAttention(4, 2)
    for window in (-1, "Auto", 1.5):
        with pytest.raises(ValueError, match="window must be None, 'auto' or an integer of at least 0, got"):
            layer.window = window
        assert layer.window == "auto"
    layer.window = 1
    assert layer.attention_weights(torch.randn(1, 3, 4))[..., 0, 2].abs().max() == 0


@pytest.mark.parametrize("build", [lambda: GaussianSelfAttention(4, 2), lambda: GatedConvEncoder(4, 4, 2)])
def test_dropout_can_be_set_later(build: Callable[[], nn.Module]) -> None:
    layer, x = build().train(), torch.randn(1, 9, 4)
    assert torch.equal(layer(x), layer(x))
    layer.dropout.p = 0.9
    assert not torch.equal(layer(x), layer(x))
