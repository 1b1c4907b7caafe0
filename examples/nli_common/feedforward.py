"""Feed-forward networks."""

from collections.abc import Callable
from itertools import pairwise

from torch import nn

from nlilayers import GaussianSelfAttention


def feedforward(*sizes: int, dropout: float = 0.0, activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Activated layers of these sizes, the first of them being what enters, with dropout between two of them."""
    layers: list[nn.Module] = []
    for in_features, out_features in pairwise(sizes):
        if layers:
            layers.append(nn.Dropout(dropout))
        layers += [nn.Linear(in_features, out_features), activation()]
    return nn.Sequential(*layers)


def start_from_glorot(module: nn.Module) -> None:
    """Glorot's uniform weights and biases of 0, for ``module.apply``; self-attention draws its projections itself."""
    if isinstance(module, GaussianSelfAttention):
        module.reset_parameters()
    elif isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
