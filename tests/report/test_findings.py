"""Every finding has a case that must have it, and good fits have none."""

from __future__ import annotations

import dataclasses
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import ParameterError
from gramian.report import notes
from gramian.report.checks import CHANCE, Case, of_predictions
from gramian.report.codes import CODES, LEVELS, code_of
from gramian.report.held import left_out

# fits start somewhere else as well, the same place in each run
GPRegressor = partial(gm.GPRegressor, random_state=0)
GPClassifier = partial(gm.GPClassifier, random_state=0)

pytestmark = pytest.mark.filterwarnings("ignore:rows with categories")


def rows(n=80, d=2, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, min(1, d - 1)] + noise * rng.normal(size=n)
    return X, y, rng


def fixed(scales, noise, X, y, **settings):
    return GPRegressor(1.0 * gm.RBF(scales), noise=gm.fixed(noise), optimize=False, **settings).fit(X, y)


def labels(X):
    return np.where(X[:, 0] > 0, "a", "b")


def other(given):
    return np.where(given == "a", "b", "a")


def classified(X, y, scale=4.0):
    return GPClassifier(scale * gm.RBF([1.0, 1.0]), optimize=False).fit(X, y)


def told(note):
    X, y, _ = rows(30)
    gp = fixed([1.0, 1.0], 0.01, X, y)
    gp.fitted_ = gp.fitted_.told(note)
    return gp


def series(n=200, period=2.0):
    t = np.arange(float(n)) / 10
    return t[:, None], np.sin(2 * np.pi * t / period) + 0.1 * np.random.default_rng(0).normal(size=n)


# Cases: the model, and rows that come with the report. ------------------------------------------------------


def numbered():
    X, y, _ = rows()
    return GPRegressor("matern52").fit(pd.DataFrame({"id": np.arange(80), "a": X[:, 0]}), y)


def given_away():
    X, y, _ = rows()
    return GPRegressor("matern52").fit(pd.DataFrame({"a": X[:, 0], "in dollars": 1.1 * y + 3}), y)


def given_away_class():
    X, _, _ = rows()
    y = labels(X)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "code": np.where(y == "a", 7.0, 9.0)})
    return GPClassifier(4.0 * gm.RBF([1.0, 1.0, 1.0]), optimize=False).fit(table, y)


def ahead():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"time": 3 * np.arange(150.0), "a": rng.normal(size=150)})
    return GPRegressor("matern52").fit(table, np.cumsum(rng.normal(size=150)) + table["a"])


def copied():
    X, y, _ = rows()
    return GPRegressor("matern52").fit(np.r_[X, X[:20]], np.r_[y, y[:20]])


def contradicted():
    X, _, _ = rows(60)
    y = labels(X)
    return classified(np.r_[X, X[:5]], np.r_[y, other(y[:5])])


def rare():
    X, _, _ = rows(60)
    y = labels(X)
    y[:2] = "c"
    return GPClassifier(4.0 * gm.RBF([1.0, 1.0]), optimize=False).fit(X, y)


def outlier():
    X, y, _ = rows(60)
    y[5] += 20
    return GPRegressor().fit(X, y)


def bounded():
    X, y, _ = rows(60)
    return GPRegressor(1.0 * gm.RBF(gm.param(1.0, bounds=(0.9, 1.1))), noise=0.1).fit(X, y)


def vanished():
    X, y, _ = rows(60)
    kernel = 1.0 * gm.RBF([1.0, 1.0]) + 1e-9 * gm.Matern12(1.0)
    return GPRegressor(kernel, noise=0.01, n_restarts=0).fit(X, y)


def rough():
    x = np.random.default_rng(0).uniform(0, 10, (200, 1))
    y = np.sin(5 * x[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=200)
    gp = fixed(0.2, 0.01, x, y, method=gm.Sparse(8, "dtc"))
    gp.certificate()
    return gp


def fanned():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (300, 1))
    y = np.sin(6 * x[:, 0]) + (0.02 + x[:, 0] ** 2) * rng.normal(size=300)
    return GPRegressor("matern52").fit(x, y)


