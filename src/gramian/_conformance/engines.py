"""What an engine promises: K at the rows, and Gaussian sites on it.

Everything is held against dense algebra with the K that the engine stands for: the kernel's own where it says
`exact`, else times(I). Slopes of K are differences of fourth order, so that the gradient of an evidence is
checked against sum(G * dK) with the weights G written out; no second derivative, no search, no sampling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian._conformance.helpers import alike, close, require
from gramian._conformance.inference import check_posterior
from gramian.engines.base import Conditioned, Engine, RowPrior, Term, Use, Workspace
from gramian.errors import GramianError
from gramian.kernels import Kernel, Matern52
from gramian.means import ConstantMean
from gramian.processes.base import Process
from gramian.processes.prior import GaussianProcess

Array = NDArray[np.float64]

SEED = 20240229
STEP = 1e-3  # of a parameter: fourth-order differences are then right to 1e-10, and rounding adds 1e-12
USES = (Use(), Use(again=True), Use(back=True, whole=True), Use(again=True, whole=True))


class Case(NamedTuple):
    """An engine with its choices made, at some rows, and what it stands for there."""

    engine: Engine
    kernel: Kernel
    X: Array  # (n, d)
    K: Array  # (n, n)
    rtol: float
    probes: int  # of its log determinant's gradient; 0: no estimate

    def prior(self, use: Use = USES[0], workspace: Workspace | None = None) -> RowPrior:
        return self.engine.at(self.kernel, self.X, use, workspace)

    @property
    def name(self) -> str:
        return _name(self.engine)


def check_engine(
    engine: Engine,
    kernel: Kernel | None = None,
    *,
    n: int = 30,
    d: int = 2,
    rtol: float = 1e-8,
    probes: int = 8,
) -> None:
    """Raises AssertionError unless `engine` keeps the contract of an engine, on n random rows of d columns.

    `kernel`: one that suits it, where a Matern-5/2 kernel does not. `rtol`: how far its solves may be off; a
    little above its tolerance for a solver that has one. `probes`: how many random vectors stand behind its
    gradient of the log determinant, where that is an estimate (`engine.smooth` is False). An engine that
    approximates should do so here: give it fewer features than n.
    """
    kernel = 1.3 * Matern52(np.linspace(0.8, 1.3, d)) if kernel is None else kernel
    rng = np.random.default_rng(SEED)
    X = rng.uniform(-1.5, 1.5, (n, d))
    given = X.copy()
    prepared = _check_choices(engine, kernel, X)
    K = _check_products(prepared, kernel, X, rtol)
    case = Case(prepared, kernel, X, K, rtol, 0 if prepared.smooth else probes)
    D, R = rng.uniform(0.05, 0.5, n), rng.standard_normal((n, 2))
    for use in USES:
        _check_sites(case, use, D, R)
    _check_rows_not_observed(case, D, R)
    _check_sites_that_say_little(case, D, R)
    _check_curved_the_wrong_way(case, D, R)
    _check_without_noise(case, D, R)
    _check_memory(case, D, R)
    _check_pullback(case, D, R)
    _check_process(case, D, R)
    _check_cost(engine, d)
    require(np.array_equal(given, X), f"{case.name}: X was changed.")


def _name(engine: Engine) -> str:
    """Without the landmarks that a repr would have."""
    return f"{type(engine).__name__} ({engine.label})"


# Before any sites. ------------------------------------------------------------------------------------------


def _check_choices(engine: Engine, kernel: Kernel, X: Array) -> Engine:
    name = _name(engine)
    for what in ("name", "described", "label", "accuracy"):
        text = getattr(engine, what)
        require(isinstance(text, str) and bool(text), f"{name}: {what} is {text!r}, not a word for people.")
    engine.check_fits(kernel, X.shape[1])
    first, second = (engine.prepared(kernel, X, np.random.default_rng(7)) for _ in range(2))
    B = np.random.default_rng(1).standard_normal((len(X), 2))
    a, b = (one.at(kernel, X, Use()).times(B) for one in (first, second))
    require(np.array_equal(a, b), f"{name}: prepared(...) with the same seed makes other choices.")
    require(
        np.array_equal(first.free, second.free), f"{name}: `free` is another one with the same seed again."
    )
    require(
        np.array_equal(first.ready(kernel, X).at(kernel, X, Use()).times(B), a),
        f"{name}: ready() makes choices anew that were made.",
    )
    if first.free.size:
        moved = first.with_free(first.free)
        # free is in units of the columns' spread: there and back is a rounding or two
        alike(moved.free, first.free, 1e-12, f"{name}: with_free(free) has another `free`")
    return first


def _check_products(engine: Engine, kernel: Kernel, X: Array, rtol: float) -> Array:
    """K, as the engine has it."""
    name, n = _name(engine), len(X)
    B = np.random.default_rng(2).standard_normal((n, 3))
    given = B.copy()
    prior = engine.at(kernel, X, Use())
    K = prior.times(np.eye(n))
    require(K.shape == (n, n), f"{name}: times(B) for B of shape {(n, n)} has shape {K.shape}.")
    require(prior.times(B[:, 0]).shape == (n,), f"{name}: times(b) for b of shape (n,) has another shape.")
    # products in another order: n roundings
    alike(prior.times(B), K @ B, 1e-11, f"{name}: times is not linear")
    alike(prior.times(B[:, 0]), K @ B[:, 0], 1e-11, f"{name}: times(b) is not the column of times(B)")
    alike(K, K.T, 1e-11, f"{name}: K is not symmetric")
    lowest = float(np.linalg.eigvalsh(K)[0])
    require(lowest >= -1e-10 * float(np.trace(K)), f"{name}: K has the eigenvalue {lowest:.3g}.")
    for use in USES:
        again = engine.at(kernel, X, use).times(B)
        alike(again, K @ B, 1e-10, f"{name}: K depends on what it is for, {use}")
    if engine.exact:
        alike(K, kernel(X), 1e-12, f"{name}: it says that it is exact, but K is not the kernel's")
    outside = np.broadcast_to(engine.at(kernel, X, Use(whole=True)).outside, n)
    rest = kernel.diag(X) - np.diagonal(K)
    require(bool(np.all(outside >= 0)), f"{name}: `outside` has negative entries.")
    if np.any(outside):
        alike(outside, np.maximum(rest, 0.0), 1e-8, f"{name}: `outside` is not k(x, x) less K's diagonal")
    require(np.array_equal(given, B), f"{name}: times(B) changed B.")
    return 0.5 * (K + K.T)


# With sites. ------------------------------------------------------------------------------------------------


class Dense(NamedTuple):
    """What follows from K, D and r by dense algebra, at the rows with finite D."""

    S: Array  # (n, n)
    inverse: Array  # A^-1, zeros where not observed
    alpha: Array
    logdet: float
    logdet_noisy: float
    quad: Array

    @staticmethod
    def of(K: Array, D: Array, r: Array) -> Dense:
        seen = np.isfinite(D)
        A = K[np.ix_(seen, seen)] + np.diag(D[seen])
        inverse = np.zeros_like(K)
        inverse[np.ix_(seen, seen)] = np.linalg.inv(A)
        alpha = inverse @ np.where(seen[:, None], r, 0.0)
        logdet = float(np.linalg.slogdet(A)[1])
        with np.errstate(divide="ignore"):
            of_noise = float(np.sum(np.log(D[seen])))
        quad = np.sum(np.where(seen[:, None], r, 0.0) * alpha, axis=0)
        return Dense(K - K @ inverse @ K, inverse, alpha, logdet - of_noise, logdet, quad)


def _check_sites(case: Case, use: Use, D: Array, R: Array) -> None:
    """`observe` and `condition`, with one right-hand side and with several."""
    for r in (R[:, :1], R):
        given = D.copy(), r.copy()
        lam, h = 1 / D, r / D[:, None]
        also = lam.copy(), h.copy()
        wanted = Dense.of(case.K, D, r)
        _check_one(case, partial(_observed, case, use, D, r), wanted, f"observe, {use}")
        _check_one(case, partial(_conditioned, case, use, lam, h), wanted, f"condition, {use}")
        require(
            np.array_equal(given[0], D) and np.array_equal(given[1], r),
            f"{case.name}: observe(D, r) changed what it was given.",
        )
        require(
            np.array_equal(also[0], lam) and np.array_equal(also[1], h),
            f"{case.name}: condition(lam, h) changed what it was given.",
        )


def _observed(case: Case, use: Use, D: Array, r: Array) -> Conditioned:
    return case.prior(use).observe(D, r)


def _conditioned(case: Case, use: Use, lam: Array, h: Array) -> Conditioned:
    return case.prior(use).condition(lam, h)


def _check_one(case: Case, make: Callable[[], Conditioned], wanted: Dense, how: str) -> None:
    """All that a Conditioned tells. Some answers use a factor up, so that each question gets a fresh one."""
    one, what = make(), f"{case.name} ({how})"
    require(one.outcome.converged, f"{what}: it says that it did not converge: {one.outcome.note}")
    _check_moments(case, one, wanted, what)
    exact_logdet = 6 * one.logdet_error + case.rtol * max(1.0, len(case.X))
    for own, theirs, word in (
        (one.logdet, wanted.logdet, "logdet"),
        (one.logdet_noisy, wanted.logdet_noisy, "logdet_noisy"),
    ):
        require(
            abs(own - theirs) <= exact_logdet,
            f"{what}: {word} is {own:.12g}, but dense algebra has {theirs:.12g}.",
        )
    alike(one.quad, wanted.quad, 10 * case.rtol, f"{what}: quad")
    _check_spread(case, make, wanted, what)
    alike(make().precision(), np.diagonal(wanted.inverse), 10 * case.rtol, f"{what}: precision()")


def _check_moments(case: Case, one: Conditioned, wanted: Dense, what: str) -> None:
    alike(one.mean, case.K @ wanted.alpha, 10 * case.rtol, f"{what}: mean")
    alike(one.alpha, wanted.alpha, 10 * case.rtol, f"{what}: alpha")
    alike(one.var(), np.diagonal(wanted.S), 10 * case.rtol, f"{what}: var()")


def _check_spread(case: Case, make: Callable[[], Conditioned], wanted: Dense, what: str) -> None:
    B = np.random.default_rng(3).standard_normal((len(case.X), 3))
    given, one = B.copy(), make()
    alike(one.spread(B), wanted.S @ B, 10 * case.rtol, f"{what}: spread(B)")
    alike(one.spread(B[:, 0]), wanted.S @ B[:, 0], 10 * case.rtol, f"{what}: spread(b), b of shape (n,)")
    require(np.array_equal(given, B), f"{what}: spread(B) changed B.")
    alike(make().covariance(), wanted.S, 10 * case.rtol, f"{what}: covariance()")


def _check_rows_not_observed(case: Case, D: Array, R: Array) -> None:
    """D = inf is the same as having never had the row; lam = h = 0 says it again."""
    missing = np.arange(len(D)) % 5 == 2
    away, r = np.where(missing, np.inf, D), np.where(missing[:, None], 0.0, R)
    wanted = Dense.of(case.K, away, r)
    for use in USES:
        how = f"rows with D = inf, {use}"
        _check_one(case, partial(_observed, case, use, away, r), wanted, how)
        require(
            not np.any(case.prior(use).observe(away, r).alpha[missing]),
            f"{case.name} ({how}): alpha is not zero at rows that were not observed.",
        )


def _check_sites_that_say_little(case: Case, D: Array, R: Array) -> None:
    """lam = 0 with and without a slope h: what a rule of inference may propose for a row."""
    lam, h = 1 / D, R / D[:, None]
    lam[::4], h[::8] = 0.0, 0.0
    S = np.linalg.inv(np.eye(len(D)) + case.K * lam) @ case.K
    mean = S @ h
    one, what = case.prior(USES[1]).condition(lam, h), f"{case.name} (sites with lam = 0)"
    # An engine may put a least lam in its place, 1e-6 of 1 / k(x, x): so much it may be off.
    slack = max(10 * case.rtol, 1e-5 if case.probes else 0.0)
    alike(one.mean, mean, slack, f"{what}: mean")
    alike(one.alpha, h - lam[:, None] * mean, slack, f"{what}: alpha")
    alike(one.var(), np.diagonal(S), slack, f"{what}: var()")
    logdet = float(np.linalg.slogdet(np.eye(len(D)) + case.K * lam)[1])
    allowed = 6 * one.logdet_error + slack * len(D)
    require(
        abs(one.logdet - logdet) <= allowed,
        f"{what}: logdet is {one.logdet:.12g}, but dense algebra has {logdet:.12g}.",
    )


def _check_curved_the_wrong_way(case: Case, D: Array, R: Array) -> None:
    """lam < 0 at some rows, where the prior was told of it: the right answer, or a refusal."""
    lam, h = 1 / D, R / D[:, None]
    lam[::6] = -0.05 / np.max(np.diagonal(case.K))
    S = np.linalg.inv(np.eye(len(D)) + case.K * lam) @ case.K
    prior = case.prior(Use(again=True, signed=True))
    try:
        one = prior.condition(lam, h)
    except GramianError:
        return
    what = f"{case.name} (sites with lam < 0)"
    # through features of all rows: twice the condition number of K
    alike(one.mean, S @ h, max(10 * case.rtol, 1e-6), f"{what}: mean")
    alike(one.var(), np.diagonal(S), max(10 * case.rtol, 1e-6), f"{what}: var()")
    logdet = float(np.linalg.slogdet(np.eye(len(D)) + case.K * lam)[1])
    require(close(one.logdet, logdet, 1e-6), f"{what}: logdet is {one.logdet:.12g}, not {logdet:.12g}.")


def _check_without_noise(case: Case, D: Array, R: Array) -> None:
    """D = 0 at a row: what was observed there is so."""
    noise = D.copy()
    noise[4] = 0.0
    one = case.prior().observe(noise, R)
    gap = np.abs(one.mean[4] - R[4])
    # Where D is raised to the least noise that an engine's sums can tell apart, the mean is off by as much.
    require(
        bool(np.all(gap <= 1e-6 + 10 * case.rtol)),
        f"{case.name}: with D = 0 at a row its mean is off by {np.max(gap):.2g}.",
    )
    for what, values in (("alpha", one.alpha), ("var()", one.var()), ("quad", one.quad)):
        require(bool(np.all(np.isfinite(values))), f"{case.name}: with D = 0 at a row {what} is not finite.")
    require(bool(np.isfinite(one.logdet_noisy)), f"{case.name}: with D = 0 at a row logdet_noisy is not.")


def _check_memory(case: Case, D: Array, R: Array) -> None:
    """A workspace, and memory that was given back, change no number; mean and alpha outlive the release."""
    workspace, wanted = Workspace(), Dense.of(case.K, D, R)
    for use in USES:
        prior = case.prior(use, workspace)
        for factor in (1.0, 3.0, 1.0):
            one = prior.observe(factor * D, R)
            if factor == 1.0:
                _check_moments(case, one, wanted, f"{case.name} (sites again, {use})")
            alpha, mean = one.alpha.copy(), one.mean.copy()
            one.release()
            require(
                np.array_equal(one.alpha, alpha) and np.array_equal(one.mean, mean),
                f"{case.name}: alpha and mean are others after release().",
            )


# Gradients. -------------------------------------------------------------------------------------------------


class Slope(NamedTuple):
    """What a small step in one number does to K, and to what features leave out."""

    what: str
    K: Array
    outside: Array


def _slopes(case: Case, use: Use) -> Iterator[Slope]:
    """By each entry of each parameter; then by each entry of `free`."""
    for path, parameter in case.kernel.parameters().items():
        for index in np.ndindex(parameter.value.shape):
            size = max(abs(float(parameter.value[index])), 0.1)
            moved = partial(_with_parameter, case, use, path, index)
            yield _difference(f"{path}[{', '.join(map(str, index))}]", moved, STEP * size)
    for k in range(case.engine.free.size):
        yield _difference(f"free[{k}]", partial(_with_free, case, use, k), STEP)


def _with_parameter(case: Case, use: Use, path: str, index: tuple[int, ...], step: float) -> RowPrior:
    values = case.kernel.parameters()[path].value.copy()
    values[index] += step
    return case.engine.at(case.kernel.with_values({path: values}), case.X, use)


def _with_free(case: Case, use: Use, k: int, step: float) -> RowPrior:
    values = case.engine.free.copy()
    values[k] += step
    return case.engine.with_free(values).at(case.kernel, case.X, use)


def _difference(what: str, at: Callable[[float], RowPrior], h: float) -> Slope:
    K, outside = {}, {}
    for k in (-2, -1, 1, 2):
        prior = at(k * h)
        n = len(prior.X)
        K[k] = prior.times(np.eye(n))
        outside[k] = np.broadcast_to(prior.outside, n)
    by_K, by_outside = ((8 * (f[1] - f[-1]) - (f[2] - f[-2])) / (12 * h) for f in (K, outside))
    return Slope(what, by_K, by_outside)


def _check_pullback(case: Case, D: Array, R: Array) -> None:
    rng = np.random.default_rng(4)
    n = len(case.X)
    missing = np.arange(n) % 5 == 2
    away = np.where(missing, np.inf, D)
    even = np.full(n, 0.2)
    use = Use(back=True, whole=True)
    slopes = list(_slopes(case, use))
    weighs = any(np.any(slope.outside) for slope in slopes)
    a, u = rng.standard_normal((n, 2)), rng.standard_normal((n, 2))
    outside = -rng.uniform(0.5, 1.5, n) if weighs else None
    same = np.full(n, -0.7) if weighs else None
    for how, noise, right, alpha, extra, logdet, by_outside in (
        ("its own alpha", D, R, None, None, True, None),
        ("one noise for all rows", even, R, None, None, True, same),
        ("one right-hand side", even, R[:, :1], None, None, True, None),
        ("without the log determinant", D, R, None, None, False, None),
        ("another alpha", D, R, a, None, True, outside),
        ("u", D, R, None, u, True, None),
        ("another alpha and u alone", D, R, a, u, False, outside),
        ("rows with D = inf", away, np.where(missing[:, None], 0.0, R), None, None, True, None),
    ):
        what = f"{case.name}: pullback ({how})"
        wanted = Dense.of(case.K, noise, right)
        own = wanted.alpha if alpha is None else alpha
        q = own.shape[1]
        G = 0.5 * own @ own.T
        if logdet:
            G = G - 0.5 * q * wanted.inverse
        if extra is not None:
            G = G + 0.5 * (extra @ own.T + own @ extra.T)
        one = case.prior(use).observe(noise, right)
        found = one.pullback(alpha, extra, logdet=logdet, by_outside=by_outside)
        ours = _in_order(case.engine, found.by_kernel, found.by_points)
        require(len(ours) == len(slopes), f"{what}: {len(ours)} numbers for {len(slopes)} parameters.")
        for number, slope in zip(ours, slopes, strict=True):
            theirs = float(np.sum(G * slope.K))
            if by_outside is not None:
                theirs += float(by_outside @ slope.outside)
            size = float(np.sum(np.abs(G * slope.K)))
            allowed = max(100 * case.rtol, 1e-7) * max(size, 1e-3)
            allowed += _estimated(case, wanted.inverse, slope.K, q) if logdet else 0.0
            require(
                abs(number - theirs) <= allowed,
                f"{what}: the slope by {slope.what} is {number:.10g}, but differences of K give"
                f" {theirs:.10g}.",
            )
        if extra is None:
            trace = float(np.trace(wanted.inverse)) if logdet else 0.0
            level = 0.5 * np.sum(own**2, axis=0) - 0.5 * trace
            slack = _estimated(case, wanted.inverse, np.eye(n), 1) if logdet else 0.0
            size = 0.5 * float(np.max(np.sum(own**2, axis=0))) + 0.5 * trace
            require(
                found.by_level.shape == (q,)
                and bool(np.all(np.abs(found.by_level - level) <= 100 * case.rtol * size + slack)),
                f"{what}: by_level is {found.by_level}, but dense algebra has {level}.",
            )
    _check_several_terms(case, D, R)


def _check_several_terms(case: Case, D: Array, R: Array) -> None:
    """The gradient of a sum is the sum of the gradients."""
    use, parts = Use(again=True), []
    for k in range(2):
        one = case.prior(use).condition((k + 1) / D, R[:, [k]])
        parts.append(one.pullback())
    prior = case.prior(use)
    terms = [Term(prior.condition((k + 1) / D, R[:, [k]])) for k in range(2)]
    both = prior.pullback(terms)
    for j, ours in enumerate(both.by_kernel):
        theirs = parts[0].by_kernel[j] + parts[1].by_kernel[j]
        alike(np.atleast_1d(ours), np.atleast_1d(theirs), 1e-8, f"{case.name}: pullback of two terms")
    levels = np.concatenate([part.by_level for part in parts])
    alike(both.by_level, levels, 1e-8, f"{case.name}: by_level of two terms")


def _in_order(engine: Engine, by_kernel: list[Array], by_points: Array | None) -> Array:
    free = [] if by_points is None else [np.ravel(engine.free_gradient(by_points))]
    return np.concatenate([*(np.ravel(one) for one in by_kernel), *free])


def _estimated(case: Case, inverse: Array, dK: Array, q: int) -> float:
    """What random probes may be off by: 7 standard errors of q/2 tr(A^-1 dK) by z'Mz, var = 2 |M|^2 at most,
    which goes wrong once in 1e11; the seed is fixed besides."""
    if not case.probes:
        return 0.0
    M = inverse @ dK
    return 7 * 0.5 * q * float(np.linalg.norm(M + M.T) / np.sqrt(2 * case.probes))


# Processes. -------------------------------------------------------------------------------------------------


def _check_process(case: Case, D: Array, R: Array) -> None:
    """At new points f = m + s g, with g as the same sites at all points together have it: rows that were not
    observed are new points."""
    Z = np.concatenate([case.X[:3], case.X[:5] + 0.21])
    n = len(case.X)
    everywhere = case.engine.at(case.kernel, np.concatenate([case.X, Z]), Use(whole=True))
    K = everywhere.times(np.eye(n + len(Z)))
    rest = np.maximum(case.kernel.diag(Z) - np.diagonal(K)[n:], 0.0)
    missing = np.arange(n) % 5 == 2
    away = np.where(missing, np.inf, 2 * D)
    scale = np.array([2.0, 0.5])
    functions = GaussianProcess(case.kernel, ConstantMean(0.7), scale)
    for how, noises, groups in (
        ("one noise for both outputs", (D, D), [[0, 1]]),
        ("a noise for each output", (D, 2 * D), [[0], [1]]),
        ("some rows of one output not observed", (D, away), [[0], [1]]),
        ("some rows of both not observed", (away, away), [[0, 1]]),
    ):
        what, prior = f"{case.name}: process ({how})", case.prior()
        sited = [prior.observe(noises[ks[0]], _seen(noises[ks[0]], R[:, ks])) for ks in groups]
        process = prior.process(functions, sited, groups)
        mean, var = process.moments(Z)
        for k in range(2):
            noise = np.concatenate([noises[k], np.full(len(Z), np.inf)])
            r = np.concatenate([_seen(noises[k], R[:, [k]]), np.zeros((len(Z), 1))])
            dense = Dense.of(0.5 * (K + K.T), noise, r)
            g, v = (K @ dense.alpha)[n:, 0], np.diagonal(dense.S)[n:]
            alike(mean[:, k], 0.7 + scale[k] * g, 10 * case.rtol, f"{what}: the mean of output {k}")
            slack = 10 * case.rtol * float(np.max(np.diagonal(K)))
            own = var[:, k] / scale[k] ** 2
            # What K leaves out of k(x, x) may count at new points, where it is honest, or not.
            require(
                bool(np.all(own >= v - slack) and np.all(own <= v + rest + slack)),
                f"{what}: the variances of output {k} are {own}, not {v}"
                + (f" to {v + rest}." if np.any(rest > slack) else "."),
            )
        _check_contract(process, Z, how, what)


def _seen(D: Array, r: Array) -> Array:
    return np.where(np.isfinite(D)[:, None], r, 0.0)


def _check_contract(process: Process, Z: Array, how: str, what: str) -> None:
    if how.startswith("one noise"):  # draws take a while
        try:
            check_posterior(process, Z)
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from None


# Costs. -----------------------------------------------------------------------------------------------------


def _check_cost(engine: Engine, d: int) -> None:
    name, rows = _name(engine), (100, 1000, 10_000)
    for gradient in (True, False):
        works = [engine.work(n, d, 1, gradient) for n in rows]
        for what, sizes in (
            ("flops", [work.flops for work in works]),
            ("kernel values", [work.values + work.products for work in works]),
        ):
            require(0 <= sizes[0] < sizes[1] < sizes[2], f"{name}: its {what} do not grow with n: {sizes}.")
    for method in (engine.bytes_needed, engine.bytes_of_sites):
        sizes = [float(method(n, d, 1)) for n in rows]
        require(0 < sizes[0] < sizes[1] < sizes[2], f"{name}: its bytes do not grow with n: {sizes}.")
