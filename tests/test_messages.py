"""Every refusal in full: the argument's name, what was expected and what came."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nlilayers import (
    AlignmentFactorization,
    CharNgramEmbedding,
    DecomposableAlign,
    DistancePrior,
    FactorizationMachine,
    GatedConvBlock,
    GatedConvEncoder,
    GaussianPrior,
    GaussianSelfAttention,
    HeadPriors,
    Highway,
    IntraAlign,
    LinearPrior,
    SinusoidalPositionalEncoding,
    ZipfPrior,
    functional,
    masking,
)

X, WIDE, FLAT, WHOLE = torch.ones(2, 3, 4), torch.ones(2, 3, 5), torch.ones(2, 4), torch.ones(2, 3, 4, dtype=torch.long)
MASK, SHORT = torch.ones(2, 3, dtype=torch.bool), torch.ones(2, 2, dtype=torch.bool)
HEADS = X[:, None]
SQUARE, CAUSAL = torch.ones(1, 1, 3, 3), torch.ones(3, 3, dtype=torch.bool).tril()
ALIGN, BLOCK, ATTENTION = DecomposableAlign(), GatedConvBlock(4, 5), GaussianSelfAttention(4, 2)
SEQUENCE = "must be floating point of shape (batch, length, {}), got torch.float32 of shape {}"
A_MASK = "must be torch.bool of shape (2, 3) with True for real tokens, got torch.bool of shape (2, 2)"

REFUSED: dict[Callable[[], object], str] = {
    lambda: ALIGN(FLAT, X): "premise " + SEQUENCE.format("features", "(2, 4)"),
    lambda: ALIGN(X, FLAT): "hypothesis " + SEQUENCE.format("features", "(2, 4)"),
    lambda: ALIGN(X, X, SHORT): f"premise_mask {A_MASK}",
    lambda: ALIGN(X, X, MASK, SHORT): f"hypothesis_mask {A_MASK}",
    lambda: ALIGN(X, WIDE): (
        "premise and hypothesis must have the same batch and features, got (2, 3, 4) and (2, 3, 5)"
    ),
    lambda: ALIGN.alignment_weights(X, X[:1]): (
        "premise and hypothesis must have the same batch and features, got (2, 3, 4) and (1, 3, 4)"
    ),
    lambda: IntraAlign()(FLAT): "x " + SEQUENCE.format("features", "(2, 4)"),
    lambda: IntraAlign()(X, SHORT): f"mask {A_MASK}",
    lambda: GaussianSelfAttention(4, 3): (
        "embed_dim must be a positive multiple of num_heads, got embed_dim=4, num_heads=3"
    ),
    lambda: GaussianSelfAttention(4, 2, dropout=1.5): "dropout must be a probability, got 1.5",
    lambda: GaussianSelfAttention(4, 2, window="wide"): (
        "window must be None, 'auto' or an integer of at least 0, got 'wide'"
    ),
    lambda: GaussianSelfAttention(4, 2, tolerance=1.0): "tolerance must lie between 0 and 1, got 1.0",
    lambda: ATTENTION(X[None]): "x " + SEQUENCE.format(4, "(1, 2, 3, 4)"),
    lambda: Highway(4)(X.sum()): "x must be floating point of shape (..., 4), got torch.float32 of shape ()",
    lambda: ATTENTION(WIDE): "x " + SEQUENCE.format(4, "(2, 3, 5)"),
    lambda: ATTENTION(X, SHORT): f"mask {A_MASK}",
    lambda: GatedConvBlock(0, 5): "in_features must be at least 1, got 0",
    lambda: GatedConvBlock(4, 0): "out_features must be at least 1, got 0",
    lambda: GatedConvBlock(4, 5, kernel_size=0): "kernel_size must be at least 1, got 0",
    lambda: BLOCK(WIDE): "hidden " + SEQUENCE.format(4, "(2, 3, 5)"),
    lambda: BLOCK(X, X): "cell " + SEQUENCE.format(5, "(2, 3, 4)"),
    lambda: BLOCK(X, WIDE[:, :2]): "cell and hidden must have the same batch and length, got (2, 2, 5) and (2, 3, 4)",
    lambda: BLOCK(X, None, SHORT): f"mask {A_MASK}",
    lambda: GatedConvEncoder(4, 5, 0): "num_layers must be at least 1, got 0",
    lambda: GatedConvEncoder(4, 5, 1, dropout=-0.5): "dropout must be a probability, got -0.5",
    lambda: GatedConvEncoder(4, 5, 1)(WIDE): "x " + SEQUENCE.format(4, "(2, 3, 5)"),
    lambda: FactorizationMachine(4, 0): "num_factors must be at least 1, got 0",
    lambda: FactorizationMachine(0, 4): "in_features must be at least 1, got 0",
    lambda: FactorizationMachine(4, 3)(WHOLE): (
        "x must be floating point of shape (..., 4), got torch.int64 of shape (2, 3, 4)"
    ),
    lambda: AlignmentFactorization(0, 3): "embed_dim must be at least 1, got 0",
    lambda: AlignmentFactorization(4, 3)(WIDE, X): (
        "x must be floating point of shape (..., 4), got torch.float32 of shape (2, 3, 5)"
    ),
    lambda: AlignmentFactorization(4, 3)(X, WIDE): (
        "aligned must be floating point of shape (..., 4), got torch.float32 of shape (2, 3, 5)"
    ),
    lambda: AlignmentFactorization(4, 3)(X, FLAT): "x and aligned must have the same shape, got (2, 3, 4) and (2, 4)",
    lambda: CharNgramEmbedding(0): "embedding_dim must be at least 1, got 0",
    lambda: CharNgramEmbedding(4, ngram_size=0): "ngram_size must be at least 1, got 0",
    lambda: CharNgramEmbedding(4, num_embeddings=0): "num_embeddings must be at least 1, got 0",
    lambda: CharNgramEmbedding(4, num_embeddings=9)(X): (
        "ids must be int64 or int32 of shape (..., k), got torch.float32 of shape (2, 3, 4)"
    ),
    lambda: SinusoidalPositionalEncoding(3): "embed_dim must be even and at least 2, got 3",
    lambda: SinusoidalPositionalEncoding(4)(WIDE): "x " + SEQUENCE.format(4, "(2, 3, 5)"),
    lambda: Highway(0): "in_features must be at least 1, got 0",
    lambda: Highway(4, 0): "out_features must be at least 1, got 0",
    lambda: Highway(4, num_layers=0): "num_layers must be at least 1, got 0",
    lambda: Highway(4)(WIDE): "x must be floating point of shape (..., 4), got torch.float32 of shape (2, 3, 5)",
    lambda: GaussianPrior(w=0.0): "w must be a finite number above 0 in torch.float32, got 0.0",
    lambda: GaussianPrior(b=0.5): "b must be None or a finite number of at most 0 in torch.float32, got 0.5",
    lambda: IntraAlign(FactorizationMachine(4, 2))(X): (
        "feedforward must give (2, 3, features) for words (2, 3), got shape (2, 3)"
    ),
    lambda: DecomposableAlign(lambda x: x.mean(1, keepdim=True))(X, X): (
        "feedforward must give (2, 3, features) for words (2, 3), got shape (2, 1, 4)"
    ),
    lambda: DecomposableAlign(lambda x: x.transpose(0, 1))(X, X): (
        "feedforward must give (2, 3, features) for words (2, 3), got shape (3, 2, 4)"
    ),
    lambda: LinearPrior(0.0): "w must be a finite number below 0 in torch.float32, got 0.0",
    lambda: DistancePrior(-1): "max_distance must be at least 0, got -1",
    lambda: SinusoidalPositionalEncoding(4, layout="half"): "layout must be 'interleaved' or 'halves', got 'half'",
    lambda: functional.sinusoidal_encoding(2, 4, layout="half"): (
        "layout must be 'interleaved' or 'halves', got 'half'"
    ),
    lambda: functional.smallest_window(torch.zeros(5), 1.0, 0.0): "tolerance must lie between 0 and 1, got 0.0",
    lambda: functional.smallest_window(torch.zeros(5), 1.0, 1.0): "tolerance must lie between 0 and 1, got 1.0",
    lambda: DistancePrior(far_buckets=3): "far_buckets must be 1 or 2, got 3",
    lambda: DistancePrior(signed=False, far_buckets=2): "far_buckets must be 1 without signs, got 2",
    lambda: HeadPriors([]): "priors must have at least one prior, got none",
    lambda: HeadPriors(iter(())): "priors must have at least one prior, got none",
    lambda: GaussianSelfAttention(4, 2, prior=HeadPriors([LinearPrior()])): (
        "prior must have one prior for each of the 2 heads, got 1"
    ),
    lambda: IntraAlign(prior=HeadPriors([LinearPrior()]))(
        X
    ): "prior must give a log-bias of shape (3, 3), got shape (1, 3, 3)",
    lambda: functional.self_attention_weights(SQUARE, CAUSAL): (
        "log_bias must be real numbers to add to scores (-inf hides a word), and no mask, got torch.bool"
    ),
    lambda: functional.intra_alignment_weights(SQUARE[0], CAUSAL.to(torch.complex64)): (
        "log_bias must be real numbers to add to scores (-inf hides a word), and no mask, got torch.complex64"
    ),
    lambda: functional.windowed_scores(SQUARE, SQUARE, torch.ones(1, 3, dtype=torch.bool)): (
        "log_bias must be real numbers to add to scores (-inf hides a word), and no mask, got torch.bool"
    ),
    lambda: IntraAlign(prior=Causal())(X): (
        "what prior gives must be real numbers to add to scores (-inf hides a word), and no mask, got torch.bool"
    ),
    lambda: GaussianSelfAttention(4, 2, prior=Causal())(X): (
        "what prior gives must be real numbers to add to scores (-inf hides a word), and no mask, got torch.bool"
    ),
    lambda: HeadPriors([Causal()])(3): (
        "what each prior gives must be real numbers to add to scores (-inf hides a word), and no mask, got torch.bool"
    ),
    lambda: functional.self_attention_weights(SQUARE.int(), SQUARE): (
        "scores must be floating point of 4 dimensions, got torch.int32 of shape (1, 1, 3, 3)"
    ),
    lambda: functional.alignment_weights(X.int()): (
        "scores must be floating point of 3 dimensions, got torch.int32 of shape (2, 3, 4)"
    ),
    lambda: functional.alignment_weights(X[0]): (
        "scores must be floating point of 3 dimensions, got torch.float32 of shape (3, 4)"
    ),
    lambda: functional.self_attention_weights(X): (
        "scores must be floating point of 4 dimensions, got torch.float32 of shape (2, 3, 4)"
    ),
    lambda: functional.intra_alignment_weights(SQUARE[0].int()): (
        "scores must be floating point of 3 dimensions, got torch.int32 of shape (1, 3, 3)"
    ),
    lambda: functional.distance_bias(torch.zeros(1), torch.arange(2)): (
        "bias must have at least 2 scalars, of distance 0 and of all that are far, got 1"
    ),
    lambda: functional.sinusoidal_encoding(-1, 2): "length must be at least 0, got -1",
    lambda: GaussianSelfAttention(4, 2, scale=math.nan): "scale must be a finite number, got nan",
    lambda: GaussianSelfAttention(4, 2, scale=-math.inf): "scale must be a finite number, got -inf",
    lambda: AlignmentFactorization(4, 0): "num_factors must be at least 1, got 0",
    lambda: functional.self_attention_weights(torch.zeros(1, 1, 3, 3), window=-1): "window must be at least 0, got -1",
    lambda: functional.largest_discarded_mass(torch.zeros(5), -1, 1.0): "window must be at least 0, got -1",
    lambda: masking.masked_softmax(X, None, dim=3): "dim must be one of the 3 dimensions of the scores, got 3",
    lambda: masking.masked_softmax(X, MASK, dim=-4): "dim must be one of the 3 dimensions of the scores, got -4",
    lambda: masking.lengths_to_mask(torch.ones(2)): (
        "lengths must be integers of shape (batch,), got torch.float32 of shape (2,)"
    ),
    lambda: masking.lengths_to_mask(torch.tensor([1, 3]), 2): (
        "lengths must lie between 0 and max_length=2, got values from 1 to 3"
    ),
    lambda: masking.lengths_to_mask(torch.tensor([0]), -1): "max_length must be at least 0, got -1",
    lambda: functional.char_ngrams(["a"], 0): "ngram_size must be at least 1, got 0",
    lambda: masking.lengths_to_mask(torch.tensor([-2, -1])): "lengths must be at least 0, got values from -2 to -1",
    lambda: GaussianPrior()(-1): "query_length must be at least 0, got -1",
    lambda: functional.token_distances(-1): "query_length must be at least 0, got -1",
    lambda: functional.distance_buckets(torch.arange(3), -1): "max_distance must be at least 0, got -1",
    lambda: functional.windowed_scores(HEADS, HEADS, torch.zeros(2, 6), SHORT): f"mask {A_MASK}",
    lambda: functional.windowed_scores(HEADS, HEADS, torch.zeros(2, 6), MASK[:1]): (
        "mask must be torch.bool of shape (2, 3) with True for real tokens, got torch.bool of shape (1, 3)"
    ),
    lambda: functional.score_bound(HEADS[:, :, :1], HEADS, key_mask=SHORT): f"key_mask {A_MASK}",
    lambda: functional.score_range(HEADS[:, :, :1], HEADS, key_mask=SHORT): f"key_mask {A_MASK}",
    lambda: functional.score_range(HEADS, HEADS[:, :, :1], query_mask=SHORT): f"query_mask {A_MASK}",
    lambda: ZipfPrior()(2, -3): "key_length must be at least 0, got -3",
    lambda: CharNgramEmbedding(2, seed=2**64): ("seed must lie between -2**63 and 2**64 - 1, got 18446744073709551616"),
    lambda: GaussianSelfAttention(4, 2, window=np.array([3, 4])): (
        "window must be None, 'auto' or an integer of at least 0, got array([3, 4])"
    ),
    lambda: masking.zero_padding(FLAT, None): "x " + SEQUENCE.format("features", "(2, 4)"),
    lambda: masking.zero_padding(X, SHORT): f"mask {A_MASK}",
    lambda: masking.pair_mask(MASK.float(), MASK): (
        "query_mask must be torch.bool of shape (batch, length) with True for real tokens, "
        "got torch.float32 of shape (2, 3)"
    ),
    lambda: masking.pair_mask(None, MASK[0]): (
        "key_mask must be torch.bool of shape (batch, length) with True for real tokens, got torch.bool of shape (3,)"
    ),
    lambda: masking.pair_mask(MASK, MASK[:1]): (
        "query_mask and key_mask must have the same batch, got (2, 3) and (1, 3)"
    ),
    lambda: masking.masked_max(FLAT, None): "x " + SEQUENCE.format("features", "(2, 4)"),
    lambda: masking.masked_max(X, SHORT): f"mask {A_MASK}",
    lambda: masking.masked_softmax(WHOLE, None): "scores must be floating point, got torch.int64 of shape (2, 3, 4)",
    lambda: masking.masked_softmax(X, MASK, dim=2): (
        "mask must be torch.bool with True for real tokens, of a shape that broadcasts to (2, 3, 4) with as many "
        "dimensions, or (batch, length) for the tokens of dimension 2, got torch.bool of shape (2, 3)"
    ),
}


@pytest.mark.parametrize(("call", "text"), REFUSED.items(), ids=REFUSED.values())
def test_a_refusal_says_what_came(call: Callable[[], object], text: str) -> None:
    with pytest.raises(ValueError) as refused:
        call()
    assert str(refused.value) == text


def nested(layout: torch.layout) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(2, 4)], layout=layout)


class Causal(nn.Module):
    """A prior of one's own that is taken for a mask."""

    def forward(self, query_length: int, key_length: int) -> torch.Tensor:
        return torch.ones(query_length, key_length, dtype=torch.bool).tril()


