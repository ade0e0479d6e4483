"""Conformance suites of solvers, likelihoods, inference and processes; `gramian.testing` is where they are found and described."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import qmc

from gramian.errors import InputError, NumericalError, ParameterError
from gramian.gram.operator import GramOperator
from gramian.inference import Data, Evidence, GaussianProcess, Inference, Model, Process
from gramian.inference.base import Workspace
from gramian.kernels import RBF
from gramian.likelihoods import Gaussian, Likelihood
from gramian.means import ConstantMean, LinearMean, ZeroMean
from gramian.solvers import Factor, Solver

Array = NDArray[np.float64]


# Solvers. -------------------------------------------------------------------------------------------------------------------------------------------


def check_factor(solver: Solver, *, rtol: float = 1e-8) -> None:
    """Raises AssertionError unless `solver` keeps the contract of a solver, and its factors that of a factor.

    `rtol`: how far logdet and quad may be off, relative to their size; more than the default suits solvers that estimate them. A solve is held to the
    residual that its own outcome states, or to rounding where it states none.
    """
    name = repr(solver)
    rng = np.random.default_rng(20240229)
    for n in (1, 3, 30, 90):
        X = rng.standard_normal((n, 2))
        operator = GramOperator(1.3 * RBF(0.8), X, rng.uniform(0.05, 0.5, n))
        A = operator.kernel(X) + np.diag(operator.noise)
        before = (operator.X.copy(), operator.noise.copy())
        factor = solver.factor(operator)
        B = rng.standard_normal((n, 3))
        _check_solve(factor, A, B, name)
        logdet = float(np.linalg.slogdet(A)[1])
        require(_close(factor.logdet(), logdet, rtol * max(1.0, n)), f"{name}: logdet() is {factor.logdet():.12g}, but log det A is {logdet:.12g}.")
        quad = float(np.sum(B * np.linalg.solve(A, B)))
        require(_close(factor.quad(B), quad, rtol), f"{name}: quad(B) is {factor.quad(B):.12g}, but tr(B'A^-1 B) is {quad:.12g}.")
        scaled = solver.factor(GramOperator(operator.kernel * 4.0, X, 4.0 * operator.noise)).logdet() - n * float(np.log(4.0))
        require(_close(scaled, logdet, rtol * max(1.0, n)), f"{name}: log det(4 A) is not n log 4 + log det A.")
        unchanged = np.array_equal(before[0], operator.X) and np.array_equal(before[1], operator.noise)
        require(unchanged, f"{name}: factor() changed the data of its operator.")
    _check_singular(solver, name)


def _check_solve(factor: Factor, A: Array, B: Array, name: str) -> None:
    given = B.copy()
    solution = factor.solve(B)
    require(np.array_equal(given, B), f"{name}: solve(B) changed B.")
    require(solution.value.shape == B.shape, f"{name}: solve(B) has shape {solution.value.shape}, but B has {B.shape}.")
    require(solution.outcome.converged, f"{name}: solve(B) says it did not converge, on a matrix of condition number 1e3.")
    require(solution.outcome.jitter == 0, f"{name}: jitter {solution.outcome.jitter:g} was added to a matrix that is positive definite.")
    promised = 1e-11 if solution.outcome.residual is None else 10 * solution.outcome.residual + 1e-11
    residual = float(np.max(np.linalg.norm(A @ solution.value - B, axis=0) / np.linalg.norm(B, axis=0)))
    require(residual <= promised, f"{name}: |A x - b| / |b| is {residual:.2g}, but the outcome promises {promised:.2g}.")
    vector = factor.solve(B[:, 0]).value
    require(vector.shape == B[:, 0].shape, f"{name}: solve(b) for b of shape (n,) has shape {vector.shape}.")
    worst = float(np.max(np.abs(vector - solution.value[:, 0])))
    allowed = 1e4 * promised * float(np.max(np.abs(vector)))  # a residual is amplified by the condition number at most
    require(worst <= allowed, f"{name}: solve(b) and the same column of solve(B) differ by {worst:.2g}.")


def _check_singular(solver: Solver, name: str) -> None:
    """Equal rows without noise: an error of the library's own, or a finite answer that says what was done. Never NaN, and never silence."""
    X = np.array([[0.0], [1.0], [0.0], [2.0]])
    try:
        solution = solver.factor(GramOperator(RBF(1.0), X, np.zeros(4))).solve(np.array([1.0, 2.0, 1.0, 0.5]))
    except NumericalError:
        return
    require(bool(np.all(np.isfinite(solution.value))), f"{name}: a singular matrix gives a solution that is not finite.")
    told = solution.outcome.jitter > 0 or not solution.outcome.converged or bool(solution.outcome.note) or solution.outcome.residual is not None
    require(told, f"{name}: a singular matrix was solved without a word in the outcome: jitter, residual or note.")


