"""torch.func, other processes and other devices: what a layer or model is spread over, it is still the same.

    python -m reliability.spread

Writes ``reliability/spread.json``.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from nli_common.files import write_text
from reliability import copies, launched, parallel, transforms
from reliability.cases import CASES


def main() -> None:
    """Take every figure at full size and write them."""
    argparse.ArgumentParser(prog="python -m reliability.spread", description=__doc__).parse_args()
    held = measure()
    path = Path(__file__).with_suffix(".json")
    write_text(path, json.dumps(held, indent=1) + "\n")
    print(page(held))


def measure(batch: int = 5, length: int = 9, steps: int = 30, pairs: int = 2000, train: int = 1001) -> dict[str, Any]:
    """Everything that the page shows.

    Args:
        batch: sentences in a batch, for torch.func.
        length: words of them.
        steps: of DistributedDataParallel and FSDP2.
        pairs: that data loaders' workers make batches of.
        train: training pairs of a launched script.
    """
    torch.set_num_threads(1)
    held: dict[str, Any] = {
        "command": "python -m reliability.spread",
        "torch": torch.__version__,
        "batch": batch,
        "length": length,
        "steps": steps,
    }
    held["transforms"] = {
        name: {
            attack: call(case, batch, length) if transforms.possible(case, attack) else None
            for attack, call in transforms.ATTACKS.items()
        }
        for name, case in CASES.items()
    }
    held["parallel"] = [
        {"net": net, "way": way, **figures} for (net, way), figures in parallel.spread_training(steps).items()
    ]
    held["launched"] = []
    for same_lengths in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            held["launched"].append(launched.both_ways(Path(folder), train, 3, same_lengths))
    held["workers"] = {method: copies.batches_by_workers(method, pairs) for method in ("fork", "spawn")}
    spawned = copies.in_a_fresh_process(list(CASES))
    held["copies"] = {
        name: {
            "pickled into a fresh process": spawned[name],
            "bfloat16 by way of float64": copies.there_and_back(case),
            "meta, assign=True": copies.assigned(case),
            "meta, to_empty": copies.filled(case),
        }
        for name, case in CASES.items()
    }
    held["keys"] = sum(copies.refusals(case) for case in CASES.values())
    held["configurations"] = copies.configurations_in_a_fresh_process()
    held["unsaved"] = copies.unsaved_of_models()
    held["limits"] = {"fully_shard": parallel.refusal_of_scalars()}
    for attack in transforms.BEYOND_AN_LSTM:
        held["limits"][attack] = transforms.refusal(CASES["ESIM"], attack, batch, length)
    return held


def page(held: dict[str, Any]) -> str:
    """The figures as a section of Markdown."""
    small = parallel.BATCH // 2
    lstm = {name: held["limits"][name] for name in transforms.BEYOND_AN_LSTM}
    workers = "; ".join(
        f"by {method}, " + ", ".join(f"{count} of {name}" for name, count in counts.items())
        for method, counts in held["workers"].items()
    )
    unsaved = "; ".join(f"{name}: {', '.join(map(_code, names))}" for name, names in held["unsaved"].items() if names)
    parts = [
        "## torch.func, and recomputation",
        "Largest difference from a plain loop, in float64, as a share of the largest number where that is above 1: "
        f"{held['batch']} sentences of up to {held['length']} words, every parameter drawn anew; torch "
        f"{held['torch']}, `{held['command']}`. Jacobians and Hessian-vector products are with respect to all "
        "parameters, Jacobians also with respect to the inputs of short sentences.",
        _table(held["transforms"]),
        "A dash marks what torch cannot do with an `nn.LSTM`: "
        + "; ".join(f'{k}, "{v}"' for k, v in lstm.items())
        + ".",
        "### Two processes",
        f"Largest difference from one process after {held['steps']} steps with momentum, in float64, on batches of "
        f"{parallel.BATCH} that two gloo processes share as {parallel.BATCH - small} and {small}; the last "
        "column shows how far the parameters themselves moved. `fully_shard` takes no scalar parameters "
        f'("{held["limits"]["fully_shard"]}"): here they have an axis, as it says.',
        _parallel_table(held["parallel"]),
        "A training script in float64 on two processes at half the batch each, against one process: every accuracy and "
        "every confusion is equal. Two processes that were killed and restarted end with bit-identical results to two "
        "that were not.",
        _launched_table(held["launched"]),
        "### Workers, copies, other dtypes and devices",
        f"Batches from two worker processes, bit-identical to those made in the main process: {workers}.",
        "Largest difference of the outputs of a copy:",
        _table(held["copies"]),
        f"A missing, a strange and a misshapen tensor were refused by name for each of {held['keys']} keys of the "
        f"states. {held['configurations']} configurations and lexicons came back equal from a spawned process.",
        "`to_empty` also empties buffers that are not in the state dict; for the last column they were restored by "
        f"hand. With `assign=True` that is not needed. {unsaved}.",
    ]
    return "\n\n".join(parts) + "\n"


def _table(rows: dict[str, dict[str, float | None]]) -> str:
    heads = list(next(iter(rows.values())))
    lines = [["", *heads]]
    lines += [[name, *(_size(cells[head]) for head in heads)] for name, cells in rows.items()]
    return _lines(lines)


def _parallel_table(rows: list[dict[str, Any]]) -> str:
    lines = [["net", "way", "losses", "parameters", "moved"]]
    for row in rows:
        cells = [_size(row[name]) for name in ("losses", "parameters")]
        lines.append([row["net"], f"`{row['way']}`", *cells, f"{row['moved']:.2f}"])
    return _lines(lines)


def _launched_table(rows: list[dict[str, Any]]) -> str:
    lines = [["batches", "pairs", "epochs", "losses", "weights", "killed"]]
    for row in rows:
        kind = "of the same lengths" if row["same lengths"] else "of similar lengths"
        cells = [_size(row[name]) for name in ("losses", "weights")]
        lines.append([kind, f"{row['pairs']:,}", f"{row['epochs']}", *cells, f"{row['kills']}"])
    return _lines(lines)


def _code(name: str) -> str:
    return f"`{name}`"


def _size(difference: float | None) -> str:
    if difference is None:
        return "–"
    return "0" if difference == 0 else f"{difference:.0e}"


def _lines(lines: list[list[str]]) -> str:
    head, *rows = lines
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


if __name__ == "__main__":
    main()
