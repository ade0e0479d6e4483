r"""Images as rows of a table, and the convolutional kernel.

A row is an image: its pixels line by line, the channels of a pixel side by side (X.reshape(len(X), -1) of an
array (n, height, width, channels)).

    f(x) = 1/P sum_p w_p g(x[p]),    g ~ GP(0, base),    k(x, z) = 1/P^2 sum_pq w_p w_q base(x[p], z[q])

for the P patches x[p] of an image: what a patch says does not depend on where it lies, how much it counts
does (van der Wilk, Rasmussen and Hensman 2017). An entry costs P^2 values of the base. Between f at an image
and g at a patch it costs P of them, and between two patches one: cov(f(x), g(u)) = 1/P sum_p w_p base(x[p],
u). So rows as wide as a patch are points at which g is asked, and methods with inducing points choose theirs
among patches.

With a kernel of the place, g is a function of a patch and of where it lies (row and column of its first
pixel), g ~ GP(0, base x place): what a patch says may change over the image, as quickly as `place` lets it
(Dutordoir, van der Wilk, Artemev and Hensman 2020). Points are then patches with their places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.kernels.base import Column, ImagePatches, Inward, Kernel
from gramian.kernels.profiles import PatchSum
from gramian.params import Parameter, Real, Value, fixed, real
from gramian.params.parameter import as_parameter
from gramian.params.tree import whole_number

EACH = "each"
SHOWN = 3  # of many weights, at either end


class Convolutional(Inward):
    """The average over all patches of an image of a function with the kernel `base`, which has the columns of
    a patch. `weights`: how much each patch counts; None: all alike, "each": learned, from alike on; or
    numbers, one a patch, line by line. `place`: a kernel of where a patch lies, on its row and column in
    pixels, such as RBF(3.0): what a patch says may then differ from place to place; None: it may not."""

    base: Kernel
    patch: int | tuple[int, int] = (5, 5)
    image: int | tuple[int, int] = (28, 28)
    channels: int = 1
    weights: Value = real(None)
    place: Kernel | None = None

    takes_numbers = True

    def __post_init__(self) -> None:
        if not isinstance(self.base, Kernel):
            raise ParameterError(f"Convolutional needs a kernel for patches, not {self.base!r}.")
        for name in ("patch", "image"):
            object.__setattr__(self, name, height_and_width(getattr(self, name), f"Convolutional: {name}"))
        object.__setattr__(self, "channels", whole_number(self.channels, "Convolutional: channels", 1))
        (rows, columns), (height, width) = sides(self.patch), sides(self.image)
        if rows > height or columns > width:
            raise ParameterError(
                f"Convolutional: a patch of {rows} x {columns} pixels is larger than the image of {height} x"
                f" {width}. Give patch=(height, width), at most as large."
            )
        given, count = self.weights, self.n_patches
        given = fixed(1.0) if given is None else np.ones(count) if _is_word(given, EACH) else given
        weights = as_parameter(given, Real(), "Convolutional: weights")
        if weights.value.shape not in ((), (count,)):
            raise ParameterError(
                f"Convolutional: weights have the shape {weights.value.shape}, but there are {count} patches."
                f' Give {count} numbers, or weights="each".'
            )
        object.__setattr__(self, "weights", weights)
        self.base.check_columns([Column(f"pixel {j}") for j in range(self._pixels)])
        if self.place is not None:
            if not isinstance(self.place, Kernel):
                raise ParameterError(
                    f"Convolutional: place={self.place!r} is no kernel. Give one of the row and the column of"
                    " a patch, in pixels, such as RBF(3.0), or leave it out."
                )
            self.place.check_columns([Column("row"), Column("column")])

    @property
    def n_patches(self) -> int:
        """How many patches an image has."""
        (rows, columns), (height, width) = sides(self.patch), sides(self.image)
        return (height - rows + 1) * (width - columns + 1)

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        (v, A), (w, B) = self._weighted(x), self._weighted(z)
        D = self._pixels
        k = Kernel.cross(self.base, A[:, :D], B[:, :D])
        if self.place is not None:
            k = k * Kernel.cross(self.place, A[:, D : D + 2], B[:, D : D + 2])
        return v @ k @ w

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        if not self._has_images(X):
            return self._between(X, Z) if not self._has_images(Z) else self.cross(Z, X).T
        w = self._shares(X)

        @jax.checkpoint  # the gradient makes the values of patches again, instead of holding them
        def with_points(patches: jax.Array) -> jax.Array:
            return w @ self._between(patches, Z)

        @jax.checkpoint
        def with_image(patches: jax.Array, others: jax.Array) -> jax.Array:
            return w @ self._between(patches, others) @ w

        if not self._has_images(Z):
            return jax.lax.map(with_points, self._patches(X))
        others = self._patches(Z)
        return jax.lax.map(lambda x: jax.lax.map(lambda z: with_image(x, z), others), self._patches(X))

    def diagonal(self, X: jax.Array) -> jax.Array:
        if not self._has_images(X):
            D = self._pixels
            own = self.base.diagonal(X[:, :D])
            return own if self.place is None else own * self.place.diagonal(X[:, D : D + 2])
        w = self._shares(X)

        @jax.checkpoint
        def of_image(x: jax.Array) -> jax.Array:
            patches = self._patches(x[None, :])[0]
            return w @ self._between(patches, patches) @ w

        return jax.lax.map(of_image, X)

    # What it says of itself: the base's columns are those of a patch. ---------------------------------------

    @property
    def low_precision(self) -> bool:
        return self.base.low_precision and (self.place is None or self.place.low_precision)

    def patch_sum(self) -> PatchSum | None:
        base, columns = self.base.radial(), self._columns[0]
        place = None if self.place is None else self.place.radial()
        if self.place is not None and (base is None or place is None or not base.multiplies(place)):
            base = None
        if base is None:
            return None
        return PatchSum((), self.weights, base, sides(self.patch), sides(self.image), columns, place)

    def image_patches(self) -> ImagePatches:
        (rows, columns), (height, width) = sides(self.patch), sides(self.image)
        down, across = height - rows + 1, width - columns + 1
        weights = np.broadcast_to(np.asarray(self.weights.value), (self.n_patches,)).reshape(down, across)
        return ImagePatches((height, width), (rows, columns), self.channels, weights, self._points_of)

    def _points_of(self, X: Array) -> Array:
        """The patches of images as points, in NumPy: (n, P, columns of a point)."""
        height, width = sides(self.image)
        images = np.asarray(X, dtype=np.float64).reshape(len(X), height, width, self.channels)
        windows = np.lib.stride_tricks.sliding_window_view(images, sides(self.patch), (1, 2))
        (down, across), d = windows.shape[1:3], self._pixels
        found = np.zeros((len(X), down * across, self._columns[1]))
        found[:, :, :d] = np.moveaxis(windows, 3, 5).reshape(len(X), down * across, d)
        if self.place is not None:
            found[:, :, d : d + 2] = np.stack(np.divmod(np.arange(down * across), across), axis=1)
        return found

    def point_columns(self) -> tuple[int, int] | None:
        d, D = self._columns
        return None if d == D else (d, D)

    def points_among(self, X: Array, count: int, rng: np.random.Generator) -> Array:
        (rows, columns), (height, width) = sides(self.patch), sides(self.image)
        some = np.sort(rng.integers(len(X), size=count))
        images = np.asarray(X[some], dtype=np.float64).reshape(count, height, width, self.channels)
        top, left = rng.integers(height - rows + 1, size=count), rng.integers(width - columns + 1, size=count)
        lines, places = top[:, None] + np.arange(rows), left[:, None] + np.arange(columns)
        found = images[np.arange(count)[:, None, None], lines[:, :, None], places[:, None, :]]
        found = found.reshape(count, -1)
        if self.place is None:
            return np.ascontiguousarray(found)
        more = self._columns[1] - found.shape[1] - 2
        return np.hstack([found, top[:, None], left[:, None], np.zeros((count, more))])

    def effort(self, d: int, points: bool = False) -> float:
        values = self.n_patches if points else self.n_patches**2
        of_place = 0.0 if self.place is None else self.place.effort(2, points)
        return values * (self.base.effort(self._pixels, points) + of_place)

    def check_columns(self, columns: Sequence[Column]) -> None:
        self._check_numeric(columns)
        check_image(self, sides(self.image), self.channels, len(columns))

    def formula(self, digits: int | None = None) -> str:
        """Many weights are cut short where numbers are rounded, too: for people, not to be read back."""
        parts = [self.base.formula(digits)]
        for name, usual in (("patch", (5, 5)), ("image", (28, 28)), ("channels", 1)):
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)!r}")
        weights: Parameter = self.weights
        if weights.value.shape or weights.trainable or float(weights) != 1:
            text = weights.text(digits)
            if digits is not None and weights.value.size > 2 * SHOWN:
                ends = [f"{v:.{digits}g}" for v in weights.value]
                text = f"[{', '.join([*ends[:SHOWN], '...', *ends[-SHOWN:]])}]"
            parts.append(f"weights={text}")
        if self.place is not None:
            parts.append(f"place={self.place.formula(digits)}")
        return f"Convolutional({', '.join(parts)})"

    # Patches. -----------------------------------------------------------------------------------------------

    @property
    def _columns(self) -> tuple[int, int]:
        """Of an image, and of a point: a patch, and where it lies."""
        height, width = sides(self.image)
        d, D = height * width * self.channels, self._pixels + (2 if self.place is not None else 0)
        return d, D + (self.place is not None and d == D)  # a point must not look like a row

    @property
    def _pixels(self) -> int:
        """The columns of a patch that the base sees."""
        rows, columns = sides(self.patch)
        return rows * columns * self.channels

    def _has_images(self, X: jax.Array) -> bool:
        return X.shape[1] == self._columns[0]

    def _weighted(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The patches of an image with their shares; a point by itself."""
        if not self._has_images(x[None, :]):
            return jnp.ones(1, x.dtype), x[None, :]
        return self._shares(x), self._patches(x[None, :])[0]

    def _shares(self, X: jax.Array) -> jax.Array:
        """w_p / P."""
        w = jnp.asarray(self.weights, X.dtype) / self.n_patches
        return jnp.broadcast_to(w, (self.n_patches,))

    def _patches(self, X: jax.Array) -> jax.Array:
        """(n, P, columns of a patch, and of its place)."""
        (rows, columns), (height, width) = sides(self.patch), sides(self.image)
        down, across = height - rows + 1, width - columns + 1
        images = X.reshape(X.shape[0], height, width, self.channels)
        places = [images[:, a : a + down, b : b + across] for a in range(rows) for b in range(columns)]
        found = jnp.stack(places, axis=3).reshape(X.shape[0], down * across, -1)
        if self.place is None:
            return found
        at = jnp.stack(jnp.divmod(jnp.arange(down * across), across), axis=1).astype(X.dtype)
        return jnp.concatenate([found, jnp.broadcast_to(at, (len(X), *at.shape))], axis=2)

    def _between(self, A: jax.Array, B: jax.Array) -> jax.Array:
        """k of patches, or of points, with their places."""
        D = self._pixels
        k = self.base.cross(A[:, :D], B[:, :D])
        return k if self.place is None else k * self.place.cross(A[:, D : D + 2], B[:, D : D + 2])


