"""LSTMs over padded sentences."""

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class SentenceLSTM(nn.Module):
    """An LSTM that starts at the first real word of each sentence and ends at the last, in both directions if asked.

    Args:
        in_features: features of a word.
        hidden_size: features of a state, in each direction.
        num_layers: layers, one upon the other.
        bidirectional: whether a second LSTM reads each layer's input from right to left.
        dropout: probability that a feature is dropped between two layers, in training.

    Shape:
        x ``(b, n, in_features)``, mask ``(b, n)``, real words first → states ``(b, n, directions * hidden_size)``, 0
        at padding, and the last layer's final states ``(b, directions * hidden_size)``: that of the last real word
        and, going left, that of the first.
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
        self.lstm = nn.LSTM(
            in_features, hidden_size, num_layers, batch_first=True, bidirectional=bidirectional, dropout=dropout
        )

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The states of every word, and the final ones."""
        lengths = mask.sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, (final, _) = self.lstm(packed)
        padded, _ = pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
        directions = 2 if self.lstm.bidirectional else 1
        return padded, final[-directions:].transpose(0, 1).flatten(1)
