"""Several classes from binary models.

    one-vs-rest   a model a class, that class against all others; probabilities are those of the models, made
                  to add up to 1
    one-vs-one    a model a pair of classes, on the rows of these two; probabilities from the pairs' by
                  coupling: p minimises sum_{i, j} (r_ji p_i - r_ij p_j)^2 with r_ij the probability of i in
                  the pair (Wu, Lin and Weng 2004, their second method)

With shared parameters the sum of the binary evidences is maximised over one vector; else each model has its
own. Models are fitted side by side on threads, since most of the time is spent in compiled code that lets
others run.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from gramian.data.inputs import Columns
from gramian.errors import ParameterError
from gramian.estimators import build, defaults
from gramian.estimators import latent as latents
from gramian.estimators.base import FEW_ROWS, generator
from gramian.fitting import FitOutcome, Objective
from gramian.fitting.lbfgs import Search, maximise
from gramian.fitting.progress import progress
from gramian.fitting.stages import Hold, parts
from gramian.inference import Data, Evidence, Model
from gramian.likelihoods import Bernoulli
from gramian.linalg.threads import count
from gramian.params.space import ParameterTable
from gramian.report import notes as health

if TYPE_CHECKING:
    from gramian.estimators.classifier import GPClassifier

Array = NDArray[np.float64]

VARIANCE = 4.0  # of the default kernel: probabilities from 0.02 to 0.98 within two standard deviations


def fit(gp: GPClassifier, table: Array, columns: Columns, codes: Array, began: float) -> None:
    """Fits the binary models and writes them, and what is known of them together, into the classifier."""
    if isinstance(gp.kernel, (list, tuple)):
        raise ParameterError(
            f"multiclass={gp.multiclass!r} takes one kernel for its binary models, not a list."
        )
    problems = _problems(gp, codes)
    given = build.given(gp)[0]
    kernel = given if given is not None else defaults.default_kernel(np.asarray(table), columns, VARIANCE)
    kernel.check_columns(columns.described())
    # the binary models see no names and no categories
    own = {"kernel": kernel.resolve(columns.names), "verbose": False}
    models = [clone(gp).set_params(**own, **_limits(gp, len(problems))) for _ in problems]
    start, search = (
        _together(gp, table, columns, problems, began) if gp.shared and gp.optimize else (None, None)
    )
    seeds = np.random.SeedSequence(
        None if gp.random_state is None else _seed(gp.random_state)
    ).generate_state(len(problems))

    def one(k: int) -> Any:
        rows, labels = problems[k]
        model = models[k].set_params(random_state=int(seeds[k] % 2**31))
        if start is not None:
            model.set_params(kernel=start.kernel.resolve(columns.names), mean=start.mean, optimize=False)
        return model.fit(np.asarray(table[rows]), labels)

    with progress(gp.verbose) as report:
        done = 0
        with ThreadPoolExecutor(min(count(), len(problems))) as pool:
            found = []
            for model in pool.map(one, range(len(problems))):
                found.append(model)
                done += 1
                report.share(done / len(problems))
    for name in ("posterior_", "_model_", "_method_", "_data"):
        if hasattr(gp, name):
            delattr(gp, name)
    gp.estimators_ = found
    kinds = {model.evidence_.kind for model in found}
    value = float(sum(model.evidence_.value for model in found))
    gp.evidence_ = Evidence(value, kinds.pop() if len(kinds) == 1 else "approximation")
    first = found[0]
    gp.kernel_, gp.mean_, gp.likelihood_, gp.theta_ = (
        first.kernel_,
        first.mean_,
        first.likelihood_,
        first.theta_,
    )
    how = "one-vs-rest" if gp.multiclass == "ovr" else "one-vs-one"
    notes = [
        f"{label}: {note}"
        for label, model in zip(names(gp), found, strict=True)
        for note in model.outcome_.notes
    ]
    if search is not None:
        # of the search, which the binary models had none of
        bounds = [f"{name}: {note}." for name, note in health.at_bounds(first._model_).items()]
        notes = health.search_notes(search) + bounds + notes
    gp.outcome_ = FitOutcome(
        method=first.outcome_.method,
        reason=(
            f"{len(found)} binary models, {how},"
            f" {'with shared parameters' if gp.shared else 'each with its own parameters'}"
        ),
        solver=first.outcome_.solver,
        stopped=_stopped(found) if search is None else search.stopped,
        iterations=sum(model.outcome_.iterations for model in found) if search is None else search.iterations,
        evaluations=(
            sum(model.outcome_.evaluations for model in found) if search is None else search.evaluations
        ),
        starts=first.outcome_.starts if search is None else search.starts,
        jitter=max(model.outcome_.jitter for model in found),
        seconds=time.monotonic() - began,
        notes=tuple(notes),
        stages=(),
    )


def _stopped(found: list[Any]) -> str:
    """How the searches ended: as all did, or as the first that did not converge."""
    return next(
        (model.outcome_.stopped for model in found if model.outcome_.stopped != "converged"), "converged"
    )


def parameters(gp: GPClassifier) -> ParameterTable:
    """Those of all binary models, each under its name; shared ones once."""
    if gp.shared:
        return gp.estimators_[0].parameters_
    named = zip(names(gp), gp.estimators_, strict=True)
    return ParameterTable(
        tuple(
            row._replace(name=f"{name}: {row.name}")
            for name, model in named
            for row in model.parameters_.rows
        )
    )


def log_evidence(gp: GPClassifier, theta: ArrayLike | None, return_grad: bool) -> Any:
    """The sum of the binary ones; at theta where they share their parameters."""
    if not gp.shared and (theta is not None or return_grad):
        raise ParameterError(
            f"Each of the {len(gp.estimators_)} binary models has parameters of its own: ask one of"
            " estimators_, or fit with shared=True."
        )
    found = [model.log_evidence(theta, return_grad) for model in gp.estimators_]
    return (
        (sum(value for value, _ in found), np.sum([slope for _, slope in found], axis=0))
        if return_grad
        else float(sum(found))
    )


def names(gp: GPClassifier) -> list[str]:
    """What each binary model tells apart."""
    labels = [str(label) for label in gp.classes_]
    if gp.multiclass == "ovr":
        return [f"{label} against the rest" for label in labels]
    return [f"{a} against {b}" for a, b in itertools.combinations(labels, 2)]


def probabilities(gp: GPClassifier, table: Array) -> Array:
    """(n, classes)."""
    found = np.stack([model.predict_proba(table)[:, 1] for model in gp.estimators_], axis=1)
    if gp.multiclass == "ovr":
        total = np.sum(found, axis=1, keepdims=True)
        return np.where(total > 0, found / np.where(total > 0, total, 1.0), 1 / found.shape[1])
    return coupled(found, len(gp.classes_))


def latent(gp: GPClassifier, table: Array) -> tuple[Array, Array]:
    """Mean and variance of each binary model's function: (n, models) each."""
    found = [model.predict_latent(table) for model in gp.estimators_]
    return np.stack([mean for mean, _ in found], axis=1), np.stack([var for _, var in found], axis=1)


