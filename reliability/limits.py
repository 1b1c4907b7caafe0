"""What torch cannot compile or export as it is, each limit where it stands exactly, and the way round."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.export._patches import register_lstm_while_loop_decomposition

from reliability import compiled, exported
from reliability.cases import CASES
from reliability.subjects import ONES, SMALL, Shape, subject

EXAMPLES = Path(__file__).parent.parent / "examples"


def measured() -> dict[str, Any]:
    """Every limit, and what torch says there."""
    return {
        "no rnn": said_by(lambda: graphs(plain_lstm(torch.float32), (3, 4), allow_rnn=False)),
        "inference": graphs(plain_lstm(torch.float32), (3, 4, 5)),
        "double": graphs(plain_lstm(torch.float64), (3, 4, 5)),
        "step": said_by(lambda: graphs(plain_lstm(torch.float32), (3, 4), gradient=True)),
        "export": said_by(lambda: export_any_length(plain_lstm(torch.float32))),
        "while loop": said_by(lambda: export_any_length(plain_lstm(torch.float32), while_loop=True)),
        "loads elsewhere": loads_elsewhere(),
        "onnx of a program": said_by(onnx_of_a_program),
        "ones": graphs_of_ones(),
        "squares": [graphs_of_a_prior((41, 64)), graphs_of_a_prior((41, 65))],
        "words": [graphs_of_a_convolution((16, 21, 99)), graphs_of_a_convolution((16, 21, 99, 15))],
    }


TELLING = ("Dynamo does not support", "You marked", "expected Tensor", "No ONNX function")
"""What the sentence begins with that says why."""


def said_by(attempt: Callable[[], object]) -> str:
    """What torch says where it cannot; nothing where it can."""
    try:
        attempt()
    except Exception as error:
        places = [(str(error).find(start), start) for start in TELLING]
        (place, _), *_ = [found for found in places if found[0] >= 0]
        return str(error)[place:].splitlines()[0].split(". ")[0].rstrip(".")
    return ""


def plain_lstm(dtype: torch.dtype) -> nn.LSTM:
    """Torch's own, of one direction."""
    return nn.LSTM(5, 3, batch_first=True, dtype=dtype).eval()


def graphs(
    lstm: nn.LSTM,
    lengths: tuple[int, ...],
    *,
    allow_rnn: bool = True,
    gradient: bool = False,
    backend: str = "inductor",
) -> int:
    """How many graphs torch makes of its own LSTM for sentences of these lengths."""
    torch._dynamo.reset()
    counters.clear()
    with torch._dynamo.config.patch(allow_rnn=allow_rnn), torch.set_grad_enabled(gradient):
        call = torch.compile(lstm, fullgraph=True, dynamic=True, backend=backend)
        for batch, length in enumerate(lengths, start=2):
            call(torch.ones(batch, length, 5, dtype=lstm.weight_ih_l0.dtype))
    return counters["stats"]["unique_graphs"]


def export_any_length(lstm: nn.LSTM, *, while_loop: bool = False) -> None:
    """Export torch's own LSTM for any length, with its own loop in place of its steps if asked."""
    dims = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    way = register_lstm_while_loop_decomposition() if while_loop else contextlib.nullcontext()
    with torch.no_grad(), way:
        torch.export.export(lstm, (torch.ones(3, 7, 5),), dynamic_shapes=(dims,))


def loads_elsewhere() -> list[bool]:
    """Whether a saved model with an LSTM is loaded in another process: as it is, and behind an import."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt2"
        torch.export.save(_program(), path)
        done = subprocess.run(
            [sys.executable, "-c", _LOADING, str(EXAMPLES), str(path)], capture_output=True, text=True, check=True
        )
    return [word == "loaded" for word in done.stdout.split()]


_LOADING = """
import sys, torch
sys.path.insert(0, sys.argv[1])
try:
    torch.export.load(sys.argv[2])
    print("loaded")
except RuntimeError:
    print("refused")
