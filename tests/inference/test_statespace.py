"""The Kalman filter is exact inference: every answer of the state-space engine against the dense one."""

from __future__ import annotations

import tracemalloc

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import gammainc

import gramian as gm
from gramian._conformance.helpers import by_entries
from gramian.choose.plan import MARKOV_ROWS
from gramian.engines.base import Use, Workspace
from gramian.errors import NumericalError, ParameterError
from gramian.fitting.objective import Objective
from gramian.gram import markov
from gramian.inference import Data, Model, RuleOnEngine
from gramian.likelihoods import Bernoulli, Gaussian, Poisson, StudentT
from gramian.means import ConstantMean, ZeroMean
from gramian.testing import check_engine, check_kernel

KERNELS = {
    "Matern12": gm.Matern12(0.7),
    "Matern32": gm.Matern32(0.7),
    "Matern52": gm.Matern52(0.7),
    "Cosine": gm.Cosine(1.3),
    "damped": gm.Matern12(2.0) * gm.Cosine(0.9),
    "Constant": gm.Constant(1.7),
    "Linear": gm.Linear(0.6),
    "Polynomial": gm.Polynomial(3, 0.4, 0.8),
    "Brownian": gm.Brownian(),
    "IntegratedBrownian": gm.IntegratedBrownian(),
    "sum": 0.5 * gm.Matern32(0.4) + gm.Linear() + 2.0,
    "product": gm.Matern12(1.5) * gm.Matern52(0.8) * gm.Brownian(),
    "power": (gm.Matern32(0.9) + gm.Constant(0.3)) ** 2,
    "warped": gm.warp(gm.Matern32(1.1), lambda x: 1 + x[0] ** 2),
    "one of two columns": (gm.Matern32(0.7) + gm.Cosine(2.0)).on(1),
}
TIMES = np.array([-2.5, -2.5, -1.1, -1.1 + 1e-12, -0.3, 0.0, 0.0, 1e-7, 0.4, 1.9, 2.0, 30.0])


def table(t: np.ndarray, kernel: gm.Kernel) -> np.ndarray:
    """Times as the last of the columns that the kernel speaks of."""
    return np.column_stack([np.cos(t), t]) if kernel.columns_asked() == (1,) else t[:, None]


def pairs(kernel: gm.Kernel, t: np.ndarray, terms: int = 6) -> tuple[np.ndarray, ...]:
    """For all s <= t of the times: their numbers, A, Q and P(s), H at all times."""
    i, j = np.tril_indices(len(t))
    d = table(t, kernel).shape[1]
    with jax.enable_x64(True):
        A, Q, P, _ = (np.asarray(x) for x in markov.transitions(d, terms, kernel.bare(), t[j], t[i]))
        own = np.asarray(markov.transitions(d, terms, kernel.bare(), t, t)[3])
    return i, j, A, Q, P, own


@pytest.mark.parametrize("name", KERNELS)
def test_a_form_is_its_kernel(name):
    """k(s, t) = H(t)' A(s, t) P(s) H(s), also before 0, across it, at equal and nearly equal times."""
    kernel, t = KERNELS[name], TIMES
    i, j, A, _, P, H = pairs(kernel, t)
    K, scale = kernel(table(t, kernel)), np.sqrt(kernel.diag(table(t, kernel)))
    found = np.einsum("ka,kab,kbc,kc->k", H[i], A, P, H[j])
    # numbers up to 30^6, from sums of a few products: relative to sqrt(k(s, s) k(t, t)), a few roundings
    assert_allclose(found, K[i, j], rtol=1e-12, atol=1e-13 * (scale[i] * scale[j]).max() + 1e-300)


@pytest.mark.parametrize("name", KERNELS)
def test_steps_keep_the_law(name):
    """Q = P(t) - A P(s) A', positive semi-definite and with all digits where that difference has none."""
    kernel, t = KERNELS[name], TIMES
    i, j, A, Q, P, _ = pairs(kernel, t)
    own = {(a, b): k for k, (a, b) in enumerate(zip(i, j, strict=True))}
    for k in range(len(i)):
        after = P[own[i[k], i[k]]]
        size = np.sqrt(np.outer(np.diagonal(after), np.diagonal(after))) + np.abs(after).max() * 1e-3
        assert np.all(np.abs(after - A[k] @ P[k] @ A[k].T - Q[k]) <= 1e-12 * size + 1e-300)
        d = np.sqrt(np.maximum(np.diagonal(Q[k]), 1e-300))
        assert np.linalg.eigvalsh(Q[k] / np.outer(d, d)).min() > -1e-6


