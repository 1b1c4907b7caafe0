"""Gated convolution: the equations of Chen et al. 2019."""

import torch
from torch import Tensor


def same_convolution(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    r"""The windows of Chen et al. 2019, Eqs 1 and 2: :math:`h(c) * W + b`, as many as there are words.

    .. math:: y_i = b + \sum_{t=0}^{k-1} W_t\, x_{i + t - r}, \qquad r = \left\lfloor \tfrac{k-1}{2} \right\rfloor

    with :math:`x = 0` beyond both ends. A kernel of even width reaches one word further to the right.

    Args:
        x: sentences, 0 at padding.
        weight: :math:`W`, laid out as in :class:`torch.nn.Conv1d`.
        bias: :math:`b`.

    Shape:
        ``(b, n, in_features)``, ``(out_features, in_features, k)``, ``(out_features,)`` → ``(b, n, out_features)``.

    Example::

        >>> import torch
        >>> from nlilayers.functional import same_convolution
        >>> x = torch.tensor([[[1.0], [2.0], [3.0]]])
        >>> same_convolution(x, torch.tensor([[[100.0, 10.0, 1.0]]]), torch.zeros(1)).flatten()
        tensor([ 12., 123., 230.])
    """
    kernel_size = weight.shape[2]
    if x.shape[1] == 0:
        return x @ weight[:, :, 0].T
    left = (kernel_size - 1) // 2
    padded = torch.nn.functional.pad(x, (0, 0, left, kernel_size - 1 - left))
    if x.device.type == "cpu" and not torch.compiler.is_compiling():
        return torch.nn.functional.conv1d(padded.mT, weight, bias).mT
    # One matrix product: a compiled conv1d is built anew for each length of a sentence, and CUDA's rounds to TF32.
    windows = padded.unfold(1, kernel_size, 1).flatten(2)  # (b, n, in_features * k)
    return torch.nn.functional.linear(windows, weight.flatten(1), bias)


def gated_cell(
    shortcut: Tensor, cell: Tensor, candidate: Tensor, forget: Tensor | None = None, output: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""Memory and output of one layer for each word: Chen et al. 2019, Eqs 2 and 3.

    .. math::

        c = \sigma(f) \odot c' + (1 - \sigma(f)) \odot z
        \qquad
        h = \sigma(o) \odot \tanh(g) + c

    The paper's ablations leave a gate out: without :math:`f`, :math:`c = z`; without :math:`o`,
    :math:`h = \mathrm{ReLU}(g) + c`. Without both, this is its plain residual CNN.

    Args:
        shortcut: :math:`z`, the layer's input :math:`h^{L-1}`, or :math:`W_p h^{L-1}` of Eq 3.
        cell: :math:`c'`, the memory of the layer below.
        candidate: :math:`g` before its activation.
        forget: :math:`f` before its sigmoid; ``None`` is the ablation.
        output: :math:`o` before its sigmoid; ``None`` is the ablation.

    Shape:
        five of any one shape → :math:`h` and :math:`c` of that shape.

    Example::

        >>> import torch
        >>> from nlilayers.functional import gated_cell
        >>> zero, one, open_, shut = torch.tensor([0.0, 1.0, 99.0, -99.0])
        >>> gated_cell(shortcut=one, cell=zero, candidate=open_, forget=shut, output=open_)
        (tensor(2.), tensor(1.))
    """
    if forget is not None:
        keep = torch.sigmoid(forget)
        cell = keep * cell + (1 - keep) * shortcut
    else:
        cell = shortcut
    new = torch.relu(candidate) if output is None else torch.sigmoid(output) * torch.tanh(candidate)
    return new + cell, cell
