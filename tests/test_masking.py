"""masking: distributions at any scale, pools over real tokens alone, errors that name what came."""

import math
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

import oracles
import strategies
from nlilayers import masking
from strategies import normal


@given(data=st.data(), seed=strategies.seeds, scale=st.sampled_from([0.0, 1.0, 30.0, 1e4]))
def test_masked_softmax_equals_the_loop(device: str, data: st.DataObject, seed: int, scale: float) -> None:
    mask = data.draw(strategies.masks(3, 6))
    scores = normal(seed, 3, 6, scale=scale)
    ours = masking.masked_softmax(scores.to(device), mask.to(device))
    for row, row_mask, row_scores in zip(ours.tolist(), mask.tolist(), scores.tolist(), strict=True):
        real = [s for s, keep in zip(row_scores, row_mask, strict=True) if keep]
        expected = iter(oracles.softmax(real)) if real else iter(())
        assert row == pytest.approx([next(expected) if keep else 0.0 for keep in row_mask], abs=1e-12)


@pytest.mark.parametrize("dim", [1, 2, -1])
def test_a_token_mask_covers_the_dimension_that_sums_to_one(device: str, dim: int) -> None:
    scores = normal(0, 2, 3, 5).to(device)
    length = scores.shape[dim]
    mask = (torch.arange(length) < torch.tensor([[1], [length]])).to(device)
    ours = masking.masked_softmax(scores, mask, dim)
    view = mask[:, :, None] if dim == 1 else mask[:, None, :]
    assert torch.equal(ours, masking.masked_softmax(scores, view.expand_as(scores), dim))
    assert_close(ours.sum(dim), torch.ones_like(ours.sum(dim)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("top", [-60.0, -30.0, 0.0, 3e4])
def test_peer_bug_2_rows_sum_to_one_at_any_logit_scale(device: str, dtype: torch.dtype, top: float) -> None:
    scores = (normal(1, 4, 7) + top).to(dtype).to(device)
    mask = torch.arange(7, device=device) < torch.tensor([[7], [3], [1], [5]], device=device)
    weights = masking.masked_softmax(scores, mask)
    assert weights.dtype == dtype
    tolerance = {torch.bfloat16: 2e-2, torch.float16: 2e-3}.get(dtype, 1e-6)
    assert_close(weights.double().sum(-1), torch.ones(4, dtype=torch.float64, device=device), atol=tolerance, rtol=0)


def test_peer_bug_2_shift_invariance(device: str) -> None:
    scores, mask = normal(2, 3, 5).to(device), torch.arange(5, device=device) < 4
    mask = mask.expand(3, 5)
    assert_close(masking.masked_softmax(scores - 500, mask), masking.masked_softmax(scores, mask), atol=1e-12, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_peer_bugs_1_and_3_a_mask_is_a_mask_in_half_precision(device: str, dtype: torch.dtype) -> None:
    scores = torch.tensor([[1.0, 2.0, 60000.0]], device=device).to(dtype)
    weights = masking.masked_softmax(scores, torch.tensor([[True, True, False]], device=device))
    assert weights[0, 2] == 0
    assert_close(weights[0, :2].float(), torch.tensor([1.0, 2.0], device=device).softmax(0), atol=1e-2, rtol=0)


def test_peer_bug_2_a_mask_holds_below_any_score(device: str) -> None:
    scores = torch.tensor([[-1e30, -1e30, 0.0]], device=device)
    weights = masking.masked_softmax(scores, torch.tensor([[True, True, False]], device=device))
    assert weights.tolist() == [[0.5, 0.5, 0.0]]


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_masked_softmax_is_computed_in_at_least_float32(device: str, dtype: torch.dtype, masked: bool) -> None:
    computed_in: list[torch.dtype] = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            if function is torch.ops.aten._softmax.default:
                computed_in.append(arguments[0].dtype)
            return function(*arguments, **(options or {}))

    scores = torch.linspace(-4, 4, 64, device=device).to(dtype)[None]
    with Recorder():
        weights = masking.masked_softmax(scores, scores < 3 if masked else None)
    assert weights.dtype == dtype
    assert computed_in == [torch.float64 if dtype == torch.float64 else torch.float32]


def test_masked_scores_pass_no_gradient_and_empty_rows_pass_zero(device: str) -> None:
    scores = torch.tensor([[0.3, float("nan"), 0.1], [float("inf"), 1.0, 2.0]], device=device, requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, False, False]], device=device)
    with torch.autograd.detect_anomaly(check_nan=True):
        masking.masked_softmax(scores, mask)[:, 0].sum().backward()
    assert scores.grad is not None and torch.isfinite(scores.grad).all()
    assert scores.grad[0, 0] != 0 and scores.grad[0, 1] == 0 and torch.all(scores.grad[1] == 0)


@given(sentence=strategies.sentences())
def test_pools_equal_their_loops(device: str, sentence: strategies.Sentences) -> None:
    garbled = sentence.x.masked_fill(~sentence.mask[..., None], float("nan")).to(device)
    mask = sentence.mask.to(device)
    sums, means, maxima = (
        pool(garbled, mask).tolist() for pool in (masking.masked_sum, masking.masked_mean, masking.masked_max)
    )
    for b, (words, keep) in enumerate(zip(sentence.x.tolist(), sentence.mask.tolist(), strict=True)):
        real = [word for word, k in zip(words, keep, strict=True) if k]
        for c in range(sentence.x.shape[2]):
            column = [word[c] for word in real]
            assert sums[b][c] == pytest.approx(math.fsum(column), abs=1e-12)
            assert means[b][c] == pytest.approx(math.fsum(column) / len(column) if column else 0.0, abs=1e-12)
            assert maxima[b][c] == (max(column) if column else 0.0)


@pytest.mark.parametrize("pool", [masking.masked_sum, masking.masked_mean, masking.masked_max])
class TestEveryPool:
    def test_gradcheck(self, pool, device: str) -> None:
        x = normal(3, 3, 4, 5).to(device).requires_grad_()
        mask = torch.tensor([[True, False, True, True], [False] * 4, [True] * 4], device=device)
        assert torch.autograd.gradcheck(lambda x: pool(x, mask), x)

    def test_no_gradient_reaches_padding(self, pool, device: str) -> None:
        mask = torch.tensor([[True, False], [False, False]], device=device)
        x = torch.full((2, 2, 3), float("nan"), device=device).masked_fill(mask[..., None], 1.5).requires_grad_()
        pool(x, mask).sum().backward()
        assert x.grad is not None and torch.all(x.grad[~mask] == 0) and torch.all(x.grad[mask] == 1)

    def test_no_mask_means_all_real(self, pool, device: str) -> None:
        x = normal(4, 2, 3, 5).to(device)
        assert torch.equal(pool(x, None), pool(x, torch.ones(2, 3, dtype=torch.bool, device=device)))

    @pytest.mark.parametrize("masked", [True, False])
    def test_no_words_and_no_sentences(self, pool, device: str, masked: bool) -> None:
        for shape in ((2, 0, 3), (0, 4, 3)):
            mask = torch.ones(shape[:2], dtype=torch.bool, device=device) if masked else None
            assert torch.equal(pool(torch.ones(shape, device=device), mask), torch.zeros(shape[0], 3, device=device))

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_dtype_stays(self, pool, device: str, dtype: torch.dtype) -> None:
        x = torch.ones(1, 3, 2, device=device, dtype=dtype)
        assert pool(x, torch.ones(1, 3, dtype=torch.bool, device=device)).dtype == dtype

    def test_refuses_other_masks_and_shapes(self, pool) -> None:
        with pytest.raises(ValueError, match=r"mask must be torch.bool of shape \(2, 3\).* got torch.float32"):
            pool(torch.ones(2, 3, 4), torch.ones(2, 3))
        with pytest.raises(ValueError, match=r"mask must be .*\(2, 3\).* got torch.bool of shape \(3, 2\)"):
            pool(torch.ones(2, 3, 4), torch.ones(3, 2, dtype=torch.bool))
        with pytest.raises(ValueError, match=r"x must be floating point of shape \(batch, length, features\)"):
            pool(torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool))
        with pytest.raises(ValueError, match=r"x must be floating point .* got torch.int64 of shape \(2, 3, 4\)"):
            pool(torch.ones(2, 3, 4, dtype=torch.int64), torch.ones(2, 3, dtype=torch.bool))


