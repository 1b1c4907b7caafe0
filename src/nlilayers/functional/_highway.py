"""Highway layers: Eq 1 of Tay et al. 2018."""

import torch
from torch import Tensor


def highway(carried: Tensor, transformed: Tensor, gate: Tensor) -> Tensor:
    r"""A gated mix of an input and a transformation of it: Tay et al. 2018, Eq 1.

    .. math:: y = \sigma(T) \odot H + (1 - \sigma(T)) \odot x

    Args:
        carried: :math:`x`, projected where the widths differ.
        transformed: :math:`H`.
        gate: :math:`T` before its sigmoid.

    Shape:
        three of any one shape → the same.

    Example::

        >>> import torch
        >>> from nlilayers.functional import highway
        >>> highway(torch.tensor([1.0, 1.0]), torch.tensor([5.0, 5.0]), torch.tensor([-99.0, 0.0]))
        tensor([1., 3.])
    """
    through = torch.sigmoid(gate)
    return through * transformed + (1 - through) * carried
