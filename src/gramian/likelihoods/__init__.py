"""Likelihoods: how an observation y arises from the latent value f. Noise lives here and nowhere else."""

from gramian.likelihoods.base import Likelihood
from gramian.likelihoods.binary import Bernoulli
from gramian.likelihoods.categorical import RobustMax, Softmax
from gramian.likelihoods.gaussian import Gaussian
from gramian.likelihoods.heteroscedastic import Heteroscedastic

__all__ = ["Bernoulli", "Gaussian", "Heteroscedastic", "Likelihood", "RobustMax", "Softmax"]
