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
from nli_common.files import TEMPORARY, version_key, write_atomically

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


@pytest.mark.parametrize(
    ("broken", "left"), [(1, {"new": "second", "kept": "first"}), (2, {"kept": "second"})], ids=["first", "second"]
)
def test_what_is_kept_aside_stays_until_the_old_file_takes_its_place(
    broken: int, left: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that ends at either step leaves a whole file in one of the two places."""
    (tmp_path / "new").write_text("second")
    (tmp_path / "kept").write_text("first")
    replace, moved = Path.replace, []

    def fail(source: Path, target: Path) -> Path:
        moved.append((source.name, target.name))
        if len(moved) == broken:
            raise OSError(errno.EIO, "broken")
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError, match="cannot be written"):
        write_atomically(tmp_path / "new", lambda temporary: temporary.write_text("third"), keep=tmp_path / "kept")
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == left
    assert moved[0] == ("new", "kept")


def test_forgotten_files_of_a_name_with_brackets_are_cleared(tmp_path: Path) -> None:
    forgotten, other = tmp_path / f".[a].json.1{TEMPORARY}", tmp_path / f".a.json.1{TEMPORARY}"
    for path in (forgotten, other):
        path.write_text("half")
        os.utime(path, (0, 0))
    write_atomically(tmp_path / "[a].json", lambda temporary: temporary.write_text("{}"))
    assert not forgotten.exists() and other.exists()


def test_what_is_made_of_a_file_is_named_by_its_place_size_time_and_form(tmp_path: Path) -> None:
    names = set()
    for name, text, nanoseconds, form in (
        ("a", "one", 10**18, 1),
        ("b", "one", 10**18, 1),
        ("a", "more", 10**18, 1),
        ("a", "one", 10**18 + 1_000_000, 1),
        ("a", "one", 10**18, 2),
    ):
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, ns=(nanoseconds, nanoseconds))
        names.add(version_key(tmp_path / name, form))
    assert len(names) == 5
