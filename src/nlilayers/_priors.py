"""Distance priors: additive log-biases of the distance between two tokens."""

import torch
from torch import Tensor, nn

from nlilayers import functional


class DistancePrior(nn.Module):
    r"""A trainable bias for each distance: Parikh et al. 2016, Eq 7; Guo et al. 2019, Eq 19.

    https://arxiv.org/abs/1606.01933

    .. math:: d_{i-j} = \mathrm{bias}[\mathrm{bucket}(i - j)]

    Distances are signed, so that a word can look one way; all those beyond :math:`D` = ``max_distance`` share one
    bucket, whatever their sign: :math:`2D + 2` scalars, 22 for the paper's :math:`D = 10`. They start at 0, where
    the prior has no effect. A constant added to all of them changes nothing, since a softmax follows.

    Args:
        max_distance: :math:`D`, the largest distance with a bucket of its own.

    Attributes:
        bias: :math:`d`, ``(2 max_distance + 2,)``: distances from :math:`-D` to :math:`D`, then the far bucket.

    Shape:
        → ``(query_length, key_length)``.

    Raises:
        ValueError: if ``max_distance`` is negative.

    Example::

        >>> import torch
        >>> from nlilayers import DistancePrior
        >>> prior = DistancePrior(max_distance=1)
        >>> _ = prior.bias.data.copy_(torch.tensor([0.1, 0.2, 0.3, 0.9]))
        >>> prior(3)
        tensor([[0.2000, 0.1000, 0.9000],
                [0.3000, 0.2000, 0.1000],
                [0.9000, 0.3000, 0.2000]], grad_fn=<SqueezeBackward1>)
    """

    def __init__(
        self,
        max_distance: int = 10,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if max_distance < 0:
            raise ValueError(f"max_distance must be at least 0, got {max_distance}")
        self.max_distance = max_distance
        self.bias = nn.Parameter(torch.empty(2 * max_distance + 2, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set every bias to 0: no distance is preferred before training."""
        nn.init.zeros_(self.bias)

    def forward(self, query_length: int, key_length: int | None = None) -> Tensor:
        """The log-bias to add to the scores of each query (rows) and key (columns).

        Args:
            query_length: n.
            key_length: m; ``None`` means n.
        """
        key_length = query_length if key_length is None else key_length
        return functional.distance_bias(
            self.bias, functional.token_distances(query_length, key_length, self.bias.device)
        )

    def extra_repr(self) -> str:
        """The sizes, for ``repr``."""
        return f"max_distance={self.max_distance}"
