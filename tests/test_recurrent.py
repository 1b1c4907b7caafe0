"""The LSTM over padded sentences: its loop, its laws, and what two directions owe each other."""

import contextlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.testing import assert_close

import laws
import models
import oracles_lstm_attention as oracles
import strategies
from nli_common.lstm_operator import lstm_states
from nli_common.recurrent import SentenceLSTM, _in_training_for_gradients
from nlilayers.masking import lengths_to_mask
from strategies import FEATURES, Sentences, normal


@st.composite
def padded(draw: st.DrawFn, shortest: int = 0) -> Sentences:
    """One to three sentences of up to seven words, real words first."""
    lengths = torch.tensor(draw(st.lists(st.integers(shortest, 7), min_size=1, max_size=3)))
    mask = lengths_to_mask(lengths, max(1, int(lengths.max()) + draw(st.integers(0, 2))))
    return Sentences((normal(draw(strategies.seeds), *mask.shape, FEATURES),), (mask,))


def lstm_of(num_layers: int = 2, bidirectional: bool = True, **options: float) -> SentenceLSTM:
    lstm = SentenceLSTM(FEATURES, 3, num_layers=num_layers, bidirectional=bidirectional, **options)
    return models.randomised(lstm)


every_shape = pytest.mark.parametrize(
    ("num_layers", "bidirectional"), [(1, False), (1, True), (2, False), (3, True)], ids=["1", "1 both", "2", "3 both"]
)


class States(nn.Module):
    """The states alone, for the laws of sequence layers."""

    def __init__(self, lstm: SentenceLSTM) -> None:
        super().__init__()
        self.lstm = lstm

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.lstm(x, mask)[0]


class Finals(States):
    """The final states, as sentences of one word that is real where there was a word."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.lstm(x, mask)[1][:, None]


@every_shape
@given(drawn=padded())
def test_states_and_final_states_equal_the_loop(num_layers: int, bidirectional: bool, drawn: Sentences) -> None:
    lstm = lstm_of(num_layers, bidirectional)
    states, final = lstm(drawn.x, drawn.mask)
    for row, mask in enumerate(drawn.mask):
        words = drawn.x[row][mask].tolist()
        if not words:
            assert torch.all(states[row] == 0) and torch.all(final[row] == 0)
            continue
        if bidirectional:
            expected = oracles.stacked(words, models.layers_of(lstm))
            last = [*expected[-1][:3], *expected[0][3:]]
        else:
            expected = words
            for layer in lstm.rightward:
                expected = oracles.lstm(expected, models.lstm_of(layer))
            last = expected[-1]
        exact = torch.tensor(expected, dtype=torch.float64)
        assert_close(states[row][mask], exact, atol=1e-10, rtol=1e-9)
        assert_close(final[row], torch.tensor(last, dtype=torch.float64), atol=1e-10, rtol=1e-9)


@given(drawn=padded(shortest=1))
def test_a_packed_sequence_gives_the_same(drawn: Sentences) -> None:
    """torch's own way with padding, which waits for the lengths."""
    lstm, packed = lstm_of(2, True), nn.LSTM(FEATURES, 3, 2, batch_first=True, bidirectional=True).double()
    for depth in range(2):
        for suffix, direction in (("", lstm.rightward), ("_reverse", lstm.leftward)):
            for name, parameter in direction[depth].named_parameters():
                getattr(packed, name.replace("l0", f"l{depth}") + suffix).data = parameter.data
    x = pack_padded_sequence(drawn.x, drawn.mask.sum(1), batch_first=True, enforce_sorted=False)
    states, (final, _) = packed(x)
    ours = lstm(drawn.x, drawn.mask)
    length = drawn.x.shape[1]
    assert_close(ours[0], pad_packed_sequence(states, batch_first=True, total_length=length)[0], atol=1e-12, rtol=1e-12)
    assert_close(ours[1], torch.cat([final[-2], final[-1]], dim=-1), atol=1e-12, rtol=1e-12)
    assert models.trainable(lstm) == models.trainable(packed)


@every_shape
@given(drawn=padded())
def test_padding_changes_nothing(num_layers: int, bidirectional: bool, drawn: Sentences) -> None:
    lstm = lstm_of(num_layers, bidirectional)
    for layer in (States(lstm), Finals(lstm)):
        laws.garbage_in_padding_changes_nothing(layer, drawn)
        laws.no_gradient_reaches_padding(layer, drawn)
        laws.examples_do_not_see_each_other(layer, drawn)
        laws.permuting_the_batch_permutes_the_output(layer, drawn)
        laws.memory_layout_does_not_matter(layer, drawn)
        laws.sentences_without_words_give_zero(layer, drawn)
    laws.appended_padding_changes_nothing(States(lstm), drawn)
    laws.padded_outputs_are_zero(States(lstm), drawn)


@pytest.mark.parametrize("outputs", [States, Finals])
def test_gradients_are_right(outputs: type[States]) -> None:
    mask = lengths_to_mask(torch.tensor([3, 0, 2]))
    laws.gradients_are_right(outputs(lstm_of(2, True)), Sentences((normal(3, 3, 3, FEATURES),), (mask,)))