class Number(nn.Module):
    """A prior of one's own that gives no tensor."""

    of_distance = True

    def forward(self, query_length: int, key_length: int) -> float:
        return 0.0


NGRAMS = CharNgramEmbedding(4, num_embeddings=9)
LIST = [[1.0]]
OF_ANOTHER_TYPE: dict[Callable[[], object], str] = {
    lambda: NGRAMS.encode("word"): "words must be a sequence of strings, got the string 'word'",
    lambda: NGRAMS.encode(word for word in ["a"]): "words must be a sequence of strings, got a generator",
    lambda: NGRAMS.table({"a"}): "words must be a sequence of strings, got a set",
    lambda: functional.char_ngrams("word", 3): "words must be a sequence of strings, got the string 'word'",
    lambda: functional.code_points("word"): "strings must be a sequence of strings, got the string 'word'",
    lambda: functional.code_points([b"word"]): "strings must be a sequence of strings, got one with b'word'",
    lambda: NGRAMS([[1]]): "ids must be a tensor, got a list",
    lambda: DecomposableAlign(nn.LSTM(4, 4, batch_first=True))(X, X): "feedforward must give a tensor, got a tuple",
    lambda: GaussianSelfAttention(4, 2, dropout=True): "dropout must be a number, got True",
    lambda: GaussianPrior(b=False): "b must be a number, got False",
    lambda: ALIGN(LIST, X): "premise must be a tensor, got a list",
    lambda: ATTENTION(X, [[True]]): "mask must be a tensor, got a list",
    lambda: Highway(4)(LIST): "x must be a tensor, got a list",
    lambda: FactorizationMachine(4, 3)(LIST): "x must be a tensor, got a list",
    lambda: masking.lengths_to_mask([1, 2]): "lengths must be a tensor, got a list",
    lambda: masking.pair_mask(MASK, [[True]]): "key_mask must be a tensor, got a list",
    lambda: masking.masked_softmax(LIST, None): "scores must be a tensor, got a list",
    lambda: masking.masked_softmax(X, [[True]]): "mask must be a tensor, got a list",
    lambda: GaussianSelfAttention(4, 2, prior="gaussian"): (
        "prior must be a module that maps two lengths to a log-bias, got 'gaussian'"
    ),
    lambda: GaussianSelfAttention(4, 2, prior=GaussianPrior): (
        "prior must be a module that maps two lengths to a log-bias, got <class 'nlilayers._priors.GaussianPrior'>"
    ),
    lambda: IntraAlign(prior=3): "prior must be a module that maps two lengths to a log-bias, got 3",
    lambda: DecomposableAlign(3): "feedforward must be a module or a function of a tensor, got 3",
    lambda: IntraAlign("relu"): "feedforward must be a module or a function of a tensor, got 'relu'",
    lambda: Highway(4, activation="relu"): "activation must be a module or a function of a tensor, got 'relu'",
    lambda: Highway(4, activation=torch.nn.ReLU): (
        "activation must be a module or a function of a tensor, got <class 'torch.nn.modules.activation.ReLU'>"
    ),
    lambda: Highway(4, 3, projection_activation=2): (
        "projection_activation must be a module or a function of a tensor, got 2"
    ),
    lambda: Highway(4.0): "in_features must be an integer, got 4.0",
    lambda: FactorizationMachine(4, 3.5): "num_factors must be an integer, got 3.5",
    lambda: GatedConvEncoder("four", 5, 1): "in_features must be an integer, got 'four'",
    lambda: CharNgramEmbedding(None): "embedding_dim must be an integer, got None",
    lambda: GaussianSelfAttention(4, 2.0): "num_heads must be an integer, got 2.0",
    lambda: GaussianSelfAttention(4.0, 2): "embed_dim must be an integer, got 4.0",
    lambda: SinusoidalPositionalEncoding(4.0): "embed_dim must be an integer, got 4.0",
    lambda: SinusoidalPositionalEncoding(4, start="0"): "start must be an integer, got '0'",
    lambda: functional.sinusoidal_encoding(2, 4.0): "embed_dim must be an integer, got 4.0",
    lambda: DistancePrior(2.5): "max_distance must be an integer, got 2.5",
    lambda: DistancePrior(far_buckets=1.0): "far_buckets must be an integer, got 1.0",
    lambda: GatedConvBlock(4, 4, kernel_size=True): "kernel_size must be an integer, got True",
    lambda: DistancePrior(False): "max_distance must be an integer, got False",
    lambda: FactorizationMachine(torch.tensor(3.7), 2): "in_features must be an integer, got tensor(3.7000)",
    lambda: FactorizationMachine(torch.tensor([3]), 2): "in_features must be an integer, got tensor([3])",
    lambda: masking.lengths_to_mask(torch.tensor([1]), torch.tensor(2.7)): (
        "max_length must be an integer, got tensor(2.7000)"
    ),
    lambda: masking.lengths_to_mask(torch.tensor([1]), torch.tensor(True)): (
        "max_length must be an integer, got tensor(True)"
    ),
    lambda: GaussianSelfAttention(4, 2, dropout="0.1"): "dropout must be a number, got '0.1'",
    lambda: GaussianSelfAttention(4, 2, tolerance=None): "tolerance must be a number, got None",
    lambda: GaussianSelfAttention(4, 2, scale="1"): "scale must be a number, got '1'",
    lambda: CharNgramEmbedding(3, seed=0.5): "seed must be an integer, got 0.5",
    lambda: GaussianPrior("0.1"): "w must be a number, got '0.1'",
    lambda: GaussianPrior(b="0"): "b must be a number, got '0'",
    lambda: LinearPrior(None): "w must be a number, got None",
    lambda: AlignmentFactorization(4, "a"): "num_factors must be an integer, got 'a'",
    lambda: GatedConvBlock(4, 4, output_gate=None): "output_gate must be True or False, got None",
    lambda: GatedConvEncoder(4, 4, 1, forget_gate=2): "forget_gate must be True or False, got 2",
    lambda: DistancePrior(3, signed="no"): "signed must be True or False, got 'no'",
    lambda: GaussianSelfAttention(4, 2, bias="no"): "bias must be True or False, got 'no'",
    lambda: GaussianPrior()(2.5): "query_length must be an integer, got 2.5",
    lambda: functional.token_distances(2, "3"): "key_length must be an integer, got '3'",
    lambda: functional.distance_buckets(torch.arange(3), 1.0): "max_distance must be an integer, got 1.0",
    lambda: functional.sinusoidal_encoding(2.5, 2): "length must be an integer, got 2.5",
    lambda: functional.sinusoidal_encoding(2, 2, True): "start must be an integer, got True",
    lambda: functional.self_attention_weights(SQUARE, [0.0]): "log_bias must be a tensor, got a list",
    lambda: functional.alignment_weights([[0.0]]): "scores must be a tensor, got a list",
    lambda: functional.intra_alignment_weights([[0.0]]): "scores must be a tensor, got a list",
    lambda: IntraAlign(prior=Number())(X): "prior must give a tensor, got a float",
    lambda: GaussianSelfAttention(4, 2, prior=Number())(X): "prior must give a tensor, got a float",
    lambda: GaussianSelfAttention(4, 2, prior=Number(), window=6)(torch.ones(1, 400, 4)): (
        "prior must give a tensor, got a float"
    ),
    lambda: HeadPriors([Number()])(3): "each prior must give a tensor, got a float",
    lambda: masking.lengths_to_mask(torch.tensor([1, 2]), 2.5): "max_length must be an integer, got 2.5",
    lambda: masking.masked_softmax(X, None, dim="m"): "dim must be an integer, got 'm'",
    lambda: masking.masked_mean(nested(torch.jagged), None): (
        "x must be a padded tensor with a mask beside it, got a nested one"
    ),
    lambda: ALIGN(nested(torch.strided), X): (
        "premise must be a padded tensor with a mask beside it, got a nested one"
    ),
    lambda: functional.self_attention_weights(torch.zeros(1, 1, 3, 3), window=1.5): (
        "window must be an integer, got 1.5"
    ),
}


