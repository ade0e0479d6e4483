"""
Where landmarks lie
===================

Twenty of 600 rows, chosen by four rules. The rows are a dense clump and a thin one: uniform draws hardly see
the thin one, randomly pivoted Cholesky (the default) and greedy pivots go where the rows chosen so far say
least, k-means to the middle of things.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
X = np.vstack([rng.normal(0, 0.3, (580, 2)), rng.normal(4, 1.2, (20, 2))])

fig, axes = plt.subplots(1, 4, figsize=(10, 2.9), sharex=True, sharey=True)
for ax, rule in zip(axes, ("uniform", "kmeans", "pivoted", "rpcholesky"), strict=True):
    Z = gm.landmarks(gm.RBF(0.5), X, 20, rule, random_state=0).Z
    ax.plot(*X.T, ".", color="0.75", ms=4, label="rows")
    ax.plot(*Z.T, "o", mfc="none", mew=1.5, label="landmarks")
    ax.set(title=rule, xlabel="first column")
axes[0].set_ylabel("second column")
axes[0].legend(loc="lower right")
plt.show()
