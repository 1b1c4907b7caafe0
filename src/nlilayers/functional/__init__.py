"""The papers' equations as pure functions, each written once; the modules hold parameters and call them.

Axes: b batch, n premise or query length, m hypothesis or key length, d features, h heads. Beside the errors that each
names, tensors whose shapes do not fit together raise torch's own :class:`RuntimeError`, or an :class:`IndexError` where
one lacks an axis.

>>> import torch
>>> from nlilayers import functional
>>> functional.token_distances(2, 3)
tensor([[ 0, -1, -2],
        [ 1,  0, -1]])
"""

from nlilayers.functional._align import align as align
from nlilayers.functional._align import alignment_weights as alignment_weights
from nlilayers.functional._align import intra_alignment_weights as intra_alignment_weights
from nlilayers.functional._attention import self_attention_weights as self_attention_weights
from nlilayers.functional._char_ngram import char_ngram_embedding as char_ngram_embedding
from nlilayers.functional._char_ngram import char_ngrams as char_ngrams
from nlilayers.functional._char_ngram import code_points as code_points
from nlilayers.functional._char_ngram import fnv1a as fnv1a
from nlilayers.functional._conv import gated_cell as gated_cell
from nlilayers.functional._conv import same_convolution as same_convolution
from nlilayers.functional._dot_product import dot_scores as dot_scores
from nlilayers.functional._dot_product import weighted_sum as weighted_sum
from nlilayers.functional._factorization import alignment_factorization as alignment_factorization
from nlilayers.functional._factorization import factorization_machine as factorization_machine
from nlilayers.functional._highway import highway as highway
from nlilayers.functional._position import sinusoidal_encoding as sinusoidal_encoding
from nlilayers.functional._priors import distance_bias as distance_bias
from nlilayers.functional._priors import distance_buckets as distance_buckets
from nlilayers.functional._priors import gaussian_bias as gaussian_bias
from nlilayers.functional._priors import linear_bias as linear_bias
from nlilayers.functional._priors import token_distances as token_distances
from nlilayers.functional._priors import zipf_bias as zipf_bias
from nlilayers.functional._window import discarded_mass_certificate as discarded_mass_certificate
from nlilayers.functional._window import largest_discarded_mass as largest_discarded_mass
from nlilayers.functional._window import score_bound as score_bound
from nlilayers.functional._window import score_range as score_range
from nlilayers.functional._window import smallest_window as smallest_window
from nlilayers.functional._windowed import attend_windows as attend_windows
from nlilayers.functional._windowed import windowed_scores as windowed_scores

__all__ = [
    "align",
    "alignment_factorization",
    "alignment_weights",
    "attend_windows",
    "char_ngram_embedding",
    "char_ngrams",
    "code_points",
    "discarded_mass_certificate",
    "distance_bias",
    "distance_buckets",
    "dot_scores",
    "factorization_machine",
    "fnv1a",
    "gated_cell",
    "gaussian_bias",
    "highway",
    "intra_alignment_weights",
    "largest_discarded_mass",
    "linear_bias",
    "same_convolution",
    "score_bound",
    "score_range",
    "self_attention_weights",
    "sinusoidal_encoding",
    "smallest_window",
    "token_distances",
    "weighted_sum",
    "windowed_scores",
    "zipf_bias",
]
