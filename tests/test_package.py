"""What the package promises as a whole: its names, their documentation, how long it takes to import."""

import ast
import importlib.metadata
import inspect
import pathlib
import subprocess
import sys

import pytest
import torch
from torch import nn

import nlilayers
from nlilayers import functional, masking

SIZES = {
    "AlignmentFactorization": (5, 3),
    "CharNgramEmbedding": (5,),
    "DistancePrior": (),
    "FactorizationMachine": (5, 3),
    "GatedConvBlock": (5, 3),
    "GatedConvEncoder": (5, 3, 2),
    "GaussianPrior": (),
    "GaussianSelfAttention": (6, 3),
    "Highway": (5, 3, 2),
    "LinearPrior": (),
    "ZipfPrior": (),
}
WITHOUT_STATE = {
    "DecomposableAlign": (),
    "HeadPriors": ([nlilayers.GaussianPrior()],),
    "IntraAlign": (),
    "SinusoidalPositionalEncoding": (6,),
}
LAYERS = SIZES | WITHOUT_STATE
every_layer = pytest.mark.parametrize("name", sorted(LAYERS))
DOCUMENTED = [
    *((nlilayers, name) for name in sorted(LAYERS)),
    *((module, name) for module in (functional, masking) for name in module.__all__),
]


def test_the_public_names_are_these_and_no_others() -> None:
    assert sorted(nlilayers.__all__) == sorted([*LAYERS, "functional", "masking"])
    assert nlilayers.__all__ == sorted(nlilayers.__all__, key=lambda name: (name[0].islower(), name))
    public = {name for name in vars(nlilayers) if not name.startswith("_")}
    assert public == set(nlilayers.__all__)


@pytest.mark.parametrize("module", [functional, masking], ids=lambda module: module.__name__)
def test_a_modules_names_are_what_it_defines(module) -> None:
    defined = {name for name, value in vars(module).items() if inspect.isfunction(value) and name[0] != "_"}
    imported = {name for name in defined if not getattr(module, name).__module__.startswith(module.__name__)}
    assert defined - imported == set(module.__all__) and list(module.__all__) == sorted(module.__all__)


@pytest.mark.parametrize(("module", "name"), DOCUMENTED, ids=[name for _, name in DOCUMENTED])
def test_every_public_name_says_its_shape_and_has_an_example(module, name: str) -> None:
    documentation = inspect.getdoc(getattr(module, name))
    assert documentation is not None and "Example::" in documentation and ">>> " in documentation
    assert "Shape:" in documentation


@every_layer
def test_every_layer_shows_its_sizes_and_documents_its_arguments(name: str) -> None:
    cls = getattr(nlilayers, name)
    parameters = [p for p in inspect.signature(cls).parameters if p not in ("device", "dtype")]
    documentation = inspect.getdoc(cls)
    assert all(f"{parameter}: " in documentation for parameter in parameters)
    assert "forward" in vars(cls) and inspect.getdoc(cls.forward)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_every_layer_with_state_takes_a_device_and_a_dtype_last_and_resets_itself_last(name: str) -> None:
    cls = getattr(nlilayers, name)
    assert list(inspect.signature(cls).parameters)[-2:] == ["device", "dtype"]
    layer = cls(*SIZES[name], device="meta", dtype=torch.float64)
    assert all(t.device.type == "meta" and t.dtype == torch.float64 for t in layer.state_dict().values())
    assert callable(layer.reset_parameters)
    if list(layer.parameters()):
        assert inspect.getsource(cls.__init__).rstrip().endswith("\n        self.reset_parameters()")


@every_layer
def test_state_dicts_hold_their_documented_names(name: str) -> None:
    layer: nn.Module = getattr(nlilayers, name)(*LAYERS[name])
    documented = inspect.getdoc(type(layer))
    roots = {key.split(".")[0] for key in layer.state_dict()} - {"rho", "kappa", "theta", "blocks"}
    assert all(f"{root}: " in documented for root in roots)


def test_the_import_brings_nothing_but_einops_beyond_torch_and_numpy() -> None:
    code = "import sys, torch, numpy; before = set(sys.modules); import nlilayers; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    new = {module.split(".")[0] for module in done.stdout.split()}
    assert new <= {"nlilayers", "einops", "torch", "numpy"} | set(sys.stdlib_module_names)


def test_the_version_stands_once() -> None:
    assert importlib.metadata.version("nlilayers") == nlilayers.__version__


@pytest.mark.parametrize("equation", [functional.dot_scores, functional.weighted_sum])
def test_axes_that_do_not_match_are_refused(equation) -> None:
    with pytest.raises(RuntimeError, match="Expected size for first two dimensions"):
        equation(torch.ones(1, 2, 3), torch.ones(1, 4, 5))


def test_layers_do_not_import_their_siblings_unless_they_are_built_of_them() -> None:
    """Layers, then functions, then masking; what has a prior hides denormals; attention has blocks that suit it."""
    of_priors = {("_attention", "_known_priors"), ("_blocks", "_known_priors"), ("_known_priors", "_priors")}
    allowed = {("_attention", "_blocks"), ("_attention", "_denormals"), ("_attention", "_priors"), *of_priors}
    allowed.add(("_align", "_denormals"))
    floor = {"_checks", "_dropout", "_hiding", "_log_bias", "_passages", "_plain", "_precision", "_values", "_zeroing"}
    folder = pathlib.Path(nlilayers.__file__).parent
    for path in folder.glob("_*.py"):
        if path.stem == "__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("nlilayers._"):
                sibling = node.module.removeprefix("nlilayers.")
                assert sibling in floor or (path.stem, sibling) in allowed, f"{path.stem} imports {sibling}"
    for path in folder.glob("functional/*.py"):
        assert "from nlilayers import" not in path.read_text().replace(">>> from nlilayers import", "")