@pytest.mark.parametrize(("call", "text"), OF_ANOTHER_TYPE.items(), ids=OF_ANOTHER_TYPE.values())
def test_what_is_of_another_type_is_refused_by_name(call: Callable[[], object], text: str) -> None:
    with pytest.raises(TypeError) as refused:
        call()
    assert str(refused.value) == text


def test_an_integer_that_no_float_holds_is_no_scale() -> None:
    with pytest.raises(ValueError, match="scale must be a finite number, got 1000"):
        GaussianSelfAttention(4, 2, scale=10**400)


def test_sizes_of_numpy_become_those_of_python() -> None:
    """torch.compile would take a comparison with one of numpy's for one that depends on data."""
    n = np.int64
    layers = [
        Highway(n(4), n(3), n(2)),
        FactorizationMachine(n(4), n(2)),
        AlignmentFactorization(n(4), n(2)),
        GatedConvBlock(n(4), n(5), kernel_size=n(3), forget_gate=np.True_, output_gate=np.False_),
        GatedConvEncoder(n(4), n(5), n(2), kernel_size=n(3), dropout=np.float32(0.5)),
        GaussianSelfAttention(n(4), n(2), dropout=np.float32(0.5), tolerance=np.float64(0.1)),
        SinusoidalPositionalEncoding(n(4)),
        CharNgramEmbedding(n(4), ngram_size=n(3), num_embeddings=n(9)),
        DistancePrior(n(3), signed=np.True_, far_buckets=n(1)),
        GaussianPrior(np.float32(0.5), np.float32(-0.5)),
        LinearPrior(np.float32(-0.5)),
    ]
    for layer in layers:
        ours = (part for part in layer.modules() if not isinstance(part, torch.nn.Linear))
        for part in ours:
            for name, value in vars(part).items():
                assert not isinstance(value, np.generic), (type(layer).__name__, name)


