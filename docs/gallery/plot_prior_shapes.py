r"""
What a Gaussian prior prefers
=============================

Self-attention does not know how far apart two words are. A distance prior tells it.
This page draws the shapes of the library's four priors, shows what one of them does
to the attention of a sentence, and lets three models learn it.

A word :math:`i` gives its neighbour :math:`j` the weight

.. math::

    A_{ij} = \frac{\exp(s_{ij} + \beta(i - j))}{\sum_k \exp(s_{ik} + \beta(i - k))}

where :math:`s_{ij}` is the score that the two words' vectors have with each other.
The prior :math:`\beta` is added to it. It depends on the distance :math:`\delta = i -
j` alone, and it multiplies the weight by :math:`e^{\beta(\delta)}`: by 1 where it is
0, by less where it is negative.
"""

import matplotlib.pyplot as plt
import torch

from nlilayers import (
    DistancePrior,
    GaussianPrior,
    GaussianSelfAttention,
    LinearPrior,
    ZipfPrior,
)
from nlilayers.functional import dot_scores, gaussian_bias, self_attention_weights

# %%
# Width and peak
# --------------
#
# :class:`~nlilayers.GaussianPrior` has two scalars, :math:`w` and :math:`b` (Guo et
# al. 2019):
#
# .. math::
#
#     \beta(\delta) &= -w \delta^2 &\qquad& \text{(Eq 3)} \\
#     \beta(\delta) &= -\left| w \delta^2 + b \right| && \text{(Eq 4)}
#
# with :math:`w > 0` and :math:`b \le 0`. Eq 3 is a bell. It is :math:`\sigma = 1 /
# \sqrt{2w}` words wide. Eq 4 turns its middle upside down: as long as :math:`w < -2b`,
# a word looks at its neighbours more than at itself.

position = torch.linspace(-7, 7, 561)
words = torch.arange(-7, 8)


def multiplier(w, b, distance):
    """What a weight is multiplied by."""
    return gaussian_bias(torch.tensor(w), torch.tensor(b), distance).exp()


figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.1), sharey=True)
for colour, (w, sigma) in enumerate([(0.02, "5"), (0.125, "2"), (0.5, "1")]):
    left.plot(
        position,
        multiplier(w, 0.0, position),
        f"C{colour}",
        label=f"w = {w:g} (σ = {sigma})",
    )
    left.plot(words, multiplier(w, 0.0, words), f"C{colour}o")
for colour, b in enumerate([-0.125, -0.5, -1.125]):
    right.plot(
        position, multiplier(0.125, b, position), f"C{colour}", label=f"b = {b:g}"
    )
    right.plot(words, multiplier(0.125, b, words), f"C{colour}o")
left.set(
    title="Eq 3: the width",
    xlabel="distance δ (words)",
    ylabel=r"multiplier $e^{\beta(\delta)}$",
    ylim=(0, 1.05),
)
right.set(title="Eq 4 with w = 0.125: the peak", xlabel="distance δ (words)")
for axes in (left, right):
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
figure.set_label(
    "Two panels of curves over the distance from -7 to 7 words. Left, Eq 3: bells "
    "around 0, narrower with larger w. Right, Eq 4: two peaks that move outward, at "
    "distances 1, 2 and 3, and a hollow between them that deepens."
)

# %%
# Left: a larger :math:`w` is a narrower bell. Right: the same width with three
# penalties :math:`b`. The multiplier is 1 where :math:`w \delta^2 + b = 0`, that is
# at the distance :math:`\sqrt{-b / w}`, here 1, 2 and 3. Everything short of that
# distance is penalised too, the word itself most. The dots are the distances that
# words can have.
#
# Three other priors
# ------------------
#
# All priors are modules that map two lengths to a matrix of log-biases, so one
# can replace another. :class:`~nlilayers.ZipfPrior` falls with the inverse of the
# distance and has nothing to learn. :class:`~nlilayers.LinearPrior` falls along a
# line. :class:`~nlilayers.DistancePrior` has a number of its own for each distance,
# and one for all that are far. It starts at 0, so we fill it by hand here.