# Likelihoods. ---------------------------------------------------------------------------------------------------------------------------------------


def check_likelihood(likelihood: Likelihood, y: Any = None, *, outcomes: Any = None) -> None:
    """Raises AssertionError unless `likelihood` keeps the contract of a likelihood.

    `y` (n,): observations to check it on, where standard normal numbers do not suit it. `outcomes`: all values that y can take, where it is discrete
    (so many that the rest has no probability, where there is no end to them).
    """
    name, latents = type(likelihood).__name__, likelihood.latents
    rng = np.random.default_rng(20240229)
    y = rng.standard_normal(6) if y is None and outcomes is None else np.asarray(outcomes if y is None else y, dtype=np.float64)
    _check_kind(likelihood, y, name)
    y, mean, var = (np.ravel(v) for v in np.meshgrid(y, [-1.2, 0.1, 0.9], [0.0, 0.3, 1.5], indexing="ij"))
    if latents > 1:
        mean, var = mean[:, None] * rng.uniform(-1, 1, (len(y), latents)), var[:, None] * rng.uniform(0.5, 1.0, (len(y), latents))
    bare = likelihood.bare()
    with jax.enable_x64(True):
        log_prob = _run(bare, "log_prob", y, mean)
        require(log_prob.shape == y.shape, f"{name}: log_prob of {y.shape} observations has shape {log_prob.shape}.")
        require(not np.any(np.isnan(log_prob)), f"{name}: log_prob gives NaN.")
        singly = np.array([float(_run(bare, "log_prob", a, b)) for a, b in zip(y, mean, strict=True)])
        _alike(log_prob, singly, 1e-12, f"{name}: log_prob of an array is not log_prob of each entry")
        _check_total(bare, outcomes, name)
        if likelihood.smooth:
            _check_derivatives(bare, y, mean, name)
        _check_expectations(bare, y, mean, var, name)
        _check_y(likelihood, bare, outcomes, mean, var, name)


def _check_kind(likelihood: Likelihood, y: Array, name: str) -> None:
    """What it says of itself: scales, checks of y, and where fitting starts."""
    latents, scales = likelihood.latents, likelihood.scales(3.0)
    good = np.shape(scales) == (latents,) and bool(np.all(np.isfinite(scales)))
    require(good and bool(np.all(scales > 0)), f"{name}: scales(3) is {scales}, not {latents} positive numbers.")
    require(np.array_equal(likelihood.checked(y.copy()), y), f"{name}: checked(y) changed y.")
    if type(likelihood).checked is not Likelihood.checked:
        try:
            likelihood.checked(np.append(y, np.nan), "the target")
        except InputError as error:
            require(f"row {len(y)}" in str(error) and "the target" in str(error), f"{name}: checked(y) does not name what and the row: {error}")
        else:
            raise AssertionError(f"{name}: checked(y) lets NaN pass.")
    begun, start = likelihood.started(y)
    require(type(begun) is type(likelihood), f"{name}: started(y) gives a {type(begun).__name__}.")
    finite = np.shape(start) == (latents,) and bool(np.all(np.isfinite(start)))
    require(finite, f"{name}: started(y) starts the latents at {start}, not at {latents} finite numbers.")


def _check_derivatives(bare: Any, y: Array, f: Array, name: str) -> None:
    """Against four-point differences: h^4 of a fifth derivative, and 1e-16 / h^2 = 1e-8 of rounding for the second."""
    first, second = _run(bare, "derivatives", y, f)
    require(first.shape == f.shape == second.shape, f"{name}: derivatives have shapes {first.shape} and {second.shape}, but f has {f.shape}.")
    h = 1e-4
    for k in range(bare.latents):
        at = (Ellipsis, k) if bare.latents > 1 else (Ellipsis,)
        step = np.zeros_like(f)
        step[at] = h
        v = [_log_prob(bare, y, f + j * step) for j in (-2, -1, 0, 1, 2)]
        _alike(first[at], (v[0] - 8 * v[1] + 8 * v[3] - v[4]) / (12 * h), 1e-7, f"{name}: derivatives, the first")
        _alike(second[at], (-v[0] + 16 * v[1] - 30 * v[2] + 16 * v[3] - v[4]) / (12 * h**2), 1e-5, f"{name}: derivatives, the second")
    if bare.log_concave:
        wide = [_run(bare, "derivatives", y, scale * f)[1] for scale in (1.0, 5.0, 25.0)]
        require(bool(np.max(wide) <= 0), f"{name} says it is log-concave, but its second derivative is {np.max(wide):.3g} somewhere.")


