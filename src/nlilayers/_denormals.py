"""Weights too small for a normal number, which some processors compute with tens of times as slowly."""

import math

import torch
from torch import Tensor

from nlilayers import functional
from nlilayers._precision import at_least_float32
from nlilayers._values import read_values


def hide_denormals(
    log_bias: Tensor, own: Tensor, queries: Tensor, keys: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    r"""The bias, with :math:`-\infty` where it makes a weight so small that it is lost, if it makes any denormal.

    A word gives itself the bias :math:`\beta(0)`, and no two of its scores are farther apart than R. So where
    :math:`\beta < \beta(0) + 2 \ln \varepsilon - R`, with the rounding :math:`\varepsilon` of the softmax, a weight is
    less than :math:`\varepsilon^2` (float32: 1e-14) of the word's own. Weights that are denormal for their scores
    rather than for their biases stay. Other devices than a CPU lose no time by such numbers.

    Args:
        log_bias: :math:`\beta`, ``(..., n, m)``; without an axis of heads, or with one.
        own: the bias of each of the n words for itself, ``(..., n, 1)``.
        queries: ``(b, h, n, d)``, of all words.
        keys: ``(b, h, n, d)``, of all words.
        mask: real tokens ``(b, n)``.
        scale: what scores are multiplied by.
    """
    if log_bias.device.type != "cpu" or not log_bias.is_floating_point() or not queries.numel():
        return log_bias
    numbers = torch.finfo(at_least_float32(queries.dtype))
    lowest = read_values((log_bias - own).detach().amin()[None])
    if lowest is None or not lowest[0] < math.log(numbers.tiny / numbers.eps):
        return log_bias
    with torch.no_grad():
        ranges = functional.score_range(queries, keys, scale, query_mask=mask, key_mask=mask).amax(0)
        apart = ranges.amax() if log_bias.ndim == 2 else ranges[:, None, None]
        # The range was computed in floating point too.
        lost = log_bias < own + 2 * math.log(numbers.eps) - 1.001 * apart
    return log_bias.masked_fill(lost, -math.inf)
