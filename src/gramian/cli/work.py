"""What the commands fit, predict and show do."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.cli.columns import TableOptions, for_model, is_text, refuse_constant
from gramian.cli.speech import said, said_in
from gramian.cli.tasks import COUNTS, FitOptions, coded, column_beside, hint, labels_of, task_of, times_in
from gramian.cli.voice import note, say
from gramian.data.atomic import atomic_write, temporary_folder
from gramian.data.columns import some_of
from gramian.data.inputs import file_cells
from gramian.data.sources import Source, open_source
from gramian.data.spool import Room
from gramian.data.tables import Table, check_written, read_blocks, write_blocks
from gramian.data.tables.writing import write_table
from gramian.errors import GramianError, InputError, ParameterError, TableError, visible
from gramian.estimators.base import Estimator
from gramian.estimators.edits import one_model
from gramian.likelihoods.checks import Impossible
from gramian.modelfile import load
from gramian.modelfile.checkpoint import opened
from gramian.predictive import checked_levels
from gramian.report.held import rows_of_the_fit

MEANT = (
    "RMSE and MAE are errors in the units of the target, R2 is the share of its variance that is foretold."
    " NLPD, MSLL and CRPS judge errors and intervals together: less is better. Intervals should hold as many"
    " rows as they are named after."
)
MEANT_OF_LABELS = (
    "Accuracy is the share of right labels, AUC how well rows of different labels are told apart: more is"
    " better. Log loss, Brier score and ECE judge the probabilities: less is better."
)
CHUNK = 2**20  # bytes at once to standard output
MOST_COLUMNS = 20  # of a model that are listed
MOST_CATEGORIES = 10  # of a column that are named
TOLD = "predicts", "quality"  # facts of a summary that name settings
MOST_WORDS = 3  # that are new, by name
# what has such a column beside it, and the likelihoods that read it
COUNTED = {"exposure": "counts", "trials": "successes"}
OF_COLUMN = {"exposure": COUNTS, "trials": ("binomial",)}


@contextlib.contextmanager
def _placed(data: Path, named: Mapping[str, str], source: Source) -> Iterator[None]:
    """Within it, a number that a likelihood refuses is told by its line and column in the file. `named`: the
    columns of what it reads."""
    try:
        yield
    except Impossible as error:
        if error.what not in named:
            raise
        row = error.row if source.kept is None else int(source.kept[error.row])
        table = next(block for block in read_blocks(data) if row < block.first + block.n_rows)
        where = f"{table.place(row - table.first)}, column {named[error.what]!r}"
        raise TableError(f"{where}: {error.value:g} is not possible: {error.rule}.") from error


def fit_table(asked: TableOptions, out: Path, settings: dict[str, Any], options: FitOptions) -> None:
    """Fits, writes the model file and prints the summary. Whatever can be refused is refused before the
    fit."""
    data, targets, written = asked.data, asked.targets, asked.kernel_setting()
    check_output(out, data)
    table = next(asked.blocks())
    beside = list(options.beside.values())
    names = asked.features(table, beside)
    task = task_of(table, targets, asked.task)
    options.check(task, targets)
    settings = options.settings(settings | {"missing": asked.missing})
    gp = options.estimator(task)(kernel=written, **settings)
    gp.check_ready()
    classes: NDArray[Any] | None = None
    codes: Array | None = None
    if task == "classification":
        classes, codes = coded(asked.blocks(), targets[0], is_text(table, targets[0]), asked.room)
    source = asked.opened(table, names, codes)
    named = {"y": targets[0]} | {f"the column {what}": name for what, name in options.beside.items()}
    if task == "regression":
        assert source.Y is not None
        for name, column in zip(targets, source.Y.T, strict=True):
            refuse_constant(str(data), name, column)
        likelihood = gp.get_params()["likelihood"]
        if likelihood is not None and not options.trials:
            with _placed(data, named, source):
                likelihood.checked(likelihood.with_defaults(source.Y[:, 0]))
        if asked.task is None and options.likelihood is None and len(targets) == 1:
            hint(source.Y[:, 0], targets[0])
    seen = {what: column_beside(asked.blocks(), what, name) for what, name in options.beside.items()}
    with checkpointed(gp, out, data):  # until the model is on disk, too
        with _placed(data, named, source):
            gp.fit(source, **seen)
        if classes is not None:  # it was fitted to their codes, which lie on disk
            gp.fitted_ = gp.fitted_.with_classes(classes)
        gp.save(out)
    exposed = "".join(f", with {what} {name}" for what, name in options.beside.items())
    described = _described(gp, lambda words: f"{len(words)} categor{'ies' if len(words) > 1 else 'y'}")
    say(f"{', '.join(targets)} from {described}{exposed}; {data}")
    left_out = [name for name in table.names if name not in (*names, *targets, *beside)]
    if left_out:
        say(f"left out: {', '.join(left_out)}")
    say()
    print_summary(gp)
    say(
        f"\nThe model is in {out}. To predict, and to see how good it is on rows that were held back:\n"
        f"  gramian predict {out} new.csv --out predictions.csv\n"
        f"  gramian score {out} test.csv"
    )


@dataclass(frozen=True)
class Answer:
    """What `gramian predict` is asked for."""

    target_kind: str = "y"
    beside: Mapping[str, str | None] = field(default_factory=dict)  # columns of the likelihood
    level: float = 0.95
    quantiles: str | None = None

    def check(self, gp: Estimator) -> None:
        """Refuses what a model does not have, before any work."""
        if self.target_kind not in ("y", "f"):
            raise ParameterError(
                f"--target-kind {self.target_kind!r} is not known. Use y for a new observation, or f for the"
                " function without noise."
            )
        for what, name in self.given().items():
            if not (what in gp.likelihood_.columns and self.target_kind == "y"):
                words = " or ".join(OF_COLUMN[what])
                raise ParameterError(
                    f"--{what} {name} is for predictions of {COUNTED[what]}: --target-kind y, of a model with"
                    f" --likelihood {words}."
                )
        if not 0 < self.level < 1:
            raise ParameterError(f"--level {self.level:g} is no probability. Give one such as 0.9.")
        if gp.fitted_.classes is not None and self.quantiles is not None:
            raise ParameterError(
                f"--quantiles {self.quantiles} are of numbers, and this model foretells labels: their"
                " probabilities are in the columns proba_... already."
            )
        checked_levels(self.levels() or 0.5)

    def given(self) -> dict[str, str]:
        """The columns beside the target that were named."""
        return {what: name for what, name in self.beside.items() if name is not None}

    def seen(self, table: Table) -> dict[str, Array]:
        """Their values in a table."""
        return {what: column_beside([table], what, name) for what, name in self.given().items()}

    def levels(self) -> list[float]:
        """The quantiles that were asked for."""
        parts = [] if self.quantiles is None else self.quantiles.split(",")
        try:
            return [float(part) for part in parts]
        except ValueError:
            cure = "Give numbers between 0 and 1, with commas between them: 0.1,0.5,0.9."
            raise ParameterError(f"--quantiles {self.quantiles!r} are no numbers. {cure}") from None

    def table(self, gp: Estimator, block: Table, source: Source) -> dict[str, NDArray[Any]]:
        """The predictions of a block of rows as columns; `source` has the rows as the model reads them."""
        seen: dict[str, Any] = self.seen(block)
        if levels := self.levels():
            seen["quantiles"] = levels
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # new categories, which are told apart
            return gp.predict_table(source, self.target_kind, level=self.level, **seen)


def predict_table(model: Path, data: Path, out: Path | None, answer: Answer) -> None:
    """Adds predictions to the columns of a table, block by block."""
    if out is not None:
        check_written(out)
        check_output(out, data, model)
    gp = loaded_model(model)
    answer.check(gp)
    if out is not None:
        rows = write_predictions(gp, data, out, answer)
        note(f"{rows:,} predictions are in {out}")
        return
    # through a file, so that a pipe gets the very bytes that a file would
    with temporary_folder() as folder:
        path = Path(folder, "predictions.csv")
        write_predictions(gp, data, path, answer)
        _print_file(path)


def write_predictions(gp: Estimator, data: Path, out: Path, answer: Answer) -> int:
    """Writes the rows of a table with their predictions, and gives their number. One block is in memory at a
    time."""
    as_they_are = out.name.lower().endswith((".parquet", ".pq"))
    rows, gapped, new, words = 0, 0, Counter[str](), dict[str, set[str]]()

    def predictions(block: Table) -> dict[str, NDArray[Any]]:
        nonlocal gapped
        source = for_model(gp, block)
        gapped += int(np.isnan(source.X).any(axis=1).sum())
        counts = source.columns.new_categories(source.X)
        new.update(counts)
        for name in counts:
            levels = source.columns.categories[source.columns.names.index(name)]
            seen = {word for word in file_cells(block, name, text=True).text() if word is not None}
            words.setdefault(name, set()).update(seen.difference(levels))
        return answer.table(gp, block, source)

    blocks = read_blocks(data, room=Room(gp.memory_limit))
    first = last = next(blocks)
    added = predictions(first)
    renamed = free_names(list(added), first.names)
    if list(renamed.values()) != list(added):
        note(
            f"note: {data} has columns of these names already, so the predictions are called"
            f" {', '.join(renamed.values())}"
        )

    def written() -> Iterator[dict[str, NDArray[Any]]]:
        nonlocal rows, last
        for block, found in chain([(first, added)], ((block, predictions(block)) for block in blocks)):
            rows, last = rows + block.n_rows, block
            kept = {name: block.columns[name] if as_they_are else block.text(name) for name in block.names}
            yield kept | {renamed[name]: values for name, values in found.items()}

    write_blocks(out, [*first.names, *renamed.values()], written())
    for line in last.notes:
        note(f"note: {data}: {line}")
    for name, told in times_told(gp).items():
        note(f"note: predictions of {name}: {told}")
    if gapped:
        what = "are predicted as the average over what similar rows of the fit have there"
        note(f"note: rows with missing cells ({gapped:,}) {what}, with wider intervals")
    for name, count in new.items():
        shown = some_of([repr(word) for word in sorted(words[name])], MOST_WORDS)
        what = f"rows with a category in {name!r} that the fit has not seen ({count:,}: {shown})"
        note(f"note: {what} are predicted as unlike all others")
    return rows


def times_told(gp: Estimator) -> dict[str, str]:
    """How targets were read whose numbers need a unit, and a start."""
    told = gp.fitted_.columns.targets_told()
    return {name: line for name, line in told.items() if line.startswith(("dates as", "spans of time"))}


def score_table(model: Path, data: Path, targets: Sequence[str], beside: Mapping[str, str | None]) -> None:
    """Prints how good a model's predictions of a table are, whose targets are known."""
    gp = loaded_model(model)
    known = known_rows(gp, model, data, targets, beside)
    say(gp.evaluate(known.X, known.y, **known.beside))
    say(f"\n{MEANT_OF_LABELS if gp.fitted_.classes is not None else MEANT}")
    learned = rows_of_the_fit(gp.fitted_, known.X.X)
    if learned:
        note(
            f"note: {learned:,} of {len(known.y):,} rows have the inputs of a row of the fit: scores of new"
            " rows may be worse"
        )