def overfitted():
    """40 rows, 18 parameters, no priors: of 300 new rows its 95 % intervals hold 69 %."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 15))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.5 * rng.normal(size=40)
    return GPRegressor(1.0 * gm.RBF(np.ones(15)), noise=0.1, hyper="ml").fit(X, y)


def with_rows(change, n=80):
    X, y, rng = rows(n)
    gp = GPRegressor("matern52").fit(X, y)
    return gp, *change(X[:40], y[:40], rng)


def mislabelled():
    X, _, rng = rows(200)
    y = labels(X)
    return classified(X, y), X, np.where(rng.random(200) < 0.35, other(y), y)


def new_word():
    X, y, _ = rows()
    table = pd.DataFrame({"a": X[:, 0], "site": np.array(["u", "v"])[np.arange(80) % 2]})
    return GPRegressor("matern52").fit(table, y), table[:20].assign(site="w"), y[:20]


def fourier():
    X, y, _ = rows(60)
    return GPRegressor("matern52", method=gm.Fourier(100)).fit(X, y)


def pure_noise():
    X, _, rng = rows()
    return GPRegressor("matern52").fit(X, rng.normal(size=80))


def positive(y):
    X, _, _ = rows()
    return fixed([1.0, 1.0], 0.1, X, y)


def placeheld():
    X, y, _ = rows()
    X[::9, 1] = -999.0
    return fixed([1.0, 1.0], 0.01, X, y)


def worded(form):
    X, y, _ = rows()
    words = np.array([form(k) for k in np.arange(80) % 15])
    return GPRegressor("matern52", optimize=False).fit(pd.DataFrame({"a": X[:, 0], "size": words}), y)


TRIGGERS = {
    "L001": numbered,
    "L002": given_away,
    "L003": ahead,
    "D001": lambda: fixed([1.0] * 3, 0.01, np.c_[rows()[0], np.ones(80)], rows()[1]),
    "D002": copied,
    "D003": contradicted,
    "D004": lambda: fixed([1.0, 1.0], 0.01, rows()[0], np.ones(80)),
    "D005": lambda: positive(np.random.default_rng(0).poisson(np.exp(rows()[1])).astype(float)),
    "D006": lambda: positive(np.exp(2 * rows()[1])),
    "D007": outlier,
    "D008": rare,
    "D009": placeheld,
    "D010": lambda: fixed([1.0] * 3, 0.01, np.c_[rows()[0], rows()[0][:, :1]], rows()[1]),
    "D011": lambda: worded(lambda k: f"{k}.5 ± 0.1"),
    "D012": lambda: worded(lambda k: ("Red", "red", "blue")[k % 3]),
    "P001": bounded,
    "P002": lambda: GPRegressor("rbf").fit(*rows(noise=0.0)[:2]),
    "P003": lambda: GPRegressor("matern52").fit(*rows(100, 3)[:2]),
    "P004": lambda: GPRegressor(1.0 * gm.RBF(0.01), noise=gm.fixed(0.01)).fit(
        np.arange(60.0)[:, None], np.random.default_rng(0).normal(size=60)
    ),
    "P005": vanished,
    "F001": lambda: GPRegressor("rbf", time_limit=1e-6).fit(*rows(60)[:2]),
    "F002": lambda: told(
        "The solver missed its tolerance, so this answer is less accurate than was asked for: it stopped."
    ),
    "F003": lambda: fixed([9.0, 9.0], 0.0, rows(60)[0], np.sin(rows(60)[0][:, 0])),
    "F004": lambda: told(notes.late(1.0, 2.0, 2.0)[0]),
    "F005": lambda: told("R-hat of kernel.scale is 1.200, above 1.01: the chains do not agree yet."),
    "F009": lambda: told("Something that nobody has foreseen."),
    "A001": rough,
    "A002": fourier,
    "Q001": pure_noise,
    "Q002": lambda: fixed([30.0, 30.0], 0.01, *rows(200)[:2]),
    "Q003": lambda: fixed([0.7, 0.7], 1e-4, *rows()[:2]),
    "Q004": lambda: fixed([1.0, 1.0], 1.0, *rows()[:2]),
    "Q005": lambda: with_rows(lambda X, y, rng: (X, y + 1)),
    "Q006": lambda: fixed([1e3, 1.0], 0.5, *rows(200)[:2]),
    "Q007": fanned,
    "Q008": overfitted,
    "Q009": lambda: GPRegressor("matern52").fit(*rows(30)[:2]),
    "C001": mislabelled,
    "C002": lambda: classified(rows(200)[0], labels(rows(200)[0]), scale=0.1),
    "S001": lambda: GPRegressor("matern52").fit(*series()),
    "X001": lambda: with_rows(lambda X, y, rng: (X + 8, y)),
    "X002": new_word,
    "X003": lambda: with_rows(lambda X, y, rng: (X, y + 0.6 * rng.normal(size=40))),
}


def test_every_code_has_a_case():
    assert set(TRIGGERS) == set(CODES)
    assert {code.level for code in CODES.values()} == set(LEVELS)


def test_the_page_of_the_docs_has_every_code():
    page = (Path(gm.__file__).resolve().parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| ([A-Z]\d{3}) \| (\w+) \| ([^|]*) \|", page, re.MULTILINE)
    assert found == [(code, own.level, own.name) for code, own in CODES.items()]


@pytest.mark.parametrize("code", list(CODES))
def test_a_problem_is_named(code):
    made = TRIGGERS[code]()
    gp, *given = made if isinstance(made, tuple) else (made,)
    summary = gp.report(None, *given)
    found = [finding.code for finding in summary.findings]
    assert code in found
    assert code not in summary.passed
    assert f"{code}  {CODES[code].name}" in summary
    ranks = [LEVELS.index(CODES[own].level) for own in found]
    assert ranks == sorted(ranks)  # the gravest first
    quiet = gp.report(None, *given, ignore=[code.lower()])
    assert code not in [finding.code for finding in quiet.findings]
    assert code not in quiet.passed
    assert quiet.ignored == (code,)


def test_a_class_is_given_away():
    assert "L002" in [finding.code for finding in given_away_class().report().findings]


def test_a_column_of_days_numbers_no_rows():
    """Also where it counts them, one by one: what is later is known of it, and new rows have it."""
    X, y, _ = rows()
    table = pd.DataFrame({"day": np.arange(80), "a": X[:, 0]})
    assert "L001" in GPRegressor("matern52").fit(table, y).report().passed
    assert "L001" not in numbered().report().passed


def test_rounded_rows_that_are_equal_by_chance_are_no_copies():
    """A machine that rounds: 50 inputs four times each, two rows of them with the same target."""
    rng = np.random.default_rng(0)
    x = np.repeat(np.linspace(0, 6, 50), 4)
    y = np.sin(x) + 0.3 * rng.normal(size=200)
    y[1], y[81] = y[0], y[80]
    assert "D002" in fixed(1.0, 0.09, x[:, None], y).report().passed
    y[1::4] = y[::4]  # and a table that was joined with itself
    assert "D002" not in fixed(1.0, 0.09, x[:, None], y).report().passed


def test_rows_beyond_the_data_are_the_first_cause():
    """Scores of such rows are no reason to try another kernel."""
    gp, *given = TRIGGERS["X001"]()
    found = gp.report(None, *given).findings
    of_scores = [finding for finding in found if finding.code in ("Q001", "Q002", "Q003", "Q005")]
    assert of_scores
    assert all(finding.cure.startswith("See X001 first") for finding in of_scores)
    alone = [finding.cure for finding in TRIGGERS["Q002"]().report().findings]
    assert not any("X001" in cure for cure in alone)


def test_rows_that_make_all_scores_are_named():
    """Also where the fit has not taken them for outliers; those of a long tail are not."""
    X, y, rng = rows(100)
    y[7], y[31] = y[7] + 30.0, y[31] - 40.0
    found = {one.code: one for one in fixed([3.0, 3.0], 20.0, X, y).report().findings}
    assert found["D007"].text.startswith("Rows 31, 7 are foretold with an error of ")
    tailed = rows(300)[1] + 0.1 * rng.standard_t(3, size=300)
    assert "D007" not in [one.code for one in fixed([1.0, 1.0], 0.05, rows(300)[0], tailed).report().findings]


def test_findings_are_sentences():
    for code in ("P002", "P003", "Q001", "Q002"):
        gp = TRIGGERS[code]()
        (finding,) = [own for own in gp.report().findings if own.code == code]
        assert finding.text[0].isupper() or finding.text[0] in "'x"
        assert finding.name not in finding.text


# Good fits. -------------------------------------------------------------------------------------------------


def good_series():
    return GPRegressor(1.0 * gm.Periodic(1.0, 2.0), noise=0.1).fit(*series())


def good_dates():
    """A season that the kernel knows goes on as it was."""
    rng, n = np.random.default_rng(0), 150
    days = pd.date_range("2024-01-01", periods=n)
    y = np.sin(2 * np.pi * np.arange(n) / 7) + 0.1 * rng.normal(size=n)
    kernel = 1.0 * gm.Periodic(1.0, 7.0)
    return GPRegressor(kernel, noise=0.1).fit(pd.DataFrame({"date": days}), y)


def good_draw(seed):
    """A function of the prior along one column: nothing comes back in it."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 10, 150))[:, None]
    L = np.linalg.cholesky(gm.Matern52(0.7)(x) + 1e-8 * np.eye(150))
    return GPRegressor("matern52").fit(x, L @ rng.normal(size=150) + 0.2 * rng.normal(size=150))


