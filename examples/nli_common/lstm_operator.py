"""An LSTM as a single operator, for graphs.

torch traces an ``nn.LSTM`` step by step, and so fixes the length of the sentences that a compiled or exported program
can read. :func:`lstm_states` stays whole in a graph: at run time it calls torch's own LSTM, whatever the length. A
program that ``torch.export`` saved has it by its name: where it is loaded, this module has to be imported before.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

_BACKWARD = "nli_common::lstm_states_backward"


@torch.library.custom_op("nli_common::lstm_states", mutates_args=())
def lstm_states(x: Tensor, w_input: Tensor, w_hidden: Tensor, b_input: Tensor, b_hidden: Tensor) -> Tensor:
    """What an ``nn.LSTM`` of one layer and one direction, ``batch_first``, makes of each word.

    Args:
        x: words ``(b, n, d)``, one at least.
        w_input: ``weight_ih_l0``, ``(4 h, d)``.
        w_hidden: ``weight_hh_l0``, ``(4 h, h)``.
        b_input: ``bias_ih_l0``, ``(4 h,)``.
        b_hidden: ``bias_hh_l0``, ``(4 h,)``.

    Shape:
        → ``(b, n, h)``.
    """
    return _read(x, w_input, w_hidden, b_input, b_hidden)


def _read(x: Tensor, *weights: Tensor) -> Tensor:
    start = x.new_zeros(1, x.shape[0], weights[1].shape[1])
    with without_autocast(x):
        states: Tensor = torch.lstm(x, (start, start), weights, True, 1, 0.0, torch.is_grad_enabled(), False, True)[0]
    return states.contiguous()


@contextlib.contextmanager
def without_autocast(x: Tensor) -> Iterator[bool]:
    """A context in which autocast leaves an LSTM that reads ``x`` the dtype of its weights; whether it would not.

    Under autocast, cuDNN's takes float16, be it to bfloat16, and oneDNN's stops where it is to float16.
    """
    lowers = not x.is_meta and torch.is_autocast_enabled(x.device.type)
    with torch.autocast(x.device.type, enabled=False) if lowers else contextlib.nullcontext():
        yield lowers


@lstm_states.register_fake
def _(x: Tensor, w_input: Tensor, w_hidden: Tensor, b_input: Tensor, b_hidden: Tensor) -> Tensor:
    return x.new_empty(*x.shape[:2], w_hidden.shape[1])


# Not a custom_op: within one, autograd is switched off, and this one lets it go through torch's LSTM.
torch.library.define(_BACKWARD, "(Tensor grad, Tensor[] given) -> Tensor[]")


def _read_backward(grad: Tensor, given: Sequence[Tensor]) -> list[Tensor]:
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in given]
        return [x.contiguous() for x in torch.autograd.grad(_read(*leaves), leaves, grad)]


def _empty_backward(grad: Tensor, given: Sequence[Tensor]) -> list[Tensor]:
    return [x.new_empty(x.shape) for x in given]


torch.library.impl(_BACKWARD, "default", _read_backward)
torch.library.register_fake(_BACKWARD, _empty_backward)


def _remember(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch.ops.nli_common.lstm_states_backward(grad, list(ctx.saved_tensors)))


lstm_states.register_autograd(_backward, setup_context=_remember)


def onnx_lstm_states(x: Tensor, w_input: Tensor, w_hidden: Tensor, b_input: Tensor, b_hidden: Tensor) -> Tensor:
    """The same as ONNX's LSTM, while ``torch.onnx.export`` looks on."""

    def reordered(rows: Tensor) -> Tensor:
        """From torch's order of input, forget, cell and output gate to ONNX's."""
        i, f, c, o = rows.chunk(4)
        return torch.cat([i, o, f, c])

    biases = torch.cat([reordered(b_input), reordered(b_hidden)])
    hidden_size = w_hidden.shape[1]
    inputs = (x.transpose(0, 1), reordered(w_input)[None], reordered(w_hidden)[None], biases[None])
    shape = (x.shape[1], 1, x.shape[0], hidden_size)
    states = torch.onnx.ops.symbolic("LSTM", inputs, {"hidden_size": hidden_size}, dtype=x.dtype, shape=shape)
    return states.squeeze(1).transpose(0, 1)
