"""Gaussian processes: easy as scikit-learn, close to LAPACK's speed, honest about what was computed.

import gramian as gm

gp = gm.GPRegressor().fit(X, y)
mean, std = gp.predict(X_new, return_std=True)
print(gp.summary())
"""

from gramian import likelihoods
from gramian.choose.plan import plan
from gramian.data.sources import Source, open_table
from gramian.errors import GramianError
from gramian.estimators import GPClassifier, GPRegressor
from gramian.estimators.transformers import FourierFeatures, NystromFeatures
from gramian.experiments.compare import Comparison, compare
from gramian.experiments.selection import ModelComparison, compare_models
from gramian.fitting.stages import Hold
from gramian.inference import Exact, Fourier, Nystrom, Sparse
from gramian.inference.ep import EP
from gramian.inference.laplace import Laplace
from gramian.inference.mcmc.method import MCMC
from gramian.inference.svgp.inducing import SVGP
from gramian.inference.variational import VI
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
    RationalQuadratic,
    SpectralMixture,
    Stationary,
    exp,
    map_inputs,
    poly,
    warp,
)
from gramian.kernels.convert import from_sklearn
from gramian.kernels.text import parse_kernel
from gramian.landmarks.base import landmarks
from gramian.likelihoods import (
    Bernoulli,
    Beta,
    Gaussian,
    Heteroscedastic,
    Likelihood,
    NegativeBinomial,
    Ordinal,
    Poisson,
    RobustMax,
    Softmax,
    StudentT,
)
from gramian.linalg.threads import set_threads
from gramian.means import ConstantMean, LinearMean, Mean, ZeroMean
from gramian.modelfile import load
from gramian.params import (
    Gamma,
    HalfNormal,
    InverseGamma,
    LogNormal,
    Normal,
    Parameter,
    Uniform,
    fixed,
    nonnegative,
    param,
    positive,
    real,
    unit_interval,
)
from gramian.solvers import CG, MINRES
from gramian.version import __version__

__all__ = [
    "CG",
    "EP",
    "MCMC",
    "MINRES",
    "RBF",
    "SVGP",
    "VI",
    "ArcCosine",
    "Bernoulli",
    "Beta",
    "Brownian",
    "Categorical",
    "Comparison",
    "Constant",
    "ConstantMean",
    "Cosine",
    "Exact",
    "Fourier",
    "FourierFeatures",
    "GPClassifier",
    "GPRegressor",
    "Gamma",
    "Gaussian",
    "GramianError",
    "HalfNormal",
    "Heteroscedastic",
    "Hold",
    "InverseGamma",
    "Kernel",
    "Laplace",
    "Likelihood",
    "Linear",
    "LinearMean",
    "LogNormal",
    "Matern12",
    "Matern32",
    "Matern52",
    "Mean",
    "ModelComparison",
    "NegativeBinomial",
    "NeuralNetwork",
    "Normal",
    "Nystrom",
    "NystromFeatures",
    "Ordinal",
    "Parameter",
    "Periodic",
    "Poisson",
    "Polynomial",
    "RationalQuadratic",
    "RobustMax",
    "Softmax",
    "Source",
    "Sparse",
    "SpectralMixture",
    "Stationary",
    "StudentT",
    "Uniform",
    "ZeroMean",
    "__version__",
    "compare",
    "compare_models",
    "exp",
    "fixed",
    "from_sklearn",
    "landmarks",
    "likelihoods",
    "load",
    "map_inputs",
    "nonnegative",
    "open_table",
    "param",
    "parse_kernel",
    "plan",
    "poly",
    "positive",
    "real",
    "set_threads",
    "unit_interval",
    "warp",
]
