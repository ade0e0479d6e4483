"""The command for tables without a target: reduce."""

from __future__ import annotations

from pathlib import Path

import typer

from gramian.cli.commands.options import CHECKPOINT, IDS, argument, option
from gramian.cli.guard import guarded


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
