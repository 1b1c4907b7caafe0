"""Distance priors: additive log-biases of the distance between two tokens.

Each maps a query length and a key length to the bias of every (query, key) pair, and fits every layer that takes a
``prior``; :class:`HeadPriors` map them to a bias for each head, and fit self-attention with as many heads.
"""

import math
import sys
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from nlilayers import functional
from nlilayers._checks import (
    require_far_buckets,
    require_flags,
    require_integers,
    require_lengths,
    require_number,
    widened,
)
from nlilayers._log_bias import log_bias_of
from nlilayers._precision import at_least_float32
from nlilayers._values import is_traced


class GaussianPrior(nn.Module):
    r"""A learnt Gaussian over the distance, with a penalised centre: Guo et al. 2019, Eq 4; Eq 3 without ``b``.

    https://doi.org/10.1609/aaai.v33i01.33016489

    .. math:: \beta(\delta) = -\left| w \delta^2 + b \right|, \qquad w > 0, \quad b \le 0

    with the distance :math:`\delta = i - j` of two tokens. Both signs are kept, whatever an optimiser does,
    by :math:`w = \mathrm{softplus}(\rho)` and :math:`b = -\mathrm{softplus}(\kappa)` with trained :math:`\rho` and
    :math:`\kappa`. Without :math:`b` the prior is a normal one of :math:`\sigma = 1 / \sqrt{2w}` tokens. The paper says
    that :math:`b` penalises a word's attention to itself; with :math:`c = -b` it does more than that:

    1. every distance short of :math:`\sqrt{c/w}`, where the bias is 0, is penalised as well;
    2. the centre lies below its neighbours exactly when :math:`w < 2c`: it ties with them at :math:`w = 2c`, and is the
       highest of all tokens for larger :math:`w`;
    3. a large :math:`c` moves the peak outward, to the distance :math:`\sqrt{c/w}`.

    The default, :math:`w = c`, has its peak on the two neighbours, where the absolute value has its kink: finite
    differences find no gradient there. (The paper gives no initial values.)

    Args:
        w: where :math:`w` starts, above 0; never below the smallest normal number (1e-38 in float32), however small.
        b: where :math:`b` starts; ``None`` leaves it out (Eq 3). At 0 its gradient is 0, so only weight decay moves it.

    Attributes:
        rho, kappa: :math:`\rho` and :math:`\kappa`, the trained scalars; ``kappa`` is ``None`` for Eq 3.
        w: :math:`w`, a scalar above 0, computed from ``rho`` whenever it is read.
        b: :math:`b`, a scalar, at most 0, likewise; 0 for Eq 3.

    Shape:
        → ``(query_length, key_length)``, in at least float32.

    Raises:
        TypeError: if ``w`` or ``b`` is not a number, or a length not an integer.
        ValueError: if ``w`` is not above 0, if ``b`` is not at most 0, if one of them is not finite in the dtype, or if
            a length is negative.

    Example::

        >>> from nlilayers import GaussianPrior
        >>> GaussianPrior(w=0.5, b=-1.0)(1, 4)
        tensor([[-1.0000, -0.5000, -1.0000, -3.5000]], grad_fn=<FlipBackward0>)
    """

    def __init__(
        self,
        w: float = 0.1,
        b: float | None = -0.1,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_number("w", w)
        if b is not None:
            require_number("b", b)
        self.rho = nn.Parameter(torch.empty((), device=device, dtype=dtype))
        largest = torch.finfo(self.rho.dtype).max
        if not 0 < w <= largest:
            raise ValueError(f"w must be a finite number above 0 in {self.rho.dtype}, got {w}")
        if b is not None and not -largest <= b <= 0:
            raise ValueError(f"b must be None or a finite number of at most 0 in {self.rho.dtype}, got {b}")
        self.initial_w, self.initial_b = float(w), None if b is None else float(b)
        self.kappa = None if b is None else nn.Parameter(torch.empty((), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset ``w`` and ``b`` to the constructor's values."""
        nn.init.constant_(self.rho, _inverse_softplus(self.initial_w))
        if self.kappa is not None and self.initial_b is not None:
            nn.init.constant_(self.kappa, _inverse_softplus(-self.initial_b))

    @property
    def w(self) -> Tensor:
        """:math:`w > 0`."""
        return _positive(self.rho)

    @property
    def b(self) -> Tensor:
        r""":math:`b \le 0`."""
        return torch.zeros_like(self.w) if self.kappa is None else -_softplus(self.kappa)

    def forward(self, query_length: int, key_length: int | None = None) -> Tensor:
        """The log-bias to add to the scores of each query (rows) and key (columns).

        Args:
            query_length: the queries, n of them.
            key_length: the keys, m of them; ``None`` means n.
        """
        w, b = self.w, self.b
        return _along_diagonals(
            lambda distances: functional.gaussian_bias(w, b, distances), query_length, key_length, w.device
        )

    def extra_repr(self) -> str:
        """Where the scalars start, for ``repr``."""
        return f"w={self.initial_w}, b={self.initial_b}"


class ZipfPrior(nn.Module):
    r"""A prior that falls with the inverse of the distance, as Zipf's law does: Guo et al. 2019, Eq 18.

    https://doi.org/10.1609/aaai.v33i01.33016489

    .. math:: \beta(\delta) = -\ln(|\delta| + 1)

    with the distance :math:`\delta = i - j` of two tokens. The paper multiplies the weights by
    :math:`1 / (|\delta| + 1)` and normalises again, which is this bias inside the softmax. It has no parameters; its
    device and dtype are those that the module was made with or moved to.

    Attributes:
        like: a buffer of one number, 0, that holds the module's device and dtype. (Without a number of its own, those
            of several priors would be taken for one where a model is saved.)

    Shape:
        → ``(query_length, key_length)``, in at least float32.

    Raises:
        TypeError: if a length is not an integer.
        ValueError: if a length is negative.

    Example::

        >>> from nlilayers import ZipfPrior
        >>> ZipfPrior()(1, 4).exp()
        tensor([[1.0000, 0.5000, 0.3333, 0.2500]])
    """

    like: Tensor

    def __init__(self, *, device: torch.device | str | int | None = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.register_buffer("like", torch.zeros(1, device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Set the buffer to 0; there are no parameters."""
        self.like.zero_()

    def forward(self, query_length: int, key_length: int | None = None) -> Tensor:
        """The log-bias to add to the scores of each query (rows) and key (columns).

        Args:
            query_length: the queries, n of them.
            key_length: the keys, m of them; ``None`` means n.
        """
        dtype, device = at_least_float32(self.like.dtype), self.like.device
        return _along_diagonals(
            lambda distances: functional.zipf_bias(distances.to(dtype)), query_length, key_length, device
        )


class LinearPrior(nn.Module):
    r"""A learnt linear decay with the distance: Guo et al. 2019, Eq 20.

    https://doi.org/10.1609/aaai.v33i01.33016489

    .. math:: \beta(\delta) = w_l |\delta|, \qquad w_l < 0

    with the distance :math:`\delta = i - j` of two tokens. The sign is kept, whatever an optimiser does, by
    :math:`w_l = -\mathrm{softplus}(\theta)` with a trained :math:`\theta`.

    Args:
        w: where :math:`w_l` starts. (The paper gives no initial value.)

    Attributes:
        theta: the trained scalar.
        w: :math:`w_l`, a scalar below 0, computed from ``theta`` whenever it is read.

    Shape:
        → ``(query_length, key_length)``, in at least float32.

    Raises:
        TypeError: if ``w`` is not a number, or a length not an integer.
        ValueError: if ``w`` is not a finite number below 0 in the dtype, or if a length is negative.

    Example::

        >>> from nlilayers import LinearPrior
        >>> LinearPrior(w=-0.5)(1, 4)
        tensor([[-0.0000, -0.5000, -1.0000, -1.5000]], grad_fn=<FlipBackward0>)
    """

    def __init__(
        self,
        w: float = -0.1,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_number("w", w)
        self.theta = nn.Parameter(torch.empty((), device=device, dtype=dtype))
        if not -torch.finfo(self.theta.dtype).max <= w < 0:
            raise ValueError(f"w must be a finite number below 0 in {self.theta.dtype}, got {w}")
        self.initial_w = float(w)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset ``w`` to the constructor's value."""
        nn.init.constant_(self.theta, _inverse_softplus(-self.initial_w))

    @property
    def w(self) -> Tensor:
        """:math:`w_l < 0`."""
        return -_positive(self.theta)

    def forward(self, query_length: int, key_length: int | None = None) -> Tensor:
        """The log-bias to add to the scores of each query (rows) and key (columns).

        Args:
            query_length: the queries, n of them.
            key_length: the keys, m of them; ``None`` means n.
        """
        w = self.w
        return _along_diagonals(
            lambda distances: functional.linear_bias(w, distances), query_length, key_length, w.device
        )

    def extra_repr(self) -> str:
        """Where the scalar starts, for ``repr``."""
        return f"w={self.initial_w}"


class DistancePrior(nn.Module):
    r"""A trainable bias for each distance: Parikh et al. 2016, Eq 7; Guo et al. 2019, Eq 19.

    https://arxiv.org/abs/1606.01933v1

    .. math:: d_{i-j} = \mathrm{bias}[\mathrm{bucket}(i - j)]

    Distances are signed, so that a word can prefer one side; all those beyond :math:`D` = ``max_distance`` share one
    bucket, whatever their sign: :math:`2D + 2` scalars, 22 for the :math:`D = 10` of Parikh et al. They start at 0,
    where the prior has no effect. A constant added to all of them changes nothing, since a softmax follows. (Parikh et
    al. say that "all distances greater than 10 words share the same bias", which can be read in two more ways.)

    Args:
        max_distance: :math:`D`, the largest distance with a bucket of its own.
        signed: whether keys before and after their query have biases of their own; without signs there are
            :math:`D + 2` scalars, 12 instead of 22.
        far_buckets: 1 for the keys beyond :math:`D` on both sides or, if signed, 2, one for each side: 23 instead of
            22 scalars.

    Attributes:
        bias: :math:`d`, ``(2 max_distance + 1 + far_buckets,)``: distances from :math:`-D` to :math:`D`, then the far
            bucket, or the one of keys far before their query and the one of keys far after it. Without signs
            ``(max_distance + 2,)``: distances from 0 to :math:`D`, then the far bucket.

    Shape:
        → ``(query_length, key_length)``, in at least float32.

    Raises:
        TypeError: if ``max_distance``, ``far_buckets`` or a length is not an integer, or if ``signed`` is neither
            ``True`` nor ``False``.
        ValueError: if ``max_distance`` or a length is negative, or if ``far_buckets`` is neither 1 nor, if signed, 2.

    Example::

        >>> import torch
        >>> from nlilayers import DistancePrior
        >>> prior = DistancePrior(max_distance=1)
        >>> _ = prior.bias.data.copy_(torch.tensor([0.1, 0.2, 0.3, 0.9]))
        >>> prior(3)
        tensor([[0.2000, 0.1000, 0.9000],
                [0.3000, 0.2000, 0.1000],
                [0.9000, 0.3000, 0.2000]], grad_fn=<FlipBackward0>)
    """

    def __init__(
        self,
        max_distance: int = 10,
        *,
        signed: bool = True,
        far_buckets: int = 1,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_lengths(max_distance=max_distance)
        require_integers(far_buckets=far_buckets)
        require_flags(signed=signed)
        require_far_buckets(far_buckets, signed=signed)
        self.max_distance, self.signed, self.far_buckets = int(max_distance), bool(signed), int(far_buckets)
        near = 2 * self.max_distance + 1 if signed else self.max_distance + 1
        self.bias = nn.Parameter(torch.empty(near + self.far_buckets, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set every bias to 0: no distance is preferred before training."""
        nn.init.zeros_(self.bias)

    def forward(self, query_length: int, key_length: int | None = None) -> Tensor:
        """The log-bias to add to the scores of each query (rows) and key (columns).

        Args:
            query_length: the queries, n of them.
            key_length: the keys, m of them; ``None`` means n.
        """
        bias, signed = self.bias, self.signed
        return _along_diagonals(
            lambda distances: functional.distance_bias(bias, distances, signed=signed),
            query_length,
            key_length,
            bias.device,
        )

    def extra_repr(self) -> str:
        """The sizes, for ``repr``."""
        return f"max_distance={self.max_distance}, signed={self.signed}, far_buckets={self.far_buckets}"


class HeadPriors(nn.Module):
    r"""One prior for each head, instead of one for all of them: Guo et al. 2019 do not say which.

    https://doi.org/10.1609/aaai.v33i01.33016489

    .. math:: \beta_h(\delta), \qquad h = 1, 2, \dots

    Heads can then look at different distances. They need not have priors of one kind.

    Args:
        priors: :math:`\beta_h` in the order of the heads, modules that map two lengths to a log-bias.

    Attributes:
        priors: the same, as a list of modules.

    Shape:
        → ``(h, query_length, key_length)``.

    Raises:
        TypeError: if priors are not an iterable of modules, or one gives no tensor.
        ValueError: if there is none, or if one gives more than a matrix, or boolean or complex numbers.

    Example::

        >>> from nlilayers import GaussianSelfAttention, HeadPriors, LinearPrior
        >>> slopes = HeadPriors(LinearPrior(w=-(2.0**-h)) for h in range(1, 5))
        >>> slopes(1, 3)[:, 0]
        tensor([[-0.0000, -0.5000, -1.0000],
                [-0.0000, -0.2500, -0.5000],
                [-0.0000, -0.1250, -0.2500],
                [-0.0000, -0.0625, -0.1250]], grad_fn=<SelectBackward0>)
        >>> attention = GaussianSelfAttention(120, num_heads=4, prior=slopes)
    """

    def __init__(self, priors: Iterable[nn.Module]) -> None:
        super().__init__()
        if not isinstance(priors, Iterable):
            raise TypeError(f"priors must be an iterable of modules, got a {type(priors).__name__}")
        modules = list(priors)
        for module in modules:
            if not isinstance(module, nn.Module):
                raise TypeError(f"priors must all be modules, got a {type(module).__name__}")
        if not modules:
            raise ValueError("priors must have at least one prior, got none")
        self.priors = nn.ModuleList(modules)

    def reset_parameters(self) -> None:
        """Reset every prior that can be reset."""
        for prior in self.priors:
            reset = getattr(prior, "reset_parameters", None)
            if reset is not None:
                reset()

    def forward(self, query_length: int, key_length: int | None = None) -> Tensor:
        """The log-bias to add to the scores of each head, query (rows) and key (columns).

        Args:
            query_length: the queries, n of them.
            key_length: the keys, m of them; ``None`` means n.
        """
        shape = query_length, query_length if key_length is None else key_length
        return torch.stack([log_bias_of("each prior", prior, shape) for prior in self.priors])


def _along_diagonals(
    bias_of: Callable[[Tensor], Tensor], query_length: int, key_length: int | None, device: torch.device
) -> Tensor:
    """The bias of each pair. That of a distance is computed once: its gradient is then a sum along a diagonal."""
    key_length = query_length if key_length is None else key_length
    if not is_traced():
        require_lengths(query_length=query_length, key_length=key_length)
    query_length, key_length = widened(query_length), widened(key_length)
    if is_traced() or query_length == 0:
        return bias_of(functional.token_distances(query_length, key_length, device))
    distances = torch.arange(query_length + key_length - 1, device=device) - (key_length - 1)
    # A row of the matrix, so that a bias may have axes before its own two.
    return bias_of(distances[None]).unfold(-1, key_length, 1).squeeze(-3).flip(-1)


def _softplus(unbounded: Tensor) -> Tensor:
    # From a threshold on, torch takes the number itself: at its default of 20 that is 2e-9 off, at 40 a rounding.
    return nn.functional.softplus(unbounded.to(at_least_float32(unbounded.dtype)), threshold=40)


def _positive(unbounded: Tensor) -> Tensor:
    """A softplus that is above 0 even where it underflows."""
    softplus = _softplus(unbounded)
    return softplus.clamp(min=torch.finfo(softplus.dtype).tiny)


def _inverse_softplus(positive: float) -> float:
    positive = max(positive, sys.float_info.min)  # 0 has no inverse: the nearest number that has
    return positive + math.log(-math.expm1(-positive))
