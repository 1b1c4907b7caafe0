"""The gated CNN with half of what leaving its output gate out changes: the gate alone, or the activation alone."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gated_cnn import GatedCNN, GatedCNNConfig
from nli_common.recipe import Recipe
from nli_common.script import Script
from nlilayers import GatedConvBlock, GatedConvEncoder
from nlilayers.functional import gated_cell, same_convolution
from nlilayers.masking import zero_padding


@dataclass(frozen=True)
class OtherActivationConfig(GatedCNNConfig):
    """With the gate a ReLU, where the paper has tanh; without it tanh, where the paper has a ReLU."""

    def encoder(self, in_features: int, hidden_size: int, num_layers: int) -> nn.Module:
        """A stack of such convolutions."""
        encoder = super().encoder(in_features, hidden_size, num_layers)
        if not isinstance(encoder, GatedConvEncoder):
            raise ValueError(f"convolution must be one with a candidate of its own, got {self.convolution!r}")
        encoder.blocks = nn.ModuleList(_exchanged(block) for block in encoder.blocks)
        return encoder


class OtherActivation(GatedConvBlock):
    r"""A block with the candidate's other activation.

    .. math:: h^L = o \odot \mathrm{ReLU}(h^{L-1} * W_g + b_g) + c^L

    or, without the output gate, :math:`h^L = \tanh(h^{L-1} * W_g + b_g) + c^L`.
    """

    def forward(self, hidden: Tensor, cell: Tensor | None = None, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Hidden states and cells of the next layer."""
        hidden = zero_padding(hidden, mask)
        shortcut = hidden if self.projection is None else self.projection(hidden)
        parts = same_convolution(hidden, self.weight, self.bias).chunk(1 + self.forget_gate + self.output_gate, -1)
        forget = parts[-2] if self.forget_gate else None
        _, cell = gated_cell(shortcut, cell, parts[-1], forget)
        added = torch.sigmoid(parts[0]) * torch.relu(parts[-1]) if self.output_gate else torch.tanh(parts[-1])
        return zero_padding(added + cell, mask), cell


def _exchanged(block: nn.Module) -> OtherActivation:
    if not isinstance(block, GatedConvBlock):
        raise TypeError(f"block must be a GatedConvBlock, got {type(block).__name__}")
    return OtherActivation(
        block.in_features,
        block.out_features,
        kernel_size=block.kernel_size,
        forget_gate=block.forget_gate,
        output_gate=block.output_gate,
    )


SCRIPT = Script(
    name="gates",
    models={OtherActivationConfig: GatedCNN},
    recipe=Recipe(lr=4e-4, batch_size=64),
    quick=Recipe(lr=4e-4, batch_size=64),
    tables={},
)