def update_table(
    model: Path,
    data: Path,
    out: Path,
    targets: Sequence[str],
    beside: Mapping[str, str | None],
    settings: Mapping[str, Any],
) -> None:
    """Conditions a model on the rows of a table as well, and writes it."""
    check_output(out, data)
    gp = loaded_model(model)
    one_model(gp.fitted_)  # before the table is read
    known = known_rows(gp, model, data, targets, beside)
    theta = gp.theta_
    gp.update(known.X, known.y, **known.beside, **settings)
    gp.save(out)
    searched = not np.array_equal(gp.theta_, theta)
    how = "its parameters were searched for again" if searched else "its parameters are as before"
    say(f"{len(known.y):,} rows of {data} were added: {out} knows {gp.fitted_.n_rows:,} rows, {how}.")
    edits = gp.fitted_.first.edits
    if edits is not None and edits.deviation >= 0 and edits.added:
        a_row = f"a log density of {edits.foretold / edits.added:.3g} each"
        say(f"New rows were foretold with {a_row}, left-out rows of the fit with {edits.usual:.3g}.")


class KnownRows(NamedTuple):
    """Rows of a table whose targets are there."""

    X: Source
    y: NDArray[Any]
    beside: dict[str, Array]


def known_rows(
    gp: Any, model: Path, data: Path, targets: Sequence[str], beside: Mapping[str, str | None]
) -> KnownRows:
    """The rows of a table that have targets, as the model reads them."""
    named = list(targets) or list(gp.fitted_.columns.targets)
    if not named:
        raise ParameterError(f"{model} does not know the name of what it predicts. Add --target NAME.")
    answer = Answer(beside=beside)
    answer.check(gp)
    columns, room, classes = gp.fitted_.columns, Room(gp.memory_limit), gp.fitted_.classes
    labelled = classes is not None
    asked = None if labelled else named
    X = open_source(data, asked, known=columns, memory_limit=gp.memory_limit, missing=gp.missing)
    seen = {
        what: column_beside(read_blocks(data, room=room), what, name) for what, name in answer.given().items()
    }
    room.hold(8 * X.X.size + 24 * len(X.X), f"{data}: its rows", "Give fewer rows at a time.")
    if classes is not None:
        once: dict[Any, Any] = {}  # a label is held once, however many rows have it
        text = classes.dtype.kind not in "iuf"
        labels = [
            once.setdefault(label, label)
            for table in read_blocks(data, room=room)
            for label in labels_of(table, named[0], text=text)
        ]
        known = np.array([label is not None for label in labels])
        y = np.array([label for label in labels if label is not None])
    else:
        assert X.Y is not None
        Y, times = np.array(X.Y), times_told(gp)
        for k, name in enumerate(named):
            if name in times:  # counted from the first of the fit
                Y[:, k] = times_in(read_blocks(data, room=room), name, times[name])
        known = np.asarray(~np.isnan(Y).all(axis=1))
        y = (Y[:, 0] if gp.fitted_.first.single else Y)[known]
    if not known.any():
        raise TableError(f"{data}: no row has a value of {', '.join(named)}.")
    if not known.all():
        note(f"note: rows without {', '.join(named)} ({np.sum(~known):,}) are left out")
    return KnownRows(Source(X.X[known], None, X.columns), y, {what: v[known] for what, v in seen.items()})


