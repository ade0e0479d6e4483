"""The commands and their options. What they do is elsewhere and is imported when a command runs, so that
`gramian --help` is quick.

Exit codes: 0 all went well; 2 something was wrong with what was given (`error: ...` on standard error, no
file half-written); 1 the reader of standard output has left; 130 Ctrl-C; 143 SIGTERM.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from gramian.cli.guard import Once, guarded, untold
from gramian.cli.voice import fill_streams, say
from gramian.version import __version__
from gramian.words import KERNELS, LIKELIHOODS, METHODS, listed


def option(usage: str, meaning: str, default: Any = None) -> Any:
    """An option from its names and its value, "--kernel -k TEXT"; default ...: it must be given."""
    *names, metavar = usage.split()
    return typer.Option(default, *names, metavar=metavar, help=meaning)


def argument(metavar: str, meaning: str) -> Any:
    return typer.Argument(..., metavar=metavar, help=meaning)


# what several commands have
TARGETS = "--target -t NAME", "The column to predict; repeat it for several."
COLUMNS = option("--columns -c A,B,C", "The columns to learn from; by default all but the targets and ids.")
IDS = option("--id --ignore NAME", "A column to leave out of the model, such as a name; may be repeated.")
CATEGORICAL = option("--categorical NAME", "A column whose numbers are categories; may be repeated.")
ORDERED = option(
    "--ordered NAME=A,B,C", "A column of words with an order, from low to high; may be repeated."
)
MISSING = option(
    "--missing RULE",
    "Rows with missing cells: fill (the default) uses them, drop leaves them out, error refuses.",
    "fill",
)
KERNEL = option(
    "--kernel -k TEXT",
    f"What functions to expect: {listed(KERNELS)}, scaled and with a lengthscale a column, sums of them such"
    ' as "rbf + matern52", or a formula; by default the data choose.',
)
TASK = option(
    "--task NAME",
    "classification or regression; by default classification where the target is text or true/false.",
)
SIZE = option(
    "--size N",
    "Landmarks of nystrom, inducing points, Fourier features, neighbours, or rank of the preconditioner of"
    " cg and minres.",
)
SAMPLING = option(
    "--sampling RULE", "How nystrom, vfe, fitc, dtc and svgp choose their points, for example rls."
)
KIND = option(
    "--kind NAME", "Of Fourier features: rff, rff-phase, orf (the default), sorf, qmc or qmc-sobol."
)
CHECKPOINT = option(
    "--checkpoint FILE",
    "Where to write down, every second or so, how far the fit is: if it is stopped, even killed, the same"
    " command goes on from there. Removed at the end.",
)

# Plain help text: it reads the same on a terminal, in a pipe and in a log. Failures that nobody foresaw keep
# Python's own traceback.
app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The entry point of the `gramian` command."""
    fill_streams()
    try:
        app(prog_name="gramian")
    except OSError as error:  # of --help and --version, around which nothing else stands
        try:
            untold(error)
        except typer.Exit as end:
            sys.exit(end.exit_code)


def _version(asked: bool) -> None:
    if asked:
        say(f"gramian {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def gramian(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and leave."
    ),
) -> None:
    """Gaussian process regression and classification on tables: predictions with their uncertainty.

    Tables are CSV (also .csv.gz) or other text with separators, Parquet (a file or a folder) or Excel sheets,
    with column names above the rows. How each column was read, the summary says.

    \b
    Examples:
      gramian demo                                           see what it does, on data that come along
      gramian fit houses.csv --target price --out model.gm   learn from a table
      gramian fit flowers.csv -t species --out model.gm      the same for labels
      gramian predict model.gm new.csv --out priced.csv      predict, with a 95 % interval or the probability
                                                             of each label
      gramian score model.gm test.csv                        how good it is on rows it has not seen
      gramian update model.gm today.csv                      add rows to a model
      gramian show model.gm                                  what was learned
      gramian report model.gm --data test.csv                a page on its health, with what to try next
      gramian plan houses.csv --target price                 which methods fit into memory and time
      gramian models houses.csv --target price               which kind of model the data prefer
      gramian compare houses.csv --target price              how good approximations are on these data
      gramian reduce sensors.csv --out places.csv            few latent coordinates for many columns
      gramian forecast sales.csv --horizon 90d               what comes next in a series of dates
      gramian explore houses.csv                             play with a process in the browser
      gramian experiment --list                              experiments that show how methods behave
    """
    if context.invoked_subcommand is None:
        say(context.get_help())


