"""Fits to rows that stay where they are, and predictions that stay there, too.

    1. a pass counts rows and looks for gaps (data/pieces.py)
    2. some rows, at random, are brought here; kernel, parameters, landmarks and the calibration of intervals
       are found on them, as on any table
    3. where an evaluation is affordable, the search goes on with all rows, where they are
    4. one pass makes the posterior of all rows (inference/far.py; of SVGP a few passes)

Steps 1, 3 and 4 are loops over pieces, done by whoever the client has. What is brought here in step 2 is one
row in ten at the most, or 5,000; the plan says how many.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
from sklearn.base import clone

from gramian import clock
from gramian.arrays import Array
from gramian.choose.far import FarPlan, check_room, features_of, goes_on, part_rows, planned
from gramian.choose.words import as_method
from gramian.data.frames import Frame
from gramian.data.pieces import (
    HEAD,
    MOST_ROWS,
    Pieces,
    array_pieces,
    in_pieces,
    is_dask_array,
    is_dask_frame,
    is_far,
    is_parquet,
    parts_of,
)
from gramian.engines.recipes import Sparse
from gramian.errors import ParameterError
from gramian.estimators.fitted import Fitted
from gramian.estimators.resuming import generator, identify
from gramian.fitting import Objective
from gramian.fitting.lbfgs import maximise
from gramian.fitting.progress import progress
from gramian.fitting.stages import LOCAL_ITERATIONS, Stage, worth
from gramian.inference import Data, Scheme, closed
from gramian.inference.far import FarRows
from gramian.inference.svgp.inducing import SVGP
from gramian.interrupt import attended
from gramian.linalg.executor import Executor, Piece, as_executor
from gramian.linalg.threads import one_blas_thread
from gramian.report.facts import NoData

INDUCING = 1024  # of method="auto"
BROUGHT = "parameters, landmarks and calibration are from {part:,} of {n:,} rows, which were brought here"
STOPPED = "The pass over all {n:,} rows was interrupted: this model knows {part:,} of them, chosen at random."
OUTLIERS = (
    "Rows that are outliers were told apart among those that were brought here, and count as any other in the"
    ' pass over all rows. Where they matter: likelihood="student-t", method="svgp".'
)
LATE = (
    "The fit took {took:.0f} s, its time limit was {limit:g} s: the pass over all {n:,} rows cannot be cut."
    " Take fewer features, or more workers."
)
ENOUGH = 1e-5  # nats a row, on all rows
SOLE = (
    'Rows in pieces are for low-rank methods under Gaussian noise (method="vfe", "nystrom", ...)'
    ' and for "svgp"'
)


def stays(gp: Any, X: Any) -> bool:
    """Whether the rows of X stay where they are: collections of Dask's always, files and data sets where
    there is a client."""
    if is_dask_array(X) or is_dask_frame(X):
        return True
    return gp.client is not None and (is_far(X) or is_parquet(X))


def method_of(gp: Any, gaussian: bool) -> Scheme:
    """The method of a fit to rows in pieces."""
    if isinstance(gp.method, str) and gp.method == "auto":
        return closed(Sparse(INDUCING)) if gaussian else SVGP()
    method = as_method(gp.method, gp.memory_limit)
    scheme = closed(method) if gaussian else method
    if (
        not isinstance(scheme, Scheme)
        or (scheme.holds_rows and scheme.search == "steps")
        or gp.hyper == "mcmc"
    ):
        raise ParameterError(f"{SOLE}, not method={gp.method!r}.")
    return scheme


def plan(gp: Any, X: Any, y: Any, gaussian: bool) -> FarPlan:
    """What a fit would take."""
    executor, method = as_executor(gp.client), method_of(gp, gaussian)
    table = in_pieces(X, y, executor, gp.missing)
    given = len(table.pieces), _largest(table), executor.team()
    return planned(method, *_size(table), *given, gp.optimize)


def _size(table: Pieces) -> tuple[int, int, int]:
    """Rows, columns and outputs."""
    return *table.shape, table.head[1].shape[1]


def _largest(table: Pieces) -> int:
    """Numbers of the largest part that is read at once."""
    _, d, q = _size(table)
    return max(piece.whole for piece in table.pieces) * (d + q)


def fit(gp: Any, X: Any, y: Any, gaussian: bool) -> Fitted:
    """The model of all rows."""
    began, executor, method = clock.now(), as_executor(gp.client), method_of(gp, gaussian)
    end = None if gp.time_limit is None else began + float(gp.time_limit)
    with clock.until(end, np.inf), progress(gp.verbose) as report, attended(lambda: report.doing):
        report.stage("a first look at all rows", 1)
        table = in_pieces(X, y, executor, gp.missing)
        n, d, q = _size(table)
        check_room(features_of(method, n), _largest(table), executor.team())
        first = dict(zip(("first rows of X", "first rows of y"), table.head, strict=True))
        identify(gp, first, table=f"{n:,} rows in {len(table.pieces):,} pieces", method=method.name)
        few = _fitted_on_part(gp, table, executor, method)
        rows = FarRows.of(table.head, few.rows.scale, table.pieces, executor)
        model, scheme, theta, stages = few.model, few.inference, few.theta, list(few.outcome.stages)
        part = few.n_rows
        stopped = few.told(STOPPED.format(part=part, n=n), stopped="interrupted")
        if few.outcome.stopped == "interrupted":
            return stopped
        if gp.optimize and theta.size and part < n and goes_on(method, n, d, q) and not clock.over():
            since = clock.now()
            objective = Objective(model, rows, scheme)
            report.stage(f"all {n:,} rows, where they are", LOCAL_ITERATIONS)
            how_far: dict[str, Any] = {
                "finish": False,
                "iterations": LOCAL_ITERATIONS,
                "enough": worth(ENOUGH, n),
            }
            search = maximise(objective, [objective.start], objective.limits, report, **how_far)
            if search.stopped == "interrupted":
                return stopped
            theta, scheme = objective.split(search.theta)
            model = objective.at(theta)
            took = clock.now() - since
            stages.append(str(Stage(scheme.name, n, n, "", search.evaluations, search.stopped, took)))
        report.final(n)
        try:
            inferred = scheme.infer(model, rows, report.share)
        except KeyboardInterrupt:  # to stop a fit is to ask for what it has
            return stopped
    note, further = BROUGHT.format(part=part, n=n), list[str]()
    if few.rows.excess is not None:
        further.append(OUTLIERS)
    if end is not None and clock.now() > end:
        further.append(LATE.format(limit=gp.time_limit, took=clock.now() - began, n=n))
    outcome = dataclasses.replace(
        few.outcome,
        reason=f"rows in {len(table.pieces):,} pieces stay where they are; {note}",
        stages=tuple(stages),
        jitter=inferred.outcome.jitter,
        seconds=clock.now() - began,
        notes=(*few.outcome.notes, *further),
    )
    return dataclasses.replace(
        few,
        kernel=few.kernel.with_parameters(list(model.kernel.parameters().values())),
        model=model,
        inference=scheme,
        rows=rows,
        process=inferred.posterior,
        evidence=inferred.evidence,
        outcome=outcome,
        columns=dataclasses.replace(few.columns, targets=table.columns.targets, notes=table.columns.notes),
        facts=dataclasses.replace(few.facts, rows=n),
        theta=theta,
        single=table.single,
        certificate=None,
        donors=few.some_rows(),
    )


def _fitted_on_part(gp: Any, table: Pieces, executor: Executor, method: Scheme) -> Fitted:
    """A fit to some rows, as any other."""
    n, d, q = _size(table)
    seed = generator(gp.random_state)
    size = part_rows(method, n, d, q)
    at = np.sort(seed.choice(n, size, replace=False)) if size < n else np.arange(n)
    X, Y = table.some(at, executor)
    given = getattr(method, "engine", method)
    left = None if gp.time_limit is None else max(0.5 * (clock.end() - clock.now()), 0.1)
    few = clone(gp).set_params(client=None, method=given, time_limit=left, missing="error")
    names = table.columns.given
    shown: Any = Frame({name: X[:, j] for j, name in enumerate(names)}) if table.columns.named else X
    few.fit(shown, Y[:, 0] if table.single else Y)
    fitted: Fitted = few.fitted_
    return fitted


def shared(gp: Any, data: Data, scheme: Scheme) -> Data:
    """Rows that are here, in pieces for the workers of a client, where the scheme can do with sums."""
    executor = as_executor(gp.client)
    sums = not scheme.holds_rows and (scheme.closed or scheme.name == SVGP.name)
    if not executor.remote or not sums or len(data.X) < MOST_ROWS or data.added_noise is not None:
        return data
    if data.missing is not None or data.pieces:
        return data
    head = np.asarray(data.X[:HEAD]), np.asarray(data.Y[:HEAD])
    return FarRows.of(head, data.scale, array_pieces(data.X, data.Y), executor)


# Predictions. -----------------------------------------------------------------------------------------------


def light(gp: Any) -> Any:
    """An estimator as it travels: what predictions need."""
    made = copy.copy(gp)
    made.client = None
    fitted = gp.fitted_
    if not fitted.models and fitted.draws is None:
        donors = fitted.some_rows() if fitted.has_rows or fitted.donors is not None else None
        made.fitted_ = dataclasses.replace(fitted, rows=NoData(fitted.facts.scale), donors=donors)
    return made


def is_shared(gp: Any, X: Any) -> bool:
    """Whether rows to predict are shared out: such as stay where they are, and many with a client."""
    return stays(gp, X) or (gp.client is not None and isinstance(X, np.ndarray) and len(X) >= 2 * MOST_ROWS)


def answers(gp: Any, name: str, X: Any, **asked: Any) -> Any:
    """What an estimator's method of that name says of rows in pieces: of Dask collections as collections, of
    files and data sets as Dask arrays where Dask has the workers, else as arrays."""
    model = light(gp)
    if is_dask_frame(X):
        return _of_frame(model, name, X, asked)
    if is_dask_array(X):
        rows = [int(size) if size == size else np.nan for size in X.rechunk({1: -1}).chunks[0]]
        return _of_blocks(model, name, list(X.rechunk({1: -1}).to_delayed()[:, 0]), rows, asked)
    executor = as_executor(gp.client)
    if isinstance(X, np.ndarray):
        pieces: tuple[Piece, ...] = array_pieces(X, np.empty((len(X), 0)))
    else:
        pieces = in_pieces(X, None, executor, "fill", gp.fitted_.columns).pieces
        if executor.name == "dask":
            return _of_blocks(model, name, list(pieces), [piece.rows for piece in pieces], asked)
    return _joined(list(executor.each(_of_piece, pieces, (model, name, asked))))


def _joined(parts: list[Any]) -> Any:
    """Answers for one part after the other: arrays, tuples of them, or tables."""
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(np.concatenate(values) for values in zip(*parts, strict=True))
    if isinstance(first, dict):
        return {name: np.concatenate([part[name] for part in parts]) for name in first}
    return np.concatenate(parts)


def _of_piece(piece: Piece, state: tuple[Any, str, dict[str, Any]]) -> Any:
    model, name, asked = state
    return _asked(model, name, piece.load()[0], asked)


def _asked(model: Any, name: str, X: Any, asked: dict[str, Any]) -> Any:
    known = model.fitted_.columns
    if isinstance(X, np.ndarray) and known.named:
        X = Frame({column: X[:, j] for j, column in enumerate(known.given)})
    return getattr(model, name)(X, **asked)


def _of_part(model: Any, name: str, part: Any, asked: dict[str, Any]) -> Any:
    """On a worker: a block, or the description of one."""
    with one_blas_thread():
        return _asked(model, name, part.load()[0] if isinstance(part, Piece) else part, asked)


def _of_blocks(model: Any, name: str, blocks: list[Any], rows: list[Any], asked: dict[str, Any]) -> Any:
    import dask
    import dask.array as da

    sample = _asked(model, name, _example(model), asked)  # one row tells the shapes
    several = isinstance(sample, (tuple, dict))
    sent, ask = dask.delayed(model, traverse=False), dask.delayed(_of_part)
    parts = [ask(sent, name, block, asked) for block in blocks]

    def column(key: Any, like: Array) -> Any:
        pick = [part if key is None else part[key] for part in parts]
        made = [
            da.from_delayed(one, (n, *like.shape[1:]), dtype=like.dtype)
            for one, n in zip(pick, rows, strict=True)
        ]
        return da.concatenate(made)

    if not several:
        return column(None, sample)
    if isinstance(sample, dict):
        return {key: column(key, like) for key, like in sample.items()}
    return tuple(column(k, like) for k, like in enumerate(sample))


def _example(model: Any) -> Array:
    return np.asarray(model.fitted_.first.some_rows()[:1, : len(model.fitted_.columns.given)])


def _of_frame(model: Any, name: str, X: Any, asked: dict[str, Any]) -> Any:
    """A frame whose parts have the index of those of X; a column alone for a single answer."""
    import dask
    import dask.dataframe as dd

    like = _columns_of(model, name, _asked(model, name, _example(model), asked))
    single, meta = len(like) == 1, _frame(like, [0]).iloc[:0]
    sent, ask = dask.delayed(model, traverse=False), dask.delayed(_frame_of_part)
    parts = [ask(sent, name, part, asked) for part in parts_of(X)]
    made = dd.from_delayed(parts, meta=meta, divisions=X.divisions, verify_meta=False)
    return made[next(iter(like))] if single else made


def _frame_of_part(model: Any, name: str, part: Any, asked: dict[str, Any]) -> Any:
    known = model.fitted_.columns
    with one_blas_thread():
        found = getattr(model, name)(part[list(known.given)], **asked) if len(part) else None
    if found is None:
        found = _asked(model, name, _example(model), asked)
        return _frame(_columns_of(model, name, found), [0]).iloc[:0]
    return _frame(_columns_of(model, name, found), part.index)


def _columns_of(model: Any, name: str, found: Any) -> dict[str, Array]:
    if isinstance(found, dict):
        return found
    if name == "predict_proba":
        return {f"p_{label}": found[:, k] for k, label in enumerate(model.classes_)}
    values = found if isinstance(found, tuple) else (found,)
    names = {1: ("mean",), 2: ("mean", "std"), 3: ("mean", "lower", "upper")}[len(values)]
    columns: dict[str, Array] = {}
    for own, value in zip(names, values, strict=True):
        flat = value.reshape(len(value), -1)
        one = flat.shape[1] == 1 and value.ndim == 1
        columns |= {own if one else f"{own}_{k}": flat[:, k] for k in range(flat.shape[1])}
    return columns


def _frame(columns: dict[str, Array], index: Any) -> Any:
    import pandas

    return pandas.DataFrame(columns, index=index)
