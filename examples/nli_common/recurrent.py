"""LSTMs over padded sentences."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nli_common.data import require_words_first
from nli_common.lstm_operator import lstm_states, onnx_lstm_states, without_autocast
from nlilayers.masking import zero_padding


class SentenceLSTM(nn.Module):
    """An LSTM that starts at the first real word of each sentence and ends at the last, in both directions if asked.

    Each layer is an ``nn.LSTM`` that reads the words as they stand and, if bidirectional, another that reads them
    turned round. Real words come first either way, so that no state of one has seen padding.

    Args:
        in_features: features of a word.
        hidden_size: features of a state, in each direction.
        num_layers: layers, one upon the other.
        bidirectional: whether a second LSTM reads each layer's input from right to left.
        dropout: probability that a feature is dropped between two layers, in training.

    Shape:
        x ``(b, n, in_features)``, mask ``(b, n)``, real words first → states ``(b, n, directions * hidden_size)``, 0
        at padding, and the last layer's final states ``(b, directions * hidden_size)``: that of the last real word
        and, going left, that of the first; 0 where there is no word.

    Raises:
        ValueError: if padding stands before a word. (Read on a CPU alone, and not by compiled code.)
    """

    def __init__(
        self,
        in_features: int,
        hidden_size: int,
        *,
        num_layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.out_features = 2 * hidden_size if bidirectional else hidden_size

        def layers() -> Iterator[nn.LSTM]:
            for depth in range(num_layers):
                yield nn.LSTM(self.out_features if depth else in_features, hidden_size, batch_first=True)

        self.rightward = nn.ModuleList(layers())
        self.leftward = nn.ModuleList(layers() if bidirectional else ())
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The states of every word, and the final ones."""
        if x.shape[1] == 0:  # which torch's LSTM refuses
            return x.new_zeros(*x.shape[:2], self.out_features), x.new_zeros(x.shape[0], self.out_features)
        require_words_first(mask)
        x = zero_padding(x, mask)
        places = _places_turned_round(mask)
        states: list[Tensor] = []
        for depth, rightward in enumerate(self.rightward):
            if depth:
                x = self.dropout(torch.cat(states, dim=-1))
            states = [zero_padding(_read(rightward, x), mask)]
            if self.leftward:
                turned = _read(self.leftward[depth], _take(x, places))
                states.append(zero_padding(_take(turned, places), mask))
        last = _take(states[0], places[:, :1])
        return torch.cat(states, dim=-1), torch.cat([last, *(left[:, :1] for left in states[1:])], dim=-1).squeeze(1)


def _read(lstm: nn.Module, x: Tensor) -> Tensor:
    """The states of an ``nn.LSTM``, which is a single operator in a graph: ``(b, n, d)`` → ``(b, n, hidden_size)``.

    Under autocast, in the dtype of its weights.
    """
    if not torch.compiler.is_compiling() or not _is_plain(lstm):
        with _in_training_for_gradients(lstm, on_cudnn=x.is_cuda), without_autocast(x) as lowers:
            states: Tensor = lstm(x.to(next(lstm.parameters(), x).dtype) if lowers else x)[0]
        return states
    read = onnx_lstm_states if torch.onnx.is_in_onnx_export() else lstm_states
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    weights: list[Tensor] = [getattr(lstm, name) for name in names]
    return read(x.to(weights[0].dtype), *weights)


def _is_plain(lstm: nn.Module) -> bool:
    """Whether it computes what its weights say, and nothing else happens."""
    return type(lstm) is nn.LSTM and not (lstm._forward_hooks or lstm._forward_pre_hooks)


@contextlib.contextmanager
def _in_training_for_gradients(lstm: nn.Module, *, on_cudnn: bool) -> Iterator[None]:
    """For the moment, where gradients may be wanted: cuDNN gives none otherwise.

    An LSTM of one layer has no dropout, and computes the same either way.
    """
    was = lstm.training
    lstm.training = was or (on_cudnn and torch.is_grad_enabled())
    try:
        yield
    finally:
        lstm.training = was


def _places_turned_round(mask: Tensor) -> Tensor:
    """Where each position's word comes from when the real words are turned round and padding stays: ``(b, n)``."""
    places = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - places, places)


def _take(x: Tensor, places: Tensor) -> Tensor:
    """``x[row, places[row, i]]`` in position ``i`` of each row (an index of one axis has the cheapest gradient)."""
    rows = x.shape[1] * torch.arange(x.shape[0], device=x.device)[:, None]
    return x.flatten(0, 1).index_select(0, (rows + places).flatten()).view(*places.shape, x.shape[2])
