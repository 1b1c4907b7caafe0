"""Soft alignment of two sentences, and of a sentence with itself."""

from collections.abc import Callable

from torch import Tensor, nn

from nlilayers import functional
from nlilayers._checks import (
    require_function,
    require_mask,
    require_prior,
    require_sequence,
    require_words,
)
from nlilayers._denormals import hide_denormals
from nlilayers._log_bias import log_bias_of
from nlilayers._zeroing import stop_gradients
from nlilayers.masking import zero_padding


class DecomposableAlign(nn.Module):
    r"""Soft alignment of two sentences in both directions: Parikh et al. 2016, Eqs 1 and 2.

    https://arxiv.org/abs/1606.01933v1

    .. math::

        e_{ij} = F(\bar a_i)^\top F(\bar b_j)
        \qquad
        \beta_i = \sum_{j} \mathop{\mathrm{softmax}}_{j}(e_{ij})\, \bar b_j
        \qquad
        \alpha_j = \sum_{i} \mathop{\mathrm{softmax}}_{i}(e_{ij})\, \bar a_i

    with the premise :math:`\bar a`, the hypothesis :math:`\bar b` and a feed-forward network :math:`F` that is applied
    to each word once, never to a pair. The aligned vectors are sums of the inputs themselves, not of :math:`F` of
    them. Sums and softmaxes run over real tokens. (Tay et al. 2018, Eqs 2 to 4, call :math:`\alpha` what is
    :math:`\beta` here.)

    Args:
        feedforward: :math:`F`, a module or function of each word by itself, on the last axis, that is finite at 0, its
            slope as well, and does not write to its input, as an in-place activation at its start would; ``None``
            scores by the plain dot product, as ESIM does. (Padding is given to it as 0, and would have a share in
            batch normalisation's means. At 0 ``torch.nn.functional.normalize`` has a finite slope, in float16 with an
            ``eps`` of 1e-6, since its own is 0 there; ``v / (v.square().sum(-1, keepdim=True).sqrt() + 1e-8)`` has
            none.)

    Shape:
        premise ``(b, n, d)``, hypothesis ``(b, m, d)``, premise_mask ``(b, n)``, hypothesis_mask ``(b, m)`` →
        :math:`\beta` ``(b, n, d)``, the hypothesis aligned to each premise word, and :math:`\alpha` ``(b, m, d)``,
        the premise aligned to each hypothesis word. Both are 0 at padding.

    Raises:
        TypeError: if ``feedforward`` cannot be called or gives no tensor, or a sentence or mask is not a tensor.
        ValueError: if a sentence is not ``(batch, length, features)``, if batch or features differ between the two,
            if a mask is not boolean of its sentence's ``(batch, length)``, or if ``feedforward`` gives another number
            of words.

    Example::

        >>> import torch
        >>> from torch import nn
        >>> from nlilayers import DecomposableAlign
        >>> align = DecomposableAlign(nn.Sequential(nn.Linear(8, 16), nn.ReLU()))
        >>> premise, hypothesis = torch.randn(2, 7, 8), torch.randn(2, 5, 8)
        >>> beta, alpha = align(premise, hypothesis)
        >>> beta.shape, alpha.shape
        (torch.Size([2, 7, 8]), torch.Size([2, 5, 8]))
    """

    def __init__(self, feedforward: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.feedforward = nn.Identity() if feedforward is None else feedforward
        require_function("feedforward", self.feedforward)

    def forward(
        self,
        premise: Tensor,
        hypothesis: Tensor,
        premise_mask: Tensor | None = None,
        hypothesis_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Beta and alpha: each sentence aligned to the other's words."""
        _require_pair(premise, hypothesis, premise_mask, hypothesis_mask)
        premise, hypothesis = zero_padding(premise, premise_mask), zero_padding(hypothesis, hypothesis_mask)
        scores = self._scores(premise, hypothesis)
        return functional.align(scores, premise, hypothesis, premise_mask, hypothesis_mask)

    def alignment_weights(
        self,
        premise: Tensor,
        hypothesis: Tensor,
        premise_mask: Tensor | None = None,
        hypothesis_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The weights behind beta, ``(b, n, m)``, and alpha, ``(b, m, n)``.

        Each row of a real token sums to 1, or to 0 if the other sentence has none. Their dtype is that of the words, or
        float32 where these are float16. Gradients that arrive at a weight of 0, be they infinite, go no further.
        """
        _require_pair(premise, hypothesis, premise_mask, hypothesis_mask)
        premise, hypothesis = zero_padding(premise, premise_mask), zero_padding(hypothesis, hypothesis_mask)
        scores = self._scores(premise, hypothesis)
        beta_weights, alpha_weights = functional.alignment_weights(scores, premise_mask, hypothesis_mask)
        return stop_gradients(beta_weights, beta_weights != 0), stop_gradients(alpha_weights, alpha_weights != 0)

    def _scores(self, premise: Tensor, hypothesis: Tensor) -> Tensor:
        return functional.dot_scores(
            _fed_forward(self.feedforward, premise), _fed_forward(self.feedforward, hypothesis)
        )


class IntraAlign(nn.Module):
    r"""Alignment of a sentence with itself: Parikh et al. 2016, Eqs 6 and 7; Tay et al. 2018, Eq 5.

    https://arxiv.org/abs/1606.01933v1

    .. math::

        f_{ij} = F_\mathrm{intra}(a_i)^\top F_\mathrm{intra}(a_j)
        \qquad
        a'_i = \sum_{j} \frac{\exp(f_{ij} + d_{i-j})}{\sum_k \exp(f_{ik} + d_{i-k})}\, a_j

    with the words :math:`a`, a feed-forward network :math:`F_\mathrm{intra}` and a distance-sensitive bias :math:`d`.
    A word may align with itself. (The paper prints :math:`d_{i-j}` in the denominator, where it would cancel.) Where
    the prior's factors are so small (1e-31 in float32) that weights may become denormal numbers, words are left out on
    a CPU whose weights are sure to be less than 1e-14 (epsilon squared) of the word's own.

    Args:
        feedforward: :math:`F_\mathrm{intra}`, a module or function of each word by itself, on the last axis, that is
            finite at 0, its slope as well, and does not write to its input; ``None`` scores by the plain dot product.
        prior: :math:`d`, a module that maps ``(query_length, key_length)`` to a log-bias of that shape, such as
            :class:`DistancePrior`; ``None`` means no bias, and so no word order. (In
            :class:`GaussianSelfAttention`, ``None`` is a Gaussian prior.)

    Shape:
        x ``(b, n, d)``, mask ``(b, n)`` → :math:`a'` ``(b, n, d)``, 0 at padding.

    Raises:
        TypeError: if ``feedforward`` cannot be called or gives no tensor, the prior is not a module or gives no tensor,
            or x or the mask is not a tensor.
        ValueError: if x is not ``(batch, length, features)``, if the mask is not boolean of its ``(batch, length)``, if
            ``feedforward`` gives another number of words, or the prior more than a matrix, or boolean or complex
            numbers.

    Example::

        >>> import torch
        >>> from torch import nn
        >>> from nlilayers import DistancePrior, IntraAlign
        >>> intra = IntraAlign(nn.Sequential(nn.Linear(8, 16), nn.ReLU()), prior=DistancePrior())
        >>> intra(torch.randn(2, 7, 8)).shape
        torch.Size([2, 7, 8])
    """

    def __init__(
        self, feedforward: Callable[[Tensor], Tensor] | None = None, *, prior: nn.Module | None = None
    ) -> None:
        super().__init__()
        if prior is not None:
            require_prior(prior)
        self.feedforward = nn.Identity() if feedforward is None else feedforward
        require_function("feedforward", self.feedforward)
        self.prior = prior

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each word's self-aligned phrase."""
        x = zero_padding(x, mask)
        return stop_gradients(functional.weighted_sum(self._weights(x, mask), x), mask)

    def alignment_weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The weights behind the output, ``(b, n, n)``; each row of a real token sums to 1.

        Their dtype is that of the words, or float32 where these are float16. Gradients that arrive at a weight of 0, be
        they infinite, go no further.
        """
        weights = self._weights(zero_padding(x, mask), mask)
        return stop_gradients(weights, weights != 0)

    def _weights(self, x: Tensor, mask: Tensor | None) -> Tensor:
        features = _fed_forward(self.feedforward, x)
        scores = functional.dot_scores(features, features)
        log_bias = None
        if self.prior is not None:
            log_bias = log_bias_of("prior", self.prior, (x.shape[1], x.shape[1]))
            heads = features[:, None]
            log_bias = hide_denormals(log_bias, log_bias.diagonal()[:, None], heads, heads, mask, 1.0)
        return functional.intra_alignment_weights(scores, log_bias, mask)


def _fed_forward(feedforward: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """What a network makes of each word."""
    features = feedforward(x)
    require_words("feedforward", features, x.shape[:2])
    return features


def _require_pair(
    premise: Tensor, hypothesis: Tensor, premise_mask: Tensor | None, hypothesis_mask: Tensor | None
) -> None:
    require_sequence("premise", premise)
    require_sequence("hypothesis", hypothesis)
    if (premise.shape[0], premise.shape[2]) != (hypothesis.shape[0], hypothesis.shape[2]):
        raise ValueError(
            "premise and hypothesis must have the same batch and features, "
            f"got {tuple(premise.shape)} and {tuple(hypothesis.shape)}"
        )
    require_mask("premise_mask", premise_mask, premise.shape[:2])
    require_mask("hypothesis_mask", hypothesis_mask, hypothesis.shape[:2])
