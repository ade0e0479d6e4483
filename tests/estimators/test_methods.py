"""One estimator for all engines: every answer from every method, and all of them near the exact one where
they should be."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import gramian as gm
from gramian.engines.lowrank import LowRank
from gramian.errors import GramianError, MemoryLimitError, ParameterError
from gramian.estimators import calibrating
from gramian.fitting import stochastic
from gramian.inference import RuleOnEngine

METHODS = ["exact", "nystrom", "fourier", "vfe", "fitc", "dtc", "cg", "minres"]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (250, 2))
    y = 5 + 3 * np.sin(2 * X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(250)
    return X, y, rng.uniform(-2, 2, (40, 2))


@pytest.fixture(scope="module")
def exact(data):
    return gm.GPRegressor(1.0 * gm.RBF([0.8, 1.5]), noise=0.05, method="exact", optimize=False).fit(*data[:2])


@pytest.mark.parametrize("method", METHODS)
def test_every_answer(data, exact, method):
    """At the same parameters, with more features than the smooth kernel needs, all methods give the exact
    answers within what they promise."""
    X, y, new = data
    gp = clone(exact).set_params(method=method, random_state=0).fit(X, y)
    # Random features know the kernel to 1 / sqrt(m); the others to their jitter or tolerance.
    scale = np.std(y)
    off = (0.15 if method == "fourier" else 1e-4) * scale
    mean, std = gp.predict(new, return_std=True)
    assert_allclose(mean, exact.predict(new), atol=off)
    assert_allclose(std, exact.predict(new, return_std=True)[1], atol=off)
    _, cov = gp.predict(new, return_cov=True)
    assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-12)
    draws = gp.sample(new[:5], 3, random_state=1)
    assert draws.shape == (5, 3)
    assert np.all(np.isfinite(draws))
    assert gp.loo().mean.shape == y.shape
    if method != "fourier":
        assert_allclose(gp.loo().mean, exact.loo().mean, atol=0.01 * scale)
        allowed = 6 * gp.evidence_.standard_error + 1e-3
        assert gp.evidence_.value == pytest.approx(exact.evidence_.value, abs=allowed)
    value, gradient = gp.log_evidence(return_grad=True)
    assert gradient.shape == gp.theta_.shape
    assert value == pytest.approx(gp.evidence_.value, rel=1e-9)
    assert gp.outcome_.method == method
    assert method in gp.summary()


@pytest.mark.parametrize("method", ["nystrom", "vfe", "fitc"])
def test_gradients_and_components_with_landmarks(data, exact, method):
    X, y, new = data
    kernel = 1.0 * gm.RBF([0.8, 1.5]) + 0.5 * gm.RBF(3.0)
    full = gm.GPRegressor(kernel, noise=0.05, method="exact", optimize=False).fit(X, y)
    gp = clone(full).set_params(method=method, random_state=0).fit(X, y)
    for ours, theirs in zip(gp.predict_gradient(new), full.predict_gradient(new), strict=True):
        assert_allclose(ours, theirs, atol=1e-3 * np.std(y))
    for (_, ours), (_, theirs) in zip(gp.components(new).items(), full.components(new).items(), strict=True):
        assert_allclose(ours[0], theirs[0], atol=1e-3 * np.std(y))


@pytest.mark.parametrize("kind", ["orf", "rff-phase"])
def test_gradients_and_summands_of_fourier_features(data, kind):
    """The slopes of their own mean; variances against those of differences of f; summands that add up, each
    near the exact one."""
    X, y, new = data
    new = new[:5]
    kernel = 1.0 * gm.RBF([0.8, 1.5]) + 0.5 * gm.Cosine(2.0).on(0)
    full = gm.GPRegressor(kernel, noise=0.05, method="exact", optimize=False).fit(X, y)
    gp = clone(full).set_params(method=gm.Fourier(1500, kind), random_state=0).fit(X, y)
    mean, var = gp.predict_gradient(new)
    h = 1e-4  # differences are right to h^2, and lose eps / h, or for variances eps / h^2 = 1e-8
    for j in range(X.shape[1]):
        step = h * np.eye(X.shape[1])[j]
        f, cov = gp.predict(np.concatenate([new + step, new - step]), return_cov=True, target="f")
        assert_allclose(mean[:, j], (f[:5] - f[5:]) / (2 * h), rtol=1e-5, atol=1e-5)
        up, down = np.arange(5), np.arange(5, 10)
        spread = (cov[up, up] + cov[down, down] - 2 * cov[up, down]) / (4 * h * h)
        assert_allclose(var[:, j], spread, rtol=1e-3, atol=1e-5)
    parts, exact_parts = gp.components(new), full.components(new)
    # what is left is the constant mean
    assert np.ptp(gp.predict(new, target="f") - sum(m for m, _ in parts.values())) < 1e-9
    for ours, theirs in zip(parts.values(), exact_parts.values(), strict=True):
        assert_allclose(ours[0], theirs[0], atol=0.1 * np.std(y))
        assert_allclose(ours[1], theirs[1], atol=0.1 * np.std(y))


@pytest.mark.parametrize("solver", [gm.CG(tol=1e-8), gm.MINRES(tol=1e-8)])
def test_gradients_and_summands_of_solvers(data, solver):
    X, y, new = data
    kernel = 1.0 * gm.RBF([0.8, 1.5]) + 0.5 * gm.RBF(3.0)
    full = gm.GPRegressor(kernel, noise=0.05, method="exact", optimize=False).fit(X, y)
    gp = clone(full).set_params(method=solver, random_state=0).fit(X, y)
    for ours, theirs in zip(gp.predict_gradient(new), full.predict_gradient(new), strict=True):
        assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    for ours, theirs in zip(gp.components(new).values(), full.components(new).values(), strict=True):
        assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_errors_of_solves_count_squared_in_variances(data):
    """A variance from residuals, not from the solution alone: at a tolerance of 1e-3 it has the digits of
    1e-6, and is never too small."""
    X, y, new = data
    full = gm.GPRegressor(1.0 * gm.RBF([0.8, 1.5]), noise=0.05, method="exact", optimize=False).fit(X, y)
    gp = clone(full).set_params(method=gm.CG(tol=1e-3, rank=20), random_state=0).fit(X, y)
    ours, theirs = (model.predict(new, return_std=True, target="f")[1] ** 2 for model in (gp, full))
    assert np.all(ours >= theirs - 1e-12)
    # |e|^2 / noise at most, with |e| = 1e-3 |k(X, x)|.
    explained = np.max(np.sum(full.kernel_(X, new) ** 2, axis=0))
    assert np.max(ours - theirs) <= 1e-6 * explained * np.var(y) / (0.05 / np.var(y))


@pytest.mark.parametrize("method", ["nystrom", "vfe", "cg"])
def test_fitting(data, method):
    """Parameters by each method's own evidence end near those of exact inference."""
    X, y, new = data
    full = gm.GPRegressor(method="exact", random_state=0, n_restarts=0).fit(X, y)
    gp = gm.GPRegressor(method=method, random_state=0, n_restarts=0).fit(X, y)
    # the evidence of cg is an estimate; a tenth of a nat moves theta by so much
    assert_allclose(gp.theta_, full.theta_, atol=0.35)
    assert_allclose(gp.predict(new), full.predict(new), atol=0.05 * np.std(y))
    assert [stage.split(" on ")[0] for stage in gp.outcome_.stages] == ["exact", method]


