"""Kernels as published, in plain NumPy, one pair of points at a time: slow, and sharing no code with the
library."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.integrate import quad
from scipy.special import erf, gamma, kv

Pair = Callable[[np.ndarray, np.ndarray], float]


def gram(k: Pair, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """k on all pairs of rows."""
    K = np.empty((len(X), len(Z)))
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            K[i, j] = k(x, z)
    return K


def scaled_distance(x, z, lengthscale) -> float:
    scales = np.broadcast_to(lengthscale, x.shape)
    return math.sqrt(math.fsum(((a - b) / s) ** 2 for a, b, s in zip(x, z, scales, strict=True)))


def rbf(lengthscale) -> Pair:
    """Rasmussen and Williams 2006, equation 4.9."""
    return lambda x, z: math.exp(-(scaled_distance(x, z, lengthscale) ** 2) / 2)


def matern(nu: float, lengthscale) -> Pair:
    """Equation 4.14, with the modified Bessel function."""

    def k(x, z):
        a = math.sqrt(2 * nu) * scaled_distance(x, z, lengthscale)
        return 1.0 if a == 0 else 2 ** (1 - nu) / gamma(nu) * a**nu * kv(nu, a)

    return k


def rational_quadratic(lengthscale, alpha: float) -> Pair:
    """Equation 4.19."""
    return lambda x, z: (1 + scaled_distance(x, z, lengthscale) ** 2 / (2 * alpha)) ** (-alpha)


def periodic(lengthscale, period) -> Pair:
    """Equation 4.31, one factor a column."""

    def k(x, z):
        product = 1.0
        for a, b, scale, p in zip(
            x, z, np.broadcast_to(lengthscale, x.shape), np.broadcast_to(period, x.shape), strict=True
        ):
            product *= math.exp(-2 * math.sin(math.pi * (a - b) / p) ** 2 / scale**2)
        return product

    return k


def cosine(period) -> Pair:
    return lambda x, z: math.cos(2 * math.pi * math.fsum((x - z) / period))


def spectral_mixture(weights, means, scales) -> Pair:
    """Wilson and Adams 2013, equation 12."""

    def k(x, z):
        total = 0.0
        for weight, mean, scale in zip(weights, means, scales, strict=True):
            term = weight * math.cos(2 * math.pi * math.fsum((x - z) * np.broadcast_to(mean, x.shape)))
            for a, b, s in zip(x, z, np.broadcast_to(scale, x.shape), strict=True):
                term *= math.exp(-2 * math.pi**2 * (a - b) ** 2 * s**2)
            total += term
        return total

    return k


def linear(A) -> Pair:
    """x'Az, for a number, a list of variances, or a matrix."""
    A = np.asarray(A, dtype=float)

    def k(x, z):
        matrix = A if A.ndim == 2 else np.diag(np.broadcast_to(A, x.shape))
        return math.fsum(x[i] * matrix[i, j] * z[j] for i in range(len(x)) for j in range(len(z)))

    return k


def polynomial(degree: int, variance, offset: float) -> Pair:
    return lambda x, z: (linear(variance)(x, z) + offset) ** degree


def lifted(x, variance, bias) -> np.ndarray:
    """The point a network with a bias sees."""
    return np.concatenate([[math.sqrt(bias)], np.sqrt(np.broadcast_to(variance, x.shape)) * x])


def arc_cosine(order: int, variance, bias: float) -> Pair:
    """The definition, Cho and Saul 2009, equation 1: 2 E[max(0, w'x)^n max(0, w'z)^n] with w standard normal
    (max(0, a)^0 is a step).

    Only the plane of x and z matters; there the radius integrates to 2^n n! / (2 pi), and the angle is left
    to quadrature.
    """

    def k(x, z):
        u, v = lifted(x, variance, bias), lifted(z, variance, bias)
        lengths = np.linalg.norm(u) * np.linalg.norm(v)
        angle = math.acos(max(-1.0, min(1.0, float(u @ v) / lengths)))
        # u points at 0 and v at `angle`; both products are positive between angle - pi/2 and pi/2.
        inside, _ = quad(
            lambda phi: (math.cos(phi) * math.cos(phi - angle)) ** order,
            angle - math.pi / 2,
            math.pi / 2,
            epsabs=1e-13,
            epsrel=1e-13,
        )
        return 2 * 2**order * math.factorial(order) / (2 * math.pi) * lengths**order * inside

    return k


def neural_network(variance, bias: float, nodes: int = 120) -> Pair:
    """The definition, Williams 1998: E[erf(w'x) erf(w'z)] with w standard normal, by Gauss-Hermite quadrature
    in the plane of x and z."""
    t, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / math.sqrt(2 * math.pi)

    def k(x, z):
        u, v = lifted(x, variance, bias), lifted(z, variance, bias)
        length = np.linalg.norm(u)
        along = float(u @ v) / length
        across = math.sqrt(max(0.0, float(v @ v) - along**2))
        values = erf(length * t)[:, None] * erf(along * t[:, None] + across * t[None, :])
        return float(weights @ values @ weights)

    return k


def brownian(x, z) -> float:
    product = 1.0
    for a, b in zip(x, z, strict=True):
        product *= min(abs(a), abs(b)) if a * b > 0 else 0.0
    return product


def categorical(similarity) -> Pair:
    return lambda x, z: math.prod(
        1.0 if a == b else s for a, b, s in zip(x, z, np.broadcast_to(similarity, x.shape), strict=True)
    )
