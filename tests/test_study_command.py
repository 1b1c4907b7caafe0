"""The study's command trains what it is asked for, on so many workers, and says what failed."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from study import __main__ as study_main
from study.plan import ENCODED, Job, jobs
from study.queue import Queue, work
from study.training import Places

Command = Callable[..., tuple[list[Job], Places, int]]
WITHOUT = [job for job in jobs("cpu") if job.variant not in {variant.name for variant in ENCODED}]


@pytest.fixture
def command(kept_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """What is asked of the workers by a command line, whose result files are all still to come."""
    (tmp_path / "bench").mkdir()
    for name in ("ensembles", "windows", "starts", "spreads", "pairs", "classes", "report.write"):
        monkeypatch.setattr(f"study.__main__.{name}", lambda *_: None)

    def run(*options: str, failed: int = 0) -> tuple[list[Job], Places, int]:
        asked: list[tuple[list[Job], Places, int]] = []

        def work(queue: Queue, places: Places, workers: int) -> int:
            asked.append((queue.left, places, workers))
            return failed

        monkeypatch.setattr("study.__main__.work", work)
        monkeypatch.setattr("sys.argv", ["study", "--data", str(tmp_path), *options])
        study_main.main()
        return asked[0]

    return run


def test_without_an_encoder_the_rows_on_one_are_left_out(command: Command, tmp_path: Path) -> None:
    left, places, workers = command()
    assert left == WITHOUT and len(left) < len(list(jobs("cpu")))
    assert (places.data, places.encoder, workers) == (tmp_path.resolve(), None, 2)
    (tmp_path / "model.safetensors").touch()
    left, places, _ = command("--encoder", str(tmp_path))
    assert left == list(jobs("cpu")) and places.encoder == tmp_path.resolve()


def test_a_folder_without_weights_is_no_encoder(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command("--encoder", str(tmp_path / "none"))
    assert f"--encoder: expected a folder with *.safetensors, got {tmp_path / 'none'}" in capsys.readouterr().err


def test_a_gpu_has_a_budget_of_its_own(command: Command, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    left, _, _ = command("--budget", "gpu", "--encoder", str(tmp_path))
    assert left == list(jobs("gpu")) != list(jobs("cpu"))


def test_only_those_runs_are_trained_whose_name_has_it(command: Command) -> None:
    left, _, _ = command("--only", "sick/DA")
    assert {job.variant for job in left} == {"DA", "DA, averaged", "DA, intra-attention"}
    assert left == [job for job in WITHOUT if job.bench == "sick" and job.variant.startswith("DA")]


def test_runs_are_trained_in_the_order_of_the_parts_that_they_have(command: Command) -> None:
    left, _, _ = command("--only", "snli10k/ESIM", "sick/CAFE 150", "snli10k")
    first, second = (
        [job for job in WITHOUT if f"{job.bench}/{job.variant}".startswith(part)]
        for part in ("snli10k/ESIM", "sick/CAFE 150")
    )
    rest = [job for job in WITHOUT if job.bench == "snli10k" and job not in first]
    assert left == [*first, *second, *rest] and first and second and rest


def test_a_part_that_no_run_has_is_told(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command("--only", "sick/DA", "snli99k")
    assert "--only: expected a part of 'bench/variant', got 'snli99k', which no run has" in capsys.readouterr().err


def test_there_are_as_many_workers_as_asked_for_and_the_runs_lie_where_they_shall(
    command: Command, tmp_path: Path
) -> None:
    _, places, workers = command("--workers", "5", "--runs", str(tmp_path / "mine"))
    assert (workers, places.runs) == (5, (tmp_path / "mine").resolve())


def test_a_command_whose_runs_failed_ends_with_a_status(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr("study.__main__.report.write", lambda: written.append("pages"))
    with pytest.raises(SystemExit, match="3 runs failed"):
        command(failed=3)
    assert written == ["pages"]


@pytest.mark.parametrize(("workers", "threads"), [(1, 8), (2, 4), (3, 2), (9, 1)])
def test_workers_share_the_threads(workers: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, ...]] = []

    def pool(count: int, context: Any, start: Any, arguments: tuple[int, ...]) -> ThreadPoolExecutor:
        given.append((count, *arguments))
        return ThreadPoolExecutor(count)

    monkeypatch.setattr("study.queue.ProcessPoolExecutor", pool)
    monkeypatch.setattr("torch.get_num_threads", lambda: 8)
    assert work(Queue([]), Places(Path("data"), Path("runs")), workers) == 0
    assert given == [(1, threads)] * workers
