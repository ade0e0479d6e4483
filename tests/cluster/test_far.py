"""Rows that stay where they are: as in memory to rounding, and by a cluster as by threads to the bit."""

from __future__ import annotations

import dataclasses
import os
import pickle
import signal
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

import gramian as gm
from gramian.choose import far as planning
from gramian.data.pieces import array_pieces
from gramian.engines.base import Workspace
from gramian.engines.recipes import Fourier, Nystrom, Sparse
from gramian.errors import ClusterError, InputError, ParameterError
from gramian.gram import nearby
from gramian.inference import Data, Model, closed
from gramian.inference.far import FarRows, FarTable
from gramian.inference.svgp.inducing import SVGP
from gramian.kernels import Matern32
from gramian.likelihoods import Bernoulli, Gaussian
from gramian.linalg.executor import Threads, as_executor, using
from gramian.means import ConstantMean, LinearMean, ZeroMean
from gramian.warps import SinhArcsinh
from tests.cluster.conftest import NAMES

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pandas = pytest.importorskip("pandas")

KERNEL = 1.3 * Matern32([0.8, 1.0, 1.2])


def spread_out(data: Data, client=None, size: int = 700) -> FarRows:
    """The same rows as pieces of unequal sizes."""
    cuts = [*range(0, len(data.X), size), len(data.X)]
    parts = [array_pieces(data.X[a:b], data.Y[a:b]) for a, b in pairwise(cuts)]
    X, Y = (FarTable(len(table), table[:512]) for table in (data.X, data.Y))
    flat = tuple(piece for part in parts for piece in part)
    return FarRows(X, Y, data.scale, parts=flat, executor=as_executor(client))


ENGINES = {
    "vfe": Sparse(40),
    "fitc": Sparse(40, "fitc"),
    "learned": Sparse(40, optimize_inducing=True),
    "nystrom": Nystrom(40),
    "fourier": Fourier(40),
}


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("name", list(ENGINES))
def test_sums_over_pieces_are_those_of_rows_in_memory(rows, name, outputs):
    X, y = rows[0][:2500], np.stack([rows[1][:2500], np.cos(rows[0][:2500, 0])], axis=1)[:, :outputs]
    noise, mean = (0.02, LinearMean(0.1, [0.2, 0.0, 0.1])) if outputs == 1 else ([0.02, 0.3], ZeroMean())
    model, data = Model(KERNEL, mean, Gaussian(noise)), Data(X, y, np.full(outputs, 1.3))
    scheme = closed(ENGINES[name]).prepared(model, data, np.random.default_rng(1))
    far = spread_out(data)
    here, there = (scheme.evidence_and_gradient(model, one, Workspace()) for one in (data, far))
    # sums of 2,500 numbers in another order, and the condition of 40 landmarks
    assert there[0].value == pytest.approx(here[0].value, rel=1e-11)
    assert there[0].kind == here[0].kind
    for ours, theirs in zip(here[1], there[1], strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-7, atol=1e-9 * max(1.0, np.max(np.abs(ours))))
    mean_var = [scheme.infer(model, one).posterior.moments(X[:50]) for one in (data, far)]
    np.testing.assert_allclose(mean_var[1], mean_var[0], rtol=1e-8, atol=1e-10)


def test_a_warp_has_its_slopes_in_the_sums(rows):
    X, y = rows[0][:1500], np.exp(rows[1][:1500])[:, None]
    model = Model(KERNEL, ConstantMean(0.2), Gaussian(0.05), warp=SinhArcsinh())
    data = Data(X, y, np.ones(1))
    scheme = closed(Sparse(30)).prepared(model, data, np.random.default_rng(1))
    here, there = (scheme.evidence_and_gradient(model, one, Workspace()) for one in (data, spread_out(data)))
    assert there[0].value == pytest.approx(here[0].value, rel=1e-11)
    for ours, theirs in zip(here[1], there[1], strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-7, atol=1e-8 * max(1.0, np.max(np.abs(ours))))


