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

An average over windows of w x w positions after some layers (pooling) makes of the covariances A(p, q) of
position p of x and position q of z

    P(u, v) = 1/w^4 sum_ab A(u + a, v + b),    a and b in the window

so that the layers before it are needed at all shifts q - p of at most w - 1 pixels, (2 w - 1)^2 of them, and
those after it at like places only (Novak et al. 2019; Li et al. 2019). A digit that is shifted by a pixel is
then nearly the same image.

h is s^3 times a power series in s^2 with s = sin(angle / 2), for angles up to a right one; the others follow
from h(pi - angle) = h(angle) + cos(angle). A polynomial of 20 terms has it to rounding, and takes a sixth of
the time of an arc tangent. Cost of a value: DenseNet depth of them, ConvNet depth times the positions (28 x
28 images, depth 7: 30 microseconds), layers before a pooling once a shift.
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

from gramian.errors import ParameterError
from gramian.kernels.base import Column, Kernel
from gramian.kernels.distance import root, squared_distances
from gramian.kernels.images import check_image, height_and_width, in_blocks, sides
from gramian.params import Value, nonnegative, positive
from gramian.params.tree import whole_number

MOST_LAYERS = 1000  # beyond, all correlations are 1 to rounding
TERMS, SERIES = 20, 100
LANES = 128  # rows of Z at a time: their layers stay in a cache of 1 MB
POOLED_LANES = 64  # with all shifts of theirs


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
    all positions. A row is an image: its pixels line by line, the channels of a pixel side by side.

    `pool`: the window of an average over neighbouring positions that comes after the first `after` layers, at
    every `stride`-th position. A window of one is none."""

    depth: int
    image: int | tuple[int, int]
    channels: int = 1
    filter: int | tuple[int, int] = (3, 3)
    variance: Value = positive(2.0)  # times the number of inputs of a unit: that of the weights
    bias: Value = nonnegative(0.1)
    pool: int | tuple[int, int] = (1, 1)
    stride: int | tuple[int, int] = (1, 1)
    after: int = 1

    low_precision = True
    takes_numbers = True
    one_number = ("variance", "bias")

    def __post_init__(self) -> None:
        own = type(self).__name__
        object.__setattr__(self, "depth", whole_number(self.depth, f"{own}: depth", 1, MOST_LAYERS))
        object.__setattr__(self, "channels", whole_number(self.channels, f"{own}: channels", 1))
        for name in ("image", "filter", "pool", "stride"):
            object.__setattr__(self, name, height_and_width(getattr(self, name), f"{own}: {name}"))
        object.__setattr__(self, "after", whole_number(self.after, f"{own}: after", 1, self.depth))
        (rows, columns), (height, width) = sides(self.pool), sides(self.image)
        if rows > height or columns > width:
            raise ParameterError(
                f"{own}: a pool of {rows} x {columns} positions is larger than the image of {height} x"
                f" {width}. Give pool=(height, width), at most as large."
            )
        super().__post_init__()

    @property
    @abstractmethod
    def kept(self) -> float:
        """Of what comes into a layer, how much is added to what comes out of it."""

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return self.cross(x[None, :], z[None, :])[0, 0]

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        images, (norms_X, pooled_X, later_X, last_X) = self._images(X), self._squares(X)

        def column(Z_b: jax.Array) -> jax.Array:
            """K(X, Z_b) for a block of Z: (n, lanes)."""
            others = jnp.moveaxis(self._images(Z_b), 0, -1)
            norms_Z, pooled_Z, later_Z, last_Z = (jnp.moveaxis(part, 0, -1) for part in self._squares(Z_b))
            shifted = self._shifted(others, norms_Z) if self._pools else None

            @jax.checkpoint  # its gradient makes the layers again, instead of holding all
            def row(at: tuple[jax.Array, ...]) -> jax.Array:
                x, norms_x, pooled_x, later_x, last_x = (part[..., None] for part in at)
                if shifted is None:
                    apart = jnp.sum((x - others) ** 2, axis=0) / self.channels
                else:
                    apart = pooled_x + pooled_Z - 2 * self._pooled(x, norms_x, *shifted)
                R = self._passed(apart, later_x, later_Z)
                return product(R, last_x, last_Z)

            found: jax.Array = jax.lax.map(row, (images, norms_X, pooled_X, later_X, last_X))
            return found

        return in_blocks(column, Z, POOLED_LANES if self._pools else LANES)

    def diagonal(self, X: jax.Array) -> jax.Array:
        return in_blocks(lambda rows: self._squares(rows)[3][None] ** 2, X, LANES)[0]

    def check_columns(self, columns: Sequence[Column]) -> None:
        super().check_columns(columns)
        check_image(self, sides(self.image), self.channels, len(columns))

    def effort(self, d: int, points: bool = False) -> float:
        (height, width), (rows, columns) = sides(self.image), self._places
        shifts, before = len(self._shifts), self.after if self._pools else 0
        return float(shifts * before * height * width + (self.depth - before) * rows * columns)

    def _images(self, X: jax.Array) -> jax.Array:
        """(n, channels, height, width)."""
        return jnp.moveaxis(X.reshape(X.shape[0], *sides(self.image), self.channels), 3, 1)

    def _squares(self, X: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Of each row with itself: the root of K(x, x) at each position before the ramps of each layer up to
        the pooling (n, layers, height, width), what comes out of it (n, ...), the roots after it, and that of
        the network (n,). Without a pooling the first have no layers."""
        images = jnp.moveaxis(self._images(X), 0, -1)  # (channels, height, width, n)
        A = jnp.sum(images**2, axis=0) / self.channels
        before = jnp.zeros((0, *A.shape), A.dtype)
        if self._pools:
            _, before = self._own_layers(A, self.after)
            A = self._pooled(images, before, *self._shifted(images, before))
        last, later = self._own_layers(A, self.depth - len(before))
        of_all = root(self.bias + self.variance * jnp.mean(last, axis=(0, 1)))
        return jnp.moveaxis(before, -1, 0), jnp.moveaxis(A, -1, 0), jnp.moveaxis(later, -1, 0), of_all

    def _own_layers(self, A: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
        """A(x, x) (height, width, n) after so many layers, and the roots of K(x, x) in each."""

        def layer(state: tuple[jax.Array, jax.Array], _: None) -> tuple[Any, jax.Array]:
            A, before = state
            K = self.bias + self.variance * self._filtered(A) + self.kept * before
            return (K / 2, K), root(K)

        (A, _), norms = jax.lax.scan(layer, (A, jnp.zeros_like(A)), None, length=count)
        return A, norms

    def _passed(self, apart: jax.Array, norms_x: jax.Array, norms_z: jax.Array) -> jax.Array:
        """The squared distance after the network (lanes,) from that before layers (height, width, lanes)."""

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

    # Pooling. -----------------------------------------------------------------------------------------------

    @property
    def _pools(self) -> bool:
        return (self.pool, self.stride) != ((1, 1), (1, 1))

    @property
    def _places(self) -> tuple[int, int]:
        """Height and width after the pooling: windows that lie within the image."""
        sizes = zip(sides(self.image), sides(self.pool), sides(self.stride), strict=True)
        rows, columns = ((length - window) // step + 1 for length, window, step in sizes)
        return rows, columns

    @property
    def _shifts(self) -> np.ndarray:
        """By how much a position of one window differs from one of the same window: (shifts, 2)."""
        rows, columns = sides(self.pool)
        return np.array([(a, b) for a in range(1 - rows, rows) for b in range(1 - columns, columns)])

    def _shifted(self, images: jax.Array, norms: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Images (shifts, channels, height, width, n) and norms of layers (shifts, layers, ...), at position
        p what lies at p + shift, with zeros outside."""
        margins = [(window - 1, window - 1) for window in sides(self.pool)]

        def moved(A: jax.Array) -> jax.Array:
            padded, ends = jnp.pad(A, [(0, 0), *margins, (0, 0)]), A.shape
            corners = self._shifts + [low for low, _ in margins]
            return jnp.stack([padded[:, a : a + ends[1], b : b + ends[2]] for a, b in corners])

        return moved(images), moved(norms)

    def _pooled(self, x: jax.Array, norms_x: jax.Array, Z: jax.Array, norms_Z: jax.Array) -> jax.Array:
        """P(x, z) after the pooling (rows, columns, lanes), from an image (channels, height, width, lanes or
        1) and its norms (layers, ...), and those of others at all shifts.

        One loop over shifts. Products of pixels are made one turn before their layers, and averages one turn
        after: what goes from one to the next lies in memory then, instead of being made anew for each place
        that reads it (7 times slower).
        """
        windows, steps = sides(self.pool), sides(self.stride)
        lies = np.arange(max(windows)) + self._shifts[:, :, None]  # where a + shift is: (shifts, 2, a)
        within = jnp.asarray((lies >= 0) & (lies < np.array(windows)[:, None]), x.dtype)

        def multiplied(z: jax.Array) -> jax.Array:
            return jnp.sum(x * z, axis=0) / self.channels

        def layer(state: tuple[jax.Array, jax.Array], norms: Any) -> tuple[tuple[jax.Array, jax.Array], None]:
            A, before = state
            K = self.bias + self.variance * self._filtered(A) + self.kept * before
            return (ramps(K, *norms), K), None

        def averaged(A: jax.Array, within: jax.Array) -> jax.Array:
            """The part of the windows' averages that is of one shift."""
            for axis, (window, step, size) in enumerate(zip(windows, steps, self._places, strict=True)):
                end = (size - 1) * step + 1
                parts = [
                    within[axis, a] * jax.lax.slice_in_dim(A, a, a + end, step, axis=axis)
                    for a in range(window)
                ]
                A = sum(parts[1:], parts[0]) / window**2
            return A

        @jax.checkpoint
        def at_shift(state: tuple[jax.Array, ...], given: tuple[jax.Array, ...]) -> tuple[Any, None]:
            total, A, products = state
            norms_z, z_next, within_before = given
            total = total + averaged(A, within_before)
            (A, _), _ = jax.lax.scan(layer, (products, jnp.zeros_like(A)), (norms_x, norms_z))
            return (total, A, multiplied(z_next)), None

        products = multiplied(Z[0])
        A = jnp.zeros_like(products)
        total = jnp.zeros((*self._places, A.shape[-1]), A.dtype)
        rolled = norms_Z, jnp.roll(Z, -1, axis=0), jnp.roll(within, 1, axis=0)
        (total, A, _), _ = jax.lax.scan(at_shift, (total, A, products), rolled)
        return total + averaged(A, within[-1])


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


def ramps(K: jax.Array, norm_x: jax.Array, norm_z: jax.Array) -> jax.Array:
    """A(x, z) of ramps, from K(x, z) and the roots; 0 where one of them has no length."""
    cosine = K * _inverse(norm_x) * _inverse(norm_z)
    return norm_x * norm_z * (cosine + fold((1 - cosine) / 2)) / 2


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
