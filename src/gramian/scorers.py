"""Scores of predictions with their uncertainty, as scikit-learn takes them: more is better, but for coverage.

    cross_val_score(gp, X, y, scoring=gramian.scorers.log_density)
    GridSearchCV(gp, grid, scoring=gramian.scorers.neg_crps)

    log_density    the mean of log p(y), of numbers and of labels: the negative log loss
    neg_crps       the negative mean CRPS, in the units of y (several outputs are averaged)
    coverage95     the share of rows within their 95 % interval, which should be 0.95; to look at, not to
                   maximise

Formulas are in gramian.report.evaluation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.estimators.regressor import GPRegressor


def log_density(estimator: Any, X: Any, y: Any) -> float:
    """The mean of log p(y) over rows."""
    return float(np.mean(estimator.log_density(X, y)))


def neg_crps(estimator: GPRegressor, X: Any, y: Any) -> float:
    """The negative mean of the continuous ranked probability score."""
    return -float(np.mean(estimator.predict_dist(X).crps(y)))


def coverage95(estimator: GPRegressor, X: Any, y: Any) -> float:
    """The share of rows within their 95 % interval."""
    lower, upper = estimator.predict_dist(X).interval(0.95)
    return float(np.mean((lower <= np.asarray(y)) & (np.asarray(y) <= upper)))
