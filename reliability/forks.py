"""Processes forked from one that has imported the library, and what else takes seconds to import."""

import multiprocessing

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
