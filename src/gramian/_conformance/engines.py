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

from gramian._conformance.helpers import Array, Subject, by_entries, slope
from gramian._conformance.inference import check_posterior
from gramian.engines.base import Conditioned, Engine, RowPrior, Term, Use, Workspace
from gramian.errors import GramianError
from gramian.kernels import Kernel, Matern52
from gramian.means import ConstantMean
from gramian.processes.prior import GaussianProcess

SEED = 20240229
DENSE = "dense algebra has"
STEP = 1e-3  # of a parameter: fourth-order differences are then right to 1e-10, and rounding adds 1e-12
USES = (Use(), Use(again=True), Use(back=True, whole=True), Use(again=True, whole=True))


class Case(NamedTuple):
    """An engine with its choices made, at some rows, and what it stands for there."""

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

    def subject(self, how: str = "") -> Subject:
        return _subject(self.engine, how)

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
    rng = np.random.default_rng(SEED)
    X = rng.uniform(-1.5, 1.5, (n, d))
    D, R = rng.uniform(0.05, 0.5, n), rng.standard_normal((n, 2))
    with _subject(engine).keeping(X, otherwise="X was changed."):
        prepared = _check_choices(engine, kernel, X)
        K = _check_products(prepared, kernel, X)
        case = Case(prepared, kernel, X, K, D, R, rtol, 0 if prepared.smooth else probes)
        _check_sites(case)
        _check_odd_sites(case)
        _check_without_noise(case)
        _check_memory(case)
        _check_pullback(case)
        _check_several_terms(case)
        _check_process(case)
        _check_cost(engine, d)


def _subject(engine: Engine, how: str = "") -> Subject:
    """Without the landmarks that a repr would have."""
    return Subject(f"{type(engine).__name__} ({engine.label})" + (f", {how}" if how else ""))


# Before any sites. ------------------------------------------------------------------------------------------


def _check_choices(engine: Engine, kernel: Kernel, X: Array) -> Engine:
    it = _subject(engine)
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


def _check_products(engine: Engine, kernel: Kernel, X: Array) -> Array:
    """K, as the engine has it."""
    it, n = _subject(engine), len(X)
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
        lowest = np.linalg.eigvalsh(K)[0]
        it.must(lowest >= -1e-10 * np.trace(K), f"K has the eigenvalue {lowest:.3g}.")
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
        alpha = inverse @ _seen(D, r)
        logdet = float(np.linalg.slogdet(A)[1])
        with np.errstate(divide="ignore"):
            of_noise = float(np.sum(np.log(D[seen])))
        quad = np.sum(_seen(D, r) * alpha, axis=0)
        return Dense(K - K @ inverse @ K, inverse, alpha, logdet - of_noise, logdet, quad)


def _seen(D: Array, r: Array) -> Array:
    return np.where(np.isfinite(D)[:, None], r, 0.0)


def _check_sites(case: Case) -> None:
    """`observe` and `condition`, with one right-hand side and with several; and D = inf, which is the same as
    having never had the row."""
    D, (away, r) = case.D, case.partly
    for use in USES:
        for R in (case.R[:, :1], case.R):
            wanted = Dense.of(case.K, D, R)
            _check_one(case, use, "observe", (D, R), wanted)
            _check_one(case, use, "condition", (1 / D, R / D[:, None]), wanted)
        _check_one(case, use, "observe", (away, r), Dense.of(case.K, away, r), "rows with D = inf, ")
        alpha = case.prior(use).observe(away, r).alpha
        case.subject(f"{use}").must(
            alpha[np.isinf(away)] == 0, "alpha is not zero at rows that were not observed (D = inf)."
        )


def _check_one(
    case: Case, use: Use, ask: str, sites: tuple[Array, Array], wanted: Dense, how: str = ""
) -> None:
    """All that a Conditioned tells. Some answers use a factor up, so that each question gets a fresh one."""

    def fresh() -> Conditioned:
        found: Conditioned = getattr(case.prior(use), ask)(*sites)
        return found

    it, rtol = case.subject(f"{how}{ask}, {use}"), 10 * case.rtol
    B = np.random.default_rng(3).standard_normal((len(case.X), 3))
    with it.keeping(*sites, otherwise=f"{ask} changed what it was given."):
        one = fresh()
        it.must(one.outcome.converged, f"it says that it did not converge: {one.outcome.note}")
        _check_moments(case, it, one, wanted)
        _check_logdet(case, it, one, one.logdet, wanted.logdet, "logdet")
        _check_logdet(case, it, one, one.logdet_noisy, wanted.logdet_noisy, "logdet_noisy")
        it.alike(one.quad, wanted.quad, rtol, "quad")
        one = fresh()
        with it.keeping(B, otherwise="spread(B) changed B."):
            it.alike(one.spread(B), wanted.S @ B, rtol, "spread(B)")
            it.alike(one.spread(B[:, 0]), wanted.S @ B[:, 0], rtol, "spread(b), b of shape (n,)")
        it.alike(fresh().covariance(), wanted.S, rtol, "covariance()")
        it.alike(fresh().precision(), np.diagonal(wanted.inverse), rtol, "precision()")


