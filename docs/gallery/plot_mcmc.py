"""
Chains over parameters
======================

Draws of lengthscale and noise from their posterior, on the evidence surface that maximum evidence climbs. The
highest point (cross) is one of many that go with these rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(1)
X = np.sort(rng.uniform(0, 5, 14))[:, None]
y = np.sin(2 * X[:, 0]) + 0.4 * rng.standard_normal(14)


def weak(value):
    return gm.param(value, prior=gm.LogNormal(np.log(value), 1.0))


lengths, noises = np.geomspace(0.05, 10, 45), np.geomspace(0.01, 2, 45)
prior = gm.GP(gm.RBF(weak(1.0)), noise=weak(0.1))
post = prior.condition(X, y)
surface = np.array(
    [[post.log_evidence({"kernel.lengthscale": a, "noise": b}) for a in lengths] for b in noises]
)
for values, centre, axis in ((lengths, 1.0, 0), (noises, 0.1, 1)):
    density = -0.5 * np.log(values / centre) ** 2
    surface = surface + (density[None, :] if axis == 0 else density[:, None])

gp = gm.GPRegressor(
    gm.RBF(weak(1.0)),
    likelihood=gm.Gaussian(weak(0.1)),
    mean="zero",
    normalize_y=False,
    inference=gm.MCMC(chains=2, warmup=100, draws=150, rounds=1),
    random_state=0,
).fit(X, y)
draws = gp.posterior_.chains.values

fig, ax = plt.subplots(figsize=(6.4, 4.4))
levels = surface.max() - np.array([12, 8, 5, 3, 1.5, 0.5])
ax.contour(lengths, noises, surface, levels=levels, cmap="cividis")
ax.plot(draws["kernel.lengthscale"].ravel(), draws["noise"].ravel(), ".", ms=3, alpha=0.6, label="draws")
best = np.unravel_index(surface.argmax(), surface.shape)
ax.plot(lengths[best[1]], noises[best[0]], "kx", ms=10, mew=2, label="highest")
ax.set(xscale="log", yscale="log", ylim=(0.01, 2), xlim=(0.05, 10))
ax.set(xlabel="lengthscale", ylabel="noise variance")
ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
plt.show()
