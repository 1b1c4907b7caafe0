"""What each prior makes of a weight at a distance."""

import matplotlib.pyplot as plt
import torch

from nlilayers import DistancePrior, GaussianPrior, LinearPrior, ZipfPrior

FAR = 8
trained = DistancePrior(max_distance=3)
with torch.no_grad():
    trained.bias.copy_(
        torch.tensor([-0.9, -0.4, 0.0, -1.2, -0.2, -0.5, -1.5, -2.0])
    )
priors = {
    "GaussianPrior(w=0.1, b=-0.1)": GaussianPrior(w=0.1, b=-0.1),
    "GaussianPrior(w=0.1, b=None)": GaussianPrior(w=0.1, b=None),
    "ZipfPrior()": ZipfPrior(),
    "LinearPrior(w=-0.5)": LinearPrior(w=-0.5),
    "DistancePrior(3), as it might be trained": trained,
}
figure, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
distances = torch.arange(FAR, -FAR - 1, -1)
for (name, prior), marker in zip(priors.items(), "osv^d", strict=True):
    factor = prior(2 * FAR + 1)[FAR].exp().detach()
    axes.plot(
        distances, factor, marker=marker, markersize=4, linewidth=1.3, label=name
    )
axes.set(
    xlabel="distance δ = i − j of two words",
    ylabel="factor exp β(δ)",
    xlim=(FAR + 0.4, -FAR - 0.4),
    ylim=(0, None),
)
axes.set_xticks(range(-FAR, FAR + 1, 2))
axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
