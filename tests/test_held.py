"""How much memory a benchmark says that it took."""

import subprocess
import sys
from pathlib import Path

SAYS = """
from benchmarks.memory import held_at_most
print(held_at_most())
x = bytearray(b"x") * (1 << 27)
del x
print(held_at_most())
"""


def test_what_a_program_has_held_is_its_own_peak_and_not_its_parents() -> None:
    ours = bytearray(b"x") * (1 << 28)
    command = [sys.executable, "-c", SAYS]
    said = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True).stdout
    before, after = map(float, said.split())
    assert before < len(ours) and (1 << 26) < after - before < (1 << 28)
