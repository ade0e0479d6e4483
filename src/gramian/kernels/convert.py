r"""Kernels of scikit-learn as kernels of this library.

    ConstantKernel c          c as a term, a scale as a factor
    RBF, Matern               RBF, Matern12, Matern32, Matern52 (nu = 0.5, 1.5, 2.5) and RBF again (nu = inf)
    RationalQuadratic         RationalQuadratic
    ExpSineSquared            Periodic. Equal on one column only: in several, scikit-learn puts the Euclidean
                              distance into the sine (which need not be positive semi-definite), and Periodic
                              multiplies one wave a column; select the column with `.on(...)`
    DotProduct                Constant(sigma_0^2) + Linear(fixed(1)): sigma_0 is squared, and its bounds too
    Sum, Product, Exponentiation
    WhiteKernel               the noise, where it is a term of the whole kernel, alone or times constants;
                              kernels here know no noise

Values, fixed hyperparameters and bounds are kept. Bounds that exclude the value they are for, which
scikit-learn tolerates, are dropped.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gramian.errors import ParameterError
from gramian.kernels.algebra import multiply
from gramian.kernels.base import Kernel
from gramian.kernels.dot_product import Constant, Linear
from gramian.kernels.stationary import RBF, Matern12, Matern32, Matern52, Periodic, RationalQuadratic
from gramian.params import Parameter, fixed, param

_MATERN = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52, math.inf: RBF}


class Converted(NamedTuple):
    """A kernel without noise, and the variance of the noise (None where there was no WhiteKernel)."""

    kernel: Kernel
    noise: Parameter | None


def from_sklearn(kernel: Any) -> Converted:
    """A kernel of sklearn.gaussian_process.kernels, as this library's kernel and noise variance.

    `kernel, noise = from_sklearn(1.0 * RBF(0.5) + WhiteKernel(0.1))` gives `1.0 * RBF(0.5)` and a noise of
    0.1.
    """
    if isinstance(kernel, Kernel):
        return Converted(kernel, None)
    told = [(term, _noise(term)) for term in _terms(kernel)]
    terms = [_converted(term) for term, noise in told if noise is None]
    noises = [noise for _, noise in told if noise is not None]
    if not terms:
        raise ParameterError(
            f"{kernel!r} is nothing but noise. Add a kernel to it, or Constant(...) for a constant level."
        )
    total = functools.reduce(operator.add, terms)
    return Converted(total, _sum_of(noises).parameter() if noises else None)


class _Range(NamedTuple):
    """A hyperparameter: its value and where it may lie. A fixed one lies at its value."""

    value: Any
    low: float
    high: float
    fixed: bool

    def parameter(self) -> Parameter:
        if self.fixed or self.low == self.high:
            return fixed(self.value)
        inside = self.low < self.high and np.all(np.clip(self.value, self.low, self.high) == self.value)
        return param(self.value, bounds=(self.low, self.high)) if inside else param(self.value)

    def ends(self) -> tuple[float, float]:
        return (float(self.value),) * 2 if self.fixed else (self.low, self.high)


def _range(kernel: Any, name: str) -> _Range:
    """The hyperparameter `name` of a kernel of scikit-learn."""
    value: ArrayLike = getattr(kernel, name)
    value = float(np.asarray(value).item()) if np.size(value) == 1 else np.asarray(value, dtype=float)
    described = getattr(kernel, f"hyperparameter_{name}")
    if described.fixed:
        return _Range(value, -math.inf, math.inf, True)
    bounds = np.unique(np.reshape(np.asarray(described.bounds, dtype=float), (-1, 2)), axis=0)
    if len(bounds) > 1:
        raise ParameterError(
            f"{kernel!r} has other bounds of {name} in each column, but a parameter has one pair of bounds."
            f" Give one pair for all columns: {name}_bounds=({bounds[:, 0].min():g}, {bounds[:, 1].max():g})."
        )
    low, high = bounds[0].tolist()
    return _Range(value, low, high, False)


def _terms(kernel: Any) -> list[Any]:
    """The terms of the sum that a kernel is."""
    from sklearn.gaussian_process.kernels import Sum

    return [*_terms(kernel.k1), *_terms(kernel.k2)] if type(kernel) is Sum else [kernel]


def _noise(term: Any) -> _Range | None:
    """The variance of a term that is white noise, perhaps times constants; None for any other term."""
    from sklearn.gaussian_process.kernels import ConstantKernel, Product, WhiteKernel

    if type(term) is WhiteKernel:
        return _range(term, "noise_level")
    if type(term) is not Product:
        return None
    for constant, other in ((term.k1, term.k2), (term.k2, term.k1)):
        noise = _noise(other)
        if type(constant) is ConstantKernel and noise is not None:
            scale = _range(constant, "constant_value")
            (low, high), (least, most) = scale.ends(), noise.ends()
            return _Range(scale.value * noise.value, low * least, high * most, scale.fixed and noise.fixed)
    return None


def _sum_of(noises: list[_Range]) -> _Range:
    """Independent noises add, and so do the ends of their ranges."""
    low, high = (sum(ends) for ends in zip(*(noise.ends() for noise in noises), strict=True))
    return _Range(sum(noise.value for noise in noises), low, high, all(noise.fixed for noise in noises))


def _converted(kernel: Any) -> Kernel:
    """A kernel of scikit-learn without noise. Looked up by exact class, since its Matern is a subclass of its
    RBF."""
    import sklearn.gaussian_process.kernels as theirs

    def of(kind: Callable[..., Kernel], *names: str) -> Callable[[Any], Kernel]:
        return lambda k: kind(*(_range(k, name).parameter() for name in names))

    rules: dict[type, Callable[[Any], Kernel]] = {
        theirs.ConstantKernel: of(Constant, "constant_value"),
        theirs.RBF: of(RBF, "length_scale"),
        theirs.Matern: lambda k: of(_matern(k.nu), "length_scale")(k),
        theirs.RationalQuadratic: of(RationalQuadratic, "length_scale", "alpha"),
        theirs.ExpSineSquared: of(Periodic, "length_scale", "periodicity"),
        theirs.DotProduct: _dot_product,
        theirs.Sum: lambda k: _converted(k.k1) + _converted(k.k2),
        theirs.Product: _product,
        theirs.Exponentiation: _power,
    }
    cures = {
        theirs.WhiteKernel: (
            "It stands within another operation, but noise must be a term of the whole kernel: kernel +"
            " WhiteKernel(...)."
        ),
        theirs.CompoundKernel: "It holds several kernels for several outputs: convert each of its kernels.",
        theirs.PairwiseKernel: (
            "It names a function of sklearn.metrics: write that kernel with this library, such as Linear,"
            " Polynomial or RBF."
        ),
    }
    if type(kernel) not in rules:
        known = ", ".join(kind.__name__ for kind in (*rules, theirs.WhiteKernel))
        cure = cures.get(type(kernel), f"Those converted are {known}.")
        raise ParameterError(f"{type(kernel).__name__} cannot be converted. {cure}")
    return rules[type(kernel)](kernel)


def _matern(nu: float) -> type[Kernel]:
    if nu not in _MATERN:
        raise ParameterError(
            f"Matern with nu={nu:g} cannot be converted. This library has those with nu = 0.5, 1.5, 2.5 and"
            " inf: choose one."
        )
    return _MATERN[nu]


def _dot_product(kernel: Any) -> Kernel:
    sigma = _range(kernel, "sigma_0")
    lines = Linear(fixed(1.0))
    if sigma.value == 0:
        return lines
    square = _Range(sigma.value**2, max(sigma.low, 0.0) ** 2, sigma.high**2, sigma.fixed)
    return Constant(square.parameter()) + lines


def _product(kernel: Any) -> Kernel:
    left, right = _converted(kernel.k1), _converted(kernel.k2)
    if isinstance(left, Constant):
        return multiply(right, left.variance)
    return multiply(left, right.variance if isinstance(right, Constant) else right)


def _power(kernel: Any) -> Kernel:
    if not float(kernel.exponent).is_integer():
        why = "only whole powers of a kernel are always positive semi-definite"
        raise ParameterError(f"{kernel!r} cannot be converted: {why}.")
    return _converted(kernel.kernel) ** int(kernel.exponent)
