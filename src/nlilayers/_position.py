"""Positions of words, added to them."""

from typing import Literal

from torch import Tensor, nn

from nlilayers import functional
from nlilayers._checks import require_even, require_integers, require_layout, require_sequence


class SinusoidalPositionalEncoding(nn.Module):
    r"""Sines and cosines of each word's position, added to the word: Guo et al. 2019, Eqs 7 and 8.

    https://doi.org/10.1609/aaai.v33i01.33016489

    .. math::

        y_i = x_i + P_i \qquad P_{i, 2k} = \sin(i / 10000^{2k/d}) \qquad P_{i, 2k+1} = \cos(i / 10000^{2k/d})

    with the position :math:`i` and the features in pairs :math:`2k, 2k+1`. It has neither parameters nor buffers: the
    encoding is computed for the length at hand, in float64, and added in the dtype of x.
    There is no mask: padding gets its positions too. Words are counted from the first column, so pad on the right.

    Args:
        embed_dim: :math:`d`, the features of a word; even. (The paper's range for :math:`2k + 1` ends at :math:`d`,
            one too far.)
        start: :math:`i` of the first word. The paper counts from 1; others count from 0.
        layout: ``"interleaved"``, each sine beside its cosine as printed, or ``"halves"``, all sines before all
            cosines, the order of tensor2tensor, the library that the paper's authors used (whose periods are others).

    Shape:
        x ``(b, n, d)`` → ``(b, n, d)``.

    Raises:
        TypeError: if ``embed_dim`` or ``start`` is not an integer, or if x is not a tensor.
        ValueError: if ``embed_dim`` is odd or below 2, if ``layout`` is neither of these, or x is not
            ``(batch, length, embed_dim)``.

    Example::

        >>> import torch
        >>> from nlilayers import SinusoidalPositionalEncoding
        >>> SinusoidalPositionalEncoding(4, start=0)(torch.zeros(1, 2, 4))
        tensor([[[0.0000, 1.0000, 0.0000, 1.0000],
                 [0.8415, 0.5403, 0.0100, 0.9999]]])
    """

    def __init__(
        self,
        embed_dim: int,
        *,
        start: int = 1,
        layout: Literal["interleaved", "halves"] = "interleaved",
    ) -> None:
        super().__init__()
        require_even(embed_dim=embed_dim)
        require_integers(start=start)
        require_layout(layout)
        self.embed_dim, self.start, self.layout = int(embed_dim), int(start), layout

    def forward(self, x: Tensor) -> Tensor:
        """The words at their positions."""
        require_sequence("x", x, self.embed_dim)
        return x + functional.sinusoidal_encoding(
            x.shape[1], self.embed_dim, self.start, layout=self.layout, device=x.device, dtype=x.dtype
        )

    def extra_repr(self) -> str:
        """The sizes, for ``repr``."""
        return f"embed_dim={self.embed_dim}, start={self.start}, layout={self.layout!r}"
