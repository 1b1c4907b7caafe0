"""The pages of reliability are what the attacks found, and nothing else."""

from pathlib import Path

import pytest
from reliability.report import PAGES, measured, written


@pytest.mark.parametrize("path", measured(), ids=lambda path: path.stem)
def test_each_page_is_written_from_what_was_found(path: Path) -> None:
    page = written(path)
    assert page.startswith("# ") and page == (PAGES / f"{path.stem}.md").read_text()


def test_every_attack_has_its_page() -> None:
    assert {path.stem for path in measured()} | {"index"} == {path.stem for path in PAGES.glob("*.md")}
