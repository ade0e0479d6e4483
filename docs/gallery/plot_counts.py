"""
Counts
======

Accidents a week, a Poisson rate that changes over the year, and weeks in which nobody counted. Intervals are
of whole numbers, as counts are.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(2)
week = np.setdiff1d(np.arange(104), np.arange(60, 72))
rate = np.exp(1.0 + 0.9 * np.sin(2 * np.pi * week / 52))
counts = rng.poisson(rate)

gp = gm.GPRegressor(1.0 * gm.Matern52(10.0), likelihood="poisson", random_state=0).fit(
    week[:, None].astype(float), counts
)
t = np.arange(0, 104.0)[:, None]
median, lower, upper = gp.predict_quantiles(t, [0.5, 0.05, 0.95]).T

fig, ax = plt.subplots()
ax.fill_between(t[:, 0], lower, upper, step="mid", alpha=0.25, label="90 % of counts")
ax.step(t[:, 0], median, where="mid", lw=1, label="median")
ax.plot(week, rate, "k--", lw=1, label="the true rate")
ax.plot(week, counts, "k.", ms=5, label="counted")
ax.set(xlabel="week", ylabel="accidents")
ax.legend(ncols=2)
plt.show()
