"""The encoding itself: a column for each position."""

import matplotlib.pyplot as plt

from nlilayers.functional import sinusoidal_encoding

figure, axes = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
drawn = axes.imshow(
    sinusoidal_encoding(60, 32, 1).T,
    cmap="RdBu_r",
    aspect="auto",
    extent=(0.5, 60.5, 31.5, -0.5),
)
axes.set(xlabel="position i, from 1", ylabel="feature of 32")
figure.colorbar(drawn, label="added to the word")
