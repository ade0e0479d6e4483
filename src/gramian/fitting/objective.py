"""What fitting maximises: the log evidence plus the log density of the priors, as a function of the flat vector theta."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gramian.inference.base import Data, Evidence, Inference, Model, Workspace
from gramian.params import Affine, ParameterSpace, PositiveSemidefinite, Real

Array = NDArray[np.float64]

SEARCH_RANGE = 23.0  # of an unbounded entry of theta either way: a factor of 1e10 for a positive parameter


@dataclass(frozen=True, eq=False)
class Objective:
    """A model on data, at any theta."""

    model: Model
    data: Data
    inference: Inference
    workspace: Workspace = field(default_factory=Workspace)

    @property
    def space(self) -> ParameterSpace:
        return ParameterSpace(self.model.parameters())

    @property
    def limits(self) -> list[tuple[float, float]]:
        """Bounds for a search; an entry without one may move by a factor of 1e10, beyond which nothing changes but rounding."""
        limits = []
        for p in self.space.trainable.values():
            assert p.support is not None
            low, high = p.limits
            free = isinstance(p.support, (Real, Affine, PositiveSemidefinite))
            for u in np.ravel(p.support.inverse(p.value)):
                limits.append((low, high) if free else (max(low, float(u) - SEARCH_RANGE), min(high, float(u) + SEARCH_RANGE)))
        return limits

    def at(self, theta: Array) -> Model:
        """The model with the parameters of theta."""
        return self.model.with_values(self.space.values(theta))

    def evidence(self, theta: Array | None = None) -> tuple[Evidence, Array]:
        """The log evidence and its gradient with respect to theta; without one, at the model's own parameters."""
        model = self.model if theta is None else self.at(theta)
        evidence, gradients = self.inference.evidence_and_gradient(model, self.data, self.workspace)
        by_path = dict(zip(self.model.parameters(), gradients, strict=True))
        return evidence, self.space.pullback(self.space.theta if theta is None else theta, by_path)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """The log posterior of theta (up to a constant) and its gradient."""
        evidence, gradient = self.evidence(theta)
        prior, prior_gradient = self.space.log_prior(theta)
        return evidence.value + prior, gradient + prior_gradient
