"""Numbers set to 0 by their bits: what a choice between two numbers gives, under everything that differentiates it."""

import math

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from nlilayers._zeroing import stop_gradients, zero_masked

NUMBERS = [1.5, -2.0, -0.0, math.nan, math.inf, -math.inf]
KEPT = torch.tensor([True, False, True, False, False, True])


def bits(x: torch.Tensor) -> torch.Tensor:
    return x.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.dtype.itemsize])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e5m2])
def test_it_is_the_choice_bit_by_bit(device: str, dtype: torch.dtype) -> None:
    x = torch.tensor(NUMBERS, device=device).to(dtype)
    zeroed = zero_masked(x, KEPT.to(device))
    assert zeroed.dtype == dtype and zeroed.device.type == device
    if dtype == torch.float8_e5m2:
        x, zeroed = x.half(), zeroed.half()
    assert torch.equal(bits(zeroed), bits(torch.where(KEPT.to(device), x, 0)))
    assert torch.equal(bits(zeroed)[~KEPT.to(device)], torch.zeros_like(bits(zeroed)[:3]))


def test_any_strides_and_no_numbers() -> None:
    mask = torch.rand(4, 5, 1) < 0.5
    whole = torch.randn(4, 5, 6)
    for x in (whole.transpose(0, 2)[:4, :, :3], whole[:, :1, :1].expand(4, 5, 3), whole[..., ::2]):
        assert torch.equal(zero_masked(x, mask), torch.where(mask, x, 0))
    assert zero_masked(torch.randn(2, 0, 3), torch.ones(2, 0, 1).bool()).shape == (2, 0, 3)
    assert zero_masked(torch.randn(0, 2, 3), torch.ones(0, 2, 1).bool()).shape == (0, 2, 3)


def test_numbers_that_are_the_negative_of_those_in_memory() -> None:
    """As the imaginary parts of conjugates are, which share the memory of what they were made from."""
    x = torch.complex(torch.ones(6), torch.tensor(NUMBERS)).conj().imag
    assert x.is_neg()
    assert torch.equal(bits(zero_masked(x, KEPT)), bits(torch.where(KEPT, x, 0)))
    y = torch.ones(6, requires_grad=True)
    z = torch.complex(torch.zeros(6), zero_masked(y, KEPT))
    (gradient,) = torch.autograd.grad((z.conj() * torch.complex(torch.ones(6), torch.ones(6))).real.sum(), y)
    assert gradient.abs().tolist() == KEPT.float().tolist()


def test_what_only_stands_for_numbers_is_chosen_from() -> None:
    """A subclass may hold a part of them alone, as a sharded tensor does: its bits are not those that are meant."""

    class Part(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            assert function is not torch.Tensor.view
            return super().__torch_function__(function, types, args, kwargs)

    x, mask = torch.randn(2, 3, 4), torch.rand(2, 3, 1) < 0.5
    zeroed = zero_masked(x.as_subclass(Part), mask)
    assert type(zeroed) is Part and torch.equal(zeroed.as_subclass(torch.Tensor), torch.where(mask, x, 0))


def test_what_is_given_stays_as_it_is() -> None:
    x = torch.tensor(NUMBERS)
    zero_masked(x, KEPT).fill_(7)
    assert torch.equal(bits(x), bits(torch.tensor(NUMBERS)))


def test_gradients_pass_where_numbers_are_kept() -> None:
    x, mask = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True), torch.rand(2, 3, 1) < 0.5
    given = x, mask
    assert torch.autograd.gradcheck(zero_masked, given, check_batched_grad=True, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda *given: zero_masked(*given).pow(3), given, check_batched_grad=True)
    (gradient,) = torch.autograd.grad(zero_masked(x, mask), x, torch.full_like(x, math.nan))
    assert torch.equal(gradient.isnan(), mask.expand(2, 3, 4))
    parameter = nn.Parameter(x.detach())
    zero_masked(parameter, mask).sum().backward()
    assert torch.equal(parameter.grad, mask.expand(2, 3, 4).double())


