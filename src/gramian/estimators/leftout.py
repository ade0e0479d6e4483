"""Each training row predicted from all the others: in closed form under Gaussian noise, else from its cavity,
the posterior without its own site."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.errors import ParameterError
from gramian.estimators import latent
from gramian.inference.asked import ask

if TYPE_CHECKING:
    from gramian.estimators.classifier import GPClassifier
    from gramian.estimators.regressor import GPRegressor

Array = NDArray[np.float64]


class LeaveOneOut(NamedTuple):
    """Predictions of each training row from all the others."""

    mean: Array
    std: Array
    log_density: Array


class LeftOutClasses(NamedTuple):
    """Predictions of each training row from all the others."""

    probabilities: Array  # (n, classes)
    log_density: Array  # (n,): of the row's own class


def numbers(gp: GPRegressor) -> LeaveOneOut:
    """Of a regression; each field (n, q) under Gaussian noise, else (n,)."""
    data = gp._data
    cavities = gp._method_.cavities(gp._model_, data, gp.posterior_)
    if not gp._has_noise():
        answers = ask(gp.likelihood_, "predictive", *cavities)
        scores = latent.log_densities(gp.likelihood_, data.Y[:, 0], *cavities)
        return LeaveOneOut(answers[:, 0], np.sqrt(answers[:, 1]), scores)
    known = 0.0 if data.noise_var is None else data.noise_var[:, None]
    mean, var = cavities.mean, cavities.var + gp._model_.gaussian.variances() + known
    return LeaveOneOut(mean, np.sqrt(var), -0.5 * ((data.Y - mean) ** 2 / var + np.log(2 * np.pi * var)))


def classes(gp: GPClassifier) -> LeftOutClasses:
    """Of a classifier."""
    if gp._is_split():
        raise ParameterError(
            "Leave-one-out needs the sites of Laplace, EP or VI in one model. Use cross-validation:"
            " sklearn.model_selection."
        )
    cavities = gp._method_.cavities(gp._model_, gp._data, gp.posterior_)
    scores = latent.log_densities(gp.likelihood_, gp._data.Y[:, 0], *cavities)
    return LeftOutClasses(ask(gp.likelihood_, "probabilities", *cavities), scores)