def loaded_model(model: Path) -> Any:
    """The model of a file, if it predicts a target."""
    gp = load(model)
    if hasattr(gp, "forecast"):
        cure = "gramian.load(...).forecast(...) in Python, or gramian forecast with the table itself"
        raise InputError(f"{model} holds forecasts of series (gramian forecast), which have dates: {cure}.")
    if not hasattr(gp, "predict"):
        cure = "Places of new rows: gramian.load(...).transform(...) in Python; gramian show prints it."
        raise InputError(f"{model} holds latent places (gramian reduce), which predict no target. {cure}")
    return gp


def show_model(model: Path, full: bool) -> None:
    """Prints the summary of a model file, and the columns it needs."""
    gp = load(model)
    if hasattr(gp, "forecast"):
        say(f"{model} forecasts {gp.fitted_.layout.target} by {gp.fitted_.layout.date}\n\n{gp.summary()}")
        return
    if not hasattr(gp, "predict"):
        say(f"{model} places rows by: {_described(gp, _listed(full), full)}\n\n{gp.summary()}")
        return
    predicted = ", ".join(gp.fitted_.columns.targets)
    say(f"{model} predicts {predicted + ' ' * bool(predicted)}from: {_described(gp, _listed(full), full)}\n")
    print_summary(gp, full)
    if not full and gp.fitted_.listed().left_out:
        say(f"\nAll parameters: gramian show {model} --all")


