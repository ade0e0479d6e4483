"""Laplace's approximation of a softmax as the book derives it before making it fast: one Gaussian of all C n
latent values, dense inverses, loops.

Values are stacked class by class. `K` is a list with the covariance of each class, prior means `m` are (n,
C). Source: Rasmussen and Williams 2006, section 3.5, equations 3.35 to 3.39; predictions as in equation 3.43.
"""

from __future__ import annotations

import math

import numpy as np


def stacked(K: list[np.ndarray]) -> np.ndarray:
    """Block diagonal."""
    rows = [
        [block if a == b else np.zeros((len(K[a]), block.shape[1])) for b, block in enumerate(K)]
        for a in range(len(K))
    ]
    return np.block(rows)


def probabilities(f: np.ndarray) -> np.ndarray:
    out = np.empty_like(f)
    for i, row in enumerate(f):
        total = sum(math.exp(v - max(row)) for v in row)
        for c, v in enumerate(row):
            out[i, c] = math.exp(v - max(row)) / total
    return out


def curvature(pi: np.ndarray) -> np.ndarray:
    """W of all C n values, equation 3.38."""
    n, C = pi.shape
    W = np.zeros((C * n, C * n))
    for i in range(n):
        for a in range(C):
            for b in range(C):
                W[a * n + i, b * n + i] = (pi[i, a] if a == b else 0.0) - pi[i, a] * pi[i, b]
    return W


def mode(K: list[np.ndarray], m: np.ndarray, y: np.ndarray, steps: int = 25) -> np.ndarray:
    """f (n, C) by Newton's method, equation 3.39 with f - m for f; the first steps are halved, which suffices
    for data of ordinary size."""
    n, C = m.shape
    full, mean, f = stacked(K), m.T.ravel(), m.T.ravel().copy()
    hot = np.array([[1.0 if y[i] == c else 0.0 for i in range(n)] for c in range(C)]).ravel()
    for step in range(steps):
        pi = probabilities(f.reshape(C, n).T)
        W = curvature(pi)
        b = W @ (f - mean) + hot - pi.T.ravel()
        new = mean + full @ np.linalg.solve(np.eye(C * n) + W @ full, b)
        f = f + (0.5 if step < 10 else 1.0) * (new - f)
    return f.reshape(C, n).T


def evidence(K: list[np.ndarray], m: np.ndarray, y: np.ndarray) -> float:
    """Equation 3.44 and below: log q(y | X)."""
    n, C = m.shape
    f = mode(K, m, y)
    full, pi = stacked(K), probabilities(f)
    fit = sum(math.log(pi[i, int(y[i])]) for i in range(n))
    r = (f - m).T.ravel()
    hot = np.array([[1.0 if y[i] == c else 0.0 for i in range(n)] for c in range(C)]).ravel()
    sign, logdet = np.linalg.slogdet(np.eye(C * n) + full @ curvature(pi))
    assert sign > 0
    # at the mode K^-1 (f - m) is the gradient
    return fit - 0.5 * float(r @ (hot - pi.T.ravel())) - 0.5 * float(logdet)


def predict(
    K: list[np.ndarray], cross: list[np.ndarray], prior: list[np.ndarray], m: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (t, C), without the prior's, and covariance (C t, C t) of the latents at t points, with
    covariances `cross` (t, n) and `prior` (t, t)."""
    n, C = m.shape
    pi = probabilities(mode(K, m, y))
    full, W, Q = stacked(K), curvature(pi), stacked(cross)
    hot = np.array([[1.0 if y[i] == c else 0.0 for i in range(n)] for c in range(C)])
    mean = Q @ (hot - pi.T).ravel()
    cov = stacked(prior) - Q @ np.linalg.solve(np.eye(C * n) + W @ full, W @ Q.T)
    return mean.reshape(C, -1).T, cov
