"""The commands that help to choose before a fit: plan, compare and models."""

from __future__ import annotations

from pathlib import Path

import typer

from gramian.cli.commands.options import (
    CATEGORICAL,
    COLUMNS,
    IDS,
    KERNEL,
    KIND,
    MISSING,
    ORDERED,
    SAMPLING,
    SIZE,
    TARGETS,
    TASK,
    argument,
    option,
)
from gramian.cli.guard import guarded
from gramian.words import KERNELS, listed


def plan(
    data: Path = argument("DATA", "The table that is to be fitted; - is standard input."),
    target: list[str] | None = option(*TARGETS),
    kernel: str | None = KERNEL,
    columns: list[str] | None = COLUMNS,
    ids: list[str] | None = IDS,
    memory_limit: str | None = option(
        "--memory-limit SIZE", "For example 2GB; by default 80 % of what is free."
    ),
    time_limit: float | None = option("--time-limit SECONDS", "For the whole fit; by default none."),
    task: str | None = TASK,
    method: str | None = option("--method NAME", "A method to add to the table, with the settings below."),
    size: int | None = SIZE,
    sampling: str | None = SAMPLING,
    kind: str | None = KIND,
) -> None:
    """Print what each method would take to fit a table: memory, time and accuracy; nothing is fitted.

    Rows and columns are counted; memory follows from them, time from a short measurement of this machine. The
    last line has the method that `gramian fit` takes by itself, and why.

    \b
    Examples:
      gramian plan houses.csv --target price
      gramian plan measurements.parquet -t y --memory-limit 2GB --time-limit 600
      gramian plan houses.csv -t price --method nystrom --size 3000
    """
    with guarded():
        from gramian.cli.columns import TableOptions, as_path
        from gramian.cli.planning import plan_table

        limits = {"memory_limit": memory_limit, "time_limit": time_limit}
        with as_path(data, memory_limit) as path:
            asked = TableOptions(path, target or [], task, kernel, columns or [], ids or [])
            plan_table(asked, limits, method, size, sampling, kind)


def compare(
    data: Path = argument("DATA", "The table to compare on; - is standard input."),
    target: str | None = option(
        "--target -t NAME", "The column to predict; without one only kernel matrices are compared."
    ),
    task: str | None = TASK,
    methods: str | None = option(
        "--methods A,B,C", "What to compare, see below; by default a choice of all."
    ),
    sizes: str = option(
        "--sizes N,N,N",
        "Landmarks, features or inducing points; for cg and minres the preconditioner's rank.",
        "100,200,400",
    ),
    repeats: int = option("--repeats N", "Runs, each with a split and draws of its own.", 5),
    out: Path | None = option(
        "--out -o FOLDER", "For the table, all runs as CSV, and a picture. After Ctrl-C, goes on there."
    ),
    kernel: str | None = option(
        "--kernel -k TEXT",
        f"Taken as it is, for all methods; {listed(KERNELS)} (the default), or a sum of them, is fitted once,"
        " on a part.",
    ),
    noise: float | None = option(
        "--noise VARIANCE", "Taken as it is, in units of the target squared; by default fitted."
    ),
    columns: list[str] | None = COLUMNS,
    ids: list[str] | None = IDS,
    categorical: list[str] | None = CATEGORICAL,
    ordered: list[str] | None = ORDERED,
    missing: str = MISSING,
    standardize: bool = typer.Option(
        False, "--standardize", help="Centre columns and divide them by their standard deviations."
    ),
    test_size: float = option("--test-size SHARE", "Of the rows, to test on.", 0.2),
    max_rows: int | None = option("--max-rows N", "Take so many rows at random from a larger table."),
    seed: int = option("--seed N", "The same seed gives the same splits and draws.", 0),
    tol: float = option("--tol RESIDUAL", "Relative residual at which cg and minres stop.", 1e-6),
    max_iter: int = option("--max-iter N", "Steps after which cg and minres stop.", 1000),
    variance_rows: int = option(
        "--variance-rows N",
        "Test rows for NLPD and the like of cg and minres, where each variance is a solve.",
        256,
    ),
    memory_limit: str | None = option(
        "--memory-limit SIZE", "Leave out what needs more; by default 80 % of what is free."
    ),
    time_limit: float | None = option(
        "--time-limit SECONDS", "For all of it, reading included; what is left over is named."
    ),
) -> None:
    """Compare approximations of one model on a table: error of the kernel matrix, time, memory, test error,
    NLPD, coverage or calibration.

    All methods have the same kernel, noise and splits. With --out each run is kept as soon as it has ended:
    after Ctrl-C or a time limit, the same command does the rest; further methods, sizes and repeats may be
    added later. A target of text is classified, by Laplace's approximation on each method, and by the
    variational bound on vfe and svgp.

    \b
    Examples:
      gramian compare houses.csv --target price
      gramian compare houses.csv -t price --methods nystrom:uniform,nystrom:rpcholesky,fourier:orf
          --sizes 100,200,400 --repeats 15 -o comparison
      gramian compare houses.csv -t price --methods cg:none,cg,minres,exact --sizes 50,200
      gramian compare flowers.csv -t species --methods nystrom:uniform,fourier:orf,vfe,exact
          --sizes 50,100,200
      gramian compare points.csv --kernel "RBF(0.7)" --standardize
          --methods nystrom:uniform,fourier:rff,fourier:qmc

    \b
    Methods: a family, and after a colon how it chooses (by default rpcholesky; orf for fourier):
      nystrom, vfe, fitc, dtc,  uniform, diagonal, column-norm, leverage, rls, recursive-rls, kmeans,
      svgp                      pivoted, rpcholesky (fitc and dtc for regression only)
      fourier                   rff, rff-phase, orf, sorf, qmc, qmc-halton, qmc-sobol
      cg, minres                none, jacobi, pivoted, rpcholesky (the preconditioner)
      exact                     (by Cholesky)
    """
    with guarded(time_limit):
        from gramian.cli.columns import TableOptions, as_path
        from gramian.cli.compare import compare_table

        rows = {"test_size": test_size, "max_rows": max_rows, "variance_rows": variance_rows}
        runs = {"repeats": repeats, "random_state": seed, "standardize": standardize, "noise": noise}
        solver = {"tol": tol, "max_iter": max_iter, "memory_limit": memory_limit, "time_limit": time_limit}
        targets = [] if target is None else [target]
        declared = categorical or [], ordered or [], missing
        with as_path(data, memory_limit) as path:
            asked = TableOptions(
                path, targets, task, kernel, columns or [], ids or [], *declared, memory_limit
            )
            compare_table(asked, out, methods, sizes, {**rows, **runs, **solver})