def test_two_outputs_and_known_noise(data):
    X, y, new = data
    Y = np.column_stack([y, 100 * np.cos(X[:, 0])])
    noise_var = np.linspace(0.01, 0.1, len(X))
    full = None
    for method in ("exact", "vfe", "cg"):
        gp = gm.GPRegressor(
            1.0 * gm.RBF(1.0), method=method, noise=gm.fixed(0.02), optimize=False, random_state=0
        ).fit(X, Y, noise_var=noise_var)
        mean = gp.predict(new)
        full = mean if full is None else full
        assert_allclose(mean, full, atol=1e-3 * Y.std(axis=0).max())


def test_same_seed_same_model(data):
    X, y, new = data
    for method in (gm.Nystrom(20), gm.Fourier(20), gm.Sparse(15)):
        a, b, c = (
            gm.GPRegressor(method=method, random_state=seed).fit(X, y).predict(new) for seed in (0, 0, 1)
        )
        assert np.array_equal(a, b)
        assert not np.array_equal(a, c)


def test_impossible_methods(data):
    X, y, _ = data
    with pytest.raises(ParameterError, match='"auto", "exact"'):
        gm.GPRegressor(method="magic").fit(X, y)
    with pytest.raises(ParameterError, match="is not a method"):
        gm.GPRegressor(method=3).fit(X, y)
    with pytest.raises(ParameterError, match="rank=0"):
        gm.Nystrom(0)
    with pytest.raises(ParameterError, match="There are uniform"):
        gm.Nystrom(10, "best")
    with pytest.raises(ParameterError, match="rff"):
        gm.Fourier(10, "best")
    with pytest.raises(ParameterError, match="objective"):
        gm.Sparse(10, "elbo")
    with pytest.raises(ParameterError, match="have 1 columns, but the data have 2"):
        gm.GPRegressor(method=gm.Sparse(inducing=[[0.0]])).fit(X, y)
    with pytest.raises(GramianError, match="Linear"):
        gm.GPRegressor(gm.Linear(), method="fourier").fit(X, y)


