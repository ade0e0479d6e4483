"""Sparse variational inference: Titsias' bound for Gaussian noise, gradients at any q, natural gradients, the
optimum at given parameters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.engines import Sparse
from gramian.engines.base import Workspace
from gramian.errors import ParameterError
from gramian.inference import Data, Model, closed
from gramian.inference.svgp.bound import CHUNK, Bound, VariationalWeights, all_rows, expected
from gramian.inference.svgp.inducing import SVGP, SparseVariational
from gramian.kernels import RBF, Matern52
from gramian.likelihoods import Gaussian, Likelihood, NegativeBinomial
from gramian.likelihoods.binary import Bernoulli
from gramian.likelihoods.categorical import Softmax
from gramian.likelihoods.gaussian import Heteroscedastic
from gramian.linalg import threads
from gramian.means import ConstantMean, ZeroMean
from gramian.processes import Stacked
from gramian.testing import check_inference, check_posterior


class HeavyTails(Likelihood):
    """log p(y | f) = -log(1 + (y - f)^2 / 0.04) + a constant, a user's own: not log-concave."""

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        return -jnp.log1p((y - f) ** 2 / 0.04)


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.standard_normal((90, 2))  # more than one tile of 64, and not a whole number of them


def labels(likelihood: Likelihood, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if isinstance(likelihood, Heteroscedastic):
        return X[:, [0]] + 0.3 * rng.standard_normal((len(X), 1))
    first = rng.integers(0, max(likelihood.latents, 2), (len(X), 1)).astype(float)
    return first if len(likelihood.columns) == 1 else np.hstack([first, rng.integers(1, 4, first.shape)])


def problem(
    likelihood: Likelihood, X: np.ndarray, rng: np.random.Generator, others: int = 0
) -> tuple[Model, Data]:
    """With a scale, and a mean of each latent's own."""
    L = likelihood.latents
    mean = ConstantMean(np.linspace(-0.2, 0.3, L)) if L > 1 else ConstantMean(0.1)
    model = Model(1.3 * RBF([0.8, 1.2]), mean, likelihood, tuple(Matern52(1.0 + k) for k in range(others)))
    return model, Data(X, labels(likelihood, X, rng), np.full(L, 1.5))


def some_weights(m: int, rng: np.random.Generator) -> VariationalWeights:
    A = rng.standard_normal((m, m))
    return VariationalWeights.of(np.asfortranarray(np.tril(np.eye(m) + A @ A.T)), 3 * rng.standard_normal(m))


def bound_at(engine: SparseVariational, model: Model, data: Data, q: list[VariationalWeights]) -> float:
    with engine.bound(model, data) as bound:
        return bound.sums(q, all_rows(data), gradient=False, signed=True).value - sum(w.divergence for w in q)


@pytest.mark.parametrize("method", [SVGP(12), SVGP(9, "rpcholesky", optimize_inducing=False)])
def test_contract(method):
    check_inference(method)


@pytest.mark.parametrize(("known", "gaps"), [(False, False), (True, False), (False, True)])
def test_gaussian_noise_gives_the_collapsed_bound(rng, X, known, gaps):
    """One full natural step on all rows is the optimum of Titsias 2009, whatever the scale and the noise of
    the outputs, and whichever of them were observed."""
    Y = np.column_stack([np.sin(X[:, 0]), 3 * X[:, 1]]) + 0.1 * rng.standard_normal((90, 2))
    if gaps:
        Y[3:40, 1] = np.nan
    noise_var = rng.uniform(0.01, 0.1, 90) if known else None
    data = Data(X, Y, np.array([1.0, 2.0]), noise_var)
    model = Model(1.3 * Matern52([1.0, 2.0]), ConstantMean([0.1, 0.2]), Gaussian(0.05, (1.0, 4.0)))
    Z = X[:15] + 0.1
    vfe = closed(Sparse(inducing=Z)).prepared(model, data, rng).infer(model, data)
    ours = SVGP(inducing=Z).prepared(model, data, rng).infer(model, data)
    assert ours.outcome.iterations == 2  # the step, and the bound there
    assert ours.evidence.kind == "lower bound"
    # Phi here is a product with L^-1, there a division by L: they differ by eps times the condition of L.
    assert ours.evidence.value == pytest.approx(vfe.evidence.value, rel=1e-8)
    new = rng.standard_normal((20, 2))
    for mine, theirs in zip(ours.posterior.moments(new), vfe.posterior.moments(new), strict=True):
        assert_allclose(mine, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("likelihood", "others"),
    [
        (Bernoulli(), 0),
        (NegativeBinomial(0.5), 0),
        (Softmax(3), 0),
        (Softmax(3), 2),
        (Heteroscedastic(), 0),
        (Gaussian(0.3), 0),
    ],
    ids=str,
)
def test_gradient_of_the_bound_at_any_q(rng, X, likelihood, others):
    """With mu and B held still in whitened coordinates the bound depends on which root of K_zz is taken: at a
    q that is no optimum, a gradient through Q = Phi Phi' alone would be wrong."""
    model, data = problem(likelihood, X, rng, others)
    engine = SVGP(7).prepared(model, data, rng)
    with engine.bound(model, data) as bound:
        q = [some_weights(m, rng) for m in bound.sizes()]
        gradients = engine.in_units(bound.gradient(bound.sums(q, all_rows(data), gradient=True, signed=True)))
    for (path, parameter), gradient in zip(model.parameters().items(), gradients, strict=False):
        for index in np.ndindex(parameter.value.shape):
            moved = [parameter.value + sign * 1e-5 * _unit(parameter.value.shape, index) for sign in (1, -1)]
            up, down = (bound_at(engine, model.with_values({path: value}), data, q) for value in moved)
            assert float(gradient[index]) == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-5), path
    for k in range(0, engine.free.size, 3):
        step = 1e-5 * (np.arange(engine.free.size) == k)
        up, down = (bound_at(engine.with_free(engine.free + sign * step), model, data, q) for sign in (1, -1))
        assert gradients[-1][k] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-5)


