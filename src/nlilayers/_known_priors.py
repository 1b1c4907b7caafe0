"""What is known of a prior without reading its numbers: its class tells, unless something changed what it computes."""

from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from nlilayers._plain import is_plain
from nlilayers._priors import DistancePrior, GaussianPrior, HeadPriors, LinearPrior, ZipfPrior

FINITE = [prior.forward for prior in (GaussianPrior, ZipfPrior, LinearPrior)]
"""What computes a function of the distance that is finite at 0, whatever its parameters."""
OF_DISTANCE = [*FINITE, DistancePrior.forward]
"""What computes a function of the distance."""


def lets_see_itself(prior: nn.Module) -> bool:
    """Whether a prior is known to let each word attend to itself."""
    return all(is_plain(each, FINITE) for each in _by_head(prior))


def is_of_distance(prior: nn.Module) -> bool:
    """Whether a prior is a function of i - j alone: one of this library, or one that says so."""
    return all(is_plain(each, OF_DISTANCE) or getattr(each, "of_distance", False) is True for each in _by_head(prior))


def gaussians_of(prior: nn.Module) -> list[GaussianPrior]:
    """One prior for all heads, or one for each, if Gaussian they are, with scalars that read the same twice."""
    priors = _by_head(prior)
    gaussians = [
        each
        for each in priors
        if isinstance(each, GaussianPrior) and is_plain(each, [GaussianPrior.forward]) and not is_parametrized(each)
    ]
    return gaussians if len(gaussians) == len(priors) else []


def _by_head(prior: nn.Module) -> list[nn.Module]:
    """The prior of each head, or the one of all."""
    return list(prior.priors) if isinstance(prior, HeadPriors) and is_plain(prior, [HeadPriors.forward]) else [prior]
