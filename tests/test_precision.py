"""Every public layer and function, and every model, in every dtype: rounding within its bound, nothing else."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, replace

import pytest
import torch
from reliability import precision
from reliability.precision import (
    DTYPES,
    HOSTILE,
    garbage_matters,
    has_padding,
    measure,
    outcome,
    outcome_of_lengths,
    page,
)
from reliability.precision_cases import CASES, FUNCTIONS, LAYERS, MODELS

import nlilayers
import oracles
from gaussian_transformer import Aggregation
from models import full
from nli_common.recurrent import SentenceLSTM
from nlilayers import (
    AlignmentFactorization,
    DecomposableAlign,
    FactorizationMachine,
    GaussianSelfAttention,
    IntraAlign,
    SinusoidalPositionalEncoding,
    functional,
    masking,
)
from nlilayers._precision import _Product, product
from strategies import normal

every_case = pytest.mark.parametrize("name", CASES)
every_model = pytest.mark.parametrize("name", MODELS)
halves = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
WITHOUT_ROUNDING = frozenset(
    {"char_ngrams", "code_points", "distance_buckets", "fnv1a", "lengths_to_mask", "pair_mask", "token_distances"}
)
"""Public functions of integers and truth values."""
IN_DOUBLE = frozenset({"smallest_window", "largest_discarded_mass"})
"""Public functions that compute in float64 whatever comes, and return numbers of Python."""
POLYNOMIAL = "StackedAlignment"
"""Its second block factorizes products of what the first has factorized, a high power of the words' numbers."""
ATTENTIVE = [
    name
    for name in CASES
    if any(part in name for part in ("Align", "Attention", "weights", "scores"))
    and "Factorization" not in name
    and name != POLYNOMIAL
]


def test_nothing_public_is_left_out() -> None:
    layers = set(nlilayers.__all__) - {"functional", "masking"}
    assert {name.split(",")[0] for name in LAYERS} == layers
    public = set(functional.__all__) | set(masking.__all__)
    assert set(FUNCTIONS) | WITHOUT_ROUNDING | IN_DOUBLE == public


@every_case
def test_rounding_stays_within_its_bound(name: str, device: str) -> None:
    measured = measure(name, rounds=1, batch=16, device=device)
    for label, error in measured.errors.items():
        assert error.result <= measured.bound, f"{label}: {error.result}"
        assert (error.gradient or 0) <= measured.gradient_bound, f"{label}: {error.gradient}"
        assert (error.parameters or 0) <= measured.parameters_bound, f"{label}: {error.parameters}"


@every_case
def test_hostile_numbers_give_no_nan(name: str, device: str) -> None:
    """Infinity is right where the exact number is beyond the dtype, which 1e4 is in float16 alone."""
    for kind in HOSTILE:
        for label in DTYPES:
            found = outcome(name, kind, label, device=device)
            assert found != "not finite", f"{kind} in {label}"
            if found == "overflow":
                large = kind in ("±1e12", "scores of 1e30") or (kind == "±1e4" and name == POLYNOMIAL)
                assert large or (kind, label) == ("±1e4", "float16"), f"{kind} in {label}"


@pytest.mark.parametrize("name", ATTENTIVE)
def test_scores_of_any_size_give_weights(name: str, device: str) -> None:
    for label in ("float64", "float32", "bfloat16", "autocast"):
        for seed in range(3):
            for kind in ("scores of 1e30", "±1e12"):
                found = outcome(name, kind, label, seed=seed, device=device)
                assert found == "finite", f"{kind} in {label}: {found}"


@every_case
@pytest.mark.parametrize("length", [0, 1, 2])
def test_short_sentences_are_finite(name: str, length: int, device: str) -> None:
    for label in DTYPES:
        assert outcome_of_lengths(name, length, length, label, device=device) == "finite", label


@pytest.mark.parametrize("name", ["DecomposableAlign", "GaussianSelfAttention, window of 2", *MODELS])
def test_sentences_of_4096_words_are_finite(name: str, device: str) -> None:
    """In the dtype that is fastest there: LSTMs and whole matrices of scores take their time in float16."""
    label = "bfloat16" if "LSTM" in name or name in ("ESIM", "HybridModel") or "," in name else "float16"
    assert outcome_of_lengths(name, 4096, 2, label, device=device) == "finite"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if has_padding(case)])
def test_padding_matters_in_no_bit(name: str, device: str) -> None:
    for label in DTYPES:
        assert garbage_matters(name, label, device=device) == [], label


