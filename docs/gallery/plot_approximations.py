"""
How good is an approximation of the kernel matrix?
==================================================

The relative error of K against its size, for landmarks chosen in four ways (Nystrom) and for random
frequencies (Fourier). The data lie in two clumps of very different density, which random rows miss and pivots
do not.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
X = np.vstack([rng.normal(0, 0.3, (580, 2)), rng.normal(4, 1.2, (20, 2))])
kernel = gm.RBF(0.5)
K = kernel(X)
sizes = [8, 16, 32, 64, 128]


def nystrom(m, rule, seed):
    Z = gm.landmarks(kernel, X, m, rule, random_state=seed).Z
    cross = kernel(X, Z)
    return cross @ np.linalg.lstsq(kernel(Z) + 1e-10 * np.eye(len(Z)), cross.T, rcond=None)[0]


def fourier(m, seed):
    features = gm.FourierFeatures(kernel, n_features=m, random_state=seed).fit_transform(X)
    return features @ features.T


def error(approximations):
    return np.mean([np.linalg.norm(K - A) for A in approximations]) / np.linalg.norm(K)


fig, ax = plt.subplots()
for rule, marker in zip(("uniform", "kmeans", "pivoted", "rpcholesky"), "osv^", strict=True):
    curve = [error(nystrom(m, rule, seed) for seed in range(3)) for m in sizes]
    ax.loglog(sizes, curve, marker + "-", label=f"Nystrom, {rule}")
ax.loglog(sizes, [error(fourier(m, s) for s in range(3)) for m in sizes], "x--", label="Fourier, orf")
ax.set(xlabel="landmarks or features", ylabel="relative error of K (Frobenius)", xticks=sizes)
ax.set_xticklabels([str(m) for m in sizes])
ax.minorticks_off()
ax.legend()
plt.show()
