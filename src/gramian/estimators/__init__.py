"""Estimators: scikit-learn's fit and predict."""

from gramian.estimators.classifier import GPClassifier
from gramian.estimators.regressor import GPRegressor

__all__ = ["GPClassifier", "GPRegressor"]
