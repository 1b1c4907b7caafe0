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
draw(
    axes[0],
    IntraAlign().alignment_weights(words)[0],
    sentence,
    sentence,
    "no prior: no order",
    "Greys",
)
draw(
    axes[1],
    IntraAlign(prior=prior).alignment_weights(words)[0],
    sentence,
    sentence,
    "a prior for the word before",
    "Blues",
)