def _unit(shape: tuple[int, ...], index: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape)
    out[index] = 1.0
    return out


def test_natural_gradient_is_the_gradient_in_expectation_parameters(rng, X):
    """d bound / d(E v, E vv') by differences, against the way to (B mu, -B/2) that a step takes a share
    of."""
    model, data = problem(Bernoulli(), X, rng)
    engine = SVGP(4).prepared(model, data, rng)
    start = some_weights(4, rng)
    with engine.bound(model, data) as bound:
        sums = bound.sums([start], all_rows(data), gradient=False, signed=True)

    def value(first: np.ndarray, second: np.ndarray) -> float:
        B = np.linalg.inv(second - np.outer(first, first))
        return bound_at(
            engine, model, data, [VariationalWeights.of(np.asfortranarray(np.tril(B)), B @ first)]
        )

    B = np.tril(start.B) + np.tril(start.B, -1).T
    first, second, h = start.mu, np.linalg.inv(B) + np.outer(start.mu, start.mu), 1e-5
    by_first = [(value(first + h * e, second) - value(first - h * e, second)) / (2 * h) for e in np.eye(4)]
    assert_allclose(sums.b[0] - start.h, by_first, rtol=1e-5, atol=1e-5)
    way = -0.5 * (np.eye(4) + np.tril(sums.S[0]) + np.tril(sums.S[0], -1).T - B)
    for i in range(4):
        for j in range(i + 1):
            e = _unit((4, 4), (i, j))
            both = (e + e.T) / 2
            assert way[i, j] == pytest.approx(
                (value(first, second + h * both) - value(first, second - h * both)) / (2 * h),
                rel=1e-4,
                abs=1e-4,
            )


def test_a_step_goes_a_share_of_the_way(rng):
    S, b, w = np.asfortranarray(np.diag([2.0, 3.0])), np.array([1.0, -1.0]), some_weights(2, rng)
    moved = w.moved(S, b, 0.25)
    assert_allclose(moved.B, 0.75 * w.B + 0.25 * (np.eye(2) + S))
    assert_allclose(moved.h, 0.75 * w.h + 0.25 * b)
    full = np.tril(moved.B) + np.tril(moved.B, -1).T
    assert_allclose(moved.mu, np.linalg.solve(full, moved.h))
    cov = np.linalg.inv(full)
    divergence = 0.5 * (np.trace(cov) + moved.mu @ moved.mu - 2 - np.linalg.slogdet(cov)[1])
    assert moved.divergence == pytest.approx(divergence, rel=1e-12)


@pytest.mark.parametrize(
    ("likelihood", "others"),
    [(Bernoulli(), 0), (Bernoulli("probit"), 0), (Softmax(3), 0), (Softmax(3), 2), (Heteroscedastic(), 1)],
    ids=str,
)
def test_optimum_at_given_parameters(rng, X, likelihood, others):
    """At the optimum mu = Phi' g and B = I + Phi' diag(lam) Phi, and the bound's gradient is that of its
    maximum over q."""
    model, data = problem(likelihood, X, rng, others)
    engine = SVGP(8, optimize_inducing=False).prepared(model, data, rng)
    found = engine.infer(model, data)
    assert found.outcome.converged
    assert found.outcome.residual < 1e-4
    check_posterior(found.posterior, rng.standard_normal((6, 2)))
    assert isinstance(found.posterior, Stacked) == bool(others)
    evidence, gradients = engine.evidence_and_gradient(model, data, Workspace())
    assert evidence.value == pytest.approx(found.evidence.value, rel=1e-10)
    for (path, parameter), gradient in list(zip(model.parameters().items(), gradients, strict=True))[:3]:
        index = (0,) * parameter.value.ndim
        values = [parameter.value + sign * 1e-4 * _unit(parameter.value.shape, index) for sign in (1, -1)]
        up, down = (
            engine.evidence(model.with_values({path: value}), data, Workspace()).value for value in values
        )
        assert float(gradient[index]) == pytest.approx((up - down) / 2e-4, rel=1e-4, abs=1e-4), path


