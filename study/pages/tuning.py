"""What was tried for each family."""

from collections.abc import Sequence
from typing import Any

from study.markdown import table
from study.plan import DROPOUTS, RATES, TUNING_BENCH, TUNING_DROPOUT, TUNING_EPOCHS, VARIANTS
from study.results import Results
from study.tuning import held_tuning


def page(results: Results) -> str:
    """Each family's five short runs, and what they are worth."""
    families = dict.fromkeys(variant.family for variant in VARIANTS.values())
    found = [held for held in map(held_tuning, families) if held is not None]
    lines = []
    for held in found:
        tried = [(one["options"]["lr"], one["options"]["dropout"], 100 * one["dev"]) for one in held["tried"]]
        said = "; ".join(f"{lr:g}, {dropout}: {dev:.1f}" for lr, dropout, dev in tried)
        lines.append([held["family"], said, f"{held['chosen']['lr']:g}, {held['chosen']['dropout']}"])
    return "\n\n".join(
        (
            "# Tuning",
            f"The best dev accuracy on {TUNING_BENCH} within {TUNING_EPOCHS} epochs, seed 0, for each learning rate "
            f"and dropout: three rates at dropout {TUNING_DROPOUT}, then two more dropouts at the best rate. The "
            "choice is used on every bench. With 1,000 dev pairs and one seed, differences of a point or so are noise, "
            "and ten epochs favour what learns fast: Decomposable Attention is still improving then."
            f"{edges(found)}{again(found, results)}",
            table(["family", "rate, dropout: dev accuracy", "chosen"], lines) + "\n",
        )
    )


def edges(found: Sequence[dict[str, Any]]) -> str:
    """How many families chose what nothing was tried beyond."""
    rates = [held["chosen"]["lr"] for held in found]
    lowest = sum(held["chosen"]["dropout"] == min(DROPOUTS) for held in found)
    return (
        f" The grid is small: of {len(found)} families, {rates.count(max(RATES))} chose the highest rate, "
        f"{rates.count(min(RATES))} the lowest, and {lowest} the lowest dropout; nothing beyond these was tried."
    )


def again(found: Sequence[dict[str, Any]], results: Results) -> str:
    """How far the same short run is from its like."""
    points = []
    for held in found:
        first = [r for r in results.get((TUNING_BENCH, held["family"]), []) if r["seed"] == 0]
        chosen = next(one["dev"] for one in held["tried"] if one["options"] == held["chosen"])
        points += [100 * (max(r["dev"][:TUNING_EPOCHS]) - chosen) for r in first]
    if not points:
        return ""
    return (
        " The runs of the other pages repeat the chosen options with the same seed, but with a lexicon that also holds "
        "the test words, which slightly changes the scale of the random vectors. Within as many epochs, their dev "
        f"accuracy differed from the one here by {min(points):+.1f} to {max(points):+.1f} points."
    )
