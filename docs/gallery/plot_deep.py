"""
A step, with one layer and with two
===================================

One kernel has one smoothness everywhere: through a step it rings, or it is rough beside it. Two layers bend
the input first, and hold the step and the plateaus at once.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-1, 1, 60))[:, None]
y = np.where(X[:, 0] > 0, 1.0, -1.0) + 0.05 * rng.standard_normal(60)
t = np.linspace(-1, 1, 400)[:, None]

fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.4), sharey=True)
for ax, gp, name in zip(
    axes,
    (gm.GPRegressor("rbf", random_state=0), gm.DeepGPRegressor(2, n_inducing=20, steps=1500, random_state=0)),
    ("one layer", "two layers"),
    strict=True,
):
    mean, lower, upper = gp.fit(X, y).predict(t, interval=0.95)
    ax.fill_between(t[:, 0], lower, upper, alpha=0.25)
    ax.plot(t, mean)
    ax.plot(X, y, "k.", ms=4)
    ax.set(title=name, xlabel="x")
axes[0].set_ylabel("y")
plt.show()
