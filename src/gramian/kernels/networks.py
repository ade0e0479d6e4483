r"""The covariance of infinitely wide networks with rectified linear units: DenseNet for tables, ConvNet and
ResNet for images.

With weights N(0, variance / number of inputs) and biases N(0, bias), what a unit adds up before its ramp is a
Gaussian process as layers become wide, with the covariance

    K'(x, z) = bias + variance A(x, z),    A(x, z) = E max(0, u) max(0, v),    (u, v) ~ N(0, K at x and z)

and A(x, z) = |x||z| J_1(angle) / 2 pi, where |x|^2 = K(x, x) and cos(angle) = K(x, z) / |x||z| (Cho and Saul
2009; Lee et al. 2018). In a convolutional network each position of the image has its own K, and A is averaged
over the filter around it, with zeros outside the image; the last layer averages over all positions
(Garriga-Alonso, Rasmussen and Aitchison 2019). A residual layer adds its K to the one before.

What goes from layer to layer here is not K(x, z), but the squared distance R = K(x, x) + K(z, z) - 2 K(x, z),
which has no bias in it, adds up over filters like K, and is exactly 0 for equal rows. With
t = sin^2(angle / 2) = (R - (|x| - |z|)^2) / 4|x||z|, that of the units is

    A(x, x) + A(z, z) - 2 A(x, z) = R / 2 - |x||z| h(t),    h = (sin(angle) - angle cos(angle)) / pi

so that rows that are nearly equal lose no digits, in values and in gradients.

h is s^3 times a power series in s^2 with s = sin(angle / 2), for angles up to a right one; the others follow
from h(pi - angle) = h(angle) + cos(angle). A polynomial of 20 terms has it to rounding, and takes a sixth of
the time of an arc tangent. Cost of a value: DenseNet depth of them, ConvNet depth times the positions (28 x
28 images, depth 7: 30 microseconds).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import comb
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from gramian.kernels.base import Column, Kernel
from gramian.kernels.distance import root, squared_distances
from gramian.kernels.images import check_image, height_and_width, in_blocks, sides
from gramian.params import Value, nonnegative, positive
from gramian.params.tree import whole_number

MOST_LAYERS = 1000  # beyond, all correlations are 1 to rounding
TERMS, SERIES = 20, 100
LANES = 128  # rows of Z at a time: their layers stay in a cache of 1 MB


class DenseNet(Kernel):
    """An infinite network of `depth` layers of ramps for the columns of a table: ArcCosine(1), again and
    again. `inputs` is the variance of the first weights, one number or one a column."""

    depth: int = 3
    inputs: Value = positive(1.0)
    variance: Value = positive(2.0)  # times the number of units: that of the weights between layers
    bias: Value = nonnegative(0.1)

    low_precision = True
    takes_numbers = True
    one_number = ("variance", "bias")
    one_a_column = ("inputs",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", whole_number(self.depth, "DenseNet: depth", 1, MOST_LAYERS))
        super().__post_init__()

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        R = jnp.sum(self.inputs * (x - z) ** 2)
        return self._of(self._squares(x[None, :])[:, 0], self._squares(z[None, :])[:, 0], R)

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        R = squared_distances(X, Z, 1 / jnp.sqrt(self.inputs))
        return self._of(self._squares(X)[:, :, None], self._squares(Z)[:, None, :], R)

    def diagonal(self, X: jax.Array) -> jax.Array:
        return self._squares(X)[-1]

    def effort(self, d: int, points: bool = False) -> float:
        return self.depth

    def _squares(self, X: jax.Array) -> jax.Array:
        """K(x, x) before each layer and, last, after all: (depth + 1, n)."""
        K = self.bias + jnp.sum(self.inputs * X**2, axis=1)

        def layer(K: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            return self.bias + self.variance * K / 2, K

        last, before = jax.lax.scan(layer, K, None, length=self.depth)
        return jnp.concatenate([before, last[None]])

    def _of(self, K_x: jax.Array, K_z: jax.Array, R: jax.Array) -> jax.Array:
        """K(x, z) from the squares of both rows, and the squared distance of the first layer."""
        norms = root(K_x[:-1]), root(K_z[:-1])

        def layer(R: jax.Array, norms: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            return self.variance * rectified(R, *norms), None

        return product(jax.lax.scan(layer, R, norms)[0], root(K_x[-1]), root(K_z[-1]))


class ImageNetwork(Kernel):
    """What the networks of images share: `depth` convolutions with a filter and ramps, and a last layer over
    all positions. A row is an image: its pixels line by line, the channels of a pixel side by side."""

    depth: int
    image: int | tuple[int, int]
    channels: int = 1
    filter: int | tuple[int, int] = (3, 3)
    variance: Value = positive(2.0)  # times the number of inputs of a unit: that of the weights
    bias: Value = nonnegative(0.1)

    low_precision = True
    takes_numbers = True
    one_number = ("variance", "bias")

    def __post_init__(self) -> None:
        own = type(self).__name__
        object.__setattr__(self, "depth", whole_number(self.depth, f"{own}: depth", 1, MOST_LAYERS))
        object.__setattr__(self, "image", height_and_width(self.image, f"{own}: image"))
        object.__setattr__(self, "channels", whole_number(self.channels, f"{own}: channels", 1))
        object.__setattr__(self, "filter", height_and_width(self.filter, f"{own}: filter"))
        super().__post_init__()

    @property
    @abstractmethod
    def kept(self) -> float:
        """Of what comes into a layer, how much is added to what comes out of it."""

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return self.cross(x[None, :], z[None, :])[0, 0]

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        images, squares = self._images(X), self._squares(X)  # (n, channels, height, width), (n, depth, ...)
        norms, own = root(squares[0]), squares[1]

        def column(Z_b: jax.Array) -> jax.Array:
            """K(X, Z_b) for a block of Z: (n, lanes)."""
            others, (layers, last) = jnp.moveaxis(self._images(Z_b), 0, -1), self._squares(Z_b)
            roots = jnp.moveaxis(root(layers), 0, -1)  # (depth, height, width, lanes)

            @jax.checkpoint  # its gradient makes the layers again, instead of holding all
            def row(at: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
                x, norms_x, K_x = at
                apart = jnp.sum((x[..., None] - others) ** 2, axis=0) / self.channels
                R = self._passed(apart, norms_x[..., None], roots)
                return product(R, root(K_x), root(last))

            found: jax.Array = jax.lax.map(row, (images, norms, own))
            return found

        return in_blocks(column, Z, LANES)

    def diagonal(self, X: jax.Array) -> jax.Array:
        return in_blocks(lambda rows: self._squares(rows)[1][None], X, LANES)[0]

    def check_columns(self, columns: Sequence[Column]) -> None:
        super().check_columns(columns)
        check_image(self, sides(self.image), self.channels, len(columns))

    def effort(self, d: int, points: bool = False) -> float:
        height, width = sides(self.image)
        return float(self.depth * height * width)

    def _images(self, X: jax.Array) -> jax.Array:
        """(n, channels, height, width)."""
        return jnp.moveaxis(X.reshape(X.shape[0], *sides(self.image), self.channels), 3, 1)

    def _squares(self, X: jax.Array) -> tuple[jax.Array, jax.Array]:
        """K(x, x) at each position before the ramps of each layer (n, depth, height, width), and of the
        network (n,)."""
        A = jnp.moveaxis(jnp.sum(self._images(X) ** 2, axis=1), 0, -1) / self.channels
        zero = jnp.zeros_like(A)

        def layer(state: tuple[jax.Array, jax.Array], _: None) -> tuple[Any, jax.Array]:
            A, before = state
            K = self.bias + self.variance * self._filtered(A) + self.kept * before
            return (K / 2, K), K

        (A, _), layers = jax.lax.scan(layer, (A, zero), None, length=self.depth)
        last = self.bias + self.variance * jnp.mean(A, axis=(0, 1))
        return jnp.moveaxis(layers, -1, 0), last

    def _passed(self, apart: jax.Array, norms_x: jax.Array, norms_z: jax.Array) -> jax.Array:
        """The squared distance after the network (lanes,) from that of the pixels (height, width, lanes)."""

        # The loop begins with the filter: its input then lies in memory, where XLA would otherwise make what
        # comes before anew for each of its places.
        def layer(state: tuple[jax.Array, jax.Array], norms: Any) -> tuple[tuple[jax.Array, jax.Array], None]:
            apart, before = state
            R = self.variance * self._filtered(apart) + self.kept * before
            return (rectified(R, *norms), R), None

        start = (apart, jnp.zeros_like(apart))
        (apart, _), _ = jax.lax.scan(layer, start, (norms_x, norms_z))
        return self.variance * jnp.mean(apart, axis=(0, 1))

    def _filtered(self, A: jax.Array) -> jax.Array:
        """The average over the filter around each position, with zeros outside: (height, width, lanes)."""
        for axis, size in enumerate(sides(self.filter)):
            length = A.shape[axis]
            pads = [(0, 0)] * 3
            pads[axis] = ((size - 1) // 2, size // 2)
            B = jnp.pad(A, pads)
            shifted = [jax.lax.slice_in_dim(B, k, k + length, axis=axis) for k in range(size)]
            A = sum(shifted[1:], shifted[0]) / size
        return A


class ConvNet(ImageNetwork):
    """An infinite convolutional network of `depth` layers: averages over filters of ramps, zeros outside the
    image, and a last layer over all positions."""

    kept: ClassVar[float] = 0.0


class ResNet(ImageNetwork):
    """The same with residual layers: what comes into one (but the first) is added to what comes out."""

    kept: ClassVar[float] = 1.0


# Ramps. -----------------------------------------------------------------------------------------------------


def rectified(R: jax.Array, norm_x: jax.Array, norm_z: jax.Array) -> jax.Array:
    """A(x, x) + A(z, z) - 2 A(x, z) of ramps, from R and the roots of K(x, x), K(z, z)."""
    return R / 2 - norm_x * norm_z * fold(_turned_by(R, norm_x, norm_z))


def product(R: jax.Array, norm_x: jax.Array, norm_z: jax.Array) -> jax.Array:
    """K(x, z); 0 where one of them has no length, whatever was rounded."""
    return norm_x * norm_z * (1 - 2 * _turned_by(R, norm_x, norm_z))


def _turned_by(R: jax.Array, norm_x: jax.Array, norm_z: jax.Array) -> jax.Array:
    """t, the squared sine of half the angle."""
    return (R - (norm_x - norm_z) ** 2) * (_inverse(norm_x) * _inverse(norm_z) / 4)


def _inverse(norm: jax.Array) -> jax.Array:
    """1 / norm; 0 for 0, where there is no angle."""
    return jnp.where(norm > 0, 1 / jnp.where(norm > 0, norm, 1.0), 0.0)


def _series() -> tuple[list[float], list[float]]:
    """h / s^3 and angle / (pi s) for angles up to a right one, as polynomials of 4 s^2 - 1.

    angle = 2 arcsin s and sin(angle) = 2 s sqrt(1 - s^2) have the power series in s^2 written here; taken
    together all terms are positive, and 2^-k as large.
    """
    arc = [comb(2 * k, k) / 4**k / (2 * k + 1) for k in range(SERIES)]
    cosine = [-comb(2 * k, k) / 4**k / (2 * k - 1) for k in range(SERIES)]
    difference = [cosine[k] - arc[k] + 2 * arc[k - 1] for k in range(1, SERIES)]
    found = []
    for coefficients in (difference, arc):
        series = Polynomial(2 / np.pi * np.array(coefficients))
        fitted = Chebyshev.interpolate(series, TERMS - 1, domain=[0.0, 0.5])
        found.append([float(c) for c in Chebyshev(fitted.coef).convert(kind=Polynomial).coef])
    return found[0], found[1]


_FOLD, _TURN = _series()


def _near(t: jax.Array, coefficients: list[float]) -> tuple[jax.Array, jax.Array, jax.Array]:
    """s^2 and s of the angle or of what it lacks to pi, whichever is smaller, and the polynomial there."""
    square = jnp.maximum(jnp.minimum(t, 1 - t), 0.0)
    at = 4 * square - 1
    value = jnp.full_like(at, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = value * at + c
    return square, root(square), value  # of slope 0 at 0


@jax.custom_jvp
def fold(t: jax.Array) -> jax.Array:
    """h = (sin(angle) - angle cos(angle)) / pi of t = sin^2(angle / 2)."""
    square, s, value = _near(t, _FOLD)
    small = square * s * value
    return jnp.where(t <= 0.5, small, 2 * t - 1 + small)


def turn(t: jax.Array) -> jax.Array:
    """angle / pi."""
    _, s, value = _near(t, _TURN)
    return jnp.where(t <= 0.5, s * value, 1 - s * value)


fold.defjvps(lambda dt, _, t: 2 * turn(t) * dt)
