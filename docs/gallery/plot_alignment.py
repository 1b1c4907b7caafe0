r"""
Which words belong together
===========================

Does one sentence follow from another? The first sentence is called the premise, the
second one the hypothesis. The answer is *entailment* (it follows), *contradiction*
(it cannot be true) or *neutral* (it may or may not be true). Most models begin by
asking which words of the two belong together. That is alignment, and
:class:`~nlilayers.DecomposableAlign` does it. On this page a small model learns it
within seconds.

With the premise's words :math:`a_i`, the hypothesis's words :math:`b_j` and a network
:math:`F`, the layer computes (Parikh et al. 2016, Eqs 1 and 2)

.. math::

    e_{ij} &= F(a_i)^\top F(b_j) \\
    \beta_i &= \sum_j \mathop{\mathrm{softmax}}_j(e_{ij})\, b_j \\
    \alpha_j &= \sum_i \mathop{\mathrm{softmax}}_i(e_{ij})\, a_i

The score :math:`e_{ij}` says how well two words fit. :math:`\beta_i` is what the
hypothesis has to say to premise word :math:`i`: a mean of its words, those that fit
best having most weight. :math:`\alpha_j` is the same the other way round.
"""

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import cross_entropy

from decomposable_attention import DecomposableAttention, DecomposableAttentionConfig
from nli_common.batches import PairDataset, loader
from nli_common.corpora import Pair
from nli_common.data import Corpus
from nli_common.generated import (
    ANTONYMS,
    KINDS,
    OPPOSITES,
    SYNONYMS,
    generated_corpus,
)
from nli_common.lexicon import Lexicon

# %%
# Train a small model
# -------------------
#
# ``decomposable_attention.py`` is one of the library's example scripts. Its model
# aligns, compares each word with what was aligned to it, and adds the comparisons up.
# It learns from a generated corpus of short sentences.
#
# Word vectors that were trained on much text, such as GloVe's, lie near each other for
# related words: for *singer* and *musician*, for *sleeping* and *napping*, and for
# *old* and *young* just as well. We build such vectors here. A word's vector is
# random, and words of one group share a component.

train, test = generated_corpus(4000, "train"), generated_corpus(1000, "test")
words = list(dict.fromkeys([*train.words, *test.words]))
groups = [[kind, *nouns.split()] for kind, nouns in KINDS.items()] + [
    line.split() for line in (*SYNONYMS, *ANTONYMS, *OPPOSITES)
]
group_of = {word: number for number, group in enumerate(groups) for word in group}

torch.manual_seed(1)
vectors = torch.randn(len(words), 64)
shared = torch.randn(len(groups), 64)
for row, word in enumerate(words):
    if word in group_of:
        vectors[row] = 0.6 * vectors[row] + 0.8 * shared[group_of[word]]
lexicon = Lexicon(words, vectors / 2)


def dataset(corpus):
    """Pairs as numbers."""
    return PairDataset(corpus, lexicon, train.labels, [*train.phenomena, ""])


model = DecomposableAttention(
    DecomposableAttentionConfig(hidden_size=64, dropout=0.0), lexicon
)

premise = "the big old singer is sleeping in the garden".split()
hypothesis = "the old musician is napping".split()
pair = dataset(
    Corpus.from_pairs([Pair(premise, hypothesis, "entailment")], "this page")
)[0]


def weights():
    """The weights behind beta and alpha; NULL comes first in each sentence."""
    with torch.no_grad():
        a, a_mask = model.represent(pair.premise)
        b, b_mask = model.represent(pair.hypothesis)
        beta, alpha = model.attend.alignment_weights(a, b, a_mask, b_mask)
    return beta[0].numpy(), alpha[0].T.numpy()


before = weights()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3, fused=True)
batches = loader(dataset(train), 32, seed=0)
for epoch in range(20):
    batches.batch_sampler.start_epoch(epoch)
    for batch in batches:
        loss = cross_entropy(model(batch.premise, batch.hypothesis), batch.label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
after = weights()

with torch.no_grad():
    right = [
        model(batch.premise, batch.hypothesis).argmax(1) == batch.label
        for batch in loader(dataset(test), 256, None)
    ]
print(f"right on {torch.cat(right).float().mean():.0%} of the test pairs")

# %%
# What it looks at
# ----------------
#
# By chance it would be right on one pair in three. The pair below is not among those
# it was trained on. First the weights behind :math:`\beta`, before and after
# training.


def heat_map(axes, weights, title):
    """Weights of two sentences' words."""
    image = axes.imshow(weights, vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(
        range(len(hypothesis) + 1),
        ["NULL", *hypothesis],
        rotation=45,
        ha="right",
        rotation_mode="anchor",
    )
    axes.set_yticks(range(len(premise) + 1), ["NULL", *premise])
    axes.set(title=title, xlabel="hypothesis")
    return image


figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 4.2), sharey=True)
heat_map(left, before[0], "β before training")
image = heat_map(right, after[0], "β after training")
left.set_ylabel("premise")
figure.colorbar(
    image,
    ax=[left, right],
    label="weight; each row sums to 1",
    location="bottom",
    shrink=0.6,
    aspect=40,
)
figure.set_label(
    "Two heat maps, premise words down and hypothesis words across. Before training "
    "the weights are spread over several words. After it the rows of words that "
    "decide about the label are sharp: old looks at old, singer at musician, sleeping "
    "at napping."
)

# %%
# Each row shows where one word of the premise looks. Before training, related words
# lean towards each other already, for their vectors are alike; but so do some that have
# nothing to do with each other. Training sharpens the rows of the words that decide
# about the label: *old* finds *old*, *singer* finds *musician*, *sleeping* finds
# *napping*. What has no counterpart, such as *garden*, has to look somewhere all the
# same. The token ``NULL`` stands before each sentence for such words, and any other
# word may serve as well.
#
# Both directions
# ---------------
#
# The same scores are normalised along the other axis for :math:`\alpha`. The two are
# not each other's transpose.

figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 4.2), sharey=True)
heat_map(left, after[0], "β: each row sums to 1")
image = heat_map(right, after[1], "α: each column sums to 1")
left.set_ylabel("premise")
figure.colorbar(
    image, ax=[left, right], label="weight", location="bottom", shrink=0.6, aspect=40
)
figure.set_label(
    "Two heat maps of the same pair after training: left the weights behind beta, "
    "whose rows sum to 1, right those behind alpha, whose columns sum to 1."
)

# %%
# A column of the right map shows where one word of the hypothesis looks. A premise
# often says more than its hypothesis, so that several rows on the left have nothing to
# match; but *old*, *musician* and *napping*, all that this hypothesis claims, find
# their counterparts on the right. If every word that claims something finds support,
# that speaks for entailment; if it finds its opposite, for contradiction. This is what
# the rest of the model is there to judge. Nothing tells the model which words belong
# together, only the labels: where a small word like *is* looks makes no difference to
# them, and it may look anywhere.
#
# The model sees no word order: :doc:`plot_your_model` shows what it therefore cannot
# tell, and how to fix it.
