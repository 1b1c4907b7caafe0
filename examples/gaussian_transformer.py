r"""Gaussian Transformer: Guo, Zhang, Liu 2019, https://doi.org/10.1609/aaai.v33i01.33016489.

Commands::

    python examples/gaussian_transformer.py train                      # the generated corpus
    python examples/gaussian_transformer.py train --encoder FOLDER     # contextual vectors, as the paper's ELMo
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from einops import rearrange
from torch import Tensor, nn

import nlilayers
from nli_common.checks import require_at_least, require_choices, require_dropout
from nli_common.commands import main
from nli_common.contextual import ContextualVectors, LayerInsertion, LayerMix
from nli_common.data import Sentence, require_words_first
from nli_common.feedforward import feedforward, start_from_glorot
from nli_common.lexicon import Lexicon
from nli_common.recipe import Recipe
from nli_common.script import NumClasses, Script
from nli_common.transformer import FlatPrior, Residual, SeparableConvolution
from nlilayers.functional import dot_scores, weighted_sum
from nlilayers.masking import masked_max, masked_mean, masked_softmax, zero_padding
from paper_tables.gaussian_transformer import TABLES

Locality = Literal["none", "zipf", "trainable", "linear", "convolution", "gaussian", "gaussian-variant"]
PRIORS: Mapping[Locality, Callable[[], nn.Module]] = {
    "none": FlatPrior,
    "zipf": nlilayers.ZipfPrior,  # Eq 18
    "trainable": nlilayers.DistancePrior,  # Eq 19
    "linear": nlilayers.LinearPrior,  # Eq 20
    "convolution": FlatPrior,
    "gaussian": partial(nlilayers.GaussianPrior, b=None),  # Eq 3
    "gaussian-variant": nlilayers.GaussianPrior,  # Eq 4
}


@dataclass(frozen=True)
class GaussianTransformerConfig:
    """The model of "Implementation Details"."""

    locality: Locality = "gaussian-variant"
    """What draws a word's self-attention to its neighbours: Table 1, from (i) to (vii)."""
    prior_scope: Literal["layer", "head", "model"] = "layer"
    """Whether each self-attention layer, each of its heads, or the whole model has a prior of its own."""
    num_encoding_blocks: int = 3
    """M."""
    num_interaction_blocks: int = 2
    """N."""
    hidden_size: int = 120
    """d_model, the width of every block."""
    num_heads: int = 4
    """H, of every attention."""
    attention_biases: bool = False
    """Let the projections of every attention have biases; the paper is silent."""
    char_size: int = 30
    """d_c, the width of the vectors of character 5-grams."""
    ngrams: Literal["max", "sum"] = "max"
    """How the n-grams of a word become one vector; the paper rejects the sum."""
    sequential: bool = False
    """Update the premise first in an interaction block, and the hypothesis by the result; the paper is silent."""
    aggregation: Literal["sum", "pool"] = "sum"
    """How a sentence's comparisons become one vector; the paper rejects ESIM's pooling."""
    sum_and_difference: bool = False
    """Predict from the sum and the difference of the two sentences, too; the paper rejects it."""
    dropout: float = 0.1
    """Dropout on the output of each sub-layer."""
    attention_dropout: float = 0.0
    """Dropout on the weights of every attention."""
    inner_dropout: float = 0.0
    """Dropout on the hidden units of the blocks' networks."""
    norm: Literal["post", "pre"] = "post"
    """Layer norms after the sub-layers, or before them and after each stack of blocks."""
    start: Literal["aligning", "glorot"] = "aligning"
    """Initial weights: Glorot's, or with two changes that let it align words from few pairs; the paper is silent."""
    encoder: str | None = None
    """Folder of a Hugging Face encoder: its layers instead of word and character vectors (Table 5)."""
    num_classes: NumClasses = 3

    def __post_init__(self) -> None:
        """Refuse sizes that make no model."""
        require_at_least(1, self, "num_encoding_blocks", "num_interaction_blocks", "hidden_size", "num_heads")
        require_at_least(1, self, "char_size", "num_classes")
        require_dropout(self, "dropout", "attention_dropout", "inner_dropout")
        require_choices(self)
        d, heads = self.hidden_size, self.num_heads
        if d % 2 or d % heads:
            raise ValueError(f"hidden_size must be even and a multiple of {heads} heads, got {d}")

    @property
    def encoder_folder(self) -> Path | None:
        """What is read beside the model's own weights."""
        return None if self.encoder is None else Path(self.encoder)

    @property
    def unread(self) -> dict[str, str]:
        """The options of what the model leaves out."""
        unread: dict[str, str] = {}
        if self.encoder is not None:
            of_words = ("vectors", "vector_size", "unit_vectors", "unit_unknown")
            unread |= dict.fromkeys(("char_size", "ngrams", *of_words), "with --encoder")
        if not list(PRIORS[self.locality]().parameters()):
            unread["prior_scope"] = f"with --locality {self.locality}"
        return unread

    def new_prior(self) -> nn.Module:
        """A prior for one self-attention, of all its heads or of each."""
        make = PRIORS[self.locality]
        return nlilayers.HeadPriors(make() for _ in range(self.num_heads)) if self.prior_scope == "head" else make()

    def around(self, sublayer: nn.Module) -> Residual:
        """A sub-layer with its residual connection and its norm."""
        return Residual(sublayer, self.hidden_size, dropout=self.dropout, norm_first=self.norm == "pre")

    def last_norm(self) -> nn.Module:
        """What follows a stack of blocks: a norm, if the blocks' own norms come before their sub-layers."""
        return nn.LayerNorm(self.hidden_size) if self.norm == "pre" else nn.Identity()


