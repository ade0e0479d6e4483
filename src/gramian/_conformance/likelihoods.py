"""What a likelihood promises."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from gramian._conformance.helpers import Subject
from gramian.arrays import Array
from gramian.errors import InputError, ParameterError
from gramian.likelihoods import Likelihood

ROUNDINGS = 2  # eps by which log p may be off: four operations of half an eps each
THIN = 17  # nodes of the reference's 0.006 standard deviations to a step of the library's 0.1
ROUGH = 1e-3  # of the largest value: what a kink in log p may cost a quadrature


def check_likelihood(likelihood: Likelihood, y: Any = None, *, outcomes: Any = None) -> None:
    """Raises AssertionError unless `likelihood` keeps the contract of a likelihood.

    `y` (n,), or (n, columns) where it has several: observations to check it on, where standard normal numbers
    (with the defaults of the columns beside them) do not suit it. `outcomes`: all values that y, or its first
    column, can take, where it is discrete (so many that the rest has no probability, where there is no end to
    them); those that are not possible beside some row's other columns have the probability 0 there.
    """
    it, latents = Subject(type(likelihood).__name__), likelihood.latents
    rng = np.random.default_rng(20240229)
    if y is None:
        y = rng.standard_normal(6) if outcomes is None else outcomes
    _check_columns(it, likelihood)
    y = np.asarray(y, dtype=np.float64)
    y = likelihood.with_defaults(y) if y.ndim == 1 else y
    columns = ", ".join(likelihood.columns)
    fits = y.size == len(y) * len(likelihood.columns)
    it.must(fits, f"it has the columns {columns}, but the y to check it on {y.shape}.")
    _check_kind(it, likelihood, y)
    grid = np.meshgrid(np.arange(len(y)), [-1.2, 0.1, 0.9], [0.0, 0.3, 1.5], indexing="ij")
    at, mean, var = map(np.ravel, grid)
    y = y[at]
    if latents > 1:
        mean = mean[:, None] * rng.uniform(-1, 1, (len(y), latents))
        var = var[:, None] * rng.uniform(0.5, 1.0, (len(y), latents))
    bare = likelihood.bare()
    with jax.enable_x64(True):
        log_prob = _run(bare, "log_prob", y, mean)
        it.shaped(log_prob, y.shape[:1], f"log_prob of {y.shape} observations")
        it.must(~np.isnan(log_prob), "log_prob gives NaN.")
        singly = np.array([float(_run(bare, "log_prob", a, b)) for a, b in zip(y, mean, strict=True)])
        it.alike(log_prob, singly, 1e-12, "log_prob of an array is not log_prob of each entry")
        _check_total(it, bare, y, outcomes)
        if likelihood.smooth:
            _check_derivatives(it, bare, y, mean)
        _check_expectations(it, bare, y, mean, var)
        few = slice(None, None, max(1, len(mean) // 6))
        try:
            given = _run(bare, "conditional_moments", mean[few], *_beside(y[few]))
        except ParameterError:
            given = None
        else:
            _check_given(it, bare, outcomes, y[few], mean[few], *given)
            _check_moments(it, bare, y, mean, var)
        _check_draws(it, likelihood, outcomes, y[few], mean[few], given)


def _check_columns(it: Subject, likelihood: Likelihood) -> None:
    columns = likelihood.columns
    good = isinstance(columns, tuple) and len(columns) > 0 and all(isinstance(c, str) for c in columns)
    it.must(good and len(set(columns)) == len(columns), f"columns is {columns!r}, not different names.")
    unknown = [column for column in likelihood.column_defaults if column not in columns[1:]]
    after = f"but the columns after the first are {columns[1:]}"
    it.must(not unknown, f"column_defaults has {unknown}, {after}.")


def _check_kind(it: Subject, likelihood: Likelihood, y: Array) -> None:
    """What it says of itself: scales, checks of y, and where fitting starts."""
    latents, scales = likelihood.latents, likelihood.scales(3.0)
    it.shaped(scales, (latents,), "scales(3)")
    it.must(np.isfinite(scales) & (scales > 0), f"scales(3) is {scales}, not of positive numbers.")
    it.must(np.array_equal(likelihood.checked(y.copy()), y), "checked(y) changed y.")
    if type(likelihood).checked is not Likelihood.checked:
        impossible = y[:1].copy()
        impossible.reshape(1, -1)[:, 0] = np.nan
        try:
            likelihood.checked(np.concatenate([y, impossible]), "the target")
        except InputError as error:
            named = f"row {len(y)}" in str(error) and "the target" in str(error)
            it.must(named, f"checked(y) does not name what and the row: {error}")
        else:
            it.must(False, "checked(y) lets NaN pass.")
    begun, start = likelihood.started(y)
    it.must(type(begun) is type(likelihood), f"started(y) gives a {type(begun).__name__}.")
    it.shaped(start, (latents,), "started(y), where the latents start,")
    it.finite(start, "started(y), where the latents start,")


def _check_derivatives(it: Subject, bare: Any, y: Array, f: Array) -> None:
    """Against four-point differences. Their truncation, h^4 of a fifth or sixth derivative, is far below the
    relative tolerances. Their rounding is not where |log p| is large or the derivative small: each log p is
    off by some eps of itself, of 1 (the terms it is made of) and, as f + h rounds too, of f times the slope;
    and the weights of the differences add up to 18 / 12 h and 64 / 12 h^2."""
    first, second = _run(bare, "derivatives", y, f)
    it.shaped(first, f.shape, "the first of derivatives")
    it.shaped(second, f.shape, "the second of derivatives")
    h = 1e-4
    for k in range(bare.latents):
        at = (Ellipsis, k) if bare.latents > 1 else (Ellipsis,)
        step = np.zeros_like(f)
        step[at] = h
        v = [_log_prob(bare, y, f + j * step) for j in (-2, -1, 0, 1, 2)]
        slope = (v[0] - 8 * v[1] + 8 * v[3] - v[4]) / (12 * h)
        curvature = (-v[0] + 16 * v[1] - 30 * v[2] + 16 * v[3] - v[4]) / (12 * h**2)
        off = ROUNDINGS * np.finfo(np.float64).eps * (1 + np.abs(v[2]) + np.abs(f[at] * slope))
        it.alike(first[at], slope, 1e-7, "derivatives, the first", off * 18 / (12 * h))
        it.alike(second[at], curvature, 1e-5, "derivatives, the second", off * 64 / (12 * h**2))
    if bare.log_concave:
        top = max(np.max(_run(bare, "derivatives", y, scale * f)[1]) for scale in (1.0, 5.0, 25.0))
        it.must(top <= 0, f"it says it is log-concave, but its second derivative is {top:.3g} somewhere.")


def _check_expectations(it: Subject, bare: Any, y: Array, mean: Array, var: Array) -> None:
    """Against plain integration: the trapezoidal rule, exact to rounding for smooth functions times a
    Gaussian; or, with several latents, a mean over many quasi-random points, other ones than the library's
    256, which are good to about 1%.

    Where log p has a kink the library's quadrature is good to the square of its step only. What that costs is
    seen from the reference with as coarse a step, and allowed for, up to `ROUGH`; where log p is smooth it is
    nothing. Rows whose y is so far away that the integrand leaves the reference's 12 standard deviations are
    left out."""
    z, weights = _gaussian_points(bare.latents)
    f = np.expand_dims(mean, 1) + np.sqrt(np.expand_dims(var, 1)) * z  # (n, nodes) or (n, nodes, latents)
    values = _log_prob(bare, np.broadcast_to(y[:, None], (*f.shape[:2], *y.shape[1:])), f)
    methods = ("expected_log_prob", "predictive_log_prob")
    expected, predictive = (_run(bare, method, y, mean, var) for method in methods)
    it.shaped(expected, y.shape[:1], "expected_log_prob")
    it.shaped(predictive, y.shape[:1], "predictive_log_prob")
    single, blur, blurred = bare.latents == 1, np.zeros(len(y)), np.zeros(len(y))
    peak = np.max(values, axis=1)
    p = np.exp(values - peak[:, None]) * weights
    total, log_Z = values @ weights, peak + np.log(np.sum(p, axis=1))
    kept = _within(p) if single else np.full(len(y), True)
    if single:
        blur = _blur(_thinned(values * weights), total)
        blurred = _blur(peak[:, None] + np.log(_thinned(p)), log_Z)
    it.alike(expected, total, 1e-6 if single else 2e-2, "expected_log_prob is not E log p(y | f)", blur)
    rtol, what = 1e-4 if single else 2e-2, "predictive_log_prob is not log E p(y | f)"
    it.alike(predictive[kept], log_Z[kept], rtol, what, blurred[kept])
    certain = np.all(var.reshape(len(y), -1) == 0, axis=1)
    log_prob = _log_prob(bare, y, mean)[certain]
    it.alike(expected[certain], log_prob, 1e-9, "expected_log_prob for a certain f is not log_prob")
    it.must(predictive >= expected - 1e-6, "log E p is below E log p, against Jensen's inequality.")
    powers = () if not single else (1.0, 0.5) if type(bare).tilted is not Likelihood.tilted else (0.5,)
    for power in powers:
        ours = _run(bare, "tilted", y, mean, var, power=power)
        p = np.exp(power * (values - peak[:, None])) * weights
        kept = _within(p)
        log_Z, p = power * peak + np.log(np.sum(p, axis=1)), p / np.sum(p, axis=1, keepdims=True)
        first = np.sum(p * f, axis=1)
        apart = f - first[:, None]
        share = _thinned(p)
        shift = _thinned(p * apart) / share
        second, coarse = np.sum(p * apart**2, axis=1), _thinned(p * apart**2) / share - shift**2
        for what, a, b, c in (
            ("log Z", ours[0], log_Z, log_Z[:, None] + np.log(share)),
            ("mean", ours[1], first, first[:, None] + shift),
            ("variance", ours[2], second, coarse),
        ):
            what = f"tilted with power {power:g}, the {what}"
            it.alike(a[kept], b[kept], 1e-4, what, _blur(c, b)[kept])


def _within(p: Array) -> Any:
    """The rows whose integrand, (n, nodes), has come down to nothing at both ends."""
    return np.maximum(p[:, 0], p[:, -1]) <= 1e-12 * np.max(p, axis=1)


def _thinned(terms: Array) -> Array:
    """Sums over every `THIN`th of the terms (n, nodes), from each of the first `THIN` on: (n, THIN)."""
    count = terms.shape[1] // THIN  # the last few terms have no weight
    return THIN * np.sum(terms[:, : count * THIN].reshape(len(terms), count, THIN), axis=1)


def _blur(coarse: Array, fine: Array) -> Array:
    """How far coarse sums, (n, THIN), are from a fine one, (n,)."""
    most = ROUGH * np.max(np.abs(fine), initial=0.0)
    return np.minimum(np.max(np.abs(coarse - fine[:, None]), axis=1), most)


def _beside(y: Array) -> tuple[Array, ...]:
    return tuple(y.reshape(len(y), -1)[:, 1:].T)


def _check_given(
    it: Subject, bare: Any, outcomes: Any, y: Array, f: Array, centre: Array, spread: Array
) -> None:
    """Moments of y given f, of its first column, beside the others."""
    it.shaped(centre, f.shape[:1], "the mean of conditional_moments")
    it.shaped(spread, f.shape[:1], "the variance of conditional_moments")
    if outcomes is not None:
        k = np.asarray(outcomes, dtype=np.float64)
        p = np.exp([_log_probs(bare, k, known, g) for g, *known in zip(f, *_beside(y), strict=True)])
        it.alike(centre, p @ k, 1e-6, "E[y | f] is not the mean of the outcomes")
        variance = p @ k**2 - (p @ k) ** 2
        it.alike(spread, variance, 1e-6, "var[y | f] is not the variance of the outcomes")


def _check_moments(it: Subject, bare: Any, y: Array, mean: Array, var: Array) -> None:
    """Moments of y for f ~ N(mean, var)."""
    z, weights = _gaussian_points(bare.latents)
    at = np.expand_dims(mean, 1) + np.sqrt(np.expand_dims(var, 1)) * z
    wide = (np.broadcast_to(column[:, None], at.shape[:2]) for column in _beside(y))
    means, variances = _run(bare, "conditional_moments", at, *wide)
    ours = _run(bare, "predictive_moments", mean, var, *_beside(y))
    it.must(~np.isnan(ours[1]), "var y is NaN; say infinite where it is.")
    if np.all(np.isfinite(variances)):
        first, rtol = means @ weights, 1e-6 if bare.latents == 1 else 2e-2
        second = (variances + (means - first[:, None]) ** 2) @ weights
        it.alike(ours[0], first, rtol, "predictive_moments, E y, against conditional_moments")
        it.alike(ours[1], second, rtol, "predictive_moments, var y, against conditional_moments")


def _check_draws(
    it: Subject, likelihood: Likelihood, outcomes: Any, y: Array, f: Array, given: tuple[Array, Array] | None
) -> None:
    """Draws of y, where the likelihood has them, within 7 standard errors."""
    beside, N, bare = _beside(y), 20_000, likelihood.bare()
    many = np.broadcast_to(f[:, None], (len(f), N, *f.shape[1:]))
    known = [np.broadcast_to(column[:, None], (len(f), N)) for column in beside]
    try:
        drawn, again = (likelihood.draw(np.random.default_rng(1), many, *known) for _ in range(2))
    except ParameterError:
        return
    it.shaped(drawn, (len(f), N), "what draw gives")
    it.must(np.array_equal(drawn, again), "the same seed gives other draws.")
    likelihood.checked(_rows(drawn.ravel(), [column.ravel() for column in known]))
    for k in () if outcomes is None else outcomes:
        p = np.exp(_log_prob(bare, _rows(np.full(len(f), float(k)), beside), f))
        off = np.abs(np.mean(drawn == k, axis=1) - p) - 7 * np.sqrt(p * (1 - p) / N) - 1 / N  # and one draw
        it.must(off <= 0, f"draws are {k:g} in shares that are not p(y = {k:g} | f).")
    if outcomes is None and given is not None and np.all(np.isfinite(given[1])):
        off = np.abs(np.mean(drawn, axis=1) - given[0]) - 7 * np.sqrt(given[1] / N)
        it.must(off <= 0, "the mean of draws is not E[y | f].")
    first = y.reshape(len(y), -1)[:, 0]
    share = np.mean(drawn <= first[:, None], axis=1)
    exact = likelihood.distribution(f, np.zeros_like(f), *beside)
    for name, below in (
        ("cumulative(y, f)", bare.cumulative(first, f, *beside)),
        ("distribution(f, 0)", None if exact is None else exact.cdf(first)),
    ):
        if below is not None:
            off = np.abs(share - below) - 7 * np.sqrt(below * (1 - below) / N) - 1 / N
            it.must(off <= 0, f"{name} is not the share of draws up to y.")


def _rows(first: Array, beside: Any) -> Array:
    """Observations as a likelihood takes them: from the first column, and the others or one number each."""
    columns = [np.broadcast_to(column, first.shape) for column in (first, *beside)]
    return np.stack(columns, axis=-1) if len(columns) > 1 else first


def _log_probs(bare: Any, first: Array, beside: Any, f: Any) -> Array:
    """log p of many y, by their first column, at one f."""
    return _log_prob(bare, _rows(first, beside), np.broadcast_to(f, (len(first), *np.shape(f))))


def _log_prob(bare: Any, y: Array, f: Array, block: int = 8192) -> Array:
    """log_prob in blocks of one size, so that it is compiled for one."""
    own = () if len(bare.columns) == 1 else y.shape[-1:]
    shape = y.shape[: y.ndim - len(own)]
    rows, flat = y.reshape(-1, *own), f.reshape(-1, *f.shape[len(shape) :])
    n = len(rows)
    # the last block is filled up from the start
    at = [np.arange(start, start + block) % n for start in range(0, n, block)]
    return np.concatenate([_run(bare, "log_prob", rows[i], flat[i]) for i in at])[:n].reshape(shape)


def _run(bare: Any, method: str, *given: Any, **static: float) -> Any:
    """A method of a likelihood in one compiled program: compiling each operation for itself takes longer."""
    found = _compiled(bare, method, tuple(static.items()), *map(jnp.asarray, given))
    return jax.tree_util.tree_map(np.asarray, found)


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


def _check_total(it: Subject, bare: Any, y: Array, outcomes: Any) -> None:
    """Probabilities of all outcomes add up to 1, beside any other columns; a density integrates to 1, along
    y = f + s sinh(t), which reaches far into heavy tails. With several columns only beside their defaults: of
    others nobody says that they go with a density of the first (a flag for censored values does not)."""
    f = 0.3 if bare.latents == 1 else np.linspace(0.3, -0.5, bare.latents)
    columns = np.unique(y.reshape(len(y), -1)[:, 1:], axis=0)
    if outcomes is None:
        if any(column not in bare.column_defaults for column in bare.columns[1:]):
            return
        columns = np.array([[bare.default(column) for column in bare.columns[1:]]])
        t = np.linspace(-25, 25, 20_001)
        first, weights = 0.3 + 0.5 * np.sinh(t), 0.5 * np.cosh(t) * (t[1] - t[0])
    else:
        first = np.asarray(outcomes, dtype=np.float64)
        weights = np.ones(len(first))
    for beside in columns:
        density = np.exp(_log_probs(bare, first, beside, f))
        total = np.sum(np.where(np.isfinite(density), density, 0.0) * weights)
        what = f"the probabilities of all y at one f add up to {total:.6g}, not to 1."
        it.must(abs(total - 1) < 1e-3, what)
