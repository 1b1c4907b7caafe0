"""The pages of speed are what the measurements say, and nothing else."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from benchmarks import report, speed
from benchmarks.report import padded_tables, page, plot_lengths, write_page
from benchmarks.speed import PARTS, begun, main, possible_parts
from matplotlib.figure import Figure

ROOT = Path(__file__).parent.parent
MEASURED = sorted((ROOT / "benchmarks").glob("speed-*[0-9].json"))


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
    assert f"| {ratio['median']:.2f} ({ratio['low']:.2f}\N{WORD JOINER}–\N{WORD JOINER}{ratio['high']:.2f}) |" in page(
        held, "plot.png"
    )
    row["ratios"]["plain attention"]["median"] = 123.0
    assert "123.00" in page(held, "plot.png")


SHARED = {"device": "cpu", "dtype": "float32", "torch": "2.13.0", "machine": "one", "threads": 2, "command": "this"}


def test_a_page_has_the_parts_that_are_measured(tmp_path: Path) -> None:
    """As a process leaves it that was stopped after one of them."""
    measured = tmp_path / "speed.json"
    graphs = json.loads((ROOT / "benchmarks" / "speed-cuda-float32.json").read_text())
    for part in PARTS:
        rows = {"attention": ["attention", "memory"], "layers": ["layers", "vocabulary_table"]}.get(part, [part])
        whole = graphs if part == "recorded" else json.loads(MEASURED[0].read_text())
        if part == "models":
            rows += ["product_rate", "paper_ratios"]
        if part == "recorded":
            rows += ["memory_of_a_record"]
        measured.write_text(json.dumps(SHARED | {name: whole[name] for name in rows}))
        write_page(measured, tmp_path)
        written = (tmp_path / "speed.md").read_text()
        assert ("µs a token |" in written) == (part == "attention") == (tmp_path / "speed.png").exists()
        assert ("| layer | rival |" in written) == (part == "layers")
        assert ("| model | lengths | batch |" in written) == (part == "models")
        assert ("| compiled / eager |" in written) == (part == "compiled")
        assert ("| recorded / eager |" in written) == (part == "recorded")
        assert ("`IntraAlign()`:" in written) == (part == "padded")
        (tmp_path / "speed.png").unlink(missing_ok=True)
    assert set(PARTS) == {"attention", "layers", "padded", "models", "compiled", "recorded"}


def test_a_padded_batchs_ratio_stands_in_its_layers_table_below_its_rival() -> None:
    timing = {"median": 0.25, "low": 0.125, "high": 0.5}
    row = {"layer": "one", "batch": 64, "length": 16, "phase": "training", "seconds": {"ours": timing}}
    rows = [row | {"ratios": {"a": timing}}, row | {"layer": "two", "phase": "inference", "ratios": {"b": timing}}]
    assert padded_tables(rows) == [
        "`one`:",
        "| length | batch |  | ours, ms | a |\n| --- | ---: | ---: | ---: | ---: |\n"
        "| 16 | 64 | training | 250.00 | 0.25 (0.12\N{WORD JOINER}–\N{WORD JOINER}0.50) |",
        "`two`:",
        "| length | batch |  | ours, ms | b |\n| --- | ---: | ---: | ---: | ---: |\n"
        "| 16 | 64 | inference | 250.00 | 0.25 (0.12\N{WORD JOINER}–\N{WORD JOINER}0.50) |",
    ]


def test_a_recorded_steps_time_stands_beside_its_ratio() -> None:
    held = {"memory_of_a_record": 3.25 * 2**20}
    timing = {"median": 0.25, "low": 0.125, "high": 0.5}
    row = {"model": "one", "batch": 7, "lengths": [14, 8], "ratio": timing, "seconds": {"ours": {"median": 0.0042}}}
    written = page(SHARED | held | {"recorded": [row]}, "plot.png")
    assert "| one | 14/8 | 4.20 | 0.25 (0.12\N{WORD JOINER}–\N{WORD JOINER}0.50) |" in written
    assert "`--cuda-graphs`, 7 pairs in a batch" in written and "takes 3.2 MiB, beside" in written


def test_graphs_are_measured_where_there_are_some(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert possible_parts("cpu", torch.float32) == [part for part in PARTS if part != "recorded"]
    assert possible_parts("cuda", torch.float32) == list(PARTS)
    assert possible_parts("cuda", torch.bfloat16) == ["attention", "layers", "padded"]
    monkeypatch.setattr("sys.argv", ["speed", "--parts", "recorded"])
    with pytest.raises(SystemExit):
        main()
    told = capsys.readouterr().err
    assert "--parts: float32 on cpu has attention, layers, padded, models, compiled only, got recorded" in told


def test_parts_of_a_page_were_measured_under_the_same_conditions(tmp_path: Path) -> None:
    path = tmp_path / "speed.json"
    assert begun(path, SHARED, whole=False) == SHARED
    path.write_text(json.dumps(SHARED | {"layers": [1]}))
    assert begun(path, SHARED, whole=False) == SHARED | {"layers": [1], "apart": True}
    assert begun(path, SHARED | {"machine": "another"}, whole=True) == SHARED | {"machine": "another"}
    with pytest.raises(ValueError, match=r"the other parts in speed.json have machine one, here it is another"):
        begun(path, SHARED | {"machine": "another"}, whole=False)


def test_a_whole_that_was_ended_goes_on_from_its_last_part_and_then_replaces_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []

    def part(name: str, ends: bool = False) -> Callable[..., Iterator[dict[str, object]]]:
        def measure(device: str, dtype: torch.dtype) -> Iterator[dict[str, object]]:
            measured.append(name)
            yield {name: [len(measured)]}
            if ends:
                raise KeyboardInterrupt

        return measure

    kept, partial = tmp_path / "speed-cpu-float32.json", tmp_path / "speed-cpu-float32.partial.json"
    kept.write_text(json.dumps({"old": True}))
    monkeypatch.setattr(speed, "HERE", tmp_path)
    monkeypatch.setattr(speed, "PAGES", tmp_path)
    monkeypatch.setattr(speed, "PARTS", {"one": part("one"), "two": part("two", ends=True)})
    monkeypatch.setattr(speed, "conditions", lambda *_: dict(SHARED))
    monkeypatch.setattr(speed, "write_page", lambda path, folder: path.with_suffix(".md").write_text("page"))
    monkeypatch.setattr("sys.argv", ["speed"])
    with pytest.raises(KeyboardInterrupt):
        main()
    assert json.loads(kept.read_text()) == {"old": True} and partial.exists()
    monkeypatch.setitem(speed.PARTS, "two", part("two"))
    main()
    assert measured == ["one", "two", "two"] and not partial.exists()
    assert json.loads(kept.read_text()) == SHARED | {"one": [1], "two": [3], "apart": True}
    monkeypatch.setattr("sys.argv", ["speed", "--parts", "one"])
    main()
    assert json.loads(kept.read_text()) == SHARED | {"one": [4], "two": [3], "apart": True}


def test_the_plot_has_times_by_token_on_the_left_and_peaks_on_the_right(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(report, "save_figure", lambda figure, path: drawn.append(figure))
    rows = [
        {"batch": batch, "length": length, "seconds": {"ours": {"median": 1e-3}, "other": {"median": 4e-3}}}
        for batch, length in ((10, 100), (1, 500))
    ]
    memory = [{"name": "ours", "length": length, "bytes": length * 2**20} for length in (8, 64)]
    plot_lengths({"attention": rows, "memory": memory}, Path("x.png"))
    left, right = drawn[0].axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("µs per token", "MiB")
    times, peaks = (
        {line.get_label(): list(zip(*line.get_data(), strict=True)) for line in axes.lines} for axes in (left, right)
    )
    assert times == {
        "ours": [(100, pytest.approx(1)), (500, pytest.approx(2))],
        "other": [(100, pytest.approx(4)), (500, pytest.approx(8))],
    }
    assert peaks == {"ours": [(8, 8), (64, 64)]}
