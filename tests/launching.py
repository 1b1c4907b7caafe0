"""A script in one process, or in several that are launched, as forks."""

from multiprocessing.process import BaseProcess
from pathlib import Path

from reliability.launched import environment, free_port

import forks


class Forks:
    """What torch's launcher does on one machine: each of several processes knows the others from its environment."""

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def start(self, argv: list[str], folder: Path) -> "Started":
        count, env, started = str(self.processes), environment(), []
        if self.processes > 1:
            env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
            env |= {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
        for rank in map(str, range(self.processes)):
            ranks = {"RANK": rank, "LOCAL_RANK": rank} if self.processes > 1 else {}
            started.append(forks.start(argv, env | ranks, folder / f"stdout{rank}", folder / f"stderr{rank}"))
        return Started(started)


class Started:
    """Processes that end together, and with the first of them that fails."""

    def __init__(self, processes: list[BaseProcess]) -> None:
        self.processes = processes

    def poll(self) -> int | None:
        codes = [process.exitcode for process in self.processes]
        failed = [code for code in codes if code]
        if failed:
            self.kill()
            return failed[0]
        return None if None in codes else 0

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()
