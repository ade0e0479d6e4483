"""What an inference promises, and the processes it gives."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gramian._conformance.helpers import alike, close, require
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

Array = NDArray[np.float64]


def check_posterior(process: Process, X: Any) -> None:
    """Raises AssertionError unless `process`, a prior or posterior, keeps the contract of a process at the
    rows of X (n, d)."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    name, n, given = type(process).__name__, len(X), X.copy()
    mean, cov = process.mean(X), process.cov(X)
    also_mean, var = process.moments(X)
    q = mean.shape[-1]
    for what, value, shape in (
        ("mean", mean, (n, q)),
        ("var", process.var(X), (n, q)),
        ("moments", var, (n, q)),
        ("cov", cov, (n, n, q)),
    ):
        require(value.shape == shape, f"{name}: {what}(X) has shape {value.shape}, not {shape}.")
        require(bool(np.all(np.isfinite(value))), f"{name}: {what}(X) is not finite.")
    require(bool(np.all(var >= 0)), f"{name}: a variance is {var.min():g}.")
    require(
        np.array_equal(np.einsum("iik->ik", cov), var),
        f"{name}: the diagonal of cov(X) is not var(X) to the last bit.",
    )
    require(np.array_equal(process.var(X), var), f"{name}: var(X) and moments(X) differ.")
    alike(also_mean, mean, 1e-8, f"{name}: the mean of moments(X) is not mean(X)")
    size = float(np.max(var, initial=0.0)) + float(np.finfo(np.float64).tiny)
    require(
        bool(np.all(np.abs(cov - np.swapaxes(cov, 0, 1)) <= 1e-10 * size)),
        f"{name}: cov(X) is not symmetric.",
    )
    for k in range(q):
        lowest = float(np.linalg.eigvalsh(cov[:, :, k])[0])
        require(lowest >= -1e-8 * n * size, f"{name}: cov(X) of output {k} has the eigenvalue {lowest:.3g}.")
    some = np.arange(0, n, 2)
    alike(process.mean(X[some]), mean[some], 1e-8, f"{name}: the mean of some rows depends on the others")
    alike(process.var(X[some]), var[some], 1e-8, f"{name}: the variance of some rows depends on the others")
    _check_draws(process, X, mean, cov, name)
    require(np.array_equal(given, X), f"{name}: X was changed.")


def _check_draws(process: Process, X: Array, mean: Array, cov: Array, name: str) -> None:
    """Moments of 4,000 draws within 7 standard errors, which a correct process passes with odds of 1e11 to 1
    an entry; the seed is fixed besides."""
    N = 4000
    draws = process.sample(np.random.default_rng(1), X, N)
    require(
        draws.shape == (*mean.shape, N), f"{name}: sample gives shape {draws.shape}, not {(*mean.shape, N)}."
    )
    again = process.sample(np.random.default_rng(1), X, N)
    require(np.array_equal(draws, again), f"{name}: the same seed gives other draws.")
    noise = np.full(mean.shape, 0.5)
    noisy = process.sample(np.random.default_rng(2), X, N, noise)
    for k in range(mean.shape[1]):
        for values, extra, what in ((draws[:, k], 0.0, "draws"), (noisy[:, k], 0.5, "draws with noise")):
            C = cov[:, :, k] + extra * np.eye(len(X))
            var = np.diag(C)
            slack = 1e-6 * (1 + float(np.max(np.abs(C))))
            off = np.abs(values.mean(axis=1) - mean[:, k]) - 7 * np.sqrt(var / N)
            require(bool(np.all(off <= slack)), f"{name}: the average of {what} is not the mean.")
            off = np.abs(np.cov(values).reshape(C.shape) - C) - 7 * np.sqrt((np.outer(var, var) + C**2) / N)
            require(bool(np.all(off <= slack)), f"{name}: the covariance of {what} is not cov(X).")


