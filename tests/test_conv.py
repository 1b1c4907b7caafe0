"""Gated convolution: Chen et al. 2019, Eqs 2 to 4, its ablations, and the laws of PAPERS that follow from them."""

import math
import warnings

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
from nlilayers import GatedConvBlock, GatedConvEncoder, functional, masking
from strategies import FEATURES, Sentences, normal

WIDTH = 3
SENTENCES = strategies.sentences()
KERNELS = st.integers(1, 5)
ABLATIONS = {
    "both gates": {},
    "-forget": {"forget_gate": False},
    "-output": {"output_gate": False},
    "neither": {"forget_gate": False, "output_gate": False},
}
ablations = pytest.mark.parametrize("ablation", ABLATIONS.values(), ids=ABLATIONS.keys())


def block(width: int = FEATURES, seed: int = 0, **options) -> GatedConvBlock:
    """Random in every parameter."""
    return laws.randomised(GatedConvBlock(FEATURES, width, **options), seed)


def encoder(width: int = FEATURES, layers: int = 2, seed: int = 0, **options) -> GatedConvEncoder:
    return laws.randomised(GatedConvEncoder(FEATURES, width, layers, **options), seed)


def gate_rows(layer: GatedConvBlock) -> dict[str, slice | None]:
    """Where the rows of each gate are, written out from the documented order: output, forget, candidate."""
    width = layer.out_features
    names = [*(["output"] if layer.output_gate else []), *(["forget"] if layer.forget_gate else []), "candidate"]
    rows = {name: slice(k * width, (k + 1) * width) for k, name in enumerate(names)}
    return {"output": None, "forget": None} | rows


def by_loop(layer: GatedConvBlock, hidden: list, cell: list) -> tuple[list, list]:
    parts = {
        name: None if rows is None else (layer.weight[rows].mT.tolist(), layer.bias[rows].tolist())
        for name, rows in gate_rows(layer).items()
    }
    projection = None if layer.projection is None else layer.projection.weight.tolist()
    return oracles.gated_convolution(hidden, cell, projection=projection, **parts)


def prefix(sentence: Sentences) -> Sentences:
    """The same words with the padding on the right: a window crosses padding in the middle, a loop over words not."""
    lengths = sentence.mask.sum(1, keepdim=True)
    return Sentences(sentence.tensors, (torch.arange(sentence.x.shape[1]) < lengths,))


def force(layer: GatedConvBlock, gate: str, value: float) -> GatedConvBlock:
    """The gate wide open (+inf) or shut (-inf) at every word."""
    rows = gate_rows(layer)[gate]
    layer.weight.data[rows], layer.bias.data[rows] = 0.0, value
    return layer


@ablations
@given(sentence=SENTENCES, kernel_size=KERNELS, width=st.sampled_from([WIDTH, FEATURES]), seed=strategies.seeds)
def test_a_block_equals_the_loop(
    device: str, ablation, sentence: Sentences, kernel_size: int, width: int, seed: int
) -> None:
    sentence, layer = prefix(sentence), block(width, seed % 1000, kernel_size=kernel_size, **ablation)
    cell = normal(seed, *sentence.x.shape[:2], width)
    there = sentence.to(device)
    ours = [y.cpu() for y in layer.to(device)(there.x, cell.to(device), there.mask)]
    layer = layer.cpu()
    for b, mask in enumerate(sentence.mask):
        expected = by_loop(layer, sentence.x[b][mask].tolist(), cell[b][mask].tolist())
        for y, loop in zip(ours, expected, strict=True):
            assert_close(y[b][mask], torch.tensor(loop, dtype=torch.float64).view(-1, width), atol=1e-10, rtol=1e-9)


