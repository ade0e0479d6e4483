"""
What observations leave open
============================

The covariance of the function at all pairs of places, before five observations and after them. Near an
observation nothing is left to vary; between two of them places to either side of an observation may even move
against each other.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm
from gramian.plots import plot_covariance

X = np.array([[0.5], [1.5], [2.1], [4.4], [5.0]])
y = np.array([0.3, 1.2, 0.8, -0.9, -0.4])
post = gm.GP(1.0 * gm.RBF(0.8), noise=0.01).condition(X, y)

fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.9))
plot_covariance(post, np.array([[0.0], [6.0]]), ax=axes)
plt.show()
