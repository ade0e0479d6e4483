"""DeepGPRegressor and DeepGPClassifier: layers of Gaussian processes as scikit-learn estimators.

Both are the estimators of one layer with another method (deep/scheme.py), so that tables, likelihoods,
limits, predictions, files and pictures are theirs.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from gramian.arrays import Array, is_whole
from gramian.choose.plan import Plan
from gramian.data.inputs import Columns, read_features
from gramian.deep.layers import Layer
from gramian.deep.process import DeepProcess
from gramian.deep.scheme import MOST, Deep
from gramian.engines.dense import Exact
from gramian.errors import ParameterError
from gramian.estimators import build
from gramian.estimators.base import Estimator
from gramian.estimators.build import Built
from gramian.estimators.classifier import GPClassifier
from gramian.estimators.defaults import Choice
from gramian.estimators.fitted import Fitted
from gramian.estimators.regressor import GPRegressor
from gramian.fitting.progress import Report
from gramian.fitting.stages import Hold, Searched
from gramian.inference import Data, Inference, Model, Scheme
from gramian.inference.conjugate import closed
from gramian.inference.mcmc.method import MCMC
from gramian.kernels import RBF, Kernel, Matern52, Stationary
from gramian.likelihoods import Gaussian, Likelihood, RobustMax
from gramian.means import Mean
from gramian.params import Parameter
from gramian.processes.base import Process
from gramian.warps import Warp

CHOSEN = 200  # rows from which on the kind of model of f is for the data to say
SOME_ROWS = 10_000  # that say how far a column spreads
MOST_LAYERS = 10  # beyond, draws of the prior are flat almost everywhere (Duvenaud et al. 2014)


class LayerView(NamedTuple):
    """What a fitted model has between x and f at some rows: `inputs` (n, d), then of each layer after the
    first what it sees, its mean over draws (n, columns) and the draws themselves (S, n, columns), then f."""

    inputs: Array
    seen: tuple[Array, ...]
    draws: tuple[Array, ...]
    f: Array


class DeepEstimator(Estimator):
    """What deep estimators share: their method, from their settings."""

    # settings of one layer that have one value here
    inference: str | Inference | MCMC | None = None
    n_restarts: int | None = None
    hyper: str = "map"
    hypers: ClassVar[Mapping[str, str]] = {"map": "priors count"}
    usual: ClassVar[tuple[type[Stationary], ...]] = (RBF,)  # what is rough, layers make of smooth ones

    layers: int | str | list[Layer] | tuple[Layer, ...]
    n_inducing: int | None
    batch_size: int
    steps: int | None
    samples: int | None
    learning_rate: float | None
    natural_step: float

    @property
    def method(self) -> Deep:  # type: ignore[override]  # what others set, this one has
        """The layers and how they are searched for."""
        return Deep(
            read_layers(self.layers),
            self.layers == "auto",
            self.n_inducing,
            self.batch_size,
            self.samples,
            self.steps,
            self.natural_step,
            self.learning_rate,
        )

    def check_settings(self) -> None:
        """Refuses impossible settings, before any work."""
        super().check_settings()
        method = self.method
        build.read_kernel(self.kernel).one("a deep model has one a layer: layers=[Layer(kernel), ...].")
        for layer in method.layers:
            build.read_kernel(layer.kernel)

    def _method_for(self, columns: Columns) -> Deep:
        """The method for a table: kernels of layers with numbers for names of columns."""
        method, names = self.method, columns.names
        layers = []
        for k, layer in enumerate(method.layers):
            kernel = build.read_kernel(layer.kernel).kernel
            if kernel is not None:
                if k == 0:
                    kernel.check_columns(columns.described())
                kernel = kernel.resolve(names)
            elif isinstance(layer.kernel, str):
                raise ParameterError(
                    f"Layer: kernel={layer.kernel!r} is a word for a default kernel; for one layer give a"
                    ' formula, such as "0.1 * RBF(0.5)", or the word as kernel= of all.'
                )
            layers.append(dataclasses.replace(layer, kernel=kernel))
        return dataclasses.replace(
            method,
            layers=tuple(layers),
            categories=tuple(sorted(columns.categories)),
            plain_inner=self.kernel is None,
        )

    def _condition(self, built: Built, columns: Columns, method: Scheme, *rest: Any, **more: Any) -> Fitted:
        deep = self._method_for(columns)
        if not self.optimize:
            built = built._replace(model=deep.deeper(built.model, built.model, built.rows))
        return super()._condition(built, columns, deep, *rest, **more)

    def _choice(
        self, built: Built, columns: Columns, method: Scheme, rng: np.random.Generator, report: Report
    ) -> Choice | None:
        """As of one layer, from CHOSEN rows on: what is chosen is the model of f. Fewer rows have none to
        judge depth by, and what is rough in them layers are to make of a smooth f: the bound of a step of 50
        rows is 21 with an RBF, and 100 with two layers of them."""
        X = built.rows.X
        if self.kernel is not None or len(X) < CHOSEN or built.model.others:
            return None
        variance = float(built.model.kernel.diag(np.asarray(X[:1]))[0])
        some = np.asarray(X[:: max(1, len(X) // SOME_ROWS)])
        plain = build.default_kernel(some, columns, variance, Matern52)
        model = dataclasses.replace(built.model, kernel=plain.resolve(columns.names))
        started = built._replace(kernel=plain, model=model)
        choice = super()._choice(started, columns, closed(Exact()), rng, report)
        if choice is not None and choice.interrupted:
            raise KeyboardInterrupt  # no layer has been begun
        return choice

    def _kernel_of(self, built: Built, model: Model) -> Kernel:
        own = self.kernel is not None and read_layers(self.layers)[0].kernel is None
        return super()._kernel_of(built, model) if own or not model.deeper else model.kernel

    def _averages(self, searched: Searched) -> bool:
        return False

    def _deep_plan(self, shape: tuple[int, ...], outputs: int) -> Plan:
        prospect = build.prospect(self, shape, outputs)
        option = prospect.option(self.method)
        size = prospect.rows, prospect.columns, prospect.limit, prospect.time_limit
        return Plan(*size, (option,), option, "it is the one of deep models")

    @property
    def n_layers_(self) -> int:
        """Layers of the fitted model: as asked for, or one where more were no better."""
        return 1 + len(self.fitted_.first.model.deeper)

    @property
    def kernels_(self) -> tuple[Kernel, ...]:
        """The kernel of each layer at the fitted parameters."""
        return (self.kernel_, *(layer.kernel for layer in self.fitted_.first.model.deeper))

    def layer_outputs(self, X: Any) -> LayerView:
        """What each layer sees at the rows of X."""
        table = self.read(X)
        process = self._deep_process()
        seen = process.layers(table)
        return LayerView(table, tuple(np.mean(r, axis=0) for r in seen), seen, process.mean(table))

    def plot_layers(self, X: Any = None, **settings: Any) -> Any:
        """A picture of draws through the layers, coloured by the input (see gramian.plots.plot_layers)."""
        from gramian.plots.layers import plot_layers

        return plot_layers(self, X, **settings)

    def sample_layers(self, X: Any, random_state: Any = 0) -> list[Array]:
        """One joint draw through all layers at the rows of X: what each layer sees, (n, columns) each, and
        last f, (n, functions). Before `fit`, of the prior."""
        if self.__sklearn_is_fitted__():
            return self.layers_at(self.read(X), random_state)
        table, columns = read_features(X, memory_limit=self.memory_limit)
        return self._prior(table, columns, 1).joint_layers(np.random.default_rng(random_state), table)

    def layers_at(self, table: Array, random_state: Any = 0) -> list[Array]:
        """The same after a fit, at rows of the model's own table."""
        return self._deep_process().joint_layers(np.random.default_rng(random_state), table)

    def _deep_process(self) -> DeepProcess:
        check_is_fitted(self, "fitted_")
        process = self.fitted_.first.process
        assert isinstance(process, DeepProcess)
        return process

    def _prior(self, table: Array, columns: Columns, outputs: int) -> DeepProcess:
        """What is believed before a fit, for the rows of a table."""
        self.check_settings()
        kernel = build.read_kernel(self.kernel).suited(table, columns, 1.0, self.usual)[0]
        mean = build.mean_function(self.mean, np.zeros(()), columns)
        mean = mean.adapted(table, np.zeros(()), np.ones(()))
        model = Model(kernel.resolve(columns.names), mean, Gaussian())
        data = Data(table, np.zeros((len(table), outputs)), np.ones(outputs))
        method = self._method_for(columns)
        deep = method.deeper(model, model, data)
        found = method.prepared(deep, data, np.random.default_rng(0))
        # q is the prior in all layers
        found = dataclasses.replace(found, T=tuple(np.zeros_like(T) for T in found.T))
        return DeepProcess.of(found, deep, data.scale)


