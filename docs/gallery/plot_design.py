"""
Where to look next
==================

Twelve tries for the least value of a function that takes a day to compute. After each, the model says what it
expects and how sure it is, and the next try is where most is to be gained.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm


def costly(x):
    return np.sin(3 * x) + 0.4 * (x - 1.0) ** 2


design = gm.Design({"x": (-1.0, 4.0)}, initial=4, random_state=0)
for _ in range(12):
    point = design.ask()
    design.tell(point, costly(point["x"]))

t = np.linspace(0, 1, 300)[:, None]  # the model lives in the unit interval
x = -1.0 + 5.0 * t[:, 0]
mean, std = design.fitted().predict(t, return_std=True)

fig, ax = plt.subplots()
ax.fill_between(x, mean - 2 * std, mean + 2 * std, alpha=0.2)
ax.plot(x, mean, label="what the model expects, two std")
ax.plot(x, costly(x), "k--", lw=1, label="what nobody has seen")
for k, (point, value) in enumerate(zip(design.points, design.values, strict=True)):
    ax.plot(point["x"], value, "k.", ms=8)
    ax.annotate(str(k + 1), (point["x"], value), textcoords="offset points", xytext=(5, 5))
ax.set(xlabel="x", ylabel="value; numbers: the order of tries")
ax.legend(loc="upper center")
plt.show()
