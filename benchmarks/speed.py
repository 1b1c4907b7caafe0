"""Speed and memory of the layers and models against named alternatives.

    python -m benchmarks.speed                                 # the CPU, float32
    python -m benchmarks.speed --device cuda --dtype bfloat16
    python -m benchmarks.speed --device cuda --parts compiled  # that part alone, beside what was measured before

Writes ``benchmarks/speed-DEVICE-DTYPE.json`` and, from it, the page and the plot in ``docs/speed``. Until all parts are
measured, they are kept in ``speed-DEVICE-DTYPE.partial.json``, and the same command goes on from there if it was ended.
"""

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks import attention, layers, models, padded
from benchmarks.report import write_page
from nli_common.files import write_text

HERE = Path(__file__).parent
PAGES = HERE.parent / "docs" / "speed"
MEMORY_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384, 65536)
PLAIN = "plain attention"
KEEP_MEMORY = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=100000000000"


def main() -> None:
    """Take every measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--parts", nargs="+", choices=PARTS, help="measure these, and leave the others as they are")
    parser.add_argument("--memory", nargs=2, metavar=("NAME", "LENGTH"), help=argparse.SUPPRESS)
    parser.add_argument("--growth", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    dtype = getattr(torch, options.dtype)
    if options.memory:
        name, length = options.memory
        print(attention.memory(name, int(length), options.device, dtype))
        return
    if options.growth:
        print(json.dumps(attention.growth()))
        return
    path = HERE / f"speed-{options.device}-{options.dtype}.json"
    possible = possible_parts(options.device, dtype)
    parts = options.parts or possible
    if "layers" in parts and importlib.util.find_spec("torchfm") is None:
        parser.error("layers are compared with torchfm, too: pip install -c constraints.txt -e '.[dev,bench]'")
    whole = set(parts) == set(possible)
    partial = path.with_suffix(".partial.json")
    try:
        if not set(parts) <= set(possible):
            raise ValueError(
                f"{options.dtype} on {options.device} has {', '.join(possible)} only, got {' '.join(parts)}"
            )
        held = begun(partial if whole else path, conditions(options.device, options.dtype), whole=whole)
    except ValueError as error:
        parser.error(f"--parts: {error}")
    finished = held.pop("finished", [])
    for part in parts:
        if part in finished:
            continue
        for found in PARTS[part](options.device, dtype):
            held |= found
            if not whole:
                _write(path, held)
        finished.append(part)
        if whole:
            _write(partial, held | {"finished": finished})
    if whole:
        _write(partial, held)
        partial.replace(path)
    write_page(path, PAGES)
    print((PAGES / f"{path.stem}.md").read_text())


def _write(path: Path, held: dict[str, Any]) -> None:
    write_text(path, json.dumps(held, indent=1) + "\n")


def conditions(device: str, dtype: str) -> dict[str, Any]:
    """What every figure of a page has in common."""
    return {
        "command": f"python -m benchmarks.speed --device {device} --dtype {dtype}",
        "machine": torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()} processor",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "device": device,
        "dtype": dtype,
    }


def begun(path: Path, shared: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    """The conditions, with what an earlier process measured under them; of a whole, the parts that are finished.

    Raises:
        ValueError: if there are other parts, measured under other conditions, beside which some are measured.
    """
    if not path.exists():
        return shared
    held: dict[str, Any] = json.loads(path.read_text())
    for name, here in shared.items():
        if held.get(name) != here:
            if whole:
                return shared
            raise ValueError(f"the other parts in {path.name} have {name} {held.get(name)}, here it is {here}")
    return held | {"apart": True}


def measure_attention(device: str, dtype: torch.dtype) -> Iterator[dict[str, Any]]:
    """Self-attention at every length."""
    rows = []
    for batch, length, comparison in attention.run(device, dtype):
        goal = attention.GOALS.get(length) if device == "cpu" else None
        rows.append({"batch": batch, "length": length, "goal": goal, **asdict(comparison)})
        _say(f"attention, {length} words", comparison.ratios.get(PLAIN))
    yield {"attention": rows}
    yield {"memory": [row for name in ("ours", PLAIN, "textbook") for row in peaks(name, device, dtype)]}
    if device == "cpu":
        yield {"kept_memory": kept_memory()}


def measure_layers(device: str, dtype: torch.dtype) -> Iterator[dict[str, Any]]:
    """The other layers."""
    rows = []
    for case, comparison in layers.run(device, dtype):
        goal = case.goal if device == "cpu" else None
        row = {"layer": case.name, "rival": case.rival, "shapes": case.shapes, "goal": goal}
        ratio, seconds = asdict(comparison.ratios[case.rival]), asdict(comparison)["seconds"]
        rows.append(row | {"ratio": ratio, "seconds": seconds})
        _say(f"{case.name} against {case.rival}", comparison.ratios[case.rival])
    spent, table = dict(layers.spent(device, dtype)), asdict(layers.vocabulary_table(device))
    yield {"layers": rows, "layers_spent": spent, "vocabulary_table": table}


def measure_padded(device: str, dtype: torch.dtype) -> Iterator[dict[str, Any]]:
    """Layers that are given a mask."""
    rows = []
    for case, batch, length, phase, comparison in padded.run(device, dtype):
        rows.append({"layer": case.name, "batch": batch, "length": length, "phase": phase, **asdict(comparison)})
        _say(f"{case.name} on padded batches, {length} words, {phase}", next(iter(comparison.ratios.values())))
    yield {"padded": rows}


def measure_models(device: str, dtype: torch.dtype) -> Iterator[dict[str, Any]]:
    """Whole models, in float32."""
    rate, rows = models.product_rate(device), []
    for speed in models.run(device):
        rows.append(asdict(speed) | {"share": speed.flops / speed.training.median / rate})
        _say(f"{speed.model}, batch {speed.batch}, {speed.lengths} words", None)
    yield {"product_rate": rate, "paper_ratios": models.PAPER_RATIOS, "models": rows}


def measure_compiled(device: str, dtype: torch.dtype) -> Iterator[dict[str, Any]]:
    """Compiled training steps, in float32; one model after the other, for each is compiled for a minute."""
    rows: list[dict[str, Any]] = []
    for model, comparison in models.compiled(device):
        rows.append({"model": model, "ratio": asdict(comparison.ratios["eager"])})
        _say(f"{model} compiled", comparison.ratios["eager"])
        yield {"compiled": rows}


def measure_recorded(device: str, dtype: torch.dtype) -> Iterator[dict[str, Any]]:
    """Training steps by CUDA graphs, in float32."""
    rows: list[dict[str, Any]] = []
    for model, lengths, comparison in models.recorded(device):
        seconds, ratio = asdict(comparison)["seconds"], asdict(comparison.ratios["eager"])
        rows.append(
            {"model": model, "batch": models.BATCHES[0], "lengths": lengths, "ratio": ratio, "seconds": seconds}
        )
        _say(f"{model} recorded, {lengths} words", comparison.ratios["eager"])
    yield {"recorded": rows, "memory_of_a_record": models.memory_of_a_record(device)}


PARTS = {
    "attention": measure_attention,
    "layers": measure_layers,
    "padded": measure_padded,
    "models": measure_models,
    "compiled": measure_compiled,
    "recorded": measure_recorded,
}
"""What a page is made of; what a part yields is kept at once."""


def possible_parts(device: str, dtype: torch.dtype) -> list[str]:
    """Whole models are measured in float32 alone, and CUDA graphs where there are some."""
    if dtype != torch.float32:
        return ["attention", "layers", "padded"]
    return [part for part in PARTS if part != "recorded" or device == "cuda"]


def kept_memory() -> dict[str, Any]:
    """Seconds a word with the C library's allocator as it is, and told to keep what is freed."""
    command = [sys.executable, "-m", "benchmarks.speed", "--growth"]
    found: dict[str, Any] = {"tunables": KEEP_MEMORY}
    for how, environment in (("as_it_is", {}), ("kept", {"GLIBC_TUNABLES": KEEP_MEMORY})):
        env = {**os.environ, **environment}
        done = subprocess.run(command, cwd=HERE.parent, env=env, capture_output=True, text=True, check=True)
        found[how] = json.loads(done.stdout)
    return found


def peaks(name: str, device: str, dtype: torch.dtype) -> list[dict[str, Any]]:
    """Peak memory at every length, the whole matrix of scores up to 4,096 words; on CPU each in its own process."""
    rows = []
    for length in MEMORY_LENGTHS:
        if name in attention.WHOLE_MATRIX and length > 4096:
            break
        if name != "ours" and length > 16384:
            break
        if device == "cuda":
            needed = attention.memory(name, length, device, dtype)
        else:
            command = [sys.executable, "-m", "benchmarks.speed", "--dtype", str(dtype).removeprefix("torch.")]
            done = subprocess.run(
                [*command, "--memory", name, str(length)], cwd=HERE.parent, capture_output=True, text=True, check=True
            )
            needed = float(done.stdout)
        rows.append({"name": name, "length": length, "bytes": needed})
    return rows


def _say(what: str, ratio: Any) -> None:
    print(what if ratio is None else f"{what}: {ratio.median:.2f}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
