"""What the layers' speeds are measured against: rivals that compute the same, given the same, under their own names."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from benchmarks import attention, layers
from benchmarks import padded as padded_batches
from benchmarks.measure import Comparison, Timing
from benchmarks.report import page
from torch import Tensor, nn
from torch.testing import assert_close

from nlilayers import AlignmentFactorization, FactorizationMachine

MEASURED = Path(attention.__file__).with_name("speed-cpu-float32.json")


def outputs_and_gradients(module: nn.Module, inputs: Sequence[Tensor], wanted: Sequence[Tensor]) -> list[Tensor]:
    """Gradients of a sum in which every output has a weight of its own: those of the inputs, then those wanted."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    made = module(*leaves)
    outputs = list(made) if isinstance(made, tuple) else [made]
    total = sum((y * torch.linspace(-1, 2, y.numel(), dtype=y.dtype).view_as(y)).sum() for y in outputs)
    return [*outputs, *torch.autograd.grad(total, [*leaves, *wanted])]


def attention_layer(name: str) -> nn.Module:
    return attention.layer(name, "cpu", torch.float64)


def in_projection(layer: nn.Module) -> nn.Parameter:
    return layer.attention.in_proj_weight if hasattr(layer, "attention") else layer.in_proj.weight


def out_projection(layer: nn.Module) -> nn.Parameter:
    return (layer.attention if hasattr(layer, "attention") else layer).out_proj.weight


def with_weights_of(name: str, other: nn.Module) -> nn.Module:
    layer = attention_layer(name)
    with torch.no_grad():
        in_projection(layer).copy_(in_projection(other))
        out_projection(layer).copy_(out_projection(other))
    return layer


@pytest.mark.parametrize("name", ["with the prior as a mask", "textbook"])
def test_rivals_with_a_prior_compute_what_ours_does(name: str) -> None:
    ours, x = attention_layer("ours"), torch.randn(2, 5, attention.EMBED_DIM, dtype=torch.float64)
    prior = ours.prior
    with torch.no_grad():
        prior.rho.add_(0.3)
        prior.kappa.add_(0.2)
    rival = with_weights_of(name, ours)
    with torch.no_grad():
        rival.w.copy_(prior.w)
        rival.b.copy_(prior.b)
    wanted = [in_projection(ours), out_projection(ours), prior.rho, prior.kappa]
    *expected, by_rho, by_kappa = outputs_and_gradients(ours, [x], wanted)
    (slope_w,), (slope_b,) = (torch.autograd.grad(y, p) for y, p in ((prior.w, prior.rho), (prior.b, prior.kappa)))
    wanted = [in_projection(rival), out_projection(rival), rival.w, rival.b]
    found = outputs_and_gradients(rival, [x], wanted)
    assert_close(found, [*expected, by_rho / slope_w, by_kappa / slope_b])


def test_plain_attention_computes_what_torchs_does() -> None:
    plain, x = attention_layer("plain attention"), torch.randn(2, 5, attention.EMBED_DIM, dtype=torch.float64)
    other = with_weights_of("nn.MultiheadAttention", plain)
    found = [
        outputs_and_gradients(layer, [x], [in_projection(layer), out_projection(layer)]) for layer in (plain, other)
    ]
    assert_close(*found)


def padded(*lengths: int) -> Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("name", ["with the prior as a mask", "textbook"])
def test_rivals_that_are_given_a_mask_hide_padding_as_ours_does(name: str) -> None:
    ours, mask = attention_layer("ours"), padded(5, 2)
    x = torch.randn(2, 5, attention.EMBED_DIM, dtype=torch.float64)
    assert_close(with_weights_of(name, ours)(x, mask)[mask], ours(x, mask)[mask])


def test_attentions_without_a_prior_hide_padding_alike() -> None:
    plain, mask = attention_layer("plain attention"), padded(5, 2)
    x = torch.randn(2, 5, attention.EMBED_DIM, dtype=torch.float64)
    assert_close(with_weights_of("nn.MultiheadAttention", plain)(x, mask)[mask], plain(x, mask)[mask])
    assert_close(plain(x, mask)[1, :2], plain(x[1:, :2])[0])


@pytest.mark.parametrize("rival", ["bmm and two softmaxes", "bmm and a softmax"])
def test_alignments_that_are_given_masks_hide_padding_as_ours_do(rival: str) -> None:
    ours, other, inputs = built(rival)
    masks = [padded(4, 1), padded(3, 2)][: len(inputs)]
    inputs = [x * mask[..., None] for x, mask in zip(inputs, masks, strict=True)]
    expected, found = ours(*inputs, *masks), other(*inputs, *masks)
    if len(masks) == 1:
        expected, found = [expected], [found]
    for own, theirs, mask in zip(expected, found, masks, strict=True):
        assert_close(theirs[mask], own[mask])


