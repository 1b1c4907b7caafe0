"""Factorization machines: Tay et al. 2018, Eqs 6 to 14, and the laws of PAPERS that follow from them."""

import copy
import io
import pickle
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import prune
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

import laws
import oracles
import strategies
from nlilayers import AlignmentFactorization, FactorizationMachine, functional
from strategies import normal

WIDTHS = st.integers(1, 7)
FACTORS = st.integers(1, 5)
ZERO = torch.zeros((), dtype=torch.float64)


def machine(n: int, k: int = 3, seed: int = 0) -> FactorizationMachine:
    return laws.randomised(FactorizationMachine(n, k), seed)


def alignment(d: int, k: int = 3, seed: int = 0) -> AlignmentFactorization:
    return laws.randomised(AlignmentFactorization(d, k), seed)


def pairs(x: Tensor, factors: Tensor) -> Tensor:
    """P of Eq 7 alone."""
    return functional.factorization_machine(x, ZERO, torch.zeros(factors.shape[0], dtype=factors.dtype), factors)


def lists(fm: FactorizationMachine) -> tuple:
    return fm.bias.item(), fm.weight.tolist(), fm.factors.tolist()


@given(n=WIDTHS, k=FACTORS, seed=strategies.seeds, scale=strategies.scales)
def test_eqs_6_to_8_equal_the_loop(device: str, n: int, k: int, seed: int, scale: float) -> None:
    fm, x = machine(n, k, seed % 1000), normal(seed, 2, 3, n, scale=scale)
    ours = copy.deepcopy(fm).to(device)(x.to(device)).cpu()
    expected = [[oracles.factorization_machine(word, *lists(fm)) for word in words] for words in x.tolist()]
    assert_close(ours, torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=1e-9)


@given(d=WIDTHS, k=FACTORS, seed=strategies.seeds, scale=strategies.scales)
def test_eqs_9_to_14_equal_the_loop(device: str, d: int, k: int, seed: int, scale: float) -> None:
    layer = alignment(d, k, seed % 1000)
    x, aligned = (normal(seed + s, 2, 3, d, scale=scale) for s in (0, 1))
    ours = copy.deepcopy(layer).to(device)(x.to(device), aligned.to(device)).cpu()
    machines = [lists(m) for m in (layer.concat, layer.subtract, layer.multiply)]
    expected = [
        [oracles.alignment_factorization(*pair, *machines) for pair in zip(*sentence, strict=True)]
        for sentence in zip(x.tolist(), aligned.tolist(), strict=True)
    ]
    assert_close(ours, torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=1e-9)


def test_the_factored_form_equals_the_double_loop_at_600_features() -> None:
    x, factors = normal(0, 600), normal(1, 600, 50)
    expected = oracles.factorization_machine(x.tolist(), 0.0, [0.0] * 600, factors.tolist())
    assert pairs(x, factors).item() == pytest.approx(expected, rel=1e-9)


@given(n=WIDTHS, k=FACTORS, seed=strategies.seeds)
def test_rotating_the_factors_changes_nothing(n: int, k: int, seed: int) -> None:
    x, factors, rotation = normal(seed, 4, n), normal(seed + 1, n, k), torch.linalg.qr(normal(seed + 2, k, k)).Q
    assert_close(pairs(x, factors @ rotation), pairs(x, factors), atol=1e-10, rtol=1e-10)


@given(n=WIDTHS, k=FACTORS, seed=strategies.seeds, t=st.floats(-3, 3))
def test_pairs_are_even_and_quadratic(n: int, k: int, seed: int, t: float) -> None:
    x, factors = normal(seed, 4, n), normal(seed + 1, n, k)
    assert_close(pairs(-x, factors), pairs(x, factors), atol=1e-12, rtol=1e-12)
    assert_close(pairs(t * x, factors), t**2 * pairs(x, factors), atol=1e-10, rtol=1e-10)


@given(n=WIDTHS, k=FACTORS, seed=strategies.seeds)
def test_a_feature_alone_has_no_pair(n: int, k: int, seed: int) -> None:
    factors = normal(seed, n, k)
    assert_close(pairs(torch.eye(n).double() * 3, factors), torch.zeros(n).double(), atol=1e-12, rtol=0)
    assert torch.all(pairs(torch.zeros(4, n, dtype=torch.float64), factors) == 0)


@given(n=WIDTHS, k=FACTORS, seed=strategies.seeds)
def test_pairs_are_half_the_off_diagonal_quadratic_form(n: int, k: int, seed: int) -> None:
    x, factors = normal(seed, n), normal(seed + 1, n, k)
    gram = factors @ factors.T
    expected = x @ (gram - gram.diagonal().diag()) @ x / 2
    assert_close(pairs(x, factors), expected, atol=1e-10, rtol=1e-10)


