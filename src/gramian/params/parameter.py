"""One parameter: its value, where it may lie, what is believed of it, and whether fitting may move it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, SupportsFloat, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.arrays import Array, real_numbers
from gramian.errors import ParameterError
from gramian.params.priors import Prior
from gramian.params.support import Interval, NonNegative, Positive, Real, Support

# The type of a declared field: a number or array when it is given, a Parameter once it is there, a JAX array
# inside `pair` and its like.
Value: TypeAlias = Any
End: TypeAlias = float | tuple[float, ...]  # one for all entries, or one an entry


@dataclass(frozen=True, eq=False)
class Parameter:
    """An immutable float64 value with its support, prior and bounds. `support` is None until the field it is
    put into names one."""

    value: Array
    support: Support | None = None
    prior: Prior | None = None
    bounds: tuple[End, End] | None = None
    trainable: bool = True

    def __post_init__(self) -> None:
        found = real_numbers(self.value)
        if found is None:
            raise ParameterError(f"A parameter must be a number or an array of numbers, not {self.value!r}.")
        value = found.copy()
        if value.size == 0:
            raise ParameterError("A parameter must have at least one number, but an empty list was given.")
        if not np.isfinite(value).all():
            raise ParameterError(f"A parameter must be finite, but {_show(value)} is not.")
        value.setflags(write=False)
        object.__setattr__(self, "value", value)
        if self.prior is not None and not isinstance(self.prior, Prior):
            raise ParameterError(
                f"prior={self.prior!r} is not a prior. Give one such as LogNormal(0, 1) or Gamma(2, 1)."
            )
        if self.bounds is not None:
            try:
                low, high = map(real_numbers, self.bounds)
            except (TypeError, ValueError):
                low = high = None
            if low is None or high is None:
                raise ParameterError(f"bounds={self.bounds!r} are not a pair of numbers (low, high).")
            shown = f"({_show(low, 6)}, {_show(high, 6)})"
            if not {low.shape, high.shape} <= {(), value.shape[:1] if value.ndim == 1 else ()}:
                cure = "Give one pair of numbers for all entries, or two lists of one number an entry."
                raise ParameterError(f"bounds={shown} do not belong to the value {_show(value)}. {cure}")
            if not np.all(low < high):
                raise ParameterError(f"bounds={shown} are empty: the lower one must be below the upper one.")
            if (value < low).any() or (value > high).any():
                raise ParameterError(
                    f"The value {_show(value)} lies outside its bounds {shown}. Start inside them."
                )
            ends = (tuple(end.tolist()) if end.ndim else float(end) for end in (low, high))
            object.__setattr__(self, "bounds", tuple(ends))

    def within(self, support: Support, owner: str) -> Parameter:
        """This parameter with the support of the field `owner`, after a check that its value, bounds and
        prior fit."""
        problem = support.problem(self.value)
        if problem:
            raise ParameterError(f"{owner} {problem}, but is {_show(self.value)}.")
        if self.trainable:
            with np.errstate(divide="ignore"):
                edge = not np.isfinite(support.inverse(self.value)).all()
            if edge:
                cure = f"Start inside, or hold it there: gramian.fixed({_show(self.value)})."
                raise ParameterError(
                    f"{owner} is {_show(self.value)}, on the edge of its range, from where fitting cannot"
                    f" move. {cure}"
                )
        if (self.prior is not None or self.bounds is not None) and not support.one_to_one:
            raise ParameterError(f"{owner} is a matrix, which takes no prior and no bounds.")
        if self.prior is not None:
            try:
                density = self.prior.log_density(self.value)
            except ValueError:  # shapes that do not broadcast
                density = np.zeros(0)
            fault = ""
            if density.shape != self.value.shape:
                fault = f"but its prior {self.prior} has another number of entries. Give one an entry"
            elif not np.all(np.isfinite(density)):
                fault = f"which its prior {self.prior} gives no probability"
            if fault:
                raise ParameterError(f"{owner} is {_show(self.value)}, {fault}.")
        return self._copied(support=support)

    def with_value(self, value: ArrayLike) -> Parameter:
        """The same parameter at another value; one beyond its bounds by no more than rounding, as where an
        optimiser stops, is put back."""
        new = real_numbers(value)
        if new is None:
            raise ParameterError(f"A parameter must be a number or an array of numbers, not {value!r}.")
        if self.bounds is not None:
            inside = np.clip(new, *self.bounds)
            new = np.where(np.isclose(new, inside, rtol=1e-9, atol=0.0), inside, new)
        return dataclasses.replace(self, value=new)

    def within_bounds(self, low: ArrayLike, high: ArrayLike) -> Parameter:
        """The same parameter with other bounds: one number for all entries, or one an entry."""
        return dataclasses.replace(self, bounds=cast("tuple[End, End]", (low, high)))

    def moved(self, value: Array) -> Parameter:
        """The same parameter at a value that is known to be good: a search makes thousands of them."""
        return self._copied(value=value)

    def _copied(self, **changed: Any) -> Parameter:
        """With fields that are known to be good."""
        new = object.__new__(Parameter)
        new.__dict__.update(self.__dict__, **changed)
        return new

    @property
    def box(self) -> tuple[Array, Array]:
        """The bounds of each entry, low and high, in the value's shape; infinite where there are none."""
        low, high = (-np.inf, np.inf) if self.bounds is None else self.bounds
        return np.broadcast_to(low, self.value.shape), np.broadcast_to(high, self.value.shape)

    @property
    def limits(self) -> list[tuple[float, float]]:
        """The bounds of an optimiser's search in the unconstrained space, of each entry: from `bounds`, and
        from where a prior ends."""
        if self.support is None or not self.support.one_to_one:
            return [(-np.inf, np.inf)] * self.value.size
        ranges = [self.support.ends(), *([] if self.prior is None else [self.prior.ends()])]
        low, high = self.box
        for least, most in ranges:
            low, high = np.maximum(low, least), np.minimum(high, most)
        with np.errstate(divide="ignore", invalid="ignore"):
            u_low, u_high = (
                np.where(np.isfinite(end), self.support.inverse(np.where(np.isfinite(end), end, 1.0)), end)
                for end in (low, high)
            )
        return list(zip(u_low.ravel().tolist(), u_high.ravel().tolist(), strict=True))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype) if copy else np.asarray(self.value, dtype=dtype)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.value.setflags(write=False)  # neither pickle nor deepcopy keeps the flag

    def __float__(self) -> float:
        return float(cast(SupportsFloat, self.value))

    def __repr__(self) -> str:
        return self.text()

    def text(self, digits: int | None = None) -> str:
        """The value as the kernel language writes it; with a prior, bounds or `fixed` around it."""
        number = _show(self.value, digits)
        extras = [f"prior={self.prior!r}"] if self.prior is not None else []
        extras += [f"bounds={self.bounds!r}"] if self.bounds is not None else []
        if not extras or digits is not None:
            return number if self.trainable else f"fixed({number})"
        return f"param({', '.join([number, *extras, *([] if self.trainable else ['trainable=False'])])})"