def test_an_error_beyond_rounding_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A softmax that is taken in half precision breaks its bound."""

    def lowered(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        lower = scores if scores.dtype == torch.float64 else scores.bfloat16()
        return masking.masked_softmax(lower, mask).to(scores.dtype)

    case = CASES["masked_softmax"]
    monkeypatch.setitem(precision.CASES, "masked_softmax", precision.Case(lambda: _Lowered(lowered), case.takes))
    measured = measure("masked_softmax", rounds=1, batch=16)
    assert measured.errors["float32"].result > 100 * measured.bound


def test_the_page_tells_how_many_sentences_a_loop_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer than are drawn, and of those some without words."""
    case, calls = CASES["GaussianSelfAttention"], []
    assert case.loop is not None

    def loop(layer: torch.nn.Module, words: torch.Tensor) -> list[list[float]]:
        calls.append(words)
        return case.loop(layer, words)

    monkeypatch.setitem(precision.CASES, "GaussianSelfAttention", replace(case, loop=loop))
    measured = measure("GaussianSelfAttention", rounds=4, batch=8)
    assert measured.draws == 32 and measured.looped == len(calls) and 4 <= len(calls) <= 8
    assert measure("DistancePrior", rounds=1, batch=8).looped == 0
    held = json.loads((precision.HERE / "precision.json").read_text())
    held["errors"]["GaussianSelfAttention"] = asdict(measured)
    assert f"are the reference, for {len(calls)} to 32 of the sentences." in page(held)


class _Lowered(torch.nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.function(scores, mask)


# What was broken


@pytest.mark.parametrize("layer", [DecomposableAlign(), IntraAlign()], ids=["between", "within"])
def test_words_of_1e4_align_in_float16(layer: torch.nn.Module, device: str) -> None:
    """Their scores are 1e8 and more, beyond float16; the aligned words are not."""
    x = (1e4 * normal(0, 2, 5, 3).sign() * torch.tensor([1.0, 0.5, 0.25])).to(device, torch.float16).requires_grad_()
    exact = x.detach().double()
    sentences = (x, x) if isinstance(layer, DecomposableAlign) else (x,)
    ours = layer(*sentences)[0] if len(sentences) == 2 else layer(x)
    theirs = layer(exact, exact)[0] if len(sentences) == 2 else layer(exact)
    assert ours.dtype == torch.float16
    torch.testing.assert_close(ours.double(), theirs, atol=0, rtol=2**-10)
    (grad,) = torch.autograd.grad(ours.double().sum() * 2**-6, x)
    assert grad.isfinite().all()


@pytest.mark.parametrize("window", [None, 2, "auto"])
def test_words_of_1e4_attend_in_float16(window: int | str | None, device: str) -> None:
    """In blocks, too: the sentence is long enough for them."""
    layer = GaussianSelfAttention(6, 3, window=window, device=device, dtype=torch.float16)
    x = (1e4 * normal(1, 1, 400, 6).sign()).to(device, torch.float16).requires_grad_()
    y = layer(x)
    assert y.isfinite().all()
    (2**-6 * y.double().mean()).backward()
    assert x.grad is not None and x.grad.isfinite().all()


def test_autocast_to_float16_leaves_scores_their_range(device: str) -> None:
    x = 1e4 * normal(0, 2, 5, 3).sign().to(device, torch.float32)
    with torch.autocast(device, dtype=torch.float16):
        beta, alpha = DecomposableAlign()(x, x)
    assert beta.isfinite().all() and alpha.isfinite().all()


UNLOWERED = {
    "FactorizationMachine": (lambda: FactorizationMachine(32, 5), 1),
    "AlignmentFactorization": (lambda: AlignmentFactorization(32, 5), 2),
    "DecomposableAlign": (DecomposableAlign, 2),
    "IntraAlign": (IntraAlign, 1),
    "GaussianSelfAttention": (lambda: GaussianSelfAttention(32, 4), 1),
}


def loss_under_autocast(
    layer: Callable[..., torch.Tensor], words: list[torch.Tensor], dtype: torch.dtype
) -> torch.Tensor:
    with torch.autocast(words[0].device.type, dtype=dtype):
        y = layer(*words)
    return sum(part.float().square().mean() for part in (y if isinstance(y, tuple) else (y,)))


@halves
@pytest.mark.parametrize("name", UNLOWERED)
def test_what_autocast_lowers_in_no_eager_backward_pass_it_lowers_in_no_compiled_one(
    name: str, dtype: torch.dtype, device: str
) -> None:
    """A compiled backward pass runs under the autocast of its forward pass; 65,536 is where a GradScaler starts."""
    torch._dynamo.reset()
    build, sides = UNLOWERED[name]
    layer = build().to(device)
    words = [(10 * normal(k, 3, 7, 32)).float().to(device).requires_grad_() for k in range(sides)]
    inputs = [*words, *layer.parameters()]
    scale = 1 if name == "GaussianSelfAttention" else 65_536  # its projections are lowered, and overflow
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    eager = torch.autograd.grad(scale * loss_under_autocast(layer, words, dtype), inputs)
    ours = torch.autograd.grad(scale * loss_under_autocast(compiled, words, dtype), inputs)
    lowered = dtype == torch.bfloat16 and "Factorization" not in name  # forwards and backwards, as torch does
    for gradient, expected in zip(ours, eager, strict=True):
        assert expected.isfinite().all()
        # The terms of a prior's scalar cancel, and compiled code adds them in another order than along diagonals.
        rounding = 1e-6 if gradient.ndim else 1e-5
        assert (gradient - expected).norm() <= (2**-8 if lowered else rounding) * expected.norm()


@halves
@pytest.mark.parametrize("left, right", [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5))])
def test_the_product_with_a_backward_pass_of_its_own_has_the_gradients_of_a_plain_one(
    left: tuple[int, ...], right: tuple[int, ...], dtype: torch.dtype, device: str
) -> None:
    x, y = (normal(k, *shape).float().to(device).requires_grad_() for k, shape in enumerate((left, right)))
    ours, plain = _Product.apply(x, y), x @ y
    assert torch.equal(ours, plain)
    grad = normal(2, *plain.shape).float().to(device)
    with torch.autocast(device, dtype=dtype):
        within = torch.autograd.grad(ours, (x, y), grad)
    for gradient, expected in zip(within, torch.autograd.grad(plain, (x, y), grad), strict=True):
        torch.testing.assert_close(gradient, expected)


