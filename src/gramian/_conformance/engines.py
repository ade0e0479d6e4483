"""What an engine promises: K at the rows, and Gaussian sites on it.

Everything is held against dense algebra with the K that the engine stands for: the kernel's own where it says
`exact`, else times(I). Slopes of K are differences of fourth order, so that the gradient of an evidence is
checked against sum(G * dK) with the weights G written out; no second derivative, no search, no sampling.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from gramian._conformance.helpers import Subject, by_entries, slope
from gramian._conformance.inference import check_moments_and_draws
from gramian.arrays import Array
from gramian.engines.base import Conditioned, Engine, RowPrior, Term, Use, Workspace
from gramian.errors import GramianError
from gramian.kernels import Kernel, Matern52
from gramian.means import ConstantMean
from gramian.processes.prior import GaussianProcess

DENSE = "dense algebra has"
STEP = 1e-3  # of a parameter: fourth-order differences are then right to 1e-10, and rounding adds 1e-12
USES = (Use(), Use(again=True), Use(back=True, whole=True), Use(again=True, whole=True))


class EngineCase(NamedTuple):
    """An engine with its choices made, at some rows, and what it stands for there."""

    it: Subject
    engine: Engine
    kernel: Kernel
    X: Array  # (n, d)
    K: Array  # (n, n)
    D: Array  # (n,) noise
    R: Array  # (n, 2) right-hand sides
    rtol: float
    probes: int  # of its log determinant's gradient; 0: no estimate

    def prior(self, use: Use = USES[0], workspace: Workspace | None = None) -> RowPrior:
        return self.engine.at(self.kernel, self.X, use, workspace)

    @property
    def partly(self) -> tuple[Array, Array]:
        """D and R with some rows that were not observed."""
        missing = np.arange(len(self.D)) % 5 == 2
        return np.where(missing, np.inf, self.D), np.where(missing[:, None], 0.0, self.R)


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
    rng = np.random.default_rng(20240229)
    X = rng.uniform(-1.5, 1.5, (n, d))
    D, R = rng.uniform(0.05, 0.5, n), rng.standard_normal((n, 2))
    it = Subject(f"{type(engine).__name__} ({engine.label})")  # without the landmarks that a repr would have
    with it.keeping(X, otherwise="X was changed."):
        prepared = _check_choices(it, engine, kernel, X)
        K = _check_products(it, prepared, kernel, X)
        case = EngineCase(it, prepared, kernel, X, K, D, R, rtol, 0 if prepared.smooth else probes)
        _check_sites(case)
        _check_odd_sites(case)
        _check_without_noise(case)
        _check_memory(case)
        _check_pullback(case)
        _check_several_terms(case)
        _check_process(case)
        _check_cost(it, engine, d)


# Before any sites. ------------------------------------------------------------------------------------------


def _check_choices(it: Subject, engine: Engine, kernel: Kernel, X: Array) -> Engine:
    for what in ("name", "described", "label", "accuracy"):
        text = getattr(engine, what)
        it.must(isinstance(text, str) and text != "", f"{what} is {text!r}, not a word for people.")
    engine.check_fits(kernel, X.shape[1])
    first, second = (engine.prepared(kernel, X, np.random.default_rng(7)) for _ in range(2))
    B = np.random.default_rng(1).standard_normal((len(X), 2))
    a, b, c = (one.at(kernel, X, Use()).times(B) for one in (first, second, first.ready(kernel, X)))
    it.must(np.array_equal(a, b), "prepared(...) with the same seed makes other choices.")
    it.must(np.array_equal(first.free, second.free), "`free` is another one with the same seed again.")
    it.must(np.array_equal(a, c), "ready() makes choices anew that were made.")
    if first.free.size:
        # free is in units of the columns' spread: there and back is a rounding or two
        it.alike(first.with_free(first.free).free, first.free, 1e-12, "with_free(free) has another `free`")
    return first


def _check_products(it: Subject, engine: Engine, kernel: Kernel, X: Array) -> Array:
    """K, as the engine has it."""
    n = len(X)
    B = np.random.default_rng(2).standard_normal((n, 3))
    with it.keeping(B, otherwise="times(B) changed B."):
        prior = engine.at(kernel, X, Use())
        K = prior.times(np.eye(n))
        it.shaped(K, (n, n), "times(I)")
        it.must(prior.times(B[:, 0]).shape == (n,), "times(b) for b of shape (n,) has another shape.")
        # products in another order: n roundings
        it.alike(prior.times(B), K @ B, 1e-11, "times is not linear")
        it.alike(prior.times(B[:, 0]), K @ B[:, 0], 1e-11, "times(b) is not the column of times(B)")
        it.alike(K, K.T, 1e-11, "K is not symmetric")
        it.semidefinite(K, 1e-10 * np.trace(K), "K")
        for use in USES:
            again = engine.at(kernel, X, use).times(B)
            it.alike(again, K @ B, 1e-10, f"K depends on what it is for, {use}")
    if engine.exact:
        it.alike(K, kernel(X), 1e-12, "it says that it is exact, but K is not the kernel's")
    outside = np.broadcast_to(engine.at(kernel, X, Use(whole=True)).outside, n)
    it.must(outside >= 0, "`outside` has negative entries.")
    if np.any(outside):
        rest = np.maximum(kernel.diag(X) - np.diagonal(K), 0.0)
        it.alike(outside, rest, 1e-8, "`outside` is not k(x, x) less K's diagonal")
    return 0.5 * (K + K.T)


# With sites. ------------------------------------------------------------------------------------------------


class Dense(NamedTuple):
    """What follows from K and sites by dense algebra."""

    mean: Array
    S: Array  # (I + K Lam)^-1 K
    alpha: Array
    inverse: Array  # (K + D)^-1 = Lam - Lam S Lam
    logdet: float

    @staticmethod
    def of(K: Array, lam: Array, h: Array) -> Dense:
        B = np.eye(len(lam)) + K * lam
        S = np.linalg.inv(B) @ K
        mean, inverse = S @ h, np.diag(lam) - lam[:, None] * S * lam
        return Dense(mean, S, h - lam[:, None] * mean, inverse, float(np.linalg.slogdet(B)[1]))

    @staticmethod
    def observed(K: Array, D: Array, r: Array) -> Dense:
        return Dense.of(K, 1 / D, r / D[:, None])


def _check_sites(case: EngineCase) -> None:
    """`observe` and `condition`, with one right-hand side and several; D = inf is not having had the row."""
    for use in USES:
        for R in (case.R[:, :1], case.R):
            _check_one(case, "observe", use, case.D, R)
            _check_one(case, "condition", use, case.D, R)
        _check_one(case, "observe", use, *case.partly)


def _check_one(case: EngineCase, ask: str, use: Use, D: Array, r: Array) -> None:
    """All that a Conditioned tells. Some answers use a factor up, so that each question gets a fresh one."""
    sites = (D, r) if ask == "observe" else (1 / D, r / D[:, None])

    def fresh() -> Conditioned:
        found: Conditioned = getattr(case.prior(use), ask)(*sites)
        return found

    seen, wanted, rtol = np.isfinite(D), Dense.observed(case.K, D, r), 10 * case.rtol
    it = case.it.about(f"{ask}, {use}" if np.all(seen) else f"rows with D = inf, {use}")
    B = np.random.default_rng(3).standard_normal((len(D), 3))
    with it.keeping(*sites, otherwise=f"{ask} changed what it was given."):
        one = fresh()
        it.must(one.outcome.converged, f"it says that it did not converge: {one.outcome.note}")
        _check_moments(it, one, wanted, rtol)
        it.must(one.alpha[~seen] == 0, "alpha is not zero at rows that were not observed.")
        allowed = 6 * one.logdet_error + case.rtol * len(D)
        it.within(one.logdet, wanted.logdet, allowed, "logdet", DENSE)
        noisy = wanted.logdet + np.sum(np.log(D[seen]))
        it.within(one.logdet_noisy, noisy, allowed, "logdet_noisy", DENSE)
        it.alike(one.quad, np.sum(r * wanted.alpha, axis=0), rtol, "quad")
        one = fresh()
        with it.keeping(B, otherwise="spread(B) changed B."):
            it.alike(one.spread(B), wanted.S @ B, rtol, "spread(B)")
            it.alike(one.spread(B[:, 0]), wanted.S @ B[:, 0], rtol, "spread(b), b of shape (n,)")
        it.alike(fresh().covariance(), wanted.S, rtol, "covariance()")
        it.alike(fresh().precision(), np.diagonal(wanted.inverse), rtol, "precision()")


def _check_moments(it: Subject, one: Conditioned, wanted: Dense, rtol: float) -> None:
    it.alike(one.mean, wanted.mean, rtol, "mean")
    it.alike(one.alpha, wanted.alpha, rtol, "alpha")
    it.alike(one.var(), np.diagonal(wanted.S), rtol, "var()")


def _check_odd_sites(case: EngineCase) -> None:
    """lam = 0 with and without a slope h: what a rule of inference may propose for a row. And lam < 0 at some
    rows, where the prior was told of it: the right answer, or a refusal."""
    # An engine may put a least lam in the place of 0, 1e-6 of 1 / k(x, x): so much it may be off. Sites of
    # both signs go through features of all rows: twice the condition number of K.
    least = 1e-5 if case.probes else 0.0
    for how, rtol, use in (("lam = 0", least, USES[1]), ("lam < 0", 1e-6, Use(again=True, signed=True))):
        lam, h = 1 / case.D, case.R / case.D[:, None]
        if use.signed:
            lam[::6] = -0.05 / np.max(np.diagonal(case.K))
        else:
            lam[::4], h[::8] = 0.0, 0.0
        it, wanted = case.it.about(f"sites with {how}"), Dense.of(case.K, lam, h)
        rtol = max(10 * case.rtol, rtol)
        try:
            one = case.prior(use).condition(lam, h)
        except GramianError as error:
            it.must(use.signed, f"they are refused: {error}")
            continue
        _check_moments(it, one, wanted, rtol)
        it.within(one.logdet, wanted.logdet, 6 * one.logdet_error + rtol * len(lam), "logdet", DENSE)


def _check_without_noise(case: EngineCase) -> None:
    """D = 0 at a row: what was observed there is so."""
    noise = case.D.copy()
    noise[4] = 0.0
    it, one = case.it.about("D = 0 at a row"), case.prior().observe(noise, case.R)
    gap = np.max(np.abs(one.mean[4] - case.R[4]))
    # Where D is raised to the least noise that an engine's sums can tell apart, the mean is off by as much.
    it.must(gap <= 1e-6 + 10 * case.rtol, f"its mean is off by {gap:.2g}.")
    for what in ("alpha", "quad", "logdet_noisy"):
        it.finite(getattr(one, what), what)
    it.finite(one.var(), "var()")


def _check_memory(case: EngineCase) -> None:
    """A workspace, and memory that was given back, change no number; mean and alpha outlive the release."""
    workspace, wanted = Workspace(), Dense.observed(case.K, case.D, case.R)
    for use in USES:
        prior, it = case.prior(use, workspace), case.it.about(f"sites again, {use}")
        for factor in (1.0, 3.0, 1.0):
            one = prior.observe(factor * case.D, case.R)
            if factor == 1.0:
                _check_moments(it, one, wanted, 10 * case.rtol)
            alpha, mean = one.alpha.copy(), one.mean.copy()
            one.release()
            same = np.array_equal(one.alpha, alpha) and np.array_equal(one.mean, mean)
            it.must(same, "alpha and mean are others after release().")


# Gradients. -------------------------------------------------------------------------------------------------


def _slopes(case: EngineCase, use: Use) -> Iterator[tuple[str, Array, Array]]:
    """What a small step does to K, and to what features leave out: in each entry of each parameter, then of
    `free`."""
    engine, free = case.engine, case.engine.free

    def both(engine: Engine, kernel: Kernel) -> Array:
        prior, n = engine.at(kernel, case.X, use), len(case.X)
        return np.column_stack([prior.times(np.eye(n)), np.broadcast_to(prior.outside, n)])

    for path, index, by in by_entries(partial(both, engine), case.kernel, STEP):
        yield (f"{path}[{', '.join(map(str, index))}]", by[:, :-1], by[:, -1])
    for k, unit in enumerate(np.eye(free.size)):
        by = slope(lambda free: both(engine.with_free(free), case.kernel), STEP, free, unit)
        yield (f"free[{k}]", by[:, :-1], by[:, -1])


def _check_pullback(case: EngineCase) -> None:
    rng, n, (away, seen), D, R = np.random.default_rng(4), len(case.X), case.partly, case.D, case.R
    even, use = np.full(n, 0.2), Use(back=True, whole=True)
    slopes = list(_slopes(case, use))
    weighs = any(np.any(outside) for _, _, outside in slopes)
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
        ("rows with D = inf", away, seen, None, None, True, None),
    ):
        it = case.it.about(f"pullback ({how})")
        wanted = Dense.observed(case.K, noise, right)
        own = wanted.alpha if alpha is None else alpha
        q = own.shape[1]
        inverse = wanted.inverse if logdet else np.zeros_like(case.K)
        G = 0.5 * own @ own.T - 0.5 * q * inverse
        if extra is not None:
            G = G + 0.5 * (extra @ own.T + own @ extra.T)
        one = case.prior(use).observe(noise, right)
        found = one.pullback(alpha, extra, logdet=logdet, by_outside=by_outside)
        free = [] if found.by_points is None else [case.engine.free_gradient(found.by_points)]
        ours = np.concatenate([np.ravel(part) for part in (*found.by_kernel, *free)])
        it.must(len(ours) == len(slopes), f"{len(ours)} numbers for {len(slopes)} parameters.")
        for number, (what, dK, d_outside) in zip(ours, slopes, strict=True):
            theirs = np.sum(G * dK) + (0.0 if by_outside is None else by_outside @ d_outside)
            allowed = max(100 * case.rtol, 1e-7) * max(np.sum(np.abs(G * dK)), 1e-3)
            allowed += _estimated(case, inverse, dK, q)
            it.within(number, theirs, allowed, f"the slope by {what}", "differences of K give")
        if extra is None:
            it.shaped(found.by_level, (q,), "by_level")
            squares, trace = 0.5 * np.sum(own**2, axis=0), 0.5 * np.trace(inverse)
            allowed = 100 * case.rtol * (np.max(squares) + trace) + _estimated(case, inverse, np.eye(n), 1)
            it.within(found.by_level, squares - trace, allowed, "by_level", DENSE)


def _check_several_terms(case: EngineCase) -> None:
    """The gradient of a sum is the sum of the gradients."""
    prior, it = case.prior(Use(again=True)), case.it.about("pullback of two terms")
    sites = [((k + 1) / case.D, case.R[:, [k]]) for k in range(2)]
    parts = [case.prior(Use(again=True)).condition(*one).pullback() for one in sites]
    both = prior.pullback([Term(prior.condition(*one)) for one in sites])
    for ours, *theirs in zip(both.by_kernel, *(part.by_kernel for part in parts), strict=True):
        it.alike(np.atleast_1d(ours), np.atleast_1d(sum(theirs)), 1e-8, "by_kernel")
    it.alike(both.by_level, np.concatenate([part.by_level for part in parts]), 1e-8, "by_level")


def _estimated(case: EngineCase, inverse: Array, dK: Array, q: int) -> float:
    """What random probes may be off by: 7 standard errors of q/2 tr(A^-1 dK) by z'Mz, var = 2 |M|^2 at most,
    which goes wrong once in 1e11; the seed is fixed besides."""
    M = inverse @ dK
    return 7 * 0.5 * q * float(np.linalg.norm(M + M.T) / np.sqrt(2 * case.probes)) if case.probes else 0.0


# Processes. -------------------------------------------------------------------------------------------------


def _check_process(case: EngineCase) -> None:
    """At new points f = m + s g, with g as the same sites at all points together have it: rows that were not
    observed are new points."""
    Z, n, D = np.concatenate([case.X[:3], case.X[:5] + 0.21]), len(case.X), case.D
    everywhere = case.engine.at(case.kernel, np.concatenate([case.X, Z]), Use(whole=True))
    K = everywhere.times(np.eye(n + len(Z)))
    rest = np.maximum(case.kernel.diag(Z) - np.diagonal(K)[n:], 0.0)
    away = 2 * case.partly[0]
    scale = np.array([2.0, 0.5])
    functions = GaussianProcess(case.kernel, ConstantMean(0.7), scale)
    for how, noises, groups in (
        ("one noise for both outputs", (D, D), [[0, 1]]),
        ("a noise for each output", (D, 2 * D), [[0], [1]]),
        ("some rows of one output not observed", (D, away), [[0], [1]]),
        ("some rows of both not observed", (away, away), [[0, 1]]),
    ):
        it, prior = case.it.about(f"process ({how})"), case.prior()
        right = np.where(np.isfinite(noises).T, case.R, 0.0)
        sited = [prior.observe(noises[ks[0]], right[:, ks]) for ks in groups]
        process = prior.process(functions, sited, groups)
        mean, var = process.moments(Z)
        for k in range(2):
            noise = np.concatenate([noises[k], np.full(len(Z), np.inf)])
            r = np.concatenate([case.R[:, [k]], np.zeros((len(Z), 1))])
            dense = Dense.observed(0.5 * (K + K.T), noise, r)
            g, v = dense.mean[n:, 0], np.diagonal(dense.S)[n:]
            it.alike(mean[:, k], 0.7 + scale[k] * g, 10 * case.rtol, f"the mean of output {k}")
            slack = 10 * case.rtol * np.max(np.diagonal(K))
            own = var[:, k] / scale[k] ** 2
            # What K leaves out of k(x, x) may count at new points, where it is honest, or not.
            possible = (own >= v - slack) & (own <= v + rest + slack)
            it.must(possible, f"the variances of output {k} are {own}, not {v} to {v + rest}.")
        if how.startswith("one noise"):  # draws take a while
            check_moments_and_draws(it, process, Z)


# Costs. -----------------------------------------------------------------------------------------------------


def _check_cost(it: Subject, engine: Engine, d: int) -> None:
    rows = (100, 1000, 10_000)
    for gradient in (True, False):
        works = [engine.work(n, d, 1, gradient) for n in rows]
        it.grows([work.flops for work in works], "its flops do")
        it.grows([work.values + work.products for work in works], "its kernel values do")
    for method in (engine.bytes_needed, engine.bytes_of_sites):
        it.grows([method(n, d, 1) for n in rows], "its bytes do")
