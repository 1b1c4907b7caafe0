"""Nguyen 2019 as slow loops over scalars, written from the report's text; nothing here imports nlilayers.

A sentence is a list of its real words, a word a list of numbers: padding does not exist here. A network's weights come
as plain lists: a linear layer is ``(weight, bias)``, a perceptron a list of those, an LSTM ``(input weight, recurrent
weight, input bias, recurrent bias)`` with the gates one below the other in the order input, forget, candidate, output.
"""

import math
from collections.abc import Sequence

Vector = Sequence[float]
Sentence = Sequence[Vector]
Matrix = Sequence[Vector]
Linear = tuple[Matrix, Vector]
LSTM = tuple[Matrix, Matrix, Vector, Vector]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def dot(x: Vector, y: Vector) -> float:
    return math.fsum(p * q for p, q in zip(x, y, strict=True))


def linear(x: Vector, layer: Linear) -> list[float]:
    weight, bias = layer
    return [dot(row, x) + b for row, b in zip(weight, bias, strict=True)]


def perceptron(x: Vector, layers: Sequence[Linear]) -> list[float]:
    """Section 3.2: fully-connected layers with ReLU."""
    for layer in layers:
        x = [max(0.0, y) for y in linear(x, layer)]
    return list(x)


def lstm(words: Sentence, weights: LSTM) -> list[list[float]]:
    """Hochreiter and Schmidhuber 1997 with a forget gate: c = f c + i g, h = o tanh(c), from zeros."""
    w_input, w_hidden, b_input, b_hidden = weights
    size = len(w_hidden[0])
    hidden, cell, states = [0.0] * size, [0.0] * size, []
    for word in words:
        from_word, from_before = linear(word, (w_input, b_input)), linear(hidden, (w_hidden, b_hidden))
        total = [p + q for p, q in zip(from_word, from_before, strict=True)]
        for k in range(size):
            i, f, g, o = (total[gate * size + k] for gate in range(4))
            cell[k] = sigmoid(f) * cell[k] + sigmoid(i) * math.tanh(g)
            hidden[k] = sigmoid(o) * math.tanh(cell[k])
        states.append(list(hidden))
    return states


def bidirectional(words: Sentence, right: LSTM, left: LSTM) -> list[list[float]]:
    """Each word's state of the LSTM that came from the left, then of the one that came from the right."""
    forth, back = lstm(words, right), lstm(words[::-1], left)[::-1]
    return [[*f, *b] for f, b in zip(forth, back, strict=True)]


def stacked(words: Sentence, layers: Sequence[tuple[LSTM, LSTM]]) -> list[list[float]]:
    """Section 3.1: bidirectional layers, one upon the other."""
    for right, left in layers:
        words = bidirectional(words, right, left)
    return list(words)


def sentence_vector(words: Sentence, layers: Sequence[tuple[LSTM, LSTM]], pooling: str = "last") -> list[float]:
    """Where each direction of the last layer ends: at the last word, and at the first; or each feature's largest."""
    states = stacked(words, layers)
    size = len(states[0]) // 2
    if pooling == "max":
        return [max(column) for column in zip(*states, strict=True)]
    if pooling == "mean":
        return [math.fsum(column) / len(states) for column in zip(*states, strict=True)]
    return [*states[-1][:size], *states[0][size:]]


def baseline(
    a: Sentence,
    b: Sentence,
    layers: Sequence[tuple[LSTM, LSTM]],
    classifier: Sequence[Linear],
    scores: Linear,
    pooling: str = "last",
) -> list[float]:
    """Figure 1: two sentence vectors, side by side, through a multilayer perceptron."""
    both = [*sentence_vector(a, layers, pooling), *sentence_vector(b, layers, pooling)]
    return linear(perceptron(both, classifier), scores)


def weights(e: Matrix) -> tuple[list[list[float]], list[list[float]]]:
    """Eq 3 with its denominators put right: beta's [i][j] and alpha's [j][i]."""
    n, m = len(e), len(e[0])
    beta = [[math.exp(e[i][j]) / math.fsum(math.exp(e[i][k]) for k in range(m)) for j in range(m)] for i in range(n)]
    alpha = [[math.exp(e[i][j]) / math.fsum(math.exp(e[k][j]) for k in range(n)) for i in range(n)] for j in range(m)]
    return beta, alpha


def weights_as_printed(e: Matrix) -> tuple[list[list[float]], list[list[float]]]:
    """Eq 3 to the letter, for sentences of one length: elsewhere e_ik with k up to l_a does not exist."""
    n = len(e)
    alpha = [[math.exp(e[i][j]) / math.fsum(math.exp(e[i][k]) for k in range(n)) for i in range(n)] for j in range(n)]
    beta = [[math.exp(e[i][j]) / math.fsum(math.exp(e[k][j]) for k in range(n)) for j in range(n)] for i in range(n)]
    return beta, alpha


def combine(shares: Vector, words: Sentence) -> list[float]:
    return [math.fsum(s * word[c] for s, word in zip(shares, words, strict=True)) for c in range(len(words[0]))]


def attention(
    a: Sentence,
    b: Sentence,
    m1: Sequence[Linear],
    m2: Sequence[Linear],
    m3: Sequence[Linear],
    scores: Linear,
    normalise=weights,
) -> list[float]:
    """Eqs 2 to 5, from the represented words."""
    e = [[dot(perceptron(a_i, m1), perceptron(b_j, m1)) for b_j in b] for a_i in a]  # Eq 2
    beta_weights, alpha_weights = normalise(e)
    beta = [combine(beta_weights[i], b) for i in range(len(a))]  # Eq 3
    alpha = [combine(alpha_weights[j], a) for j in range(len(b))]
    u = [perceptron([*a[i], *beta[i]], m2) for i in range(len(a))]  # Eq 4, with alpha_j for its alpha_i
    v = [perceptron([*b[j], *alpha[j]], m2) for j in range(len(b))]
    sums = [math.fsum(x[c] for x in side) for side in (u, v) for c in range(len(u[0]))]
    return linear(perceptron(sums, m3), scores)  # Eq 5