class DeepGPRegressor(DeepEstimator, GPRegressor):
    """Deep Gaussian process regression: functions of functions, for jumps and changing smoothness.

    The model: h_1(x) = x + g_1(x), h_2 = h_1 + g_2(h_1), ..., f(x) = m(x) + s g_L(h_(L-1)), y = f(x) + noise
    (or y ~ p(y | f) with a `likelihood`), with a Gaussian process for each g, by doubly stochastic
    variational inference. The model of one layer is fitted first and is where the deep one begins; where
    depth does not raise the bound, it is the answer, and `outcome_` says so.

    Parameters
    ----------
    layers : int, "auto" or a list of Layer, 2 by default
        How many layers, f the last of them. "auto": up to three, as many as the bound wants. A list gives
        each its own kernel, width and inducing points: [Layer(width=2), Layer("1.0 * RBF(0.5)")].
    kernel : Kernel or text, optional
        Of all layers, as for GPRegressor; that of inner layers begins with a hundredth of the variance. None:
        an RBF with one lengthscale a column and weak priors; from 200 rows on, that of f and whether y is
        warped are chosen as GPRegressor chooses them (`outcome_.choice`).
    n_inducing : int, optional
        Inducing points of a layer. None: 300 in the last one, 500 up to 2,000 rows, 64 in each inner one.
    steps, batch_size, samples : int, optional
        Steps of the search (None: 100 times through the data, from 1,000 to 5,000; 1,500 where a step has all
        rows), rows of each (512), and draws of the inner layers (None: 2, with fewer than 512 rows up to 5).
    learning_rate, natural_step : float
        Sizes of steps: of Adam (None: 0.03, or 0.01 where a step has all rows), and of natural gradients of
        the last layer (0.1).
    stages : list of Hold, optional
        First parts of the search in which some parameters stay where they are. None: those of the likelihood,
        for a fifth of the steps.
    mean, noise, likelihood, optimize, normalize_y, random_state, missing, memory_limit, time_limit,
            checkpoint, verbose
        As for GPRegressor.

    Attributes
    ----------
    Those of GPRegressor; `kernel_` is that of the first layer, `kernels_` has all, `n_layers_` says how many
    there are. `evidence_` is the bound, with its standard error over draws.
    """

    warp: str | Warp | None = "auto"

    def __init__(
        self,
        layers: int | str | list[Layer] | tuple[Layer, ...] = 2,
        kernel: Kernel | list[Kernel] | str | None = None,
        *,
        n_inducing: int | None = None,
        mean: str | Mean = "constant",
        noise: ArrayLike | Parameter | None = None,
        likelihood: str | Likelihood | None = None,
        steps: int | None = None,
        batch_size: int = 512,
        samples: int | None = None,
        learning_rate: float | None = None,
        natural_step: float = 0.1,
        optimize: bool = True,
        stages: list[Hold] | None = None,
        normalize_y: bool = True,
        random_state: Any = None,
        missing: str = "fill",
        memory_limit: int | str | None = None,
        time_limit: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.layers, self.kernel, self.n_inducing = layers, kernel, n_inducing
        self.mean, self.noise, self.likelihood = mean, noise, likelihood
        self.steps, self.batch_size, self.samples = steps, batch_size, samples
        self.learning_rate, self.natural_step = learning_rate, natural_step
        self.optimize, self.stages, self.normalize_y = optimize, stages, normalize_y
        self.random_state, self.missing, self.verbose = random_state, missing, verbose
        self.memory_limit, self.time_limit, self.checkpoint = memory_limit, time_limit, checkpoint

    def _plan(self, shape: tuple[int, ...], y: Any) -> Plan:
        one = y is None or isinstance(y, str) or np.ndim(y) < 2
        return self._deep_plan(shape, 1 if one else int(np.shape(y)[1]))

    def prior_at(self, table: Array, columns: Columns) -> tuple[Process, Array]:  # type: ignore[override]
        noise = build.noise_parameter(build.noise_of(self), np.ones(1), None, shared=True).value.ravel()
        return self._prior(table, columns, len(noise)), noise


class DeepGPClassifier(DeepEstimator, GPClassifier):
    """Deep Gaussian process classification: the layers of DeepGPRegressor under a likelihood of classes.

    Parameters
    ----------
    layers, kernel, n_inducing, steps, batch_size, samples, learning_rate, natural_step, stages
        As for DeepGPRegressor.
    link : "logit" (the default) or "probit"
        Of two classes.
    multiclass : "softmax" (the default), "robustmax" or a RobustMax
        With three classes or more: one function a class in the last layer.
    mean, optimize, random_state, missing, memory_limit, time_limit, checkpoint, verbose
        As for GPClassifier.

    Attributes
    ----------
    Those of GPClassifier; `kernel_` is that of the first layer, `kernels_` has all, `n_layers_` says how many
    there are.
    """

    def __init__(
        self,
        layers: int | str | list[Layer] | tuple[Layer, ...] = 2,
        kernel: Kernel | list[Kernel] | str | None = None,
        *,
        n_inducing: int | None = None,
        link: Literal["logit", "probit"] = "logit",
        multiclass: Literal["softmax", "robustmax"] | RobustMax = "softmax",
        mean: str | Mean = "zero",
        steps: int | None = None,
        batch_size: int = 512,
        samples: int | None = None,
        learning_rate: float | None = None,
        natural_step: float = 0.1,
        optimize: bool = True,
        stages: list[Hold] | None = None,
        random_state: Any = None,
        missing: str = "fill",
        memory_limit: int | str | None = None,
        time_limit: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.layers, self.kernel, self.n_inducing = layers, kernel, n_inducing
        self.link, self.multiclass, self.mean = link, multiclass, mean
        self.steps, self.batch_size, self.samples = steps, batch_size, samples
        self.learning_rate, self.natural_step = learning_rate, natural_step
        self.optimize, self.stages = optimize, stages
        self.random_state, self.missing, self.verbose = random_state, missing, verbose
        self.memory_limit, self.time_limit, self.checkpoint = memory_limit, time_limit, checkpoint

    def check_settings(self) -> None:
        """Refuses impossible settings, before any work."""
        if self.multiclass in ("ovr", "ovo"):
            raise ParameterError(
                f"multiclass={self.multiclass!r} is of models of one layer: a deep one has a function a"
                ' class. Use "softmax" or "robustmax".'
            )
        super().check_settings()

    def _plan(self, shape: tuple[int, ...], y: Any) -> Plan:
        known = y is not None and not isinstance(y, str)
        classes = len(np.unique(np.asarray(y))) if known else 2
        return self._deep_plan(shape, self._likelihood(classes).latents)


def read_layers(given: Any) -> tuple[Layer, ...]:
    """The setting `layers`, as one Layer each."""
    if isinstance(given, str) and given == "auto":
        return (Layer(),) * MOST
    if is_whole(given) and int(given) <= MOST_LAYERS:
        return (Layer(),) * int(given)
    several = isinstance(given, (list, tuple)) and 1 <= len(given) <= MOST_LAYERS
    if several and all(isinstance(layer, Layer) for layer in given):
        return tuple(given)
    raise ParameterError(
        f'layers={given!r} must be a whole number from 1 to {MOST_LAYERS}, "auto", or a list of as many'
        " Layer(kernel, width, n_inducing)."
    )
