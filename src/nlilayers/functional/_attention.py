"""Self-attention with a distance prior: the equations of Guo et al. 2019."""

import math

import torch
from torch import Tensor

from nlilayers._checks import require_addends, require_lengths, require_mask, require_scores
from nlilayers._hiding import hide_masked
from nlilayers._precision import at_least_float32
from nlilayers._zeroing import zero_masked
from nlilayers.functional._priors import token_distances
from nlilayers.masking import masked_softmax, pair_mask


def self_attention_weights(
    scores: Tensor, log_bias: Tensor | None = None, mask: Tensor | None = None, window: int | None = None
) -> Tensor:
    r"""Self-attention with a prior over the distance: Guo et al. 2019, Eqs 1 to 4 and 18 to 20.

    .. math:: A_{ij} = \frac{\exp(s_{ij} + \beta(i - j))}{\sum_k \exp(s_{ik} + \beta(i - k))}

    over the real tokens and, if there is a window, only over those within it. The prior's factor on a weight is the
    bias :math:`\beta` inside the softmax, up to a constant of the row. Adding a constant to a row of scores changes
    nothing; a bias on the keys, which does just that, therefore has no effect.

    Args:
        scores: :math:`s`.
        log_bias: :math:`\beta(i - j)`; ``None`` means 0, which is Eq 1. Where it is :math:`-\infty`, the weight is 0.
        mask: real tokens; ``None`` means all.
        window: the largest :math:`|i - j|` that is attended to; ``None`` means any.

    Shape:
        ``(b, h, n, n)``, ``(n, n)`` or ``(h, n, n)``, ``(b, n)`` → ``(b, h, n, n)``; rows of padding, and rows that
        have no token to attend to, are 0.

    Raises:
        TypeError: if the scores, the bias or the mask are not a tensor, or the window is not an integer.
        ValueError: if the scores are not floating point of four dimensions, the bias is boolean or complex, the mask
            has another dtype or shape, or the window is negative.

    Example::

        >>> import torch
        >>> from nlilayers.functional import self_attention_weights
        >>> self_attention_weights(torch.zeros(1, 1, 3, 3), window=1)
        tensor([[[[0.5000, 0.5000, 0.0000],
                  [0.3333, 0.3333, 0.3333],
                  [0.0000, 0.5000, 0.5000]]]])
    """
    require_scores(scores, 4)
    seen = _seen(scores, mask, window)
    if log_bias is None:
        return masked_softmax(scores, seen)
    require_addends("log_bias", log_bias)
    possible = (log_bias != -math.inf)[(None,) * (scores.ndim - log_bias.ndim)]
    seen = possible if seen is None else seen & possible
    has_seen = seen.any(-1, keepdim=True)
    return _biased_softmax(scores, log_bias, seen, has_seen) * has_seen


def weights_with_themselves(
    scores: Tensor, log_bias: Tensor, mask: Tensor | None = None, window: int | None = None
) -> Tensor:
    r""":func:`self_attention_weights` where no :math:`\beta(0)` is :math:`-\infty`, so that each word sees itself.

    It need not search the biases, nor multiply all weights: rows of padding hold finite numbers that mean nothing.
    """
    seen = _seen(scores, mask, window)
    has_seen = None if seen is None else seen.any(-1, keepdim=True)
    return _biased_softmax(scores, log_bias, seen, has_seen)


def _seen(scores: Tensor, mask: Tensor | None, window: int | None) -> Tensor | None:
    """Which key each query may attend to, broadcasting to the scores; ``None`` means any."""
    require_mask("mask", mask, (scores.shape[0], scores.shape[3]))
    pairs = pair_mask(mask, mask)
    seen = None if pairs is None else pairs[:, None]
    if window is None:
        return seen
    require_lengths(window=window)
    near = (token_distances(scores.shape[2], scores.shape[3], scores.device).abs() <= window)[None, None]
    return near if seen is None else seen & near


def _biased_softmax(scores: Tensor, log_bias: Tensor, seen: Tensor | None, has_seen: Tensor | None) -> Tensor:
    """The weights of the keys that are seen, by queries that have seen one or not, computed in at least float32."""
    # Added in half precision, a bias rounds the scores by its own size, which a softmax does not see.
    log_bias = log_bias.to(at_least_float32(torch.promote_types(scores.dtype, log_bias.dtype)))
    if seen is None or has_seen is None:
        biased = scores + log_bias
    else:
        # It is the bias that is hidden: most have no axis of heads, and so fewer numbers than the scores.
        biased = zero_masked(scores, seen) + hide_masked(log_bias, seen, has_seen)
    weights = biased.softmax(-1, dtype=at_least_float32(biased.dtype))
    # A prior may hold more digits than half-precision scores do: they are dropped after the softmax.
    return weights.to(scores.dtype)
