"""What a training step is spent on: the share of each kind of work."""

import re
from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.measure import Step

KINDS = {
    "optimiser": "adam",
    "products": r"gemm|cutlass|(?<![a-z])(add|b|baddb)?m[mv](?![a-z])|dot|convolution|conv2d|rnn|lstm",
    "softmax and activations": "softmax|relu|gelu|sigmoid|tanh|threshold|softplus|logsumexp",
    "random numbers": "bernoulli|dropout|random|distribution",
    "gathering": "index|embedding|gather|scatter|unique|sort",
    "copies": "copy|memcpy|cat|clone|fill|memset|zero|pad|unfold",
}
"""Kinds of work, by what is in the names of what PyTorch runs, operators or kernels; the first that fits counts."""
OTHER = "sums and the like"
STEPS = 5


def shares(step: Step, device: str) -> dict[str, float]:
    """The share of each kind in the time that operators take, Python's own left out."""
    step()
    activity = ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU
    with profile(activities=[activity]) as record:
        for _ in range(STEPS):
            step()
        if device == "cuda":
            torch.cuda.synchronize()
    spent: Counter[str] = Counter()
    for event in record.key_averages():
        seconds = event.self_device_time_total if device == "cuda" else event.self_cpu_time_total
        spent[kind(event.key)] += seconds
    return {name: spent[name] / spent.total() for name in (*KINDS, OTHER)}


def kind(operator: str) -> str:
    """The kind of work of one operator, or of one kernel."""
    name = operator.removeprefix("aten::").lower()
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, name)), OTHER)