@halves
def test_a_product_has_a_backward_pass_of_its_own_in_a_graph_under_autocast_alone(
    dtype: torch.dtype, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = (normal(k, 2, 3, 3).float().to(device).requires_grad_() for k in range(2))

    def is_its_own(lowered: bool) -> bool:
        with torch.autocast(device, dtype=dtype, enabled=lowered):
            z = product(x, y)
        assert torch.equal(z, x @ y)
        return z.grad_fn.name() == "_ProductBackward"

    assert [is_its_own(lowered) for lowered in (False, True)] == [False, False]
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert [is_its_own(lowered) for lowered in (False, True)] == [False, True]
    with torch.autocast(device, dtype=dtype):
        vectorised = torch.vmap(product)(x, y)
    torch.testing.assert_close(vectorised, x @ y)


@halves
@pytest.mark.parametrize("name", ["FactorizationMachine", "AlignmentFactorization"])
def test_factorizations_have_the_same_gradients_within_autocast(name: str, dtype: torch.dtype, device: str) -> None:
    build, sides = UNLOWERED[name]
    layer = build().to(device)
    words = [(10 * normal(k, 3, 7, 32)).float().to(device).requires_grad_() for k in range(sides)]
    inputs = [*words, *layer.parameters()]
    expected = torch.autograd.grad(loss_under_autocast(layer, words, dtype), inputs)
    with torch.autocast(device, dtype=dtype):
        within = torch.autograd.grad(loss_under_autocast(layer, words, dtype), inputs)
    assert all(torch.equal(a, b) for a, b in zip(within, expected, strict=True))


def test_a_factorization_is_vectorised_and_compiled_under_autocast(device: str) -> None:
    torch._dynamo.reset()
    machine, x = FactorizationMachine(8, 3).to(device), normal(1, 4, 5, 8).float().to(device)

    def over_sentences(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, dtype=torch.bfloat16):
            return torch.vmap(machine)(x)

    compiled = torch.compile(over_sentences, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), machine(x))


def test_float16_weights_are_those_of_float32_scores(device: str) -> None:
    q, k = (normal(s, 1, 1, 7, 4, scale=9.0).to(device, torch.float16) for s in (0, 1))
    scores = functional.dot_scores(q, k)
    assert scores.dtype == torch.float32
    assert torch.equal(scores, functional.dot_scores(q.float(), k.float()))
    few = torch.zeros(4, 12, dtype=torch.float32, device=device)
    for scale in (30**-0.5, -3.0):
        assert torch.equal(functional.dot_scores(q, k, scale), functional.dot_scores(q.float(), k.float(), scale))
        blocks = functional.windowed_scores(q, k, few, scale=scale)
        assert torch.equal(blocks, functional.windowed_scores(q.float(), k.float(), few, scale=scale))
    large, small = torch.full_like(q, 1000.0), torch.full_like(k, 2**-10)
    assert torch.all(functional.dot_scores(large, small, 100.0) == 1000 * 100 * 4 * 2**-10)


