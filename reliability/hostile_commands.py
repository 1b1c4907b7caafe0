"""The command line, given hostile run folders and files: a result, or one line and exit code 2."""

import contextlib
import io
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

from decomposable_attention import SCRIPT
from nli_common import commands
from reliability import mutations
from reliability.fuzzing import made
from reliability.hostile_readers import readers

PREDICT = ["predict", "--premise", "the dog", "--hypothesis", "a [/b] cat"]
RUN = ("config.json", "lexicon.safetensors", "model.safetensors")


def command_line(arguments: list[str]) -> tuple[int, str]:
    """The exit code of a script's command line in this process, and what it wrote on stderr; 1 is a traceback."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    argv = mock.patch.object(sys, "argv", ["x.py", *arguments])
    handler = mock.patch.object(commands.signal, "signal")  # this process keeps its own
    with argv, handler, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            commands.main(SCRIPT)
        except SystemExit as error:
            code = 0 if error.code is None else error.code
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=err)
            code = 1
    return code, err.getvalue()


def ended_well(code: int, text: str) -> bool:
    """Whether this is the end of a command that gave a result, or that said in one line what is wrong."""
    return code == 0 or (code == 2 and text.startswith("error: ") and text.count("\n") == 1)


def command_lines(inputs: int, seed: int = 0) -> dict[str, Any]:
    """Predict with mutated run folders and evaluate on mutated files, by turns; the exit codes and what was wrong."""
    codes: Counter[int] = Counter()
    wrong: list[str] = []
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        attacked = readers(folder)
        others = [content for reader in attacked.values() for content in reader.valid]
        run = folder / "run"
        valid = {file: (run / file).read_bytes() for file in RUN}
        for number in range(inputs):
            for file, content in valid.items():
                (run / file).write_bytes(content)
            if number % 2:
                file = rng.choice(RUN)
                change = mutations.json_file if file == "config.json" else mutations.in_safetensors
                hostile = change if rng.random() < 0.6 else lambda rng, content: mutations.mutated(rng, content, others)
                (run / file).write_bytes(hostile(rng, valid[file]))
                arguments = [*PREDICT, "--run", str(run)]
            else:
                reader = attacked[rng.choice(("pairs, .jsonl", "pairs, .tsv"))]
                file = reader.name
                (folder / file).write_bytes(made(reader, rng, others))
                files = ["--cache", str(folder / "caches"), "--test", str(folder / file)]
                arguments = ["evaluate", "--run", str(run), *files]
            code, text = command_line(arguments)
            codes[code] += 1
            wrong += [] if ended_well(code, text) else [f"{file}: {code} {text[:300]}"]
    return {"inputs": inputs, "codes": {str(code): count for code, count in sorted(codes.items())}, "failures": wrong}


def evaluate_named(folder: Path, phenomenon: str) -> None:
    """Evaluate the run in a folder on a pair of a phenomenon with this name."""
    row = {"gold_label": "neutral", "sentence1": "the dog", "sentence2": "a", "phenomenon": phenomenon}
    (folder / "..x.jsonl").write_text(json.dumps(row))
    files = ["--run", str(folder / "run"), "--cache", str(folder / "cache"), "--test", str(folder / "..x.jsonl")]
    code, text = command_line(["evaluate", *files])
    assert code == 0, text