def test_padded_batches_are_of_every_layer_at_every_shape_in_both_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[str, int, int, str]] = []

    def compare(ours: Callable[[], object], rivals: dict[str, Callable[[], object]]) -> tuple[bool, list[bool]]:
        return needs_gradient(ours()), [needs_gradient(rival()) for rival in rivals.values()]

    def needs_gradient(made: object) -> bool:
        return not (made[0] if isinstance(made, tuple) else made).is_inference()

    monkeypatch.setattr(padded_batches, "compare", compare)
    monkeypatch.setattr(
        padded_batches, "CASES", [replace(case, shapes=((3, 4), (2, 5))) for case in padded_batches.CASES]
    )
    for case, batch, length, phase, (ours, rivals) in padded_batches.run("cpu", torch.float32):
        assert ours == (phase == "training") and set(rivals) == {ours}
        assert len(rivals) == (4 if case.name.startswith("Gaussian") else 1)
        compared.append((case.name, batch, length, phase))
    names = ["GaussianSelfAttention(120, 4)", "DecomposableAlign()", "IntraAlign()", "masking.zero_padding"]
    assert compared == [
        (name, *shape, phase) for name in names for shape in ((3, 4), (2, 5)) for phase in ("training", "inference")
    ]


def test_lengths_of_a_padded_batch_are_from_half_to_the_whole() -> None:
    torch.manual_seed(0)
    premise, hypothesis, p_mask, h_mask = padded_batches.batch_of(2, 7, 500, 9)
    assert premise.shape == hypothesis.shape == (500, 9, 7)
    for mask in (p_mask, h_mask):
        assert mask.dtype == torch.bool and mask[0].all()
        assert set(mask.sum(1).tolist()) == {5, 6, 7, 8, 9} and torch.equal(mask, padded(*mask.sum(1).tolist()))
    assert not torch.equal(p_mask, h_mask)


def test_torchs_attention_computes_no_weights_that_are_not_asked_for() -> None:
    layer, made = attention_layer("nn.MultiheadAttention"), []
    layer.attention.register_forward_hook(lambda module, given, output: made.append(output))
    layer(torch.randn(2, 5, attention.EMBED_DIM, dtype=torch.float64))
    assert [weights for _, weights in made] == [None]


def test_ours_chooses_its_window_as_users_have_it() -> None:
    assert attention_layer("ours").window == "auto"


@pytest.mark.parametrize("name", ["ours", *attention.RIVALS])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_layer_and_its_words_are_of_the_dtype_that_is_asked_for(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "training_step", lambda module, x: (module, x))
    module, x = attention.step(name, 2, 3, "cpu", dtype)
    assert x.shape == (2, 3, attention.EMBED_DIM)
    assert {x.dtype, *(parameter.dtype for parameter in module.parameters())} == {dtype}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that say what they are of, and a comparison that says what it compares."""
    monkeypatch.setattr(attention, "step", lambda name, batch, length, device, dtype: (name, batch, length, dtype))
    monkeypatch.setattr(attention, "compare", lambda ours, rivals, rounds: (ours, rivals))


@pytest.mark.usefixtures("told")
def test_every_length_is_measured_of_ours_and_of_every_rival_that_can_be_had_there() -> None:
    dtype = torch.bfloat16
    found = list(attention.run("cpu", dtype))
    assert [(batch, length) for batch, length, _ in found] == [*attention.SHAPES, *((1, n) for n in attention.LONG)]
    for batch, length, (ours, rivals) in found:
        assert ours == ("ours", batch, length, dtype)
        assert rivals == {name: (name, batch, length, dtype) for name in rivals}
        matrices = {"with the prior as a mask", "textbook"} & set(rivals)
        assert len(matrices) == (2 if length <= attention.LONGEST_MATRIX else 0)
        assert {"plain attention", "nn.MultiheadAttention"} <= set(rivals) or length in attention.LONG


@pytest.mark.usefixtures("told")
def test_growth_is_the_cost_of_a_word_at_two_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    def compare(ours: tuple, rivals: dict[str, tuple], rounds: int) -> Any:
        """As if a step took a second for each word."""
        lengths = {name: step[2] for name, step in {"ours": ours, **rivals}.items()}
        return SimpleNamespace(seconds={name: Timing.of([float(length)]) for name, length in lengths.items()})

    monkeypatch.setattr(attention, "compare", compare)
    assert attention.growth() == {"8192": 1, "65536": 1}


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_memory_is_that_of_a_single_sentence_behind_a_smaller_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple] = []
    taken: list[tuple] = []

    def step(*words: Any) -> Callable[[], None]:
        made.append(words)
        return lambda: taken.append(words)

    monkeypatch.setattr(attention, "step", step)
    monkeypatch.setattr(attention, "peak_memory", lambda build, device: build() and made[-1])
    asked = ("textbook", 1, 7, kind, torch.bfloat16)
    assert attention.memory("textbook", 7, kind, torch.bfloat16) == asked
    assert taken == ([("textbook", 1, 256, kind, torch.bfloat16)] if kind == "cpu" else [])


def test_the_pages_goals_are_those_of_the_benchmarks() -> None:
    held = json.loads(MEASURED.read_text())
    goals = {row["length"]: row["goal"] for row in held["attention"] if row["goal"] is not None}
    assert goals == attention.GOALS
    assert [(row["layer"], row["rival"], row["goal"]) for row in held["layers"]] == [
        (case.name, case.rival, case.goal) for case in layers.CASES
    ]


def built(rival: str) -> tuple[nn.Module, nn.Module, list[Tensor]]:
    """A layer, its rival and small batches of what both are given, in float64."""
    (case,) = (case for case in layers.CASES if case.rival == rival)
    ours, other = case.build()
    return ours.double(), other.double(), [torch.randn(2, 4 - k, s[2]).double() for k, s in enumerate(case.shapes)]


def machine_weights(machine: nn.Module) -> list[Tensor]:
    """Of ours or of a textbook's, in one order."""
    if isinstance(machine, FactorizationMachine):
        return [machine.weight, machine.bias, machine.factors]
    return [machine.linear.weight, machine.linear.bias, machine.factors]


