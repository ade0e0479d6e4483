"""
Outliers
========

Three rows were written down wrongly. Gaussian noise bends the mean and widens the band for all; Student's t
lets them go.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, 40))[:, None]
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(40)
y[[6, 20, 31]] += [2.5, -2.0, 3.0]
length = gm.param(1.0, prior=gm.LogNormal(0.0, 0.3))
t = np.linspace(0, 6, 250)[:, None]

fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.4), sharey=True)
for ax, likelihood, name in zip(axes, (None, "student-t"), ("Gaussian", "Student's t"), strict=True):
    gp = gm.GPRegressor(1.0 * gm.RBF(length), likelihood=likelihood, random_state=0).fit(X, y)
    median, lower, upper = gp.predict(t, quantiles=[0.5, 0.025, 0.975]).T
    ax.fill_between(t[:, 0], lower, upper, alpha=0.25)
    ax.plot(t, median)
    ax.plot(X, y, "k.", ms=5)
    ax.set(title=name, xlabel="x")
axes[0].set_ylabel("y, its median and 95 %")
plt.show()
