"""
The evidence has two hills
==========================

Nine points, and two explanations: a function that turns quickly and little noise, or one that turns slowly
and much noise. Each is a maximum of the evidence over lengthscale and noise; a search ends on the hill that
it began on, which is why fits try more than one start.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm
from gramian.plots import plot_evidence

x = np.array([-4.7, -1.5, -0.4, 0.5, 1.0, 1.7, 2.3, 4.2, 4.7])
y = np.array([-0.7, -0.1, -0.4, 0.6, 0.4, 0.2, -0.5, 0.4, 1.0])
post = gm.GP(1.0 * gm.RBF(1.0), noise=0.1, mean=0.0).condition(x[:, None], y)

fig, (ax, hill) = plt.subplots(1, 2, figsize=(9.4, 3.8))
ranges = {"kernel.lengthscale": (0.1, 30), "noise": (0.003, 3)}
plot_evidence(post, "kernel.lengthscale", "noise", ranges=ranges, n_points=60, ax=ax)
t = np.linspace(-5, 5, 200)
for k, (length, noise, marker) in enumerate([(1.0, 0.05, "o"), (8.0, 0.3, "s")]):
    start = gm.GP(gm.fixed(1.0) * gm.RBF(length), noise=noise, mean=gm.ConstantMean(gm.fixed(0.0)))
    best = start.fit(x[:, None], y)
    found = best.parameters
    at = float(found["kernel.lengthscale"]), float(found["noise"])
    ax.plot(*at, marker, color="white", ms=9, mfc=f"C{k}", mew=1)
    mean = best.condition(x[:, None], y).mean(t[:, None])
    hill.plot(t, mean, color=f"C{k}", label=f"lengthscale {at[0]:.2g}")
hill.plot(x, y, "k.", ms=9)
hill.set(xlabel="x", ylabel="y", title="the two means")
hill.legend()
plt.show()
