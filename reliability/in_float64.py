"""The Decomposable Attention's script, with all of its numbers in float64.

Adagrad and Adam divide a gradient by its size: one that would be 0 but for rounding takes a step as long as any other,
in a direction that is chance. So in float32, two runs that add the same numbers in another order can end far apart.
"""

import runpy
import sys
from pathlib import Path

import torch

EXAMPLES = Path(__file__).parent.parent / "examples"

if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    sys.path.insert(0, str(EXAMPLES))
    runpy.run_path(str(EXAMPLES / "decomposable_attention.py"), run_name="__main__")
