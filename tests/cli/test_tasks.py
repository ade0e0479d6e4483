"""Labels and likelihoods on the command line: the task as the target shows it, options of the other one
refused, and what predictions then have."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from gramian.choose.words import NAMED
from gramian.cli import columns as reading
from gramian.cli import work
from gramian.data import filecolumns, sources
from gramian.data.tables import read_blocks, write_table
from gramian.likelihoods import Poisson
from gramian.words import KERNELS, LIKELIHOODS, METHODS, listed

N = 40
QUICK = ("--restarts", 0, "-k", "2.0 * RBF(fixed(1.0))", "-c", "a")


@pytest.fixture
def table(tmp_path) -> pd.DataFrame:
    """table.csv: text of two and of three kinds, whole numbers, counts with their exposure, and numbers."""
    rng = np.random.default_rng(4)
    a = np.round(rng.uniform(0, 6, N), 3)
    f = 2 * np.sin(a)
    days = np.round(rng.uniform(1, 9, N), 2)
    columns = {
        "a": a,
        "two": np.where(f + rng.normal(size=N) > 0, "yes", "no"),
        "kind": np.where(f > 0.8, "high", np.where(f < -0.8, "low", "middle")),
        "level": (f > 0).astype(int) + 3,
        "count": rng.poisson(days * np.exp(0.5 * f)),
        "days": days,
        "y": np.round(f + 0.1 * rng.standard_t(2, N), 3),
    }
    write_table(tmp_path / "table.csv", list(columns), columns)
    return pd.DataFrame(columns)


def test_text_is_classified_and_predictions_have_a_probability_a_label(run, table, tmp_path):
    printed = run("fit", "table.csv", "-t", "kind", *QUICK, "-o", "m.gm").stdout
    assert "GPClassifier of kind on 40 rows" in printed
    assert "3 classes" in printed
    run("predict", "m.gm", "table.csv", "-o", "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    assert list(found.columns) == [*table.columns, "predicted", "proba_high", "proba_low", "proba_middle"]
    gp = gm.load(tmp_path / "m.gm")
    P = gp.predict_proba(table[["a"]])
    np.testing.assert_array_equal(found[["proba_high", "proba_low", "proba_middle"]], P)
    assert list(found["predicted"]) == list(gp.predict(table[["a"]]))
    assert np.mean(found["predicted"] == table["kind"]) > 0.8
    assert "GPClassifier" in run("show", "m.gm").stdout
    table.rename(columns={"y": "predicted"}).to_csv(tmp_path / "taken.csv", index=False)
    second = run("predict", "m.gm", "taken.csv", "-o", "p2.csv")
    assert "predicted_predicted, predicted_proba_high" in second.stderr
    run("predict", "m.gm", "table.csv", "--target-kind", "f", "-o", "f.csv")
    latent = pd.read_csv(tmp_path / "f.csv")
    np.testing.assert_allclose(latent["mean_1"], gp.predict_latent(table[["a"]])[0][:, 1])


def test_whole_numbers_are_numbers_with_a_hint_and_labels_on_demand(run, table, tmp_path):
    as_numbers = run("fit", "table.csv", "-t", "level", *QUICK, "-o", "m.gm")
    assert "'level' has 2 whole values (3, 4)" in as_numbers.stderr
    assert "--task classification" in as_numbers.stderr
    assert "GPRegressor" in as_numbers.stdout
    assert run("fit", "table.csv", "-t", "level", "--task", "regression", *QUICK, "-o", "m.gm").stderr == ""
    as_labels = run(
        "fit",
        "table.csv",
        "-t",
        "level",
        "--task",
        "classification",
        "--link",
        "probit",
        "--inference",
        "ep",
        *QUICK,
        "-o",
        "m.gm",
    )
    assert as_labels.stderr == ""
    assert "ep" in as_labels.stdout
    run("predict", "m.gm", "table.csv", "-o", "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    assert {"proba_3", "proba_4"} <= set(found.columns)
    assert set(found["predicted"]) <= {3, 4}
    assert gm.load(tmp_path / "m.gm").likelihood_.link == "probit"


@pytest.mark.parametrize(("target", "method"), [("two", "svgp"), ("level", "nystrom")])
def test_large_files_keep_their_labels(run, table, tmp_path, monkeypatch, target, method):
    command = (
        "fit",
        "table.csv",
        "-t",
        target,
        "--task",
        "classification",
        *QUICK,
        "--method",
        method,
        "--size",
        8,
    )
    run(*command, "-o", "whole.gm")
    for module in (work, reading, sources, filecolumns):
        monkeypatch.setattr(module, "read_blocks", lambda path, **_: read_blocks(path, 7))
    run(*command, "-o", "streamed.gm")
    whole, streamed = (gm.load(tmp_path / name) for name in ("whole.gm", "streamed.gm"))
    assert list(streamed.classes_) == list(whole.classes_) == sorted(set(table[target]))
    assert streamed.fitted_.columns == whole.fitted_.columns
    assert whole.fitted_.columns.targets == (target,)
    # The same rows, seeds and steps: what differs is where the numbers lie.
    np.testing.assert_allclose(
        streamed.predict_proba(table[["a"]]), whole.predict_proba(table[["a"]]), atol=1e-8
    )


def test_counts_with_exposure_have_quantiles_for_an_interval(run, table, tmp_path, monkeypatch):
    command = (
        "fit",
        "table.csv",
        "-t",
        "count",
        "--likelihood",
        "poisson",
        "--exposure",
        "days",
        "--restarts",
        0,
        "-c",
        "a",
        "--hyper",
        "ml",
    )
    printed = run(*command, "-o", "m.gm")
    assert "with exposure days" in printed.stdout
    assert printed.stderr == ""
    gp = gm.load(tmp_path / "m.gm")
    assert isinstance(gp.likelihood_, Poisson)
    run("predict", "m.gm", "table.csv", "--exposure", "days", "-o", "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    np.testing.assert_allclose(found["mean"], gp.predict(table[["a"]], exposure=table["days"]), rtol=1e-12)
    lower, upper = found["lower95"], found["upper95"]
    assert np.all(lower >= 0)
    assert np.mean((table["count"] >= lower) & (table["count"] <= upper)) > 0.85
    run("predict", "m.gm", "table.csv", "-o", "r.csv")
    rates = pd.read_csv(tmp_path / "r.csv")
    np.testing.assert_allclose(rates["mean"] * table["days"], found["mean"], rtol=1e-12)
    for module in (work, reading, sources, filecolumns):
        monkeypatch.setattr(module, "read_blocks", lambda path, **_: read_blocks(path, 7))
    run(*command, "-o", "streamed.gm")
    np.testing.assert_allclose(
        gm.load(tmp_path / "streamed.gm").predict(table[["a"]]), rates["mean"], rtol=1e-6
    )


def test_quantiles_are_those_of_the_predictive_distribution(run, table, tmp_path):
    run(
        "fit",
        "table.csv",
        "-t",
        "y",
        "--likelihood",
        "student-t",
        "--inference",
        "laplace",
        *QUICK,
        "-o",
        "m.gm",
    )
    run("predict", "m.gm", "table.csv", "-o", "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    gp = gm.load(tmp_path / "m.gm")
    # The ends are empirical quantiles of 4,000 draws, the same in all rows: the share beyond one has a
    # standard error of 0.25 %, of which four are allowed.
    mean, var = gp.posterior_.moments(table[["a"]].to_numpy())
    rng = np.random.default_rng(1)
    y = gp.likelihood_.bare().draw(rng, mean + np.sqrt(var) * rng.standard_normal((N, 20_000)))
    for share in (
        np.mean(y < found["lower95"].to_numpy()[:, None]),
        np.mean(y > found["upper95"].to_numpy()[:, None]),
    ):
        assert share == pytest.approx(0.025, abs=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("-t", "two", "--noise", 0.1),
            "--noise 0.1 is for regression, but 'two' is a target of classification",
        ),
        (("-t", "two", "--likelihood", "poisson"), "--likelihood poisson is for regression"),
        (
            ("-t", "y", "--link", "logit"),
            "--link logit is for classification, but 'y' is a target of regression",
        ),
        (("-t", "y", "--multiclass", "ovr"), "add --task classification"),
        (("-t", "y", "--exposure", "days"), "--exposure days is for counts. Add --likelihood poisson"),
        (
            ("-t", "y", "--likelihood", "cauchy"),
            "--likelihood 'cauchy' is not known. Use gaussian, student-t",
        ),
        (
            ("-t", "y", "--likelihood", "beta", "--noise", 1),
            "--noise 1 is where Gaussian noise in closed form starts, and --likelihood beta has none",
        ),
        (
            ("-t", "y", "-t", "a", "--likelihood", "gamma"),
            "--likelihood gamma takes one target, but there are 2",
        ),
        (("-t", "y", "--likelihood", "poisson"), "table.csv, line 2, column 'y':"),
        (
            ("-t", "y", "--task", "classification"),
            "is no label: labels are text or whole numbers. For numbers to be predicted: --task regression",
        ),
        (
            ("-t", "two", "-t", "y", "--task", "classification"),
            "--task classification takes one --target, but there are 2: two, y",
        ),
        (("-t", "kind", "--task", "regression"), "column 'kind' holds 3 categories, where numbers"),
        (("-t", "y", "--task", "sorting"), "--task 'sorting' is not known. Use classification, regression"),
        (("-t", "y", "--hyper", "guess"), "--hyper 'guess' is not known"),
    ],
)
def test_what_does_not_belong_is_refused_by_its_name(run, table, tmp_path, options, message):
    assert message in run("fit", "table.csv", *options, "-o", "m.gm", code=2).stderr
    assert not (tmp_path / "m.gm").exists()


def test_labels_with_mistakes_are_refused_with_their_place(run, tmp_path):
    for cells, message in (
        (["a", "a", "a", "a"], "all 4 rows have the label 'a'"),
        (["a", "b", "c", "d"], "text that differs in every row"),
        # numbers with a word among them are no labels
        (["1", "2", "x", "4"], "d.csv, line 4, column 'y': 'x' is not a number"),
    ):
        write_table(tmp_path / "d.csv", ["x", "y"], {"x": np.arange(4.0), "y": np.array(cells, dtype=object)})
        assert message in run("fit", "d.csv", "-t", "y", "-o", "m.gm", code=2).stderr
    write_table(
        tmp_path / "d.csv",
        ["x", "e", "y"],
        {"x": np.arange(4.0), "e": np.array([1.0, 2.0, 0.0, 1.0]), "y": np.arange(4)},
    )
    refused = run(
        "fit", "d.csv", "-t", "y", "--likelihood", "poisson", "--exposure", "e", "-o", "m.gm", code=2
    )
    assert "d.csv, line 4, column 'e': the exposure, which says how much was watched, is 0" in refused.stderr


def test_plan_and_compare_see_labels_too(run, table):
    assert "--method auto takes exact" in run("plan", "table.csv", "-t", "two", "-c", "a").stdout
    given = (
        "compare",
        "table.csv",
        "-c",
        "a",
        "-k",
        "RBF(1.0)",
        "--methods",
        "nystrom:uniform",
        "--sizes",
        5,
        "--repeats",
        1,
    )
    assert "2 classes: no, yes" in run(*given, "-t", "two").stdout
    assert "MSE" in run(*given, "-t", "level", "--noise", 0.1).stdout
    assert "ECE" in run(*given, "-t", "level", "--task", "classification").stdout


def test_successes_of_trials(run, tmp_path):
    rng = np.random.default_rng(2)
    x, n = np.linspace(0, 3, 40), rng.integers(1, 9, 40)
    table = pd.DataFrame({"x": x, "n": n, "k": rng.binomial(n, 1 / (1 + np.exp(-x)))})
    table.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", "t.csv", "-t", "k", "--restarts", 0, "-o", "m.gm")
    printed = run(*fit, "--likelihood", "binomial", "--trials", "n")
    assert "k from x, with trials n" in printed.stdout
    run("predict", "m.gm", "t.csv", "--trials", "n", "-o", "p.csv")
    run("predict", "m.gm", "t.csv", "-o", "s.csv")
    successes, shares = (pd.read_csv(tmp_path / name)["mean"] for name in ("p.csv", "s.csv"))
    np.testing.assert_allclose(successes, n * shares, rtol=1e-10)
    assert np.all((shares > 0) & (shares < 1))
    assert "--trials n is for successes" in run(*fit, "--trials", "n", code=2).stderr
    refused = run("predict", "m.gm", "t.csv", "--exposure", "n", code=2)
    assert "--exposure n is for predictions of counts" in refused.stderr


def test_families_of_kernels_and_likelihoods_are_listed_from_their_tables(run, table):
    shown = " ".join(run("fit", "--help").stdout.split())
    assert all(word in shown for word in (*LIKELIHOODS, *KERNELS))
    run("fit", "table.csv", "-t", "y", "-c", "a", "-k", "rbf", "--restarts", 0, "-o", "m.gm")
    assert "RBF" in run("show", "m.gm").stdout


def test_methods_are_listed_as_there_are(run):
    assert tuple(NAMED) == METHODS
    assert listed(METHODS) in " ".join(run("fit", "--help").stdout.split())


def test_words_of_kernels_are_added_up(run, table):
    fit = ("fit", "table.csv", "-t", "y", "-c", "a", "--restarts", 0, "-o", "m.gm")
    run(*fit, "-k", "RBF + matern12")
    shown = run("show", "m.gm").stdout
    assert "RBF" in shown
    assert "Matern12" in shown
    refused = run(*fit, "-k", "rbf + matern13", code=2).stderr
    assert "--kernel \"rbf + matern13\": 'matern13' is no word" in refused
    assert '"matern32", "matern52"' in refused
