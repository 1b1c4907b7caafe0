"""Chen et al. 2019 as slow loops over scalars, written from the paper's text; nothing here imports nlilayers.

A sentence is a list of its real words, a word a list of numbers: padding does not exist here.
"""

import math
from collections.abc import Callable, Sequence

from oracles import Matrix, Sentence, Vector, align, convolve, gated_convolution, linear, scores, sigmoid

Encoder = Callable[[Sentence], Matrix]


def gated_cnn(
    a: Sentence, b: Sentence, context: Encoder, aggregation: Encoder, classify: Callable[[Vector], Vector]
) -> list[float]:
    """Section 2.2, from the word vectors on: the unnormalised class scores of one pair."""
    a, b = context(a), context(b)  # Eq 4
    e = scores(a, b, lambda word: word)  # Eq 5
    alpha, beta = align(a, b, e)  # Eq 6
    v_a = aggregation([compare(*pair) for pair in zip(a, alpha, strict=True)])
    v_b = aggregation([compare(*pair) for pair in zip(b, beta, strict=True)])
    return list(classify([*largest(v_a), *average(v_a), *largest(v_b), *average(v_b)]))  # Eq 8


def compare(x: Vector, aligned: Vector) -> list[float]:
    """Eq 7."""
    absolute = [abs(p - q) for p, q in zip(x, aligned, strict=True)]
    product = [p * q for p, q in zip(x, aligned, strict=True)]
    return [*x, *aligned, *absolute, *product]


def largest(words: Sentence) -> list[float]:
    return [max(word[c] for word in words) for c in range(len(words[0]))]


def average(words: Sentence) -> list[float]:
    return [math.fsum(word[c] for word in words) / len(words) for c in range(len(words[0]))]


def gcnn(x: Sentence, layers: Sequence[dict]) -> Matrix:
    """Eqs 2 and 3 in layers, each the named arguments of ``oracles.gated_convolution``; the first cell is 0."""
    hidden = [list(word) for word in x]
    cell = [[0.0] * len(layers[0]["candidate"][1]) for _ in x]
    for layer in layers:
        hidden, cell = gated_convolution(hidden, cell, **layer)
    return hidden


def glu(x: Sentence, layers: Sequence[dict]) -> Matrix:
    """Eq 1 in layers: ``value`` is (W, b), ``gate`` is (V, c), ``shortcut`` is a matrix, True for x itself, or None."""
    hidden = [list(word) for word in x]
    for layer in layers:
        values, gates = convolve(hidden, *layer["value"]), convolve(hidden, *layer["gate"])
        rows = []
        for word, value, gate in zip(hidden, values, gates, strict=True):
            row = [v * sigmoid(g) for v, g in zip(value, gate, strict=True)]
            if layer["shortcut"] is not None:
                added = word if layer["shortcut"] is True else linear(word, layer["shortcut"])
                row = [y + s for y, s in zip(row, added, strict=True)]
            rows.append(row)
        hidden = rows
    return hidden


def features(vector: Vector, characters: Sentence, encoder: Encoder, tag: int, num_tags: int) -> list[float]:
    """Section 2.3: word vector, Eq 9 over the vectors of its characters, one-hot tag (from 1; 0 is an unknown one)."""
    return [*vector, *largest(encoder(characters)), *[float(tag == place) for place in range(1, num_tags + 1)]]
