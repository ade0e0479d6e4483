"""Gaussian process regression as textbooks write it: dense inverses, determinants and loops. Slow, and
sharing no code with the library.

Kernels are functions of two points; see `tests.reference.kernels`. Source: Rasmussen and Williams 2006,
chapter 2 and sections 5.4, 9.4.
"""

from __future__ import annotations

import math

import numpy as np

from tests.reference.kernels import Pair, gram, scaled_distance


def log_normal(y: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> float:
    """The log density of N(mean, cov) at y, equation A.23."""
    sign, logdet = np.linalg.slogdet(cov)
    assert sign > 0
    r = y - mean
    return -0.5 * float(r @ np.linalg.inv(cov) @ r) - 0.5 * logdet - 0.5 * len(y) * math.log(2 * math.pi)


def condition(
    k: Pair, X: np.ndarray, y: np.ndarray, noise: np.ndarray, Z: np.ndarray, m=lambda x: 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of f at Z, given y at X: equations 2.25 and 2.26, with a mean function as in
    2.38."""
    inverse = np.linalg.inv(gram(k, X, X) + np.diag(noise))
    at_X, at_Z = np.array([m(x) for x in X]), np.array([m(z) for z in Z])
    K = gram(k, Z, X)
    return at_Z + K @ inverse @ (y - at_X), gram(k, Z, Z) - K @ inverse @ K.T


def evidence(k: Pair, X: np.ndarray, y: np.ndarray, noise: np.ndarray, m=lambda x: 0.0) -> float:
    """log p(y | X), equation 2.30."""
    return log_normal(y, np.array([m(x) for x in X]), gram(k, X, X) + np.diag(noise))


def evidence_slope(dA: np.ndarray, A: np.ndarray, r: np.ndarray) -> float:
    """d log p / dtheta for a parameter of the covariance A, equation 5.9: 1/2 tr((alpha alpha' - A^-1)
    dA/dtheta), by a double loop."""
    inverse = np.linalg.inv(A)
    alpha = inverse @ r
    total = 0.0
    for i in range(len(r)):
        for j in range(len(r)):
            total += 0.5 * (alpha[i] * alpha[j] - inverse[i, j]) * dA[j, i]
    return total


def leave_one_out(
    k: Pair, X: np.ndarray, y: np.ndarray, noise: np.ndarray, m=lambda x: 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard deviation and log density of each observation, from a posterior that has never seen
    it."""
    mean, std, log_density = np.empty(len(y)), np.empty(len(y)), np.empty(len(y))
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        mu, cov = condition(k, X[rest], y[rest], noise[rest], X[i : i + 1], m)
        mean[i], variance = mu[0], cov[0, 0] + noise[i]
        std[i] = math.sqrt(variance)
        log_density[i] = -0.5 * (y[i] - mu[0]) ** 2 / variance - 0.5 * math.log(2 * math.pi * variance)
    return mean, std, log_density


# Kernels with a gradient: (k, dk/dx_j, d^2 k / dx_j dz_j at z = x), derived by hand.


def rbf_slopes(lengthscale):
    """k = exp(-r^2 / 2): dk/dx_j = -(x_j - z_j) / l_j^2 k."""
    return (
        lambda x, z, j: (
            -(x[j] - z[j]) / lengthscale[j] ** 2 * math.exp(-(scaled_distance(x, z, lengthscale) ** 2) / 2)
        ),
        lambda j: 1 / lengthscale[j] ** 2,
    )


def matern32_slopes(lengthscale):
    """dk/dx_j = -3 (x_j - z_j) / l_j^2 exp(-sqrt(3) r)."""
    return (
        lambda x, z, j: (
            -3
            * (x[j] - z[j])
            / lengthscale[j] ** 2
            * math.exp(-math.sqrt(3) * scaled_distance(x, z, lengthscale))
        ),
        lambda j: 3 / lengthscale[j] ** 2,
    )


def matern52_slopes(lengthscale):
    """dk/dx_j = -5/3 (x_j - z_j) / l_j^2 (1 + sqrt(5) r) exp(-sqrt(5) r)."""

    def slope(x, z, j):
        a = math.sqrt(5) * scaled_distance(x, z, lengthscale)
        return -5 / 3 * (x[j] - z[j]) / lengthscale[j] ** 2 * (1 + a) * math.exp(-a)

    return slope, lambda j: 5 / 3 / lengthscale[j] ** 2


def gradient_moments(k: Pair, slope, curvature, X, y, noise, Z) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of df/dx_j at Z, (m, d) each: f and its gradient are jointly Gaussian (section
    9.4)."""
    inverse = np.linalg.inv(gram(k, X, X) + np.diag(noise))
    mean, var = np.empty(Z.shape), np.empty(Z.shape)
    for i, z in enumerate(Z):
        for j in range(Z.shape[1]):
            c = np.array([slope(z, x, j) for x in X])
            mean[i, j] = c @ inverse @ y
            var[i, j] = curvature(j) - c @ inverse @ c
    return mean, var
