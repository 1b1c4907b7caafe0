"""Guo et al.'s example: two words "new", one of them beside the book."""

import matplotlib.pyplot as plt
import torch
from torch import nn

from nlilayers import GaussianPrior, GaussianSelfAttention

sentence = [
    "I",
    "bought",
    "a",
    "new",
    "book",
    "yesterday",
    "with",
    "a",
    "new",
    "friend",
    "in",
    "New",
    "York",
]
torch.manual_seed(4)
embedding = {
    word: 0.7 * torch.randn(32)
    for word in sorted({word.lower() for word in sentence})
}
words = torch.stack([embedding[word.lower()] for word in sentence])[None]
attention = GaussianSelfAttention(32, 1, prior=GaussianPrior(w=0.1, b=-0.1))


class NoPrior(nn.Module):
    """No distance is preferred."""

    def forward(self, query_length: int, key_length: int) -> torch.Tensor:
        """The same bias for every pair."""
        return torch.zeros(query_length, key_length)


book = sentence.index("book")
weights = {}
for name, prior in (
    ("without a prior", NoPrior()),
    ("with a Gaussian prior", attention.prior),
):
    attention.prior = prior
    weights[name] = attention.attention_weights(words)[0, 0, book].detach()
figure, axes = plt.subplots(
    2, 1, figsize=(7, 3.4), sharex=True, sharey=True, layout="constrained"
)
for panel, (name, values), colour in zip(
    axes, weights.items(), ("#9a9a9a", "#3b7dc4"), strict=True
):
    panel.bar(range(len(sentence)), values, color=colour)
    panel.set_title(name, fontsize=9, loc="left")
    panel.axvline(book, color="#333333", linewidth=0.6, linestyle=":")
axes[1].set_xticks(range(len(sentence)), sentence, rotation=30)
figure.supylabel("attention of “book”", fontsize=9)
