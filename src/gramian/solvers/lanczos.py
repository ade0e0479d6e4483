"""Quadratic forms z' f(M) z by Gauss quadrature in the Krylov space of z (Lanczos quadrature).

m steps of the Lanczos process from z give the Gauss rule for the spectral measure of z: its nodes are the
eigenvalues theta_j of the tridiagonal T (m, m), its weights the squares of the first entries tau_j of T's
eigenvectors,

    z' f(M) z ~ |z|^2 sum_j tau_j^2 f(theta_j)        exact for polynomials of degree 2 m - 1

Conjugate gradients on M x = z run the same process, so the solve that a gradient needs gives T for nothing:

    T_jj = 1 / alpha_j + beta_(j-1) / alpha_(j-1),    T_j,j+1 = sqrt(beta_j) / alpha_j

With a preconditioner P = H H', CG on A x = H w have the coefficients of M = H^-1 A H^-T started at w. Vectors
that lose their orthogonality only repeat nodes, whose weights then add up to the right one.

Averaged over w uniform on the sphere |w|^2 = n, which leaves out the variance of |w|^2, this estimates tr
f(M). Sources: Golub and Van Loan, Matrix Computations, sections 10.2 and 11.3; Ubaru, Chen, Saad 2017, "Fast
estimation of tr(f(A)) via stochastic Lanczos quadrature"; Greenbaum 1989 (finite precision); Wenger et al.
2022 (log determinants with preconditioners).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg

from gramian.arrays import Array


def tridiagonal(alpha: Sequence[float], beta: Sequence[float]) -> tuple[Array, Array]:
    """T's diagonal (m,) and off-diagonal (m - 1,) from m step lengths alpha, m - 1 beta or more, of CG."""
    a, b = np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64)[: len(alpha) - 1]
    diagonal = 1 / a
    diagonal[1:] += b / a[:-1]
    return diagonal, np.sqrt(b) / a[:-1]


def gauss_rule(alpha: Sequence[float], beta: Sequence[float]) -> tuple[Array, Array]:
    """Nodes and weights (adding up to 1) of the Gauss rule for the spectral measure that such CG has seen."""
    nodes, vectors = scipy.linalg.eigh_tridiagonal(*tridiagonal(alpha, beta))
    return nodes, vectors[0] ** 2


def quadratic_form(alpha: Sequence[float], beta: Sequence[float], f: Callable[[Array], Array]) -> float:
    """w' f(M) w / w'w."""
    nodes, weights = gauss_rule(alpha, beta)
    return float(weights @ f(nodes))


def on_sphere(rng: np.random.Generator, n: int, k: int) -> Array:
    """k independent directions (n, k) with |w|^2 = n: E w w' = I."""
    W = rng.standard_normal((k, n))  # a direction a row: the first do not depend on how many follow
    W *= np.sqrt(n) / np.linalg.norm(W, axis=1, keepdims=True)
    return W.T
