"""The stacked alignment, which is of no paper: what stands between the words and the pools is repeated."""

from pictures.sentences import draw

draw(
    ("premise words", "hypothesis words"),
    (
        "each word, and what is known of it",
        "each word, and what is known of it",
    ),
    ("context: GatedConvEncoder", "context: GatedConvEncoder"),
    "align: DecomposableAlign",
    (
        "$[a; \\tilde a; a - \\tilde a; a \\odot \\tilde a]$, 3 scalars",
        "$[b; \\tilde b; b - \\tilde b; b \\odot \\tilde b]$, 3 scalars",
    ),
    ("compare, add to what is known", "compare, add to what is known"),
    ("largest and mean of what is known", "largest and mean of what is known"),
    "$[u; v; |u - v|; u \\odot v]$, one hidden layer, the classes",
)
