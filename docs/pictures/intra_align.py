"""A word that stands twice in a sentence, aligned with itself by meaning alone, and by meaning and distance."""

import matplotlib.pyplot as plt
import torch
from pictures.words import draw

from nlilayers import DistancePrior, IntraAlign

sentence = ["the", "dog", "sees", "the", "cat"]
names = sorted(set(sentence))
words = torch.tensor(
    [[[1.3 * (name == word) for name in names] for word in sentence]]
)

prior = DistancePrior(max_distance=2)
with torch.no_grad():
    prior.bias.copy_(torch.tensor([-3.0, -2.0, 0.0, 2.5, 0.0, -3.0]))
figure, axes = plt.subplots(1, 2, figsize=(6.2, 3.5), layout="compressed")
for panel, layer, title in zip(
    axes,
    (IntraAlign(), IntraAlign(prior=prior)),
    ("no prior: no order", "a prior for the word before"),
    strict=True,
):
    weights = layer.alignment_weights(words)[0]
    image = draw(panel, weights, sentence, sentence, title)
figure.colorbar(image, ax=axes, shrink=0.7, label="weight; each row sums to 1")