@app.command(cls=Once)
def fit(
    data: Path = argument(
        "DATA",
        "The table to learn from: .csv, .csv.gz, .tsv, .txt, .parquet, .feather, .xlsx, .ods; - is standard"
        " input.",
    ),
    target: list[str] = option(*TARGETS, ...),
    out: Path = option("--out -o FILE", "Where to write the model, for example model.gm.", ...),
    kernel: str | None = KERNEL,
    columns: list[str] | None = COLUMNS,
    ids: list[str] | None = IDS,
    categorical: list[str] | None = CATEGORICAL,
    ordered: list[str] | None = ORDERED,
    missing: str = MISSING,
    task: str | None = TASK,
    mean: str | None = option(
        "--mean constant|zero|linear",
        "What to expect far from the data; by default constant, for labels zero.",
    ),
    noise: list[float] | None = option(
        "--noise VARIANCE",
        "Where the noise variance starts; 0 means none at all. By default from the data, for each target its"
        " own. Of several targets one number is that of all; repeat it, in their order, for one each.",
    ),
    likelihood: str | None = option(
        "--likelihood NAME", f"How numbers arise: {listed(LIKELIHOODS)}; by default gaussian."
    ),
    outputs: str | None = option(
        "--outputs NAME",
        "What several targets have to do with each other: independent (the default), coupled (they share"
        " functions), chained (each may depend on those before it) or auto (the data choose).",
    ),
    exposure: str | None = option(
        "--exposure NAME", "For counts: the column that says how long or how much was watched in each row."
    ),
    trials: str | None = option(
        "--trials NAME", "For --likelihood binomial: the column with the trials that the target succeeded in."
    ),
    inference: str | None = option(
        "--inference NAME", "For labels and likelihoods: auto, laplace, ep, vi, map or mcmc."
    ),
    link: str | None = option("--link NAME", "For two labels: logit (the default) or probit."),
    multiclass: str | None = option(
        "--multiclass NAME", "For three labels or more: softmax (the default), robustmax, ovr or ovo."
    ),
    hyper: str | None = option(
        "--hyper NAME",
        "How parameters are found: map (with priors), ml (without), average (over what they may be), mcmc"
        " (sampled); auto: average for a regression of few rows without a kernel, else map.",
    ),
    method: str = option("--method NAME", f"How to compute: auto, or one of {listed(METHODS)}.", "auto"),
    layers: str | None = option(
        "--layers N",
        "A deep model of so many layers, for jumps and changing smoothness; auto: as many as help, up to"
        " three. --size are then the inducing points of a layer.",
    ),
    size: int | None = SIZE,
    sampling: str | None = SAMPLING,
    kind: str | None = KIND,
    restarts: int | None = option(
        "--restarts N", "Further starting points; by default 1 up to 1,000 rows, else none."
    ),
    seed: int = option("--seed N", "For the starting points: the same seed gives the same model.", 0),
    time_limit: float | None = option(
        "--time-limit SECONDS",
        "For all of it, reading included: what fits into it is fitted, and notes say what not.",
    ),
    memory_limit: str | None = option(
        "--memory-limit SIZE",
        "Refuse to start if more is needed, for example 2GB; by default 80 % of what is free.",
    ),
    checkpoint: Path | None = CHECKPOINT,
) -> None:
    """Learn from a table and write a model file.

    Columns of numbers, dates and true/false are numbers, columns of words are categories; signs such as % and
    $, decimal commas and missing cells are read, and the summary says how. Ids must be left out with --id;
    the table for `gramian predict` may still have them. A target of text is classified, one of numbers is
    predicted as a number, unless --task says otherwise.

    \b
    Examples:
      gramian fit houses.csv --target price --out model.gm
      gramian fit houses.csv --target price --id address --out model.gm
      gramian fit houses.csv -t price -c area,rooms,town --time-limit 60 -o model.gm
      gramian fit houses.xlsx -t price --categorical district --ordered state=poor,fair,good -o model.gm
      gramian fit houses.csv -t price --method nystrom --size 800 --sampling rls -o model.gm
      gramian fit flowers.csv -t species -o model.gm
      gramian fit patients.csv -t ill --task classification --link probit --inference ep -o model.gm
      gramian fit accidents.csv -t count --likelihood poisson --exposure days -o model.gm
      gramian fit steps.csv -t level --layers 2 -o model.gm
      gramian fit soil.csv -t cadmium -t nickel -t zinc --outputs coupled -o model.gm
      gramian fit large.parquet -t y --checkpoint fit.ck -o model.gm
      gramian fit series.csv -t sales -c week
          -k "1.0 * RBF(100) + 0.5 * Periodic(1.0, fixed(52)) * RBF(200)" -o model.gm

    \b
    A kernel is written as in Python: numbers scale, + adds, * multiplies, .on("area") selects columns,
    fixed(52) is not fitted.
    Its names: RBF, Matern12, Matern32, Matern52, RationalQuadratic, Periodic, Cosine, SpectralMixture,
    Linear, Polynomial, ArcCosine, NeuralNetwork, DenseNet, ConvNet, ResNet, Convolutional, Constant,
    Brownian, IntegratedBrownian, Categorical, Coregion.
    """
    with guarded(time_limit):
        from gramian.choose.words import method_with
        from gramian.cli.columns import TableOptions, as_path
        from gramian.cli.tasks import FitOptions
        from gramian.cli.work import fit_table

        level = noise[0] if noise and len(noise) == 1 else noise or None
        deep = layers, size if layers is not None else None
        options = FitOptions(
            inference, link, multiclass, likelihood, exposure, hyper, level, trials, *deep, outputs
        )
        engine = method_with(method, None if layers is not None else size, sampling, kind)
        settings = {"mean": mean, "method": engine, "n_restarts": restarts}
        limits = {"random_state": seed, "time_limit": time_limit, "memory_limit": memory_limit}
        declared = categorical or [], ordered or [], missing
        with as_path(data, memory_limit) as path:
            asked = TableOptions(
                path, target, task, kernel, columns or [], ids or [], *declared, memory_limit
            )
            fit_table(asked, out, {**settings, **limits, "checkpoint": checkpoint}, options)


