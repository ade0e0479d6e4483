"""Where a search by an approximation begins, after one by exact inference on a part of the rows.

Exact inference on few rows may say that there is no noise, or hardly any; with landmarks that cannot hold so
much detail, the bound then is lower by the trace of K - Q over twice the noise: by many millions. A search
from there sees that slope alone, steps across everything, and ends where all is noise. (uci_kin40k, 10,000
rows, 300 inducing points: RMSE 0.97, and 0.40 from the start chosen here.) So the search begins with the
noise, of a few levels, that the approximation itself likes best, and with lengthscales as they are or within
reach (`fitting/reach.py`), whichever it likes better.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramian import journal
from gramian.arrays import Array
from gramian.engines.base import Workspace
from gramian.errors import NumericalError
from gramian.inference.base import Scheme
from gramian.inference.model import Data, Model
from gramian.params import ParameterSpace

LEVELS = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3)  # of the noise, in units of the variance of y, an output's own


def best_start(models: Sequence[Model], data: Data, inference: Scheme) -> Model:
    """Of the models, each also with more noise, the one of the highest evidence (with its prior); the first
    of equal ones."""
    tried = [louder for model in models for louder in with_more_noise(model, data.Y)]
    heights = [_height(model, data, inference) for model in tried]
    return tried[int(np.argmax(heights))]


def with_more_noise(model: Model, Y: Array) -> list[Model]:
    """The model, and the same with each of the higher levels of noise that its bounds allow; the model alone
    where noise is not free."""
    if not model.likelihood.conjugate:
        return [model]
    noise = model.likelihood.parameters()["noise"]
    if not noise.trainable:
        return [model]
    unit = np.nanvar(Y, axis=0) / np.array(model.gaussian.unit)
    unit = unit if noise.value.ndim else np.mean(unit)
    louder = [np.maximum(noise.value, level * unit) for level in LEVELS]
    allowed = [one for one in louder if np.any(one > noise.value) and np.all(one <= noise.box[1])]
    return [model, *(model.with_values({"noise": one}) for one in allowed)]


def _height(model: Model, data: Data, inference: Scheme) -> float:
    space = ParameterSpace(model.parameters())

    def height() -> tuple[float, Array]:
        value = inference.evidence(model, data, Workspace()).value + space.log_prior(space.theta)[0]
        return (value if np.isfinite(value) else -np.inf), np.zeros(0)

    try:
        return journal.evaluated(space.theta, height, slopes=False)[0]
    except NumericalError:
        return -np.inf
