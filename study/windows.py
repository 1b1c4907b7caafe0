"""What a trained Gaussian Transformer says with every score, and with the window its attention finds."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

import nlilayers
from nli_common.batches import PairDataset, loader
from nli_common.data import Sentence, open_corpus
from nli_common.lexicon import Lexicon
from nli_common.runs import Run
from nli_common.train_runs import restore
from study.plan import BENCHES, Job
from study.training import RESULTS, Places, result_file, run_folder, settings_of, write_result
from study.tuning import tuned

MODEL = "Gaussian Transformer"
BATCH = 64
WORDS, TEXTS = 1_024, 32
"""Of the long texts: premises of the test set, one behind the other."""
Sides = tuple[Sentence, Sentence]


def window_file(bench: str) -> Path:
    """What is kept of the comparison."""
    return RESULTS / bench / "window.json"


def windows(places: Places) -> None:
    """For each bench, the model of seed 0, if it is trained and its weights are still there."""
    for bench in BENCHES.values():
        job = Job(bench.name, MODEL, 0)
        run, target = Run(run_folder(job, places)), window_file(bench.name)
        if target.exists() or not result_file(job).exists() or not run.weights.exists():
            continue
        lexicon = Lexicon.load(run.lexicon)
        model = restore(settings_of(job, places, tuned(MODEL)).script, run, lexicon)
        corpus = open_corpus(places.pairs(bench.test), places.cache)
        dataset = PairDataset(corpus, lexicon, run.read_config()["labels"], corpus.phenomena)
        pairs = [(batch.premise, batch.hypothesis) for batch in loader(dataset, BATCH, None)]
        found = {"test pairs": compared(model, pairs), "long texts": compared(model, list(long_texts(pairs)))}
        write_result(target, {"bench": bench.name, "texts": found})


def held_windows() -> Iterator[dict[str, Any]]:
    """What is kept, bench by bench."""
    for bench in BENCHES:
        if window_file(bench).exists():
            yield json.loads(window_file(bench).read_text())


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
def logits(model: nn.Module, pairs: Sequence[Sides], window: str | None) -> tuple[Tensor, int]:
    """What the model says of the pairs, and how many attentions left scores out."""
    model.eval()
    for layer in model.modules():
        if isinstance(layer, nlilayers.GaussianSelfAttention):
            layer.window = window
    functional = nlilayers.functional
    with patch.object(functional, "windowed_scores", wraps=functional.windowed_scores) as windowed:
        return torch.cat([model(*pair) for pair in pairs]), windowed.call_count


def long_texts(pairs: Sequence[Sides]) -> Iterator[Sides]:
    """Texts of the premises' words, each with the hypothesis that is next."""
    words = torch.cat([premise.tokens[premise.mask] for premise, _ in pairs])
    texts = words[: len(words) // WORDS * WORDS].view(-1, WORDS)[:TEXTS]
    hypotheses = (row[mask] for _, side in pairs for row, mask in zip(side.tokens, side.mask, strict=True))
    for text, hypothesis in zip(texts, hypotheses, strict=False):
        yield _alone(text), _alone(hypothesis)


def _alone(words: Tensor) -> Sentence:
    return Sentence(words[None], torch.ones(1, len(words), dtype=torch.bool))
