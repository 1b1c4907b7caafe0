r"""
Six numbers for each word
=========================

CAFE (Tay et al. 2018) compares each word with what was aligned to it, and compresses
every comparison into a single number by a factorization machine. So one can inspect
what the model passes on. The paper's Figure 2 does so. This page trains a small CAFE
within seconds and draws the same numbers.

For a word :math:`x` and the vector :math:`a` that was aligned to it,
:class:`~nlilayers.AlignmentFactorization` gives

.. math::

    y_\mathrm{cat} &= F([x; a]) \\
    y_\mathrm{sub} &= F(x - a) \\
    y_\mathrm{mul} &= F(x \odot a)

with a :class:`~nlilayers.FactorizationMachine` of its own for each. It weighs all
features :math:`z_i` of a vector and all their pairs:

.. math:: F(z) = w_0 + \sum_i w_i z_i + \sum_{i < j} \langle v_i, v_j \rangle\, z_i z_j

*inter* numbers compare a word with the other sentence, by
:class:`~nlilayers.DecomposableAlign`. *intra* numbers compare it with its own
sentence, by :class:`~nlilayers.IntraAlign`. Two times three makes six.
"""

import matplotlib.pyplot as plt
import torch
from matplotlib.colors import SymLogNorm
from torch.nn.functional import cross_entropy

from cafe import CAFE, CAFEConfig
from nli_common.batches import PairDataset, loader
from nli_common.corpora import Pair
from nli_common.data import Corpus
from nli_common.generated import generated_corpus
from nli_common.lexicon import Lexicon

# %%
# Train a small model
# -------------------
#
# ``cafe.py`` is one of the library's example scripts. We leave out characters and
# tags and make everything small. The corpus is generated, and the word vectors are
# random.

train, test = generated_corpus(8000, "train"), generated_corpus(1000, "test")
lexicon = Lexicon.random(dict.fromkeys([*train.words, *test.words]), 64)
config = CAFEConfig(
    encoder_size=32,
    num_factors=8,
    lstm_size=32,
    prediction_size=32,
    char_filters=0,
    tag_size=0,
    append_intra=False,
    dropout=0.0,
)


def dataset(corpus):
    """Pairs as numbers."""
    return PairDataset(corpus, lexicon, train.labels, [*train.phenomena, ""])


torch.manual_seed(0)
model = CAFE(config, lexicon)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
batches = loader(dataset(train), 32, seed=0)
for epoch in range(3):
    batches.batch_sampler.start_epoch(epoch)
    for batch in batches:
        loss = cross_entropy(model(batch.premise, batch.hypothesis), batch.label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    right = [
        model(batch.premise, batch.hypothesis).argmax(1) == batch.label
        for batch in loader(dataset(test), 256, None)
    ]
print(f"right on {torch.cat(right).float().mean():.0%} of the test pairs")

# %%
# Two pairs that differ in one word
# ---------------------------------
#
# Both pairs have the same premise. The first hypothesis follows from it. In the
# second one, *young* contradicts *old*.

premise = "the old brown dog is sleeping".split()
hypotheses = {
    "entailment": "the old dog is sleeping".split(),
    "contradiction": "the young brown dog is sleeping".split(),
}
pairs = dataset(
    Corpus.from_pairs(
        [Pair(premise, hypothesis, label) for label, hypothesis in hypotheses.items()],
        "this page",
    )
)
features = {}
for number, label in enumerate(hypotheses):
    with torch.no_grad():
        features[label] = model.propagated_features(*pairs[number][:2])
        shares = model(*pairs[number][:2]).softmax(1)[0]
    answer = ", ".join(
        f"{name} {share:.0%}" for name, share in zip(train.labels, shares)
    )
    print(f"{label}: {answer}")

largest = max(side.abs().max() for f in features.values() for side in f[1:]).item()
scale = SymLogNorm(1, vmin=-largest, vmax=largest)


def draw(label, side, words):
    """The six numbers of each word of one sentence, as a heat map."""
    axes = places[label, side]
    numbers = getattr(features[label], side)[0].T.numpy()
    image = axes.imshow(numbers, cmap="RdBu_r", norm=scale, aspect="auto")
    axes.set_xticks(
        range(len(words)), words, rotation=45, ha="right", rotation_mode="anchor"
    )
    axes.set_yticks(range(6), features[label].names)
    axes.set_title(f"{label}: {side}")
    return image


figure, grid = plt.subplots(2, 2, figsize=(6.4, 5.6), sharey=True)
places = {
    (label, side): grid[row, column]
    for row, label in enumerate(hypotheses)
    for column, side in enumerate(("premise", "hypothesis"))
}
for label, hypothesis in hypotheses.items():
    draw(label, "premise", premise)
    image = draw(label, "hypothesis", hypothesis)
figure.colorbar(
    image,
    ax=grid,
    label="value of the feature",
    location="bottom",
    shrink=0.6,
    aspect=40,
)
figure.set_label(
    "Four heat maps, the six features down and the words across: premise and "
    "hypothesis of both pairs. The intra rows of the premise are alike in both pairs, "
    "and the inter rows differ where old meets young."
)

# %%
# Each column is a word, each row one of its six numbers. The colours are on a
# logarithmic scale beyond 1 and -1. Compare the pair above with the pair below:
#
# - The *intra* rows of the premise are the same in both pairs, as they must be. They
#   know one sentence alone.
# - *inter_sub* is near 0 at most words that find themselves in the other sentence.
#   Usually it is largest, sign aside, at *young*, which finds no equal and contradicts
#   *old*.
# - *inter_mul* is large at some of the words that find themselves.
#
# The paper saw this in its trained model, too: *inter_mul* spikes at words that are
# alike, *inter_sub* at words that are in conflict. But not every cell reads so well.
# An LSTM reads the words with these numbers beside them, and the answer comes from
# there. What a number means is up to the LSTM, and differs from one training to the
# next, its sign included: another seed, or the rounding of another machine, is enough.
# Here are the *inter* numbers of the pair below:

names = features["entailment"].names
found = features["contradiction"]
for words, side in (
    (premise, found.premise),
    (hypotheses["contradiction"], found.hypothesis),
):
    print(" " * 10 + "".join(f"{word:>10}" for word in words))
    for name, row in zip(names, side[0].T.tolist()):
        if name.startswith("inter"):
            print(f"{name:10}" + "".join(f"{number:10.2f}" for number in row))

# %%
# All test pairs
# --------------
#
# One pair is an anecdote. In all test pairs, how large are the numbers, sign aside, at
# those words of the hypothesis that stand in the premise, too, and at those that do
# not?

sizes, equal = [], []
with torch.no_grad():
    for batch in loader(dataset(test), 256, None):
        numbers = model.propagated_features(*batch[:2]).hypothesis
        real = batch.hypothesis.mask
        matches = batch.hypothesis.tokens[:, :, None] == batch.premise.tokens[:, None]
        in_both = (matches & batch.premise.mask[:, None]).any(2)
        sizes.append(numbers[real].abs())
        equal.append(in_both[real])
sizes, equal = torch.cat(sizes), torch.cat(equal)
print("median of        in both    in one")
for name in ("inter_sub", "inter_mul"):
    size = sizes[:, names.index(name)]
    print(f"|{name}|{size[equal].median():13.2f}{size[~equal].median():10.2f}")

# %%
# In ten trainings, with the seeds 0 to 9, the median of *inter_sub* was 0.01 to 0.26 at
# words in both sentences and 1.09 to 2.00 at the others: that number tells them apart,
# each time. *inter_mul* is less regular; its median was larger at words in both
# sentences in eight of the ten.
