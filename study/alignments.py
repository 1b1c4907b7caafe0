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
