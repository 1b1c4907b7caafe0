"""The code of the README and of the documentation's pages is run, and the commands they name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "examples/README.md"]
WRITTEN = sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("**/*.md") if "_build" not in path.parts
)
CODE = [page for page in ["README.md", *WRITTEN] if "```python" in (ROOT / page).read_text(encoding="utf-8")]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", CODE)
def test_python_blocks_run(page: str) -> None:
    for code in blocks(page, "python"):
        exec(compile(code, page, "exec"), {"__name__": "page"})


def test_there_is_code_to_run() -> None:
    assert blocks("README.md", "python") and blocks("README.md", "bash")
    assert len(CODE) > 10


def test_scripts_of_the_pages_exist() -> None:
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in WRITTEN)
    scripts = set(re.findall(r"python (examples/\w+\.py)", text))
    assert scripts and all((ROOT / script).exists() for script in scripts)


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_links_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for target in re.findall(r"^make (\w+)", text, flags=re.MULTILINE):
        assert target in targets
    for script in re.findall(r"python (examples/\w+\.py)", text):
        assert (ROOT / script).exists()
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((ROOT / page).parent / link).exists(), link
