"""Chen et al. 2019, section 2.2."""

from pictures.sentences import draw

draw(
    ("premise: words, characters, tags", "hypothesis: words, characters, tags"),
    ("context: GatedConvEncoder", "context: GatedConvEncoder"),
    "align: DecomposableAlign, plain dot product",
    (
        "$[a; \\alpha; |a - \\alpha|; a \\odot \\alpha]$",
        "$[b; \\beta; |b - \\beta|; b \\odot \\beta]$",
    ),
    ("aggregate: GatedConvEncoder", "aggregate: GatedConvEncoder"),
    ("largest and mean of the words", "largest and mean of the words"),
    "one hidden layer, the classes",
)
