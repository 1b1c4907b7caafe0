r"""
Gates, and how far a word sees
==============================

A convolution sees a few words at a time. Stacked, convolutions see more with each
layer, and gates decide how much of it they take. This page draws both for the gated
convolution of Chen et al. 2019, :class:`~nlilayers.GatedConvBlock`:

.. math::

    o &= \sigma(h^{L-1} * W_o + b_o) \qquad
    f = \sigma(h^{L-1} * W_f + b_f) \qquad
    g = \tanh(h^{L-1} * W_g + b_g) \\
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
# The gradient tells which words an output depends on. We take the word in the middle
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
figure.set_label("Two heat maps")

# %%
# What the gates do
# -----------------

train, test = generated_corpus(4000, "train"), generated_corpus(1000, "test")
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

words = "the old singer is not sleeping in the garden".split()
sentence = dataset(Corpus.from_pairs([Pair(words, words, "entailment")], "this page"))[
    0
].premise
gates = {"output gate o": [], "forget gate f": []}
with torch.no_grad():
    hidden, cell = model.embedding(sentence), None
    for block in model.context.blocks:
        output, forget, _ = same_convolution(hidden, block.weight, block.bias)[0].chunk(
            3, -1
        )
        gates["output gate o"].append(output.sigmoid().mean(1))
        gates["forget gate f"].append(forget.sigmoid().mean(1))
        hidden, cell = block(hidden, cell)

figure, panels = plt.subplots(2, 1, figsize=(6.4, 4.4), sharex=True)
for axes, (name, rows) in zip(panels, gates.items()):
    image = axes.imshow(
        torch.stack(rows).numpy(), vmin=0, vmax=1, aspect="auto", cmap="PuOr"
    )
    for layer, row in enumerate(rows):
        for place, gate in enumerate(row.tolist()):
            axes.text(place, layer, f"{gate:.2f}", ha="center", va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), range(1, len(rows) + 1))
    axes.set(title=name, ylabel="layer")
panels[1].set_xticks(range(len(words)), words)
figure.colorbar(
    image,
    ax=panels,
    label="mean over the features; 0 is closed, 1 is open",
    location="bottom",
    shrink=0.6,
    aspect=40,
)
figure.set_label("gates")