def machines(layer: nn.Module) -> list[nn.Module]:
    if isinstance(layer, AlignmentFactorization):
        return [layer.concat, layer.subtract, layer.multiply]
    return list(layer.machines) if isinstance(layer, layers.ThreeMachines) else [layer]


def weights(layer: nn.Module) -> list[Tensor]:
    if isinstance(layer, FactorizationMachine | AlignmentFactorization | layers.TextbookMachine | layers.ThreeMachines):
        return [weight for machine in machines(layer) for weight in machine_weights(machine)]
    return list(layer.parameters())


@pytest.mark.parametrize(
    "rival",
    [
        "textbook machine",
        "three textbook machines",
        "bmm and two softmaxes",
        "bmm and a softmax",
        "two Linear and a gate",
    ],
)
def test_textbook_layers_compute_what_ours_do(rival: str) -> None:
    ours, other, inputs = built(rival)
    if isinstance(ours, AlignmentFactorization):
        inputs = [inputs[0], torch.randn_like(inputs[0])]
    with torch.no_grad():
        for weight, own in zip(weights(other), weights(ours), strict=True):
            weight.copy_(own.view_as(weight))
    expected, found = (outputs_and_gradients(layer, inputs, weights(layer)) for layer in (ours, other))
    for theirs, own in zip(found, expected, strict=True):
        assert_close(theirs, own.view_as(theirs))


def test_each_case_measures_its_layer_against_its_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "CASES", [case for case in layers.CASES if case.rival != "torchfm"])
    monkeypatch.setattr(layers, "training_step", lambda module, *inputs: (module, inputs))
    monkeypatch.setattr(layers, "compare", lambda ours, rivals: (ours, rivals))
    for case, ((ours, inputs), rivals) in layers.run("cpu", torch.bfloat16):
        ((name, (rival, others)),) = rivals.items()
        assert name == case.rival and type(ours).__name__ == case.name.partition("(")[0]
        assert type(rival) is not type(ours) and others == inputs
        assert {x.dtype for x in (*inputs, *ours.parameters(), *rival.parameters())} == {torch.bfloat16}
        assert tuple(x.shape for x in inputs) == case.shapes


@pytest.mark.parametrize("measured", sorted(MEASURED.parent.glob("speed-*[0-9].json")), ids=lambda path: path.stem)
def test_the_page_tells_the_shapes_that_each_layer_was_measured_with(measured: Path) -> None:
    text = page(json.loads(measured.read_text()), "plot.png")
    for case in layers.CASES:
        shapes = ", ".join(f"{batch} × {length} × {features}" for batch, length, features in case.shapes)
        assert f"| {case.name} | {case.rival} | {shapes} |" in text
    assert "| DecomposableAlign() | bmm and two softmaxes | 64 × 14 × 200, 64 × 8 × 200 |" in text


def test_the_page_tells_the_words_of_the_table_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    spelled: list[Sequence[str]] = []

    def compare(ours: Callable[[], object], rivals: object, rounds: int) -> Comparison:
        ours()
        return Comparison({"ours": Timing.of([1.0])}, {}, rounds)

    monkeypatch.setattr(layers, "compare", compare)
    monkeypatch.setattr(layers.CharNgramEmbedding, "table", lambda self, words: spelled.append(words))
    layers.vocabulary_table("cpu")
    text = page(json.loads(MEASURED.read_text()), "plot.png")
    assert f"for {len(spelled[0]):,} words" in text
    assert {len(word) for word in spelled[0]} == set(range(4, 10))
