r"""
Gates, and how far a word sees
==============================

A convolution sees a few words at a time. Stacked, convolutions see more with each
layer, and gates decide how much of it they take. This page draws both for the gated
convolution of Chen et al. 2019, :class:`~nlilayers.GatedConvBlock`:

.. math::

    o &= \sigma(h^{L-1} * W_o + b_o) \\
    f &= \sigma(h^{L-1} * W_f + b_f) \\
    g &= \tanh(h^{L-1} * W_g + b_g) \\
    c^L &= f \odot c^{L-1} + (1 - f) \odot h^{L-1} \\
    h^L &= o \odot g + c^L

In layer :math:`L`, each word has a hidden state :math:`h^L` and a memory cell
:math:`c^L`. :math:`*` is a convolution over windows of :math:`k` words. The forget
gate :math:`f` says how much of the old cell stays, against what enters. The output
gate :math:`o` says how much of the new candidate :math:`g` is added. Both lie between
0 and 1.
"""

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Rectangle
from torch.nn.functional import cross_entropy

from gated_cnn import GatedCNN, GatedCNNConfig
from nli_common.batches import PairDataset, loader
from nli_common.corpora import Pair
from nli_common.data import Corpus
from nli_common.generated import generated_corpus
from nli_common.lexicon import Lexicon
from nlilayers import GatedConvEncoder
from nlilayers.functional import same_convolution

# %%
# How far a word sees
# -------------------
#
# The gradient shows which words an output depends on. We take the word in the middle
# of a text, differentiate its output with respect to every input word, and look at
# the length of each gradient. After :math:`L` layers with windows of :math:`k` words,
# the middle word can have seen :math:`L (k - 1) + 1` words, and no others.

length, middle = 25, 12


def gradient_lengths(encoder):
    """How much each input word matters to the middle output, the most being 1."""
    x = torch.randn(64, length, 32, requires_grad=True)
    projected = encoder(x)[:, middle] * torch.randn(64, 32)
    (gradient,) = torch.autograd.grad(projected.sum(), x)
    lengths = gradient.norm(dim=2).mean(0)
    return lengths / lengths.max()


torch.manual_seed(0)
figure, panels = plt.subplots(1, 2, figsize=(6.4, 3.3), sharey=True)
for axes, kernel_size in zip(panels, (3, 5)):
    rows = torch.stack(
        [
            gradient_lengths(GatedConvEncoder(32, 32, layers, kernel_size=kernel_size))
            for layers in range(1, 7)
        ]
    )
    image = axes.imshow(rows.log10().numpy(), vmin=-4, vmax=0, aspect="auto")
    for layers in range(1, 7):
        reach = layers * (kernel_size - 1) // 2
        place = (max(middle - reach, 0) - 0.5, layers - 1.5)
        width = min(2 * reach + 1, length)
        axes.add_patch(
            Rectangle(place, width, 1, fill=False, edgecolor="C1", linewidth=1.4)
        )
    axes.set_xticks([0, 6, 12, 18, 24], [-12, -6, 0, 6, 12])
    axes.set_yticks(range(6), range(1, 7))
    axes.set(
        title=f"windows of k = {kernel_size} words",
        xlabel="distance of the input word (words)",
    )
panels[0].set_ylabel("layers L")
bar = figure.colorbar(
    image,
    ax=panels,
    label="length of the gradient, the largest being 1",
    location="bottom",
    shrink=0.6,
    aspect=40,
)
bar.set_ticks([-4, -3, -2, -1, 0], labels=["0.0001", "0.001", "0.01", "0.1", "1"])
figure.set_label(
    "Two heat maps, layers down and input words across, for windows of 3 and of 5 "
    "words. Each row is darkest at the middle word and fades to both sides. Frames "
    "mark the words that can be seen, a pyramid that widens by 1 or by 2 words on "
    "either side with each layer; everything outside is blank."
)

# %%
# Each row is an encoder with that many layers, before any training. The frames are
# :math:`L (k - 1) + 1` words wide. Outside them the gradient is exactly 0. Inside, it
# fades: a word on the border has a single path to the middle, a near one has many. So
# depth widens the view, and a wider window widens it faster. Six layers of windows of
# 3 see 13 words; a premise of the corpus SNLI has 14 on average.


# %%
# What the gates do
# -----------------
#
# We train ``gated_cnn.py``, one of the library's example scripts, in a small version
# and for some seconds, on a generated corpus. Then it reads a sentence.

train, test = generated_corpus(3000, "train"), generated_corpus(1000, "test")
lexicon = Lexicon.random(dict.fromkeys([*train.words, *test.words]), 64)


def dataset(corpus):
    """Pairs as numbers."""
    return PairDataset(corpus, lexicon, train.labels, [*train.phenomena, ""])


torch.manual_seed(0)
config = GatedCNNConfig(
    use_chars=False,
    use_pos=False,
    hidden_size=48,
    context_layers=3,
    aggregation_layers=1,
)
model = GatedCNN(config, lexicon)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
batches = loader(dataset(train), 32, seed=0)
for epoch in range(2):
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
# A block computes all its gates by one convolution,
# :func:`~nlilayers.functional.same_convolution`. Its rows are :math:`W_o, W_f, W_g`,
# one below the other. So we compute it once more, and look at the gates of the second
# layer.

words = "the old singer is not sleeping in the garden".split()
pair = Pair(words, words, "entailment")
sentence = dataset(Corpus.from_pairs([pair], "this page"))[0].premise
first, second = model.context.blocks[:2]
with torch.no_grad():
    hidden, cell = first(model.embedding(sentence))
    gates = same_convolution(hidden, second.weight, second.bias)
output, forget, _ = gates[0].sigmoid().chunk(3, -1)

figure, panels = plt.subplots(1, 2, figsize=(6.4, 4.6), sharey=True)
names = {"output gate o": output, "forget gate f": forget}
for axes, (name, gate) in zip(panels, names.items()):
    order = gate.mean(0).argsort(descending=True)
    image = axes.imshow(gate.T[order].numpy(), vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(
        range(len(words)), words, rotation=45, ha="right", rotation_mode="anchor"
    )
    axes.set_title(f"{name}, mean {gate.mean():.2f}")
panels[0].set_yticks([])
panels[0].set_ylabel("features, the most open first")
figure.colorbar(
    image,
    ax=panels,
    label="gate: 0 is closed, 1 is open",
    location="bottom",
    shrink=0.6,
    aspect=40,
)
figure.set_label(
    "Two heat maps, 48 features down and the words of a sentence across. The output "
    "gates are open for some features and words and closed for others, about half "
    "in all. The forget gates are nearly closed almost everywhere."
)

# %%
# Each row is one of 48 features, each column a word. A gate is not open or closed as
# a whole: it chooses by feature and by word. The output gates are about half open on
# the whole. The forget gates start nearly closed, at :math:`\sigma(-2) \approx 0.12`,
# and stay so for most features: the cell takes what enters. Where one opens, the cell
# keeps what it had from the layer before.