def test_no_other_q_is_better(rng, X):
    model, data = problem(Bernoulli(), X, rng)
    engine = SVGP(6).prepared(model, data, rng)
    best = engine.infer(model, data)
    root, mu = best.posterior.roots[0], best.posterior.weights[:, 0]
    B = np.linalg.inv(root.T @ root)
    for _ in range(20):
        A = 0.1 * rng.standard_normal((6, 6))
        other = VariationalWeights.of(
            np.asfortranarray(np.tril((np.eye(6) + A) @ B @ (np.eye(6) + A).T)),
            B @ (mu + 0.1 * rng.standard_normal(6)),
        )
        assert bound_at(engine, model, data, [other]) < best.evidence.value


def test_bound_is_below_the_log_evidence_and_reaches_far(rng):
    """log p(y) of two rows by a grid over both latents: with inducing points at the rows only the family of q
    costs something."""
    X, y = np.array([[0.0], [0.7]]), np.array([[1.0], [0.0]])
    model, data = Model(2.0 * RBF(1.0), ZeroMean(), Bernoulli()), Data(X, y, np.ones(1))
    t = np.linspace(-12, 12, 601)
    A, B = np.meshgrid(t, t, indexing="ij")
    K = model.kernel(X)
    P = np.linalg.inv(K)
    density = np.exp(-0.5 * (P[0, 0] * A**2 + 2 * P[0, 1] * A * B + P[1, 1] * B**2)) / (
        2 * np.pi * np.sqrt(np.linalg.det(K))
    )
    exact = np.log(np.sum(density / (1 + np.exp(-A)) / (1 + np.exp(B))) * (t[1] - t[0]) ** 2)
    value = SVGP(inducing=X).infer(model, data).evidence.value
    assert exact - 0.05 < value < exact


