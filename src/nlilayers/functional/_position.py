"""Positions of words: Eqs 7 and 8 of Guo et al. 2019."""

import math
from typing import Literal

import torch
from torch import Tensor

from nlilayers._checks import require_even, require_integers, require_layout, require_lengths
from nlilayers._values import is_traced

WITHOUT_FLOAT64 = {"mps"}
"""Kinds of devices that have no float64."""


def sinusoidal_encoding(
    length: int,
    embed_dim: int,
    start: int = 1,
    *,
    layout: Literal["interleaved", "halves"] = "interleaved",
    device: torch.device | str | int | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""Sines and cosines of each position: Guo et al. 2019, Eqs 7 and 8.

    .. math::

        P_{i, 2k} = \sin(i / 10000^{2k/d}) \qquad P_{i, 2k+1} = \cos(i / 10000^{2k/d})

    Args:
        length: positions.
        embed_dim: :math:`d`, even.
        start: :math:`i` of the first position.
        layout: each sine beside its cosine, as printed, or all sines before all cosines, the order of tensor2tensor.
        device: device of the result.
        dtype: of the result. Angles are computed in float64, on the CPU for a device that has none: at 4,000 radians
            neighbouring numbers of float32 are 2.4e-4 apart.

    Shape:
        → ``(length, embed_dim)``.

    Raises:
        TypeError: if ``length``, ``embed_dim`` or ``start`` is not an integer.
        ValueError: if ``length`` is negative, if ``embed_dim`` is odd or below 2, or if ``layout`` is neither of these.

    Example::

        >>> from nlilayers.functional import sinusoidal_encoding
        >>> sinusoidal_encoding(2, 2)
        tensor([[ 0.8415,  0.5403],
                [ 0.9093, -0.4161]])
    """
    require_even(embed_dim=embed_dim)
    require_layout(layout)
    if not is_traced():
        require_lengths(length=length)
        require_integers(start=start)
    device = torch.empty(0, device=device).device
    exact = torch.device("cpu") if device.type in WITHOUT_FLOAT64 else device
    i = torch.arange(length, device=exact) + start
    exponents = torch.arange(0, embed_dim, 2, device=exact).to(torch.float64) / embed_dim
    angles = i[:, None] * torch.exp(-math.log(10000.0) * exponents)
    encoding = torch.stack((angles.sin(), angles.cos()), -1 if layout == "interleaved" else 1).flatten(1)
    return encoding.to(dtype).to(device)
