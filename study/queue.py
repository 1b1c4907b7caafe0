"""What is left to train, and who trains it."""

import os
import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any

import torch

from study.plan import VARIANTS, Job
from study.results import kept
from study.training import Places, run_job
from study.tuning import tune, tuned

Task = Job | str
"""A run, or a family that is to be tuned."""


class Queue:
    """Runs in the plan's order; those of a family wait until it is tuned.

    Args:
        wanted: all runs; those whose results are there are left out.
    """

    def __init__(self, wanted: Iterable[Job]) -> None:
        self.left = [job for job in wanted if kept(job) is None]
        self.tuning: set[str] = set()

    def take(self) -> Task | None:
        """The next run that can start, or the family to be tuned for it; ``None`` if all that is left has to wait."""
        for job in self.left:
            family = VARIANTS[job.variant].family
            if tuned(family) is not None:
                self.left.remove(job)
                return job
            if family not in self.tuning:
                self.tuning.add(family)
                return family
        return None


def work(queue: Queue, places: Places, workers: int) -> int:
    """Do all that is left, so much at the same time, and say what is done as it gets done; how many runs failed."""
    started, failed = time.monotonic(), 0
    threads = max(1, torch.get_num_threads() // workers)
    idle = [_worker(threads) for _ in range(workers)]
    running: dict[Future[None], tuple[Task, ProcessPoolExecutor]] = {}
    try:
        while True:
            while idle and (task := queue.take()) is not None:
                worker = idle.pop()
                try:
                    future = _submit(worker, task, places)
                except BrokenProcessPool:  # it died while it had nothing to do
                    worker = _worker(threads)
                    future = _submit(worker, task, places)
                running[future] = task, worker
            if not running:
                return failed + len(queue.left)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                (task, worker), error = running.pop(future), future.exception()
                if error is not None:
                    # A run that failed may have spoilt its process for the next ones: a GPU's errors last.
                    worker.shutdown(wait=False)
                    worker = _worker(threads)
                idle.append(worker)
                failed += error is not None and isinstance(task, Job)
                outcome = "done" if error is None else f"failed: {error}"
                print(f"{time.monotonic() - started:7.0f} s  {len(queue.left)} left  {task}: {outcome}", flush=True)
    finally:
        for worker in (*idle, *(worker for _, worker in running.values())):
            worker.shutdown()


def _worker(threads: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), _start, (threads,))


def _start(threads: int) -> None:
    """What a worker does first. It ends with the process that started it, however that ended."""
    torch.set_flush_denormal(True)  # before there are threads, which would not do so
    torch.set_num_threads(threads)
    parent = parent_process()
    assert parent is not None
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _submit(worker: ProcessPoolExecutor, task: Task, places: Places) -> "Future[None]":
    if isinstance(task, str):
        return worker.submit(tune, task, places)
    options = tuned(VARIANTS[task.variant].family)
    assert options is not None
    return worker.submit(run_job, task, places, options)
