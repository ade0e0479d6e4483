"""
Random frequencies
==================

A stationary kernel is an average over waves. Draw some of them, and a linear model in these waves stands for
the process: 10, 40 and 160 features beside the exact kernel.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

kernel = gm.RBF(1.0)
t = np.linspace(-6, 6, 400)[:, None]
middle = np.zeros((1, 1))

fig, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True)
for ax, m in zip(axes, (10, 40, 160), strict=True):
    for seed in range(3):
        features = gm.FourierFeatures(kernel, n_features=m, random_state=seed).fit(t)
        ax.plot(t, features.transform(t) @ features.transform(middle).T, color="C0", lw=0.9)
    ax.plot(t, kernel(t, middle), "k", lw=1.6)
    ax.set(title=f"{m} features", xlabel="x")
axes[0].set_ylabel("k(x, 0)")
axes[0].plot([], [], "k", label="exact")
axes[0].plot([], [], "C0", label="three draws")
fig.legend(loc="outside upper center", ncols=2)
plt.show()
