"""
Before and after the data
=========================

A kernel is a belief about functions. On the left are functions that it believes in, on the right those that
are left after five observations; below each, the covariance of the function at all pairs of places.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

t = np.linspace(0, 6, 150)[:, None]
X = np.array([[0.5], [1.5], [2.1], [4.4], [5.0]])
y = np.array([0.3, 1.2, 0.8, -0.9, -0.4])

prior = gm.GP(1.0 * gm.RBF(0.8), noise=0.01)
posterior = prior.condition(X, y)

fig, axes = plt.subplots(2, 2, figsize=(7.2, 5.6), sharex="row", gridspec_kw={"height_ratios": [1, 1.1]})
for (above, below), process, name in zip(axes.T, (prior, posterior), ("prior", "posterior"), strict=True):
    mean, var = process.moments(t)
    band = 1.96 * np.sqrt(var)
    above.fill_between(t[:, 0], mean - band, mean + band, alpha=0.2)
    above.plot(t, process.sample(t, 6, seed=1), lw=1, color="grey")
    above.plot(t, mean)
    above.set(title=name, xlabel="x", ylabel="f", ylim=(-3, 3))
    picture = below.imshow(process.cov(t), cmap="cividis", vmin=-0.3, vmax=1, extent=(0, 6, 6, 0))
    below.set(xlabel="x", ylabel="x")
axes[0, 1].plot(X, y, "k.", ms=9)
fig.colorbar(picture, ax=axes[1], label="covariance of f", shrink=0.9)
plt.show()