def test_far_positions_are_right_to_the_last_digit_of_float32(device: str) -> None:
    """An angle of 4,096 in float32 is off by a thousandth."""
    encoding = functional.sinusoidal_encoding(4096, 10, device=torch.device(device))[4095]
    expected = torch.tensor(oracles.sinusoidal_encoding(4096, 10), dtype=torch.float64)
    assert (encoding.double().cpu() - expected).abs().max() <= 2**-24
    assert SinusoidalPositionalEncoding(10)(torch.zeros(1, 4096, 10, device=device)).dtype == torch.float32


@halves
def test_many_words_that_are_added_up_and_divided_do_not_overflow(dtype: torch.dtype, device: str) -> None:
    """Eq 15 of the Gaussian Transformer: the sum of 4,096 numbers of 100 is beyond float16, a 64th of it is not."""
    layer = Aggregation(6)
    for parameter in layer.parameters():
        torch.nn.init.zeros_(parameter)
    torch.nn.init.constant_(layer.compare[1].bias, 100.0)
    layer = layer.to(device, dtype)
    x = torch.zeros(1, 4096, 6, device=device, dtype=dtype)
    y = layer(x, x, torch.ones(1, 4096, dtype=torch.bool, device=device))
    assert torch.all(y == 6400)


@halves
@pytest.mark.parametrize("name", ["LSTMBaseline", "AttentionModel"])
def test_tags_take_the_dtype_of_the_words(name: str, dtype: torch.dtype) -> None:
    model = CASES[name].build().to(dtype).eval()
    sentence = full([1, 2, 3], pos=[[1, 0, 2]])
    assert model(sentence, sentence).dtype == dtype


def test_an_lstm_reads_a_batch_of_nothing() -> None:
    states, last = SentenceLSTM(3, 5, num_layers=2, bidirectional=True)(
        torch.zeros(2, 0, 3), torch.zeros(2, 0, dtype=torch.bool)
    )
    assert states.shape == (2, 0, 10) and torch.equal(last, torch.zeros(2, 10))


def test_no_words_have_no_score_to_bound() -> None:
    nothing, some = torch.zeros(1, 1, 0, 4), normal(0, 1, 1, 3, 4)
    assert functional.score_range(nothing, nothing).tolist() == [[0.0]]
    assert functional.score_bound(some, nothing).tolist() == [[[0.0, 0.0, 0.0]]]


# The limits of a dtype


def test_factorizations_of_1e4_are_infinite_in_float16_where_the_exact_number_is_beyond_it(device: str) -> None:
    torch.manual_seed(0)
    fm, compare = FactorizationMachine(6, 3).double(), AlignmentFactorization(6, 3).double()
    x, aligned = (1e4 * normal(s, 64, 6).sign() for s in (0, 1))
    for layer, inputs in ((fm, (x,)), (compare, (x, aligned))):
        lower = layer.half()
        ours = lower.to(device)(*(v.to(device, torch.float16) for v in inputs))
        exact = lower.double().cpu()(*inputs)
        assert not ours.isnan().any() and ours.isinf().any()
        assert torch.equal(ours.isinf().cpu(), exact.half().isinf())
        assert torch.all(ours.cpu()[exact.half().isinf()].sign() == exact[exact.half().isinf()].sign())


def test_a_factorization_beyond_float32_is_no_number(device: str) -> None:
    """Its two terms are infinite, each by itself, and their difference is none."""
    fm = FactorizationMachine(6, 3, device=device)
    x = torch.full((1, 6), 1e20, device=device)
    assert not fm(x).isfinite().any() and math.isfinite(FactorizationMachine(6, 3).double()(x.double().cpu()).item())


@pytest.mark.parametrize("part", ["outputs", "inputs", "parameters"])
def test_a_number_that_is_none_is_seen_whatever_came_before(part: str) -> None:
    exact = precision.Run([torch.ones(2, 3).double()], [torch.ones(2, 3).double()], [torch.ones(4).double()], [], 0.0)
    ours = replace(exact, **{part: [torch.full_like(getattr(exact, part)[0], math.nan)]})
    error = precision.Error(1.0, 1.0, 1.0, 1.0)
    precision._update(error, ours, exact, exact, [], "float32", 2)
    seen = {"outputs": (error.plain, error.result), "inputs": (error.gradient,), "parameters": (error.parameters,)}
    assert {name for name, numbers in seen.items() if all(map(math.isnan, numbers))} == {part}