def param(
    value: ArrayLike,
    *,
    prior: Prior | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    trainable: bool = True,
) -> Parameter:
    """A parameter with more than a value: `RBF(param(0.5, prior=LogNormal(0, 1), bounds=(0.1, 10)))`. Each
    bound is one number for all entries of the value, or a list of one an entry."""
    pair = cast("tuple[End, End] | None", bounds)
    return Parameter(cast(Array, value), prior=prior, bounds=pair, trainable=trainable)


def fixed(value: ArrayLike) -> Parameter:
    """A parameter that fitting leaves alone: `RBF(fixed(0.5))`, `noise=fixed(0)`."""
    return Parameter(cast(Array, value), trainable=False)


def as_parameter(value: Any, support: Support, owner: str) -> Parameter:
    """What a user gave for a field (a number, a list, an array, a Parameter), as a Parameter with that
    field's support."""
    if isinstance(value, Parameter):
        return value.within(support, owner)
    if isinstance(value, (bool, str, bytes)) or value is None:
        raise ParameterError(f"{owner} must be a number or an array of numbers, not {value!r}.")
    try:
        parameter = Parameter(value)
    except ParameterError as error:
        raise ParameterError(f"{owner}: {error}") from None
    return parameter.within(support, owner)


def _declare(default: Any, support: Support) -> Any:
    return dataclasses.field(default=default, metadata={"support": support})


def positive(default: Any = dataclasses.MISSING) -> Any:
    """Declares a field of a kernel, mean or likelihood as a positive parameter."""
    return _declare(default, Positive())


def nonnegative(default: Any = dataclasses.MISSING) -> Any:
    """Declares a field as a parameter that may be zero while it is fixed."""
    return _declare(default, NonNegative())


def real(default: Any = dataclasses.MISSING) -> Any:
    """Declares a field as a parameter of any sign."""
    return _declare(default, Real())


def unit_interval(default: Any = dataclasses.MISSING) -> Any:
    """Declares a field as a parameter between 0 and 1."""
    return _declare(default, Interval(0.0, 1.0))


def _show(value: Array, digits: int | None = None) -> str:
    """A number or nested list, in full (digits=None) or rounded to significant digits."""
    if value.ndim == 0:
        return repr(float(value)) if digits is None else f"{float(value):.{digits}g}"
    return "[" + ", ".join(_show(np.asarray(v), digits) for v in value) + "]"
