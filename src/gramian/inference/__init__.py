"""Inference: from a model and data to a posterior and the evidence.

model           Model, Data, Evidence
base            the contracts: Inference (a rule), Scheme, a rule on an engine
conjugate       Gaussian noise: one step
problem         sites for any likelihood: the loop of Laplace, EP and VI
laplace         the mode and its curvature
ep              expectation propagation
variational     the evidence lower bound
softmax         Laplace for classes that depend on each other
svgp            sparse variational inference in batches
mcmc            Markov chains
asked           what rules ask of a likelihood, for all rows at once
anderson        fixed points, accelerated
"""

from gramian.inference.base import Inference, RuleOnEngine, Scheme, on_engine
from gramian.inference.conjugate import Conjugate, closed
from gramian.inference.model import Data, Evidence, Inferred, Model

__all__ = [
    "Conjugate",
    "Data",
    "Evidence",
    "Inference",
    "Inferred",
    "Model",
    "RuleOnEngine",
    "Scheme",
    "closed",
    "on_engine",
]
