"""Kernels: what k(x, z) is, and every rule for composing one from others."""

from gramian.kernels.algebra import Exp, Poly, Power, Product, Scaled, Sum, Warped, exp, poly, warp
from gramian.kernels.base import Column, Kernel
from gramian.kernels.categorical import Categorical
from gramian.kernels.coregion import Coregion
from gramian.kernels.deep import CNN, MLP, DeepKernel, Network
from gramian.kernels.dot_product import (
    ArcCosine,
    Brownian,
    Constant,
    IntegratedBrownian,
    Linear,
    NeuralNetwork,
    Polynomial,
)
from gramian.kernels.images import Convolutional
from gramian.kernels.inputs import MapInputs, Named, On, map_inputs
from gramian.kernels.networks import ConvNet, DenseNet, ResNet
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
    "CNN",
    "MLP",
    "RBF",
    "ArcCosine",
    "Brownian",
    "Categorical",
    "Column",
    "Constant",
    "ConvNet",
    "Convolutional",
    "Coregion",
    "Cosine",
    "DeepKernel",
    "DenseNet",
    "Exp",
    "IntegratedBrownian",
    "Kernel",
    "Linear",
    "MapInputs",
    "Matern12",
    "Matern32",
    "Matern52",
    "Named",
    "Network",
    "NeuralNetwork",
    "On",
    "Periodic",
    "Poly",
    "Polynomial",
    "Power",
    "Product",
    "RationalQuadratic",
    "ResNet",
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
