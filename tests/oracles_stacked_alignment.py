"""The stacked alignment as slow loops over scalars, written from its description; nothing here imports nlilayers.

A sentence is a list of its real words, a word a list of numbers: padding does not exist here.
"""

import math
from collections.abc import Callable, Sequence

from oracles import Matrix, Sentence, Vector, align, alignment_factorization, scores
from oracles_gated_cnn import average, gcnn, largest


def gelu(x: float) -> float:
    """x, as likely as a standard normal number is below it."""
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


Layer = Callable[[Vector], list[float]]
Block = dict
"""The layers of a block: context, project, networks, machines, merge."""


def block(
    a: Sentence,
    b: Sentence,
    dim: int,
    context: Sequence[dict],
    project: Layer,
    networks: Sequence[Layer],
    machines: Sequence[tuple],
    merge: Layer,
) -> tuple[Matrix, Matrix]:
    """Both sentences: of each word the first ``dim`` numbers, and what is known of it now."""
    in_a, in_b = ([[*x, *y] for x, y in zip(s, gcnn(s, context), strict=True)] for s in (a, b))
    beta, alpha = align(in_a, in_b, scores(in_a, in_b, project))
    sides = []
    for s, in_s, aligned in ((a, in_a, beta), (b, in_b, alpha)):
        rows = []
        for x, in_x, y in zip(s, in_s, aligned, strict=True):
            differences = [p - q for p, q in zip(in_x, y, strict=True)]
            products = [p * q for p, q in zip(in_x, y, strict=True)]
            by_both, by_difference, by_product = networks
            seen = [*by_both([*in_x, *y]), *by_difference([*in_x, *differences]), *by_product([*in_x, *products])]
            found = merge([*seen, *alignment_factorization(in_x, y, *machines)])
            if len(x) > dim:
                found = [(p + q) / math.sqrt(2) for p, q in zip(x[dim:], found, strict=True)]
            rows.append([*x[:dim], *found])
        sides.append(rows)
    return sides[0], sides[1]


def stacked_alignment(a: Sentence, b: Sentence, blocks: Sequence[Block], classify: Layer) -> list[float]:
    """The unnormalised class scores of one pair of sentences of words as vectors."""
    dim = len(a[0])
    for parts in blocks:
        a, b = block(a, b, dim, **parts)
    known = ([word[dim:] for word in s] for s in (a, b))
    u, v = ([*largest(s), *average(s)] for s in known)
    distances = [abs(p - q) for p, q in zip(u, v, strict=True)]
    return classify([*u, *v, *distances, *(p * q for p, q in zip(u, v, strict=True))])
