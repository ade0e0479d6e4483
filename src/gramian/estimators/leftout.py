"""Each training row predicted from all the others: in closed form under Gaussian noise, else from its cavity,
the posterior without its own site."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.estimators.predictions import Latents, row_densities
from gramian.inference.asked import ask

if TYPE_CHECKING:
    from gramian.estimators.fitted import Fitted

Array = NDArray[np.float64]

NO_SITES = (
    "Leave-one-out needs the sites of Laplace, EP or VI in one model. Use cross-validation:"
    " sklearn.model_selection."
)


class LeaveOneOut(NamedTuple):
    """Predictions of each training row from all the others."""

    mean: Array
    std: Array
    log_density: Array


class LeftOutClasses(NamedTuple):
    """Predictions of each training row from all the others."""

    probabilities: Array  # (n, classes)
    log_density: Array  # (n,): of the row's own class


def left_out_numbers(fitted: Fitted) -> LeaveOneOut:
    """Of a regression; each field (n, q) in closed form, else (n,)."""
    rows = fitted.rows
    if not fitted.closed_form:
        cavities = _cavities(fitted)
        answers = ask(fitted.likelihood, "predictive", rows.Y[:, 1:], cavities.mean, cavities.var)
        return LeaveOneOut(answers[:, 0], np.sqrt(answers[:, 1]), row_densities(cavities, rows.Y))
    known = 0.0 if rows.noise_var is None else rows.noise_var[:, None]
    cavities = _cavities(fitted)
    mean, var = cavities.mean, cavities.var + fitted.model.gaussian.variances() + known
    return LeaveOneOut(mean, np.sqrt(var), -0.5 * ((rows.Y - mean) ** 2 / var + np.log(2 * np.pi * var)))


def left_out_classes(fitted: Fitted) -> LeftOutClasses:
    """Of a classifier of one model."""
    cavities = _cavities(fitted)
    return LeftOutClasses(
        ask(fitted.likelihood, "probabilities", cavities.mean, cavities.var),
        row_densities(cavities, fitted.rows.Y),
    )


def _cavities(fitted: Fitted) -> Latents:
    """f at each row without the row's own site."""
    seen = fitted.inference.cavities(fitted.model, fitted.rows, fitted.process)
    return Latents(fitted.likelihood, *seen)
