"""Kernels made of kernels: sums, products, scalings, powers, exponentials, polynomials, and products with a
function.

Sum and Product are distinct and flattened: (a + b) + c is Sum(a, b, c), and (a + b) * c is Product(Sum(a, b),
c). Each rule keeps positive semi-definiteness (Shawe-Taylor and Cristianini 2004, proposition 3.22 and 3.24).
"""

from __future__ import annotations

import functools
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays import Array, as_float, is_number, real_numbers
from gramian.errors import ParameterError
from gramian.kernels.base import TERMS, Kernel, Pointwise
from gramian.kernels.dot_product import Constant
from gramian.kernels.expectations import ExpectedTerm, added
from gramian.kernels.expectations import multiplied as terms_multiplied
from gramian.kernels.profiles import PatchSum, Radial
from gramian.kernels.spectrum import Wave, multiplied
from gramian.kernels.statespace import StateForm, WarpedBlock
from gramian.kernels.statespace import added as forms_added
from gramian.kernels.statespace import multiplied as forms_multiplied
from gramian.kernels.statespace import scaled as form_scaled
from gramian.params import NonNegative, Parameter, Value, fixed, nonnegative, positive
from gramian.params.parameter import as_parameter
from gramian.params.tree import whole_number


class Combined(Pointwise):
    """A kernel whose values are computed from those of its parts, entry by entry."""

    @abstractmethod
    def of(self, *values: jax.Array) -> jax.Array:
        """Its values, from those of each part."""

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return self.of(*(part.pair(x, z) for part in self.parts))

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        return self.of(*(part.cross(X, Z) for part in self.parts))

    def diagonal(self, X: jax.Array) -> jax.Array:
        return self.of(*(part.diagonal(X) for part in self.parts))


class Sum(Combined):
    """k = k_1 + k_2 + ...: independent functions added."""

    terms: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", _flat(self.terms, Sum))

    def of(self, *values: jax.Array) -> jax.Array:
        return sum(values[1:], values[0])

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return self.of(*(k.pair(*own) for k, *own in self._parted(x, z)))

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        return self.of(*(k.cross(*own) for k, *own in self._parted(X, Z)))

    def diagonal(self, X: jax.Array) -> jax.Array:
        return self.of(*(k.diagonal(*own) for k, *own in self._parted(X)))

    def point_columns(self) -> tuple[int, int] | None:
        """A point is one of each term, side by side: what is asked there is the sum of theirs."""
        widths = self._widths()
        if widths is None:
            return None
        d, total = widths[0], sum(widths[1])
        return d, total + (total == d)  # a point must not look like a row

    def points_among(self, X: Array, count: int, rng: np.random.Generator) -> Array:
        columns, found = self.point_columns(), [term.points_among(X, count, rng) for term in self.terms]
        if columns is None:
            return super().points_among(X, count, rng)
        more = columns[1] - sum(part.shape[1] for part in found)
        return np.hstack([*found, np.zeros((count, more))])

    def parted(self, *tables: Any) -> tuple[tuple[Any, ...], ...]:
        return () if self._widths() is None else tuple(self._parted(*tables))

    def _widths(self) -> tuple[int, list[int]] | None:
        """The columns of a row, and of a point of each term, where one has points of its own."""
        known = [term.point_columns() for term in self.terms]
        d = next((own[0] for own in known if own is not None), None)
        return None if d is None else (d, [d if own is None else own[1] for own in known])

    def _parted(self, *tables: jax.Array) -> Iterator[tuple[Any, ...]]:
        """Each term, with what it sees of rows, or of points."""
        widths = self._widths()
        for k, term in enumerate(self.terms):
            end = 0 if widths is None else sum(widths[1][: k + 1])
            is_row = [widths is None or table.shape[-1] == widths[0] for table in tables]
            own = slice(end - (0 if widths is None else widths[1][k]), end)
            seen = [table if row else table[..., own] for table, row in zip(tables, is_row, strict=True)]
            yield term, *seen

    @property
    def summands(self) -> tuple[Kernel, ...]:
        return self.terms

    def levels(self) -> list[Parameter] | None:
        of_terms = [term.levels() or [] for term in self.terms]
        joined = [level for levels in of_terms for level in levels]
        return _counted_once(self, joined) if all(of_terms) else None

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        return [wave for k in self.terms for wave in k.waves(columns)]

    def gaussian_terms(self, d: int) -> list[ExpectedTerm] | None:
        return added([k.gaussian_terms(d) for k in self.terms])

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        return forms_added([k.state_space(columns, terms) for k in self.terms])

    def formula(self, digits: int | None = None) -> str:
        return " + ".join(k.formula(digits) for k in self.terms)


