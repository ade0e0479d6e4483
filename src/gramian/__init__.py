"""Gaussian processes: easy as scikit-learn, at LAPACK speed, honest about what was computed.

    import gramian as gm

    gp = gm.GPRegressor().fit(X, y)
    mean, std = gp.predict(X_new, return_std=True)
    print(gp.summary())
"""

from gramian.estimators import GPRegressor
from gramian.inference import Exact
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
from gramian.likelihoods import Gaussian, Likelihood
from gramian.means import ConstantMean, LinearMean, Mean, ZeroMean
from gramian.params import Gamma, HalfNormal, InverseGamma, LogNormal, Normal, Parameter, Uniform, fixed, nonnegative, param, positive, real, unit_interval