@ablations
@given(sentence=SENTENCES, kernel_size=KERNELS, layers=st.integers(1, 3), seed=strategies.seeds)
def test_an_encoder_equals_the_loop(
    device: str, ablation, sentence: Sentences, kernel_size: int, layers: int, seed: int
) -> None:
    """The first cell is 0, and every sentence is run without its padding."""
    sentence = prefix(sentence)
    stack = encoder(WIDTH, layers, seed % 1000, kernel_size=kernel_size, **ablation)
    there = sentence.to(device)
    ours = stack.to(device)(there.x, there.mask).cpu()
    stack = stack.cpu()
    for b, mask in enumerate(sentence.mask):
        hidden = sentence.x[b][mask].tolist()
        cell = [[0.0] * WIDTH for _ in hidden]
        for layer in stack.blocks:
            hidden, cell = by_loop(layer, hidden, cell)
        expected = torch.tensor(hidden, dtype=torch.float64).view(-1, WIDTH)
        assert_close(ours[b][mask], expected, atol=1e-10, rtol=1e-9)


@given(sentence=SENTENCES, kernel_size=KERNELS)
def test_peer_bug_6_padding_does_not_leak_between_convolutions(sentence: Sentences, kernel_size: int) -> None:
    """AllenNLP masks between its blocks alone. Here a padded stack is the unpadded one, sentence by sentence."""
    sentence, stack = prefix(sentence), encoder(layers=3, kernel_size=kernel_size)
    padded = stack(sentence.x, sentence.mask)
    for b, mask in enumerate(sentence.mask):
        if mask.any():
            assert_close(padded[b : b + 1, mask], stack(sentence.x[b : b + 1, mask]), atol=1e-12, rtol=1e-12)


@given(sentence=SENTENCES)
def test_padding_in_the_middle_acts_as_zeros(sentence: Sentences) -> None:
    layer = block()
    zeroed = sentence.x.masked_fill(~sentence.mask[..., None], 0)
    for ours, theirs in zip(layer(sentence.x, None, sentence.mask), layer(zeroed), strict=True):
        assert_close(ours[sentence.mask], theirs[sentence.mask], atol=1e-12, rtol=1e-12)


@given(sentence=SENTENCES)
def test_garbage_in_the_cells_padding_changes_nothing(device: str, sentence: Sentences) -> None:
    sentence, layer = sentence.to(device), block(WIDTH).to(device)
    cell = normal(1, *sentence.x.shape[:2], WIDTH).to(device)
    garbled = cell.masked_fill(~sentence.mask[..., None], math.nan).requires_grad_()
    ours = layer(sentence.x, garbled, sentence.mask)
    for y, expected in zip(ours, layer(sentence.x, cell, sentence.mask), strict=True):
        assert torch.equal(y, expected) and torch.all(y[~sentence.mask] == 0)
    gradient, *others = torch.autograd.grad(ours[0].sum() + ours[1].sum(), (garbled, *layer.parameters()))
    assert torch.all(gradient[~sentence.mask] == 0)
    assert all(torch.isfinite(g).all() for g in (gradient, *others))


@given(sentence=SENTENCES, width=st.sampled_from([WIDTH, FEATURES]))
def test_an_open_forget_gate_carries_the_cell_and_a_shut_one_takes_what_enters(sentence: Sentences, width: int) -> None:
    layer = block(width)
    entering = sentence.x if layer.projection is None else layer.projection(sentence.x)
    cell = normal(1, *sentence.x.shape[:2], width)
    assert_close(force(layer, "forget", math.inf)(sentence.x, cell)[1], cell, atol=1e-12, rtol=0)
    assert torch.all(force(layer, "forget", math.inf)(sentence.x)[1] == 0)
    assert_close(force(layer, "forget", -math.inf)(sentence.x, cell)[1], entering, atol=1e-12, rtol=0)


@given(sentence=SENTENCES)
def test_a_shut_output_gate_gives_the_cell_and_an_open_one_adds_the_candidate(sentence: Sentences) -> None:
    hidden, cell = force(block(), "output", -math.inf)(sentence.x)
    assert torch.equal(hidden, cell)
    layer = force(block(), "output", math.inf)
    rows = gate_rows(layer)["candidate"]
    candidate = functional.same_convolution(sentence.x, layer.weight[rows], layer.bias[rows]).tanh()
    hidden, cell = layer(sentence.x)
    assert_close(hidden, cell + candidate, atol=1e-12, rtol=1e-12)