def _described(gp: Estimator, shown: Callable[[tuple[str, ...]], str], full: bool = False) -> str:
    """The columns of a model, with what is shown of categories; of many, unless in full, the first."""
    columns = gp.fitted_.columns
    told = {columns.names[j]: f" ({shown(categories)})" for j, categories in columns.categories.items()}
    given = columns.given
    names = given if full or len(given) <= MOST_COLUMNS + 2 else given[:MOST_COLUMNS]
    more = len(given) - len(names)
    return ", ".join(" ".join(name.splitlines()) + told.get(name, "") for name in names) + (
        f" and {more} more" if more else ""
    )


def _listed(full: bool) -> Callable[[tuple[str, ...]], str]:
    """Categories one after the other; of many, unless in full, the first."""

    def shown(words: tuple[str, ...]) -> str:
        some = words if full or len(words) <= MOST_CATEGORIES + 2 else words[:MOST_CATEGORIES]
        return ", ".join(some) + (f" and {len(words) - len(some)} more" if len(some) < len(words) else "")

    return shown


def print_summary(gp: Estimator, full: bool = False) -> None:
    """The summary as text; on a terminal with its table of parameters drawn as one (binary models of several
    classes have one each, in the text)."""
    text, title, notes = gp.summary(full).partition("\nNotes\n")
    text, table = said_in(text, TOLD) + title + said(notes), gp.fitted_.listed(full)
    if not sys.stdout.isatty() or gp.fitted_.models:
        say(text)
        return
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table as Drawn

    head, _, tail = text.partition(str(table))
    drawn, (titles, *rows) = Drawn(box=SIMPLE), table.cells()
    for title in ("parameter", *titles[1:]):
        drawn.add_column(title, justify="right" if title == "value" else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*map(visible, row))
    say(head.rstrip("\n"))
    Console(highlight=False).print(drawn, markup=False)
    say(tail.strip("\n"))


