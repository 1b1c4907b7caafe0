"""The wheel, installed where nothing else is: several Pythons, and the oldest torch that the metadata allow.

``python -m reliability.installing`` makes an environment for each pair of an interpreter and a torch, installs the
wheel alone, and there runs the README's example, the layers forwards and backwards, and ``pip check``.
"""

import argparse
import email.message
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nli_common.files import write_text

ROOT = Path(__file__).parent.parent
WRITTEN = ROOT / "reliability" / "installing.json"
CONSTRAINTS = "constraints.txt"

EVERY_LAYER = """
import torch, nlilayers
from nlilayers import functional, masking
x, y, mask = torch.randn(2, 7, 12), torch.randn(2, 5, 12), masking.lengths_to_mask(torch.tensor([7, 3]))
x.requires_grad_()
outputs = [
    nlilayers.GaussianSelfAttention(12, 3)(x, mask),
    nlilayers.GaussianSelfAttention(12, 3, window=4)(torch.randn(1, 400, 12, requires_grad=True)),
    nlilayers.GaussianSelfAttention(12, 3)(torch.randn(1, 900, 12, requires_grad=True)),
    *nlilayers.DecomposableAlign()(x, y, mask),
    nlilayers.IntraAlign(prior=nlilayers.DistancePrior(3))(x, mask),
    nlilayers.GatedConvEncoder(12, 9, 2)(x, mask),
    nlilayers.FactorizationMachine(12, 4)(x),
    nlilayers.AlignmentFactorization(12, 4)(x, 2 * x),
    nlilayers.CharNgramEmbedding(6).table(["a", "word"]),
    nlilayers.SinusoidalPositionalEncoding(12)(x),
    nlilayers.Highway(12, num_layers=2)(x),
    masking.masked_softmax(x, mask[..., None], dim=1),
]
sum(output.sum() for output in outputs).backward()
assert all(torch.isfinite(output).all() for output in outputs) and torch.isfinite(x.grad).all()
print(torch.__version__, nlilayers.__version__, len(outputs))
"""
"""What is run in each environment, beside the README's example."""


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution, built from this checkout."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def names(archive: Path) -> set[str]:
    """The files that an archive holds; a source distribution's without its top folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name for name in wheel.namelist() if not name.endswith("/")}
    with tarfile.open(archive) as sdist:
        return {member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()}


def metadata(wheel: Path) -> email.message.Message:
    """What the wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def readme_code(wheel: Path) -> str:
    """The Python of the README, as the wheel carries it."""
    text = metadata(wheel).get_payload(decode=True).decode()
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))


def install(wheel: Path, python: str, packages: Sequence[str], folder: Path) -> dict[str, Any]:
    """A new environment with the wheel and nothing else that is ours; what came of it."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True, capture_output=True)
    there = str(folder / "bin" / "python")
    version = _said([there, "-c", "import platform; print(platform.python_version())"], folder)
    result: dict[str, Any] = {"python": version["said"]}
    pip = [there, "-m", "pip", "--disable-pip-version-check"]
    steps = {
        "install": [*pip, "install", "--quiet", *packages, str(wheel)],
        "pip check": [*pip, "check"],
        "README": [there, "-c", readme_code(wheel)],
        "every layer": [there, "-c", EVERY_LAYER],
    }
    for step, command in steps.items():
        done = _said(command, folder)
        result[step] = done["passed"]
        if not done["passed"]:
            return result | {"failed with": done["problem"]}
        if step == "every layer":
            result["torch"] = done["said"].split()[0]
    return result


def _said(command: Sequence[str], folder: Path) -> dict[str, Any]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    lines = done.stderr.strip().splitlines()
    return {"passed": done.returncode == 0, "said": done.stdout.strip(), "problem": lines[-1] if lines else ""}


def main() -> None:
    """Install everywhere and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--with", dest="pairs", nargs=2, action="append", metavar=("PYTHON", "REQUIREMENT"))
    options = parser.parse_args()
    pairs = options.pairs or [(sys.executable, CONSTRAINTS)]
    held: dict[str, Any] = {"command": "python -m reliability.installing --with PYTHON REQUIREMENT …", "rows": []}
    with tempfile.TemporaryDirectory() as made:
        wheel, sdist = build(Path(made) / "dist")
        held |= {"wheel": sorted(names(wheel)), "sdist files": len(names(sdist))}
        for python, requirement in pairs:
            packages = ["-c", str(ROOT / CONSTRAINTS)] if requirement == CONSTRAINTS else [requirement]
            environment = Path(made) / "environment"
            row = install(wheel, python, packages, environment) | {"asked": requirement}
            held["rows"].append(row)
            print(row, file=sys.stderr, flush=True)
            shutil.rmtree(environment)
    write_text(WRITTEN, json.dumps(held, indent=1) + "\n")


def page(held: dict[str, Any]) -> str:
    """The environments, a row each."""
    steps = ("install", "pip check", "README", "every layer")
    lines = [
        "## Installed from the wheel",
        "",
        f"The wheel ({len(held['wheel'])} files) alone in an environment of its own: the README's example, every layer "
        "forwards and backwards, and `pip check`.",
        "",
        f"| Python | torch | asked for | {' | '.join(steps)} |",
        "|---|---|---|" + ":---:|" * len(steps),
    ]
    for row in held["rows"]:
        marks = ["passed" if row.get(step) else row.get("failed with", "not reached") for step in steps]
        lines.append(f"| {row['python']} | {row.get('torch', '–')} | `{row['asked']}` | {' | '.join(marks)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
