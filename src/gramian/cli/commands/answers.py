"""The commands that ask a model file: predict, score, show and report."""

from __future__ import annotations

from pathlib import Path

import typer

from gramian.cli.commands.options import EXPOSURE, TRIALS, argument, option
from gramian.cli.guard import guarded


def predict(
    model: Path = argument("MODEL", "A model file written by gramian fit, or by save in Python."),
    data: Path = argument("DATA", "The table with the rows to predict; - is standard input."),
    out: Path | None = option("--out -o FILE", "Where to write; by default CSV to standard output."),
    target_kind: str = option(
        "--target-kind y|f",
        "The uncertainty of a new observation (y), or of the function without noise (f).",
        "y",
    ),
    exposure: str | None = EXPOSURE,
    level: float = option(
        "--level SHARE", "How probable the interval is: with 0.9 its ends are lower90 and upper90.", 0.95
    ),
    quantiles: str | None = option(
        "--quantiles P,P,P", "Quantiles to add, each as a column: 0.1,0.5,0.9 gives q0.1, q0.5 and q0.9."
    ),
    trials: str | None = TRIALS,
) -> None:
    """Predict the rows of a table, with their uncertainty.

    All columns and rows of DATA are kept as they are, in their order, and four columns are added: mean, std,
    lower95 and upper95 (the 95 % interval); with several targets mean_<target> and so on. For labels:
    predicted, the most probable one, and proba_..., the probability of each. The model's columns are found by
    their names; further columns do no harm.

    \b
    Examples:
      gramian predict model.gm new.csv --out predictions.csv
      gramian predict model.gm new.csv --level 0.9 --quantiles 0.1,0.5,0.9 --out predictions.csv
      gramian predict model.gm new.parquet --out predictions.csv.gz --target-kind f
      gramian predict model.gm new.csv | head
    """
    with guarded():
        from gramian.cli.columns import as_path
        from gramian.cli.work import Answer, predict_table

        answer = Answer(target_kind, {"exposure": exposure, "trials": trials}, level, quantiles)
        with as_path(data) as path:
            predict_table(model, path, out, answer)


def score(
    model: Path = argument("MODEL", "A model file."),
    data: Path = argument("DATA", "A table with the model's columns and the targets; - is standard input."),
    target: list[str] | None = option(
        "--target -t NAME", "The column that was to be predicted; by default as in the fit."
    ),
    exposure: str | None = EXPOSURE,
    trials: str | None = TRIALS,
) -> None:
    """Print how good a model's predictions are on rows that it has not seen.

    Numbers: RMSE, MAE, R2, NLPD, MSLL, CRPS, calibration, and how many rows intervals of several levels hold.
    Labels: accuracy, log loss, Brier score, ECE and AUC.

    \b
    Examples:
      gramian score model.gm test.csv
      gramian score model.gm test.csv --target price
    """
    with guarded():
        from gramian.cli.columns import as_path
        from gramian.cli.work import score_table

        with as_path(data) as path:
            score_table(model, path, target or [], {"exposure": exposure, "trials": trials})


def show(
    model: Path = argument("MODEL", "A model file."),
    full: bool = typer.Option(
        False, "--all", help="All parameters; by default, of many columns, those that matter most."
    ),
) -> None:
    """Print what a model has learned: kernel, noise, evidence, parameters, and notes.

    \b
    Examples:
      gramian show model.gm
      gramian show model.gm --all
    """
    with guarded():
        from gramian.cli.work import show_model

        show_model(model, full)


def report(
    model: Path = argument("MODEL", "A model file."),
    data: Path | None = option(
        "--data -d FILE", "Rows that were held back, with the targets; by default left-out rows of the fit."
    ),
    out: Path = option("--out -o FILE", "Where to write the page.", Path("report.html")),
    json: Path | None = option("--json FILE", "Where to write the same for programs."),
    ignore: list[str] | None = option(
        "--ignore CODE", "A finding that is not wanted, such as P003; may be repeated."
    ),
    target: list[str] | None = option(
        "--target -t NAME", "The column of the target in --data; by default as in the fit."
    ),
    exposure: str | None = option(
        "--exposure NAME", "For counts: the column with the exposure of each row of --data; by default 1."
    ),
    trials: str | None = option(
        "--trials NAME", "For a model of successes: the column with the trials of each row of --data."
    ),
    time_limit: float | None = option(
        "--time-limit SECONDS", "For all of it; what there was no time for is named."
    ),
) -> None:
    """Write a page on the health of a model, and print what was found.

    Is it good, is it sound, which columns matter, where is it least sure, which rows are worst, and what to
    try next: one HTML file with pictures that needs nothing else. Findings have codes; see docs/report.md.

    \b
    Examples:
      gramian report model.gm
      gramian report model.gm --data test.csv --out report.html
      gramian report model.gm --json report.json --ignore P003 --ignore D007
    """
    with guarded(time_limit):
        import contextlib

        from gramian.cli.columns import as_path
        from gramian.cli.report import report_model

        beside = {"exposure": exposure, "trials": trials}
        with contextlib.nullcontext() if data is None else as_path(data) as path:
            report_model(model, path, out, json, target or [], beside, ignore or [])
