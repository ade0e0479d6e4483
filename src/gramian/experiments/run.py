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

import dataclasses
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.engines import Exact
from gramian.errors import GramianError
from gramian.experiments.gramerror import gram_error
from gramian.experiments.labels import AsItIs, label_scores
from gramian.experiments.memory import peak_memory
from gramian.experiments.methods import Method
from gramian.features.base import FeatureMap
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.inference import Data, Model
from gramian.inference.conjugate import observed
from gramian.kernels.base import Kernel
from gramian.likelihoods import Gaussian, Likelihood
from gramian.linalg import memory
from gramian.linalg.threads import one_blas_thread
from gramian.means import ConstantMean, ZeroMean
from gramian.params import fixed
from gramian.processes.base import Process, blocks_of
from gramian.processes.krylov import KrylovPosterior
from gramian.processes.prior import GaussianProcess
from gramian.solvers.base import Factor

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

Z95 = 1.959963984540054
NAN = float("nan")
WARM_ROWS = 1600  # enough for tiles of full size
# streams of random numbers that have nothing to do with each other
SPLIT, DRAW, PART, SUBSET, VARIANCES = 1, 2, 3, 4, 5


class Trial(NamedTuple):
    """What a run is of. A method without a size has size 0."""

    repeat: int
    method: Method
    size: int


@dataclass(frozen=True, eq=False)
class Setup:
    """What all runs share."""

    X: Array  # (n, d)
    y: Array | None  # (n,); None: kernel matrices only
    kernel: Kernel  # with column indices; held for all methods
    noise: float  # in units of y squared
    random_state: int
    test_size: float
    normalize_y: bool
    gram_rows: int  # rows on which a kernel matrix is compared at most
    variance_rows: int  # test rows whose variance a Krylov solver computes at most, each by a solve
    tol: float
    max_iter: int
    memory_limit: int | float | str | None
    likelihood: Likelihood | None = None  # of classes, with y their codes; None: Gaussian noise

    def split(self, repeat: int) -> tuple[Rows, Rows]:
        """Training and test rows; without y all rows are for training."""
        n = len(self.X)
        if self.y is None:
            return np.arange(n), np.arange(0)
        order = np.random.default_rng([SPLIT, self.random_state, repeat]).permutation(n)
        held = min(max(1, round(self.test_size * n)), n - 1)
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
    train, test = setup.split(trial.repeat)
    measured: dict[str, Any] = {}
    rng = np.random.default_rng([DRAW, setup.random_state, trial.repeat, trial.method.code, trial.size])
    try:
        _measure(setup, trial, setup.X[train], train, test, rng, measured)
    except (GramianError, MemoryError, np.linalg.LinAlgError) as error:
        measured["note"] = " ".join(str(error).split()) or "out of memory"
    return RunRecord(trial.repeat, trial.method.name, trial.size, len(train), len(test), **measured)


def warm_up(setup: Setup, trial: Trial) -> None:
    """The same run on few rows and for nothing, so that compilations are not in the times."""
    few = dataclasses.replace(
        setup,
        X=setup.X[:WARM_ROWS],
        y=None if setup.y is None else setup.y[:WARM_ROWS],
        gram_rows=128,
        max_iter=3,
    )
    measure(few, trial)


def _measure(
    setup: Setup,
    trial: Trial,
    X: Array,
    train: Rows,
    test: Rows,
    rng: np.random.Generator,
    measured: dict[str, Any],
) -> None:
    method, (n, d) = trial.method, X.shape
    needed = method.bytes_needed(n, d, trial.size, setup.likelihood)
    measured["predicted_bytes"] = float(needed)
    memory.check_memory(
        needed,
        setup.memory_limit,
        f"The method {method.name!r} on {n:,} rows",
        "Take a smaller size, or raise memory_limit.",
    )
    model, data = _conditioned(setup, X, train)
    features: FeatureMap | None = None
    posterior: Process | Solved | None
    with peak_memory() as peak:
        if method.has_features:
            features, posterior = _with_features(setup, trial, model, data, rng, measured)
        elif method.family == "exact":
            began = time.perf_counter()
            posterior, evidence, *_ = method.around(Exact(), setup.likelihood).infer(model, data)
            seconds = time.perf_counter() - began
            measured |= {"fit_seconds": seconds, "total_seconds": seconds, "log_evidence": evidence.value}
        elif setup.likelihood is not None:
            posterior = _with_krylov_steps(setup, trial, model, data, rng, measured)
        else:
            posterior = _with_krylov(setup, trial, model, data, rng, measured)
    measured["measured_bytes"] = peak.bytes
    if features is not None:
        few = n > setup.gram_rows
        rows = np.sort(rng.choice(n, setup.gram_rows, replace=False)) if few else slice(None)
        with one_blas_thread():
            error = gram_error(setup.kernel, X[rows], features, method.objective == "fitc")
        measured |= {"frobenius": error.frobenius, "infinity": error.infinity}
        measured["gram_rows"] = float(min(n, setup.gram_rows))
    if posterior is not None and setup.y is not None:
        _predict(setup, trial, posterior, setup.X[test], setup.y[test], measured)


