"""The commands that make a model and add rows to it: fit and update."""

from __future__ import annotations

from pathlib import Path

from gramian.cli.commands.options import (
    CATEGORICAL,
    CHECKPOINT,
    COLUMNS,
    EXPOSURE,
    IDS,
    KERNEL,
    KIND,
    MISSING,
    ORDERED,
    SAMPLING,
    SIZE,
    TARGETS,
    TASK,
    TRIALS,
    argument,
    option,
)
from gramian.cli.guard import guarded
from gramian.words import LIKELIHOODS, METHODS, listed


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
    exposure: str | None = EXPOSURE,
    trials: str | None = TRIALS,
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
