r"""
A window that loses nothing
===========================

Under a Gaussian prior, far words get next to no weight. So they can be left out, and
attention over a long text costs far less. How far must it look?
:func:`~nlilayers.functional.smallest_window` answers with a proof, not with a guess.

Let a word :math:`i` attend to the words up to the distance :math:`D` only. It then
misses those outside, and with them the share :math:`\mu_i` of its weights. Its
output is off by at most :math:`\mu_i` times the distance between the two values
farthest apart. What :math:`\mu_i` can be depends on the prior :math:`\beta`, and on
how far apart two scores of a word can lie, their range :math:`R`:

.. math::

    \mu_i \le \frac{\rho_i}{1 + \rho_i}, \qquad
    \rho_i = e^R\, \frac{\sum_{|i - j| > D} e^{\beta(i - j)}}
                       {\sum_{|i - j| \le D} e^{\beta(i - j)}}

No smaller bound holds for all scores: there are some that reach it. The window is the
smallest :math:`D` for which the bound stays below a tolerance :math:`\varepsilon`.
"""

import matplotlib.pyplot as plt
import torch

from nlilayers import GaussianPrior, GaussianSelfAttention, LinearPrior, ZipfPrior
from nlilayers.functional import largest_discarded_mass, score_range, smallest_window

# %%
# The bound falls off a cliff
# ---------------------------
#
# :func:`~nlilayers.functional.largest_discarded_mass` is that bound. Here it is for a
# text of 512 words and a prior with :math:`w = 0.1`.

log_bias = GaussianPrior(w=0.1, b=-0.1)(1, 512)[0].detach()
tolerance = 2**-24

figure, axes = plt.subplots(figsize=(6.4, 3.8))
axes.axhline(tolerance, color="0.5", linestyle="--", linewidth=1)
axes.text(0, tolerance * 0.6, "tolerance ε = 2⁻²⁴", va="top", color="0.35", fontsize=9)
for colour, largest in enumerate([0, 5, 10, 20, 40]):
    bounds = [largest_discarded_mass(log_bias, window, largest) for window in range(31)]
    window = smallest_window(log_bias, largest, tolerance)
    axes.semilogy(bounds, f"C{colour}", label=f"{largest}")
    axes.semilogy(window, bounds[window], f"C{colour}o", markersize=7)
axes.set(
    xlabel="window D (words on either side)",
    ylabel="share of the weights lost at most",
    ylim=(1e-12, 2),
)
figure.legend(title="score range R", loc="outside right upper")
figure.set_label(
    "Curves of the largest lost share over the window, on a logarithmic axis, for "
    "five ranges of the scores. Each stays at 1 and then plunges ever more steeply; "
    "dots mark where each falls below the tolerance, between 12 and 23 words."
)

# %%
# Each dot is the smallest window for its range of scores. The tolerance is the
# rounding of float32: a smaller loss would not be noticed. Beyond the cliff, a few
# words more make the loss a million times smaller. Scores that lie 40 apart differ by
# a factor of :math:`e^{40}` in weight, and yet the window only doubles.
#
# Wide scores and narrow priors
# -----------------------------
#
# The bias grows with the square of the distance. So the window grows only as the
# square root of :math:`R`, and shrinks as that of :math:`w` grows. A tolerance that
# is a thousand times smaller costs no more than a range that is 7 wider: :math:`e^7
# \approx 1000`.

ranges = torch.linspace(0, 60, 61).tolist()
tolerances = torch.logspace(-12, -1, 45).tolist()
figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.2), sharey=True)
for w in (0.01, 0.05, 0.1, 1.0):
    bias = GaussianPrior(w=w, b=None)(1, 4096)[0].detach()
    left.step(
        ranges,
        [smallest_window(bias, largest, tolerance) for largest in ranges],
        where="post",
        label=f"{w:g}",
    )
    right.step(
        tolerances,
        [smallest_window(bias, 10, epsilon) for epsilon in tolerances],
        where="post",
    )
left.set(
    title="Scores",
    xlabel="score range R",
    ylabel="smallest window D (words)",
    ylim=(0, 105),
)
right.set(title="Tolerance, with R = 10", xlabel="tolerance ε", xscale="log")
right.invert_xaxis()
figure.legend(title="width w", loc="outside right upper")
figure.set_label(
    "Two panels of stepped curves, one curve for each w from 0.01 to 1. The "
    "smallest window grows with the root of the score range, from 38 to 86 words "
    "for w = 0.01, and only slowly as the tolerance falls to 1e-12."
)

# %%
# Why a Gaussian
# --------------
#
# A window helps if it does not grow with the text. We ask for the same tolerance
# under three priors.

