"""What a fit leaves behind: one frozen value, which all others read.

    Learned    what can be asked of any fit
    Fitted     one model: f with its process, conditioned on the rows

Several classes made from binary models are the other kind of `Learned` (`multiclass.BinaryModels`). A table
here is the model's own: numbers (n, d) with categories as codes, as `Estimator.read` makes it.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.arrays import Array
from gramian.certify.certificate import Certificate, certify
from gramian.data import gaps
from gramian.data.inputs import Columns, read_beside
from gramian.engines.base import Workspace
from gramian.errors import InputError, NumericalError, ParameterError
from gramian.estimators import predictions
from gramian.estimators.predictions import LeaveOneOut, LeftOutClasses
from gramian.fitting import FitOutcome, Objective
from gramian.inference import Data, Evidence, Model, Scheme
from gramian.inference.asked import ask
from gramian.kernels import Kernel
from gramian.likelihoods import Likelihood
from gramian.params import Parameter, ParameterTable
from gramian.processes.base import Process
from gramian.processes.gapped import Gapped
from gramian.report.facts import Facts, NoData, class_counts
from gramian.report.summary import summary


class LabelledRows(NamedTuple):
    """Training rows, and the code of each one's class."""

    X: Array  # (n, d)
    codes: NDArray[np.intp]  # (n,)


class Learned(ABC):
    """What can be asked of any fit."""

    columns: Columns
    evidence: Evidence
    outcome: FitOutcome
    classes: NDArray[Any] | None  # the labels, in the order of their codes; None: y is a number

    @property
    @abstractmethod
    def first(self) -> Fitted:
        """The model itself, or the first of several."""

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

    @abstractmethod
    def labelled_rows(self) -> LabelledRows | None:
        """The training rows with their classes; None where they are not there."""

    @abstractmethod
    def left_out_classes(self) -> LeftOutClasses:
        """The class of each training row predicted from all the others."""

    @abstractmethod
    def summary(self, title: str) -> str:
        """On a page: parameters, evidence, what happened, and notes with cures."""

    def with_classes(self, classes: NDArray[Any]) -> Self:
        """The same with other labels, in the order of the codes."""
        return dataclasses.replace(cast(Any, self), classes=classes)

    def class_of(self, labels: Any) -> NDArray[np.intp]:
        """The codes of labels, (n,); one that the fit has not seen is refused."""
        assert self.classes is not None
        labels = np.asarray(labels).reshape(-1)
        codes = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        unseen = self.classes[codes] != labels
        if np.any(unseen):
            raise InputError(
                f"The class {str(labels[unseen][0])!r} has rows to test on but none to train on. Take fewer"
                ' folds, leave out or join rare classes, or use by="loo".'
            )
        return codes


