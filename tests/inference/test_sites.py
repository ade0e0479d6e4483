"""Laplace, EP and variational inference: evidence and moments against slow references, gradients against
differences, engines against each other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, log_ndtr
from scipy.stats import multivariate_normal

import gramian as gm
from gramian.engines import Exact, Fourier, Krylov, Nystrom, Sparse
from gramian.engines.base import Workspace
from gramian.errors import ParameterError
from gramian.fitting.objective import Objective
from gramian.inference import Data, Model, RuleOnEngine, closed
from gramian.inference.laplace import Mode
from gramian.likelihoods import Bernoulli, Gaussian, Heteroscedastic, Poisson, RobustMax, Softmax, StudentT
from gramian.means import ConstantMean, ZeroMean

KERNEL = 1.5 * gm.RBF([0.7, 1.1])
RULES = {"laplace": gm.Laplace(tol=1e-12), "ep": gm.EP(tol=1e-10), "vi": gm.VI(tol=1e-13)}


def binary(n: int = 40) -> Data:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 2))
    f = 2 * np.sin(2 * X[:, 0]) + X[:, 1]
    return Data(X, (f + rng.logistic(size=n) > 0).astype(float)[:, None], np.ones(1))


def gradient_error(model: Model, data: Data, inference) -> float:
    """The largest difference between the gradient and four-point differences, relative to the largest
    slope."""
    inference = inference.prepared(model, data, np.random.default_rng(0))
    objective = Objective(model, data, inference)
    start, h = objective.start, 1e-4
    _, gradient = objective.evidence(start)
    differences = np.empty_like(gradient)
    for i in range(len(start)):
        values = []
        for k in (-2, -1, 1, 2):
            moved = start.copy()
            moved[i] += k * h
            theta, own = objective.split(moved)
            values.append(own.evidence(objective.at(theta), data, Workspace()).value)
        differences[i] = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)
    return float(np.max(np.abs(gradient - differences)) / np.max(np.abs(differences)))


# Against slow references. -----------------------------------------------------------------------------------


def test_laplace_is_newton_in_the_open():
    """Algorithm 3.1 with explicit inverses, line by line."""
    data = binary()
    K = KERNEL(data.X)
    y, f = data.Y[:, 0], np.zeros(40)
    for _ in range(50):
        p = expit(f)
        W = np.diag(p * (1 - p))
        f = np.linalg.inv(np.linalg.inv(K) + W) @ (W @ f + y - p)
    p = expit(f)
    W = np.diag(p * (1 - p))
    sign = 2 * y - 1
    value = (
        -np.sum(np.log1p(np.exp(-sign * f)))
        - 0.5 * f @ np.linalg.solve(K, f)
        - 0.5 * np.linalg.slogdet(np.eye(40) + K @ W)[1]
    )
    found = RuleOnEngine(gm.Laplace()).infer(Model(KERNEL, ZeroMean(), Bernoulli("logit")), data)
    assert_allclose(found.evidence.value, value, rtol=1e-10)
    mean, var = found.posterior.moments(data.X)
    assert_allclose(mean[:, 0], f, atol=1e-7)
    assert_allclose(var[:, 0], np.diag(np.linalg.inv(np.linalg.inv(K) + W)), atol=1e-7)


def test_ep_keeps_its_own_promise():
    """At the fixed point the marginals have the moments of cavity times likelihood, by an integral on a fine
    grid, and log Z is what it must be."""
    data, model = binary(25), Model(KERNEL, ZeroMean(), Bernoulli("logit"))
    sites = RuleOnEngine(RULES["ep"])
    mean, var = (v[:, 0] for v in sites.infer(model, data).posterior.moments(data.X))
    m_c, v_c = (v[:, 0] for v in sites.cavities(model, data, None))
    t = np.linspace(-30, 30, 20_001)
    sign = 2 * data.Y - 1
    tilted = expit(sign * t) * np.exp(-0.5 * (t - m_c[:, None]) ** 2 / v_c[:, None])
    tilted /= tilted.sum(axis=1, keepdims=True)
    first = tilted @ t
    assert_allclose(mean, first, atol=1e-7)
    assert_allclose(var, tilted @ t**2 - first**2, atol=1e-6)


def test_ep_of_one_row_is_exact():
    """One row: Z is an integral over one Gaussian. For probit it is closed."""
    data = Data(np.zeros((1, 2)), np.ones((1, 1)), np.ones(1))
    model = Model(KERNEL, ConstantMean(0.4), Bernoulli("probit"))
    found = RuleOnEngine(RULES["ep"]).infer(model, data).evidence.value
    assert_allclose(found, log_ndtr(0.4 / np.sqrt(1 + 1.5)), atol=1e-9)


def test_schedules_of_ep_agree():
    data, model = binary(), Model(KERNEL, ZeroMean(), Bernoulli("probit"))
    values = [
        RuleOnEngine(gm.EP(schedule=schedule, tol=1e-10)).infer(model, data).evidence.value
        for schedule in ("parallel", "sequential")
    ]
    assert_allclose(values[0], values[1], rtol=1e-9)


def test_power_ep_tends_to_the_variational_bound():
    """As the power goes to 0 the divergence becomes the one that variational inference minimises."""
    data, model = binary(), Model(KERNEL, ZeroMean(), Bernoulli("logit"))
    bound = RuleOnEngine(RULES["vi"]).infer(model, data).evidence.value
    gaps = [
        abs(RuleOnEngine(gm.EP(power=power, tol=1e-10)).infer(model, data).evidence.value - bound)
        for power in (1.0, 0.5, 0.1)
    ]
    assert gaps[0] > 1.5 * gaps[1] > 3 * gaps[2] > 0


def test_the_bound_is_one_and_ep_is_between():
    """Against the evidence itself, by importance sampling from the EP posterior: 200,000 draws give it to
    0.01."""
    data, model = binary(), Model(KERNEL, ZeroMean(), Bernoulli("logit"))
    found = RuleOnEngine(RULES["ep"]).infer(model, data)
    mean, cov = (
        found.posterior.mean(data.X)[:, 0],
        1.2 * found.posterior.cov(data.X)[:, :, 0] + 1e-10 * np.eye(40),
    )
    rng = np.random.default_rng(1)
    L = np.linalg.cholesky(cov)
    Z = rng.standard_normal((40, 200_000))
    f = mean[:, None] + L @ Z
    K = KERNEL(data.X) + 1e-10 * np.eye(40)
    log_prior = -0.5 * np.sum(f * np.linalg.solve(K, f), axis=0) - 0.5 * np.linalg.slogdet(K)[1]
    log_q = -0.5 * np.sum(Z**2, axis=0) - np.sum(np.log(np.diag(L)))
    log_weight = np.sum(-np.logaddexp(0, -(2 * data.Y - 1) * f), axis=0) + log_prior - log_q
    truth = float(np.logaddexp.reduce(log_weight) - np.log(200_000))
    bound = RuleOnEngine(RULES["vi"]).infer(model, data).evidence
    assert bound.kind == "lower bound"
    assert bound.value < truth + 0.01
    assert abs(found.evidence.value - truth) < 0.02
    assert abs(RuleOnEngine(gm.Laplace()).infer(model, data).evidence.value - truth) > abs(
        found.evidence.value - truth
    )


def test_where_the_latent_function_may_be_large_ep_is_sure_and_laplace_is_not():
    """With a probit the evidence is the probability of an orthant, and a predictive probability the ratio of
    two, which SciPy integrates (up to 7 dimensions, to 1e-5). Laplace puts its Gaussian at the mode, a few
    units from 0; the mass lies at f of the order of the scale, e^3 (Kuss and Rasmussen 2005)."""
    X, labels, new = (
        np.array([[-2.0], [-1.2], [-0.4], [0.5], [1.1], [2.0]]),
        np.repeat([0, 1], 3),
        np.array([[1.6]]),
    )
    kernel = gm.fixed(np.exp(6.0)) * gm.RBF(gm.fixed(1.0))
    sign = np.append(2 * labels - 1, 1)
    cov = sign[:, None] * (kernel(np.vstack([X, new])) + np.eye(7)) * sign
    without, with_new = (
        multivariate_normal.cdf(np.zeros(n), cov=cov[:n, :n], abseps=1e-6, releps=1e-6) for n in (6, 7)
    )
    found = {}
    for word in ("laplace", "ep"):
        gp = gm.GPClassifier(kernel, inference=word, link="probit").fit(X, labels)
        found[word] = gp.evidence_.value - np.log(without), gp.predict_proba(new)[0, 1] - with_new / without
    assert abs(found["ep"][0]) < 0.05
    assert abs(found["ep"][1]) < 0.03
    assert found["laplace"][0] < -1
    assert found["laplace"][1] < -0.3


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_gaussian_noise_is_exact_inference(rule):
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, (40, 2))
    data = Data(X, (X[:, 0] + 0.3 * rng.standard_normal(40))[:, None], np.array([1.7]))
    model = Model(KERNEL, ConstantMean(0.3), Gaussian(0.2))
    ours, exact = RuleOnEngine(rule).infer(model, data), closed(Exact()).infer(model, data)
    assert_allclose(ours.evidence.value, exact.evidence.value, atol=1e-7)
    new = rng.uniform(-3, 3, (7, 2))
    for a, b in zip(ours.posterior.moments(new), exact.posterior.moments(new), strict=True):
        assert_allclose(a, b, atol=1e-8)
    for a, b in zip(
        RuleOnEngine(rule).evidence_and_gradient(model, data, Workspace())[1],
        closed(Exact()).evidence_and_gradient(model, data, Workspace())[1],
        strict=True,
    ):
        assert_allclose(a, b, atol=1e-6)


# Gradients. -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule", [*RULES.values(), gm.EP(power=0.5, tol=1e-10), Mode(tol=1e-12)], ids=[*RULES, "power ep", "map"]
)
def test_gradients(rule):
    assert (
        gradient_error(Model(KERNEL, ConstantMean(0.3), Bernoulli("probit")), binary(), RuleOnEngine(rule))
        < 1e-7
    )


@pytest.mark.parametrize(
    "engine",
    [Nystrom(12), Fourier(24), Sparse(10, optimize_inducing=True)],
    ids=["nystrom", "fourier", "vfe"],
)
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_gradients_with_features(rule, engine):
    assert (
        gradient_error(Model(KERNEL, ZeroMean(), Bernoulli("logit")), binary(30), RuleOnEngine(rule, engine))
        < 1e-7
    )


@pytest.mark.parametrize(
    ("likelihood", "rules"), [(StudentT(0.4, 4.0), ("laplace", "vi")), (Poisson(), ("laplace", "ep", "vi"))]
)
def test_gradients_by_the_likelihood(likelihood, rules):
    """Parameters of the likelihood, and curvatures of the wrong sign."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (30, 2))
    f = np.sin(X[:, 0])
    y = (
        rng.poisson(np.exp(f)).astype(float)
        if isinstance(likelihood, Poisson)
        else f + 0.3 * rng.standard_t(3, 30)
    )
    if isinstance(likelihood, StudentT):
        y[:2] += 6.0  # far out, where the density is convex
    data = Data(X, likelihood.with_defaults(y).reshape(30, -1), np.ones(1))
    if isinstance(likelihood, Poisson):
        data.Y[:, 1] = rng.uniform(0.5, 2.0, 30)
    for name in rules:
        # The variational climb ends where a step gains 1e-6, so differences of its bound are good to a few
        # digits.
        allowed = 1e-3 if name == "vi" and not likelihood.log_concave else 1e-6
        assert (
            gradient_error(Model(KERNEL, ConstantMean(0.1), likelihood), data, RuleOnEngine(RULES[name]))
            < allowed
        )


