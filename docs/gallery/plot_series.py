"""
Ten thousand rows of a series, exactly
======================================

Kernels of one column with a state-space form need no matrix: the Kalman filter gives the exact posterior in
time proportional to the rows, irregular dates and gaps included.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 70, 10_000))
t = t[(t < 40) | (t > 44)]  # four days without a measurement
y = np.sin(2 * np.pi * t / 7) + 0.5 * np.sin(2 * np.pi * t) + 0.02 * t + 0.4 * rng.standard_normal(len(t))

week = gm.Cosine(gm.fixed(7.0)) * gm.Matern12(200.0)
day = 0.5 * gm.Cosine(gm.fixed(1.0)) * gm.Matern12(50.0)
process = gm.GP(week + day + 0.3 * gm.Matern32(10.0), noise=0.16).condition(
    t[:, None], y, method="statespace"
)
x = np.linspace(33, 52, 800)[:, None]
mean, var = process.moments(x)

fig, ax = plt.subplots()
seen = (t > 33) & (t < 52)
ax.plot(t[seen], y[seen], ".", color="grey", ms=2, alpha=0.6, label="rows")
ax.fill_between(x[:, 0], mean - 2 * np.sqrt(var), mean + 2 * np.sqrt(var), alpha=0.3, label="95 % of f")
ax.plot(x, mean, label="mean")
ax.set(xlabel="days", ylabel="y", title=f"{len(t):,} rows; 19 days of them")
ax.legend(loc="upper left", ncols=3)
ax.set_ylim(-3, 5)
plt.show()
