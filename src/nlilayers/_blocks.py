"""When self-attention is computed in blocks of words, and how far its words look then."""

from typing import Literal

import torch
from torch import Tensor, nn

from nlilayers import functional
from nlilayers._known_priors import gaussians_of, is_of_distance, lets_see_itself
from nlilayers._values import is_traced, read_values

SHORTEST_IN_BLOCKS = 192
"""Words of a sentence below which no window is looked for; nor is it in one of fewer words than a head has features:
keys and values are copied for each of three blocks, which takes as long then as all scores."""
FEWEST_SCORES_IN_BLOCKS = {"cuda": 2**26}
"""Scores of a batch below which no window is looked for: a GPU has them all sooner than it starts what blocks need."""
SMALLEST_BLOCK = 16
"""Words of a block at least: products of small matrices are slow."""
BLOCKS_PAY = 8
"""The fewest blocks of a sentence that are faster than its whole matrix of scores."""
LOWEST_AT_0 = -1e30
"""A bias of a word for itself below which blocks are not tried."""


def block_size(window: int) -> int:
    """Words of a block whose own words and neighbours hold all that a window asks for."""
    return max(window, SMALLEST_BLOCK)


def narrow_window(
    window: int | Literal["auto"] | None,
    prior: nn.Module,
    queries: Tensor,
    keys: Tensor,
    mask: Tensor | None,
    *,
    scale: float,
    tolerance: float,
) -> int | None:
    """The window to compute in blocks, or ``None`` where blocks would not pay or would be wrong."""
    if window is None or is_traced():
        return None
    length, features = queries.shape[2:]
    scores = queries.shape[:3].numel() * length
    if length < max(SHORTEST_IN_BLOCKS, features) or scores < FEWEST_SCORES_IN_BLOCKS.get(queries.device.type, 1):
        return None
    if window == "auto":
        window = _smallest_window(prior, queries, keys, mask, scale, tolerance)
    if BLOCKS_PAY * block_size(window) > length:
        return None
    # Three blocks have the biases that they have in the sentence, and what a word sees of them is not padding alone.
    return window if is_of_distance(prior) and _is_moderate_at_0(prior) else None


def _smallest_window(
    prior: nn.Module, queries: Tensor, keys: Tensor, mask: Tensor | None, scale: float, tolerance: float
) -> int:
    length, priors = queries.shape[2], gaussians_of(prior)
    scalars = [scalar.detach().flatten() for scalar in (*(each.w for each in priors), *(each.b for each in priors))]
    if not priors or any(scalar.shape != (1,) for scalar in scalars):
        return length
    with torch.no_grad():
        ranges = functional.score_range(queries, keys, scale, query_mask=mask, key_mask=mask).amax(0)
        if len(priors) == 1:
            ranges = ranges.amax(0, keepdim=True)
        holes = ranges.new_zeros(()) if mask is None else (mask[:, 1:] & ~mask[:, :-1]).any()
        known = read_values(torch.cat([holes[None], ranges, *scalars]))
    if known is None:
        return length
    has_holes, exact = bool(known[0]), torch.tensor(known[1:], dtype=torch.float64, device="cpu")
    distances = torch.arange(length, device="cpu")
    exact_range, exact_w, exact_b = exact.view(3, -1, 1)
    log_bias = functional.gaussian_bias(exact_w, exact_b, distances)
    # The range was computed in floating point too.
    return functional.smallest_window(log_bias, 1.001 * exact_range[:, 0], tolerance, holes=has_holes)


def _is_moderate_at_0(prior: nn.Module) -> bool:
    """Whether a lone word's score is sure to be above that of padding, which has the lowest of float32 in blocks."""
    if lets_see_itself(prior):
        return True
    bias = prior(1, 1)
    itself = read_values(bias.detach().flatten()) if isinstance(bias, Tensor) else None
    return itself is not None and min(itself) > LOWEST_AT_0
