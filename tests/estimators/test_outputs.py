"""Several outputs of an estimator that have to do with each other."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

import gramian as gm
from gramian.cli.main import app
from gramian.errors import InputError, ParameterError
from gramian.estimators.outputs import like_gaps, order_of
from gramian.inference import Data

N = 48
NEW = pd.DataFrame({"x": np.linspace(0.1, 2.9, 5)})


def shared(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Three outputs of one wave, of which two have a gap; and what they are there."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 3, N))
    f = np.sin(3 * x)
    whole = np.column_stack([f, 10 - 2 * f, 100 + 30 * f])
    Y = whole + [0.05, 0.1, 1.0] * rng.normal(size=whole.shape)
    Y[14:32, 1] = Y[20:40, 2] = np.nan
    return pd.DataFrame({"x": x}), pd.DataFrame(Y, columns=["a", "b", "c"]), whole


def fitted(outputs: object = "coupled", **settings: object) -> gm.GPRegressor:
    X, Y, _ = shared()
    return gm.GPRegressor(outputs=outputs, random_state=0, verbose=False, **settings).fit(X, Y)


KERNEL = {"kernel": 1.0 * gm.Matern52(0.5)}
KINDS = {
    "coupled": fitted(gm.Coregion(rank=1), **KERNEL),
    "two kernels": fitted(
        [gm.Coregion(rank=1), gm.Coregion(rank=2)], kernel=gm.RBF(0.5) + 0.1 * gm.Matern12(0.5)
    ),
    "chained": fitted("chained", **KERNEL),
}


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_fill_each_others_gaps(kind):
    X, Y, whole = shared()
    gaps = np.isnan(Y.to_numpy())
    gp = KINDS[kind]
    mean, std = gp.predict(X, return_std=True)
    alone = gm.GPRegressor(**KERNEL).fit(X, Y).predict(X)
    for k in (1, 2):
        error, other = (np.sqrt(np.mean((f - whole)[gaps[:, k], k] ** 2)) for f in (mean, alone))
        # a chain hands the noise of one output on to the next
        assert error < (0.6 if kind == "chained" else 0.3) * other
    assert np.all(std > 0)
    inside = np.abs(mean - whole)[gaps] < 3 * std[gaps]
    assert inside.mean() > 0.9


def test_what_is_told_is_what_was_fitted(tmp_path):
    """Rough outputs, for which the path leaves the plain kernel."""
    rng = np.random.default_rng(0)
    x = np.arange(60.0)[:, None]
    walk = np.cumsum(rng.normal(size=60))
    Y = np.column_stack([walk, walk + rng.normal(size=60)])
    for kind in ("coupled", "chained"):
        gp = gm.GPRegressor(outputs=kind, random_state=0).fit(x, Y)
        model = gp.fitted_.model
        assert gp.kernel_.resolve(["x0"]) == model.kernel
        assert kind == "chained" or "Matern12" in gp.summary()
        gp.save(tmp_path / "model.gm")
        assert_array_equal(gm.load(tmp_path / "model.gm").predict(x + 0.5), gp.predict(x + 0.5))
        with pytest.raises(ParameterError, match="each for itself"):
            gp.certificate()


def test_correlations_have_their_signs_and_are_told():
    gp = KINDS["coupled"]
    R = gp.output_correlations_
    assert_allclose(np.diagonal(R), 1.0)
    assert R[0, 1] < -0.9
    assert R[0, 2] > 0.9
    assert "a and b -1.00" in gp.summary() or "a and b -0.9" in gp.summary()
    with pytest.raises(AttributeError, match="coupled"):
        _ = KINDS["chained"].output_correlations_
    assert "2. b, of x, and of those before it" in KINDS["chained"].summary()


def test_each_output_has_its_noise():
    found = np.sqrt(KINDS["coupled"].noise_)
    assert_allclose(found, [0.05, 0.1, 1.0], rtol=0.5)  # four standard errors of thirty rows


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_gives_the_same_bits(kind, tmp_path):
    gp = KINDS[kind]
    gp.save(tmp_path / "model.gm")
    again = gm.load(tmp_path / "model.gm")
    questions = (
        lambda one: one.predict(NEW, return_std=True),
        lambda one: one.predict(NEW, return_cov=True),
        lambda one: one.predict(NEW, interval=0.9),
        lambda one: one.predict(NEW, quantiles=[0.1, 0.9]),
        lambda one: one.sample(NEW, 3, random_state=1),
        lambda one: one.output_covariance(NEW),
        lambda one: one.loo(),
        lambda one: one.log_evidence(),
    )
    for ask in questions:
        ours, theirs = ask(gp), ask(again)
        pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
        for a, b in pairs:
            assert_array_equal(a, b)
    assert again.get_params()["outputs"] == gp.outputs
    assert again.summary() == gp.summary()


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_what_belongs_together(kind):
    gp = KINDS[kind]
    mean, std = gp.predict(NEW, return_std=True)
    _, cov = gp.predict(NEW, return_cov=True)
    assert mean.shape == std.shape == (5, 3)
    assert_allclose(np.einsum("iik->ik", cov), std**2, rtol=1e-10)
    assert_allclose(np.einsum("ikk->ik", gp.output_covariance(NEW)), std**2, rtol=1e-10)
    assert_allclose(np.einsum("ikk->ik", gp.output_covariance(NEW, "f")), std**2 - gp.noise_, rtol=1e-8)
    assert gp.sample(NEW, 4, random_state=0).shape == (5, 3, 4)
    assert set(gp.predict_table(NEW)) >= {"mean_a", "std_b", "upper95_c"}
    X, Y, _ = shared()
    assert gp.score(X[:10], Y[:10]) > 0.9
    assert np.all(np.isfinite(gp.log_density(X[:10], Y[:10])))
    assert len(gp.evaluate(X, Y).columns) == 3


def test_coupled_functions_have_summands_and_slopes():
    gp = KINDS["two kernels"]
    parts = gp.components(NEW)
    total = sum(mean for mean, _ in parts.values())
    level = gp.mean_.value.value
    assert_allclose(total + level, gp.predict(NEW), rtol=1e-6)
    one = KINDS["coupled"]
    slope = one.predict_gradient(NEW)[0]
    h = 1e-5
    ahead, behind = (one.predict(NEW + s * h) for s in (1, -1))
    assert_allclose(slope[:, 0], (ahead - behind) / (2 * h), rtol=1e-4, atol=1e-4 * np.abs(slope).max())


@pytest.mark.parametrize("kind", KINDS)
def test_known_outputs_of_new_rows_tell_about_the_others(kind):
    """A row that comes with some of its outputs: those of all rows, conditioned on anew."""
    gp = KINDS[kind]
    rows = pd.DataFrame({"a": np.sin(3 * NEW["x"]) + 0.3, "b": np.nan, "c": np.nan})
    more = copy.deepcopy(gp).update(NEW, rows)
    data = gp.fitted_.rows
    X, Y = np.vstack([data.X, NEW.to_numpy()]), np.vstack([data.Y, rows.to_numpy()])
    scheme = gp.fitted_.inference
    anew = gp.fitted_.conditioned(Data(X, Y, data.scale), scheme, np.random.default_rng(0))
    assert_allclose(more.predict(NEW), anew.process.mean(NEW.to_numpy()), rtol=1e-9)
    assert np.all(more.predict(NEW)[:, 1] < gp.predict(NEW)[:, 1])  # which goes against a
    back = more.forget(range(N, N + 5))
    # a chain fills its gaps anew, which may move them by 2 % of an output's scale
    assert_allclose(back.predict(NEW), gp.predict(NEW), rtol=1e-3 if kind == "chained" else 1e-7)


def test_the_data_choose_between_kinds_and_say_which():
    X, Y, _ = shared()
    gp = gm.GPRegressor(outputs="auto", random_state=0, **KERNEL).fit(X, Y)
    first = gp.outcome_.choice[0]
    assert first.startswith("outputs coupled, by the density of") or first.startswith("outputs chained")
    assert "independent -" in first
    rng = np.random.default_rng(1)
    alone = gm.GPRegressor(outputs="auto", random_state=0, **KERNEL).fit(X, rng.normal(size=(N, 2)))
    assert alone.outcome_.choice[0].startswith("outputs independent, by the height")


def test_a_chain_sees_what_no_correlation_shows():
    """The second output is a square of the first: uncorrelated with it, and a function of it."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 10, (90, 1))
    z = rng.normal(size=90)
    Y = np.column_stack([z, z**2 + 0.05 * rng.normal(size=90)])
    whole = Y.copy()
    Y[::3, 1] = np.nan
    errors = {}
    for kind in ("coupled", "chained"):
        gp = gm.GPRegressor(outputs=kind, random_state=0, warp=None).fit(x, Y)
        errors[kind] = np.mean((gp.predict(x) - whole)[::3, 1] ** 2)
    assert errors["chained"] < 0.2 * errors["coupled"]


