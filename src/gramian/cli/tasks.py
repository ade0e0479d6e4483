"""Which task a table asks for, its target for that task, and the estimator; options of the other task are
refused by their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.cli.columns import refuse_constant, targets_of
from gramian.data.filecolumns import DECIMAL_COMMA, MOST_CATEGORIES, refuse_missing
from gramian.data.sources import Source
from gramian.data.tables import Table, is_missing, is_number, read_blocks
from gramian.errors import InputError, ParameterError, TableError
from gramian.likelihoods import Beta, Gamma, Heteroscedastic, Likelihood, NegativeBinomial, Poisson, StudentT

Array = NDArray[np.float64]

TASKS = ("classification", "regression")
INFERENCES = ("auto", "laplace", "ep", "vi", "map", "mcmc")
LIKELIHOODS: dict[str, type[Likelihood] | None] = {
    "gaussian": None,
    "student-t": StudentT,
    "poisson": Poisson,
    "negative-binomial": NegativeBinomial,
    "gamma": Gamma,
    "beta": Beta,
    "heteroscedastic": Heteroscedastic,
}
COUNTS = ("poisson", "negative-binomial")
CHOICES = {
    "task": TASKS,
    "inference": INFERENCES,
    "link": ("logit", "probit"),
    "multiclass": ("softmax", "robustmax", "ovr", "ovo"),
    "likelihood": tuple(LIKELIHOODS),
    "hyper": ("map", "ml", "mcmc"),
}
FEW = 10  # distinct whole numbers that may be labels


@dataclass(frozen=True)
class FitOptions:
    """The options of `gramian fit` that say what kind of model it is. None: not given."""

    task: str | None = None
    inference: str | None = None
    link: str | None = None
    multiclass: str | None = None
    likelihood: str | None = None
    exposure: str | None = None
    hyper: str | None = None

    def __post_init__(self) -> None:
        for option, known in CHOICES.items():
            _check_choice(option, getattr(self, option), known)
        if self.exposure is not None and self.likelihood not in COUNTS:
            raise ParameterError(
                f"--exposure {self.exposure} is for counts. Add --likelihood poisson or --likelihood"
                " negative-binomial, or leave it out."
            )

    def check(self, task: str, targets: Sequence[str], noise: float | None) -> None:
        """Refuses what does not belong to the task, or not to the likelihood."""
        if task == "classification":
            others: dict[str, Any] = {
                "likelihood": self.likelihood,
                "exposure": self.exposure,
                "noise": noise,
            }
            cure = "Leave it out; or, if the target is a number to be predicted, add --task regression."
        else:
            others = {"link": self.link, "multiclass": self.multiclass}
            cure = "Leave it out; or, if the target has labels, add --task classification."
        for option, value in others.items():
            if value is not None:
                kind = "regression" if task == "classification" else "classification"
                raise ParameterError(
                    f"--{option} {value} is for {kind}, but {targets[0]!r} is a target of {task}. {cure}"
                )
        special = self.likelihood if self.likelihood not in (None, "gaussian") else None
        what = (
            f"--likelihood {special}"
            if special
            else f"--inference {self.inference}"
            if self.inference not in (None, "auto")
            else None
        )
        if what is not None and noise is not None:
            raise ParameterError(
                f"--noise {noise:g} is where Gaussian noise in closed form starts, and {what} has none. Leave"
                " one of them out."
            )
        if what is not None and len(targets) > 1:
            raise ParameterError(
                f"{what} takes one target, but there are {len(targets)}: {', '.join(targets)}. Fit one after"
                " the other."
            )

    def settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        """These and further settings of the estimator; what was not given stays at its default."""
        values = {"link": self.link, "multiclass": self.multiclass, "hyper": self.hyper, **settings}
        if self.inference not in (None, "auto"):
            values["inference"] = self.inference
        made = LIKELIHOODS[self.likelihood or "gaussian"]
        if made is not None:
            values["likelihood"] = made()
        return {name: value for name, value in values.items() if value is not None}


def task_of(table: Table, targets: Sequence[str], given: str | None = None) -> str:
    """The task as given, or as the target of a table (or of its first block) shows it: text is classified,
    numbers are regressed."""
    _check_choice("task", given, TASKS)
    if given == "classification" and len(targets) != 1:
        named = f"there are {len(targets)}: {', '.join(targets)}" if targets else "none was given"
        raise InputError(f"--task classification takes one --target, but {named}.")
    return given or ("classification" if len(targets) == 1 and _is_text(table, targets[0]) else "regression")


def target_of(table: Table, targets: Sequence[str], task: str) -> NDArray[Any]:
    """y for the task: numbers (n,) or (n, q), or labels (n,)."""
    if task == "regression":
        return targets_of(table, targets)
    found, codes = coded([table], targets[0], _is_text(table, targets[0]))
    y: NDArray[Any] = found[codes.astype(int)]
    return y


def streamed_labels(table: Table, target: str, source: Source) -> tuple[Source, NDArray[Any]]:
    """A file that stays on disk with the codes of its labels as y, and the labels; of the target, 8 bytes a
    row are in memory."""
    classes, codes = coded(read_blocks(table.path), target, _is_text(table, target))
    return Source(source.X, codes[:, None], source.columns), classes


def coded(blocks: Iterable[Table], name: str, text: bool) -> tuple[NDArray[Any], Array]:
    """The labels of a column, sorted, and the code of each row among them. What cannot be labels is refused
    with its place."""
    known: dict[Any, int] = {}
    parts: list[NDArray[np.intp]] = []
    path, table = "", None
    for table in blocks:
        path = table.path
        values, inverse = np.unique(_labels(table, name, text), return_inverse=True)
        parts.append(np.array([known.setdefault(label, len(known)) for label in values.tolist()])[inverse])
        if len(known) > MOST_CATEGORIES:
            raise InputError(
                f"{path}, column {name!r}: more than {MOST_CATEGORIES:,} different labels. Is it the right"
                " column?"
            )
    codes = np.concatenate(parts)
    if text and len(known) == len(codes) > 2:
        some = ", ".join(repr(label) for label in list(known)[:2])
        raise TableError(
            f"{path}, column {name!r}: text that differs in every row ({some}, ...) is no label. Is it the"
            " right column?"
        )
    labels = sorted(known)
    if len(labels) == 1:
        assert table is not None
        if not text:
            refuse_constant(path, name, np.full(len(codes), float(labels[0])))
        raise TableError(
            f"{path}, column {name!r}: all {len(codes)} rows have the label {labels[0]!r}, so there is"
            " nothing to tell apart."
        )
    place = np.empty(len(labels))
    place[[known[label] for label in labels]] = np.arange(len(labels))
    return np.array(labels), place[codes]


def exposure_of(blocks: Iterable[Table], name: str) -> Array:
    """The exposures of all rows, which must be positive."""
    parts = []
    for table in blocks:
        values = table.numbers(name)
        wrong = np.flatnonzero(values <= 0)
        if wrong.size:
            raise TableError(
                f"{table.place(wrong[0])}, column {name!r}: the exposure is {values[wrong[0]]:g}. It says how"
                " much was watched, so it is positive."
            )
        parts.append(values)
    return np.concatenate(parts)


def checked_targets(likelihood: Likelihood | None, y: Array, path: str, name: str) -> None:
    """Complains, with the column, of values that a likelihood calls impossible."""
    if likelihood is not None:
        likelihood.checked(likelihood.with_defaults(y), f"{path}, column {name!r}:")


def hint(y: Array, name: str, options: FitOptions) -> str | None:
    """That whole numbers may be labels, where there are few of them and nobody said what they are."""
    if options.task is not None or options.likelihood is not None or y.ndim != 1:
        return None
    values = np.unique(y)
    if len(values) > FEW or np.any(values != np.floor(values)):
        return None
    shown = ", ".join(f"{value:g}" for value in values)
    return (
        f"note: {name!r} has {len(values)} whole values ({shown}) and is predicted as a number. If they are"
        " labels: --task classification"
    )


def _labels(table: Table, name: str, text: bool) -> NDArray[Any]:
    if text:
        cells = table.text(name)
        refuse_missing(table, name, cells)
        return cells.astype(str)
    values = table.numbers(name)
    broken = np.flatnonzero(values != np.floor(values))
    if broken.size:
        raise TableError(
            f"{table.place(broken[0])}, column {name!r}: {values[broken[0]]:g} is no label: labels are text"
            " or whole numbers. For numbers to be predicted: --task regression."
        )
    return values.astype(np.int64)


def _is_text(table: Table, name: str) -> bool:
    """Whether a column is text; numbers with a few words among them, or with commas for points, are a
    mistake, not labels."""
    if table.is_numeric(name):
        return False
    present = [cell for cell in table.text(name) if not is_missing(cell)]
    numbers = sum(map(is_number, present))
    return numbers < len(present) - numbers and not all(map(DECIMAL_COMMA.fullmatch, present))


def _check_choice(option: str, value: str | None, known: Sequence[str]) -> None:
    if value is not None and value not in known:
        raise ParameterError(f"--{option} {value!r} is not known. Use {', '.join(known)}.")


__all__ = [
    "FitOptions",
    "checked_targets",
    "coded",
    "exposure_of",
    "hint",
    "streamed_labels",
    "target_of",
    "task_of",
]
