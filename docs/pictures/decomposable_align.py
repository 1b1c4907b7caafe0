"""Two sentences whose words are sums of a few meanings, aligned in both directions."""

import matplotlib.pyplot as plt
import torch
from pictures.words import draw

from nlilayers import DecomposableAlign

MEANINGS = {
    "a": ("article",),
    "the": ("article",),
    "some": ("article",),
    "dog": ("dog", "animal"),
    "animal": ("animal",),
    "chases": ("pursue", "move"),
    "runs": ("move",),
    "after": ("pursue",),
    "ball": ("ball", "toy"),
    "toy": ("toy",),
    "red": ("colour",),
    "coloured": ("colour",),
}
names = sorted({name for meaning in MEANINGS.values() for name in meaning})
premise = ["the", "dog", "chases", "a", "red", "ball"]
hypothesis = ["some", "animal", "runs", "after", "a", "coloured", "toy"]


def vectors(sentence: list[str]) -> torch.Tensor:
    """One feature for each meaning."""
    return torch.tensor(
        [[[2.0 * (name in MEANINGS[word]) for name in names] for word in sentence]]
    )


beta, alpha = DecomposableAlign().alignment_weights(
    vectors(premise), vectors(hypothesis)
)
figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.3), layout="compressed")
draw(axes[0], beta[0], premise, hypothesis, "β: rows, of the premise, sum to 1")
image = draw(
    axes[1], alpha[0], hypothesis, premise, "α: rows, of the hypothesis, sum to 1"
)
figure.colorbar(image, ax=axes, shrink=0.7, label="weight")
