"""What is built from the checkout holds what it should and nothing else, and works away from the checkout."""

import subprocess
import sys
from pathlib import Path

import pytest
from reliability.installing import EVERY_LAYER, build, metadata, names, readme_code

import nlilayers

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("dist"))


def tracked(*folders: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.split())


def test_the_wheel_holds_the_library_and_nothing_else(built: tuple[Path, Path]) -> None:
    about = f"nlilayers-{nlilayers.__version__}.dist-info"
    code = {name.removeprefix("src/") for name in tracked("src")}
    assert names(built[0]) == code | {f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE")}
    assert "nlilayers/py.typed" in code


def test_the_source_distribution_holds_what_is_tracked(built: tuple[Path, Path]) -> None:
    folders = ["src", "tests", "examples", "benchmarks", "reliability", "study", "docs"]
    texts = ["README.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE"]
    files = [*texts, "Makefile", "constraints.txt", "pyproject.toml", ".gitignore"]
    assert names(built[1]) == tracked(*folders, *files) | {"PKG-INFO"}


def test_the_metadata_ask_for_three_packages(built: tuple[Path, Path]) -> None:
    asked = [line for line in metadata(built[0]).get_all("Requires-Dist", []) if "extra ==" not in line]
    assert sorted(asked) == ["einops", "numpy", "torch>=2.5"]
    assert metadata(built[0])["Version"] == nlilayers.__version__


def test_the_wheel_works_away_from_the_checkout(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Installed alone into a folder, the dependencies being those of this environment."""
    there = tmp_path / "there"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(there), str(built[0])]
    subprocess.run(install, check=True, capture_output=True)
    for code in (readme_code(built[0]), EVERY_LAYER):
        begin = f"import sys; sys.path.insert(0, {str(there)!r})\n"
        end = f"\nimport nlilayers; assert nlilayers.__file__.startswith({str(there)!r}), nlilayers.__file__"
        command = [sys.executable, "-W", "error", "-I", "-c", begin + code + end]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
