"""What a prior gives for two lengths: numbers to add to scores."""

from torch import Tensor, nn

from nlilayers._checks import require_log_bias


def log_bias_of(name: str, prior: nn.Module, shape: tuple[int, int], heads: int | None = None) -> Tensor:
    """The log-bias of each pair of words, floating point.

    Args:
        name: of the prior, for errors.
        prior: maps two lengths to a matrix or what broadcasts to one or, with heads, to a matrix for each.
        shape: the lengths.
        heads: how many there are; ``None`` means that all have the same.

    Shape:
        → ``(n, m)`` or ``(h, n, m)``.

    Raises:
        TypeError: if the prior gives no tensor.
        ValueError: if it gives another shape, or boolean or complex numbers.

    Example::

        >>> from nlilayers import ZipfPrior
        >>> log_bias_of("prior", ZipfPrior(), (1, 3))
        tensor([[-0.0000, -0.6931, -1.0986]])
    """
    bias: Tensor = prior(*shape)
    require_log_bias(name, bias, shape, heads)
    bias = bias if bias.is_floating_point() else bias.float()
    return bias if bias.ndim == 3 else bias.expand(shape)