@given(n=WIDTHS, k=FACTORS, seed=strategies.seeds)
def test_gradients_are_the_closed_forms(n: int, k: int, seed: int) -> None:
    """V (V^T x) - x |v_i|^2 for x, with Euler's x . grad = 2 P; x_i (sum_l v_lf x_l - v_if x_i) for the factors."""
    x, factors = normal(seed, n).requires_grad_(), normal(seed + 1, n, k).requires_grad_()
    p = pairs(x, factors)
    by_x, by_factors = torch.autograd.grad(p, (x, factors))
    assert_close(by_x, factors @ (factors.T @ x) - x * factors.square().sum(1), atol=1e-10, rtol=1e-10)
    assert_close(by_factors, x[:, None] * (factors.T @ x - factors * x[:, None]), atol=1e-10, rtol=1e-10)
    assert_close(x @ by_x, 2 * p, atol=1e-10, rtol=1e-10)


@given(n=WIDTHS, k=FACTORS, seed=strategies.seeds)
def test_the_hessian_is_the_factorized_weight_of_each_pair(n: int, k: int, seed: int) -> None:
    x, factors = normal(seed, n), normal(seed + 1, n, k)
    hessian = torch.autograd.functional.hessian(lambda x: pairs(x, factors), x)
    gram = factors @ factors.T
    assert_close(hessian, gram - gram.diagonal().diag(), atol=1e-10, rtol=1e-10)


@given(n=WIDTHS, seed=strategies.seeds)
def test_one_factor_of_ones_sums_all_products(n: int, seed: int) -> None:
    x = normal(seed, n)
    expected = sum((x[i] * x[j] for i in range(n) for j in range(i + 1, n)), ZERO)
    assert_close(pairs(x, torch.ones(n, 1).double()), expected, atol=1e-12, rtol=1e-12)


@given(n=WIDTHS, k=FACTORS, seed=strategies.seeds)
def test_negating_the_features_is_negating_the_weights(n: int, k: int, seed: int) -> None:
    fm, x = machine(n, k, seed % 1000), normal(seed, 4, n)
    negated = functional.factorization_machine(x, fm.bias, -fm.weight, fm.factors)
    assert_close(fm(-x), negated, atol=1e-12, rtol=1e-12)


@given(n=WIDTHS, k=FACTORS, seed=strategies.seeds)
def test_permuting_the_features_with_their_rows_changes_nothing(n: int, k: int, seed: int) -> None:
    fm, x, order = machine(n, k, seed % 1000), normal(seed, 4, n), torch.arange(n).flip(0)
    permuted = functional.factorization_machine(x[:, order], fm.bias, fm.weight[order], fm.factors[order])
    assert_close(permuted, fm(x), atol=1e-12, rtol=1e-12)


@given(n=WIDTHS, seed=strategies.seeds)
def test_without_factors_it_is_a_linear_regression(n: int, seed: int) -> None:
    fm, x = machine(n, seed=seed % 1000), normal(seed, 4, n)
    nn.init.zeros_(fm.factors)
    assert_close(fm(x), nn.functional.linear(x, fm.weight[None], fm.bias[None])[:, 0], atol=1e-12, rtol=1e-12)


@given(n=WIDTHS, seed=strategies.seeds)
def test_as_many_factors_as_features_represent_any_weights_of_pairs(n: int, seed: int) -> None:
    """A symmetric matrix with a large enough diagonal has a root, and the diagonal does not matter."""
    wanted = normal(seed, n, n)
    wanted = wanted + wanted.T
    root = torch.linalg.cholesky(wanted + (1 + wanted.abs().sum()) * torch.eye(n).double())
    x = normal(seed + 1, n)
    expected = sum((wanted[i, j] * x[i] * x[j] for i in range(n) for j in range(i + 1, n)), ZERO)
    assert_close(pairs(x, root), expected, atol=1e-9, rtol=1e-9)


@given(d=WIDTHS, seed=strategies.seeds)
def test_a_word_aligned_with_itself_differs_by_the_bias_alone(d: int, seed: int) -> None:
    layer, x = alignment(d, seed=seed % 1000), normal(seed, 2, 3, d)
    y = layer(x, x)
    assert torch.all(y[..., 1] == layer.subtract.bias)
    assert_close(y[..., 2], layer.multiply(x.square()), atol=1e-12, rtol=1e-12)


@given(d=WIDTHS, seed=strategies.seeds)
def test_the_three_features_are_those_of_three_machines(d: int, seed: int) -> None:
    layer, (x, aligned) = alignment(d, seed=seed % 1000), (normal(seed + s, 2, 3, d) for s in (0, 1))
    y_c, y_s, y_m = layer(x, aligned).unbind(-1)
    assert_close(y_c, layer.concat(torch.cat((x, aligned), -1)), atol=1e-10, rtol=1e-10)
    assert_close(y_s, layer.subtract(x - aligned), atol=1e-10, rtol=1e-10)
    assert_close(y_m, layer.multiply(x * aligned), atol=1e-10, rtol=1e-10)


def test_features_are_of_each_word_alone() -> None:
    layer, (x, aligned) = alignment(5), (normal(s, 2, 7, 5) for s in (0, 1))
    order = torch.tensor([3, 1, 6, 0, 2, 5, 4])
    y = layer(x, aligned)
    assert_close(layer(x[:, order], aligned[:, order]), y[:, order], atol=1e-12, rtol=1e-12)
    assert_close(layer(x[0, 2], aligned[0, 2]), y[0, 2], atol=1e-12, rtol=1e-12)
    poisoned = x.clone()
    poisoned[:, 3] = float("nan")
    assert torch.equal(layer(poisoned, aligned)[:, :3], y[:, :3])


