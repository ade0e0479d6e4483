"""Processes: mean, variance, covariance and draws of f at any points, before or after data.

base        the contract: Process, and what a process that cannot do something says
prior       f = m + s g, g ~ GP(0, k)
posterior   after data, as a function of k(x, Z): exact inference
weights     after data, in the space of the weights of features
nearby      after data, each point from the rows near it
krylov      after data, each variance by a solve
markov      after data, of a state-space form: points among the rows, smoothed
coupled     classes that an approximation has made dependent
stacked     independent processes side by side
"""

from gramian.processes.base import Process
from gramian.processes.posterior import Posterior
from gramian.processes.prior import GaussianProcess
from gramian.processes.stacked import Stacked
from gramian.processes.weights import FeaturePosterior

__all__ = ["FeaturePosterior", "GaussianProcess", "Posterior", "Process", "Stacked"]