def _conditioned(setup: Setup, X: Array, train: Rows) -> tuple[Model, Data]:
    """The model in the units of the training rows' y: their average as the mean and, normalised, their spread
    as the scale. Classes have no units."""
    y = np.zeros(len(X)) if setup.y is None else setup.y[train]
    if setup.likelihood is not None:
        return Model(setup.kernel, ZeroMean(), setup.likelihood), Data(
            X, np.ascontiguousarray(y[:, None]), np.ones(setup.likelihood.latents)
        )
    spread = float(np.std(y))
    normal = setup.normalize_y and spread > 0
    mean = ConstantMean(fixed(float(np.mean(y)) if setup.normalize_y else 0.0))
    model = Model(setup.kernel, mean, Gaussian(fixed(setup.noise)))
    return model, Data(X, np.ascontiguousarray(y[:, None]), np.array([spread if normal else 1.0]))


def _with_features(
    setup: Setup, trial: Trial, model: Model, data: Data, rng: np.random.Generator, measured: dict[str, Any]
) -> tuple[FeatureMap, Process | None]:
    kernel, X, method = setup.kernel, data.X, trial.method
    chosen = method.choose(kernel, X, trial.size, rng)
    m = chosen.basis.n_features
    with one_blas_thread():
        began = time.perf_counter()
        features = chosen.basis.at(kernel)
        for at in blocks_of(len(X), 8 * m):
            features.block(X[at])
        construction = chosen.seconds + time.perf_counter() - began
    measured |= {
        "features": float(m),
        "probabilities_seconds": chosen.probabilities_seconds,
        "construction_seconds": construction,
    }
    if setup.y is None:
        return features, None
    began = time.perf_counter()
    posterior, evidence, *_ = method.inference(chosen.basis, setup.likelihood).infer(model, data)
    seconds = time.perf_counter() - began
    measured |= {
        "fit_seconds": seconds,
        "total_seconds": chosen.probabilities_seconds + chosen.seconds + seconds,
        "log_evidence": evidence.value,
    }
    return features, posterior


def _with_krylov(
    setup: Setup, trial: Trial, model: Model, data: Data, rng: np.random.Generator, measured: dict[str, Any]
) -> Solved:
    """The solver as it is: a solve that misses its tolerance is not tried again by other means, because this
    is what is compared."""
    n = len(data.X)
    group = next(observed(model, data))
    began = time.perf_counter()
    factor = trial.method.solver(trial.size, n, setup.tol, setup.max_iter, int(rng.integers(2**31))).factor(
        GramOperator(model.kernel, data.X, group.D)
    )
    made = time.perf_counter()
    value, outcome = factor.solve(group.r)
    done = time.perf_counter()
    measured |= {
        "construction_seconds": made - began,
        "fit_seconds": done - made,
        "total_seconds": done - began,
    }
    residual = NAN if outcome.residual is None else outcome.residual
    measured |= {
        "iterations": float(outcome.iterations),
        "residual": residual,
        "note": " ".join(outcome.note.split()),
    }
    return Solved(GaussianProcess(model.kernel, model.mean, data.scale), data.X, value, factor)


def _with_krylov_steps(
    setup: Setup, trial: Trial, model: Model, data: Data, rng: np.random.Generator, measured: dict[str, Any]
) -> Process:
    """Laplace's approximation, with the solver as it is for each system of Newton's method; its evidence is
    an estimate, and in the time."""
    solver = trial.method.solver(trial.size, len(data.X), setup.tol, setup.max_iter, int(rng.integers(2**31)))
    began = time.perf_counter()
    prepared = trial.method.around(AsItIs(solver, 0), setup.likelihood).prepared(model, data, rng)
    made = time.perf_counter()
    posterior, evidence, outcome, _ = prepared.infer(model, data)
    done = time.perf_counter()
    measured |= {
        "construction_seconds": made - began,
        "fit_seconds": done - made,
        "total_seconds": done - began,
    }
    measured |= {
        "log_evidence": evidence.value,
        "iterations": float(outcome.iterations),
        "note": " ".join(outcome.note.split()),
    }
    return posterior


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
        return np.maximum(self.prior.var(X)[:, 0] - explained, 0.0), (
            "" if outcome.converged else f"variances: {outcome.note}"
        )


def _predict(
    setup: Setup, trial: Trial, posterior: Process | Solved, X: Array, y: Array, measured: dict[str, Any]
) -> None:
    at = np.arange(len(X))
    # the same rows for all solvers of a repeat
    if isinstance(posterior, (Solved, KrylovPosterior)) and len(X) > setup.variance_rows:
        rng = np.random.default_rng([VARIANCES, setup.random_state, trial.repeat])
        at = np.sort(rng.choice(len(X), setup.variance_rows, replace=False))
    began = time.perf_counter()
    if setup.likelihood is not None:
        assert not isinstance(posterior, Solved)
        label_scores(setup.likelihood, posterior, X, y, at, measured)
        measured |= {"predict_seconds": time.perf_counter() - began, "variance_rows": float(len(at))}
        return
    if isinstance(posterior, Solved):
        mean = posterior.mean(X)[:, 0]
        var, note = posterior.var(X[at])
        measured["note"] = measured["note"] or " ".join(note.split())
    else:
        mean, var = (moment[:, 0] for moment in posterior.moments(X))
    measured["predict_seconds"] = time.perf_counter() - began
    squares = (y - mean) ** 2
    measured |= {"mse": float(np.mean(squares)), "rmse": float(np.sqrt(np.mean(squares)))}
    total = var + setup.noise
    with np.errstate(divide="ignore"):  # no noise and no uncertainty: NLPD is infinite, and says so
        measured["nlpd"] = float(np.mean(0.5 * (squares[at] / total + np.log(2 * np.pi * total))))
    measured["coverage95"] = float(np.mean(squares[at] <= Z95**2 * total))
    measured["variance_rows"] = float(len(at))
