"""A script in two launched processes, as forks."""

from multiprocessing.process import BaseProcess
from pathlib import Path

from reliability.launched import environment, free_port

import forks


class Launcher:
    """What torch's launcher does on one machine: each of several processes is told of the others by its environment."""

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def start(self, argv: list[str], folder: Path) -> "Started":
        count, started = str(self.processes), []
        all_have = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1"}
        all_have["MASTER_PORT"] = str(free_port())
        for rank in map(str, range(self.processes)):
            env = {**all_have, "RANK": rank, "LOCAL_RANK": rank} if self.processes > 1 else {}
            streams = folder / f"stdout{rank}", folder / f"stderr{rank}"
            started.append(forks.start(argv, environment() | env, *streams))
        return Started(started)


class Started:
    """Processes that end together, and with the first of them that fails."""

    def __init__(self, processes: list[BaseProcess]) -> None:
        self.processes = processes

    def poll(self) -> int | None:
        codes = [process.exitcode for process in self.processes]
        failed = next((code for code in codes if code), None)
        if failed is not None:
            self.kill()
        return failed if failed is not None else None if None in codes else 0

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()