def same(a, b) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_svgp_passes_are_the_same_bits_on_a_cluster(rows, client):
    X = rows[0][:3000]
    y = (rows[1][:3000] > 0).astype(float)[:, None]
    model, data = Model(KERNEL, ZeroMean(), Bernoulli()), Data(X, y, np.ones(1))
    scheme = SVGP(20, optimize_inducing=True).prepared(model, data, np.random.default_rng(0))
    scheme = dataclasses.replace(scheme, passes=4)
    here = scheme.evidence_and_gradient(model, data, Workspace())
    ours = scheme.evidence_and_gradient(model, spread_out(data), Workspace())
    theirs = scheme.evidence_and_gradient(model, spread_out(data, client), Workspace())
    assert ours[0].value == theirs[0].value
    assert same(ours[1], theirs[1])
    assert ours[0].value == pytest.approx(here[0].value, rel=1e-7)  # to the tolerance of its steps


def test_rows_of_neighbours_are_the_same_bits_on_a_cluster(rows, client):
    X, y = rows[0][:5000], rows[1][:5000, None]
    model, data = Model(KERNEL, ZeroMean(), Gaussian(0.02)), Data(X, y, np.ones(1))
    scheme = closed(gm.Neighbours(8)).prepared(model, data, np.random.default_rng(0))
    here = scheme.evidence_and_gradient(model, data, Workspace())
    with using(as_executor(client)):
        assert not nearby._here(nearby.Around(np.zeros((5000, 9), np.int32), X, y[:, 0], y))
        there = scheme.evidence_and_gradient(model, data, Workspace())
    assert here[0].value == there[0].value
    assert same(here[1], there[1])


# Estimators. ------------------------------------------------------------------------------------------------


@pytest.fixture
def few_brought(monkeypatch):
    monkeypatch.setattr(planning, "FEWEST", 500)


def regressor(client, **others):
    settings = {"method": Sparse(30), "random_state": 0, "verbose": False, **others}
    return gm.GPRegressor(KERNEL, client=client, **settings)


def test_a_fit_by_a_cluster_is_that_by_threads_to_the_bit(folder, rows, client, few_brought):
    ours, theirs = (regressor(who).fit(folder, "y") for who in (Threads(), client))
    assert np.array_equal(ours.theta_, theirs.theta_)
    assert ours.evidence_.value == theirs.evidence_.value
    assert np.array_equal(ours.posterior_.weights, theirs.posterior_.weights)
    assert same(ours.log_evidence(return_grad=True), theirs.log_evidence(return_grad=True))
    table = pandas.DataFrame(rows[0], columns=NAMES)
    assert "all 12,000 rows" in theirs.outcome_.stages[-1]
    assert theirs.fitted_.n_rows == 12_000
    assert not theirs.fitted_.has_rows
    assert "stay where they are" in theirs.summary()
    # predictions: partitions in, partitions out, with the bits of each part by itself
    parts = dd.from_pandas(table[:900], npartitions=3)
    found = theirs.predict(parts, return_std=True)
    assert found.npartitions == 3
    alone = [theirs.predict(part.compute(), return_std=True) for part in parts.partitions]
    assert same(found.compute().to_numpy().T, np.concatenate(alone, axis=1))
    chosen = dd.read_parquet(folder)[[*NAMES]]  # of which Dask would join parts
    assert len(theirs.predict(chosen).compute()) == len(rows[0])
    from_files = theirs.predict(folder, return_std=True)
    assert from_files[0].chunks == ((1500, 1500, 1000) * 3,)
    assert same([one.compute() for one in from_files], ours.predict(folder, return_std=True))
    assert np.sqrt(np.mean((from_files[0].compute() - rows[1]) ** 2)) < 0.2
    # a copy has the client, a pickle has not, a file predicts the same
    assert clone(theirs).client is client
    assert pickle.loads(pickle.dumps(theirs)).client is None


def test_what_a_file_of_such_a_model_holds(folder, rows, tmp_path, few_brought):
    gp = regressor(Threads(), optimize=False).fit(str(folder), "y")
    gp.save(tmp_path / "model.gm")
    table = pandas.DataFrame(rows[0][:50], columns=NAMES)
    assert np.array_equal(gm.load(tmp_path / "model.gm").predict(table), gp.predict(table))
    table.iloc[3, 1] = np.nan  # which rows that were brought here stand in for
    assert np.isfinite(gp.predict(table)).all()


