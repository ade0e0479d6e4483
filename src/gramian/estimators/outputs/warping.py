"""Several outputs: a warp of each by itself."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.clock import OutOfTime
from gramian.data.inputs import Columns
from gramian.errors import NumericalError
from gramian.estimators.build import Built
from gramian.estimators.defaults import CLEAR, FEWEST, Candidate, NumbersWalk, Walk
from gramian.estimators.outputs.paths import ROWS
from gramian.fitting.progress import Report
from gramian.inference import Data, Model, Scheme
from gramian.likelihoods import Gaussian
from gramian.means import ConstantMean
from gramian.params import LogNormal, fixed, param
from gramian.warps import SinhArcsinh

if TYPE_CHECKING:
    pass


class WarpWalk(NumbersWalk):
    """One output with the plain kernel: warped, or not."""

    @property
    def steps(self) -> Any:
        return (self._warped,)

    def _walked(self, plain: Candidate) -> Candidate:
        return Walk._walked(self, plain)


def warped(built: Built, columns: Columns, method: Scheme, report: Report) -> Built:
    """The model with a map of each output for which the evidence of that output by itself asks."""
    data, q = built.rows, built.rows.Y.shape[1]
    if data.noise_var is not None or built.model.warp is not None:
        return built
    numbers = {"skew": np.zeros(q), "tail": np.ones(q), "shift": np.zeros(q), "width": np.ones(q)}
    found = False
    for k in range(q):
        warp = _own_warp(built, columns, method, report, k)
        for name, values in numbers.items():
            if warp is not None:
                values[k], found = float(getattr(warp, name).value), True
    if not found:
        return built
    skew, tail, shift, width = map(fixed, numbers.values())
    warp = SinhArcsinh(skew, tail, shift, width).adapted(data.Y)
    return built._replace(model=dataclasses.replace(built.model, warp=warp))


def _own_warp(built: Built, columns: Columns, method: Scheme, report: Report, k: int) -> Any:
    """The warp of one output, or None."""
    data, model = built.rows, built.model
    seen = np.flatnonzero(np.isfinite(data.Y[:, k]))
    seen = seen[:: max(1, len(seen) // ROWS)]
    values, counts = np.unique(data.Y[seen, k], return_counts=True)
    if len(seen) < FEWEST or len(values) < 2 or counts.max() > 0.1 * len(seen):
        return None  # what was rounded would make a map as steep as one likes
    one = Data(np.asarray(data.X[seen]), data.Y[seen][:, [k]], data.scale[[k]])
    noise = float(np.ravel(np.broadcast_to(model.gaussian.variances(), data.scale.shape))[k])
    spread_of = float(np.nanvar(one.Y))
    own = param(noise, prior=LogNormal(float(np.log(max(0.1 * spread_of, 1e-300))), 2.0))
    middle = np.asarray(np.mean(one.Y))
    mean = ConstantMean(middle).adapted(one.X, middle, np.asarray(data.scale[k]))
    plain = Model(model.kernel, mean, Gaussian(own))
    walk = WarpWalk(columns, one, None, method.on_few_rows(), report, True)
    with contextlib.suppress(NumericalError, OutOfTime):
        choice = walk.choice(Built(built.kernel, plain, one))
        if choice is not None and walk.best.height > walk.tried[0].height + CLEAR:
            return choice.built.model.warp
    return None
