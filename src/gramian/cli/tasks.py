"""Which task a table asks for, its target for that task, and the estimator; options of the other task are
refused by their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.cli.columns import is_text, reading_of, refuse_constant
from gramian.cli.voice import note
from gramian.data.deciding import MOST_CATEGORIES
from gramian.data.inputs import file_cells, numbers_of
from gramian.data.readings import PLAIN, Reading, retold
from gramian.data.spool import Room, Spool
from gramian.data.tables import Table
from gramian.data.tables.shared import BLOCK
from gramian.errors import InputError, ParameterError, TableError
from gramian.estimators import DeepGPClassifier, DeepGPRegressor, GPClassifier, GPRegressor
from gramian.estimators.deep import MOST_LAYERS
from gramian.likelihoods.words import read_likelihood
from gramian.words import LIKELIHOODS

TASKS = ("classification", "regression")
# the options of a task, and what a target is that asks for it
BELONGS = {
    "classification": (("link", "multiclass"), "has labels"),
    "regression": (("likelihood", "exposure", "trials", "noise", "outputs"), "is a number to be predicted"),
}
COUNTS = ("poisson", "negative-binomial")
CHOICES = {
    "inference": ("auto", "laplace", "ep", "vi", "map", "mcmc"),
    "link": ("logit", "probit"),
    "multiclass": ("softmax", "robustmax", "ovr", "ovo"),
    "likelihood": tuple(LIKELIHOODS),
    "hyper": ("auto", "average", "map", "ml", "mcmc"),
    "outputs": ("independent", "coupled", "chained", "auto"),
}
FEW = 10  # distinct whole numbers that may be labels


@dataclass(frozen=True)
class FitOptions:
    """The options of `gramian fit` that say what kind of model it is. None: not given."""

    inference: str | None = None
    link: str | None = None
    multiclass: str | None = None
    likelihood: str | None = None
    exposure: str | None = None
    hyper: str | None = None
    noise: float | list[float] | None = None
    trials: str | None = None
    layers: str | None = None  # of a deep model
    n_inducing: int | None = None  # its inducing points
    outputs: str | None = None

    def estimator(self, task: str) -> type[GPRegressor | GPClassifier]:
        """The class of the model."""
        if self.layers is not None:
            return DeepGPClassifier if task == "classification" else DeepGPRegressor
        return GPClassifier if task == "classification" else GPRegressor

    @property
    def beside(self) -> dict[str, str]:
        """The columns of the table that a likelihood reads beside the target, by its names of them."""
        named = {"exposure": self.exposure, "trials": self.trials}
        return {name: column for name, column in named.items() if column is not None}

    def __post_init__(self) -> None:
        for option, known in CHOICES.items():
            _check_choice(option, getattr(self, option), known)
        if self.exposure is not None and self.likelihood not in COUNTS:
            raise ParameterError(
                f"--exposure {self.exposure} is for counts. Add --likelihood poisson or --likelihood"
                " negative-binomial, or leave it out."
            )
        if self.trials is not None and self.likelihood != "binomial":
            raise ParameterError(
                f"--trials {self.trials} is for successes. Add --likelihood binomial, or leave it out."
            )

    def check(self, task: str, targets: Sequence[str]) -> None:
        """Refuses what does not belong to the task, or not to the likelihood."""
        other = TASKS[task == "classification"]
        options, cure = BELONGS[other]
        for option in options:
            value = getattr(self, option)
            if value is not None:
                raise ParameterError(
                    f"--{option} {value} is for {other}, but {targets[0]!r} is a target of {task}. Leave it"
                    f" out; or, if the target {cure}, add --task {other}."
                )
        if self.likelihood not in (None, "gaussian"):
            what = f"--likelihood {self.likelihood}"
        elif self.inference not in (None, "auto"):
            what = f"--inference {self.inference}"
        else:
            return
        if self.noise is not None:
            shown = self.noise if isinstance(self.noise, list) else f"{self.noise:g}"
            raise ParameterError(
                f"--noise {shown} is where Gaussian noise in closed form starts, and {what} has none. Leave"
                " one of them out."
            )
        if len(targets) > 1:
            raise ParameterError(
                f"{what} takes one target, but there are {len(targets)}: {', '.join(targets)}. Fit one after"
                " the other."
            )

    def settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        """These and further settings of the estimator; what was not given stays at its default."""
        values = {
            name: getattr(self, name) for name in ("link", "multiclass", "hyper", "noise", "outputs")
        } | settings
        if self.layers is not None:
            values = self._deep(values)
        elif self.inference not in (None, "auto"):
            values["inference"] = self.inference
        values["likelihood"] = read_likelihood(self.likelihood)
        return {name: value for name, value in values.items() if value is not None}

    def _deep(self, values: dict[str, Any]) -> dict[str, Any]:
        """The settings of a deep model, which has one method, one rule and one way to its parameters."""
        assert self.layers is not None
        other = {
            "--method": values.pop("method", "auto") != "auto",
            "--restarts": values.pop("n_restarts", None) is not None,
            "--inference": self.inference not in (None, "auto", "vi"),
            "--hyper": values.pop("hyper", None) not in (None, "auto", "map"),
            "--outputs": values.pop("outputs", None) not in (None, "independent"),
        }
        if refused := [option for option, given in other.items() if given]:
            raise ParameterError(
                f"{refused[0]} is for models of one layer, but --layers {self.layers} was given. Leave one of"
                " them out."
            )
        whole = self.layers.isdecimal() and 1 <= int(self.layers) <= MOST_LAYERS
        if self.layers != "auto" and not whole:
            raise ParameterError(
                f"--layers {self.layers!r} must be a whole number from 1 to {MOST_LAYERS}, or auto."
            )
        depth = self.layers if self.layers == "auto" else int(self.layers)
        return values | {"layers": depth, "n_inducing": self.n_inducing}


def task_of(table: Table, targets: Sequence[str], given: str | None = None) -> str:
    """The task as given, or as the target of a table (or of its first block) shows it: text is classified,
    numbers are regressed."""
    _check_choice("task", given, TASKS)
    if given == "classification" and len(targets) != 1:
        named = f"there are {len(targets)}: {', '.join(targets)}" if targets else "none was given"
        raise InputError(f"--task classification takes one --target, but {named}.")
    return given or ("classification" if len(targets) == 1 and is_text(table, targets[0]) else "regression")


def coded(blocks: Iterable[Table], name: str, text: bool, room: Room) -> tuple[NDArray[Any], Array]:
    """The labels of a column, sorted, and the code of each row among them, NaN where it has none, on disk.
    What cannot be labels is refused with its place."""
    known: dict[Any, int] = {}
    path, there = "", 0
    with Spool(room) as spool:
        for table in blocks:
            path = table.path
            labels = labels_of(table, name, text)
            found = [np.nan if label is None else known.setdefault(label, len(known)) for label in labels]
            spool.add(np.array(found, dtype=np.float64)[:, None], table.place(table.n_rows - 1))
            there += sum(label is not None for label in labels)
            if len(known) > MOST_CATEGORIES:
                raise InputError(
                    f"{path}, column {name!r}: more than {MOST_CATEGORIES:,} different labels. Is it the"
                    " right column?"
                )
        seen = spool.mapped()
    if text and len(known) == there > 2:
        some = ", ".join(repr(label) for label in list(known)[:2])
        raise TableError(
            f"{path}, column {name!r}: text that differs in every row ({some}, ...) is no label. Is it the"
            " right column?"
        )
    labels = sorted(known)
    if len(labels) < 2:
        if not text:
            refuse_constant(path, name, np.full(min(there, 2), float(labels[0]) if labels else np.nan))
        shown = f"the label {labels[0]!r}" if labels else "no label"
        raise TableError(
            f"{path}, column {name!r}: all {there} rows have {shown}, so there is nothing to tell apart."
        )
    # by the order in which they came, and after the last NaN, which stands for none
    place = np.append(np.argsort([known[label] for label in labels]).astype(np.float64), np.nan)
    with Spool(room) as spool:
        for start in range(0, len(seen), BLOCK):
            part = seen[start : start + BLOCK]
            spool.add(place[np.where(np.isnan(part), len(known), part).astype(int)])
        return np.array(labels), spool.mapped()[:, 0]


def times_in(blocks: Iterable[Table], name: str, told: str) -> Array:
    """The numbers of a target of times, NaN where there is none, counted as in the fit, as a line told."""
    found, reading = [], None
    for table in blocks:
        reading = reading or retold(reading_of(table, name) or PLAIN, told)
        found.append(numbers_of(reading, file_cells(table, name, True), name, table.place))
    return np.concatenate(found)


MEANINGS = {"exposure": "the exposure, which says how much was watched,", "trials": "the number of trials"}


def column_beside(blocks: Iterable[Table], what: str, name: str) -> Array:
    """The exposures or trials of all rows, which must be positive."""
    parts: list[Array] = []
    reading: Reading | None = None
    for table in blocks:
        reading = reading if parts else reading_of(table, name)
        values = numbers_of(reading or PLAIN, file_cells(table, name), name, table.place)
        absent = np.flatnonzero(np.isnan(values))
        if absent.size:
            raise TableError(
                f"{table.place(absent[0])}, column {name!r}: {MEANINGS[what]} is missing. Fill it."
            )
        wrong = np.flatnonzero(values <= 0)
        if wrong.size:
            raise TableError(
                f"{table.place(wrong[0])}, column {name!r}: {MEANINGS[what]} is {values[wrong[0]]:g}. It"
                " must be positive."
            )
        parts.append(values)
    return np.concatenate(parts)


def hint(y: Array, name: str) -> None:
    """Says that whole numbers may be labels, where there are few of them."""
    values = np.unique(y[~np.isnan(y)])
    if len(values) <= FEW and np.all(values == np.floor(values)):
        shown = ", ".join(f"{value:g}" for value in values)
        note(
            f"note: {name!r} has {len(values)} whole values ({shown}) and is predicted as a number. If they"
            " are labels: --task classification"
        )


def labels_of(table: Table, name: str, text: bool) -> list[Any]:
    """The labels of a column, as text or as whole numbers, None where there is none."""
    cells = file_cells(table, name)
    if text:
        return cells.text()
    values = numbers_of(PLAIN, cells, name, table.place)
    broken = np.flatnonzero(values != np.floor(values))
    broken = broken[~np.isnan(values[broken])]
    if broken.size:
        raise TableError(
            f"{table.place(broken[0])}, column {name!r}: {values[broken[0]]:g} is no label: labels are text"
            " or whole numbers. For numbers to be predicted: --task regression."
        )
    return [None if np.isnan(value) else int(value) for value in values]


def _check_choice(option: str, value: str | None, known: Sequence[str]) -> None:
    if value is not None and value not in known:
        raise ParameterError(f"--{option} {value!r} is not known. Use {', '.join(known)}.")
