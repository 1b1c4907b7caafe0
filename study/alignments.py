"""How far a model's attention finds the words that both sentences have."""

from collections.abc import Iterable

import torch
from torch import nn

from nli_common.data import Batch
from nli_common.script import Aligns


@torch.inference_mode()
def same_words(model: nn.Module, batches: Iterable[Batch]) -> dict[str, float] | None:
    """The mean over all words of hypotheses that their premises have, too, or ``None`` if the model aligns no words.

    ``found`` is the weight on the same word of the premise; ``even`` is what it would be if every word had the same.
    """
    if not isinstance(model, Aligns):
        return None
    assert isinstance(model, nn.Module)
    model.eval()
    found, even, leading = [], [], len(model.leading_tokens)
    for batch in batches:
        premise, hypothesis = batch.premise, batch.hypothesis
        _, alpha = model.alignment(premise, hypothesis)
        weights = alpha[:, leading:, leading:]
        same = (hypothesis.tokens[:, :, None] == premise.tokens[:, None, :]) & premise.mask[:, None, :]
        shared = same.any(dim=-1) & hypothesis.mask
        found.append((weights * same).sum(dim=-1)[shared])
        even.append((same.sum(dim=-1) / premise.mask.sum(dim=-1, keepdim=True))[shared])
    return {"found": float(torch.cat(found).mean()), "even": float(torch.cat(even).mean())}


@torch.inference_mode()
def score_spread(model: nn.Module, batches: Iterable[Batch]) -> float | None:
    """The standard deviation of a hypothesis word's scores over the premise's words, the mean over all such words.

    A score is the logarithm of a weight, but for a number that all of a word's scores have in common; of several heads
    it is that of their mean weight. A weight too small for its type counts as the smallest of it. ``None`` if the model
    aligns no words.
    """
    if not isinstance(model, Aligns):
        return None
    assert isinstance(model, nn.Module)
    model.eval()
    spreads, leading = [], len(model.leading_tokens)
    for premise, hypothesis, *_ in batches:
        _, alpha = model.alignment(premise, hypothesis)
        weights = alpha[:, leading:, leading:]
        scores = weights.clamp_min(torch.finfo(weights.dtype).tiny).log()
        real = premise.mask[:, None, :]
        count = real.sum(dim=-1, keepdim=True)
        centred = (scores - (scores * real).sum(dim=-1, keepdim=True) / count) * real
        deviations = (centred.square().sum(dim=-1, keepdim=True) / count).sqrt().squeeze(-1)
        spreads.append(deviations[hypothesis.mask])
    return float(torch.cat(spreads).mean())
