"""Several outputs: what a fit begins with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gramian.arrays import Array
from gramian.estimators import build
from gramian.estimators.build import Built, noise_parameter
from gramian.inference import Model
from gramian.kernels.coregion import Coregion, correlations
from gramian.likelihoods import Gaussian
from gramian.params import LogNormal, Normal, fixed, param

if TYPE_CHECKING:
    from gramian.estimators.regressor import GPRegressor


OWN = 0.1  # of the variance of an output: what the prior takes for its own


def with_own_noises(gp: GPRegressor, built: Built) -> Built:
    """Each output with a noise of its own, however many there are: one factor serves them all."""
    sd = build.output_spread(built.rows.Y, False)
    given = build.noise_of(gp)
    if given is not None or built.rows.noise_var is not None or np.ndim(built.model.gaussian.noise.value):
        return built
    median = build.noise_median(len(built.rows.Y)) if gp.kernel is None else None
    noise = noise_parameter(None, sd**2, median, shared=False)
    return built._replace(model=dataclasses.replace(built.model, likelihood=Gaussian(noise)))


def between(built: Built, given: Sequence[Coregion], rank: int = 1, prior: bool = True) -> Built:
    """The model with a B, or those that were given, from where the correlations of the outputs are."""
    data = built.rows
    q = data.Y.shape[1]
    R = correlations(data.under(built.model).Y)
    found = [one.sized(q).started(R) for one in given] or [believed(q, rank, prior).started(R)]
    return built._replace(model=dataclasses.replace(built.model, outputs=tuple(found)))


def believed(q: int, rank: int, prior: bool) -> Coregion:
    """B with weak priors."""
    if not prior:
        return Coregion(q, rank)
    weights = param(Coregion(q, rank).weights.value, prior=Normal(0.0, 1.0))
    return Coregion(q, rank, weights, param(np.full(q, OWN), prior=LogNormal(float(np.log(OWN)), 2.0)))


def order_of(Y: Array) -> tuple[int, ...]:
    """Outputs that were seen more often first; as they came, where that is the same."""
    return tuple(np.argsort(-np.sum(np.isfinite(Y), axis=0), kind="stable").tolist())


def in_a_chain(built: Built) -> Built:
    """The model with a kernel for each output, and no links yet."""
    q = built.rows.Y.shape[1]
    model = dataclasses.replace(built.model, others=(built.model.kernel,) * (q - 1))
    return built._replace(model=_held_warp(model))


def _held_warp(model: Model) -> Model:
    """The same with a warp that stays: what links see is warped, too."""
    if model.warp is None:
        return model
    held = [fixed(p.value) for p in model.warp.parameters().values()]
    return dataclasses.replace(model, warp=model.warp.with_parameters(held))