@given(sentence=SENTENCES, seed=strategies.seeds)
def test_hidden_states_stay_within_1_of_cells_and_cells_between_what_they_mix(sentence: Sentences, seed: int) -> None:
    layer, previous = block(seed=seed % 1000), normal(seed, *sentence.x.shape)
    hidden, cell = layer(sentence.x, previous)
    assert torch.all((hidden - cell).abs() <= 1 + 1e-12)  # below 1, but a tanh of 20 is 1 in floating point
    assert torch.all(cell <= torch.maximum(previous, sentence.x) + 1e-12)
    assert torch.all(cell >= torch.minimum(previous, sentence.x) - 1e-12)


@given(sentence=SENTENCES)
def test_cells_stay_below_the_largest_state_of_the_layers_beneath(sentence: Sentences) -> None:
    hidden, cell, largest = sentence.x, None, torch.zeros_like(sentence.x)
    for k in range(4):
        largest = torch.maximum(largest, hidden.abs())
        hidden, cell = block(seed=k)(hidden, cell)
        assert torch.all(cell.abs() <= largest + 1e-12)


@pytest.mark.parametrize(("kernel_size", "layers"), [(3, 2), (5, 2), (3, 3), (2, 3)])
def test_translation_equivariance_away_from_both_ends(kernel_size: int, layers: int) -> None:
    stack, x = encoder(layers=layers, kernel_size=kernel_size), normal(0, 2, 31, FEATURES)
    edge = layers * (kernel_size // 2) + 1
    assert_close(stack(x)[:, edge + 1 : -edge], stack(x[:, 1:])[:, edge:-edge], atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("kernel_size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("of", ["hidden", "cell"])
def test_the_receptive_field_is_exact(kernel_size: int, layers: int, of: str) -> None:
    """L (k - 1) + 1 words for the hidden state, and for the cell too: through the forget gate."""
    x = normal(0, 1, 31, FEATURES).requires_grad_()
    hidden, cell = x, None
    for k in range(layers):
        hidden, cell = block(seed=k, kernel_size=kernel_size)(hidden, cell)
    (hidden if of == "hidden" else cell)[0, 15].sum().backward()
    left, right = layers * ((kernel_size - 1) // 2), layers * (kernel_size // 2)
    assert (x.grad[0].abs().sum(-1) > 0).tolist() == [15 - left <= j <= 15 + right for j in range(31)]
    assert left + right + 1 == layers * (kernel_size - 1) + 1


@ablations
def test_windows_of_one_word_do_not_know_the_order(ablation) -> None:
    stack, x = encoder(kernel_size=1, **ablation), normal(0, 2, 7, FEATURES)
    order = torch.tensor([3, 1, 6, 0, 2, 5, 4])
    assert_close(stack(x[:, order]), stack(x)[:, order], atol=1e-12, rtol=1e-12)
    wider = encoder(kernel_size=3, **ablation)
    assert (wider(x[:, order]) - wider(x)[:, order]).abs().max() > 1e-2


@given(sentence=SENTENCES, kernel_size=st.sampled_from([1, 3, 5]))
def test_reversing_the_sentence_and_the_kernels_reverses_the_output(sentence: Sentences, kernel_size: int) -> None:
    stack, mirrored = encoder(kernel_size=kernel_size), encoder(kernel_size=kernel_size)
    for layer in mirrored.blocks:
        layer.weight.data = layer.weight.data.flip(1)
    ours = mirrored(sentence.x.flip(1), sentence.mask.flip(1))
    assert_close(ours, stack(sentence.x, sentence.mask).flip(1), atol=1e-12, rtol=1e-12)


@given(sentence=SENTENCES, kernel_size=KERNELS)
def test_the_windows_are_conv1ds(device: str, sentence: Sentences, kernel_size: int) -> None:
    """A cross-correlation, with its kernel not flipped."""
    conv = nn.Conv1d(FEATURES, WIDTH, kernel_size, dtype=torch.float64, device=device)
    x = sentence.x.to(device)
    padded = nn.functional.pad(x.mT, ((kernel_size - 1) // 2, kernel_size // 2))
    assert_close(functional.same_convolution(x, conv.weight.mT, conv.bias), conv(padded).mT, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("batch", [0, *range(1, 19), 31, 32, 33, 50])
@pytest.mark.parametrize(("kernel_size", "length"), [(3, 5), (2, 3), (5, 1)])
def test_windows_of_any_batch_are_conv1ds(device: str, batch: int, kernel_size: int, length: int) -> None:
    """No sentence sees the one beside it, whatever they share; neither do their gradients."""
    conv = nn.Conv1d(FEATURES, WIDTH, kernel_size, dtype=torch.float64, device=device)
    x, grad_y = normal(batch, batch, length, FEATURES).to(device), normal(1, batch, length, WIDTH).to(device)
    pad = (kernel_size - 1) // 2, kernel_size // 2

    def gradients(y: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(y, (x, conv.weight, conv.bias), grad_y)

    for laid in (x, x.mT.contiguous().mT, x.transpose(0, 1).contiguous().transpose(0, 1)):
        words = laid.detach().requires_grad_()
        ours = functional.same_convolution(words, conv.weight.mT, conv.bias)
        theirs = conv(nn.functional.pad(words.mT, pad)).mT
        assert ours.shape == (batch, length, WIDTH)
        assert_close(ours, theirs, atol=1e-12, rtol=1e-12)
        for found, wanted in zip(gradients(ours, words), gradients(theirs, words), strict=True):
            assert_close(found, wanted, atol=1e-12, rtol=1e-12)


class Seen(TorchDispatchMode):
    """Keeps the first input of each operator."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: dict[str, Tensor] = {}

    def __torch_dispatch__(
        self, function: object, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        if args and isinstance(args[0], Tensor):
            self.inputs[function.__name__] = args[0]
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(("batch", "images", "rows"), [(32, 2, 16), (17, 17, 1), (18, 2, 9), (3, 1, 3), (50, 5, 10)])
def test_what_a_cpu_is_given(batch: int, images: int, rows: int) -> None:
    """Images of many rows, nothing copied, and one tensor whose tanh is taken: what makes them fast there."""
    x = normal(0, batch, 4, FEATURES)
    with Seen() as seen:
        block()(x)
    convolved, squashed = seen.inputs["convolution.default"], seen.inputs["tanh.default"]
    assert convolved.shape == (images, FEATURES, rows, 4) and convolved.data_ptr() == x.data_ptr()
    assert squashed.shape == x.shape and squashed.is_contiguous()


def test_traced_windows_fit_other_batches(device: str) -> None:
    """How many sentences the first batch had must not stay in the trace."""
    layer = block().to(device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated, and reports every shape that is read
        trace = torch.jit.trace(layer, (normal(0, 16, 4, FEATURES).to(device),))
    for batch, length in ((1, 4), (7, 9), (32, 2)):
        x = normal(batch, batch, length, FEATURES).to(device)
        assert_close(trace(x), layer(x), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("kernel_size", range(1, 6))
def test_compiled_windows_are_those_of_the_plain_ones(device: str, kernel_size: int) -> None:
    """Compiled, they are a product of their own."""
    torch._dynamo.reset()
    compiled = torch.compile(functional.same_convolution, fullgraph=True, backend="eager")
    weight, bias = normal(0, WIDTH, kernel_size, FEATURES).to(device), normal(1, WIDTH).to(device)
    for length in (0, 1, 2, 7):
        x = normal(length, 2, length, FEATURES).to(device)
        plain = functional.same_convolution(x, weight, bias)
        assert plain.shape == (2, length, WIDTH)
        assert_close(compiled(x, weight, bias), plain, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("kernel_size", range(1, 6))
@pytest.mark.parametrize("length", [0, 1, 2, 7])
@pytest.mark.usefixtures("compiling")
def test_the_product_that_stands_for_the_windows_is_conv1ds(kernel_size: int, length: int) -> None:
    conv, x = nn.Conv1d(FEATURES, WIDTH, kernel_size, dtype=torch.float64), normal(length, 2, length, FEATURES)
    ours = functional.same_convolution(x, conv.weight.mT, conv.bias)
    assert ours.shape == (2, length, WIDTH)
    if length:
        padded = nn.functional.pad(x.mT, ((kernel_size - 1) // 2, kernel_size // 2))
        assert_close(ours, conv(padded).mT, atol=1e-12, rtol=1e-12)


def first_cell_gradients(first: Tensor | None, x: Tensor) -> tuple[float, Tensor]:
    layer = block()
    hidden, cell = layer(x, first)
    (hidden.sum() + cell.square().sum()).backward()
    return layer.weight.grad[gate_rows(layer)["forget"]].abs().max().item(), cell


def test_a_first_cell_of_h0_would_kill_the_forget_gates_gradient() -> None:
    """Then c1 = h0 whatever the gate says. With cells of 0 the gate matters from the first layer on."""
    x = normal(0, 2, 7, FEATURES)
    gradient, cell = first_cell_gradients(x, x)
    assert gradient < 1e-12
    assert_close(cell, x, atol=1e-12, rtol=0)
    gradient, cell = first_cell_gradients(None, x)
    assert gradient > 1e-3
    assert torch.equal(cell, first_cell_gradients(torch.zeros_like(x), x)[1])


@ablations
def test_ablations_leave_out_what_they_say(ablation) -> None:
    x, cell = normal(0, 2, 7, FEATURES), normal(1, 2, 7, WIDTH)
    layer = block(WIDTH, **ablation)
    hidden, new_cell = layer(x, cell)
    gates = functional.same_convolution(x, layer.weight, layer.bias)
    candidate = gates[..., -WIDTH:]
    if not layer.forget_gate:
        assert torch.equal(new_cell, layer.projection(x)) and torch.equal(layer(x)[0], hidden)
    if layer.output_gate:
        assert torch.all((hidden - new_cell).abs() < candidate.tanh().abs())
    else:
        assert_close(hidden - new_cell, candidate.relu(), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize(("m", "n"), [(FEATURES, WIDTH), (FEATURES, FEATURES), (WIDTH, FEATURES)])
@ablations
def test_parameters_are_the_papers(m: int, n: int, ablation) -> None:
    """(m k n + n) for each gate that there is, and a projection m n without bias exactly when the widths differ."""
    layer = GatedConvBlock(m, n, kernel_size=3, **ablation)
    gates = 3 - len(ablation)
    assert sum(p.numel() for p in layer.parameters()) == gates * (3 * m * n + n) + (m * n if m != n else 0)
    assert (layer.projection is None) == (m == n)


def test_parameter_counts_of_the_papers_encoders() -> None:
    def count(*sizes: int, **options) -> int:
        return sum(p.numel() for p in GatedConvEncoder(*sizes, **options, device="meta").parameters())

    assert count(300, 300, 4) == 3_243_600
    assert count(400, 300, 4) == 3_633_600
    assert count(1200, 300, 2) == 4_411_800
    assert count(40, 100, 2) == 130_600
    assert count(300, 300, 1, forget_gate=False) == count(300, 300, 1, output_gate=False) == 2 * 270_300


@given(sentence=SENTENCES)
def test_module_equals_function(sentence: Sentences) -> None:
    layer, cell = block(WIDTH), normal(1, *sentence.x.shape[:2], WIDTH)
    output, forget, candidate = functional.same_convolution(sentence.x, layer.weight, layer.bias).chunk(3, -1)
    expected = functional.gated_cell(layer.projection(sentence.x), cell, candidate, forget, output)
    for ours, theirs in zip(layer(sentence.x, cell), expected, strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("width", [WIDTH, FEATURES])
@ablations
def test_gradcheck_of_a_block_with_cells(ablation, width: int) -> None:
    layer = block(width, **ablation)
    mask = torch.tensor([[True, True, False, False], [True, True, True, True]])
    names = [name for name, _ in layer.named_parameters()]
    inputs = normal(0, 2, 4, FEATURES).requires_grad_(), normal(1, 2, 4, width).requires_grad_()

    def call(hidden: Tensor, cell: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (hidden, cell, mask))

    assert torch.autograd.gradcheck(call, (*inputs, *(p.detach().clone().requires_grad_() for p in layer.parameters())))


def test_dropout_acts_between_blocks_in_training_alone() -> None:
    x = normal(0, 2, 7, FEATURES)
    stack = encoder(dropout=0.5)
    assert not torch.equal(stack(x), stack(x))
    assert torch.equal(stack.eval()(x), encoder()(x))
    assert torch.equal(encoder(layers=1, dropout=0.5)(x), encoder(layers=1)(x))


@pytest.mark.parametrize("layers", [1, 2, 4])
@pytest.mark.parametrize("in_features", [200, 300])
def test_initialisation_keeps_the_variance(in_features: int, layers: int) -> None:
    y = GatedConvEncoder(in_features, 200, layers)(torch.randn(8, 40, in_features))
    assert 0.75 < y.var().item() < 1.3


def test_convolutions_start_with_the_variance_that_keeps_that_of_a_window() -> None:
    weight = GatedConvBlock(200, 200).weight
    assert weight.std().item() == pytest.approx((3 * 200) ** -0.5, rel=0.02)


def test_device_and_dtype_are_the_constructors(device: str) -> None:
    stack = GatedConvEncoder(FEATURES, WIDTH, 2, device=device, dtype=torch.float64)
    assert {(p.dtype, p.device.type) for p in stack.parameters()} == {(torch.float64, device)}
    assert stack(normal(0, 1, 3, FEATURES).to(device)).device.type == device


def test_reset_parameters_draws_anew() -> None:
    stack = GatedConvEncoder(FEATURES, WIDTH, 2)
    for parameter in stack.parameters():
        nn.init.constant_(parameter, 3.0)
    stack.reset_parameters()
    for layer in stack.blocks:
        rows = gate_rows(layer)
        assert layer.weight.std() > 0 and torch.all(layer.bias[rows["forget"]] == -2)
        assert torch.all(layer.bias[rows["output"]] == 0) and torch.all(layer.bias[rows["candidate"]] == 0)
    assert stack.blocks[0].projection.weight.std() > 0
    unforgetful = GatedConvBlock(FEATURES, WIDTH, forget_gate=False)
    assert torch.all(unforgetful.bias == 0)


def test_repr_says_the_sizes() -> None:
    expected = "in_features=5, out_features=3, kernel_size=2, forget_gate=False, output_gate=True"
    assert GatedConvBlock(5, 3, kernel_size=2, forget_gate=False).extra_repr() == expected
    assert GatedConvEncoder(5, 3, 2).extra_repr() == "in_features=5, hidden_size=3, num_layers=2"


def test_bad_sizes_are_refused() -> None:
    for sizes, name in (((0, 3), "in_features"), ((5, 0), "out_features")):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            GatedConvBlock(*sizes)
    with pytest.raises(ValueError, match="kernel_size must be at least 1, got -1"):
        GatedConvEncoder(5, 3, 1, kernel_size=-1)
    with pytest.raises(ValueError, match="num_layers must be at least 1, got 0"):
        GatedConvEncoder(5, 3, 0)
    with pytest.raises(ValueError, match="hidden_size must be at least 1, got 0"):
        GatedConvEncoder(5, 0, 1)
    with pytest.raises(ValueError, match=r"dropout must be a probability, got 1\.5"):
        GatedConvEncoder(5, 3, 1, dropout=1.5)


def test_sentences_and_cells_that_do_not_fit_are_refused() -> None:
    layer, x = GatedConvBlock(FEATURES, WIDTH), torch.ones(2, 4, FEATURES)
    with pytest.raises(
        ValueError, match=r"hidden must be .* \(batch, length, 5\), got torch.float32 of shape \(2, 4\)"
    ):
        layer(x[..., 0])
    with pytest.raises(ValueError, match=r"x must be .* \(batch, length, 5\), got .* \(2, 4, 3\)"):
        GatedConvEncoder(FEATURES, WIDTH, 2)(x[..., :3])
    with pytest.raises(
        ValueError, match=r"cell must be .* \(batch, length, 3\), got torch.float32 of shape \(2, 4, 5\)"
    ):
        layer(x, x)
    with pytest.raises(ValueError, match=r"same batch and length, got \(2, 3, 3\) and \(2, 4, 5\)"):
        layer(x, x[:, :3, :3])
    with pytest.raises(ValueError, match=r"mask must be torch.bool of shape \(2, 4\) .* got torch.float32"):
        layer(x, None, torch.ones(2, 4))


@given(sentence=strategies.sentences(), seed=strategies.seeds)
def test_cells_lie_between_the_old_cell_and_the_projected_words(sentence: Sentences, seed: int) -> None:
    layer, previous = block(WIDTH, seed % 1000), normal(seed, *sentence.x.shape[:2], WIDTH)
    entering = layer.projection(sentence.x)
    cell = layer(sentence.x, previous)[1]
    assert torch.all(cell <= torch.maximum(previous, entering) + 1e-12)
    assert torch.all(cell >= torch.minimum(previous, entering) - 1e-12)


@pytest.mark.parametrize("kernel_size", [3, 5, 8])
def test_peer_bug_11_words_shorter_than_the_kernel_are_encoded(kernel_size: int) -> None:
    """Eq 9, the maximum over characters: neither padding nor the other words of the batch change a word."""
    stack = encoder(layers=2, kernel_size=kernel_size)
    characters = normal(0, 3, 6, FEATURES)
    mask = masking.lengths_to_mask(torch.tensor([1, 2, 6]))
    batch = masking.masked_max(stack(characters, mask), mask)
    for k, length in enumerate((1, 2, 6)):
        alone = stack(characters[k : k + 1, :length]).amax(1)[0]
        assert_close(batch[k], alone, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("kernel_size", [1, 2, 3])
def test_no_words_have_no_windows(kernel_size: int) -> None:
    weight, bias = normal(0, 4, kernel_size, 3).requires_grad_(), normal(1, 4).requires_grad_()
    windows = functional.same_convolution(torch.zeros(2, 0, 3, dtype=torch.float64), weight, bias)
    assert windows.shape == (2, 0, 4)
    for gradient, like in zip(torch.autograd.grad(windows.sum(), (weight, bias)), (weight, bias), strict=True):
        assert torch.equal(gradient, torch.zeros_like(like))


@pytest.mark.parametrize("autocast", [False, True])
def test_float16_is_no_convolution_on_a_cpu(autocast: bool) -> None:
    """Which takes a hundred times as long there, backwards."""
    layer = block().float() if autocast else block().half()
    x = normal(0, 3, 7, FEATURES).to(layer.weight.dtype).requires_grad_()
    with Operations() as seen, torch.autocast("cpu", torch.float16, enabled=autocast):
        hidden, _ = layer(x)
        hidden.float().square().sum().backward()
    assert "aten::tanh" in seen.names and not any("convolution" in name for name in seen.names)


def test_a_projection_of_another_kind_is_not_reset() -> None:
    layer = GatedConvBlock(3, 4)
    layer.projection = nn.Sequential(layer.projection)
    held = layer.projection[0].weight.clone()
    before = layer.weight.clone()
    layer.reset_parameters()
    assert torch.equal(layer.projection[0].weight, held) and not torch.equal(layer.weight, before)


def test_cells_at_padding_are_0_whatever_the_projection_is() -> None:
    layer, x, mask = GatedConvBlock(3, 4), normal(0, 1, 5, 3).float(), torch.arange(5)[None] < 3
    layer.projection = nn.Linear(3, 4)
    _, cell = layer(x, mask=mask)
    assert cell[:, :3].all() and not cell[:, 3:].any()
    layer.projection = nn.Sequential(nn.Linear(3, 4))
    _, cell = layer(x, mask=mask)
    assert cell[:, :3].all() and not cell[:, 3:].any()
    layer.projection = nn.Linear(3, 4, bias=False)
    layer.projection.register_forward_hook(lambda module, args, output: output + 1)
    _, cell = layer(x, mask=mask)
    assert cell[:, :3].all() and not cell[:, 3:].any()


class Operations(TorchDispatchMode):
    """The names of all that is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.names.add(operator.name().partition(".")[0])
        return operator(*args, **(kwargs or {}))