def _check_expectations(bare: Any, y: Array, mean: Array, var: Array, name: str) -> None:
    """Against plain integration: the trapezoidal rule, exact to rounding for smooth functions times a Gaussian; or, with several latents, a mean over
    many quasi-random points, other ones than the library's 256, which are good to about 1%."""
    z, weights = _gaussian_points(bare.latents)
    f = np.expand_dims(mean, 1) + np.sqrt(np.expand_dims(var, 1)) * z  # (n, nodes) or (n, nodes, latents)
    values = _log_prob(bare, np.broadcast_to(y[:, None], f.shape[:2]), f)
    expected, predictive = (_run(bare, method, y, mean, var) for method in ("expected_log_prob", "predictive_log_prob"))
    require(expected.shape == y.shape == predictive.shape, f"{name}: expected_log_prob or predictive_log_prob has not the shape of y.")
    single = bare.latents == 1
    peak = np.max(values, axis=1)
    log_Z = peak + np.log(np.exp(values - peak[:, None]) @ weights)
    _alike(expected, values @ weights, 1e-6 if single else 2e-2, f"{name}: expected_log_prob is not E log p(y | f)")
    _alike(predictive, log_Z, 1e-4 if single else 2e-2, f"{name}: predictive_log_prob is not log E p(y | f)")
    certain = np.all(var.reshape(len(y), -1) == 0, axis=1)
    log_prob = _log_prob(bare, y, mean)
    _alike(expected[certain], log_prob[certain], 1e-9, f"{name}: expected_log_prob for a certain f is not log_prob")
    require(bool(np.all(predictive >= expected - 1e-6)), f"{name}: log E p is below E log p, against Jensen's inequality.")
    powers = () if not single else (1.0, 0.5) if type(bare).tilted is not Likelihood.tilted else (0.5,)
    for power in powers:
        ours = _run(bare, "tilted", y, mean, var, power=power)
        p = np.exp(power * (values - peak[:, None])) * weights
        log_Z, p = power * peak + np.log(np.sum(p, axis=1)), p / np.sum(p, axis=1, keepdims=True)
        first = np.sum(p * f, axis=1)
        for what, a, b in zip(("log Z", "mean", "variance"), ours, (log_Z, first, np.sum(p * (f - first[:, None]) ** 2, axis=1)), strict=True):
            _alike(a, b, 1e-4, f"{name}: tilted with power {power:g}, the {what}")