def _check_moments(case: Case, it: Subject, one: Conditioned, wanted: Dense) -> None:
    it.alike(one.mean, case.K @ wanted.alpha, 10 * case.rtol, "mean")
    it.alike(one.alpha, wanted.alpha, 10 * case.rtol, "alpha")
    it.alike(one.var(), np.diagonal(wanted.S), 10 * case.rtol, "var()")


def _check_logdet(
    case: Case, it: Subject, one: Conditioned, own: float, theirs: float, what: str, rtol: float = 0.0
) -> None:
    allowed = 6 * one.logdet_error + max(rtol, case.rtol) * len(case.X)
    it.within(own, theirs, allowed, what, DENSE)


def _check_odd_sites(case: Case) -> None:
    """lam = 0 with and without a slope h: what a rule of inference may propose for a row. And lam < 0 at some
    rows, where the prior was told of it: the right answer, or a refusal."""
    lam, h = 1 / case.D, case.R / case.D[:, None]
    little, slopes, wrong = lam.copy(), h.copy(), lam.copy()
    little[::4], slopes[::8], wrong[::6] = 0.0, 0.0, -0.05 / np.max(np.diagonal(case.K))
    # An engine may put a least lam in the place of 0, 1e-6 of 1 / k(x, x): so much it may be off.
    least = 1e-5 if case.probes else 0.0
    _check_lam(case, "lam = 0", case.prior(USES[1]).condition(little, slopes), little, slopes, least)
    try:
        one = case.prior(Use(again=True, signed=True)).condition(wrong, h)
    except GramianError:
        return
    _check_lam(case, "lam < 0", one, wrong, h, 1e-6)  # through features of all rows: twice K's condition


def _check_lam(case: Case, how: str, one: Conditioned, lam: Array, h: Array, least: float) -> None:
    it, rtol = case.subject(f"sites with {how}"), max(10 * case.rtol, least)
    B = np.eye(len(lam)) + case.K * lam
    S = np.linalg.inv(B) @ case.K
    mean = S @ h
    it.alike(one.mean, mean, rtol, "mean")
    it.alike(one.alpha, h - lam[:, None] * mean, rtol, "alpha")
    it.alike(one.var(), np.diagonal(S), rtol, "var()")
    _check_logdet(case, it, one, one.logdet, float(np.linalg.slogdet(B)[1]), "logdet", rtol)


def _check_without_noise(case: Case) -> None:
    """D = 0 at a row: what was observed there is so."""
    noise = case.D.copy()
    noise[4] = 0.0
    it, one = case.subject("D = 0 at a row"), case.prior().observe(noise, case.R)
    gap = np.max(np.abs(one.mean[4] - case.R[4]))
    # Where D is raised to the least noise that an engine's sums can tell apart, the mean is off by as much.
    it.must(gap <= 1e-6 + 10 * case.rtol, f"its mean is off by {gap:.2g}.")
    for what in ("alpha", "quad", "logdet_noisy"):
        it.finite(getattr(one, what), what)
    it.finite(one.var(), "var()")


def _check_memory(case: Case) -> None:
    """A workspace, and memory that was given back, change no number; mean and alpha outlive the release."""
    workspace, wanted = Workspace(), Dense.of(case.K, case.D, case.R)
    for use in USES:
        prior, it = case.prior(use, workspace), case.subject(f"sites again, {use}")
        for factor in (1.0, 3.0, 1.0):
            one = prior.observe(factor * case.D, case.R)
            if factor == 1.0:
                _check_moments(case, it, one, wanted)
            alpha, mean = one.alpha.copy(), one.mean.copy()
            one.release()
            same = np.array_equal(one.alpha, alpha) and np.array_equal(one.mean, mean)
            it.must(same, "alpha and mean are others after release().")


# Gradients. -------------------------------------------------------------------------------------------------


class Slope(NamedTuple):
    """What a small step in one number does to K, and to what features leave out."""

    what: str
    K: Array
    outside: Array


def _slopes(case: Case, use: Use) -> Iterator[Slope]:
    """By each entry of each parameter; then by each entry of `free`."""

    engine, free = case.engine, case.engine.free

    def both(engine: Engine, kernel: Kernel) -> Array:
        prior, n = engine.at(kernel, case.X, use), len(case.X)
        return np.column_stack([prior.times(np.eye(n)), np.broadcast_to(prior.outside, n)])

    for path, index, by in by_entries(partial(both, engine), case.kernel, STEP):
        yield Slope(f"{path}[{', '.join(map(str, index))}]", by[:, :-1], by[:, -1])
    for k, unit in enumerate(np.eye(free.size)):
        by = slope(lambda free: both(engine.with_free(free), case.kernel), STEP, free, unit)
        yield Slope(f"free[{k}]", by[:, :-1], by[:, -1])


