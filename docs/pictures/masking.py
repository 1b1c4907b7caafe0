"""Scores of a padded batch, its mask, and the weights: padding gets none, an empty sentence neither."""

import matplotlib.pyplot as plt
import torch

from nlilayers import masking

torch.manual_seed(0)
scores = torch.randn(4, 8)
mask = masking.lengths_to_mask(torch.tensor([8, 5, 2, 0]))
weights = masking.masked_softmax(scores, mask)
figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(7.2, 1.8), layout="constrained"
)
left.imshow(scores, cmap="RdBu_r", vmin=-2.5, vmax=2.5)
middle.imshow(mask, cmap="Greys", vmin=0, vmax=1.4)
right.imshow(weights, cmap="Blues", vmin=0, vmax=0.7)
for panel, title in (
    (left, "scores"),
    (middle, "mask: True marks a real token"),
    (right, "masked softmax"),
):
    panel.set_title(title, fontsize=9)
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_color("0.8")
left.set_ylabel("sentences")
for row, sentence in enumerate(weights.tolist()):
    for column, weight in enumerate(sentence):
        text = f"{weight:.2f}".lstrip("0") if weight else "0"
        colour = "white" if weight > 0.4 else "#333333"
        right.text(
            column, row, text, ha="center", va="center", fontsize=6.5, color=colour
        )