class Product(Combined):
    """k = k_1 k_2 ...: alike where all factors say so."""

    factors: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", _flat(self.factors, Product))

    def of(self, *values: jax.Array) -> jax.Array:
        return functools.reduce(operator.mul, values)

    def levels(self) -> list[Parameter] | None:
        """Of the first factor that has them; they must not be in another, too."""
        found = (_counted_once(self, levels) for factor in self.factors if (levels := factor.levels()))
        return next((levels for levels in found if levels), None)

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        return multiplied([k.waves(columns) for k in self.factors])

    def gaussian_terms(self, d: int) -> list[ExpectedTerm] | None:
        return terms_multiplied([k.gaussian_terms(d) for k in self.factors])

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        return forms_multiplied([k.state_space(columns, terms) for k in self.factors])

    def formula(self, digits: int | None = None) -> str:
        # (2 * a) * b needs no parentheses, a * (2 * b) does: multiplication is read from the left.
        others = (enclosed(k, digits, Sum, Scaled) for k in self.factors[1:])
        return " * ".join([enclosed(self.factors[0], digits, Sum), *others])


class Scaled(Combined):
    """c k with c > 0, trainable unless it is fixed."""

    kernel: Kernel
    scale: Value = positive(1.0)

    one_number = ("scale",)

    def label(self, field: str) -> str:
        return "" if field == "kernel" else (self.kernel.label("") or type(self.kernel).__name__.lower())

    def of(self, *values: jax.Array) -> jax.Array:
        return self.scale * values[0]

    def point_columns(self) -> tuple[int, int] | None:
        return self.kernel.point_columns()

    def points_among(self, X: Array, count: int, rng: np.random.Generator) -> Array:
        return self.kernel.points_among(X, count, rng)

    def levels(self) -> list[Parameter] | None:
        return _counted_once(self, [self.scale])

    def radial(self) -> Radial | None:
        form = self.kernel.radial()
        return None if form is None else form.times(self.scale)

    def patch_sum(self) -> PatchSum | None:
        form = self.kernel.patch_sum()
        return None if form is None else form.times(self.scale)

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        return [wave.scaled(self.scale) for wave in self.kernel.waves(columns)]

    def gaussian_terms(self, d: int) -> list[ExpectedTerm] | None:
        return terms_multiplied([[ExpectedTerm(self.scale, None)], self.kernel.gaussian_terms(d)])

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        return form_scaled(self.kernel.state_space(columns, terms), self.scale)

    @property
    def plain_scale(self) -> Parameter | None:
        return self.scale if _is_plain(self.scale) else None

    def formula(self, digits: int | None = None) -> str:
        scale = self.scale.text(digits)
        if self.plain_scale is not None and self.kernel.plain_scale is not None:
            scale = f"param({scale})"  # two plain numbers would be read as one, their product
        return f"{scale} * {enclosed(self.kernel, digits, Sum, Product, Scaled)}"


class Power(Combined):
    """k^p for a positive whole number p."""

    base: Kernel
    exponent: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", whole_number(self.exponent, "The power of a kernel", 1))
        super().__post_init__()

    def of(self, *values: jax.Array) -> jax.Array:
        return values[0] ** self.exponent

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        return multiplied([self.base.waves(columns)] * self.exponent)

    def gaussian_terms(self, d: int) -> list[ExpectedTerm] | None:
        return terms_multiplied([self.base.gaussian_terms(d)] * self.exponent)

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        return forms_multiplied([self.base.state_space(columns, terms)] * self.exponent)

    def formula(self, digits: int | None = None) -> str:
        return f"{enclosed(self.base, digits, Sum, Product, Scaled, Power)} ** {self.exponent}"


class Exp(Combined):
    """exp(k)."""

    kernel: Kernel

    def of(self, *values: jax.Array) -> jax.Array:
        return jnp.exp(values[0])

    def formula(self, digits: int | None = None) -> str:
        return f"exp({self.kernel.formula(digits)})"


class Poly(Combined):
    """c_0 + c_1 k + c_2 k^2 + ... with no negative coefficient; held fixed unless they are given as
    `param(...)`."""

    kernel: Kernel
    coefficients: Value = nonnegative()

    def __post_init__(self) -> None:
        given = self.coefficients
        coefficients = given if isinstance(given, Parameter) else fixed(given)
        parameter = as_parameter(coefficients, NonNegative(), "poly: each coefficient")
        if parameter.value.ndim != 1 or not np.any(parameter.value > 0):
            expected = "a list [c0, c1, ...] with a positive one among them"
            raise ParameterError(f"poly: coefficients must be {expected}, not {given!r}.")
        object.__setattr__(self, "coefficients", parameter)

    def of(self, *values: jax.Array) -> jax.Array:
        (K,), total = values, jnp.zeros_like(values[0])
        for power in reversed(range(self.coefficients.shape[0])):
            total = total * K + self.coefficients[power]
        return total

    def levels(self) -> list[Parameter] | None:
        return _counted_once(self, [self.coefficients])

    def formula(self, digits: int | None = None) -> str:
        p = self.coefficients
        text = Parameter(p.value).text(digits)
        if p.prior is not None or p.bounds is not None:
            text = p.text(digits)
        elif p.trainable:
            text = f"param({text})"
        return f"poly({self.kernel.formula(digits)}, {text})"


