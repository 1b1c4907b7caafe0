"""Chen et al. 2017, Figure 1."""

from pictures.sentences import draw

draw(
    ("premise words", "hypothesis words"),
    ("bidirectional LSTM", "bidirectional LSTM"),
    "align: DecomposableAlign, plain dot product",
    (
        "$[a; \\tilde a; a - \\tilde a; a \\odot \\tilde a]$, 300",
        "$[b; \\tilde b; b - \\tilde b; b \\odot \\tilde b]$, 300",
    ),
    ("bidirectional LSTM", "bidirectional LSTM"),
    ("mean and largest of the states", "mean and largest of the states"),
    "one hidden layer, the classes",
)
