"""A search that takes a moment, for one that takes long to go on from.

With the whole of K on few rows: under Gaussian noise exact inference, for which nothing is compiled;
otherwise Laplace's approximation, a handful of steps without quadrature, where it is good enough to begin
with; of a likelihood without derivatives, with its smoother relative in its place (`eased`). From where it
ends, a search by EP, variational inference or batches has less far to go, and where the time is too short for
that, parameters have moved all the same.
"""

from __future__ import annotations

import dataclasses

from gramian.arrays import Array
from gramian.engines.dense import Exact
from gramian.errors import ParameterError
from gramian.inference.base import Scheme, on_engine
from gramian.inference.conjugate import closed
from gramian.inference.model import Model
from gramian.inference.softmax.laplace import laplace_for
from gramian.likelihoods import Likelihood
from gramian.params import ParameterSpace


def eased(model: Model) -> Model:
    """The model of such a search: with a smoother likelihood of the same functions, where its own has one."""
    easier = model.likelihood.relaxed
    return model if easier is None else dataclasses.replace(model, likelihood=easier)


def with_own(likelihood: Likelihood, model: Model, theta: Array) -> tuple[Model, Array]:
    """What such a search has found, and as one vector, with the likelihood that was eased for it."""
    if likelihood.relaxed is None:
        return model, theta
    model = dataclasses.replace(model, likelihood=likelihood)
    return model, ParameterSpace(model.parameters()).theta


def sketch_for(likelihood: Likelihood) -> Scheme | None:
    """The scheme of such a search; None where there is none that would do."""
    engine, likelihood = Exact(), likelihood.relaxed or likelihood
    if likelihood.conjugate:
        return closed(engine)
    rule = laplace_for(likelihood)
    try:
        rule.check(likelihood, engine)
    except ParameterError:
        return None
    return on_engine(engine, rule) if likelihood.log_concave else None
