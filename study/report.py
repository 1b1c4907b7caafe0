"""The study's pages and pictures, from what is kept of its runs."""

from pathlib import Path

from nli_common.files import write_text
from study.pages import alignments, claims, classes, models, priors, transfer, tuning
from study.plots import plot_alignments, plot_curves, plot_models
from study.results import held_results

PAGES = Path(__file__).parent.parent / "docs" / "study"


def write(folder: Path = PAGES) -> None:
    """Every page and picture."""
    folder.mkdir(parents=True, exist_ok=True)
    found = held_results()
    for bench in dict.fromkeys(bench for bench, _ in found):
        plot_curves(bench, found, folder / f"curves-{bench}.png")
    plot_models(found, folder / "models.png")
    plot_alignments(found, folder / "alignments.png")
    for page in (models, classes, claims, transfer, alignments, priors, tuning):
        name = page.__name__.rpartition(".")[2]
        write_text(folder / f"{name}.md", page.page(found))