def test_a_long_table_with_a_kernel_of_the_output():
    X, Y, whole = shared()
    wide = (Y - Y.mean()) / Y.std()
    long = wide.assign(x=X["x"]).melt("x", var_name="output", value_name="y").dropna()
    kernel = gm.Matern52(0.5).on("x") * gm.Coregion(3, rank=1).on("output")
    gp = gm.GPRegressor(kernel, random_state=0).fit(long[["x", "output"]], long["y"])
    at = np.isnan(Y["b"].to_numpy())
    found = gp.predict(X[at].assign(output="b")) * Y["b"].std() + Y["b"].mean()
    assert np.sqrt(np.mean((found - whole[at, 1]) ** 2)) < 0.4


def test_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, Y, whole = shared()
    X.join(Y).to_csv("waves.csv", index=False)
    X.to_csv("new.csv", index=False)
    run = CliRunner()
    asked = "fit waves.csv -t a -t b -t c --outputs chained -k 1.0*Matern52(0.5) -o m.gm"
    done = run.invoke(app, asked.split())
    assert done.exit_code == 0, done.output
    assert "outputs" in done.output
    done = run.invoke(app, ["predict", "m.gm", "new.csv", "-o", "p.csv"])
    assert done.exit_code == 0, done.output
    table = pd.read_csv("p.csv")
    gaps = np.isnan(Y["b"].to_numpy())
    assert np.sqrt(np.mean((table["mean_b"] - whole[:, 1])[gaps] ** 2)) < 0.5
    wrong = run.invoke(app, ["fit", "waves.csv", "-t", "a", "-t", "b", "--outputs", "both", "-o", "m.gm"])
    assert wrong.exit_code != 0
    assert "coupled" in wrong.output


