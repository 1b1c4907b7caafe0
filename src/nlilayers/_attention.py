"""Self-attention of one sentence, with a prior over the distance between its words."""

import math
import sys
from typing import Literal

import torch
from einops import rearrange
from torch import Tensor, nn

from nlilayers import functional
from nlilayers._blocks import block_size, narrow_window
from nlilayers._checks import (
    is_integer,
    require_finite,
    require_flags,
    require_integers,
    require_prior,
    require_probability,
    require_sequence,
    require_tolerance,
)
from nlilayers._denormals import hide_denormals
from nlilayers._dropout import Dropout
from nlilayers._known_priors import lets_see_itself
from nlilayers._log_bias import log_bias_of
from nlilayers._passages import cut_into_passages, join_passages
from nlilayers._precision import at_least_float32, without_autocast
from nlilayers._priors import GaussianPrior, HeadPriors
from nlilayers._zeroing import stop_gradients
from nlilayers.functional._attention import weights_with_themselves
from nlilayers.masking import zero_padding


class GaussianSelfAttention(nn.Module):
    r"""Multi-head self-attention with a prior over the distance: Guo et al. 2019, Eqs 1 to 4 and 18 to 20.

    https://doi.org/10.1609/aaai.v33i01.33016489

    .. math::

        \tilde x_i = W_O \left[ y^1_i : \dots : y^h_i \right] \qquad
        y_i = \sum_j \mathop{\mathrm{softmax}}_j\left( \beta(i - j) + \tau\, q_i^\top k_j \right) v_j

    in each head, with the queries, keys and values :math:`q, k, v = W_Q x, W_K x, W_V x` and the log-bias
    :math:`\beta` of the prior, Eq 4's by default. All heads share one prior, and each layer has its own;
    :class:`HeadPriors` are one for each head. The paper prints :math:`\tau = 1` for a single head without projections,
    and builds on the Transformer, whose :math:`1/\sqrt{d/h}` is the default here. Sums and softmaxes run over real
    tokens. Word order enters through the prior alone, as distances: padding may stand on the left, too.

    The whole matrix of scores is computed, with any window applied as a mask,

    - for sentences of fewer than 192 words, of fewer words than a head has features, or of fewer than eight windows
      (each counted as at least 16 words);
    - on CUDA, for batches of fewer than :math:`2^{26}` scores;
    - in code that is compiled, exported, or traced by ``torch.jit.trace``;
    - with priors that have forward hooks, and with custom priors, unless their attribute ``of_distance`` is ``True``,
      which promises that they are functions of :math:`i - j` alone;
    - with a :class:`DistancePrior` or a custom prior that is at most -1e30 at a distance of 0 (where it is
      :math:`-\infty`, a word with no other to attend to has a sum of 0), or whose numbers cannot be read: on the meta
      device, while a CUDA graph is recorded, and under a ``vmap`` over its parameters;
    - with ``window=None``; and with ``"auto"`` if the prior is not Gaussian in every head, or has parametrizations, or
      if the scores cannot be read: under ``vmap``, on the meta device, and while a CUDA graph is recorded.

    Weights may become denormal numbers, which some processors are slow with, where a prior's factors reach below 1e-31
    (float32's smallest normal number over its epsilon). Then, on a CPU, words are left out whose weights are sure to be
    less than 1e-14 (epsilon squared) of the word's own: its sum loses them anyway. (Compiled and traced code keeps
    them.)

    Args:
        embed_dim: :math:`d`, the features of a word.
        num_heads: :math:`h`; it divides ``embed_dim``.
        prior: :math:`\beta`, a module that maps ``(query_length, key_length)`` to a log-bias of that shape (or one
            that broadcasts to it), or to one for each head, ``(h, query_length, key_length)``, as :class:`HeadPriors`
            do; ``None`` is a :class:`GaussianPrior` of its own.
        bias: whether the projections have biases. (That of the keys has no effect: it shifts whole rows of scores.)
        dropout: probability that an attention weight is dropped, in training.
        window: the largest :math:`|i - j|` that is attended to; ``None`` means any. ``"auto"`` means any, too, but
            leaves out what cannot matter: beyond the smallest window that the tolerance allows for the scores at hand
            (see :func:`nlilayers.functional.smallest_window`). Time and memory are then linear in the length, as they
            are with any window, except where the whole matrix of scores is computed (see above).
        tolerance: :math:`\varepsilon`, the largest share of a word's weights that ``"auto"`` leaves out. The default
            is half of float32's epsilon; that of float64 is ``2**-53``.
        scale: :math:`\tau`; ``None`` is :math:`1/\sqrt{d/h}`.

    Attributes:
        in_proj: :math:`W_Q, W_K, W_V`, one ``Linear(d, 3 d)`` with its rows in this order, and in each of them head
            by head.
        out_proj: :math:`W_O`, a ``Linear(d, d)``.
        prior: :math:`\beta`.

    Shape:
        x ``(b, n, d)``, mask ``(b, n)`` → :math:`\tilde x` ``(b, n, d)``, 0 at padding.

    Raises:
        TypeError: if the prior is not a module or gives no tensor, if a size is not an integer, if ``bias`` is neither
            ``True`` nor ``False``, if ``dropout``, ``tolerance`` or ``scale`` is not a number, or if x or the mask is
            not a tensor.
        ValueError: if ``num_heads`` does not divide ``embed_dim``, if the prior gives any other shape, or boolean or
            complex numbers, if ``dropout`` is no probability, if ``window`` is neither ``None`` nor ``"auto"`` nor an
            integer of at least 0, if ``tolerance`` is not between 0 and 1, if ``scale`` is not finite, if x is not
            ``(batch, length, embed_dim)``, or if the mask is not boolean of its ``(batch, length)``.

    Example::

        >>> import torch
        >>> from nlilayers import GaussianSelfAttention
        >>> attention = GaussianSelfAttention(12, num_heads=3)
        >>> attention(torch.randn(2, 7, 12)).shape
        torch.Size([2, 7, 12])
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        prior: nn.Module | None = None,
        bias: bool = False,
        dropout: float = 0.0,
        window: int | Literal["auto"] | None = "auto",
        tolerance: float = 2**-24,
        scale: float | None = None,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_integers(embed_dim=embed_dim, num_heads=num_heads)
        if num_heads < 1 or embed_dim < 1 or embed_dim % num_heads:
            raise ValueError(
                f"embed_dim must be a positive multiple of num_heads, got embed_dim={embed_dim}, num_heads={num_heads}"
            )
        require_probability("dropout", dropout)
        require_tolerance(tolerance)
        if scale is not None:
            require_finite("scale", scale)
        require_flags(bias=bias)
        self.embed_dim, self.num_heads = embed_dim, num_heads = int(embed_dim), int(num_heads)
        self.window, self.tolerance = window, float(tolerance)
        self.dropout = Dropout(float(dropout))
        self.scale = 1 / math.sqrt(embed_dim // num_heads) if scale is None else float(scale)
        self.prior = GaussianPrior(device=device, dtype=dtype) if prior is None else prior
        require_prior(self.prior)
        if isinstance(prior, HeadPriors) and len(prior.priors) != num_heads:
            raise ValueError(f"prior must have one prior for each of the {num_heads} heads, got {len(prior.priors)}")
        self.in_proj = nn.Linear(embed_dim, 3 * embed_dim, bias=bias, device=device, dtype=dtype)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.reset_parameters()

    @property
    def window(self) -> int | Literal["auto"] | None:
        """The largest distance that is attended to, ``"auto"`` or ``None``."""
        return self._window

    @window.setter
    def window(self, window: int | Literal["auto"] | None) -> None:
        self._window = _known_window(window)

    def reset_parameters(self) -> None:
        """Draw each projection so that it keeps the variance (Glorot); biases start at 0. The prior is left as it is.

        Attention averages: identical words keep their variance, and averaging independent ones reduces it. It comes
        after any ``reset_parameters`` of the projections, whose weights these are.
        """
        bound = math.sqrt(3 / self.embed_dim)
        for projection in (self.in_proj, self.out_proj):
            if isinstance(projection, nn.Linear):  # and no module that was put in its place
                nn.init.uniform_(projection.weight, -bound, bound)
                if projection.bias is not None:
                    nn.init.zeros_(projection.bias)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each word's view of the sentence."""
        projected = self._project(x, mask)
        queries, keys, values = self._heads(projected)
        window = self._window_in_blocks(queries, keys, mask)
        if window is None:
            weights = self._weights(queries, keys, mask, zero_rows=not lets_see_itself(self.prior))
            y = _side_by_side(functional.weighted_sum(self.dropout(weights), values))
        else:
            y = self._in_passages(projected, mask, self._block_bias(window, queries, keys, mask))
        # With a bias, what leaves out_proj is not 0 where its input is.
        return zero_padding(self.out_proj(y), mask)

    def attention_weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        r"""The weights behind the output, ``(b, h, n, n)``; each row of a real token sums to 1. Without dropout.

        Their dtype is that of the words, or float32 where these are float16.

        Gradients that arrive at a weight of 0 go no further, as those of :math:`p \ln p`, which are infinite there.
        """
        queries, keys, _ = self._heads(self._project(x, mask))
        weights = self._weights(queries, keys, mask, zero_rows=True)
        return stop_gradients(weights, weights != 0)

    def discarded_mass_bound(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        r"""A bound on the share of each word's weights that the output leaves out, ``(b, h, n)``, in at least float32.

        It is 0 where nothing is left out, and at padding. Where the words are computed in blocks, it follows from the
        sums within the window (:func:`nlilayers.functional.discarded_mass_certificate`): with ``"auto"`` it is usually
        far below the tolerance, with an integer it can be far above the share itself. Where a window is applied as a
        mask, it is the exact share. A head's sum :math:`y_i` is off by
        at most this share of the largest distance between two of its values.
        What would be denormal is not counted, less than epsilon squared for each word.
        """
        queries, keys, _ = self._heads(self._project(x, mask))
        window = self._window_in_blocks(queries, keys, mask)
        if window is None:
            return self._masked_mass(queries, keys, mask)
        log_bias = self._block_bias(window, queries, keys, mask)
        scores = functional.windowed_scores(queries, keys, log_bias, mask, self.scale)
        normalizer = rearrange(scores.logsumexp(-1), "b h blocks i -> b h (blocks i)")[:, :, : x.shape[1]]
        # Either side of the window may have all distances that there are, but no word sees more than the real ones.
        sides = [side[..., window + 1 :] for side in self._both_sides(x.shape[1])]
        beyond = torch.cat(sides, dim=-1).to(normalizer.dtype)
        count = _words_beyond(x.new_ones(1, x.shape[1], dtype=torch.bool) if mask is None else mask, window)
        most = beyond.amax(-1, keepdim=True) + count[:, None].to(normalizer.dtype).log()
        log_tail = torch.minimum(beyond.logsumexp(-1, keepdim=True), most)
        largest = functional.score_bound(queries, keys, self.scale, key_mask=mask)
        bound = functional.discarded_mass_certificate(normalizer, largest, log_tail)
        return bound if mask is None else bound.masked_fill(~mask[:, None], 0)

    def _masked_mass(self, queries: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
        dtype = at_least_float32(queries.dtype)
        window = self._window_asked_for()
        if window is None:
            return queries.new_zeros(queries.shape[:3], dtype=dtype)
        with without_autocast(queries):
            scores = functional.dot_scores(queries.to(dtype), keys.to(dtype), self.scale)
        weights = functional.self_attention_weights(scores, self._log_bias(*scores.shape[2:]), mask)
        far = functional.token_distances(scores.shape[2], scores.shape[3], scores.device).abs() > window
        return (weights * far).sum(-1)

    def _project(self, x: Tensor, mask: Tensor | None) -> Tensor:
        require_sequence("x", x, self.embed_dim)
        projected: Tensor = self.in_proj(zero_padding(x, mask))
        if projected.shape[-1] != 3 * self.embed_dim:
            raise ValueError(f"in_proj must give {3 * self.embed_dim} features, got {projected.shape[-1]}")
        return projected

    def _heads(self, projected: Tensor) -> Tensor:
        return rearrange(projected, "b n (qkv h d) -> qkv b h n d", qkv=3, h=self.num_heads)

    def _in_passages(self, projected: Tensor, mask: Tensor | None, log_bias: Tensor) -> Tensor:
        size = log_bias.shape[-2]
        passages = cut_into_passages(projected, size)
        masks = [None] * len(passages) if mask is None else cut_into_passages(mask, size)
        views = []
        for passage, real in zip(passages, masks, strict=True):
            queries, keys, values = self._heads(passage)
            scores = functional.windowed_scores(queries, keys, log_bias, real, self.scale)
            views.append(_side_by_side(functional.attend_windows(self.dropout(scores.softmax(-1)), values)))
        return join_passages(views, size)

    def _weights(self, queries: Tensor, keys: Tensor, mask: Tensor | None, *, zero_rows: bool) -> Tensor:
        scores = functional.dot_scores(queries, keys, self.scale)
        log_bias = self._log_bias(*scores.shape[2:])
        log_bias = hide_denormals(log_bias, _diagonal(log_bias), queries, keys, mask, self.scale)
        weigh = functional.self_attention_weights if zero_rows else weights_with_themselves
        return weigh(scores, log_bias, mask, self._window_asked_for())

    def _window_asked_for(self) -> int | None:
        """The largest distance that is attended to; ``"auto"`` has none, and leaves out only what cannot matter."""
        return None if self.window == "auto" else self.window

    def _window_in_blocks(self, queries: Tensor, keys: Tensor, mask: Tensor | None) -> int | None:
        return narrow_window(self.window, self.prior, queries, keys, mask, scale=self.scale, tolerance=self.tolerance)

    def _log_bias(self, query_length: int, key_length: int) -> Tensor:
        """What the prior gives, ``(n, m)`` or ``(h, n, m)``."""
        return log_bias_of("prior", self.prior, (query_length, key_length), self.num_heads)

    def _both_sides(self, length: int) -> tuple[Tensor, Tensor]:
        """The bias of a first word for each word behind it, and of a last one for those before, ``(..., length)``."""
        return self._log_bias(1, length)[..., 0, :], self._log_bias(length, 1)[..., :, 0]

    def _block_bias(self, window: int, queries: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
        """The bias of a block's words for their own block and the two beside it: a slice of the matrix of all three."""
        size = block_size(window)
        log_bias = self._log_bias(3 * size, 3 * size)[..., size : 2 * size, :]
        if self._window_asked_for() is not None:
            distances = functional.token_distances(3 * size, device=log_bias.device)[size : 2 * size]
            log_bias = log_bias.masked_fill(distances.abs() > window, -math.inf)
        own = _diagonal(log_bias[..., size : 2 * size])
        return hide_denormals(log_bias, own, queries, keys, mask, self.scale)

    def extra_repr(self) -> str:
        """The sizes, for ``repr``."""
        scale = self.scale.item() if isinstance(self.scale, Tensor) else self.scale
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, window={self.window!r}, scale={scale:.4g}"


def _diagonal(log_bias: Tensor) -> Tensor:
    """The bias of each word for itself, ``(..., n, 1)``."""
    return log_bias.diagonal(dim1=-2, dim2=-1)[..., None]


def _words_beyond(mask: Tensor, window: int) -> Tensor:
    """How many real words are farther from each word than the window, ``(b, n)``."""
    length = mask.shape[1]
    before = nn.functional.pad(mask.cumsum(1), (1, 0))
    places = torch.arange(length, device=mask.device)
    near = before[:, (places + window + 1).clamp(max=length)] - before[:, (places - window).clamp(min=0)]
    return before[:, -1:] - near


def _side_by_side(heads: Tensor) -> Tensor:
    return rearrange(heads, "b h n d -> b n (h d)")


def _known_window(window: int | Literal["auto"] | None) -> int | Literal["auto"] | None:
    """A width of any integer type as Python's; ``"auto"`` and ``None`` as they are."""
    if window is None:
        return None
    if isinstance(window, str) and window == "auto":
        return "auto"
    if is_integer(window) and int(window) >= 0:
        return min(int(window), sys.maxsize)
    raise ValueError(f"window must be None, 'auto' or an integer of at least 0, got {window!r}")
