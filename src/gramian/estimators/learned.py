"""What can be asked of any fit: of one model (`fitted.Fitted`), or of several classes made from binary models
(`multiclass.BinaryModels`). A table here is the model's own: numbers (n, d) with categories as codes, as
`Estimator.read` makes it.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.arrays import Array
from gramian.data.inputs import Columns
from gramian.data.labels import labels_of
from gramian.errors import InputError, ParameterError
from gramian.estimators.predictions import LeftOutClasses
from gramian.fitting import FitOutcome
from gramian.inference import Evidence
from gramian.params import ParameterTable
from gramian.report.insides import Insides
from gramian.report.relevance import ROWS, Relevance
from gramian.report.summary import Summary

if TYPE_CHECKING:
    from gramian.estimators.fitted import Fitted


class LabelledRows(NamedTuple):
    """Training rows, and the code of each one's class."""

    X: Array  # (n, d)
    codes: NDArray[np.intp]  # (n,)


class Learned(ABC):
    """The contract: what is told of a fit, and what is foretold by it."""

    columns: Columns
    evidence: Evidence
    outcome: FitOutcome
    classes: NDArray[Any] | None  # the labels, in the order of their codes; None: y is a number

    @property
    @abstractmethod
    def first(self) -> Fitted:
        """The model itself, or the first of several."""

    @property
    def targets(self) -> tuple[str, ...]:
        """A name an output, where y came with names."""
        return self.columns.targets

    @property
    def models(self) -> tuple[Any, ...]:
        """The estimators that it is made of; none where it is one model."""
        return ()

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Rows of the fit."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Numbers that were fitted."""

    @property
    def rule(self) -> str:
        """The name of the rule that approximates the posterior of f; empty where there is none of them."""
        return self.first.inference.rule_name

    @property
    def pairwise(self) -> bool:
        """Whether each latent function tells two classes apart, instead of speaking for one."""
        return False

    @abstractmethod
    def parameters(self) -> ParameterTable:
        """All parameters with their values, priors and notes."""

    @abstractmethod
    def log_evidence(self, theta: ArrayLike | None = None) -> float:
        """log p(y) in nats at theta (None: as fitted)."""

    @abstractmethod
    def log_prior(self) -> float:
        """The log density of the priors at the fitted parameters."""

    @abstractmethod
    def log_evidence_and_gradient(self, theta: ArrayLike | None = None) -> tuple[float, Array]:
        """The same with its gradient by theta."""

    @abstractmethod
    def evidence_of_y(self) -> tuple[float, str, float]:
        """log p(y) of y in its own units, its kind, and its standard error (nan where it has none): what may
        stand beside that of another model."""

    @abstractmethod
    def latents(self, table: Array) -> tuple[Array, Array]:
        """Mean and variance of each latent function at the rows of a table: (n, functions) each."""

    @abstractmethod
    def probabilities(self, table: Array, averaging: str = "exact") -> Array:
        """p(y = c) of each class: (n, classes)."""

    def probability_interval(self, table: Array, level: float) -> tuple[Array, Array]:
        """The ends between which the probability of each class lies, (n, classes) each."""
        raise ParameterError(
            "An interval of a probability is that of one latent function, which two classes have. For more,"
            ' draw the functions: sample(X, target="f").'
        )

    @abstractmethod
    def labelled_rows(self) -> LabelledRows | None:
        """The training rows with their classes; None where they are not there."""

    @abstractmethod
    def relevance(self, rows: int = ROWS) -> Relevance:
        """Which columns matter, from so many rows."""

    @abstractmethod
    def left_out_classes(self) -> LeftOutClasses:
        """The class of each training row predicted from all the others."""

    @abstractmethod
    def listed(self, full: bool = False) -> ParameterTable:
        """The parameters as the summary has them: a page of them, or all."""

    def insides(self, read: Callable[[Any], Array]) -> Insides:
        """What pictures of the model itself read; `read` makes its table of rows."""
        raise ParameterError("Binary models have no model in common: ask one of estimators_.")

    @abstractmethod
    def summary(self, title: str, full: bool = False) -> Summary:
        """On a page: parameters, evidence, what happened, and notes with cures; `full`: as long as it gets,
        with all entries of all parameters."""

    def with_classes(self, classes: NDArray[Any]) -> Self:
        """The same with other labels, in the order of the codes."""
        return dataclasses.replace(cast(Any, self), classes=classes)

    def class_of(self, labels: Any, n: int) -> NDArray[np.intp]:
        """The codes of the labels of n rows, (n,); one that the fit has not seen is refused."""
        assert self.classes is not None
        labels = labels_of(labels, n)
        try:
            codes = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
            unseen = self.classes[codes] != labels
        except TypeError:  # kinds that have no order between them: one by one
            known = {label: code for code, label in enumerate(self.classes.tolist())}
            codes = np.array([known.get(label, -1) for label in labels.tolist()])
            unseen = codes < 0
        if np.any(unseen):
            raise InputError(
                f"The class {str(labels[unseen][0])!r} has rows to test on but none to train on. Take fewer"
                ' folds, leave out or join rare classes, or use by="loo".'
            )
        return codes
