"""Pages, pictures and figures are written in one step: where one cannot be, the one before it is as it was."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks import scale
from benchmarks.report import write_page
from reliability import report as reliability_report
from study import plots
from study import report as study_report

from nli_common.errors import InputError

FIGURES = {"seconds": 1.0, "pairs": 1.0, "peak_gib": 1.0, "megabytes_per_second": 1.0, "found": 1.0, "bytes": 1.0}
FIGURES |= {f"pairs_per_second_at_{size}": 1.0 for size in (32, 64, 256)}
ROW = {"batch": 1, "length": 8, "seconds": {"ours": {"median": 1.0}}}


def reliability_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliability_report, "PAGES", folder)
    monkeypatch.setattr(reliability_report, "measured", lambda: [Path("old.json")])
    monkeypatch.setattr(reliability_report, "written", lambda path: "new")
    reliability_report.main()


def study_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("plot_curves", "plot_models", "plot_alignments"):
        monkeypatch.setattr(study_report, name, lambda *_: None)
    monkeypatch.setattr(study_report, "held_results", dict)
    monkeypatch.setattr(study_report.models, "page", lambda found: "new")
    study_report.write(folder)


def study_picture(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plots.plot_curves("sick", {("sick", "DA"): [{"seed": 0, "dev": [0.5]}]}, folder / "old.png")


def speed_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = {"device": "cpu", "dtype": "float32", "torch": "2", "machine": "one", "threads": 2, "command": "this"}
    (folder / "old.json").write_text(json.dumps(held))
    write_page(folder / "old.json", folder)


def speed_picture(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "old.json").write_text(
        json.dumps({"attention": [ROW], "memory": [{"name": "ours", "length": 8, "bytes": 1}]})
    )
    write_page(folder / "old.json", folder)


def scale_figures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "HERE", folder)
    monkeypatch.setattr(scale, "measured", lambda name, folder: FIGURES)
    monkeypatch.setattr("sys.argv", ["scale", "--pairs", "3", "--words", "3", "--repeats", "1"])
    scale.main()


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (reliability_page, "old.md"),
        (study_page, "models.md"),
        (study_picture, "old.png"),
        (speed_page, "old.md"),
        (speed_picture, "old.png"),
        (scale_figures, "scale.json"),
    ],
)
def test_what_cannot_be_written_whole_leaves_what_was_there(
    write: Callable[[Path, pytest.MonkeyPatch], None], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / name).write_text("old")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="cannot be written"):
            write(tmp_path, patched)
    assert (tmp_path / name).read_text() == "old" and not list(tmp_path.glob(".*"))
