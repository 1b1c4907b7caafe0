"""The papers' equations as slow loops over scalars, written from the papers' text; nothing here imports nlilayers.

A sentence is a list of its real words, a word a list of numbers: padding does not exist here, so that a layer with a
mask is held against a sentence without one.
"""

import math
from collections.abc import Callable, Sequence

Vector = Sequence[float]
Sentence = Sequence[Vector]
Matrix = list[list[float]]


def dot(x: Vector, y: Vector) -> float:
    return math.fsum(p * q for p, q in zip(x, y, strict=True))


def softmax(scores: Vector) -> list[float]:
    """exp(s_j) / sum_k exp(s_k), with the largest score taken off both."""
    top = max(scores)
    exps = [math.exp(s - top) for s in scores]
    total = math.fsum(exps)
    return [e / total for e in exps]


def combine(weights: Vector, words: Sentence) -> list[float]:
    """sum_j w_j x_j."""
    return [math.fsum(w * x[c] for w, x in zip(weights, words, strict=True)) for c in range(len(words[0]))]


def scores(a: Sentence, b: Sentence, feedforward: Callable[[Vector], Vector]) -> Matrix:
    """Parikh et al. 2016, Eq 1: e_ij = F(a_i) . F(b_j)."""
    return [[dot(feedforward(a_i), feedforward(b_j)) for b_j in b] for a_i in a]


def align(a: Sentence, b: Sentence, e: Matrix) -> tuple[Matrix, Matrix]:
    """Parikh et al. 2016, Eq 2: beta_i over the words of b, alpha_j over the words of a."""
    beta = [combine(softmax([e[i][j] for j in range(len(b))]), b) for i in range(len(a))]
    alpha = [combine(softmax([e[i][j] for i in range(len(a))]), a) for j in range(len(b))]
    return beta, alpha


def bucket_bias(bias: Vector, distance: int, max_distance: int = 10) -> float:
    """Below Eq 7: a bias for each signed distance up to the largest, and one for all that are greater."""
    if -max_distance <= distance <= max_distance:
        return bias[distance + max_distance]
    return bias[2 * max_distance + 1]


def two_sided_bucket_bias(bias: Vector, distance: int, max_distance: int = 10) -> float:
    """The same sentence, read as one bias for all greater distances on each side: ahead first."""
    if -max_distance <= distance <= max_distance:
        return bias[distance + max_distance]
    return bias[2 * max_distance + 1] if distance > max_distance else bias[2 * max_distance + 2]


def absolute_bucket_bias(bias: Vector, distance: int, max_distance: int = 10) -> float:
    """The same sentence, read of distances that have no sign."""
    return bias[abs(distance)] if abs(distance) <= max_distance else bias[max_distance + 1]


def gaussian_bias(w: float, b: float, distance: int) -> float:
    """Guo et al. 2019, Eq 4; with b = 0, Eq 3."""
    return -abs(w * distance**2 + b)


def zipf_bias(distance: int) -> float:
    """Guo et al. 2019, Eq 18: the logarithm of its factor 1 / (|d| + 1)."""
    return math.log(1 / (abs(distance) + 1))


def linear_bias(w: float, distance: int) -> float:
    """Guo et al. 2019, Eq 20."""
    return w * abs(distance)


def intra_align(a: Sentence, f: Matrix, d: Callable[[int], float], positions: Sequence[int] | None = None) -> Matrix:
    """Parikh et al. 2016, Eq 7, with d_{i-k} in the denominator; positions are 0, 1, 2 … unless words are missing."""
    at = range(len(a)) if positions is None else positions
    rows = []
    for i in range(len(a)):
        rows.append(combine(softmax([f[i][j] + d(at[i] - at[j]) for j in range(len(a))]), a))
    return rows


def intra_align_as_printed(a: Sentence, f: Matrix, d: Callable[[int], float]) -> Matrix:
    """Eq 7 to the letter: d_{i-j} stands in the denominator as well."""
    rows = []
    for i in range(len(a)):
        weights = [
            math.exp(f[i][j] + d(i - j)) / math.fsum(math.exp(f[i][k] + d(i - j)) for k in range(len(a)))
            for j in range(len(a))
        ]
        rows.append(combine(weights, a))
    return rows


def swapped_denominators(e: Matrix) -> Matrix:
    """The Trento report's Eq 3 to the letter, where it is defined: beta's weights exp(e_ij) / sum_k exp(e_kj)."""
    n, m = len(e), len(e[0])
    return [[math.exp(e[i][j]) / math.fsum(math.exp(e[k][j]) for k in range(n)) for j in range(m)] for i in range(n)]


def linear(x: Vector, weight: Matrix, bias: Vector | None = None) -> list[float]:
    """W x + b."""
    return [dot(row, x) + (bias[c] if bias else 0.0) for c, row in enumerate(weight)]


def self_attention(
    queries: Sentence,
    keys: Sentence,
    values: Sentence,
    positions: Sequence[int],
    beta: Callable[[int], float],
    scale: float = 1.0,
    window: int | None = None,
) -> Matrix:
    """Guo et al. 2019, Eqs 1 to 4 and 18 to 20, in one head: the words' positions, not their ranks, give distances."""
    rows = []
    for i, query in zip(positions, queries, strict=True):
        seen = [k for k, j in enumerate(positions) if window is None or abs(i - j) <= window]
        s = [scale * dot(query, keys[k]) + beta(i - positions[k]) for k in seen]
        rows.append(combine(softmax(s), [values[k] for k in seen]))
    return rows


