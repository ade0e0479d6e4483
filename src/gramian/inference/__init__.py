"""Inference: from a prior, a likelihood and data to a posterior and the evidence."""

from gramian.inference.base import Data, Evidence, GaussianProcess, Inference, Inferred, Model, Process
from gramian.inference.exact import Exact
from gramian.inference.features import FeaturePosterior
from gramian.inference.methods import Fourier, Nystrom, Sparse
from gramian.inference.posterior import Posterior

__all__ = [
    "Data",
    "Evidence",
    "Exact",
    "FeaturePosterior",
    "Fourier",
    "GaussianProcess",
    "Inference",
    "Inferred",
    "Model",
    "Nystrom",
    "Posterior",
    "Process",
    "Sparse",
]