@given(d=st.integers(1, 4), k=st.integers(1, 3), seed=strategies.seeds)
def test_gradcheck(d: int, k: int, seed: int) -> None:
    layer, inputs = alignment(d, k, seed % 1000), [normal(seed + s, 2, d).requires_grad_() for s in (0, 1)]
    names = [name for name, _ in layer.named_parameters()]

    def call(x: Tensor, aligned: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x, aligned))

    parameters = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    assert torch.autograd.gradcheck(call, (*inputs, *parameters))
    fm = machine(d, k, seed % 1000)
    assert torch.autograd.gradcheck(
        functional.factorization_machine, (inputs[0], *(p.detach().requires_grad_() for p in fm.parameters()))
    )


def test_module_equals_function() -> None:
    fm, layer, (x, aligned) = machine(5), alignment(5), (normal(s, 2, 3, 5) for s in (0, 1))
    assert torch.equal(fm(x), functional.factorization_machine(x, fm.bias, fm.weight, fm.factors))
    machines = [(m.bias, m.weight, m.factors) for m in (layer.concat, layer.subtract, layer.multiply)]
    assert torch.equal(layer(x, aligned), functional.alignment_factorization(x, aligned, *machines))


def test_functions_broadcast_and_raise_integers() -> None:
    numbers = [normal(seed, *shape) for seed, shape in enumerate(sizes(10, 5, 5))]
    x, aligned = normal(97, 1, 3, 5), normal(98, 2, 3, 5)
    for pair in ((x, aligned), (aligned, x)):
        assert_close(three(*pair, *numbers), three_by_pairs(*torch.broadcast_tensors(*pair), *numbers))
    with pytest.raises(RuntimeError, match="must match the size"):
        three(aligned, aligned.reshape(3, 2, 5), *numbers)
    whole = torch.arange(15).view(3, 5)
    assert_close(one(whole, *numbers[3:6]), one(whole.double(), *numbers[3:6]))
    assert_close(three(whole, whole + 1, *numbers), three(whole.double(), whole.double() + 1, *numbers))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_inputs_are_raised(device: str, dtype: torch.dtype) -> None:
    """In bfloat16 the two nearly equal terms would be off by far more than the output's last digit."""
    fm = machine(300, 10).to(device, dtype)
    nn.init.normal_(fm.factors, std=0.02)
    x = (normal(0, 64, 300) * 16).clamp(-49, 49).to(device, dtype)
    exact = copy.deepcopy(fm).double()(x.double())
    ours = fm(x)
    assert ours.dtype == dtype and ours.device.type == device
    assert_close(ours.double(), exact, atol=1e-3, rtol=torch.finfo(dtype).eps)