def free_names(names: Sequence[str], taken: Sequence[str]) -> dict[str, str]:
    """New names for columns, where one of them is taken: all get the same prefix, so that they stay
    together."""
    prefix, k = "", 1
    while any(prefix + name in taken for name in names):
        prefix, k = ("predicted_" if k == 1 else f"predicted{k}_"), k + 1
    return {name: prefix + name for name in names}


def check_output(out: Path, *inputs: Path) -> None:
    """Complains of a file that could not be written, before any work; writes nothing."""
    for used in inputs:
        if out.exists() and used.exists() and os.path.samefile(out, used):
            raise GramianError(
                f"{out} would be overwritten, but it is read from. Choose another name for --out."
            )
    with contextlib.suppress(_Trial), atomic_write(out):
        raise _Trial


def print_table(names: Sequence[str], columns: dict[str, NDArray[Any]]) -> None:
    """As CSV to standard output: a pipe gets the very bytes that a file would."""
    with temporary_folder() as folder:
        path = folder / "table.csv"
        write_table(path, names, columns)
        _print_file(path)


def _print_file(path: Path) -> None:
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(CHUNK), b""):
            typer.echo(chunk, nl=False)  # files keep names as they are


PICTURES = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".eps", ".ps")


def check_picture(path: Path, *inputs: Path) -> None:
    """Complains of a picture that could not be written, before any work."""
    if path.suffix.lower() not in PICTURES:
        raise GramianError(f"{path}: pictures are {', '.join(PICTURES)}. Name it with one of these.")
    check_output(path, *inputs)


def write_picture(figure: Any, path: Path) -> None:
    """Whole or not at all, in the format of its name."""
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:])


@contextlib.contextmanager
def checkpointed(gp: Any, *files: Path | None) -> Iterator[None]:
    """Within it, what a fit finds is in its checkpoint, if it has one; that is none of the other files."""
    if gp.checkpoint is None:
        yield
        return
    used = {os.path.realpath(file) for file in files if file is not None}
    if os.path.realpath(gp.checkpoint) in used:
        raise GramianError(f"checkpoint={str(gp.checkpoint)!r} is another file of this command. Rename it.")
    with opened(gp.checkpoint):
        yield


class _Trial(Exception):
    """Ends the trial of an output, which then leaves nothing behind."""