@pytest.mark.parametrize("r", [1e-12, 1e-6, 1e-3, 0.1, 0.49, 0.51, 3.0, 40.0])
def test_small_steps_keep_their_digits(r):
    """Var(f(t) | f, f', ... at s): r^(2 nu) times a constant at first, where 1 - A P A' has no digit left."""
    for kernel, m in ((gm.Matern12(1.0), 1), (gm.Matern32(np.sqrt(3.0)), 3), (gm.Matern52(np.sqrt(5.0)), 5)):
        with jax.enable_x64(True):
            Q = np.asarray(markov.transitions(1, 6, kernel.bare(), np.zeros(1), np.array([r]))[1])
        # r = 0.51 is at the worst place of the direct form, 1 - 0.98: 50 roundings
        assert_allclose(Q[0, 0, 0], gammainc(m, 2 * r), rtol=2e-13)


def test_integrated_brownian_is_a_kernel():
    check_kernel(gm.IntegratedBrownian(), n_columns=1)
    check_kernel(gm.IntegratedBrownian(), n_columns=2)
    t = np.linspace(0, 2, 2001)
    walk = np.minimum.outer(t, t)  # of Brownian motion, integrated twice
    inner = np.trapezoid(np.trapezoid(walk, t, axis=0), t)
    assert_allclose(gm.IntegratedBrownian()([[2.0]])[0, 0], inner, rtol=1e-6)
    assert gm.parse_kernel("IntegratedBrownian()") == gm.IntegratedBrownian()


@pytest.mark.parametrize(
    "kernel",
    [1.3 * gm.Matern32(0.8), gm.Matern52(0.9) + 0.3 * gm.Linear() + gm.Matern12(1.0) * gm.Cosine(2.0)],
    ids=str,
)
def test_the_contract(kernel):
    """A state of 2, whose matrices are written out entry by entry, and one of 6, whose are arrays."""
    check_engine(gm.StateSpace(), kernel, d=1)


# With sites, on rows of several chunks. ---------------------------------------------------------------------


