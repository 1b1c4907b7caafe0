"""What a trained Gaussian Transformer says with every score, and with the window its attention finds."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import torch
from torch import Tensor, nn

import nlilayers
from nli_common.data import Sentence
from nli_common.runs import Run
from study.plan import BENCHES, Job
from study.results import held, kept
from study.training import RESULTS, Places, lies_in, plan_of, reread, run_folder, settings_of, write_result
from study.tuning import tuned

MODEL = "Gaussian Transformer"
WORDS, TEXTS = 1_024, 32
"""Of the long texts: premises of the test set, one behind the other."""
Sides = tuple[Sentence, Sentence]


def window_file(bench: str) -> Path:
    """What is kept of the comparison."""
    return RESULTS / bench / "window.json"


def windows(places: Places) -> None:
    """For each bench, the model of seed 0, if it is trained and its weights are still there."""
    options = tuned(MODEL)
    for bench in BENCHES.values():
        job = Job(bench.name, MODEL, 0)
        run = Run(run_folder(job, places))
        if options is None or not lies_in(run, kept(job)) or held_window(bench.name) is not None:
            continue
        model, batches = reread(settings_of(job, places, options), run, bench, places)
        pairs = [(batch.premise, batch.hypothesis) for batch in batches]
        found = {"test pairs": compared(model, pairs), "long texts": compared(model, list(long_texts(pairs)))}
        write_result(window_file(bench.name), {"bench": bench.name, **plan_of(job, options), "texts": found})


def held_window(bench: str) -> dict[str, Any] | None:
    """What is kept of a bench."""
    return held(window_file(bench), Job(bench, MODEL, 0))


def compared(model: nn.Module, pairs: Sequence[Sides]) -> dict[str, Any]:
    """The model with all of its scores, and with the windows that its layers find."""
    (whole, _), (found, calls) = logits(model, pairs, None), logits(model, pairs, "auto")
    return {
        "pairs": len(whole),
        "windows": calls,
        "other_predictions": int((whole.argmax(-1) != found.argmax(-1)).sum()),
        "largest_difference": float((whole - found).abs().max()),
        "largest_logit": float(whole.abs().max()),
    }


@torch.inference_mode()
def logits(model: nn.Module, pairs: Sequence[Sides], window: Literal["auto"] | None) -> tuple[Tensor, int]:
    """What the model says of the pairs, and how many attentions left scores out."""
    model.eval()
    for layer in model.modules():
        if isinstance(layer, nlilayers.GaussianSelfAttention):
            layer.window = window
    functional = nlilayers.functional
    everywhere = patch.dict("nlilayers._blocks.FEWEST_SCORES_IN_BLOCKS", clear=True)
    with everywhere, patch.object(functional, "windowed_scores", wraps=functional.windowed_scores) as windowed:
        return torch.cat([model(*pair) for pair in pairs]), windowed.call_count


def long_texts(pairs: Sequence[Sides]) -> Iterator[Sides]:
    """Texts of the premises' words, each with the hypothesis that is next."""
    words = torch.cat([premise.tokens[premise.mask] for premise, _ in pairs])
    texts = words[: len(words) // WORDS * WORDS].view(-1, WORDS)[:TEXTS]
    hypotheses = (row[mask] for _, side in pairs for row, mask in zip(side.tokens, side.mask, strict=True))
    for text, hypothesis in zip(texts, hypotheses, strict=False):
        yield _alone(text), _alone(hypothesis)


def _alone(words: Tensor) -> Sentence:
    return Sentence(words[None], torch.ones_like(words[None], dtype=torch.bool))
