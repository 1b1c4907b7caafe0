"""How the data side's figures are taken: from files as SNLI's, each measure in its own conditions."""

import json
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks import scale

HELD = Path(scale.__file__).with_name("scale.json")


def test_the_table_is_what_was_measured() -> None:
    held = json.loads(HELD.read_text())
    assert scale.table(held) == HELD.with_suffix(".md").read_text()


def test_a_row_has_the_median_and_the_ends_of_its_own_figure() -> None:
    held = json.loads(HELD.read_text())
    for measure, seconds in (("read", (70.0, 10.0, 20.0)), ("open", (7.0, 1.0, 2.0))):
        held["runs"][measure] = [held["runs"][measure][0] | {"seconds": value} for value in seconds]
    rows = scale.table(held).splitlines()
    assert "| read, index and cache the corpus, s | 20.0 | 10.0 to 70.0 |" in rows
    assert "| open it from the cache, s | 2.00 | 1.00 to 7.00 |" in rows


def test_pairs_are_counted_by_the_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scale.write_snli(tmp_path / "snli.jsonl", 41)
    clock = SimpleNamespace(perf_counter=count(0.0, 2.0).__next__)
    monkeypatch.setattr(scale, "time", clock)
    assert scale.read(tmp_path) == {"seconds": 2, "pairs": 40, "dropped": 1}
    assert scale.open_cached(tmp_path)["seconds"] == 2
    found = scale.batches(tmp_path)
    assert found == {f"pairs_per_second_at_{size}": 20 for size in (32, 64, 256)}


def test_a_corpus_is_read_anew_each_time_and_then_opened_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached: list[tuple[str, int]] = []

    def measured(name: str, folder: Path) -> dict[str, float]:
        cache = folder / "cache"
        cache.mkdir(exist_ok=True)
        cached.append((name, len(list(cache.iterdir()))))
        (cache / "corpus").touch()
        return dict.fromkeys(["seconds", "pairs", "peak_gib", "megabytes_per_second", "found", "bytes"], 1.0) | {
            f"pairs_per_second_at_{size}": 1.0 for size in (32, 64, 256)
        }

    monkeypatch.setattr(scale, "measured", measured)
    monkeypatch.setattr(scale, "HERE", tmp_path)
    monkeypatch.setattr("sys.argv", ["scale", "--pairs", "3", "--words", "3", "--repeats", "2"])
    scale.main()
    kept = [("read", 0)] * 2 + [(name, 1) for name in ("open", "batches", "vectors") for _ in range(2)]
    assert cached == kept
    assert (tmp_path / "scale.md").read_text() == scale.table(json.loads((tmp_path / "scale.json").read_text()))


def test_a_peak_is_told_in_gib(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "held_at_most", lambda: 3.0 * 2**30)
    monkeypatch.setitem(scale.RUN, "open", lambda folder: {"seconds": 1.0})
    monkeypatch.setattr("sys.argv", ["scale", "--measure", "open", "--folder", "x"])
    scale.main()
    assert json.loads(capsys.readouterr().out) == {"seconds": 1, "peak_gib": 3}
