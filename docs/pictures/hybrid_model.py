"""Nguyen 2019, section 3.3."""

from pictures.sentences import draw

draw(
    ("premise words", "hypothesis words"),
    ("bidirectional LSTM", "bidirectional LSTM"),
    "align: DecomposableAlign behind a perceptron",
    ("compare: $M_2([a_i; \\beta_i])$", "compare: $M_2([b_j; \\alpha_j])$"),
    ("sum over the words", "sum over the words"),
    "perceptron, the classes",
)
