"""Estimators: fit and predict, as scikit-learn has them."""

from gramian.estimators.regressor import GPRegressor

__all__ = ["GPRegressor"]
