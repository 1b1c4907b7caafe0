"""When self-attention is computed in blocks of words, and how far its words look then."""

from typing import Literal

import torch
from torch import Tensor, nn

from nlilayers import functional
from nlilayers._priors import DistancePrior, GaussianPrior, HeadPriors, LinearPrior, ZipfPrior
from nlilayers._values import is_traced, read_values

SHORTEST_IN_BLOCKS = 160
"""Words of a sentence below which no window is looked for."""
FEWEST_SCORES_IN_BLOCKS = {"cuda": 2**26}
"""Scores of a batch below which no window is looked for: a GPU has them all sooner than it starts what blocks need."""
SMALLEST_BLOCK = 16
"""Words of a block at least: products of small matrices are slow."""
BLOCKS_PAY = 8
"""Blocks of a sentence from which on they are faster than the whole matrix of scores."""
FINITE = [prior.forward for prior in (GaussianPrior, ZipfPrior, LinearPrior)]
"""What computes a function of the distance that is finite at 0, whatever its parameters."""
LOWEST_AT_0 = -1e30
"""A bias of a word for itself below which blocks are not tried."""
OF_DISTANCE = [*FINITE, DistancePrior.forward]
"""What is known to compute functions of the distance."""


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
    length = queries.shape[2]
    scores = queries.shape[:3].numel() * length
    if length < SHORTEST_IN_BLOCKS or scores < FEWEST_SCORES_IN_BLOCKS.get(queries.device.type, 1):
        return None
    if window == "auto":
        window = _smallest_window(prior, queries, keys, mask, scale, tolerance)
    if BLOCKS_PAY * block_size(window) > length:
        return None
    # Three blocks have the biases that they have in the sentence, and what a word sees of them is not padding alone.
    return window if _is_of_distance(prior) and _is_moderate_at_0(prior) else None


def lets_see_itself(prior: nn.Module) -> bool:
    """Whether a prior is known, without reading its numbers, to let each word attend to itself."""
    if isinstance(prior, HeadPriors) and _is_untouched(prior):
        return all(map(lets_see_itself, prior.priors))
    return type(prior).forward in FINITE and _is_untouched(prior)


def _smallest_window(
    prior: nn.Module, queries: Tensor, keys: Tensor, mask: Tensor | None, scale: float, tolerance: float
) -> int:
    length, priors = queries.shape[2], _gaussians_of(prior)
    if not priors:
        return length
    with torch.no_grad():
        ranges = functional.score_range(queries, keys, scale, mask, mask).amax(0)
        if len(priors) == 1:
            ranges = ranges.amax(0, keepdim=True)
        holes = ranges.new_zeros(()) if mask is None else (mask[:, 1:] & ~mask[:, :-1]).any()
        w, b = torch.stack([prior.w for prior in priors]), torch.stack([prior.b for prior in priors])
        known = read_values(torch.cat([holes[None], ranges, w, b]))
    if known is None:
        return length
    has_holes, scalars = bool(known[0]), torch.tensor(known[1:], dtype=torch.float64, device="cpu")
    distances = torch.arange(length, device="cpu")
    exact_range, exact_w, exact_b = scalars.view(3, -1, 1)
    log_bias = functional.gaussian_bias(exact_w, exact_b, distances)
    # The range was computed in floating point too.
    return functional.smallest_window(log_bias, 1.001 * exact_range[:, 0], tolerance, holes=has_holes)


def _gaussians_of(prior: nn.Module) -> list[GaussianPrior]:
    """One prior for all heads, or one for each, if Gaussian they are."""
    priors = list(prior.priors) if isinstance(prior, HeadPriors) and _is_untouched(prior) else [prior]
    gaussians = [prior for prior in priors if isinstance(prior, GaussianPrior) and _is_untouched(prior)]
    return gaussians if len(gaussians) == len(priors) else []


def _is_of_distance(prior: nn.Module) -> bool:
    """Whether a prior is a function of i - j alone: one of this library, or one that says so."""
    if isinstance(prior, HeadPriors) and _is_untouched(prior):
        return all(map(_is_of_distance, prior.priors))
    return _is_untouched(prior) or getattr(prior, "of_distance", False) is True


def _is_untouched(prior: nn.Module) -> bool:
    """Whether a prior of this library computes what it is known for: no subclass or hook has made another of it."""
    hooked = prior._forward_hooks or prior._forward_pre_hooks or "forward" in vars(prior)
    return type(prior).forward in (*OF_DISTANCE, HeadPriors.forward) and not hooked


def _is_moderate_at_0(prior: nn.Module) -> bool:
    """Whether a lone word's score is sure to be above that of padding in blocks, half the lowest of float32."""
    if lets_see_itself(prior):
        return True
    bias = prior(1, 1)
    itself = read_values(bias.detach().flatten()) if isinstance(bias, Tensor) else None
    return itself is not None and min(itself) > LOWEST_AT_0
