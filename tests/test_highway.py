"""Highway layers: Tay et al. 2018, Eq 1, and the laws of PAPERS that follow from it."""

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

import laws
import oracles
import strategies
from nlilayers import Highway, functional
from strategies import normal

N, R = 5, 3
OUT = st.sampled_from([N, R, None])


def highway(out: int | None = R, layers: int = 1, seed: int = 0, **options) -> Highway:
    return laws.randomised(Highway(N, out, layers, **options), seed)


def gated(layer: Highway, value: float) -> Highway:
    """Every gate open (+inf) or shut (-inf)."""
    for gate in layer.gates:
        nn.init.zeros_(gate.weight)
        nn.init.constant_(gate.bias, value)
    return layer


def parts(layer: Highway, x: Tensor) -> tuple[Tensor, Tensor]:
    """H and P of a layer alone."""
    carried = x if layer.projection is None else layer.projection(x)
    return layer.transforms[0](x).relu(), carried


@given(seed=strategies.seeds, out=OUT, layers=st.integers(1, 3), scale=strategies.scales)
def test_eq_1_equals_the_loop(device: str, seed: int, out: int | None, layers: int, scale: float) -> None:
    layer, x = highway(out, layers, seed % 1000), normal(seed, 2, 3, N, scale=scale)
    ours = copy.deepcopy(layer).to(device)(x.to(device)).cpu()

    def lists(linear: nn.Linear) -> tuple:
        return linear.weight.tolist(), linear.bias.tolist()

    def loop(word: list[float]) -> list[float]:
        for k in range(layers):
            projection = lists(layer.projection) if k == 0 and layer.projection is not None else None
            word = oracles.highway(word, lists(layer.transforms[k]), lists(layer.gates[k]), projection)
        return word

    expected = torch.tensor([[loop(word) for word in words] for words in x.tolist()], dtype=torch.float64)
    assert_close(ours, expected, atol=1e-10, rtol=1e-9)


@given(seed=strategies.seeds, out=OUT)
def test_a_shut_gate_carries_and_an_open_one_transforms(seed: int, out: int | None) -> None:
    x, layer = normal(seed, 4, N), highway(out, seed=seed % 1000)
    transformed, carried = parts(layer, x)
    assert torch.equal(gated(layer, -math.inf)(x), carried)
    assert torch.equal(gated(layer, math.inf)(x), transformed)
    if out in (N, None):
        assert torch.equal(gated(highway(out, layers=3), -math.inf)(x), x)


@given(seed=strategies.seeds, out=OUT)
def test_outputs_lie_between_what_is_carried_and_what_is_transformed(seed: int, out: int | None) -> None:
    x, layer = normal(seed, 4, N), highway(out, seed=seed % 1000)
    transformed, carried = parts(layer, x)
    y = layer(x)
    assert torch.all(y <= torch.maximum(transformed, carried) + 1e-12)
    assert torch.all(y >= torch.minimum(transformed, carried) - 1e-12)
    assert torch.all(transformed >= 0)


@given(seed=strategies.seeds)
def test_equal_branches_make_the_gate_irrelevant(seed: int) -> None:
    both, gate = normal(seed, 4, N), normal(seed + 1, 4, N, scale=5)
    assert_close(functional.highway(both, both, gate), both, atol=1e-12, rtol=1e-12)


@given(seed=strategies.seeds)
def test_with_constant_branches_the_gradient_is_what_the_gate_lets_by(seed: int) -> None:
    layer = highway(None, seed=seed % 1000)
    for linear in (layer.transforms[0], layer.gates[0]):
        nn.init.zeros_(linear.weight)
    jacobian = torch.autograd.functional.jacobian(layer, normal(seed, N))
    assert_close(jacobian, (1 - layer.gates[0].bias.sigmoid()).diag(), atol=1e-12, rtol=1e-12)


@given(seed=strategies.seeds)
def test_words_do_not_see_each_other(seed: int) -> None:
    layer, x = highway(layers=2, seed=seed % 1000), normal(seed, 2, 7, N)
    order = torch.tensor([3, 1, 6, 0, 2, 5, 4])
    assert_close(layer(x[:, order]), layer(x)[:, order], atol=1e-12, rtol=1e-12)
    assert_close(layer(x[0, 2]), layer(x)[0, 2], atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("out", [N, R])
def test_gradcheck(out: int, layers: int) -> None:
    layer = highway(out, layers, activation=torch.tanh)
    names = [name for name, _ in layer.named_parameters()]

    def call(x: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,))

    parameters = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    assert torch.autograd.gradcheck(call, (normal(0, 4, N).requires_grad_(), *parameters))


def test_module_equals_function() -> None:
    layer, x = highway(), normal(0, 2, 3, N)
    transformed, carried = parts(layer, x)
    assert torch.equal(layer(x), functional.highway(carried, transformed, layer.gates[0](x)))