gaussian, zipf, linear, distance = (
    GaussianPrior(w=0.1, b=-0.1),
    ZipfPrior(),
    LinearPrior(w=-0.3),
    DistancePrior(4),
)
distance.bias.data = torch.tensor(
    [-1.6, -1.2, -0.9, 0.2, -0.6, 0.6, 0.3, -0.4, -0.8, -2.4]
)
priors = {
    "Gaussian, Eq 4": gaussian,
    "Zipf": zipf,
    "linear": linear,
    "one number each": distance,
}

figure, (above, below) = plt.subplots(2, 1, figsize=(6.4, 5), sharex=True)
for stroke, (name, prior) in zip(("o-", "s-", "^-", "D-"), priors.items()):
    log_bias = (
        prior(15)[7].detach().flip(0)
    )  # the middle word of fifteen; its row runs from distance 7 to -7
    above.plot(words, log_bias, stroke, label=name, markersize=4)
    below.plot(words, log_bias.softmax(0), stroke, label=name, markersize=4)
above.set(title="What is added to a score", ylabel=r"log-bias $\beta(\delta)$")
below.set(
    title="Share of the weight, all scores being equal",
    xlabel="distance δ = i − j (words)",
    ylabel="weight",
)
below.set_ylim(0)
figure.legend(
    *above.get_legend_handles_labels(),
    loc="outside lower center",
    ncols=4,
    columnspacing=1.2,
)
figure.set_label(
    "Two panels over the distance. Above, the log-biases of four priors: a Gaussian "
    "that falls ever faster, a Zipf curve that flattens out, two straight lines, "
    "and an irregular, lopsided line. Below, the shares of the weight."
)

# %%
# Above: the Gaussian falls ever faster. Far words are nearly cut off, which makes
# :doc:`a window <plot_prior_window>` possible. Zipf's curve flattens out: no distance
# is ever far enough to be left out. Below: the shares of the weight if all words
# have equal scores. Only the last prior can tell left from right.
#
# One sentence
# ------------
#
# This is the example of the paper's Figure 1. *new* occurs in it three times, and
# only the first one belongs to *book*. Without a prior the three get the same weight,
# for they have the same vector.
#
# The vectors are random here. We put the vectors of *new* and *book* near each other,
# as training would.

sentence = "I bought a new book yesterday with a new friend in New York .".split()
torch.manual_seed(0)
vectors = {
    word: 0.35 * torch.randn(32) for word in sorted({word.lower() for word in sentence})
}
vectors["new"] = 0.6 * vectors["book"] + 0.8 * vectors["new"]
x = torch.stack([vectors[word.lower()] for word in sentence])[
    None, None
]  # (batch, heads, words, features)

scores = dot_scores(x, x)
prior = GaussianPrior(w=0.125, b=-0.125)
weights = {
    "without a prior (Eq 1)": self_attention_weights(scores),
    "with a Gaussian prior (Eq 4)": self_attention_weights(
        scores, prior(len(sentence))
    ),
}

book = sentence.index("book")
figure, axes = plt.subplots(figsize=(6.4, 3.2))
for shift, (name, matrix) in zip((-0.2, 0.2), weights.items()):
    places = [place + shift for place in range(len(sentence))]
    axes.bar(places, matrix[0, 0, book].tolist(), width=0.4, label=name)
axes.set_xticks(
    range(len(sentence)), sentence, rotation=45, ha="right", rotation_mode="anchor"
)
axes.get_xticklabels()[book].set_fontweight("bold")
axes.set(title="What “book” attends to", ylabel="weight")
axes.legend()
figure.set_label(
    "Bars of the attention weights of the word book over a sentence. Without a "
    "prior the three occurrences of new have bars of the same height; with a "
    "Gaussian prior the one beside book towers over the two that are far away."
)

