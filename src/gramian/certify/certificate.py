"""How far an approximate answer can be from the exact posterior of the same model, at the same parameters.

Bounds of the evidence, of means and of variances (see bounds.py) hold for the data at hand, whatever they
are. Beside them an exact solve of a random part of the data, with the same method on the same part, gives an
estimate with a standard error. Means and variances are compared at rows of the data chosen at random. Cost:
that of the bounds, and n^3 for the part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gramian.arrays import Array, plain_numbers
from gramian.certify.bounds import bounds_of
from gramian.engines.dense import Exact
from gramian.errors import ParameterError
from gramian.inference import Data, Evidence, Model, Scheme, closed
from gramian.params.space import html_text
from gramian.processes.base import Process

POINTS = 100  # rows at which means and variances are compared
PART = 1500  # rows of the exact solve on a part


@dataclass(frozen=True)
class Quantity:
    """A number, and what kind of number it is."""

    value: float
    kind: Literal["exact", "bound", "estimate"]
    standard_error: float = 0.0

    def __post_init__(self) -> None:
        plain_numbers(self)

    def __str__(self) -> str:
        spread = f" +- {self.standard_error:.2g}" if self.kind == "estimate" else ""
        return f"{self.value:.6g}{spread} ({self.kind})"


@dataclass(frozen=True)
class Certificate:
    """How far the answer can be from the exact posterior of the same model at the same parameters.

    Errors are of the latent function, in the units of y, at `points` rows of the data chosen at random.
    """

    evidence_lower: Quantity
    evidence_upper: Quantity
    mean_error: Quantity  # the largest
    std_error: Quantity  # the largest
    mean_error_rms: Quantity  # on a random part of the data
    std_error_rms: Quantity
    typical_std: float  # the median posterior standard deviation at these rows, to measure errors by
    points: int

    def __str__(self) -> str:
        rows = [
            ("log evidence, at least", self.evidence_lower),
            ("log evidence, at most", self.evidence_upper),
            ("error of a mean, largest", self.mean_error),
            ("error of a std, largest", self.std_error),
            ("error of a mean, rms", self.mean_error_rms),
            ("error of a std, rms", self.std_error_rms),
        ]
        head = f"Certificate, at {self.points} rows with a typical std of {self.typical_std:.4g}"
        return "\n".join([head, *(f"  {name:<26}{quantity}" for name, quantity in rows)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_text(str(self))


def certify(
    model: Model,
    data: Data,
    method: Scheme,
    posterior: Process,
    evidence: Evidence,
    rng: np.random.Generator,
    memory: float,
) -> Certificate:
    """The certificate of a fitted model, made within so many bytes."""
    at = np.sort(rng.choice(len(data.X), min(POINTS, len(data.X)), replace=False))
    points = np.asarray(data.X[at], dtype=np.float64)
    var = posterior.moments(points)[1]
    typical = float(np.median(np.sqrt(var)))
    # Where a factor stood in for an iteration, bounds tell what rounding did to both.
    if evidence.kind == "exact" and method.smooth:
        value, none = Quantity(evidence.value, "exact"), Quantity(0.0, "exact")
        return Certificate(value, value, none, none, none, none, typical, len(points))
    if np.isnan(data.Y).any():
        raise ParameterError(
            "Certificates of approximations are for outputs that were all observed; y has NaN. Fit the"
            " outputs one by one, or use exact inference."
        )
    bounds = bounds_of(model, data, posterior, points, rng, memory)
    std, low, high = np.sqrt(var), np.sqrt(bounds.var_low), np.sqrt(bounds.var_high)
    errors = float(np.max(bounds.mean_error)), float(np.max(np.maximum(high - std, std - low)))
    rms = _on_a_part(model, data, method, posterior, points, rng)
    lower, upper, mean_error, std_error = (
        Quantity(value, "bound") for value in (bounds.evidence_low, bounds.evidence_high, *errors)
    )
    return Certificate(lower, upper, mean_error, std_error, *rms, typical, len(points))


def _on_a_part(
    model: Model, data: Data, method: Scheme, posterior: Process, points: Array, rng: np.random.Generator
) -> tuple[Quantity, Quantity]:
    """The rms errors of means and standard deviations, when method and exact inference see the same rows; of
    a posterior that can be refined, against that, from all rows: a part would not be as near to each other.
    """
    at = np.sort(rng.choice(len(data.X), min(PART, len(data.X)), replace=False))
    part, refined = data.take(at), posterior.refined()
    if len(at) < len(data.X) and refined is None:
        # the same basis; a preconditioner, being of rows, is a new one
        posterior = method.prepared(model, part, rng).infer(model, part).posterior
    whole = refined
    if whole is None or len(at) == len(data.X):
        whole = closed(Exact()).infer(model, part).posterior
    ours, exact = posterior.moments(points), whole.moments(points)
    errors = (ours[0] - exact[0]) ** 2, (np.sqrt(ours[1]) - np.sqrt(exact[1])) ** 2
    found = []
    for squares in errors:
        mean = float(np.mean(squares))
        spread = float(np.std(squares)) / np.sqrt(max(squares.size - 1, 1))
        root = float(np.sqrt(mean))
        found.append(Quantity(root, "estimate", spread / (2 * root) if root > 0 else 0.0))
    return found[0], found[1]
