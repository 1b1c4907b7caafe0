"""Highway layers."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nlilayers import functional
from nlilayers._checks import require_features, require_function, require_positive


class Highway(nn.Module):
    r"""Highway layers, which learn for each feature whether to change it: Tay et al. 2018, Eq 1.

    https://arxiv.org/abs/1801.00102v1

    .. math::

        y = \sigma(W_T x + b_T) \odot \mathrm{act}(W_H x + b_H) + (1 - \sigma(W_T x + b_T)) \odot P(x)

    :math:`P` is the identity where the widths match, and a linear layer of its own where they do not: only the first
    layer's can differ. (The paper calls that projection nonlinear; its parameter counts imply that there is one, and
    one author's code has it linear, which is the default here.) The gates' biases start at -3, so that a layer first
    passes on 95 per cent of what enters. There is no mask: a padded position affects no other, and need not be 0
    when it leaves, though it was when it entered.

    Args:
        in_features: features that enter.
        out_features: features that leave, and enter the second layer; ``None`` is ``in_features``.
        num_layers: number of layers.
        activation: act, a function or module that is applied to each feature.
        projection_activation: the same for what :math:`P` projects; ``None`` leaves that linear. Where the widths
            match, nothing is projected, and it is not used.

    Attributes:
        transforms: :math:`W_H, b_H` of each layer.
        gates: :math:`W_T, b_T` of each layer.
        projection: :math:`P` of the first layer, or ``None`` where the widths match.

    Shape:
        ``(..., in_features)`` → ``(..., out_features)``.

    Raises:
        TypeError: if a size is not an integer, an activation cannot be called, or x is not a tensor.
        ValueError: if a size is below 1, or x is not floating point of shape ``(..., in_features)``.

    Example::

        >>> import torch
        >>> from nlilayers import Highway
        >>> Highway(8, 12, num_layers=2)(torch.randn(2, 7, 8)).shape
        torch.Size([2, 7, 12])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int | None = None,
        num_layers: int = 1,
        *,
        activation: Callable[[Tensor], Tensor] = torch.relu,
        projection_activation: Callable[[Tensor], Tensor] | None = None,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        out_features = in_features if out_features is None else out_features
        require_positive(in_features=in_features, out_features=out_features, num_layers=num_layers)
        require_function("activation", activation)
        if projection_activation is not None:
            require_function("projection_activation", projection_activation)
        in_features, out_features, num_layers = int(in_features), int(out_features), int(num_layers)
        self.in_features, self.out_features, self.num_layers = in_features, out_features, num_layers
        self.activation, self.projection_activation = activation, projection_activation

        def linear(width: int) -> nn.Linear:
            return nn.Linear(width, out_features, device=device, dtype=dtype)

        widths = [in_features] + [out_features] * (num_layers - 1)
        self.transforms = nn.ModuleList(map(linear, widths))
        self.gates = nn.ModuleList(map(linear, widths))
        self.projection = None if in_features == out_features else linear(in_features)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights that keep the variance of their input, and nearly close the gates, to pass the input on.

        It comes after any ``reset_parameters`` of the linear layers, whose weights these are.
        """
        for layer in (*self.transforms, *self.gates, self.projection):
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_uniform_(layer.weight, nonlinearity="linear")
                nn.init.zeros_(layer.bias)
        for gate in self.gates:
            if isinstance(gate, nn.Linear):
                # Nearly all of x passes at first, through any number of layers, and so does its gradient: a layer
                # learns what to change in it. Gates that started half open would halve both, layer after layer.
                nn.init.constant_(gate.bias, -3.0)

    def forward(self, x: Tensor) -> Tensor:
        """What leaves the last layer."""
        require_features("x", x, self.in_features)
        carried = x if self.projection is None else self.projection(x)
        if self.projection is not None and self.projection_activation is not None:
            carried = self.projection_activation(carried)
        for transform, gate in zip(self.transforms, self.gates, strict=True):
            carried = functional.highway(carried, self.activation(transform(x)), gate(x))
            x = carried
        return x

    def extra_repr(self) -> str:
        """The sizes, for ``repr``."""
        return f"in_features={self.in_features}, out_features={self.out_features}, num_layers={self.num_layers}"
