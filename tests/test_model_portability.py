"""Models away from the CPU's eager mode: compiled, exported, in ONNX, on the meta device; and what torch cannot do.

The layers' own laws are in ``test_sequence_layers``; ``python -m reliability.portable`` has all of both at full size.
"""

import json
from pathlib import Path

import pytest
import torch
from reliability import compiled, exported, limits, meta, portable
from reliability.cases import CASES, full_size
from reliability.subjects import ONES, SMALL, Subject, deviation, gradients, subject
from torch.testing import assert_close

TOLERANCE = 1e-5


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_made_elsewhere_than_on_the_meta_device(name: str) -> None:
    assert meta.elsewhere(subject(CASES[name]), SMALL[1]) == []


@pytest.mark.parametrize("name", CASES)
def test_the_default_device_is_no_concern_of_a_module(name: str) -> None:
    """Whoever works on a GPU may make it the default, and keep a module elsewhere all the same."""
    case = subject(CASES[name])
    inputs = case.inputs(SMALL[1])
    expected = [case.module(*inputs), gradients(case.module, case.module, inputs)]
    with torch.device("meta"):
        found = [case.module(*inputs), gradients(case.module, case.module, inputs)]
    assert_close(found, expected, atol=0, rtol=0)


def test_a_model_is_one_graph_for_all_shapes() -> None:
    """Lengths that coincide among them; nothing of the first batch's sizes stays in the graph."""
    graphs, worst = compiled.inference(subject(CASES["CAFE"]), SMALL[:2] + SMALL[-4:], "eager")
    assert graphs == 1 and worst <= TOLERANCE


def test_a_training_step_is_one_graph_for_all_shapes() -> None:
    graphs, worst = compiled.step(subject(CASES["HypothesisOnly"]), SMALL, "aot_eager")
    assert graphs == 1 and worst <= TOLERANCE


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.paired])
def test_a_trace_keeps_nothing_of_the_words_that_it_was_made_of(name: str) -> None:
    model = CASES[name].module()
    first, second = CASES[name].inputs(1, 2), CASES[name].inputs(7, 11)
    for tokens in (first[0], first[3]):
        tokens.remainder_(9)  # the shortest words
    with torch.no_grad(), pytest.warns((DeprecationWarning, FutureWarning), match="jit"):
        traced = torch.jit.trace(model, first, check_trace=False)
        assert_close(traced(*second), model(*second), atol=1e-9, rtol=1e-9)


def test_a_saved_program_takes_every_shape() -> None:
    assert exported.exported(subject(CASES["LSTMBaseline"]), SMALL[0], SMALL[1:] + ONES) <= TOLERANCE


def test_an_onnx_program_takes_every_shape() -> None:
    assert exported.onnx(subject(CASES["HypothesisOnly"]), SMALL[0], SMALL[1:] + ONES) <= TOLERANCE


def test_every_weight_of_a_model_at_full_size_shows_in_what_is_compared() -> None:
    """A model that starts with sub-layers which add nothing would hide what happens inside them."""
    model = subject(full_size()["GaussianTransformer"], full=True)
    inputs = model.inputs(SMALL[0])
    with torch.no_grad():
        before = model.module(*inputs)
        for name, parameter in model.module.named_parameters():
            if parameter.requires_grad and "prior" not in name:
                held = parameter.clone()
                parameter.add_(torch.randn_like(parameter))
                assert deviation(before, model.module(*inputs)) > 1e-4, name
                parameter.copy_(held)


def test_another_number_is_seen() -> None:
    ours = torch.tensor([3.0, -200.0])
    assert deviation(ours, ours) == 0
    assert deviation(ours, ours + 1) == pytest.approx(1 / 199)
    for other in (ours[:1], ours / 0):
        with pytest.raises(AssertionError):
            deviation(ours, other)


def test_gradients_are_of_every_input_and_parameter() -> None:
    """Of the mean of the outputs' squares, which is x²w²; here there are 2 of them."""
    layer, x = torch.nn.Linear(1, 1, bias=False), torch.tensor([[1.0], [3.0]])
    w = layer.weight.detach()
    assert_close(gradients(layer, layer, (x,)), [x * w, x * w**2, 10 * w])