import nli_common.recurrent
torch.export.load(sys.argv[2])
print("loaded")
"""


def onnx_of_a_program() -> None:
    """Make ONNX of a program that ``torch.export`` has made of a model with an LSTM."""
    torch.onnx.export(_program(), dynamo=True, verbose=False)


@cache
def _program() -> torch.export.ExportedProgram:
    """A model with an LSTM."""
    return exported.program(subject(CASES["LSTMBaseline"]), SMALL[0])


def graphs_of_ones() -> list[int]:
    """How many graphs an alignment has after one batch, and after those with one pair or one word as well."""
    align = subject(CASES["DecomposableAlign"])
    return [compiled.inference(align, shapes, "eager").graphs for shapes in (SMALL[:1], SMALL[:1] + ONES)]


def graphs_of_a_prior(lengths: tuple[int, ...]) -> int:
    """How many graphs a step of a prior has, for sentences of these lengths."""
    prior, shapes = subject(CASES["GaussianPrior"]), [Shape(k, n, n) for k, n in enumerate(lengths, start=2)]
    return compiled.step(prior, shapes, "inductor").graphs


def graphs_of_a_convolution(rows: tuple[int, ...]) -> int:
    """How many graphs torch makes of its convolution, over so many rows."""
    torch._dynamo.reset()
    counters.clear()
    call = torch.compile(nn.Conv1d(2, 3, 3), fullgraph=True, dynamic=True, backend="eager")
    for count in rows:
        call(torch.ones(count, 2, 7))
    return counters["stats"]["unique_graphs"]


def said(found: dict[str, Any]) -> str:
    """The limits as a list of Markdown."""
    one, five = found["ones"]
    many, few = found["words"]
    short, long = found["squares"]
    loads = ["loaded" if loaded else "refused" for loaded in found["loads elsewhere"]]
    items = [
        f'**An LSTM in one graph.** `torch.compile` refuses an `nn.LSTM` ("{found["no rnn"]}"), and `fullgraph=True` '
        "with it; without `fullgraph` the LSTM runs as it is and everything around it is compiled. With "
        "`torch._dynamo.config.allow_rnn = True`, sentences of three lengths are "
        f"{_count(found['inference'], 'graph')} of it in float32 without gradients, "
        f"{_count(found['double'], 'graph')} in float64, and in"
        f' float32 with gradients an error ("{found["step"]}"). The models\' `SentenceLSTM` is a '
        "single operator in a graph, `nli_common::lstm_states`: with that switch on, a model is one graph, "
        "forwards and backwards. The backward pass runs the LSTM once more.",
        f'**An LSTM in an exported program.** `torch.export` fixes the length ("{found["export"]}"), and its own '
        f'`register_lstm_while_loop_decomposition` does as well ("{found["while loop"]}"). `SentenceLSTM` leaves it '
        "open: the program calls the operator, and an ONNX program has ONNX's own LSTM. "
        f"In another process a saved program is {loads[0]} as it is, and {loads[1]} after `import "
        "nli_common.recurrent`. "
        f'The ONNX program is made from the model, not from its exported program ("{found["onnx of a program"]}").',
        f"**Batches of one pair, sentences of one word.** `torch.compile` compiles separate graphs for sizes of 1: "
        f"{_count(one, 'graph')} of an alignment after the first batch, {five} after the four with a 1 as well. "
        "Exported and ONNX programs read them like all others.",
        "**Sums of more than 4,096 numbers.** On a CPU, inductor adds up float32 numbers in one way up to 4,096 of "
        "them and in another beyond, and compiles a step again when a sum crosses that: the gradient of a prior's "
        "scalars, over all pairs of words, or of a bias, over all words or characters of a batch. A prior's step is "
        f"{_count(short, 'graph')} for 41 and 64 words, {long} for 41 and 65. Hence the rows above with more than one.",
        "**Few words.** `nn.Conv1d`, which CAFE reads characters with, is compiled once more for a batch of fewer than "
        f"16 words: {_count(many, 'graph')} for 16, 21 and 99 rows, {few} with 15.",
    ]
    return "\n".join(f"- {item}" for item in items)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