class Warped(Kernel):
    """f(x) k(x, z) f(z): draws of k multiplied by the function f, written in JAX for one point (d,) ->
    scalar."""

    kernel: Kernel
    function: Callable[[Any], Any]

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return self.function(x) * self.kernel.pair(x, z) * self.function(z)

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        return self._factor(X)[:, None] * self.kernel.cross(X, Z) * self._factor(Z)[None, :]

    def diagonal(self, X: jax.Array) -> jax.Array:
        return self._factor(X) ** 2 * self.kernel.diagonal(X)

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        form = self.kernel.state_space(columns, terms) if len(columns) == 1 else None
        return None if form is None else form.changed(lambda block: WarpedBlock(block, self.function))

    def levels(self) -> list[Parameter] | None:
        return self.kernel.levels()

    def _factor(self, X: jax.Array) -> jax.Array:
        values = jax.vmap(self.function)(X)
        if values.shape != X.shape[:1]:
            gives = f"shape {values.shape[1:]}"
            raise ParameterError(f"warp: the function must give one number for a point, but gives {gives}.")
        return values

    def formula(self, digits: int | None = None) -> str:
        return f"warp({self.kernel.formula(digits)}, {_name(self.function)})"


def add(left: Any, right: Any) -> Sum:
    """left + right, flattened; a number stands for a constant kernel of that variance."""
    sides = (k if isinstance(k, Kernel) else Constant(_number(k, "added to")) for k in (left, right))
    return Sum(tuple(sides))


def multiply(kernel: Kernel, other: Any) -> Product | Scaled:
    """kernel * other, flattened; a number scales."""
    if not isinstance(other, Kernel):
        scale = _number(other, "multiplied with")
        known = kernel.plain_scale
        if known is not None and not isinstance(scale, Parameter):
            return Scaled(kernel.parts[0], known.with_value(known.value * scale))
        return Scaled(kernel, scale)
    return Product((kernel, other))


def exp(kernel: Kernel) -> Exp:
    """The kernel exp(k(x, z))."""
    return Exp(_kernel(kernel, "exp"))


def poly(kernel: Kernel, coefficients: ArrayLike | Parameter) -> Poly:
    """The kernel c0 + c1 k + c2 k^2 + ... with coefficients [c0, c1, c2, ...], none negative."""
    return Poly(_kernel(kernel, "poly"), coefficients)


def warp(kernel: Kernel, function: Callable[[Any], Any]) -> Warped:
    """The kernel f(x) k(x, z) f(z); f is written in JAX and takes one point (d,)."""
    if not callable(function):
        raise ParameterError(f"warp needs a function of one point, not {function!r}.")
    return Warped(_kernel(kernel, "warp"), function)


def enclosed(kernel: Kernel, digits: int | None, *weaker: type[Kernel]) -> str:
    """A kernel's formula, in parentheses when its outermost operation binds more weakly than where it
    stands."""
    text = kernel.formula(digits)
    return f"({text})" if isinstance(kernel, weaker) else text


def _is_plain(scale: Parameter) -> bool:
    """Whether a parameter is no more than its number, as one written without `param` or `fixed`."""
    return scale.trainable and scale.prior is None and scale.bounds is None


def _flat(kernels: Sequence[Kernel], kind: type[Kernel]) -> tuple[Kernel, ...]:
    """The kernels, with the parts of those that are of this kind in their place."""
    for kernel in kernels:
        _kernel(kernel, kind.__name__)
    if len(kernels) < 2:
        raise ParameterError(f"{kind.__name__} needs two kernels or more, but got {len(kernels)}.")
    return tuple(part for k in kernels for part in (k.parts if isinstance(k, kind) else (k,)))


def _counted_once(kernel: Kernel, levels: list[Parameter]) -> list[Parameter] | None:
    """The levels, unless one of them is at other places of the kernel, too: in `k * k`, both factors have the
    same scale, and c times it gives c^2."""
    own = list(kernel.parameters().values())
    return levels if all(own.count(level) == levels.count(level) for level in levels) else None


def _name(function: Callable[[Any], Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _kernel(value: object, where: str) -> Kernel:
    if not isinstance(value, Kernel):
        raise ParameterError(f"{where} needs a kernel, not {value!r}.")
    return value


LARGEST = 1e300  # of a factor, of which multiples are numbers still


def _number(value: Any, what: str) -> Any:
    scalar = isinstance(value, np.ndarray) and value.ndim == 0 and real_numbers(value) is not None
    if isinstance(value, Parameter) or is_number(value) or scalar:
        if not isinstance(value, Parameter) and not 0 < as_float(value) <= LARGEST:
            raise ParameterError(f"A kernel can be {what} a positive number only, not {value!r}.")
        return value
    raise ParameterError(f"A kernel can be {what} a kernel or a positive number, not {value!r}.")