def _check_y(likelihood: Likelihood, bare: Any, outcomes: Any, mean: Array, var: Array, name: str) -> None:
    """Moments and draws of y, where the likelihood has them."""
    single = bare.latents == 1
    f = mean[:: max(1, len(mean) // 6)]
    try:
        centre, spread = _run(bare, "conditional_moments", f)
    except ParameterError:
        centre = None
    if centre is not None:
        require(centre.shape == spread.shape == f.shape[:1], f"{name}: conditional_moments have shapes {centre.shape} and {spread.shape}.")
        if outcomes is not None:
            k = np.asarray(outcomes, dtype=np.float64)
            p = np.exp([_log_prob(bare, k, np.broadcast_to(g, (len(k), *g.shape))) for g in f])
            _alike(centre, p @ k, 1e-6, f"{name}: E[y | f] is not the mean of the outcomes")
            _alike(spread, p @ k**2 - (p @ k) ** 2, 1e-6, f"{name}: var[y | f] is not the variance of the outcomes")
        z, weights = _gaussian_points(bare.latents)
        at = np.expand_dims(mean, 1) + np.sqrt(np.expand_dims(var, 1)) * z
        given = _run(bare, "conditional_moments", at)
        first = given[0] @ weights
        ours = _run(bare, "predictive_moments", mean, var)
        require(not np.any(np.isnan(ours[1])), f"{name}: var y is NaN; say infinite where it is.")
        if np.all(np.isfinite(given[1])):
            _alike(ours[0], first, 1e-6 if single else 2e-2, f"{name}: predictive_moments, E y, against conditional_moments")
            second = (given[1] + (given[0] - first[:, None]) ** 2) @ weights
            _alike(ours[1], second, 1e-6 if single else 2e-2, f"{name}: predictive_moments, var y, against conditional_moments")
    N = 20_000
    try:
        many = np.broadcast_to(f[:, None], (len(f), N, *f.shape[1:]))
        drawn, again = (likelihood.draw(np.random.default_rng(1), many) for _ in range(2))
    except ParameterError:
        return
    require(drawn.shape == (len(f), N), f"{name}: draw gives shape {drawn.shape}, not {(len(f), N)}.")
    require(np.array_equal(drawn, again), f"{name}: the same seed gives other draws.")
    likelihood.checked(drawn.ravel())
    if outcomes is not None:
        for k in outcomes:  # 7 standard errors, and one draw
            p = np.exp(_log_prob(bare, np.full(len(f), float(k)), f))
            off = np.abs(np.mean(drawn == k, axis=1) - p) - 7 * np.sqrt(p * (1 - p) / N) - 1 / N
            require(bool(np.max(off) <= 0), f"{name}: draws are {k:g} in shares that are not p(y = {k:g} | f).")
    elif centre is not None and np.all(np.isfinite(spread)):
        off = np.abs(np.mean(drawn, axis=1) - centre) - 7 * np.sqrt(spread / N)
        require(bool(np.max(off) <= 0), f"{name}: the mean of draws is not E[y | f].")


def _log_prob(bare: Any, y: Array, f: Array, block: int = 1024) -> Array:
    """log_prob in blocks of one size, so that it is compiled for one."""
    flat = f.reshape(y.size, *f.shape[y.ndim :])
    at = [np.arange(start, start + block) % y.size for start in range(0, y.size, block)]  # the last block is filled up from the start
    return np.concatenate([_run(bare, "log_prob", y.ravel()[i], flat[i]) for i in at])[: y.size].reshape(y.shape)


def _run(bare: Any, method: str, *given: Any, **static: float) -> Any:
    """A method of a likelihood in one compiled program: compiling each operation for itself takes longer."""
    return jax.tree_util.tree_map(np.asarray, _compiled(bare, method, tuple(static.items()), *(jnp.asarray(value) for value in given)))


@partial(jax.jit, static_argnums=(1, 2))
def _compiled(bare: Any, method: str, static: tuple[tuple[str, float], ...], *given: jax.Array) -> Any:
    return getattr(bare, method)(*given, **dict(static))


def _gaussian_points(latents: int) -> tuple[Array, Array]:
    """Points and weights for expectations under N(0, I): (nodes,) or (nodes, latents)."""
    if latents == 1:
        z: Array = np.linspace(-12, 12, 4001)
        return z, np.exp(-0.5 * z**2) / np.sum(np.exp(-0.5 * z**2))
    half = ndtri(qmc.Sobol(latents, rng=np.random.default_rng(5)).random(2**12))
    return np.concatenate([half, -half]), np.full(2**13, 2.0**-13)


def _check_total(bare: Any, outcomes: Any, name: str) -> None:
    """Probabilities of all outcomes add up to 1; a density integrates to 1, along y = f + s sinh(t), which reaches far into heavy tails."""
    f = 0.3 if bare.latents == 1 else np.linspace(0.3, -0.5, bare.latents)
    if outcomes is not None:
        y = np.asarray(outcomes, dtype=np.float64)
        total = float(np.sum(np.exp(_log_prob(bare, y, np.broadcast_to(f, (len(y), *np.shape(f)))))))
    else:
        t = np.linspace(-25, 25, 20_001)
        y = 0.3 + 0.5 * np.sinh(t)
        density = np.exp(_log_prob(bare, y, np.broadcast_to(f, (len(t), *np.shape(f)))))
        total = float(np.sum(np.where(np.isfinite(density), density, 0.0) * 0.5 * np.cosh(t)) * (t[1] - t[0]))
    require(abs(total - 1) < 1e-3, f"{name}: the probabilities of all y at one f add up to {total:.6g}, not to 1.")


# Processes and inference. ---------------------------------------------------------------------------------------------------------------------------


def check_posterior(process: Process, X: Any) -> None:
    """Raises AssertionError unless `process`, a prior or posterior, keeps the contract of a process at the rows of X (n, d)."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    name, n, given = type(process).__name__, len(X), X.copy()
    mean, cov = process.mean(X), process.cov(X)
    also_mean, var = process.moments(X)
    q = mean.shape[-1]
    for what, value, shape in (("mean", mean, (n, q)), ("var", process.var(X), (n, q)), ("moments", var, (n, q)), ("cov", cov, (n, n, q))):
        require(value.shape == shape, f"{name}: {what}(X) has shape {value.shape}, not {shape}.")
        require(bool(np.all(np.isfinite(value))), f"{name}: {what}(X) is not finite.")
    require(bool(np.all(var >= 0)), f"{name}: a variance is {var.min():g}.")
    require(np.array_equal(np.einsum("iik->ik", cov), var), f"{name}: the diagonal of cov(X) is not var(X) to the last bit.")
    require(np.array_equal(process.var(X), var), f"{name}: var(X) and moments(X) differ.")
    _alike(also_mean, mean, 1e-8, f"{name}: the mean of moments(X) is not mean(X)")
    size = float(np.max(var, initial=0.0)) + float(np.finfo(np.float64).tiny)
    require(bool(np.all(np.abs(cov - np.swapaxes(cov, 0, 1)) <= 1e-10 * size)), f"{name}: cov(X) is not symmetric.")
    for k in range(q):
        lowest = float(np.linalg.eigvalsh(cov[:, :, k])[0])
        require(lowest >= -1e-8 * n * size, f"{name}: cov(X) of output {k} has the eigenvalue {lowest:.3g}.")
    some = np.arange(0, n, 2)
    _alike(process.mean(X[some]), mean[some], 1e-8, f"{name}: the mean of some rows depends on the others")
    _alike(process.var(X[some]), var[some], 1e-8, f"{name}: the variance of some rows depends on the others")
    _check_draws(process, X, mean, cov, name)
    require(np.array_equal(given, X), f"{name}: X was changed.")


def _check_draws(process: Process, X: Array, mean: Array, cov: Array, name: str) -> None:
    """Moments of 4,000 draws within 7 standard errors, which a correct process passes with odds of 1e11 to 1 an entry; the seed is fixed besides."""
    N = 4000
    draws = process.sample(np.random.default_rng(1), X, N)
    require(draws.shape == (*mean.shape, N), f"{name}: sample gives shape {draws.shape}, not {(*mean.shape, N)}.")
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


def check_inference(inference: Inference) -> None:
    """Raises AssertionError unless `inference` keeps the contract of inference, on models with each mean, one output and two, and known noise."""
    rng = np.random.default_rng(20240229)
    X = rng.uniform(-1.5, 1.5, (24, 2))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.3, 40 * X[:, 1] ** 2])
    known = rng.uniform(0.0, 0.2, len(X))
    kernel = 0.9 * RBF([0.8, 1.3])
    _check_one(inference, Model(kernel, ZeroMean(), Gaussian(0.1)), Data(X, Y[:, :1], np.ones(1)))
    _check_one(inference, Model(kernel, ConstantMean(0.2), Gaussian(0.1)), Data(X, Y[:, :1], np.array([2.0]), known))
    two = Model(kernel, LinearMean([0.2, 3.0], np.array([[0.1, 2.0], [0.3, -1.0]])), Gaussian(0.1, (1.0, 400.0)))
    _check_one(inference, two, Data(X, Y, np.array([0.7, 20.0])))
    sizes = [inference.bytes_needed(n, 3, 1) for n in (10, 100, 1000)]
    require(0 < sizes[0] < sizes[1] < sizes[2], f"{inference!r}: bytes_needed does not grow with the rows: {sizes}.")


def _check_one(inference: Inference, model: Model, data: Data) -> None:
    name = repr(inference)
    before = (data.X.copy(), data.Y.copy())
    inference = inference.prepared(model, data, np.random.default_rng(20240229))
    inferred = inference.infer(model, data)
    evidence = inference.evidence(model, data, Workspace())
    again, gradients = inference.evidence_and_gradient(model, data, Workspace())
    for other in (inferred.evidence, again):
        require(_close(other.value, evidence.value, 1e-9), f"{name}: evidence, infer and evidence_and_gradient give different values.")
        require(other.kind == evidence.kind, f"{name}: evidence of two kinds, {other.kind} and {evidence.kind}.")

    parameters = model.parameters()
    expected = len(parameters) + (inference.free.size > 0)
    require(len(gradients) == expected, f"{name}: {len(gradients)} gradients for {len(parameters)} parameters.")
    for (path, parameter), gradient in zip(parameters.items(), gradients, strict=False):
        require(np.shape(gradient) == parameter.value.shape, f"{name}: the gradient of {path} has shape {np.shape(gradient)}.")
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
            require(abs(ours - slope) <= allowed, f"{name}: the gradient of {path} is {ours:.10g}, but differences give {slope:.10g}.")

    _check_free(inference, model, data, gradients, name)
    _check_against_the_formula(model, data, inferred.posterior, evidence, name)
    check_posterior(inferred.posterior, np.concatenate([data.X[:5], data.X[:3] + 0.3]))
    unchanged = np.array_equal(before[0], data.X) and np.array_equal(before[1], data.Y)
    require(unchanged, f"{name}: the data were changed.")


def _check_free(inference: Inference, model: Model, data: Data, gradients: list[Array], name: str) -> None:
    """The gradient of what a search may move besides the parameters."""
    free, h = inference.free, 1e-5
    for k in range(0, free.size, max(1, free.size // 5)):
        step = h * (np.arange(free.size) == k)
        up, down = (inference.with_free(free + sign * step).evidence(model, data, Workspace()).value for sign in (1, -1))
        slope, ours = (up - down) / (2 * h), float(np.ravel(gradients[-1])[k])
        close = abs(ours - slope) <= 1e-5 * max(abs(slope), 1.0)
        require(close, f"{name}: the gradient of free[{k}] is {ours:.10g}, but differences give {slope:.10g}.")


def _check_against_the_formula(model: Model, data: Data, posterior: Process, evidence: Evidence, name: str) -> None:
    """log N(y; m, s^2 K + noise) and its conditionals by dense algebra: exact methods equal it, bounds lie on their side of it."""
    Z, total, prior = data.X[:6] + 0.25, 0.0, GaussianProcess(model.kernel, model.mean, data.scale)
    variances = np.broadcast_to(model.gaussian.variances(), data.scale.shape)
    for k, s in enumerate(data.scale):
        noise = variances[k] + (0.0 if data.noise_var is None else data.noise_var)
        A = model.kernel(data.X) + np.diag(np.broadcast_to(noise / s**2, len(data.X)))
        r = (data.Y[:, k] - prior.mean(data.X)[:, k]) / s
        total += -0.5 * float(r @ np.linalg.solve(A, r)) - 0.5 * float(np.linalg.slogdet(A)[1]) - 0.5 * len(r) * float(np.log(2 * np.pi))
        if evidence.kind == "exact":
            C = model.kernel(Z, data.X)
            mean = prior.mean(Z)[:, k] + s * C @ np.linalg.solve(A, r)
            _alike(posterior.mean(Z)[:, k], mean, 1e-8, f"{name}: the posterior mean is not that of the conditional Gaussian")
            cov = s**2 * (model.kernel(Z) - C @ np.linalg.solve(A, C.T))
            _alike(posterior.cov(Z)[:, :, k], cov, 1e-8, f"{name}: the posterior covariance is not that of the conditional Gaussian")
    gap = evidence.value - total
    allowed = 1e-8 * max(1.0, abs(total)) + 6 * evidence.standard_error
    holds = {"exact": abs(gap) <= allowed, "lower bound": gap <= allowed, "upper bound": gap >= -allowed, "estimate": abs(gap) <= allowed}
    require(holds.get(evidence.kind, True), f"{name}: the evidence ({evidence}) is not what its kind says: log p(y) is {total:.10g}.")


# Helpers. -------------------------------------------------------------------------------------------------------------------------------------------


def require(holds: bool, otherwise: str) -> None:
    """`assert`, but never switched off."""
    if not holds:
        raise AssertionError(otherwise)


def _close(a: float, b: float, rtol: float) -> bool:
    return abs(a - b) <= rtol * max(1.0, abs(b))


def _alike(ours: Array, theirs: Array, rtol: float, what: str) -> None:
    """Entry by entry, relative to the entry or to the largest, whichever is the more lenient."""
    excess = np.abs(ours - theirs) - rtol * (np.abs(theirs) + float(np.max(np.abs(theirs), initial=0.0)) + 1e-300)
    at = np.unravel_index(int(np.argmax(excess)), excess.shape) if excess.size else ()
    if excess.size:
        index = tuple(map(int, at))
        require(bool(excess[index] <= 0), f"{what}: {float(ours[index]):.12g} and {float(theirs[index]):.12g} at {index}.")