def test_squares_of_large_halves_do_not_overflow(device: str) -> None:
    layer = AlignmentFactorization(5, 2, device=device, dtype=torch.float16)
    x = torch.full((1, 5), 300.0, device=device, dtype=torch.float16)
    for m in (layer.concat, layer.subtract, layer.multiply):
        nn.init.constant_(m.factors, 1e-4)
        nn.init.zeros_(m.weight)
    exact = copy.deepcopy(layer).double()(x.double(), x.double())
    assert_close(layer(x, x).double(), exact, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("lower", [torch.bfloat16, torch.float16])
def test_autocast_does_not_lower_the_factorization(device: str, lower: torch.dtype) -> None:
    fm, layer = machine(300, 10).float().to(device), alignment(300, 10).float().to(device)
    x, aligned = (normal(s, 8, 300).float().to(device) for s in (0, 1))
    with torch.autocast(device, dtype=lower):
        ours = fm(x), layer(x, aligned)
    assert torch.equal(ours[0], fm(x)) and torch.equal(ours[1], layer(x, aligned))
    assert functional.factorization_machine(x.to(lower), fm.bias, fm.weight, fm.factors).dtype == lower


def test_parameters_have_the_papers_names_and_sizes() -> None:
    fm = FactorizationMachine(7, 3)
    assert {k: tuple(p.shape) for k, p in fm.named_parameters()} == {"bias": (), "weight": (7,), "factors": (7, 3)}
    h, k = 300, 150
    count = sum(p.numel() for _ in range(2) for p in AlignmentFactorization(h, k, device="meta").parameters())
    assert count == 6 + 8 * h * (1 + k)


@pytest.mark.parametrize(("n", "k"), [(200, 5), (600, 150), (31, 1)])
def test_initialisation_gives_features_and_pairs_half_the_variance_each(n: int, k: int) -> None:
    """Over many machines: one has a variance of its own."""
    x, features, of_pairs = torch.randn(500, n), [], []
    for _ in range(40):
        fm = FactorizationMachine(n, k)
        features.append(x @ fm.weight)
        of_pairs.append(fm(x) - features[-1])
    assert 0.4 < torch.stack(features).var().item() < 0.6
    assert 0.35 < torch.stack(of_pairs).var().item() < 0.65


def test_it_is_linearised() -> None:
    """(torch ends the process where a constant is added to a product of others by a factor.)"""
    x, tangent, aligned = (normal(k, 3, 4) for k in range(3))
    compare = AlignmentFactorization(4, 2).double()
    for machine in (FactorizationMachine(4, 2).double(), lambda x: compare(x, aligned)):
        y, along = torch.func.linearize(machine, x)
        assert_close(y, machine(x))
        assert_close(along(tangent), torch.func.jvp(machine, (x,), (tangent,))[1])


def test_reset_parameters_draws_anew() -> None:
    layer = AlignmentFactorization(5, 3)
    for parameter in layer.parameters():
        nn.init.constant_(parameter, 3.0)
    layer.reset_parameters()
    for m in (layer.concat, layer.subtract, layer.multiply):
        assert m.bias == 0 and m.weight.std() > 0 and m.factors.std() > 0


@pytest.mark.parametrize("build", [lambda: FactorizationMachine(5, 3), lambda: AlignmentFactorization(5, 3)])
def test_copies_agree(build) -> None:
    layer, fresh, buffer = build(), build(), io.BytesIO()
    inputs = (torch.randn(2, 5),) * (1 if isinstance(layer, FactorizationMachine) else 2)
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    fresh.load_state_dict(torch.load(buffer, weights_only=True), strict=True)
    for twin in (fresh, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(*inputs), layer(*inputs))


def test_device_and_dtype_are_the_constructors(device: str) -> None:
    layer = AlignmentFactorization(5, 3, device=device, dtype=torch.float64)
    assert {(p.dtype, p.device.type) for p in layer.parameters()} == {(torch.float64, device)}


def test_repr_says_the_sizes() -> None:
    assert repr(FactorizationMachine(5, 3)) == "FactorizationMachine(in_features=5, num_factors=3)"
    assert AlignmentFactorization(5, 3).extra_repr() == "embed_dim=5, num_factors=3"


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="in_features must be at least 1, got 0"):
        FactorizationMachine(0, 3)
    with pytest.raises(ValueError, match="num_factors must be at least 1, got -1"):
        AlignmentFactorization(5, -1)
    with pytest.raises(ValueError, match="embed_dim must be at least 1, got 0"):
        AlignmentFactorization(0, 3)
    with pytest.raises(ValueError, match=r"x must be floating point of shape \(\.\.\., 5\), got .* of shape \(2, 4\)"):
        FactorizationMachine(5, 3)(torch.ones(2, 4))
    with pytest.raises(ValueError, match=r"x must be floating point of shape \(\.\.\., 5\), got torch.int64"):
        FactorizationMachine(5, 3)(torch.ones(2, 5, dtype=torch.int64))
    layer = AlignmentFactorization(5, 3)
    with pytest.raises(ValueError, match=r"^x must be floating point of shape \(\.\.\., 5\), got .* \(2, 4\)"):
        layer(torch.ones(2, 4), torch.ones(2, 5))
    with pytest.raises(ValueError, match=r"aligned must be floating point of shape \(\.\.\., 5\), got .* \(2, 4\)"):
        layer(torch.ones(2, 5), torch.ones(2, 4))
    with pytest.raises(ValueError, match=r"same shape, got \(2, 5\) and \(1, 5\)"):
        layer(torch.ones(2, 5), torch.ones(1, 5))


