r"""
A model of your own in 40 lines
===============================

The layers are parts to build with. This page builds a model from them that is in no
paper, trains it for seconds, and asks what it can and cannot do. Then it adds one
layer, and asks again.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from nli_common.batches import PairDataset, loader
from nli_common.generated import generated_corpus
from nli_common.lexicon import Lexicon
from nli_common.words import WordVectors
from nlilayers import DecomposableAlign, GatedConvEncoder, Highway
from nlilayers.masking import masked_max, masked_mean

# %%
# The model
# ---------
#
# It is built as most models of this field are: encode each sentence, align the two,
# compare each word with what was aligned to it, pool, classify. A sentence comes as
# ``tokens`` and a ``mask``. The mask is true for real words and false for padding,
# and every layer that looks beyond a word takes it as it is.


class Matcher(nn.Module):
    """Scores of the three labels for a pair of sentences."""

    def __init__(self, lexicon, size, encoder=None):
        super().__init__()
        self.words = WordVectors(lexicon)
        self.project = Highway(lexicon.dim, size)
        self.encoder = encoder
        self.align = DecomposableAlign()
        self.compare = nn.Sequential(nn.Linear(4 * size, size), nn.ReLU())
        self.classify = nn.Sequential(
            nn.Linear(4 * size, size), nn.ReLU(), nn.Linear(size, 3)
        )

    def encode(self, sentence):
        x = self.project(self.words(sentence))  # (b, n, d)
        return x if self.encoder is None else self.encoder(x, sentence.mask)

    def pool(self, x, aligned, mask):
        pairs = torch.cat([x, aligned, x - aligned, x * aligned], dim=-1)
        compared = self.compare(pairs)  # (b, n, d)
        best, mean = masked_max(compared, mask), masked_mean(compared, mask)
        return torch.cat([best, mean], dim=-1)  # (b, 2 d)

    def forward(self, premise, hypothesis):
        p, h = self.encode(premise), self.encode(hypothesis)
        beta, alpha = self.align(p, h, premise.mask, hypothesis.mask)
        v_p = self.pool(p, beta, premise.mask)
        v_h = self.pool(h, alpha, hypothesis.mask)
        return self.classify(torch.cat([v_p, v_h], dim=-1))


# %%
# :class:`~nlilayers.Highway` makes the words fit the model's width.
# :class:`~nlilayers.DecomposableAlign` aligns. :func:`~nlilayers.masking.masked_max`
# and :func:`~nlilayers.masking.masked_mean` turn words into one vector, of real words
# alone. Everything else is plain PyTorch.
#
# Train it
# --------
#
# The generated corpus has pairs of short sentences. Each is tagged with what makes it
# hard, its *phenomenon*. We train the model twice: as it is, and with a
# :class:`~nlilayers.GatedConvEncoder` that shows each word its neighbours.

train, test = generated_corpus(6000, "train"), generated_corpus(2000, "test")
lexicon = Lexicon.random(dict.fromkeys([*train.words, *test.words]), 64)
phenomena = sorted({*train.phenomena, *test.phenomena})
train_set, test_set = (
    PairDataset(corpus, lexicon, train.labels, phenomena) for corpus in (train, test)
)


def train_and_test(model):
    """Whether each test pair is labelled rightly, and its phenomenon."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    batches = loader(train_set, 32, seed=0)
    for epoch in range(3):
        batches.batch_sampler.start_epoch(epoch)
        for batch in batches:
            logits = model(batch.premise, batch.hypothesis)
            loss = cross_entropy(logits, batch.label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    right, phenomenon = [], []
    with torch.no_grad():
        for batch in loader(test_set, 256, None):
            answer = model(batch.premise, batch.hypothesis).argmax(1)
            right.append(answer == batch.label)
            phenomenon.append(batch.phenomenon)
    return torch.cat(right).float(), torch.cat(phenomenon)


torch.manual_seed(0)
blind, phenomenon = train_and_test(Matcher(lexicon, 64))
aware, _ = train_and_test(Matcher(lexicon, 64, GatedConvEncoder(64, 64, num_layers=2)))

print(f"{'':16}{'pairs':>7}{'order-blind':>13}{'order-aware':>13}")
print(f"{'all':16}{len(blind):7}{blind.mean():13.0%}{aware.mean():13.0%}")
rows = []
for number, name in enumerate(phenomena):
    those = phenomenon == number
    rows.append((name, blind[those].mean().item(), aware[those].mean().item()))
    print(f"{name:16}{those.sum():7}{rows[-1][1]:13.0%}{rows[-1][2]:13.0%}")

# %%
# What each can do
# ----------------

rows.sort(key=lambda row: row[1])
figure, axes = plt.subplots(figsize=(6.4, 4.4))
names, without, within = zip(*rows)
axes.hlines(names, without, within, color="0.8", linewidth=3, zorder=1)
axes.scatter(without, names, color="C1", s=50, label="order-blind")
axes.scatter(within, names, color="C0", s=50, label="order-aware", marker="s")
axes.axvline(1 / 3, color="0.6", linestyle="--", linewidth=1)
axes.text(0.345, 11, "one in three", va="center", color="0.4", fontsize=9)
axes.set(xlabel="accuracy", xlim=(0, 1.02))
axes.xaxis.set_major_formatter("{x:.0%}")
figure.legend(loc="outside upper right", ncols=2)
figure.set_label(
    "Two dots for each of twelve phenomena, joined by a line: the accuracy of the "
    "model without word order and of the one with it. The two lie close together "
    "for most. At role reversal they are far apart: about one half against nearly "
    "all."
)

# %%
# Most phenomena need no word order, and the two models hardly differ.
# *role reversal* is another matter: "the dog is chasing the cat" and "the cat is
# chasing the dog" have the same words. A model that aligns words without knowing
# their order cannot tell the two apart, however long it is trained. It can only
# guess, and is right in about half of the cases. With the convolution, each word
# carries its neighbours along, and the problem is gone.
#
# So the corpus is good for finding out what a model *cannot* do. It is no measure of
# how well it would do on real text. For that, make ``train``, ``test`` and ``lexicon``
# from files; nothing else on this page changes (of pairs without a column
# ``phenomenon``, or ``genre``, all are of one phenomenon that has no name):
#
# .. code-block:: python
#
#     from pathlib import Path
#     from nli_common.data import open_corpus
#
#     cache, vectors = Path("cache"), Path("glove.840B.300d.zip")
#     train = open_corpus(Path("snli_1.0_train.jsonl"), cache)
#     test = open_corpus(Path("snli_1.0_test.jsonl"), cache)
#     words = dict.fromkeys([*train.words, *test.words])
#     lexicon = Lexicon.from_file(vectors, words)
#
# To go on from here, put another layer in the encoder's place: a
# :class:`~nlilayers.GaussianSelfAttention`, say, which takes the same arguments,
# ``(x, mask)``. :doc:`plot_your_encoder` puts a pretrained one there.
