"""NaN in Y: what was not observed. Outputs share kernel, mean and noise, so that all of it is the sum over
outputs of what their own observed rows give alone.

Tolerance: condition numbers are below n k(x, x) / noise = 500, so that rounding is below 1e-12."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.engines import Exact, LowRank
from gramian.engines.base import Use, Workspace
from gramian.features.fourier import FourierBasis
from gramian.features.nystrom import NystromBasis
from gramian.inference import Data, Model, closed
from gramian.likelihoods import Gaussian
from gramian.means import LinearMean

N = 50
rng = np.random.default_rng(3)
X = rng.uniform(-2, 2, (N, 2))
P = rng.uniform(-2, 2, (7, 2))
SCALE = np.array([1.0, 2.0, 0.5, 1.0])
KNOWN = rng.uniform(0.05, 0.2, N)


def table() -> np.ndarray:
    """Two outputs with the same gaps, one with others, and one without."""
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1], np.cos(X[:, 1]), X[:, 0] * X[:, 1]])
    Y += 0.1 * rng.normal(size=Y.shape)
    Y[3:20, [0, 2]] = np.nan
    Y[10:45:3, 1] = np.nan
    return Y


Y = table()
MODEL = Model(0.9 * gm.RBF([0.8, 1.3]), LinearMean(0.1, [0.2, -0.3]), Gaussian(0.1))
Z = X[::5] + 0.01
ENGINES = {
    "exact": Exact(),
    "nystrom": LowRank(NystromBasis(Z), "nothing", "nystrom", "landmarks"),
    "vfe": LowRank(NystromBasis(Z), "bound", "vfe", "landmarks"),
    "fitc": LowRank(NystromBasis(Z), "noise", "fitc", "landmarks"),
    "fourier": LowRank(
        FourierBasis.draw(MODEL.kernel, 2, 40, rng=np.random.default_rng(0)), "nothing", "rff", "waves"
    ),
}


def alone(k: int, noise_var: np.ndarray | None) -> Data:
    seen = np.isfinite(Y[:, k])
    return Data(X[seen], Y[seen][:, [k]], SCALE[[k]], None if noise_var is None else noise_var[seen])


@pytest.mark.parametrize("noise_var", [None, KNOWN], ids=["one noise", "known noise"])
@pytest.mark.parametrize("name", ENGINES)
def test_gaps_are_rows_that_are_not_there(name, noise_var):
    scheme = closed(ENGINES[name])
    together = Data(X, Y, SCALE, noise_var)
    evidence, gradient = scheme.evidence_and_gradient(MODEL, together, Workspace())
    value, slopes = 0.0, [np.zeros_like(part) for part in gradient]
    posterior = scheme.infer(MODEL, together).posterior
    mean, var = posterior.moments(P)
    for k in range(Y.shape[1]):
        part = alone(k, noise_var)
        own, by = scheme.evidence_and_gradient(MODEL, part, Workspace())
        value += own.value
        slopes = [slope + one for slope, one in zip(slopes, by, strict=True)]
        own_mean, own_var = scheme.infer(MODEL, part).posterior.moments(P)
        assert_allclose(mean[:, k], own_mean[:, 0], rtol=0, atol=1e-10)
        assert_allclose(var[:, k], own_var[:, 0], rtol=0, atol=1e-10)
    assert_allclose(evidence.value, value, rtol=1e-10)
    for ours, theirs in zip(gradient, slopes, strict=True):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10 * abs(value))


@pytest.mark.parametrize("method", ["exact", "nystrom"])
def test_an_estimator_takes_a_table_with_gaps(method):
    settings = {"optimize": False, "normalize_y": False, "method": method, "random_state": 0}
    kernel = 0.9 * gm.RBF([0.8, 1.3])
    gp = gm.GPRegressor(kernel, noise=0.1, mean="zero", **settings).fit(X, Y)
    mean, std = gp.predict(P, return_std=True)
    if method == "exact":
        for k in range(Y.shape[1]):
            seen = np.isfinite(Y[:, k])
            own = gm.GPRegressor(kernel, noise=0.1, mean="zero", **settings).fit(X[seen], Y[seen, k])
            own_mean, own_std = own.predict(P, return_std=True)
            assert_allclose(mean[:, k], own_mean, atol=1e-10)
            assert_allclose(std[:, k], own_std, atol=1e-10)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    left_out = gp.loo().mean
    assert left_out.shape == Y.shape
    assert np.isfinite(left_out).all()


@pytest.mark.parametrize("again", [False, True])
def test_variances_of_rows_without_sites_keep_their_digits(again):
    """k(x, x) is 1,000 and noise 1e-4: what A^-1 leaves of that is found without differences of 1e7."""
    x, kernel = np.linspace(-30, 30, 300)[:, None], 0.5 * gm.Matern32(0.4) + gm.Linear() + gm.Constant(2.0)
    D = np.full(300, 1e-4)
    D[::5] = np.inf
    K, seen = np.asarray(kernel(x, x)), np.isfinite(D)
    L = np.linalg.cholesky(K[np.ix_(seen, seen)] + 1e-4 * np.eye(seen.sum()))
    V = np.linalg.solve(L, K[np.ix_(seen, ~seen)])
    wanted = np.diag(K)[~seen] - np.sum(V**2, axis=0)
    found = Exact().at(kernel, x, Use(again=again)).observe(D, np.sin(x)).var()[~seen]
    # of numbers of 1,000, with a condition of 1e7 in A, of which the root counts
    assert_allclose(found, wanted, rtol=0, atol=1e-8)