def test_the_mean_of_many_large_halves_does_not_overflow(device: str) -> None:
    x = torch.full((1, 4096, 1), 100.0, dtype=torch.float16, device=device)
    assert masking.masked_mean(x, None).item() == 100.0


def test_tied_maxima_share_the_gradient(device: str) -> None:
    x = torch.tensor([[[2.0], [2.0], [1.0]]], device=device, requires_grad=True)
    masking.masked_max(x, torch.ones(1, 3, dtype=torch.bool, device=device)).sum().backward()
    assert x.grad is not None and x.grad.flatten().tolist() == [0.5, 0.5, 0.0]


@given(lengths=st.lists(st.integers(0, 6), max_size=4), extra=st.integers(0, 3), given_width=st.booleans())
def test_lengths_to_mask_counts_to_the_lengths(lengths: list[int], extra: int, given_width: bool) -> None:
    width = max(lengths, default=0) + (extra if given_width else 0)
    mask = masking.lengths_to_mask(torch.tensor(lengths, dtype=torch.long), width if given_width else None)
    assert mask.dtype == torch.bool and mask.shape == (len(lengths), width)
    assert mask.tolist() == [[i < real for i in range(width)] for real in lengths]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"])
def test_lengths_are_of_any_integer_type(dtype: str) -> None:
    lengths = torch.tensor([2, 0]).to(getattr(torch, dtype))
    expected = [[True, True, False], [False, False, False]]
    assert masking.lengths_to_mask(lengths, 3).tolist() == expected
    assert masking.lengths_to_mask(lengths, torch.tensor(3)).tolist() == expected
    assert masking.lengths_to_mask(lengths).shape == (2, 2)


