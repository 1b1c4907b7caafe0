"""torch.func and torch.utils.checkpoint make of every layer and model what a plain loop over it makes."""

import math

import pytest
import torch
from reliability import transforms
from reliability.cases import CASES, LONG, MODELS, Case, outputs
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp, vmap
from torch.testing import assert_close

from nlilayers import DecomposableAlign, GaussianPrior, GaussianSelfAttention, functional, masking
from strategies import normal

POSSIBLE = [
    (name, attack) for name in CASES for attack in transforms.ATTACKS if transforms.possible(CASES[name], attack)
]


def test_a_difference_is_the_largest_share_of_what_should_be() -> None:
    """Of tensors whose numbers are all below 1, the difference itself."""
    ones = torch.ones(2, 2)
    assert transforms.difference((ones,), (ones,)) == 0 == transforms.difference((), ())
    assert transforms.difference((ones, 0.5 * ones), (ones, 0.25 * ones)) == 0.25
    assert transforms.difference((ones, ones), (ones, 4 * ones)) == 0.75
    assert transforms.difference((torch.empty(0), -ones), (torch.empty(0), ones)) == 2
    for wrong, message in ((ones[0], "shapes differ"), (ones * torch.inf, "not finite"), (ones * torch.nan, "finite")):
        for pair in ((wrong, ones), (ones, wrong)):
            with pytest.raises(AssertionError, match=message):
                transforms.difference(*((x,) for x in pair))


@pytest.mark.parametrize(("name", "attack"), POSSIBLE)
def test_every_layer_and_model_equals_its_loop(name: str, attack: str) -> None:
    assert transforms.ATTACKS[attack](CASES[name], 3, 4) < 1e-11


class Matched(nn.Module):
    """Layers with functions of the library around them."""

    def __init__(self) -> None:
        super().__init__()
        self.context, self.align = GaussianSelfAttention(6, 2), DecomposableAlign(nn.Linear(6, 4))

    def forward(self, a: Tensor, b: Tensor, a_mask: Tensor, b_mask: Tensor) -> Tensor:
        a, b = self.context(a, a_mask), self.context(b, b_mask)
        beta, alpha = self.align(a, b, a_mask, b_mask)
        scores = functional.dot_scores(beta, alpha)
        return masking.masked_mean(beta, a_mask) * masking.masked_max(alpha, b_mask) + scores.mean()