def test_memory_limit_names_the_alternatives():
    X = np.zeros((50_000, 3))
    X[:, 0] = np.arange(50_000)
    with pytest.raises(MemoryLimitError, match=r"'exact' on 50,000 rows needs 20\.1 GB, but only 2 GB .*vfe"):
        gm.GPRegressor(method="exact", memory_limit="2GB").fit(X, X[:, 0])


def test_exact_scores_count_as_memory():
    assert (
        gm.Nystrom(10, "leverage").bytes_needed(4000, 2, 1)
        >= 2 * 8 * 4000**2
        > gm.Nystrom(10).bytes_needed(4000, 2, 1)
    )
    assert gm.Sparse(10, inducing="rls").bytes_needed(4000, 2, 1) >= 2 * 8 * 4000**2


def test_landmarks_of_many_rows_come_from_candidates(data, monkeypatch):
    """Rules that hold a number for each row and landmark see only a random part of very many rows."""
    from gramian.engines import recipes as module
    from gramian.landmarks import base

    X, y, _ = data
    monkeypatch.setattr(base, "CANDIDATE_BYTES", 8 * 5 * 100)
    seen = []
    original = module.landmarks
    monkeypatch.setattr(
        module,
        "landmarks",
        lambda kernel, rows, *rest: seen.append(len(rows)) or original(kernel, rows, *rest),
    )
    gp = gm.GPRegressor(1.0 * gm.RBF(1.0), method=gm.Sparse(5), optimize=False, random_state=0).fit(X, y)
    assert seen == [100]
    assert all(any(np.array_equal(z, x) for x in X) for z in gp.posterior_.features.Z)


def test_auto_leaves_exact_when_memory_ends(data):
    X, y, _ = data
    gp = gm.GPRegressor(memory_limit="30MB", optimize=False, random_state=0)
    assert gp.plan(X, y).choice.method.name == "exact"
    chosen = gp.plan(np.zeros((20_000, 2)))
    assert chosen.choice.method.name == "vfe"
    assert "needs more memory" in chosen.reason


