"""Hypothesis profiles, and the device that every law runs on."""

import gc
import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, Phase, settings

_SLOW_MACHINES = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("dev", deadline=None, max_examples=30, suppress_health_check=_SLOW_MACHINES)
# Every run has the same examples, which find what they can find the first time.
settings.register_profile("ci", parent=settings.get_profile("dev"), max_examples=20, derandomize=True, print_blob=True)
settings.register_profile(
    "mutants", parent=settings.get_profile("ci"), max_examples=30, phases=[Phase.explicit, Phase.generate]
)
settings.register_profile("thorough", parent=settings.get_profile("dev"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

_LONG = {
    f"test_{name}"
    for name in ("faults", "processes", "recurrent", "sequence_layers", "study", "training", "unread", "wheel")
}

# What trains within a test is compared, number by number, with what trains on the CPU; Accelerate reads this once.
os.environ["ACCELERATE_USE_CPU"] = "true"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        choices=["all", "cpu", "cuda"],
        default="all",
        help="where the laws run; all (the default) takes the CPU, and CUDA where there is one",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        choice = metafunc.config.getoption("--device")
        if choice == "all":
            choice = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
        devices = [choice] if isinstance(choice, str) else list(choice)
        metafunc.parametrize("device", devices, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the modules whose tests take long: a process that had one left at the end would be waited for."""
    items.sort(key=lambda item: item.path.stem not in _LONG)


def pytest_collection_finish() -> None:
    """Search what was imported for garbage no more, and the rest more seldom: it took 5 to 11 per cent of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the library does when it is compiled, step by step."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)


@pytest.fixture(autouse=True)
def _fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def kept_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the test, in which the study keeps its figures."""
    for module in ("training", "tuning", "starts", "spreads", "pairs", "classes", "ensembles", "windows"):
        monkeypatch.setattr(f"study.{module}.RESULTS", tmp_path)
    return tmp_path
