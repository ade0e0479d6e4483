"""Random kernels, for hypothesis."""

from __future__ import annotations

import math

import jax
import numpy as np
from hypothesis import strategies as st

from gramian.kernels import (
    RBF,
    ArcCosine,
    Brownian,
    Categorical,
    Constant,
    Cosine,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    NeuralNetwork,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    SpectralMixture,
    Sum,
    exp,
    poly,
)
from gramian.params import Gamma, HalfNormal, InverseGamma, LogNormal, Normal, Uniform, fixed, param

numbers = st.floats(0.1, 10.0)  # with all their digits: a repr that rounds is found
tiny_or_huge = st.one_of(numbers, st.floats(1e-12, 1e-6), st.floats(1e6, 1e12))


@st.composite
def parameters(draw, values=tiny_or_huge):
    """A positive number as a user may give it: plain, fixed, or with a prior and bounds."""
    value = draw(values)
    way = draw(st.sampled_from(["plain", "plain", "fixed", "param"]))
    if way != "param":
        return value if way == "plain" else fixed(value)
    priors = [
        LogNormal(0, 1),
        LogNormal(np.float64(0.3), 2),
        Normal(-1, 3),
        HalfNormal(2),
        Gamma(2, 0.1),
        InverseGamma(),
        Uniform(0, 1e13),
        None,
    ]
    bounds = [None, (value / 3, value * 7), (value / 3, math.inf)]
    return param(
        value,
        prior=draw(st.sampled_from(priors)),
        bounds=draw(st.sampled_from(bounds)),
        trainable=draw(st.booleans()),
    )


vectors = st.lists(numbers, min_size=3, max_size=3)


def simple(parameter=numbers):
    """Kernels that are not made of kernels, on three columns."""
    scale = st.one_of(parameter, vectors)
    return st.one_of(
        *(st.builds(kind, scale) for kind in (RBF, Matern12, Matern32, Matern52)),
        st.builds(RationalQuadratic, scale, parameter),
        st.builds(Periodic, scale, scale),
        st.builds(Cosine, scale),
        st.builds(Linear, scale),
        st.builds(Polynomial, st.integers(1, 3), scale, parameter),
        st.builds(ArcCosine, st.integers(0, 2), scale, parameter),
        st.builds(NeuralNetwork, scale, parameter),
        st.builds(Constant, parameter),
        st.builds(Brownian),
        st.builds(Categorical, st.floats(0.1, 0.9)),
        st.builds(lambda w, m, s: SpectralMixture([w, w], [m, -m], [s, s]), numbers, numbers, numbers),
    )


names = st.one_of(st.text(max_size=5), st.sampled_from(["temp", "it's", 'a "b"', "né\n\\", "x y"]))
columns = st.lists(st.one_of(st.integers(-3, 2), names), min_size=1, max_size=4, unique=True)


def composed() -> st.SearchStrategy[Kernel]:
    """Kernels of kernels, all that text can carry."""

    def of(child):
        return st.one_of(
            st.builds(lambda a, b: a + b, child, child),
            st.builds(lambda a, b: a * b, child, child),
            st.builds(lambda a, c: c * a, child, parameters()),
            st.builds(lambda a, c: a + c, child, parameters()),
            st.builds(lambda a, p: a**p, child, st.integers(1, 4)),
            st.builds(exp, child),
            st.builds(poly, child, vectors),
            st.builds(lambda a, c: poly(a, param(c)), child, vectors),
            st.builds(lambda a, c: poly(a, param(c, bounds=(0.0, 99.0), trainable=False)), child, vectors),
            st.builds(lambda a, names: a.on(*names), child, columns),
            st.builds(lambda a, b: Sum((a, Sum((b, a)))), child, child),
            st.builds(lambda a, b: Product((Product((a, b)), b)), child, child),
            st.builds(Scaled, child, parameters()),
        )

    return st.recursive(simple(parameters()), of, max_leaves=5)


def values(kernel: Kernel, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
    """K(X, Z) operation by operation: nothing to compile anew for each random kernel."""
    with jax.enable_x64(True):
        return np.asarray(kernel.bare().cross(jax.numpy.asarray(X), jax.numpy.asarray(X if Z is None else Z)))
