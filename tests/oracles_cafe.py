"""CAFE (Tay et al. 2018) as slow loops over scalars, written from the paper's text; nothing here imports nlilayers.

As in ``oracles``, a sentence is a list of its real words: padding does not exist.
"""

import math
from collections.abc import Callable, Sequence

from oracles import Matrix, Sentence, Vector, combine, dot, linear, scores, sigmoid, softmax

Layer = Callable[[Vector], list[float]]
Compare = Callable[[Vector, Vector], Sequence[float]]
"""Maps a word and what is aligned to it to their scalars."""


def rectified(x: Vector, weight: Matrix, bias: Vector) -> list[float]:
    """A fully-connected layer with ReLU."""
    return [max(0.0, v) for v in linear(x, weight, bias)]


def nonlinear_highway(
    x: Vector, transform: tuple[Matrix, Vector], gate: tuple[Matrix, Vector], projection: tuple[Matrix, Vector] | None
) -> list[float]:
    """Eq 1 with "an additional nonlinear transform" of x, where its width is another."""
    h, t = rectified(x, *transform), [sigmoid(v) for v in linear(x, *gate)]
    carried = rectified(x, *projection) if projection else x
    return [h[c] * t[c] + carried[c] * (1 - t[c]) for c in range(len(h))]


def character_features(characters: Sentence, convolutions: Sequence[tuple[Sequence[Matrix], Vector]]) -> list[float]:
    """Section 3.1: for each filter the largest rectified value over the places of a word, zeros beyond its ends."""
    features = []
    for weight, bias in convolutions:
        width = len(weight[0][0])
        for n in range(len(weight)):
            values = []
            for i in range(len(characters)):
                total = bias[n]
                for t in range(width):
                    place = i + t - width // 2
                    if 0 <= place < len(characters):
                        total += dot([weight[n][m][t] for m in range(len(characters[0]))], characters[place])
                values.append(max(0.0, total))
            features.append(max(values))
    return features


def through(layers: Sequence[Layer], x: Vector) -> list[float]:
    """One layer after the other."""
    for layer in layers:
        x = layer(x)
    return list(x)


def align_pair(p: Sentence, h: Sentence, f: Layer) -> tuple[Matrix, Matrix]:
    """Eqs 2 to 4, each with the indices that the text below them asks for: alpha_j beside p_j and beta_i beside h_i."""
    e = scores(p, h, f)
    alpha = [combine(softmax([e[j][i] for i in range(len(h))]), h) for j in range(len(p))]
    beta = [combine(softmax([e[j][i] for j in range(len(p))]), p) for i in range(len(h))]
    return alpha, beta


def align_within(s: Sentence, g: Layer) -> Matrix:
    """Eq 5, the sums over the sentence's own words."""
    f = scores(s, s, g)
    return [combine(softmax(f[i]), s) for i in range(len(s))]


def lstm(u: Sentence, input_weight: Matrix, state_weight: Matrix, bias: Vector) -> Matrix:
    """Eq 16: the rows of the weights are those of the input gate, the forget gate, the cell and the output gate."""
    size = len(state_weight[0])
    state, cell, states = [0.0] * size, [0.0] * size, []
    for word in u:
        z = [dot(input_weight[r], word) + dot(state_weight[r], state) + bias[r] for r in range(4 * size)]
        next_state = []
        for c in range(size):
            i, f, o = sigmoid(z[c]), sigmoid(z[size + c]), sigmoid(z[3 * size + c])
            cell[c] = f * cell[c] + i * math.tanh(z[2 * size + c])
            next_state.append(o * math.tanh(cell[c]))
        state = next_state
        states.append(state)
    return states


def pool(states: Matrix, kind: str) -> list[float]:
    """Eq 17, or one of the poolings that the text below it names."""
    columns = [[state[c] for state in states] for c in range(len(states[0]))]
    sums = [math.fsum(column) for column in columns]
    means = [total / len(states) for total in sums]
    return {"avgmax": [max(column) for column in columns] + means, "sum": sums, "avg": means}[kind]


def features(
    p: Sentence, h: Sentence, f: Layer | None, g: Layer, inter: Compare | None, intra: Compare
) -> tuple[Matrix, Matrix]:
    """Eqs 2 to 14: the scalars of each word, those of the intra-attention first."""
    p_within, h_within = align_within(p, g), align_within(h, g)
    scalars_p = [list(intra(p[j], p_within[j])) for j in range(len(p))]
    scalars_h = [list(intra(h[i], h_within[i])) for i in range(len(h))]
    if f is not None and inter is not None:
        alpha, beta = align_pair(p, h, f)
        scalars_p = [[*scalars_p[j], *inter(p[j], alpha[j])] for j in range(len(p))]
        scalars_h = [[*scalars_h[i], *inter(h[i], beta[i])] for i in range(len(h))]
    return scalars_p, scalars_h


def cafe(
    p: Sentence,
    h: Sentence,
    encoder: Sequence[Layer],
    f: Layer | None,
    g: Layer,
    inter: Compare | None,
    intra: Compare,
    read: Callable[[Matrix], Matrix],
    pooling: str,
    predict: Sequence[Layer],
    append_intra: bool,
) -> list[float]:
    """Eqs 1 to 19 without the softmax: the class scores of one pair of sentences of embedded words."""
    p, h = [through(encoder, word) for word in p], [through(encoder, word) for word in h]
    pooled = []
    for s, scalars in zip((p, h), features(p, h, f, g, inter, intra), strict=True):
        u = [[*s[i], *scalars[i]] for i in range(len(s))]
        if append_intra:
            within = align_within(s, g)
            u = [[*u[i], *within[i]] for i in range(len(s))]
        pooled.append(pool(read(u), pooling))
    x_p, x_h = pooled
    products = [a * b for a, b in zip(x_p, x_h, strict=True)]
    differences = [a - b for a, b in zip(x_p, x_h, strict=True)]
    return through(predict, [*x_p, *x_h, *products, *differences])
