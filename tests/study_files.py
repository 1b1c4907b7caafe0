"""What the study keeps and reads, written for its tests."""

import gzip
import json
from pathlib import Path
from typing import Any

from study.training import slug
from study.tuning import grid, plan

from nli_common.generated import generated_pairs


def hold(folder: Path, name: str, **facts: Any) -> None:
    path = folder / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(facts))


def hold_tuning(folder: Path, family: str, **changed: Any) -> dict[str, Any]:
    tried = [{"options": options, "dev": 0.5} for options in grid(5e-4)]
    facts = {
        "family": family,
        **plan(family),
        "tried": tried,
        "chosen": tried[-1]["options"],
    }
    hold(folder, f"tuning/{slug(family)}", **(facts | changed))
    return tried[-1]["options"]


def write_pairs(path: Path, count: int, split: str, *, cut: bool) -> None:
    """As the data folder has them: a bench's file, which is cut into tokens, or one that is not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("gold_label\tsentence1\tsentence2" + "\tsentence1_raw\tsentence2_raw" * cut + "\n")
        for pair in generated_pairs(count, split):
            sides = [" ".join(pair.premise), " ".join(pair.hypothesis)]
            file.write("\t".join([pair.label, *sides, *(sides if cut else ())]) + "\n")
        if not cut:
            file.write("undef\tno answer\t\n")
