r"""
Words with typos, and words never seen
======================================

A table of word vectors has nothing for a word that is not in it: a rare name, a new
word, a typo. :class:`~nlilayers.CharNgramEmbedding` has a vector for everything that
can be spelled (Guo et al. 2019, Eq 6). It cuts a word into character n-grams, looks
up a random vector for each, and takes the largest value of each feature:

.. math:: x^{(c)} = \max_t\, x^{(c)}_t E_c

Here :math:`t` runs over the n-grams of the word, :math:`x^{(c)}_t` chooses a row, and
:math:`E_c` is the table of random vectors. It is never trained. Words that share
n-grams share features, and so lie near each other.
"""

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import normalize

from nlilayers import CharNgramEmbedding

# %%
# Where a vector comes from
# -------------------------
#
# The paper's n-grams have five characters. A word stands between ``<`` and ``>``, so
# that its beginning and its end are known. Each feature of a word is the value of one
# of its n-grams, the largest. The picture shows for some spellings of *sentence*
# which n-gram each of 300 features comes from.


def ngrams(word, size=5):
    """The n-grams of a word that is no shorter than they are."""
    framed = f"<{word}>"
    return [framed[start : start + size] for start in range(len(framed) - size + 1)]


embedding = CharNgramEmbedding(300)
spellings = ["sentence", "sentences", "sentense", "sentance", "setnence"]

figure, axes = plt.subplots(figsize=(6.4, 3.2))
axes.invert_yaxis()
for row, word in enumerate(spellings):
    vectors = embedding.weight[embedding.encode([word])[0]]  # of its n-grams
    counts = torch.bincount(vectors.argmax(0), minlength=len(vectors)).tolist()
    start = 0
    for ngram, count in zip(ngrams(word), counts):
        shared = ngram in ngrams("sentence")
        colour = "C0" if shared else "0.85"
        axes.barh(row, count, left=start, color=colour, edgecolor="white")
        text = "white" if shared else "0.2"
        axes.text(
            start + count / 2,
            row,
            ngram,
            ha="center",
            va="center",
            color=text,
            fontsize=9,
        )
        start += count
axes.set_yticks(range(len(spellings)), spellings)
axes.set(xlabel="features that come from the n-gram", xlim=(0, 300))
axes.set_title("blue: an n-gram of “sentence”")
figure.set_label(
    "Stacked bars, one for each of five spellings, cut into the n-grams that 300 "
    "features come from. The plural shares all n-grams but the last two. A wrong "
    "letter near the end leaves half of them; one in the middle, or two swapped "
    "letters, leave a single one."
)

# %%
# The plural keeps nearly all n-grams of the singular. A wrong letter changes the
# n-grams that it is part of, at most five of them. Near an end of the word these are
# few. In the middle of a short word they are nearly all, and two letters that are
# swapped change even more.
#
# Neighbours
# ----------
#
# Now a list of words, and some that are not in it. Two vectors are compared by their
# cosine. Since all features are maxima, most of them are above 0, the more so
# the longer a word is. We subtract each word's mean first, so that unrelated words
# have a cosine of about 0.

words = (
    "beautiful beautifully beauty believe believes believer unbelievable contradict "
    "contradiction definite definitely desperate elephant entail entailment entails "
    "finite hypotheses hypothesis infer inference inferences interference language "
    "languages mountain mountains neutral photograph photographer photographic "
    "premise premises sandwich sausage sentence sentences sentential separate "
    "separately telegraph"
).split()
unknown = [
    "beautifull",
    "unbelievably",
    "mountainous",
    "premiss",
    "photografer",
    "definately",
    "sentance",
    "beleive",
]


def cosines(embedding, some, others):
    """The cosines of two lists of words, ``(some, others)``."""
    vectors = (embedding.table(words) for words in (some, others))
    a, b = (normalize(x - x.mean(1, keepdim=True), dim=1) for x in vectors)
    return a @ b.T


figure, panels = plt.subplots(2, 1, figsize=(6.4, 7.2))
for axes, size in zip(panels, (5, 3)):
    best = cosines(CharNgramEmbedding(300, ngram_size=size), unknown, words).topk(3)
    image = axes.imshow(best.values.numpy(), vmin=0, vmax=1, aspect="auto")
    for row, (values, places) in enumerate(zip(*map(torch.Tensor.tolist, best))):
        for column, (value, place) in enumerate(zip(values, places)):
            colour = "white" if value > 0.6 else "black"
            label = f"{words[place]} {value:.2f}"
            axes.text(column, row, label, ha="center", va="center", color=colour)
    axes.set_yticks(range(len(unknown)), unknown)
    axes.set_xticks(range(3), ["nearest", "second", "third"])
    axes.set_title(f"n-grams of {size} characters")
figure.colorbar(
    image, ax=panels, label="cosine", location="bottom", shrink=0.6, aspect=40
)
figure.set_label(
    "Two tables, coloured by the cosine, of the three nearest words of eight "
    "unknown ones. With 5-grams, beautifull, unbelievably, mountainous, premiss and "
    "photografer find the right words clearly, definately, sentance and beleive do "
    "not. With 3-grams all eight find the right word or one of its family."
)

# %%
# Above, n-grams of five as in the paper. Words with a new ending find their family at
# once, and so do typos at the end of a word. *beleive* shares no n-gram of five with
# *believe*: its neighbours are accidental, and their cosines near 0 say so. Below,
# n-grams of three. They survive such a typo: *beleive* finds *believe*, and all eight
# words find the right one or, like *photografer*, one of its family just before it.
# In return, unrelated words share more: *sentance* is drawn to *entailment* by *ent*
# and *nta*.
#
# Nothing was trained here, and no word list is needed: the vectors depend on ``seed``
# alone. In a model, this layer's vectors stand beside those of a table, as in the
# Gaussian Transformer.
