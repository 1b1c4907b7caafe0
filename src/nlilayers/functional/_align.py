"""Alignment: the equations of Parikh et al. 2016."""

from torch import Tensor

from nlilayers._checks import require_mask, require_scores
from nlilayers._zeroing import stop_gradients
from nlilayers.functional._attention import self_attention_weights
from nlilayers.functional._dot_product import weighted_sum
from nlilayers.masking import masked_softmax, pair_mask


def alignment_weights(
    scores: Tensor, premise_mask: Tensor | None = None, hypothesis_mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""The two normalisations of Parikh et al. 2016, Eq 2.

    .. math::

        \frac{\exp(e_{ij})}{\sum_{k=1}^{m} \exp(e_{ik})}
        \qquad\text{and}\qquad
        \frac{\exp(e_{ij})}{\sum_{k=1}^{n} \exp(e_{kj})}

    over the real tokens only; rows that belong to padding are 0. (The Trento report of 2019 swaps the two
    denominators in its Eq 3; the rows would not sum to 1.)

    Args:
        scores: :math:`e`.
        premise_mask: real premise tokens; ``None`` means all.
        hypothesis_mask: real hypothesis tokens; ``None`` means all.

    Shape:
        ``(b, n, m)``, ``(b, n)``, ``(b, m)`` → ``(b, n, m)``, ``(b, m, n)``; each row of a real token sums to 1, or to
        0 if the other sentence has none.

    Raises:
        TypeError: if the scores or a mask are not a tensor.
        ValueError: if the scores are not floating point of three dimensions, or a mask has another dtype or shape.

    Example::

        >>> import torch
        >>> from nlilayers.functional import alignment_weights
        >>> beta_weights, alpha_weights = alignment_weights(torch.zeros(1, 2, 2))
        >>> beta_weights
        tensor([[[0.5000, 0.5000],
                 [0.5000, 0.5000]]])
    """
    require_scores(scores, 3)
    require_mask("premise_mask", premise_mask, (scores.shape[0], scores.shape[1]))
    require_mask("hypothesis_mask", hypothesis_mask, (scores.shape[0], scores.shape[2]))
    pairs = pair_mask(premise_mask, hypothesis_mask)
    return masked_softmax(scores, pairs, dim=2), masked_softmax(scores, pairs, dim=1).transpose(1, 2)


def align(
    scores: Tensor,
    premise: Tensor,
    hypothesis: Tensor,
    premise_mask: Tensor | None = None,
    hypothesis_mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Soft alignment in both directions: Parikh et al. 2016, Eq 2.

    .. math::

        \beta_i = \sum_{j=1}^{m} \frac{\exp(e_{ij})}{\sum_{k=1}^{m} \exp(e_{ik})} \bar b_j
        \qquad
        \alpha_j = \sum_{i=1}^{n} \frac{\exp(e_{ij})}{\sum_{k=1}^{n} \exp(e_{kj})} \bar a_i

    Args:
        scores: :math:`e`.
        premise: :math:`\bar a`; its padded positions hold finite numbers (0, say).
        hypothesis: :math:`\bar b`, likewise.
        premise_mask: real premise tokens; ``None`` means all.
        hypothesis_mask: real hypothesis tokens; ``None`` means all.

    Shape:
        ``(b, n, m)``, ``(b, n, d)``, ``(b, m, d)``, ``(b, n)``, ``(b, m)`` → :math:`\beta` ``(b, n, d)``,
        :math:`\alpha` ``(b, m, d)``; both are 0 at padding.

    Raises:
        TypeError: if the scores or a mask are not a tensor.
        ValueError: if the scores are not floating point of three dimensions, or a mask has another dtype or shape.

    Example::

        >>> import torch
        >>> from nlilayers.functional import align
        >>> a, b = torch.tensor([[[1.0], [3.0]]]), torch.tensor([[[5.0]]])
        >>> beta, alpha = align(torch.zeros(1, 2, 1), a, b)
        >>> beta.flatten(), alpha.flatten()
        (tensor([5., 5.]), tensor([2.]))
    """
    beta_weights, alpha_weights = alignment_weights(scores, premise_mask, hypothesis_mask)
    beta, alpha = weighted_sum(beta_weights, hypothesis), weighted_sum(alpha_weights, premise)
    return stop_gradients(beta, premise_mask), stop_gradients(alpha, hypothesis_mask)


def intra_alignment_weights(scores: Tensor, log_bias: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
    r"""Self-alignment with a distance-sensitive bias: Parikh et al. 2016, Eq 7.

    .. math:: \frac{\exp(f_{ij} + d_{i-j})}{\sum_{k=1}^{n} \exp(f_{ik} + d_{i-k})}

    The paper prints :math:`d_{i-j}` in the denominator too; the bias would then cancel and have no effect at all.

    Args:
        scores: :math:`f`, Eq 6.
        log_bias: :math:`d_{i-j}`; ``None`` means 0, which is the intra-attention of Tay et al. 2018, Eq 5.
        mask: real tokens; ``None`` means all.

    Shape:
        ``(b, n, n)``, ``(n, n)``, ``(b, n)`` → ``(b, n, n)``; rows of padding are 0.

    Raises:
        TypeError: if the scores, the bias or the mask are not a tensor.
        ValueError: if the scores are not floating point of three dimensions, the bias is boolean or complex, or the
            mask has another dtype or shape.

    Example::

        >>> import torch
        >>> from nlilayers.functional import intra_alignment_weights
        >>> nearest = torch.tensor([[0.0, -30.0], [-30.0, 0.0]])
        >>> intra_alignment_weights(torch.zeros(1, 2, 2), nearest).round(decimals=4)
        tensor([[[1., 0.],
                 [0., 1.]]])
    """
    require_scores(scores, 3)
    return self_attention_weights(scores[:, None], log_bias, mask)[:, 0]
