"""GPForecaster: series in time, forecast with their uncertainty.

    w(y(t)) = trend(t) + seasons(t) + regressors + short-term(t) + noise

each a Gaussian process (`series/model.py`); w is the identity or a logarithm. What a series is made of is
chosen: its spectrum suggests seasons, and one is taken where it raises the evidence: by LEAST_GAIN nats where
it is of the calendar, else by what its parameters are worth, too (BIC: half a log n each). So are a short
season that follows a long one, regressors that bend, and the logarithm, whose Jacobian counts.

Rows: parameters are found on SEARCHED of them at most, choices made on CHOSEN: the latest third as it is,
which shows what is rough, and of the others some at random, which show trend and seasons. The posterior is
of all rows, as far as the plan of an exact engine allows within SECONDS, else of such a part.

Intervals are checked where there are rows for it: the last fifth of the series is foretold from what was
before, at the same parameters, and where too much of it lies outside, intervals are widened.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Never, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gramian import clock, journal
from gramian.arrays import Array, is_number
from gramian.choose.plan import Prospect, check_time_limit
from gramian.choose.words import as_method
from gramian.corrections import Calibration
from gramian.data.cells import cells_of
from gramian.data.columns import Columns
from gramian.data.frames import Frame
from gramian.engines import Exact
from gramian.errors import InputError, ParameterError
from gramian.estimators.base import check_draws
from gramian.estimators.regressor import GPRegressor
from gramian.estimators.resuming import generator, identify, resumable
from gramian.fitting.outcome import FitOutcome
from gramian.fitting.progress import progress
from gramian.inference import Data, Scheme, closed
from gramian.kernels import Sum
from gramian.kernels.times import days_of
from gramian.linalg import memory
from gramian.params import LogNormal, param
from gramian.predictive import Predictive, check_level
from gramian.series.model import TIME, TREND, Structure, crossing
from gramian.series.paths import A_LENGTH, FEWEST_POINTS, MOST_POINTS, Paths
from gramian.series.spectrum import CALENDAR, Season, suggested
from gramian.series.table import Layout, SeriesRows, read_ahead, read_training
from gramian.series.times import Axis, Step
from gramian.warps import Log, Warp

# rows that choices and parameters are found on: up to 400 need no compiled programs
CHOSEN, SEARCHED = 300, 600
SECONDS = 5.0  # of an exact posterior, beyond which it is of a part of the rows
FEWEST = 8  # rows, for any choice
LONGEST = 1e100  # of a season, in units of time
LEAST_GAIN = 3.0  # nats, for anything to be added
TAIL, FEWEST_CHECKED, WIDEST = 0.2, 30, 2.0  # of a series, for a check of its intervals; rows; times
STEEP = 1.5  # the largest y over the smallest, from which on a logarithm is another model
SHARE = 0.2  # of what is left of a time limit, for a model that is only tried
FORECAST_SHORT = "A forecast", "Ask for fewer dates, or close other programs."
NOISE = 0.05  # of the variance of y: the median of its prior


class Past(NamedTuple):
    """One series, in order: what a fit is of."""

    t: Array  # (n,), all of them
    y: Array  # (n,)
    beside: Array  # (n, regressors)


@dataclass(frozen=True)
class FittedSeries:
    """What a fit leaves of one series."""

    name: str
    gp: GPRegressor
    structure: Structure
    step: Step
    centre: float  # that times are counted from
    first: float  # the first and the last observed
    last: float
    loc: tuple[float, ...]  # of the regressors of numbers
    scale: tuple[float, ...]
    floor: bool  # whether what is forecast is never below 0
    choice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ForecastFitted:
    """What a fit leaves of all of them."""

    layout: Layout
    axis: Axis
    beside: Columns | None  # the regressors
    series: tuple[FittedSeries, ...]
    seconds: float

    @property
    def columns(self) -> Columns:
        """The regressors; without any, the dates."""
        return self.beside or Columns((self.layout.date,), True)


# scikit-learn is not typed
@dataclass(eq=False, repr=False)
class GPForecaster(BaseEstimator):  # type: ignore[misc]
    """Forecasts of one series or many, with trend, seasons, known regressors and intervals.

    Parameters
    ----------
    seasons : "auto" (the default), or a list of periods
        "auto": day, week, year and other periods, as the data have them. A list: these and no others, as
        words ("day", "week", "year"), text ("12 hours", "11 years"), or numbers in days (in the units of the
        times, where these are numbers); an empty one for none.
    warp : "auto" (the default), "log", None or a Warp
        A map of y. "auto": a logarithm where all y are positive and the evidence is for it, so that parts
        multiply and forecasts stay above 0.
    positive : "auto" (the default), True or False
        Whether forecasts end at 0. "auto": where no y is negative.
    date, target, id : str, optional
        Columns of the table: when, what, and of which series. None: by usual names (ds, y and unique_id
        among them).
    regressors : list of str, optional
        Further columns that explain y and are known ahead; numbers, yes and no, or categories.
    method : "auto" (the default), or an engine, as for GPRegressor
    random_state : int, RandomState or None
        For the rows that parameters are found on, and for draws.
    memory_limit : int or str, optional
    time_limit : float, optional
        Seconds for a fit of all series.
    checkpoint : str or path, optional
        A file in which a fit writes down what it has found, so that one that was stopped goes on from there
        (see GPRegressor).
    verbose : bool, optional
        Progress on standard error: None on a terminal only.

    Attributes
    ----------
    seasons_ : names of the seasons that were chosen, of one series; of many, by its name
    models_ : the GPRegressor of each series, by its name ("" where there is one)
    outcome_ : how the fit went, of one series; of many, by its name
    """

    seasons: str | Sequence[Any] = "auto"
    warp: str | Warp | None = field(default="auto", kw_only=True)
    positive: str | bool = field(default="auto", kw_only=True)
    date: str | None = field(default=None, kw_only=True)
    target: str | None = field(default=None, kw_only=True)
    id: str | None = field(default=None, kw_only=True)
    regressors: Sequence[str] | None = field(default=None, kw_only=True)
    method: Any = field(default="auto", kw_only=True)
    random_state: Any = field(default=None, kw_only=True)
    memory_limit: int | str | None = field(default=None, kw_only=True)
    time_limit: float | None = field(default=None, kw_only=True)
    checkpoint: str | os.PathLike[str] | None = field(default=None, kw_only=True)
    verbose: bool | None = field(default=None, kw_only=True)

    fitted_: ForecastFitted = field(init=False)

    # Fitting. -----------------------------------------------------------------------------------------------

    def check_settings(self) -> None:
        """Refuses impossible settings, before any work."""
        self._given_seasons(dated=True)
        if not (self.warp is None or self.warp in ("auto", "log") or isinstance(self.warp, Warp)):
            raise ParameterError(f'warp={self.warp!r} must be "auto", "log", None or a warp such as Log().')
        if not (self.positive == "auto" or isinstance(self.positive, (bool, np.bool_))):
            raise ParameterError(f'positive={self.positive!r} must be "auto", True or False.')
        if isinstance(self.regressors, str):
            raise ParameterError(
                f"regressors={self.regressors!r}: give a list of columns, [{self.regressors!r}]."
            )
        if self.regressors is not None and TIME in self.regressors:
            raise ParameterError(f"A regressor may not be called {TIME!r}, as times are. Rename the column.")
        check_time_limit(self.time_limit)
        if self.memory_limit is not None:
            memory.parse_bytes(self.memory_limit)
        if not (isinstance(self.method, str) and self.method == "auto"):
            as_method(self.method, self.memory_limit)

    @memory.translated("The fit", "Fit fewer rows, or give a memory_limit.")
    @resumable
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learns from a table (a DataFrame, or the path of a file) with a date and a target column, or from
        dates and values: fit(table), fit(table, "sales"), fit(dates, y). Rows may be in any order, dates
        irregular, values missing."""
        self.check_settings()
        began = clock.now()
        names = tuple(map(str, self.regressors or ()))
        given = X, y, self.date, self.target, self.id, names
        layout, axis, rows = read_training(*given, self.memory_limit)
        written = {"dates": rows.t, "y": rows.y, "regressors": rows.beside}
        identify(self, written, series=str(rows.series.tolist()))
        rng, found = generator(self.random_state), []
        series = list(dict.fromkeys(rows.series.tolist()))
        end = None if self.time_limit is None else began + float(self.time_limit)
        with progress(self.verbose) as report:
            if resumed := journal.resumed():
                report.resumed(resumed)
            for k, name in enumerate(series):
                if len(series) > 1:
                    report.stage(f"series {k + 1:,} of {len(series):,} ({name})", 0)
                now = clock.now()
                share = None if end is None else now + max(end - now, 0.0) / (len(series) - k)
                one = rows.series == name
                where = f"Series {name!r}: " if layout.name else ""
                found.append(
                    self._one(
                        name, where, _past(rows, one, axis, layout, where), axis, rows.columns, rng, share
                    )
                )
        self.fitted_ = ForecastFitted(layout, axis, rows.columns, tuple(found), clock.now() - began)
        return self

    def _one(
        self,
        name: str,
        where: str,
        past: Past,
        axis: Axis,
        columns: Columns | None,
        rng: np.random.Generator,
        end: float | None,
    ) -> FittedSeries:
        seen = np.isfinite(past.y)
        if not np.any(seen):
            raise InputError(f"{where}no y was observed. Give at least one number.")
        step = axis.step(past.t)
        t, y, beside = past.t[seen], past.y[seen], past.beside[seen]
        span = float(t[-1] - t[0])
        centre = float(t[0] + span / 2)
        numeric, loc, scale = _scaling(beside, columns)
        words = () if columns is None else tuple(columns.names[j] for j in columns.categories)
        table = _inputs(t - centre, beside, columns, loc, scale)
        work = _Work(self, table, y, max(span, step.size), step.size, rng, end)
        structure = Structure(numeric=numeric, words=words)
        kept = work.chosen(
            structure, self._seasons(t, y, step, axis.dated, rng), self._warps(y), self.seasons != "auto"
        )
        gp, notes = work.whole(kept)
        floor = self.positive if self.positive != "auto" else bool(np.min(y) >= 0)
        if (gaps := int(np.sum(~seen))) > 0:
            notes.append(f"{gaps:,} of {len(seen):,} rows have no target and were left out.")
        return FittedSeries(
            name,
            gp,
            kept.structure,
            step,
            centre,
            float(t[0]),
            float(t[-1]),
            loc,
            scale,
            bool(floor),
            tuple(work.lines),
            tuple(notes),
        )

    def _given_seasons(self, dated: bool) -> list[Season] | None:
        """Those that were asked for; None: to be chosen."""
        if isinstance(self.seasons, str):
            if self.seasons == "auto":
                return None
            cure = f"a list such as ['{self.seasons}']"
            raise ParameterError(f'seasons={self.seasons!r} must be "auto", or {cure}.')
        found = []
        for given in self.seasons:
            if isinstance(given, str):
                days = CALENDAR.get(given.lower().removesuffix("ly")) or days_of(given)
                if not dated:
                    raise ParameterError(
                        f"seasons: {given!r} is a span of time, but times are numbers. Give a number."
                    )
                found.append(Season(given, days))
            elif is_number(given) and 0 < given <= LONGEST:
                known = next(
                    (name for name, days in CALENDAR.items() if dated and abs(days / given - 1) < 1e-3), None
                )
                found.append(Season(known or f"every {given:g}", float(given)))
            else:
                raise ParameterError(
                    f"seasons: {given!r} is no period. Give words, text or positive numbers."
                )
        if len({season.name for season in found}) < len(found):
            raise ParameterError(f"seasons={self.seasons!r} has one of them twice.")
        return found

    def _seasons(self, t: Array, y: Array, step: Step, dated: bool, rng: np.random.Generator) -> list[Season]:
        given = self._given_seasons(dated)
        if given is not None:
            return given
        if len(t) < FEWEST:
            return []
        # a spectrum of what grows by shares is clearer in logarithms
        steep = self.warp in ("auto", "log") and np.min(y) > 0 and np.max(y) > STEEP * np.min(y)
        return suggested(t, np.log(y) if steep else y, step.size, dated, rng)

    def _warps(self, y: Array) -> list[Warp | None]:
        """What y may be sent through; the first is where choices are made."""
        if self.warp == "log":
            return [Log()]
        if self.warp != "auto":
            assert not isinstance(self.warp, str)
            return [self.warp]
        steep = len(y) >= FEWEST and np.min(y) > 0 and np.max(y) > STEEP * np.min(y)
        return [None, Log()] if steep else [None]

    # Forecasting. -------------------------------------------------------------------------------------------

    @memory.translated(*FORECAST_SHORT)
    def forecast(self, horizon: Any = None, *, dates: Any = None, level: float = 0.95) -> Any:
        """A table of forecasts, of the kind that the fit was given (of arrays and files, named arrays): date,
        mean, median, and the ends of the interval of y, lower and upper, which holds `level` of what comes.

        `horizon`: how far beyond the last observed date of each series: 12 (steps), "90d", "24h", "8w",
        "12M" (months), "2y", or a timedelta. `dates`: instead, the dates; or a table with them, with the
        regressors where there are any, and with the names of series where there are several (without those,
        the dates of all). Dates of the past are allowed: what the model says of them.
        """
        self._fitted()
        check_level(level)
        parts = []
        for own, t, beside in self._ahead(horizon, dates):
            foretold = own.gp.predict_dist(self._table(own, t, beside))
            lower, upper = foretold.interval(level)
            columns = {"mean": foretold.mean, "median": foretold.quantile([0.5])[:, 0]}
            columns |= {"lower": lower, "upper": upper}
            if own.floor:
                columns = {key: np.maximum(values, 0.0) for key, values in columns.items()}
            parts.append((own, t, columns))
        return self._made(parts)

    @memory.translated(*FORECAST_SHORT)
    def predict_dist(self, horizon: Any = None, *, dates: Any = None) -> dict[str, Predictive]:
        """The distribution of y at the dates ahead, by the name of the series: quantiles, probabilities,
        densities (see gramian.predictive). Not cut at 0. Arguments are those of `forecast`."""
        self._fitted()
        return {
            own.name: own.gp.predict_dist(self._table(own, t, beside))
            for own, t, beside in self._ahead(horizon, dates)
        }

    @memory.translated(*FORECAST_SHORT)
    def sample(
        self, horizon: Any = None, n_samples: int = 100, *, dates: Any = None, random_state: Any = None
    ) -> Any:
        """Paths that the series may take, noise included: (dates, n_samples); of several series by name.
        Sums and maxima over dates are those of each path."""
        self._fitted()
        count, found = check_draws(n_samples), {}
        rng = generator(self.random_state if random_state is None else random_state)
        for own, t, beside in self._ahead(horizon, dates):
            drawn = own.gp.sample(
                self._table(own, t, beside), count, target="y", random_state=int(rng.integers(2**31))
            )
            found[own.name] = np.maximum(drawn, 0.0) if own.floor else drawn
        return found if self.fitted_.layout.name else found[""]

    @memory.translated(*FORECAST_SHORT)
    def draws(
        self,
        n_samples: int = 200,
        start: Any = None,
        end: Any = None,
        *,
        series: str | None = None,
        random_state: Any = None,
    ) -> Paths:
        """Functions that one series may follow, noise left out: to be evaluated (`draws(dates)`), maximised
        (`draws.highest(start, end)`) and crossed (`draws.crossing(level, start, end)`), from `start` to `end`
        (by default the first and the last observed date). What a season's peak, or the day of a threshold,
        may be is then what it is on each of them."""
        self._fitted()
        if self.fitted_.layout.regressors:
            raise ParameterError("Functions of time alone are drawn; with regressors: sample(dates=table).")
        known = {own.name: own for own in self.fitted_.series}
        if series is None and len(known) > 1:
            raise ParameterError(f"There are {len(known)} series. Name one: series={next(iter(known))!r}.")
        own = known.get(next(iter(known)) if series is None else series)
        if own is None:
            raise ParameterError(f"There is no series {series!r}. There are: {', '.join(list(known)[:8])}.")
        axis = self.fitted_.axis
        first, last = (
            other if given is None else float(axis.read(cells_of(np.array([given]), "dates"), "dates")[0])
            for given, other in ((start, own.first), (end, own.last))
        )
        if not last > first:
            raise ParameterError(
                f"start={start!r} and end={end!r} leave no range. Give an end after the start."
            )
        lengths = [length for _, length in own.gp.fitted_.model.kernel.change_lengths([0])]
        count = int(np.clip(A_LENGTH * (last - first) / min(lengths), FEWEST_POINTS, MOST_POINTS))
        t = np.linspace(first, last, count)
        rng = generator(self.random_state if random_state is None else random_state)
        seed = int(rng.integers(2**31))
        values = own.gp.sample((t - own.centre)[:, None], check_draws(n_samples), random_state=seed)
        return Paths(axis, t, np.maximum(values, 0.0) if own.floor else values)

    @memory.translated(*FORECAST_SHORT)
    def components(self, horizon: Any = None, *, dates: Any = None, level: float = 0.95) -> Any:
        """A table of what the series are made of, at the dates of the fit and, with `horizon`, beyond (or at
        `dates`): for each part its mean, under its name, and the ends of its interval (`year_lower`,
        `year_upper`).

        In the units of y, and they add up; where y went through a logarithm, the trend is in the units of y
        and the others are factors, and they multiply.
        """
        self._fitted()
        check_level(level)
        parts = []
        for own, t, at in self._seen(horizon, dates):
            parts.append((own, t, _components(own, at, level)))
        return self._made(parts)

    def _made(self, parts: list[tuple[FittedSeries, Array, dict[str, Array]]]) -> Any:
        """One table of all series."""
        layout, axis = self.fitted_.layout, self.fitted_.axis
        columns: dict[str, NDArray[Any]] = {}
        if layout.name:
            names = [np.full(len(t), own.name, dtype=object) for own, t, _ in parts]
            columns[layout.name] = np.concatenate(names)
        columns[layout.date] = axis.labels(np.concatenate([t for _, t, _ in parts]))
        for key in dict.fromkeys(key for _, _, own in parts for key in own):
            cells = [own.get(key, np.full(len(t), np.nan)) for _, t, own in parts]
            columns[key] = np.concatenate(cells)
        return layout.table(columns)

    def _ahead(self, horizon: Any, dates: Any) -> Iterator[tuple[FittedSeries, Array, Array]]:
        """The series, times and regressors that are asked for."""
        layout, axis = self.fitted_.layout, self.fitted_.axis
        if (horizon is None) == (dates is None):
            raise ParameterError("Give a horizon (12, '90d', '12M') or dates, and not both.")
        if dates is None:
            if layout.regressors:
                raise ParameterError(
                    f"This forecast needs {', '.join(layout.regressors)} at the dates ahead: give them in a"
                    f" table with {layout.date!r}, forecast(dates=table)."
                )
            for own in self.fitted_.series:
                t = axis.following(own.last, own.step, horizon)
                yield own, t, np.empty((len(t), 0))
            return
        rows = read_ahead(dates, layout, axis, self.fitted_.beside, self.memory_limit)
        known = {own.name: own for own in self.fitted_.series}
        asked = list(dict.fromkeys(rows.series.tolist()))
        if layout.name and asked == [""]:
            for own in self.fitted_.series:
                yield own, rows.t, rows.beside
            return
        for name in asked:
            if name not in known:
                shown = ", ".join(list(known)[:8])
                raise InputError(f"There is no series {name!r} in the fit. There are: {shown}.")
            at = rows.series == name
            yield known[name], rows.t[at], rows.beside[at]

    def _seen(self, horizon: Any, dates: Any) -> Iterator[tuple[FittedSeries, Array, Array]]:
        """The series, times and rows as the model reads them: of the fit and ahead, or at some dates."""
        if dates is not None:
            for own, t, beside in self._ahead(horizon, dates):
                yield own, t, own.gp.read(self._table(own, t, beside))
            return
        ahead = {} if horizon is None else {own.name: t for own, t, _ in self._ahead(horizon, None)}
        for own in self.fitted_.series:
            past = own.gp.X_train_[np.argsort(own.gp.X_train_[:, 0], kind="stable")]
            t = ahead.get(own.name, np.empty(0))
            later = own.gp.read(self._table(own, t, np.empty((len(t), 0)))) if len(t) else past[:0]
            yield own, np.concatenate([past[:, 0] + own.centre, t]), np.concatenate([past, later])

    def _table(self, own: FittedSeries, t: Array, beside: Array) -> Any:
        return _inputs(t - own.centre, beside, self.fitted_.beside, own.loc, own.scale)

    # Telling. -----------------------------------------------------------------------------------------------

    @property
    def models_(self) -> dict[str, GPRegressor]:
        """The model of each series, by its name."""
        return {own.name: own.gp for own in self.fitted_.series}

    @property
    def seasons_(self) -> Any:
        """Names of the seasons of one series; of several, by the name of the series."""
        return self._told(lambda own: tuple(season.name for season in own.structure.seasons))

    @property
    def kernel_(self) -> Any:
        """The kernel of one series, at the fitted parameters; of several, by the name of the series."""
        return self._told(lambda own: own.gp.kernel_)

    @property
    def outcome_(self) -> Any:
        """How the fit of one series went; of several, by the name of the series."""
        return self._told(_outcome)

    def _told(self, of: Callable[[FittedSeries], Any]) -> Any:
        found = {own.name: of(own) for own in self.fitted_.series}
        return found if self.fitted_.layout.name else found[""]

    def summary(self) -> str:
        """The fitted series on a page."""
        self._fitted()
        layout, axis, lines = self.fitted_.layout, self.fitted_.axis, []
        for own in self.fitted_.series:
            outcome, title = _outcome(own), f"series {own.name}: " if layout.name else ""
            span = f"from {axis.word(own.first)} to {axis.word(own.last)}"
            lines.append(f"{title}{own.gp.fitted_.n_rows:,} rows {span}, {own.step.told(axis.dated)}")
            lines.append(f"  parts: {', '.join(own.structure.names)}")
            warp = own.gp.fitted_.model.warp
            lines.append(f"  y: {'as it is' if warp is None else f'through {warp!r}'}")
            lines += [f"  {line}" for line in own.choice]
            lines.append(f"  {outcome.method}: {outcome.reason}")
            lines += [f"  note: {note}" for note in outcome.notes]
        return "\n".join([*lines, f"{self.fitted_.seconds:.1f} s"])

    def plot(self, horizon: Any = None, *, dates: Any = None, level: float = 0.95, ax: Any = None) -> Any:
        """The past with its forecast (see gramian.plots.forecast)."""
        from gramian.plots.forecast import plot_forecast

        self._fitted()
        return plot_forecast(self, horizon, dates, level, ax)

    def plot_components(self, horizon: Any = None, series: str | None = None, ax: Any = None) -> Any:
        """Trend, seasons and the like, a panel each (see gramian.plots.forecast)."""
        from gramian.plots.forecast import plot_components

        self._fitted()
        return plot_components(self, horizon, series, ax)

    def report(self, *_: Any, **__: Any) -> Never:
        """Refused: a report is of a table, and a forecast is judged by dates that come later."""
        raise ParameterError(
            "GPForecaster has no report: it says what left-out rows of a table are foretold like, and a"
            " forecast is of dates ahead. Hold the last dates back and compare them with forecast();"
            " summary(), plot() and plot_components() show the rest."
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model to one file without code, whole or not at all; `gramian.load` reads it."""
        from gramian.modelfile import save

        save(self, path)

    # Helpers. -----------------------------------------------------------------------------------------------

    def _fitted(self) -> None:
        check_is_fitted(self, "fitted_")

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in vars(self)


class Kept(NamedTuple):
    """A model that was tried."""

    structure: Structure
    warp: Warp | None
    gp: GPRegressor
    evidence: float  # of y in its own units
    rows: int  # that it was fitted on


@dataclass
class _Work:
    """The fit of one series."""

    settings: GPForecaster
    table: Any
    y: Array
    span: float
    step: float
    rng: np.random.Generator
    end: float | None
    lines: list[str] = field(default_factory=list)

    def chosen(
        self, structure: Structure, seasons: list[Season], warps: list[Warp | None], given: bool
    ) -> Kept:
        """The model by evidence, on some rows. Seasons that were given are not asked."""
        rows = _part(len(self.y), CHOSEN, self.rng)
        if given:
            structure = replace(structure, seasons=tuple(seasons))
        best = self._tried(structure, warps[0], rows, None, SHARE)
        few = len(self.y) < FEWEST
        for season in [] if given or few else seasons:
            best = self._better(best, best.structure.with_season(season), season.name, rows, season.known)
        order = sorted(best.structure.seasons, key=lambda season: season.period)
        if len(order) > 1 and not few:
            pair = order[0], order[-1]
            best = self._better(best, best.structure.with_crossed(*pair), crossing(*pair), rows)
        if structure.numeric and not few:
            bent = replace(best.structure, smooth=True)
            best = self._better(best, bent, "regressors that bend", rows)
        for warp in warps[1:]:
            if self._late():
                break
            other = self._tried(best.structure, warp, rows, None, SHARE)
            best = self._decided(best, other, "a logarithm of y", LEAST_GAIN)
        return best

    def _better(
        self, best: Kept, structure: Structure, what: str, rows: NDArray[np.intp], likely: bool = False
    ) -> Kept:
        """The richer model where its evidence is higher by enough; what is `likely` before any data, as a
        year is, need not pay for its parameters."""
        if self._late():
            self.lines.append(f"{what}: not tried, for want of time")
            return best
        other = self._tried(structure, best.warp, rows, best.gp, SHARE)
        more = other.gp.fitted_.n_parameters - best.gp.fitted_.n_parameters
        price = 0.0 if likely else 0.5 * more * math.log(len(rows))
        return self._decided(best, other, what, LEAST_GAIN + price)

    def _decided(self, best: Kept, other: Kept, what: str, needed: float) -> Kept:
        gain = other.evidence - best.evidence
        taken = gain > needed
        verdict = "taken" if taken else "left out"
        self.lines.append(f"{what}: {verdict}, log evidence {gain:+.1f} nats (needed: {needed:.1f})")
        return other if taken else best

    def whole(self, kept: Kept) -> tuple[GPRegressor, list[str]]:
        """The parameters on more rows, and the posterior of all that can be had."""
        n, notes = len(self.y), []
        if n > kept.rows and not self._late():
            rows = _part(n, SEARCHED, self.rng)
            kept = self._tried(kept.structure, kept.warp, rows, kept.gp, 1.0)
        gp = kept.gp
        scheme, most = self._affordable(gp, n) if n > kept.rows else (closed(Exact()), n)
        factor = self._checked(gp, scheme, most)
        if n > kept.rows:
            rows = _part(n, most, self.rng)
            if most < n:
                notes.append(
                    f"{n:,} rows are more than an exact posterior can have here: it is of {most:,}, the"
                    " latest third as they are, and of those before some at random."
                )
            X = gp.read(_at(self.table, rows))
            data = Data(X, self.y[rows, None], gp.fitted_.facts.scale)
            gp.fitted_ = gp.fitted_.conditioned(data, scheme, self.rng)
        if factor > 1:
            gp.fitted_ = replace(gp.fitted_, calibration=Calibration(factor))
            notes.append(
                f"The last fifth, foretold from what was before, lay outside its intervals more often than"
                f" it should: intervals are {factor:.2f} times as wide as the model's own."
            )
        if self.end is not None and clock.now() > self.end:
            notes.append("The time limit was over before the fit was.")
        return gp, notes

    def _checked(self, gp: GPRegressor, scheme: Scheme, most: int) -> float:
        """How much wider intervals have to be, after the last fifth of the series, foretold from rows before:
        so that they would have held as many as they say. At least 1, and at most WIDEST.

        From as many rows as the posterior has (`most`): with fewer, intervals are wider than its own, and
        hold more. From two earlier dates of the hourly load 600 rows had 1.03 and 1.10, and the year
        after lay within such intervals to 0.91; as many as the posterior have 1.15 and 1.21, and held 0.94.
        """
        n = len(self.y)
        time = self.table[TIME] if isinstance(self.table, Frame) else self.table[:, 0]
        cut = int(np.searchsorted(time, time[0] + (1 - TAIL) * (time[-1] - time[0])))
        if cut < FEWEST_CHECKED or n - cut < FEWEST_CHECKED or self._late():
            return 1.0
        before = _part(cut, most, self.rng)
        after = np.sort(cut + self.rng.choice(n - cut, min(n - cut, SEARCHED), replace=False))
        data = Data(gp.read(_at(self.table, before)), self.y[before, None], gp.fitted_.facts.scale)
        past = gp.fitted_.conditioned(data, scheme, self.rng)
        chance = past.predictive(gp.read(_at(self.table, after))).cdf(self.y[after])
        z = ndtri(np.clip(chance, 1e-12, 1 - 1e-12))
        # errors that follow each other are few: their share outside is known to a standard error, of which
        # half is left to chance
        follows = float(np.clip(np.mean((z[1:] - z.mean()) * (z[:-1] - z.mean())) / np.var(z), 0.0, 0.99))
        independent = len(z) * (1 - follows) / (1 + follows)
        held = 0.95 - 0.5 * math.sqrt(0.95 * 0.05 / independent)
        return float(np.clip(np.quantile(np.abs(z), max(held, 0.5)) / ndtri(0.975), 1.0, WIDEST))

    def _affordable(self, gp: GPRegressor, n: int) -> tuple[Scheme, int]:
        """An exact scheme, and how many of n rows it can have: all, where the plan says so."""
        # half of what is left: there are two, one of them for the check of intervals
        left = math.inf if self.end is None else max(0.5 * (self.end - clock.now()), 0.1)
        d, most, given = len(gp.fitted_.columns.names), n, self.settings.method
        while True:
            plan = Prospect(most, d, 1, gp.fitted_.kernel, self.settings.memory_limit, None, False)
            scheme = plan.automatic()[0] if given == "auto" else closed(as_method(given, plan.limit))
            option = plan.option(scheme)
            fits = option.fits and (scheme.exact or given != "auto")
            if (fits and option.final_seconds <= min(SECONDS, left)) or most <= CHOSEN:
                return scheme, most
            most = max(int(0.8 * most), CHOSEN)

    def _tried(
        self,
        structure: Structure,
        warp: Warp | None,
        rows: NDArray[np.intp],
        known: GPRegressor | None,
        share: float,
    ) -> Kept:
        """A fit to some rows; parts that a known model has begin where it ended."""
        kernel = structure.kernel(self.span, self.step)
        if known is not None:
            fitted = {part.title: part for part in known.fitted_.kernel.summands}
            kernel = Sum(tuple(fitted.get(part.title, part) for part in kernel.summands))
        y = self.y[rows]
        variance = max(float(np.var(y)), 1e-30)
        noise = float(known.fitted_.model.gaussian.variances()[0]) if known is not None else NOISE * variance
        gp = GPRegressor(
            kernel,
            noise=param(max(noise, 1e-6 * variance), prior=LogNormal(math.log(NOISE * variance), 2.0)),
            warp=warp,
            method="auto" if self.settings.method == "auto" else self.settings.method,
            n_restarts=0,
            random_state=int(self.rng.integers(2**31)),
            memory_limit=self.settings.memory_limit,
            time_limit=self._limit(share),
            verbose=False,
        )
        gp.fit(_at(self.table, rows), y)
        return Kept(structure, warp, gp, gp.fitted_.evidence_of_y()[0], len(rows))

    def _limit(self, share: float) -> float | None:
        return None if self.end is None else max(share * (self.end - clock.now()), 0.2)

    def _late(self) -> bool:
        """Whether half of the time is over: from there on it is for what was chosen."""
        if self.end is None:
            return False
        left = self.end - clock.now()
        return journal.chosen("late", bool, lambda: left < 0.5 * self.total)

    @property
    def total(self) -> float:
        return float(self.settings.time_limit or math.inf)


def _components(own: FittedSeries, at: Array, level: float) -> dict[str, Array]:
    """Mean and interval of each part, at rows as the model reads them."""
    z, fitted = float(ndtri(0.5 + level / 2)), own.gp.fitted_
    summands = dict(zip(own.structure.titles.items(), fitted.model.kernel.summands, strict=True))
    grouped = ([part for (_, of), part in summands.items() if of == name] for name in own.structure.names)
    kernels = [parts[0] if len(parts) == 1 else Sum(tuple(parts)) for parts in grouped]
    pairs = fitted.process_at(at).components(at, kernels)
    constant = fitted.process.mean(at)[:, 0] - np.sum([mean[:, 0] for mean, _ in pairs], axis=0)
    found, warp = {}, fitted.model.warp
    factors = warp if warp is not None and warp.multiplies else None  # else parts stay as the model has them
    one = 0.0 if factors is None else float(factors.forward(np.ones((1, 1)))[0, 0])  # of a factor of 1
    for name, (mean, var) in zip(own.structure.names, pairs, strict=True):
        centre, half = mean[:, 0] + (constant if name == TREND else one), z * np.sqrt(var[:, 0])
        for suffix, values in (("", centre), ("_lower", centre - half), ("_upper", centre + half)):
            found[name + suffix] = values if factors is None else factors.inverse(values[:, None])[:, 0]
    return found


def _past(rows: SeriesRows, which: NDArray[np.bool_], axis: Axis, layout: Layout, where: str) -> Past:
    """One series in the order of its times, each once."""
    order = np.flatnonzero(which)
    order = order[np.argsort(rows.t[order], kind="stable")]
    t = rows.t[order]
    again = np.flatnonzero(np.diff(t) <= 0)
    if len(again):
        first, second = sorted((int(order[again[0]]), int(order[again[0] + 1])))
        cure = "Sum or average its rows" if where else "Sum or average them, or tell series apart: id='...'"
        raise InputError(
            f"{where}{axis.word(float(t[again[0]]))} is there twice, in rows {first} and {second} of"
            f" {layout.date!r} ({len(again):,} such in all). {cure}."
        )
    return Past(t, rows.y[order], rows.beside[order])


def _part(n: int, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The latest third, and of the rows before some at random, in order."""
    if n <= most:
        return np.arange(n)
    late = most // 3
    early = np.sort(rng.choice(n - late, most - late, replace=False))
    return np.concatenate([early, np.arange(n - late, n)])


def _scaling(
    beside: Array, columns: Columns | None
) -> tuple[tuple[str, ...], tuple[float, ...], tuple[float, ...]]:
    """The regressors of numbers, and where they are and how far they spread; of others 0 and 1."""
    if columns is None:
        return (), (), ()
    words = columns.categories
    numeric = tuple(name for j, name in enumerate(columns.names) if j not in words)
    loc = [0.0 if j in words else float(np.mean(beside[:, j])) for j in range(beside.shape[1])]
    spread = [1.0 if j in words else float(np.std(beside[:, j])) for j in range(beside.shape[1])]
    return numeric, tuple(loc), tuple(sd if sd > 0 else 1.0 for sd in spread)


def _inputs(
    t: Array, beside: Array, columns: Columns | None, loc: Sequence[float], scale: Sequence[float]
) -> Any:
    """What the model sees: times alone, or beside regressors, words as words."""
    if columns is None:
        return t[:, None]
    cells: dict[str, NDArray[Any]] = {TIME: t}
    for j, name in enumerate(columns.names):
        levels = columns.categories.get(j)
        if levels is None:
            cells[name] = (beside[:, j] - loc[j]) / scale[j]
        else:
            # a word that the fit has not seen is one of its own
            known = [*levels, "a word that is new"]
            cells[name] = np.array(
                [f"={known[min(int(code), len(levels))]}" for code in beside[:, j]], dtype=object
            )
    return Frame(cells)


def _at(table: Any, rows: NDArray[np.intp]) -> Any:
    return (
        Frame({name: table[name][rows] for name in table.columns})
        if isinstance(table, Frame)
        else table[rows]
    )


def _outcome(own: FittedSeries) -> FitOutcome:
    outcome = own.gp.fitted_.outcome
    return replace(outcome, choice=own.choice, notes=(*own.notes, *outcome.notes))


__all__ = ["GPForecaster"]
