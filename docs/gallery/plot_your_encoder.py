r"""
Alignment on top of a pretrained encoder
========================================

BERT and its kin turn a sentence into one vector for each word. The library's layers
take such vectors like any others. This page puts :class:`~nlilayers.DecomposableAlign`
and :class:`~nlilayers.AlignmentFactorization` on top of an encoder of Hugging Face's
``transformers``.

A cross-encoder reads both sentences at once, and must read each pair anew. Here every
sentence is read alone, so that its vectors can be kept. The layers on top then bring
the two together, and show how.
"""

import matplotlib.pyplot as plt
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from nli_common.generated import LABELS, generated_pairs
from nlilayers import AlignmentFactorization, DecomposableAlign
from nlilayers.masking import masked_max, masked_mean

# %%
# The encoder
# -----------
#
# Nothing is downloaded for this page: its encoder is tiny and starts from random
# weights, and its tokenizer knows the words of a generated corpus. To use your own,
# replace the two names that this block defines by
#
# .. code-block:: python
#
#     encoder = AutoModel.from_pretrained(NAME)
#     tokenizer = AutoTokenizer.from_pretrained(NAME)
#
# from ``transformers``, where ``NAME`` is a model's name or folder. Three things change
# below. The learning rate is lower. ``model.train()`` comes before the training, for
# ``from_pretrained`` returns an encoder in evaluation mode. And the alignment has a
# network, ``DecomposableAlign(nn.Sequential(nn.Linear(size, 200), nn.ReLU()))``: plain
# dot products of 768 features lie so far apart that each word would see one other.

pairs = list(generated_pairs(6000, "train"))
tests = list(generated_pairs(500, "test"))

words = sorted({word for pair in pairs for word in pair.premise + pair.hypothesis})
vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *words])}
splitter = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
splitter.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=splitter, pad_token="[PAD]", unk_token="[UNK]"
)

torch.manual_seed(0)
encoder = BertModel(
    BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    ),
    add_pooling_layer=False,
)

# %%
# The layers on top
# -----------------
#
# The tokenizer's ``attention_mask`` is 1 for real tokens and 0 for padding. As
# booleans, this is the mask that all layers take. Each token gets three numbers,
# which compare it with what was aligned to it:
#
# .. math::
#
#     y_\mathrm{cat} &= F([x; a]) \\
#     y_\mathrm{sub} &= F(x - a) \\
#     y_\mathrm{mul} &= F(x \odot a)
#
# with the token's vector :math:`x`, the vector :math:`a` aligned to it, and a
# :class:`~nlilayers.FactorizationMachine` :math:`F` of its own for each. They are
# appended to :math:`x`, and pooling makes one vector of each sentence.


class AlignedEncoder(nn.Module):
    """Scores of the three labels for two lists of sentences."""

    def __init__(self, encoder, tokenizer):
        super().__init__()
        self.encoder, self.tokenizer = encoder, tokenizer
        size = encoder.config.hidden_size
        self.align = DecomposableAlign()
        self.factorize = AlignmentFactorization(size, num_factors=8)
        self.classify = nn.Sequential(
            nn.Linear(4 * (size + 3), size), nn.ReLU(), nn.Linear(size, len(LABELS))
        )

    def encode(self, sentences):
        inputs = self.tokenizer(sentences, padding=True, return_tensors="pt")
        x = self.encoder(**inputs).last_hidden_state  # (b, n, d)
        return x, inputs["attention_mask"].bool()

    def pool(self, x, aligned, mask):
        features = torch.cat([x, self.factorize(x, aligned)], dim=-1)  # (b, n, d + 3)
        pooled = masked_max(features, mask), masked_mean(features, mask)
        return torch.cat(pooled, dim=-1)

    def forward(self, premises, hypotheses):
        (p, p_mask), (h, h_mask) = self.encode(premises), self.encode(hypotheses)
        beta, alpha = self.align(p, h, p_mask, h_mask)
        pooled = self.pool(p, beta, p_mask), self.pool(h, alpha, h_mask)
        return self.classify(torch.cat(pooled, dim=-1))


# %%
# Train it
# --------
#
# Encoder and layers are trained together. With a pretrained encoder one would take a
# learning rate of about ``2e-5`` for it, or keep its weights as they are.


def texts_and_labels(pairs):
    """Two lists of sentences and the numbers of their labels."""
    premises = [" ".join(pair.premise) for pair in pairs]
    hypotheses = [" ".join(pair.hypothesis) for pair in pairs]
    return premises, hypotheses, torch.tensor([LABELS.index(p.label) for p in pairs])


model = AlignedEncoder(encoder, tokenizer)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
for _ in range(3):
    for start in range(0, len(pairs), 32):
        premises, hypotheses, labels = texts_and_labels(pairs[start : start + 32])
        loss = cross_entropy(model(premises, hypotheses), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

model.eval()
premises, hypotheses, labels = texts_and_labels(tests)
with torch.no_grad():
    right = (model(premises, hypotheses).argmax(1) == labels).float()
print(f"right on {right.mean():.0%} of the test pairs")

# %%
# What it sees
# ------------
#
# Here is one pair that contradicts itself: *young* stands against *old*.

premise = "the old brown dog is sleeping"
hypothesis = "the young brown dog is sleeping"
with torch.no_grad():
    (p, p_mask), (h, h_mask) = model.encode([premise]), model.encode([hypothesis])
    weights, _ = model.align.alignment_weights(p, h, p_mask, h_mask)
    beta, _ = model.align(p, h, p_mask, h_mask)
    features = model.factorize(p, beta)
    shares = model([premise], [hypothesis]).softmax(1)[0]
print(", ".join(f"{label} {share:.0%}" for label, share in zip(LABELS, shares)))

figure, (left, right) = plt.subplots(
    1, 2, figsize=(6.4, 4.4), sharey=True, width_ratios=[5, 3]
)
image = left.imshow(weights[0].numpy(), vmin=0, vmax=1, aspect="auto")
rows, columns = (
    tokenizer.convert_ids_to_tokens(tokenizer(sentence)["input_ids"])
    for sentence in (premise, hypothesis)
)
left.set_xticks(
    range(len(columns)), columns, rotation=45, ha="right", rotation_mode="anchor"
)
left.set_yticks(range(len(rows)), rows)
left.set(title="alignment", xlabel="hypothesis", ylabel="premise")
figure.colorbar(image, ax=left, label="weight; each row sums to 1", location="bottom")
largest = features.abs().max().item()
image = right.imshow(
    features[0].numpy(), cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto"
)
right.set_xticks(range(3), ["cat", "sub", "mul"])
right.set_title("factorization")
figure.colorbar(image, ax=right, label="value", location="bottom")
figure.set_label(
    "Two heat maps with the premise's words down. Left, the weights of the "
    "hypothesis's words: each word has found itself, and old has found young. "
    "Right, the three numbers of each word; those of old differ from the rest most "
    "clearly in the column sub."
)

# %%
# Left: each word has found itself in the other sentence, and *old* has found *young*.
# Right: the difference (*sub*) is next to 0 for all words but *old*, the only one
# whose counterpart is another word. So one can see which word the model stumbled
# over. The other two columns are harder to read: their numbers are made for the layers
# that follow.
#
# Pretrained encoders mostly split words into pieces, and put tokens
# such as ``[CLS]`` around them. The layers align these like any other tokens.
