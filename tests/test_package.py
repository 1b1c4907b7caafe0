"""The package as its users meet it: what it exports, how fast it imports, one version."""

import importlib.metadata
import inspect
import subprocess
import sys

import pytest
import torch

import nlilayers
from nlilayers import functional, masking

PUBLIC = {
    **{name: getattr(nlilayers, name) for name in nlilayers.__all__ if inspect.isclass(getattr(nlilayers, name))},
    **{f"functional.{name}": getattr(functional, name) for name in functional.__all__},
    **{f"masking.{name}": getattr(masking, name) for name in masking.__all__},
}


def test_the_version_stands_once() -> None:
    assert importlib.metadata.version("nlilayers") == nlilayers.__version__


def test_all_is_what_there_is() -> None:
    assert all(hasattr(nlilayers, name) for name in nlilayers.__all__)
    assert sorted(nlilayers.__all__) == nlilayers.__all__


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_documented(name: str) -> None:
    doc = inspect.getdoc(PUBLIC[name]) or ""
    assert "Example::" in doc and ">>> " in doc, f"{name} has no example"
    if name not in ("masking.require_mask", "masking.require_sequence"):
        assert "Shape:" in doc, f"{name} does not tell its shapes"


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if inspect.isclass(value)])
def test_constructors_end_with_device_and_dtype_where_there_are_parameters(name: str) -> None:
    parameters = inspect.signature(PUBLIC[name]).parameters
    assert all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    if {"device", "dtype"} & set(parameters):
        assert list(parameters)[-2:] == ["device", "dtype"]
        assert all(parameters[p].kind is inspect.Parameter.KEYWORD_ONLY for p in ("device", "dtype"))


def test_the_import_needs_nothing_but_torch_numpy_and_einops() -> None:
    code = "import sys, torch, numpy; before = set(sys.modules); import nlilayers; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    new = {module.split(".")[0] for module in done.stdout.split()}
    assert new <= {"nlilayers", "einops", "torch", "numpy"} | set(sys.stdlib_module_names)


@pytest.mark.parametrize("equation", [functional.dot_scores, functional.weighted_sum])
def test_axes_that_do_not_match_are_refused(equation) -> None:
    with pytest.raises(RuntimeError, match="does not broadcast"):
        equation(torch.ones(1, 2, 3), torch.ones(1, 4, 5))
