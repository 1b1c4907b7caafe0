"""Convolution with an output gate, and a memory cell for each word."""

import torch
from torch import Tensor, nn

from nlilayers import functional
from nlilayers._checks import require_flags, require_positive, require_probability, require_sequence
from nlilayers._dropout import Dropout
from nlilayers._plain import is_plain
from nlilayers._zeroing import stop_gradients
from nlilayers.masking import zero_padding


class GatedConvBlock(nn.Module):
    r"""One gated convolution with a memory cell for each word: Chen et al. 2019, Eqs 2 and 3.

    "Gated Convolutional Neural Network for Sentence Matching", Interspeech 2019

    .. math::

        o &= \sigma(h^{L-1} * W_o + b_o) \qquad
        f = \sigma(h^{L-1} * W_f + b_f) \qquad
        g = \tanh(h^{L-1} * W_g + b_g) \\
        c^L &= f \odot c^{L-1} + (1 - f) \odot W_p h^{L-1} \\
        h^L &= o \odot g + c^L

    with the hidden states :math:`h`, the output gate :math:`o`, the forget gate :math:`f`, the candidate :math:`g`, the
    memory cells :math:`c`, which go from layer to layer and not from word to word, and convolutions :math:`*` over
    windows of :math:`k` words that are 0 beyond the ends of the sentence.
    :math:`W_p` is there only if the widths differ, and has no bias. A kernel of even width reaches one word further
    to the right than to the left. Hidden states and cells are set to 0 at padding, since the next layer's windows
    reach into it: an output is the same with and without padding at either end.

    Args:
        in_features: features of :math:`h^{L-1}`.
        out_features: features of :math:`h^L` and of the cells.
        kernel_size: :math:`k`, the words in a window.
        forget_gate: ``False`` is the paper's ablation :math:`h = o \odot g + W_p h^{L-1}`: the cell is what enters (not
            a copy where widths match, so do not write to it).
        output_gate: ``False`` is the paper's ablation :math:`h = \mathrm{ReLU}(h^{L-1} * W_g + b_g) + c`. Without both
            gates the block is the paper's plain residual CNN.

    Attributes:
        weight: :math:`W_o, W_f, W_g` stacked, without those of absent gates: each
            ``(out_features, k, in_features)``. The :attr:`torch.nn.Conv1d.weight` of the same convolution is its
            ``weight.mT``.
        bias: :math:`b_o, b_f, b_g` in the same order.
        projection: :math:`W_p`, or ``None`` where the widths match.

    Shape:
        hidden ``(b, n, in_features)``, cell ``(b, n, out_features)``, mask ``(b, n)`` → hidden and cell
        ``(b, n, out_features)``, both 0 at padding.

    Raises:
        TypeError: if a size is not an integer, a gate is neither ``True`` nor ``False``, or hidden, cell or the mask is
            not a tensor.
        ValueError: if a size is below 1, if hidden is not ``(batch, length, in_features)`` or cell not
            ``(batch, length, out_features)``, or if the mask is not boolean of their ``(batch, length)``.

    Example::

        >>> import torch
        >>> from nlilayers import GatedConvBlock
        >>> hidden, cell = GatedConvBlock(8, 12)(torch.randn(2, 7, 8))
        >>> hidden, cell = GatedConvBlock(12, 12)(hidden, cell)
        >>> hidden.shape, cell.shape
        (torch.Size([2, 7, 12]), torch.Size([2, 7, 12]))
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        kernel_size: int = 3,
        forget_gate: bool = True,
        output_gate: bool = True,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_positive(in_features=in_features, out_features=out_features, kernel_size=kernel_size)
        require_flags(forget_gate=forget_gate, output_gate=output_gate)
        in_features, out_features, kernel_size = int(in_features), int(out_features), int(kernel_size)
        self.in_features, self.out_features, self.kernel_size = in_features, out_features, kernel_size
        self.forget_gate, self.output_gate = bool(forget_gate), bool(output_gate)
        rows = (1 + self.forget_gate + self.output_gate) * out_features
        self.weight = nn.Parameter(torch.empty(rows, kernel_size, in_features, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(rows, device=device, dtype=dtype))
        self.projection = (
            None
            if in_features == out_features
            else nn.Linear(in_features, out_features, bias=False, device=device, dtype=dtype)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights that keep the variance of their input; biases start at 0, the forget gate's at -2."""
        nn.init.kaiming_uniform_(self.weight, nonlinearity="linear")
        if isinstance(self.projection, nn.Linear):  # and no module that was put in its place
            nn.init.kaiming_uniform_(self.projection.weight, nonlinearity="linear")
        nn.init.zeros_(self.bias)
        if self.forget_gate:
            # The first cell is 0: a gate that started half open would halve what enters, layer after layer.
            *output, forget, candidate = self.bias.detach().chunk(2 + self.output_gate)
            # What is written to a part of a sharded tensor is lost.
            self.bias.detach().copy_(torch.cat([*output, torch.full_like(forget, -2.0), candidate]))

    def forward(self, hidden: Tensor, cell: Tensor | None = None, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Hidden states and cells of the next layer.

        Args:
            hidden: :math:`h^{L-1}`, or the words themselves.
            cell: :math:`c^{L-1}`; ``None`` is 0, as in the first layer. (The paper gives no first cell; with
                :math:`c^0 = h^0` the first forget gate would have no effect and no gradient.)
            mask: real tokens; ``None`` means all.
        """
        require_sequence("hidden", hidden, self.in_features)
        hidden = zero_padding(hidden, mask)
        if cell is not None:
            self._require_cell(cell, hidden)
            cell = zero_padding(cell, mask)
        shortcut = hidden if self.projection is None else self.projection(hidden)
        convolved = functional.same_convolution(hidden, self.weight, self.bias)
        parts = convolved.chunk(1 + self.forget_gate + self.output_gate, -1)
        output = parts[0] if self.output_gate else None
        forget = parts[-2] if self.forget_gate else None
        hidden, cell = functional.gated_cell(shortcut, cell, parts[-1], forget, output)
        # At padding a cell is 0 as it is, a mix of two zeros; a hidden state is not: tanh(b_g) is not 0.
        return zero_padding(hidden, mask), (stop_gradients if self._keeps_zeros() else zero_padding)(cell, mask)

    def _keeps_zeros(self) -> bool:
        """Whether the projection is one that maps 0 to 0: a module that was put in its place may have a bias."""
        projection = self.projection
        return projection is None or (is_plain(projection, [nn.Linear.forward]) and projection.bias is None)

    def _require_cell(self, cell: Tensor, hidden: Tensor) -> None:
        require_sequence("cell", cell, self.out_features)
        if cell.shape[:2] != hidden.shape[:2]:
            raise ValueError(
                "cell and hidden must have the same batch and length, "
                f"got {tuple(cell.shape)} and {tuple(hidden.shape)}"
            )

    def extra_repr(self) -> str:
        """The sizes, for ``repr``."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, kernel_size={self.kernel_size}, "
            f"forget_gate={self.forget_gate}, output_gate={self.output_gate}"
        )


