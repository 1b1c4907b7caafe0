"""Layers and models away from the CPU's eager mode."""

import pytest
import torch
from reliability import portable
from reliability.portable import SMALL

MODELS, LAYERS = portable.models(full=False), portable.layers(full=False)
WITH_LSTM = ("CAFE", "HybridModel", "LSTMBaseline", "ESIM")
ON_META = {name: case for name, case in {**LAYERS, **MODELS}.items() if name != "CharNgramEmbedding"}  # no gradient


@pytest.mark.parametrize("case", ON_META.values(), ids=ON_META.keys())
def test_nothing_is_made_elsewhere_than_on_the_meta_device(case: portable.Case) -> None:
    assert portable.elsewhere(case, SMALL[1]) == []


@pytest.mark.parametrize("name", WITH_LSTM)
def test_torch_compiles_no_lstm_into_one_graph(name: str) -> None:
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Dynamo does not support RNN, GRU, or LSTM"):
        portable.compiled(MODELS[name], SMALL[:1], "eager")
