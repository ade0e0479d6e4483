"""A fitted GPLatent as a document and arrays, and back: the arrays of its state, its kernel and its noise."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from gramian.data.inputs import Columns
from gramian.errors import ModelFileError
from gramian.estimators.gplatent import GPLatent, LatentFitted
from gramian.fitting import FitOutcome
from gramian.inference import Evidence
from gramian.kernels import Kernel
from gramian.latent.state import LatentState
from gramian.linalg.state import Arrays, entries
from gramian.modelfile.document import Reader, encode
from gramian.params import Parameter

_PARTS = ("kernel", "noise", "evidence", "outcome")


def describe(fitted: LatentFitted) -> tuple[dict[str, Any], Arrays]:
    """What a fit has left."""
    own = fitted.state.position
    return {
        "kernel": encode(own.kernel, "kernel_"),
        "noise": encode(own.noise, "noise_"),
        "evidence": encode(fitted.evidence, "evidence_"),
        "outcome": encode(fitted.outcome, "outcome_"),
    }, fitted.state.arrays()


def restore(gp: GPLatent, columns: Columns, fitted: Any, arrays: Arrays, reader: Reader) -> LatentFitted:
    """And back, after a check that it fits together."""
    kernel, noise, evidence, went = entries(fitted, "fitted", *_PARTS)
    kernel, noise = reader.one(kernel, Kernel, "kernel_"), reader.one(noise, Parameter, "noise_")
    state = LatentState.from_arrays(kernel, noise, arrays)
    Q, D = state.places.mean.shape[1], len(state.scaling.centre)
    if (
        gp.n_components != Q
        or len(columns.given) != D
        or (state.places.var is None) != (gp.inference == "map")
    ):
        raise ModelFileError(f"its places have {Q} dimensions and {D} columns, unlike its settings.")
    kernel.check_columns(Columns(tuple(f"gplatent{q}" for q in range(Q))).described())
    rows = np.zeros((2, Q))
    with jax.enable_x64(True):
        shape = jax.eval_shape(kernel.bare().cross, rows, rows).shape
    if shape != (2, 2):
        raise ModelFileError(f"its kernel gives an array of shape {shape} for two rows.")
    return LatentFitted(state, columns, *outcome(evidence, went, reader))


def outcome(evidence: Any, described: Any, reader: Reader) -> tuple[Evidence, FitOutcome]:
    """How a fit went, after a check of its numbers."""
    told, went = reader.one(evidence, Evidence, "evidence_"), reader.one(described, FitOutcome, "outcome_")
    counts = (went.iterations, went.evaluations, went.starts, went.jitter, went.seconds, told.standard_error)
    if not all(0 <= count < np.inf for count in counts):
        raise ModelFileError("its outcome has counts, times or errors that are negative or without end.")
    return told, went
