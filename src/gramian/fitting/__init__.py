"""Fitting: hyperparameters by maximum evidence or MAP, in one driver."""

from gramian.fitting.lbfgs import Search, maximise
from gramian.fitting.objective import Objective
from gramian.fitting.outcome import FitOutcome
from gramian.fitting.trace import SearchPath

__all__ = ["FitOutcome", "Objective", "Search", "SearchPath", "maximise"]
