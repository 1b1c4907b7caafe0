"""Every pair of features, and its weight from two short vectors."""

import matplotlib.pyplot as plt
import torch

from nlilayers import FactorizationMachine

torch.manual_seed(3)
machine = FactorizationMachine(8, num_factors=2)
x = torch.randn(8)
with torch.no_grad():
    linear = machine.weight * x
    pairs = (machine.factors @ machine.factors.T * x[:, None] * x).triu(1)
    total = machine(x)
largest = float(max(linear.abs().max(), pairs.abs().max()))
pairs = pairs.masked_fill(torch.ones(8, 8).tril().bool(), torch.nan)
figure, axes = plt.subplots(
    1, 3, figsize=(6.6, 2.6), layout="compressed", width_ratios=(1, 1, 8)
)
for panel, values, title in zip(
    axes,
    (x[:, None], linear[:, None], pairs),
    ("$x_i$", "$w_i x_i$", r"$\langle v_i, v_j\rangle\, x_i x_j$"),
    strict=True,
):
    scale = float(x.abs().max()) if panel is axes[0] else largest
    drawn = panel.imshow(values, cmap="RdBu_r", vmin=-scale, vmax=scale)
    panel.set_title(title, fontsize=10)
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
for row, number in enumerate(x.tolist()):
    dark = abs(number) > 0.6 * float(x.abs().max())
    axes[0].text(
        *(0, row, f"{number:.1f}"),
        ha="center",
        va="center",
        fontsize=7,
        color="white" if dark else "black",
    )
figure.colorbar(
    drawn, ax=axes[2], shrink=0.9, label="term (the colours of $x$ are its own)"
)
axes[2].set_xlabel(f"$w_0$ and all terms: {float(total):.2f}", fontsize=9)
