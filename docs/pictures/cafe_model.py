"""Tay et al. 2018, sections 3.1 to 3.7."""

from pictures.sentences import draw

draw(
    ("premise: words, characters, tags", "hypothesis: words, characters, tags"),
    ("encode: 2 highway layers", "encode: 2 highway layers"),
    "align: IntraAlign within a sentence,\nDecomposableAlign with the other one",
    ("6 scalars: AlignmentFactorization", "6 scalars: AlignmentFactorization"),
    ("LSTM", "LSTM"),
    ("mean and max of the states", "mean and max of the states"),
    "$[x_p; x_h; x_p \\odot x_h; x_p - x_h]$, 2 highway layers, the classes",
)
