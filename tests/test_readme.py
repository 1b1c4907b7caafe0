"""The README's code is run, and the commands it names exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "examples/README.md"]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("code", blocks("README.md", "python"))
def test_python_blocks_run(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


def test_there_is_code_to_run() -> None:
    assert blocks("README.md", "python") and blocks("README.md", "bash")


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
