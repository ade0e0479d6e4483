"""The two regression examples of the GPML toolbox's documentation (version 4.2, sections 3c and 4a), with the
numbers printed there.

The toolbox makes its data with a random generator of its own, described in its source: Park and Miller's
multiplicative congruential generator (multiplier 7^5, modulus 2^31 - 1, started at the whole part of seed *
2^31), whose first and second half become the radius and the angle of the Box-Muller transform. The numbers
agree to all digits that are printed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm


def toolbox_normals(seed: float, n: int) -> np.ndarray:
    half = math.ceil(n / 2)
    state, uniforms = math.floor(seed * 2**31), []
    for _ in range(2 * half):
        state = 7**5 * state % (2**31 - 1)
        uniforms.append(state / 2**31)
    radius = np.sqrt(-2 * np.log(uniforms[:half]))
    angle = 2 * np.pi * np.array(uniforms[half:])
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:n]


@pytest.fixture(scope="module")
def demo():
    """Section 4a: 20 values of a process with Matern-3/2 covariance (lengthscale 1/4) around the line 0.5 x +
    1, with noise of 0.1."""
    x = toolbox_normals(0.3, 20)
    a = math.sqrt(3) * np.abs(x[:, None] - x) / 0.25
    root = np.linalg.cholesky((1 + a) * np.exp(-a))
    return x[:, None], root @ toolbox_normals(0.15, 20) + 0.5 * x + 1 + 0.1 * toolbox_normals(0.2, 20)


def test_hyperparameters_of_the_first_example():
    """Section 3c, sin(3x) with noise of 0.1: log lengthscale -0.6352, log signal deviation -0.1045, log noise
    deviation -2.3824."""
    x = toolbox_normals(0.8, 20)
    y = np.sin(3 * x) + 0.1 * toolbox_normals(0.9, 20)
    gp = gm.GPRegressor(
        1.0 * gm.RBF(1.0), noise=math.exp(-2), mean="zero", normalize_y=False, n_restarts=0
    ).fit(x[:, None], y)
    logs = np.log(
        [
            gp.parameters_["kernel.lengthscale"],
            math.sqrt(gp.parameters_["kernel.scale"]),
            math.sqrt(gp.noise_),
        ]
    )
    assert_allclose(logs, [-0.6352, -0.1045, -2.3824], rtol=0, atol=5.1e-5)  # half of the last digit printed
    assert_allclose(np.exp(logs), [0.53, 0.90, 0.092], rtol=0, atol=5e-3)


def test_negative_log_evidence_of_the_generating_model(demo):
    """Section 4a: nlml = 11.97."""
    X, y = demo
    mean = gm.LinearMean(1.0, [0.5], centre=(0.0,))
    gp = gm.GPRegressor(
        1.0 * gm.Matern32(0.25), noise=0.01, mean=mean, normalize_y=False, optimize=False
    ).fit(X, y)
    assert_allclose(-gp.log_evidence(), 11.97, rtol=0, atol=5e-3)


def test_negative_log_evidence_of_the_wrong_model_after_fitting(demo):
    """Section 4a: a squared exponential without a mean gets nlml2 = 14.13 and a noise of 0.15; the data are
    8.7 times less probable."""
    X, y = demo
    gp = gm.GPRegressor(1.0 * gm.RBF(1.0), noise=0.01, mean="zero", normalize_y=False, n_restarts=0).fit(X, y)
    assert_allclose(-gp.evidence_.value, 14.13, rtol=0, atol=5e-3)
    assert_allclose(math.sqrt(gp.noise_), 0.15, rtol=0, atol=5e-3)
    # 11.97 is rounded as well
    assert_allclose(math.exp(-gp.evidence_.value - 11.97), 8.7, rtol=0, atol=0.05 + 8.7 * 5e-3)


def test_a_mean_function_improves_the_wrong_model(demo):
    """Section 4a: an affine mean, learned with all the rest, gives a much better fit (no number is
    printed)."""
    X, y = demo
    plain = gm.GPRegressor(1.0 * gm.RBF(1.0), noise=0.01, mean="zero", normalize_y=False, n_restarts=0).fit(
        X, y
    )
    affine = gm.GPRegressor(
        1.0 * gm.RBF(1.0), noise=0.01, mean="linear", normalize_y=False, n_restarts=0
    ).fit(X, y)
    assert affine.evidence_.value > plain.evidence_.value + 1
