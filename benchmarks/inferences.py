"""Inference with other likelihoods, at fixed parameters: Laplace, EP, variational inference and its
stochastic step, each against its peers."""

from __future__ import annotations

import warnings

import numpy as np

import gramian as gm
import peers
from common import Result, against_peers, at_least, take_turns

KERNEL = 4.0 * gm.RBF(np.full(8, 3.0))


def laplace() -> list[Result]:
    """n = 1,000: a fit, and the evidence with its gradient, against scikit-learn."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    X, y = peers.labels(1000, 0.3)
    theirs = GaussianProcessClassifier(
        ConstantKernel(4.0) * RBF(np.full(8, 3.0)), optimizer=None, copy_X_train=False
    )
    ours = gm.GPClassifier(KERNEL, inference="laplace", optimize=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = take_turns(7, ours=lambda: ours.fit(X, y), theirs=lambda: theirs.fit(X, y))
        own, theta = ours.theta_, theirs.kernel_.theta
        slopes = take_turns(
            7,
            ours=lambda: ours.log_evidence(own, return_grad=True),
            theirs=lambda: theirs.log_marginal_likelihood(theta, eval_gradient=True),
        )
    return [
        at_least(
            f"{name}: scikit-learn over ours",
            f"{found['ours']:.4g} s",
            f"{found['theirs']:.4g} s",
            found["theirs"] / found["ours"],
            aim,
        )
        for name, found, aim in (
            ("laplace, fit, n = 1,000", fit, 3),
            ("laplace, evidence with gradient, n = 1,000", slopes, 4),
        )
    ]


def ep() -> list[Result]:
    return _at_fixed("ep", 10)


def vi() -> list[Result]:
    """To the bound that GPflow's L-BFGS ends with, or a higher one."""
    return _at_fixed("vi", 4)


def _at_fixed(word: str, aim: float) -> list[Result]:
    X, y = peers.labels(500, 0.3)
    gp = gm.GPClassifier(KERNEL, inference=word, link="probit", optimize=False).fit(X, y)
    return against_peers(
        f"{word}, n = 500, probit", lambda: peers.best(lambda: gp.fit(X, y), 5), aim, gp.evidence_.value
    )


def svgp() -> list[Result]:
    """A step with 500 points in batches of 1,024; the mean of a hundred, as for the peers, without what a fit
    begins and ends with."""
    X, y = peers.labels(20_000, 0.0)

    def seconds(steps: int) -> float:
        gp = gm.GPClassifier(
            KERNEL, link="probit", method=gm.SVGP(500, "uniform", steps=steps), random_state=0
        ).fit(X, y)
        return gp.outcome_.seconds

    def step() -> float:
        few = seconds(20)
        return (seconds(120) - few) / 100

    return against_peers("svgp, a step, 500 points, batch 1,024", step, 2)


BENCHMARKS = {"laplace": laplace, "ep": ep, "vi": vi, "svgp": svgp}
