"""Dropout that costs nothing while nothing is dropped."""

from torch import Tensor, nn


class Dropout(nn.Dropout):
    """:class:`torch.nn.Dropout`, of which compiled code has nothing at a probability of 0.

    For shapes that vary, PyTorch's is compiled twice: with its probability as any number, then as the one it is.
    """

    @property
    def p(self) -> float:
        """The probability, which may be set at any time."""
        return self._p

    @p.setter
    def p(self, p: float) -> None:
        self._p, self._drops = p, p != 0

    def forward(self, x: Tensor) -> Tensor:
        """The input, or what is left of it."""
        return super().forward(x) if self._drops else x
