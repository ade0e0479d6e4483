"""Estimators: scikit-learn's fit and predict.

    base          what all share: reading X, the search, the inference, public attributes
    fitted        what a fit leaves, as one frozen value: Fitted, and the contract Learned
    regressor     GPRegressor
    classifier    GPClassifier
    deep          DeepGPRegressor, DeepGPClassifier: layers (gramian.deep)
    multiclass    several classes from binary models; BinaryModels is the other kind of Learned
    build         from settings and data to a model; defaults for people who give none
    latent        which inference on which engine, for likelihoods other than Gaussian noise in closed form
    predictions   from the posterior of f to observations: probabilities, moments, quantiles, densities
    transformers  kernel features for any linear model
    gplatent      GPLatent, places for the rows of a table
    forecaster    GPForecaster, series in time (gramian.series)

Readers of a fitted model (modelfile, report, plots, experiments, cli) ask `gp.fitted_`, at `gp.read(X)`.
"""

from gramian.estimators.classifier import GPClassifier
from gramian.estimators.deep import DeepGPClassifier, DeepGPRegressor
from gramian.estimators.regressor import GPRegressor

__all__ = ["DeepGPClassifier", "DeepGPRegressor", "GPClassifier", "GPRegressor"]
