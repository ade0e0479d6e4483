"""What a fit tells of the data and of what it found: the notes that should be there, and those that should
not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramian as gm

N = 60


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(5)


def notes(X, y, kernel=None, **settings) -> str:
    """Of a model that is taken as it is, unless one asks for more."""
    gp = gm.GPRegressor(kernel, **{"optimize": False, **settings}).fit(X, y)
    return "\n".join(gp.outcome_.notes)


def test_plain_data_have_nothing_to_tell(rng):
    X = rng.normal(size=(N, 3))
    assert notes(X, X[:, 0] + 0.1 * rng.normal(size=N)) == ""


# Lengthscales. ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengthscale", "told"), [(1.5, False), (0.6, False), (0.3, True), (0.01, True), (40.0, False)]
)
def test_a_short_lengthscale_is_one_that_does_not_reach_the_next_value(lengthscale, told):
    """Daily data of years: a lengthscale of 1.5 days is 0.4 % of the spread, and reaches the next days."""
    days = np.arange(1200.0)[:, None]
    found = notes(days, np.sin(days[:, 0] / 3), 1.0 * gm.RBF(lengthscale), method=gm.Nystrom(5))
    assert ("neighbours hardly inform each other" in found) == told
    assert ("far below 1, the usual step" in found) == told


def test_a_short_lengthscale_of_one_summand_is_no_fault():
    """The rest of the sum tells of f; that part is noise, and a note says so without a code."""
    days = np.arange(200.0)[:, None]
    gp = gm.GPRegressor(1.0 * gm.RBF(20.0) + 0.1 * gm.Matern12(0.01), optimize=False)
    summary = gp.fit(days, np.sin(days[:, 0] / 20)).report()
    assert "this summand is nearly noise" in str(gp.summary())
    assert [finding.code for finding in summary.findings if finding.code in ("P004", "F009")] == []


def test_steps_are_those_between_different_values():
    """Ten measurements a day: most neighbours are 0 apart, and the next value is still a day away."""
    days = np.repeat(np.arange(400.0), 10)[:, None]
    found = notes(days, np.sin(days[:, 0]), 1.0 * gm.RBF(0.1), method=gm.Nystrom(5))
    assert "far below 1, the usual step" in found


# Kernels. ---------------------------------------------------------------------------------------------------


def test_a_summand_that_has_vanished_is_named(rng):
    t = np.linspace(0, 40, 80)[:, None]
    kernel = 1.0 * gm.Periodic(1.0, gm.fixed(5.0)) + 0.5 * gm.Matern12(gm.fixed(0.3))
    y = np.sin(2 * np.pi * t[:, 0] / 5)
    found = notes(t, y + 1e-3 * rng.normal(size=80), kernel, noise=1e-6, optimize=True, n_restarts=0)
    (line,) = [line for line in found.splitlines() if "has vanished" in line]
    assert "Matern12(fixed(0.3)) of the kernel has vanished: its share of the variance is" in line
    # one that is there, one that nobody could move, and one that nobody has searched
    noisy = y + 0.5 * rng.normal(size=80)
    assert "vanished" not in notes(t, noisy, kernel, noise=1e-6, optimize=True, n_restarts=0)
    held = 1.0 * gm.RBF(1.0) + gm.fixed(1e-9) * gm.RBF(2.0)
    assert "vanished" not in notes(t, noisy, held, optimize=True, n_restarts=0)
    assert "vanished" not in notes(t, noisy, 1.0 * gm.RBF(1.0) + 1e-9 * gm.RBF(2.0))


def test_a_large_line_does_not_make_the_rest_vanish(rng):
    """x around 1,000 gives a Linear kernel a variance of 10^6; what is added to it is still all of y."""
    x = 1000 + np.linspace(0, 10, 50)[:, None]
    kernel = gm.Linear(1.0) + 1.0 * gm.RBF(1.0)
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=50)
    found = notes(x, y, kernel, optimize=True, n_restarts=0)
    assert not any("RBF" in line and "vanished" in line for line in found.splitlines())


# Columns. ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 1, 5001])
def test_a_column_that_counts_the_rows_may_be_an_id(rng, start):
    table = pd.DataFrame({"id": rng.permutation(N) + start, "a": rng.normal(size=N)})
    found = notes(table, table["a"])
    assert f"Column 'id' counts the rows ({start} to {start + N - 1})" in found
    assert "id" not in notes(table[["id"]], table["a"])  # alone it is a time
    gap = table.assign(id=table["id"] * 1.0 + (table["id"] == start) * 0.5)
    assert "id" not in notes(gap, table["a"])
    assert "id" not in notes(
        table.assign(id=pd.Timestamp("2026-01-01") + pd.to_timedelta(table["id"], "D")), table["a"]
    )


def test_a_category_of_its_own_for_every_row(rng):
    table = pd.DataFrame({"name": [f"house {i}" for i in range(N)], "a": rng.normal(size=N)})
    assert f"Column 'name' has {N} categories in {N} rows" in notes(table, table["a"])
    assert "categories" not in notes(table.assign(name=["b", "c"] * (N // 2)), table["a"])


# Rows. ------------------------------------------------------------------------------------------------------


def test_rows_that_repeat_others(rng):
    X = rng.normal(size=(N, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=N)
    again = np.concatenate([y, y[:25]])
    found = notes(np.vstack([X, X[:25]]), again)
    assert "25 rows repeat another's inputs with the same target" in found
    assert "another target" not in found
    moved = np.concatenate([y, y[:7] + 0.2 * (-1.0) ** np.arange(7), y[7:8]])
    found = notes(np.vstack([X, X[:8]]), moved)
    # pairs that differ by 0.2 have a variance of 0.02, and one more is equal: 7 * 0.02 / 8
    assert (
        "7 rows repeat another's inputs with another target: these alone show a noise variance of 0.0175"
        in (found)
    )
    assert "One row repeats another's inputs with the same target" in found
    # equal in each column somewhere, and never in all
    grid = np.column_stack([np.repeat(np.arange(8.0), 8), np.tile(np.arange(8.0), 8)])
    assert "repeat" not in notes(grid, grid[:, 0] - 3.5)


def test_labels_of_equal_rows_that_differ(rng):
    X = np.repeat(rng.normal(size=(20, 1)), 2, axis=0)
    gp = gm.GPClassifier(gm.RBF(1.0), optimize=False).fit(X, ["a", "b"] * 20)
    assert any(
        "20 rows repeat another's inputs with another target: no model" in n for n in gp.outcome_.notes
    )


def test_what_all_binary_models_tell_is_told_once(rng):
    table = pd.DataFrame({"id": np.arange(N), "a": rng.normal(size=N)})
    gp = gm.GPClassifier(gm.RBF(1.0), multiclass="ovr", optimize=False).fit(table, ["a", "b", "c"] * (N // 3))
    assert sum("counts the rows" in note for note in gp.outcome_.notes) == 1


# Targets. ---------------------------------------------------------------------------------------------------


def test_counts_and_positive_targets(rng):
    X = rng.normal(size=(N, 1))
    counts = rng.poisson(2.0, N).astype(float)
    assert 'give likelihood="poisson"' in notes(X, counts)
    assert "counts" not in notes(X, counts, likelihood=gm.Poisson())
    assert "counts" not in notes(X, counts + 0.5)
    assert "counts" not in notes(X, counts - 5)
    assert "counts" not in notes(X, 500 + counts)  # far from 0
    dollars = np.round(15_000 * np.exp(rng.normal(size=N)))
    assert "counts" not in notes(X, dollars)
    assert "few large values" in notes(X, dollars)
    assert "counts" not in notes(X, (counts > 2).astype(float))  # yes and no
    skewed = np.exp(rng.normal(size=N))
    assert "y is positive with few large values" in notes(X, skewed)
    assert "large values" not in notes(X, np.log(skewed))
    assert "large values" not in notes(X, rng.uniform(1, 2, N))
    gaps = np.where(np.arange(N) % 9 == 4, np.nan, counts)[:, None]
    assert 'give likelihood="poisson"' in notes(X, gaps)
    assert "If they are labels" in notes(X, np.arange(N) % 3)
    both = np.column_stack([counts, skewed])
    assert notes(X, both) == ""


# By name. ---------------------------------------------------------------------------------------------------


def test_parameters_are_called_by_their_columns(rng, tmp_path):
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=["age", "bmi", "bp"])
    kernel = 1.0 * gm.RBF([1.0, 2.0]).on("bp", "age") + gm.Linear([0.1, 0.2, 0.3])
    gp = gm.GPRegressor(kernel, mean="linear", optimize=False).fit(X, X["age"])
    names = set(gp.parameters_.names)
    assert {"kernel.rbf.lengthscale[bp]", "kernel.rbf.lengthscale[age]", "mean.slope[bmi]"} <= names
    assert {"kernel.linear.variance[age]", "kernel.linear.variance[bp]"} <= names
    assert gp.parameters_["kernel.rbf.lengthscale[age]"] == 2.0
    assert gp.parameters_["kernel.rbf.lengthscale[1]"] == 2.0  # by number, too
    np.testing.assert_array_equal(gp.parameters_["kernel.rbf.lengthscale"], [1.0, 2.0])
    with pytest.raises(KeyError, match=r"no parameter named 'kernel.rbf.lengthscale\[7\]'"):
        gp.parameters_["kernel.rbf.lengthscale[7]"]
    gp.save(tmp_path / "m.gm")
    assert gm.load(tmp_path / "m.gm").parameters_.names == gp.parameters_.names
    unnamed = gm.GPRegressor(gm.RBF([1.0, 2.0, 3.0]), optimize=False).fit(X.to_numpy(), X["age"])
    assert "kernel.lengthscale[2]" in unnamed.parameters_.names
    far = gm.GPRegressor(gm.RBF([1.0, 1e4, 1e4]), optimize=False).fit(X, X["age"])
    assert "kernel.lengthscale[bmi, bp]: far beyond the data" in far.outcome_.notes[0]
    assert next(row for row in far.parameters_ if row.name == "kernel.lengthscale[bp]").note


@pytest.mark.parametrize("method", ["exact", gm.Nystrom(5)])
def test_a_summary_of_200_columns_is_a_page(rng, method, tmp_path):
    X = pd.DataFrame(rng.normal(size=(20, 200)), columns=[f"gene{j}" for j in range(200)])
    X["gene150"] *= 1000  # a long lengthscale is short along a wide column
    lengthscales = np.full(200, 50.0)
    lengthscales[[3, 150]] = 1.0, 500.0
    gp = gm.GPRegressor(gm.RBF(lengthscales), method=method, optimize=False).fit(X, X["gene3"])
    gp.save(tmp_path / "m.gm")
    for model in (gp, gm.load(tmp_path / "m.gm")):
        text = model.summary()
        assert len(text.splitlines()) < 40
        assert max(map(len, text.splitlines())) < 200
        shown = [line for line in text.splitlines() if line.startswith("kernel.lengthscale[")]
        assert [line.split("[")[1].split("]")[0] for line in shown[:2]] == ["gene150", "gene3"]
        assert "... 190 more" in text
        assert len(model.parameters_) == 202
        assert "gene199" in model.summary(full=True)
        assert "190 more" not in model.summary(full=True)


# Random frequencies. ----------------------------------------------------------------------------------------


def test_intervals_of_few_frequencies_are_called_too_narrow(rng):
    """They are: f is drawn from the model, and the parameters are known."""
    X = rng.uniform(size=(300, 1))
    f = np.linalg.cholesky(np.asarray(gm.Matern52(0.2)(X)) + 1e-9 * np.eye(300)) @ rng.normal(size=300)
    y = f[:200] + 0.1 * rng.normal(size=200)
    known = {"kernel": gm.fixed(1.0) * gm.Matern52(gm.fixed(0.2)), "noise": gm.fixed(0.01)}
    held, told = {}, {}
    for method in ("exact", gm.Fourier(60)):
        gp = gm.GPRegressor(**known, mean="zero", normalize_y=False, method=method, random_state=0)
        _, low, high = gp.fit(X[:200], y).predict(X[200:], interval=0.95, target="f")
        held[gp.outcome_.method] = np.mean((low < f[200:]) & (f[200:] < high))
        told[gp.outcome_.method] = "\n".join(gp.outcome_.notes)
    # of 100 rows in one draw of f, which a posterior of some 15 numbers foretells
    assert held["fourier"] < 0.7 < 0.8 < held["exact"]
    assert told["exact"] == ""
    assert "60 random frequencies are not the kernel" in told["fourier"]
    assert "Fourier(240)" in told["fourier"]
    assert 'method="vfe"' in told["fourier"]
    # enough of them have nothing to tell
    assert notes(X[:20], y[:20], 1.0 * gm.Matern52(0.2), method=gm.Fourier(200)) == ""
