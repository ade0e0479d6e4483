"""From the posterior of f to observations: probabilities of classes, and distributions of numbers.

At a row f is N(mean, var), or, where the parameters were sampled, an even mixture of such Gaussians, one a
draw, each with the likelihood of its draw. `gaussians` gives them; everything here averages over them.

A number y has a `Predictive` distribution (gramian.predictive). Where a likelihood knows its own in closed
form (Gaussian noise, Student's t), that is it; else one of

    Averaged    P(Y <= y | f) is known, and averaged over f by quadrature
    Counted     of whole numbers: their probabilities are added up
    Drawn       from DRAWS observations, where a likelihood says nothing but log p(y | f) and how to draw

For the last, every row uses the same random numbers, so that a row has the same interval in whatever table it
stands, and a curve of quantiles is smooth. f is drawn at evenly spaced levels of its distribution: the share
of a distribution below an empirical 2.5 % quantile of 4,000 draws is 2.5 % with a standard error of at most
0.25 %. Cost: DRAWS numbers a row and latent function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from gramian.arrays import Array
from gramian.errors import InputError
from gramian.inference.asked import ask
from gramian.likelihoods import Likelihood, quadrature
from gramian.predictive import Entries, Predictive, mixed
from gramian.processes.base import Process

Z95 = 1.959963984540054  # 95 % of a Gaussian lie within this many standard deviations
DRAWS = 4000  # of an observation at a row, for its quantiles
MOST_VALUES = 10_000  # of whole numbers, whose probabilities are added up
HALVINGS = 24  # of 17 standard deviations: down to 1e-6 of one
SEVERAL = 10  # Gaussians that f is a mixture of, from which on they share NODES values of f
NODES = 8000
GOLDEN = 0.6180339887498949


class Latents(NamedTuple):
    """f at some rows as a Gaussian, and the likelihood that goes with it."""

    likelihood: Likelihood
    mean: Array  # (n, L)
    var: Array  # (n, L)


class Part(NamedTuple):
    """Which one of so many distributions that are averaged, so that each may be so much coarser."""

    number: int = 0
    of: int = 1


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


# Numbers. ---------------------------------------------------------------------------------------------------


def predictive(parts: Iterable[Latents], beside: Array, several: bool = False) -> Predictive:
    """The distribution of an observation at each row, whose columns beside y are (n, columns - 1). `several`:
    of (n, q) outputs, one a latent."""
    seen = list(parts)
    return mixed([_distribution(part, beside, Part(k, len(seen)), several) for k, part in enumerate(seen)])


def _distribution(part: Latents, beside: Array, of: Part, several: bool) -> Predictive:
    """Under one of the Gaussians of f: as the likelihood knows it, or averaged over f."""
    likelihood, mean, var = part
    one = not several and likelihood.latents == 1
    known = likelihood.distribution(*((mean[:, 0], var[:, 0]) if one else (mean, var)), *beside.T)
    if known is not None:
        return known
    nothing = np.empty((0, likelihood.latents))
    asked = likelihood.cumulative(nothing[:, 0], nothing[:, 0] if one else nothing, *beside[:0].T)
    if asked is not None:
        return Averaged(part, beside, of)
    return (Counted if likelihood.discrete else Drawn)(part, beside, of)


@dataclass(frozen=True, eq=False, repr=False)
class UnderLikelihood(Predictive):
    """What a likelihood makes of f ~ N(mean, var), where it has no closed form: all but the probability
    below a number, of which there are several kinds."""

    costly = True

    latents: Latents
    beside: Array  # (n, columns - 1)
    part: Part

    @property
    def discrete(self) -> bool:  # type: ignore[override]  # as the likelihood is
        return self.latents.likelihood.discrete

    def found(self) -> tuple[Array, Array]:
        likelihood, mean, var = self.latents
        first, second = ask(likelihood, "predictive", self.beside, mean, var).T
        return first, np.sqrt(second)

    def log_density(self, y: ArrayLike) -> Array:
        return row_densities(self.latents, np.column_stack([self.checked(y), self.beside]))

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        _, mean, var = self.latents
        z = rng.standard_normal((*mean.shape, count))
        f = mean[..., None] + np.sqrt(var)[..., None] * z
        return observations(rng, self.latents.likelihood, f, self.beside)

    def at(self, rows: slice | Entries) -> Self:
        likelihood, mean, var = self.latents
        return replace(self, latents=Latents(likelihood, mean[rows], var[rows]), beside=self.beside[rows])


class Averaged(UnderLikelihood):
    """P(Y <= y) = E P(Y <= y | f), by quadrature over f.

    P(Y <= y | f) falls from 1 to 0 over a distance that may be far smaller than the Gaussian of f is wide:
    the line is cut at the Gaussian's standard deviations and around the fall, ever more coarsely away from
    it, with a Gauss rule of degree 7 between two cuts.
    Several Gaussians share NODES values of f at evenly spaced levels, shifted from one to the next, so that
    what one misses another has: where the peak is narrower than a step between two values, 100 Gaussians
    leave an error of 0.04 % in the level of a quantile, 10 a third of that.
    """

    def below(self, y: Array, entries: Entries) -> Array:
        y = np.floor(y) if self.discrete else y
        likelihood, mean, var = self.latents
        mean, sd = mean[entries], np.sqrt(var[entries])
        if likelihood.latents > 1:
            z = quadrature.normal_points(likelihood.latents)
            f, weights = mean[:, None, :] + sd[:, None, :] * z, np.full(len(z), 1 / len(z))
        elif self.part.of >= SEVERAL:
            count = max(5, NODES // self.part.of)
            shift = (0.5 + self.part.number * GOLDEN) % 1
            f, weights = mean + sd * ndtri((np.arange(count) + shift) / count), np.full(count, 1 / count)
        else:
            z, weights = quadrature.normal_panels(*self._step(y, entries, mean, sd))
            f = mean + sd * z
        below: Array = np.clip(np.sum(weights * self._given(y, entries, f), axis=1), 0.0, 1.0)
        return np.where(y < 0, 0.0, below) if self.discrete else below

    def _given(self, y: Array, entries: Entries, f: Array) -> Array:
        """P(Y <= y | f), (n, nodes)."""
        y = np.maximum(y, 0.0) if self.discrete else y
        given = self.latents.likelihood.bare().cumulative(y[:, None], f, *self.beside[entries].T[:, :, None])
        assert given is not None  # or it were of another kind
        return given

    def _step(self, y: Array, entries: Entries, mean: Array, sd: Array) -> tuple[Array, Array]:
        """Where P(Y <= y | f) falls through a half, in standard deviations of f, and how far around that it
        takes to fall from 0.8 to 0.2: by halving, and by trying ever larger distances."""
        low, high = np.full((len(y), 1), quadrature.CUTS[0]), np.full((len(y), 1), quadrature.CUTS[-1])
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            above = self._given(y, entries, mean + sd * middle) > 0.5
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        reach = 2.0 ** -np.arange(HALVINGS - 5, -2, -2)  # up to twice the standard deviation
        ends = self._given(y, entries, mean + sd * (low + np.concatenate([-reach, reach])))
        fallen = ends[:, : len(reach)] - ends[:, len(reach) :] > 0.6
        fallen[:, -1] = True
        return low[:, 0], reach[np.argmax(fallen, axis=1)]


class Counted(UnderLikelihood):
    """Of whole numbers: the probabilities of 0, 1, ... are added up, as far as there are any to speak of; of
    more than MOST_VALUES the last ones count as one."""

    def below(self, y: Array, entries: Entries) -> Array:
        cumulated = self._cumulated
        at = np.clip(np.floor(y), -1, cumulated.shape[1] - 1).astype(int)
        return np.where(at < 0, 0.0, cumulated[entries, at])

    @cached_property
    def _cumulated(self) -> Array:
        likelihood, mean, var = self.latents
        first, std = self.moments
        values = min(int(likelihood.highest(first, std**2, *self.beside.T)), MOST_VALUES) + 1
        y = np.tile(np.arange(float(values)), len(mean))
        Y = np.column_stack([y, np.repeat(self.beside, values, axis=0)])
        each = Latents(likelihood, np.repeat(mean, values, axis=0), np.repeat(var, values, axis=0))
        below = np.cumsum(np.exp(row_densities(each, Y)).reshape(len(mean), values), axis=1)
        below[:, -1] = 1.0
        return below


class Drawn(UnderLikelihood):
    """From draws of y, the same random numbers in every row."""

    def below(self, y: Array, entries: Entries) -> Array:
        return np.mean(self._draws[entries] <= y[:, None], axis=1)

    def solved(self, level: Array, entries: Entries) -> Array:
        draws = self._draws
        place = np.clip(np.ceil(level * draws.shape[1]).astype(int) - 1, 0, draws.shape[1] - 1)
        return draws[entries, place]

    @cached_property
    def _draws(self) -> Array:
        """(n, draws), in their order."""
        likelihood, mean, var = self.latents
        each, L = max(-(-DRAWS // self.part.of), 20), mean.shape[1]
        levels = ndtri((np.arange(each) + 0.5) / each)
        seed = self.part.number  # parts that are averaged have draws of their own
        z = np.stack([np.random.default_rng([k, seed]).permutation(levels) for k in range(L)])  # (L, draws)
        f = mean[..., None] + np.sqrt(var)[..., None] * z
        rows = [
            observations(np.random.default_rng([L, seed]), likelihood, f[[i]], self.beside[[i]])
            for i in range(len(f))
        ]
        return np.sort(np.concatenate(rows), axis=1)


def row_densities(latents: Latents, Y: Array) -> Array:
    """log E p(y | f), row by row, for Y (n, columns)."""
    return ask(latents.likelihood, "scored", Y, latents.mean, latents.var)[:, 0]


def observations(rng: np.random.Generator, likelihood: Likelihood, draws: Array, beside: Array) -> Array:
    """What is observed, (n, draws), of draws of f, (n, L, draws), with columns beside it."""
    f = np.moveaxis(draws, 1, 2)
    known = np.broadcast_to(beside.T[:, :, None], (beside.shape[1], *f.shape[:2]))
    return likelihood.bare().draw(rng, f[..., 0] if f.shape[2] == 1 else f, *known)


# Shared by the estimators. ----------------------------------------------------------------------------------


def prediction_table(
    foretold: Predictive, level: float = 0.95, quantiles: ArrayLike = (), names: Sequence[str] = ()
) -> dict[str, Array]:
    """mean, std, lower95 and upper95 (or of another level), and q0.1 for each quantile, as columns; for
    several outputs each with the output's name, or its number."""
    lower, upper = foretold.interval(level)
    shown = f"{100 * float(level):.10g}"
    columns = {"mean": foretold.mean, "std": foretold.std, f"lower{shown}": lower, f"upper{shown}": upper}
    levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    if levels.size:
        found = np.moveaxis(foretold.quantile(levels), 1, 0)
        columns |= {f"q{p:.10g}": values for p, values in zip(levels, found, strict=True)}
    if foretold.mean.ndim == 1:
        return columns
    known = output_names(names, foretold.mean.shape[1])
    return {f"{name}_{own}": values[:, k] for k, own in enumerate(known) for name, values in columns.items()}


def columns_of(name: str, values: Array, outputs: Sequence[str] = ()) -> dict[str, Array]:
    """Values (n,) under a name, or (n, q) under one each, with the output's name or number after it."""
    if values.ndim == 1:
        return {name: values}
    known = output_names(outputs, values.shape[1])
    return {f"{name}_{own}": values[:, k] for k, own in enumerate(known)}


def output_names(names: Sequence[str], q: int) -> list[str]:
    """The names of q outputs, or their numbers where names are not known."""
    return list(names) if len(set(names)) == q else [str(k) for k in range(q)]


def finite(mean: Array, table: Array, var: Array | None = None) -> Array:
    """`mean`, or an error that names the row of X where it or the variance is no number."""
    good = np.all(np.isfinite(mean), axis=1) & (True if var is None else np.all(np.isfinite(var), axis=1))
    if not np.all(good):
        row = int(np.argmin(good))
        what = f"it has a value of size {float(np.max(np.abs(table[row]))):.3g}. Check its units."
        raise InputError(f"Predictions at row {row} of X leave the range of numbers: {what}")
    return mean
