"""What layers are, and where a deep model begins.

    Layer       what a person writes: kernel, width, inducing points
    Shape       what becomes of it for a table: what each layer sees, and the means of the inner ones

An inner layer that is as wide as the table has numeric columns has the identity for its mean, and its outputs
take these columns' places: each layer then sees a table of the same form, and any kernel that suits the data
suits all layers. With inner functions that are zero the deep model is the shallow one. A narrower layer has
the principal components of what it sees for its mean, a wider one these beside zeros; its outputs come first
in what the next layer sees. Columns of categories, which no function can move, are handed on to all layers,
and so is all of the input to a layer above one that is narrower than the table, which would forget the rest.

Source: Salimbeni and Deisenroth 2017, section 3 (linear means); Duvenaud et al. 2014 (inputs for all layers).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramian.arrays import Array, is_whole
from gramian.deep.bound import Maps, Wiring
from gramian.engines.recipes import units_of
from gramian.errors import ParameterError
from gramian.inference.model import Deeper, Model
from gramian.kernels import RBF, Categorical, Kernel, Scaled
from gramian.params import LogNormal, param

WIDEST = 30  # an inner layer, where nobody says how wide it is
INNER = 0.01  # where the variance of inner functions begins, in units of their columns' variances
SPREAD = 1.5  # of the logarithm of a lengthscale or a variance, in its prior


@dataclass(frozen=True)
class Layer:
    """A layer of a deep model. `kernel`: of its functions, None: as the estimator's; `width`: how many of
    them an inner layer has, None: one a numeric column, 30 at most; `n_inducing`: its inducing points, None:
    as the estimator says."""

    kernel: Kernel | str | None = None
    width: int | None = None
    n_inducing: int | None = None

    def __post_init__(self) -> None:
        if not (self.kernel is None or isinstance(self.kernel, (Kernel, str))):
            raise ParameterError(f"Layer: kernel must be a kernel, its text or None, not {self.kernel!r}.")
        for name in ("width", "n_inducing"):
            value = getattr(self, name)
            if value is not None and not is_whole(value):
                raise ParameterError(f"Layer: {name}={value!r} must be a whole number from 1 on.")
            object.__setattr__(self, name, None if value is None else int(value))


class Shape(NamedTuple):
    """A deep model for a table."""

    wiring: tuple[Wiring, ...]
    maps: Maps
    centre: tuple[Array, ...]  # of the columns that each layer sees, and their spread
    spread: tuple[Array, ...]


def shape_of(X: Array, scale: Array, layers: Sequence[Layer], categories: Sequence[int]) -> Shape:
    """For these rows. The last layer's width is the number of functions, whatever it says."""
    d = X.shape[1]
    numeric = tuple(j for j in range(d) if j not in categories)
    centre, spread = units_of(X)
    wiring, centres, spreads = [Wiring(numeric, (), ())], [centre], [spread]
    A, c, t = [], [], []
    rows = np.asarray(X[:: max(1, len(X) // 10_000)], dtype=np.float64)[:, numeric]
    for layer in layers[:-1]:
        width = layer.width or min(max(len(numeric), 1), WIDEST)
        below = rows.shape[1]
        if width == below:
            A.append(np.eye(width))
            c.append(np.zeros(width))
            t.append(_deviations(rows))
        else:
            components, offset = _principal(rows, width)
            A.append(components)
            c.append(offset)
            t.append(np.ones(width))
        rows = rows @ A[-1] + c[-1]
        own = np.mean(rows, axis=0), _deviations(rows, t[-1])
        if width == len(numeric):
            passed = tuple(j for j in range(d) if j in categories)
            columns = (*numeric, *passed)
            order = tuple(columns.index(j) for j in range(d))
        else:
            passed = tuple(range(d)) if width < len(numeric) else tuple(categories)
            order = tuple(range(width + len(passed)))
        wiring.append(Wiring(numeric, passed, order))
        for found, mine, of_x in ((centres, own[0], centre), (spreads, own[1], spread)):
            found.append(np.concatenate([mine, of_x[list(passed)]])[list(order)])
    return Shape(tuple(wiring), Maps(tuple(A), tuple(c), tuple(t), scale), tuple(centres), tuple(spreads))


def alike(shape: Shape, d: int) -> tuple[bool, ...]:
    """Whether each layer sees a table of the form of the data."""
    first = shape.wiring[0]
    own = (
        k == 0 or (len(w.order) == d and sorted((*first.moved, *w.passed)) == list(range(d)))
        for k, w in enumerate(shape.wiring)
    )
    return tuple(own)


def pushed(shape: Shape, Z: Array) -> tuple[Array, ...]:
    """Points of the first layer as each layer sees them, where inner functions are zero."""
    found, h = [Z], Z[:, list(shape.wiring[0].moved)]
    for k, wiring in enumerate(shape.wiring[1:]):
        h = h @ shape.maps.A[k] + shape.maps.c[k]
        found.append(np.concatenate([h, Z[:, list(wiring.passed)]], axis=1)[:, list(wiring.order)])
    return tuple(found)


def deepened(
    start: Model,
    shallow: Model,
    shape: Shape,
    layers: Sequence[Layer],
    categories: Sequence[int],
    plain: bool = False,
) -> Model:
    """A model of several layers, from the shallow one before its fit (`start`) and after it: the last layer
    is the fitted one, inner layers have kernels as they were before, or where that is for us to say `plain`
    ones, of little variance."""
    d, kernels = len(shape.centre[0]), []
    same, numeric = alike(shape, d), len(categories) < d
    for k, layer in enumerate(layers):
        inner = k < len(layers) - 1
        if isinstance(layer.kernel, Kernel):
            kernels.append(layer.kernel)
        elif same[k] and not (plain and inner and numeric):
            kernels.append(_quiet(start.kernel) if inner else shallow.kernel)
        else:
            passed = shape.wiring[k].passed
            first = len(shape.centre[k]) - len(passed)
            codes = [j if same[k] else first + passed.index(j) for j in categories]
            kernels.append(_plain(shape.spread[k], codes, INNER if inner else 1.0))
    deeper = tuple(Deeper(kernel, 2 + k) for k, kernel in enumerate(kernels[1:]))
    return dataclasses.replace(shallow, kernel=kernels[0], deeper=deeper)


def _quiet(kernel: Kernel) -> Kernel:
    """A kernel of the same form, with little variance."""
    levels = kernel.levels()
    if levels is None:
        return Scaled(kernel, param(INNER, prior=LogNormal(float(np.log(INNER)), SPREAD)))
    mine = {id(level) for level in levels}
    return kernel.with_parameters(
        [
            dataclasses.replace(
                p, value=INNER * p.value, prior=LogNormal(float(np.log(INNER)), SPREAD), bounds=None
            )
            if id(p) in mine
            else p
            for p in kernel.parameters().values()
        ]
    )


def _plain(spread: Array, categories: Sequence[int], variance: float) -> Kernel:
    """For columns that no person has named: a lengthscale each, as distances in so many columns have it."""
    numeric = [j for j in range(len(spread)) if j not in categories]
    lengths = spread[numeric] * np.sqrt(len(numeric))
    kernel: Kernel = RBF(param(lengths, prior=LogNormal(tuple(map(float, np.log(lengths))), SPREAD)))
    if categories:
        kernel = kernel.on(*numeric) * Categorical(np.full(len(categories), 0.5)).on(*categories)
    return Scaled(kernel, param(variance, prior=LogNormal(float(np.log(variance)), SPREAD)))


def _principal(rows: Array, width: int) -> tuple[Array, Array]:
    """A (d, width) and c (width,) with which rows A + c are the principal components of the standardised
    rows, each of unit variance; zeros beyond the d-th."""
    A = np.zeros((rows.shape[1], width))
    if not rows.shape[1]:
        return A, np.zeros(width)
    centre, spread = np.mean(rows, axis=0), _deviations(rows)
    _, s, V = np.linalg.svd((rows - centre) / spread, full_matrices=False)
    count = min(width, int(np.sum(s > 1e-8 * s[0])))
    sizes = s[:count] / np.sqrt(len(rows))
    # the largest entry of each is positive: else its sign is that of rounding
    signs = np.sign(V[np.arange(count), np.argmax(np.abs(V[:count]), axis=1)])
    A[:, :count] = (V[:count] * signs[:, None]).T / spread[:, None] / sizes
    return A, -centre @ A


def _deviations(rows: Array, instead: Array | float = 1.0) -> Array:
    sd = np.std(rows, axis=0)
    return np.where(sd > 0, sd, instead)
