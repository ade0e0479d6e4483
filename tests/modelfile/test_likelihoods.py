"""Classifiers and other likelihoods in files: predictions, draws and the summary come back to the last bit, labels with their type."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from gramian.errors import GramianError, ModelFileError
from gramian.inference.ep import EP
from gramian.inference.mcmc import MCMC
from gramian.inference.svgp import SVGP
from gramian.likelihoods import Bernoulli, Heteroscedastic, Likelihood, Ordinal, Poisson, StudentT
from gramian.likelihoods import Gamma as GammaLikelihood
from gramian.modelfile import load
from gramian.modelfile.record import describe
from tests.test_modelfile import fresh_process

# One text for this process and for a fresh one.
ASK = """
import hashlib
import numpy as np
from threadpoolctl import threadpool_limits

@threadpool_limits.wrap(limits=1, user_api="blas")  # the same number on both sides: another one may add in another order
def answers(gp):
    X = np.random.default_rng(1).uniform(0.1, 2.0, (5, 2))
    found = {}
    if hasattr(gp, "classes_"):
        found.update({"labels": gp.predict(X).astype(str), "probabilities": gp.predict_proba(X), "latent": np.stack(gp.predict_latent(X))})
    else:
        found.update({"mean": gp.predict(X), "std": np.stack(gp.predict(X, return_std=True)), "f": np.stack(gp.predict(X, return_std=True, target="f"))})
    if not hasattr(gp, "estimators_"):
        found.update({"draws": gp.sample(X, 3, random_state=0), "observed": gp.sample(X, 3, target="y", random_state=0).astype(str)})
    digests = {name: hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest() for name, value in found.items()}
    return {**digests, "summary": gp.summary(), "evidence": str(gp.evidence_), "outcome": repr(gp.outcome_)}
"""
namespace: dict[str, Any] = {}
exec(ASK, namespace)
answers = namespace["answers"]

K = gm.RBF([0.7, 0.9])
CLASSIFIER: dict[str, Any] = {"optimize": False, "random_state": 0}


class LumpyForTheModelFile(Likelihood):
    """A user's own likelihood: Gaussian noise of a fixed kind, with a parameter and a plain field."""

    width: Any = gm.positive(0.5)
    power: int = 2

    def log_prob(self, y: Any, f: Any) -> Any:
        return -((((y - f) / self.width) ** 2) ** (self.power / 2)) / 2

    @property
    def log_concave(self) -> bool:
        return True

    def conditional_moments(self, f: Any) -> Any:
        return f, self.width**2 + 0 * f

    def draw(self, rng: np.random.Generator, f: Any) -> Any:
        return f + rng.standard_normal(np.shape(f))


def table() -> np.ndarray:
    return np.random.default_rng(0).uniform(0.1, 2.0, (14, 2))


def two(kind: str = "text") -> np.ndarray:
    X = table()
    return np.where(X[:, 0] + 0.4 * np.sin(9 * X[:, 1]) > 1, "yes", "no")


def three() -> np.ndarray:
    return np.digitize(table()[:, 0] + 0.2 * np.sin(9 * table()[:, 1]), [0.7, 1.3]) + 10


def numbers() -> np.ndarray:
    return np.sin(2 * table()[:, 0]) + 0.1 * np.random.default_rng(2).standard_normal(14)


def classifier(y: Any, kernel: Any = K, **settings: Any) -> gm.GPClassifier:
    return gm.GPClassifier(kernel, **{**CLASSIFIER, **settings}).fit(table(), y)


def regressor(y: Any, fit: dict[str, Any] | None = None, kernel: Any = K, **settings: Any) -> gm.GPRegressor:
    return gm.GPRegressor(kernel, **{**CLASSIFIER, **settings}).fit(table(), y, **(fit or {}))


COUNTS = np.arange(14) % 4
CHAINS = MCMC(chains=2, warmup=10, draws=8)
MODELS: dict[str, Callable[[], Any]] = {
    "laplace": lambda: classifier(two()),
    "ep, probit": lambda: classifier(two(), inference=EP(power=1, damping=0.5), link="probit", mean="constant"),
    "vi with landmarks": lambda: classifier(two(), inference="vi", method=gm.Sparse(5), averaging="scaled"),
    "fourier": lambda: classifier(two(), method=gm.Fourier(12), stages=[gm.fitting.stages.Hold("kernel.*", steps=3)]),
    "cg": lambda: classifier(two(), method=gm.CG(tol=1e-8, rank=4, probes=2)),
    "softmax": lambda: classifier(three()),
    "softmax, a kernel each, landmarks": lambda: classifier(three(), [K, 2.0 * K, gm.Matern52(0.8)], method=gm.Nystrom(5, "pivoted")),
    "softmax, a kernel each": lambda: classifier(three(), [K, 2.0 * K, gm.Matern52(0.8)], hyper="ml"),
    "robustmax, a kernel each": lambda: classifier(three(), (K, 2.0 * K, gm.Matern52(0.8)), multiclass="robustmax", inference="vi"),
    "ovr": lambda: classifier(three(), multiclass="ovr"),
    "ovo, shared": lambda: classifier(three(), multiclass="ovo", shared=True, link="probit", method=gm.Nystrom(4, "pivoted")),
    "svgp": lambda: classifier(two(), method=SVGP(n_inducing=5, steps=3, batch_size=7)),
    "svgp, fitted": lambda: classifier(two(), method=SVGP(n_inducing=5, steps=3, batch_size=7), optimize=True, n_restarts=0),
    "svgp, three classes": lambda: classifier(three(), [K, 2.0 * K, gm.Matern52(0.8)], method=SVGP(n_inducing=4, optimize_inducing=False)),
    "chains": lambda: classifier(two(), inference=CHAINS),
    "student, signed sites": lambda: regressor(numbers(), likelihood=StudentT(scale=gm.param(0.3, prior=gm.Gamma(2, 1)))),
    "poisson with exposure": lambda: regressor(COUNTS, {"exposure": np.linspace(1, 2, 14)}, likelihood=Poisson()),
    "gamma": lambda: regressor(np.exp(numbers()), likelihood=GammaLikelihood(2.0), inference="laplace"),
    "ordinal": lambda: regressor(COUNTS, likelihood=Ordinal(4), inference="ep"),
    "two functions": lambda: regressor(numbers(), likelihood=Heteroscedastic(), kernel=[K, gm.RBF(2.0)]),
    "gaussian by ep": lambda: regressor(numbers(), inference="ep"),
    "chains of parameters": lambda: regressor(numbers(), hyper="mcmc", inference=None),
    "a likelihood of one's own": lambda: regressor(numbers(), likelihood=LumpyForTheModelFile(0.4)),
}
WITHOUT_DATA = ("vi with landmarks", "fourier", "softmax, a kernel each, landmarks", "svgp", "svgp, fitted", "svgp, three classes")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder, made = tmp_path_factory.mktemp("likelihoods"), {name: make() for name, make in MODELS.items()}
    for k, gp in enumerate(made.values()):
        gp.save(folder / f"{k}.gm")
    return folder, made
