"""
Solving without the matrix
==========================

Conjugate gradients solve (K + noise I) a = y by products alone. How many steps that takes depends on the
noise and on the preconditioner: with a pivoted Cholesky factor of rank 50 the residual falls from the first
step on.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(0)
X = rng.uniform(0, 1, (800, 2))
y = np.sin(6 * X[:, 0]) * np.cos(5 * X[:, 1]) + 0.05 * rng.standard_normal(800)
K = gm.Matern52(0.3)(X)


def residuals(A, b, apply, steps=120):
    """Saad, algorithm 9.1: the norm of each residual, relative to b."""
    x, r = np.zeros_like(b), b.copy()
    z = apply(r)
    p, norms = z.copy(), [1.0]
    for _ in range(steps):
        Ap = A @ p
        alpha = (r @ z) / (p @ Ap)
        x, new = x + alpha * p, r - alpha * Ap
        new_z = apply(new)
        p = new_z + (new @ new_z) / (r @ z) * p
        r, z = new, new_z
        norms.append(np.linalg.norm(r) / np.linalg.norm(b))
        if norms[-1] < 1e-10:
            break
    return norms


fig, ax = plt.subplots()
Z = gm.landmarks(gm.Matern52(0.3), X, 50, "rpcholesky", random_state=0).Z
cross = gm.Matern52(0.3)(X, Z)
root = np.linalg.cholesky(gm.Matern52(0.3)(Z) + 1e-10 * np.eye(50))
F = np.linalg.solve(root, cross.T).T  # K ~ F F'
for colour, noise in zip(("C0", "C1"), (1e-1, 1e-3), strict=True):
    A = K + noise * np.eye(800)
    inner = np.linalg.inv(noise * np.eye(50) + F.T @ F)
    ax.semilogy(residuals(A, y, lambda r: r), colour, ls="--", label=f"noise {noise:g}, plain")
    ax.semilogy(
        residuals(A, y, lambda r, inner=inner, noise=noise: (r - F @ (inner @ (F.T @ r))) / noise),
        colour,
        label=f"noise {noise:g}, preconditioned",
    )
ax.set(xlabel="products with K", ylabel="relative residual")
ax.legend()
plt.show()
