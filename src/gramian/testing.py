"""Conformance suites: what an implementation of one of this library's contracts promises, on random data.

    check_kernel(MyKernel(0.5))   # passes silently, or raises AssertionError with the promise that is broken
    check_features(MyBasis(...), kernel, d)
    check_factor(MySolver())      # a solver and its factors
    check_likelihood(MyLikelihood())
    check_engine(MyEngine())      # K at the rows, and Gaussian sites on it
    check_inference(MyInference())
    check_posterior(process, X)   # a prior or posterior, at some points

Each suite takes one object, needs no test framework, and draws its data from a fixed seed, so it fails always
or never.
"""

from gramian._conformance.engines import check_engine
from gramian._conformance.features import check_features
from gramian._conformance.inference import check_inference, check_posterior
from gramian._conformance.kernels import check_kernel
from gramian._conformance.likelihoods import check_likelihood
from gramian._conformance.solvers import check_factor

__all__ = [
    "check_engine",
    "check_factor",
    "check_features",
    "check_inference",
    "check_kernel",
    "check_likelihood",
    "check_posterior",
]
