"""Distance priors: additive log-biases of the distance between two tokens."""

import torch
from torch import Tensor

from nlilayers._checks import require_far_buckets, require_lengths, widened
from nlilayers._precision import at_least_float32
from nlilayers._values import is_traced


def token_distances(
    query_length: int, key_length: int | None = None, device: torch.device | str | int | None = None
) -> Tensor:
    """The signed distances :math:`i - j` of query position i and key position j, both counted from 0.

    Args:
        query_length: the queries, n of them.
        key_length: the keys, m of them; ``None`` means n.
        device: device of the result.

    Shape:
        → ``(n, m)``, int64.

    Raises:
        TypeError: if a length is not an integer.
        ValueError: if one is negative.

    Example::

        >>> from nlilayers.functional import token_distances
        >>> token_distances(2, 2)
        tensor([[ 0, -1],
                [ 1,  0]])
    """
    require_lengths(query_length=query_length, key_length=query_length if key_length is None else key_length)
    i = torch.arange(query_length, device=device)
    j = i if key_length is None else torch.arange(key_length, device=device)
    return i[:, None] - j


def distance_buckets(distances: Tensor, max_distance: int, *, signed: bool = True, far_buckets: int = 1) -> Tensor:
    r"""The bucket that a distance falls in: Parikh et al. 2016, below Eq 7.

    .. math::

        \mathrm{bucket}(\delta) = \begin{cases}
            \delta + D & |\delta| \le D \\
            2D + 1 & \text{otherwise}
        \end{cases}

    with :math:`D` the largest distance that has a bucket of its own. "All distances greater than 10 words share the
    same bias" is read as one bucket for both sides, which makes :math:`2D + 2` in all. Two other readings are possible.
    With a bucket for each side, that of a key far before its query, :math:`\delta > D`, is :math:`2D + 1`, and that of
    a key far after it :math:`2D + 2`. Without signs, the bucket is :math:`|\delta|`, or :math:`D + 1`
    where that is greater.

    Args:
        distances: :math:`\delta = i - j`.
        max_distance: :math:`D`.
        signed: whether keys before and after their query have buckets of their own.
        far_buckets: 1 for both sides or, if signed, 2.

    Shape:
        any → the same, of the same integers.

    Raises:
        TypeError: if ``max_distance`` is not an integer.
        ValueError: if ``max_distance`` is negative, or ``far_buckets`` any other number.

    Example::

        >>> import torch
        >>> from nlilayers.functional import distance_buckets
        >>> distance_buckets(torch.tensor([-3, -2, 0, 2, 3]), max_distance=2)
        tensor([5, 0, 2, 4, 5])
    """
    require_far_buckets(far_buckets, signed=signed)
    if not is_traced():
        require_lengths(max_distance=max_distance)
    max_distance = widened(max_distance)
    away = distances.abs()
    if not signed:
        return torch.where(away <= max_distance, away, max_distance + 1)
    far: Tensor | int = 2 * max_distance + 1
    if far_buckets == 2:
        far = far + (distances < 0).to(distances.dtype)
    return torch.where(away <= max_distance, distances + max_distance, far)