@pytest.mark.filterwarnings("error:overflow")
def test_sizes_that_numpy_holds_in_a_byte_do_not_overflow() -> None:
    """Sums and products of them are Python's, and so are no smaller than they should be."""
    b = np.uint8
    pairs = [
        (Highway(b(130), b(250), b(2)), Highway(130, 250, 2)),
        (FactorizationMachine(b(200), b(2)), FactorizationMachine(200, 2)),
        (AlignmentFactorization(b(200), b(2)), AlignmentFactorization(200, 2)),
        (GatedConvBlock(b(100), b(100)), GatedConvBlock(100, 100)),
        (GatedConvEncoder(b(100), b(101), b(2)), GatedConvEncoder(100, 101, 2)),
        (GaussianSelfAttention(b(200), b(2)), GaussianSelfAttention(200, 2)),
        (SinusoidalPositionalEncoding(b(200), start=b(250)), SinusoidalPositionalEncoding(200, start=250)),
        (CharNgramEmbedding(b(4), num_embeddings=b(255)), CharNgramEmbedding(4, num_embeddings=255)),
        (DistancePrior(b(255)), DistancePrior(255)),
        (DistancePrior(b(255), signed=False), DistancePrior(255, signed=False)),
    ]
    for ours, wanted in pairs:
        shapes = ({name: x.shape for name, x in layer.state_dict().items()} for layer in (ours, wanted))
        assert next(shapes) == next(shapes), type(wanted).__name__
        assert repr(ours) == repr(wanted)


