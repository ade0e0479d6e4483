r"""Deep kernels: k(x, z) = base(g(x), g(z)) with a network g whose weights are parameters as all others.

    MLP     layers of tanh units for the columns of a table, the last one linear
    CNN     3 x 3 convolutions with averages over 2 x 2 pixels between them, the last layer linear
    Plain   no network: the columns, each in units of its spread

Weights are in units of 1 / sqrt(inputs of the unit), with a prior Normal(0, 1): a network as it is drawn
before training, whose features have about unit variance. Columns are centred and scaled first, by numbers
that a fit takes from its rows, so that results do not depend on units.

The evidence of thousands of weights can be raised by making rows of one label equal and nothing else (Ober,
Rasmussen and van der Wilk 2021). So a deep kernel names its rivals, and a fit takes it only where it
foretells rows that were held out better than they do (estimators/guard.py).

Source: Wilson, Hu, Salakhutdinov and Xing 2016.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.kernels.base import Column, Inward, Kernel
from gramian.kernels.dot_product import Linear
from gramian.kernels.images import check_image, height_and_width, sides
from gramian.params import Normal, Parameter, Positive, Real, Tree, Value, fixed, param, positive, real
from gramian.params.tree import whole_number

WORK_OF_A_VALUE = 5000  # multiplications for a row that take as long as a value more for each row of a tile
SPREADS = 64  # up to so many columns the kernel without a network learns how much each of them counts


class Network(Tree):
    """A function of rows with parameters: (n, inputs) -> (n, outputs), written in JAX. Subclass it with
    declared parameters, `inputs`, `outputs` and `features` to make your own."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """How many columns a row has."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many numbers it makes of them."""

    @abstractmethod
    def features(self, X: jax.Array) -> jax.Array:
        """(n, columns) -> (n, outputs)."""

    def suited(self, X: Array) -> Self:
        """The same, before it is trained, for rows like these: in their units."""
        return self

    @property
    def trained(self) -> bool:
        """Whether a fit changes what it is, so that a kernel on it has to beat its rivals."""
        return any(p.trainable for p in self.parameters().values())

    @property
    def work(self) -> float:
        """Multiplications for a row."""
        return float(sum(p.value.size for p in self.parameters().values()))

    def formula(self, digits: int | None = None) -> str:
        """As it is written, but for weights: there are too many of them."""
        parts = []
        for field in sorted(dataclasses.fields(self), key=lambda field: bool(field.kw_only)):
            value = getattr(self, field.name)
            if "support" not in field.metadata and value != field.default:
                parts.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __repr__(self) -> str:
        return self.formula()


class Plain(Network):
    """No network: each column less its centre, in units of its spread and of sqrt(columns / outputs)."""

    inputs: int
    size: float = 1.0  # of all features, against columns of unit variance
    centre: Value = real(0.0)
    spread: Value = positive(1.0)

    trained = False

    @property
    def columns(self) -> int:
        return self.inputs

    @property
    def outputs(self) -> int:
        return self.inputs

    def features(self, X: jax.Array) -> jax.Array:
        return self.size * (X - self.centre) / self.spread


class Trained(Network):
    """A network with one vector of weights, drawn with a seed, of standardised columns."""

    seed: int = dataclasses.field(default=0, kw_only=True)
    weights: Value = dataclasses.field(default=None, kw_only=True, metadata={"support": Real()})
    centre: Value = dataclasses.field(default=None, kw_only=True, metadata={"support": Real()})
    spread: Value = dataclasses.field(default=None, kw_only=True, metadata={"support": Positive()})

    def __post_init__(self) -> None:
        own = type(self).__name__
        object.__setattr__(self, "seed", whole_number(self.seed, f"{own}: seed", 0))
        count = sum((fan + 1) * units for fan, units in self._shapes())
        if self.weights is None:
            drawn = np.random.default_rng(self.seed).standard_normal(count)
            object.__setattr__(self, "weights", param(drawn, prior=Normal(0.0, 1.0)))
        if self.centre is None:
            object.__setattr__(self, "centre", fixed(0.0))
        if self.spread is None:
            object.__setattr__(self, "spread", fixed(1.0))
        super().__post_init__()
        if self.weights.value.shape != (count,):
            raise ParameterError(
                f"{own} has {count} weights and biases, but {self.weights.value.shape} were given. Leave"
                " weights out: they are drawn with the seed."
            )

    @abstractmethod
    def _shapes(self) -> list[tuple[int, int]]:
        """Of each layer, the inputs of a unit and how many units there are."""

    def suited(self, X: Array) -> Self:
        centre, spread = _units(X)
        return dataclasses.replace(self, centre=fixed(centre), spread=fixed(spread))

    def _layers(self) -> list[tuple[jax.Array, jax.Array]]:
        """The matrix (inputs, units) and the biases (units,) of each layer."""
        found, at = [], 0
        for fan, units in self._shapes():
            W = self.weights[at : at + fan * units].reshape(fan, units) / fan**0.5
            found.append((W, self.weights[at + fan * units : at + (fan + 1) * units]))
            at += (fan + 1) * units
        return found