def test_lengths_to_mask_refuses_what_is_no_length() -> None:
    with pytest.raises(ValueError, match=r"lengths must be integers of shape \(batch,\), got torch.float32"):
        masking.lengths_to_mask(torch.tensor([1.0]))
    with pytest.raises(ValueError, match=r"lengths must be integers .* got torch.bool of shape \(1,\)"):
        masking.lengths_to_mask(torch.tensor([True]))
    with pytest.raises(ValueError, match=r"lengths must be integers .* of shape \(1, 1\)"):
        masking.lengths_to_mask(torch.tensor([[1]]))
    with pytest.raises(ValueError, match=r"between 0 and max_length=2, got values from 1 to 3"):
        masking.lengths_to_mask(torch.tensor([1, 3]), 2)
    with pytest.raises(ValueError, match=r"lengths must be at least 0, got values from -1 to 3"):
        masking.lengths_to_mask(torch.tensor([-1, 3]))
    with pytest.raises(ValueError, match=r"between 0 and max_length=3, got values from -1 to 3"):
        masking.lengths_to_mask(torch.tensor([-1, 3]), 3)


def test_lengths_to_mask_reads_the_lengths_once() -> None:
    """Each number that is read waits for the device."""
    read: list[object] = []

    class Reads(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            if function in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.max.default):
                read.append(function)
            return function(*arguments, **(options or {}))

    for width in (None, 4):
        read.clear()
        with Reads():
            masking.lengths_to_mask(torch.tensor([1, 3]), width)
        assert len(read) == 1


def test_lengths_to_mask_compiles_in_one_graph() -> None:
    compiled = torch.compile(lambda n: masking.lengths_to_mask(n, 5), fullgraph=True, backend="aot_eager")
    lengths = torch.tensor([0, 2, 5])
    assert torch.equal(compiled(lengths), masking.lengths_to_mask(lengths, 5))


def test_lengths_to_mask_refuses_complex_numbers_and_counts_nothing_of_nothing() -> None:
    with pytest.raises(ValueError, match=r"^lengths must be integers of shape \(batch,\), got torch.complex64"):
        masking.lengths_to_mask(torch.tensor([1j]))
    for width, expected in ((None, 0), (3, 3)):
        assert masking.lengths_to_mask(torch.tensor([], dtype=torch.long), width).shape == (0, expected)


@pytest.mark.usefixtures("compiling")
def test_compiled_code_leaves_out_the_look_at_the_lengths() -> None:
    assert masking.lengths_to_mask(torch.tensor([5, 0]), 2).tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize("shape", [(2, 1, 5), (2, 3, 1), (1, 3, 5), (1, 1, 1)])
def test_a_mask_of_ones_in_its_shape_is_spread(shape: tuple[int, ...]) -> None:
    scores, mask = normal(0, 2, 3, 5), normal(1, *shape) > -0.5
    whole = masking.masked_softmax(scores, mask.expand(2, 3, 5))
    assert torch.equal(masking.masked_softmax(scores, mask), whole)


def test_masked_softmax_refuses_masks_that_fit_neither_form() -> None:
    scores = torch.ones(2, 3, 5)
    for wrong in (torch.ones(2, 3, 5), torch.ones(2, 3) > 0, torch.ones(3, 5) > 0, torch.ones(2, 3, 4) > 0):
        with pytest.raises(ValueError, match=r"mask must be torch.bool .* broadcasts to \(2, 3, 5\)") as error:
            masking.masked_softmax(scores, wrong)
        assert f"got {wrong.dtype} of shape {tuple(wrong.shape)}" in str(error.value)
    with pytest.raises(ValueError, match=r"mask must be"):
        masking.masked_softmax(torch.ones(3, 3, 5), torch.ones(3, 3) > 0, dim=0)
    with pytest.raises(ValueError, match=r"scores must be floating point, got torch.int64 of shape \(2,\)"):
        masking.masked_softmax(torch.ones(2, dtype=torch.int64), None)


