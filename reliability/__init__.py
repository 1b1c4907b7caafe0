"""Attacks on what the library promises, at full size, and the pages of what they found."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
