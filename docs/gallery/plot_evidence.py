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

x = np.array([-4.7, -1.5, -0.4, 0.5, 1.0, 1.7, 2.3, 4.2, 4.7])
y = np.array([-0.7, -0.1, -0.4, 0.6, 0.4, 0.2, -0.5, 0.4, 1.0])
post = gm.GP(1.0 * gm.RBF(1.0), noise=0.1, mean=0.0).condition(x[:, None], y)
lengths, noises = np.geomspace(0.1, 30, 60), np.geomspace(0.003, 3, 60)
surface = np.array(
    [[post.log_evidence({"kernel.lengthscale": a, "noise": b}) for a in lengths] for b in noises]
)

fig, (ax, hill) = plt.subplots(1, 2, figsize=(9, 3.8))
levels = surface.max() - np.array([6, 4, 3, 2, 1.2, 0.8, 0.5, 0.3, 0.15, 0.05])
ax.contour(lengths, noises, surface, levels, cmap="cividis", linewidths=1)
t = np.linspace(-5, 5, 200)
for k, (length, noise, marker) in enumerate([(1.0, 0.05, "o"), (8.0, 0.3, "s")]):
    start = gm.GP(gm.fixed(1.0) * gm.RBF(length), noise=noise, mean=gm.ConstantMean(gm.fixed(0.0)))
    best = start.fit(x[:, None], y)
    found = best.parameters
    at = float(found["kernel.lengthscale"]), float(found["noise"])
    ax.plot(*at, marker, color=f"C{k}", ms=9, mfc="none", mew=2)
    hill.plot(
        t, best.condition(x[:, None], y).mean(t[:, None]), color=f"C{k}", label=f"lengthscale {at[0]:.2g}"
    )
ax.set(xscale="log", yscale="log", xlabel="lengthscale", ylabel="noise variance", title="log evidence")
hill.plot(x, y, "k.", ms=9)
hill.set(xlabel="x", ylabel="y", title="the two means")
hill.legend()
plt.show()