# %%
# With the prior, only the *new* beside *book* counts. The next picture has the
# weights of every word, a row for each. A vector agrees most with itself, hence the
# dark diagonal. Away from it, words share their weight with equal and similar words
# wherever these stand, and with the prior only with those that are near.

figure, both = plt.subplots(1, 2, figsize=(6.4, 3.9), sharey=True)
for axes, (name, matrix) in zip(both, weights.items()):
    image = axes.imshow(matrix[0, 0].detach().numpy(), vmin=0, vmax=0.6)
    axes.set_xticks(range(len(sentence)), sentence, rotation=90, fontsize=9)
    axes.set_yticks(range(len(sentence)), sentence, fontsize=9)
    axes.set(title=name, xlabel="attended word")
both[0].set_ylabel("attending word")
figure.colorbar(
    image, ax=both, label="weight", location="bottom", shrink=0.6, aspect=40
)
figure.set_label(
    "Two heat maps of attention weights, word by word. Without a prior, dark cells "
    "are scattered wherever words are alike. With a Gaussian prior they lie along "
    "the diagonal."
)

# %%
# What is learnt
# --------------
#
# :math:`w` and :math:`b` are trained with everything else. We give three small models
# three tasks. The words are random vectors. What is asked of each word is the mean of
# its two neighbours, the mean of the five words around it, or the mean of the whole
# sentence.


def mean_at(distances, x):
    """The mean of the words at these distances from each word."""
    between = (torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])).abs()
    wanted = torch.isin(between, torch.tensor(distances))
    return (wanted / wanted.sum(1, keepdim=True)) @ x


tasks = {
    "two neighbours": [1],
    "five words around": [0, 1, 2],
    "whole sentence": list(range(24)),
}
history, learnt = {}, {}
for task, distances in tasks.items():
    torch.manual_seed(0)
    attention = GaussianSelfAttention(8, num_heads=1)
    optimizer = torch.optim.Adam(attention.parameters(), lr=0.02, fused=True)
    track = []
    for _ in range(500):
        x = torch.randn(16, 24, 8)
        loss = (attention(x) - mean_at(distances, x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        track.append((attention.prior.w.item(), -attention.prior.b.item()))
    history[task], learnt[task] = torch.tensor(track), attention.prior

figure, axes = plt.subplot_mosaic([["w", "c"], ["shape", "shape"]], figsize=(6.4, 5.2))
for task, track in history.items():
    axes["w"].plot(track[:, 0], label=task)
    axes["c"].plot(track[:, 1])
    axes["shape"].plot(words, learnt[task](15)[7].detach().exp(), "o-")
axes["w"].set(
    title="w, which narrows", xlabel="training step", ylabel="w", yscale="log"
)
axes["c"].set(
    title="−b, which penalises the centre",
    xlabel="training step",
    ylabel="−b",
    yscale="log",
)
axes["shape"].set(
    title="The prior after training",
    xlabel="distance δ (words)",
    ylabel=r"multiplier $e^{\beta}$",
)
figure.legend(
    *axes["w"].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=3,
    title="the mean of the …",
)
figure.set_label(
    "Three panels. During training w and minus b rise for the task about two "
    "neighbours; w falls to nearly nothing for the one about the whole sentence. "
    "The learnt priors: two peaks at distance 1, a hill with a shallow dip at its "
    "centre, and an almost flat line."
)

# %%
# All three start from the same prior, :math:`w = 0.1` and :math:`b = -0.1`. Where
# only the two neighbours matter, both scalars grow: the prior has a peak on either
# neighbour and nearly nothing elsewhere. Where five words matter, it becomes a hill.
# Where all words matter, :math:`w` falls towards 0, and the prior is flat. A flat
# prior does nothing, at whatever height, since the weights are divided by their sum.
# So a stack of such layers can have local and global ones, and nobody has to say
# which. It takes as much training as this, at a rate of 0.02: at a hundredth of that,
# the rate of the Gaussian Transformer on real pairs, `the scalars hardly move
# <../study/priors.html>`_.