@app.command(cls=Once)
def predict(
    model: Path = argument("MODEL", "A model file written by gramian fit, or by save in Python."),
    data: Path = argument("DATA", "The table with the rows to predict; - is standard input."),
    out: Path | None = option("--out -o FILE", "Where to write; by default CSV to standard output."),
    target_kind: str = option(
        "--target-kind y|f",
        "The uncertainty of a new observation (y), or of the function without noise (f).",
        "y",
    ),
    exposure: str | None = option(
        "--exposure NAME", "For counts: the column with the exposure of each row; by default 1."
    ),
    level: float = option(
        "--level SHARE", "How probable the interval is: with 0.9 its ends are lower90 and upper90.", 0.95
    ),
    quantiles: str | None = option(
        "--quantiles P,P,P", "Quantiles to add, each as a column: 0.1,0.5,0.9 gives q0.1, q0.5 and q0.9."
    ),
    trials: str | None = option(
        "--trials NAME", "For a model of successes: the column with the trials of each row; by default 1."
    ),
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


@app.command(cls=Once)
def score(
    model: Path = argument("MODEL", "A model file."),
    data: Path = argument("DATA", "A table with the model's columns and the targets; - is standard input."),
    target: list[str] | None = option(
        "--target -t NAME", "The column that was to be predicted; by default as in the fit."
    ),
    exposure: str | None = option(
        "--exposure NAME", "For counts: the column with the exposure of each row; by default 1."
    ),
    trials: str | None = option(
        "--trials NAME", "For a model of successes: the column with the trials of each row; by default 1."
    ),
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


@app.command(cls=Once)
def update(
    model: Path = argument("MODEL", "A model file that holds its rows: one of exact inference."),
    data: Path = argument("DATA", "A table with the model's columns and the targets; - is standard input."),
    out: Path | None = option("--out -o FILE", "The model file to write; by default MODEL itself."),
    target: list[str] | None = option(
        "--target -t NAME", "The column of the target; by default as in the fit."
    ),
    window: int | None = option("--window ROWS", "Keep so many rows, and forget the oldest."),
    refit: str = option(
        "--refit WHEN",
        "Search for parameters again: never, always, or auto: where new rows were foretold badly.",
        "never",
    ),
    exposure: str | None = option(
        "--exposure NAME", "For counts: the column with the exposure of each row; by default 1."
    ),
    trials: str | None = option(
        "--trials NAME", "For a model of successes: the column with the trials of each row; by default 1."
    ),
) -> None:
    """Add the rows of a table to a model: its parameters stay, its predictions are those of all rows.

    \b
    Examples:
      gramian update model.gm today.csv
      gramian update model.gm today.csv --window 5000 --refit auto
      gramian update model.gm today.csv --out newer.gm
    """
    with guarded():
        from gramian.cli.columns import as_path
        from gramian.cli.work import update_table

        with as_path(data) as path:
            beside = {"exposure": exposure, "trials": trials}
            update_table(model, path, out or model, target or [], beside, {"window": window, "refit": refit})


@app.command(cls=Once)
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


@app.command(cls=Once)
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


@app.command(cls=Once)
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


@app.command(cls=Once)
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


@app.command(cls=Once)
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


@app.command(cls=Once)
def reduce(
    data: Path = argument("DATA", "The table; - is standard input."),
    out: Path | None = option("--out -o FILE", "Where to write; by default CSV to standard output."),
    components: int = option("--components -q N", "Latent dimensions; those not needed are switched off.", 2),
    columns: list[str] | None = option("--columns -c A,B,C", "The columns of numbers; by default all."),
    ids: list[str] | None = IDS,
    kernel: str | None = option("--kernel -k TEXT", "Of the functions to the columns; by default rbf."),
    inference: str = option("--inference NAME", "vi: a Gaussian for each place; map: a point.", "vi"),
    noise: str = option(
        "--noise NAME", "shared: one share of each column's variance; columns: each its own.", "shared"
    ),
    size: int | None = option("--size N", "Inducing points; by default 40."),
    impute: bool = typer.Option(False, "--impute", help="Fill missing cells of these columns in."),
    label: str | None = option("--label NAME", "A column beside the model that colours the picture."),
    picture: Path | None = option("--picture FILE", "Where to draw the map, for example map.png."),
    model: Path | None = option("--model FILE", "Where to write the model, for Python: gramian.load."),
    seed: int = option("--seed N", "The same seed gives the same places.", 0),
    time_limit: float | None = option("--time-limit SECONDS", "For all of it, reading included."),
    memory_limit: str | None = option(
        "--memory-limit SIZE", "Refuse to start if more is needed, for example 2GB."
    ),
    checkpoint: Path | None = CHECKPOINT,
) -> None:
    """Find few latent coordinates for a table of many columns, with their uncertainty.

    All columns are kept; latent1, latent2, ... and latent1_std, ... are added, the dimension along which most
    varies first. Cells may be missing. Columns of text are left out.

    \b
    Examples:
      gramian reduce sensors.csv --out places.csv
      gramian reduce sensors.csv -q 5 --label kind --picture map.png --out places.csv
      gramian reduce gaps.csv --impute --out filled.csv
    """
    with guarded(time_limit):
        from gramian.cli.columns import TableOptions, as_path
        from gramian.cli.reduce import reduce_table
        from gramian.estimators.gplatent import GPLatent

        gp = GPLatent(components, kernel, inference=inference, noise=noise, n_inducing=size)
        gp.set_params(random_state=seed, time_limit=time_limit, memory_limit=memory_limit)
        gp.set_params(checkpoint=checkpoint)
        with as_path(data, memory_limit) as path:
            asked = TableOptions(path, [], None, None, columns or [], ids or [], memory_limit=memory_limit)
            reduce_table(asked, out, model, picture, label, impute, gp)


@app.command(cls=Once)
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


@app.command(cls=Once)
def explore(
    data: Path | None = typer.Argument(
        None, metavar="[FILE]", help="A table, or a model file (.gm); without one, scenes for teaching."
    ),
    target: str | None = option(
        "--target -t NAME", "Of a table: the column to learn; by default the last of numbers."
    ),
    columns: list[str] | None = option("--columns -c A,B,C", "Of a table: the columns to read."),
    port: int = typer.Option(
        0, "--port", metavar="N", min=0, max=65535, help="Where to listen; 0: any that is free."
    ),
    no_browser: bool = typer.Option(False, "--no-browser", help="Print the address, and open no browser."),
) -> None:
    """Play with a Gaussian process in the browser: kernels with sliders, points to move, evidence at once.

    Serves a page for this machine alone, until Ctrl-C. Needs an extra: pip install "gramian[explore]".

    \b
    Examples:
      gramian explore
      gramian explore plots.csv --target yield
      gramian explore model.gm --port 8765 --no-browser
    """
    with guarded():
        from gramian.cli.explore import check_extra
        from gramian.cli.explore import explore as serve_page

        check_extra()
        serve_page(data, target, columns or [], port, not no_browser)


@app.command(cls=Once)
def experiment(
    name: str | None = typer.Argument(None, metavar="NAME", help="Which experiment; --list names them."),
    listed_only: bool = typer.Option(False, "--list", help="Print all experiments and what each asks."),
    quick: bool = typer.Option(
        False, "--quick", help="Few repetitions on parts of the data: minutes, not hours."
    ),
    data: Path | None = option(
        "--data FOLDER", "Where the data sets are (NAME.npz), for experiments that need any; or GRAMIAN_DATA."
    ),
    address: str | None = option(
        "--address URL", "From which server missing files are fetched, into that folder; or GRAMIAN_DATA_URL."
    ),
    out: Path | None = option("--out -o FOLDER", "Where to write; by default gramian-NAME."),
    time_limit: float | None = option(
        "--time-limit SECONDS", "Stop by then with what is done; the same command does the rest."
    ),
) -> None:
    """Run one of the experiments of the documentation: a tidy table, pictures and a page.

    What is done is kept as it is done: after Ctrl-C, or at the end of the time, the same command goes on.
    Files are known by their checksums.

    \b
    Examples:
      gramian experiment --list
      gramian experiment posterior-covariance
      gramian experiment kernel-approximation --quick --data sets --out results
    """
    with guarded(time_limit):
        from gramian.cli.experiment import list_experiments, run_experiment

        if listed_only:
            list_experiments()
            return
        if name is None:
            raise typer.BadParameter("name an experiment; gramian experiment --list shows all.")
        run_experiment(name, quick, data, address, out, time_limit)


@app.command(cls=Once)
def demo(out: Path = option("--out -o FOLDER", "Where to write the results.", Path("gramian-demo"))) -> None:
    """Forecast a classic time series, step by step, in a few seconds.

    Fits ten years of monthly airline passengers, forecasts the next two with a 95 % interval, compares with
    what happened, and writes the model, the predictions and a picture.

    \b
    Examples:
      gramian demo
      gramian demo --out somewhere/else
    """
    with guarded():
        from gramian.cli.demo import run

        run(out)
