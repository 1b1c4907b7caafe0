"""A script's model: built from a configuration, or restored from a finished run."""

import contextlib
import math
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

from nli_common.checkpoints import load_weights
from nli_common.checks import require_types
from nli_common.contextual import fingerprint_of_folder
from nli_common.errors import InputError
from nli_common.lexicon import Lexicon
from nli_common.runs import Run
from nli_common.script import ReadsFolder, Script
from nli_common.tensors import DAMAGED

_ENTRY = 50
"""Bytes that the name, type and place of a tensor take in a file, at least; each of its numbers takes one or more."""
_TABLES = 1 << 26
"""Numbers that a model may compute for itself, beside its weights."""


def build(script: Script, config: Any, lexicon: Lexicon) -> nn.Module:
    """The script's model of this configuration.

    Raises:
        InputError: if its options do not fit together, or do not fit the words.
    """
    try:
        return script.models[type(config)](config, lexicon)
    except (ValueError, RuntimeError, TypeError) as error:
        raise InputError(f"the model cannot be built: {error}") from None


def require_restorable(script: Script, config: Any, lexicon: Lexicon) -> None:
    """Raise an ``InputError`` if the model would have larger tables than :func:`restore` allows, and make no others."""
    _build_within(script, config, lexicon, None)


def encoder_fingerprint(config: Any) -> str | None:
    """What tells the encoder of a model of this configuration from any other; ``None`` if it has none.

    Raises:
        InputError: if it cannot be read.
    """
    folder = config.encoder_folder if isinstance(config, ReadsFolder) else None
    return None if folder is None else fingerprint_of_folder(folder)


def restore(script: Script, run: Run, lexicon: Lexicon) -> nn.Module:
    """The model of a finished run, for words that its lexicon was extended by too.

    Raises:
        InputError: if the folder is not of this script, or damaged, or its encoder is another by now.
    """
    held = run.read_config()
    if held.get("script") != script.name:
        raise InputError(f"--run {run.folder}: was written by {held.get('script')}, this is {script.name}")
    try:
        config = script.config_named(held["config"])(**held["model"])
        require_types(config)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{run.config}: {error}") from None
    if config.num_classes != len(held["labels"]):
        raise InputError(f"{run.config}: has {config.num_classes} classes and {len(held['labels'])} labels")
    _require_weights(run)
    try:
        _build_within(script, config, lexicon, run.weights)
    except InputError as error:
        raise InputError(f"{run.config}: {error}") from None
    model = build(script, config, lexicon)
    if held.get("encoder") != encoder_fingerprint(config):
        place = config.encoder_folder if isinstance(config, ReadsFolder) else None
        found = f"another encoder than is in {place}" if place else f"an encoder, and {run.config.name} names none"
        raise InputError(f"--run {run.folder}: was trained on {found}")
    load_weights(run.weights, model)
    return model.eval()


def _require_weights(run: Run) -> None:
    if not run.weights.is_file():
        raise InputError(f"{run.weights}: no such file; has the run trained for an epoch?")
    try:
        with safe_open(run.weights, framework="pt"):
            pass
    except DAMAGED as error:
        raise InputError(f"{run.weights}: not the weights of this model ({error})") from None


def _build_within(script: Script, config: Any, lexicon: Lexicon, weights: Path | None) -> None:
    """Raise an ``InputError`` if a configuration's model is larger than its weights, or computes too large tables.

    It stops where the model is too large, for a configuration from a file may ask for anything; memory is taken by no
    more than tables of the size that is allowed.
    """
    room = {"tables": float(_TABLES), "parameters": math.inf if weights is None else weights.stat().st_size}
    larger = {
        "tables": f"it would compute tables of more than {_TABLES:,} numbers for itself",
        "parameters": f"it is larger than what {weights} holds",
    }

    def count(kind: str, tensor: Tensor | None) -> None:
        room[kind] -= 0 if tensor is None else _ENTRY + tensor.numel()
        if room[kind] < 0:
            raise ValueError(larger[kind])

    few = Lexicon(
        lexicon.words[:1], lexicon.vectors[:1], hashed=lexicon.hashed, tags=lexicon.tags, alphabet=lexicon.alphabet
    )
    with contextlib.ExitStack() as stack:
        stack.callback(register_module_parameter_registration_hook(lambda _, __, p: count("parameters", p)).remove)
        stack.callback(register_module_buffer_registration_hook(lambda _, __, b: count("tables", b)).remove)
        stack.enter_context(torch.device("meta"))
        build(script, config, few)