def good_counts():
    X, y, rng = rows(150)
    return GPRegressor("rbf", likelihood="poisson").fit(X, rng.poisson(np.exp(1 + y)))


def good_classes():
    X, y, rng = rows(150)
    return GPClassifier("rbf").fit(X, np.where(y + 0.3 * rng.normal(size=150) > 0, "a", "b"))


def good_outputs():
    X, y, rng = rows(150)
    return GPRegressor("matern52").fit(X, np.c_[y, np.cos(X[:, 0] + X[:, 1]) + 0.2 * rng.normal(size=150)])


def good_words():
    X, y, _ = rows(120)
    site = np.array(["u", "v", "w"])[np.arange(120) % 3]
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "site": site})
    return GPRegressor("matern52").fit(table, y + (site == "u"))


GOOD = {
    "default": lambda: GPRegressor().fit(*rows(120)[:2]),
    "matern": lambda: GPRegressor("matern52").fit(*rows(150)[:2]),
    "vfe": lambda: GPRegressor("matern52", method="vfe").fit(*rows(150)[:2]),
    "periodic": good_series,
    "dates": good_dates,
    **{f"draw {seed}": lambda seed=seed: good_draw(seed) for seed in range(4)},
    "counts": good_counts,
    "classes": good_classes,
    "outputs": good_outputs,
    "words": good_words,
}