def test_transformed_code_chooses() -> None:
    x, mask = torch.randn(2, 3, 4), torch.rand(2, 3, 1) < 0.5
    expected = torch.where(mask, x, 0)
    assert_close(torch.func.vmap(zero_masked)(x, mask), expected)
    assert_close(torch.func.grad(lambda x: zero_masked(x, mask).square().sum())(x), 2 * expected)
    assert_close(torch.func.jvp(lambda x: zero_masked(x, mask), (x,), (x,))[1], expected)
    with forward_ad.dual_level():
        assert_close(forward_ad.unpack_dual(zero_masked(forward_ad.make_dual(x, x), mask)).tangent, expected)
    assert zero_masked(x.to("meta"), mask.to("meta")).is_meta
    with pytest.warns((DeprecationWarning, FutureWarning), match="jit.trace"):
        traced = torch.jit.trace(zero_masked, (x, mask))
    assert_close(traced(2 * x, ~mask), torch.where(mask, 0, 2 * x))


class TestStopGradients:
    """What arrives at padding goes no further, whatever is done with the result."""

    MASK = torch.tensor([[True, True, False]])

    @staticmethod
    def made(x: torch.Tensor) -> torch.Tensor:
        return stop_gradients(x**2 * TestStopGradients.MASK[..., None], TestStopGradients.MASK)

    @pytest.mark.parametrize(
        "use",
        [
            lambda y: y / y.norm(dim=-1, keepdim=True),
            lambda y: y.add_(0).div_(y.detach().norm(dim=-1, keepdim=True)),
            lambda y: checkpoint(torch.log, y, use_reentrant=False),
            lambda y: y.log().unbind(1)[0][:, None].expand_as(y),
        ],
        ids=["divided", "in place", "checkpointed", "in part"],
    )
    def test_it_reaches_nothing(self, use) -> None:
        x = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]], dtype=torch.float64, requires_grad=True)
        y = use(self.made(x)).masked_fill(~self.MASK[..., None], 0)
        (first,) = torch.autograd.grad((y**3).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x, allow_unused=True, materialize_grads=True)
        assert first.isfinite().all() and first[0, 2].eq(0).all() and first[0, 0].ne(0).any()
        assert second.isfinite().all() and second[0, 2].eq(0).all()

    def test_what_was_made_beside_it_is_left_alone(self) -> None:
        x = torch.ones(2, 1, 3, 1, requires_grad=True)
        first, second = x.unbind(0)
        garbage = torch.tensor([[[1.0], [1.0], [math.nan]]])
        (grad,) = torch.autograd.grad([first, stop_gradients(second, self.MASK)], x, [garbage, garbage])
        assert torch.equal(grad.flatten()[[0, 1, 3, 4, 5]], torch.tensor([1.0, 1, 1, 1, 0])) and grad[0, 0, 2].isnan()

    def test_compiled_it_stops_them_too(self) -> None:
        x = torch.ones(1, 3, 2, requires_grad=True)
        y = torch.compile(self.made, backend="aot_eager", fullgraph=True)(x)
        (grad,) = torch.autograd.grad(y, x, torch.full_like(y, 3.0).masked_fill(~self.MASK[..., None], math.nan))
        assert grad.flatten().tolist() == [6.0] * 4 + [0.0] * 2

    def test_transformed_and_traced_it_stops_them_too(self) -> None:
        x, garbage = torch.ones(1, 3, 2), torch.full((1, 3, 2), 3.0).masked_fill(~self.MASK[..., None], math.nan)
        _, pull_back = torch.func.vjp(self.made, x)
        with pytest.warns((DeprecationWarning, FutureWarning), match="jit.trace"):
            traced = torch.jit.trace(self.made, x)
        leaf = x.requires_grad_()
        for grad in (*pull_back(garbage), *torch.autograd.grad(traced(leaf), leaf, garbage)):
            assert grad.flatten().tolist() == [6.0] * 4 + [0.0] * 2

    def test_gradients_and_their_own_are_right(self) -> None:
        x = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]], dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(self.made, x) and torch.autograd.gradgradcheck(self.made, x)

    def test_without_gradients_it_is_what_it_was_given(self) -> None:
        y = torch.ones(1, 3, 2)
        assert stop_gradients(y, self.MASK) is y and stop_gradients(y, None) is y
        assert (
            torch.func.grad(lambda x: self.made(x).sum())(torch.ones(1, 3, 2)).flatten().tolist()
            == [2.0] * 4 + [0.0] * 2
        )
