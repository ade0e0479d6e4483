"""Outputs with a noise of their own: they share kernel and mean, so that all of it is the sum over outputs of
what models of a single one give.

Tolerance: condition numbers are below n k(x, x) / noise = 2,000, so that rounding is below 1e-11."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import block_diag
from scipy.stats import multivariate_normal

import gramian as gm
from gramian.engines import Exact, LowRank
from gramian.engines.base import Workspace
from gramian.errors import ParameterError
from gramian.features.fourier import FourierBasis
from gramian.features.nystrom import NystromBasis
from gramian.inference import Data, Model, closed
from gramian.inference.mcmc.traced import CurveSites, problem
from gramian.likelihoods import Gaussian
from gramian.means import ConstantMean

N, Q = 40, 3
rng = np.random.default_rng(5)
X = rng.uniform(-2, 2, (N, 2))
P = rng.uniform(-2, 2, (7, 2))
Y = np.column_stack([np.sin(X[:, 0]), 10 * X[:, 1], np.cos(X[:, 1])]) + 0.1 * rng.normal(size=(N, Q))
HOLES = np.where(rng.random((N, Q)) < 0.2, np.nan, Y)
SCALE, NOISE, LEVEL = np.array([1.0, 10.0, 0.5]), np.array([0.02, 40.0, 0.1]), [0.1, 2.0, -0.3]
KNOWN = rng.uniform(0.0, 0.2, N)
KERNEL = 0.9 * gm.Matern52([0.8, 1.3])
MODEL = Model(KERNEL, ConstantMean(LEVEL), Gaussian(NOISE))
Z = X[::4] + 0.01
WAVES = FourierBasis.draw(KERNEL, 2, 40, rng=np.random.default_rng(0))
ENGINES = {
    "exact": Exact(),
    "nystrom": LowRank(NystromBasis(Z), "nothing", "nystrom", "landmarks"),
    "vfe": LowRank(NystromBasis(Z), "bound", "vfe", "landmarks"),
    "fitc": LowRank(NystromBasis(Z), "noise", "fitc", "landmarks"),
    "fourier": LowRank(WAVES, "nothing", "rff", "waves"),
}


def alone(k: int) -> Model:
    return Model(KERNEL, ConstantMean(LEVEL[k]), Gaussian(NOISE[k]))


@pytest.mark.parametrize("known", [None, KNOWN], ids=["noise", "known noise beside it"])
@pytest.mark.parametrize("table", [Y, HOLES], ids=["whole", "with holes"])
@pytest.mark.parametrize("name", ENGINES)
def test_the_evidence_is_the_sum_over_outputs(name, table, known):
    scheme = closed(ENGINES[name])
    evidence, gradient = scheme.evidence_and_gradient(
        MODEL, Data(X, table, SCALE, known), workspace := Workspace()
    )
    inferred = scheme.infer(MODEL, Data(X, table, SCALE, known))
    mean, var = inferred.posterior.moments(P)
    value, by_kernel, by_level, by_noise = 0.0, [np.zeros(()), np.zeros(2)], np.zeros(Q), np.zeros(Q)
    for k in range(Q):
        part = Data(X, table[:, [k]], SCALE[[k]], known)
        own, slopes = scheme.evidence_and_gradient(alone(k), part, workspace)
        value += own.value
        by_kernel = [total + slope for total, slope in zip(by_kernel, slopes, strict=False)]
        by_level[k], by_noise[k] = slopes[2], slopes[3]
        own_mean, own_var = scheme.infer(alone(k), part).posterior.moments(P)
        assert_allclose(mean[:, [k]], own_mean, rtol=1e-10, atol=1e-10 * SCALE[k])
        assert_allclose(var[:, [k]], own_var, rtol=1e-10, atol=1e-10 * SCALE[k] ** 2)
    assert_allclose([evidence.value, inferred.evidence.value], value, rtol=1e-10)
    for ours, theirs in zip(gradient, [*by_kernel, by_level, by_noise], strict=True):
        assert ours.shape == theirs.shape
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10 * np.abs(theirs).max())


@pytest.mark.parametrize("table", [Y, HOLES], ids=["whole", "with holes"])
def test_the_evidence_is_the_density_of_all_outputs_as_one_vector(table):
    """With the covariance of all n q numbers written out; the evidence is of y / s."""
    C = block_diag(*(s**2 * KERNEL(X) + noise * np.eye(N) for s, noise in zip(SCALE, NOISE, strict=True)))
    y, m = table.T.ravel(), np.repeat(LEVEL, N)
    seen = np.isfinite(y)
    density = multivariate_normal(m[seen], C[np.ix_(seen, seen)]).logpdf(y[seen])
    density += np.sum(np.isfinite(table) * np.log(SCALE))
    evidence = closed(Exact()).evidence(MODEL, Data(X, table, SCALE), Workspace())
    assert_allclose(evidence.value, density, rtol=1e-10)


@pytest.mark.parametrize(
    ("engine", "atol"),
    [
        # the floor below K_zz's eigenvalues is 1e-12 or so of them, beside a noise of 0.02
        (gm.Nystrom(N), 1e-8),
        (gm.Sparse(N), 1e-8),
        (gm.Sparse(N, "fitc"), 1e-8),
        (gm.Krylov(gm.CG(tol=1e-10)), 1e-7),
        (gm.Krylov(gm.MINRES(tol=1e-10)), 1e-7),
    ],
    ids=["nystrom", "vfe", "fitc", "cg", "minres"],
)
def test_engines_of_full_rank_give_the_exact_answer(engine, atol):
    data = Data(X, Y, SCALE)
    scheme = closed(engine).prepared(MODEL, data, np.random.default_rng(0))
    ours, exact = (one.infer(MODEL, data) for one in (scheme, closed(Exact())))
    for one, other, power in zip(ours.posterior.moments(P), exact.posterior.moments(P), (1, 2), strict=True):
        assert_allclose(one / SCALE**power, other / SCALE**power, rtol=0, atol=atol)
    slack = 6 * ours.evidence.standard_error
    assert_allclose(ours.evidence.value, exact.evidence.value, rtol=1e-6, atol=slack)
    pairs = (scheme, ours), (closed(Exact()), exact)
    left_out = [one.cavities(MODEL, data, own.posterior).var / SCALE**2 for one, own in pairs]
    assert_allclose(*left_out, rtol=0, atol=10 * atol)


def test_chains_move_the_noises_apart():
    """Noises that are equal where a chain begins are two parameters all the same."""
    data = Data(X, Y[:, [0, 2]], np.ones(2))
    start = Model(KERNEL, ConstantMean(0.1), Gaussian([0.1, 0.1]))
    with jax.enable_x64(True):
        made, t = problem(start, data, marginal=True)
        t = t + np.array([*[0.0] * (len(t) - 2), -1.0, 0.5])
        nothing = CurveSites(np.zeros((N, 2)), np.zeros((N, 2)))
        value = float(made.log_density(t, nothing) - made.log_prior(t))
    moved = start.with_values({"noise": 0.1 * np.exp([-1.0, 0.5])})
    assert_allclose(value, closed(Exact()).evidence(moved, data, Workspace()).value, rtol=1e-6)


def test_a_process_takes_a_noise_an_output():
    prior = gm.GP(KERNEL, noise=NOISE)
    posterior = prior.condition(X, Y)
    mean, var = posterior.predict(P)
    left = posterior.loo()
    for k in range(Q):
        own = gm.GP(KERNEL, noise=NOISE[k]).condition(X, Y[:, k])
        assert_allclose(own.predict(P), (mean[:, k], var[:, k]), rtol=1e-9)
        assert_allclose(own.loo().var, left.var[:, k], rtol=1e-9)
    assert_allclose(posterior.evidence_gradient()["noise"].shape, (Q,))
    with pytest.raises(ParameterError, match=r"noise has 3 variances, but y has 2 outputs.*a list of 2"):
        prior.condition(X, Y[:, :2])
    with pytest.raises(ParameterError, match=r"noise has 3 variances, but y has 1 output\. Give one number"):
        prior.simulate(X)
