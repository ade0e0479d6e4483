"""How an option is written, and the options that several commands have."""

from __future__ import annotations

from typing import Any

import typer

from gramian.words import KERNELS, listed


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
# of commands that read rows for a model that is there
EXPOSURE = option("--exposure NAME", "For counts: the column with the exposure of each row; by default 1.")
TRIALS = option(
    "--trials NAME", "For a model of successes: the column with the trials of each row; by default 1."
)
