"""A word, its n-grams, their rows in the table, and the largest of each feature."""

import matplotlib.pyplot as plt
import torch

from nlilayers import CharNgramEmbedding

FEATURES = 12
embedding = CharNgramEmbedding(FEATURES)
words = ("sentence", "sentense")
figure, axes = plt.subplots(1, 2, figsize=(7, 2.9), layout="constrained")
for panel, word in zip(axes, words, strict=True):
    spelled = f"<{word}>"
    ngrams = [spelled[i : i + 5] for i in range(len(spelled) - 4)]
    rows = embedding.weight[embedding.encode([word])[0]]
    drawn = panel.imshow(
        torch.cat([rows, embedding.table([word])]), cmap="RdBu_r", vmin=-3, vmax=3
    )
    panel.axhline(len(ngrams) - 0.5, color="white", linewidth=4)
    panel.set_yticks(range(len(ngrams) + 1), [*ngrams, word], family="monospace")
    panel.get_yticklabels()[-1].set_weight("bold")
    panel.set(xticks=[], xlabel="features")
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
figure.colorbar(drawn, ax=axes, shrink=0.8)
