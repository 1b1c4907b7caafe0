"""Processes forked from one that has imported the library, and what else takes seconds to import."""

import gc
import multiprocessing
import os
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "accelerate",
        "jinja2",
        "matplotlib.backends.backend_agg",
        "nlilayers",
        "rich.progress",
        "torch._dynamo",  # which torch loads with the first optimiser
        "torchmetrics.functional.classification",
        "tyro",
    ]
)


def begin(out: Path, err: Path) -> None:
    """What a fork does first: it writes to files, and searches nothing that was imported for garbage."""
    gc.freeze()
    for number, path in enumerate((out, err), start=1):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), number)
