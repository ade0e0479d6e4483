"""Several outputs: each for itself, informing each other, or one after the other.

    independent   q functions with one kernel, each with its scale and noise
    coupled       f_k(x) = sum of weights times functions that all share, plus one of its own: a covariance
                  B between outputs, times a kernel of x (inference/coregional.py)
    chained       each output a function of x and of the outputs before it (inference/chained.py)
    auto          all three are fitted. Where outputs have gaps, entries that are like those that are missing
                  (the nearest that were seen) are held out, and the kind that gives them the highest density
                  is fitted again, to all: gaps beside each other are not foretold by what foretells single
                  rows. Without gaps the kind whose parameters' posterior is highest is taken: log p(Y) plus
                  the log density of the priors, which is what further parameters cost (`height_of`)

The paths on which the latter two find their kind, each step kept when it raises that height, or, in a chain,
the density of entries like those that are missing:

    warp      of each output by itself, a monotone map of y where that is clearly better (by CLEAR nats: what
              outputs have to do with each other is simplest in their own units); then held
    coupled   rank 1, 2, ... of B with a Matern-5/2 of x; a Matern-1/2 in its place; both, with a B each
    chained   for each output a Matern-5/2 or a Matern-1/2 of x; the outputs before it by a line, beside x or
              without; by a line and a curve

Paths are walked on some rows, and what they end with is then fitted on all.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gramian import clock
from gramian.arrays import Array, Indices
from gramian.clock import OutOfTime
from gramian.data.inputs import Columns, some_of, spread
from gramian.errors import NumericalError, ParameterError
from gramian.estimators import build
from gramian.estimators.build import Built, default_kernel, noise_parameter
from gramian.estimators.defaults import CLEAR, FEWEST, ON_PATH, Candidate, Choice, NumbersWalk, Walk
from gramian.estimators.fitted import Fitted
from gramian.fitting.lbfgs import Search, maximise
from gramian.fitting.objective import Objective
from gramian.fitting.progress import Report
from gramian.fitting.stages import worth
from gramian.inference import Conjugate, Data, Model, RuleOnEngine, Scheme
from gramian.inference.chained import Chained
from gramian.inference.model import Link
from gramian.kernels import Constant, Kernel, Linear, Matern12, Matern52, Scaled, Stationary
from gramian.kernels.coregion import Coregion, correlations
from gramian.likelihoods import Gaussian
from gramian.means import ConstantMean, ZeroMean
from gramian.params import LogNormal, Normal, Parameter, ParameterSpace, fixed, param
from gramian.predictive import log_normal
from gramian.warps import SinhArcsinh

if TYPE_CHECKING:
    from gramian.estimators.regressor import GPRegressor

WORDS = {
    "independent": "each for itself",
    "coupled": "they share functions",
    "chained": "each may depend on those before it",
    "auto": "the data choose among these",
}
RIVALS = ("independent", "chained", "coupled")  # of "auto"
JUDGED = 0.6  # of a time limit, for rivals that are held against each other
ENTRIES = 700  # of Y that a path of coupled outputs is walked on
ROWS = 600  # that a path of a chain is walked on
ITERATIONS = 60  # of a search on a path
BEYOND = 0.05  # of the variance: what a kernel of x begins with beside outputs that explain most
FEWEST_GAPS = 10  # entries of an output that are missing, for others like them to judge
MOST_JUDGES = 300  # of an output
CURVE = 0.02  # the same of a curve of these, beside a line
SHORT = 0.1  # of the usual lengthscales: another place where a search begins
OWN = 0.1  # of the variance of an output: what the prior takes for its own


# the kernel of an output that is none of x, but for what the outputs before it are there
NOT_OF_X = Constant(fixed(1e-6))


# The setting. -----------------------------------------------------------------------------------------------


def read_outputs(value: Any) -> tuple[str, tuple[Coregion, ...]]:
    """The setting `outputs`: a word, and what is between the outputs where that was given."""
    if isinstance(value, str) and value in WORDS:
        return value, ()
    given = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not given or not all(isinstance(one, Coregion) for one in given):
        words = ", ".join(f'"{word}" ({meaning})' for word, meaning in WORDS.items())
        raise ParameterError(f"outputs={value!r} is not known. Use {words}, or Coregion(rank=2).")
    return "coupled", given


def check_outputs(gp: GPRegressor, gaussian: bool) -> None:
    """Refuses outputs that inform each other where there is no way to do it."""
    kind, _ = read_outputs(gp.outputs)
    if kind != "independent" and (not gaussian or gp.hyper in ("mcmc", "average")):
        why = 'leave likelihood, inference and hyper="mcmc" or "average", or use outputs="independent"'
        raise ParameterError(f"outputs={gp.outputs!r} is of Gaussian noise in closed form: {why}.")


# What a fit begins with. ------------------------------------------------------------------------------------


def with_own_noises(gp: GPRegressor, built: Built) -> Built:
    """Each output with a noise of its own, however many there are: one factor serves them all."""
    sd = build.output_spread(built.rows.Y, False)
    given = build.noise_of(gp)
    if given is not None or built.rows.noise_var is not None or np.ndim(built.model.gaussian.noise.value):
        return built
    median = build.noise_median(len(built.rows.Y)) if gp.kernel is None else None
    noise = noise_parameter(None, sd**2, median, shared=False)
    return built._replace(model=dataclasses.replace(built.model, likelihood=Gaussian(noise)))


def between(built: Built, given: Sequence[Coregion], rank: int = 1, prior: bool = True) -> Built:
    """The model with a B, or those that were given, from where the correlations of the outputs are."""
    data = built.rows
    q = data.Y.shape[1]
    R = correlations(data.under(built.model).Y)
    found = [one.sized(q).started(R) for one in given] or [_believed(q, rank, prior).started(R)]
    return built._replace(model=dataclasses.replace(built.model, outputs=tuple(found)))


def _believed(q: int, rank: int, prior: bool) -> Coregion:
    """B with weak priors."""
    if not prior:
        return Coregion(q, rank)
    weights = param(Coregion(q, rank).weights.value, prior=Normal(0.0, 1.0))
    return Coregion(q, rank, weights, param(np.full(q, OWN), prior=LogNormal(float(np.log(OWN)), 2.0)))


def order_of(Y: Array) -> tuple[int, ...]:
    """Outputs that were seen more often first; as they came, where that is the same."""
    return tuple(np.argsort(-np.sum(np.isfinite(Y), axis=0), kind="stable").tolist())


def in_a_chain(built: Built) -> Built:
    """The model with a kernel for each output, and no links yet."""
    q = built.rows.Y.shape[1]
    model = dataclasses.replace(built.model, others=(built.model.kernel,) * (q - 1))
    return built._replace(model=_held_warp(model))


def _held_warp(model: Model) -> Model:
    """The same with a warp that stays: what links see is warped, too."""
    if model.warp is None:
        return model
    held = [fixed(p.value) for p in model.warp.parameters().values()]
    return dataclasses.replace(model, warp=model.warp.with_parameters(held))


# Warps. -----------------------------------------------------------------------------------------------------


class WarpWalk(NumbersWalk):
    """One output with the plain kernel: warped, or not."""

    @property
    def steps(self) -> Any:
        return (self._warped,)

    def _walked(self, plain: Candidate) -> Candidate:
        return Walk._walked(self, plain)


def warped(built: Built, columns: Columns, method: Scheme, report: Report) -> Built:
    """The model with a map of each output for which the evidence of that output by itself asks."""
    data, q = built.rows, built.rows.Y.shape[1]
    if data.noise_var is not None or built.model.warp is not None:
        return built
    numbers = {"skew": np.zeros(q), "tail": np.ones(q), "shift": np.zeros(q), "width": np.ones(q)}
    found = False
    for k in range(q):
        warp = _own_warp(built, columns, method, report, k)
        for name, values in numbers.items():
            if warp is not None:
                values[k], found = float(getattr(warp, name).value), True
    if not found:
        return built
    skew, tail, shift, width = map(fixed, numbers.values())
    warp = SinhArcsinh(skew, tail, shift, width).adapted(data.Y)
    return built._replace(model=dataclasses.replace(built.model, warp=warp))


def _own_warp(built: Built, columns: Columns, method: Scheme, report: Report, k: int) -> Any:
    """The warp of one output, or None."""
    data, model = built.rows, built.model
    seen = np.flatnonzero(np.isfinite(data.Y[:, k]))
    seen = seen[:: max(1, len(seen) // ROWS)]
    values, counts = np.unique(data.Y[seen, k], return_counts=True)
    if len(seen) < FEWEST or len(values) < 2 or counts.max() > 0.1 * len(seen):
        return None  # what was rounded would make a map as steep as one likes
    one = Data(np.asarray(data.X[seen]), data.Y[seen][:, [k]], data.scale[[k]])
    noise = float(np.ravel(np.broadcast_to(model.gaussian.variances(), data.scale.shape))[k])
    spread_of = float(np.nanvar(one.Y))
    own = param(noise, prior=LogNormal(float(np.log(max(0.1 * spread_of, 1e-300))), 2.0))
    middle = np.asarray(np.mean(one.Y))
    mean = ConstantMean(middle).adapted(one.X, middle, np.asarray(data.scale[k]))
    plain = Model(model.kernel, mean, Gaussian(own))
    walk = WarpWalk(columns, one, None, method.on_few_rows(), report, True)
    with contextlib.suppress(NumericalError, OutOfTime):
        choice = walk.choice(Built(built.kernel, plain, one))
        if choice is not None and walk.best.height > walk.tried[0].height + CLEAR:
            return choice.built.model.warp
    return None


# Paths. -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PathStep:
    """A model on a path, at its best parameters."""

    name: str
    built: Built
    height: float


class Path:
    """What is tried, one after the other."""

    def __init__(self, columns: Columns, report: Report) -> None:
        self.columns, self.report = columns, report
        self.searches: list[Search] = []

    @property
    def over(self) -> bool:
        """Whether there is no time for more, or somebody has stopped it."""
        return clock.over() or (bool(self.searches) and self.searches[-1].stopped == "interrupted")

    def best(self, model: Model, data: Data, scheme: Scheme) -> tuple[Model, float]:
        """A model at the best parameters that a short search finds, and how high that is; as it is, and not
        high, where there are none."""
        objective = Objective(model, data, scheme)
        if not objective.space.size:
            return model, float(objective.inference.evidence(model, data, objective.workspace).value)
        try:
            found = maximise(
                objective,
                [objective.start],
                objective.limits,
                self.report,
                finish=False,
                iterations=ITERATIONS,
                enough=worth(ON_PATH, data.Y.size),
            )
        except (NumericalError, OutOfTime):
            return model, -np.inf
        except KeyboardInterrupt:
            if not self.searches:
                raise  # nothing is known yet
            self.searches.append(dataclasses.replace(self.searches[-1], stopped="interrupted"))
            return model, -np.inf
        self.searches.append(found)
        return objective.at(found.theta), found.value


def like_gaps(X: Array, seen: NDArray[np.bool_], columns: Columns) -> Indices | None:
    """Of the rows at which an output was seen those that are most like the ones at which it was not, one for
    each of these, a third of all and MOST_JUDGES at most: the nearest that is left. Of a gap these are the
    rows beside it, of single entries their neighbours. None where there are too few of either."""
    gaps, rows = np.flatnonzero(~seen), np.flatnonzero(seen)
    if len(gaps) < FEWEST_GAPS or len(rows) < 3 * FEWEST_GAPS:
        return None
    numeric = [j for j in range(X.shape[1]) if j not in columns.categories] or list(range(X.shape[1]))
    Z = X[:, numeric] / spread(X[:, numeric])
    left = np.ones(len(rows), bool)
    order = np.random.default_rng(0).permutation(gaps)[: min(len(rows) // 3, MOST_JUDGES)]
    for gap in order:
        apart = np.where(left, np.sum((Z[rows] - Z[gap]) ** 2, axis=1), np.inf)
        left[int(np.argmin(apart))] = False
    return rows[~left]


def some_rows(data: Data, count: int, rng: np.random.Generator) -> Data:
    """So many rows at random, in their order; all where there are no more."""
    n = len(data.X)
    if n <= count:
        return data
    rows, seen = rng.choice(n, count, replace=False), np.isfinite(data.Y)
    # an output that no row shows would have nothing to say of its parameters
    unseen = np.flatnonzero(~seen[rows].any(axis=0))
    return data.take(np.union1d(rows, [int(np.argmax(seen[:, k])) for k in unseen]).astype(np.intp))


def coupled_choice(
    gp: GPRegressor, built: Built, columns: Columns, scheme: Scheme, rng: np.random.Generator, report: Report
) -> Choice | None:
    """Which B, and which kernel of x beside it."""
    _, given = read_outputs(gp.outputs)
    data, free = built.rows, gp.kernel is None
    q = data.Y.shape[1]
    prior = gp.hyper != "ml"
    some = some_rows(data, max(ENTRIES // q, 20), rng)
    few = scheme.on_few_rows()
    path = Path(columns, report)
    tried: list[PathStep] = []

    def step(name: str, start: Built) -> PathStep:
        model, height = path.best(start.model, some, few)
        tried.append(PathStep(name, start._replace(model=model), height))
        return tried[-1]

    def kernel_of(family: type[Stationary]) -> Kernel:
        # B has the variance
        made = default_kernel(np.asarray(some.X), columns, 1.0, family)
        scale, *others = made.parameters().values()
        return made.with_parameters([dataclasses.replace(scale, prior=None, trainable=False), *others])

    def with_kernel(start: Built, kernel: Kernel, outputs: tuple[Coregion, ...]) -> Built:
        model = dataclasses.replace(start.model, kernel=kernel.resolve(columns.names), outputs=outputs)
        return start._replace(kernel=kernel, model=model)

    begun = between(built, given, 1, prior)
    if free:
        begun = with_kernel(begun, kernel_of(Matern52), begun.model.outputs)
    names = "Matern-5/2" if free else "the kernel"
    best = step(f"{names}, rank {begun.model.outputs[0].rank}", begun)
    for rank in range(2, q + 1 if not given else 2):
        if path.over:
            break
        wider = _wider(best.built, prior)
        one = step(f"{names}, rank {rank}", wider)
        if not one.height > best.height:
            break
        best = one
    if free and len(best.built.model.outputs) == 1 and not path.over:
        outputs = best.built.model.outputs
        rough = step("Matern-1/2", with_kernel(best.built, kernel_of(Matern12), outputs))
        if not path.over and not given:
            small = tuple(_shrunk(one) for one in outputs)
            both = kernel_of(Matern52) + kernel_of(Matern12)
            first = best.built.model.kernel.parameters().values()
            resolved = both.resolve(columns.names)
            known = [*first, *list(resolved.parameters().values())[len(first) :]]
            model = dataclasses.replace(
                best.built.model, kernel=resolved.with_parameters(known), outputs=(*outputs, *small)
            )
            step("Matern-5/2 and Matern-1/2, each with its B", best.built._replace(kernel=both, model=model))
        best = max((best, rough, tried[-1]), key=lambda one: one.height)
    if not path.searches:
        return None
    rows = "all" if some is data else f"{len(some.X):,} of {len(data.X):,}"
    return Choice(best.built, tuple(path.searches), _told(best, tried, rows))


def _wider(built: Built, prior: bool) -> Built:
    """The model with one more shared function, along what the others explain least of."""
    (old,) = built.model.outputs
    T = built.rows.under(built.model).Y
    W = old.weights.value
    left = correlations(T) - W @ W.T / max(1.0, float(np.max(np.sum(W * W, axis=1))))
    vectors = np.linalg.eigh(left)[1]
    size = float(np.sqrt(np.mean(old.own.value) + 1e-3))
    more = vectors[:, [-1]] * np.sqrt(len(W)) * min(0.5, size)
    new = _believed(old.outputs, old.rank + 1, prior)
    weights, own = new.weights.with_value(np.hstack([W, more])), new.own.with_value(old.own.value)
    outputs = (dataclasses.replace(new, weights=weights, own=own),)
    return built._replace(model=dataclasses.replace(built.model, outputs=outputs))


def _shrunk(between: Coregion) -> Coregion:
    """A B of a little variance, where that of a second kernel begins."""
    W, own = between.weights, between.own
    small = W.with_value(np.sqrt(BEYOND) * W.value), own.with_value(BEYOND * np.maximum(own.value, OWN))
    return dataclasses.replace(between, weights=small[0], own=small[1])


def _told(best: PathStep, tried: Sequence[PathStep], rows: str) -> tuple[str, ...]:
    first = f"model by the height of its parameters' posterior, on {rows} rows: {best.name}"
    others = [(one.height - best.height, one.name) for one in tried if one is not best]
    listed = "; ".join(f"{name} {gain:+.2g}" for gain, name in sorted(others, reverse=True))
    return (first, f"others, in nats: {listed}") if others else (first,)


def chained_choice(
    gp: GPRegressor, built: Built, columns: Columns, scheme: Scheme, rng: np.random.Generator, report: Report
) -> Choice | None:
    """For each output its kernel of x, and what it makes of the outputs before it."""
    assert isinstance(scheme, Chained)
    data, free = built.rows, gp.kernel is None
    q, order = data.Y.shape[1], scheme.order
    some = some_rows(data, ROWS, rng)
    path, lines = Path(columns, report), []
    own = Links(gp, path, built, some, scheme, free)
    for place in range(q):
        if path.over:
            break
        lines.append(own.link(place))
    if not path.searches:
        return None
    rows = "all" if some is data else f"{len(some.X):,} of {len(data.X):,}"
    names = _names(columns, q)
    head = f"chain, on {rows} rows: {', '.join(names[k] for k in order)}"
    kernel = own.model.kernel if free else built.kernel  # of the first output as the path has left it
    made = Built(kernel, own.model, built.rows)
    return Choice(made, tuple(path.searches), (head, *lines))


class Links:
    """A chain in the making: `model` has all outputs, of which those up to a place are found."""

    def __init__(
        self, gp: GPRegressor, path: Path, built: Built, data: Data, scheme: Chained, free: bool
    ) -> None:
        self.gp, self.path, self.data, self.free = gp, path, data, free
        self.model, self.kernel = built.model, built.kernel
        self.judges: Indices | None = None  # rows of an output that are held out, where it has gaps
        self.scheme = dataclasses.replace(scheme.on_few_rows(), filled=None, engines=())
        T = data.under(built.model).Y
        centre = np.nanmean(T, axis=0)
        self.scheme = dataclasses.replace(self.scheme, centre=centre)
        self.Z = (T - centre) / data.scale  # with gaps up to where the chain is found

    def link(self, place: int) -> str:
        """Finds one more output."""
        order, k, path = self.scheme.order, self.scheme.order[place], self.path
        names = _names(path.columns, len(order))
        judges = like_gaps(np.asarray(self.data.X), np.isfinite(self.data.Y[:, k]), path.columns)
        self.judges = judges
        tried = [self._searched(place, "of x alone", kernel, None) for kernel in self._of_x(1.0)]
        if place and not path.over:
            line = self._line(place)
            tried += [self._searched(place, "by a line", kernel, line) for kernel in self._of_x(BEYOND)]
            if self.free:
                tried.append(self._searched(place, "by a line alone", NOT_OF_X, line))
            best = max(tried, key=lambda one: one.height)
            if best.link is not None and not path.over:
                curve = best.link + self._curve(place)
                name = best.name.replace("a line", "a line and a curve")
                tried.append(self._searched(place, name, best.kernel, curve))
        best = max(tried, key=lambda one: one.height)
        found = best
        if judges is not None:  # with them, once more
            self.judges = None
            found = self._searched(place, best.name, best.kernel, best.link)
        self._take(k, place, found)
        missing = np.flatnonzero(np.isnan(self.Z[:, k]))
        if len(missing) and place < len(order) - 1:
            again = self.scheme.piece(self.model, self.data, self.Z, place)
            table = self.scheme.table(self.data.X, self.Z, place, self.model)[missing]
            process = again.scheme.infer(again.model, again.data).posterior
            m = self.scheme.level(self.model, self.data)[missing, k]
            self.Z[missing, k] = m + process.mean(table)[:, 0]
        if best.link is None:
            return f"{names[k]}: {best.name}"
        heights: dict[str, float] = {}
        for one in tried:
            heights[one.name] = max(one.height, heights.get(one.name, -np.inf))
        told = [f"{name} {high - best.height:+.2g}" for name, high in heights.items() if name != best.name]
        before = some_of([names[j] for j in order[:place]], 4)
        by = "" if judges is None else f" by {len(judges)} entries beside its gaps"
        of_x = "" if best.kernel is NOT_OF_X else "of x, and "
        return f"{names[k]}: {of_x}of {before} {best.name} ({'; '.join(told)}, in nats{by})"

    def _of_x(self, variance: float) -> list[Kernel]:
        """Kernels of x, as many as a search is to begin with."""
        if not self.free:
            given = self.model.kernel
            small = {id(p): p.with_value(variance * p.value) for p in given.levels() or () if p.trainable}
            fewer = given.with_parameters([small.get(id(p), p) for p in given.parameters().values()])
            return [given, fewer] if variance < 1 and small else [given]
        X, columns = np.asarray(self.data.X), self.path.columns
        pairs = ((Matern52, 1.0), (Matern52, SHORT), (Matern12, 1.0))
        made = (default_kernel(X, columns, 1.0, family, shorter) for family, shorter in pairs)
        return [_begun(kernel, variance).resolve(columns.names) for kernel in made]

    def _line(self, place: int) -> Kernel:
        """Straight lines of the outputs before it, which are in units of their spread."""
        return Scaled(Linear(fixed(1.0)), param(1 / place, prior=LogNormal(float(-np.log(place)), 1.5)))

    def _curve(self, place: int) -> Kernel:
        length = float(np.sqrt(place))
        curve = Matern52(param(length, prior=LogNormal(float(np.log(length)), 1.5)))
        return Scaled(curve, param(CURVE, prior=LogNormal(float(np.log(BEYOND)), 1.5)))

    def _searched(self, place: int, name: str, kernel: Kernel, link: Kernel | None) -> Found:
        """An output with these kernels, at the best parameters."""
        k, data = self.scheme.order[place], self.data
        trial = self._with(place, kernel, link)
        if self.judges is not None:
            data = dataclasses.replace(data, Y=data.Y.copy())
            data.Y[self.judges, k] = np.nan
        one = self.scheme.piece(trial, data, self.Z, place)
        free = self.gp.mean == "constant"
        mean = ConstantMean(0.0) if free else ZeroMean()
        added = None if data.added_noise is None else data.added_noise / data.scale[k] ** 2
        rows = dataclasses.replace(one.data, noise_var=None if added is None else added[one.rows])
        own = _entry(self.model.gaussian.noise, k, float(data.scale[k] ** 2))
        rule = RuleOnEngine(Conjugate(), self.scheme.engine)
        model, height = self.path.best(Model(one.model.kernel, mean, Gaussian(own)), rows, rule)
        if self.judges is not None and np.isfinite(height):
            held = self.scheme.piece(trial, self.data, self.Z, place)
            at = np.flatnonzero(np.isin(held.rows, self.judges))
            f, var = rule.infer(model, rows).posterior.moments(held.data.X[at])
            var = var + float(model.gaussian.noise.value)
            var += 0.0 if added is None else added[held.rows[at]][:, None]
            height = float(np.sum(log_normal(held.data.Y[at], f, var)))
        values = list(model.kernel.parameters().values())
        x = kernel if kernel is NOT_OF_X else kernel.with_parameters(values[: one.of_x])
        z = None if link is None else link.with_parameters(values[one.of_x :])
        level = float(model.mean.parameters()["value"].value) if free else 0.0
        return Found(height, name, x, z, float(model.gaussian.noise.value), level)

    def _with(self, place: int, kernel: Kernel, link: Kernel | None) -> Model:
        """The model with these kernels of an output."""
        model, k = self.model, self.scheme.order[place]
        kernels = [model.kernel, *model.others]
        kernels[k] = kernel
        links = tuple(one for one in model.links if one.number != place + 1)
        links = links if link is None else (*links, Link(link, place + 1))
        return dataclasses.replace(model, kernel=kernels[0], others=tuple(kernels[1:]), links=links)

    def _take(self, k: int, place: int, found: Found) -> None:
        """The model with what was found of an output."""
        model, s = self._with(place, found.kernel, found.link), self.data.scale[k]
        noise, values = model.gaussian.noise, {}
        if noise.trainable and noise.value.ndim:
            each = noise.value.copy()
            each[k] = found.noise * s**2
            values["noise"] = np.clip(each, *noise.box) if noise.bounds is not None else each
        if found.level:
            each = model.mean.parameters()["value"].value.copy()
            each[k] += found.level * s
            values["mean.value"] = each
        self.model = model.with_values(values)


@dataclass(frozen=True)
class Found:
    """An output of a chain."""

    height: float
    name: str
    kernel: Kernel  # of x
    link: Kernel | None  # of the outputs before it
    noise: float  # in units of the output's scale squared
    level: float  # of its mean, in units of its scale


def _begun(kernel: Kernel, variance: float) -> Kernel:
    """A default kernel whose scale begins elsewhere than its prior's median."""
    scale, *others = kernel.parameters().values()
    return kernel.with_parameters([scale.with_value(np.full_like(scale.value, variance)), *others])


