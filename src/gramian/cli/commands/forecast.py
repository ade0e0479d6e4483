"""The command for series: forecast."""

from __future__ import annotations

from pathlib import Path

from gramian.cli.commands.options import CHECKPOINT, argument, option
from gramian.cli.guard import guarded


def forecast(
    data: Path = argument("DATA", "The table, a row a date; - is standard input."),
    horizon: str | None = option(
        "--horizon SPAN", "How far beyond the last date: 12 (steps), 24h, 90d, 8w, 12M (months) or 2y."
    ),
    date: str | None = option(
        "--date NAME", "The column of dates, or of numbers; by default as it is named."
    ),
    target: str | None = option(
        "--target -t NAME", "The column to forecast; by default y, or the only other."
    ),
    series: str | None = option("--id NAME", "The column that tells series apart; by default unique_id."),
    regressors: list[str] | None = option(
        "--regressors A,B,C", "Further columns that explain the target and are known ahead; see --future."
    ),
    future: Path | None = option(
        "--future FILE", "Instead of a horizon: a table with the dates, and with the regressors."
    ),
    out: Path | None = option("--out -o FILE", "Where to write; by default CSV to standard output."),
    plot: Path | None = option("--plot FILE", "Where to draw the forecast, for example forecast.png."),
    components: Path | None = option("--components FILE", "Where to write trend and seasons, a column each."),
    model: Path | None = option("--model FILE", "Where to write the model, for Python: gramian.load."),
    level: float = option("--level SHARE", "Of the interval.", 0.95),
    seasons: str | None = option(
        "--seasons A,B",
        "day, week, year, or spans such as 12 hours; none: none. By default as the data have.",
    ),
    seed: int = option("--seed N", "The same seed gives the same forecast.", 0),
    time_limit: float | None = option("--time-limit SECONDS", "For the fit of all series."),
    memory_limit: str | None = option(
        "--memory-limit SIZE", "Refuse to start if more is needed, for example 2GB."
    ),
    checkpoint: Path | None = CHECKPOINT,
) -> None:
    """Forecast one series or many: trend, seasons, known regressors, and intervals.

    Writes a row for each date ahead: mean, median, and the lower and upper end of the interval. Dates may be
    irregular, values missing. Columns called ds, y and unique_id are known by these names.

    \b
    Examples:
      gramian forecast sales.csv --date ds --target y --horizon 90d --out forecast.csv --plot forecast.png
      gramian forecast shops.csv --id shop --horizon 12M --out forecast.csv
      gramian forecast sales.csv --regressors price,promo --future plan.csv --out forecast.csv
    """
    with guarded(time_limit):
        from gramian.cli.columns import as_path
        from gramian.cli.forecast import forecast_table, listed_seasons
        from gramian.estimators.forecaster import GPForecaster

        names = [name.strip() for given in regressors or [] for name in given.split(",")]
        gp = GPForecaster(
            listed_seasons(seasons), date=date, target=target, id=series, regressors=names or None
        )
        gp.set_params(random_state=seed, time_limit=time_limit, memory_limit=memory_limit)
        gp.set_params(checkpoint=checkpoint)
        with as_path(data, memory_limit) as path:
            forecast_table(path, gp, horizon, future, level, out, plot, components, model)
