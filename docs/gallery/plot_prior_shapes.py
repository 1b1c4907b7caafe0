"""
What a Gaussian prior prefers
=============================

placeholder
"""

import matplotlib.pyplot as plt
import torch

from nlilayers import GaussianPrior

# %%
# A prior is a matrix that is added to the scores.

prior = GaussianPrior()
with torch.no_grad():
    plt.plot(prior(21)[10])
