"""
A map from scattered places
===========================

Heights measured at 600 places, a map of what lies between, and a map of how sure it is. Each place is known
by its nearest 20 neighbours (``method="neighbours"``), which scales to hundreds of thousands of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(1)
X = rng.uniform(0, 10, (900, 2))
X = X[(np.abs(X[:, 0] - 7) > 1.2) | (np.abs(X[:, 1] - 3) > 1.2)][:600]  # a lake without measurements


def height(X):
    return 3 * np.sin(X[:, 0]) * np.cos(0.7 * X[:, 1]) + np.sin(3 * X[:, 0] + X[:, 1])


y = height(X) + 0.1 * rng.standard_normal(len(X))
gp = gm.GPRegressor(
    1.0 * gm.Matern32([2.0, 2.0]), method=gm.Neighbours(20), n_restarts=0, random_state=0
).fit(X, y)

side = np.linspace(0, 10, 70)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
mean, std = gp.predict(grid, return_std=True, target="f")

fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.6), sharey=True)
for ax, values, name in zip(axes, (mean, std), ("mean", "standard deviation"), strict=True):
    picture = ax.pcolormesh(side, side, values.reshape(70, 70), cmap="cividis", shading="auto")
    fig.colorbar(picture, ax=ax, label=f"{name} of the height, m")
    ax.plot(*X.T, ".", ms=1.5, color="white", alpha=0.7)
    ax.set(xlabel="east, km", aspect="equal")
axes[0].set_ylabel("north, km")
plt.show()
