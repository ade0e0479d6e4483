"""The commands that show how processes behave: explore, experiment and demo."""

from __future__ import annotations

from pathlib import Path

import typer

from gramian.cli.commands.options import option
from gramian.cli.guard import guarded


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