def _entry(noise: Parameter, k: int, unit: float) -> Parameter:
    """The noise of one output, in units of its scale squared, with weak beliefs where all have some."""
    value = float(noise.value[k] if noise.value.ndim else noise.value) / unit
    if not noise.trainable:
        return fixed(value)
    prior = None if noise.prior is None else LogNormal(float(np.log(build.NOISE_MEDIAN)), 2.0)
    if noise.bounds is None:
        return param(value, prior=prior)
    low, high = (
        float(np.broadcast_to(end, noise.value.shape).flat[k if noise.value.ndim else 0]) for end in noise.box
    )
    return param(value, prior=prior, bounds=(low / unit, high / unit))


def _names(columns: Columns, q: int) -> list[str]:
    return list(columns.targets) if len(columns.targets) == q else [f"output {k}" for k in range(q)]


# The best of several. ---------------------------------------------------------------------------------------


def height_of(fitted: Fitted) -> float:
    """log p(Y), less what its parameters cost: the log density of their priors, and half the logarithm of
    the entries of Y for each number that has none (Schwarz 1978)."""
    free = ParameterSpace(fitted.model.parameters()).trainable.values()
    plain = sum(p.value.size for p in free if p.prior is None)
    entries = int(np.sum(np.isfinite(fitted.rows.Y)))
    return float(fitted.evidence.value + fitted.log_prior() - 0.5 * plain * np.log(entries))


