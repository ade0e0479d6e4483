"""Kernels: what k(x, z) is, and every rule for composing one from others."""

from gramian.kernels.algebra import Exp, Poly, Power, Product, Scaled, Sum, Warped, exp, poly, warp
from gramian.kernels.base import Column, Kernel
from gramian.kernels.categorical import Categorical
from gramian.kernels.dot_product import ArcCosine, Brownian, Constant, Linear, NeuralNetwork, Polynomial
from gramian.kernels.inputs import MapInputs, Named, On, map_inputs
from gramian.kernels.stationary import (
    RBF,
    Cosine,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    SpectralMixture,
    Stationary,
)

__all__ = [
    "RBF",
    "ArcCosine",
    "Brownian",
    "Categorical",
    "Column",
    "Constant",
    "Cosine",
    "Exp",
    "Kernel",
    "Linear",
    "MapInputs",
    "Matern12",
    "Matern32",
    "Matern52",
    "Named",
    "NeuralNetwork",
    "On",
    "Periodic",
    "Poly",
    "Polynomial",
    "Power",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "SpectralMixture",
    "Stationary",
    "Sum",
    "Warped",
    "exp",
    "map_inputs",
    "poly",
    "warp",
]