@given(d=WIDTHS, seed=strategies.seeds)
def test_aligned_first_is_the_word_first_with_rows_exchanged_and_one_sign_turned(d: int, seed: int) -> None:
    """Eqs 9 to 11 have the aligned vector first; ours has the word first in both."""
    layer, (x, aligned) = alignment(d, seed=seed % 1000), (normal(seed + s, 4, d) for s in (0, 1))
    other = copy.deepcopy(layer)
    other.concat.weight.data = layer.concat.weight.data.roll(d, 0)
    other.concat.factors.data = layer.concat.factors.data.roll(d, 0)
    other.subtract.weight.data.neg_()
    assert_close(other(aligned, x), layer(x, aligned), atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("k", range(3))
def test_each_feature_depends_on_its_own_machine_alone(k: int) -> None:
    """Switching one off removes its column and nothing else."""
    layer, (x, aligned) = alignment(5), (normal(s, 4, 5) for s in (0, 1))
    before = layer(x, aligned)
    for parameter in (layer.concat, layer.subtract, layer.multiply)[k].parameters():
        nn.init.zeros_(parameter)
    after = layer(x, aligned)
    kept = [c for c in range(3) if c != k]
    assert torch.equal(after[:, kept], before[:, kept]) and torch.all(after[:, k] == 0)


def test_initialisation_gives_each_feature_the_variance_of_the_words() -> None:
    """Over many machines, for independent words: their difference has twice the variance, and counts no more for it."""
    x, aligned = normal(0, 40, 60), normal(1, 40, 60)
    torch.manual_seed(0)
    features = torch.stack([AlignmentFactorization(60, 5, dtype=torch.float64)(x, aligned) for _ in range(200)])
    variances = features.square().mean((0, 1))
    assert torch.all((variances - 1).abs() < 0.2), variances


def test_the_machine_of_the_difference_starts_smaller_by_the_root_of_2() -> None:
    torch.manual_seed(0)
    layer = AlignmentFactorization(20_000, 3)
    for numbers in ("weight", "factors"):
        ratio = getattr(layer.subtract, numbers).std() / getattr(layer.multiply, numbers).std()
        assert ratio.item() == pytest.approx(0.5**0.5, rel=0.03)


@pytest.mark.parametrize("d", [75, 150, 300])
def test_three_features_equal_the_double_loop_at_many_features(d: int) -> None:
    layer, x, aligned = alignment(d, 20), normal(0, d), normal(1, d)
    machines = [lists(machine) for machine in (layer.concat, layer.subtract, layer.multiply)]
    expected = oracles.alignment_factorization(x.tolist(), aligned.tolist(), *machines)
    assert_close(layer(x, aligned), torch.tensor(expected, dtype=torch.float64), atol=1e-9, rtol=1e-9)


def test_forward_mode_backward_mode_and_second_derivatives_agree() -> None:
    inputs = tuple(normal(seed, *shape).requires_grad_() for seed, shape in enumerate([(3, 5), (), (5,), (5, 2)]))
    forwards = torch.func.jacfwd(functional.factorization_machine, argnums=(0, 1, 2, 3))(*inputs)
    backwards = torch.func.jacrev(functional.factorization_machine, argnums=(0, 1, 2, 3))(*inputs)
    for forward, backward in zip(forwards, backwards, strict=True):
        assert_close(forward, backward, atol=1e-12, rtol=1e-12)
    assert torch.autograd.gradcheck(functional.factorization_machine, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(functional.factorization_machine, inputs)


def test_forward_mode_agrees_for_three_machines_at_once() -> None:
    layer = alignment(4, 2)
    words = tuple(normal(seed, 3, 4).requires_grad_() for seed in (1, 2))
    assert torch.autograd.gradcheck(layer, words, check_forward_ad=True)


def by_pairs(x: Tensor, bias: Tensor, weight: Tensor, factors: Tensor) -> Tensor:
    """Eqs 6 to 8 as they stand: a weight for each pair of features, once."""
    return bias + x @ weight + (x @ (factors @ factors.T).triu(1) * x).sum(-1)


def one(x: Tensor, *numbers: Tensor) -> Tensor:
    return functional.factorization_machine(x, *numbers)


def three(x: Tensor, aligned: Tensor, *numbers: Tensor) -> Tensor:
    return functional.alignment_factorization(x, aligned, numbers[:3], numbers[3:6], numbers[6:])


def three_by_pairs(x: Tensor, aligned: Tensor, *numbers: Tensor) -> Tensor:
    features = (torch.cat((x, aligned), -1), x - aligned, x * aligned)
    return torch.stack([by_pairs(f, *numbers[3 * k : 3 * k + 3]) for k, f in enumerate(features)], -1)


def sizes(*widths: int) -> list[tuple[int, ...]]:
    return [size for n in widths for size in ((), (n,), (n, 3))]


FORMS = {
    "one": (one, by_pairs, [(4, 2, 5), *sizes(5)]),
    "three": (three, three_by_pairs, [(4, 2, 5), (4, 2, 5), *sizes(10, 5, 5)]),
}
forms = pytest.mark.parametrize("form", FORMS)


def drawn(form: str) -> tuple[list[Tensor], Tensor]:
    """What a form takes, to be differentiated by, and a gradient of what it makes."""
    ours, _, shapes = FORMS[form]
    inputs = [normal(seed, *shape).requires_grad_() for seed, shape in enumerate(shapes)]
    return inputs, normal(99, *ours(*inputs).shape)


@forms
def test_gradients_are_those_of_the_sum_over_pairs(form: str) -> None:
    ours, pairwise, _ = FORMS[form]
    inputs, grad_y = drawn(form)
    expected = torch.autograd.grad(pairwise(*inputs), inputs, grad_y)
    y, before = ours(*inputs), [x.detach().clone() for x in inputs]
    for _ in range(2):  # the second time from what was saved for the first
        for found, wanted in zip(torch.autograd.grad(y, inputs, grad_y, retain_graph=True), expected, strict=True):
            assert_close(found, wanted, atol=1e-12, rtol=1e-12)
    assert all(torch.equal(x, was) for x, was in zip(inputs, before, strict=True))
    for k, leaf in enumerate(inputs):
        alone = [x if x is leaf else x.detach() for x in inputs]
        (found,) = torch.autograd.grad(ours(*alone), [leaf], grad_y)
        assert_close(found, expected[k], atol=1e-12, rtol=1e-12)


@forms
def test_gradients_of_rows_that_share_memory(form: str) -> None:
    """One word for all, and words that lie column by column."""
    ours, pairwise, _ = FORMS[form]
    inputs, grad_y = drawn(form)
    for words in (lambda x: x[:1, :1].expand(4, 2, 5), lambda x: x.mT.contiguous().mT):
        leaves = [words(x.detach()).requires_grad_() if x.ndim == 3 else x for x in inputs]
        expected = torch.autograd.grad(pairwise(*leaves), leaves, grad_y)
        for found, wanted in zip(torch.autograd.grad(ours(*leaves), leaves, grad_y), expected, strict=True):
            assert_close(found, wanted, atol=1e-12, rtol=1e-12)


@forms
def test_gradients_are_differentiated_again_by_what_they_depend_on(form: str) -> None:
    """By the gradient that enters, too, and a third time."""
    ours, pairwise, _ = FORMS[form]
    inputs, grad_y = drawn(form)
    leaves = [*inputs, grad_y.requires_grad_()]

    def thrice(function: object) -> list[Tensor]:
        once = torch.autograd.grad(function(*inputs), inputs, grad_y, create_graph=True)
        slope = sum((g * g.cos()).sum() for g in once)
        twice = torch.autograd.grad(slope, leaves, create_graph=True, materialize_grads=True)
        curve = sum((g * g.sin()).sum() for g in twice)
        return [*twice, *torch.autograd.grad(curve, leaves, materialize_grads=True)]

    for found, wanted in zip(thrice(ours), thrice(pairwise), strict=True):
        assert_close(found, wanted, atol=1e-9, rtol=1e-9)


@forms
def test_gradients_in_a_batch(form: str) -> None:
    ours, pairwise, _ = FORMS[form]
    inputs, grad_y = drawn(form)
    grads_y = torch.stack((grad_y, 2 * grad_y, grad_y.cos()))
    together = torch.autograd.grad(ours(*inputs), inputs, grads_y, is_grads_batched=True)
    assert not any(g.requires_grad for g in together)
    y = pairwise(*inputs)
    for k, one in enumerate(grads_y):
        for found, wanted in zip(together, torch.autograd.grad(y, inputs, one, retain_graph=True), strict=True):
            assert_close(found[k], wanted, atol=1e-12, rtol=1e-12)


@forms
@pytest.mark.parametrize("dual", ["inputs", "grad_y"])
def test_gradients_have_tangents(form: str, dual: str) -> None:
    """Forward mode through the backward pass, without torch.func: a product with the Hessian."""
    ours, pairwise, _ = FORMS[form]
    inputs, grad_y = drawn(form)
    tangents = [normal(50 + k, *x.shape) for k, x in enumerate(inputs)]

    def products(function: object) -> list[Tensor]:
        with forward_ad.dual_level():
            if dual == "inputs":
                duals = [forward_ad.make_dual(x, t) for x, t in zip(inputs, tangents, strict=True)]
                back = torch.autograd.grad(function(*duals), duals, grad_y)
            else:
                back = torch.autograd.grad(function(*inputs), inputs, forward_ad.make_dual(grad_y, grad_y.sin()))
            # No gradient depends on a bias.
            return [forward_ad.unpack_dual(g).tangent for g in back if g.ndim]

    for found, wanted in zip(products(ours), products(pairwise), strict=True):
        assert_close(found, wanted, atol=1e-10, rtol=1e-10)


WAYS = {
    "once": {},
    "differentiable": {"create_graph": True},
    "batched": {"is_grads_batched": True},
}
ways = pytest.mark.parametrize("way", WAYS)


@forms
@ways
def test_gradients_of_inputs_that_are_made_of_one_another(form: str, way: str) -> None:
    """Tied machines, words that are their own alignment, a weight that is a column of the factors, a bias of both."""
    ours, pairwise, _ = FORMS[form]
    words, factors = normal(0, 4, 2, 5).requires_grad_(), normal(1, 5, 3).requires_grad_()
    leaves = [words, factors]

    def made(function: object) -> Tensor:
        machine = (factors[0, 0], factors[:, 0], factors)
        if form == "one":
            return function(words, *machine)
        both = torch.cat((factors, factors))
        return function(words, words, both.sum(), both[:, 1], both, *machine, *machine)

    grad_y = normal(2, *made(ours).shape)
    grad_y = torch.stack((grad_y, grad_y.sin())) if way == "batched" else grad_y
    expected = torch.autograd.grad(made(pairwise), leaves, grad_y, **WAYS[way])
    for found, wanted in zip(torch.autograd.grad(made(ours), leaves, grad_y, **WAYS[way]), expected, strict=True):
        assert_close(found, wanted, atol=1e-11, rtol=1e-11)


@ways
def test_hooks_are_called_once(way: str) -> None:
    """And for what is asked for alone."""
    inputs, grad_y = drawn("three")
    grad_y = torch.stack((grad_y, grad_y)) if way == "batched" else grad_y
    calls: list[int] = []
    for k, x in enumerate(inputs):
        x.register_hook(lambda _, k=k: calls.append(k))
    y = three(*inputs)
    torch.autograd.grad(y, inputs[:1], grad_y, retain_graph=True, **WAYS[way])
    assert calls == [0]
    torch.autograd.grad(y, inputs, grad_y, **WAYS[way])
    assert sorted(calls[1:]) == list(range(len(inputs)))


def test_hooks_of_all_modules_are_called_for_each_machine() -> None:
    layer, words, called = AlignmentFactorization(4, 2), (normal(0, 3, 4).float(), normal(1, 3, 4).float()), []
    with register_module_forward_hook(lambda module, _, y: called.append((type(module), y))):
        compared = layer(*words)
    assert [kind for kind, _ in called] == [*3 * [FactorizationMachine], AlignmentFactorization]
    assert torch.equal(torch.stack([y for _, y in called[:3]], dim=-1), compared)
    assert_close(layer(*words), compared)


@forms
@ways
def test_no_rows_have_gradients_of_zero(form: str, way: str) -> None:
    ours, _, _ = FORMS[form]
    inputs = [x.detach()[:0].requires_grad_() if x.ndim == 3 else x for x in drawn(form)[0]]
    y = ours(*inputs)
    grad_y = torch.ones(2, *y.shape).double() if way == "batched" else torch.ones_like(y)
    back = torch.autograd.grad(y, inputs, grad_y, **WAYS[way])
    assert all(g.shape[g.ndim - x.ndim :] == x.shape and not g.any() for g, x in zip(back, inputs, strict=True))
    functional_ones = torch.func.grad(lambda *leaves: ours(*leaves).sum(), tuple(range(len(inputs))))(*inputs)
    assert all(g.shape == x.shape and not g.any() for g, x in zip(functional_ones, inputs, strict=True))


@forms
def test_a_bias_may_change_before_the_backward_pass_and_be_a_row_of_one(form: str) -> None:
    """No gradient depends on it."""
    ours, _, _ = FORMS[form]
    inputs, grad_y = drawn(form)
    biases = [k for k, x in enumerate(inputs) if x.ndim == 0]
    expected = torch.autograd.grad(ours(*inputs), inputs, grad_y)
    y = ours(*inputs)
    with torch.no_grad():
        for k in biases:
            inputs[k].zero_()
    for found, wanted in zip(torch.autograd.grad(y, inputs, grad_y), expected, strict=True):
        assert torch.equal(found, wanted)
    rows = [x.detach()[None].requires_grad_() if x.ndim == 0 else x for x in inputs]
    for found, wanted in zip(torch.autograd.grad(ours(*rows), rows, grad_y), expected, strict=True):
        assert torch.equal(found.view_as(wanted), wanted)


@forms
def test_what_is_saved_for_the_backward_pass_must_not_change(form: str) -> None:
    ours, _, _ = FORMS[form]
    for k, x in enumerate(drawn(form)[0]):
        inputs, grad_y = drawn(form)
        y = ours(*inputs)
        with torch.no_grad():
            inputs[k].add_(1)
        if x.ndim:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                torch.autograd.grad(y, inputs, grad_y)


@forms
def test_the_backward_pass_is_transformed_by_itself(form: str) -> None:
    """The forward pass came before the transformation began."""
    ours, pairwise, _ = FORMS[form]
    inputs, grad_y = drawn(form)

    def products(function: object) -> tuple[Tensor, ...]:
        y = function(*inputs)
        return torch.func.jvp(
            lambda v: torch.autograd.grad(y, inputs, v, retain_graph=True), (grad_y,), (grad_y.sin(),)
        )[1]

    for found, wanted in zip(products(ours), products(pairwise), strict=True):
        assert_close(found, wanted, atol=1e-12, rtol=1e-12)


class Large(TorchDispatchMode):
    """Keeps every tensor of so many numbers that is made."""

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.numbers, self.made = numbers, []

    def __torch_dispatch__(
        self, function: object, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        made = function(*args, **(kwargs or {}))
        if isinstance(made, Tensor) and made.numel() == self.numbers:
            self.made.append(made)
        return made


class Counted(TorchDispatchMode):
    """Counts operators."""

    calls = 0

    def __torch_dispatch__(
        self, function: object, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        self.calls += 1
        return function(*args, **(kwargs or {}))


@forms
def test_what_is_frozen_costs_nothing(form: str) -> None:
    """Neither words behind a frozen embedding nor machines that are looked into."""
    ours, pairwise, _ = FORMS[form]
    inputs, grad_y = drawn(form)
    words = [x for x in inputs if x.ndim == 3]
    machines = [x for x in inputs if x.ndim < 3]

    def calls(trained: list[Tensor]) -> int:
        for x in inputs:
            x.requires_grad_(any(x is one for one in trained))
        expected = torch.autograd.grad(pairwise(*inputs), trained, grad_y)
        y = ours(*inputs)
        with Counted() as mode:
            found = torch.autograd.grad(y, trained, grad_y)
        for ours_, wanted in zip(found, expected, strict=True):
            assert_close(ours_, wanted, atol=1e-12, rtol=1e-12)
        return mode.calls

    count = len(words) ** 2  # blocks of features: one, or the two halves, the difference and the product
    whole = calls(inputs)
    # A machine's gradients are six operators (two of them transposes) at least, and those of its features five.
    assert calls(words) <= whole - 6 * count and calls(machines) <= whole - 5 * count


@pytest.mark.parametrize(("form", "forth", "back"), [("one", 1, 1), ("three", 6, 4)])
def test_new_tensors_as_large_as_the_words(form: str, forth: int, back: int) -> None:
    """The squares of each block, a difference, a product; then the gradients of the words, and two for difference and
    product in turn.
    """
    ours, _, _ = FORMS[form]
    inputs, grad_y = drawn(form)
    large = [x for x in inputs if x.ndim == 3]
    with Large(large[0].numel()) as mode:
        y = ours(*inputs)
        assert len({x.untyped_storage().data_ptr() for x in [*large, *mode.made]}) - len(large) == forth
        mode.made.clear()
        found = torch.autograd.grad(y, inputs, grad_y)
        places = {x.untyped_storage().data_ptr() for x in mode.made} - {x.untyped_storage().data_ptr() for x in large}
    assert len(places) == back
    assert {x.untyped_storage().data_ptr() for x in found if x.ndim == 3} <= places


def scalars(layer: AlignmentFactorization, x: Tensor, aligned: Tensor) -> list[Tensor]:
    return list(layer(x, aligned).unbind(-1))


class Doubled(FactorizationMachine):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


CHANGES = {
    "forward hook": lambda layer, name: layer.get_submodule(name).register_forward_hook(lambda *_: None),
    "forward pre-hook": lambda layer, name: layer.get_submodule(name).register_forward_pre_hook(lambda *_: None),
    "backward hook": lambda layer, name: layer.get_submodule(name).register_full_backward_hook(lambda *_: None),
    "backward pre-hook": lambda layer, name: layer.get_submodule(name).register_full_backward_pre_hook(lambda *_: None),
    "forward of its own": lambda layer, name: setattr(
        layer.get_submodule(name), "forward", layer.get_submodule(name).forward
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("name", ["concat", "subtract", "multiply"])
def test_machines_that_are_called_one_by_one_give_the_same(
    change: Callable[..., object], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, x, aligned = alignment(5), normal(1, 2, 4, 5), normal(2, 2, 4, 5)
    inputs, alone = [x.requires_grad_(), aligned.requires_grad_(), *layer.parameters()], []
    single = functional.factorization_machine
    monkeypatch.setattr(functional, "factorization_machine", lambda *args: alone.append(args) or single(*args))
    y = layer(x, aligned)
    expected = torch.autograd.grad(y.square().sum(), inputs)
    assert not alone
    change(layer, name)
    again = layer(x, aligned)
    assert len(alone) == 3
    assert_close(again, y, atol=1e-12, rtol=1e-12)
    for ours, theirs in zip(torch.autograd.grad(again.square().sum(), inputs), expected, strict=True):
        assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def test_machines_that_are_called_one_by_one_give_the_dtype_of_the_words() -> None:
    layer = AlignmentFactorization(5, 3)
    x, aligned = normal(1, 4, 5).bfloat16(), normal(2, 4, 5).float()
    together = layer(x, aligned)
    layer.concat.register_forward_hook(lambda *_: None)
    alone = layer(x, aligned)
    assert together.dtype == alone.dtype == torch.bfloat16
    assert_close(alone, together)


def test_the_gradients_of_a_machine_that_is_watched_are_seen() -> None:
    layer, seen = alignment(5), []
    layer.subtract.register_full_backward_hook(lambda *_: seen.append("gradients"))
    layer(normal(1, 4, 5).requires_grad_(), normal(2, 4, 5)).sum().backward()
    assert seen == ["gradients"]


def test_a_module_in_place_of_a_machine_is_called() -> None:
    """A subclass with a forward of its own, any other module, and what they do once it is changed."""
    layer, x, aligned = alignment(5), normal(1, 4, 5), normal(2, 4, 5)
    concat, subtract, multiply = scalars(layer, x, aligned)
    layer.concat = nn.Linear(10, 1).double()
    layer.concat = nn.Sequential(layer.concat, nn.Flatten(0))
    layer.subtract.forward = lambda difference: difference.sum(-1)
    found = scalars(layer, x, aligned)
    assert_close(found[0], layer.concat[0](torch.cat([x, aligned], -1))[:, 0])
    assert_close(found[1], (x - aligned).sum(-1))
    assert_close(found[2], multiply)
    layer.reset_parameters()
    assert not torch.equal(scalars(layer, x, aligned)[2], multiply)
    assert torch.equal(scalars(layer, x, aligned)[0], found[0]), "what is no machine is not drawn anew"
    other = alignment(5)
    doubled = Doubled(10, 3).double()
    doubled.load_state_dict(other.concat.state_dict())
    other.concat = doubled
    assert_close(scalars(other, x, aligned), [2 * concat, subtract, multiply])


def test_pruned_machines_are_pruned() -> None:
    layer, x = alignment(5), normal(1, 4, 5)
    prune.l1_unstructured(layer.concat, "factors", 0.5)
    pruned = layer(x, x.flip(0))
    for machine in (layer.subtract, layer.multiply):
        prune.identity(machine, "factors")
    assert_close(layer(x, x.flip(0)), pruned)
    layer.load_state_dict({key: torch.zeros_like(value) for key, value in layer.state_dict().items()})
    assert layer(x, x.flip(0)).abs().max() == 0
    for _ in range(2):  # each step computes what is pruned anew
        layer(x, x.flip(0)).sum().backward()
