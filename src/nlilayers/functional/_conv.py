"""Gated convolution: the equations of Chen et al. 2019."""

import torch
from torch import Tensor

from nlilayers._precision import are_float16
from nlilayers._values import is_traced


def same_convolution(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    r"""The convolution of Chen et al. 2019, Eqs 1 and 2: :math:`h(c) * W + b`, one window for each word.

    .. math:: y_i = b + \sum_{t=0}^{k-1} W_t\, x_{i + t - r}, \qquad r = \left\lfloor \tfrac{k-1}{2} \right\rfloor

    with :math:`h(c)` the window of :math:`x` around a word, and :math:`x = 0` beyond both ends. A kernel of even width
    reaches one word further to the right.

    Args:
        x: sentences, 0 at padding.
        weight: :math:`W`, a matrix for each place in the window; :class:`torch.nn.Conv1d` swaps its last two axes.
        bias: :math:`b`.

    Shape:
        ``(b, n, in_features)``, ``(out_features, k, in_features)``, ``(out_features,)`` → ``(b, n, out_features)``.

    Example::

        >>> import torch
        >>> from nlilayers.functional import same_convolution
        >>> x = torch.tensor([[[1.0], [2.0], [3.0]]])
        >>> same_convolution(x, torch.tensor([[[100.0], [10.0], [1.0]]]), torch.zeros(1)).flatten()
        tensor([ 12., 123., 230.])
    """
    if x.shape[1] == 0:
        return torch.nn.functional.linear(x, weight[:, 0], bias)
    kernel_size = weight.shape[1]
    left, right = (kernel_size - 1) // 2, kernel_size // 2
    # A CPU differentiates a convolution of float16 a hundred times as slowly as one of float32.
    if x.device.type == "cpu" and not are_float16(x) and not torch.compiler.is_compiling():
        # Images with a row for each sentence and a pixel for each word: features lie side by side, as oneDNN would lay
        # them. With rows to an image it is faster than with one, most with about 16; but a trace is of batches of any
        # size, and of a tensor that several processes share, each has only some of the sentences.
        batch = x.shape[0]
        is_whole = type(x) is Tensor and not is_traced()
        rows = next(rows for rows in range(16, 0, -1) if batch % rows == 0) if is_whole else 1
        padded = x if left == right else torch.nn.functional.pad(x, (0, 0, 0, 1))
        images = padded.reshape(batch // rows, rows, *padded.shape[1:]).permute(0, 3, 1, 2)
        windows = torch.nn.functional.conv2d(images, weight.transpose(1, 2).unsqueeze(2), bias, padding=(0, left))
        return windows.permute(0, 2, 3, 1).flatten(0, 1)
    # One matrix product: a compiled convolution is built anew for each length of a sentence, and CUDA's rounds to TF32.
    padded = torch.nn.functional.pad(x, (0, 0, left, right))
    windows = padded.unfold(1, kernel_size, 1).transpose(2, 3).flatten(2)  # (b, n, k * in_features)
    return torch.nn.functional.linear(windows, weight.flatten(1), bias)


def gated_cell(
    shortcut: Tensor, cell: Tensor | None, candidate: Tensor, forget: Tensor | None = None, output: Tensor | None = None
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
        cell: :math:`c'`, the memory of the layer below; ``None`` is 0.
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
    keep = None if forget is None else torch.sigmoid(forget)
    if keep is None:
        memory = shortcut
    elif cell is None:
        memory = (1 - keep) * shortcut
    else:
        memory = torch.addcmul(keep * cell, 1 - keep, shortcut)
    if output is None:
        return torch.relu(candidate) + memory, memory
    # On a CPU the tanh of a slice goes row by row through MKL's threads, and takes twice as long as that of a copy.
    candidate = candidate.contiguous() if candidate.device.type == "cpu" else candidate
    return torch.addcmul(memory, torch.sigmoid(output), torch.tanh(candidate)), memory
