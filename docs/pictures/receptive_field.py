"""What a word has seen after three gated blocks."""

import matplotlib.pyplot as plt

LAYERS, WORDS, MIDDLE = 3, 11, 5
figure, axes = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
for layer in range(LAYERS + 1):
    for word in range(WORDS):
        seen = abs(word - MIDDLE) <= LAYERS - layer
        if layer and seen:
            for below in (word - 1, word, word + 1):
                axes.plot(
                    (below, word),
                    (layer - 1, layer),
                    color="#3b7dc4",
                    linewidth=0.8,
                    zorder=1,
                )
        axes.scatter(
            word, layer, s=90, color="#3b7dc4" if seen else "#d9d9d9", zorder=2
        )
axes.set_yticks(
    range(LAYERS + 1),
    ["words", *(f"block {layer}" for layer in range(1, LAYERS + 1))],
)
axes.set_xticks([])
axes.tick_params(length=0)
axes.spines[:].set_visible(False)
