"""Gaussian processes: easy as scikit-learn, close to LAPACK's speed, honest about what was computed.

import gramian as gm

gp = gm.GPRegressor().fit(X, y)
mean, std = gp.predict(X_new, return_std=True)
print(gp.summary())

Names are imported when they are first asked for, so that `import gramian` takes no longer than it must:
JAX and SciPy come with the first kernel or estimator.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from sys import modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gramian.version import __version__

if TYPE_CHECKING:
    from gramian import likelihoods
    from gramian.choose.plan import plan
    from gramian.data.sources import Source, open_table
    from gramian.engines import Exact, Fourier, Krylov, Nystrom, Sparse
    from gramian.errors import GramianError
    from gramian.estimators import GPClassifier, GPRegressor
    from gramian.estimators.transformers import FourierFeatures, NystromFeatures
    from gramian.experiments.compare import Comparison, compare
    from gramian.experiments.selection import ModelComparison, compare_models
    from gramian.fitting.stages import Hold
    from gramian.gp import GP
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
    from gramian.landmarks.rules import landmarks
    from gramian.likelihoods import (
        Bernoulli,
        Beta,
        Binomial,
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

__all__ = [
    "CG",
    "EP",
    "GP",
    "MCMC",
    "MINRES",
    "RBF",
    "SVGP",
    "VI",
    "ArcCosine",
    "Bernoulli",
    "Beta",
    "Binomial",
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
    "Krylov",
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

# Where each name is from: what the imports above say, for those who run the code.
_HOMES = {
    "gramian.choose.plan": "plan",
    "gramian.data.sources": "Source open_table",
    "gramian.errors": "GramianError",
    "gramian.estimators": "GPClassifier GPRegressor",
    "gramian.estimators.transformers": "FourierFeatures NystromFeatures",
    "gramian.experiments.compare": "Comparison compare",
    "gramian.experiments.selection": "ModelComparison compare_models",
    "gramian.fitting.stages": "Hold",
    "gramian.gp": "GP",
    "gramian.engines": "Exact Fourier Krylov Nystrom Sparse",
    "gramian.inference.ep": "EP",
    "gramian.inference.laplace": "Laplace",
    "gramian.inference.mcmc.method": "MCMC",
    "gramian.inference.svgp.inducing": "SVGP",
    "gramian.inference.variational": "VI",
    "gramian.kernels": (
        "RBF ArcCosine Brownian Categorical Constant Cosine Kernel Linear Matern12 Matern32 Matern52 "
        "NeuralNetwork Periodic Polynomial RationalQuadratic SpectralMixture Stationary exp "
        "map_inputs poly warp"
    ),
    "gramian.kernels.convert": "from_sklearn",
    "gramian.kernels.text": "parse_kernel",
    "gramian.landmarks.rules": "landmarks",
    "gramian.likelihoods": (
        "Bernoulli Beta Binomial Gaussian Heteroscedastic Likelihood NegativeBinomial Ordinal Poisson "
        "RobustMax Softmax StudentT"
    ),
    "gramian.linalg.threads": "set_threads",
    "gramian.means": "ConstantMean LinearMean Mean ZeroMean",
    "gramian.modelfile": "load",
    "gramian.params": (
        "Gamma HalfNormal InverseGamma LogNormal Normal Parameter Uniform fixed nonnegative param "
        "positive real unit_interval"
    ),
    "gramian.solvers": "CG MINRES",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """The name, from its home; or a module of the package."""
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif not name.startswith("_") and find_spec(f"gramian.{name}") is not None:
        value = import_module(f"gramian.{name}")
    else:
        raise AttributeError(f"module 'gramian' has no attribute {name!r}")
    globals()[name] = value  # not asked again
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """`gramian.landmarks` is a function, though a package has the same name: whoever imports the package must
    not bind the name to it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


modules[__name__].__class__ = _Package
