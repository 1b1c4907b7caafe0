"""What is known of a prior without reading its numbers: its class tells, unless something changed what it computes."""

from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from nlilayers._priors import DistancePrior, GaussianPrior, HeadPriors, LinearPrior, ZipfPrior

FINITE = [prior.forward for prior in (GaussianPrior, ZipfPrior, LinearPrior)]
"""What computes a function of the distance that is finite at 0, whatever its parameters."""
OF_DISTANCE = [*FINITE, DistancePrior.forward]
"""What computes a function of the distance."""


def lets_see_itself(prior: nn.Module) -> bool:
    """Whether a prior is known to let each word attend to itself."""
    return all(type(each).forward in FINITE and _is_untouched(each) for each in _by_head(prior))


def is_of_distance(prior: nn.Module) -> bool:
    """Whether a prior is a function of i - j alone: one of this library, or one that says so."""
    return all(_is_untouched(each) or getattr(each, "of_distance", False) is True for each in _by_head(prior))


def gaussians_of(prior: nn.Module) -> list[GaussianPrior]:
    """One prior for all heads, or one for each, if Gaussian they are, with scalars that read the same twice."""
    priors = _by_head(prior)
    gaussians = [
        each for each in priors if isinstance(each, GaussianPrior) and _is_untouched(each) and not is_parametrized(each)
    ]
    return gaussians if len(gaussians) == len(priors) else []


def _by_head(prior: nn.Module) -> list[nn.Module]:
    """The prior of each head, or the one of all."""
    return list(prior.priors) if isinstance(prior, HeadPriors) and _is_untouched(prior) else [prior]


def _is_untouched(prior: nn.Module) -> bool:
    """Whether a prior of this library computes what it is known for."""
    called = type(prior).__call__ is nn.Module.__call__
    hooked = prior._forward_hooks or prior._forward_pre_hooks or "forward" in vars(prior)
    return type(prior).forward in (*OF_DISTANCE, HeadPriors.forward) and called and not hooked
