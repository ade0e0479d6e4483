"""
Laplace, EP and VI beside the truth
===================================

A latent function seen through fifteen labels. Each rule replaces the posterior of f by a Gaussian; what they
say of the probability differs little, of f itself more. The truth is the average over draws of the prior,
each weighed by how probable it makes the labels.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(3)
X = np.sort(rng.uniform(-4, 4, 15))[:, None]
labels = (np.sin(X[:, 0]) + 0.3 * rng.standard_normal(15) > 0).astype(float)
t = np.linspace(-6, 6, 160)[:, None]
prior = gm.GP(9.0 * gm.RBF(1.3), mean=0.0, likelihood=gm.Bernoulli("logit"))

fig, (above, below) = plt.subplots(2, 1, figsize=(7.2, 5.4), sharex=True)
for k, (word, dash) in enumerate({"laplace": "--", "vi": ":", "ep": "-"}.items()):
    posterior = prior.condition(X, labels, inference=word)
    mean, var = posterior.moments(t)
    width = 4 if word == "vi" else 1.5  # EP lies on it
    above.plot(t, mean, dash, color=f"C{k}", lw=width)
    above.plot(t, mean + np.sqrt(var), dash, color=f"C{k}", lw=width / 2)
    above.plot(t, mean - np.sqrt(var), dash, color=f"C{k}", lw=width / 2)
    z = np.polynomial.hermite_e.hermegauss(40)
    at = mean[:, None] + np.sqrt(var)[:, None] * z[0]
    below.plot(t, (1 / (1 + np.exp(-at))) @ z[1] / z[1].sum(), dash, color=f"C{k}", lw=width, label=word)

# draws of f at rows and line together, weighed by the probability of the labels
both = np.vstack([X, t])
draws = gm.GP(9.0 * gm.RBF(1.3)).sample(both, 60_000, seed=0)
weights = np.exp(-np.logaddexp(0, (1 - 2 * labels)[:, None] * draws[:15]).sum(axis=0))
below.plot(t, (1 / (1 + np.exp(-draws[15:]))) @ weights / weights.sum(), "k", lw=1, label="by draws")
below.plot(X, labels, "k|", ms=10)
above.set(ylabel="f: mean and one std")
below.set(ylabel="probability of 1", xlabel="x", ylim=(-0.05, 1.05))
below.legend(ncols=4, loc="center left", bbox_to_anchor=(0.0, 1.12))
plt.show()
