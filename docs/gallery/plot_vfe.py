"""
Inducing points
===============

Two thousand noisy rows, and the exact posterior (black) beside a variational one that knows them by 6, 12 and
24 inducing points. With too few the band is wide, not wrong: what the points cannot say counts as unknown.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, (2000, 1))
y = np.sin(X[:, 0]) + 0.5 * np.sin(3.1 * X[:, 0]) + 0.3 * rng.standard_normal(2000)
t = np.linspace(0, 10, 400)[:, None]

prior = gm.GP(gm.Matern52(0.8), noise=0.09)
exact = prior.condition(X, y)
true, _ = exact.moments(t)

fig, axes = plt.subplots(1, 3, figsize=(9, 3.6), sharey=True)
for ax, m in zip(axes, (6, 12, 24), strict=True):
    sparse = prior.condition(X, y, method=gm.Sparse(m))
    mean, var = sparse.moments(t)
    band = 1.96 * np.sqrt(var)
    ax.fill_between(t[:, 0], mean - band, mean + band, alpha=0.25, color="C0")
    ax.plot(t, true, "k", lw=1, label="exact")
    ax.plot(t, mean, "C0", label="sparse")
    gap = float(exact.evidence) - float(sparse.evidence)
    ax.set(title=f"{m} points\nbound {gap:,.0f} nats below", xlabel="x")
axes[0].set_ylabel("f")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()