def test_stages_say_what_was_fitted_on_what():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (900, 1))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(900)
    gp = gm.GPRegressor(method=gm.Exact(fit_rows=200), random_state=0).fit(X, y)
    assert gp.outcome_.stages[0].startswith(
        "exact on 200 of 900 rows, chosen half at random, half in neighbourhoods: "
    )
    assert len(gp.posterior_.Z) == 900
    plain = gm.GPRegressor(method=gm.Exact(fit_rows=50, fit_rule="uniform"), random_state=0).fit(X, y)
    assert "50 of 900 rows, chosen at random: " in plain.outcome_.stages[0]
    ruled = gm.GPRegressor(method=gm.Exact(fit_rows=50, fit_rule="pivoted"), random_state=0).fit(X, y)
    assert "50 of 900 rows, chosen by pivoted" in ruled.outcome_.stages[0]
    with pytest.raises(ParameterError, match="fit_rule='kmeans'"):
        gm.Exact(fit_rule="kmeans")
    with pytest.raises(ParameterError, match="fit_rows"):
        gm.Exact(fit_rows=0)


def test_interrupt_of_the_final_inference_leaves_the_part(data, monkeypatch):
    X, y, new = data
    original, calls = RuleOnEngine.infer, []

    def interrupted(self, model, rows, report=None):
        calls.append(len(rows.X))
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(self, model, rows)

    monkeypatch.setattr(RuleOnEngine, "infer", interrupted)
    gp = gm.GPRegressor("matern52", method=gm.Exact(fit_rows=100), random_state=0).fit(X, y)
    assert calls == [250, 100]
    assert "interrupted" in gp.summary()
    assert_allclose(gp.predict(new), 5 + 3 * np.sin(2 * new[:, 0]) * new[:, 1], atol=1.5)


def interrupts(monkeypatch, owner, name, *when):
    """The calls of a method, of which some end as by Ctrl-C."""
    original, calls = getattr(owner, name), []

    def interrupted(*given, **how):
        calls.append(given)
        if len(calls) in when:
            raise KeyboardInterrupt
        return original(*given, **how)

    monkeypatch.setattr(owner, name, interrupted)
    return calls


def test_interrupt_of_the_final_inference_keeps_the_parameters(data, monkeypatch):
    """Where the search was on all rows, the inference is done once more; pressed again, it is left."""
    X, y, new = data
    named = gm.GPRegressor(1.0 * gm.RBF(1.0), method="exact", random_state=0, n_restarts=0)
    whole = clone(named).fit(X, y)
    with monkeypatch.context() as patched:
        calls = interrupts(patched, RuleOnEngine, "infer", 1)
        gp = clone(named).fit(X, y)
    assert len(calls) == 2
    assert_allclose(gp.predict(new), whole.predict(new), rtol=1e-12)
    assert gp.outcome_.stopped == "interrupted"  # for loops over fits, which are to end
    assert gp.fitted_.n_rows == len(X)
    interrupts(monkeypatch, RuleOnEngine, "infer", 1, 2)
    with pytest.raises(KeyboardInterrupt):
        clone(named).fit(X, y)


def test_interrupt_of_an_inference_without_a_search_leaves_nothing(data, monkeypatch):
    X, y, _ = data
    calls = interrupts(monkeypatch, RuleOnEngine, "infer", 1)
    with pytest.raises(KeyboardInterrupt):
        gm.GPRegressor(1.0 * gm.RBF(1.0), optimize=False).fit(X, y)
    assert len(calls) == 1


def test_interrupt_between_two_searches_keeps_the_first(data, monkeypatch):
    """While landmarks are chosen, or at the first evaluation with them."""
    X, y, new = data
    vfe = gm.GPRegressor(1.0 * gm.RBF(1.0), method=gm.Sparse(30), random_state=0)
    for owner, name in ((gm.Sparse, "points"), (LowRank, "at")):
        with monkeypatch.context() as patched:
            interrupts(patched, owner, name, 1)
            gp = clone(vfe).fit(X, y)
        assert gp.outcome_.stopped == "interrupted"
        (stage,) = gp.outcome_.stages
        assert stage.startswith("exact on all 250 rows")
        assert gp.outcome_.method == "vfe"
        assert_allclose(gp.predict(new), 5 + 3 * np.sin(2 * new[:, 0]) * new[:, 1], atol=1.5)


