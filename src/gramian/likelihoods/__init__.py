"""Likelihoods: how an observation y arises from the latent value f. Noise lives here and nowhere else."""

from gramian.likelihoods.base import Likelihood
from gramian.likelihoods.gaussian import Gaussian

__all__ = ["Gaussian", "Likelihood"]
