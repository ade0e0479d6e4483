"""GPRegressor: Gaussian process regression as a scikit-learn estimator; `numbers` has its predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from gramian import clock, journal
from gramian.arrays import Array
from gramian.certify.certificate import Certificate
from gramian.choose.plan import Plan, check
from gramian.choose.words import as_method
from gramian.clock import OutOfTime
from gramian.data.inputs import (
    Columns,
    read_beside,
    read_noise_var,
    read_rows,
    read_targets,
    refuse_far_targets,
)
from gramian.engines.dense import Exact
from gramian.engines.neighbours import Neighbours
from gramian.errors import InputError, MemoryLimitError, ParameterError
from gramian.estimators import build, far, latent, outputs, reading, uncertain
from gramian.estimators.base import FIT_SHORT, Estimator, check_arguments
from gramian.estimators.build import Built
from gramian.estimators.calibrating import calibrated
from gramian.estimators.defaults import Choice, chosen
from gramian.estimators.fitted import Fitted
from gramian.estimators.numbers import PredictsNumbers
from gramian.estimators.resuming import generator, resumable
from gramian.estimators.rivals import nearer
from gramian.fitting.budget import Budget
from gramian.fitting.draws import DRAWS
from gramian.fitting.progress import Report, progress
from gramian.fitting.stages import Searched
from gramian.inference import Data, Model, Scheme, closed
from gramian.inference.chained import chained
from gramian.inference.coregional import coregional
from gramian.kernels import Coregion
from gramian.likelihoods import Gaussian, Likelihood
from gramian.likelihoods.words import read_likelihood
from gramian.linalg import memory
from gramian.params import Parameter
from gramian.warps import Warp

AVERAGED = 200  # rows up to which parameters are averaged over: with more, little is left to be seen of it
UNCALIBRATED = (
    "Predictions were not compared with left-out rows, by which intervals are corrected, so these are the"
    " model's own: {}."
)


@dataclass(eq=False, repr=False, kw_only=True)
class GPRegressor(PredictsNumbers):
    """Gaussian process regression, with Gaussian noise or another likelihood.

    The model: f(x) = m(x) + s g(x) with g ~ GP(0, kernel), y = f(x) + noise; s is the standard deviation of y
    (1 with `normalize_y=False`). With a `likelihood`, y ~ p(y | f(x)); s is 1 unless f has the units of y.

    Parameters
    ----------
    kernel : Kernel or text, optional
        What functions to expect. None: the data choose (gramian.estimators.defaults) among a scaled
        Matern-5/2 with one lengthscale a column and weak priors, the same with a Matern-1/2 beside it, and an
        RBF with a Matern-5/2 beside it, of y as it is or warped; `outcome_.choice` says why. "matern52" is
        the first of them, "rbf + matern52" a sum of such kernels; "rbf", "matern12" and "matern32" are the
        same with another family. Other text is read as kernels are written: "1.0 * RBF(0.5) + Linear()". A
        kernel that is given is fitted by maximum evidence, from its own values, unless its parameters carry
        priors (then by MAP). A list gives each latent function its own, under a likelihood that has several
        (`Heteroscedastic()`: mean and noise).
    mean : "constant" (the default), "zero", "linear" or a Mean
        What f is far from the data, in the units of y; "zero" is the average of y when y is normalised.
    noise : number, list of numbers or parameter, optional
        The noise variance, in the units of y squared. A number is where fitting starts; `fixed(0.01)` stays,
        `fixed(0)` interpolates. Of several outputs one number is the noise of all of them, and a list, or
        `fixed([0.1, 0.2])`, has one for each. None: from the data, with one for each of up to 20 outputs;
        more share one, relative to their variances, and so one factorisation.
    likelihood : Likelihood or word, optional
        How y arises from f: "student-t", "poisson", "negative-binomial", "binomial", "gamma", "beta",
        "heteroscedastic", or an object: `StudentT(4.0)`, `Ordinal(5)`, your own. None or "gaussian": Gaussian
        noise, in closed form.
    warp : "auto" (the default), None or a Warp such as SinhArcsinh()
        A monotone map of y, found with the other parameters, so that skewed or heavy-tailed targets suit
        Gaussian noise. "auto": tried where no kernel is given. Predictions, quantiles and draws are of y.
    outputs : "independent" (the default), "coupled", "chained", "auto", or Coregion(rank=2)
        What several outputs (2-D y) have to do with each other. "independent": nothing but the kernel.
        "coupled": they are weighted sums of functions that they share, so that each informs the others
        wherever it was observed; `Coregion` says of how many, else the evidence does, and a list of them has
        one for each summand of the kernel. "chained": each is a function of x and of the outputs before it,
        those observed most often first. "auto": the data choose. See gramian.estimators.outputs.
    inference : "laplace", "ep", "vi", "map", "mcmc", or an object such as EP(power=0.5), optional
        How to condition on other likelihoods. None: Laplace where it is good (one latent, concave log p),
        else the variational bound.
    hyper : "auto" (the default), "average", "map", "ml" or "mcmc"
        How parameters are found: "map" with their priors, "ml" without them. "average": as "map", and
        predictions are averaged over 16 draws of the parameters from their posterior (below 30 rows over 32),
        because few rows leave open what they are; attributes such as `kernel_`, `noise_` and `evidence_` are
        of the best ones. "auto": so up to 200 rows where no kernel is given, else "map". "mcmc": by long
        chains, with predictions averaged over their draws.
    method : "auto" (the default), "exact", "statespace", "nystrom", "fourier", "vfe", "fitc", "dtc", "svgp",
            "cg", "minres", or an object with its own settings
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
        Seconds that a fit may take, reading and the final inference included. Rows of the search, and where
        need be of the model, are chosen to fit into them; notes say what was left out.
    checkpoint : str or path, optional
        A file in which a fit writes down, every second or so, what it has found. One that was stopped, by
        whatever it was, goes on from there when it is called again with the same data and settings, and ends
        with the same numbers. It is removed when the fit has ended well (see docs/checkpoints.md).
    verbose : bool, optional
        Progress on standard error: None on a terminal only, True always, False never.
    client : dask.distributed.Client or an executor of concurrent.futures, optional
        Who does loops over rows: passes over all of them with low-rank methods and "svgp", rows of
        "neighbours", predictions of many rows. Parquet folders and Arrow data sets then stay where they are,
        as Dask collections always do. Results do not depend on it.

    Attributes
    ----------
    kernel_, noise_, mean_, likelihood_ : the fitted parts (`noise_` in the units of y squared; one number an
        output where y has several)
    parameters_ : a table of all parameters
    theta_ : the trainable parameters as one unconstrained vector
    evidence_ : log p(y) and its kind
    posterior_ : the posterior process, at the fitted parameters
    certificate_ : what `certificate()` has found, once it was asked for
    outcome_ : what happened: method and its reason, what was fitted on what, iterations, jitter, time, notes
    fitted_ : all that the fit has left, as one value (see gramian.estimators.fitted)
    """

    noise: ArrayLike | Parameter | None = None
    likelihood: str | Likelihood | None = None
    warp: str | Warp | None = "auto"
    normalize_y: bool = True
    hyper: str = "auto"
    outputs: str | Coregion | list[Coregion] = "independent"

    hypers: ClassVar[Mapping[str, str]] = {
        "auto": '"average" up to 200 rows where no kernel is given, else "map"',
        "average": "over draws from the parameters' posterior",
        **Estimator.hypers,
    }

    # Fitting. -----------------------------------------------------------------------------------------------

    @memory.translated(*FIT_SHORT)
    @resumable
    def fit(
        self,
        X: Any,
        y: Any = None,
        noise_var: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        X_var: ArrayLike | None = None,
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

        `X_var`: variances of the numbers in X, where these were measured: one for all, one a column or one a
        cell. The variance of f over what a row may be counts as noise of that row; three fits, under Gaussian
        noise and with one target.
        """
        if X_var is not None:
            return self._fit_uncertain(X, y, noise_var, X_var, {"exposure": exposure, **columns})
        began = clock.now()
        self.check_ready()
        if far.stays(self, X):
            return self._fit_far(X, y, {"noise_var": noise_var, "exposure": exposure, **columns})
        gaussian, cure = self._is_gaussian(), ""
        if gaussian:
            cure = " Where rows differ in how certain they are, give noise_var, one variance a row."
        given = read_likelihood(self.likelihood)
        beside = () if given is None else given.columns[1:]
        unknown = {name: value for name, value in columns.items() if name not in beside}
        known = ["X", "y", *(name for name in beside if name != "exposure"), "noise_var and exposure"]
        check_arguments(unknown, ", ".join(known), cure)
        further = {"exposure": exposure, **columns}
        table, named, y, further, noise_var = reading.training(self, X, y, further, noise_var)
        Y, single = read_targets(y, len(table), gaussian and self.hyper != "mcmc", True, self.memory_limit)
        known_noise = read_noise_var(noise_var, len(table))
        if gaussian and Y.shape[1] > 1 and self.outputs != "independent":
            read_beside(further, len(table), None)  # there are none
            self.fitted_ = self._fit_outputs(table, named, Y, known_noise, began)
            return self
        if gaussian:
            method, reason = self._method(table.shape, Y.shape[1])
            check(method, table.shape, Y.shape[1], self.memory_limit)
            read_beside(further, len(table), None)  # there are none
            built = build.build(self, table, named, Y, single, known_noise)
        else:
            likelihood = self._likelihood(Y, known_noise)
            Y, single = read_rows(Y, further, likelihood), True
            named = named.predicting(named.targets[:1])  # the others stand beside it
            method, reason = latent.method_for(self, likelihood, table.shape)
            check(method, table.shape, likelihood.latents, self.memory_limit)
            built = build.build_latent(self, likelihood, table, named, Y, 1.0)
        fitted = self._condition(built, named, method, reason, began, gaussian, single)
        self.fitted_ = self._finished(fitted, began)
        return self

    def _fit_outputs(
        self, table: Array, named: Columns, Y: Array, noise_var: Array | None, began: float
    ) -> Fitted:
        """Several outputs that have to do with each other (`estimators/outputs`)."""
        word, _ = outputs.read_outputs(self.outputs)
        built = outputs.with_own_noises(self, build.build(self, table, named, Y, False, noise_var))
        with clock.until(self._end(began), self._grace):
            if self.warp == "auto" and self._left_open():
                with progress(self.verbose) as report:
                    built = outputs.warped(built, named, closed(Exact()), report)
            if word != "auto":
                return self._fits_of([word], built, named, began)[0][1]
            held = outputs.like_all_gaps(built.rows, named)
            if held is None:
                return outputs.highest(self._fits_of([*outputs.RIVALS], built, named, began))
            now = clock.now()
            with clock.until(now + outputs.JUDGED * (clock.end() - now), self._grace):
                rivals = self._fits_of([*outputs.RIVALS], outputs.without(built, held), named, began)
            best, line = outputs.judged(rivals, built.rows, held)
            return self._fits_of([best], built, named, began)[0][1].chosen_by(line)

    def _fits_of(
        self, kinds: list[str], built: Built, named: Columns, began: float
    ) -> list[tuple[str, Fitted]]:
        """Fits of the same rows, one for each kind that there are memory and time for."""
        (n, d), q = built.rows.X.shape, built.rows.Y.shape[1]
        _, given = outputs.read_outputs(self.outputs)
        found: list[tuple[str, Fitted]] = []
        for place, kind in enumerate(kinds):
            method, reason, start = self._kind_of_outputs(kind, built, given)
            share = (clock.end() - clock.now()) / (len(kinds) - place)
            try:
                check(method, (n, d), q, self.memory_limit)
                with clock.until(clock.now() + share, self._grace):
                    one = self._condition(start, named, method, reason, began, True, False)
            except (MemoryLimitError, OutOfTime, KeyboardInterrupt):
                if not found:
                    raise
                break  # what there is no room for is no rival
            found.append((kind, one))
            if one.outcome.stopped == "interrupted":
                break
        return found

    def _kind_of_outputs(
        self, kind: str, built: Built, given: tuple[Coregion, ...]
    ) -> tuple[Scheme, str, Built]:
        """How outputs of a kind are conditioned on, why, and what that begins with."""
        (n, d), Y = built.rows.X.shape, built.rows.Y
        if kind == "coupled":
            method, reason = self._method((int(np.isfinite(Y).sum()), d + 1), 1)
            start = outputs.between(built, given, 1, self.hyper != "ml")
            return coregional(method, n, Y.shape[1]), reason, start
        method, reason = self._method((n, d), Y.shape[1])
        if kind == "independent":
            return method, reason, built
        return chained(method, outputs.order_of(Y)), reason, outputs.in_a_chain(built)

    def _left_open(self) -> bool:
        """Whether the kind of model is for the data to say."""
        return self.kernel is None and self.optimize and self.hyper not in ("ml", "mcmc") and not self.stages

    def _fit_far(self, X: Any, y: Any, beside: Mapping[str, Any]) -> Self:
        """A fit to rows that stay where they are (`estimators/far.py`)."""
        given = [name for name, value in beside.items() if value is not None]
        if given:
            raise ParameterError(
                f"{', '.join(given)}: of rows that stay where they are, X and y are read alone."
            )
        fitted = far.fit(self, X, y, self._is_gaussian())
        reading.known_as(self, fitted.columns)
        self.fitted_ = fitted
        return self

    def _finished(self, fitted: Fitted, began: float) -> Fitted:
        """Calibrated, where the model was left to the data."""
        if self.kernel is not None or not (fitted.outcome.choice or fitted.draws is not None):
            return fitted
        try:
            # half of the grace: of a busy machine it is not known whether it ends within it
            with clock.until(self._end(began), self._grace / 2):
                return calibrated(fitted)
        except OutOfTime:
            journal.leave()
            return fitted.told(UNCALIBRATED.format("the time limit left no time. Raise it"))
        except KeyboardInterrupt:
            journal.leave()
            return fitted.told(UNCALIBRATED.format("the fit was interrupted"), stopped="interrupted")

    def _observations(self, fitted: Fitted, y: Any, n: int, beside: dict[str, Any]) -> Array:
        Y, single = read_targets(y, n, gaps=fitted.closed_form, whole=False)
        if not fitted.closed_form:
            return read_rows(Y, beside, fitted.likelihood)
        read_beside(beside, n, None)  # there are none
        if Y.shape[1] != fitted.n_functions:
            raise InputError(
                f"y has {Y.shape[1]} columns, but the model was fitted to {fitted.n_functions}. Give as many."
            )
        refuse_far_targets(Y, single, fitted.rows.scale)
        return Y

    def _fit_uncertain(
        self, X: Any, y: Any, noise_var: ArrayLike | None, X_var: ArrayLike, beside: Mapping[str, Any]
    ) -> Self:
        """A fit, and from what it says of f around each row, others (`estimators/uncertain.py`)."""
        if not self._is_gaussian() or any(value is not None for value in beside.values()):
            raise ParameterError(
                "X_var is for Gaussian noise in closed form: leave likelihood and inference."
            )
        return uncertain.fit(self, X, y, noise_var, X_var)

    def check_settings(self) -> None:
        """Refuses impossible settings, before any work."""
        super().check_settings()
        read_likelihood(self.likelihood)
        outputs.check_outputs(self, self._is_gaussian())
        build.noise_parameter(build.noise_of(self), np.ones(1), None, shared=True)
        if self.hyper == "average" and not (self._is_gaussian() and self.optimize):
            why = 'other likelihoods and rules are averaged by inference="mcmc", fixed parameters by nothing'
            raise ParameterError(f'hyper="average" is of fitted parameters under Gaussian noise: {why}.')
        if self.warp is None or self.warp == "auto":
            return
        if not isinstance(self.warp, Warp):
            raise ParameterError(
                f'warp must be "auto", None or a warp such as SinhArcsinh(), not {self.warp!r}.'
            )
        if not self._is_gaussian() or self.hyper == "mcmc":
            why = 'likelihood, inference and hyper="mcmc" go without'
            raise ParameterError(f"A warp is of Gaussian noise in closed form: {why}. Leave one of them out.")

    def _choice(
        self, built: Built, columns: Columns, method: Scheme, rng: np.random.Generator, report: Report
    ) -> Choice | None:
        if self.optimize and (built.model.outputs or built.model.others) and self._is_gaussian():
            choose = outputs.coupled_choice if built.model.outputs else outputs.chained_choice
            choice = choose(self, built, columns, method, rng, report)
            if choice is None or self.hyper != "ml":
                return choice
            plain = build.with_priors(self, choice.built.model)
            return replace(choice, built=choice.built._replace(model=plain))
        if not (self._left_open() and self._is_gaussian() and method.closed):
            return None
        return chosen(built, columns, method, self.warp == "auto", rng, report)

    def _averages(self, searched: Searched) -> bool:
        scheme, n = searched.inference, len(searched.final.X)
        able = scheme.closed and scheme.exact and scheme.leaves_out_cheaply and not scheme.free.size
        if self.hyper == "average":
            if not able:
                cure = 'Use method="exact", or hyper="map".'
                raise ParameterError(f'hyper="average" is of exact posteriors, not of {scheme.name}. {cure}')
            needed, what = 8 * n * n * DRAWS, f"A posterior of {n:,} rows for each of {DRAWS} draws"
            memory.check_memory(needed, self.memory_limit, what, 'Use hyper="map".')
            return searched.search.theta.size > 0
        few = self.hyper == "auto" and self.kernel is None and n <= AVERAGED
        few = few and self.outputs == "independent"  # others have many parameters, and some held
        return few and able and self.optimize and searched.search.theta.size > 0

    def _is_gaussian(self) -> bool:
        """Whether there is an answer in closed form."""
        return read_likelihood(self.likelihood) is None and self.inference is None

    def _likelihood(self, Y: Array, noise_var: Array | None) -> Likelihood:
        """As given, or Gaussian noise to begin with."""
        if noise_var is not None or self.noise is not None:
            raise ParameterError(
                "noise and noise_var are of Gaussian noise in closed form; with a likelihood or an inference"
                " of your own, give likelihood=gramian.Gaussian(...)."
            )
        given = read_likelihood(self.likelihood)
        return given if given is not None else Gaussian(max(0.1 * float(np.var(Y)), 1e-8))

    def _method(self, shape: tuple[int, ...], q: int) -> tuple[Scheme, str]:
        if self.hyper == "mcmc":
            return latent.sampled_parameters(self)
        if isinstance(self.method, str) and self.method == "auto":
            return build.prospect(self, shape, q).automatic()
        return closed(as_method(self.method, self.memory_limit)), "as given"

    def _rivalled(
        self, built: Built, method: Scheme, reason: str, rng: np.random.Generator, report: Report
    ) -> tuple[Scheme, str]:
        asked = isinstance(self.method, str) and self.method == "auto" and self.optimize
        (n, d), q = built.rows.X.shape, built.rows.Y.shape[1]
        if not asked or method.exact or not method.closed:
            return method, reason
        if built.model.outputs or built.model.others:
            return method, reason
        if not memory.fits(closed(Neighbours()).bytes_needed(n, d, q), self.memory_limit):
            return method, reason
        inducing = build.prospect(self, (n, d), q).most_inducing()

        def budget(method: Scheme, model: Model, data: Data) -> Budget | None:
            return self._budget(method, model, data, calibrated=False)

        return nearer(built.model, built.rows, inducing, rng, report, budget) or (method, reason)

    def _plan(self, shape: tuple[int, ...], y: Any) -> Plan:
        if not self._is_gaussian():
            return latent.plan_for(self, read_likelihood(self.likelihood) or Gaussian(), shape)
        q = 1 if y is None or isinstance(y, str) or np.ndim(y) < 2 else int(np.shape(y)[1])
        if q > 1 and outputs.read_outputs(self.outputs)[0] in ("coupled", "auto"):  # one long table
            return build.prospect(self, (q * shape[0], shape[1] + 1), 1).plan()
        return build.prospect(self, shape, q).plan()

    # Telling. -----------------------------------------------------------------------------------------------

    @property
    def noise_(self) -> float | Array:
        """The noise variance, in the units of y squared; one number an output where y has several."""
        noise = self.fitted_.noise
        if noise is None:
            raise AttributeError(f"{self.likelihood_} has no noise of one variance; see likelihood_.")
        return noise

    @property
    def output_correlations_(self) -> Array:
        """Of coupled outputs: the correlations of their functions at a place, before the data, (q, q)."""
        known = self.fitted_.output_correlations
        if known is None:
            raise AttributeError('Correlations between outputs are learned by outputs="coupled".')
        return known

    @property
    def X_train_(self) -> Array:
        """The rows of the fit as the model reads them: numbers, with categories as codes."""
        return self._rows().X

    @property
    def y_train_(self) -> Array:
        """Their targets, in their own units: (n,), or (n, q) for 2-D y."""
        Y = self._rows().Y
        return Y[:, 0] if self.fitted_.single else Y

    def _rows(self) -> Data:
        if not self.__sklearn_is_fitted__() or not self.fitted_.has_rows:
            raise AttributeError("The training rows are not there: not fitted yet, or read from a file.")
        return self.fitted_.rows

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """`evidence_` as a number, under the name that it has in scikit-learn."""
        return float(self.evidence_.value)

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """`log_evidence`, as scikit-learn's GaussianProcessRegressor calls it; theta is like `theta_`. The
        kernel is never changed, so that `clone_kernel` makes no difference."""
        return self.log_evidence(theta, return_grad=eval_gradient)

    def certificate(self) -> Certificate:
        """How far the answer can be from the exact posterior of the same model, at the fitted parameters:
        bounds and estimates.
        Computed when first asked for, which may take as long as the fit; then it is `certificate_`."""
        check_is_fitted(self, "fitted_")
        if self.fitted_.certificate is None:
            rng, limit = generator(self.random_state), memory.allowed(self.memory_limit)
            self.fitted_ = self.fitted_.certified(rng, limit)
        assert self.fitted_.certificate is not None
        return self.fitted_.certificate

    @property
    def certificate_(self) -> Certificate:
        """What `certificate()` has found. An attribute computes nothing: scikit-learn reads all of them to
        show an estimator, and so do notebooks."""
        if not self.__sklearn_is_fitted__() or self.fitted_.certificate is None:
            raise AttributeError("There is no certificate yet: certificate() computes it.")
        return self.fitted_.certificate

    def plot(self, X: Any = None, **settings: Any) -> Any:
        """A picture of the predictions along each column, with their 95 % band and the data; before a fit, of
        the prior with some draws (see gramian.plots.plot_predictions)."""
        from gramian.plots.predictions import plot_predictions

        return plot_predictions(self, X, **settings)
