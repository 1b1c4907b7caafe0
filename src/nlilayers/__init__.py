"""Layers of natural language inference models, each equal to its paper's equation."""

from nlilayers import functional as functional
from nlilayers import masking as masking
from nlilayers._align import DecomposableAlign as DecomposableAlign
from nlilayers._align import IntraAlign as IntraAlign
from nlilayers._attention import GaussianSelfAttention as GaussianSelfAttention
from nlilayers._char_ngram import CharNgramEmbedding as CharNgramEmbedding
from nlilayers._conv import GatedConvBlock as GatedConvBlock
from nlilayers._conv import GatedConvEncoder as GatedConvEncoder
from nlilayers._factorization import AlignmentFactorization as AlignmentFactorization
from nlilayers._factorization import FactorizationMachine as FactorizationMachine
from nlilayers._highway import Highway as Highway
from nlilayers._position import SinusoidalPositionalEncoding as SinusoidalPositionalEncoding
from nlilayers._priors import DistancePrior as DistancePrior
from nlilayers._priors import GaussianPrior as GaussianPrior
from nlilayers._priors import HeadPriors as HeadPriors
from nlilayers._priors import LinearPrior as LinearPrior
from nlilayers._priors import ZipfPrior as ZipfPrior

__all__ = [
    "AlignmentFactorization",
    "CharNgramEmbedding",
    "DecomposableAlign",
    "DistancePrior",
    "FactorizationMachine",
    "GatedConvBlock",
    "GatedConvEncoder",
    "GaussianPrior",
    "GaussianSelfAttention",
    "HeadPriors",
    "Highway",
    "IntraAlign",
    "LinearPrior",
    "SinusoidalPositionalEncoding",
    "ZipfPrior",
    "functional",
    "masking",
]
__version__ = "0.1.0"