def distance_bias(bias: Tensor, distances: Tensor, *, signed: bool = True) -> Tensor:
    r"""The trainable bias :math:`d_{i-j}` of Parikh et al. 2016, Eq 7, and of Guo et al. 2019, Eq 19.

    Args:
        bias: a scalar for each bucket, :math:`2D + 2` of them; with one for each far side :math:`2D + 3`, without
            signs :math:`D + 2`. See :func:`distance_buckets`.
        distances: :math:`i - j`.
        signed: whether keys before and after their query have buckets of their own.

    Shape:
        ``(2 D + 2,)``, ``(2 D + 3,)`` or ``(D + 2,)``, ``(n, m)`` → ``(n, m)``, in at least float32: the gradient of a
        bucket is a sum over all pairs of words at its distance.

    Raises:
        ValueError: if the bias has fewer than two scalars.

    Example::

        >>> import torch
        >>> from nlilayers.functional import distance_bias
        >>> distance_bias(torch.tensor([0.1, 0.2, 0.3, 0.9]), torch.tensor([[0, -1, -2]]))
        tensor([[0.2000, 0.1000, 0.9000]])
    """
    if bias.shape[0] < 2:
        raise ValueError(
            f"bias must have at least 2 scalars, of distance 0 and of all that are far, got {bias.shape[0]}"
        )
    max_distance = (bias.shape[0] // 2 if signed else bias.shape[0] - 1) - 1
    buckets = distance_buckets(distances, max_distance, signed=signed, far_buckets=1 + signed * bias.shape[0] % 2)
    exact = bias.to(at_least_float32(bias.dtype))
    # An embedding, not an index: its backward adds in a fixed order on every device.
    return torch.nn.functional.embedding(buckets, exact[:, None]).squeeze(-1)


def gaussian_bias(w: Tensor, b: Tensor, distances: Tensor) -> Tensor:
    r"""The Gaussian prior with a penalised centre: Guo et al. 2019, Eq 4; with :math:`b = 0`, Eq 3.

    .. math:: \beta(\delta) = -\left| w \delta^2 + b \right|

    A normal prior of variance :math:`\sigma^2` has :math:`w = 1 / (2 \sigma^2)`. The paper's Eq 2 prints both
    :math:`e^{-\pi \delta^2}` (:math:`w = \pi`) and :math:`e^{-\delta^2}` (:math:`w = 1`). Computed and returned in at
    least float32: float16 holds no square of a distance above 255.

    Args:
        w: :math:`w > 0`, a scalar.
        b: :math:`b \le 0`, a scalar.
        distances: :math:`\delta = i - j`.

    Shape:
        ``()``, ``()``, ``(n, m)`` → ``(n, m)``.

    Example::

        >>> import torch
        >>> from nlilayers.functional import gaussian_bias
        >>> gaussian_bias(torch.tensor(0.5), torch.tensor(-1.0), torch.tensor([-2, -1, 0, 1, 2]))
        tensor([-1.0000, -0.5000, -1.0000, -0.5000, -1.0000])
    """
    dtype = at_least_float32(torch.promote_types(w.dtype, distances.dtype))
    return -(w.to(dtype) * distances.to(dtype).square() + b.to(dtype)).abs()


def zipf_bias(distances: Tensor) -> Tensor:
    r"""The Zipf prior: Guo et al. 2019, Eq 18, whose factor :math:`1 / (|\delta| + 1)` is a bias inside the softmax.

    Computed and returned in at least float32.

    .. math:: \beta(\delta) = -\ln(|\delta| + 1)

    Args:
        distances: :math:`\delta = i - j`.

    Shape:
        any → the same.

    Example::

        >>> import torch
        >>> from nlilayers.functional import zipf_bias
        >>> zipf_bias(torch.tensor([-3, 0, 1])).exp()
        tensor([0.2500, 1.0000, 0.5000])
    """
    floating = distances.dtype if distances.is_floating_point() else torch.get_default_dtype()
    return -torch.log1p(distances.to(at_least_float32(floating)).abs())


def linear_bias(w: Tensor, distances: Tensor) -> Tensor:
    r"""A linear decay with distance: Guo et al. 2019, Eq 20. Computed and returned in at least float32.

    .. math:: \beta(\delta) = w_l |\delta|

    Args:
        w: :math:`w_l < 0`, a scalar.
        distances: :math:`\delta = i - j`.

    Shape:
        ``()``, ``(n, m)`` → ``(n, m)``.

    Example::

        >>> import torch
        >>> from nlilayers.functional import linear_bias
        >>> linear_bias(torch.tensor(-0.5), torch.tensor([-2, 0, 1]))
        tensor([-1.0000, -0.0000, -0.5000])
    """
    dtype = at_least_float32(torch.promote_types(w.dtype, distances.dtype))
    return w.to(dtype) * distances.to(dtype).abs()
