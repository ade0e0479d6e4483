"""GPClassifier: Gaussian process classification as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gramian import clock
from gramian.arrays import Array
from gramian.choose.plan import Plan, check
from gramian.data.inputs import Columns, read_weights
from gramian.data.labels import Labels, labels_of
from gramian.errors import ParameterError
from gramian.estimators import build, far, latent, multiclass, reading
from gramian.estimators.base import (
    FIT_SHORT,
    PREDICTIONS_SHORT,
    Estimator,
    check_arguments,
    check_draws,
    check_target,
)
from gramian.estimators.build import Built
from gramian.estimators.classes import chosen
from gramian.estimators.defaults import Choice
from gramian.estimators.fitted import Fitted
from gramian.estimators.predictions import LeftOutClasses, observations, prediction_table
from gramian.estimators.resuming import generator, resumable
from gramian.fitting.progress import Report
from gramian.inference import Inference, Scheme
from gramian.inference.mcmc.method import MCMC
from gramian.likelihoods import Bernoulli, Likelihood, RobustMax, Softmax
from gramian.linalg import memory
from gramian.means import Mean
from gramian.predictive import Normals
from gramian.report.evaluation import Evaluation, of_classes
from gramian.report.held import MOST_GIVEN, Held, classes
from gramian.report.quality import some_rows


@dataclass(eq=False, repr=False, kw_only=True)
class GPClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Gaussian process classification: probabilities of two or more classes.

    The model: latent functions f(x) = m(x) + g(x), g ~ GP(0, kernel); two classes have one and p(class 1) =
    sigma(f(x)), more have one each.

    Parameters
    ----------
    kernel : Kernel or text, optional
        What functions to expect. None: the data choose (gramian.estimators.classes), from a scaled Matern-5/2
        with one lengthscale a column and weak priors on: with lengthscales that are alike or not, smoother or
        rougher; `outcome_.choice` says why. "matern52" is that first model; "rbf", "matern12" and "matern32"
        are the same with that family, "matern52 + matern12" is a sum of such kernels, other text is read as
        kernels are written. A list of kernels gives each class its own (softmax and robustmax).
    inference : "auto" (the default), "laplace", "ep", "vi", "map", "mcmc", or an object: EP(power=0.5),
            MCMC(draws=1000)
        How the posterior of f is approximated. "auto": Laplace for two classes, the variational bound for
        more.
    link : "logit" (the default) or "probit"
        sigma, for two classes.
    multiclass : "softmax" (the default), "robustmax", "ovr" or "ovo", or a RobustMax
        With three classes or more: one model with a latent function a class, or one-vs-rest, or one-vs-one,
        of binary models. "robustmax" takes one label in a thousand for wrong; RobustMax(classes,
        epsilon=gramian.param(0.01)) learns how many are.
    shared : bool, False by default
        Whether the binary models of "ovr" and "ovo" share their parameters (fitted to all of them together)
        or have their own.
    averaging : "exact" (the default) or "scaled"
        How f is averaged out in the probability of two classes: by quadrature (closed form for probit), or,
        for logit, by sigma(kappa mean) with kappa = 1 / sqrt(1 + pi v / 8).
    mean : "zero" (the default), "constant", "linear" or a Mean
        What f is far from the data.
    method : "auto" (the default), "exact", "statespace", "nystrom", "fourier", "vfe", "svgp", "cg", or an
            object with its own settings
        The engine. "auto" takes the whole kernel matrix of up to some thousand rows, beyond stochastic
        variational inference ("svgp").
    hyper : "map" (the default), "ml" or "mcmc"
        How parameters are found: with their priors, without them, or by sampling them together with f.
    optimize : bool, True by default
        Whether to fit the parameters, or to take them as given.
    n_restarts : int, optional
        Further starting points. None: 1 up to 1,000 rows, else none.
    stages : list of Hold, optional
        First parts of the search in which some parameters stay where they are: [Hold("kernel.scale",
        steps=20)].
    random_state : int, RandomState or None
        For the starting points, for what a method draws (landmarks, frequencies, batches, chains), and the
        default for `sample`.
    missing : "fill" (the default), "drop" or "error"
        What becomes of rows with missing cells in a fit: used, with what the most similar rows have in their
        place and a column that says where; left out; or refused. In predictions they are averaged over what
        similar rows have ("error": refused). Rows without a label are left out, unless it is "error".
    memory_limit : int or str, optional
        Bytes, or text such as "2GB". A fit that needs more is refused before it starts. None: 80 % of what is
        free.
    time_limit : float, optional
        Seconds that a fit may take, reading and the final inference included. Rows of the search, and where
        need be of the model, are chosen to fit into them; notes say what was left out.
    checkpoint : str or path, optional
        A file in which a fit writes down, every second or so, what it has found, so that one that was stopped
        goes on from there (see GPRegressor).
    verbose : bool, optional
        Progress on standard error: None on a terminal only, True always, False never.
    client : dask.distributed.Client or an executor of concurrent.futures, optional
        Who does passes over all rows of "svgp", and predictions of many rows. Results do not depend on it.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of predict_proba
    kernel_, mean_, likelihood_ : the fitted parts
    parameters_ : a table of all parameters
    theta_ : the trainable parameters as one unconstrained vector
    evidence_ : log p(y) and its kind
    posterior_ : the posterior process of the latent functions
    outcome_ : what happened: method and its reason, what was fitted on what, iterations, jitter, time, notes
    estimators_ : the binary models, for "ovr" and "ovo"
    fitted_ : all that the fit has left, as one value (see gramian.estimators.fitted)
    """

    mean: str | Mean = "zero"
    inference: str | Inference | MCMC | None = "auto"
    link: Literal["logit", "probit"] = "logit"
    multiclass: Literal["softmax", "robustmax", "ovr", "ovo"] | RobustMax = "softmax"
    shared: bool = False
    averaging: Literal["exact", "scaled"] = "exact"

    # Fitting. -----------------------------------------------------------------------------------------------

    @memory.translated(*FIT_SHORT)
    @resumable
    def fit(self, X: Any, y: Any = None, **unsupported: Any) -> Self:
        """Conditions on the rows of X with their labels y, after fitting the parameters.

        Labels are of any kind: text, whole numbers, booleans. X is what GPRegressor takes. Weights of rows
        are not supported: repeat rows instead.
        """
        began = clock.now()
        self.check_ready()
        check_arguments(unsupported, "X and y")
        table, columns, y, _, _ = reading.training(self, X, y)
        labels = Labels.read(y, len(table))
        classes = len(labels.classes)
        if classes == 2:
            build.read_kernel(self.kernel).one(
                "a list of kernels is for three classes or more, one a class; two classes have one latent"
                " function."
            )
        if classes > 2 and self.multiclass in ("ovr", "ovo"):
            self.fitted_ = multiclass.fit(self, table, columns, labels, began)
            return self
        likelihood = self._likelihood(classes)
        method, reason = latent.method_for(self, likelihood, table.shape)
        check(method, table.shape, likelihood.latents, self.memory_limit)
        codes = labels.codes[:, None]
        built = build.build_latent(self, likelihood, table, columns, codes, multiclass.VARIANCE)
        built = built._replace(model=latent.restrained(built.model, method))
        self.fitted_ = self._condition(built, columns, method, reason, began, classes=labels.classes)
        return self

    def _observations(self, fitted: Fitted, y: Any, n: int, beside: dict[str, Any]) -> Array:
        check_arguments(beside, "X and y")
        labels = Labels.read(y, n, fitted.classes)
        return np.asarray(labels.codes[:, None], dtype=np.float64)

    def check_settings(self) -> None:
        """Refuses impossible settings, before any work."""
        super().check_settings()
        choices: dict[str, tuple[str, ...]] = {"link": ("logit", "probit"), "averaging": ("exact", "scaled")}
        if not isinstance(self.multiclass, RobustMax):
            choices["multiclass"] = ("softmax", "robustmax", "ovr", "ovo")
        for name, known in choices.items():
            if getattr(self, name) not in known:
                cure = f"Use {', '.join(map(repr, known))}."
                raise ParameterError(f"{name}={getattr(self, name)!r} is not known. {cure}")
        if self.averaging == "scaled" and self.link == "probit":
            closed = 'with link="probit" the exact average is closed anyway'
            raise ParameterError(f'averaging="scaled" approximates the logit link; {closed}.')

    def _likelihood(self, classes: int) -> Likelihood:
        if classes == 2 or self.multiclass in ("ovr", "ovo"):
            return Bernoulli(self.link)
        if isinstance(self.multiclass, RobustMax):
            if self.multiclass.classes != classes:
                given = f"multiclass=RobustMax({self.multiclass.classes}, ...) was given"
                raise ParameterError(f"{given}, but y has {classes} classes.")
            return self.multiclass
        return Softmax(classes) if self.multiclass == "softmax" else RobustMax(classes)

    def _choice(
        self, built: Built, columns: Columns, method: Scheme, rng: np.random.Generator, report: Report
    ) -> Choice | None:
        left = self.kernel is None and self.optimize and self.hyper == "map" and not self.stages
        if not left or method.search == "none":
            return None
        return chosen(built, columns, multiclass.VARIANCE, rng, report)

    def _plan(self, shape: tuple[int, ...], y: Any) -> Plan:
        """Of the model, or of one of the binary models; without y, for two classes."""
        known = y is not None and not isinstance(y, str)
        return latent.plan_for(self, self._likelihood(len(np.unique(np.asarray(y))) if known else 2), shape)

    # Predicting. --------------------------------------------------------------------------------------------

    @memory.translated(*PREDICTIONS_SHORT)
    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each row."""
        if far.is_shared(self, X):
            check_is_fitted(self, "fitted_")
            return far.answers(self, "predict", X)
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

    @memory.translated(*PREDICTIONS_SHORT)
    def predict_proba(self, X: Any, interval: float | None = None) -> Any:
        """The probability of each class, (n, classes) in the order of `classes_`, averaged over what is not
        known about f. interval=0.9, of two classes: with both ends, of the same shape, of the 90 % interval
        of what the probability is, f not being known: narrow around 0.5 is a coin, wide is no knowledge."""
        if interval is None and far.is_shared(self, X):
            check_is_fitted(self, "fitted_")
            return far.answers(self, "predict_proba", X)
        table = self.read(X)
        P = self.fitted_.probabilities(table, self.averaging)
        return P if interval is None else (P, *self.fitted_.probability_interval(table, interval))

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of predict_proba."""
        return np.log(np.maximum(self.predict_proba(X), 1e-300))

    @memory.translated(*PREDICTIONS_SHORT)
    def predict_latent(self, X: Any) -> tuple[Array, Array]:
        """Mean and variance of the latent function: (n,) each for two classes, else (n, classes), or (n,
        binary models) for "ovr" and "ovo"."""
        table = self.read(X)
        mean, var = self.fitted_.latents(table)
        return (mean[:, 0], var[:, 0]) if mean.shape[1] == 1 else (mean, var)

    @memory.translated(*PREDICTIONS_SHORT)
    def predict_table(
        self, X: Any, target: str = "y", exposure: ArrayLike | None = None, level: float = 0.95
    ) -> dict[str, NDArray[Any]]:
        """Predictions as named columns: the most probable label as predicted, and the probability of each
        label as proba_...; with target="f" mean, std and 95 % interval (or of another `level`) of the latent
        functions.

        `pandas.DataFrame(gp.predict_table(X))`.
        """
        check_target(target, "labels", "the latent function")
        if exposure is not None:
            raise ParameterError("An exposure is for counts; labels have none.")
        if target == "f":
            mean, var = self.predict_latent(X)
            return prediction_table(Normals(mean, np.sqrt(var)), level)
        P = self.predict_proba(X)
        shares = {f"proba_{label}": P[:, k] for k, label in enumerate(self.classes_)}
        return {"predicted": self.classes_[np.argmax(P, axis=1)], **shares}

    @memory.translated(*PREDICTIONS_SHORT)
    def log_density(self, X: Any, y: Any, exposure: ArrayLike | None = None) -> Array:
        """log p(y_i) of each row's label, (n,). What held-out rows are scored by."""
        check_is_fitted(self, "fitted_")
        if exposure is not None:
            raise ParameterError("An exposure is for counts; labels have none.")
        X, y = reading.compared(self, X, y)
        scores = self.predict_log_proba(X)
        return scores[np.arange(len(scores)), self.fitted_.class_of(y, len(scores))]

    @memory.translated(*PREDICTIONS_SHORT)
    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The share of right labels, as of any classifier of scikit-learn: one that the fit has not seen is
        never right."""
        X, y = reading.compared(self, X, y)
        predicted = self.predict(X)
        right = labels_of(y, len(predicted)) == predicted
        return float(np.average(right, weights=read_weights(sample_weight, len(right))))

    @memory.translated(*PREDICTIONS_SHORT)
    def evaluate(self, X: Any, y: Any) -> Evaluation:
        """How good predictions of the labels y are at the rows of X, which should not be those of the fit:
        accuracy, log loss, Brier score, calibration and AUC (see gramian.report.evaluation)."""
        X, y = reading.compared(self, X, y)
        P = self.predict_proba(X)
        return of_classes(P, self.fitted_.class_of(y, len(P)), self.fitted_.columns.targets)

    def held_back(self, X: Any, y: Any, given: Mapping[str, Any]) -> tuple[Held, Array]:
        """Rows that the fit has not seen against what is foretold of them, and their table: what a report is
        made of. `given`: the likelihood's columns beside y."""
        if given:
            raise ParameterError(f"Labels have no {', '.join(given)} beside them.")
        X, y = reading.compared(self, X, y)
        table = self.read(X)
        codes = self.fitted_.class_of(y, len(table))
        at = some_rows(len(table), MOST_GIVEN)
        rows = np.asarray(table[at])
        P = self.fitted_.probabilities(rows, self.averaging)
        return classes(self.fitted_, P, codes[at], rows, at, len(table)), table

    @memory.translated(*PREDICTIONS_SHORT)
    def sample(self, X: Any, n_samples: int = 1, target: str = "f", random_state: Any = None) -> NDArray[Any]:
        """Joint draws of f, (n, n_samples) or (n, classes, n_samples), or of labels ("y"), (n, n_samples)."""
        count = check_draws(n_samples)
        check_target(target, "labels", "the latent function")
        check_is_fitted(self, "fitted_")
        if self.fitted_.models:
            what = 'The binary models of "ovr" and "ovo" are no joint model to draw from'
            raise ParameterError(f'{what}. Use multiclass="softmax", or ask estimators_.')
        table, L = self.read(X), self.likelihood_.latents
        rng = generator(self.random_state if random_state is None else random_state)
        draws = self._drawn(self.fitted_.first.process_at(table), L, table, count, rng)
        if target == "f":
            return draws[:, 0, :] if L == 1 else draws
        codes = observations(rng, self.likelihood_, draws, np.empty((len(table), 0)))
        return self.classes_[codes.astype(int)]

    @memory.translated(*PREDICTIONS_SHORT)
    def loo(self) -> LeftOutClasses:
        """Each training row predicted from all the others, from its cavity: exact for EP up to its
        approximation, and close for the others."""
        check_is_fitted(self, "fitted_")
        return self.fitted_.left_out_classes()

    def plot(self, X: Any = None, **settings: Any) -> Any:
        """A picture of the probabilities along one column, or over two (see gramian.plots)."""
        from gramian.plots.classes import plot_classes

        return plot_classes(self, X, **settings)

    # Telling. -----------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the columns of predict_proba."""
        classes = self.fitted_.classes
        assert classes is not None
        return classes

    @property
    def estimators_(self) -> list[GPClassifier]:
        """The binary models, for "ovr" and "ovo"."""
        if not self.fitted_.models:
            raise AttributeError("This classifier is one model, not made of binary ones.")
        return list(self.fitted_.models)