@pytest.mark.parametrize("name", list(GOOD))
def test_a_good_fit_has_no_finding(name):
    gp = GOOD[name]()
    summary = gp.report()
    assert [str(finding) for finding in summary.findings] == []
    assert len(summary.passed) >= 12


def test_rows_of_the_same_kind_are_no_finding():
    """The odds of a finding by chance are CHANCE for each of a handful of checks."""
    X, y, _ = rows(300)
    gp = GPRegressor("matern52").fit(X[:150], y[:150])
    summary = gp.report(None, X[150:], y[150:])
    assert [str(finding) for finding in summary.findings] == []
    assert {"X001", "X002", "X003"} <= set(summary.passed)
    assert CHANCE <= 1e-3


# The parts. -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("note", "code"),
    [
        ("a against the rest: Constant columns tell nothing: x0. They can be left out.", "D001"),
        ("3 of 40 factorisations on the way failed; the search stepped back from them.", None),
        ("One row repeats another's inputs with another target.", None),
        ("kernel.lengthscale[2]: far beyond the data: f is flat or straight along its column.", "P003"),
        ("Whatever else.", "F009"),
    ],
)
def test_codes_of_notes(note, code):
    assert code_of(note) == code


def test_notes_of_fits_have_codes_of_their_own():
    """What `report.notes` puts into words has a code that says what it is, not that of any other remark."""
    X, y, _ = rows(40)
    gp = GPRegressor("matern52").fit(np.c_[X, np.ones(40), np.arange(40)], np.round(y) + 3)
    assert gp.outcome_.notes
    assert "F009" not in [code_of(note) for note in gp.outcome_.notes]