def test_gradients_of_several_latents():
    """A kernel each, and one for all."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-2, 2, (25, 2))
    y = (X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.standard_normal(25))[:, None]
    kernels = (KERNEL, 0.5 * gm.Matern52(2.0))
    model = Model(kernels[0], ConstantMean(np.array([0.1, -0.5])), Heteroscedastic(), kernels[1:])
    assert gradient_error(model, Data(X, y, np.ones(2)), RuleOnEngine(RULES["vi"])) < 1e-3
    labels = rng.integers(0, 3, (25, 1)).astype(float)
    assert (
        gradient_error(
            Model(KERNEL, ZeroMean(), Softmax(3)), Data(X, labels, np.ones(3)), RuleOnEngine(RULES["vi"])
        )
        < 1e-5
    )


# Engines. ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_landmarks_at_all_rows_are_the_whole_matrix(rule):
    data, model = binary(), Model(KERNEL, ZeroMean(), Bernoulli("logit"))
    dense = RuleOnEngine(rule).infer(model, data)
    sparse = RuleOnEngine(rule, Sparse(inducing=data.X)).infer(model, data)
    assert_allclose(sparse.evidence.value, dense.evidence.value, atol=1e-6)
    new = np.random.default_rng(5).uniform(-3, 3, (9, 2))
    for a, b in zip(sparse.posterior.moments(new), dense.posterior.moments(new), strict=True):
        assert_allclose(a, b, atol=1e-6)


def test_fewer_landmarks_give_a_lower_bound():
    data, model = binary(), Model(KERNEL, ZeroMean(), Bernoulli("logit"))
    whole = RuleOnEngine(gm.VI()).infer(model, data).evidence.value
    few = [
        RuleOnEngine(gm.VI(), Sparse(m, inducing="pivoted")).infer(model, data).evidence.value
        for m in (5, 10, 20)
    ]
    assert few[0] < few[1] < few[2] < whole


def test_cg_is_laplace_to_its_tolerance():
    data, model = binary(60), Model(KERNEL, ZeroMean(), Bernoulli("logit"))
    dense = RuleOnEngine(gm.Laplace()).infer(model, data)
    solver = Krylov(gm.CG(tol=1e-10, rank=20, probes=64), 0)
    ours = (
        RuleOnEngine(gm.Laplace(), solver).prepared(model, data, np.random.default_rng(0)).infer(model, data)
    )
    assert ours.evidence.kind == "estimate"
    assert abs(ours.evidence.value - dense.evidence.value) < 5 * ours.evidence.standard_error + 1e-6
    for a, b in zip(ours.posterior.moments(data.X[:9]), dense.posterior.moments(data.X[:9]), strict=True):
        assert_allclose(a, b, atol=1e-5)


def test_what_makes_no_sense_is_refused():
    data = binary()
    cg = Krylov(gm.CG(), 0)
    for rule, engine, likelihood, word in (
        (gm.EP(), cg, Bernoulli(), "laplace"),
        (gm.VI(), cg, Bernoulli(), "laplace"),
        (gm.EP(), Exact(), Softmax(3), 'several latent functions: use inference="vi", "laplace" or "mcmc"'),
        (gm.EP(), Exact(), RobustMax(3), 'several latent functions: use inference="vi" or "mcmc"'),
        (gm.EP(), Exact(), Heteroscedastic(), 'several latent functions: use inference="vi" or "mcmc"'),
        (gm.Laplace(), Exact(), RobustMax(3), "no derivatives"),
    ):
        with pytest.raises(ParameterError, match=word):
            RuleOnEngine(rule, engine).infer(Model(KERNEL, ZeroMean(), likelihood), data)
    with pytest.raises(ParameterError, match="schedule"):
        gm.EP(schedule="random")
    with pytest.raises(ParameterError, match="power"):
        gm.EP(power=0.0)


def test_ep_that_does_not_converge_says_so():
    found = RuleOnEngine(gm.EP(max_iter=2)).infer(
        Model(50.0 * gm.RBF([0.7, 1.1]), ZeroMean(), Bernoulli()), binary()
    )
    assert not found.outcome.converged
    assert "did not converge" in found.outcome.note


def test_a_start_from_before_changes_nothing_but_the_time():
    data, model = binary(), Model(KERNEL, ZeroMean(), Bernoulli())
    for rule in RULES.values():
        workspace = Workspace()
        first = RuleOnEngine(rule).evidence(model, data, workspace).value
        assert workspace.start is not None
        moved = Model(1.1 * gm.RBF([0.8, 1.0]), ZeroMean(), Bernoulli())
        warm, cold = (
            RuleOnEngine(rule).evidence(moved, data, workspace).value,
            RuleOnEngine(rule).evidence(moved, data, Workspace()).value,
        )
        assert_allclose(warm, cold, rtol=1e-9)
        assert warm != first


def test_saturated_rows_keep_their_digits():
    """Curvatures of 1e-40: K + 1 / lam must not lose what the other rows say."""
    X = np.linspace(-1, 1, 30)[:, None]
    y = (X > 0).astype(float)
    model = Model(1e6 * gm.RBF(0.5), ZeroMean(), Bernoulli())
    data = Data(X, y, np.ones(1))
    K = model.kernel(X)
    found = RuleOnEngine(gm.Laplace()).infer(model, data)
    f = found.posterior.mean(X)[:, 0]
    # f = K grad log p, the condition for the mode
    assert_allclose(f, K @ (y[:, 0] - expit(f)), rtol=1e-4, atol=1e-3)


def test_a_wide_prior_is_no_rate_to_begin_with():
    """Counts under a prior variance of 400: E exp(f) = exp(200) made sites of which nothing but rounding was
    left, and a bound far above the evidence. EP and VI agree to what their Gaussians differ by."""
    X = np.repeat(np.linspace(-3, 3, 12), 2)[:, None]
    y = np.random.default_rng(0).poisson(np.exp(np.sin(X[:, 0]))).astype(float)
    found = {}
    for rule in ("vi", "ep"):
        gp = gm.GPRegressor(
            400.0 * gm.RBF(1.0), likelihood="poisson", inference=rule, optimize=False, normalize_y=False
        )
        found[rule] = gp.fit(X, y).evidence_.value
    assert found["ep"] - 2.0 < found["vi"] < found["ep"] + 0.05