class GaussianTransformer(nn.Module):
    """Embed, encode, interact, compare: Figure 4, from bottom to top; the two sentences share all weights."""

    leading_tokens: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: GaussianTransformerConfig, lexicon: Lexicon) -> None:
        super().__init__()
        d = config.hidden_size
        if config.encoder is None:
            self.words: nn.Module = WordsAndCharacters(config, lexicon)
            self.projection: nn.Module = nn.Linear(lexicon.dim + config.char_size, d, bias=False)
            self.insertion = None
        else:
            self.words = encoder = ContextualVectors(config.encoder, lexicon)
            self.projection = nn.Sequential(LayerMix(encoder.num_layers), nn.Linear(encoder.dim, d, bias=False))
            self.insertion = LayerInsertion(encoder.num_layers, encoder.dim, d)
        self.position = nlilayers.SinusoidalPositionalEncoding(d)
        self.encoding = nn.ModuleList(EncodingBlock(config) for _ in range(config.num_encoding_blocks))
        self.interaction = nn.ModuleList(InteractionBlock(config) for _ in range(config.num_interaction_blocks))
        self.norm_encoded, self.norm_interacted = config.last_norm(), config.last_norm()
        self.aggregation = Aggregation(d) if config.aggregation == "sum" else PooledAggregation()
        self.sum_and_difference = config.sum_and_difference
        pair = (4 if config.sum_and_difference else 2) * (d if config.aggregation == "sum" else 8 * d)
        self.prediction = nn.Sequential(feedforward(pair, d), nn.Linear(d, config.num_classes))
        if config.prior_scope == "model":
            share_prior(self)
        self.apply(start_from_glorot)
        if config.start == "aligning":
            self.apply(start_aligning)

    def forward(self, premise: Sentence, hypothesis: Sentence) -> Tensor:
        """The unnormalised scores of the classes, ``(b, num_classes)``."""
        p_encoded, h_encoded = self.encode(premise), self.encode(hypothesis)
        p, h = p_encoded, h_encoded
        for block in self.interaction:
            p, h = block(p, h, premise.mask, hypothesis.mask)
        p = self.aggregation(p_encoded, self.norm_interacted(p), premise.mask)
        h = self.aggregation(h_encoded, self.norm_interacted(h), hypothesis.mask)
        pair = (p, h, p + h, p - h) if self.sum_and_difference else (p, h)
        logits: Tensor = self.prediction(torch.cat(pair, dim=-1))  # Eqs 16, 17
        return logits

    def encode(self, sentence: Sentence) -> Tensor:
        """The embedding and encoding blocks: each word in its own sentence, ``(b, n, d)``."""
        require_words_first(sentence.mask)
        vectors = self.words(sentence)
        x: Tensor = self.position(self.projection(vectors))  # Eqs 7 to 9
        for block in self.encoding:
            x = block(x, sentence.mask)
        x = self.norm_encoded(x)
        return x if self.insertion is None else self.insertion(x, vectors)

    def alignment(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """The last block's weights, the mean of its heads: ``(b, n, m)`` and, of the premise's words, ``(b, m, n)``."""
        beta, alpha = self.alignment_by_head(premise, hypothesis)
        return beta[:, -1].mean(dim=1), alpha[:, -1].mean(dim=1)

    def alignment_by_head(self, premise: Sentence, hypothesis: Sentence) -> tuple[Tensor, Tensor]:
        """The weights of every interaction block and head: ``(b, blocks, h, n, m)`` and ``(b, blocks, h, m, n)``."""
        p, h = self.encode(premise), self.encode(hypothesis)
        blocks: Any = self.interaction
        weights = []
        for block in blocks:
            weights.append(block.weights(p, h, premise.mask, hypothesis.mask))
            p, h = block(p, h, premise.mask, hypothesis.mask)
        beta, alpha = zip(*weights, strict=True)
        return of_real_words(beta, premise.mask), of_real_words(alpha, hypothesis.mask)


class WordsAndCharacters(nn.Module):
    """A fixed vector for each word: its own beside that of its character 5-grams."""

    def __init__(self, config: GaussianTransformerConfig, lexicon: Lexicon) -> None:
        super().__init__()
        # Where the words' vectors are: the buffer made of both is in no state_dict, and cannot wait on the meta device.
        ngrams = nlilayers.CharNgramEmbedding(config.char_size, ngram_size=5, device=lexicon.vectors.device)
        if config.ngrams == "max":
            characters = ngrams.table(lexicon.words)
        else:
            characters = nn.functional.embedding_bag(ngrams.encode(lexicon.words), ngrams.weight, mode="sum")
        self.vectors = nn.Buffer(torch.cat([lexicon.vectors.to(characters), characters], dim=-1), persistent=False)

    def forward(self, sentence: Sentence) -> Tensor:
        """``[x^(w) : x^(c)]``, ``(b, n, dim + char_size)``: Eqs 5 and 6."""
        return zero_padding(nn.functional.embedding(sentence.tokens, self.vectors), sentence.mask)


class EncodingBlock(nn.Module):
    """Self-attention, then a network for each word."""

    def __init__(self, config: GaussianTransformerConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config)
        self.feedforward = config.around(dense_layers(config))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Words ``(b, n, d)`` → ``(b, n, d)``."""
        y: Tensor = self.feedforward(self.self_attention(x, mask))
        return y


class InteractionBlock(nn.Module):
    """Self-attention, then attention of each sentence to the other, then a network for each word."""

    def __init__(self, config: GaussianTransformerConfig) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config)
        attention = InterAttention(
            config.hidden_size, config.num_heads, bias=config.attention_biases, dropout=config.attention_dropout
        )
        self.inter_attention = config.around(attention)
        self.feedforward = config.around(dense_layers(config))
        self.sequential = config.sequential

    def forward(self, p: Tensor, h: Tensor, p_mask: Tensor, h_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Premise ``(b, n, d)`` and hypothesis ``(b, m, d)`` → the same shapes."""
        p, h = self.self_attention(p, p_mask), self.self_attention(h, h_mask)
        prenorm = self.inter_attention.prenorm
        new_p = self.inter_attention(p, prenorm(h), h_mask)
        new_h = self.inter_attention(h, prenorm(new_p if self.sequential else p), p_mask)
        return self.feedforward(new_p), self.feedforward(new_h)

    def weights(self, p: Tensor, h: Tensor, p_mask: Tensor, h_mask: Tensor) -> tuple[Tensor, Tensor]:
        """The weights of the hypothesis for each premise word, ``(b, h, n, m)``, and the reverse, ``(b, h, m, n)``."""
        p, h = self.self_attention(p, p_mask), self.self_attention(h, h_mask)
        attention: Any = self.inter_attention.sublayer
        prenorm = self.inter_attention.prenorm
        other_p = self.inter_attention(p, prenorm(h), h_mask) if self.sequential else p
        beta = attention.weights(prenorm(p), prenorm(h), h_mask)
        return beta, attention.weights(prenorm(h), prenorm(other_p), p_mask)


class SelfAttention(nn.ModuleList):
    """Multi-head self-attention with a prior over the distance; in variant (v), behind a convolution instead."""

    def __init__(self, config: GaussianTransformerConfig) -> None:
        d = config.hidden_size
        attention = nlilayers.GaussianSelfAttention(
            d,
            config.num_heads,
            prior=config.new_prior(),
            bias=config.attention_biases,
            dropout=config.attention_dropout,
        )
        convolutions = [SeparableConvolution(d, kernel_size=7)] if config.locality == "convolution" else []
        super().__init__(config.around(layer) for layer in (*convolutions, attention))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Words ``(b, n, d)`` → ``(b, n, d)``."""
        for layer in self:
            x = layer(x, mask)
        return x


class InterAttention(nn.Module):
    """Multi-head attention of a sentence to the other one, which has no order here."""

    def __init__(self, embed_dim: int, num_heads: int, *, bias: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value, self.output = (nn.Linear(embed_dim, embed_dim, bias=bias) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, other: Tensor, other_mask: Tensor) -> Tensor:
        """What words ``(b, n, d)`` see in those of the other sentence, ``(b, m, d)``: ``(b, n, d)``."""
        weights = self.dropout(self.weights(x, other, other_mask))
        seen = weighted_sum(weights, self._by_head(self.value(other)))
        y: Tensor = self.output(rearrange(seen, "b h n d -> b n (h d)"))
        return y

    def weights(self, x: Tensor, other: Tensor, other_mask: Tensor) -> Tensor:
        """The weights behind it, ``(b, h, n, m)``."""
        queries, keys = self._by_head(self.query(x)), self._by_head(self.key(other))
        return masked_softmax(dot_scores(queries, keys, queries.shape[-1] ** -0.5), other_mask)

    def _by_head(self, x: Tensor) -> Tensor:
        return rearrange(x, "b n (h d) -> b h n d", h=self.num_heads)


def dense_layers(config: GaussianTransformerConfig) -> nn.Sequential:
    """The network that every block has for each word."""
    d = config.hidden_size
    return nn.Sequential(feedforward(d, d).append(nn.Dropout(config.inner_dropout)), nn.Linear(d, d))  # Eqs 10 to 12


class Aggregation(nn.Module):
    """Compare each word with what the interaction made of it, and add up."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.compare = nn.Sequential(feedforward(2 * d, d), nn.Linear(d, d))

    def forward(self, x: Tensor, aligned: Tensor, mask: Tensor) -> Tensor:
        """Words before and after interaction, both ``(b, n, d)`` → ``(b, d)``."""
        v = self.compare(torch.cat([x, aligned], dim=-1))  # Eqs 13, 14
        # Eq 15, the sum over the root of n, by way of the mean: a half may not hold the sum where it holds the result.
        return masked_mean(v, mask) * mask.sum(dim=1, keepdim=True).to(v.dtype).sqrt()


class PooledAggregation(nn.Module):
    """ESIM's way, which the paper tried: maxima and means of what stands side by side, without a network."""

    def forward(self, x: Tensor, aligned: Tensor, mask: Tensor) -> Tensor:
        """Words before and after interaction, both ``(b, n, d)`` → ``(b, 8 d)``."""
        v = torch.cat([x, aligned, x - aligned, x * aligned], dim=-1)
        return torch.cat([masked_max(v, mask), masked_mean(v, mask)], dim=-1)


def share_prior(model: nn.Module) -> None:
    """Give every self-attention the prior of the first."""
    first, *others = (part for part in model.modules() if isinstance(part, nlilayers.GaussianSelfAttention))
    for other in others:
        other.prior = first.prior


@torch.no_grad()
def start_aligning(module: nn.Module) -> None:
    """Initial weights under which words stay distinct until inter-attention compares them, and attend to equal ones.

    For ``module.apply``: self-attention and the blocks' networks add nothing yet, and inter-attention's keys are its
    queries.
    """
    if isinstance(module, nlilayers.GaussianSelfAttention):
        nn.init.zeros_(module.out_proj.weight)
    elif isinstance(module, EncodingBlock | InteractionBlock):
        dense: Any = module.feedforward.sublayer
        nn.init.zeros_(dense[-1].weight)
    elif isinstance(module, InterAttention):
        module.key.weight.copy_(module.query.weight)


def of_real_words(weights: Sequence[Tensor], mask: Tensor) -> Tensor:
    """Each block's weights ``(b, h, n, m)`` side by side, ``(b, blocks, h, n, m)``, and 0 in the rows of padding."""
    return torch.where(mask[:, None, None, :, None], torch.stack(list(weights), dim=1), 0)


SCRIPT = Script(
    name="gaussian_transformer",
    models={GaussianTransformerConfig: GaussianTransformer},
    recipe=Recipe(
        optimizer="adamwr", lr=3e-4, min_lr=4e-5, normalized_decay=1 / 600, batch_size=64, epochs=30, patience=20
    ),
    quick=Recipe("adamwr", lr=5e-4, batch_size=64, epochs=4, restart_epochs=4, warmup_epochs=1.0, clip_norm=5.0),
    tables=TABLES,
)

if __name__ == "__main__":
    main(SCRIPT)