def _check_pullback(case: Case) -> None:
    rng, n, (away, seen), D, R = np.random.default_rng(4), len(case.X), case.partly, case.D, case.R
    even, use = np.full(n, 0.2), Use(back=True, whole=True)
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
        ("rows with D = inf", away, seen, None, None, True, None),
    ):
        it = case.subject(f"pullback ({how})")
        wanted = Dense.of(case.K, noise, right)
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
        for number, by in zip(ours, slopes, strict=True):
            theirs = np.sum(G * by.K) + (0.0 if by_outside is None else by_outside @ by.outside)
            allowed = max(100 * case.rtol, 1e-7) * max(np.sum(np.abs(G * by.K)), 1e-3)
            allowed += _estimated(case, inverse, by.K, q)
            it.within(number, theirs, allowed, f"the slope by {by.what}", "differences of K give")
        if extra is None:
            it.shaped(found.by_level, (q,), "by_level")
            squares, trace = 0.5 * np.sum(own**2, axis=0), 0.5 * np.trace(inverse)
            allowed = 100 * case.rtol * (np.max(squares) + trace) + _estimated(case, inverse, np.eye(n), 1)
            it.within(found.by_level, squares - trace, allowed, "by_level", DENSE)


def _check_several_terms(case: Case) -> None:
    """The gradient of a sum is the sum of the gradients."""
    prior, it = case.prior(Use(again=True)), case.subject("pullback of two terms")
    sites = [((k + 1) / case.D, case.R[:, [k]]) for k in range(2)]
    parts = [case.prior(Use(again=True)).condition(*one).pullback() for one in sites]
    both = prior.pullback([Term(prior.condition(*one)) for one in sites])
    for ours, *theirs in zip(both.by_kernel, *(part.by_kernel for part in parts), strict=True):
        it.alike(np.atleast_1d(ours), np.atleast_1d(sum(theirs)), 1e-8, "by_kernel")
    it.alike(both.by_level, np.concatenate([part.by_level for part in parts]), 1e-8, "by_level")


def _estimated(case: Case, inverse: Array, dK: Array, q: int) -> float:
    """What random probes may be off by: 7 standard errors of q/2 tr(A^-1 dK) by z'Mz, var = 2 |M|^2 at most,
    which goes wrong once in 1e11; the seed is fixed besides."""
    M = inverse @ dK
    return 7 * 0.5 * q * float(np.linalg.norm(M + M.T) / np.sqrt(2 * case.probes)) if case.probes else 0.0


# Processes. -------------------------------------------------------------------------------------------------


def _check_process(case: Case) -> None:
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
        it, prior = case.subject(f"process ({how})"), case.prior()
        sited = [prior.observe(noises[ks[0]], _seen(noises[ks[0]], case.R[:, ks])) for ks in groups]
        process = prior.process(functions, sited, groups)
        mean, var = process.moments(Z)
        for k in range(2):
            noise = np.concatenate([noises[k], np.full(len(Z), np.inf)])
            r = np.concatenate([case.R[:, [k]], np.zeros((len(Z), 1))])
            dense = Dense.of(0.5 * (K + K.T), noise, r)
            g, v = (K @ dense.alpha)[n:, 0], np.diagonal(dense.S)[n:]
            it.alike(mean[:, k], 0.7 + scale[k] * g, 10 * case.rtol, f"the mean of output {k}")
            slack = 10 * case.rtol * np.max(np.diagonal(K))
            own = var[:, k] / scale[k] ** 2
            # What K leaves out of k(x, x) may count at new points, where it is honest, or not.
            it.must(
                (own >= v - slack) & (own <= v + rest + slack),
                f"the variances of output {k} are {own}, not {v} to {v + rest}.",
            )
        if how.startswith("one noise"):  # draws take a while
            try:
                check_posterior(process, Z)
            except AssertionError as error:
                raise AssertionError(f"{it.name}: {error}") from None


# Costs. -----------------------------------------------------------------------------------------------------


def _check_cost(engine: Engine, d: int) -> None:
    it, rows = _subject(engine), (100, 1000, 10_000)
    for gradient in (True, False):
        works = [engine.work(n, d, 1, gradient) for n in rows]
        it.grows([work.flops for work in works], "its flops do")
        it.grows([work.values + work.products for work in works], "its kernel values do")
    for method in (engine.bytes_needed, engine.bytes_of_sites):
        it.grows([method(n, d, 1) for n in rows], "its bytes do")