def test_a_third_matrix_exactly_where_the_widths_differ() -> None:
    def count(*sizes: int) -> int:
        return sum(p.numel() for p in Highway(*sizes, device="meta").parameters())

    def linear(n: int, r: int) -> int:
        return n * r + r

    assert count(300) == count(300, 300) == 2 * linear(300, 300)
    assert count(620, 300) == 3 * linear(620, 300)
    assert count(620, 300, 2) == 3 * linear(620, 300) + 2 * linear(300, 300)
    assert Highway(5).projection is None and Highway(5, 5, 2).projection is None


def test_the_projection_is_linear() -> None:
    layer, x = gated(highway(), -math.inf), normal(0, 4, N)
    nn.init.zeros_(layer.projection.bias)
    assert_close(layer(-2 * x), -2 * layer(x), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("activation", [torch.tanh, nn.GELU()])
def test_the_activation_is_the_callers(activation) -> None:
    layer, x = gated(highway(activation=activation), math.inf), normal(0, 4, N)
    assert_close(layer(x), activation(layer.transforms[0](x)), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("activation", [torch.relu, nn.Tanh()])
@pytest.mark.parametrize("layers", [1, 2])
def test_what_is_projected_can_be_activated(activation, layers: int) -> None:
    """The paper calls the projection nonlinear; where the widths match there is none, and x is carried as it is."""
    x = normal(0, 4, N)
    layer, linear = (highway(R, layers, projection_activation=act) for act in (activation, None))
    assert torch.equal(gated(layer, -math.inf)(x), activation(gated(linear, -math.inf)(x)))
    assert torch.equal(highway(N, layers, projection_activation=activation)(x), highway(N, layers)(x))
    assert (layer(x) != linear(x)).any() and layer.state_dict().keys() == linear.state_dict().keys()


@pytest.mark.parametrize(("sizes", "least"), [((300,), 0.8), ((620, 300), 0.8), ((620, 300, 2), 0.7)])
def test_initialisation_keeps_the_variance(sizes: tuple[int, ...], least: float) -> None:
    y = Highway(*sizes)(torch.randn(1000, sizes[0]))
    assert least < y.var().item() < 1.1


def test_the_gate_starts_at_carry() -> None:
    layer, x = Highway(300, num_layers=4), torch.randn(100, 300, requires_grad=True)
    y = layer(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert 0.6 < gradient.mean().item() < 1
    assert torch.corrcoef(torch.stack((x.flatten(), y.flatten())))[0, 1] > 0.9


def test_reset_parameters_draws_anew_and_leaves_the_activation() -> None:
    layer = Highway(N, R, 2, activation=nn.Sequential(nn.Linear(R, R), nn.ReLU()))
    for parameter in layer.parameters():
        nn.init.constant_(parameter, 7.0)
    layer.reset_parameters()
    for linear in (*layer.transforms, *layer.gates, layer.projection):
        assert linear.weight.std() > 0
    assert all(torch.all(gate.bias == -3) for gate in layer.gates)
    assert all(torch.all(linear.bias == 0) for linear in (*layer.transforms, layer.projection))
    assert torch.all(layer.activation[0].weight == 7)


def test_device_and_dtype_are_the_constructors(device: str) -> None:
    layer = Highway(N, R, 2, device=device, dtype=torch.float64)
    assert {(p.dtype, p.device.type) for p in layer.parameters()} == {(torch.float64, device)}


def test_repr_says_the_sizes() -> None:
    assert Highway(5, 3, 2).extra_repr() == "in_features=5, out_features=3, num_layers=2"


def test_what_does_not_fit_is_refused() -> None:
    for sizes, name in (((0,), "in_features"), ((5, 0), "out_features"), ((5, 3, 0), "num_layers")):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            Highway(*sizes)
    with pytest.raises(ValueError, match=r"x must be floating point of shape \(\.\.\., 5\), got .* of shape \(2, 4\)"):
        Highway(5)(torch.ones(2, 4))
    with pytest.raises(ValueError, match=r"x must be floating point of shape \(\.\.\., 5\), got torch.int64"):
        Highway(5)(torch.ones(2, 5, dtype=torch.int64))


@given(seed=strategies.seeds)
def test_equal_branches_make_the_gate_of_a_layer_irrelevant(seed: int) -> None:
    layer, x = laws.randomised(Highway(5, 3, activation=nn.Identity()), seed % 1000), normal(seed, 4, 5)
    layer.projection.load_state_dict(layer.transforms[0].state_dict())
    assert_close(layer(x), layer.transforms[0](x), atol=1e-12, rtol=1e-12)


def test_reset_from_the_last_module_to_the_first_the_gates_are_shut() -> None:
    """A linear layer within, reset after the layer, would open them."""
    layer = highway()
    for module in reversed(list(layer.modules())):
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    assert all(torch.all(gate.bias == -3) for gate in layer.gates)
