"""GPRegressor: Gaussian process regression as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
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
    read_features,
    read_noise_var,
    read_rows,
    read_targets,
    refuse_far_targets,
)
from gramian.engines.dense import Exact
from gramian.engines.neighbours import Neighbours
from gramian.errors import InputError, MemoryLimitError, ParameterError
from gramian.estimators import build, far, latent, outputs, reading, uncertain
from gramian.estimators.base import (
    FIT_SHORT,
    PREDICTIONS_SHORT,
    Estimator,
    check_arguments,
    check_draws,
    check_target,
)
from gramian.estimators.build import Built
from gramian.estimators.calibrating import calibrated
from gramian.estimators.defaults import Choice, chosen
from gramian.estimators.fitted import Fitted
from gramian.estimators.predictions import LeaveOneOut, columns_of, finite, observations, prediction_table
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
from gramian.predictive import Normals, Predictive, mixed
from gramian.processes.base import Process
from gramian.processes.prior import GaussianProcess
from gramian.report.evaluation import Evaluation, of_numbers
from gramian.report.held import MOST_GIVEN, Held, numbers, rivals_of_given
from gramian.report.quality import COSTLY, some_rows
from gramian.warps import Warp

AVERAGED = 200  # rows up to which parameters are averaged over: with more, little is left to be seen of it
UNCALIBRATED = (
    "Predictions were not compared with left-out rows, by which intervals are corrected, so these are the"
    " model's own: {}."
)


class AtRows(NamedTuple):
    """f at some rows, the noise variances that are asked for beside it, (q,), and the model, if fitted."""

    process: Process
    noise: Array
    fitted: Fitted | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class GPRegressor(RegressorMixin, MultiOutputMixin, Estimator):  # type: ignore[misc]  # as scikit-learn is
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

    fitted_: Fitted = field(init=False)
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
        Y, single = read_targets(y, len(table), gaps=gaussian and self.hyper != "mcmc")
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
        if not (fitted.outcome.choice and self.kernel is None):
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
        Y, _ = read_targets(y, n, gaps=fitted.closed_form, whole=False)
        if not fitted.closed_form:
            return read_rows(Y, beside, fitted.likelihood)
        read_beside(beside, n, None)  # there are none
        if Y.shape[1] != fitted.n_functions:
            raise InputError(
                f"y has {Y.shape[1]} columns, but the model was fitted to {fitted.n_functions}. Give as many."
            )
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

    def read_variances(self, X_var: Any, table: Array) -> Array | None:
        """Variances of the cells of a table of the model's own, (n, d); None where all are 0."""
        known = self.fitted_.columns
        given = table[:, : len(known.given)]
        var = uncertain.read_variances(X_var, given, known.categories)
        more = table.shape[1] - given.shape[1]  # columns that say where cells are missing
        return var if var is None or not more else np.pad(var, [(0, 0), (0, more)])

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

    # Predicting. --------------------------------------------------------------------------------------------

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
        return (
            foretold if seen.fitted is None else seen.fitted.foretold(foretold, table, bool(seen.noise.any()))
        )

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
        process, noise, fitted = seen
        plain = fitted is None or fitted.additive
        if return_cov:
            n = len(table)
            needed, what = 8 * n * n * (2 + 2 * len(noise)), f"A covariance of {n:,} points"
            memory.check_memory(needed, self.memory_limit, what, "Use return_std, or fewer points.")
            cov = process.cov(table)
            var = np.einsum("iik->ik", cov)
            var[...] += noise
            mean, cov = self._shaped(finite(process.mean(table), table, var)), self._shaped(cov)
            return (
                (mean, cov) if fitted is None or plain else fitted.joint(table, mean, cov, bool(noise.any()))
            )
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
            (process, noise, fitted), mine = seen[k], len(range(place, count, len(seen)))
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

    def log_density(self, X: Any, y: Any, exposure: ArrayLike | None = None, **columns: Any) -> Array:
        """log p(y_i) of each row, (n,), of y in its own units; outputs of one row are added up. What held-out
        rows are scored by. y, `exposure` and `columns` are as in `fit`."""
        X, y = reading.compared(self, X, y)
        table = self.read(X)
        Y, beside = self._targets_at(table, y, {"exposure": exposure, **columns}, gaps=False)
        return self.fitted_.predictive(table, beside).log_density(Y[:, 0] if self.fitted_.single else Y)

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
        return float(r2_score(Y, foretold, sample_weight=sample_weight))

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

    def plot(self, X: Any = None, **settings: Any) -> Any:
        """A picture of the predictions along each column, with their 95 % band and the data; before a fit, of
        the prior with some draws (see gramian.plots.plot_predictions)."""
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

    # Helpers. -----------------------------------------------------------------------------------------------

    def _processes(self, X: Any, target: str) -> tuple[Array, list[AtRows]]:
        """The rows of X, and what is averaged over: posteriors, or the prior."""
        check_target(target, "observations, noise included", "the function")
        share = float(target == "y")
        if not self.__sklearn_is_fitted__():
            table, columns = read_features(X)
            process, noise = self.prior_at(table, columns)
            return table, [AtRows(process, share * noise)]
        table = self.read(X)
        members = self.fitted_.members
        return table, [AtRows(one.process_at(table), share * one.noise_of_outputs, one) for one in members]

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # predicts from the prior
        return tags


def _one(exposure: Any) -> Any:
    """A number for all rows; one a row has no place beside rows in pieces."""
    if exposure is None or np.ndim(exposure) == 0:
        return exposure
    raise ParameterError("An exposure of rows that are shared out is one number for all of them.")
