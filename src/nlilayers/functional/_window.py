r"""How far attention with a decaying prior must look: the window, and what is lost outside it.

A token at position i gives its key j the weight :math:`p_{ij} \propto \exp(s_{ij} + \beta(i - j))`, with real scores s
and a bias that depends on the distance alone. Windowed attention drops every key beyond the distance D and divides by
what is left. The mass that it drops, :math:`\mu_i`, bounds its error: an output differs by at most that times the
diameter of the values.
"""

import math

import torch
from torch import Tensor

from nlilayers._checks import require_lengths, require_mask, require_tolerance
from nlilayers._precision import at_least_float32


def score_bound(queries: Tensor, keys: Tensor, scale: float | None = None, *, key_mask: Tensor | None = None) -> Tensor:
    r"""A number that no score of a query with a real key exceeds, by the Cauchy-Schwarz inequality.

    .. math::

        u_i = \tau\, q_i^\top \bar k + |\tau| \lVert q_i \rVert \max_j \lVert k_j - \bar k \rVert
            \;\ge\; \max_j \tau\, q_i^\top k_j

    with the mean :math:`\bar k` of the real keys.

    Args:
        queries: :math:`q`.
        keys: :math:`k`; padded positions hold finite numbers (0, say).
        scale: :math:`\tau`; ``None`` means 1.
        key_mask: real keys; ``None`` means all.

    Shape:
        ``(b, h, n, d)``, ``(b, h, m, d)``, ``(b, m)`` → ``(b, h, n)``, in at least float32; 0 where no key is real.

    Raises:
        TypeError: if the mask is not a tensor.
        ValueError: if the mask has another dtype or shape.

    Example::

        >>> import torch
        >>> from nlilayers.functional import score_bound
        >>> score_bound(torch.tensor([[[[3.0, 4.0]]]]), torch.tensor([[[[1.0, 0.0], [3.0, 0.0]]]]))
        tensor([[[11.]]])
    """
    require_mask("key_mask", key_mask, (keys.shape[0], keys.shape[2]))
    dtype = at_least_float32(keys.dtype)
    centre, radius = _ball(keys, key_mask, dtype)
    queries = queries.to(dtype)
    scale = 1.0 if scale is None else scale
    return scale * (queries * centre).sum(3) + abs(scale) * _lengths(queries) * radius[:, :, None]


def score_range(
    queries: Tensor,
    keys: Tensor,
    scale: float | None = None,
    *,
    query_mask: Tensor | None = None,
    key_mask: Tensor | None = None,
) -> Tensor:
    r"""A bound on how far apart two scores of one query can lie, in each head, by Cauchy-Schwarz.

    .. math::

        R = 2 \left| \tau \right| \max_i \lVert q_i \rVert \max_j \lVert k_j - \bar k \rVert
          \;\ge\; \max_{i, j, l} \left| \tau\, q_i^\top k_j - \tau\, q_i^\top k_l \right|

    with the mean :math:`\bar k` of the real keys, whose share of a score is the same for all keys.

    Args:
        queries: :math:`q`.
        keys: :math:`k`; padded positions hold finite numbers (0, say).
        scale: :math:`\tau`; ``None`` means 1.
        query_mask: real queries; ``None`` means all.
        key_mask: real keys; ``None`` means all.

    Shape:
        ``(b, h, n, d)``, ``(b, h, m, d)``, ``(b, n)``, ``(b, m)`` → ``(b, h)``, in at least float32.

    Raises:
        TypeError: if a mask is not a tensor.
        ValueError: if a mask has another dtype or shape.

    Example::

        >>> import torch
        >>> from nlilayers.functional import score_range
        >>> score_range(torch.tensor([[[[3.0, 4.0]]]]), torch.tensor([[[[1.0, 0.0], [3.0, 0.0]]]]))
        tensor([[10.]])
    """
    require_mask("query_mask", query_mask, (queries.shape[0], queries.shape[2]))
    require_mask("key_mask", key_mask, (keys.shape[0], keys.shape[2]))
    dtype = at_least_float32(keys.dtype)
    _, radius = _ball(keys, key_mask, dtype)
    return 2 * (1.0 if scale is None else abs(scale)) * _largest(queries.to(dtype), query_mask) * radius


