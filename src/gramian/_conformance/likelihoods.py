"""What a likelihood promises."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import qmc

from gramian._conformance.helpers import alike, require
from gramian.errors import InputError, ParameterError
from gramian.likelihoods import Likelihood

Array = NDArray[np.float64]

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
    name, latents = type(likelihood).__name__, likelihood.latents
    rng = np.random.default_rng(20240229)
    y = (
        rng.standard_normal(6)
        if y is None and outcomes is None
        else np.asarray(outcomes if y is None else y, dtype=np.float64)
    )
    _check_columns(likelihood, name)
    y = likelihood.with_defaults(y) if y.ndim == 1 else y
    require(
        y.size == len(y) * len(likelihood.columns),
        f"{name} has the columns {', '.join(likelihood.columns)}, but the y to check it on {y.shape}.",
    )
    _check_kind(likelihood, y, name)
    at, mean, var = (
        np.ravel(v) for v in np.meshgrid(np.arange(len(y)), [-1.2, 0.1, 0.9], [0.0, 0.3, 1.5], indexing="ij")
    )
    y = y[at]
    if latents > 1:
        mean, var = (
            mean[:, None] * rng.uniform(-1, 1, (len(y), latents)),
            var[:, None] * rng.uniform(0.5, 1.0, (len(y), latents)),
        )
    bare = likelihood.bare()
    with jax.enable_x64(True):
        log_prob = _run(bare, "log_prob", y, mean)
        require(
            log_prob.shape == y.shape[:1],
            f"{name}: log_prob of {y.shape} observations has shape {log_prob.shape}.",
        )
        require(not np.any(np.isnan(log_prob)), f"{name}: log_prob gives NaN.")
        singly = np.array([float(_run(bare, "log_prob", a, b)) for a, b in zip(y, mean, strict=True)])
        alike(log_prob, singly, 1e-12, f"{name}: log_prob of an array is not log_prob of each entry")
        _check_total(bare, y, outcomes, name)
        if likelihood.smooth:
            _check_derivatives(bare, y, mean, name)
        _check_expectations(bare, y, mean, var, name)
        _check_y(likelihood, bare, outcomes, y, mean, var, name)


def _check_columns(likelihood: Likelihood, name: str) -> None:
    columns = likelihood.columns
    good = isinstance(columns, tuple) and len(columns) > 0 and all(isinstance(c, str) for c in columns)
    require(
        good and len(set(columns)) == len(columns), f"{name}: columns is {columns!r}, not different names."
    )
    unknown = [column for column in likelihood.column_defaults if column not in columns[1:]]
    require(
        not unknown,
        f"{name}: column_defaults has {unknown}, but the columns after the first are {columns[1:]}.",
    )


def _check_kind(likelihood: Likelihood, y: Array, name: str) -> None:
    """What it says of itself: scales, checks of y, and where fitting starts."""
    latents, scales = likelihood.latents, likelihood.scales(3.0)
    good = np.shape(scales) == (latents,) and bool(np.all(np.isfinite(scales)))
    require(
        good and bool(np.all(scales > 0)), f"{name}: scales(3) is {scales}, not {latents} positive numbers."
    )
    require(np.array_equal(likelihood.checked(y.copy()), y), f"{name}: checked(y) changed y.")
    if type(likelihood).checked is not Likelihood.checked:
        impossible = y[:1].copy()
        impossible.reshape(1, -1)[:, 0] = np.nan
        try:
            likelihood.checked(np.concatenate([y, impossible]), "the target")
        except InputError as error:
            require(
                f"row {len(y)}" in str(error) and "the target" in str(error),
                f"{name}: checked(y) does not name what and the row: {error}",
            )
        else:
            raise AssertionError(f"{name}: checked(y) lets NaN pass.")
    begun, start = likelihood.started(y)
    require(type(begun) is type(likelihood), f"{name}: started(y) gives a {type(begun).__name__}.")
    finite = np.shape(start) == (latents,) and bool(np.all(np.isfinite(start)))
    require(finite, f"{name}: started(y) starts the latents at {start}, not at {latents} finite numbers.")


def _check_derivatives(bare: Any, y: Array, f: Array, name: str) -> None:
    """Against four-point differences.

    Their truncation, h^4 of a fifth or sixth derivative, is far below the relative tolerances. Their rounding
    is not where |log p| is large or the derivative small: each log p is off by some eps of itself, of 1 (the
    terms it is made of) and, as f + h rounds too, of f times the slope; and the weights of the differences
    add up to 18 / 12 h and 64 / 12 h^2.
    """
    first, second = _run(bare, "derivatives", y, f)
    require(
        first.shape == f.shape == second.shape,
        f"{name}: derivatives have shapes {first.shape} and {second.shape}, but f has {f.shape}.",
    )
    h = 1e-4
    for k in range(bare.latents):
        at = (Ellipsis, k) if bare.latents > 1 else (Ellipsis,)
        step = np.zeros_like(f)
        step[at] = h
        v = [_log_prob(bare, y, f + j * step) for j in (-2, -1, 0, 1, 2)]
        slope = (v[0] - 8 * v[1] + 8 * v[3] - v[4]) / (12 * h)
        curvature = (-v[0] + 16 * v[1] - 30 * v[2] + 16 * v[3] - v[4]) / (12 * h**2)
        off = ROUNDINGS * np.finfo(np.float64).eps * (1 + np.abs(v[2]) + np.abs(f[at] * slope))
        alike(first[at], slope, 1e-7, f"{name}: derivatives, the first", off * 18 / (12 * h))
        alike(second[at], curvature, 1e-5, f"{name}: derivatives, the second", off * 64 / (12 * h**2))
    if bare.log_concave:
        wide = [_run(bare, "derivatives", y, scale * f)[1] for scale in (1.0, 5.0, 25.0)]
        require(
            bool(np.max(wide) <= 0),
            f"{name} says it is log-concave, but its second derivative is {np.max(wide):.3g} somewhere.",
        )


def _check_expectations(bare: Any, y: Array, mean: Array, var: Array, name: str) -> None:
    """Against plain integration: the trapezoidal rule, exact to rounding for smooth functions times a
    Gaussian; or, with several latents, a mean over many quasi-random points, other ones than the library's
    256, which are good to about 1%.

    Where log p has a kink the library's quadrature is good to the square of its step only. What that costs is
    seen from the reference with as coarse a step, and allowed for, up to `ROUGH`; where log p is smooth it is
    nothing. Rows whose y is so far away that the integrand leaves the reference's 12 standard deviations are
    left out.
    """
    z, weights = _gaussian_points(bare.latents)
    f = np.expand_dims(mean, 1) + np.sqrt(np.expand_dims(var, 1)) * z  # (n, nodes) or (n, nodes, latents)
    values = _log_prob(bare, np.broadcast_to(y[:, None], (*f.shape[:2], *y.shape[1:])), f)
    expected, predictive = (
        _run(bare, method, y, mean, var) for method in ("expected_log_prob", "predictive_log_prob")
    )
    require(
        expected.shape == y.shape[:1] == predictive.shape,
        f"{name}: expected_log_prob or predictive_log_prob does not give one number an observation.",
    )
    single = bare.latents == 1
    peak = np.max(values, axis=1)
    p = np.exp(values - peak[:, None]) * weights
    total, log_Z = values @ weights, peak + np.log(np.sum(p, axis=1))
    kept = _within(p) if single else np.full(len(y), True)
    blur = _blur(_thinned(values * weights), total) if single else 0.0
    alike(expected, total, 1e-6 if single else 2e-2, f"{name}: expected_log_prob is not E log p(y | f)", blur)
    blur = _blur(peak[:, None] + np.log(_thinned(p)), log_Z)[kept] if single else 0.0
    alike(
        predictive[kept],
        log_Z[kept],
        1e-4 if single else 2e-2,
        f"{name}: predictive_log_prob is not log E p(y | f)",
        blur,
    )
    certain = np.all(var.reshape(len(y), -1) == 0, axis=1)
    log_prob = _log_prob(bare, y, mean)
    alike(
        expected[certain],
        log_prob[certain],
        1e-9,
        f"{name}: expected_log_prob for a certain f is not log_prob",
    )
    require(
        bool(np.all(predictive >= expected - 1e-6)),
        f"{name}: log E p is below E log p, against Jensen's inequality.",
    )
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
        theirs = (log_Z, first, np.sum(p * apart**2, axis=1))
        coarse = (
            log_Z[:, None] + np.log(share),
            first[:, None] + shift,
            _thinned(p * apart**2) / share - shift**2,
        )
        for what, a, b, c in zip(("log Z", "mean", "variance"), ours, theirs, coarse, strict=True):
            alike(
                a[kept], b[kept], 1e-4, f"{name}: tilted with power {power:g}, the {what}", _blur(c, b)[kept]
            )


def _within(p: Array) -> NDArray[np.bool_]:
    """The rows whose integrand, (n, nodes), has come down to nothing at both ends."""
    kept: NDArray[np.bool_] = np.maximum(p[:, 0], p[:, -1]) <= 1e-12 * np.max(p, axis=1)
    return kept


def _thinned(terms: Array) -> Array:
    """Sums over every `THIN`th of the terms (n, nodes), from each of the first `THIN` on: (n, THIN). The last
    few terms have no weight."""
    count = terms.shape[1] // THIN
    return THIN * np.sum(terms[:, : count * THIN].reshape(len(terms), count, THIN), axis=1)


def _blur(coarse: Array, fine: Array) -> Array:
    """How far coarse sums, (n, THIN), are from a fine one, (n,)."""
    return np.minimum(
        np.max(np.abs(coarse - fine[:, None]), axis=1), ROUGH * np.max(np.abs(fine), initial=0.0)
    )


def _check_y(
    likelihood: Likelihood, bare: Any, outcomes: Any, y: Array, mean: Array, var: Array, name: str
) -> None:
    """Moments and draws of y, where the likelihood has them: of its first column, beside the others."""
    single, all_beside = bare.latents == 1, tuple(y.reshape(len(y), -1)[:, 1:].T)
    some = slice(None, None, max(1, len(mean) // 6))
    f, beside = mean[some], tuple(column[some] for column in all_beside)
    try:
        centre, spread = _run(bare, "conditional_moments", f, *beside)
    except ParameterError:
        centre = None
    if centre is not None:
        require(
            centre.shape == spread.shape == f.shape[:1],
            f"{name}: conditional_moments have shapes {centre.shape} and {spread.shape}.",
        )
        if outcomes is not None:
            k = np.asarray(outcomes, dtype=np.float64)
            p = np.exp(
                [
                    _log_prob(bare, _rows(k, known), np.broadcast_to(g, (len(k), *g.shape)))
                    for g, *known in zip(f, *beside, strict=True)
                ]
            )
            alike(centre, p @ k, 1e-6, f"{name}: E[y | f] is not the mean of the outcomes")
            alike(
                spread,
                p @ k**2 - (p @ k) ** 2,
                1e-6,
                f"{name}: var[y | f] is not the variance of the outcomes",
            )
        z, weights = _gaussian_points(bare.latents)
        at = np.expand_dims(mean, 1) + np.sqrt(np.expand_dims(var, 1)) * z
        wide = (np.broadcast_to(column[:, None], at.shape[:2]) for column in all_beside)
        given = _run(bare, "conditional_moments", at, *wide)
        first = given[0] @ weights
        ours = _run(bare, "predictive_moments", mean, var, *all_beside)
        require(not np.any(np.isnan(ours[1])), f"{name}: var y is NaN; say infinite where it is.")
        if np.all(np.isfinite(given[1])):
            alike(
                ours[0],
                first,
                1e-6 if single else 2e-2,
                f"{name}: predictive_moments, E y, against conditional_moments",
            )
            second = (given[1] + (given[0] - first[:, None]) ** 2) @ weights
            alike(
                ours[1],
                second,
                1e-6 if single else 2e-2,
                f"{name}: predictive_moments, var y, against conditional_moments",
            )
    N = 20_000
    try:
        many = np.broadcast_to(f[:, None], (len(f), N, *f.shape[1:]))
        known = [np.broadcast_to(column[:, None], (len(f), N)) for column in beside]
        drawn, again = (likelihood.draw(np.random.default_rng(1), many, *known) for _ in range(2))
    except ParameterError:
        return
    require(drawn.shape == (len(f), N), f"{name}: draw gives shape {drawn.shape}, not {(len(f), N)}.")
    require(np.array_equal(drawn, again), f"{name}: the same seed gives other draws.")
    likelihood.checked(_rows(drawn.ravel(), [column.ravel() for column in known]))
    if outcomes is not None:
        for k in outcomes:  # 7 standard errors, and one draw
            p = np.exp(_log_prob(bare, _rows(np.full(len(f), float(k)), beside), f))
            off = np.abs(np.mean(drawn == k, axis=1) - p) - 7 * np.sqrt(p * (1 - p) / N) - 1 / N
            require(
                bool(np.max(off) <= 0), f"{name}: draws are {k:g} in shares that are not p(y = {k:g} | f)."
            )
    elif centre is not None and np.all(np.isfinite(spread)):
        off = np.abs(np.mean(drawn, axis=1) - centre) - 7 * np.sqrt(spread / N)
        require(bool(np.max(off) <= 0), f"{name}: the mean of draws is not E[y | f].")


def _rows(first: Array, beside: Any) -> Array:
    """Observations as a likelihood takes them: from the first column, and the others, each as long or a
    number."""
    return (
        np.stack([first, *(np.broadcast_to(v, first.shape) for v in beside)], axis=-1)
        if len(beside)
        else first
    )


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
    return jax.tree_util.tree_map(
        np.asarray, _compiled(bare, method, tuple(static.items()), *(jnp.asarray(value) for value in given))
    )


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


def _check_total(bare: Any, y: Array, outcomes: Any, name: str) -> None:
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
        density = np.exp(
            _log_prob(bare, _rows(first, beside), np.broadcast_to(f, (len(first), *np.shape(f))))
        )
        total = float(np.sum(np.where(np.isfinite(density), density, 0.0) * weights))
        require(
            abs(total - 1) < 1e-3,
            f"{name}: the probabilities of all y at one f add up to {total:.6g}, not to 1.",
        )
