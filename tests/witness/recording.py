"""What is written down of a fitted model: every number that its public methods give, at few points.

A quantity that a model does not have (leave-one-out of chains, the certificate of a classifier) is left out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gramian as gm

Number = float | str | list[Any]
Numbers = dict[str, Number]

FEW = 3  # points of covariances, slopes and draws
LEFT_OUT = 4  # rows


def plain(value: Any) -> Number:
    """As JSON has it: floats and lists of them, or a word."""
    return value if isinstance(value, str) else np.asarray(value, dtype=np.float64).tolist()


class Record:
    """Collects quantities by name."""

    def __init__(self) -> None:
        self.found: Numbers = {}
        self.refused: dict[str, str] = {}  # what the model said instead

    def add(self, ask: Callable[[], Any], *names: str) -> None:
        """One quantity, or those of a tuple by their names; nothing where the model refuses."""
        try:
            value = ask()
        except gm.GramianError as error:
            self.refused.update(dict.fromkeys(names, str(error)))
            return
        for name, part in zip(names, value if len(names) > 1 else (value,), strict=True):
            self.found[name] = plain(part)


def evidence(record: Record, gp: Any) -> None:
    """Evidence as fitted and as evaluated anew, with its gradient, and the parameters."""
    if np.isfinite(gp.evidence_.value):
        record.add(lambda: gp.evidence_.value, "evidence")
        record.add(lambda: gp.log_evidence(), "evidence again")
        record.add(lambda: gp.log_evidence(return_grad=True), "evidence with gradient", "gradient")
    record.add(lambda: gp.evidence_.kind, "kind")
    record.add(lambda: gp.theta_, "theta")


def regression(gp: gm.GPRegressor, X: Any, exposure: Any = None) -> Record:
    """Of a fitted regression, at the points X."""
    record, few, own = Record(), X[:FEW], {} if exposure is None else {"exposure": exposure}
    evidence(record, gp)
    if hasattr(gp, "noise_"):
        record.add(lambda: gp.noise_, "noise")
        record.add(lambda: gp.predict(few, return_cov=True)[1], "cov y")
    record.add(lambda: gp.predict(X, return_std=True, **own), "mean y", "std y")
    record.add(lambda: gp.predict(X, return_std=True, target="f"), "mean f", "std f")
    record.add(lambda: gp.predict(few, return_cov=True, target="f")[1], "cov f")
    record.add(lambda: _left_out(gp), "loo mean", "loo std", "loo log density", "loo log density, sum")
    record.add(lambda: _certified(gp.certificate_), "certificate")
    record.add(lambda: gp.predict_gradient(few), "slope", "slope variance")
    record.add(lambda: list(gp.components(few).values()), "components")
    record.add(lambda: gp.sample(few, 2, random_state=1), "sample f")
    record.add(lambda: gp.sample(few, 2, target="y", random_state=2), "sample y")
    return record


def _left_out(gp: Any) -> list[Any]:
    found = gp.loo()
    return [*(part[:LEFT_OUT] for part in found), float(np.sum(found.log_density))]


def _certified(given: Any) -> list[float]:
    bounds = [given.evidence_lower, given.evidence_upper, given.mean_error, given.std_error]
    estimates = [given.mean_error_rms, given.std_error_rms]
    return [*(q.value for q in (*bounds, *estimates)), given.typical_std]


def classification(gp: gm.GPClassifier, X: Any) -> Record:
    """Of a fitted classifier, at the points X."""
    record, few = Record(), X[:FEW]
    evidence(record, gp)
    record.add(lambda: gp.predict_proba(X), "probabilities")
    record.add(lambda: gp.predict_latent(X), "mean f", "var f")
    record.add(lambda: _left_out(gp), "loo probabilities", "loo log density", "loo log density, sum")
    record.add(lambda: gp.sample(few, 2, random_state=1), "sample f")
    record.add(
        lambda: np.searchsorted(gp.classes_, gp.sample(few, 2, target="y", random_state=2)), "sample y"
    )
    return record


def reloaded(gp: Any, X: Any) -> float:
    """The largest difference between predictions of a model and of the same model read from its file: 0."""
    with tempfile.TemporaryDirectory() as folder:
        gp.save(Path(folder) / "m.gm")
        again = gm.load(Path(folder) / "m.gm")

    def told(model: Any) -> np.ndarray:
        classes = isinstance(model, gm.GPClassifier)
        return np.concatenate(
            model.predict_latent(X) if classes else model.predict(X, return_std=True, target="f")
        )

    return float(np.max(np.abs(told(gp) - told(again))))
