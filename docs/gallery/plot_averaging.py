"""
Few rows: averaging over what is not known
==========================================

Nine rows leave open how far functions reach and how much is noise. The best parameters alone (left) are too
sure; the default averages over them (right).
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(8)
X = np.sort(rng.uniform(0, 6, 9))[:, None]
y = np.sin(1.5 * X[:, 0]) + 0.2 * rng.standard_normal(9)
t = np.linspace(-1, 7, 250)[:, None]

fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.4), sharey=True)
for ax, hyper in zip(axes, ("map", "average"), strict=True):
    gp = gm.GPRegressor("matern52", hyper=hyper, random_state=0).fit(X, y)
    mean, lower, upper = gp.predict(t, interval=0.95)
    ax.fill_between(t[:, 0], lower, upper, alpha=0.25)
    ax.plot(t, mean)
    ax.plot(t, np.sin(1.5 * t), "k--", lw=1)
    ax.plot(X, y, "k.", ms=9)
    ax.set(title=f'hyper="{hyper}"', xlabel="x", ylim=(-3, 3))
axes[0].set_ylabel("y; dashed: the true function")
plt.show()