class Held(NamedTuple):
    """How closely values and slopes are held to each other."""

    value: float  # relative
    slope: float
    step: float  # of differences, relative
    slack: float = 0.0  # of slopes, in nats: behind estimates


CLOSED = Held(1e-9, 1e-6, 1e-4)
# Rules that iterate end at 1e-7 or 1e-8 of a standard deviation, and their evidence is known to about that; a
# wider step keeps it out of the differences.
ITERATED = Held(1e-6, 1e-4, 1e-2)
ROUGH = Held(1e-5, 2e-2, 1e-2)  # where log p is not concave, the climb of a bound ends in a long tail


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
    known noise and rows not observed. Any other scheme (a rule on an engine): under `likelihood`, Gaussian
    noise where there is none; there it must be exact where its engine is. An engine with a likelihood of
    another kind gets a rule that suits it.

    `y`: observations to check it on, where the likelihood cannot draw them. `rows`: how many there are else.
    `slack`: what a slope may be off by where an estimate stands behind it (`smooth` is False).
    """
    rng = np.random.default_rng(20240229)
    X = rng.uniform(-1.5, 1.5, (rows if y is None else len(y), 2))
    kernel = 0.9 * RBF([0.8, 1.3])
    if isinstance(inference, Engine):
        rule = Conjugate() if likelihood is None else VI() if inference.variances else Laplace()
        inference = on_engine(inference, rule)
    require(
        inference.search != "none",
        f"{inference.name}: its parameters are not searched for, and this suite checks the slopes of a"
        " search.",
    )
    if inference.closed or inference.search == "batches":
        _check_closed(inference, kernel, X, rng, slack)
    else:
        likelihood = Gaussian(0.3) if likelihood is None else likelihood
        _check_likelihood(inference, likelihood, kernel, X, y, rng, slack)
    sizes = [inference.bytes_needed(n, 3, 1) for n in (10, 100, 1000)]
    require(
        0 < sizes[0] < sizes[1] < sizes[2],
        f"{_name(inference)}: bytes_needed does not grow with the rows: {sizes}.",
    )


def _name(inference: Scheme) -> str:
    """Without the landmarks that a repr would have."""
    return f"{inference.label}, {inference.rule_name or 'closed form'}"


def _check_closed(
    inference: Scheme, kernel: Kernel, X: Array, rng: np.random.Generator, slack: float
) -> None:
    held = CLOSED._replace(slack=slack)
    Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.3, 40 * X[:, 1] ** 2])
    known = rng.uniform(0.0, 0.2, len(X))
    missing = Y.copy()
    missing[::5, 0], missing[3, 1] = np.nan, np.nan
    _check_one(inference, Model(kernel, ZeroMean(), Gaussian(0.1)), Data(X, Y[:, :1], np.ones(1)), held)
    _check_one(
        inference,
        Model(kernel, ConstantMean(0.2), Gaussian(0.1)),
        Data(X, Y[:, :1], np.array([2.0]), known),
        held,
    )
    two = Model(
        kernel, LinearMean([0.2, 3.0], np.array([[0.1, 2.0], [0.3, -1.0]])), Gaussian(0.1, (1.0, 400.0))
    )
    _check_one(inference, two, Data(X, Y, np.array([0.7, 20.0])), held)
    if inference.search == "batches":
        return
    _check_one(inference, two, Data(X, missing, np.array([0.7, 20.0])), held)
    one = Model(kernel, ZeroMean(), Gaussian(0.1))
    _check_one(inference, one, Data(X, missing[:, :1], np.ones(1)), held)


def _check_likelihood(
    inference: Scheme,
    likelihood: Likelihood,
    kernel: Kernel,
    X: Array,
    y: Any,
    rng: np.random.Generator,
    slack: float,
) -> None:
    """One model of this likelihood on all rows; and on two rows, where a bound can be held against the
    integral."""
    L = likelihood.latents
    scale = likelihood.scales(1.7)
    f = 0.2 + scale * (
        np.linalg.cholesky(kernel(X) + 1e-9 * np.eye(len(X))) @ rng.standard_normal((len(X), L))
    )
    if y is None:
        beside = [np.full(len(X), likelihood.default(name)) for name in likelihood.columns[1:]]
        y = np.stack([likelihood.draw(rng, f[:, 0] if L == 1 else f, *beside), *beside], axis=-1)
    Y = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
    likelihood.checked(likelihood.y_of(Y))
    model = Model(kernel, ConstantMean(0.2), likelihood)
    data = Data(X, Y, scale)
    held = ITERATED if likelihood.log_concave else ROUGH
    _check_one(inference, model, data, held._replace(slack=slack))
    if L == 1 and not isinstance(likelihood, Gaussian):
        _check_two_rows(inference, model, data.take(np.array([0, 1])))


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
    _check_kind(evidence, total, _name(inference), 1e-6)


def _check_one(inference: Scheme, model: Model, data: Data, held: Held) -> None:
    name = _name(inference)
    before = (data.X.copy(), data.Y.copy())
    inference = inference.prepared(model, data, np.random.default_rng(20240229))
    inferred = inference.infer(model, data)
    workspace = Workspace()
    evidence = inference.evidence(model, data, workspace)
    again, gradients = inference.evidence_and_gradient(model, data, Workspace())
    warm, _ = inference.evidence_and_gradient(model, data, workspace)
    for other in (inferred.evidence, again, warm):
        require(
            close(other.value, evidence.value, held.value),
            f"{name}: evidence, infer and evidence_and_gradient give different values.",
        )
        require(
            other.kind == evidence.kind, f"{name}: evidence of two kinds, {other.kind} and {evidence.kind}."
        )

    parameters = model.parameters()
    expected = len(parameters) + (inference.free.size > 0)
    require(
        len(gradients) == expected, f"{name}: {len(gradients)} gradients for {len(parameters)} parameters."
    )
    for (path, parameter), gradient in zip(parameters.items(), gradients, strict=False):
        require(
            np.shape(gradient) == parameter.value.shape,
            f"{name}: the gradient of {path} has shape {np.shape(gradient)}.",
        )
        for index in np.ndindex(parameter.value.shape):
            h = held.step * (abs(float(parameter.value[index])) or 0.1)
            value = {}
            for k in (-2, -1, 1, 2):
                moved = parameter.value.copy()
                moved[index] += k * h
                value[k] = inference.evidence(model.with_values({path: moved}), data, Workspace()).value
            slope = (8 * (value[1] - value[-1]) - (value[2] - value[-2])) / (12 * h)
            ours = float(np.asarray(gradient)[index])
            allowed = held.slope * max(abs(slope), 1.0) + 10 * evidence.standard_error + held.slack
            require(
                abs(ours - slope) <= allowed,
                f"{name}: the gradient of {path} is {ours:.10g}, but differences give {slope:.10g}.",
            )

    _check_free(inference, model, data, gradients, name, held)
    if isinstance(model.likelihood, Gaussian):
        _check_against_the_formula(inference, model, data, inferred.posterior, evidence, held)
    check_posterior(inferred.posterior, np.concatenate([data.X[:5], data.X[:3] + 0.3]))
    _check_cavities(inference, model, data, inferred.posterior, name)
    unchanged = np.array_equal(before[0], data.X) and np.array_equal(before[1], data.Y, equal_nan=True)
    require(unchanged, f"{name}: the data were changed.")


def _check_cavities(inference: Scheme, model: Model, data: Data, posterior: Process, name: str) -> None:
    """Finite, and never more certain than with the row itself: that is what a site of positive precision
    adds. Without one, a variance need only be positive."""
    try:
        mean, var = inference.cavities(model, data, posterior)
    except ParameterError:  # it keeps no sites to leave out, and says so
        return
    columns = data.Y.shape[1] if inference.closed else model.likelihood.latents
    for what, values in (("means", mean), ("variances", var)):
        shape = (len(data.X), columns)
        require(values.shape == shape, f"{name}: cavities have {what} of shape {values.shape}, not {shape}.")
        require(bool(np.all(np.isfinite(values))), f"{name}: {what} of cavities are not finite.")
    require(bool(np.all(var >= 0)), f"{name}: a cavity has the variance {np.min(var):g}.")


def _check_free(
    inference: Scheme, model: Model, data: Data, gradients: list[Array], name: str, held: Held
) -> None:
    """The gradient of what a search may move besides the parameters."""
    free, h = inference.free, 0.1 * held.step
    for k in range(0, free.size, max(1, free.size // 5)):
        step = h * (np.arange(free.size) == k)
        up, down = (
            inference.with_free(free + sign * step).evidence(model, data, Workspace()).value
            for sign in (1, -1)
        )
        slope, ours = (up - down) / (2 * h), float(np.ravel(gradients[-1])[k])
        close = abs(ours - slope) <= max(1e-5, 10 * held.slope) * max(abs(slope), 1.0)
        require(
            close, f"{name}: the gradient of free[{k}] is {ours:.10g}, but differences give {slope:.10g}."
        )


def _check_against_the_formula(
    inference: Scheme, model: Model, data: Data, posterior: Process, evidence: Evidence, held: Held
) -> None:
    """log N(y; m, s^2 K + noise) and its conditionals by dense algebra: exact methods equal it, bounds lie on
    their side of it. Every rule is exact under Gaussian noise, whatever it calls its evidence."""
    name, rtol = _name(inference), max(1e-8, held.value)
    Z, total, prior = data.X[:6] + 0.25, 0.0, GaussianProcess(model.kernel, model.mean, data.scale)
    variances = np.broadcast_to(model.gaussian.variances(), data.scale.shape)
    exact = evidence.kind == "exact" or (
        inference.exact and not inference.closed and not evidence.standard_error
    )
    for k, s in enumerate(data.scale):
        seen = np.isfinite(data.Y[:, k])
        X = data.X[seen]
        noise = variances[k] + (0.0 if data.noise_var is None else data.noise_var[seen])
        A = model.kernel(X) + np.diag(np.broadcast_to(noise / s**2, len(X)))
        r = (data.Y[seen, k] - prior.mean(X)[:, k]) / s
        total += (
            -0.5 * float(r @ np.linalg.solve(A, r))
            - 0.5 * float(np.linalg.slogdet(A)[1])
            - 0.5 * len(r) * float(np.log(2 * np.pi))
        )
        if exact:
            C = model.kernel(Z, X)
            mean = prior.mean(Z)[:, k] + s * C @ np.linalg.solve(A, r)
            alike(
                posterior.mean(Z)[:, k],
                mean,
                rtol,
                f"{name}: the posterior mean is not that of the conditional Gaussian",
            )
            cov = s**2 * (model.kernel(Z) - C @ np.linalg.solve(A, C.T))
            alike(
                posterior.cov(Z)[:, :, k],
                cov,
                rtol,
                f"{name}: the posterior covariance is not that of the conditional Gaussian",
            )
    _check_kind(Evidence(evidence.value) if exact else evidence, total, name, rtol)


def _check_kind(evidence: Evidence, total: float, name: str, rtol: float) -> None:
    """Whether an evidence is beside log p(y) what it calls itself."""
    gap = evidence.value - total
    allowed = rtol * max(1.0, abs(total)) + 6 * evidence.standard_error
    holds = {
        "exact": abs(gap) <= allowed,
        "lower bound": gap <= allowed,
        "upper bound": gap >= -allowed,
        "estimate": abs(gap) <= allowed,
    }
    require(
        holds.get(evidence.kind, True),
        f"{name}: the evidence ({evidence}) is not what its kind says: log p(y) is {total:.10g}.",
    )
