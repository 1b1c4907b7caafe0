"""The stacked alignment, which is of no paper: what stands between the words and the pools is repeated."""

from pictures.sentences import draw

draw(
    ("premise words, characters", "hypothesis words, characters"),
    (
        "each word, and what is known of it",
        "each word, and what is known of it",
    ),
    ("context: GatedConvEncoder", "context: GatedConvEncoder"),
    "align: DecomposableAlign",
    (
        "3 networks, 3 machines: $\\tilde a$, $a - \\tilde a$, $a \\odot \\tilde a$",
        "3 networks, 3 machines: $\\tilde b$, $b - \\tilde b$, $b \\odot \\tilde b$",
    ),
    ("merge, add to what is known", "merge, add to what is known"),
    ("largest and mean of what is known", "largest and mean of what is known"),
    "$[u; v; |u - v|; u \\odot v]$, one hidden layer, the classes",
)
