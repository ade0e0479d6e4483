"""
One coordinate behind six columns
=================================

Six columns that all follow one hidden number, with a tenth of the cells missing. The latent coordinate that
is found (across) is the hidden one (up) but for direction and scale, and says how sure it is of each row.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
hidden = rng.uniform(-1.5, 1.5, 60)
columns = [hidden, np.tanh(2 * hidden), hidden**2, np.sin(2 * hidden), np.cos(hidden), hidden + hidden**2]
Y = np.column_stack(columns) + 0.1 * rng.standard_normal((60, 6))
Y[rng.random(Y.shape) < 0.1] = np.nan

gp = gm.GPLatent(1, n_inducing=12, random_state=0).fit(Y)
place, std = gp.transform(Y, return_std=True)

fig, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.6))
left.errorbar(place[:, 0], hidden, xerr=2 * std[:, 0], fmt=".", lw=0.8)
left.set(xlabel="latent coordinate, two std", ylabel="the hidden number")
along = np.linspace(place.min(), place.max(), 100)[:, None]
rows = gp.inverse_transform(along)
for j in range(6):
    right.plot(along, rows[:, j], color=f"C{j}")
    right.plot(place[:, 0], Y[:, j], ".", ms=3, color=f"C{j}")
right.set(xlabel="latent coordinate", ylabel="the six columns")
plt.show()