class GatedConvEncoder(nn.Module):
    r"""A stack of gated convolutions: the GCNN of Chen et al. 2019, Eq 4.

    "Gated Convolutional Neural Network for Sentence Matching", Interspeech 2019

    .. math:: h^L, c^L = \mathrm{block}_L(h^{L-1}, c^{L-1}), \qquad h^0 = x, \quad c^0 = 0

    The first block, :class:`GatedConvBlock`, maps the words to the hidden size, and begins with cells of 0. The last
    hidden states are the output; a word there has seen :math:`L (k - 1) + 1` words, with :math:`L` = ``num_layers``.

    Args:
        in_features: features of a word.
        hidden_size: features of the hidden states and cells.
        num_layers: :math:`L`, the blocks.
        kernel_size: :math:`k`, the words in a window.
        dropout: probability that a feature of a hidden state is dropped between two blocks, in training. Cells are
            not dropped. (The paper gives no dropout.)
        forget_gate: ``False`` is the paper's ablation, in every block.
        output_gate: ``False`` is the paper's ablation, in every block.

    Shape:
        x ``(b, n, in_features)``, mask ``(b, n)`` → ``(b, n, hidden_size)``, 0 at padding.

    Raises:
        TypeError: if a size is not an integer, ``dropout`` is not a number, a gate is neither ``True`` nor ``False``,
            or x or the mask is not a tensor.
        ValueError: if a size is below 1, if ``dropout`` is no probability, if x is not
            ``(batch, length, in_features)``, or if the mask is not boolean of its ``(batch, length)``.

    Example::

        >>> import torch
        >>> from nlilayers import GatedConvEncoder
        >>> GatedConvEncoder(8, 12, num_layers=4)(torch.randn(2, 7, 8)).shape
        torch.Size([2, 7, 12])
    """

    def __init__(
        self,
        in_features: int,
        hidden_size: int,
        num_layers: int,
        *,
        kernel_size: int = 3,
        dropout: float = 0.0,
        forget_gate: bool = True,
        output_gate: bool = True,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_positive(in_features=in_features, hidden_size=hidden_size, num_layers=num_layers)
        require_probability("dropout", dropout)
        self.in_features, self.hidden_size, self.num_layers = int(in_features), int(hidden_size), int(num_layers)
        self.blocks = nn.ModuleList(
            GatedConvBlock(
                hidden_size if layer else in_features,
                hidden_size,
                kernel_size=kernel_size,
                forget_gate=forget_gate,
                output_gate=output_gate,
                device=device,
                dtype=dtype,
            )
            for layer in range(num_layers)
        )
        self.dropout = Dropout(float(dropout))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every block anew."""
        for block in self.blocks:
            if isinstance(block, GatedConvBlock):
                block.reset_parameters()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each word in its context."""
        require_sequence("x", x, self.in_features)
        hidden, cell = x, None
        for layer, block in enumerate(self.blocks):
            hidden, cell = block(self.dropout(hidden) if layer else hidden, cell, mask)
        return hidden

    def extra_repr(self) -> str:
        """The sizes, for ``repr``."""
        return f"in_features={self.in_features}, hidden_size={self.hidden_size}, num_layers={self.num_layers}"
