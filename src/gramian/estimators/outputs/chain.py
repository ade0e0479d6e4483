"""The path of a chain: for each output its kernel of x, and what it makes of the outputs before it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gramian.arrays import Indices
from gramian.data.inputs import Columns, some_of
from gramian.estimators import build
from gramian.estimators.build import Built, default_kernel
from gramian.estimators.defaults import Choice
from gramian.estimators.outputs.paths import BEYOND, ROWS, Path, like_gaps, some_rows
from gramian.fitting.progress import Report
from gramian.inference import Conjugate, Data, Model, RuleOnEngine, Scheme
from gramian.inference.chained import Chained
from gramian.inference.model import Link
from gramian.kernels import Constant, Kernel, Linear, Matern12, Matern52, Scaled
from gramian.likelihoods import Gaussian
from gramian.means import ConstantMean, ZeroMean
from gramian.params import LogNormal, Parameter, fixed, param
from gramian.predictive import log_normal

if TYPE_CHECKING:
    from gramian.estimators.regressor import GPRegressor

CURVE = 0.02  # of the variance: what a curve of the outputs before it begins with, beside a line
SHORT = 0.1  # of the usual lengthscales: another place where a search begins
# the kernel of an output that is none of x, but for what the outputs before it are there
NOT_OF_X = Constant(fixed(1e-6))


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