def models(
    data: Path = argument("DATA", "The table to learn from; - is standard input."),
    target: list[str] = option("--target -t NAME", "The column to predict.", ...),
    by: str | None = option(
        "--by NAME",
        "What ranks them: evidence, height (with the density of the priors), loo (each row from all others)"
        " or cv (cross-validation); by default height for numbers, evidence for labels and for --kernel.",
    ),
    folds: int = option("--folds N", "For --by cv: how many parts are left out, one after the other.", 5),
    kernel: list[str] | None = option(
        "--kernel -k TEXT",
        f"Compare these instead: {listed(KERNELS)}, sums of them, or formulas as for fit; may be repeated.",
    ),
    columns: list[str] | None = COLUMNS,
    ids: list[str] | None = IDS,
    categorical: list[str] | None = CATEGORICAL,
    ordered: list[str] | None = ORDERED,
    missing: str = MISSING,
    task: str | None = TASK,
    max_rows: int | None = option("--max-rows N", "Take so many rows at random from a larger table."),
    restarts: int | None = option(
        "--restarts N", "Further starting points; by default 1 up to 1,000 rows, else none."
    ),
    seed: int = option("--seed N", "For rows, folds and starting points: the same seed, the same table.", 0),
    time_limit: float | None = option(
        "--time-limit SECONDS", "For all of it, reading included; each fit has an equal part."
    ),
    memory_limit: str | None = option(
        "--memory-limit SIZE",
        "Refuse to start if more is needed, for example 2GB; by default 80 % of what is free.",
    ),
    out: Path | None = option("--out -o FILE", "Where to write the table, one line a model, as CSV."),
) -> None:
    """Compare the models that fit chooses from where it is given no kernel: which one do the data prefer?

    Each is fitted to the table. Numbers: a smooth kernel, one with a rough part, one with a second smooth
    part, each of the target as it is and warped. Labels: kernels of three degrees of smoothness, and what the
    data choose from these. The table has the log evidence, how well each row is foretold from all others
    (LOO), the error and the coverage of these predictions, and how long the fit took; below it, how far the
    second is behind.

    \b
    Examples:
      gramian models houses.csv --target price
      gramian models houses.csv -t price --by cv --folds 10 --out models.csv
      gramian models houses.csv -t price -k rbf -k matern32 -k "rbf + matern12"
      gramian models flowers.csv -t species --time-limit 60
      gramian models large.parquet -t y --max-rows 2000
    """
    with guarded(time_limit):
        from gramian.cli.columns import TableOptions, as_path
        from gramian.cli.models import models_of_table

        declared = categorical or [], ordered or [], missing
        settings = {"n_restarts": restarts, "memory_limit": memory_limit}
        how = {"by": by, "cv": folds, "random_state": seed, "time_limit": time_limit}
        with as_path(data, memory_limit) as path:
            asked = TableOptions(path, target, task, None, columns or [], ids or [], *declared, memory_limit)
            models_of_table(asked, kernel or [], max_rows, out, settings, how)