def summary(gp: GPClassifier) -> str:
    """The binary models side by side."""
    outcome = gp.outcome_
    lines = [
        f"{type(gp).__name__}, {len(gp.classes_)} classes from {outcome.reason}",
        f"  evidence  {gp.evidence_}, in nats, the sum of the binary ones",
        f"  method    {outcome.method}; {outcome.solver}",
        f"  fit       {outcome.stopped}; {outcome.evaluations} evaluations, {outcome.seconds:.2f} s",
        "",
    ]
    width = max(map(len, names(gp)))
    lines += [
        f"  {name:<{width}}  {model.evidence_}  {model.kernel_}"
        for name, model in zip(names(gp), gp.estimators_, strict=True)
    ]
    if outcome.notes:
        lines += ["", "Notes"] + [f"  - {note}" for note in outcome.notes]
    return "\n".join(lines)


def coupled(pairs: Array, classes: int) -> Array:
    """Class probabilities from those of pairs: column k of `pairs` is that of the second class in the k-th
    pair of combinations(classes, 2)."""
    r = np.full((len(pairs), classes, classes), 0.5)
    for k, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        r[:, j, i] = np.clip(pairs[:, k], 1e-9, 1 - 1e-9)
        r[:, i, j] = 1 - r[:, j, i]
    # The quadratic form has Q_ii = sum_j r_ji^2 and Q_ij = -r_ji r_ij; its minimum on sum p = 1 is where Q p
    # is the same for all classes.
    Q = -r * np.swapaxes(r, 1, 2)
    off = ~np.eye(classes, dtype=bool)
    squares = np.sum(np.where(off, np.swapaxes(r, 1, 2) ** 2, 0.0), axis=2)
    Q[:, np.arange(classes), np.arange(classes)] = squares
    system = np.ones((len(pairs), classes + 1, classes + 1))
    system[:, :classes, :classes] = Q
    system[:, classes, classes] = 0.0
    right = np.zeros((len(pairs), classes + 1, 1))
    right[:, classes] = 1.0
    # positive by the theorem, but for rounding
    p = np.maximum(np.linalg.solve(system, right)[:, :classes, 0], 0.0)
    return p / np.sum(p, axis=1, keepdims=True)