@dataclass(frozen=True, eq=False)
class Fitted(Learned):
    """One model, conditioned on rows."""

    # every field but the certificate is known when the fit ends
    kernel: Kernel  # as people wrote it, with column names, at the fitted parameters
    model: Model  # the same with column indices, and the mean and the likelihood
    inference: Scheme  # with its choices made
    rows: Data  # what was observed, or NoData, which refuses
    process: Process
    evidence: Evidence
    outcome: FitOutcome
    columns: Columns
    facts: Facts
    theta: Array
    closed_form: bool  # whether y is f plus Gaussian noise, conditioned on without approximating p(y | f)
    single: bool = True  # whether y came as one column, (n,)
    normalized: bool = False  # whether y was centred and divided by its standard deviation
    classes: NDArray[Any] | None = None
    certificate: Certificate | None = None  # where somebody has asked for it
    # rows that missing cells are taken from, of a file that holds no others; None: the rows themselves
    donors: Array | None = None

    # What it is. --------------------------------------------------------------------------------------------

    @property
    def first(self) -> Fitted:
        return self

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood at the fitted parameters."""
        return self.model.likelihood

    @property
    def noise(self) -> float | Array | None:
        """The noise variance in the units of y squared, one number an output where they differ; None where
        an observation is not f plus noise of one variance."""
        if not self.closed_form:
            return None
        variances = self.model.gaussian.variances()
        return float(variances[0]) if variances.size == 1 else variances

    @property
    def noise_of_outputs(self) -> Array:
        """The same for each function, (q,); zeros where there is none."""
        noise = 0.0 if self.noise is None else self.noise
        return np.broadcast_to(np.asarray(noise, dtype=np.float64), self.facts.scale.shape)

    @property
    def n_rows(self) -> int:
        return self.facts.rows

    @property
    def n_functions(self) -> int:
        """Latent functions: one an output, or as many as the likelihood has."""
        return len(self.facts.scale)

    @property
    def n_parameters(self) -> int:
        return self.theta.size

    @property
    def has_rows(self) -> bool:
        """Whether the rows are there; a file of an approximation holds none."""
        return not isinstance(self.rows, NoData)

    def class_counts(self) -> tuple[int, ...]:
        """How many rows each class has."""
        return class_counts(self.facts, self.rows, 0 if self.classes is None else len(self.classes))

    def parameters(self) -> ParameterTable:
        named = {f"kernel.{path}": p for path, p in self.kernel.parameters().items()}
        rest = {path: p for path, p in self.model.parameters().items() if not path.startswith("kernel.")}
        return ParameterTable.of({**named, **rest}, self.facts.notes)

    def summary(self, title: str) -> str:
        return summary(title, self)

    # Evidence. ----------------------------------------------------------------------------------------------

    def log_evidence(self, theta: ArrayLike | None = None) -> float:
        at = _finite(theta)
        model = self.model if at is None else self._objective().at(at)
        return self.inference.evidence(model, self.rows, Workspace()).value

    def log_evidence_and_gradient(self, theta: ArrayLike | None = None) -> tuple[float, Array]:
        at = _finite(theta)
        vector = None if at is None else np.concatenate([at, self.inference.free])
        evidence, gradient = self._objective().evidence(vector)
        gradient = gradient[: self.theta.size]
        if not np.all(np.isfinite(gradient)):
            where = np.array2string(self.theta if at is None else at)
            raise NumericalError(f"The gradient of the log evidence is not finite at theta={where}.")
        return evidence.value, gradient

    def _objective(self) -> Objective:
        return Objective(self.model, self.rows, self.inference)

    def evidence_of_y(self) -> tuple[float, str, float]:
        value, kind = self.evidence.value, str(self.evidence.kind)
        error = self.evidence.standard_error or float("nan")
        if kind == "estimate" and not self.closed_form:
            kind = "approximation"  # Laplace's, with the error of its log determinant
        # the evidence is of y / s: the density of y is that of y / s, divided by s a row and output
        if self.likelihood.location:
            scale = self.facts.scale if self.closed_form else self.facts.scale[:1]
            value -= self.n_rows * float(np.sum(np.log(scale)))
        return value, kind, error

    def certified(self, rng: np.random.Generator, memory: float) -> Fitted:
        """The same with a certificate, made within so many bytes."""
        if not self.closed_form or self.inference.search == "none":
            what = "evidence_.kind says what this model's evidence is"
            raise ParameterError(f"Certificates compare with exact inference under Gaussian noise; {what}.")
        made = certify(self.model, self.rows, self.inference, self.process, self.evidence, rng, memory)
        return dataclasses.replace(self, certificate=made)

    # Predictions. -------------------------------------------------------------------------------------------

    def process_at(self, table: Array) -> Process:
        """The process for the rows of a table: where cells are missing, averaged over donors of them."""
        return Gapped(self.process, self._completed) if gaps.has_gaps(table) else self.process

    def _completed(self, rows: Array) -> Array:
        return gaps.donors_of(self.some_rows(), self.columns).completed(rows)

    def some_rows(self) -> Array:
        """Some of the rows of the fit, in even steps."""
        if self.donors is not None:
            return self.donors
        if not self.has_rows:
            raise InputError(
                "A row has a missing cell, and this model is of a file of an older version, without rows to"
                " take it from. Fit again, or fill the cell."
            )
        return gaps.Donors.among(self.rows.X, ()).pool

    def latents(self, table: Array) -> tuple[Array, Array]:
        mean, var = self.process_at(table).moments(table)
        return predictions.finite(mean, table, var), var

    def probabilities(self, table: Array, averaging: str = "exact") -> Array:
        scaled = averaging == "scaled" and self.likelihood.latents == 1
        P = predictions.probabilities(self.likelihood, self.process_at(table), table, scaled)
        predictions.finite(P, table)
        return P / np.sum(P, axis=1, keepdims=True)  # they add up to 1 but for rounding

    def observed(self, table: Array, beside: Array | None = None) -> tuple[Array, Array]:
        """Mean and variance of an observation under a likelihood that is not conditioned on in closed form:
        (n,) each. `beside`: the likelihood's further columns, (n, columns - 1); None: their defaults."""
        return predictions.observed(self._gaussians(table), self._beside(table, beside))

    def quantiles(self, table: Array, levels: ArrayLike, beside: Array | None = None) -> Array:
        """Quantiles of an observation, (n, levels); (n, levels, q) where y has several outputs."""
        if self.closed_form:
            mean, var = self.latents(table)
            values = predictions.normal_quantiles(mean, var + self.noise_of_outputs, levels)
            return values[:, :, 0] if self.single else values
        beside = self._beside(table, beside)
        return predictions.quantiles(self.likelihood, self._gaussians(table), levels, beside)

    def log_densities(self, table: Array, Y: Array) -> Array:
        """log p(y_i) of new rows, (n,): Y is (n, outputs), to be added up, or as the likelihood reads it."""
        return predictions.log_densities(self._gaussians(table), Y, self.closed_form)

    def _gaussians(self, table: Array) -> Iterator[predictions.Latents]:
        return predictions.gaussians(self.likelihood, self.process_at(table), table)

    def _beside(self, table: Array, beside: Array | None) -> Array:
        return read_beside({}, len(table), self.likelihood) if beside is None else beside

    def labelled_rows(self) -> LabelledRows | None:
        if not self.has_rows:
            return None
        return LabelledRows(np.asarray(self.rows.X), self.rows.Y[:, 0].astype(int))

    def left_out_numbers(self) -> LeaveOneOut:
        """Each training row predicted from all the others: (n, q) each in closed form, else (n,)."""
        cavities, rows = self._cavities(), self.rows
        if not self.closed_form:
            mean, var = ask(self.likelihood, "predictive", rows.Y[:, 1:], cavities.mean, cavities.var).T
            return LeaveOneOut(mean, np.sqrt(var), predictions.row_densities(cavities, rows.Y))
        known = 0.0 if rows.noise_var is None else rows.noise_var[:, None]
        mean, var = cavities.mean, cavities.var + self.model.gaussian.variances() + known
        return LeaveOneOut(mean, np.sqrt(var), predictions.log_normal(rows.Y, mean, var))

    def left_out_classes(self) -> LeftOutClasses:
        cavities = self._cavities()
        shares = ask(self.likelihood, "probabilities", cavities.mean, cavities.var)
        return LeftOutClasses(shares, predictions.row_densities(cavities, self.rows.Y))

    def _cavities(self) -> predictions.Latents:
        """f at each row as all others see it: the posterior without the row's own site."""
        seen = self.inference.cavities(self.model, self.rows, self.process)
        return predictions.Latents(self.likelihood, *seen)


def _finite(theta: ArrayLike | None) -> Array | None:
    """theta as an array; a Parameter refuses what is not a finite number."""
    return None if theta is None else Parameter(np.asarray(theta)).value
