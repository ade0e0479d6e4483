"""Pictures. Each function draws on the axes it is given, or makes a figure of its own, and returns the
figure; no global setting is changed.

    predictions   mean and 95 % band of a regression, along each column
    classes       probabilities along columns, or a map of two with the boundaries
    relevance     which columns matter
    scores        residuals along columns, PIT, calibration, reliability
    health        the same, and more, as the pictures of a report's page
    kernels       what a kernel believes: shape, matrix, draws
    layers        what the layers of a deep model do
    covariance    f at all pairs of places, before the rows and after them
    evidence      the evidence over two parameters
    search        how a search for parameters went
    points        landmarks, or inducing points, among the rows
    patches       what a convolutional kernel's model sees
    latent        maps of latent places, and columns along a dimension
    forecast      series with their forecasts, and what they are made of
    comparison    errors of approximations against size and time
    common        colours, axes, the typical row
"""

from gramian.plots.classes import plot_classes
from gramian.plots.covariance import plot_covariance
from gramian.plots.evidence import plot_evidence
from gramian.plots.kernels import plot_kernel
from gramian.plots.layers import plot_layers
from gramian.plots.patches import plot_patches
from gramian.plots.points import plot_landmarks
from gramian.plots.predictions import plot_predictions
from gramian.plots.relevance import plot_relevance
from gramian.plots.scores import plot_calibration, plot_residuals
from gramian.plots.search import plot_search

__all__ = [
    "plot_calibration",
    "plot_classes",
    "plot_covariance",
    "plot_evidence",
    "plot_kernel",
    "plot_landmarks",
    "plot_layers",
    "plot_patches",
    "plot_predictions",
    "plot_relevance",
    "plot_residuals",
    "plot_search",
]