@pytest.mark.parametrize("real", [[False, True, True], [True, False, True]])
def test_padding_before_a_word_is_refused(real: list[bool]) -> None:
    """States would read padding, and the places of words that are turned round those of another sentence."""
    mask = torch.tensor([[True, True, False], real])
    with pytest.raises(ValueError, match=r"mask must have the real words of each sentence first, .* in sentence 1"):
        lstm_of(1, True)(normal(1, 2, 3, FEATURES), mask)


def test_what_is_traced_is_not_asked_for_its_mask() -> None:
    lstm, x, mask = lstm_of(1, True), normal(1, 2, 3, FEATURES), torch.ones(2, 3, dtype=torch.bool)
    traced = make_fx(lambda x, mask: lstm(x, mask)[0])(x, mask)
    assert_close(traced(x, mask), lstm(x, mask)[0])
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert lstm(torch.empty(2, 3, FEATURES).double(), torch.ones(2, 3, dtype=torch.bool))[0].shape == (2, 3, 6)


def test_evaluation_has_the_gradients_of_training(device: str) -> None:
    """Which cuDNN, on a GPU, refuses an LSTM of torch's."""
    lstm = lstm_of(2, True).to(device)
    x, mask = normal(3, 2, 5, FEATURES).to(device), lengths_to_mask(torch.tensor([5, 3])).to(device)
    gradients = []
    for training in (True, False):
        leaves = [x.clone().requires_grad_(), *lstm.train(training).parameters()]
        states, final = lstm(leaves[0], mask)
        gradients.append(torch.autograd.grad(states.square().sum() + final.sum(), leaves))
    for trained, evaluated in zip(*gradients, strict=True):
        assert_close(evaluated, trained, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("on_cudnn", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("gradients", [True, False])
def test_an_lstm_of_cudnns_is_in_training_for_its_gradients(on_cudnn: bool, training: bool, gradients: bool) -> None:
    lstm = nn.LSTM(2, 3).train(training)
    with (
        torch.set_grad_enabled(gradients),
        contextlib.suppress(ValueError),
        _in_training_for_gradients(lstm, on_cudnn=on_cudnn),
    ):
        assert lstm.training == (training or (on_cudnn and gradients))
        raise ValueError
    assert lstm.training == training


def test_other_laws_of_sequence_layers() -> None:
    mask = lengths_to_mask(torch.tensor([3, 1]))
    drawn, lstm = Sentences((normal(3, 2, 3, FEATURES),), (mask,)), lstm_of(2, True)
    laws.copies_agree(States(lstm), States(SentenceLSTM(FEATURES, 3, num_layers=2, bidirectional=True)), drawn)
    laws.an_empty_batch_gives_an_empty_batch(States(lstm), drawn)
    laws.dtype_follows(States(lstm), drawn)
    laws.autocast_agrees(States(lstm), drawn)


def test_single_precision_has_the_same_answer() -> None:
    """On a CPU it is another implementation, by oneDNN."""
    mask = lengths_to_mask(torch.tensor([5, 0, 2, 7]))
    x, lstm = normal(3, 4, 7, FEATURES), lstm_of(2, True)
    states, final = lstm(x, mask)
    for ours, exact in zip(lstm.float()(x.float(), mask), (states, final), strict=True):
        assert_close(ours.double(), exact, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_leaves_it_the_dtype_of_its_weights(dtype: torch.dtype, device: str) -> None:
    """On a GPU cuDNN would take float16 for either, which holds no 1e6, and on a CPU oneDNN has no LSTM in float16."""
    lstm = lstm_of(2, True).float().to(device)
    mask = lengths_to_mask(torch.tensor([5, 0, 2])).to(device)
    before = (1e6 * normal(3, 3, 5, FEATURES)).to(device, torch.bfloat16)
    operands = [parameter.detach() for parameter in lstm.rightward[0].parameters()]
    plain = [*lstm(before.float(), mask), lstm_states(before.float(), *operands)]
    with torch.autocast(device, dtype=dtype):
        ours = [*lstm(before, mask), lstm_states(before.float(), *operands)]
    for lowered, expected in zip(ours, plain, strict=True):
        assert lowered.isfinite().all() and torch.equal(lowered, expected)


def test_an_lstm_in_another_form_is_asked_for_no_weights() -> None:
    """As one of 8-bit integers, which torch puts in the place of an ``nn.LSTM``."""

    class Doubled(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, None]:
            return 2 * x, None

    lstm, mask = SentenceLSTM(FEATURES, FEATURES, bidirectional=True), lengths_to_mask(torch.tensor([3, 1]))
    lstm.rightward[0], lstm.leftward[0] = Doubled(), Doubled()
    x = normal(1, 2, 3, FEATURES) * mask[..., None]
    for lowers in (False, True):
        with torch.autocast("cpu", enabled=lowers):
            assert torch.equal(lstm(x, mask)[0], torch.cat([2 * x, 2 * x], dim=-1))


@given(drawn=padded(shortest=1), data=st.data())
def test_turning_sentences_round_turns_the_directions_round(drawn: Sentences, data: st.DataObject) -> None:
    """With the two directions' weights exchanged, a reversed sentence has the reversed states, halves swapped."""
    lstm = lstm_of(1, True)
    row = data.draw(st.integers(0, len(drawn.x) - 1))
    words = drawn.x[row][drawn.mask[row]][None]
    mask = torch.ones(words.shape[:2], dtype=torch.bool)
    states, final = lstm(words, mask)
    lstm.rightward, lstm.leftward = lstm.leftward, lstm.rightward
    turned, other_final = lstm(words.flip(1), mask)
    assert_close(turned.flip(1).roll(3, dims=-1), states, atol=1e-12, rtol=1e-12)
    assert_close(other_final.roll(3, dims=-1), final, atol=1e-12, rtol=1e-12)
    assert torch.all(states.abs() < 1)


def test_each_direction_has_seen_its_side_alone() -> None:
    lstm, mask = lstm_of(1, True), torch.ones(1, 5, dtype=torch.bool)
    x = normal(2, 1, 5, FEATURES)
    other = x.clone()
    other[0, 2] += 1
    difference = (lstm(other, mask)[0] - lstm(x, mask)[0])[0].abs()
    assert torch.all(difference[:2, :3] == 0) and torch.all(difference[3:, 3:] == 0)
    assert torch.all(difference[2:, :3].amax(1) > 1e-6) and torch.all(difference[:3, 3:].amax(1) > 1e-6)


def test_dropout_falls_between_layers_in_training_alone() -> None:
    x, mask = normal(2, 2, 4, FEATURES), torch.ones(2, 4, dtype=torch.bool)
    for bidirectional in (False, True):
        one, two = (lstm_of(layers, bidirectional, dropout=0.5) for layers in (1, 2))
        assert torch.equal(one.train()(x, mask)[0], one.eval()(x, mask)[0])
        assert torch.equal(two(x, mask)[0], lstm_of(2, bidirectional)(x, mask)[0])
        assert (two.train()(x, mask)[0] - two.eval()(x, mask)[0]).abs().max() > 1e-3
        torch.manual_seed(1)
        dropped = two.train()(x, mask)[0]
        torch.manual_seed(1)
        assert_close(two(x, mask)[0], dropped)


# In a graph


def sizes(size: int) -> Sentences:
    """More words than sentences, so many that none of them is a feature's width."""
    x = normal(size, size, size + 9, FEATURES)
    return Sentences((x,), (lengths_to_mask(1 + torch.arange(size) % (size + 9), size + 9),))


def test_it_compiles_into_one_graph() -> None:
    with torch._dynamo.config.patch(allow_rnn=True):
        laws.compiles(States(lstm_of(1)), sizes, "aot_eager")


def test_compiled_its_lstms_hooks_are_called() -> None:
    lstm, drawn = States(lstm_of(1)), sizes(3)
    for module in lstm.modules():
        if isinstance(module, nn.LSTM):
            module.register_forward_hook(lambda _, __, states: (states[0] * 0, states[1]))
    with torch._dynamo.config.patch(allow_rnn=True):
        compiled = torch.compile(lstm, backend="aot_eager")(*drawn.tensors, *drawn.masks)
    assert not compiled.any() and not lstm(*drawn.tensors, *drawn.masks).any()


def test_it_is_exported_for_every_length() -> None:
    laws.exports(States(lstm_of(1)), sizes)
    laws.onnx_by_export_agrees(States(lstm_of(1)), sizes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_its_operator_is_an_lstm_of_torch(dtype: torch.dtype) -> None:
    """Value, gradients, shapes and strides; ``opcheck`` compares what it does in a graph with what it does outside.

    Forward it records nothing for gradients, and is exactly torch's LSTM that records nothing: one that does is rounded
    otherwise on some processors.
    """
    lstm, x = nn.LSTM(FEATURES, 3, batch_first=True, dtype=dtype), normal(0, 2, 4, FEATURES).to(dtype)
    given = tuple(v.detach().requires_grad_() for v in (x, *lstm.parameters()))
    ours, theirs = lstm_states(*given), lstm(given[0])[0]
    with torch.no_grad():
        assert_close(ours, lstm(x)[0], atol=0, rtol=0)
    assert_close(ours, theirs, atol=1e-6, rtol=1e-6)
    upstream = normal(1, *ours.shape).to(dtype)
    expected = torch.autograd.grad(theirs, [given[0], *lstm.parameters()], upstream)
    for a, b in zip(torch.autograd.grad(ours, given, upstream), expected, strict=True):
        assert_close(a, b, atol=1e-6, rtol=1e-6)
    torch.library.opcheck(lstm_states, given)


def test_compiled_under_autocast_it_is_near_the_plain_one() -> None:
    lstm, drawn = States(lstm_of(1).float()), sizes(3).to(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch._dynamo.config.patch(allow_rnn=True):
        halves = drawn.x.bfloat16()
        compiled = torch.compile(lstm, fullgraph=True, backend="aot_eager")(halves, *drawn.masks)
    assert_close(compiled.float(), lstm(halves.float(), *drawn.masks), atol=2e-2, rtol=2e-2)
