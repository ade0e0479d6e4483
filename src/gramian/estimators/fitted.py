"""What a fit leaves behind: one frozen value, which all others read.

`Fitted` is one model: f with its process, conditioned on the rows; `learned` has the contract, and says what
a table is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.arrays import Array
from gramian.certify.certificate import Certificate, certify
from gramian.corrections import Calibration, Unwarped
from gramian.data import gaps
from gramian.data.inputs import Columns, read_beside, spread
from gramian.engines.base import Workspace
from gramian.errors import InputError, NumericalError, ParameterError
from gramian.estimators import predictions
from gramian.estimators.edits import Edits
from gramian.estimators.learned import LabelledRows, Learned
from gramian.estimators.predictions import LeaveOneOut, LeftOutClasses
from gramian.fitting import FitOutcome, Objective
from gramian.inference import Data, Evidence, Inferred, Model, Scheme
from gramian.inference.asked import ask
from gramian.kernels import Kernel
from gramian.likelihoods import Likelihood
from gramian.params import Parameter, ParameterSpace, ParameterTable
from gramian.predictive import Blend, Normals, Predictive, mixed
from gramian.processes.base import Process
from gramian.processes.gapped import Gapped
from gramian.report.facts import Facts, class_counts
from gramian.report.insides import Insides
from gramian.report.notes import labels
from gramian.report.quality import Quality, quality
from gramian.report.relevance import ROWS, Relevance, affordable, relevance
from gramian.report.summary import MOST_ENTRIES, Summary, formula, summary

GRADIENT_STEP = 1e-5  # of a column's spread: where lengthscales are a hundredth of that, errors are 1e-6


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
    calibration: Calibration | None = None  # of observations, where left-out rows asked for it
    # rows that missing cells are taken from, of a file that holds no others; None: the rows themselves
    donors: Array | None = None
    # of theta, (K, p), from its posterior: predictions are averaged over them, all else is of `theta`
    draws: Array | None = None
    edits: Edits | None = None  # rows that have come and gone since the search for parameters

    # What it is. --------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """Short: its rows and factors are many numbers."""
        return f"Fitted({formula(self.kernel)}, on {self.n_rows:,} rows, {self.inference.described})"

    @property
    def first(self) -> Fitted:
        return self

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood at the fitted parameters."""
        return self.model.likelihood

    @property
    def noise(self) -> float | Array | None:
        """The noise variance in the units of y squared (of the warped y, where it is warped), one number an
        output where they differ; None where an observation is not f plus noise of one variance."""
        if not self.closed_form:
            return None
        variances = self.model.gaussian.variances()
        return float(variances[0]) if variances.size == 1 else variances

    @property
    def additive(self) -> bool:
        """Whether an observation is f plus Gaussian noise of one variance; not so where y is warped, or where
        what is foretold of it is calibrated, or averaged over parameters."""
        plain = self.model.warp is None and self.calibration is None and self.draws is None
        return self.closed_form and plain

    @cached_property
    def members(self) -> tuple[Fitted, ...]:
        """What predictions are averaged over: the model at each draw of its parameters, or itself."""
        if self.draws is None:
            return (self,)
        objective, members = self._objective(), []
        for theta in self.draws:
            model = objective.at(theta)
            process = self.inference.infer(model, self.rows).posterior
            members.append(dataclasses.replace(self, model=model, process=process, theta=theta, draws=None))
        return tuple(members)

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
    def output_names(self) -> list[str]:
        """What the outputs are called, or their numbers."""
        return predictions.output_names(self.columns.targets, self.n_functions)

    @property
    def output_correlations(self) -> Array | None:
        """Of outputs that inform each other: the correlations of f's at a place, before the data, (q, q)."""
        if not self.model.outputs:
            return None
        terms = self.model.kernel.summands if len(self.model.outputs) > 1 else (self.model.kernel,)
        x = np.zeros((1, self.facts.columns)) if not self.has_rows else np.asarray(self.rows.X[:1])
        B = sum(
            float(term.diag(x)[0]) * between.matrix
            for term, between in zip(terms, self.model.outputs, strict=True)
        )
        std = np.sqrt(np.diagonal(B))
        return np.asarray(B / (std[:, None] * std[None, :]))

    @property
    def output_chain(self) -> list[tuple[str, Kernel | None]] | None:
        """Of outputs in a chain: their names in its order, each with the kernel of those before it."""
        chain = getattr(self.process, "order", None)
        if chain is None:
            return None
        links = {link.number: link.kernel for link in self.model.links}
        return [(self.output_names[k], links.get(place + 1)) for place, k in enumerate(chain)]

    @property
    def has_rows(self) -> bool:
        """Whether the rows are there; a file of an approximation holds none, and some stay where they are."""
        return self.rows.here

    def class_counts(self) -> tuple[int, ...]:
        """How many rows each class has."""
        return class_counts(self.facts, self.rows, 0 if self.classes is None else len(self.classes))

    def parameters(self) -> ParameterTable:
        named = {f"kernel.{path}": p for path, p in self.kernel.parameters().items()}
        rest = {path: p for path, p in self.model.parameters().items() if not path.startswith("kernel.")}
        return ParameterTable.of({**named, **rest}, self.facts.notes, labels(self.model, self.columns))

    def listed(self, full: bool = False) -> ParameterTable:
        """The parameters as a page has them: of many lengthscales those of the columns along which f changes
        most. `full`: all."""
        table = self.parameters()
        if full:
            return table
        rank = {j: place for place, j in enumerate(self.columns_by_relevance())}
        by_column = self.model.by_column(self.facts.columns)
        order = {path: sorted(range(len(own)), key=lambda k: rank[own[k]]) for path, own in by_column.items()}
        return table.brief(order, MOST_ENTRIES)

    def columns_by_relevance(self) -> list[int]:
        """The columns by how much f changes along them: the shortest length of change that the kernel has
        there, as a share of the column's spread, first."""
        d, spread = self.facts.columns, self.facts.spread
        lengths = np.full(d, np.inf)
        for j, length in self.model.kernel.change_lengths(range(d)):
            lengths[j] = min(lengths[j], length)
        return np.argsort(lengths if spread is None else lengths / spread, kind="stable").tolist()

    def summary(self, title: str, full: bool = False) -> Summary:
        return summary(title, self, full)

    # Evidence. ----------------------------------------------------------------------------------------------

    def log_evidence(self, theta: ArrayLike | None = None) -> float:
        at = _finite(theta)
        model = self.model if at is None else self._objective().at(at)
        return self.inference.evidence(model, self.rows, Workspace()).value

    def log_prior(self) -> float:
        """The log density of the priors at the fitted parameters."""
        space = ParameterSpace(self.model.parameters())
        return space.log_prior(space.theta)[0]

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

    def insides(self, read: Callable[[Any], Array]) -> Insides:
        trace = self.outcome.trace
        return Insides(self._objective(), self.facts.scale, self.process, self.columns, trace, read)

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
        if not self.closed_form or self.inference.search == "none" or self.model.deeper:
            what = "evidence_.kind says what this model's evidence is"
            raise ParameterError(f"Certificates compare with exact inference under Gaussian noise; {what}.")
        if self.model.outputs or self.model.others:
            raise ParameterError('Certificates are of outputs each for itself: outputs="independent".')
        rows = self.rows.under(self.model)
        made = certify(self.model, rows, self.inference, self.process, self.evidence, rng, memory)
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

    def probability_interval(self, table: Array, level: float) -> tuple[Array, Array]:
        if self.likelihood.latents > 1:
            return super().probability_interval(table, level)
        seen = predictions.gaussians(self.likelihood, self.process_at(table), table)
        ends = mixed([Normals(mean[:, 0], np.sqrt(var[:, 0])) for _, mean, var in seen]).interval(level)
        # a probability rises or falls with f
        low, high = (ask(self.likelihood, "probabilities", f, np.zeros(len(f))) for f in ends)
        return np.minimum(low, high), np.maximum(low, high)

    def predictive(self, table: Array, beside: Array | None = None) -> Predictive:
        """The distribution of an observation at each row. `beside`: the likelihood's further columns, (n,
        columns - 1); None: their defaults."""
        if beside is None:
            beside = read_beside({}, len(table), self.likelihood)
        if self.draws is not None:
            return mixed([member.predictive(table, beside) for member in self.members])
        seen = predictions.gaussians(self.likelihood, self.process_at(table), table)
        made = predictions.predictive(seen, beside, self.closed_form and not self.single)
        made = self.foretold(made, table)
        predictions.finite(made.mean.reshape(len(table), -1), table)
        return made

    def function(self, table: Array) -> Predictive:
        """The distribution of f at each row, in the units of y: sent back through a warp, averaged over
        parameters."""
        if self.draws is not None:
            return mixed([member.function(table) for member in self.members])
        parts = []
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused with its row
            for _, mean, var in self.process_at(table).under(self.likelihood, table):
                std = np.sqrt(var)
                predictions.finite(mean, table, std)
                parts.append(Normals(mean[:, 0], std[:, 0]) if self.single else Normals(mean, std))
        return self.foretold(mixed(parts), table, observed=False)

    def foretold(self, seen: Predictive, table: Array, observed: bool = True) -> Predictive:
        """What is foretold of y, from what the model says of the target it sees: without its warp, and
        calibrated if it is observed. f is never less sure than an observation of it."""
        warp, calibration = self.model.warp, self.calibration
        if calibration is None:
            return seen if warp is None else seen.mapped(lambda part: Unwarped(part, warp))

        def corrected(part: Normals) -> Predictive:
            own = calibration.at(table, part.mean)
            made = own.observed(part) if observed else own.of_function(part)
            if warp is None:
                return made
            return made.mapped(lambda each: Unwarped(each, warp, own.usual(part)))

        return seen.mapped(corrected)

    def joint(self, table: Array, mean: Array, cov: Array, observed: bool) -> tuple[Array, Array]:
        """Mean and covariance of y at n rows, from those of the target that the model sees. A calibration
        widens each row for itself; a warp sees one Gaussian of the same covariance, and each row's variance
        is then that of `foretold`."""
        at = np.arange(len(mean))
        std = np.sqrt(cov[at, at])
        foretold = self.foretold(Normals(mean, std), table, observed)
        if self.calibration is not None:
            between, own = self.calibration.at(table, mean).factors(observed)
            between = np.broadcast_to(between, std.shape)
            cov, std = cov * between[:, None] * between[None, :], std * own
            cov[at, at] = std**2
        if self.model.warp is not None:
            cov = Unwarped(Normals(mean, std), self.model.warp).covariance(cov)
            ratio = foretold.std / np.sqrt(cov[at, at])
            cov = cov * ratio[:, None] * ratio[None, :]
        return foretold.mean, cov

    def drawn(
        self, table: Array, draws: Array, mean: Array, observed: bool, rng: np.random.Generator
    ) -> Array:
        """Draws of y, (n, q, count), from those of the target that the model sees, whose mean is (n, q)."""
        if self.calibration is not None:
            factor = self.calibration.at(table, mean).drawn(rng, draws.shape, observed)
            draws = mean[:, :, None] + factor * (draws - mean[:, :, None])
        if self.model.warp is None:
            return draws
        return np.swapaxes(self.model.warp.inverse(np.swapaxes(draws, 1, 2)), 1, 2)

    def gradient(self, table: Array) -> tuple[Array, Array]:
        """Mean and variance of the gradient of f, in the units of y, at these rows: (n, d, q) each."""
        if self.draws is not None:
            return averaged([member.gradient(table) for member in self.members])
        process, warp = self.process_at(table), self.model.warp
        mean, var = process.gradient(table)
        f, factor = process.mean(table), np.ones(1)
        if self.calibration is not None:
            factor = np.asarray(self.calibration.at(table, f).factors(observed=False)[1])
        square = (factor**2)[..., None, :] if factor.ndim else factor**2
        if warp is None:
            return mean, square * var
        # f and its gradient have the covariance 1/2 dv / dx, by central differences of v
        known = self.facts.spread
        step = GRADIENT_STEP * (spread(table) if known is None else known)
        cov = np.empty_like(mean)
        for j, h in enumerate(step):
            ahead, behind = (process.moments(table + s * h * np.eye(len(step))[j])[1] for s in (1.0, -1.0))
            cov[:, j] = (ahead - behind) / (4 * h)
        seen = Normals(f, factor * np.sqrt(process.var(table)))
        return Unwarped(seen, warp).gradient(mean, square * var, square * cov)

    def told(self, note: str, **how: Any) -> Fitted:
        """The same with one more note on how the fit went; `how` are other fields of the outcome."""
        outcome = dataclasses.replace(self.outcome, notes=(*self.outcome.notes, note), **how)
        return dataclasses.replace(self, outcome=outcome)

    def chosen_by(self, line: str) -> Fitted:
        """The same with one more line on how its kind was chosen, before the others."""
        outcome = dataclasses.replace(self.outcome, choice=(line, *self.outcome.choice))
        return dataclasses.replace(self, outcome=outcome)

    def conditioned(self, rows: Data, scheme: Scheme, rng: np.random.Generator) -> Fitted:
        """The same model, at the same parameters, conditioned on other rows; these have its scale."""
        scheme = scheme.prepared(self.model, rows, rng)
        return self.of_rows(rows, scheme, scheme.infer(self.model, rows))

    def of_rows(self, rows: Data, scheme: Scheme, inferred: Inferred) -> Fitted:
        """The same model with what was inferred from other rows."""
        outcome = dataclasses.replace(
            self.outcome, method=scheme.name, solver=scheme.described, jitter=inferred.outcome.jitter
        )
        return dataclasses.replace(
            self,
            inference=scheme,
            rows=rows,
            process=inferred.posterior,
            evidence=inferred.evidence,
            outcome=outcome,
            facts=Facts.of(rows, self.facts.notes, spread(rows.X)),
            certificate=None,
            donors=None,
        )

    def components(self, table: Array) -> list[tuple[Array, Array]]:
        """Mean and variance, (n, q) each, of each summand of the kernel, at these rows."""
        found = [one.process_at(table).components(table, one.model.kernel.summands) for one in self.members]
        return [averaged(pairs) for pairs in zip(*found, strict=True)]

    def labelled_rows(self) -> LabelledRows | None:
        if not self.has_rows:
            return None
        return LabelledRows(np.asarray(self.rows.X), self.rows.Y[:, 0].astype(int))

    def left_out(self) -> Predictive:
        """The distribution of each training row as all others foretell it."""
        if self.draws is not None:
            return Blend([member.left_out() for member in self.members], self._weights_left_out())
        if self.closed_form:
            return self.foretold(self.left_out_normal(), self.rows.X)
        return predictions.predictive([self._cavities()], self.rows.Y[:, 1:])

    def _weights_left_out(self) -> Array:
        """Of each member in the prediction of a row from all others, (K, n): 1 / p(y_i | others), which takes
        row i out of the posterior that the parameters were drawn from, cut off where one draw would be all.
        Source: Ionides 2008 (truncated importance sampling)."""
        plain = [dataclasses.replace(member, calibration=None).left_out() for member in self.members]
        Y = self.rows.Y[:, 0] if self.single else self.rows.Y
        log_weights = -np.nan_to_num(np.stack([one.log_density(Y) for one in plain]))  # 0: not observed
        weights = np.exp(log_weights - np.max(log_weights, axis=0))
        return np.minimum(weights, np.sqrt(len(plain)) * np.mean(weights, axis=0))

    def left_out_normal(self) -> Normals:
        """The same under Gaussian noise, at the best parameters and not calibrated."""
        cavities, rows = self._cavities(), self.rows
        known = 0.0 if rows.noise_var is None else rows.noise_var[:, None]
        std = np.sqrt(cavities.var + self.model.gaussian.variances() + known)
        return Normals(cavities.mean[:, 0], std[:, 0]) if self.single else Normals(cavities.mean, std)

    def left_out_numbers(self) -> LeaveOneOut:
        """Each training row predicted from all the others: (n, q) each where y has outputs, else (n,)."""
        foretold, Y = self.left_out(), self.targets_of_rows()
        if foretold.mean.ndim == 1:
            return LeaveOneOut(*foretold.moments, foretold.log_density(Y[:, 0]))
        outputs = [foretold.output(k).log_density(y) for k, y in enumerate(Y.T)]
        return LeaveOneOut(*foretold.moments, np.stack(outputs, axis=1))

    def targets_of_rows(self) -> Array:
        """What was predicted of the training rows, (n, q)."""
        return self.rows.Y if self.closed_form else self.rows.Y[:, :1]

    def training_moments(self) -> tuple[Array, Array] | None:
        """Mean and variance of the training targets, (q,) each; None where the rows are not there."""
        if not self.has_rows:
            return None
        Y = self.targets_of_rows()
        return np.nanmean(Y, axis=0), np.nanvar(Y, axis=0)

    def relevance(self, rows: int = ROWS) -> Relevance:
        return relevance(self.process.mean, self.seen_points(), self.columns.names, rows)

    def seen_points(self) -> Array:
        """The training rows; of a model without them, its landmarks."""
        points = self.rows.X if self.has_rows else self.process.landmarks
        if points is None or points.shape[1] != len(self.columns.names):  # patches are no rows
            raise ParameterError("This model has neither training rows nor landmarks to ask it at.")
        return points

    @cached_property
    def shares(self) -> Relevance | None:
        """Which columns matter, for a summary; None where there is one column, or it would take long."""
        rows = affordable(self.n_rows, len(self.columns.names))
        sampled = self.inference.search == "none"
        known = self.has_rows and not sampled and len(self.columns.names) > 1 and self.n_rows > 1
        return self.relevance(rows) if known and rows else None

    @cached_property
    def quality(self) -> Quality:
        """How well training rows are foretold by all others, where that costs no more than the fit."""
        return quality(self)

    def left_out_classes(self) -> LeftOutClasses:
        cavities = self._cavities()
        shares = ask(self.likelihood, "probabilities", cavities.mean, cavities.var)
        return LeftOutClasses(shares, predictions.row_densities(cavities, self.rows.Y))

    def _cavities(self) -> predictions.Latents:
        """f at each row as all others see it: the posterior without the row's own site."""
        seen = self.inference.cavities(self.model, self.rows, self.process)
        return predictions.Latents(self.likelihood, *seen)


def averaged(moments: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Mean and variance of an even mixture, from those of its parts; of one part, its own."""
    if len(moments) == 1:
        return moments[0]
    means, variances = (np.stack(values) for values in zip(*moments, strict=True))
    return np.mean(means, axis=0), np.mean(variances, axis=0) + np.var(means, axis=0)


def _finite(theta: ArrayLike | None) -> Array | None:
    """theta as an array; a Parameter refuses what is not a finite number."""
    return None if theta is None else Parameter(np.asarray(theta)).value
