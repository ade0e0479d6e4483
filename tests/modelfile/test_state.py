"""Processes from their states: outputs that were observed at rows of their own, and classes that a file does
not know."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramian as gm
from gramian.engines.base import Engine
from gramian.errors import ModelFileError, StateError
from gramian.inference import Data, Model, Scheme, closed
from gramian.likelihoods import Gaussian
from gramian.linalg.state import ObjectState
from gramian.means import ZeroMean
from gramian.modelfile import load
from gramian.modelfile.document import encode
from gramian.processes import GaussianProcess, Posterior, Process, Stacked
from gramian.processes.krylov import KrylovPosterior


def gappy(engine: Engine) -> tuple[Scheme, Model, Data]:
    """Three outputs: two observed at the same part of the rows, one at all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    Y = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 1]), X[:, 0] * X[:, 1]])
    Y[1:4, [0, 2]] = np.nan
    model = Model(gm.RBF(0.7), ZeroMean(), Gaussian(0.1))
    rows = Data(X, Y, np.array([1.0, 1.0, 2.0]))
    return closed(engine).prepared(model, rows, rng), model, rows


def again(scheme: Scheme, model: Model, rows: Data, process: Process) -> tuple[ObjectState, Process]:
    """Its state, and the process that is built from it."""
    state = process.state(scheme.context(model, rows, 2))
    return state, scheme.context(model, rows, 2).process(state.described, state.arrays)


@pytest.mark.parametrize("engine", [gm.Exact(), gm.engines.Krylov(gm.CG(tol=1e-8, rank=3, probes=2))])
def test_outputs_at_rows_of_their_own_come_back_to_the_last_bit(engine: Engine) -> None:
    scheme, model, rows = gappy(engine)
    process = scheme.infer(model, rows).posterior
    assert isinstance(process, Stacked)
    state, found = again(scheme, model, rows, process)
    assert isinstance(found, Stacked)
    assert found.columns == process.columns
    for mine, theirs in zip(found.moments(rows.X), process.moments(rows.X), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    with_rows = {name for name in state.arrays if name.endswith(".Z")}
    assert len(with_rows) == 2  # the rows of the third are those of the data, which the context has


def test_rows_of_their_own_take_their_pivots_along() -> None:
    scheme, model, rows = gappy(gm.engines.Krylov(gm.CG(tol=1e-8, rank=3, probes=2)))
    process: Any = scheme.infer(model, rows).posterior
    found: Any = again(scheme, model, rows, process)[1]
    for mine, theirs in zip(found.parts, process.parts, strict=True):
        assert isinstance(mine, KrylovPosterior)
        for one, other in zip(mine.systems, theirs.systems, strict=True):
            np.testing.assert_array_equal(one.solver.pivots, other.solver.pivots)


@pytest.mark.parametrize("pivots", [[0, 0, 1], [0, 1, 9], [-1, 0, 1]])
def test_pivots_that_are_no_rows_are_refused(pivots: list[int]) -> None:
    scheme, model, rows = gappy(gm.engines.Krylov(gm.CG(tol=1e-8, rank=3, probes=2)))
    process: Any = scheme.infer(model, rows).posterior
    at = next(k for k, part in enumerate(process.parts) if len(part.Z) < len(rows.X))
    state, context = process.state(scheme.context(model, rows, 2)), scheme.context(model, rows, 2)
    state.arrays[f"part{at}.solver0.pivots"] = np.array(pivots)
    with pytest.raises(StateError, match="pivots must be rows"):
        context.process(state.described, state.arrays)


def test_a_file_holds_outputs_with_gaps(tmp_path: Path) -> None:
    scheme, model, rows = gappy(gm.Exact())
    gp = gm.GPRegressor(model.kernel, mean="zero", noise=0.1, optimize=False, normalize_y=False)
    gp.fit(rows.X, np.nan_to_num(rows.Y))
    inferred = scheme.infer(gp.fitted_.model, dataclasses.replace(gp.fitted_.rows, Y=rows.Y))
    gp.fitted_ = dataclasses.replace(
        gp.fitted_, rows=dataclasses.replace(gp.fitted_.rows, Y=rows.Y), process=inferred.posterior
    )
    gp.save(tmp_path / "m.gm")
    loaded = load(tmp_path / "m.gm")
    for mine, theirs in zip(
        loaded.predict(rows.X, return_std=True), gp.predict(rows.X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(loaded.fitted_.rows.Y, rows.Y)


def test_a_process_without_a_state_says_so() -> None:
    scheme, model, rows = gappy(gm.Exact())
    prior = GaussianProcess(model.kernel, model.mean, rows.scale)
    with pytest.raises(StateError, match="GaussianProcess, which does not say"):
        prior.state(scheme.context(model, rows, 2))


def test_a_process_of_a_user_is_no_kind_of_the_library() -> None:
    class Mine(Posterior):
        kind = "exact"

    assert Process.kinds["exact"] is Posterior


def test_an_engine_of_a_user_is_refused_by_its_name() -> None:
    class MyEngine(gm.Exact):
        pass

    with pytest.raises(ModelFileError, match=r"method is a MyEngine, a class of your own.*use pickle"):
        encode(MyEngine(), "method")