def _is_word(given: Any, word: str) -> bool:
    return isinstance(given, str) and given == word


# What kernels of images share. ------------------------------------------------------------------------------


def sides(given: int | tuple[int, int]) -> tuple[int, int]:
    """Height and width, which a constructor has made of what was given."""
    return given if isinstance(given, tuple) else (given, given)


def height_and_width(given: Any, owner: str) -> tuple[int, int]:
    """A pair of whole numbers from 1 on; one number stands for a square."""
    pair = tuple(given) if isinstance(given, (tuple, list, np.ndarray)) else (given, given)
    if len(pair) != 2:
        raise ParameterError(f"{owner} must be (height, width), or one number for both, but is {given!r}.")
    height, width = (whole_number(side, owner, 1) for side in pair)
    return height, width


def check_image(kernel: Kernel, image: tuple[int, int], channels: int, columns: int) -> None:
    """Refuses a number of columns that no such image has."""
    height, width = image
    expected = height * width * channels
    if columns != expected:
        own, of = type(kernel).__name__, "1 channel" if channels == 1 else f"{channels} channels"
        raise ParameterError(
            f"{own} is for images of {height} x {width} pixels with {of}, {expected} columns, but the data"
            f" have {columns}. Give image=(height, width) and channels as they are, and an image a row:"
            " X.reshape(len(X), -1), channels last."
        )


def in_blocks(values: Callable[[jax.Array], jax.Array], Z: jax.Array, size: int) -> jax.Array:
    """values(Z) (n, m) for blocks of at most so many rows of Z (m, d), one after the other."""
    m, d = Z.shape
    count = -(-m // size)
    if count <= 1:
        return values(Z)
    size = -(-m // count)
    rows = jnp.concatenate([Z, jnp.broadcast_to(Z[:1], (count * size - m, d))])
    parts = jax.lax.map(values, rows.reshape(count, size, d))  # (count, n, size)
    return jnp.moveaxis(parts, 0, 1).reshape(parts.shape[1], count * size)[:, :m]
