"""Guo, Zhang, Liu 2019 as slow loops over scalars, written from the paper's text; nothing here imports our code.

A sentence is a list of its real words: padding does not exist here. Weights are nested lists under the names that the
model's ``state_dict`` has for them, a linear layer's as rows of outputs.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oracles import (
    Matrix,
    Sentence,
    Vector,
    combine,
    dot,
    gaussian_bias,
    linear,
    linear_bias,
    multi_head_self_attention,
    sinusoidal_encoding,
    softmax,
    zipf_bias,
)

Weights = Mapping[str, Any]
Beta = Callable[[int], float]


def under(weights: Weights, prefix: str) -> dict[str, Any]:
    """The weights of one part, without its name."""
    return {name[len(prefix) + 1 :]: value for name, value in weights.items() if name.startswith(f"{prefix}.")}


def layer_norm(x: Vector, gain: Vector, bias: Vector) -> list[float]:
    mean = math.fsum(x) / len(x)
    variance = math.fsum((v - mean) ** 2 for v in x) / len(x)
    return [(v - mean) / math.sqrt(variance + 1e-5) * g + b for v, g, b in zip(x, gain, bias, strict=True)]


def add_and_norm(x: Sentence, added: Sentence, norm: Weights) -> Matrix:
    """y = LayerNorm(x + Sublayer(x)), word by word."""
    return [
        layer_norm([p + q for p, q in zip(word, more, strict=True)], norm["weight"], norm["bias"])
        for word, more in zip(x, added, strict=True)
    ]


def two_layers(x: Vector, weights: Weights) -> list[float]:
    """Eqs 10 to 14, 16, 17: Dense(ReLU(Dense(x)))."""
    hidden = [max(0.0, v) for v in linear(x, weights["0.0.weight"], weights["0.0.bias"])]
    return linear(hidden, weights["1.weight"], weights["1.bias"])


def embedding(words: Sentence, projection: Matrix) -> Matrix:
    """Eqs 7 to 9, for words that are [x^(w) : x^(c)] already; the first word stands at position 1."""
    x = []
    for i, word in enumerate(words, start=1):
        position = sinusoidal_encoding(i, len(projection))
        x.append([a + b for a, b in zip(position, linear(word, projection), strict=True)])
    return x


def split(rows: Matrix, heads: int) -> list[Matrix]:
    """A projection's rows, head by head."""
    size = len(rows) // heads
    return [rows[k * size : (k + 1) * size] for k in range(heads)]


def self_attention(x: Sentence, weights: Weights, heads: int, beta: Beta) -> Matrix:
    """Multi-head Eq 4, or any other bias: W_Q, W_K and W_V one below the other."""
    d = len(x[0])
    q, k, v = (split(weights["in_proj.weight"][s * d : (s + 1) * d], heads) for s in range(3))
    triples = list(zip(q, k, v, strict=True))
    return multi_head_self_attention(x, range(len(x)), triples, weights["out_proj.weight"], beta)


def inter_attention_weights(x: Sentence, other: Sentence, weights: Weights, heads: int) -> list[Matrix]:
    """Comp(p_i, h_j) = Softmax_j(p_i . h_j) in each head."""
    tables = []
    for w_q, w_k in zip(split(weights["query.weight"], heads), split(weights["key.weight"], heads), strict=True):
        keys = [linear(word, w_k) for word in other]
        queries = [linear(word, w_q) for word in x]
        tables.append([softmax([dot(q, k) / math.sqrt(len(w_q)) for k in keys]) for q in queries])
    return tables


def inter_attention(x: Sentence, other: Sentence, weights: Weights, heads: int) -> Matrix:
    """p~_i = sum_j Comp(p_i, h_j) h_j in each head; the heads, side by side, are projected with W_O."""
    tables = inter_attention_weights(x, other, weights, heads)
    rows = []
    for i in range(len(x)):
        row: list[float] = []
        for table, w_v in zip(tables, split(weights["value.weight"], heads), strict=True):
            row += combine(table[i], [linear(word, w_v) for word in other])
        rows.append(linear(row, weights["output.weight"]))
    return rows


