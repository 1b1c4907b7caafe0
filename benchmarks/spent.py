"""What a training step is spent on: the share of each kind of work."""

from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.measure import Step

KINDS = {
    "products": ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution", "conv2d", "rnn", "lstm", "gemm"),
    "softmax and activations": ("softmax", "relu", "gelu", "sigmoid", "tanh", "threshold", "softplus", "logsumexp"),
    "random numbers": ("bernoulli", "dropout", "random"),
    "gathering": ("index", "embedding", "gather", "scatter", "unique", "sort"),
    "copies": ("copy", "cat", "clone", "fill", "zero", "pad", "unfold"),
    "optimiser": ("adam",),
}
"""Kinds of work by a word in the names of what PyTorch runs; the first that fits counts."""
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
    words = operator.removeprefix("aten::").lower()
    return next((name for name, parts in KINDS.items() if any(part in words for part in parts)), OTHER)
