"""The entry point, and the app that the commands are put together to.

Exit codes: 0 all went well; 2 something was wrong with what was given (`error: ...` on standard error, no
file half-written); 1 the reader of standard output has left; 130 Ctrl-C; 143 SIGTERM.
"""

from __future__ import annotations

import sys

import typer

from gramian.cli.commands.answers import predict, report, score, show
from gramian.cli.commands.choosing import compare, models, plan
from gramian.cli.commands.fitting import fit, update
from gramian.cli.commands.forecast import forecast
from gramian.cli.commands.reduce import reduce
from gramian.cli.commands.teaching import demo, experiment, explore
from gramian.cli.guard import Once, untold
from gramian.cli.voice import fill_streams, say
from gramian.version import __version__

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


# in the order of the help
COMMANDS = (
    *(fit, predict, score, update, show, report, plan, compare, models),
    *(reduce, forecast, explore, experiment, demo),
)
for command in COMMANDS:
    app.command(cls=Once)(command)
