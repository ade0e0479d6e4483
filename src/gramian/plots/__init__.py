"""Pictures. Each function draws on the axes it is given, or makes a figure of its own, and returns the
figure; no global setting is changed."""

from gramian.plots.classes import plot_classes
from gramian.plots.predictions import plot_predictions

__all__ = ["plot_classes", "plot_predictions"]
