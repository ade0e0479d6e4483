"""
What kernels believe
====================

Three functions from each of nine kernels, before any data. Choose the one whose functions look like yours.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

kernels = {
    "RBF: very smooth": gm.RBF(0.6),
    "Matern52: smooth": gm.Matern52(0.6),
    "Matern32: once differentiable": gm.Matern32(0.6),
    "Matern12: rough": gm.Matern12(0.6),
    "RationalQuadratic: many scales": gm.RationalQuadratic(0.5, 0.3),
    "Periodic: repeats": gm.Periodic(0.8, 1.5),
    "Periodic * RBF: drifts": gm.Periodic(0.8, 1.0) * gm.RBF(2.0),
    "Linear + Matern32: a trend": 2.0 * gm.Linear() + 0.2 * gm.Matern32(0.5),
    "Brownian: a walk from 0": gm.Brownian(),
}
t = np.linspace(0, 5, 400)[:, None]

fig, axes = plt.subplots(3, 3, figsize=(8.4, 6.4), sharex=True)
for ax, (name, kernel) in zip(axes.flat, kernels.items(), strict=True):
    ax.plot(t, gm.GP(kernel).sample(t, 3, seed=2), lw=1.1)
    ax.set_title(name, fontsize=9.5)
    ax.set_yticks([])
for ax in axes[-1]:
    ax.set_xlabel("x")
plt.show()
