"""Every layer and reference model compiled, exported, in ONNX and on the meta device, beside itself as it is.

    python -m reliability.portable

Writes ``reliability/portable.json``. All run in float32 and in evaluation, so that dropout is no difference.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import onnxruntime
import torch

from nli_common.files import write_text
from reliability import compiled, exported, limits, meta
from reliability.subjects import LARGE, ONES, SMALL, Shape, Subject, subjects

RESULT = Path(__file__).with_suffix(".json")


def main() -> None:
    """Take every figure at full size, or those of the rows that are named and of the limits, and write them.

    Until all are there, they are kept in a file beside the last ones, and a run that was ended goes on from it.
    """
    everything = subjects(full=True)
    parser = argparse.ArgumentParser(description="Compiled, exported, in ONNX and on the meta device.")
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(everything)}; all if none is named")
    named = parser.parse_args().rows
    torch.set_num_threads(1)
    conditions = {
        "torch": torch.__version__,
        "onnxruntime": onnxruntime.__version__,
        "backend": "inductor",
        "shapes": LARGE,
        "ones": ONES,
    }
    path = RESULT if named else RESULT.with_suffix(".partial.json")
    before = json.loads(path.read_text()) if named or path.exists() else {}
    others = [name for name, here in json.loads(json.dumps(conditions)).items() if before and before[name] != here]
    for name in others if named else ():
        parser.error(
            f"the other rows were measured with {name}={before[name]}, now it is {conditions[name]}: name no rows"
        )
    kept = {name: row for name, row in before.get("rows", {}).items() if name in everything and not others}
    held: dict[str, Any] = {"command": "python -m reliability.portable", **conditions}
    held |= {"limits": limits.measured(), "rows": kept}
    started = time.perf_counter()
    for name in named or [name for name in everything if name not in kept]:
        kept[name] = measured(everything[name], LARGE, "inductor")
        print(f"{time.perf_counter() - started:5.0f} s  {name}: {kept[name]}", flush=True)
        held["rows"] = {name: kept[name] for name in everything if name in kept}
        write_text(path, json.dumps(held, indent=1) + "\n")
    if not named:
        path.replace(RESULT)
    print(page(held))


def measured(subject: Subject, shapes: tuple[Shape, ...], backend: str) -> dict[str, Any]:
    """One row of the table: graphs and deviations over the shapes, and what the meta device left to others."""
    seen, unseen = shapes[0], (*shapes[1:], *ONES)
    graphs, step = compiled.step(subject, shapes, backend)
    return {
        "graphs": graphs,
        "step": step,
        "export": exported.exported(subject, seen, unseen),
        "onnx": exported.onnx(subject, seen, unseen),
        "meta": meta.elsewhere(subject, SMALL[1]),
    }


def page(held: dict[str, Any]) -> str:
    """The figures as sections of Markdown."""
    rows, found = held["rows"], held["limits"]
    first, *others = (" × ".join(map(str, shape)) for shape in held["shapes"])
    ones = ", ".join(" × ".join(map(str, shape)) for shape in held["ones"])
    elsewhere = {name: row["meta"] for name, row in rows.items() if row["meta"]}
    crossed = [name for name, row in rows.items() if row["step"] > compiled.UNDECIDED]
    missed = (
        f" (Not all are found: compiled code has one on its other side in {', '.join(crossed)}.)" if crossed else ""
    )
    parts = [
        "## Compiled, exported, in ONNX",
        "Largest difference from eager in float32, as a share of the tensor's largest number where that is above 1: "
        "layers as wide as in the papers, models with their papers' configurations and 2,000 words. "
        f"torch {held['torch']}, onnxruntime {held['onnxruntime']}, `{held['command']}`.",
        f'Compiled is `torch.compile(fullgraph=True, dynamic=True)` with "{held["backend"]}", one after the other for '
        f"ten batches (pairs × words of the premise × words of the hypothesis): {first}, {', '.join(others)}. In the "
        "last four, sizes coincide that differ in the others. The outputs are compared, and the gradients of their "
        "mean square with respect to every parameter and input; a batch in which a rectified unit lies so near 0 that "
        f"float32 and float64 differ about it is drawn anew.{missed} Exported and ONNX programs (`torch.export`, "
        "saved and loaded; `torch.onnx.export(dynamo=True)` in onnxruntime) were made from the first batch alone "
        f"and read the nine others and {ones}.",
        _table(rows),
        "### The meta device",
        "There, outputs and gradients have the shapes and dtypes that they have on the CPU, and no operator of the "
        "layers and models above makes a tensor elsewhere."
        if not elsewhere
        else f"Operators that make a tensor elsewhere: {elsewhere}.",
        "### Limits of torch, and workarounds",
        limits.said(found),
    ]
    return "\n\n".join(parts) + "\n"


def _table(rows: dict[str, dict[str, Any]]) -> str:
    lines = [["", "graphs", "compiled", "exported", "ONNX"]]
    for name, row in rows.items():
        lines.append([name, str(row["graphs"]), *(_size(row[key]) for key in ("step", "export", "onnx"))])
    head, *body = lines
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *body))


def _size(difference: float) -> str:
    return "0" if difference == 0 else f"{difference:.0e}"


if __name__ == "__main__":
    main()