def rows(n: int, seed: int = 0) -> np.ndarray:
    """Unsorted times, some of them equal, some nearly so, with a gap."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 12, n)
    t[n // 2 :] += 20
    t[3::50], t[5::60] = t[2::50][: len(t[3::50])], t[4::60][: len(t[5::60])] + 1e-12
    return rng.permutation(t)[:, None]


def regular(n: int) -> np.ndarray:
    """One step, gaps of many, and a few times twice: what hours of a meter look like."""
    t = 0.05 * np.arange(n, dtype=float)
    t[n // 3 :], t[n // 2 :] = t[n // 3 :] + 0.15, t[n // 2 :] + 7.0
    t[40::90] = t[39::90][: len(t[40::90])]
    return t[:, None]


BLOCKS = gm.Matern52(0.9) + 0.4 * gm.Matern32(2.0) * gm.Cosine(0.8) + gm.Matern12(3.0) * gm.Cosine(1.7)


@pytest.mark.parametrize("X", [rows(700), regular(700)], ids=["irregular", "regular"])
@pytest.mark.parametrize(
    "kernel", [KERNELS["Matern32"], KERNELS["sum"], KERNELS["damped"], BLOCKS + gm.Linear(0.1)], ids=str
)
def test_chunks_are_linked(kernel, X):
    """700 rows are three chunks, some of them not observed: all that follows from K, by NumPy. States of up
    to 4 are written out entry by entry, one of 10 is of blocks of 3, 4, 2 and 1."""
    rng = np.random.default_rng(1)
    D, r = rng.uniform(0.05, 0.5, 700), rng.standard_normal((700, 1))
    D[::7], r[::7] = np.inf, 0.0
    one, s = gm.StateSpace().at(kernel, X, Use()).observe(D, r), np.isfinite(D)
    K, inverse = kernel(X), np.zeros((700, 700))
    A = K[np.ix_(s, s)] + np.diag(D[s])
    inverse[np.ix_(s, s)] = np.linalg.inv(A)
    alpha, rtol = inverse @ r, 1e-15 * 700 * np.linalg.cond(A)
    assert_allclose(one.logdet_noisy, np.linalg.slogdet(A)[1], rtol=1e-12)
    assert_allclose(one.quad, np.sum(r * alpha), rtol=rtol)
    assert_allclose(one.alpha, alpha, atol=rtol * np.abs(alpha).max())
    assert_allclose(one.mean, K @ alpha, atol=rtol)
    assert_allclose(one.var(), np.diagonal(K - K @ inverse @ K), atol=rtol)
    assert_allclose(one.precision(), np.diagonal(inverse), atol=rtol * np.abs(inverse).max())
    G = 0.5 * alpha @ alpha.T - 0.5 * inverse
    for (_, _, dK), slope in zip(
        by_entries(lambda own: own(X), kernel, 1e-3), one.pullback().by_kernel, strict=True
    ):
        assert_allclose(slope, np.sum(G * dK), atol=1e-7 * np.sum(np.abs(G * dK)))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.floats(-50, 50), st.integers(-3, 3).map(float)), min_size=1, max_size=40),
    st.floats(-3, 3),
    st.integers(0, 2**32 - 1),
)
def test_any_times(times, log_length, seed):
    """Unsorted, equal, one row, lengthscales far shorter and far longer than the gaps."""
    X, rng = np.array(times)[:, None], np.random.default_rng(seed)
    kernel, n = 1.3 * gm.Matern32(10.0**log_length), len(times)
    D, r = rng.uniform(0.01, 1.0, n), rng.standard_normal((n, 1))
    ours, theirs = (e.at(kernel, X, Use()).observe(D, r) for e in (gm.StateSpace(), gm.Exact()))
    cond = 1 + 1.3 * n / D.min()
    assert_allclose(ours.logdet_noisy, theirs.logdet_noisy, atol=1e-14 * n * cond)
    assert_allclose(ours.alpha, theirs.alpha, atol=1e-13 * cond / D.min())
    assert_allclose(ours.var(), theirs.var(), atol=1e-13 * cond)


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-6])
def test_little_noise(noise):
    """A Brownian bridge, and smooth functions without noise over three chunks: through the points, with the
    variance between neighbours alone."""
    t = np.sort(np.random.default_rng(0).uniform(0, 20, 600))
    y = np.sin(t)[:, None]
    gp = (
        gm.GP(gm.Brownian(), method="statespace").condition(t[:, None], y[:, 0], noise=noise)
        if False
        else None
    )
    assert gp is None
    prior = gm.StateSpace().at(gm.Brownian(), t[:, None], Use())
    one = prior.observe(np.full(600, noise), y)
    assert_allclose(one.mean, y, atol=30 * noise / np.diff(t).min() + 1e-12)
    middle = 0.5 * (t[1:] + t[:-1])
    post = prior.process(gm.processes.GaussianProcess(gm.Brownian(), ZeroMean(), np.ones(1)), [one], [[0]])
    mean, var = post.moments(middle[:, None])
    assert_allclose(var[:, 0], np.diff(t) / 4, atol=2 * noise + 1e-13)
    assert_allclose(mean[:, 0], 0.5 * (y[1:, 0] + y[:-1, 0]), atol=30 * noise / np.diff(t).min() + 1e-12)


def test_rows_at_one_time_without_noise():
    """As for a factor, a little noise is added and reported."""
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    one = (
        gm.StateSpace()
        .at(gm.Matern32(1.0), X, Use())
        .observe(np.zeros(4), np.array([[0.0], [1.0], [1.0], [0.5]]))
    )
    assert one.outcome.jitter > 0
    assert_allclose(one.mean[:, 0], [0, 1, 1, 0.5], atol=1e-4)


# Rules of inference. ----------------------------------------------------------------------------------------

RULES = {"laplace": gm.Laplace(tol=1e-12), "ep": gm.EP(tol=1e-10), "vi": gm.VI(tol=1e-13)}


@pytest.mark.parametrize(
    "likelihood", [Gaussian(0.3), Bernoulli(), Poisson(), StudentT(0.4)], ids=lambda own: type(own).__name__
)
@pytest.mark.parametrize("rule", RULES)
def test_rules_on_it(rule, likelihood):
    """Evidence, gradient, cavities and predictions are those of the dense engine."""
    rng, X = np.random.default_rng(3), rows(40)
    f = np.sin(X[:, 0])
    draws = {Bernoulli: rng.random(40) < 1 / (1 + np.exp(-3 * f)), Poisson: rng.poisson(np.exp(f))}
    y = np.asarray(draws.get(type(likelihood), f + 0.3 * rng.standard_t(4, 40)), dtype=float)
    Y = np.column_stack([y, np.ones(40)]) if isinstance(likelihood, Poisson) else y[:, None]  # exposure
    model, data = Model(1.4 * gm.Matern32(1.2), ConstantMean(0.1), likelihood), Data(X, Y, np.ones(1))
    found = []
    for engine in (gm.StateSpace(), gm.Exact()):
        scheme = RuleOnEngine(RULES[rule], engine)
        value, gradient = scheme.evidence_and_gradient(model, data, Workspace())
        process = scheme.infer(model, data).posterior
        left_out = scheme.cavities(model, data, process)
        moments = process.moments(np.linspace(-3, 40, 9)[:, None])
        found.append((np.atleast_1d(value.value), *map(np.atleast_1d, gradient), *moments, *left_out))
    # the rules end within their tolerance of the same point: values to its square, slopes to itself
    for ours, theirs in zip(*found, strict=True):
        assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_the_gradient_is_that_of_the_evidence():
    rng, X = np.random.default_rng(3), rows(60)
    model = Model(1.4 * gm.Matern52(1.2) * gm.Cosine(3.0) + gm.Linear(0.1), ConstantMean(0.1), Gaussian(0.2))
    data = Data(X, rng.standard_normal((60, 1)), np.ones(1))
    objective = Objective(model, data, RuleOnEngine(gm.inference.Conjugate(), gm.StateSpace()))
    _, gradient = objective.evidence(objective.start)
    for k in range(len(gradient)):
        values = []
        for step in (-2e-4, -1e-4, 1e-4, 2e-4):
            moved = objective.start.copy()
            moved[k] += step
            values.append(objective.evidence(moved)[0].value)
        slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / 1.2e-3
        assert_allclose(gradient[k], slope, rtol=1e-6, atol=1e-6)


# What people ask of a fit. ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fits():
    X, rng = rows(90), np.random.default_rng(5)
    y = np.sin(X[:, 0]) + 0.3 * X[:, 0] + 0.2 * rng.standard_normal(90)
    kernel = gm.Matern32(1.5) + 0.5 * gm.Linear(0.3)
    return [gm.GPRegressor(kernel, method=m, random_state=0).fit(X, y) for m in ("statespace", "exact")]


AT = np.linspace(-4, 45, 13)[:, None]


def test_a_fit(fits):
    ours, theirs = fits
    assert_allclose(ours.predict(AT, return_std=True), theirs.predict(AT, return_std=True), atol=1e-6)
    assert "statespace on all 90 rows" in str(ours.outcome_.stages)  # not Cholesky, though rows are few
    mine, other = (fit.fitted_.left_out_numbers() for fit in fits)
    assert_allclose(mine.mean, other.mean, atol=1e-5)
    assert_allclose(mine.std, other.std, atol=1e-5)


def test_components(fits):
    ours, theirs = (fit.components(AT) for fit in fits)
    assert list(ours) == list(theirs)
    for name in ours:
        assert_allclose(ours[name], theirs[name], atol=1e-5)


def test_covariances_and_draws(fits):
    ours, theirs = (fit.fitted_.process for fit in fits)
    Z = fits[0].read(AT)
    assert_allclose(ours.cov(Z), theirs.cov(Z), atol=1e-6)
    draws = ours.sample(np.random.default_rng(0), Z, 4000)[:, 0]
    mean, cov = ours.mean(Z)[:, 0], ours.cov(Z)[:, :, 0]
    sd = np.sqrt(np.diagonal(cov))
    # 7 standard errors of 13 means and 169 covariances: once in 1e9, and the seed is fixed
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 7 * sd / np.sqrt(4000))
    assert np.all(np.abs(np.cov(draws) - cov) < 7 * np.sqrt(2 / 4000) * np.outer(sd, sd))


def test_saved_and_loaded_to_the_same_bits(fits, tmp_path):
    fits[0].save(tmp_path / "series.gm")
    again = gm.load(tmp_path / "series.gm")
    for own, other in zip(
        fits[0].predict(AT, return_std=True), again.predict(AT, return_std=True), strict=True
    ):
        assert np.array_equal(own, other)


def test_memory_grows_with_the_rows_alone():
    needs = [gm.StateSpace().bytes_needed(n, 1, 1) for n in (10**6, 2 * 10**6, 4 * 10**6)]
    assert needs[2] - needs[1] == 2 * (needs[1] - needs[0])
    assert needs[0] < 1e9
    n, rng = 150_000, np.random.default_rng(0)
    X, r = rng.uniform(0, 1500, (n, 1)), rng.standard_normal((n, 1))
    tracemalloc.start()  # of NumPy's arrays, which are those of all rows
    one = gm.StateSpace().at(1.3 * gm.Matern32(1.0), X, Use()).observe(np.full(n, 0.1), r)
    one.pullback()
    one.var()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < gm.StateSpace(size=2).bytes_needed(n, 1, 1)


def test_auto_takes_it_where_it_is_exact_and_quicker():
    plan = gm.plan((100_000, 1), gm.Matern32(1.0) + gm.Linear())
    assert plan.choice.method.name == "statespace"
    assert "state-space form" in plan.reason
    assert gm.plan((MARKOV_ROWS - 1, 1), gm.Matern32(1.0)).choice.method.name == "exact"
    assert gm.plan((100_000, 2), gm.Matern32(1.0).on(1)).choice.method.name == "statespace"
    for shape, kernel in (
        ((100_000, 2), gm.Matern32(1.0)),
        ((100_000, 1), gm.RBF()),
        ((100_000, 1), gm.Periodic()),
    ):
        assert gm.plan(shape, kernel).choice.method.name != "statespace"


def test_series_stay_within_their_bound():
    """Of a periodic kernel, alone and in products; it falls with the terms."""
    product = 2.0 * gm.Periodic(0.8, 3.0) * gm.Matern32(4.0) + gm.Matern12(0.5)
    t, before = np.sort(rows(40)[:, 0]), np.inf
    for terms in (3, 6, 12):
        for kernel in (product, gm.Periodic(0.6, 2.0)):
            engine = gm.StateSpace(terms=terms).prepared(kernel, t[:, None], np.random.default_rng(0))
            i, j, A, _, P, H = pairs(kernel, t, terms)
            off = np.abs(np.einsum("ka,kab,kbc,kc->k", H[i], A, P, H[j]) - kernel(t[:, None])[i, j]).max()
            assert 0.5 * engine.error <= off <= engine.error * (1 + 1e-6) + 1e-14
            assert not engine.exact
            assert "within" in engine.described
        assert engine.error < before
        before = engine.error


@pytest.mark.parametrize(
    ("kernel", "d", "words"),
    [
        (gm.Matern32(1.0) + gm.RationalQuadratic(2.0), 1, "RationalQuadratic(2) has no state-space form"),
        (gm.Matern32(1.0), 2, "Matern32() sees several of the 2 columns"),
        (gm.Matern32(1.0).on(0) + gm.Linear().on(1), 2, "has parts on different columns"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_said_with_the_part(kernel, d, words):
    X = np.random.default_rng(0).standard_normal((20, d))
    with pytest.raises(ParameterError) as error:
        gm.GPRegressor(kernel, method="statespace").fit(X, X[:, 0])
    assert words in str(error.value)


def test_the_default_kernel():
    """Of the models that are tried, those with a state-space form."""
    X, rng = rows(60), np.random.default_rng(0)
    gp = gm.GPRegressor(method="statespace", random_state=0).fit(
        X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
    )
    assert "Matern" in str(gp.kernel_)
    assert "RBF" not in str(gp.kernel_)
    assert np.abs(gp.predict([[5.0]])[0] - np.sin(5.0)) < 0.5


def test_settings_are_checked():
    with pytest.raises(ParameterError, match="terms=0 must be a whole number"):
        gm.StateSpace(terms=0)


def test_sites_that_curve_too_much_are_refused():
    X = np.linspace(0, 1, 5)[:, None]
    with pytest.raises(NumericalError, match="curve the wrong way"):
        gm.StateSpace().at(gm.Matern32(1.0), X, Use(signed=True)).condition(
            np.array([0, 0, -3.0, 0, 0]), np.zeros((5, 1))
        )
