"""GPRegressor: Gaussian process regression as a scikit-learn estimator."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from gramian.arrays import Array
from gramian.certify.certificate import Certificate
from gramian.choose.plan import Plan, check
from gramian.choose.words import as_method
from gramian.data.inputs import read_beside, read_features, read_noise_var, read_rows, read_targets
from gramian.errors import ParameterError
from gramian.estimators import build, latent
from gramian.estimators.base import Estimator, check_arguments, check_draws, check_target, generator
from gramian.estimators.fitted import Fitted
from gramian.estimators.predictions import LEVELS95, LeaveOneOut, finite, interval_table, observations
from gramian.inference import Scheme, closed
from gramian.likelihoods import Gaussian, Likelihood
from gramian.linalg import memory
from gramian.params import Parameter
from gramian.processes.base import Process
from gramian.processes.prior import GaussianProcess


@dataclass(eq=False, repr=False, kw_only=True)
class GPRegressor(RegressorMixin, MultiOutputMixin, Estimator):  # type: ignore[misc]  # as scikit-learn is
    """Gaussian process regression, with Gaussian noise or another likelihood.

    The model: f(x) = m(x) + s g(x) with g ~ GP(0, kernel), y = f(x) + noise; s is the standard deviation of y
    (1 with `normalize_y=False`). With a `likelihood`, y ~ p(y | f(x)); s is 1 unless f has the units of y.

    Parameters
    ----------
    kernel : Kernel, optional
        What functions to expect. None: a scaled Matern-5/2 with one lengthscale a column, starting values
        from the data and weak priors. A kernel that is given is fitted by maximum evidence, from its own
        values, unless its parameters carry priors (then by MAP). A list gives each latent function its own,
        under a likelihood that has several (`Heteroscedastic()`: mean and noise).
    mean : "constant" (the default), "zero", "linear" or a Mean
        What f is far from the data, in the units of y; "zero" is the average of y when y is normalised.
    noise : number or parameter, optional
        The noise variance, in the units of y squared. A number is where fitting starts; `fixed(0.01)` stays,
        `fixed(0)` interpolates. None: from the data.
    likelihood : Likelihood, optional
        How y arises from f: `StudentT()`, `Poisson()`, `NegativeBinomial()`, `likelihoods.Gamma()`, `Beta()`,
        `Ordinal(5)`, `Heteroscedastic()`, or your own.
        None: Gaussian noise, in closed form.
    inference : "laplace", "ep", "vi", "map", "mcmc", or an object such as EP(power=0.5), optional
        How to condition on other likelihoods. None: Laplace where it is good (one latent, concave log p),
        else the variational bound.
    hyper : "map" (the default), "ml" or "mcmc"
        How parameters are found: with their priors, without them, or by sampling them, with predictions
        averaged over the samples.
    method : "auto" (the default), "exact", "nystrom", "fourier", "vfe", "fitc", "dtc", "svgp", "cg",
            "minres", or an object with its own settings
        The engine. "auto" takes the exact one while it fits into the limits, else the variational bound with
        as many inducing points as fit. Objects: `Exact(fit_rows=3000)`, `Nystrom(rank=800)`, `Fourier(2000)`,
        `Sparse(500, optimize_inducing=True)`, `SVGP(500)`, `CG(tol=1e-8)`, `MINRES()`.
    optimize : bool, True by default
        Whether to fit the parameters, or to take them as given.
    n_restarts : int, optional
        Further starting points. None: 1 up to 1,000 rows, else none.
    stages : list of Hold, optional
        First parts of the search in which some parameters stay where they are: [Hold("noise", steps=20)].
    normalize_y : bool, True by default
        Centre y and measure the kernel's variance in units of y's variance.
    random_state : int, RandomState or None
        For the starting points, for what a method draws (landmarks, frequencies, probes), and the default for
        `sample`.
    missing : "fill" (the default), "drop" or "error"
        What becomes of rows with missing cells in a fit: used, with what the most similar rows have in their
        place and a column that says where; left out; or refused. In predictions they are averaged over what
        similar rows have ("error": refused). Rows without a target are left out, unless it is "error".
    memory_limit : int or str, optional
        Bytes, or text such as "2GB". A fit that needs more is refused before it starts. None: 80 % of what is
        free.
    time_limit : float, optional
        Seconds after which fitting keeps the best model so far.
    verbose : bool, optional
        Progress on standard error: None on a terminal only, True always, False never.

    Attributes
    ----------
    kernel_, noise_, mean_, likelihood_ : the fitted parts (`noise_` in the units of y squared; one number an
        output where y has several)
    parameters_ : a table of all parameters
    theta_ : the trainable parameters as one unconstrained vector
    evidence_ : log p(y) and its kind
    posterior_ : the posterior process
    certificate_ : how far the answer can be from the exact posterior of the same model
    outcome_ : what happened: method and its reason, what was fitted on what, iterations, jitter, time, notes
    fitted_ : all that the fit has left, as one value (see gramian.estimators.fitted)
    """

    noise: float | Parameter | None = None
    likelihood: Likelihood | None = None
    normalize_y: bool = True

    fitted_: Fitted = field(init=False)

    # Fitting. -----------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        noise_var: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        **columns: Any,
    ) -> Self:
        """Conditions on the rows of X and y, after fitting the parameters.

        X is an array, a DataFrame, a memory map, the path of a file, or a function that returns an iterator
        of blocks (X, y); y is one number a row, or the name of its column in a DataFrame or a file. How
        columns of text, dates and missing cells are read, `summary` says. `noise_var` gives known noise
        variances, one a row, in units of y squared; `noise`, if given too, comes on top. `exposure` is for
        counts: how long or how much was watched in each row, so that the rate is exposure exp(f). It is a
        column of these likelihoods beside y; those of others are given by their names in the same way
        (`trials`), or all of them as a y of shape (n, columns). Weights of rows are not supported: repeat
        rows instead, or give `noise_var`.
        """
        began = time.monotonic()
        self.check_settings()
        gaussian, cure = self._is_gaussian(), ""
        if gaussian:
            cure = " Where rows differ in how certain they are, give noise_var, one variance a row."
        beside = () if self.likelihood is None else self.likelihood.columns[1:]
        unknown = {name: value for name, value in columns.items() if name not in beside}
        known = ["X", "y", *(name for name in beside if name != "exposure"), "noise_var and exposure"]
        check_arguments(unknown, ", ".join(known), cure)
        given = {"exposure": exposure, **columns}
        table, named, y, given, noise_var = self._training(X, y, given, noise_var)
        Y, single = read_targets(y, len(table), gaps=gaussian and self.hyper != "mcmc")
        known_noise = read_noise_var(noise_var, len(table))
        if gaussian:
            method, reason = self._method(table.shape, Y.shape[1])
            check(method, table.shape, Y.shape[1], self.memory_limit)
            read_beside(given, len(table), None)  # there are none
            built = build.build(self, table, named, Y, single, known_noise)
        else:
            likelihood = self._likelihood(Y, known_noise)
            Y, single = read_rows(Y, given, likelihood), True
            method, reason = latent.method_for(self, likelihood, table.shape)
            check(method, table.shape, likelihood.latents, self.memory_limit)
            built = build.build_latent(self, likelihood, table, named, Y, 1.0)
        self.fitted_ = self._condition(built, named, method, reason, began, gaussian, single)
        return self

    def check_settings(self) -> None:
        """Refuses impossible settings, before any work."""
        super().check_settings()
        if self.likelihood is not None and not isinstance(self.likelihood, Likelihood):
            kinds = "a gramian likelihood such as gramian.StudentT(), or None for Gaussian noise"
            raise ParameterError(f"likelihood must be {kinds}, not {self.likelihood!r}.")
        build.noise_parameter(build.noise_of(self), 1.0, False, build.NOISE_FLOOR)

    def _is_gaussian(self) -> bool:
        """Whether there is an answer in closed form."""
        return self.likelihood is None and self.inference is None

    def _likelihood(self, Y: Array, noise_var: Array | None) -> Likelihood:
        """As given, or Gaussian noise to begin with."""
        if noise_var is not None or self.noise is not None:
            raise ParameterError(
                "noise and noise_var are of Gaussian noise in closed form; with a likelihood or an inference"
                " of your own, give likelihood=gramian.Gaussian(...)."
            )
        if self.likelihood is not None:
            return self.likelihood
        return Gaussian(max(0.1 * float(np.var(Y)), 1e-8))

    def _method(self, shape: tuple[int, ...], q: int) -> tuple[Scheme, str]:
        if self.hyper == "mcmc":
            return latent.sampled_parameters(self)
        if isinstance(self.method, str) and self.method == "auto":
            return build.prospect(self, shape, q).automatic()
        return closed(as_method(self.method, self.memory_limit)), "as given"

    def _plan(self, shape: tuple[int, ...], y: Any) -> Plan:
        if not self._is_gaussian():
            return latent.plan_for(self, self.likelihood or Gaussian(), shape)
        outputs = 1 if y is None or isinstance(y, str) or np.ndim(y) < 2 else int(np.shape(y)[1])
        return build.prospect(self, shape, outputs).plan()

    # Predicting. --------------------------------------------------------------------------------------------

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        target: str = "y",
        exposure: ArrayLike | None = None,
        **columns: Any,
    ) -> Any:
        """The mean at the rows of X, and on request the standard deviation or the covariance, of an
        observation ("y") or of the function ("f").

        Shapes: mean and std (n,), cov (n, n); for 2-D y, and for the functions of a likelihood with several,
        (n, q) and (n, n, q). Before `fit`, the prior's. `exposure` is for counts (None: 1);
        `columns` are those that other likelihoods have beside y, by name, one number a row or one for all:
        `trials=20` for the successes of 20 trials.
        """
        if return_std and return_cov:
            why = "the standard deviation is the root of the covariance's diagonal"
            raise ParameterError(f"Ask for return_std or return_cov, not both: {why}.")
        if target == "y" and not self._adds_noise():
            return self._observed(X, return_std, return_cov, {"exposure": exposure, **columns})
        if exposure is not None:
            which = 'target="y", with likelihood=Poisson() or NegativeBinomial()'
            raise ParameterError(f"An exposure is for observations of counts: {which}.")
        if columns:
            which = 'columns beside y are for observations: target="y", with a likelihood that has them'
            raise ParameterError(f"{', '.join(columns)}: {which}.")
        table, process, noise = self._process(X, target)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused with its row
            return self._predicted(table, process, noise, return_std, return_cov)

    def _adds_noise(self) -> bool:
        """Whether an observation is f plus noise of one variance, as it is before a fit."""
        return not self.__sklearn_is_fitted__() or self.fitted_.closed_form

    def _observed(self, X: Any, return_std: bool, return_cov: bool, given: Mapping[str, Any]) -> Any:
        if return_cov:
            what = f"The covariance of observations under {type(self.likelihood_).__name__}"
            raise ParameterError(f'{what} is not given. Ask for target="f", or for sample.')
        table = self.read(X)
        mean, var = self.fitted_.observed(table, read_beside(given, len(table), self.likelihood_))
        finite(mean[:, None], table)
        return (mean, np.sqrt(var)) if return_std else mean

    def _predicted(
        self, table: Array, process: Process, noise: Array, return_std: bool, return_cov: bool
    ) -> Any:
        if return_cov:
            n = len(table)
            needed, what = 8 * n * n * (2 + 2 * len(noise)), f"A covariance of {n:,} points"
            memory.check_memory(needed, self.memory_limit, what, "Use return_std, or fewer points.")
            cov = process.cov(table)
            var = np.einsum("iik->ik", cov)
            var[...] += noise
            return self._shaped(finite(process.mean(table), table, var)), self._shaped(cov)
        if return_std:
            mean, var = process.moments(table)
            return self._shaped(finite(mean, table, var)), self._shaped(np.sqrt(var + noise))
        return self._shaped(finite(process.mean(table), table))

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
        table, process, noise = self._process(X, target)
        noisy = target == "y" and self._adds_noise()
        reader = self.likelihood_ if target == "y" and not noisy else None
        beside = read_beside({"exposure": exposure, **columns}, len(table), reader)
        added = noise if noisy else None
        rng, draws = self._drawn(process, len(noise), table, count, random_state, added)
        if reader is not None:
            return observations(rng, reader, draws, beside)
        return draws[:, 0, :] if draws.shape[1] == 1 and self._is_single() else draws

    def predict_quantiles(
        self,
        X: Any,
        levels: ArrayLike = (0.025, 0.5, 0.975),
        exposure: ArrayLike | None = None,
        **columns: Any,
    ) -> Array:
        """Quantiles of an observation at the rows of X: (n, levels), or (n, levels, q) for 2-D y. Exact under
        Gaussian noise and for few whole numbers, else from draws. Other arguments are those of `predict`."""
        table = self.read(X)
        given = {"exposure": exposure, **columns}
        return self.fitted_.quantiles(table, levels, read_beside(given, len(table), self.likelihood_))

    def predict_table(
        self, X: Any, target: str = "y", exposure: ArrayLike | None = None, **columns: Any
    ) -> dict[str, NDArray[Any]]:
        """Predictions as named columns: mean, std, and lower95 and upper95 of the 95 % interval; for several
        outputs each with the output's number, mean_0, mean_1 and so on.

        `pandas.DataFrame(gp.predict_table(X))`.
        """
        check_is_fitted(self, "fitted_")
        beside: dict[str, Any] = {"exposure": exposure, **columns}
        mean, std = self.predict(X, return_std=True, target=target, **beside)
        table = interval_table(mean, std)
        if target == "y" and not self.fitted_.closed_form:
            table["lower95"], table["upper95"] = self.predict_quantiles(X, LEVELS95, **beside).T
        return table

    def log_density(self, X: Any, y: Any, exposure: ArrayLike | None = None, **columns: Any) -> Array:
        """log p(y_i) of each row, (n,), of y in its own units; outputs of one row are added up. What held-out
        rows are scored by. y, `exposure` and `columns` are as in `fit`."""
        table = self.read(X)
        Y, _ = read_targets(y, len(table))
        given = {"exposure": exposure, **columns}
        if self.fitted_.closed_form:
            read_beside(given, len(table), None)  # there are none
        else:
            Y = read_rows(Y, given, self.likelihood_)
        return self.fitted_.log_densities(table, Y)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the predicted means, as of any regressor of scikit-learn. Where y has all columns of the
        likelihood, as in `fit`, the first one's beside the others."""
        names = ("y",) if self._adds_noise() else self.likelihood_.columns
        if len(names) == 1 or np.shape(y)[1:] != (len(names),):
            return float(super().score(X, y, sample_weight))
        from sklearn.metrics import r2_score

        first, *beside = read_rows(np.asarray(y, dtype=np.float64), {}, self.likelihood_).T
        predicted = self.predict(X, **dict(zip(names[1:], beside, strict=True)))
        return float(r2_score(first, predicted, sample_weight=sample_weight))

    def components(self, X: Any) -> dict[str, tuple[Array, Array]]:
        """Mean and standard deviation of each summand of the kernel at the rows of X, by its formula. The
        means and m(x) add up to f's."""
        check_is_fitted(self, "fitted_")
        named, terms = self.kernel_.summands, self.fitted_.first.model.kernel.summands
        table = self.read(X)
        parts = self.fitted_.process_at(table).components(table, terms)
        answers: dict[str, tuple[Array, Array]] = {}
        for name, (mean, var) in zip(named, parts, strict=True):
            label, k = str(name), 1
            while label in answers:
                k += 1
                label = f"{name} #{k}"
            answers[label] = (self._shaped(mean), self._shaped(np.sqrt(var)))
        return answers

    def predict_gradient(self, X: Any) -> tuple[Array, Array]:
        """Mean and variance of the gradient of f at the rows of X: (n, d) each, or (n, d, q) for 2-D y."""
        check_is_fitted(self, "fitted_")
        if not self.kernel_.differentiable:
            rough = ", ".join(sorted({type(k).__name__ for k in self.kernel_.rough_parts}))
            cure = "Smooth kernels have one: RBF, Matern52, Matern32."
            raise ParameterError(f"Functions of {self.kernel_} have no gradient, because of {rough}. {cure}")
        table = self.read(X)
        mean, var = self.fitted_.process_at(table).gradient(table)
        return (mean[:, :, 0], var[:, :, 0]) if self.fitted_.single else (mean, var)

    def loo(self) -> LeaveOneOut:
        """Each training row predicted from all the others, in closed form (Rasmussen and Williams 2006,
        equations 5.10 to 5.12).

        The standard deviation is of the observation, noise included; the log density is of y in its own
        units.
        """
        check_is_fitted(self, "fitted_")
        left_out = self.fitted_.left_out_numbers()
        return LeaveOneOut(*map(self._shaped, left_out)) if self.fitted_.closed_form else left_out

    def plot(self, X: Any = None, **settings: Any) -> Any:
        """A picture of the predictions along each column, with their 95 % band and the data (see
        gramian.plots.plot_predictions)."""
        from gramian.plots.predictions import plot_predictions

        return plot_predictions(self, X, **settings)

    # Telling. -----------------------------------------------------------------------------------------------

    @property
    def noise_(self) -> float | Array:
        """The noise variance, in the units of y squared; one number an output where y has several."""
        noise = self.fitted_.noise
        if noise is None:
            raise AttributeError(f"{self.likelihood_} has no noise of one variance; see likelihood_.")
        return noise

    @property
    def certificate_(self) -> Certificate:
        """How far the answer can be from the exact posterior of the same model: bounds and estimates.
        Computed when first asked for."""
        check_is_fitted(self, "fitted_")
        if self.fitted_.certificate is None:
            rng, limit = generator(self.random_state), memory.allowed(self.memory_limit)
            self.fitted_ = self.fitted_.certified(rng, limit)
        assert self.fitted_.certificate is not None
        return self.fitted_.certificate

    def __dir__(self) -> list[str]:
        """All names that have a value, without a certificate that nobody has asked for: scikit-learn reads
        every attribute to list it, here and in notebooks, and this one may take as long as the fit."""
        known = self.__sklearn_is_fitted__() and self.fitted_.certificate is not None
        names = (name for name in object.__dir__(self) if known or name != "certificate_")
        return [name for name in names if hasattr(self, name)]

    # Helpers. -----------------------------------------------------------------------------------------------

    def _process(self, X: Any, target: str) -> tuple[Array, Process, Array]:
        """The rows of X, the posterior (or prior), and the noise variances that `target` asks for, (q,)."""
        check_target(target, "observations, noise included", "the function")
        if not self.__sklearn_is_fitted__():
            return self._prior(X, target)
        noise, table = self.fitted_.noise_of_outputs, self.read(X)
        return table, self.fitted_.process_at(table), noise if target == "y" else np.zeros_like(noise)

    def _prior(self, X: Any, target: str) -> tuple[Array, Process, Array]:
        self.check_settings()
        table, columns = read_features(X)
        kernel = build.read_kernel(self.kernel).suited(table, columns, 1.0)[0]
        noise = build.noise_parameter(build.noise_of(self), 1.0, False, build.NOISE_FLOOR)
        mean = build.mean_function(self.mean, np.zeros(()), columns)
        mean = mean.adapted(table, np.zeros(()), np.ones(()))
        process = GaussianProcess(kernel.resolve(columns.names), mean, np.ones(1))
        return table, process, noise.value.reshape(1) if target == "y" else np.zeros(1)

    def _is_single(self) -> bool:
        return not self.__sklearn_is_fitted__() or self.fitted_.single

    def _shaped(self, values: Array) -> Array:
        """Without the last axis, that of outputs, where y has none."""
        return values[..., 0] if values.shape[-1] == 1 and self._is_single() else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # predicts from the prior
        return tags
