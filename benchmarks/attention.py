"""Gaussian self-attention against plain attention with the same projections, from a sentence to a book.

Ours has a trainable prior, forward and backward; the rivals are what a user would take instead.
"""

import math
import sys
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from benchmarks.measure import Comparison, Step, compare, peak_memory, training_step
from nlilayers import GaussianSelfAttention, functional

EMBED_DIM, HEADS = 120, 4
SHAPES = ((64, 16), (64, 32), (64, 64), (32, 128), (16, 256), (8, 512), (4, 1024), (2, 2048), (1, 4096), (1, 8192))
"""Batch and length of the comparisons."""
LONG = (16384, 32768, 65536)
"""Lengths that plain attention takes minutes for; ours is timed alone."""
GOALS = {16: 1.15, 32: 1.15, 64: 1.15, 512: 0.8, 2048: 0.35, 8192: 0.08}
"""The share of plain attention's time that ours may take, by length."""
SMALLER = 256
"""Words of the sentence whose step comes first where memory is measured."""
LONGEST_MATRIX = 2048
"""Length above which rivals that hold the whole matrix of scores are left out."""


class Projected(nn.Module):
    """Attention between the same two projections as ours."""

    def __init__(self) -> None:
        super().__init__()
        self.in_proj = nn.Linear(EMBED_DIM, 3 * EMBED_DIM, bias=False)
        self.out_proj = nn.Linear(EMBED_DIM, EMBED_DIM, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each word's view of the real words; what padding sees is left as it comes."""
        b, n, _ = x.shape
        heads = self.in_proj(x).view(b, n, 3, HEADS, EMBED_DIM // HEADS).permute(2, 0, 3, 1, 4)
        real = None if mask is None else mask[:, None, None]
        y: Tensor = self.out_proj(self.attend(*heads, real).transpose(1, 2).reshape(b, n, EMBED_DIM))
        return y

    def attend(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None) -> Tensor:
        """The heads, ``(b, h, n, d)``; the keys that are real are ``(b, 1, 1, n)``."""
        raise NotImplementedError


class PlainAttention(Projected):
    """``scaled_dot_product_attention`` without a prior."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None) -> Tensor:
        """No prior."""
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=real)


class BiasedAttention(Projected):
    """``scaled_dot_product_attention`` with the Gaussian prior as its mask."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = nn.Parameter(torch.tensor(0.1)), nn.Parameter(torch.tensor(-0.1))

    def prior(self, n: int) -> Tensor:
        """The bias of every pair."""
        return functional.gaussian_bias(self.w, self.b, functional.token_distances(n, device=self.w.device))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None) -> Tensor:
        """The prior is added to the scores."""
        bias = hidden(self.prior(q.shape[2]).to(q.dtype), real)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)


class TextbookAttention(BiasedAttention):
    """A matrix of scores, a prior, a softmax."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None) -> Tensor:
        """As the equation says."""
        scores = q @ k.mT / math.sqrt(q.shape[-1]) + self.prior(q.shape[2])
        return hidden(scores, real).softmax(-1).to(v.dtype) @ v


class TorchAttention(nn.Module):
    """``nn.MultiheadAttention``, which has no prior."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(EMBED_DIM, HEADS, bias=False, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Without the weights, which would make it slower."""
        padding = None if mask is None else ~mask
        y: Tensor = self.attention(x, x, x, key_padding_mask=padding, need_weights=False)[0]
        return y


class FlexAttention(BiasedAttention):
    """Compiled ``flex_attention`` with the prior as its score modification; it has no backward on CPU."""

    def __init__(self) -> None:
        super().__init__()
        from torch.nn.attention.flex_attention import flex_attention

        torch.compiler.reset()  # each shape is compiled anew, and there is a limit to how often
        self.flex = torch.compile(flex_attention, dynamic=False)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None) -> Tensor:
        """The prior is computed within the kernel, without a mask."""
        assert real is None
        # It has gradients only of those tensors of a modification that are indexed.
        w, b = (scalar.expand(HEADS).contiguous() for scalar in (self.w, self.b))

        def modify(score: Tensor, _batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score - (w[head] * (i - j) * (i - j) + b[head]).abs()

        y: Tensor = self.flex(q, k, v, score_mod=modify)
        return y


def hidden(scores: Tensor, real: Tensor | None) -> Tensor:
    """Minus infinity for keys that are not real."""
    return scores if real is None else scores.masked_fill(~real, -math.inf)


RIVALS: dict[str, type[nn.Module]] = {
    "plain attention": PlainAttention,
    "with the prior as a mask": BiasedAttention,
    "textbook": TextbookAttention,
    "nn.MultiheadAttention": TorchAttention,
}
FLEX = "flex_attention"
FLEX_LENGTHS = (32, 512, 2048, 8192)
"""Lengths that it is compiled for, each anew, which takes longest of all."""
WHOLE_MATRIX = ("with the prior as a mask", "textbook")


def layer(name: str, device: str, dtype: torch.dtype) -> nn.Module:
    """Ours, or a rival, with Glorot's weights."""
    torch.manual_seed(0)
    rivals = RIVALS | {FLEX: FlexAttention}
    made = GaussianSelfAttention(EMBED_DIM, HEADS) if name == "ours" else rivals[name]()
    for parameter in made.parameters():
        if parameter.ndim == 2:
            for block in parameter.split(EMBED_DIM):
                nn.init.xavier_uniform_(block)
    return made.to(device, dtype)


def step(name: str, batch: int, length: int, device: str, dtype: torch.dtype) -> Step:
    """One forward and backward pass on standard normal words, as a layer norm leaves them."""
    x = torch.randn(batch, length, EMBED_DIM, device=device, dtype=dtype)
    return training_step(layer(name, device, dtype), x)


def run(device: str, dtype: torch.dtype) -> Iterator[tuple[int, int, Comparison]]:
    """Every shape: batch, length and the comparison with the rivals that can be had there."""
    for batch, length in SHAPES:
        rivals = [name for name in RIVALS if length <= LONGEST_MATRIX or name not in WHOLE_MATRIX]
        steps = {name: step(name, batch, length, device, dtype) for name in ("ours", *rivals)}
        if device == "cuda" and length in FLEX_LENGTHS:
            try:
                flex = step(FLEX, batch, length, device, dtype)
                flex()  # its backward pass is compiled by the first call
                steps[FLEX] = flex
            except RuntimeError as error:
                print(f"flex_attention cannot do {length} words here: {str(error)[:200]}", file=sys.stderr)
        rounds = 15 if length <= LONGEST_MATRIX else 5
        yield batch, length, compare(steps.pop("ours"), steps, rounds=rounds)
    for length in LONG:
        yield 1, length, compare(step("ours", 1, length, device, dtype), {}, rounds=5)


def growth() -> dict[str, float]:
    """Seconds a word of ours at the longest of the comparisons and at the longest of all."""
    lengths = (SHAPES[-1][1], LONG[-1])
    steps = {str(length): step("ours", 1, length, "cpu", torch.float32) for length in lengths}
    shortest, longest = map(str, lengths)
    seconds = compare(steps[shortest], {longest: steps[longest]}, rounds=9).seconds
    return {shortest: seconds["ours"].median / lengths[0], longest: seconds[longest].median / lengths[1]}


def memory(name: str, length: int, device: str, dtype: torch.dtype) -> float:
    """Bytes that one step of a single sentence needs at its peak, on a CPU beyond those of one of 256 words."""
    if device == "cpu":
        step(name, 1, SMALLER, device, dtype)()
    return peak_memory(lambda: step(name, 1, length, device, dtype), device)
