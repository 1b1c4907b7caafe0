"""AdamWR's schedule: warm restarts along a cosine and a weight decay that does not depend on the budget.

Loshchilov, Hutter 2019, "Decoupled Weight Decay Regularization", https://arxiv.org/abs/1711.05101, section 4 and
appendix B.
"""

import math


def cosine_restarts(epoch: float, first: int, factor: int = 1) -> tuple[float, int]:
    r"""Where the schedule stands in its cycle.

    .. math:: \eta = \tfrac12 \left(1 + \cos\frac{\pi\, T_\mathrm{cur}}{T_i}\right)

    Args:
        epoch: epochs until now, with their fraction.
        first: :math:`T_0`, epochs of the first cycle.
        factor: how many times longer each cycle is than the one before it.

    Returns:
        :math:`\eta`, 1 at a restart and nearly 0 before the next, and the epochs :math:`T_i` of this cycle.
    """
    cycle = first
    while epoch >= cycle:
        epoch -= cycle
        cycle *= factor
    return 0.5 * (1 + math.cos(math.pi * epoch / cycle)), cycle


def normalized_decay_rate(normalized: float, batch_size: int, pairs: int, epochs: int) -> float:
    r"""The share that the first step of a cycle takes from every weight.

    .. math:: \lambda = \lambda_\mathrm{norm} \sqrt{b / (B T)}

    Args:
        normalized: :math:`\lambda_\mathrm{norm}`.
        batch_size: :math:`b`.
        pairs: :math:`B`, the training pairs.
        epochs: :math:`T`, of the cycle.
    """
    return normalized * math.sqrt(batch_size / (pairs * epochs))