def test_expected_log_densities_of_any_number_of_rows(rng):
    """Rows are padded for the compiled program; what is padded must not count."""
    for rows in (1, 63, 64, 65, 130, 300, 449):
        y, mean, var = (
            rng.integers(0, 2, rows).astype(float),
            rng.standard_normal((rows, 1)),
            rng.uniform(0.1, 1, (rows, 1)),
        )
        value, slope, by_var, back = expected(Bernoulli("probit"), y, mean, var)
        one = [
            expected(Bernoulli("probit"), y[i : i + 1], mean[i : i + 1], var[i : i + 1])
            for i in (0, rows // 2, rows - 1)
        ]
        assert slope.shape == by_var.shape == (rows, 1)
        assert back == []
        assert_allclose(slope[[0, rows // 2, rows - 1], 0], [part[1][0, 0] for part in one], rtol=1e-12)
        assert_allclose(by_var[[0, rows // 2, rows - 1], 0], [part[2][0, 0] for part in one], rtol=1e-9)
        if rows == 1:
            assert value == pytest.approx(one[0][0])


def test_sums_do_not_depend_on_threads_or_chunks(rng):
    X = rng.standard_normal((CHUNK + 100, 2))
    model, data = problem(Softmax(3), X, rng)
    engine = SVGP(10, "uniform").prepared(model, data, rng)
    q = [some_weights(10, rng) for _ in range(3)]
    found = []
    for workers in (1, 3):
        before = threads.set_threads(workers)
        found.append(Bound(model, data, engine.Z, True).sums(q, all_rows(data), gradient=True, signed=False))
        threads.set_threads(before)
    assert found[0].value == found[1].value
    assert all(
        np.array_equal(one, other)
        for one, other in zip(found[0].S + found[0].T, found[1].S + found[1].T, strict=True)
    )
    pieces = [data.take(np.arange(start, min(start + 77, len(X)))) for start in range(0, len(X), 77)]
    bound = Bound(model, data, engine.Z, True)
    other = bound.sums(q, pieces, gradient=True, signed=False)
    assert other.value == pytest.approx(found[0].value, rel=1e-12)
    for mine, theirs in zip(bound.gradient(other), bound.gradient(found[0]), strict=True):
        assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)


def test_curvature_of_the_wrong_sign(rng, X):
    """Outliers of a heavy-tailed likelihood curve upwards. They count as they are in the optimum; a batch
    takes them as flat."""
    model = Model(1.0 * RBF([0.8, 1.2]), ZeroMean(), HeavyTails())
    data = Data(X, 0.1 * X[:, [0]] + 5.0 * (rng.random((90, 1)) < 0.1), np.ones(1))
    engine = SVGP(8).prepared(model, data, rng)
    with engine.bound(model, data) as bound:
        q = engine.start(bound)
        signed, flat = (bound.sums(q, all_rows(data), gradient=False, signed=sign) for sign in (True, False))
    gap = [
        np.tril(b) + np.tril(b, -1).T - np.tril(a) - np.tril(a, -1).T
        for a, b in zip(signed.S, flat.S, strict=True)
    ]
    assert max(np.max(np.abs(g)) for g in gap) > 1e-3
    assert all(np.min(np.linalg.eigvalsh(g)) > -1e-9 for g in gap)
    assert engine.infer(model, data).outcome.residual < 1e-4


def test_streams_what_is_not_float64(rng, X, tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X.astype(np.float32))
    mapped = np.load(path, mmap_mode="r")
    model, data = problem(Bernoulli(), X.astype(np.float32).astype(float), rng)
    engine = SVGP(8).prepared(model, data, np.random.default_rng(0))
    other = SVGP(8).prepared(model, Data(mapped, data.Y, data.scale), np.random.default_rng(0))
    streamed = other.infer(model, Data(mapped, data.Y, data.scale))
    assert streamed.evidence.value == pytest.approx(engine.infer(model, data).evidence.value, rel=1e-6)


def test_bad_choices_are_named(rng, X):
    for wrong in (
        {"n_inducing": 0},
        {"inducing": "nearest"},
        {"inducing": [[np.nan]]},
        {"batch_size": 0},
        {"steps": 0},
        {"natural_step": 0.0},
        {"natural_step": 1.5},
        {"learning_rate": True},
    ):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            SVGP(**wrong)
    model, data = problem(Bernoulli(), X, rng)
    with pytest.raises(ParameterError, match="3 columns"):
        SVGP(inducing=np.zeros((4, 3))).prepared(model, data, rng)
    with pytest.raises(ParameterError, match="Leave-one-out"):
        SVGP().cavities(model, data, SVGP(5).infer(model, data).posterior)


def test_memory_is_that_of_a_batch():
    method = SVGP(500, "uniform")
    assert method.bytes_needed(10**7, 8, 1) == method.bytes_needed(10**5, 8, 1) < 400e6
    assert method.work(10**7, 8, 1).flops == method.work(10**5, 8, 1).flops  # one step of a fit


@pytest.mark.parametrize("likelihood", [Bernoulli(), Softmax(3), Heteroscedastic()], ids=str)
def test_sums_of_32_bits_are_near_those_of_64(rng, likelihood):
    """Their features err by 6e-8 times the condition of L, which what is added to K_zz keeps below 1e3;
    gradients multiply by L^-1 once more."""
    X = rng.standard_normal((400, 2))
    model, data = problem(likelihood, X, rng)
    engine = SVGP(30, "uniform").prepared(model, data, rng)
    bounds = [Bound(model, data, engine.Z, True, low=low) for low in (False, True)]
    q = [some_weights(m, rng) for m in bounds[0].sizes()]
    exact, low = (bound.sums(q, all_rows(data), gradient=True, signed=False) for bound in bounds)
    assert bounds[1].low
    assert low.value == pytest.approx(exact.value, rel=1e-4)
    assert low.value != exact.value
    for one, other in zip(exact.S + exact.b, low.S + low.b, strict=True):
        assert_allclose(other, one, atol=1e-3 * np.max(np.abs(one)))
    for one, other in zip(bounds[0].gradient(exact), bounds[1].gradient(low), strict=True):
        assert_allclose(other, one, atol=1e-2 * np.max(np.abs(one)))


def test_gaussian_noise_and_own_kernels_keep_64_bits(rng):
    class Own(RBF):
        """Values of somebody else's making, which may hold NumPy arrays."""

        def profile(self, r2):
            return super().profile(np.float64(1.0) * r2)

    X = rng.standard_normal((50, 2))
    for model, data in (problem(Gaussian(0.3), X, rng), problem(Bernoulli(), X, rng)):
        model = (
            Model(1.0 * Own(1.0), model.mean, model.likelihood)
            if not isinstance(model.likelihood, Gaussian)
            else model
        )
        assert not Bound(model, data, [X[:5]], True, low=True).low