# Fitting. ---------------------------------------------------------------------------------------------------


def _problems(gp: GPClassifier, codes: Array) -> list[tuple[NDArray[np.intp], NDArray[np.int64]]]:
    """The rows of each binary problem, and which of them are of its second class."""
    count = len(gp.classes_)
    if gp.multiclass == "ovr":
        return [(np.arange(len(codes)), (codes == c).astype(int)) for c in range(count)]
    pairs = []
    for i, j in itertools.combinations(range(count), 2):
        rows = np.flatnonzero((codes == i) | (codes == j))
        pairs.append((rows, (codes[rows] == j).astype(int)))
    return pairs


def _limits(gp: GPClassifier, models: int) -> dict[str, Any]:
    """A time limit is for all models together, of which some run at once."""
    return (
        {} if gp.time_limit is None else {"time_limit": float(gp.time_limit) * min(count(), models) / models}
    )


def _together(
    gp: GPClassifier, table: Array, columns: Columns, problems: list[Any], began: float
) -> tuple[Model, Search]:
    """One set of parameters, by the sum of the binary evidences."""
    likelihood = Bernoulli(gp.link)
    method, _ = latents.method_for(gp, likelihood, table.shape)
    if method.search == "none":
        raise ParameterError(
            "shared=True fits one set of parameters; chains sample them. Use shared=False with MCMC."
        )
    # too few rows for random features: dense
    method, _ = parts(method.searched, len(table), table.shape[1], 1, False)[-1]
    rng = generator(gp.random_state)
    kernel, model, data = build.build_latent(
        gp, likelihood, table, columns, problems[0][1].astype(float), None, VARIANCE
    )
    objectives = []
    for rows, labels in problems:
        part: Data = replace(data, X=np.asarray(table[rows]), Y=labels.astype(np.float64)[:, None])
        objectives.append(Objective(model, part, method.prepared(model, part, rng)))

    def total(theta: Array) -> tuple[float, Array]:
        value, gradient = 0.0, np.zeros(len(theta))
        for objective in objectives:
            evidence, slope = objective.evidence(np.concatenate([theta, objective.inference.free]))
            value, gradient = value + evidence.value, gradient + slope[: len(theta)]
        prior, prior_gradient = objectives[0].space.log_prior(theta)
        return value + prior, gradient + prior_gradient

    first = objectives[0]
    count = len(first.space.theta)
    restarts = gp.n_restarts if gp.n_restarts is not None else (1 if len(table) <= FEW_ROWS else 0)
    deadline = None if gp.time_limit is None else began + 0.7 * float(gp.time_limit)
    theta, limits = first.space.theta, first.limits[:count]
    holds = Hold.read(gp.stages, model)
    with progress(gp.verbose) as report:
        for hold in holds:
            theta = maximise(
                total,
                [theta],
                hold.limits(first.space, theta, limits),
                report,
                deadline,
                finish=False,
                iterations=hold.steps,
            ).theta
        search = maximise(
            total, [theta, *first.space.restarts(restarts, rng)], limits, report, deadline, finish=False
        )
    found = first.at(search.theta)
    named = kernel.with_parameters(list(found.kernel.parameters().values()))
    return Model(named, found.mean, found.likelihood), search


def _seed(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(2**31 - 1))
