"""Factorization machines on dense vectors."""

import math

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from nlilayers import functional
from nlilayers._checks import require_features, require_positive
from nlilayers._plain import is_plain


class FactorizationMachine(nn.Module):
    r"""A scalar from all features of a vector and all their pairs: Tay et al. 2018, Eqs 6 to 8, after Rendle 2010.

    https://arxiv.org/abs/1801.00102v1

    .. math::

        F_\mathrm{fm}(x) = w_0 + \sum_{i=1}^{n} w_i x_i
                         + \sum_{i=1}^{n} \sum_{j=i+1}^{n} \langle v_i, v_j \rangle\, x_i x_j

    The weight of each pair of features is factorized, so that :math:`n k` numbers stand for all of them. Computed in
    at least float32, under autocast too, and returned in the dtype of x.

    Args:
        in_features: :math:`n`.
        num_factors: :math:`k`.

    Attributes:
        bias: :math:`w_0`, ``()``.
        weight: :math:`w`, ``(in_features,)``.
        factors: the :math:`v_i`, ``(in_features, num_factors)``.

    Shape:
        ``(..., in_features)`` → ``(...)``.

    Raises:
        TypeError: if a size is not an integer, or x is not a tensor.
        ValueError: if a size is below 1, or x is not floating point of shape ``(..., in_features)``.

    Example::

        >>> import torch
        >>> from nlilayers import FactorizationMachine
        >>> FactorizationMachine(8, num_factors=5)(torch.randn(2, 7, 8)).shape
        torch.Size([2, 7])
    """

    def __init__(
        self,
        in_features: int,
        num_factors: int,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_positive(in_features=in_features, num_factors=num_factors)
        self.in_features, self.num_factors = in_features, num_factors = int(in_features), int(num_factors)
        self.bias = nn.Parameter(torch.empty((), device=device, dtype=dtype))
        self.weight = nn.Parameter(torch.empty(in_features, device=device, dtype=dtype))
        self.factors = nn.Parameter(torch.empty(in_features, num_factors, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Draw normal weights and factors; the bias starts at 0.

        Many independent features of variance 1 give an output of variance 1, one half of it from the features and the
        other from their pairs: :math:`n \sigma_w^2 = \tfrac12` and :math:`\tfrac{n^2}{2} k \sigma_v^4 = \tfrac12`. (Of
        few it is less, :math:`1 - \tfrac1{2n}`, for there are :math:`\tfrac{n (n - 1)}{2}` pairs.)
        """
        nn.init.zeros_(self.bias)
        nn.init.normal_(self.weight, std=math.sqrt(0.5 / self.in_features))
        nn.init.normal_(self.factors, std=(self.in_features**2 * self.num_factors) ** -0.25)

    def forward(self, x: Tensor) -> Tensor:
        """The scalar of each vector."""
        require_features("x", x, self.in_features)
        return functional.factorization_machine(x, self.bias, self.weight, self.factors)

    def extra_repr(self) -> str:
        """The sizes, for ``repr``."""
        return f"in_features={self.in_features}, num_factors={self.num_factors}"


class AlignmentFactorization(nn.Module):
    r"""Three scalars that compare a word with what was aligned to it: Tay et al. 2018, Eqs 9 to 14.

    https://arxiv.org/abs/1801.00102v1

    .. math::

        y_c = F_\mathrm{fm}([x; a]) \qquad y_s = F_\mathrm{fm}(x - a) \qquad y_m = F_\mathrm{fm}(x \odot a)

    with the word :math:`x`, the aligned vector :math:`a` and a separate :class:`FactorizationMachine` for each. One
    such layer serves both sentences; the paper has a second for what was aligned within a sentence. Computed in at
    least float32, under autocast too, and returned in the dtype of x. There is no mask: a padded position affects no
    other, and the caller must set its output to 0. NaN and infinity in padding would reach the gradients of the
    weights: set them to 0 first. The three machines are computed together as long as they are plain; each is called by
    itself, on differences and products rounded to the dtype of the words, where one of them has hooks, as
    ``torch.nn.utils.prune`` and offloading give it, or was replaced, or while all modules have hooks, as under a
    counter of operations. That takes longer.

    Args:
        embed_dim: :math:`d`, the features of a word.
        num_factors: :math:`k`, in each machine.

    Attributes:
        concat: the machine on :math:`[x; a]`.
        subtract: the machine on :math:`x - a`.
        multiply: the machine on :math:`x \odot a`.

    Shape:
        x ``(..., d)``, aligned ``(..., d)`` → ``(..., 3)`` in the order concat, subtract, multiply.

    Raises:
        TypeError: if a size is not an integer, or x or aligned is not a tensor.
        ValueError: if a size is below 1, if x or aligned is not floating point of shape ``(..., embed_dim)``, or if
            their shapes differ.

    Example::

        >>> import torch
        >>> from nlilayers import AlignmentFactorization, DecomposableAlign
        >>> premise, hypothesis = torch.randn(2, 7, 8), torch.randn(2, 5, 8)
        >>> beta, alpha = DecomposableAlign()(premise, hypothesis)
        >>> compare = AlignmentFactorization(8, num_factors=5)
        >>> compare(premise, beta).shape, compare(hypothesis, alpha).shape
        (torch.Size([2, 7, 3]), torch.Size([2, 5, 3]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_factors: int,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_positive(embed_dim=embed_dim, num_factors=num_factors)
        self.embed_dim, self.num_factors = embed_dim, num_factors = int(embed_dim), int(num_factors)
        self.concat = FactorizationMachine(2 * embed_dim, num_factors, device=device, dtype=dtype)
        self.subtract = FactorizationMachine(embed_dim, num_factors, device=device, dtype=dtype)
        self.multiply = FactorizationMachine(embed_dim, num_factors, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Draw the three machines anew, each for an output of variance 1 from many independent features of variance 1.

        Their difference has variance 2, so that its machine starts from numbers smaller by :math:`\sqrt 2`. It comes
        after any ``reset_parameters`` of the machines themselves.
        """
        for machine in (self.concat, self.subtract, self.multiply):
            if isinstance(machine, FactorizationMachine):  # and no module that was put in its place
                machine.reset_parameters()
        if isinstance(self.subtract, FactorizationMachine):
            with torch.no_grad():
                self.subtract.weight.div_(math.sqrt(2))
                self.subtract.factors.div_(math.sqrt(2))

    def forward(self, x: Tensor, aligned: Tensor) -> Tensor:
        """The three scalars of each word.

        Args:
            x: the words.
            aligned: what was aligned to each of them.
        """
        require_features("x", x, self.embed_dim)
        require_features("aligned", aligned, self.embed_dim)
        if x.shape != aligned.shape:
            raise ValueError(f"x and aligned must have the same shape, got {tuple(x.shape)} and {tuple(aligned.shape)}")
        machines = self.concat, self.subtract, self.multiply
        if all(map(_computes_alone, machines)):
            return functional.alignment_factorization(x, aligned, *((m.bias, m.weight, m.factors) for m in machines))
        pairs = torch.cat([x, aligned], dim=-1), x - aligned, x * aligned
        return torch.stack([machine(pair) for machine, pair in zip(machines, pairs, strict=True)], dim=-1).to(x.dtype)

    def extra_repr(self) -> str:
        """The sizes, for ``repr``."""
        return f"embed_dim={self.embed_dim}, num_factors={self.num_factors}"


def _computes_alone(machine: nn.Module) -> bool:
    """Whether a machine's parameters tell all that it does, forwards and backwards."""
    # What all modules have has no public name.
    watched = machine._backward_hooks or machine._backward_pre_hooks or _has_any_global_hook()  # type: ignore[no-untyped-call]
    return is_plain(machine, [FactorizationMachine.forward]) and not watched