def test_who_stops_a_fit_has_the_model_of_the_rows_that_were_brought(folder, few_brought, monkeypatch):
    def stopped(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr("gramian.inference.far.infer", stopped)
    gp = regressor(Threads(), optimize=False).fit(folder, "y")
    assert gp.outcome_.stopped == "interrupted"
    assert gp.fitted_.n_rows == 1200
    assert "knows 1,200 of them" in " ".join(gp.outcome_.notes)
    assert np.isfinite(gp.predict(pandas.DataFrame(np.zeros((2, 3)), columns=NAMES))).all()


def test_a_fit_that_takes_longer_than_its_limit_says_so(folder, few_brought):
    gp = regressor(Threads(), optimize=False, time_limit=1e-3).fit(folder, "y")
    assert gp.fitted_.n_rows == 12_000
    assert "cannot be cut" in " ".join(gp.outcome_.notes)


def test_a_killed_worker_does_not_change_a_fit(folder, client, few_brought):
    gp = regressor(client, optimize=False).fit(folder, "y")
    fitted, killed = gp.fitted_, []

    def kill(share: float) -> None:
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    again = fitted.inference.infer(fitted.model, fitted.rows, kill)
    assert killed
    assert again.evidence.value == gp.evidence_.value
    assert np.array_equal(again.posterior.weights, gp.posterior_.weights)
    client.wait_for_workers(2)


def test_a_client_that_is_closed_ends_a_fit_with_a_clear_error(folder, cluster, few_brought):
    import distributed

    gone = distributed.Client(cluster)
    gp = regressor(gone, optimize=False).fit(folder, "y")
    gone.close()
    with pytest.raises(ClusterError, match="Make a new client"):
        gp.fit(folder, "y")
    with pytest.raises(ClusterError, match="Make a new client"):
        gp.log_evidence()
    assert np.isfinite(gp.predict(pandas.DataFrame(np.zeros((2, 3)), columns=NAMES))).all()


def test_collections_stay_where_they_are(rows, client, monkeypatch, few_brought):
    """No array with a number for each row comes here, and nobody computes a whole collection."""
    X, y = rows
    arrays = da.from_array(X, chunks=(2500, 2)), da.from_array(y, chunks=4000)
    frame = dd.from_pandas(pandas.DataFrame(X, columns=NAMES).assign(y=y), npartitions=4)
    seen = []
    each = type(as_executor(client)).each

    def counted(self, work, items, state=None):
        for result in each(self, work, items, state):
            seen.append(len(pickle.dumps(result)))
            yield result

    def refused(*given, **named):
        raise AssertionError("a whole collection is computed")

    monkeypatch.setattr("gramian.linalg.cluster.Dask.each", counted)
    with monkeypatch.context() as patch:
        for name in ("dask.base.compute", "dask.array.Array.compute", "dask.array.Array.__array__"):
            patch.setattr(name, refused)
        patch.setattr("dask.base.DaskMethodsMixin.compute", refused)
        by_array = regressor(client, optimize=False).fit(*arrays)
        brought = sum(seen)
        by_frame = regressor(client, optimize=False).fit(frame, "y")
        out = by_array.predict(arrays[0], return_std=True)
        table = by_frame.predict_table(frame)
    # 1,200 rows of 12,000 with their targets, sums of 30 x 30 of each piece, and counts
    assert brought < 0.25 * (X.nbytes + y.nbytes)
    assert max(seen) < len(y) * 8
    assert by_array.fitted_.rows.parts[0].held.status == "finished"
    assert by_array.evidence_.value == pytest.approx(by_frame.evidence_.value, rel=1e-2)  # other landmarks
    assert out[0].chunks == ((2500, 2500, 2500, 2500, 2000),)
    assert np.sqrt(np.mean((out[0].compute() - y) ** 2)) < 0.5
    assert table.npartitions == 4
    assert list(table.columns) == ["mean", "std", "lower95", "upper95"]
    own = regressor(None, optimize=False).fit(*arrays)  # without a cluster, by the threads here
    assert own.evidence_.value == by_array.evidence_.value


def test_rows_in_memory_are_shared_out_where_there_is_a_client(rows, client, monkeypatch):
    monkeypatch.setattr("gramian.estimators.far.MOST_ROWS", 1000)
    X, y = rows
    ours, theirs = (regressor(who, optimize=False).fit(X, y) for who in (None, client))
    assert theirs.evidence_.value == pytest.approx(ours.evidence_.value, rel=1e-11)
    assert theirs.fitted_.has_rows
    monkeypatch.setattr("gramian.data.pieces.ARRAY_BYTES", 80_000)
    shared = theirs.predict(X, return_std=True)
    blocks = [theirs.predict(X[a : a + 3333], return_std=True) for a in range(0, len(X), 3333)]
    assert same(shared, np.concatenate(blocks, axis=1))


def test_classes_of_a_collection_come_back_as_one(rows):
    X, y = rows[0][:60], np.where(rows[1][:60] > 0, "up", "down")
    gp = gm.GPClassifier(KERNEL, optimize=False).fit(pandas.DataFrame(X, columns=NAMES), y)
    frame = pandas.DataFrame(X, columns=NAMES)
    parts = dd.from_pandas(frame, npartitions=2)
    found = gp.predict_proba(parts).compute()
    assert list(found.columns) == ["p_down", "p_up"]
    halves = [gp.predict_proba(part.compute()) for part in parts.partitions]
    assert np.array_equal(found.to_numpy(), np.concatenate(halves))
    assert (gp.predict(parts).compute() == gp.predict(frame)).all()
    again = gm.GPClassifier(KERNEL, optimize=False).fit(X, y)
    assert again.predict_proba(da.from_array(X, chunks=(20, 3))).chunks == ((20, 20, 20), (2,))


# Comparisons. -----------------------------------------------------------------------------------------------


def test_comparisons_have_the_same_numbers_on_a_cluster(rows, client):
    X, y = rows[0][:300], rows[1][:300]
    given = {"methods": ("nystrom:uniform", "exact"), "sizes": 20, "repeats": 2, "noise": 0.02}
    ours, theirs = (gm.compare(X, y, kernel=KERNEL, client=who, **given).columns() for who in (None, client))
    for name in ("rmse", "nlpd", "frobenius", "coverage95", "log_evidence"):
        assert np.array_equal(ours[name], theirs[name], equal_nan=True)


def test_folds_have_the_same_numbers_on_a_cluster(rows, client):
    X, y = rows[0][:150], rows[1][:150]
    models = {"a": gm.GPRegressor(KERNEL, optimize=False, noise=0.02)}
    ours, theirs = (
        gm.compare_models(models, X, y, by="cv", cv=3, random_state=0, client=who).columns()
        for who in (None, client)
    )
    for name in ("cv", "rmse"):
        assert np.array_equal(ours[name], theirs[name])


# What is refused. -------------------------------------------------------------------------------------------


def test_what_rows_in_pieces_are_not_for(folder, rows, few_brought):
    X, y = da.from_array(rows[0], chunks=4000), rows[1]
    with pytest.raises(ParameterError, match="low-rank methods"):
        regressor(None, method="exact").fit(X, y)
    with pytest.raises(InputError, match="GPRegressor fits"):
        gm.GPClassifier().fit(X, y > 0)
    with pytest.raises(ParameterError, match="noise_var"):
        regressor(None).fit(X, y, noise_var=0.1)
    with pytest.raises(InputError, match="no column 'z'"):
        regressor(Threads()).fit(folder, "z")
    gp = regressor(None, optimize=False).fit(X, y)
    with pytest.raises(InputError, match=r"X\.compute\(\)"):
        gp.sample(X)
    with pytest.raises(ParameterError, match="would bring all"):
        np.asarray(gp.fitted_.rows.X)


def test_gaps_and_words_are_told_by_their_column(rows):
    X, y = rows[0].copy(), rows[1].copy()
    frame = pandas.DataFrame(X[:2000], columns=NAMES).assign(y=y[:2000])
    words = dd.from_pandas(frame.assign(b=["x", "y"] * 1000), npartitions=2)
    with pytest.raises(InputError, match="Column 'b' holds"):
        regressor(None).fit(words, "y")
    frame.loc[7, "c"] = np.nan
    frame.loc[9, "y"] = np.nan
    broken = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(InputError, match="Column 'c' of X contains NaN in 1 rows"):
        regressor(None).fit(broken, "y")
    gp = regressor(None, optimize=False, missing="drop").fit(broken, "y")
    assert gp.fitted_.n_rows == 1998
    assert "2 of 2,000 rows have gaps" in gp.summary()