def test_fx_traces_a_model_around_the_layers() -> None:
    """As the page of conventions says."""

    class Tracer(torch.fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return type(m).__module__.startswith("nlilayers") or super().is_leaf_module(m, module_qualified_name)

    model = Matched().double()
    graph = Tracer(autowrap_modules=(math, masking, functional)).trace(model)
    traced = torch.fx.GraphModule(model, graph)
    masks = masking.lengths_to_mask(torch.tensor([4, 2])), masking.lengths_to_mask(torch.tensor([1, 3]))
    given = normal(0, 2, 4, 6), normal(1, 2, 3, 6), *masks
    assert torch.equal(traced(*given), model(*given))
    assert sum(node.op == "call_module" for node in graph.nodes) == 3


@pytest.mark.parametrize("name", [name for name, case in MODELS.items() if case.recurrent])
@pytest.mark.parametrize("attack", transforms.BEYOND_AN_LSTM)
def test_torch_has_no_vmap_over_an_lstm(name: str, attack: str) -> None:
    """Where it has one, this test fails, and the models with an LSTM join the others."""
    said = transforms.refusal(CASES[name], attack, 3, 4)
    if attack == "per-sample gradients":
        assert said.startswith("output with shape") and "doesn't match the broadcast shape" in said
    else:
        assert said == "Batching rule not implemented for aten::lstm.input. We could not generate a fallback."


def test_in_float32_an_lstm_has_per_sample_gradients_and_no_forward_mode() -> None:
    """oneDNN's kernel, which float64 has not: the other way round."""
    lstm, x = nn.LSTM(5, 3, batch_first=True), normal(0, 4, 7, 5).float()
    parameters = {name: p.detach() for name, p in lstm.named_parameters()}

    def loss(parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return functional_call(lstm, parameters, (x[None],))[0].sin().sum()

    together = vmap(grad(loss), (None, 0))(parameters, x)
    for name, ours in together.items():
        assert_close(ours, torch.stack([grad(loss)(parameters, one)[name] for one in x]), atol=1e-5, rtol=1e-5)
    with pytest.raises(NotImplementedError, match="Trying to use forward AD with mkldnn_rnn_layer"):
        jvp(loss, (parameters, x[0]), (parameters, x[0]))


def test_a_window_that_depends_on_the_scores_is_not_chosen_under_vmap() -> None:
    """There the whole matrix is taken, as near as the tolerance; by itself, a sentence is read in blocks."""
    layer = GaussianSelfAttention(6, 2, prior=GaussianPrior(0.5), tolerance=1e-13).double()
    x = normal(0, 3, 1, LONG, 6)
    assert all(layer.discarded_mass_bound(one).max() > 0 for one in x)
    assert torch.equal(vmap(lambda one: layer.discarded_mass_bound(one))(x), torch.zeros(3, 1, 2, LONG).double())
    together, whole = vmap(layer)(x), GaussianSelfAttention(6, 2, prior=GaussianPrior(0.5), window=None).double()
    whole.load_state_dict(layer.state_dict())
    assert_close(together, torch.stack([whole(one) for one in x]), atol=1e-14, rtol=1e-14)
    assert_close(together, torch.stack([layer(one) for one in x]), atol=1e-11, rtol=1e-11)


def test_dropout_is_recomputed_as_it_was() -> None:
    """The random numbers of a checkpointed call are drawn again."""
    case = Case(lambda: GaussianSelfAttention(6, 2, dropout=0.5), CASES["GaussianSelfAttention"].draw)
    assert transforms.recomputed(case, 3, 4) == 0


def test_dropout_under_vmap_must_be_told_whose_numbers_it_draws() -> None:
    layer, x = GaussianSelfAttention(6, 2, dropout=0.5).double(), normal(0, 1, 1, 7, 6).expand(3, 1, 7, 6)
    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
        vmap(layer)(x)
    same, different = vmap(layer, randomness="same")(x), vmap(layer, randomness="different")(x)
    assert torch.equal(same[0], same[1]) and not torch.equal(different[0], different[1])


def test_lengths_become_masks_under_vmap_when_they_are_told_how_long() -> None:
    lengths = torch.tensor([[3, 1], [0, 2]])
    together = vmap(lambda one: masking.lengths_to_mask(one, 3))(lengths)
    assert torch.equal(together, torch.stack([masking.lengths_to_mask(one, 3) for one in lengths]))
    with pytest.raises(RuntimeError, match=r"vmap: It looks like you're calling .item\(\) on a Tensor"):
        vmap(masking.lengths_to_mask)(lengths)
    assert masking.lengths_to_mask(lengths[0].to("meta"), 3).shape == (2, 3)


LAYERS = {name: case.module() for name, case in CASES.items() if name not in MODELS}
OF_NUMBERS = [name for name in LAYERS if CASES[name].inputs(2, 3)[0].is_floating_point()]
TRAINED = [name for name, layer in LAYERS.items() if any(True for _ in layer.parameters())]


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_forward_mode_within_forward_mode_is_the_second_derivative(name: str) -> None:
    """By the inputs, along two directions: what each mode finds alone says nothing of one within the other."""
    module, inputs = LAYERS[name], CASES[name].inputs(2, 3)
    real = tuple(x for x in inputs if x.is_floating_point())
    assert all(x is y for x, y in zip(real, inputs, strict=False))
    along, across = (tuple(normal(seed, *x.shape) for x in real) for seed in (1, 2))

    def loss(*moved: torch.Tensor) -> torch.Tensor:
        return sum((y * y.cos()).sum() for y in outputs(module, (*moved, *inputs[len(moved) :])))

    def slope(*moved: torch.Tensor) -> torch.Tensor:
        leaves = grad(loss, tuple(range(len(real))))(*moved)
        return sum((g * v).sum() for g, v in zip(leaves, along, strict=True))

    forth = jvp(lambda *moved: jvp(loss, moved, along)[1], real, across)[1]
    back = grad(slope, tuple(range(len(real))))(*real)
    assert_close(forth, sum((g * v).sum() for g, v in zip(back, across, strict=True)))


@pytest.mark.parametrize("name", TRAINED)
def test_an_ensemble_over_one_parameter_has_its_gradients(name: str) -> None:
    """The others are shared, or frozen."""
    module, inputs = LAYERS[name], CASES[name].inputs(2, 3)

    def loss(parameter: str, value: torch.Tensor) -> torch.Tensor:
        return sum((y * y).sum() for y in outputs(lambda *x: functional_call(module, {parameter: value}, x), inputs))

    for parameter, value in module.named_parameters():
        three = torch.stack([value.detach() + k for k in (0.0, 0.1, 0.2)]).requires_grad_()
        together = torch.autograd.grad(vmap(lambda v: loss(parameter, v))(three).sum(), three)[0]  # noqa: B023
        alone = torch.cat([torch.autograd.grad(loss(parameter, v), three, retain_graph=True)[0][None] for v in three])
        assert_close(together, alone.sum(0))
