"""
What a layer does to its input
==============================

Functions drawn through two layers that have learned a step. The first bends the input so that both plateaus
become short and the step long; the second, a smooth function, goes over that at its own pace.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-1, 1, 60))[:, None]
y = np.where(X[:, 0] > 0, 1.0, -1.0) + 0.05 * rng.standard_normal(60)

gp = gm.DeepGPRegressor(2, n_inducing=20, steps=1500, random_state=0).fit(X, y)

fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.2))
gp.plot_layers(ax=axes)
plt.show()
