"""What a regressor foretells, after a fit or from the prior: means, intervals, draws, densities, parts."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from gramian.arrays import Array
from gramian.data.inputs import (
    Columns,
    read_beside,
    read_features,
    read_rows,
    read_targets,
    read_weights,
    refuse_far_targets,
)
from gramian.errors import InputError, ParameterError
from gramian.estimators import build, far, reading, uncertain
from gramian.estimators.base import PREDICTIONS_SHORT, Estimator, check_draws, check_target
from gramian.estimators.fitted import Fitted
from gramian.estimators.predictions import LeaveOneOut, columns_of, finite, observations, prediction_table
from gramian.estimators.resuming import generator
from gramian.likelihoods import Gaussian
from gramian.linalg import memory
from gramian.predictive import Normals, Predictive, mixed
from gramian.processes.base import Process
from gramian.processes.prior import GaussianProcess
from gramian.report.evaluation import Evaluation, of_numbers
from gramian.report.held import MOST_GIVEN, Held, numbers, rivals_of_given
from gramian.report.quality import COSTLY, some_rows


class AtRows(NamedTuple):
    """f at some rows, or y where it is `observed`; the noise variances beside f, (q,), of f itself zeros; and
    the model, if fitted."""

    process: Process
    noise: Array
    observed: bool
    fitted: Fitted | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class PredictsNumbers(RegressorMixin, MultiOutputMixin, Estimator, ABC):  # type: ignore[misc]  # as scikit-learn is
    """Parent of GPRegressor: predictions of numbers."""

    fitted_: Fitted = field(init=False)

    @memory.translated(*PREDICTIONS_SHORT)
    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        target: str = "y",
        exposure: ArrayLike | None = None,
        interval: float | None = None,
        quantiles: ArrayLike | None = None,
        X_var: ArrayLike | None = None,
        **columns: Any,
    ) -> Any:
        """The mean at the rows of X, and on request how sure it is, of an observation ("y") or of the
        function ("f"):

            return_std=True       mean and standard deviation
            return_cov=True       mean and covariance
            interval=0.9          mean, lower and upper end of the 90 % interval
            quantiles=[0.1, 0.9]  these quantiles alone, one a column

        Shapes: mean, std and ends (n,), cov (n, n), quantiles (n, levels); for 2-D y, and for the functions
        of a likelihood with several, (n, q), (n, n, q) and (n, levels, q). Before `fit`, the prior's.
        `exposure` is for counts (None: 1); `columns` are those that other likelihoods have beside y, by name,
        one number a row or one for all: `trials=20` for the successes of 20 trials. `X_var`: variances of the
        numbers in X, one for all, one a column or one a cell; predictions are averages over what X may be.
        """
        if self.__sklearn_is_fitted__() and far.is_shared(self, X) and X_var is None and not return_cov:
            asked = {"return_std": return_std, "target": target, "interval": interval, "quantiles": quantiles}
            return far.answers(self, "predict", X, exposure=_one(exposure), **asked, **columns)
        if X_var is not None and return_cov:
            raise ParameterError("X_var gives each row by itself: ask for return_std, not return_cov.")
        if interval is not None or quantiles is not None:
            if return_std or return_cov or (interval is not None and quantiles is not None):
                raise ParameterError(
                    "Ask for one of return_std, return_cov, interval and quantiles; predict_dist(X) has all"
                    " of them."
                )
            foretold = self.predict_dist(X, target, exposure, X_var, **columns)
            if interval is not None:
                return foretold.mean, *foretold.interval(interval)
            assert quantiles is not None
            return foretold.quantile(quantiles)
        if X_var is not None:
            mean, std = self.predict_dist(X, target, exposure, X_var, **columns).moments
            return (mean, std) if return_std else mean
        if return_std and return_cov:
            why = "the standard deviation is the root of the covariance's diagonal"
            raise ParameterError(f"Ask for return_std or return_cov, not both: {why}.")
        if target == "y" and not self._adds_noise():
            return self._observed(X, return_std, return_cov, {"exposure": exposure, **columns})
        self._no_columns(exposure, columns)
        table, seen = self._processes(X, target)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused with its row
            found = [self._predicted(table, one, return_std, return_cov) for one in seen]
        if len(found) == 1:
            return found[0]
        if return_cov:
            means, covs = (np.stack(values) for values in zip(*found, strict=True))
            cov = np.mean(covs, axis=0)
            for off in means - np.mean(means, axis=0):  # one by one: the same bits wherever arrays lie
                cov += off[:, None] * off[None, :] / len(found)
            # its diagonal and the mean are those of return_std to the last bit
            mean, std = mixed([Normals(*self._predicted(table, one, True, False)) for one in seen]).moments
            at = np.arange(len(cov))
            cov[at, at] = std**2
            return mean, cov
        if return_std:
            return mixed([Normals(mean, std) for mean, std in found]).moments
        return mixed([Normals(mean, np.zeros_like(mean)) for mean in found]).mean

    @memory.translated(*PREDICTIONS_SHORT)
    def predict_dist(
        self,
        X: Any,
        target: str = "y",
        exposure: ArrayLike | None = None,
        X_var: ArrayLike | None = None,
        **columns: Any,
    ) -> Predictive:
        """The distribution of an observation ("y"), or of the function ("f"), at each row of X: `mean`,
        `std`, `quantile(levels)`, `interval(level)`, `cdf(y)`, `log_density(y)`, `sample(rng, count)`, and,
        where it is Gaussian, SciPy's frozen distribution as `scipy()`. Arguments are those of `predict`."""
        if X_var is not None:
            return self._averaged(X, X_var, target, {"exposure": exposure, **columns})
        if self.__sklearn_is_fitted__() and target == "y":
            return self._foretold(X, {"exposure": exposure, **columns})
        self._no_columns(exposure, columns)
        table, seen = self._processes(X, target)
        return mixed([self._distribution(table, one) for one in seen])

    def _distribution(self, table: Array, seen: AtRows) -> Predictive:
        """Of f with its noise, in the units of y."""
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused with its row
            under = seen.process.under(Gaussian(), table)
            parts = [(mean, np.sqrt(var + seen.noise)) for _, mean, var in under]
        for mean, std in parts:
            finite(mean, table, std)
        foretold = mixed([Normals(self._shaped(mean), self._shaped(std)) for mean, std in parts])
        return foretold if seen.fitted is None else seen.fitted.foretold(foretold, table, seen.observed)

    def _no_columns(self, exposure: Any, columns: Mapping[str, Any]) -> None:
        """Refuses columns beside y where there are none."""
        if exposure is not None:
            which = 'target="y", with likelihood=Poisson() or NegativeBinomial()'
            raise ParameterError(f"An exposure is for observations of counts: {which}.")
        if columns:
            which = 'columns beside y are for observations: target="y", with a likelihood that has them'
            raise ParameterError(f"{', '.join(columns)}: {which}.")

    def _adds_noise(self) -> bool:
        """Whether an observation, warped or not, is f plus noise of one variance, as it is before a fit."""
        return not self.__sklearn_is_fitted__() or self.fitted_.closed_form

    def _observed(self, X: Any, return_std: bool, return_cov: bool, given: Mapping[str, Any]) -> Any:
        if return_cov:
            what = f"The covariance of observations under {type(self.likelihood_).__name__}"
            raise ParameterError(f'{what} is not given. Ask for target="f", or for sample.')
        mean, std = self._foretold(X, given).moments
        return (mean, std) if return_std else mean

    def _foretold(self, X: Any, given: Mapping[str, Any]) -> Predictive:
        """The distribution of y at the rows of X, with columns beside it."""
        table = self.read(X)
        return self.fitted_.predictive(table, read_beside(given, len(table), self.likelihood_))

    def _averaged(self, X: Any, X_var: Any, target: str, given: Mapping[str, Any]) -> Predictive:
        """The same over what uncertain rows may be."""
        check_is_fitted(self, "fitted_")
        check_target(target, "observations", "the function")
        table, fitted = self.read(X), self.fitted_
        var = self.read_variances(X_var, table)
        tables = [table] if var is None else uncertain.spread(table, var)
        if target == "f":
            self._no_columns(given.get("exposure"), {k: v for k, v in given.items() if k != "exposure"})
            return mixed([fitted.function(moved) for moved in tables])
        beside = read_beside(given, len(table), self.likelihood_)
        return mixed([fitted.predictive(moved, beside) for moved in tables])

    def _predicted(self, table: Array, seen: AtRows, return_std: bool, return_cov: bool) -> Any:
        process, noise, observed, fitted = seen
        plain = fitted is None or fitted.additive
        if return_cov:
            n = len(table)
            needed, what = 8 * n * n * (2 + 2 * len(noise)), f"A covariance of {n:,} points"
            memory.check_memory(needed, self.memory_limit, what, "Use return_std, or fewer points.")
            cov = process.cov(table)
            var = np.einsum("iik->ik", cov)
            var[...] += noise
            mean, cov = self._shaped(finite(process.mean(table), table, var)), self._shaped(cov)
            return (mean, cov) if fitted is None or plain else fitted.joint(table, mean, cov, observed)
        if not plain:
            mean, std = self._distribution(table, seen).moments
            return (mean, std) if return_std else mean
        if return_std:
            mean, var = process.moments(table)
            return self._shaped(finite(mean, table, var)), self._shaped(np.sqrt(var + noise))
        return self._shaped(finite(process.mean(table), table))

    @memory.translated(*PREDICTIONS_SHORT)
    def sample(
        self,
        X: Any,
        n_samples: int = 1,
        target: str = "f",
        random_state: Any = None,
        exposure: ArrayLike | None = None,
        **columns: Any,
    ) -> Array:
        """Joint draws of the function ("f") or of observations ("y") at the rows of X, from the posterior or,
        before `fit`, from the prior.

        Shape (n, n_samples); for 2-D y (n, q, n_samples). `random_state` defaults to the estimator's,
        `exposure` and `columns` are as in `predict`.
        """
        count = check_draws(n_samples)
        table, seen = self._processes(X, target)
        noisy = target == "y" and self._adds_noise()
        reader = self.likelihood_ if target == "y" and not noisy else None
        beside = read_beside({"exposure": exposure, **columns}, len(table), reader)
        rng, parts = generator(self.random_state if random_state is None else random_state), []
        # draws of parameters take turns, in an order at random: as even as so many can be
        turns = rng.permutation(len(seen)) if len(seen) > 1 else range(1)
        for place, k in enumerate(turns):
            (process, noise, _, fitted), mine = seen[k], len(range(place, count, len(seen)))
            if not mine:
                continue
            if reader is not None:
                self._hold_draws(len(table), len(noise), mine)
                seen_by = process.drawn_under(reader, rng, table, mine)
                parts += [observations(rng, likelihood, f, beside) for likelihood, f in seen_by]
                continue
            draws = self._drawn(process, len(noise), table, mine, rng, noise if noisy else None)
            if fitted is not None and not fitted.additive:
                draws = fitted.drawn(table, draws, process.mean(table), noisy, rng)
            parts.append(draws)
        draws = np.concatenate(parts, axis=-1)
        if len(parts) > 1:
            draws = draws[..., rng.permutation(count)]
        if reader is not None:
            return draws
        return draws[:, 0, :] if draws.shape[1] == 1 and self._is_single() else draws

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, **columns: Any) -> Array:
        """Joint draws of observations, as scikit-learn's GaussianProcessRegressor has them: `sample` with
        target="y". `columns`, such as exposure, are as in `predict`."""
        return self.sample(X, n_samples, target="y", random_state=random_state, **columns)

    @memory.translated(*PREDICTIONS_SHORT)
    def predict_quantiles(
        self,
        X: Any,
        levels: ArrayLike = (0.025, 0.5, 0.975),
        exposure: ArrayLike | None = None,
        **columns: Any,
    ) -> Array:
        """Quantiles of an observation at the rows of X: (n, levels), or (n, levels, q) for 2-D y. Other
        arguments are those of `predict`."""
        if self.__sklearn_is_fitted__() and far.is_shared(self, X):
            return far.answers(
                self, "predict_quantiles", X, levels=levels, exposure=_one(exposure), **columns
            )
        return self._foretold(X, {"exposure": exposure, **columns}).quantile(levels)

    @memory.translated(*PREDICTIONS_SHORT)
    def predict_table(
        self,
        X: Any,
        target: str = "y",
        exposure: ArrayLike | None = None,
        level: float = 0.95,
        quantiles: ArrayLike = (),
        **columns: Any,
    ) -> dict[str, NDArray[Any]]:
        """Predictions as named columns: mean, std, and lower95 and upper95 of the 95 % interval (or of
        another `level`), then q0.1 and so on for `quantiles`; for several outputs each with the output's
        name, where y came with names, or its number: mean_0, mean_1 and so on.

        `pandas.DataFrame(gp.predict_table(X))`.
        """
        check_is_fitted(self, "fitted_")
        if far.is_shared(self, X):
            asked = {"target": target, "level": level, "quantiles": quantiles}
            return far.answers(self, "predict_table", X, exposure=_one(exposure), **asked, **columns)
        foretold = self.predict_dist(X, target, exposure, **columns)
        return prediction_table(foretold, level, quantiles, self.fitted_.columns.targets)

    @memory.translated(*PREDICTIONS_SHORT)
    def log_density(self, X: Any, y: Any, exposure: ArrayLike | None = None, **columns: Any) -> Array:
        """log p(y_i) of each row, (n,), of y in its own units; outputs of one row are added up. What held-out
        rows are scored by. y, `exposure` and `columns` are as in `fit`."""
        X, y = reading.compared(self, X, y)
        table = self.read(X)
        Y, beside = self._targets_at(table, y, {"exposure": exposure, **columns}, gaps=False)
        return self.fitted_.predictive(table, beside).log_density(Y[:, 0] if self.fitted_.single else Y)

    @memory.translated(*PREDICTIONS_SHORT)
    def evaluate(self, X: Any, y: Any, exposure: ArrayLike | None = None, **columns: Any) -> Evaluation:
        """How good predictions of y are at the rows of X, which should not be those of the fit: RMSE, MAE,
        R2, NLPD, MSLL, CRPS, coverage and width of intervals, and calibration (see
        gramian.report.evaluation). y, `exposure` and `columns` are as in `fit`."""
        X, y = reading.compared(self, X, y)
        table, fitted = self.read(X), self.fitted_
        Y, beside = self._targets_at(table, y, {"exposure": exposure, **columns})
        return of_numbers(
            fitted.predictive(table, beside), Y, fitted.training_moments(), fitted.columns.targets
        )

    def _targets_at(
        self, table: Array, y: Any, given: Mapping[str, Any], gaps: bool = True
    ) -> tuple[Array, Array | None]:
        """y of the rows of a table, (n, q), and the likelihood's columns beside it. `gaps`: NaN stands where
        an output was not observed, and else is refused."""
        fitted = self.fitted_
        Y, single = read_targets(y, len(table), gaps=gaps)
        if not fitted.closed_form:
            Y = read_rows(Y, given, self.likelihood_)
            return Y[:, :1], Y[:, 1:]
        read_beside(given, len(table), None)  # there are none
        q = 1 if fitted.single else fitted.n_functions
        if Y.shape[1] != q or (single and not fitted.single):
            had = "one number a row" if fitted.single else f"{q} outputs"
            raise InputError(f"y has shape {np.shape(y)}, but the model was fitted to {had}.")
        refuse_far_targets(Y, single)
        return Y, None

    def held_back(self, X: Any, y: Any, given: Mapping[str, Any]) -> tuple[Held, Array]:
        """Rows that the fit has not seen against what is foretold of them, and their table: what a report is
        made of. `given`: the likelihood's columns beside y."""
        X, y = reading.compared(self, X, y)
        table, fitted = self.read(X), self.fitted_
        Y, beside = self._targets_at(table, y, given)
        at = some_rows(len(table), MOST_GIVEN)
        rows, Y = np.asarray(table[at]), Y[at]
        beside = None if beside is None else beside[at]
        foretold = fitted.predictive(rows, beside)
        if foretold.costly and len(at) > COSTLY:
            few = some_rows(len(at), COSTLY)
            at, rows, Y, foretold = at[few], rows[few], Y[few], foretold.at(few)
        rivals = rivals_of_given(fitted, rows, Y)
        return numbers(fitted, foretold, Y, rows, at, len(table), rivals, tested=True), table

    @memory.translated(*PREDICTIONS_SHORT)
    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the predicted means, as of any regressor of scikit-learn. Where y has all columns of the
        likelihood, as in `fit`, the first one's beside the others."""
        from sklearn.metrics import r2_score

        names = ("y",) if self._adds_noise() else self.likelihood_.columns
        X, y = reading.compared(self, X, y)
        beside: dict[str, Any] = {}
        if len(names) > 1 and np.shape(y)[1:] == (len(names),):
            first, *others = read_rows(read_targets(y, len(y))[0], {}, self.likelihood_).T
            y, beside = first, dict(zip(names[1:], others, strict=True))
        predicted = self.predict(X, **beside)
        Y, single = read_targets(y, len(predicted))
        foretold = predicted.reshape(len(predicted), -1)
        if Y.shape != foretold.shape:
            raise InputError(f"y has shape {np.shape(y)}, but what is predicted has {predicted.shape}.")
        refuse_far_targets(Y, single)
        return float(r2_score(Y, foretold, sample_weight=read_weights(sample_weight, len(Y))))

    @memory.translated(*PREDICTIONS_SHORT)
    def output_covariance(self, X: Any, target: str = "y") -> Array:
        """The covariance of the outputs with each other at each row of X, (n, q, q): of observations ("y"),
        or of the functions ("f"). Its diagonal is the square of `predict(X, return_std=True)`. Of independent
        outputs it is diagonal; of outputs in a chain what is beside the diagonal is from draws."""
        check_is_fitted(self, "fitted_")
        fitted = self.fitted_
        if fitted.model.warp is not None or not fitted.closed_form or fitted.single:
            raise ParameterError(
                "The covariance of outputs is that of several ones under Gaussian noise, as they are: fit a"
                " 2-D y with warp=None; or draw them: sample(X, n)."
            )
        table, seen = self._processes(X, target)
        parts = [(one.process.mean(table), one.process.joint(table), one.noise) for one in seen]
        center = np.mean([mean for mean, _, _ in parts], axis=0)
        total = np.zeros((*center.shape, center.shape[1]))
        for mean, cov, noise in parts:
            off = mean - center
            total += (cov + noise[:, None] * np.eye(len(noise)) + off[:, :, None] * off[:, None, :]) / len(
                parts
            )
        return total

    @memory.translated(*PREDICTIONS_SHORT)
    def components(self, X: Any) -> dict[str, tuple[Array, Array]]:
        """Mean and standard deviation of each summand of the kernel at the rows of X, by the name that it was
        given (`kernel.named("trend")`), or its formula. The means and m(x) add up to f's; where y is warped,
        to that of the warped y. Where predictions are averaged over parameters, so are these, m(x) included.
        """
        check_is_fitted(self, "fitted_")
        named, parts = self.kernel_.summands, self.fitted_.components(self.read(X))
        answers: dict[str, tuple[Array, Array]] = {}
        for kernel, (mean, var) in zip(named, parts, strict=True):
            name, k = kernel.title or str(kernel), 1
            label = name
            while label in answers:
                k += 1
                label = f"{name} #{k}"
            answers[label] = (self._shaped(mean), self._shaped(np.sqrt(var)))
        return answers

    def components_table(self, X: Any) -> dict[str, NDArray[Any]]:
        """`components` as named columns: for each summand its mean, under its name, and its std, with
        "_std" after it; for several outputs each with the output's name or number.

        `pandas.DataFrame(gp.components_table(X))`.
        """
        columns: dict[str, NDArray[Any]] = {}
        for name, (mean, std) in self.components(X).items():
            for what, values in ((name, mean), (f"{name}_std", std)):
                columns |= columns_of(what, values, self.fitted_.columns.targets)
        return columns

    @memory.translated(*PREDICTIONS_SHORT)
    def predict_gradient(self, X: Any) -> tuple[Array, Array]:
        """Mean and variance of the gradient of f at the rows of X: (n, d) each, or (n, d, q) for 2-D y. Where
        y is warped, f is sent back through the warp, and the mean is the gradient of `predict(X,
        target="f")`."""
        check_is_fitted(self, "fitted_")
        if not self.kernel_.differentiable:
            rough = ", ".join(sorted({type(k).__name__ for k in self.kernel_.rough_parts}))
            cure = 'Smooth kernels have one: RBF, Matern52, Matern32; kernel="matern52" is the plain one.'
            raise ParameterError(f"Functions of {self.kernel_} have no gradient, because of {rough}. {cure}")
        table = self.read(X)
        mean, var = self.fitted_.gradient(table)
        return (mean[:, :, 0], var[:, :, 0]) if self.fitted_.single else (mean, var)

    @memory.translated(*PREDICTIONS_SHORT)
    def loo(self) -> LeaveOneOut:
        """Each training row predicted from all the others, in closed form (Rasmussen and Williams 2006,
        equations 5.10 to 5.12).

        The standard deviation is of the observation, noise included; the log density is of y in its own
        units. Where predictions are averaged over parameters, each draw counts by 1 / p(y_i | other rows), so
        that it is one from the other rows.
        """
        check_is_fitted(self, "fitted_")
        return self.fitted_.left_out_numbers()

    # Helpers. -----------------------------------------------------------------------------------------------

    def _processes(self, X: Any, target: str) -> tuple[Array, list[AtRows]]:
        """The rows of X, and what is averaged over: posteriors, or the prior."""
        check_target(target, "observations, noise included", "the function")
        observed = target == "y"
        if not self.__sklearn_is_fitted__():
            table, columns = read_features(X, memory_limit=self.memory_limit)
            process, noise = self.prior_at(table, columns)
            return table, [AtRows(process, observed * noise, observed)]
        table = self.read(X)
        members = self.fitted_.members
        return table, [
            AtRows(one.process_at(table), observed * one.noise_of_outputs, observed, one) for one in members
        ]

    def prior_at(self, table: Array, columns: Columns) -> tuple[GaussianProcess, Array]:
        """What is believed before a fit: f, with a default kernel made for the rows of a table of these
        columns, categories as codes, for as many outputs as there are noises; and these variances, (q,)."""
        self.check_settings()
        kernel = build.read_kernel(self.kernel).suited(table, columns, 1.0)[0]
        noise = build.noise_parameter(build.noise_of(self), np.ones(1), None, shared=True).value.ravel()
        mean = build.mean_function(self.mean, np.zeros(()), columns)
        mean = mean.adapted(table, np.zeros(()), np.ones(()))
        return GaussianProcess(kernel.resolve(columns.names), mean, np.ones(len(noise))), noise

    def _is_single(self) -> bool:
        return not self.__sklearn_is_fitted__() or self.fitted_.single

    def _shaped(self, values: Array) -> Array:
        """Without the last axis, that of outputs, where y has none."""
        return values[..., 0] if values.shape[-1] == 1 and self._is_single() else values

    def read_variances(self, X_var: Any, table: Array) -> Array | None:
        """Variances of the cells of a table of the model's own, (n, d); None where all are 0."""
        known = self.fitted_.columns
        given = table[:, : len(known.given)]
        var = uncertain.read_variances(X_var, given, known.categories)
        more = table.shape[1] - given.shape[1]  # columns that say where cells are missing
        return var if var is None or not more else np.pad(var, [(0, 0), (0, more)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # predicts from the prior
        return tags


def _one(exposure: Any) -> Any:
    """A number for all rows; one a row has no place beside rows in pieces."""
    if exposure is None or np.ndim(exposure) == 0:
        return exposure
    raise ParameterError("An exposure of rows that are shared out is one number for all of them.")