def test_what_is_refused_names_the_cure():
    X, Y, _ = shared()
    for settings, words in (
        ({"outputs": "both"}, "outputs='both' is not known"),
        ({"outputs": "coupled", "likelihood": "student-t"}, "Gaussian noise in closed form"),
        ({"outputs": "coupled", "hyper": "mcmc"}, "Gaussian noise in closed form"),
        ({"outputs": gm.Coregion(2)}, "2 outputs, but the data have 3"),
        ({"outputs": gm.Coregion(rank=4)}, "rank 4, but the data have 3"),
        ({"outputs": [gm.Coregion()] * 2, "kernel": gm.RBF()}, "2 matrices between outputs"),
        ({"outputs": "coupled", "method": "cg", **KERNEL}, "noise of each output"),
        ({"outputs": "coupled", "method": "svgp", **KERNEL}, "knows no outputs"),
        ({"outputs": "chained", "method": "svgp", **KERNEL}, "knows no chain"),
    ):
        with pytest.raises(ParameterError, match=words):
            gm.GPRegressor(**settings).fit(X, Y)
    with pytest.raises(InputError, match="all rows of output 1"):
        gm.GPRegressor(outputs="coupled").fit(X, Y.assign(b=np.nan))


def test_one_output_is_one_output():
    X, Y, _ = shared()
    plain, other = (
        gm.GPRegressor(outputs=kind, random_state=0, **KERNEL).fit(X, Y["a"])
        for kind in ("independent", "auto")
    )
    assert_array_equal(plain.predict(NEW), other.predict(NEW))


def test_entries_that_judge_are_beside_gaps():
    X = np.arange(60.0)[:, None]
    seen = np.ones(60, bool)
    seen[20:35] = False
    columns = gm.GPRegressor(**KERNEL).fit(X, X[:, 0]).fitted_.columns
    judges = like_gaps(X, seen, columns)
    assert judges is not None
    assert len(judges) == 15
    assert_array_equal(judges, [*range(judges[0], 20), *range(35, judges[-1] + 1)])
    assert like_gaps(X, np.ones(60, bool), columns) is None
    assert order_of(np.where(seen[:, None], [[1.0, 2.0]], [[np.nan, 2.0]])) == (1, 0)
