"""
A function from eleven points
=============================

What a Gaussian process gives: not one curve through the data, but all curves that go with them. Where there
are data they agree; in the gap they part, and the band says by how much.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(4)
x = np.r_[rng.uniform(0, 4, 8), rng.uniform(7, 9, 3)]
y = np.sin(x) + 0.3 * x + 0.05 * rng.standard_normal(len(x))

gp = gm.GPRegressor("matern52", random_state=0).fit(x[:, None], y)

t = np.linspace(0, 10, 300)[:, None]
mean, lower, upper = gp.predict(t, interval=0.95)

fig, ax = plt.subplots()
ax.fill_between(t[:, 0], lower, upper, alpha=0.2, label="95 % of new observations")
ax.plot(t, gp.sample(t, 5, random_state=1), color="grey", lw=0.8)
ax.plot(t, mean, label="mean")
ax.plot(x, y, "k.", ms=9, label="data")
ax.set(xlabel="x", ylabel="y")
ax.legend(loc="upper left")
plt.show()