def test_unknown_codes_are_refused():
    X, y, _ = rows(20)
    gp = fixed([1.0, 1.0], 0.01, X, y)
    with pytest.raises(ParameterError, match=r"ignore has 'Q999', which is no code. There are L001"):
        gp.report(ignore="Q999")


def test_left_out_rows_of_a_line_are_those_of_a_line_without_the_row():
    """PRESS of the ridge regression is n regressions."""
    X, y, _ = rows(30)
    held = left_out(fixed([1.0, 1.0], 0.01, X, y).fitted_)
    rival = next(own for own in held.rivals if own.name == "a straight line")
    Z = X / np.std(X, axis=0)
    Z = np.c_[Z - Z.mean(axis=0), np.ones(30)]
    P = np.diag([1.0, 1.0, 0.0]) * 1e-3 * 30
    errors = []
    for i in range(30):
        A, b = np.delete(Z, i, 0), np.delete(y, i)
        errors.append(y[i] - Z[i] @ np.linalg.solve(A.T @ A + P, A.T @ b))
    assert_allclose(rival.numbers[0], np.sqrt(np.mean(np.square(errors))), rtol=1e-8)


def test_several_outputs_are_named():
    X, y, _ = rows(100)
    Y = pd.DataFrame({"rain": y, "wind": 3 * y})
    gp = GPRegressor(1.0 * gm.RBF([1.0, 1.0]), noise=gm.fixed([0.01, 30.0]), optimize=False).fit(X, Y)
    held = left_out(gp.fitted_)
    wide = of_predictions(Case(gp.fitted_, held, held))["Q004"]
    assert [finding.text.split(":")[0] for finding in wide] == ["wind"]


def test_a_limit_on_time_is_kept_and_told():
    X, y, _ = rows(40)
    summary = fixed([1.0, 1.0], 0.01, X, y).report(time_limit=1e-9)
    assert "The time limit left no time for this" in summary["next"].sentences[-1]
    assert "Q003" not in summary.passed
    with pytest.raises(ParameterError, match="time_limit=-1"):
        fixed([1.0, 1.0], 0.01, X, y).report(time_limit=-1)


def test_many_rows_are_scored_in_part():
    X, y, _ = rows(3000)
    gp = fixed([1.0, 1.0], 0.01, X, y, method=gm.Sparse(50))
    good = gp.report()["good"]
    assert "2,000 of 3,000 rows" in good.sentences[0]
    dots = [picture.data["y"] for picture in good.pictures if picture.kind == "observed"]
    assert len(dots[0]) == 400


def test_effective_dimension_is_the_trace():
    X, y, _ = rows(50)
    gp = fixed([1.0, 1.0], 0.05, X, y)
    K, D = gp.kernel_(X) * np.var(y), 0.05 * np.eye(50)
    facts = {fact.name: fact.value for fact in gp.report()["sound"].facts}
    assert_allclose(facts["effective dimension"], np.trace(K @ np.linalg.inv(K + D)), rtol=1e-8)
    values = np.linalg.eigvalsh(K)
    assert_allclose(facts["condition"], (values[-1] + 0.05) / 0.05, rtol=1e-3)  # thirty powers


def test_a_finding_is_a_value():
    finding = fixed([1.0, 1.0], 1.0, *rows()[:2]).report().findings[-1]
    assert dataclasses.replace(finding) == finding
    assert finding.level == "hint"
    assert str(finding).startswith("Q004  intervals are too wide: ")
