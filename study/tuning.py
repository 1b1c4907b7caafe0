"""The learning rate and the dropout of each family, chosen on dev by the same few short runs."""

import json
from pathlib import Path
from typing import Any

from study.plan import DROPOUTS, RATES, TUNING_BENCH, TUNING_DROPOUT, TUNING_EPOCHS, Job
from study.training import RESULTS, Places, slug, train, write_result


def tuned_file(family: str) -> Path:
    """What was tried, and what was chosen."""
    return RESULTS / "tuning" / f"{slug(family)}.json"


def tuned(family: str) -> dict[str, Any]:
    """The chosen options."""
    chosen: dict[str, Any] = json.loads(tuned_file(family).read_text())["chosen"]
    return chosen


def tune(family: str, places: Places) -> None:
    """Choose the rate at one dropout, then the dropout at that rate; the earlier of two equals."""
    if tuned_file(family).exists():
        return
    tried: list[dict[str, Any]] = [_try(family, places, {"lr": lr, "dropout": TUNING_DROPOUT}) for lr in RATES]
    lr = max(tried, key=lambda one: one["dev"])["options"]["lr"]
    tried += [_try(family, places, {"lr": lr, "dropout": dropout}) for dropout in DROPOUTS]
    best = max(tried, key=lambda one: one["dev"])
    write_result(
        tuned_file(family), {"family": family, "bench": TUNING_BENCH, "tried": tried, "chosen": best["options"]}
    )


def _try(family: str, places: Places, options: dict[str, Any]) -> dict[str, Any]:
    name = "-".join(f"{option}={value}" for option, value in options.items())
    folder = places.runs / "tuning" / f"{slug(family)}-{name}"
    _, _, metrics = train(Job(TUNING_BENCH, family, 0), places, {**options, "epochs": TUNING_EPOCHS}, folder)
    facts = {name: metrics[name] for name in ("best_epoch", "seconds")}
    return {"options": options, "dev": metrics["dev"]["accuracy"], **facts}
