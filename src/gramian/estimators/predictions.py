"""From the posterior of f to observations: probabilities of classes, moments, quantiles and densities of y.

At a row f is N(mean, var), or, where the parameters were sampled, an even mixture of such Gaussians, one a
draw, each with the likelihood of its draw. `gaussians` gives them; everything here averages over them.

Quantiles are those of the cumulative probabilities where y is a whole number with few possible values, else
of DRAWS observations. Every row uses the same random numbers, so that a row has the same interval in whatever
table it stands, and a curve of quantiles is smooth. f is drawn at evenly spaced levels of its distribution:
the share of a distribution below an empirical 2.5 % quantile of 4,000 draws is 2.5 % with a standard error of
at most 0.25 %. Cost: DRAWS numbers a row and latent function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, ndtri

from gramian.arrays import Array
from gramian.errors import InputError
from gramian.inference.asked import ask
from gramian.likelihoods import Likelihood
from gramian.processes.base import Process, blocks_of

LEVELS95 = (0.025, 0.975)
Z95 = 1.959963984540054  # 95 % of a Gaussian lie within this many standard deviations
DRAWS = 4000  # of an observation at a row, for its quantiles
MOST_VALUES = 1000  # of whole numbers, whose probabilities are added up instead


class Latents(NamedTuple):
    """f at some rows as a Gaussian, and the likelihood that goes with it."""

    likelihood: Likelihood
    mean: Array  # (n, L)
    var: Array  # (n, L)


class LeaveOneOut(NamedTuple):
    """Predictions of each training row from all the others."""

    mean: Array
    std: Array
    log_density: Array


class LeftOutClasses(NamedTuple):
    """Predictions of each training row from all the others."""

    probabilities: Array  # (n, classes)
    log_density: Array  # (n,): of the row's own class


def gaussians(likelihood: Likelihood, process: Process, table: Array) -> Iterator[Latents]:
    """The Gaussians, of equal weight, that f is a mixture of at the rows of a table."""
    return (Latents(*seen) for seen in process.under(likelihood, table))


def probabilities(likelihood: Likelihood, process: Process, table: Array, scaled: bool = False) -> Array:
    """p(y = c | x) of each class, averaged over the latents: (n, classes). `scaled`: by the scaled logistic
    function instead of quadrature."""
    if process.dependent:
        mean = process.mean(table)
        roots = np.linalg.cholesky(process.joint(table) + 1e-12 * np.eye(mean.shape[1]))
        flat = np.asarray(roots.reshape(len(mean), -1), dtype=np.float64)
        return ask(likelihood, "joint_probabilities", mean, flat)
    question = "scaled_probabilities" if scaled else "probabilities"
    drawn = [ask(each, question, mean, var) for each, mean, var in gaussians(likelihood, process, table)]
    return drawn[0] if len(drawn) == 1 else np.mean(drawn, axis=0)


def observed(parts: Iterable[Latents], beside: Array) -> tuple[Array, Array]:
    """Mean and variance of an observation at each row, (n,) each; `beside` is (n, columns - 1)."""
    answers = np.array([ask(part.likelihood, "predictive", beside, part.mean, part.var) for part in parts])
    means, variances = answers[:, :, 0], answers[:, :, 1]  # (parts, n)
    if len(answers) == 1:
        return means[0], variances[0]
    return np.mean(means, axis=0), np.mean(variances, axis=0) + np.var(means, axis=0)


def log_densities(parts: Iterable[Latents], Y: Array, closed_form: bool = False) -> Array:
    """log p(y_i), (n,), for Y (n, columns) as the likelihood reads it. `closed_form`: Y is (n, outputs) of f
    plus noise, and the outputs of a row are added up."""
    scores = [_normal_densities(part, Y) if closed_form else row_densities(part, Y) for part in parts]
    return scores[0] if len(scores) == 1 else logsumexp(scores, axis=0) - np.log(len(scores))


def row_densities(latents: Latents, Y: Array) -> Array:
    """log E p(y | f), row by row, for Y (n, columns)."""
    return ask(latents.likelihood, "scored", Y, latents.mean, latents.var)[:, 0]


def _normal_densities(latents: Latents, Y: Array) -> Array:
    noisy = latents.var + latents.likelihood.variances()
    return np.sum(log_normal(Y, latents.mean, noisy), axis=1)


def log_normal(y: Array, mean: Array, var: Array) -> Array:
    """log N(y; mean, var), entry by entry."""
    return -0.5 * ((y - mean) ** 2 / var + np.log(2 * np.pi * var))


# Quantiles. -------------------------------------------------------------------------------------------------


def normal_quantiles(mean: Array, var: Array, levels: ArrayLike) -> Array:
    """Of N(mean, var), each (n, q): (n, levels, q)."""
    return mean[:, None, :] + ndtri(np.asarray(levels))[:, None] * np.sqrt(var)[:, None, :]


def quantiles(likelihood: Likelihood, seen: Iterable[Latents], levels: ArrayLike, beside: Array) -> Array:
    """Quantiles of an observation at each row, (n, levels), with the columns beside it, (n, columns - 1)."""
    if likelihood.conjugate:
        mean, var = observed(seen, beside)
        return normal_quantiles(mean[:, None], var[:, None], levels)[:, :, 0]
    levels, parts, n = np.asarray(levels, dtype=np.float64), list(seen), len(beside)
    highest = likelihood.highest(*observed(parts, beside), *beside.T) if likelihood.discrete else np.inf
    values = np.empty((n, len(levels)))
    each = DRAWS if highest > MOST_VALUES else int(highest) + 1
    for at in blocks_of(n, 8 * each * len(parts)):
        some = [Latents(part.likelihood, part.mean[at], part.var[at]) for part in parts]
        if highest > MOST_VALUES:
            values[at] = np.quantile(_draws(some, beside[at]), levels, axis=1).T
        else:
            values[at] = _of_whole_numbers(some, beside[at], levels, each)
    return values


def _of_whole_numbers(parts: list[Latents], beside: Array, levels: Array, values: int) -> Array:
    """From the probabilities of 0, 1, ..., values - 1."""
    n = len(parts[0].mean)
    Y = np.column_stack([np.tile(np.arange(float(values)), n), np.repeat(beside, values, axis=0)])
    repeated = [
        Latents(each, np.repeat(mean, values, axis=0), np.repeat(var, values, axis=0))
        for each, mean, var in parts
    ]
    scores = [row_densities(part, Y) for part in repeated]
    below = np.cumsum(np.mean(np.exp(scores), axis=0).reshape(n, values), axis=1)
    return np.stack([np.sum(below < level, axis=1) for level in levels], axis=1).astype(np.float64)


def _draws(parts: list[Latents], beside: Array) -> Array:
    """Observations at each row, (n, draws)."""
    each = -(-DRAWS // len(parts))
    levels = ndtri((np.arange(each) + 0.5) / each)
    drawn = []
    for number, (likelihood, mean, var) in enumerate(parts):
        L = mean.shape[1]
        rngs = [np.random.default_rng([number, k]) for k in range(L)]
        z = np.stack([rng.permutation(levels) for rng in rngs], axis=1)  # (draws, L)
        f = mean[:, None, :] + np.sqrt(np.maximum(var, 0.0))[:, None, :] * z
        f = f[..., 0] if L == 1 else f
        bare = likelihood.bare()
        known = np.broadcast_to(beside.T[:, :, None], (beside.shape[1], len(f), each))
        seeds = [number, L]  # the same for every row
        rows = [bare.draw(np.random.default_rng(seeds), row, *known[:, i]) for i, row in enumerate(f)]
        drawn.append(np.stack(rows))
    return np.concatenate(drawn, axis=1)


def observations(rng: np.random.Generator, likelihood: Likelihood, draws: Array, beside: Array) -> Array:
    """What is observed, (n, draws), of draws of f, (n, L, draws), with columns beside it."""
    f = np.moveaxis(draws, 1, 2)
    known = np.broadcast_to(beside.T[:, :, None], (beside.shape[1], *f.shape[:2]))
    return likelihood.bare().draw(rng, f[..., 0] if f.shape[2] == 1 else f, *known)


# Shared by the estimators. ----------------------------------------------------------------------------------


def interval_table(mean: Array, std: Array) -> dict[str, Array]:
    """mean, std, lower95 and upper95 as columns; for several outputs each with the output's number."""
    if mean.ndim == 1:
        return {"mean": mean, "std": std, "lower95": mean - Z95 * std, "upper95": mean + Z95 * std}
    outputs = [interval_table(mean[:, k], std[:, k]) for k in range(mean.shape[1])]
    return {f"{name}_{k}": column for k, output in enumerate(outputs) for name, column in output.items()}


def finite(mean: Array, table: Array, var: Array | None = None) -> Array:
    """`mean`, or an error that names the row of X where it or the variance is no number."""
    good = np.all(np.isfinite(mean), axis=1) & (True if var is None else np.all(np.isfinite(var), axis=1))
    if not np.all(good):
        row = int(np.argmin(good))
        what = f"it has a value of size {float(np.max(np.abs(table[row]))):.3g}. Check its units."
        raise InputError(f"Predictions at row {row} of X leave the range of numbers: {what}")
    return mean
