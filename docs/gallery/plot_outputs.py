"""
One output tells of another
===========================

Two sensors follow the same wave, one upside down and larger. The second was off for a while. By itself it is
not known there; coupled with the first, it is.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, 60))
truth = np.column_stack([np.sin(2 * x), 10 - 2 * np.sin(2 * x)])
Y = truth + [0.1, 0.2] * rng.standard_normal((60, 2))
off = (x > 2) & (x < 4)
Y[off, 1] = np.nan

t = np.linspace(0, 6, 200)
fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.4), sharey=True)
for ax, how in zip(axes, ("independent", "coupled"), strict=True):
    gp = gm.GPRegressor("rbf", outputs=how, random_state=0).fit(x[:, None], Y)
    mean, std = gp.predict(t[:, None], return_std=True)
    ax.fill_between(t, mean[:, 1] - 1.96 * std[:, 1], mean[:, 1] + 1.96 * std[:, 1], alpha=0.2)
    ax.plot(t, mean[:, 1], label="mean and 95 % band")
    ax.plot(x, Y[:, 1], "k.", ms=5, label="observed")
    ax.plot(x[off], truth[off, 1], "x", color="C1", label="not observed")
    ax.set(title=f'outputs="{how}"', xlabel="x")
axes[0].set_ylabel("second output")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
plt.show()
