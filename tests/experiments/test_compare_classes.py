"""A comparison of classes: the same engines as for numbers, by Laplace's approximation or the bound, scored
by what labels allow."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gramian as gm
from gramian.errors import InputError, ParameterError
from gramian.experiments.compare import compare
from gramian.experiments.run import Settings, Setup
from gramian.likelihoods import Bernoulli
from gramian.report.evaluation import calibration_error

KERNEL, N = 4.0 * gm.Matern52(0.9), 90
METHODS = ["nystrom:uniform", "fourier:orf", "vfe", "svgp", "cg", "exact"]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (N, 2))
    return X, np.where(
        rng.uniform(size=N) < 1 / (1 + np.exp(-3 * np.sin(2 * X[:, 0]) * X[:, 1])), "yes", "no"
    )


@pytest.fixture(scope="module")
def compared(data):
    return compare(*data, kernel=KERNEL, methods=METHODS, sizes=(15, N), repeats=1, tol=1e-10)


def runs_of(compared, method: str) -> list:
    return [run for run in compared.runs if run.method.startswith(method)]


def test_exact_is_the_classifiers_own_answer(data, compared):
    X, y = data
    (run,) = runs_of(compared, "exact")
    settings = Settings(0.2, 0, False, True, None, 1, 1, 1, 1e-6, 1)
    train, test = Setup(X, np.zeros(N), KERNEL, 0.0, settings, None, Bernoulli()).split(0)
    gp = gm.GPClassifier(KERNEL, inference="laplace", optimize=False).fit(X[train], y[train])
    P = gp.predict_proba(X[test])
    own = P[np.arange(len(test)), np.searchsorted(gp.classes_, y[test])]
    assert run.error == np.mean(gp.predict(X[test]) != y[test])
    assert run.nlpd == pytest.approx(-np.mean(np.log(own)), rel=1e-8)
    # of two classes both miss by as much
    assert run.brier == pytest.approx(np.mean(2 * (1 - own) ** 2), rel=1e-8)
    assert run.log_evidence == pytest.approx(gp.log_evidence(), rel=1e-8)
    assert all(math.isnan(value) for value in (run.mse, run.coverage95, run.iterations))


def test_all_rows_as_landmarks_and_krylov_solvers_reach_laplace(compared):
    (exact,) = runs_of(compared, "exact")
    for run in (runs_of(compared, "nystrom")[1], *runs_of(compared, "cg")):
        # K_zz carries a jitter of 1e-12 and CG stops at a residual of 1e-10: half of these digits are left in
        # probabilities.
        assert (run.error, run.nlpd, run.brier, run.ece) == pytest.approx(
            (exact.error, exact.nlpd, exact.brier, exact.ece), rel=1e-5
        )
    few, full = runs_of(compared, "cg")
    assert 1 <= full.iterations < few.iterations
    assert few.log_evidence == pytest.approx(exact.log_evidence, abs=2.0)  # an estimate from a few probes


def test_both_bounds_are_below_and_meet_with_all_rows_as_inducing_points(compared):
    (few, vfe), (_, svgp) = runs_of(compared, "vfe"), runs_of(compared, "svgp")
    assert few.log_evidence < vfe.log_evidence
    # it adds 1e-6 of the diagonal to K_zz, the other 1e-12
    assert svgp.log_evidence == pytest.approx(vfe.log_evidence, abs=1e-4)
    assert svgp.nlpd == pytest.approx(vfe.nlpd, abs=1e-5)


def test_table_and_picture_tell_of_labels(compared):
    text = compared.table()
    assert "2 classes: no, yes" in text
    assert "noise" not in text.splitlines()[1]
    for column in ("error", "NLPD", "Brier", "ECE", "evidence", "steps"):
        assert f" {column}" in text.splitlines()[3]
    assert "MSE" not in text
    labels = [axis.get_ylabel() for axis in compared.plot().axes]
    assert [label for label in labels if label] == [
        "error of K (Frobenius, relative)",
        "share of wrong labels",
        "NLPD",
        "steps of the solver",
    ]


def test_numbers_are_labels_only_when_somebody_says_so(data, tmp_path):
    X, y = data
    codes = (y == "yes").astype(int)
    settings = {"kernel": KERNEL, "methods": ["exact"], "repeats": 1}
    (number,) = compare(X, codes, noise=0.1, **settings).runs
    assert math.isnan(number.error)
    (label,) = compare(X, codes, task="classification", **settings, out=tmp_path).runs
    (same,) = compare(X, y, **settings).runs
    assert (label.error, label.nlpd) == (same.error, same.nlpd)
    with pytest.raises(InputError, match="begun with task"):
        compare(X, codes, task="regression", noise=0.1, **settings, out=tmp_path)
    again = compare(X, codes, task="classification", **settings, out=tmp_path)
    assert again.runs[0].fit_seconds == label.fit_seconds  # not run again


def test_three_classes_and_a_fitted_kernel(data):
    X, y = data
    three = np.where(X[:, 0] > 1, "far", y)
    result = compare(X, three, methods=["nystrom:pivoted", "cg", "exact"], sizes=(N,), repeats=1, fit_rows=40)
    landmarks, cg, exact = result.runs
    assert (landmarks.nlpd, landmarks.error) == pytest.approx((exact.nlpd, exact.error), rel=1e-5)
    assert "softmax" in cg.note
    # the default kernel, a lengthscale a column
    assert len(next(iter(list(result.kernel.parameters().values())[1:])).value) == 2


def test_a_part_of_the_test_rows_for_variances(data):
    result = compare(
        *data,
        kernel=KERNEL,
        methods=["cg:none", "cg", "exact"],
        sizes=(20,),
        repeats=1,
        variance_rows=5,
        tol=1e-8,
    )
    plain, cg, exact = result.runs
    assert (cg.variance_rows, exact.variance_rows) == (5, 18)
    assert plain.error == cg.error == exact.error
    assert plain.nlpd == pytest.approx(cg.nlpd, rel=1e-4)  # of the same five rows
    assert cg.nlpd != exact.nlpd
    # of other rows than the exact method's
    assert "NLPD" not in [axis.get_ylabel() for axis in result.plot().axes]


def test_a_solver_is_taken_as_it_is(data):
    (run,) = compare(*data, kernel=KERNEL, methods=["cg:none"], repeats=1, max_iter=2).runs
    assert "missed its tolerance" in run.note
    assert math.isnan(run.error)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise": 0.1}, "noise=0.1 is of Gaussian noise"),
        ({"methods": ["fitc"]}, "'fitc:rpcholesky' is for Gaussian noise"),
        ({"task": "sorting"}, "task='sorting' is not known"),
    ],
)
def test_what_labels_do_not_have_is_refused(data, settings, message):
    with pytest.raises(ParameterError, match=message):
        compare(*data, **{"kernel": KERNEL, "methods": ["exact"], "repeats": 1, **settings})
    with pytest.raises(ParameterError, match="needs labels y"):
        compare(data[0], kernel=KERNEL, task="classification", methods=["nystrom"])


def test_the_calibration_error_is_the_gap_between_confidence_and_accuracy():
    P = np.array([[0.9, 0.1]] * 10 + [[0.4, 0.6]] * 5)
    codes = np.array([0] * 8 + [1] * 2 + [1, 1, 1, 0, 0])
    # Ten rows are 90 % sure and 80 % right, five are 60 % sure and right.
    assert calibration_error(P, codes) == pytest.approx(10 / 15 * 0.1)
