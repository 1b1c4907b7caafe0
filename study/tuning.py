"""The learning rate and the dropout of each family, chosen on dev by the same few short runs."""

import dataclasses
from pathlib import Path
from typing import Any

from nli_common.files import read_json
from study.plan import DROPOUTS, PROTOCOL, RATES, TUNING_BENCH, TUNING_DROPOUT, TUNING_EPOCHS, Job
from study.training import RESULTS, Places, plan_of, settings_of, slug, train, write_result


def tuned_file(family: str) -> Path:
    """What was tried, and what was chosen."""
    return RESULTS / "tuning" / f"{slug(family)}.json"


def protocol() -> dict[str, Any]:
    """How the short runs are trained, but for what is tuned."""
    return {**PROTOCOL, "epochs": TUNING_EPOCHS}


def plan(family: str) -> dict[str, Any]:
    """All that decides the short runs' figures but for what is tuned: the model is that before anything is chosen."""
    model = plan_of(Job(TUNING_BENCH, family, 0), {})["model"]
    return {"bench": TUNING_BENCH, "protocol": protocol(), "model": model}


def grid(lr: float) -> list[dict[str, float]]:
    """All that is tried of a family whose best rate is this."""
    rates = [{"lr": one, "dropout": TUNING_DROPOUT} for one in RATES]
    return rates + [{"lr": lr, "dropout": dropout} for dropout in DROPOUTS]


def held_tuning(family: str) -> dict[str, Any] | None:
    """What is kept of a family's short runs, or ``None``: another plan's choice is not this one's."""
    path = tuned_file(family)
    if not path.exists():
        return None
    held = read_json(path)
    options = [one["options"] for one in held["tried"]]
    planned = plan(family)
    same = planned == {name: held.get(name) for name in planned} and options == grid(options[-1]["lr"])
    return held if same else None


def tuned(family: str) -> dict[str, Any] | None:
    """The chosen options, or ``None`` before there are any."""
    held = held_tuning(family)
    return held and held["chosen"]


def tune(family: str, places: Places) -> None:
    """Choose the rate at one dropout, then the dropout at that rate; the earlier of two equals."""
    tried = [_try(family, places, options) for options in grid(0)[: len(RATES)]]
    lr = max(tried, key=_dev)["options"]["lr"]
    tried += [_try(family, places, options) for options in grid(lr)[len(RATES) :]]
    chosen = max(tried, key=_dev)["options"]
    write_result(tuned_file(family), {"family": family, **plan(family), "tried": tried, "chosen": chosen})


def _dev(one: dict[str, Any]) -> float:
    dev: float = one["dev"]
    return dev


def _try(family: str, places: Places, options: dict[str, float]) -> dict[str, Any]:
    """A short run, which is given no test file."""
    name = "-".join(f"{option}={value}" for option, value in options.items())
    folder = places.runs / "tuning" / f"{slug(family)}-{name}"
    job = Job(TUNING_BENCH, family, 0)
    settings = settings_of(job, places, {**options, "epochs": TUNING_EPOCHS})
    untested = settings._replace(data=dataclasses.replace(settings.data, test=None))
    _, metrics = train(untested, job.seed, folder)
    facts = {name: metrics[name] for name in ("best_epoch", "seconds")}
    return {"options": options, "dev": metrics["dev"]["accuracy"], **facts}