class MLP(Trained):
    """A small network for the columns of a table: layers of tanh units, as many as `widths` says, the last
    one linear: its outputs are what the kernel sees."""

    inputs: int
    widths: tuple[int, ...] = (32, 2)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", whole_number(self.inputs, "MLP: inputs", 1))
        given = self.widths if isinstance(self.widths, (tuple, list)) else (self.widths,)
        if not given:
            raise ParameterError("MLP: widths must name one layer at least: MLP(inputs, (32, 2)).")
        object.__setattr__(self, "widths", tuple(whole_number(w, "MLP: widths", 1) for w in given))
        super().__post_init__()

    @property
    def columns(self) -> int:
        return self.inputs

    @property
    def outputs(self) -> int:
        return self.widths[-1]

    def _shapes(self) -> list[tuple[int, int]]:
        return list(zip((self.inputs, *self.widths[:-1]), self.widths, strict=True))

    def features(self, X: jax.Array) -> jax.Array:
        A = (X - self.centre) / self.spread
        *inner, (W, b) = self._layers()
        for V, c in inner:
            A = jnp.tanh(A @ V + c)
        return A @ W + b


class CNN(Trained):
    """A small network for images: 3 x 3 convolutions with as many `filters` each, averages over 2 x 2 pixels
    between them, and a linear layer to `units` outputs."""

    image: int | tuple[int, int] = (28, 28)
    channels: int = 1
    filters: tuple[int, ...] = (8, 16)
    units: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "image", height_and_width(self.image, "CNN: image"))
        object.__setattr__(self, "channels", whole_number(self.channels, "CNN: channels", 1))
        given = self.filters if isinstance(self.filters, (tuple, list)) else (self.filters,)
        object.__setattr__(self, "filters", tuple(whole_number(f, "CNN: filters", 1) for f in given))
        object.__setattr__(self, "units", whole_number(self.units, "CNN: units", 1))
        least = 2 ** len(self.filters)
        if not self.filters or min(sides(self.image)) < least:
            raise ParameterError(
                f"CNN: {len(self.filters)} layers of filters halve an image as often, which has"
                f" {self.image} pixels. Give one layer at least, and at most as many as leave a pixel."
            )
        super().__post_init__()

    @property
    def columns(self) -> int:
        height, width = sides(self.image)
        return height * width * self.channels

    @property
    def outputs(self) -> int:
        return self.units

    @property
    def work(self) -> float:
        height, width = sides(self.image)
        shapes = self._shapes()[:-1]
        return float(sum(fan * units * height * width / 4**k for k, (fan, units) in enumerate(shapes)))

    def _shapes(self) -> list[tuple[int, int]]:
        (height, width), count = sides(self.image), len(self.filters)
        left = (height >> count) * (width >> count) * self.filters[-1]
        inputs = (self.channels, *self.filters[:-1])
        shapes = [(9 * fan, units) for fan, units in zip(inputs, self.filters, strict=True)]
        return [*shapes, (left, self.units)]

    def suited(self, X: Array) -> Self:
        # one number for all pixels: those that never change are no more important than others
        centre, spread = float(np.mean(X)), float(np.std(X))
        return dataclasses.replace(self, centre=fixed(centre), spread=fixed(spread or 1.0))

    def features(self, X: jax.Array) -> jax.Array:
        A = ((X - self.centre) / self.spread).reshape(X.shape[0], *sides(self.image), self.channels)
        *inner, (W, b) = self._layers()
        for V, c in inner:
            filters = V.reshape(3, 3, A.shape[3], -1)
            A = jax.lax.conv_general_dilated(
                A, filters, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            A = jax.nn.silu(A + c)
            n, height, width, units = A.shape
            A = A[:, : height // 2 * 2, : width // 2 * 2]
            A = A.reshape(n, height // 2, 2, width // 2, 2, units).mean(axis=(2, 4))
        return A.reshape(X.shape[0], -1) @ W + b


class DeepKernel(Inward):
    """base(g(x), g(z)): a kernel on the outputs of a network, trained with the evidence like any parameter,
    and taken by a fit only where it foretells held-out rows better than the base without a network and than
    the network with a linear head."""

    base: Kernel
    network: Network

    takes_numbers = True

    def __post_init__(self) -> None:
        if not isinstance(self.base, Kernel):
            raise ParameterError(f"DeepKernel needs a kernel for the features, not {self.base!r}.")
        if not isinstance(self.network, Network):
            raise ParameterError(
                f"DeepKernel needs a network, such as MLP(inputs=5) or CNN(image=(28, 28)), not"
                f" {self.network!r}."
            )
        self.base.check_columns([Column(f"feature {j}") for j in range(self.network.outputs)])
        super().__post_init__()

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return self.base.pair(self.network.features(x[None, :])[0], self.network.features(z[None, :])[0])

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        return self.base.cross(self.network.features(X), self.network.features(Z))

    def diagonal(self, X: jax.Array) -> jax.Array:
        return self.base.diagonal(self.network.features(X))

    @property
    def low_precision(self) -> bool:
        return self.base.low_precision

    def effort(self, d: int, points: bool = False) -> float:
        return self.base.effort(self.network.outputs) + self.network.work / WORK_OF_A_VALUE

    def levels(self) -> list[Parameter] | None:
        return self.base.levels()

    def check_columns(self, columns: Sequence[Column]) -> None:
        self._check_numeric(columns)
        expected, image = self.network.columns, getattr(self.network, "image", None)
        if image is not None:
            check_image(self, sides(image), getattr(self.network, "channels", 1), len(columns))
        elif len(columns) != expected:
            raise ParameterError(
                f"The network {self.network} is for {expected} columns, but the data have {len(columns)}."
                f" Give {type(self.network).__name__}({len(columns)}, ...)."
            )

    def suited(self, X: Array, names: Sequence[str]) -> DeepKernel:
        return dataclasses.replace(self, network=self.network.suited(X))

    def rivals(self, X: Array, names: Sequence[str]) -> tuple[tuple[str, Kernel], ...]:
        if not self.network.trained:
            return ()
        d, p = self.network.columns, self.network.outputs
        centre, spread = _units(X)
        learned = param(spread) if d <= SPREADS else fixed(spread)
        plain = Plain(d, float(np.sqrt(p / d)), fixed(centre), learned)
        head = DeepKernel(Linear(1.0 / p), self.network)
        return (
            ("the kernel without its network", DeepKernel(alike(self.base, p), plain)),
            ("the network with a linear head", head),
        )

    def formula(self, digits: int | None = None) -> str:
        return f"DeepKernel({self.base.formula(digits)}, {self.network.formula(digits)})"


def alike(kernel: Kernel, columns: int) -> Kernel:
    """The kernel with one number in place of one a column."""
    fields = [name for name in kernel.one_a_column if getattr(kernel, name).value.shape == (columns,)]
    means = {name: float(np.exp(np.mean(np.log(getattr(kernel, name).value)))) for name in fields}
    changed = dataclasses.replace(kernel, **means) if means else kernel
    return changed.rebuilt(lambda part: alike(part, columns))


def _units(X: Array) -> tuple[Array, Array]:
    """The centre and the spread of each column."""
    spread = np.std(X, axis=0)
    return np.mean(X, axis=0), np.where(spread > 0, spread, 1.0)
