"""What fitting maximises: the log evidence plus the log density of the priors, as a function of the flat
vector theta.

Where the inference has something of its own to move (learned landmarks), a search moves the longer vector
(theta, free).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gramian.arrays import Array
from gramian.engines.base import Workspace
from gramian.inference.base import Scheme
from gramian.inference.model import Data, Evidence, Model
from gramian.params import ParameterSpace

SEARCH_RANGE = 23.0  # of an unbounded entry of theta either way: a factor of 1e10 for a positive parameter


@dataclass(frozen=True, eq=False)
class Objective:
    """A model on data, at any theta."""

    model: Model
    data: Data
    inference: Scheme
    workspace: Workspace = field(default_factory=Workspace)

    @cached_property
    def space(self) -> ParameterSpace:
        return ParameterSpace(self.model.parameters())

    @property
    def workspaces(self) -> tuple[Workspace, ...]:
        """What an evaluation leaves for the next one."""
        return (self.workspace,)

    @property
    def limits(self) -> list[tuple[float, float]]:
        """Bounds for a search; an entry without one may move by a factor of 1e10, beyond which nothing
        changes but rounding."""
        limits: list[tuple[float, float]] = []
        for p in self.space.trainable.values():
            assert p.support is not None
            reach = np.inf if p.support.ends() == (-np.inf, np.inf) else SEARCH_RANGE
            u = np.ravel(p.support.inverse(p.value)).tolist()
            ends = zip(p.limits, u, strict=True)
            limits += [(max(low, v - reach), min(high, v + reach)) for (low, high), v in ends]
        return limits + [(-np.inf, np.inf)] * self.inference.free.size

    @property
    def start(self) -> Array:
        """The vector that a search begins with: the model as it is."""
        return np.concatenate([self.space.theta, self.inference.free])

    def at(self, theta: Array) -> Model:
        """The model with the parameters of theta."""
        return self.model.moved(self.space.arrays(theta))

    def split(self, vector: Array) -> tuple[Array, Scheme]:
        """theta, and the inference with its own part of a search's vector."""
        count = len(vector) - self.inference.free.size
        own = self.inference.with_free(vector[count:]) if len(vector) > count else self.inference
        return vector[:count], own

    def evidence(self, vector: Array | None = None) -> tuple[Evidence, Array]:
        """The log evidence and its gradient with respect to a search's vector; without one, at the model's
        own parameters."""
        theta, inference = (self.space.theta, self.inference) if vector is None else self.split(vector)
        model = self.model
        if vector is not None:
            made = model.bare_at if inference.values_alone else model.moved  # a search makes thousands
            model = made(self.space.arrays(theta))
        evidence, gradients = inference.evidence_and_gradient(model, self.data, self.workspace)
        gradient = self.space.pullback(theta, gradients)
        own = gradients[len(self.space.parameters) :]
        return evidence, np.concatenate([gradient, *map(np.ravel, own)]) if own else gradient

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """The log posterior of the vector (up to a constant) and its gradient."""
        evidence, gradient = self.evidence(vector)
        if not self.space.believes:
            return evidence.value, gradient
        prior, prior_gradient = self.space.log_prior(vector[: self.space.size])
        gradient[: self.space.size] += prior_gradient
        return evidence.value + prior, gradient