def smallest_window(log_bias: Tensor, score_range: float | Tensor, tolerance: float, *, holes: bool = False) -> int:
    r"""The smallest distance D beyond which no query loses more than the tolerance, whatever the scores.

    .. math::

        D = \min \left\{ D : \max_i \frac{e^R\, T_i(D)}{G_i(D)} \le \frac{\varepsilon}{1 - \varepsilon} \right\}
        \qquad
        T_i(D) = \sum_{j : |i - j| > D} e^{\beta(i - j)}
        \quad
        G_i(D) = \sum_{j : |i - j| \le D} e^{\beta(i - j)}

    with the tolerance :math:`\varepsilon` and the range of the scores :math:`R`. Then the share of its weights
    that a word loses, :math:`\mu_i`, is at most :math:`\varepsilon` for every row of scores with that range, and for
    :math:`D - 1` there is a row that loses more: the one whose keys score :math:`R` outside the window and 0 inside.
    (Windows short of the bias's peak are not considered. They
    lose at least :math:`1 / L`.) For several heads, each with its own bias and range, it is the largest over the heads.

    Args:
        log_bias: :math:`\beta` at the distances 0, 1, 2 …, :math:`L - 1`, the same on both sides, which only
            falls beyond its peak.
        score_range: :math:`R`, one of all heads or one of each.
        tolerance: :math:`\varepsilon`, between 0 and 1.
        holes: whether padding may lie between real tokens. Only the query's own key is then sure to lie in its
            window.

    Shape:
        ``(L,)`` or ``(h, L)``, () or ``(h,)`` → an integer from 0 to :math:`L - 1`; the latter keeps every key.

    Raises:
        TypeError: if the tolerance is not a number.
        ValueError: if the tolerance is not between 0 and 1.

    Example::

        >>> import torch
        >>> from nlilayers.functional import gaussian_bias, smallest_window
        >>> log_bias = gaussian_bias(torch.tensor(0.1), torch.tensor(0.0), torch.arange(512))
        >>> smallest_window(log_bias, score_range=10.0, tolerance=1e-6)
        15
    """
    require_tolerance(tolerance)
    limit = math.log(tolerance) - math.log1p(-tolerance)
    last = log_bias.shape[-1] - 1
    ranges = torch.as_tensor(score_range, dtype=torch.float64, device="cpu")
    if not bool(ranges.isfinite().all()) or bool(log_bias.isnan().any()):
        return last
    peak = log_bias.argmax(-1, keepdim=True).cpu()
    # Where the bias falls, the first row has the fewest keys in its window, and the middle one the most outside.
    window = torch.arange(int(peak.min()), last + 1, device="cpu")
    ratio = _log_ratio(log_bias, torch.tensor([0, last // 2], device="cpu"), window, holes=holes).amax(-2)
    enough = (ratio + ranges[..., None] <= limit) & (window >= peak)
    return int(window[enough.to(torch.uint8).argmax(-1)].max())


def largest_discarded_mass(log_bias: Tensor, window: int, score_range: float | Tensor, *, holes: bool = False) -> float:
    r"""The largest mass that a window can cost a query, whatever the scores: :math:`\max_i \rho_i / (1 + \rho_i)`.

    With :math:`\rho_i = e^R\, T_i(D) / G_i(D)` of :func:`smallest_window`; no smaller bound holds for all scores.
    For several heads, each with its own bias and range, it is the largest over the heads.

    Args:
        log_bias: :math:`\beta` at the distances 0, 1, 2 …
        window: :math:`D`.
        score_range: :math:`R`, one of all heads or one of each.
        holes: whether padding may lie between real tokens.

    Shape:
        ``(L,)`` or ``(h, L)``, () or ``(h,)`` → a number from 0 to 1.

    Raises:
        TypeError: if the window is not an integer.
        ValueError: if it is negative.

    Example::

        >>> import torch
        >>> from nlilayers.functional import gaussian_bias, largest_discarded_mass
        >>> log_bias = gaussian_bias(torch.tensor(0.1), torch.tensor(0.0), torch.arange(512))
        >>> f"{largest_discarded_mass(log_bias, window=15, score_range=10.0):.1e}"
        '6.2e-08'
    """
    require_lengths(window=window)
    length = log_bias.shape[-1]
    row, least = torch.arange(length, device="cpu"), torch.tensor([min(window, length - 1)], device="cpu")
    ratio = _log_ratio(log_bias, row, least, holes=holes).amax((-2, -1))
    ranges = torch.as_tensor(score_range, dtype=torch.float64, device="cpu").detach()
    # With nothing outside the window, no range makes it something.
    return float(torch.sigmoid(ratio + ranges).where(ratio != -math.inf, 0.0).max())


def discarded_mass_certificate(log_normalizer: Tensor, largest_score: Tensor, log_tail: Tensor) -> Tensor:
    r"""An upper bound on what a windowed softmax has dropped, computed from what it has seen.

    .. math:: \mu_i \le \frac{e^{u_i}\, T_i(D)}{Z_i + e^{u_i}\, T_i(D)}

    with the share :math:`\mu_i` of its weights that word i loses beyond the window, the sum
    :math:`Z_i = \sum_{j : |i - j| \le D} \exp(s_{ij} + \beta(i - j))` of the windowed pass and a number :math:`u_i`
    that no score exceeds.

    Args:
        log_normalizer: :math:`\ln Z_i`.
        largest_score: :math:`u_i`.
        log_tail: :math:`\ln T_i(D)`, of the biases outside the window, or a bound on it.

    Shape:
        any that broadcast → theirs.

    Example::

        >>> import torch
        >>> from nlilayers.functional import discarded_mass_certificate
        >>> discarded_mass_certificate(torch.tensor(2.0), torch.tensor(1.0), torch.tensor(-20.0))
        tensor(7.5826e-10)
    """
    return torch.sigmoid(largest_score + log_tail - log_normalizer)


def _ball(keys: Tensor, mask: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The mean of the real keys, and how far from it the farthest of them lies."""
    real = keys if mask is None else keys * mask[:, None, :, None]
    count: Tensor | int = max(keys.shape[2], 1) if mask is None else mask.sum(1).clamp(min=1)[:, None, None, None]
    centre = real.sum(2, keepdim=True, dtype=dtype) / count
    return centre, _largest(keys - centre, mask)


def _lengths(x: Tensor) -> Tensor:
    """The Euclidean length of each vector."""
    lengths: Tensor = torch.linalg.vector_norm(x, dim=-1)
    return lengths


def _largest(x: Tensor, mask: Tensor | None) -> Tensor:
    """The length of each head's longest real vector, 0 where there is none."""
    lengths = _lengths(x)
    if mask is not None:
        lengths = lengths.masked_fill(~mask[:, None], 0)
    return lengths.amax(2) if x.shape[2] else lengths.sum(2)


def _log_ratio(log_bias: Tensor, row: Tensor, window: Tensor, *, holes: bool) -> Tensor:
    """``ln(T / G)`` of these rows at these windows, both on the CPU, as is the result: ``(..., rows, windows)``."""
    beta = log_bias.detach().to("cpu", torch.float64)
    nothing = torch.full_like(beta[..., :1], -math.inf)
    within, apart = beta.logcumsumexp(-1), torch.cat([nothing, beta[..., 1:].logcumsumexp(-1)], dim=-1)
    beyond = torch.cat([beta.flip(-1).logcumsumexp(-1).flip(-1)[..., 1:], nothing], dim=-1)
    left, right = row[:, None], beta.shape[-1] - 1 - row[:, None]
    # Beyond the window and no farther than the sentence goes; a difference of whole sums would be all rounding.
    outside = beyond[..., None, window]
    tail = torch.logaddexp(_less(outside, beyond[..., left]), _less(outside, beyond[..., right]))
    inside = (
        beta[..., :1, None]
        if holes
        else torch.logaddexp(within[..., left.clamp(max=window)], apart[..., right.clamp(max=window)])
    )
    # With nothing outside, nothing is lost, though there be nothing inside.
    return (tail - inside).where(tail != -math.inf, -math.inf)


def _less(log_sum: Tensor, log_part: Tensor) -> Tensor:
    """``ln(exp(log_sum) - exp(log_part))``, and minus infinity where nothing is left."""
    left = ~(log_part >= log_sum)  # what is no number stays none
    share = torch.where(left, log_part - log_sum, -1.0)
    return torch.where(left, log_sum + torch.log(-torch.expm1(share)), -math.inf)
