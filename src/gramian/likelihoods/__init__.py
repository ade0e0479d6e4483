"""Likelihoods: how an observation y arises from the latent value f. Noise lives here and nowhere else."""

from gramian.likelihoods.base import Likelihood
from gramian.likelihoods.binary import Bernoulli, Binomial
from gramian.likelihoods.categorical import RobustMax, Softmax
from gramian.likelihoods.continuous import Beta, Gamma, StudentT
from gramian.likelihoods.counts import NegativeBinomial, Poisson
from gramian.likelihoods.gaussian import Gaussian, Heteroscedastic
from gramian.likelihoods.ordinal import Ordinal

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Gamma",
    "Gaussian",
    "Heteroscedastic",
    "Likelihood",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "RobustMax",
    "Softmax",
    "StudentT",
]
