"""No weight is a denormal number for its distance, and what is hidden instead changes nothing."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from nlilayers import GaussianPrior, GaussianSelfAttention, HeadPriors, IntraAlign, LinearPrior
from nlilayers._denormals import hide_denormals
from strategies import normal

EMBED_DIM, HEADS = 24, 2
PRIORS = {
    "Gaussian": lambda: GaussianPrior(0.1, -0.1),
    "narrow": lambda: GaussianPrior(2.0, -0.1),
    "linear": lambda: LinearPrior(-1.0),
    "of each head": lambda: HeadPriors([GaussianPrior(0.02, -0.1), GaussianPrior(1.0, -0.1)]),
}


class Softmaxes(TorchDispatchMode):
    """What every softmax makes."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Tensor] = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        made = operator(*args, **(kwargs or {}))
        if operator is torch.ops.aten._softmax.default:
            self.made.append(made)
        return made


def attention(prior: nn.Module, window: int | str | None = "auto") -> GaussianSelfAttention:
    torch.manual_seed(0)
    return GaussianSelfAttention(EMBED_DIM, HEADS, prior=prior, window=window)


def literal(layer: GaussianSelfAttention, x: Tensor, mask: Tensor) -> Tensor:
    """The equations, word by word, with every weight."""
    q, k, v = layer.in_proj(x * mask[..., None]).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    scores = layer.scale * q @ k.mT + layer.prior(x.shape[1], x.shape[1])
    weights = scores.masked_fill(~mask[:, None, None], -math.inf).softmax(-1)
    return layer.out_proj((weights @ v).transpose(1, 2).flatten(2)) * mask[..., None]


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("window", ["auto", None, 60])
@pytest.mark.parametrize("length", [40, 150, 700])
def test_no_weight_is_denormal_for_its_distance(prior, window: int | str | None, length: int) -> None:
    layer, x = attention(prior(), window), normal(0, 2, length, EMBED_DIM).float()
    mask = torch.arange(length) < torch.tensor([[length], [length - 9]])
    with Softmaxes() as softmaxes:
        layer(x, mask)
    assert softmaxes.made
    for weights in softmaxes.made:
        assert not torch.any((weights > 0) & (weights < torch.finfo(torch.float32).tiny))


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("length", [40, 150])
@pytest.mark.parametrize("size", [1.0, 4.0])
def test_what_is_hidden_changes_no_digit_and_no_gradient(prior, length: int, size: float) -> None:
    """In float64, too, whose weights are denormal farther away: at distances of a steeper prior."""
    layer = attention(prior()).double()
    for parameter in layer.prior.parameters():
        parameter.data.mul_(8 if parameter.data > 0 else 1)
    x = normal(1, 2, length, EMBED_DIM, scale=size).requires_grad_()
    mask = torch.arange(length) < torch.tensor([[length], [length - 9]])
    ours, expected = layer(x, mask), literal(layer, x, mask)
    assert_close(ours, expected, atol=1e-12, rtol=1e-12)
    wanted = [x, *layer.parameters()]
    cotangent = normal(2, *ours.shape)
    for gradients in zip(*(torch.autograd.grad(y, wanted, cotangent) for y in (ours, expected)), strict=True):
        assert_close(*gradients, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("far", [10, 30, 100])
@pytest.mark.parametrize("window", ["auto", None])
@pytest.mark.parametrize("several", [False, True])
def test_a_far_word_that_outshouts_its_distance_is_heard(far: int, window: str | None, several: bool) -> None:
    """Its score makes up for a bias that alone would leave it a weight of 1e-40 and less."""
    narrow = GaussianPrior(1.0, -0.1)
    prior = HeadPriors([GaussianPrior(0.001, -0.1), narrow]) if several else narrow
    layer = attention(prior, window).double()
    x = normal(3, 1, 120, EMBED_DIM, scale=0.1)
    w_q, w_k, _ = layer.in_proj.weight.detach().unflatten(0, (3, HEADS, -1))[:, -1]
    direction = w_k.T @ (w_q @ x[0, 0])
    x[0, far] = direction * (far**2 + 2) / (layer.scale * direction.square().sum())
    mask = torch.ones(1, 120, dtype=torch.bool)
    expected = literal(layer, x, mask)
    alone = layer.prior(120, 120)[..., 0, far]
    assert alone.min() < math.log(1e-40)
    assert layer.attention_weights(x, mask)[0, -1, 0, far] > 0.01
    assert_close(layer(x, mask), expected, atol=1e-9, rtol=1e-9)


def test_a_bias_that_makes_nothing_denormal_is_left_as_it_is() -> None:
    """The least factor it is searched for is a normal number over the rounding, whatever a word's bias for itself."""
    x = normal(0, 1, HEADS, 12, 4).float()
    numbers = torch.finfo(torch.float32)
    least = math.log(numbers.tiny / numbers.eps)
    for own in (-40.0, 0.0, 40.0):
        for lowest, same in ((least / 2, True), (least + 1, True), (least - 1, False), (4 * least, False)):
            log_bias = own + torch.linspace(0, lowest, 12).expand(12, 12)
            found = hide_denormals(log_bias, torch.full((12, 1), own), x, x, None, 1.0)
            assert (found is log_bias) == same


@pytest.mark.parametrize("heads", [False, True])
def test_a_bias_is_hidden_below_the_square_of_the_rounding_and_the_range_of_its_heads_scores(heads: bool) -> None:
    """Two keys, one the other's negative, whose scores are as far apart as the bound says: 10, and 40."""
    queries = torch.tensor([5.0, 20.0])[None, :, None, None].expand(1, 2, 2, 1)
    keys = torch.tensor([1.0, -1.0])[None, None, :, None].expand(1, 2, 2, 1)
    own = torch.tensor([[-3.0], [7.0]])
    log_bias = own - torch.linspace(0, 120, 1201)
    shown = hide_denormals(log_bias.expand(2, 2, 1201) if heads else log_bias, own, queries, keys, None, 1.0)
    for head, apart in enumerate([10, 40] if heads else [40]):
        reach = 2 * math.log(2**23) + apart
        for row, bias in enumerate(shown[head] if heads else shown):
            assert torch.equal(bias[bias > -math.inf], log_bias[row, : len(bias[bias > -math.inf])])
            assert (bias > -math.inf).sum() == pytest.approx(10 * reach, rel=2e-3)


def test_padding_widens_no_range() -> None:
    """It hides as much beside a query and keys that would be far apart as without them."""
    queries, keys = normal(4, 2, 1, HEADS, 12, 4).float()
    mask = torch.arange(12)[None] < 9
    log_bias = GaussianPrior(2.0, -0.1)(12, 12)
    own = log_bias.diagonal()[:, None]
    expected = hide_denormals(log_bias, own, queries[:, :, :9], keys[:, :, :9], None, 1.0)
    padding = ~mask[:, None, :, None]
    assert (expected == -math.inf).sum() > 20
    for at_padding in ((queries.masked_fill(padding, 1e3), keys), (queries, keys.masked_fill(padding, 1e3))):
        assert torch.equal(hide_denormals(log_bias, own, *at_padding, mask, 1.0), expected)


@pytest.mark.parametrize("length", [40, 700])
def test_biases_of_the_projections_widen_no_range(length: int) -> None:
    """The keys of padding are the bias alone, here far from those of real words."""
    torch.manual_seed(0)
    layer = GaussianSelfAttention(EMBED_DIM, HEADS, prior=GaussianPrior(1.0, -0.1), bias=True)
    with torch.no_grad():
        layer.in_proj.bias[EMBED_DIM : 2 * EMBED_DIM] = 1e3
        layer.in_proj.weight[EMBED_DIM : 2 * EMBED_DIM, 0] = -1e3
    x = normal(5, 2, length, EMBED_DIM).float()
    x[:, :, 0] = 1
    mask = torch.arange(length) < torch.tensor([[length], [length - 9]])
    with Softmaxes() as softmaxes:
        layer(x, mask)
    assert softmaxes.made
    for weights in softmaxes.made:
        assert not torch.any((weights > 0) & (weights < torch.finfo(torch.float32).tiny))


def test_intra_alignment_hides_by_the_range_of_its_own_scores_between_real_words() -> None:
    """Of twice the scores, or of what the network makes of padding, the range would leave denormal weights."""
    feedforward = nn.Linear(EMBED_DIM, EMBED_DIM)
    with torch.no_grad():
        feedforward.weight.copy_(torch.eye(EMBED_DIM))
        feedforward.weight[:, 0], feedforward.bias[:] = -1e3, 1e3
    x = normal(0, 2, 40, EMBED_DIM, scale=0.6).float()
    x[:, :, 0] = 1
    mask = torch.arange(40) < torch.tensor([[40], [31]])
    weights = IntraAlign(feedforward, prior=GaussianPrior(1.0, -0.1)).alignment_weights(x, mask)
    assert not torch.any((weights > 0) & (weights < torch.finfo(torch.float32).tiny))


@pytest.mark.parametrize("prior", [GaussianPrior, lambda: LinearPrior(-1.0)])
@pytest.mark.parametrize("length", [40, 150, 700])
def test_none_is_in_intra_alignment_and_nothing_else_changes(prior, length: int) -> None:
    layer, x = IntraAlign(prior=prior()), normal(0, 2, length, EMBED_DIM, scale=0.3).float().requires_grad_()
    mask = torch.arange(length) < torch.tensor([[length], [length - 9]])
    with Softmaxes() as softmaxes:
        ours = layer(x, mask)
    assert softmaxes.made
    for weights in softmaxes.made:
        assert not torch.any((weights > 0) & (weights < torch.finfo(torch.float32).tiny))
    exact = (x * mask[..., None]).double()
    scores = exact @ exact.mT + layer.prior(length, length).double()
    expected = scores.masked_fill(~mask[:, None], -math.inf).softmax(-1) @ exact * mask[..., None]
    assert_close(ours.double(), expected, atol=1e-5, rtol=1e-5)
    gradients = [torch.autograd.grad(y.square().sum(), (x, *layer.parameters())) for y in (ours, expected)]
    for mine, theirs in zip(*gradients, strict=True):
        assert_close(mine, theirs, atol=1e-4, rtol=1e-4)
