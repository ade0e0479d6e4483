"""One run of a comparison: one method, one size, one split of the rows, one draw.

The split belongs to the repeat, so that methods meet the same rows; the draw belongs to (random_state,
repeat, method, size), so that a run gives the same numbers whatever ran before it. Times are of this machine,
now; programs are compiled before (see `warm_up`).

    probabilities   the probabilities that rows are drawn by
    construction    the rest of the choice, and the features of all training rows; for CG and MINRES the
                    preconditioner
    fit             from the choice to the posterior (features are made again on the way, block by block); for
                    CG and MINRES the solve
    total           what a fit takes from the data on: probabilities, choice and fit; construction and fit for
                    CG and MINRES

Classes: the likelihood replaces Gaussian noise, inference is by Laplace's approximation (a bound for vfe and
svgp), and Newton's systems are those of the method. CG and MINRES choose the pivots of the preconditioner
once (construction); each system then makes its own from them (fit).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.engines import Exact
from gramian.errors import GramianError
from gramian.estimators.predictions import Z95
from gramian.experiments.measures import gram_error, label_scores, peak_memory
from gramian.experiments.methods import KRYLOV, AsItIs, Method
from gramian.features.base import FeatureMap
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.inference import Data, Model, Scheme
from gramian.inference.conjugate import observed
from gramian.kernels.base import Kernel
from gramian.likelihoods import Gaussian, Likelihood
from gramian.linalg import memory
from gramian.linalg.threads import one_blas_thread
from gramian.means import ConstantMean, ZeroMean
from gramian.params import fixed
from gramian.processes.base import Process, blocks_of
from gramian.processes.prior import GaussianProcess
from gramian.solvers import CG, MINRES, Factor, SolveOutcome

Rows = NDArray[np.intp]

NAN = float("nan")
WARM_ROWS = 1600  # enough for tiles of full size
# streams of random numbers that have nothing to do with each other
SPLIT, DRAW, PART, SUBSET, VARIANCES = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Settings:
    """The numbers of a comparison, as they are kept with its runs; see `compare`."""

    test_size: float
    random_state: int
    standardize: bool
    normalize_y: bool
    max_rows: int | None
    fit_rows: int
    gram_rows: int
    variance_rows: int
    tol: float
    max_iter: int


class Trial(NamedTuple):
    """What a run is of. A method without a size has size 0."""

    repeat: int
    method: Method
    size: int

    @property
    def key(self) -> tuple[int, str, int]:
        return self.repeat, self.method.name, self.size

    @property
    def described(self) -> str:
        return f"{self.method.name} {self.size}" if self.size else self.method.name


@dataclass(frozen=True, eq=False)
class Setup:
    """What all runs share."""

    X: Array  # (n, d)
    y: Array | None  # (n,); None: kernel matrices only
    kernel: Kernel  # with column indices; held for all methods
    noise: float  # in units of y squared
    settings: Settings
    memory_limit: int | float | str | None = None
    likelihood: Likelihood | None = None  # of classes, with y their codes; None: Gaussian noise

    def split(self, repeat: int) -> tuple[Rows, Rows]:
        """Training and test rows; without y all rows are for training."""
        n = len(self.X)
        if self.y is None:
            return np.arange(n), np.arange(0)
        order = np.random.default_rng([SPLIT, self.settings.random_state, repeat]).permutation(n)
        held = min(max(1, round(self.settings.test_size * n)), n - 1)
        return np.sort(order[held:]), np.sort(order[:held])


@dataclass(frozen=True)
class RunRecord:
    """A line of the tidy table. NaN: not measured, or without meaning for the method."""

    repeat: int
    method: str
    size: int
    n_train: int
    n_test: int
    # columns of Phi in fact: fewer than asked for where rows were drawn twice, or nothing was left to explain
    features: float = NAN
    gram_rows: float = NAN  # rows on which the kernel matrix was compared
    frobenius: float = NAN
    infinity: float = NAN
    probabilities_seconds: float = NAN
    construction_seconds: float = NAN
    fit_seconds: float = NAN
    total_seconds: float = NAN
    predict_seconds: float = NAN
    predicted_bytes: float = NAN  # of a fit
    measured_bytes: float = NAN  # growth of the resident memory in construction and fit
    mse: float = NAN
    rmse: float = NAN
    error: float = NAN  # share of test rows whose label is not the most probable one
    nlpd: float = NAN  # mean of -log p(y) over test rows
    coverage95: float = NAN  # of test rows, within their 95 % interval
    brier: float = NAN  # mean over test rows of sum_c (p_c - [y = c])^2
    ece: float = NAN  # expected calibration error of the most probable class
    variance_rows: float = NAN  # test rows that all of these but mse, rmse and error are of
    # of y divided by its spread, or of labels, as the method has it: exact, a bound, or of its own model
    log_evidence: float = NAN
    iterations: float = NAN  # of the solver, in all systems together
    residual: float = NAN
    note: str = ""  # why something is missing

    @property
    def key(self) -> tuple[int, str, int]:
        return self.repeat, self.method, self.size


def measure(setup: Setup, trial: Trial) -> RunRecord:
    """Carries a run out. What the method cannot do (a kernel without a spectrum, more memory than allowed)
    ends up in the note."""
    run = _Measurement(setup, trial)
    try:
        run.carry_out()
    except (GramianError, MemoryError, np.linalg.LinAlgError) as error:
        run.measured["note"] = " ".join(str(error).split()) or "out of memory"
    return RunRecord(*trial.key, len(run.train), len(run.test), **run.measured)


def warm_up(setup: Setup, trial: Trial) -> None:
    """The same run on few rows and for nothing, so that compilations are not in the times."""
    y = None if setup.y is None else setup.y[:WARM_ROWS]
    few = replace(setup.settings, gram_rows=128, max_iter=3)
    measure(replace(setup, X=setup.X[:WARM_ROWS], y=y, settings=few), trial)


def warm_measure(trial: Trial, setup: Setup) -> RunRecord:
    """A run by a worker, which compiles what it has not compiled yet before it looks at its watch."""
    key = trial.method.name, trial.size, setup.X.shape, repr(setup.kernel)
    if key not in _warm:
        warm_up(setup, trial)
        _warm.add(key)
    return measure(setup, trial)


_warm: set[tuple[Any, ...]] = set()  # of this process


class _Measurement:
    """A run at work. `measured`: the fields of its record so far."""

    def __init__(self, setup: Setup, trial: Trial) -> None:
        self.setup, self.settings, self.likelihood = setup, setup.settings, setup.likelihood
        self.trial, self.method = trial, trial.method
        self.train, self.test = setup.split(trial.repeat)
        seed = self.settings.random_state
        self.rng = np.random.default_rng([DRAW, seed, trial.repeat, trial.method.code, trial.size])
        self.measured: dict[str, Any] = {}

    def carry_out(self) -> None:
        X, method = self.setup.X[self.train], self.method
        needed = method.bytes_needed(len(X), X.shape[1], self.trial.size, self.likelihood)
        self.measured["predicted_bytes"] = float(needed)
        what = f"The method {method.name!r} on {len(X):,} rows"
        cure = "Take a smaller size, or raise memory_limit."
        memory.check_memory(needed, self.setup.memory_limit, what, cure)
        model, data = self._conditioned(X)
        features: FeatureMap | None = None
        posterior: Process | Solved | None
        with peak_memory() as peak:
            if method.has_features:
                features, posterior = self._with_features(model, data)
            elif method.family == "exact":
                posterior, _ = self._inferred(method.around(Exact(), self.likelihood), model, data)
            else:
                posterior = (self._solved if self.likelihood is None else self._newton)(model, data)
        self.measured["measured_bytes"] = peak.bytes
        if features is not None:
            self._compare_matrices(X, features)
        if posterior is not None and self.setup.y is not None:
            self._predict(posterior, self.setup.X[self.test], self.setup.y[self.test])

    def _conditioned(self, X: Array) -> tuple[Model, Data]:
        """The model in the units of the training rows' y: their average as the mean and, normalised, their
        spread as the scale. Classes have no units."""
        kernel, y = self.setup.kernel, np.zeros(len(X)) if self.setup.y is None else self.setup.y[self.train]
        Y = y[:, None]
        if self.likelihood is not None:
            return Model(kernel, ZeroMean(), self.likelihood), Data(X, Y, np.ones(self.likelihood.latents))
        normal = self.settings.normalize_y
        mean, spread = (float(np.mean(y)), float(np.std(y)) or 1.0) if normal else (0.0, 1.0)
        model = Model(kernel, ConstantMean(fixed(mean)), Gaussian(fixed(self.setup.noise)))
        return model, Data(X, Y, np.array([spread]))

    def _inferred(
        self, scheme: Scheme, model: Model, data: Data, before: float = 0.0
    ) -> tuple[Process, SolveOutcome]:
        """The posterior; `before`: seconds that belong to the fit and are over."""
        began = time.perf_counter()
        posterior, evidence, outcome, _ = scheme.infer(model, data)
        seconds = time.perf_counter() - began
        self.measured |= {"fit_seconds": seconds, "total_seconds": before + seconds}
        self.measured["log_evidence"] = evidence.value
        return posterior, outcome

    def _with_features(self, model: Model, data: Data) -> tuple[FeatureMap, Process | None]:
        basis, probabilities, choice = self.method.choose(model.kernel, data.X, self.trial.size, self.rng)
        with one_blas_thread():
            began = time.perf_counter()
            features = basis.at(model.kernel)
            for at in blocks_of(len(data.X), 8 * basis.n_features):
                features.block(data.X[at])
            made = time.perf_counter() - began
        self.measured |= {"features": float(basis.n_features), "probabilities_seconds": probabilities}
        self.measured["construction_seconds"] = choice + made
        if self.setup.y is None:
            return features, None
        scheme = self.method.inference(basis, self.likelihood)
        return features, self._inferred(scheme, model, data, probabilities + choice)[0]

    def _solver(self, n: int) -> CG | MINRES:
        """The solver as it is: a solve that misses its tolerance is not tried again by other means, because
        this is what is compared."""
        seed = int(self.rng.integers(2**31))
        return self.method.solver(self.trial.size, n, self.settings.tol, self.settings.max_iter, seed)

    def _solved(self, model: Model, data: Data) -> Solved:
        group, solver = next(observed(model, data)), self._solver(len(data.X))
        began = time.perf_counter()
        factor = solver.factor(GramOperator(model.kernel, data.X, group.D))
        made = time.perf_counter()
        value, outcome = factor.solve(group.r)
        done = time.perf_counter()
        self.measured |= {"construction_seconds": made - began, "fit_seconds": done - made}
        self.measured |= {"total_seconds": done - began, **_steps(outcome)}
        self.measured["residual"] = NAN if outcome.residual is None else outcome.residual
        return Solved(GaussianProcess(model.kernel, model.mean, data.scale), data.X, value, factor)

    def _newton(self, model: Model, data: Data) -> Process:
        """Laplace's approximation, each system of Newton's method by the solver; its evidence is an estimate,
        and in the time."""
        scheme = self.method.around(AsItIs(self._solver(len(data.X)), 0), self.likelihood)
        began = time.perf_counter()
        prepared = scheme.prepared(model, data, self.rng)
        made = time.perf_counter() - began
        posterior, outcome = self._inferred(prepared, model, data, made)
        self.measured |= {"construction_seconds": made, **_steps(outcome)}
        return posterior

    def _compare_matrices(self, X: Array, features: FeatureMap) -> None:
        most = self.settings.gram_rows
        rows = np.sort(self.rng.choice(len(X), most, replace=False)) if len(X) > most else slice(None)
        with one_blas_thread():
            error = gram_error(self.setup.kernel, X[rows], features, self.method.objective == "fitc")
        self.measured |= {"frobenius": error.frobenius, "infinity": error.infinity}
        self.measured["gram_rows"] = float(min(len(X), most))

    def _predict(self, posterior: Process | Solved, X: Array, y: Array) -> None:
        measured, at, most = self.measured, np.arange(len(X)), self.settings.variance_rows
        if self.method.family in KRYLOV and len(X) > most:  # the same rows for all solvers of a repeat
            rng = np.random.default_rng([VARIANCES, self.settings.random_state, self.trial.repeat])
            at = np.sort(rng.choice(len(X), most, replace=False))
        measured["variance_rows"] = float(len(at))
        began = time.perf_counter()
        if self.likelihood is not None:
            assert isinstance(posterior, Process)
            measured |= label_scores(self.likelihood, posterior, X, y, at)
            measured["predict_seconds"] = time.perf_counter() - began
            return
        if isinstance(posterior, Solved):
            mean = posterior.mean(X)[:, 0]
            var, note = posterior.var(X[at])
            measured["note"] = measured["note"] or " ".join(note.split())
        else:
            mean, var = (moment[:, 0] for moment in posterior.moments(X))
        measured["predict_seconds"] = time.perf_counter() - began
        squares, total = (y - mean) ** 2, var + self.setup.noise
        measured |= {"mse": float(np.mean(squares)), "rmse": float(np.sqrt(np.mean(squares)))}
        with np.errstate(divide="ignore"):  # no noise and no uncertainty: NLPD is infinite, and says so
            measured["nlpd"] = float(np.mean(0.5 * (squares[at] / total + np.log(2 * np.pi * total))))
        measured["coverage95"] = float(np.mean(squares[at] <= Z95**2 * total))


def _steps(outcome: SolveOutcome) -> dict[str, Any]:
    return {"iterations": float(outcome.iterations), "note": " ".join(outcome.note.split())}


@dataclass(frozen=True, eq=False)
class Solved:
    """mean = m + s k(x, X) alpha, var = s^2 (k(x, x) - k(x, X) A^-1 k(X, x)), by a Krylov solver."""

    prior: GaussianProcess
    X: Array  # (n, d)
    alpha: Array  # (n, 1)
    factor: Factor

    def mean(self, X: Array) -> Array:
        return self.prior.mean(X) + tiles.matmul(self.prior.kernel, X, self.X, self.alpha) * self.prior.scale

    def var(self, X: Array) -> tuple[Array, str]:
        """(n,), and what the solver has to say of it."""
        K = tiles.cross(self.prior.kernel, self.X, X)  # (n, points)
        solved, outcome = self.factor.solve(K)
        explained = np.einsum("ij,ij->j", K, solved) * self.prior.scale[0] ** 2
        note = "" if outcome.converged else f"variances: {outcome.note}"
        return np.maximum(self.prior.var(X)[:, 0] - explained, 0.0), note
