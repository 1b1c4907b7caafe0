"""Guo et al. 2019, Figure 4."""

from pictures.sentences import draw

draw(
    ("premise: words and n-grams", "hypothesis: words and n-grams"),
    ("project to 120, add positions", "project to 120, add positions"),
    (
        "3 encoding blocks:\nGaussianSelfAttention, network",
        "3 encoding blocks:\nGaussianSelfAttention, network",
    ),
    "2 interaction blocks: GaussianSelfAttention,\nattention to the other sentence, network",
    (
        "compare with what was encoded,\nsum, divided by √length",
        "compare with what was encoded,\nsum, divided by √length",
    ),
    "network, the classes",
)