def multi_head_self_attention(
    x: Sentence,
    positions: Sequence[int],
    heads: Sequence[tuple[Matrix, Matrix, Matrix]],
    output: Matrix,
    beta: Callable[[int], float],
    window: int | None = None,
) -> Matrix:
    """Each head projects the words with its own W_Q, W_K and W_V; the heads, side by side, are projected with W_O."""
    columns = []
    for w_q, w_k, w_v in heads:
        q, k, v = ([linear(word, w) for word in x] for w in (w_q, w_k, w_v))
        columns.append(self_attention(q, k, v, positions, beta, 1 / math.sqrt(len(w_q)), window))
    return [linear([y for head in columns for y in head[i]], output) for i in range(len(x))]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def convolve(x: Sentence, weight: Sequence[Matrix], bias: Vector) -> Matrix:
    """Chen et al. 2019, Eq 2: h(c) * W + b; weight[n][m][t], zeros beyond both ends, floor((k - 1) / 2) on the left."""
    k = len(weight[0][0])
    rows = []
    for i in range(len(x)):
        row = []
        for n in range(len(weight)):
            total = bias[n]
            for t in range(k):
                position = i + t - (k - 1) // 2
                if 0 <= position < len(x):
                    for m in range(len(x[0])):
                        total += weight[n][m][t] * x[position][m]
            row.append(total)
        rows.append(row)
    return rows


def gated_convolution(
    hidden: Sentence,
    cell: Matrix,
    candidate: tuple[Sequence[Matrix], Vector],
    forget: tuple[Sequence[Matrix], Vector] | None,
    output: tuple[Sequence[Matrix], Vector] | None,
    projection: Matrix | None,
) -> tuple[Matrix, Matrix]:
    """Chen et al. 2019, Eqs 2 and 3, and the ablations of its Table 2 where a gate is None."""
    z = [linear(h, projection) if projection else list(h) for h in hidden]
    g = convolve(hidden, *candidate)
    f = convolve(hidden, *forget) if forget else None
    o = convolve(hidden, *output) if output else None
    new_hidden, new_cell = [], []
    for i in range(len(hidden)):
        c_row, h_row = [], []
        for n in range(len(g[i])):
            c = z[i][n]
            if f:
                keep = sigmoid(f[i][n])
                c = keep * cell[i][n] + (1 - keep) * z[i][n]
            h = sigmoid(o[i][n]) * math.tanh(g[i][n]) + c if o else max(0.0, g[i][n]) + c
            c_row.append(c)
            h_row.append(h)
        new_cell.append(c_row)
        new_hidden.append(h_row)
    return new_hidden, new_cell


def factorization_machine(x: Vector, w0: float, w: Vector, v: Matrix) -> float:
    """Tay et al. 2018, Eqs 6 to 8: every pair i < j by itself."""
    terms = [w0]
    for i in range(len(x)):
        terms.append(w[i] * x[i])
        for j in range(i + 1, len(x)):
            terms.append(dot(v[i], v[j]) * x[i] * x[j])
    return math.fsum(terms)


def alignment_factorization(
    x: Vector, aligned: Vector, concat: tuple, subtract: tuple, multiply: tuple
) -> tuple[float, float, float]:
    """Tay et al. 2018, Eqs 12 to 14: the word first."""
    return (
        factorization_machine([*x, *aligned], *concat),
        factorization_machine([p - q for p, q in zip(x, aligned, strict=True)], *subtract),
        factorization_machine([p * q for p, q in zip(x, aligned, strict=True)], *multiply),
    )


def fnv1a(data: bytes) -> int:
    """Fowler, Noll and Vo's hash 1a of 32 bits."""
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) % 2**32
    return value


def char_ngrams(word: str, n: int) -> list[str]:
    """The n-grams of the word between its boundaries, or all of it where it is no longer than one."""
    padded = "<" + word + ">"
    return [padded[t : t + n] for t in range(len(padded) - n + 1)] if len(padded) > n else [padded]


def char_ngram_embedding(vectors: Sequence[Vector]) -> list[float]:
    """Guo et al. 2019, Eq 6: the largest value of each feature."""
    return [max(v[c] for v in vectors) for c in range(len(vectors[0]))]


def highway(
    x: Vector, transform: tuple[Matrix, Vector], gate: tuple[Matrix, Vector], projection: tuple[Matrix, Vector] | None
) -> list[float]:
    """Tay et al. 2018, Eq 1, with ReLU; where the widths differ, x is projected."""
    h = [max(0.0, v) for v in linear(x, *transform)]
    t = [sigmoid(v) for v in linear(x, *gate)]
    carried = linear(x, *projection) if projection else x
    return [h[c] * t[c] + carried[c] * (1 - t[c]) for c in range(len(h))]


def sinusoidal_encoding(position: int, embed_dim: int) -> list[float]:
    """Guo et al. 2019, Eqs 7 and 8."""
    row = [0.0] * embed_dim
    for k in range(embed_dim // 2):
        row[2 * k] = math.sin(position / 10000 ** (2 * k / embed_dim))
        row[2 * k + 1] = math.cos(position / 10000 ** (2 * k / embed_dim))
    return row


def decomposable_attention(
    a: Sentence,
    b: Sentence,
    f: Callable[[Vector], Vector],
    g: Callable[[Vector], Vector],
    h: Callable[[Vector], Vector],
) -> list[float]:
    """Parikh et al. 2016, Eqs 1 to 5: the unnormalised class scores of one pair."""
    beta, alpha = align(a, b, scores(a, b, f))
    compared_a = [g([*a_i, *beta_i]) for a_i, beta_i in zip(a, beta, strict=True)]
    compared_b = [g([*b_j, *alpha_j]) for b_j, alpha_j in zip(b, alpha, strict=True)]
    v1 = [math.fsum(v[c] for v in compared_a) for c in range(len(compared_a[0]))]
    v2 = [math.fsum(v[c] for v in compared_b) for c in range(len(compared_b[0]))]
    return list(h([*v1, *v2]))