def test_interrupt_of_the_sketch_before_svgp_is_heeded(data, monkeypatch):
    X, y, new = data
    interrupts(monkeypatch, RuleOnEngine, "evidence_and_gradient", 12)
    climbs = interrupts(monkeypatch, stochastic._Run, "climb")
    svgp = gm.GPRegressor(1.0 * gm.RBF(1.0), method=gm.SVGP(30), time_limit=60, random_state=0)
    gp = svgp.fit(X, y)
    assert not climbs
    assert gp.outcome_.stopped == "interrupted"
    assert gp.outcome_.method == "svgp"
    assert_allclose(gp.predict(new), 5 + 3 * np.sin(2 * new[:, 0]) * new[:, 1], atol=1.5)


def test_interrupt_of_the_calibration_keeps_the_model(data, monkeypatch):
    X, y, _ = data
    whole = gm.GPRegressor(random_state=0).fit(X, y)
    interrupts(monkeypatch, calibrating, "foretold", 1)
    gp = gm.GPRegressor(random_state=0).fit(X, y)
    assert gp.outcome_.stopped == "interrupted"
    assert gp.fitted_.calibration is None
    assert whole.fitted_.calibration is not None
    assert "not compared with left-out rows" in gp.summary()
    assert_allclose(gp.theta_, whole.theta_, rtol=1e-12)


def test_many_rows_keep_the_factor(data, monkeypatch):
    """Beyond ROOT_UP_TO rows the posterior holds L instead of its inverse: the same answers."""
    from gramian.engines import dense as module

    X, y, new = data
    first = gm.GPRegressor(method="exact", random_state=0, optimize=False).fit(X, y)
    monkeypatch.setattr(module, "ROOT_UP_TO", 100)
    second = gm.GPRegressor(method="exact", random_state=0, optimize=False).fit(X, y)
    assert not second.posterior_.inverted
    for ours, theirs in zip(
        second.predict(new, return_std=True), first.predict(new, return_std=True), strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-9)
    assert_allclose(
        second.predict(new, return_cov=True)[1], first.predict(new, return_cov=True)[1], atol=1e-9
    )
    assert_allclose(second.loo().std, first.loo().std, rtol=1e-9)
    assert_allclose(second.predict_gradient(new)[1], first.predict_gradient(new)[1], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "gp",
    [gm.GPRegressor(hyper="mcmc"), gm.GPClassifier(hyper="mcmc"), gm.GPClassifier(inference="mcmc")],
    ids=["regressor", "classifier", "inference"],
)
def test_chains_have_no_plan(gp):
    """Rather than that of the searches which they do not make."""
    with pytest.raises(ParameterError, match="how long chains take, only they can tell"):
        gp.plan(np.zeros((50, 2)), np.arange(50) % 2)


@pytest.mark.parametrize(
    ("method", "kernel", "message"),
    [
        ("fourier", 1.0 * gm.RBF([1.0, 1.0]) + gm.Linear(), r"Linear\(\)"),
        (gm.Fourier(201), 1.0 * gm.RBF([1.0, 1.0]), "201"),
        (gm.Sparse(5, "vfe", np.zeros((5, 3))), 1.0 * gm.RBF([1.0, 1.0]), "3 columns, but the data have 2"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_fitted(data, method, kernel, message, monkeypatch):
    monkeypatch.setattr("gramian.fitting.stages.maximise", lambda *a, **k: pytest.fail("a search was begun"))
    with pytest.raises(GramianError, match=message):
        gm.GPRegressor(kernel, method=method, random_state=0).fit(*data[:2])


def test_a_seed_of_the_solver_is_kept(data):
    """Else it is the estimator's random_state that decides."""
    X, y, _ = data

    def value(seed: int | None, random_state: int) -> float:
        gp = gm.GPRegressor(
            gm.RBF([0.8, 1.5]),
            noise=0.05,
            method=gm.CG(preconditioner="none", seed=seed),
            optimize=False,
            random_state=random_state,
        )
        return gp.fit(X, y).evidence_.value

    assert value(1, 0) == value(1, 5) != value(2, 0)
    assert value(None, 0) == value(None, 0) != value(None, 5)
    with pytest.raises(ParameterError, match="seed=-1"):
        gm.CG(seed=-1)