@pytest.mark.filterwarnings("error:overflow")
@pytest.mark.parametrize("of", [np.uint8, lambda size: torch.tensor(size, dtype=torch.uint8)], ids=["numpy", "torch"])
def test_lengths_and_distances_in_a_byte_do_not_overflow(of: Callable[[int], Any]) -> None:
    far = torch.tensor([-300, 150, 300])
    assert functional.distance_buckets(far, of(200)).tolist() == [401, 350, 401]
    assert functional.distance_buckets(far, of(200), far_buckets=2).tolist() == [402, 350, 401]
    assert functional.distance_buckets(far, of(255), signed=False).tolist() == [256, 150, 256]
    for prior in (GaussianPrior(), ZipfPrior(), LinearPrior(), DistancePrior(), HeadPriors([ZipfPrior()])):
        assert torch.equal(prior(of(200)), prior(200))
        assert torch.equal(prior(of(200), of(100)), prior(200, 100))
    ours, wanted = (functional.char_ngrams(["a" * 300, "b"], size) for size in (of(5), 5))
    assert all(map(np.array_equal, ours, wanted))


def test_what_lies_on_the_edge_is_taken() -> None:
    assert GatedConvEncoder(1, 1, 1, kernel_size=1, dropout=1.0)(X[..., :1]).shape == (2, 3, 1)
    assert GaussianSelfAttention(1, 1, window=0, dropout=1.0)(X[..., :1]).shape == (2, 3, 1)
    assert type(GaussianSelfAttention(1, 1, window=np.int64(1)).window) is int
    assert NGRAMS.encode(np.array(["a"])).shape == (1, 1)
    assert AlignmentFactorization(1, 1)(X[..., :1], X[..., :1]).shape == (2, 3, 3)
    assert CharNgramEmbedding(1, ngram_size=1, num_embeddings=1).table(["a"]).shape == (1, 1)
    assert SinusoidalPositionalEncoding(2)(X[..., :2]).shape == (2, 3, 2)
    assert Highway(1)(X[..., :1]).shape == (2, 3, 1)
    assert Highway(np.int64(1), activation=torch.nn.ReLU())(X[..., :1]).shape == (2, 3, 1)
    assert GaussianPrior(np.float32(0.5), np.float64(-1))(2).shape == (2, 2)
    assert GaussianSelfAttention(np.int64(4), np.int32(2), dropout=np.float32(0.5))(X).shape == X.shape
    assert torch.equal(DecomposableAlign(torch.relu)(X, X)[0], ALIGN(X, X)[0])
    assert DistancePrior(2, signed=np.bool_(False))(2).shape == (2, 2)
    assert masking.masked_softmax(X, None, dim=-3).shape == masking.masked_softmax(X, None, dim=2).shape == X.shape
    assert DistancePrior(0)(2).shape == (2, 2) and GaussianPrior(b=0.0).b.item() == 0
    assert masking.lengths_to_mask(torch.tensor([0, 2]), 2).tolist() == [[False, False], [True, True]]