def test_a_graph_that_is_compiled_again_is_counted() -> None:
    class Fixed(torch.nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.shape[1] == SMALL[0].premise else x * 2.0

    fixed = Subject(Fixed(), CASES["IntraAlign"])
    assert compiled.inference(fixed, SMALL, "eager").graphs == 2
    with pytest.raises(torch._dynamo.exc.UserError, match=r"specialized it to be a constant \(11\)"):
        exported.exported(fixed, SMALL[0], SMALL[1:])


# What torch 2.13 cannot do; where it can, one of these fails, and the way round may go.


def test_torch_compiles_no_lstm_into_one_graph_unless_it_is_allowed() -> None:
    model = subject(CASES["ESIM"])
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Dynamo does not support RNN, GRU, or LSTM"):
        torch.compile(model.module, fullgraph=True, backend="eager")(*model.inputs(SMALL[0]))


def test_an_lstm_that_is_allowed_is_compiled_for_each_length_in_float64_alone() -> None:
    single, double = (limits.plain_lstm(dtype) for dtype in (torch.float32, torch.float64))
    assert limits.graphs(single, (2, 3), backend="aot_eager") == 1
    assert limits.graphs(double, (2, 3), backend="aot_eager") == 2


def test_an_lstm_that_is_allowed_has_no_gradient_in_float32() -> None:
    with pytest.raises(AssertionError, match="expected all tensors_saved_with_vc_check to be Tensors"):
        limits.graphs(limits.plain_lstm(torch.float32), (3, 4), gradient=True, backend="aot_eager")


@pytest.mark.parametrize("while_loop", [False, True])
def test_torch_exports_an_lstm_for_one_length(while_loop: bool) -> None:
    said = limits.said_by(lambda: limits.export_any_length(limits.plain_lstm(torch.float32), while_loop=while_loop))
    assert said == "You marked length as dynamic but your code specialized it to be a constant (7)"


def test_a_saved_lstm_is_loaded_behind_its_import() -> None:
    assert limits.loads_elsewhere() == [False, True]


def test_onnx_is_made_of_a_model_and_not_of_its_program() -> None:
    said = limits.said_by(limits.onnx_of_a_program)
    assert said == "No ONNX function found for <OpOverload(op='nli_common.lstm_states', overload='default')>"


def test_one_pair_and_one_word_are_compiled_by_themselves() -> None:
    assert limits.graphs_of_ones() == [1, 1 + len(ONES)]


def test_a_convolution_is_compiled_again_for_fewer_than_sixteen_rows() -> None:
    assert limits.graphs_of_a_convolution((16, 21, 99)) == 1
    assert limits.graphs_of_a_convolution((16, 21, 99, 15)) == 2


def test_inductor_compiles_sums_of_more_than_4096_numbers_again() -> None:
    assert [limits.graphs_of_a_prior(lengths) for lengths in ((41, 64), (41, 65))] == [1, 2]


def test_a_whole_that_was_ended_goes_on_from_its_last_row_and_then_replaces_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def measured(name: str, *_: object) -> dict[str, object]:
        asked.append(name)
        if asked == ["one", "two"]:
            raise KeyboardInterrupt
        return {"graphs": len(asked)}

    kept, partial = tmp_path / "portable.json", tmp_path / "portable.partial.json"
    kept.write_text(json.dumps({"old": True}))
    monkeypatch.setattr(portable, "RESULT", kept)
    monkeypatch.setattr(portable, "subjects", lambda full: {"one": "one", "two": "two"})
    monkeypatch.setattr(portable, "measured", measured)
    monkeypatch.setattr(portable, "page", lambda held: "")
    monkeypatch.setattr(limits, "measured", dict)
    monkeypatch.setattr("sys.argv", ["portable"])
    with pytest.raises(KeyboardInterrupt):
        portable.main()
    assert json.loads(kept.read_text()) == {"old": True} and partial.exists()
    portable.main()
    assert asked == ["one", "two", "two"] and not partial.exists()
    assert json.loads(kept.read_text())["rows"] == {"one": {"graphs": 1}, "two": {"graphs": 3}}
    monkeypatch.setattr("sys.argv", ["portable", "one"])
    portable.main()
    assert json.loads(kept.read_text())["rows"] == {"one": {"graphs": 4}, "two": {"graphs": 3}}
    partial.write_text(json.dumps(json.loads(kept.read_text()) | {"torch": "another"}))
    monkeypatch.setattr("sys.argv", ["portable"])
    portable.main()
    assert asked == ["one", "two", "two", "one", "one", "two"] and not partial.exists()
