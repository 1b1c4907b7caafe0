"""Self-attention of one sentence, with a prior over the distance between its words."""

import math

import torch
from einops import rearrange
from torch import Tensor, nn

from nlilayers import functional
from nlilayers._checks import require_mask, require_probability, require_sequence
from nlilayers._priors import GaussianPrior
from nlilayers.masking import zero_padding


class GaussianSelfAttention(nn.Module):
    r"""Multi-head self-attention with a prior over the distance: Guo et al. 2019, Eqs 1 to 4 and 18 to 20.

    https://doi.org/10.1609/aaai.v33i01.33016489

    .. math::

        \tilde x_i = W_O \left[ y^1_i : \dots : y^h_i \right] \qquad
        y_i = \sum_j \mathop{\mathrm{softmax}}_j\left( \beta(i - j) + \tau\, q_i^\top k_j \right) v_j

    in each head, with the queries, keys and values :math:`q, k, v = W_Q x, W_K x, W_V x` and the log-bias
    :math:`\beta` of the prior, Eq 4's by default. All heads share one prior, and each layer has its own. The paper
    prints :math:`\tau = 1` for a single head without projections, and builds on the Transformer, whose
    :math:`1/\sqrt{d/h}` is the default here. Sums and softmaxes run over real tokens. Words know their order through
    the prior alone, and only its distances: padding on the left changes nothing.

    Args:
        embed_dim: :math:`d`, the features of a word.
        num_heads: :math:`h`; it divides ``embed_dim``.
        prior: :math:`\beta`, a module that maps ``(query_length, key_length)`` to a log-bias of that shape;
            ``None`` is a :class:`GaussianPrior` of its own.
        bias: whether the projections have biases. (That of the keys is dead: it shifts whole rows of scores.)
        dropout: probability that an attention weight is dropped, in training.
        window: the largest :math:`|i - j|` that is attended to; ``None`` means any, and so does ``"auto"``: the
            smallest window with the same result is not looked for yet. A window is a band of the full matrix of
            scores, so it saves no time or memory yet either.
        scale: :math:`\tau`; ``None`` is :math:`1/\sqrt{d/h}`.

    Attributes:
        in_proj: :math:`W_Q, W_K, W_V`, one ``Linear(d, 3 d)`` with its rows in this order, and in each of them head
            by head.
        out_proj: :math:`W_O`, a ``Linear(d, d)``.
        prior: :math:`\beta`.

    Shape:
        x ``(b, n, d)``, mask ``(b, n)`` → :math:`\tilde x` ``(b, n, d)``, 0 at padding.

    Raises:
        ValueError: if ``num_heads`` does not divide ``embed_dim``, if ``dropout`` is no probability, if ``window`` is
            neither ``None`` nor ``"auto"`` nor an integer of at least 0, if x is not ``(batch, length, embed_dim)``,
            or if the mask is not boolean of its ``(batch, length)``.

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
        window: int | str | None = "auto",
        scale: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if num_heads < 1 or embed_dim < 1 or embed_dim % num_heads:
            raise ValueError(
                f"embed_dim must be a positive multiple of num_heads, got embed_dim={embed_dim}, num_heads={num_heads}"
            )
        require_probability("dropout", dropout)
        _require_window(window)
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.window = window
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.scale = 1 / math.sqrt(embed_dim // num_heads) if scale is None else scale
        self.prior = GaussianPrior(device=device, dtype=dtype) if prior is None else prior
        self.in_proj = nn.Linear(embed_dim, 3 * embed_dim, bias=bias, device=device, dtype=dtype)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw each projection so that it keeps the variance (Glorot); biases start at 0. The prior resets itself.

        Attention averages: words that agree keep their variance, and independent ones lose what an average loses.
        """
        for block in (*self.in_proj.weight.chunk(3), self.out_proj.weight):
            nn.init.xavier_uniform_(block)
        for projection in (self.in_proj, self.out_proj):
            if projection.bias is not None:
                nn.init.zeros_(projection.bias)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each word's view of the sentence."""
        weights, values = self._weights_and_values(x, mask)
        heads = functional.attend(self.dropout(weights), values)
        # With a bias, what leaves out_proj is not 0 where its input is.
        return zero_padding(self.out_proj(rearrange(heads, "b h n d -> b n (h d)")), mask)

    def attention_weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The weights behind the output, ``(b, h, n, n)``; each row of a real token sums to 1. Without dropout."""
        weights, _ = self._weights_and_values(x, mask)
        return weights

    def _weights_and_values(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        require_sequence("x", x, self.embed_dim)
        require_mask("mask", mask, x.shape[:2])
        projected = self.in_proj(zero_padding(x, mask))
        queries, keys, values = rearrange(projected, "b n (qkv h d) -> qkv b h n d", qkv=3, h=self.num_heads)
        scores = functional.attention_scores(queries, keys, self.scale)
        log_bias = self.prior(x.shape[1], x.shape[1])
        window = None if isinstance(self.window, str) else self.window
        return functional.self_attention_weights(scores, log_bias, mask, window), values

    def extra_repr(self) -> str:
        """The sizes, for ``repr``."""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, window={self.window!r}, scale={self.scale:.4g}"


def _require_window(window: object) -> None:
    is_width = isinstance(window, int) and not isinstance(window, bool) and window >= 0
    if not (window is None or window == "auto" or is_width):
        raise ValueError(f"window must be None, 'auto' or an integer of at least 0, got {window!r}")
