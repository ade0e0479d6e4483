"""
Twelve points for two thousand rows
===================================

A fit by the variational bound of Titsias: the mean of two thousand rows goes through the kernel functions of
twelve inducing points, which stand below the rows that they are for.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
x = np.sort(rng.beta(1.2, 2.0, 2000)) * 6
y = np.sin(3 * x) * np.exp(-x / 3) + 0.15 * rng.normal(size=2000)

gp = gm.GPRegressor("rbf", method=gm.Sparse(12), random_state=0).fit(x[:, None], y)

fig, ax = plt.subplots()
gp.plot_landmarks(ax=ax)
plt.show()
