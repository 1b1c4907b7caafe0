"""The pages of speed are what the measurements say, and nothing else."""

import json
from pathlib import Path

import pytest
from benchmarks.report import page, write_page

ROOT = Path(__file__).parent.parent
MEASURED = sorted((ROOT / "benchmarks").glob("speed-*.json"))


@pytest.mark.parametrize("measured", MEASURED, ids=lambda path: path.stem)
def test_each_page_is_written_from_its_measurements(measured: Path, tmp_path: Path) -> None:
    write_page(measured, tmp_path)
    written = (tmp_path / f"{measured.stem}.md").read_text()
    assert written == (ROOT / "docs" / "speed" / f"{measured.stem}.md").read_text()
    assert (tmp_path / f"{measured.stem}.png").stat().st_size > 10_000


def test_a_ratio_on_the_page_is_the_measured_one() -> None:
    held = json.loads(MEASURED[0].read_text())
    row = next(row for row in held["attention"] if row["goal"] is not None)
    ratio = row["ratios"]["plain attention"]
    assert f"| {ratio['median']:.2f} ({ratio['low']:.2f}–{ratio['high']:.2f}) |" in page(held, "plot.png")
    row["ratios"]["plain attention"]["median"] = 123.0
    assert "123.00" in page(held, "plot.png")
