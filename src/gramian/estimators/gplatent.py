"""GPLatent: few latent coordinates for tables of many columns, with what is not known about them.

    y_nd = f_d(x_n) + noise,    x_n ~ N(0, I),    f_d ~ GP(0, k)

The columns are smooth functions of places that nobody has seen. A fit finds a Gaussian for each place
(`inference="vi"`, the Bayesian GP-LVM of Titsias and Lawrence 2010) or a point (`"map"`, Lawrence 2004).
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import Any, Never, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian import clock, journal
from gramian.arrays import Array, is_whole, real_numbers
from gramian.choose.plan import check_time_limit
from gramian.clock import OutOfTime
from gramian.data.columns import some_of
from gramian.data.inputs import Columns, read_named
from gramian.errors import InputError, ParameterError
from gramian.estimators.base import check_draws
from gramian.estimators.build import read_kernel
from gramian.estimators.resuming import generator, identify, resumable
from gramian.fitting import FitOutcome
from gramian.fitting.progress import progress
from gramian.inference import Evidence
from gramian.inference.model import EvidenceKind
from gramian.interrupt import attended
from gramian.kernels import RBF, Kernel
from gramian.landmarks.kmeans import KMeansRule
from gramian.latent import batches, start
from gramian.latent.bound import JITTER, ObservedTable, Places
from gramian.latent.search import Position, climb
from gramian.latent.state import LatentState, Scaling
from gramian.likelihoods import Gaussian
from gramian.linalg import memory
from gramian.params import Parameter, param

POINTS = 40  # inducing points
FIRST_NOISE, FIRST_VAR = 0.01, 0.1  # of a column of variance 1, and of a place
LEAST_NOISE, MOST_NOISE = 1e-6, 100.0
MANY = 5000  # rows from which on batches are taken
FARTHEST = 1e100  # from the middle: of a cell, in standard deviations of its column, and of a place
STEPS_KEPT = 45  # vectors that L-BFGS holds
PLACES_SHORT = "To find places", "Give fewer rows at a time, or close other programs."
INFERENCES = {"vi": "a Gaussian for each place", "map": "a point for each"}
NOISES = {"shared": "one share of each column's variance", "columns": "a variance for each column"}
SCALES = {"columns": "each column by its standard deviation", "table": "all columns by one"}


@dataclass(frozen=True)
class LatentFitted:
    """What a fit leaves."""

    state: LatentState
    columns: Columns
    evidence: Evidence
    outcome: FitOutcome


# scikit-learn is not typed
@dataclass(eq=False, repr=False)
class GPLatent(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Latent coordinates of the rows of a table, by Gaussian processes; cells may be missing anywhere.

    Parameters
    ----------
    n_components : int
        Latent dimensions, no more than columns. With several, those that the data do not need are switched
        off: `n_active_` says how many are left, and they come first.
    kernel : Kernel, str, optional
        Of the functions from places to columns. None: an RBF of variance 1 with a lengthscale for each
        dimension. Sums and products of RBF, Linear and Constant have closed averages over places, other
        kernels are averaged over nodes.
    likelihood : Gaussian, optional
        The noise in the units of the table: one variance, or a list of one a column; `fixed(...)` holds it.
        None: as `noise` says.
    inference : "vi" or "map"
        A Gaussian for each place, or a point.
    noise : "shared" or "columns"
        One share of each column's variance, or a variance for each column.
    scale : "columns" or "table"
        By what columns are divided: each by its standard deviation, or all by one (pictures, whose pixels
        differ in how much they say).
    n_inducing : int, optional
        Inducing points; None: 40, or as many as there are rows.
    batch_size : int, optional
        Rows of a step where places are found some at a time. None: all at once up to 5,000 rows, beyond 500.
    max_iter : int
        Iterations of the last stage of the search; of batches, a fiftieth of it are passes over the rows.
    random_state : int, RandomState or None
    memory_limit : int or str, optional
    time_limit : float, optional
        Seconds of a fit.
    checkpoint : str or path, optional
        A file in which a fit writes down what it has found, so that one that was stopped goes on from there
        (see GPRegressor).
    verbose : bool, optional
        Progress: None on a terminal alone.

    Attributes
    ----------
    embedding_, embedding_std_ : places of the rows of the fit (n, n_components), and how far they are known
    relevance_ : share of the variation along each dimension; n_active_ : how many dimensions matter
    kernel_, likelihood_, evidence_, outcome_ : as of other estimators; the evidence is a lower bound
    """

    n_components: int = 2
    kernel: Kernel | str | None = None
    likelihood: Gaussian | None = field(default=None, kw_only=True)
    inference: str = field(default="vi", kw_only=True)
    noise: str = field(default="shared", kw_only=True)
    scale: str = field(default="columns", kw_only=True)
    n_inducing: int | None = field(default=None, kw_only=True)
    batch_size: int | None = field(default=None, kw_only=True)
    max_iter: int = field(default=500, kw_only=True)
    random_state: Any = field(default=None, kw_only=True)
    memory_limit: int | str | None = field(default=None, kw_only=True)
    time_limit: float | None = field(default=None, kw_only=True)
    checkpoint: str | os.PathLike[str] | None = field(default=None, kw_only=True)
    verbose: bool | None = field(default=None, kw_only=True)

    fitted_: LatentFitted = field(init=False)

    # Fitting. -----------------------------------------------------------------------------------------------

    def check_settings(self) -> None:
        """Refuses impossible settings, before any work."""
        for name in ("n_components", "max_iter", "n_inducing", "batch_size"):
            value = getattr(self, name)
            if not is_whole(value) and not (value is None and name in ("n_inducing", "batch_size")):
                raise ParameterError(f"{name}={value!r} must be a whole number from 1 on.")
        for name, words in (("inference", INFERENCES), ("noise", NOISES), ("scale", SCALES)):
            value = getattr(self, name)
            if value not in words:
                told = ", ".join(f'"{word}" ({meaning})' for word, meaning in words.items())
                raise ParameterError(f"{name}={value!r} is not known. Use {told}.")
        if self.likelihood is not None and not isinstance(self.likelihood, Gaussian):
            cure = "Give gramian.Gaussian(...), or transform the columns: counts by their square roots"
            given = f"likelihood={self.likelihood!r}"
            raise ParameterError(f"{given}: latent places are found with Gaussian noise alone. {cure}.")
        written = read_kernel(self.kernel)
        written.one("latent places have one kernel.")
        check_time_limit(self.time_limit)
        if self.memory_limit is not None:
            memory.parse_bytes(self.memory_limit)

    @memory.translated("The fit", "Fit fewer rows or columns, or take fewer inducing points.")
    @resumable
    def fit(self, X: Any, y: Any = None) -> Self:
        """Finds places for the rows of X; y is not used. Missing cells (NaN) are left out."""
        self.check_settings()
        memory.check_compiler()  # no place is found without a program
        began = clock.now()
        table, columns = read_named(self, X, missing="fill", memory_limit=self.memory_limit)
        _refuse_categories(columns)
        identify(self, {"X": table})
        rng = generator(self.random_state)
        scaling = self._scaling(table, columns)
        Y = scaling.inward(table)
        noise, units, kinds = self._noise(scaling, columns)
        seen = ObservedTable.of(Y, kinds)
        m = min(POINTS if self.n_inducing is None else int(self.n_inducing), len(Y))
        self._check_memory(len(Y), m, seen.seen.shape[1], Y.shape[1])
        mean, lengths = start.linear(Y, int(self.n_components), noise.value.ndim > 0, rng)
        kernel = self._kernel(lengths)
        first = Position(kernel, noise, units, _points(kernel, mean, m, rng), self._first_places(mean))
        end = None if self.time_limit is None else began + float(self.time_limit)
        size = self.batch_size if self.batch_size is not None else (500 if len(Y) > MANY else None)
        with clock.until(end), progress(self.verbose) as report, attended(lambda: report.doing):
            if goes_on := journal.resumed():
                report.resumed(goes_on)
            if size is not None and size < len(Y):
                passes = max(1, int(self.max_iter) // 50)
                position, search, stages = batches.climb(first, seen, report, int(size), passes, rng)
            else:
                position, search, stages = climb(first, seen, report, int(self.max_iter))
            with clock.until(None, anew=True):  # without it there is no model
                state = LatentState.of(position, seen, scaling)
            if search.stopped not in ("time limit", "interrupted"):
                with contextlib.suppress(OutOfTime):
                    state = state.polished(table, seen)
        if search.stopped in ("time limit", "interrupted"):
            journal.leave()
        kind: EvidenceKind = "lower bound" if self.inference == "vi" else "approximation"
        outcome = FitOutcome(
            method=self.inference,
            reason=INFERENCES[self.inference],
            solver=f"{m} inducing points",
            stopped=search.stopped,
            iterations=search.iterations,
            evaluations=search.evaluations,
            starts=1,
            jitter=JITTER,
            seconds=clock.now() - began,
            notes=tuple(self._notes(table, columns, scaling)),
            stages=tuple(filter(None, (journal.resumed(), *stages))),
            trace=search.paths,
        )
        self.fitted_ = LatentFitted(state.ordered(), columns, Evidence(search.value, kind), outcome)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """`embedding_` after a fit."""
        return self.fit(X).embedding_

    def _first_places(self, mean: Array) -> Places:
        return Places(mean, None if self.inference == "map" else np.full(mean.shape, FIRST_VAR))

    def _scaling(self, table: Array, columns: Columns) -> Scaling:
        n, D = table.shape
        if n < 2:
            raise InputError(f"The table has {n} row (n_samples={n}); latent places need two rows or more.")
        Q = int(self.n_components)
        if Q > D:
            raise ParameterError(
                f"n_components={Q}, but the table has {D} feature(s): latent places have no more dimensions"
                f" than there are columns. Give n_components={D} or fewer."
            )
        seen = ~np.isnan(table)
        empty = [columns.names[j] for j in np.flatnonzero(~np.any(seen, axis=0))]
        if empty:
            raise InputError(f"Column {some_of(empty)} has no value in any row. Leave it out of the table.")
        centre = np.nanmean(table, axis=0)
        far = np.nanmax(np.abs(table - centre), axis=0)
        unit = np.where(far > 0, far, 1.0)  # squares of 1e200 would overflow
        spread = unit * np.sqrt(np.nanmean(((table - centre) / unit) ** 2, axis=0))
        # what rounding leaves of a column of equal numbers is no spread
        varies = spread > 1e-13 * np.maximum(np.nanmax(np.abs(table), axis=0), 1e-300)
        kept = np.flatnonzero(varies)
        if len(kept) < Q:
            still = some_of([columns.names[j] for j in np.flatnonzero(~varies)])
            have = f"{len(kept)} of {D} columns vary ({still}: the same number in all rows)"
            raise InputError(f"n_components={Q}, but only {have}. Give n_components={max(len(kept), 1)}.")
        if self.scale != "columns":
            spread = np.full(D, float(np.sqrt(np.mean(spread[kept] ** 2))))
        return Scaling(centre, np.where(varies, spread, 0.0), kept)

    def _noise(self, scaling: Scaling, columns: Columns) -> tuple[Parameter, Array, Any]:
        """The parameter, what a noise of 1 is in each column of the scaled table, and which of them are
        always alike."""
        D, scale = len(scaling.kept), scaling.scale[scaling.kept]
        if self.likelihood is None:
            value = np.full(D, FIRST_NOISE) if self.noise == "columns" else FIRST_NOISE
            parameter = Gaussian(param(value, bounds=(LEAST_NOISE, MOST_NOISE))).noise
            return parameter, np.ones(D), np.arange(D) if self.noise == "columns" else np.zeros(D, int)
        given = self.likelihood.noise
        unit = np.asarray(self.likelihood.unit)
        sizes = {given.value.size, len(unit)} - {1, len(scaling.centre)}
        if sizes or np.any(given.value <= 0):
            D_all = len(scaling.centre)
            raise ParameterError(
                f"likelihood={self.likelihood}: the noise must be one positive variance, or one for each of"
                f" the {D_all} columns."
            )
        if given.value.size > 1:
            value = given.value[scaling.kept]
            given = Gaussian(param(value, trainable=given.trainable)).noise
        elif given.value.ndim:
            given = Gaussian(param(float(given.value[0]), trainable=given.trainable)).noise
        units = (unit if len(unit) == 1 else unit[scaling.kept]) / scale**2
        alike = np.unique(units, return_inverse=True)[1] if given.value.ndim == 0 else np.arange(D)
        return given, units, alike

    def _kernel(self, lengths: Array) -> Kernel:
        Q, written = int(self.n_components), read_kernel(self.kernel)
        if written.kernel is None:
            family = (written.families or (RBF,))[0]
            return family(lengths)
        names = [f"gplatent{q}" for q in range(Q)]
        described = Columns(tuple(names)).described()
        written.kernel.check_columns(described)
        return written.kernel.in_units(described).resolve(names)

    def _check_memory(self, n: int, m: int, groups: int, D: int) -> None:
        batch = self.batch_size is not None or n > MANY
        unknowns = n * int(self.n_components) * (1 if self.inference == "map" else 2)
        held = 8 * unknowns * (6 if batch else STEPS_KEPT) + 8 * n * (D + groups) * 3
        small = 8 * (8 * groups * m * m + 128 * m * m * 4 + 2 * m * m * D)
        cure = "Fit fewer rows or columns, take fewer inducing points, or give batch_size."
        memory.check_memory(held + small, self.memory_limit, f"Latent places of {n:,} rows", cure)

    def _notes(self, table: Array, columns: Columns, scaling: Scaling) -> list[str]:
        notes = list(columns.told())
        absent = int(np.sum(np.isnan(table)))
        if absent:
            notes.append(f"{absent:,} of {table.size:,} cells are missing and were left out")
        still = np.flatnonzero(scaling.scale == 0)
        if len(still):
            names = some_of([columns.names[j] for j in still])
            notes.append(f"{names}: the same number in all rows, and no part of the model")
        return notes

    # Places. ------------------------------------------------------------------------------------------------

    @memory.translated(*PLACES_SHORT)
    def transform(self, X: Any, return_std: bool = False) -> Any:
        """Places of rows (n, n_components), each found by itself; with `return_std` how far they are known,
        too. Missing cells (NaN) are left out."""
        self._fitted()
        hills = self.state_.place(self._read(X))
        best = hills.mean[:, 0].copy()
        return (best, np.sqrt(hills.var[:, 0])) if return_std else best

    @memory.translated(*PLACES_SHORT)
    def inverse_transform(self, X: Any, X_std: Any = None, return_std: bool = False) -> Any:
        """Rows at these places (n, n_components), in the units of the table; `X_std`: how far the places are
        known. With `return_std` the standard deviation of each cell, noise included, too."""
        self._fitted()
        X = _numbers(X, "X", int(self.n_components))
        given = np.zeros(()) if X_std is None else real_numbers(X_std)
        if given is None or given.shape not in ((), X.shape[1:], X.shape):
            shown = "what is no number" if given is None else f"shape {given.shape}"
            raise InputError(f"X_std has {shown}. Give one number, or one for each number of X {X.shape}.")
        std = np.broadcast_to(given, X.shape)
        if not np.all((std >= 0) & (std <= FARTHEST)):
            raise InputError(f"X_std holds a number that is not between 0 and {FARTHEST:g}.")
        points = self.state_.rows.points
        mean, spread = self.state_.moments(Places(X, None if points else std**2), noise=True)
        return (mean, spread) if return_std else mean

    @memory.translated(*PLACES_SHORT)
    def impute(self, X: Any, return_std: bool = False) -> Any:
        """X with its missing cells filled in: their means over all that the other cells of the row allow;
        with `return_std` the standard deviations of all cells, 0 where one was seen."""
        self._fitted()
        table = self._read(X)
        mean, std = self.state_.averaged(self.state_.place(table), noise=True)
        absent = np.isnan(table)
        filled = np.where(absent, mean, table)
        return (filled, np.where(absent, std, 0.0)) if return_std else filled

    @memory.translated(*PLACES_SHORT)
    def reconstruct(self, X: Any) -> Array:
        """All cells of the rows of X as the model sees them, noise taken away and gaps filled."""
        self._fitted()
        return self.state_.averaged(self.state_.place(self._read(X)), noise=False)[0]

    @memory.translated(*PLACES_SHORT)
    def score_samples(self, X: Any) -> Array:
        """A lower bound on the log density of each row, of the cells that it has."""
        self._fitted()
        table = self._read(X)
        return self.state_.scores(table, self.state_.place(table))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    @memory.translated(*PLACES_SHORT)
    def sample(self, n_samples: int = 1, random_state: Any = None, return_places: bool = False) -> Any:
        """Rows drawn from the model; with `return_places` their places, too."""
        self._fitted()
        count, numbers = check_draws(n_samples), int(self.n_components) + len(self.columns_.names)
        what, cure = f"{count:,} rows drawn", "Draw fewer at a time."
        memory.check_memory(8 * 5 * numbers * count, self.memory_limit, what, cure)
        X, Y = self.state_.draw(generator(random_state), count)
        return (Y, X) if return_places else Y

    # Telling. -----------------------------------------------------------------------------------------------

    @property
    def state_(self) -> LatentState:
        """What is known of places and functions."""
        return self.fitted_.state

    @property
    def columns_(self) -> Columns:
        """The columns of the table."""
        return self.fitted_.columns

    @property
    def evidence_(self) -> Evidence:
        """The bound on log p of the scaled table, and its kind."""
        return self.fitted_.evidence

    @property
    def outcome_(self) -> FitOutcome:
        """How the fit went."""
        return self.fitted_.outcome

    @property
    def embedding_(self) -> Array:
        """Places of the rows of the fit."""
        return self.state_.places.mean

    @property
    def embedding_std_(self) -> Array:
        """How far these are known; 0 for points."""
        var = self.state_.places.var
        return np.zeros_like(self.embedding_) if var is None else np.sqrt(var)

    @property
    def relevance_(self) -> Array:
        """The share of the variation of all columns that goes along each dimension."""
        return self.state_.relevance

    @property
    def n_active_(self) -> int:
        """How many dimensions have a fiftieth of the largest share or more."""
        return self.state_.used

    @property
    def n_iter_(self) -> int:
        """Iterations of the search, over all stages."""
        return max(self.outcome_.iterations, 1)

    @property
    def kernel_(self) -> Kernel:
        """The kernel at the fitted parameters."""
        return self.state_.position.kernel

    @property
    def likelihood_(self) -> Gaussian:
        """The noise at the fitted parameters, in the units of the table."""
        return self.state_.likelihood

    def summary(self) -> str:
        """The fitted model on a page."""
        self._fitted()
        n, D = len(self.embedding_), self.n_features_in_
        shares = ", ".join(f"{share:.3g}" for share in self.relevance_)
        lines = [
            f"GPLatent: {n:,} rows, {D} columns; {self.n_active_} of {self.n_components} dimensions are used",
            f"shares of variation: {shares}",
            f"kernel: {self.kernel_}",
            f"noise: {np.sqrt(np.mean(self.state_.position.variances())):.3g} of a scaled column",
            f"evidence: {self.evidence_}",
            f"{self.outcome_.stopped} after {self.outcome_.evaluations} evaluations,"
            f" {self.outcome_.seconds:.1f} s",
            *self.outcome_.notes,
        ]
        return "\n".join(lines)

    def plot(self, labels: Any = None, dims: tuple[int, int] = (0, 1), ax: Any = None) -> Any:
        """The map of places (see gramian.plots.plot_latent)."""
        from gramian.plots.latent import plot_latent

        return plot_latent(self, labels, dims, ax)

    def plot_reconstruction(self, dim: int = 0, ax: Any = None) -> Any:
        """The columns along one dimension (see gramian.plots.plot_reconstruction)."""
        from gramian.plots.latent import plot_reconstruction

        return plot_reconstruction(self, dim, ax)

    def report(self, *_: Any, **__: Any) -> Never:
        """Refused: a report is of predictions of a target, and latent places predict none."""
        raise ParameterError(
            "GPLatent has no report: it finds places and predicts no target. summary(), relevance_ and"
            " plot() show what it found, score(X) and reconstruct(X) how well."
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model to one file without code, whole or not at all; `gramian.load` reads it."""
        from gramian.modelfile import save

        save(self, path)

    # Helpers. -----------------------------------------------------------------------------------------------

    def _fitted(self) -> None:
        check_is_fitted(self, "fitted_")
        memory.check_compiler(anew=False)

    def _read(self, X: Any) -> Array:
        table = read_named(self, X, self.columns_, "fill", self.memory_limit)[0]
        with np.errstate(over="ignore"):
            far = np.argwhere(np.abs(self.state_.scaling.inward(table)) > FARTHEST)
        if len(far):
            (row, place) = far[0]
            j = int(self.state_.scaling.kept[place])
            name, cell = self.columns_.names[j], table[row, j]
            what = f"column {name!r} has {cell:.3g} in row {row}, beyond all that the fit has seen"
            raise InputError(f"X, {what}. Correct it, or mark it as missing: NaN.")
        return table

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _points(kernel: Kernel, mean: Array, m: int, rng: np.random.Generator) -> Array:
    """Inducing points: centres of clusters of the first places."""
    if m >= len(mean):
        return mean.copy()
    return np.ascontiguousarray(KMeansRule().choose(kernel, mean, m, rng).Z)


def _refuse_categories(columns: Columns) -> None:
    text = [columns.names[j] for j in columns.categories]
    if text:
        cure = "Leave it out, or give indicator columns of 0 and 1 for its categories."
        raise InputError(f"Column {text[0]!r} holds categories; latent places are found from numbers. {cure}")


def _numbers(X: Any, name: str, columns: int) -> Array:
    array = real_numbers(X)
    if array is None:
        raise InputError(f"{name} must hold numbers, one place a row.")
    if array.ndim != 2 or array.shape[1] != columns:
        raise InputError(f"{name} has shape {array.shape}, but places have {columns} columns (n, {columns}).")
    if not np.all(np.isfinite(array)):
        raise InputError(f"{name} holds a number that is not finite.")
    return array


__all__ = ["GPLatent"]
