"""What an inference promises, and the processes it gives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from gramian._conformance.helpers import Subject, by_entries, slope
from gramian.arrays import Array
from gramian.engines.base import Engine, Workspace
from gramian.errors import ParameterError
from gramian.inference import Conjugate, Data, Evidence, Model, Scheme, on_engine
from gramian.inference.laplace import Laplace
from gramian.inference.variational import VI
from gramian.kernels import RBF, Kernel
from gramian.likelihoods import Gaussian, Likelihood
from gramian.means import ConstantMean, LinearMean, ZeroMean
from gramian.processes.base import Process
from gramian.processes.prior import GaussianProcess


def check_posterior(process: Process, X: Any, rounding: float = 0.0) -> None:
    """Raises AssertionError unless `process`, a prior or posterior, keeps its contract at rows X (n, d).
    `rounding`: how far a variance may be off by itself, where it is so far below the prior's that what is
    left of that is seen: some 1e-16 of it for each landmark."""
    check_moments_and_draws(Subject(type(process).__name__), process, X, rounding)


def check_moments_and_draws(it: Subject, process: Process, X: Any, rounding: float = 0.0) -> None:
    X = np.ascontiguousarray(X, dtype=np.float64)
    n = len(X)
    with it.keeping(X, otherwise="X was changed."):
        mean, cov, also_var = process.mean(X), process.cov(X), process.var(X)
        also_mean, var = process.moments(X)
        q = mean.shape[-1]
        for what, value in (("mean", mean), ("var", also_var), ("moments", var), ("cov", cov)):
            it.shaped(value, (n, n, q) if what == "cov" else (n, q), f"{what}(X)")
            it.finite(value, f"{what}(X)")
        it.must(var >= 0, f"a variance is {var.min():g}.")
        same = np.array_equal(np.einsum("iik->ik", cov), var)
        it.must(same, "the diagonal of cov(X) is not var(X) to the last bit.")
        it.must(np.array_equal(also_var, var), "var(X) and moments(X) differ.")
        it.alike(also_mean, mean, 1e-8, "the mean of moments(X) is not mean(X)")
        size = np.max(var, initial=0.0) + np.finfo(np.float64).tiny
        it.must(np.abs(cov - np.swapaxes(cov, 0, 1)) <= 1e-10 * size, "cov(X) is not symmetric.")
        for k in range(q):
            it.semidefinite(cov[:, :, k], 1e-8 * n * size, f"cov(X) of output {k}")
        some = np.arange(0, n, 2)
        it.alike(process.mean(X[some]), mean[some], 1e-8, "the mean of some rows depends on the others")
        others = "the variance of some rows depends on the others"
        it.alike(process.var(X[some]), var[some], 1e-8, others, rounding)
        _check_draws(it, process, X, mean, cov)


def _check_draws(it: Subject, process: Process, X: Array, mean: Array, cov: Array) -> None:
    """Moments of 4,000 draws within 7 standard errors, which a correct process passes with odds of 1e11 to 1
    an entry; the seed is fixed besides."""
    N = 4000
    draws, again = (process.sample(np.random.default_rng(1), X, N) for _ in range(2))
    shape = (*mean.shape, N)
    it.must(draws.shape == shape, f"sample gives shape {draws.shape}, not {shape}.")
    it.must(np.array_equal(draws, again), "the same seed gives other draws.")
    noisy = process.sample(np.random.default_rng(2), X, N, np.full(mean.shape, 0.5))
    for k in range(mean.shape[1]):
        for values, extra, what in ((draws[:, k], 0.0, "draws"), (noisy[:, k], 0.5, "draws with noise")):
            C = cov[:, :, k] + extra * np.eye(len(X))
            var = np.diag(C)
            slack = 1e-6 * (1 + np.max(np.abs(C)))
            off = np.abs(values.mean(axis=1) - mean[:, k]) - 7 * np.sqrt(var / N)
            it.must(off <= slack, f"the average of {what} is not the mean.")
            off = np.abs(np.cov(values).reshape(C.shape) - C) - 7 * np.sqrt((np.outer(var, var) + C**2) / N)
            it.must(off <= slack, f"the covariance of {what} is not cov(X).")


class Closeness(NamedTuple):
    """How closely values and slopes are held to each other."""

    value: float  # relative
    slope: float
    step: float  # of differences, relative
    slack: float = 0.0  # of slopes, in nats: behind estimates


CLOSED = Closeness(1e-9, 1e-6, 1e-4)
# Rules that iterate end at 1e-7 or 1e-8 of a standard deviation, and their evidence is known to about that; a
# wider step keeps it out of the differences.
ITERATED = Closeness(1e-6, 1e-4, 1e-2)
ROUGH = Closeness(1e-5, 2e-2, 1e-2)  # where log p is not concave, the climb of a bound ends in a long tail


def check_inference(
    inference: Scheme | Engine,
    likelihood: Likelihood | None = None,
    y: Any = None,
    *,
    rows: int = 24,
    slack: float = 0.0,
) -> None:
    """Raises AssertionError unless `inference` keeps the contract of inference.

    An engine, or a scheme in closed form: under Gaussian noise, on models with each mean, one output and two,
    of one noise and of one each, known noise and rows not observed. Any other scheme (a rule on an engine):
    under `likelihood`, Gaussian noise where there is none; there it must be exact where its engine is. An
    engine with a likelihood of another kind gets a rule that suits it.

    `y`: observations to check it on, where the likelihood cannot draw them. `rows`: how many there are else.
    `slack`: what a slope may be off by where an estimate stands behind it (`smooth` is False).
    """
    rng = np.random.default_rng(20240229)
    X = rng.uniform(-1.5, 1.5, (rows if y is None else len(y), 2))
    kernel = 0.9 * RBF([0.8, 1.3])
    if isinstance(inference, Engine):
        rule = Conjugate() if likelihood is None else VI() if inference.variances else Laplace()
        inference = on_engine(inference, rule)
    it = _subject(inference)
    unfit = "its parameters are not searched for, and this suite checks the slopes of a search."
    it.must(inference.search != "none", unfit)
    if inference.closed or inference.search == "batches":
        for model, data in _of_gaussian_noise(kernel, X, rng, inference.search != "batches"):
            _check_one(inference, model, data, CLOSED._replace(slack=slack))
    else:
        likelihood = Gaussian(0.3) if likelihood is None else likelihood
        model, data = _of_likelihood(likelihood, kernel, X, y, rng)
        held = ITERATED if likelihood.log_concave else ROUGH
        _check_one(inference, model, data, held._replace(slack=slack))
        if likelihood.latents == 1 and not likelihood.conjugate:
            _check_two_rows(inference, model, data.take(np.array([0, 1])))
    it.grows([inference.bytes_needed(n, 3, 1) for n in (10, 100, 1000)], "bytes_needed does")


def _subject(inference: Scheme) -> Subject:
    """Without the landmarks that a repr would have."""
    return Subject(f"{inference.label}, {inference.rule_name or 'closed form'}")


def _of_gaussian_noise(
    kernel: Kernel, X: Array, rng: np.random.Generator, holes: bool
) -> Iterator[tuple[Model, Data]]:
    """Models with each mean, and data of one output and two; with holes in them where there may be some."""
    Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.3, 40 * X[:, 1] ** 2])
    one, two = np.ones(1), np.array([0.7, 20.0])
    zero = Model(kernel, ZeroMean(), Gaussian(0.1))
    line = LinearMean([0.2, 3.0], np.array([[0.1, 2.0], [0.3, -1.0]]))
    linear = Model(kernel, line, Gaussian(0.1, (1.0, 400.0)))
    own = Model(kernel, line, Gaussian([0.1, 90.0]))
    constant = Model(kernel, ConstantMean(0.2), Gaussian(0.1))
    yield zero, Data(X, Y[:, :1], one)
    yield constant, Data(X, Y[:, :1], 2 * one, rng.uniform(0.0, 0.2, len(X)))
    yield linear, Data(X, Y, two)
    yield own, Data(X, Y, two, rng.uniform(0.0, 0.2, len(X)))
    if holes:
        missing = Y.copy()
        missing[::5, 0], missing[3, 1] = np.nan, np.nan
        yield own, Data(X, missing, two)
        yield zero, Data(X, missing[:, :1], one)


def _of_likelihood(
    likelihood: Likelihood, kernel: Kernel, X: Array, y: Any, rng: np.random.Generator
) -> tuple[Model, Data]:
    """A model of this likelihood, and y as it draws them where there are none."""
    L, scale = likelihood.latents, likelihood.scales(1.7)
    root = np.linalg.cholesky(kernel(X) + 1e-9 * np.eye(len(X)))
    f = 0.2 + scale * (root @ rng.standard_normal((len(X), L)))
    if y is None:
        beside = [np.full(len(X), likelihood.default(name)) for name in likelihood.columns[1:]]
        y = np.stack([likelihood.draw(rng, f[:, 0] if L == 1 else f, *beside), *beside], axis=-1)
    Y = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
    likelihood.checked(likelihood.y_of(Y))
    return Model(kernel, ConstantMean(0.2), likelihood), Data(X, Y, scale)


def _check_two_rows(inference: Scheme, model: Model, data: Data) -> None:
    """log p(y) of two rows by a quadrature over both functions."""
    inference = inference.prepared(model, data, np.random.default_rng(1))
    evidence = inference.evidence(model, data, Workspace())
    z = np.linspace(-9, 9, 361)  # a step of 0.05 standard deviations
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1).reshape(-1, 2)
    root = np.linalg.cholesky(model.kernel(data.X))
    f = data.prior(model).mean(data.X).T + data.scale[0] * grid @ root.T  # (nodes, 2)
    with jax.enable_x64(True):
        y = jnp.asarray(model.likelihood.y_of(data.Y))
        y = jnp.broadcast_to(y, (len(f), *y.shape))
        log_prob = np.asarray(model.likelihood.bare().log_prob(y, jnp.asarray(f)))
    log_weight = -0.5 * np.sum(grid**2, axis=1) - np.log(2 * np.pi) + 2 * np.log(z[1] - z[0])
    total = float(logsumexp(np.sum(log_prob, axis=1) + log_weight))
    if model.likelihood.location:
        total += 2 * float(np.log(data.scale[0]))  # of y / s, as every evidence is
    _check_kind(_subject(inference), evidence, total, 1e-6)


def _check_one(inference: Scheme, model: Model, data: Data, held: Closeness) -> None:
    it = _subject(inference)
    with it.keeping(data.X, data.Y, otherwise="the data were changed."):
        inference = inference.prepared(model, data, np.random.default_rng(20240229))
        inferred = inference.infer(model, data)
        workspace = Workspace()
        evidence = inference.evidence(model, data, workspace)
        again, gradients = inference.evidence_and_gradient(model, data, Workspace())
        warm, _ = inference.evidence_and_gradient(model, data, workspace)
        allowed = held.value * max(1.0, abs(evidence.value))
        for other in (inferred.evidence, again, warm):
            same = abs(other.value - evidence.value) <= allowed
            it.must(same, "evidence, infer and evidence_and_gradient give different values.")
            same = other.kind == evidence.kind
            it.must(same, f"evidence of two kinds, {other.kind} and {evidence.kind}.")
        held = held._replace(slack=held.slack + 10 * evidence.standard_error)
        _check_gradients(inference, model, data, gradients, held)
        if model.likelihood.conjugate:
            rtol = max(1e-8, held.value)
            _check_against_the_formula(inference, model, data, inferred.posterior, evidence, rtol)
        check_posterior(inferred.posterior, np.concatenate([data.X[:5], data.X[:3] + 0.3]))
        _check_cavities(inference, model, data, inferred.posterior)


def _check_gradients(
    inference: Scheme, model: Model, data: Data, gradients: list[Array], held: Closeness
) -> None:
    """By the parameters, and by some of what a search may move besides."""
    it, parameters, free = _subject(inference), model.parameters(), inference.free
    right = len(gradients) == len(parameters) + (free.size > 0)
    it.must(right, f"{len(gradients)} gradients for {len(parameters)} parameters.")

    def value(inference: Scheme, model: Model) -> float:
        return inference.evidence(model, data, Workspace()).value

    by_path = dict(zip(parameters, gradients, strict=False))
    for path, parameter in parameters.items():
        it.shaped(by_path[path], parameter.value.shape, f"the gradient of {path}")
    for path, index, theirs in by_entries(partial(value, inference), model, held.step):
        allowed = held.slope * max(abs(theirs), 1.0) + held.slack
        it.within(float(by_path[path][index]), theirs, allowed, f"the gradient of {path}")
    for k in range(0, free.size, max(1, free.size // 5)):
        unit = np.eye(free.size)[k]
        theirs = slope(lambda free: value(inference.with_free(free), model), 0.1 * held.step, free, unit)
        allowed = max(1e-5, 10 * held.slope) * max(abs(theirs), 1.0)
        it.within(float(np.ravel(gradients[-1])[k]), theirs, allowed, f"the gradient of free[{k}]")


def _check_cavities(inference: Scheme, model: Model, data: Data, posterior: Process) -> None:
    """Finite, and never more certain than with the row itself: that is what a site of positive precision
    adds. Without one, a variance need only be positive."""
    try:
        mean, var = inference.cavities(model, data, posterior)
    except ParameterError:  # it keeps no sites to leave out, and says so
        return
    it, columns = _subject(inference), data.Y.shape[1] if inference.closed else model.likelihood.latents
    for what, values in (("mean", mean), ("variance", var)):
        it.shaped(values, (len(data.X), columns), f"the {what} of cavities")
        it.finite(values, f"the {what} of cavities")
    it.must(var >= 0, f"a cavity has the variance {np.min(var):g}.")


def _check_against_the_formula(
    inference: Scheme, model: Model, data: Data, posterior: Process, evidence: Evidence, rtol: float
) -> None:
    """log N(y; m, s^2 K + noise) and its conditionals by dense algebra: exact methods equal it, bounds lie on
    their side of it. Every rule is exact under Gaussian noise, whatever it calls its evidence."""
    it, Z, total = _subject(inference), data.X[:6] + 0.25, 0.0
    prior = GaussianProcess(model.kernel, model.mean, data.scale)
    variances = np.broadcast_to(model.gaussian.variances(), data.scale.shape)
    ruled = inference.exact and not inference.closed and not evidence.standard_error
    exact = evidence.kind == "exact" or ruled
    for k, s in enumerate(data.scale):
        seen = np.isfinite(data.Y[:, k])
        X = data.X[seen]
        noise = variances[k] + (0.0 if data.noise_var is None else data.noise_var[seen])
        A = model.kernel(X) + np.diag(np.broadcast_to(noise / s**2, len(X)))
        r = (data.Y[seen, k] - prior.mean(X)[:, k]) / s
        logdet = np.linalg.slogdet(A)[1]
        total += -0.5 * float(r @ np.linalg.solve(A, r) + logdet + len(r) * np.log(2 * np.pi))
        if exact:
            C = model.kernel(Z, X)
            mean = prior.mean(Z)[:, k] + s * C @ np.linalg.solve(A, r)
            cov = s**2 * (model.kernel(Z) - C @ np.linalg.solve(A, C.T))
            what = "is not that of the conditional Gaussian"
            it.alike(posterior.mean(Z)[:, k], mean, rtol, f"the posterior mean {what}")
            it.alike(posterior.cov(Z)[:, :, k], cov, rtol, f"the posterior covariance {what}")
    _check_kind(it, Evidence(evidence.value) if exact else evidence, total, rtol)


def _check_kind(it: Subject, evidence: Evidence, total: float, rtol: float) -> None:
    """Whether an evidence is beside log p(y) what it calls itself."""
    gap = evidence.value - total
    allowed = rtol * max(1.0, abs(total)) + 6 * evidence.standard_error
    too_high = gap > allowed and evidence.kind in ("exact", "estimate", "lower bound")
    too_low = gap < -allowed and evidence.kind in ("exact", "estimate", "upper bound")
    what = f"the evidence ({evidence}) is not what its kind says: log p(y) is {total:.10g}."
    it.must(np.isfinite(gap) and not (too_high or too_low), what)
