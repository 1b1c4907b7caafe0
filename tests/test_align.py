"""Alignment: Parikh et al. 2016, Eqs 1, 2, 6 and 7, and the laws of PAPERS that follow from them."""

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

import laws
import oracles
import strategies
from nlilayers import (
    DecomposableAlign,
    DistancePrior,
    GaussianPrior,
    IntraAlign,
    LinearPrior,
    ZipfPrior,
    functional,
    masking,
)
from strategies import FEATURES, Sentences, normal

PAIRS = strategies.sentences(sides=2)


def feedforward(seed: int = 0, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    return laws.randomised(nn.Sequential(nn.Linear(FEATURES, 11), activation()), seed)


def words(x: Tensor, mask: Tensor) -> list[list[float]]:
    return x[mask].tolist()


def as_function(module: nn.Module):
    return lambda word: module(torch.tensor(word, dtype=torch.float64)).tolist()


def asymmetric_prior(max_distance: int = 10, device: str = "cpu") -> DistancePrior:
    prior = DistancePrior(max_distance, device=device, dtype=torch.float64)
    prior.bias.data = normal(5, 2 * max_distance + 2).to(device)
    return prior


def rectangles(sentences: Sentences) -> Sentences:
    """The same sentences with nothing masked."""
    return Sentences(sentences.tensors, tuple(torch.ones_like(mask) for mask in sentences.masks))


@given(pair=PAIRS)
def test_eqs_1_and_2_equal_the_loop(device: str, pair: Sentences) -> None:
    F = feedforward()
    beta, alpha = DecomposableAlign(feedforward().to(device))(*pair.to(device).tensors, *pair.to(device).masks)
    for b in range(pair.x.shape[0]):
        premise, hypothesis = (words(x[b], mask[b]) for x, mask in zip(pair.tensors, pair.masks, strict=True))
        if not premise or not hypothesis:
            assert torch.all(beta[b] == 0) and torch.all(alpha[b] == 0)
            continue
        e = oracles.scores(premise, hypothesis, as_function(F))
        expected_beta, expected_alpha = oracles.align(premise, hypothesis, e)
        ours = beta[b][pair.masks[0][b]].cpu(), alpha[b][pair.masks[1][b]].cpu()
        assert_close(ours[0], torch.tensor(expected_beta, dtype=torch.float64), atol=1e-10, rtol=1e-9)
        assert_close(ours[1], torch.tensor(expected_alpha, dtype=torch.float64), atol=1e-10, rtol=1e-9)


@given(sentence=strategies.sentences(), max_distance=st.integers(0, 3))
def test_eqs_6_and_7_equal_the_loop(device: str, sentence: Sentences, max_distance: int) -> None:
    F, prior = feedforward(), asymmetric_prior(max_distance)
    real = rectangles(sentence).to(device)
    layer = IntraAlign(feedforward().to(device), prior=asymmetric_prior(max_distance, device))
    ours = layer(real.x, real.mask)
    bias = prior.bias.tolist()
    for b, a in enumerate(sentence.x.tolist()):
        f = oracles.scores(a, a, as_function(F))
        expected = oracles.intra_align(a, f, lambda d: oracles.bucket_bias(bias, d, max_distance))
        assert_close(ours[b].cpu(), torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=1e-9)


@given(pair=PAIRS)
def test_module_equals_function(device: str, pair: Sentences) -> None:
    pair, F = pair.to(device), feedforward().to(device)
    scores = functional.dot_scores(F(pair.tensors[0]), F(pair.tensors[1]))
    expected = functional.align(scores, *pair.tensors, *pair.masks)
    for ours, theirs in zip(DecomposableAlign(F)(*pair.tensors, *pair.masks), expected, strict=True):
        assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


@given(pair=PAIRS)
def test_peer_bug_5_weights_and_outputs_agree(device: str, pair: Sentences) -> None:
    pair = pair.to(device)
    align, intra = DecomposableAlign(feedforward().to(device)), IntraAlign(prior=asymmetric_prior(2, device))
    beta_weights, alpha_weights = align.alignment_weights(*pair.tensors, *pair.masks)
    beta, alpha = align(*pair.tensors, *pair.masks)
    assert_close(beta, beta_weights @ pair.tensors[1], atol=1e-12, rtol=1e-12)
    assert_close(alpha, alpha_weights @ pair.tensors[0], atol=1e-12, rtol=1e-12)
    weights = intra.alignment_weights(pair.x, pair.mask)
    assert_close(intra(pair.x, pair.mask), weights @ pair.x, atol=1e-12, rtol=1e-12)
    for rows, mask, other in (
        (beta_weights, *pair.masks),
        (alpha_weights, *reversed(pair.masks)),
        (weights, pair.mask, pair.mask),
    ):
        expected = (mask & other.any(1, keepdim=True)).double()
        assert_close(rows.sum(-1), expected, atol=1e-12, rtol=0)
        assert torch.all(rows[~mask] == 0) and torch.all(rows.mT[~other] == 0)


@given(pair=PAIRS)
def test_peer_bug_4_the_words_are_aligned_not_their_scores(device: str, pair: Sentences) -> None:
    """Beta averages the hypothesis itself, not F of it: with a constant F it is the plain mean."""
    pair = rectangles(pair).to(device)

    class Constant(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.ones_like(x[..., :1])

    beta, alpha = DecomposableAlign(Constant())(*pair.tensors)
    assert_close(beta, pair.tensors[1].mean(1, keepdim=True).expand_as(beta), atol=1e-12, rtol=1e-12)
    assert_close(alpha, pair.tensors[0].mean(1, keepdim=True).expand_as(alpha), atol=1e-12, rtol=1e-12)


@given(pair=PAIRS, data=st.data())
def test_permuting_the_premise_permutes_beta_not_alpha(device: str, pair: Sentences, data: st.DataObject) -> None:
    pair, align = pair.to(device), DecomposableAlign(feedforward().to(device))
    order = torch.tensor(data.draw(st.permutations(range(pair.x.shape[1]))), device=device)
    beta, alpha = align(*pair.tensors, *pair.masks)
    permuted_beta, same_alpha = align(pair.x[:, order], pair.tensors[1], pair.mask[:, order], pair.masks[1])
    assert_close(permuted_beta, beta[:, order], atol=1e-12, rtol=1e-12)
    assert_close(same_alpha, alpha, atol=1e-12, rtol=1e-12)


@given(pair=PAIRS)
def test_swapping_the_sentences_swaps_beta_and_alpha(device: str, pair: Sentences) -> None:
    pair, align = pair.to(device), DecomposableAlign(feedforward().to(device))
    beta, alpha = align(*pair.tensors, *pair.masks)
    swapped_alpha, swapped_beta = align(*reversed(pair.tensors), *reversed(pair.masks))
    assert_close(swapped_beta, beta, atol=1e-12, rtol=1e-12)
    assert_close(swapped_alpha, alpha, atol=1e-12, rtol=1e-12)


def test_a_single_hypothesis_word_is_every_beta(device: str) -> None:
    premise, hypothesis = normal(0, 2, 7, FEATURES).to(device), normal(1, 2, 1, FEATURES).to(device)
    beta, _ = DecomposableAlign(feedforward().to(device))(premise, hypothesis)
    assert_close(beta, hypothesis.expand_as(premise), atol=1e-14, rtol=0)


@given(pair=PAIRS)
def test_duplicating_every_hypothesis_word_leaves_beta(device: str, pair: Sentences) -> None:
    pair, align = pair.to(device), DecomposableAlign(feedforward().to(device))
    beta, alpha = align(*pair.tensors, *pair.masks)
    twice = pair.tensors[1].repeat(1, 2, 1), pair.masks[1].repeat(1, 2)
    same_beta, twice_alpha = align(pair.x, twice[0], pair.mask, twice[1])
    assert_close(same_beta, beta, atol=1e-12, rtol=1e-12)
    assert_close(twice_alpha, alpha.repeat(1, 2, 1), atol=1e-12, rtol=1e-12)


@given(pair=PAIRS)
def test_aligned_words_lie_between_the_words_they_average(device: str, pair: Sentences) -> None:
    pair = rectangles(pair).to(device)
    beta, alpha = DecomposableAlign(feedforward().to(device))(*pair.tensors)
    for aligned, source in ((beta, pair.tensors[1]), (alpha, pair.tensors[0])):
        assert torch.all(aligned >= source.amin(1, keepdim=True) - 1e-12)
        assert torch.all(aligned <= source.amax(1, keepdim=True) + 1e-12)


def test_the_feedforward_sees_each_word_once(device: str) -> None:
    """The decomposition of Eq 1: n + m words, never n m pairs."""
    seen: list[int] = []
    F = feedforward().to(device)
    F.register_forward_hook(lambda _module, arguments, _output: seen.append(arguments[0][..., 0].numel()))
    DecomposableAlign(F)(normal(0, 1, 7, FEATURES).to(device), normal(1, 1, 5, FEATURES).to(device))
    assert sum(seen) == 7 + 5
    seen.clear()
    IntraAlign(F)(normal(0, 1, 7, FEATURES).to(device))
    assert sum(seen) == 7


@given(pair=PAIRS)
def test_scores_of_rectified_features_are_not_negative_and_survive_rotation(pair: Sentences) -> None:
    f_a, f_b = (feedforward()(x) for x in pair.tensors)
    e = functional.dot_scores(f_a, f_b)
    rotation = torch.linalg.qr(normal(3, 11, 11)).Q
    assert torch.all(e >= 0)
    assert_close(functional.dot_scores(f_a @ rotation, f_b @ rotation), e, atol=1e-9, rtol=1e-9)


@given(sentence=strategies.sentences())
def test_intra_scores_are_symmetric_with_their_maximum_on_the_diagonal(sentence: Sentences) -> None:
    features = feedforward()(sentence.x)
    f = functional.dot_scores(features, features)
    assert_close(f, f.mT, atol=1e-12, rtol=1e-12)
    assert_close(f.flatten(1).amax(1), f.diagonal(dim1=1, dim2=2).amax(1), atol=1e-12, rtol=1e-12)


def test_a_constant_bias_knows_no_order_and_an_uneven_one_does(device: str) -> None:
    x, order = normal(0, 2, 7, FEATURES).to(device), torch.tensor([3, 1, 6, 0, 2, 5, 4], device=device)
    constant, uneven = DistancePrior(2, device=device, dtype=torch.float64), asymmetric_prior(2, device)
    nn.init.constant_(constant.bias, 0.7)
    for prior, blind in ((None, True), (constant, True), (uneven, False)):
        intra = IntraAlign(feedforward().to(device), prior=prior)
        difference = (intra(x[:, order]) - intra(x)[:, order]).abs().max().item()
        assert difference < 1e-12 if blind else difference > 1e-2


def test_peer_bug_7_the_distance_bias_acts(device: str) -> None:
    """Eq 7 as printed cancels its bias; ours does not, and ports without the bias differ from it."""
    x = normal(0, 1, 7, FEATURES)
    bias = asymmetric_prior(2).bias.tolist()
    f = oracles.scores(x[0].tolist(), x[0].tolist(), lambda word: word)

    def biased(distance: int) -> float:
        return oracles.bucket_bias(bias, distance, 2)

    literal = torch.tensor(oracles.intra_align_as_printed(x[0].tolist(), f, biased), dtype=torch.float64)
    without = torch.tensor(oracles.intra_align(x[0].tolist(), f, lambda _: 0.0), dtype=torch.float64)
    assert_close(literal, without, atol=1e-12, rtol=0)
    ours = IntraAlign(prior=asymmetric_prior(2, device))(x.to(device))[0].cpu()
    assert (ours - without).abs().max() > 1e-2


def test_far_words_keep_their_weight_wherever_they_stand(device: str) -> None:
    """All distances above 10 share one bias: a word moved from distance 11 to 40 keeps its weight."""
    intra = IntraAlign(prior=asymmetric_prior(10, device))
    x = torch.zeros(1, 60, FEATURES, dtype=torch.float64, device=device)
    x[0, 11] = 0.5
    mask = torch.zeros(1, 60, dtype=torch.bool, device=device)
    mask[0, [0, 1, 11]] = True
    near = intra.alignment_weights(x, mask)[0, 0, 11]
    far = intra.alignment_weights(
        x.roll(29, 1), torch.zeros_like(mask).index_fill(1, torch.tensor([0, 1, 40], device=device), True)
    )
    assert_close(far[0, 0, 40], near, atol=1e-14, rtol=0)


def test_the_trento_reports_denominators_do_not_normalise() -> None:
    """Its Eq 3 to the letter: the rows do not sum to 1 unless the lengths agree by luck; ours do."""
    scores = normal(0, 1, 7, 5)
    literal = torch.tensor(oracles.swapped_denominators(scores[0].tolist()), dtype=torch.float64)
    assert (literal.sum(1) - 1).abs().max() > 0.1
    beta_weights, alpha_weights = functional.alignment_weights(scores)
    assert_close(beta_weights.sum(2), torch.ones(1, 7, dtype=torch.float64))
    assert_close(alpha_weights.sum(2), torch.ones(1, 5, dtype=torch.float64))


def test_the_default_feedforward_is_the_plain_dot_product(device: str) -> None:
    premise, hypothesis = normal(0, 2, 7, FEATURES).to(device), normal(1, 2, 5, FEATURES).to(device)
    beta, _ = DecomposableAlign()(premise, hypothesis)
    expected = (premise @ hypothesis.mT).softmax(-1) @ hypothesis
    assert_close(beta, expected, atol=1e-12, rtol=1e-12)
    assert not list(DecomposableAlign().parameters()) and not list(IntraAlign().parameters())


def test_sentences_that_do_not_fit_are_refused() -> None:
    align = DecomposableAlign()
    with pytest.raises(ValueError, match=r"same batch and features, got \(2, 3, 4\) and \(2, 3, 5\)"):
        align(torch.ones(2, 3, 4), torch.ones(2, 3, 5))
    with pytest.raises(ValueError, match=r"same batch and features, got \(2, 3, 4\) and \(1, 3, 4\)"):
        align.alignment_weights(torch.ones(2, 3, 4), torch.ones(1, 3, 4))
    with pytest.raises(ValueError, match=r"premise must be floating point of shape \(batch, length, features\)"):
        align(torch.ones(3, 4), torch.ones(2, 3, 4))
    with pytest.raises(ValueError, match=r"hypothesis must be floating point .* got torch.int64"):
        align(torch.ones(2, 3, 4), torch.ones(2, 3, 4, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"x must be floating point .* got torch.float32 of shape \(3, 4\)"):
        IntraAlign()(torch.ones(3, 4))


@pytest.mark.parametrize("dtypes", [(torch.float16, torch.float32), (torch.float16, torch.bfloat16)])
def test_vectors_of_two_dtypes_are_refused_in_either_order(dtypes: tuple[torch.dtype, torch.dtype]) -> None:
    first, second = (torch.ones(1, 2, 3, dtype=dtype) for dtype in dtypes)
    for a, b in ((first, second), (second, first)):
        for scores in (lambda a, b: DecomposableAlign()(a, b), functional.dot_scores):
            with pytest.raises(RuntimeError, match=r"dtype|scalar type"):
                scores(a, b)


def test_peer_mask_convention_a_float_mask_is_refused() -> None:
    with pytest.raises(ValueError, match=r"premise_mask must be torch.bool of shape \(2, 3\) with True for real"):
        DecomposableAlign()(torch.ones(2, 3, 4), torch.ones(2, 3, 4), torch.ones(2, 3))


INTRA_PRIORS = {
    "none": (lambda: None, lambda d: 0.0),
    "Eq 3": (lambda: GaussianPrior(0.3, None), lambda d: oracles.gaussian_bias(0.3, 0.0, d)),
    "Eq 4": (lambda: GaussianPrior(0.3, -0.7), lambda d: oracles.gaussian_bias(0.3, -0.7, d)),
    "Eq 7": (lambda: asymmetric_prior(2), lambda d: oracles.bucket_bias(asymmetric_prior(2).bias.tolist(), d, 2)),
    "Eq 18": (ZipfPrior, oracles.zipf_bias),
    "Eq 20": (lambda: LinearPrior(-0.4), lambda d: oracles.linear_bias(-0.4, d)),
}


@pytest.mark.parametrize(("build", "beta"), INTRA_PRIORS.values(), ids=INTRA_PRIORS.keys())
@given(sentence=strategies.sentences())
def test_eqs_6_and_7_equal_the_loop_with_masks_and_every_prior(build, beta, sentence: Sentences) -> None:
    """Distances are those of positions, not of ranks among the real words."""
    F, prior = feedforward(), build()
    if prior is not None:
        prior = prior.double()
        if hasattr(prior, "initial_w"):
            prior.reset_parameters()
    ours = IntraAlign(F, prior=prior)(sentence.x, sentence.mask)
    for b, mask in enumerate(sentence.mask):
        a, positions = words(sentence.x[b], mask), mask.nonzero()[:, 0].tolist()
        f = oracles.scores(a, a, as_function(F))
        expected = torch.tensor(oracles.intra_align(a, f, beta, positions), dtype=torch.float64).view(-1, FEATURES)
        assert_close(ours[b][mask], expected, atol=1e-10, rtol=1e-9)
        assert torch.all(ours[b][~mask] == 0)


def test_a_prior_of_ones_own_is_told_both_lengths() -> None:
    class Strict(nn.Module):
        def forward(self, query_length: int, key_length: int) -> Tensor:
            return -(torch.arange(query_length)[:, None] - torch.arange(key_length)).abs().double()

    x, linear = normal(0, 2, 5, FEATURES), lambda d: -abs(d)
    expected = [oracles.intra_align(a, oracles.scores(a, a, lambda word: word), linear) for a in x.tolist()]
    assert_close(IntraAlign(prior=Strict())(x), torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=1e-9)


@given(sentence=strategies.sentences())
def test_intra_module_equals_function(sentence: Sentences) -> None:
    F, prior = feedforward(), asymmetric_prior(2)
    x, n = masking.zero_padding(sentence.x, sentence.mask), sentence.x.shape[1]
    a = functional.intra_alignment_weights(functional.dot_scores(F(x), F(x)), prior(n, n), sentence.mask)
    layer = IntraAlign(F, prior=prior)
    assert_close(layer(sentence.x, sentence.mask), functional.weighted_sum(a, x), atol=1e-12, rtol=1e-12)
    assert_close(layer.alignment_weights(sentence.x, sentence.mask), a, atol=1e-12, rtol=1e-12)


@given(pair=PAIRS)
def test_peer_bug_4_padding_is_masked_on_both_sides(pair: Sentences) -> None:
    """gluon-nlp and d2l take no mask. Here a padded pair is the pair without its padding."""
    align = DecomposableAlign(feedforward())
    beta, alpha = align(*pair.tensors, *pair.masks)
    for b in range(pair.x.shape[0]):
        a, h = (x[b : b + 1, mask[b]] for x, mask in zip(pair.tensors, pair.masks, strict=True))
        if a.shape[1] and h.shape[1]:
            for ours, theirs in zip((beta[b, pair.masks[0][b]], alpha[b, pair.masks[1][b]]), align(a, h), strict=True):
                assert_close(ours, theirs[0], atol=1e-12, rtol=1e-12)


def test_rotating_the_features_of_the_scores_leaves_the_alignment() -> None:
    F, rotation = feedforward(), torch.linalg.qr(normal(3, 11, 11)).Q

    class Rotated(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F(x) @ rotation

    a, b = normal(0, 2, 7, FEATURES), normal(1, 2, 5, FEATURES)
    for ours, theirs in zip(DecomposableAlign(Rotated())(a, b), DecomposableAlign(F)(a, b), strict=True):
        assert_close(ours, theirs, atol=1e-10, rtol=1e-10)
    assert_close(IntraAlign(Rotated())(a), IntraAlign(F)(a), atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (2, 4)])
def test_functions_refuse_masks_that_would_be_broadcast(shape: tuple[int, int]) -> None:
    scores, mask = torch.zeros(2, 3, 3), torch.ones(shape, dtype=torch.bool)
    calls = {
        "premise_mask": lambda: functional.alignment_weights(scores, mask),
        "hypothesis_mask": lambda: functional.align(scores, scores, scores, None, mask),
        "mask": lambda: functional.intra_alignment_weights(scores, None, mask),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=rf"^{name} must be torch.bool of shape \(2, 3\)"):
            call()
    with pytest.raises(ValueError, match=r"^hypothesis_mask must be torch\.bool"):
        functional.alignment_weights(scores, None, torch.ones(2, 3))


def test_a_word_alone_with_a_bias_against_itself_is_aligned_with_nothing() -> None:
    prior = DistancePrior(1, dtype=torch.float64)
    prior.bias.data[1] = float("-inf")
    layer, x = IntraAlign(prior=prior), normal(1, 2, 3, FEATURES).requires_grad_()
    y = layer(x, torch.tensor([[True, False, False], [True, True, True]]))
    assert torch.all(y[0] == 0) and torch.all(y[1] != 0)
    y.sum().backward()
    assert x.grad is not None and torch.all(x.grad.isfinite()) and torch.all(prior.bias.grad.isfinite())


@pytest.mark.parametrize("function", [lambda t: 1 / (t.abs() + 1e-20), lambda t: torch.where(t == 0, 1e20, t)])
@pytest.mark.parametrize("prior", [None, DistancePrior()])
def test_padding_whose_scores_overflow_matters_to_none(function, prior: nn.Module | None) -> None:
    """A function that is finite at 0, and whose products there are not."""
    x, mask = (torch.rand(1, 6, 4) + 1).requires_grad_(), torch.arange(6)[None] < 3
    layer = IntraAlign(function, prior=prior)
    y = layer(x, mask)
    assert_close(y[:, :3], layer(x[:, :3]))
    assert torch.all(y[:, 3:] == 0)
    y.sum().backward()
    assert torch.all(x.grad.isfinite())


@pytest.mark.parametrize(("dtype", "eps"), [(torch.float32, 1e-12), (torch.bfloat16, 1e-12), (torch.float16, 1e-6)])
def test_vectors_of_unit_length_may_be_compared(dtype: torch.dtype, eps: float) -> None:
    """As their documentation says: normalised, padding has a finite slope."""
    premise, hypothesis = (normal(seed, 1, 3, 4).to(dtype).requires_grad_() for seed in (0, 1))
    mask = torch.tensor([[True, True, False]])
    network = partial(nn.functional.normalize, dim=-1, eps=eps)
    beta, alpha = DecomposableAlign(network)(premise, hypothesis, mask, mask)
    (beta.sum() + alpha.sum() + IntraAlign(network)(premise, mask).sum()).backward()
    assert premise.grad.isfinite().all() and hypothesis.grad.isfinite().all()


def test_weights_that_are_written_to_stop_what_arrives_at_padding_too() -> None:
    """An operation in place gives a tensor another history than the one that it came with."""
    x = normal(0, 2, 4, FEATURES).requires_grad_()
    mask = masking.lengths_to_mask(torch.tensor([4, 2]))
    for weights in (
        *DecomposableAlign().alignment_weights(x, x, mask, mask),
        IntraAlign().alignment_weights(x, mask),
    ):
        weights.add_(0.0)
        (grad,) = torch.autograd.grad(weights.sqrt().sum(), x, retain_graph=True)  # infinite at a weight of 0
        assert grad.isfinite().all() and grad[0].ne(0).any()


class Lowered(nn.Module):
    """A network that runs under an autocast of its own, and gives half-precision features of words that are not."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype, self.linear = dtype, nn.Linear(FEATURES, 11)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", self.dtype):
            features: Tensor = self.linear(x)
        return features


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_network_may_give_features_of_another_dtype(dtype: torch.dtype) -> None:
    network, x, y = Lowered(dtype), normal(1, 2, 4, FEATURES).float(), normal(2, 2, 3, FEATURES).float()
    assert network(x).dtype == dtype
    for layer, whole, sentences in (
        (DecomposableAlign(network), DecomposableAlign(network.linear), (x, y)),
        (IntraAlign(network), IntraAlign(network.linear), (x,)),
    ):
        for ours, expected in zip(layer(*sentences), whole(*sentences), strict=True):
            assert ours.dtype == torch.float32
            assert_close(ours, expected, atol=0.02, rtol=0.02)
