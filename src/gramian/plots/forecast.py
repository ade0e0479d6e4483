"""Pictures of series: the past with its forecast, and what it is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import dates as untyped

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.estimators.forecaster import FittedSeries, GPForecaster
from gramian.plots.common import BLUE, INK, ORANGE, given_axes, legend_above, legend_within, new_axes

dates: Any = untyped
WIDTH, HEIGHT, A_PART = 9.0, 3.6, 1.9  # inches: of a series, and of one component
MOST_SERIES = 12  # panels
LONGEST_PAST = 10.0  # times the horizon, beyond which the past is cut
AHEAD = 0.2  # of the length of the past: the horizon where none is given
ALONG = 400  # points of a season's shape


def plot_forecast(
    gp: GPForecaster, horizon: Any = None, dates: Any = None, level: float = 0.95, ax: Any = None
) -> Any:
    """Observations, the mean of the forecast and its interval; a panel a series, of up to MOST_SERIES.
    Without a horizon, a fifth of the past. Of a long past the last part."""
    fitted = gp.fitted_
    shown = fitted.series[:MOST_SERIES]
    axes = _axes(ax, len(shown), (WIDTH, HEIGHT * len(shown)))
    table: dict[str, Array] = {}
    if horizon is not None or dates is not None or not fitted.layout.regressors:
        horizon = _fifth(shown) if horizon is None and dates is None else horizon
        table = columns_of(gp.forecast(horizon, dates=dates, level=level))
    for axis, own in zip(axes, shown, strict=True):
        ahead = (
            {}
            if not table
            else {key: values[_rows(table, fitted.layout.name, own)] for key, values in table.items()}
        )
        _series(gp, own, ahead, axis, level)
    if ax is None:
        legend_above(axes[0].figure, axes[0])
    else:
        legend_within(axes[0])
    return axes[0].figure


def _series(gp: GPForecaster, own: FittedSeries, ahead: dict[str, Any], axis: Any, level: float) -> None:
    layout, times = gp.fitted_.layout, gp.fitted_.axis
    X, y = own.gp.X_train_, own.gp.y_train_
    order = np.argsort(X[:, 0], kind="stable")
    t, y = X[order, 0] + own.centre, y[order]
    end = own.last
    if ahead:
        when = ahead[layout.date]
        past = _numbers(gp, when) > own.last
        length = float(np.ptp(np.append(_numbers(gp, when)[past], own.last))) if np.any(past) else 0.0
        if length > 0:
            end = own.last - LONGEST_PAST * length
            y, t = y[t >= end], t[t >= end]
        axis.fill_between(
            when, ahead["lower"], ahead["upper"], color=BLUE, alpha=0.2, lw=0, label=f"{level:.0%} interval"
        )
        axis.plot(when, ahead["mean"], color=BLUE, lw=1.2, label="mean")
    axis.plot(times.labels(t), y, ".", color=INK, ms=3 if len(t) < 500 else 1.5, label="observed")
    axis.set_ylabel(layout.target)
    if own.name:
        axis.set_title(own.name, loc="left", fontsize="medium")
    _dates(axis, times.dated, layout.date)


def plot_components(gp: GPForecaster, horizon: Any = None, series: str | None = None, ax: Any = None) -> Any:
    """What one series is made of, a panel each: trend and the like along the past (and a horizon), seasons
    along one period at its end."""
    fitted = gp.fitted_
    names = [own.name for own in fitted.series]
    if series is not None and series not in names:
        raise ParameterError(f"There is no series {series!r}. There are: {', '.join(names[:8])}.")
    own = fitted.series[0 if series is None else names.index(series)]
    parts = own.structure.names
    axes = _axes(ax, len(parts), (WIDTH, A_PART * len(parts)))
    table = columns_of(gp.components(horizon))
    table = {key: values[_rows(table, fitted.layout.name, own)] for key, values in table.items()}
    periods = {season.name: season.period for season in own.structure.seasons}
    periods |= {f"{a.name} by {b.name}": b.period for a, b in own.structure.crossed}
    for axis, name in zip(axes, parts, strict=True):
        drawn, ends = table, fitted.axis.dated
        if name in periods and not fitted.layout.regressors:
            t = own.last - periods[name] + np.linspace(0, periods[name], ALONG)
            drawn = columns_of(gp.components(dates=fitted.axis.labels(t)))
            drawn = {key: values[_rows(drawn, fitted.layout.name, own)] for key, values in drawn.items()}
        when = drawn[fitted.layout.date]
        axis.fill_between(when, drawn[f"{name}_lower"], drawn[f"{name}_upper"], color=BLUE, alpha=0.2, lw=0)
        axis.plot(when, drawn[name], color=ORANGE if name in periods else BLUE, lw=1.2)
        axis.set_ylabel(name)
        _dates(axis, ends, "")
    return axes[0].figure


def columns_of(table: Any) -> dict[str, Any]:
    """A table of any kind as named arrays."""
    if hasattr(table, "column_names"):  # Arrow
        return {name: table.column(name).to_numpy() for name in table.column_names}
    names = list(table.columns) if hasattr(table, "columns") else list(table)
    return {str(name): np.asarray(table[name]) for name in names}


def _rows(table: dict[str, Any], name: str, own: FittedSeries) -> Any:
    return table[name] == own.name if name else slice(None)


def _numbers(gp: GPForecaster, when: Any) -> Array:
    axis = gp.fitted_.axis
    if not axis.dated:
        return np.asarray(when, dtype=np.float64)
    return (np.asarray(when).astype("M8[us]") - axis.origin) / np.timedelta64(1, "D")


def _fifth(shown: tuple[FittedSeries, ...]) -> int:
    longest = max((own.last - own.first) / own.step.size for own in shown)
    return max(1, round(AHEAD * longest))


def _axes(ax: Any, count: int, size: tuple[float, float]) -> list[Any]:
    if ax is None:
        return list(new_axes(count, 1, size, count))
    return given_axes(
        ax, (count,), f"{{}} axes were given, but there are {count} panels. Give {count}, or none."
    )


def _dates(axis: Any, dated: bool, name: str) -> None:
    if dated:
        ticks = dates.AutoDateLocator(minticks=3, maxticks=8)
        axis.xaxis.set_major_locator(ticks)
        axis.xaxis.set_major_formatter(dates.ConciseDateFormatter(ticks))
    else:
        axis.set_xlabel(name)
    axis.spines[["top", "right"]].set_visible(False)
