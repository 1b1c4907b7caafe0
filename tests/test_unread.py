"""A configuration names the options that another one switches off, all of them and no others."""

import contextlib
import typing
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import cafe
import decomposable_attention
import esim
import gated_cnn
import gaussian_transformer
import hypothesis_only
import lstm_attention
import stacked_alignment
from models import TAGS, full
from nli_common.errors import InputError
from nli_common.inputs import Data
from nli_common.lexicon import Lexicon
from nli_common.models import build
from nli_common.options import require_effect
from nli_common.script import Script
from strategies import normal
from test_contextual import write_encoder

LEXICON = Lexicon([f"counting{i}" for i in range(12)], normal(0, 12, 5).float(), tags=TAGS)
PAIR = full([0, 1, 2, 3, 4], pos=[[1, 2, 3, 1, 0]]), full([5, 2, 6, 7], pos=[[2, 1, 3, 3]])
SMALL = [
    (decomposable_attention.SCRIPT, decomposable_attention.DecomposableAttentionConfig(hidden_size=12, max_distance=2)),
    (
        cafe.SCRIPT,
        cafe.CAFEConfig(
            encoder_size=4, num_factors=2, lstm_size=3, prediction_size=4, char_size=2, char_filters=2, tag_size=2
        ),
    ),
    (
        gaussian_transformer.SCRIPT,
        gaussian_transformer.GaussianTransformerConfig(
            hidden_size=8, num_heads=2, num_encoding_blocks=1, num_interaction_blocks=1, char_size=2
        ),
    ),
    (
        gated_cnn.SCRIPT,
        gated_cnn.GatedCNNConfig(hidden_size=8, context_layers=2, char_dim=2, char_size=3, num_tags=4),
    ),
    *((lstm_attention.SCRIPT, config(hidden_size=12)) for config in lstm_attention.SCRIPT.models),
    (esim.SCRIPT, esim.ESIMConfig(hidden_size=3)),
    (hypothesis_only.SCRIPT, hypothesis_only.HypothesisOnlyConfig(hidden_size=4)),
    (
        stacked_alignment.SCRIPT,
        stacked_alignment.StackedAlignmentConfig(hidden_size=3, num_factors=2, char_size=2, char_filters=2),
    ),
]


def changes(config: Any, *, switches: bool = False) -> Iterator[tuple[str, Any]]:
    """The configuration with one option changed, and which; of switches, only those with a few values."""
    hints = typing.get_type_hints(type(config))
    for field in fields(config):
        value = getattr(config, field.name)
        others: tuple[Any, ...]
        if isinstance(value, bool):
            others = (not value,)
        elif isinstance(value, int):
            others = (0,) if switches else (value + 2, 2 * value)
        elif isinstance(value, float):
            others = () if switches else (0.5,)
        else:
            others = words_of(hints[field.name])
        for other in others:
            with contextlib.suppress(ValueError):
                if other != value:
                    yield field.name, replace(config, **{field.name: other})


def words_of(hint: Any) -> tuple[str, ...]:
    """The words that a field may have."""
    parts = typing.get_args(hint)
    return tuple(word for part in parts for word in ([part] if isinstance(part, str) else words_of(part)))


Trained = tuple[dict[str, Tensor], Tensor]


def trained(script: Script, config: Any) -> Trained | None:
    """The weights that a seed gives, and the logits of several steps, with dropout; nothing if there is no model."""
    torch.manual_seed(0)
    try:
        model: nn.Module = build(script, config, LEXICON)
    except InputError:
        return None
    return dict(model.named_parameters()), torch.stack([model.train()(*PAIR) for _ in range(4)])


def alike(one: Trained, other: Trained) -> bool:
    (weights, logits), (other_weights, other_logits) = one, other
    return (
        weights.keys() == other_weights.keys()
        and all(torch.equal(weights[name], other_weights[name]) for name in weights)
        and torch.equal(logits, other_logits)
    )


def without_effect(train: Callable[[Any], Trained | None], config: Any) -> set[str]:
    """The options no change of which changes a weight or a logit."""
    as_it_is = train(config)
    assert as_it_is is not None
    found: dict[str, bool] = {}
    for name, changed in changes(config):
        if found.get(name, True) and (other := train(changed)) is not None:
            found[name] = alike(as_it_is, other)
    return {name for name, nothing in found.items() if nothing}


@pytest.mark.parametrize(("script", "config"), SMALL, ids=[type(config).__name__ for _, config in SMALL])
def test_of_every_choice(script: Script, config: Any) -> None:
    train = cache(partial(trained, script))  # two changes are met in either order
    for _, variant in [("", config), *changes(config, switches=True)]:
        if train(variant) is not None:
            assert set(getattr(variant, "unread", ())) == without_effect(train, variant), variant


def test_of_two_choices() -> None:
    script, config = SMALL[1]
    config = replace(config, encoder="fc", prediction="fc", factorize=False)
    found = without_effect(partial(trained, script), config)
    assert set(config.unread) == found == {"rectified_projection", "num_factors"}


def test_of_an_encoder(tmp_path: Path) -> None:
    script, config = SMALL[2]
    config = replace(config, encoder=str(write_encoder(tmp_path / "encoder")))
    of_words = {"vectors", "vector_size", "unit_vectors", "unit_unknown"}
    found = without_effect(partial(trained, script), config)
    assert set(config.unread) - of_words == found == {"char_size", "ngrams"}
    assert of_words == set(config.unread) & {field.name for field in fields(Data)}
    others = Lexicon(LEXICON.words, normal(1, 12, 7).float(), tags=TAGS)
    models = []
    for lexicon in (LEXICON, others):
        torch.manual_seed(0)
        models.append(build(script, config, lexicon).eval())
    assert torch.equal(models[0](*PAIR), models[1](*PAIR)), "no vector of a word is read"
    with pytest.raises(InputError, match=r"^--vector-size 7: changes nothing with --encoder$"):
        require_effect((config, config), (Data(vector_size=7), Data()))


def test_only_what_differs_from_the_default_is_refused() -> None:
    _, config = SMALL[0]
    require_effect((config, config), (Data(), Data()))
    require_effect((replace(config, intra_attention=True, max_distance=9), config))
    with pytest.raises(InputError) as told:
        require_effect((replace(config, max_distance=9, distances="absolute"), config), (Data(), Data()))
    assert str(told.value) == (
        "--max-distance 9: changes nothing without --intra-attention; "
        "--distances absolute: changes nothing without --intra-attention"
    )
    fc = cafe.CAFEConfig(encoder="fc", prediction="fc", rectified_projection=True)
    with pytest.raises(InputError, match=r"^--rectified-projection: changes nothing without a highway layer$"):
        require_effect((fc, cafe.CAFEConfig()))
    with pytest.raises(InputError, match=r"^--linear-units: changes nothing without --no-factorize$"):
        require_effect((cafe.CAFEConfig(linear_units=True), cafe.CAFEConfig()))


@pytest.mark.parametrize(("script", "config"), SMALL, ids=[type(config).__name__ for _, config in SMALL])
def test_a_model_has_no_dropout_but_that_of_its_options(script: Script, config: Any) -> None:
    names = [field.name for field in fields(config) if "dropout" in field.name and not isinstance(field.default, bool)]
    model = build(script, replace(config, **dict.fromkeys(names, 0.0)), LEXICON)
    in_training = model.train()(*PAIR)
    assert names and torch.equal(model.eval()(*PAIR), in_training)
