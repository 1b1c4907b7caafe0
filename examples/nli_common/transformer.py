"""Sub-layers of Transformers, and what is put around each of them."""

import torch
from torch import Tensor, nn

from nli_common.feedforward import feedforward
from nlilayers.masking import zero_padding


class Residual(nn.Module):
    """A sub-layer between a residual connection and a layer norm: ``LayerNorm(x + Dropout(Sublayer(x)))``.

    Args:
        sublayer: maps x, and whatever else is given with it, to the shape of x.
        features: features of x.
        dropout: probability that a feature of what the sub-layer adds is dropped, in training.
        norm_first: the norm stands before the sub-layer instead: ``x + Dropout(Sublayer(LayerNorm(x)))``.

    Shape:
        x ``(b, n, features)`` → the same.
    """

    def __init__(self, sublayer: nn.Module, features: int, *, dropout: float = 0.0, norm_first: bool = False) -> None:
        super().__init__()
        self.sublayer = sublayer
        self.norm_first = norm_first
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(features)

    def forward(self, x: Tensor, *context: Tensor) -> Tensor:
        """What the sub-layer makes of x in this context, added to x."""
        y: Tensor = x + self.dropout(self.sublayer(self.prenorm(x), *context))
        return y if self.norm_first else self.norm(y)

    def prenorm(self, x: Tensor) -> Tensor:
        """x, normed if the norm stands before the sub-layer; callers do the same to whatever else they give it."""
        y: Tensor = self.norm(x) if self.norm_first else x
        return y


class SeparableConvolution(nn.Module):
    """A rectified convolution in two steps: over words in each feature, then over features in each word.

    Args:
        features: features of a word.
        kernel_size: words in a window, an odd number.

    Shape:
        x ``(b, n, features)``, mask ``(b, n)`` → ``(b, n, features)``.
    """

    def __init__(self, features: int, kernel_size: int) -> None:
        super().__init__()
        width = kernel_size // 2
        self.depthwise = nn.Conv1d(features, features, kernel_size, padding=width, groups=features, bias=False)
        self.pointwise = feedforward(features, features)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Each word's window."""
        if x.shape[1] == 0:  # which torch's convolution refuses
            return x
        y: Tensor = self.pointwise(self.depthwise(zero_padding(x, mask).mT).mT)
        return y


class FlatPrior(nn.Module):
    """A prior over distances that holds all of them alike: a bias of 0, for lack of one."""

    def __init__(self) -> None:
        super().__init__()
        self.zero = nn.Buffer(torch.zeros(()), persistent=False)

    def forward(self, query_length: int, key_length: int) -> Tensor:
        """One 0 for every pair of words."""
        return self.zero