def separable_convolution(x: Sentence, weights: Weights) -> Matrix:
    """Each feature has a window of its own, 0 beyond the ends; then a rectified layer for each word."""
    rows = []
    for i in range(len(x)):
        row = []
        for c in range(len(x[0])):
            window = weights["depthwise.weight"][c][0]
            total = 0.0
            for t, w in enumerate(window):
                j = i + t - len(window) // 2
                total += w * x[j][c] if 0 <= j < len(x) else 0.0
            row.append(total)
        rows.append([max(0.0, v) for v in linear(row, weights["pointwise.0.weight"], weights["pointwise.0.bias"])])
    return rows


def local(x: Sentence, weights: Weights, heads: int) -> Matrix:
    """The self-attention sub-layer in any variant of Table 1; the parameters that are there tell which."""
    layers = [under(weights, "0"), under(weights, "1")]
    if "sublayer.depthwise.weight" in layers[0]:  # (v)
        convolution = layers.pop(0)
        x = add_and_norm(x, separable_convolution(x, under(convolution, "sublayer")), under(convolution, "norm"))
    attention = under(layers[0], "sublayer")
    attended = self_attention(x, attention, heads, attention["beta"])
    return add_and_norm(x, attended, under(layers[0], "norm"))


def encoding_block(x: Sentence, weights: Weights, heads: int) -> Matrix:
    x = local(x, under(weights, "self_attention"), heads)
    transformed = [two_layers(word, under(weights, "feedforward.sublayer")) for word in x]
    return add_and_norm(x, transformed, under(weights, "feedforward.norm"))


def interaction_block(p: Sentence, h: Sentence, weights: Weights, heads: int) -> tuple[Matrix, Matrix]:
    """Both sentences are attended to as they come out of their self-attention."""
    p, h = (local(x, under(weights, "self_attention"), heads) for x in (p, h))
    inter, norm = under(weights, "inter_attention.sublayer"), under(weights, "inter_attention.norm")
    p_seen, h_seen = inter_attention(p, h, inter, heads), inter_attention(h, p, inter, heads)
    results = []
    for x, seen in ((p, p_seen), (h, h_seen)):
        y = add_and_norm(x, seen, norm)
        transformed = [two_layers(word, under(weights, "feedforward.sublayer")) for word in y]
        results.append(add_and_norm(y, transformed, under(weights, "feedforward.norm")))
    return results[0], results[1]


def aggregate(x: Sentence, aligned: Sentence, weights: Weights) -> list[float]:
    """Eqs 13 to 15."""
    compared = [two_layers([*word, *other], under(weights, "compare")) for word, other in zip(x, aligned, strict=True)]
    return [math.fsum(v[c] for v in compared) / math.sqrt(len(x)) for c in range(len(compared[0]))]


def gaussian_transformer(
    premise: Sentence, hypothesis: Sentence, weights: Weights, blocks: tuple[int, int], heads: int
) -> list[float]:
    """Figure 4: the unnormalised class scores of a pair of sentences of words [x^(w) : x^(c)]."""
    encoded = []
    for words in (premise, hypothesis):
        x = embedding(words, weights["projection.weight"])
        for k in range(blocks[0]):
            x = encoding_block(x, under(weights, f"encoding.{k}"), heads)
        encoded.append(x)
    p, h = encoded
    for k in range(blocks[1]):
        p, h = interaction_block(p, h, under(weights, f"interaction.{k}"), heads)
    p_bar = aggregate(encoded[0], p, under(weights, "aggregation"))
    h_bar = aggregate(encoded[1], h, under(weights, "aggregation"))
    return two_layers([*p_bar, *h_bar], under(weights, "prediction"))


def bias_of(locality: str, scalars: Sequence[float]) -> Beta:
    """Table 1's biases: none, Eq 18, Eq 19 (signed, one bucket beyond the last distance), Eq 20, Eq 3, Eq 4."""

    def bucket(distance: int) -> float:
        largest = len(scalars) // 2 - 1
        return scalars[distance + largest] if abs(distance) <= largest else scalars[-1]

    biases: dict[str, Beta] = {
        "none": lambda _: 0.0,
        "zipf": zipf_bias,
        "trainable": bucket,
        "linear": lambda distance: linear_bias(scalars[0], distance),
        "convolution": lambda _: 0.0,
        "gaussian": lambda distance: gaussian_bias(scalars[0], 0.0, distance),
        "gaussian-variant": lambda distance: gaussian_bias(scalars[0], scalars[1], distance),
    }
    return biases[locality]
