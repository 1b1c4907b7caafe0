"""The study: every model on real pairs, against its paper and against public implementations.

    python -m study --data DATA               # two cores: days; what is done is kept, the same command goes on
    python -m study --data DATA --budget gpu

``DATA/bench`` holds the pairs, ``DATA/corpora`` what the trained models are tested on besides, ``DATA`` the word
vectors. Each finished run is a small file in ``study/results``; the pages in ``docs/study`` are written from them.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