def highest(found: Sequence[tuple[str, Fitted]]) -> Fitted:
    """The best of several fits to the same Y, which says so."""
    heights = [height_of(fitted) for _, fitted in found]
    at = int(np.argmax(heights))
    line = _compared([word for word, _ in found], heights, at, "the height of the parameters' posterior")
    return found[at][1].chosen_by(line)


def like_all_gaps(data: Data, columns: Columns) -> NDArray[np.bool_] | None:
    """Entries of Y that are like those that are missing, (n, q); None where too few are."""
    held, X = np.zeros(data.Y.shape, bool), np.asarray(data.X)
    for k in range(data.Y.shape[1]):
        rows = like_gaps(X, np.isfinite(data.Y[:, k]), columns)
        if rows is not None:
            held[rows, k] = True
    return held if held.any() else None


def without(built: Built, held: NDArray[np.bool_]) -> Built:
    """The same as if these entries had not been observed."""
    Y = np.where(held, np.nan, built.rows.Y)
    seen = np.isfinite(Y).any(axis=1)
    rows = dataclasses.replace(built.rows, Y=Y)
    return built._replace(rows=rows if seen.all() else rows.take(np.flatnonzero(seen)))


def judged(found: Sequence[tuple[str, Fitted]], data: Data, held: NDArray[np.bool_]) -> tuple[str, str]:
    """The kind that gives entries that were held out the highest density, and a line that says so."""
    densities = []
    rows = np.flatnonzero(held.any(axis=1))
    for _, fitted in found:
        foretold = fitted.predictive(np.asarray(data.X[rows]))
        each = [
            foretold.output(k).log_density(
                np.where(held[rows, k], data.Y[rows, k], np.nan_to_num(data.Y[rows, k]))
            )
            for k in range(held.shape[1])
        ]
        densities.append(float(np.sum(np.stack(each, axis=1)[held[rows]])))
    at = int(np.argmax(densities))
    count = int(held.sum())
    line = _compared(
        [word for word, _ in found], densities, at, f"the density of {count:,} entries beside gaps"
    )
    return found[at][0], line


def _compared(words: Sequence[str], values: Sequence[float], at: int, by: str) -> str:
    others = [(values[j] - values[at], words[j]) for j in range(len(words)) if j != at]
    listed = "; ".join(f"{word} {gain:+.3g}" for gain, word in sorted(others, reverse=True))
    return f"outputs {words[at]}, by {by}" + (f"; others, in nats: {listed}" if others else "")