def test_pair_mask_is_an_outer_and(device: str) -> None:
    queries = torch.tensor([[True, False, True]], device=device)
    keys = torch.tensor([[True, False]], device=device)
    both = masking.pair_mask(queries, keys)
    assert both is not None and both.tolist() == [[[True, False], [False, False], [True, False]]]
    one, other = masking.pair_mask(queries, None), masking.pair_mask(None, keys)
    assert one is not None and one.shape == (1, 3, 1) and other is not None and other.shape == (1, 1, 2)
    assert masking.pair_mask(None, None) is None


@given(sentence=strategies.sentences(), data=st.data())
def test_pools_know_neither_order_nor_repetition(sentence: strategies.Sentences, data: st.DataObject) -> None:
    """Max and mean are the same for a sentence said twice, and the sum doubles; the max is never below the mean."""
    x, mask = sentence.x, sentence.mask
    order = torch.tensor(data.draw(st.permutations(range(x.shape[1]))))
    for pool, factor in ((masking.masked_max, 1), (masking.masked_mean, 1), (masking.masked_sum, 2)):
        once = pool(x, mask)
        assert_close(pool(x[:, order], mask[:, order]), once, atol=1e-12, rtol=1e-12)
        assert_close(pool(x.repeat(1, 2, 1), mask.repeat(1, 2)), factor * once, atol=1e-12, rtol=1e-12)
    assert torch.all(masking.masked_max(x, mask) >= masking.masked_mean(x, mask) - 1e-12)


def test_the_maximum_of_negative_words_is_not_the_0_of_padding() -> None:
    x = torch.tensor([[[-3.0], [-2.0], [0.0]]])
    mask = torch.tensor([[True, True, False]])
    assert masking.masked_max(x, mask).item() == -2 and masking.masked_mean(x, mask).item() == -2.5


def test_a_program_for_rectangles_of_scores_takes_squares_too() -> None:
    """Two sentences of one length: no comparison of their lengths may stand in the graph."""

    class Softmax(torch.nn.Module):
        def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return masking.masked_softmax(scores, mask)

    axes = dict(enumerate(torch.export.Dim(name, max=64) for name in ("batch", "premise", "hypothesis")))
    seen, square = ((normal(0, 2, n, 5), normal(1, 2, n, 5) > 0) for n in (3, 5))
    program = torch.export.export(Softmax(), seen, dynamic_shapes=(axes, axes)).module()
    assert torch.equal(program(*square), masking.masked_softmax(*square))


def test_lengths_are_not_read_in_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = torch.tensor([2, 9])
    with pytest.raises(ValueError, match="between 0 and max_length=3"):
        masking.lengths_to_mask(lengths, max_length=3)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert masking.lengths_to_mask(lengths, max_length=3).sum(dim=1).tolist() == [2, 3]


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_lengths_without_numbers_are_not_looked_at(mode: str) -> None:
    traced = make_fx(lambda lengths: masking.lengths_to_mask(lengths, 5), tracing_mode=mode)(torch.tensor([1, 2]))
    assert torch.equal(traced(torch.tensor([4, 0])), masking.lengths_to_mask(torch.tensor([4, 0]), 5))


class Masks(torch.nn.Module):
    def forward(self, lengths: torch.Tensor) -> torch.Tensor:
        return masking.lengths_to_mask(lengths)


@pytest.mark.parametrize("strict", [True, False])
def test_lengths_to_mask_is_exported_for_lengths_of_any_size(strict: bool) -> None:
    program = torch.export.export(Masks(), (torch.tensor([2, 3]),), strict=strict).module()
    assert torch.equal(program(torch.tensor([5, 1])), masking.lengths_to_mask(torch.tensor([5, 1])))


def test_lengths_to_mask_is_traced_for_lengths_of_any_size() -> None:
    with warnings.catch_warnings(action="ignore"):  # it is deprecated, and says that a length may be kept
        program = torch.jit.trace(Masks(), (torch.tensor([2, 3]),))
    assert torch.equal(program(torch.tensor([5, 1])), masking.lengths_to_mask(torch.tensor([5, 1])))


def test_a_row_of_minus_infinity_is_nan_as_in_torch_and_beside_others_it_is_0() -> None:
    scores = torch.tensor([[-math.inf, 1.0, 2.0], [-math.inf, -math.inf, 2.0]])
    mask = torch.tensor([[True, True, False]])
    weights = masking.masked_softmax(scores, mask)
    assert weights[0].tolist() == [0, 1, 0] and weights[1].isnan().all()
