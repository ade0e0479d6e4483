"""Each row given its nearest among those before it: theorems, a slow reference, orders, budgets."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.choose import plan
from gramian.engines.base import Use
from gramian.errors import ParameterError
from gramian.estimators import rivals
from gramian.estimators.calibrating import calibrated
from gramian.gram import nearby
from gramian.landmarks import orders
from gramian.means import ZeroMean
from gramian.processes.prior import GaussianProcess
from gramian.testing import check_inference

KERNEL = 1.3 * gm.Matern32([0.3, 0.5])


def table(n, d=2, q=1, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n, d)), rng.standard_normal((n, q)), rng.uniform(0.05, 0.4, n)


def slow(K, D, r, order, m, X):
    """The sum over rows of log N(r_i | r_N), row by row, with dense solves."""
    A, total = K + np.diag(D), 0.0
    for place, i in enumerate(order):
        before = order[:place]
        N = before[np.argsort(np.sum((X[before] - X[i]) ** 2, axis=1), kind="stable")[:m]]
        b = np.linalg.solve(A[np.ix_(N, N)], A[N, i]) if len(N) else np.zeros(0)
        F, e = A[i, i] - b @ A[N, i], r[i] - b @ r[N]
        total += float(np.sum(-0.5 * e**2 / F - 0.5 * np.log(2 * np.pi * F)))
    return total


def evidence(engine, kernel, X, D, r):
    one = engine.at(kernel, X, Use()).observe(D, r)
    n, q = r.shape
    return -0.5 * float(np.sum(one.quad)) - 0.5 * q * (one.logdet_noisy + n * np.log(2 * np.pi))


# Orders. ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordering", orders.ORDERS)
@pytest.mark.parametrize("n", [1, 2, 7, 300, 3000])
def test_an_order_is_a_permutation(ordering, n):
    X = table(n)[0]
    X[n // 2 :] = np.round(X[n // 2 :], 2)  # with repeats
    assert sorted(orders.ORDERS[ordering](X)) == list(range(n))


def test_maxmin_takes_the_farthest_row_each_time():
    X = table(200)[0]
    order = orders.maxmin(X)
    for k in range(1, 200):
        gaps = [np.min(np.linalg.norm(X[order[:k]] - X[j], axis=1)) for j in order[k:]]
        assert gaps[0] >= max(gaps) - 1e-12


def test_maxmin_by_levels_is_maxmin_to_a_factor(monkeypatch):
    X = table(1500)[0]
    exact = orders.maxmin(X)
    monkeypatch.setattr(orders, "EXACT_UP_TO", 0)
    quick = orders.maxmin(X)

    def apart(order):
        return np.min(
            [np.linalg.norm(X[order[k]] - X[order[:k]], axis=1).min() for k in range(1, len(order))]
        )

    for k in (20, 100, 500):  # how far the first k rows are from each other
        assert apart(quick[:k]) > 0.2 * apart(exact[:k])
        assert apart(quick[:k]) > 2 * apart(orders.random(X)[:k])


@pytest.mark.parametrize(("n", "m", "d"), [(5, 10, 2), (400, 7, 2), (900, 30, 3), (300, 1, 1)])
def test_neighbours_are_the_nearest_before(n, m, d):
    X = table(n, d)[0]
    found = orders.nearest_before(X, m)
    for i in range(n):
        apart = np.linalg.norm(X[:i] - X[i], axis=1)
        near = found[i][found[i] >= 0]
        assert len(near) == min(i, m)
        assert_allclose(np.sort(apart[near]), np.sort(apart)[: len(near)], rtol=1e-12)


def test_neighbours_of_many_equal_rows():
    X = np.repeat(table(20)[0], 30, axis=0)
    found = orders.nearest_before(X, 5)
    assert all(np.all(found[i] < i) for i in range(len(X)))
    assert np.all(np.linalg.norm(X[found[599]] - X[599], axis=1) == 0)


# Theorems. --------------------------------------------------------------------------------------------------


def test_all_rows_as_neighbours_give_exact_inference():
    X, r, _ = table(80)
    y, new = r[:, 0], table(9, seed=1)[0]
    fits = [
        gm.GPRegressor(KERNEL, method=method, noise=0.1, optimize=False).fit(X, y)
        for method in (gm.Exact(), gm.Neighbours(79))
    ]
    exact, near = fits
    assert_allclose(near.evidence_.value, exact.evidence_.value, rtol=1e-10)
    for ours, theirs in zip(
        near.predict(new, return_std=True), exact.predict(new, return_std=True), strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-8)
    assert_allclose(near.posterior_.cov(new), exact.posterior_.cov(new), rtol=1e-7, atol=1e-9)
    assert_allclose(near.loo().mean, exact.loo().mean, rtol=1e-7)
    assert_allclose(near.loo().std, exact.loo().std, rtol=1e-7)


def test_inference_keeps_its_contract():
    check_inference(gm.Neighbours(60))


@pytest.mark.parametrize("m", [1, 3, 12])
@pytest.mark.parametrize("ordering", orders.ORDERS)
def test_evidence_is_that_of_the_slow_reference(m, ordering):
    X, r, D = table(60, q=2)
    engine = gm.Neighbours(m, ordering).prepared(KERNEL, X, np.random.default_rng(0))
    scaled = X / np.array([0.3, 0.5])
    wanted = slow(KERNEL(X), D, r, orders.ORDERS[ordering](scaled), m, scaled)
    assert_allclose(evidence(engine, KERNEL, X, D, r), wanted, rtol=1e-11)


def test_what_it_says_of_rows_is_one_gaussian():
    """alpha, mean, variances, precisions and products belong to one A, whose inverse is sparse."""
    X, r, D = table(50, q=2)
    one = gm.Neighbours(6).prepared(KERNEL, X, np.random.default_rng(0)).at(KERNEL, X, Use()).observe(D, r)
    P = one.inverse_times(np.eye(50))
    assert_allclose(P, P.T, atol=1e-10)
    A = np.linalg.inv(P)
    assert_allclose(one.alpha, P @ r, rtol=1e-9)
    assert_allclose(one.mean, r - D[:, None] * (P @ r), rtol=1e-9)
    assert_allclose(one.var(), D - D**2 * np.diagonal(P), rtol=1e-9)
    assert_allclose(one.precision(), np.diagonal(P), rtol=1e-9)
    assert_allclose(one.logdet_noisy, np.linalg.slogdet(A)[1], rtol=1e-10)
    assert_allclose(one.quad, np.sum(r * (P @ r), axis=0), rtol=1e-10)
    assert_allclose(one.times(r), A @ r, rtol=1e-8)
    assert_allclose(np.diagonal(A), np.diagonal(KERNEL(X)) + D, rtol=0.2)  # nearly K + D


@pytest.mark.parametrize(
    "kernel",
    [KERNEL, 0.7 * gm.RBF([0.4, 0.8]) + 0.2 * gm.Matern12(0.3), gm.Periodic(0.7, 0.9) * gm.RBF(1.0)],
    ids=["matern32", "a sum", "through JAX"],
)
@pytest.mark.parametrize("m", [4, 15])
def test_gradient_is_that_of_differences(kernel, m):
    X, r, D = table(40, q=2)
    engine = gm.Neighbours(m).prepared(kernel, X, np.random.default_rng(0))
    found = engine.at(kernel, X, Use(back=True)).observe(D, r).pullback()
    parameters, step = list(kernel.parameters().values()), 1e-5
    for k, p in enumerate(parameters):
        for at in np.ndindex(p.value.shape):
            ends = []
            for sign in (-1, 1):
                value = p.value.copy()
                value[at] += sign * step
                moved = kernel.with_parameters([*parameters[:k], p.with_value(value), *parameters[k + 1 :]])
                ends.append(evidence(engine, moved, X, D, r))
            wanted = (ends[1] - ends[0]) / (2 * step)
            assert_allclose(found.by_kernel[k][at], wanted, rtol=1e-6, atol=1e-6)
    ends = [evidence(engine, kernel, X, D + sign * step, r) for sign in (-1, 1)]
    assert_allclose(np.sum(found.by_level), (ends[1] - ends[0]) / (2 * step), rtol=1e-6)


def test_gradient_of_another_alpha_is_that_of_its_own_form():
    """With a in the place of alpha and u beside it, on the approximate A, not on K."""
    X, r, D = table(40, q=1)
    rng = np.random.default_rng(5)
    a, u = rng.standard_normal((40, 1)), rng.standard_normal((40, 1))
    engine = gm.Neighbours(5).prepared(KERNEL, X, rng)
    found = engine.at(KERNEL, X, Use(back=True)).observe(D, r).pullback(a, u, logdet=False)

    def implied(scale):
        prior = engine.at(scale * gm.Matern32([0.3, 0.5]), X, Use())
        return prior.observe(D, r).times(np.eye(40))

    slope = (implied(1.3 + 1e-5) - implied(1.3 - 1e-5)) / 2e-5
    wanted = 0.5 * (a.T @ slope @ a).item() + (u.T @ slope @ a).item()
    assert_allclose(found.by_kernel[0], wanted, rtol=1e-5)


def test_units_change_nothing():
    X, r, _ = table(150)
    y, new = np.sin(6 * X[:, 0]) + 0.1 * r[:, 0], table(8, seed=3)[0]
    plain = gm.GPRegressor(method=gm.Neighbours(8), random_state=0).fit(X, y)
    other = gm.GPRegressor(method=gm.Neighbours(8), random_state=0).fit(X * [1e3, 1e-4], 50 * y - 7)
    mean, std = plain.predict(new, return_std=True)
    mean_, std_ = other.predict(new * [1e3, 1e-4], return_std=True)
    assert_allclose(mean_, 50 * mean - 7, rtol=1e-3, atol=0.05)
    assert_allclose(std_, 50 * std, rtol=1e-2)


# Odd data. --------------------------------------------------------------------------------------------------


def test_repeated_rows():
    X, r, _ = table(60)
    X = np.concatenate([X, X])
    y = np.concatenate([r[:, 0], r[:, 0] + 0.1])
    gp = gm.GPRegressor(KERNEL, method=gm.Neighbours(10), noise=0.1, optimize=False).fit(X, y)
    exact = gm.GPRegressor(KERNEL, noise=0.1, optimize=False).fit(X, y)
    ours, theirs = (one.predict(X[:20], return_std=True) for one in (gp, exact))
    assert np.max(np.abs(ours[0] - theirs[0])) < 0.5 * np.max(theirs[1])
    one = gm.Neighbours(10).at(KERNEL, X, Use()).observe(np.zeros(120), y[:, None])  # without noise
    assert one.outcome.jitter > 0


@pytest.mark.parametrize("n", [1, 2, 5])
def test_fewer_rows_than_neighbours(n):
    X, r, _ = table(n)
    gp = gm.GPRegressor(KERNEL, method="neighbours", noise=0.1, optimize=False).fit(X, r[:, 0])
    exact = gm.GPRegressor(KERNEL, method="exact", noise=0.1, optimize=False).fit(X, r[:, 0])
    new = table(4, seed=9)[0]
    for ours, theirs in zip(
        gp.predict(new, return_std=True), exact.predict(new, return_std=True), strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-8)


def test_constant_columns_and_gaps():
    X, r, _ = table(90)
    X = np.column_stack([X, np.full(90, 3.0)])
    Y = np.column_stack([r[:, 0], X[:, 0]])
    Y[::7, 0] = np.nan
    gp = gm.GPRegressor(method=gm.Neighbours(89), noise=0.1, optimize=False).fit(X, Y)
    exact = gm.GPRegressor(method="exact", noise=0.1, optimize=False).fit(X, Y)
    assert_allclose(gp.predict(X[:9]), exact.predict(X[:9]), rtol=1e-6, atol=1e-8)
    assert_allclose(gp.evidence_.value, exact.evidence_.value, rtol=1e-9)


def test_far_away_the_prior_returns():
    X, r, D = table(100)
    prior = gm.Neighbours(10).at(KERNEL, X, Use())
    process = prior.process(GaussianProcess(KERNEL, ZeroMean(), np.ones(1)), [prior.observe(D, r)], [[0]])
    mean, var = process.moments(np.full((1, 2), 1e4))
    assert abs(mean[0, 0]) < 1e-12
    assert_allclose(var, 1.3, rtol=1e-12)


def test_draws_have_the_moments_they_are_said_to_have():
    X, r, D = table(300)
    prior = gm.Neighbours(8).at(KERNEL, X, Use())
    process = prior.process(GaussianProcess(KERNEL, ZeroMean(), np.ones(1)), [prior.observe(D, r)], [[0]])
    new = table(25, seed=4)[0]
    draws = process.sample(np.random.default_rng(0), new, 20_000)[:, 0]
    mean, var = process.moments(new)
    cov = process.cov(new)[:, :, 0]
    spread = np.sqrt(np.outer(var, var) + cov**2)
    # 6 standard errors: one chance in 1e6 over all entries, and the seed is fixed
    assert np.all(np.abs(draws.mean(axis=1) - mean[:, 0]) < 6 * np.sqrt(var[:, 0] / 20_000))
    assert np.all(np.abs(np.cov(draws) - cov) < 6 * spread / np.sqrt(20_000))


def test_gradient_and_summands_of_f():
    X, r, D = table(40)
    kernel = 0.8 * gm.Matern52([0.3, 0.4]) + 0.5 * gm.RBF(0.7)
    new = table(5, seed=2)[0]
    functions = GaussianProcess(kernel, ZeroMean(), np.ones(1))
    answers = []
    for engine in (gm.Neighbours(39), gm.Exact()):
        prior = engine.at(kernel, X, Use())
        answers.append(prior.process(functions, [prior.observe(D, r)], [[0]]))
    near, exact = answers
    for ours, theirs in zip(near.gradient(new), exact.gradient(new), strict=True):
        assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)
    for ours, theirs in zip(
        near.components(new, kernel.terms), exact.components(new, kernel.terms), strict=True
    ):
        assert_allclose(ours[0], theirs[0], rtol=1e-7, atol=1e-9)
        assert_allclose(ours[1], theirs[1], rtol=1e-7, atol=1e-9)


# What is refused, and budgets. ------------------------------------------------------------------------------


def test_other_likelihoods_are_refused_with_the_alternatives():
    X = table(40)[0]
    with pytest.raises(ParameterError, match='"vfe", "svgp"'):
        gm.GPClassifier(method="neighbours").fit(X, X[:, 0] > 0.5)


@pytest.mark.parametrize("given", [{"m": 0}, {"m": 2.5}, {"ordering": "alphabetical"}])
def test_settings_that_make_no_sense_are_refused(given):
    with pytest.raises(ParameterError, match="Neighbours"):
        gm.Neighbours(**given)


def test_memory_grows_with_rows_times_neighbours():
    X, r, D = table(20_000)
    engine = gm.Neighbours(10)
    engine.at(KERNEL, X, Use(back=True)).observe(D, r)  # a program that is being made is no memory of rows
    tracemalloc.start()
    prior = engine.prepared(KERNEL, X, np.random.default_rng(0)).at(KERNEL, X, Use(back=True))
    prior.observe(D, r).pullback()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < engine.bytes_needed(20_000, 2, 1) < 8 * 20_000 * 500  # K would have 20,000 columns


def test_threads_change_no_bit():
    X, r, D = table(700)
    engine = gm.Neighbours(9).prepared(KERNEL, X, np.random.default_rng(0))

    def found():
        one = engine.at(KERNEL, X, Use(back=True)).observe(D, r)
        return [one.quad, one.alpha, *one.pullback().by_kernel]

    before = gm.set_threads(1)
    alone = found()
    gm.set_threads(3)
    together = found()
    gm.set_threads(before)
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_neighbours_are_found_again_where_lengthscales_have_moved():
    """A search that begins with equal lengthscales ends with the neighbours of those that it has found."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2500, 2))
    y = np.sin(25 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(2500)
    engine = gm.Neighbours(10).prepared(gm.RBF([1.0, 1.0]), X, rng)
    assert not engine.stale(gm.RBF([2.0, 2.0]), X)  # both alike: the same neighbours
    assert engine.stale(gm.RBF([1.0, 1.6]), X)
    gp = gm.GPRegressor(1.0 * gm.RBF([0.5, 0.5]), method=gm.Neighbours(10), random_state=0).fit(X, y)
    assert not gp.fitted_.inference.engine.stale(gp.kernel_, X)


# What people meet. ------------------------------------------------------------------------------------------


def test_certificate_holds_on_rows_that_can_be_solved_exactly():
    X, r, _ = table(1800)
    y = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + 0.2 * r[:, 0]
    kernel = 1.0 * gm.Matern32([0.15, 0.15])
    gp = gm.GPRegressor(kernel, method=gm.Neighbours(6), noise=0.04, optimize=False, random_state=0).fit(X, y)
    exact = gm.GPRegressor(kernel, method="exact", noise=0.04, optimize=False).fit(X, y)
    told = gp.certificate()
    assert told.evidence_lower.value <= exact.evidence_.value + 1e-6
    assert told.evidence_upper.value >= exact.evidence_.value - 1e-6
    gaps = np.abs(gp.posterior_.mean(X) - exact.posterior_.mean(X))
    assert told.mean_error.value <= np.max(gaps) + 1e-9  # the largest of some rows
    rms = float(np.sqrt(np.mean(gaps**2)))
    assert 0.5 * rms < told.mean_error_rms.value < 2 * rms  # 100 rows of 1,800, against four times as many


def test_saved_and_loaded_to_the_same_bits(tmp_path):
    X, r, _ = table(200)
    Y = np.column_stack([np.sin(9 * X[:, 0]) + 0.2 * r[:, 0], X[:, 1]])
    Y[3, 0] = np.nan
    new = table(20, seed=7)[0]
    for y in (Y, np.nan_to_num(Y[:, 0])):
        gp = gm.GPRegressor(method=gm.Neighbours(9), random_state=0).fit(X, y)
        gp.save(tmp_path / "model.gram")
        again = gm.load(tmp_path / "model.gram")
        both = gp.predict(new, return_std=True), again.predict(new, return_std=True)
        for ours, theirs in zip(*both, strict=True):
            assert np.array_equal(ours, theirs)
        assert np.array_equal(gp.loo().log_density, again.loo().log_density, equal_nan=True)
        assert again.evidence_ == gp.evidence_


def test_a_time_limit_is_kept_with_an_answer():
    X, r, _ = table(6000)
    gp = gm.GPRegressor(method="neighbours", time_limit=3, random_state=0).fit(
        X, np.sin(30 * X[:, 0]) + r[:, 0]
    )
    assert np.all(np.isfinite(gp.predict(X[:10])))
    assert gp.outcome_.seconds < 60


@pytest.mark.parametrize(("waves", "taken"), [(40.0, "neighbours"), (1.0, "vfe")])
def test_auto_takes_what_foretells_held_out_rows_better(monkeypatch, waves, taken):
    """A rough function of two columns by neighbours, a smooth one by inducing points."""
    monkeypatch.setattr(rivals, "FROM_ROWS", 0)
    monkeypatch.setattr(rivals, "PART", 1200)
    monkeypatch.setattr(plan, "MOST_INDUCING", 128)
    X, r, _ = table(2600)
    y = np.sin(waves * X[:, 0]) * np.cos(waves * X[:, 1]) + 0.05 * r[:, 0]
    kernel = 1.0 * gm.Matern52([0.5, 0.5])
    gp = gm.GPRegressor(kernel, random_state=0, memory_limit="75MB").fit(X, y)
    assert gp.outcome_.method == taken
    if taken == "neighbours":
        assert "nats a row" in gp.outcome_.reason


def test_pieces_are_of_few_sizes():
    """Each size would be another program to compile."""
    assert {nearby._pieces(np.zeros((n, 31, 2)))[0] for n in range(1, 300)} <= set(nearby.SIZES)


# Small matrices, side by side. ------------------------------------------------------------------------------


def given_slowly(kernel, around):
    """b, F and e of each row, by dense solves."""
    for at in around.at:
        N, i = at[:-1][at[:-1] >= 0], at[-1]
        A = np.asarray(kernel(around.X[N])) + np.diag(around.D[N])
        k = np.asarray(kernel(around.X[N], around.X[[i]]))[:, 0]
        b = np.linalg.solve(A, k)
        own = float(np.asarray(kernel(around.X[[i]]))[0, 0])
        yield b, own - b @ k + around.D[i], around.R[i] - b @ around.R[N]


@pytest.mark.parametrize(
    "kernel",
    [
        0.7 * gm.Matern12([0.4, 0.2]) + 1.1 * gm.Matern52(0.6),
        gm.RBF(0.3).on(0) * gm.RationalQuadratic(0.5, 1.2) + 0.2 * gm.Matern32([0.3, 0.9]),
        gm.Linear([0.4, 0.3]) + 1.0 * gm.Matern32(0.5),  # no function of distances: a compiled program
    ],
)
@pytest.mark.parametrize("m", [1, nearby.FEW - 1, nearby.FEW])  # beyond FEW points LAPACK factors
def test_rows_given_others_are_those_of_dense_solves(kernel, m):
    n, (X, r, D) = 12, table(200, q=2)
    rng = np.random.default_rng(1)
    at = np.array([rng.permutation(200)[: m + 1] for _ in range(n)], np.int32)
    at[0, : m // 2] = -1  # a row with fewer neighbours
    around = nearby.Around(at, X, D, r)
    found = nearby.given(kernel.resolve(["a", "b"]), around, solved=True)
    for k, (b, F, e) in enumerate(given_slowly(kernel, around)):
        assert_allclose(found.b[k][at[k, :-1] >= 0], b, rtol=1e-9, atol=1e-11)
        assert_allclose(found.F[k], F, rtol=1e-9)
        assert_allclose(found.e[k], e, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("m", [10, nearby.FEW + 5])
def test_a_matrix_that_is_singular_changes_no_other_of_its_block(m):
    X, r, _ = table(301)
    X[300] = X[7]
    D = np.where(np.arange(301) == 300, -1e-8, 0.0)
    at = np.array([np.roll(np.arange(300), -k)[: m + 1] for k in range(20)], np.int32)
    kernel = 1.0 * gm.Matern52([0.3, 0.5])
    clean = nearby.given(kernel, nearby.Around(at, X, D, r))
    assert clean.jitter == 0
    at[7, 1] = 300  # the same neighbour once more, with less than no noise
    found = nearby.given(kernel, nearby.Around(at, X, D, r))
    others = np.arange(20) != 7
    assert found.jitter > 0
    assert np.isfinite(found.F[7])
    assert_allclose(found.F[others], clean.F[others], rtol=1e-12)
    assert_allclose(found.b[others], clean.b[others], rtol=1e-9, atol=1e-12)


def test_a_program_for_many_rows_says_what_numpy_says(monkeypatch):
    """Three blocks, the last with one row; among the rows one with fewer neighbours, and a singular one."""
    kernel = gm.RBF(0.3).on(0) * gm.RationalQuadratic(0.5, 1.2) + 0.2 * gm.Matern32([0.3, 0.9])
    n, m, (X, r, D) = 2 * nearby.PROGRAM + 1, nearby.beside.PANEL + 1, table(300, q=2)
    X[299], D[17], D[299] = X[17], 0.0, -1e-8
    at = np.array([(k + 5 * np.arange(m + 1)) % 290 for k in range(n)], np.int32)
    at[3, :4] = -1
    at[nearby.PROGRAM + 9, :2] = 17, 299
    around = nearby.Around(at, 1e3 + X, D, r)
    slow = nearby.given(kernel.resolve(["a", "b"]), around, solved=True)
    program, calls = nearby.beside.given, []
    monkeypatch.setattr(nearby.beside, "given", lambda *some: calls.append(some) or program(*some))
    monkeypatch.setattr(nearby, "MANY", n)
    quick = nearby.given(kernel.resolve(["a", "b"]), around, solved=True)
    assert len(calls) == 2  # the first block has a row with fewer neighbours
    assert quick.jitter == slow.jitter > 0
    for name in ("b", "F", "F_plain", "e", "c"):
        # but for the singular row, which is the same: a condition of some 100, and points at 1,000
        assert_allclose(getattr(quick, name), getattr(slow, name), rtol=1e-9, atol=1e-10, err_msg=name)


@pytest.mark.parametrize(("G", "B"), [(1, 1), (2, 384), (31, 384), (31, 5), (64, 384), (200, 4)])
def test_bands_are_all_diagonals_once(G, B):
    lags = [lag for first, last in nearby._bands(G, B) for lag in range(first, last)]
    assert lags == list(range(G))


# Gaps. ------------------------------------------------------------------------------------------------------


def test_rows_in_gaps_are_foretold_by_the_others_alone():
    X, _, _ = table(600)
    y = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1])
    method = gm.Neighbours(300)  # predictions have twice as many: all rows
    kernel = 1.0 * gm.Matern32([0.3, 0.5])
    gp = gm.GPRegressor(kernel, noise=0.01, optimize=False, method=method).fit(X, y)
    seen = gp.fitted_.process.in_gaps(5, 40, np.random.default_rng(0))
    assert len(seen.rows) == 40
    single = gp.fitted_.process.in_gaps(1, 600, np.random.default_rng(0))
    stay = np.setdiff1d(np.arange(600), single.rows)
    assert len(single.rows) == 120
    process = gp.fitted_.process
    K = np.asarray(kernel(X)) + np.diag(process.noises[0])
    mean = process.prior.mean(X)[:, 0] + process.prior.scale[0] * (
        np.asarray(kernel(X, X[stay])) @ np.linalg.solve(K[np.ix_(stay, stay)], process.r[stay, 0])
    )
    assert_allclose(single.mean[:, 0], mean[single.rows], rtol=1e-7, atol=1e-9)
    assert process.in_gaps(100, 40, np.random.default_rng(0)) is None  # one gap says nothing


def test_intervals_count_rows_in_gaps(monkeypatch):
    """A smooth kernel for a rough function with noise: single rows are foretold better than rows in gaps."""
    X, _, _ = table(2500)
    rng = np.random.default_rng(3)
    waves = rng.standard_normal((2, 300)) * np.geomspace(3, 300, 300)
    amplitude = np.geomspace(1, 0.02, 300) * rng.standard_normal(300)
    y = np.cos(X @ waves + rng.uniform(0, 6, 300)) @ amplitude
    kernel = 1.0 * gm.Matern52([0.3, 0.3])
    gp = gm.GPRegressor(kernel, noise=0.02, optimize=False, method="neighbours", random_state=0).fit(X, y)
    asked = []
    in_gaps = type(gp.fitted_.process).in_gaps

    def noted(self, size, most, rng):
        asked.append(in_gaps(self, size, most, rng))
        return asked[-1]

    monkeypatch.setattr(type(gp.fitted_.process), "in_gaps", noted)
    found = calibrated(gp.fitted_)
    assert [seen is not None for seen in asked] == [True, False]  # gaps of 10 rows, and none of 100
    rows, mean, var = asked[0]
    held = rows[::3]
    part = gp.fitted_.rows.under(gp.fitted_.model).Y[held, 0] - mean[::3, 0]
    std = np.sqrt(var[::3, 0] + gp.fitted_.model.gaussian.variances()[0])
    factor = 1.0 if found.calibration is None else found.calibration.at(X[held], mean[::3, 0]).factor
    assert np.mean(np.abs(part) < 1.96 * factor * std) > 0.9
