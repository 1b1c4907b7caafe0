"""Chen et al. 2017 as slow loops over scalars; nothing here imports nlilayers.

A sentence is a list of its real words, a word a list of numbers; weights are plain lists, as in the LSTM's oracle.
"""

import math

from oracles_lstm_attention import LSTM, Linear, Matrix, Sentence, Vector, bidirectional, combine, dot, linear, weights

BiLSTM = tuple[LSTM, LSTM]


def compared(word: Vector, aligned: Vector) -> list[float]:
    """Eqs 14 and 15: [a; a~; a - a~; a * a~]."""
    pairs = list(zip(word, aligned, strict=True))
    return [*word, *aligned, *(p - q for p, q in pairs), *(p * q for p, q in pairs)]


def pooled(states: Matrix) -> list[float]:
    """Eqs 18 and 19: the average, then the maximum, of each feature."""
    columns = [[state[c] for state in states] for c in range(len(states[0]))]
    return [*(math.fsum(column) / len(column) for column in columns), *(max(column) for column in columns)]


def esim(
    a: Sentence, b: Sentence, encoder: BiLSTM, project: Linear, composer: BiLSTM, hidden: Linear, scores: Linear
) -> list[float]:
    a, b = bidirectional(a, *encoder), bidirectional(b, *encoder)  # Eqs 1, 2
    e = [[dot(a_i, b_j) for b_j in b] for a_i in a]  # Eq 11
    beta, alpha = weights(e)
    vectors: list[float] = []
    for own, other, shares in ((a, b, beta), (b, a, alpha)):
        aligned = [combine(row, other) for row in shares]  # Eqs 12, 13
        m = [compared(x, y) for x, y in zip(own, aligned, strict=True)]
        projected = [[max(0.0, y) for y in linear(x, project)] for x in m]
        vectors += pooled(bidirectional(projected, *composer))  # an LSTM for the tree-LSTM of Eqs 16, 17
    return linear([math.tanh(y) for y in linear(vectors, hidden)], scores)  # Eq 20