lengths = [2**k for k in range(5, 13)]
figure, axes = plt.subplots(figsize=(6.4, 3.6))
for stroke, (name, prior) in zip(
    ("o-", "s-", "^-"),
    {
        "Gaussian, w = 0.1": GaussianPrior(),
        "linear, w = −0.1": LinearPrior(),
        "Zipf": ZipfPrior(),
    }.items(),
):
    bias = prior(1, lengths[-1])[0].detach()
    axes.loglog(
        lengths,
        [smallest_window(bias[:length], 10, 1e-6) for length in lengths],
        stroke,
        label=name,
        base=2,
    )
axes.set(xlabel="length of the text (words)", ylabel="smallest window D (words)")
for axis in (axes.xaxis, axes.yaxis):
    axis.set_major_formatter("{x:g}")
axes.legend()
figure.set_label(
    "Three lines over the length of the text, both axes logarithmic. The Gaussian's "
    "window stays at 15 words; the linear prior's grows to over 200 and stays "
    "there; Zipf's is as long as the text."
)

# %%
# The Gaussian's window is 15 words, however long the text is. A linear prior needs
# more than ten times as many, so that short texts gain nothing. Zipf's prior falls so
# slowly that all far words together always matter: its window is the whole text.
#
# Bound and truth
# ---------------
#
# The bound holds for the worst scores that there can be. How much is really lost? We
# take a layer, leave out different amounts, and compare with attention to all words.

torch.manual_seed(0)
layer = GaussianSelfAttention(32, num_heads=2, dtype=torch.float64)
x = torch.randn(1, 400, 32, dtype=torch.float64)
queries, keys, values = (
    part.unflatten(2, (2, 16)).transpose(1, 2)
    for part in layer.in_proj(x).detach().chunk(3, 2)
)
largest = score_range(queries, keys, layer.scale).max().item()
log_bias = layer.prior(1, 400)[0].detach()
distance = (torch.arange(400)[:, None] - torch.arange(400)).abs()
weights = layer.attention_weights(x).detach()  # of all words
dense = weights @ values
farthest = torch.cdist(values, values).max()  # of two values

windows = range(26)
bounds, lost, errors = [], [], []
for window in windows:
    inside = weights * (distance <= window)
    bounds.append(largest_discarded_mass(log_bias, window, largest))
    lost.append((weights - inside).sum(3).max())
    output = inside / inside.sum(3, keepdim=True) @ values
    errors.append((output - dense).norm(dim=3).max() / farthest)

chosen = smallest_window(log_bias, largest, tolerance)
figure, axes = plt.subplots(figsize=(6.4, 3.8))
axes.axhline(tolerance, color="0.5", linestyle="--", linewidth=1)
axes.axvline(chosen, color="0.5", linestyle="--", linewidth=1)
axes.text(
    chosen + 0.4, 0.3, f"smallest window: {chosen}", va="top", color="0.35", fontsize=9
)
axes.text(0, tolerance * 0.6, "tolerance", va="top", color="0.35", fontsize=9)
axes.semilogy(windows, bounds, "C0", label="the bound, for any scores of this range")
axes.semilogy(windows, lost, "C1", label="weights that are lost, worst word")
axes.semilogy(windows, errors, "C2", label="error of the output, worst word")
axes.set(
    xlabel="window D (words on either side)",
    ylabel="share, or error / diameter",
    ylim=(1e-14, 2),
)
figure.legend(loc="outside lower center")
figure.set_label(
    "Three curves over the window on a logarithmic axis. The bound lies highest, "
    "the weights really lost far below it, and the error of the output below these. "
    "At the chosen window only the bound is near the tolerance."
)

# %%
# From top to bottom: what could be lost, what is lost, and how much the output
# changes, as a share of the distance between the two values farthest apart. The
# order always holds, whatever the words are.
#
# With ``window="auto"``, its default, :class:`~nlilayers.GaussianSelfAttention` does
# all of this by itself: it bounds the range of the scores at hand, takes the smallest
# window, and computes in blocks if that saves work. Afterwards it can certify how
# much was left out at most. This bound knows the scores inside the window, and so is
# sharper.

layer = GaussianSelfAttention(32, num_heads=2)
x = torch.randn(1, 2000, 32)
with torch.no_grad():
    certified = layer.discarded_mass_bound(x).max()
    windowed = layer(x)
    layer.window = None
    difference = (windowed - layer(x)).abs().max()
print(f"left out at most: {certified:.1e} of a word's weights")
print(f"largest difference from dense attention, 2,000 words: {difference:.1e}")
