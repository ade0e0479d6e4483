"""
A forecast with its parts
=========================

Airline passengers of 1949 to 1960 (series G of Box and Jenkins, 1970). Ten years are learned from, two
foretold. The numbers grow by a share a year and their season with them, so the model is of their logarithm: a
line, slow departures from it, and a season that changes its form over decades.
"""

import csv
from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

text = (files("gramian") / "data" / "airline.csv").read_text(encoding="utf-8")
rows = list(csv.DictReader(text.splitlines()))
years = np.array([float(row["years"]) for row in rows])[:, None]
passengers = np.array([float(row["passengers"]) for row in rows])

kernel = (
    gm.Linear(0.1).named("trend")
    + (0.1 * gm.Matern32(1.0)).named("slow departures")
    + (0.1 * gm.Periodic(1.0, gm.fixed(1.0)) * gm.RBF(10.0)).named("season")
)
gp = gm.GPRegressor(kernel, warp=gm.Log(), random_state=0).fit(years[:120], passengers[:120])
mean, lower, upper = gp.predict(years, interval=0.95)

fig, ax = plt.subplots()
date = 1949 + years[:, 0]
ax.fill_between(date, lower, upper, alpha=0.25, label="95 % of months")
ax.plot(date, mean, label="mean")
ax.plot(date[:120], passengers[:120], "k.", ms=4, label="learned from")
ax.plot(date[120:], passengers[120:], "o", mfc="none", color="C1", ms=4, label="not seen")
ax.set(xlabel="year", ylabel="passengers a month, thousands")
ax.legend(loc="upper left")
plt.show()

# %%
# Each summand of the kernel is a part of the function, with its own uncertainty. They are parts of the
# logarithm, in units of the warped target.

fig, axes = plt.subplots(3, 1, figsize=(7.2, 5.4), sharex=True)
for ax, (name, (part, std)) in zip(axes, gp.components(years).items(), strict=True):
    ax.fill_between(date, part - 2 * std, part + 2 * std, alpha=0.25)
    ax.plot(date, part)
    ax.set_ylabel(name)
axes[-1].set_xlabel("year")
plt.show()
