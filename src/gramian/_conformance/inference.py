"""What an inference promises, and the processes it gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian._conformance.helpers import alike, close, require
from gramian.engines.base import Engine, Workspace
from gramian.inference import Conjugate, Data, Evidence, Model, Scheme, on_engine
from gramian.kernels import RBF
from gramian.likelihoods import Gaussian
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


def check_inference(inference: Scheme | Engine) -> None:
    """Raises AssertionError unless `inference` keeps the contract of inference, on models with each mean, one
    output and two, and known noise."""
    inference = on_engine(inference, Conjugate())
    rng = np.random.default_rng(20240229)
    X = rng.uniform(-1.5, 1.5, (24, 2))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.3, 40 * X[:, 1] ** 2])
    known = rng.uniform(0.0, 0.2, len(X))
    kernel = 0.9 * RBF([0.8, 1.3])
    _check_one(inference, Model(kernel, ZeroMean(), Gaussian(0.1)), Data(X, Y[:, :1], np.ones(1)))
    _check_one(
        inference, Model(kernel, ConstantMean(0.2), Gaussian(0.1)), Data(X, Y[:, :1], np.array([2.0]), known)
    )
    two = Model(
        kernel, LinearMean([0.2, 3.0], np.array([[0.1, 2.0], [0.3, -1.0]])), Gaussian(0.1, (1.0, 400.0))
    )
    _check_one(inference, two, Data(X, Y, np.array([0.7, 20.0])))
    sizes = [inference.bytes_needed(n, 3, 1) for n in (10, 100, 1000)]
    require(
        0 < sizes[0] < sizes[1] < sizes[2],
        f"{inference!r}: bytes_needed does not grow with the rows: {sizes}.",
    )


def _check_one(inference: Scheme, model: Model, data: Data) -> None:
    name = repr(inference)
    before = (data.X.copy(), data.Y.copy())
    inference = inference.prepared(model, data, np.random.default_rng(20240229))
    inferred = inference.infer(model, data)
    evidence = inference.evidence(model, data, Workspace())
    again, gradients = inference.evidence_and_gradient(model, data, Workspace())
    for other in (inferred.evidence, again):
        require(
            close(other.value, evidence.value, 1e-9),
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
            h = 1e-4 * max(abs(float(parameter.value[index])), 0.1)
            value = {}
            for k in (-2, -1, 1, 2):
                moved = parameter.value.copy()
                moved[index] += k * h
                value[k] = inference.evidence(model.with_values({path: moved}), data, Workspace()).value
            slope = (8 * (value[1] - value[-1]) - (value[2] - value[-2])) / (12 * h)
            ours = float(np.asarray(gradient)[index])
            allowed = 1e-6 * max(abs(slope), 1.0) + 10 * evidence.standard_error
            require(
                abs(ours - slope) <= allowed,
                f"{name}: the gradient of {path} is {ours:.10g}, but differences give {slope:.10g}.",
            )

    _check_free(inference, model, data, gradients, name)
    _check_against_the_formula(model, data, inferred.posterior, evidence, name)
    check_posterior(inferred.posterior, np.concatenate([data.X[:5], data.X[:3] + 0.3]))
    unchanged = np.array_equal(before[0], data.X) and np.array_equal(before[1], data.Y)
    require(unchanged, f"{name}: the data were changed.")


def _check_free(inference: Scheme, model: Model, data: Data, gradients: list[Array], name: str) -> None:
    """The gradient of what a search may move besides the parameters."""
    free, h = inference.free, 1e-5
    for k in range(0, free.size, max(1, free.size // 5)):
        step = h * (np.arange(free.size) == k)
        up, down = (
            inference.with_free(free + sign * step).evidence(model, data, Workspace()).value
            for sign in (1, -1)
        )
        slope, ours = (up - down) / (2 * h), float(np.ravel(gradients[-1])[k])
        close = abs(ours - slope) <= 1e-5 * max(abs(slope), 1.0)
        require(
            close, f"{name}: the gradient of free[{k}] is {ours:.10g}, but differences give {slope:.10g}."
        )


def _check_against_the_formula(
    model: Model, data: Data, posterior: Process, evidence: Evidence, name: str
) -> None:
    """log N(y; m, s^2 K + noise) and its conditionals by dense algebra: exact methods equal it, bounds lie on
    their side of it."""
    Z, total, prior = data.X[:6] + 0.25, 0.0, GaussianProcess(model.kernel, model.mean, data.scale)
    variances = np.broadcast_to(model.gaussian.variances(), data.scale.shape)
    for k, s in enumerate(data.scale):
        noise = variances[k] + (0.0 if data.noise_var is None else data.noise_var)
        A = model.kernel(data.X) + np.diag(np.broadcast_to(noise / s**2, len(data.X)))
        r = (data.Y[:, k] - prior.mean(data.X)[:, k]) / s
        total += (
            -0.5 * float(r @ np.linalg.solve(A, r))
            - 0.5 * float(np.linalg.slogdet(A)[1])
            - 0.5 * len(r) * float(np.log(2 * np.pi))
        )
        if evidence.kind == "exact":
            C = model.kernel(Z, data.X)
            mean = prior.mean(Z)[:, k] + s * C @ np.linalg.solve(A, r)
            alike(
                posterior.mean(Z)[:, k],
                mean,
                1e-8,
                f"{name}: the posterior mean is not that of the conditional Gaussian",
            )
            cov = s**2 * (model.kernel(Z) - C @ np.linalg.solve(A, C.T))
            alike(
                posterior.cov(Z)[:, :, k],
                cov,
                1e-8,
                f"{name}: the posterior covariance is not that of the conditional Gaussian",
            )
    gap = evidence.value - total
    allowed = 1e-8 * max(1.0, abs(total)) + 6 * evidence.standard_error
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
