"""
Skewed targets
==============

Prices vary by shares, and their noise with them. A warp learns the map under which the noise is alike
everywhere; bands come back in the units of y, and never go below zero where the data do not.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 5, 120))[:, None]
y = np.exp(np.sin(1.3 * X[:, 0]) + 0.35 * rng.standard_normal(120))
t = np.linspace(0, 5, 250)[:, None]

fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.4), sharey=True)
for ax, warp, name in zip(axes, (None, gm.SinhArcsinh()), ("as it is", "warped"), strict=True):
    gp = gm.GPRegressor(1.0 * gm.Matern52(1.0), warp=warp, random_state=0).fit(X, y)
    median, lower, upper = gp.predict(t, quantiles=[0.5, 0.025, 0.975]).T
    ax.fill_between(t[:, 0], lower, upper, alpha=0.25, label="95 %")
    ax.plot(t, median, label="median")
    ax.plot(X, y, "k.", ms=4)
    ax.set(title=f"{name}: evidence {float(gp.evidence_):.1f} nats", xlabel="x")
axes[0].set_ylabel("price")
axes[0].legend()
plt.show()
