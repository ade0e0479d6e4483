"""Models are compared in the same units, kinds of evidence are kept apart, and all scores are those of the
published definitions."""

from __future__ import annotations

import csv
import dataclasses
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import gramian as gm
from gramian.errors import InputError, ParameterError
from gramian.experiments.scoring import Scores, _pareto_smoothed, left_out, paired
from gramian.experiments.selection import (
    CHOSEN,
    ModelComparison,
    ModelRow,
    _by_evidence,
    _compared,
    compare_models,
    default_models,
)
from gramian.inference.mcmc.chains import Chains
from gramian.inference.mcmc.mixture import Mixture
from gramian.likelihoods import Gaussian, Poisson, StudentT
from gramian.words import OF_LABELS, OF_NUMBERS

K, NOISE = 1.3 * gm.RBF(0.8), 0.9
NAN = float("nan")
KERNELS = {"line": gm.Linear(), "rbf": gm.RBF(0.8), "matern": gm.Matern12(0.8)}


@pytest.fixture(scope="module")
def numbers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (30, 1))
    return X, 30 + 10 * np.sin(2 * X[:, 0]) + rng.normal(size=30)


@pytest.fixture(scope="module")
def labels() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    return X, np.where(X[:, 0] + 0.6 * rng.normal(size=40) > 0, "yes", "no")


def held(**settings) -> gm.GPRegressor:
    """A regressor with given parameters."""
    return gm.GPRegressor(K, optimize=False, **settings)


def row(name: str, evidence: float, kind: str, error: float = NAN) -> ModelRow:
    return ModelRow(None, name, evidence, kind, error, *[NAN] * 3, "", *[NAN] * 4, 1, 0.0)


def by_name(result: ModelComparison) -> dict[str, ModelRow]:
    return {one.name: one for one in result.rows}


def log_evidence(X, y) -> float:
    """Of y in its own units, by the definition: y ~ N(average, var(y) K + noise)."""
    A = np.var(y) * K(X) + NOISE * np.eye(len(y))
    r = y - np.mean(y)
    return float(-0.5 * (r @ np.linalg.solve(A, r) + np.linalg.slogdet(2 * np.pi * A)[1]))


# Units. -----------------------------------------------------------------------------------------------------


def test_evidences_are_of_y_in_its_own_units(numbers):
    X, y = numbers
    models = {
        "closed form": held(noise=NOISE),
        "not normalised": gm.GPRegressor(
            float(np.var(y)) * K,
            noise=NOISE,
            mean=gm.ConstantMean(float(np.mean(y))),
            optimize=False,
            normalize_y=False,
        ),
        "sites": held(likelihood=Gaussian(NOISE), inference="ep"),
        "bound on sites": held(likelihood=Gaussian(NOISE), inference="vi"),
        "bound": held(noise=NOISE, method=gm.SVGP(inducing=X)),
    }
    found = by_name(compare_models(models, X, y))
    for name, one in found.items():
        # Landmarks at all rows have K with a jitter of up to 1e-8; the others err by rounding.
        assert one.evidence == pytest.approx(log_evidence(X, y), rel=1e-6), name
    assert {name: one.kind for name, one in found.items() if one.kind != "exact"} == {
        "sites": "approximation",
        "bound on sites": "lower bound",
        "bound": "lower bound",
    }


def test_bounds_of_a_likelihood_in_the_units_of_y_agree(numbers):
    X, y = numbers
    models = {
        "full": held(likelihood=StudentT(1.0, 4.0), inference="vi"),
        "sparse": held(likelihood=StudentT(1.0, 4.0), method=gm.SVGP(inducing=X)),
    }
    found = by_name(compare_models(models, X, y))
    assert found["sparse"].evidence == pytest.approx(found["full"].evidence, abs=0.05)
    raw = gm.GPRegressor(
        float(np.var(y)) * K,
        likelihood=StudentT(1.0, 4.0),
        mean=gm.ConstantMean(float(np.median(y))),
        inference="vi",
    )
    raw.set_params(optimize=False, normalize_y=False)
    # n log s would be 60
    assert compare_models([raw], X, y).rows[0].evidence == pytest.approx(found["full"].evidence, rel=1e-6)


def test_several_outputs_are_one_evidence(numbers):
    X, y = numbers
    Y = np.column_stack([y, 5 * y - 3])
    one = compare_models([held(noise=gm.fixed(NOISE))], X, Y).rows[0]
    second = by_name(compare_models({"b": held(noise=gm.fixed(NOISE))}, X, Y[:, 1]))["b"]
    first = compare_models([held(noise=gm.fixed(NOISE))], X, y).rows[0]
    assert one.evidence == pytest.approx(first.evidence + second.evidence, rel=1e-9)
    assert one.loo == pytest.approx(first.loo + second.loo, rel=1e-9)


# Ranks. -----------------------------------------------------------------------------------------------------


def test_the_better_kernel_wins_and_is_fitted_on_all_rows(numbers, tmp_path):
    X, y = numbers
    linear = gm.GPRegressor(gm.Linear(), n_restarts=0)
    result = compare_models([linear, gm.RBF(0.8)], X, y, random_state=0)
    assert [(one.rank, one.name) for one in result.rows] == [(1, "RBF(0.8)"), (2, "Linear(), n_restarts=0")]
    best = result.rows[0]
    assert result.best is result.fitted["RBF(0.8)"]
    assert len(result.best.fitted_.rows.X) == 30
    assert best.loo_difference == best.loo_difference_error == 0
    assert result.rows[1].loo_difference < -5 * result.rows[1].loo_difference_error
    assert best.parameters == 3  # lengthscale, constant, noise
    assert not hasattr(linear, "posterior_")
    text = str(result)
    assert "2 models on 30 rows, ranked by evidence" in text
    assert "closed form" in text
    assert len({line.index("exact") for line in text.splitlines() if "exact" in line}) == 1
    result.to_csv(tmp_path / "models.csv")
    lines = list(csv.DictReader((tmp_path / "models.csv").read_text().splitlines()))
    assert [float(line["evidence"]) for line in lines] == [one.evidence for one in result.rows]
    assert lines[0]["cv"] == ""
    assert list(result.columns()["name"]) == [one.name for one in result.rows]


def test_kinds_are_ranked_apart_and_that_is_said():
    rows = [
        row("a", -10, "exact"),
        row("b", -12, "lower bound"),
        row("c", -11, "exact"),
        row("d", -30, "lower bound"),
        row("e", NAN, "none"),
    ]
    ranks, winner, notes = _by_evidence(rows, "evidence")
    assert ranks == {"a": 1, "c": 2, "b": 1, "d": 2}
    assert winner is None  # b's evidence may be above -10
    text = " ".join(notes)
    assert "not ranked against each other: ranks are within each kind (exact, lower bound)" in text
    assert "No evidence, so no rank: e." in text
    result = ModelComparison(
        "evidence",
        5,
        tuple(dataclasses.replace(row, rank=ranks.get(row.name)) for row in rows),
        tuple(notes),
        {},
        winner,
    )
    with pytest.raises(
        ParameterError,
        match=r"none of the first ones is known to be the best: a \(exact\), b \(lower bound\)",
    ):
        result.best  # noqa: B018


def test_a_lower_bound_above_an_exact_value_is_a_conclusion():
    ranks, winner, notes = _by_evidence([row("a", -10, "exact"), row("b", -8, "lower bound")], "evidence")
    assert (ranks, winner) == ({"a": 1, "b": 1}, "b")
    assert any(
        "b has a higher evidence than a: its lower bound of -8 is above the exact of -10" in note
        for note in notes
    )
    assert _by_evidence([row("a", -10, "exact"), row("b", -8, "estimate", 0.5)], "evidence")[1] == "b"
    for other in (
        row("b", -12, "lower bound"),
        row("b", -8, "approximation"),
        row("b", -8, "estimate", 1.5),
        row("b", -8, "joint density"),
    ):
        with pytest.raises(ParameterError, match="No two of these evidences can be compared"):
            _by_evidence([row("a", -10, "exact"), other], "evidence")


def test_sums_over_binary_problems_are_a_kind_of_their_own(labels):
    X, _ = labels
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    models = {
        how: gm.GPClassifier(2 * gm.RBF(1.0), multiclass=how, optimize=False)
        for how in ("softmax", "ovr", "ovo")
    }
    with pytest.raises(ParameterError, match="ovr: approximation, ovr"):
        compare_models(models, X, y)
    result = compare_models(models, X, y, by="cv", cv=3, random_state=0)
    assert sorted(one.rank for one in result.rows) == [1, 2, 3]
    assert np.isnan(by_name(result)["ovo"].loo)
    assert by_name(result)["ovr"].parameters == 3 * by_name(result)["softmax"].parameters


def test_approximations_by_different_rules_are_told(labels):
    models = [
        gm.GPClassifier(2 * gm.RBF(1.0), inference=how, optimize=False) for how in ("laplace", "ep", "map")
    ]
    result = compare_models(models, *labels)
    assert any("different rules (ep, laplace) err differently" in note for note in result.notes)
    assert {one.kind for one in result.rows} == {"approximation", "joint density"}
    assert any("is no evidence" in note for note in result.notes)


# Scores. ----------------------------------------------------------------------------------------------------


def test_differences_are_paired_over_rows():
    rng = np.random.default_rng(4)
    a, gap = rng.normal(size=50), rng.normal(-1, 0.1, 50)
    best, other, none = paired([a, a + gap, None])
    assert (best.difference, best.difference_error) == (0, 0)
    assert 50 * other.difference == pytest.approx(np.sum(gap))
    assert 50 * other.difference_error == pytest.approx(np.sqrt(50 * np.var(gap, ddof=1)))
    assert np.isnan(none.mean)


def test_leave_one_out_is_what_leaving_out_gives(numbers):
    X, y = numbers
    models = {
        "closed form": held(noise=NOISE),
        "sites": held(likelihood=Gaussian(NOISE), inference="vi"),
        "none": held(noise=NOISE, method=gm.SVGP(10)),
    }
    result = compare_models(models, X, y, by="loo")
    total = 0.0
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        A = np.var(y) * K(X) + NOISE * np.eye(len(y))  # scale and mean stay those of all rows
        weights = np.linalg.solve(A[np.ix_(rest, rest)], A[rest, i])
        mean = np.mean(y) + weights @ (y[rest] - np.mean(y))
        total += norm.logpdf(y[i], mean, np.sqrt(A[i, i] - weights @ A[rest, i]))
    found = by_name(result)
    assert found["closed form"].loo == pytest.approx(total, rel=1e-8)
    assert found["sites"].loo == pytest.approx(total, rel=1e-6)
    assert [found[name].loo_by for name in models] == ["closed form", "cavities", ""]
    assert found["none"].rank is None
    assert any("No leave-one-out, so no rank: none" in note for note in result.notes)
    with pytest.raises(ParameterError, match=r"not available for b.*Use by=\"cv\""):
        compare_models({"a": held(noise=NOISE), "b": held(noise=NOISE, method=gm.SVGP(10))}, X, y, by="loo")


def test_chains_are_left_out_by_importance(numbers):
    """Of parameters alone: the draws of p(theta | y), weighted by 1 / p(y_i | y_-i, theta), give p(y_i |
    y_-i)."""
    X, y = numbers[0][:12], numbers[1][:12]
    lengths = np.exp(np.linspace(-1.5, 1.5, 301))  # the posterior of the lengthscale, on a grid
    prior = -0.5 * (np.log(lengths) / 0.3) ** 2
    evidence, left = np.empty(len(lengths)), np.empty((len(lengths), len(y)))
    r = y - np.mean(y)
    for k, length in enumerate(lengths):
        A = np.var(y) * 1.3 * gm.RBF(length)(X) + NOISE * np.eye(len(y))
        inverse = np.linalg.inv(A)
        alpha, precision = inverse @ r, np.diag(inverse)
        evidence[k] = -0.5 * (r @ alpha + np.linalg.slogdet(A)[1])
        left[k] = norm.logpdf(alpha / precision, 0, 1 / np.sqrt(precision))
    weights = prior + evidence
    # 1 / p(y_i | y_-i) = E[1 / p(y_i | y_-i, theta)]
    expected = np.sum(logsumexp(weights) - logsumexp(weights[:, None] - left, axis=0))
    # draws that have seen row i
    careless = np.sum(logsumexp(weights[:, None] + left, axis=0) - logsumexp(weights))
    assert careless > expected + 0.14
    draws = np.random.default_rng(0).choice(len(lengths), 8000, p=np.exp(weights - logsumexp(weights)))
    # 3 standard errors of 8,000 draws
    assert np.sum(_pareto_smoothed(left[draws][None], 1.0).values) == pytest.approx(expected, abs=0.03)
    model = gm.GPRegressor(
        gm.fixed(1.3) * gm.RBF(gm.param(0.8, prior=gm.LogNormal(0.0, 0.3))),
        noise=gm.fixed(NOISE),
        mean="zero",
        hyper="mcmc",
    )
    result = compare_models({"chains": model}, X, y, by="loo", random_state=0)
    assert result.rows[0].loo_by == "importance"
    assert result.rows[0].loo == pytest.approx(expected, abs=0.12)  # 400 draws of the chains
    assert any("Pareto k" in note for note in result.notes)


def test_draws_of_the_function_are_left_out_by_what_they_say_of_each_row(labels):
    X, y = labels
    gp = gm.GPClassifier(2 * gm.RBF(1.0), optimize=False).fit(X, y)
    shape = 2, 300
    log_likelihood = np.random.default_rng(0).normal(-1, 0.2, (*shape, 40))
    plain = np.zeros(shape)
    chains = Chains({}, np.zeros((*shape, 40, 1)), plain, plain > 0, plain, plain.astype(int), log_likelihood)
    drawn = Mixture.of(gp.fitted_.model, gp.fitted_.rows, chains)
    gp.fitted_ = dataclasses.replace(gp.fitted_, process=drawn, inference=gm.MCMC())
    found = left_out(gp)
    expected = np.log(600) - logsumexp(-log_likelihood, axis=(0, 1))
    np.testing.assert_allclose(found.values, expected, atol=0.01)  # such weights have no tail to smooth
    assert "which is good" in found.note
    log_likelihood[:, :, 3] *= 20
    assert "in 1 of 40 rows" in left_out(gp).note


def test_cross_validation_is_that_of_the_folds(numbers):
    X, y = numbers
    folds = list(KFold(3).split(X))
    models = {"closed form": held(noise=NOISE), "t": held(likelihood=StudentT(1.0, 4.0), inference="vi")}
    result = by_name(compare_models(models, X, y, by="cv", cv=folds))
    for name, model in models.items():
        scores = np.concatenate([model.fit(X[a], y[a]).log_density(X[b], y[b]) for a, b in folds])
        assert result[name].cv == pytest.approx(np.mean(scores), rel=1e-9)
        assert result[name].cv_error == pytest.approx(np.std(scores, ddof=1) / np.sqrt(30), rel=1e-9)
    a, b = folds[0]
    mean, std = models["closed form"].fit(X[a], y[a]).predict(X[b], return_std=True)
    np.testing.assert_allclose(
        models["closed form"].log_density(X[b], y[b]), norm.logpdf(y[b], mean, std), rtol=1e-10
    )


def test_classes_are_scored_by_the_probability_of_their_own(labels):
    X, y = labels
    model = gm.GPClassifier(2 * gm.RBF(1.0), optimize=False)
    one = compare_models({"a": model}, X, y, by="cv", cv=4, random_state=3).rows[0]
    again = compare_models({"a": model}, X, y, by="cv", cv=4, random_state=3).rows[0]
    assert one.cv == again.cv
    fitted = model.fit(X, y)
    expected = np.log(fitted.predict_proba(X)[np.arange(40), (y == "yes").astype(int)])
    np.testing.assert_allclose(fitted.log_density(X, y), expected)
    assert one.cv < np.mean(expected)  # rows that were seen are easier
    with pytest.raises(
        InputError, match=r"The class '?(np\.str_\(')?rare.* has rows to test on but none to train on"
    ):
        compare_models([model], X, np.where(np.arange(40) == 7, "rare", y), by="cv", cv=4, random_state=0)


def test_counts_with_an_exposure(numbers):
    rng = np.random.default_rng(2)
    X, exposure = numbers[0], np.tile([1.0, 20.0], 15)
    y = rng.poisson(exposure * np.exp(np.sin(X[:, 0])))
    models = [held(likelihood=Poisson(), mean=gm.ConstantMean(0.0))]
    with_it = compare_models(models, X, y, by="cv", cv=3, random_state=0, exposure=exposure).rows[0]
    without = compare_models(models, X, y, by="cv", cv=3, random_state=0).rows[0]
    assert with_it.cv > without.cv + 0.5
    beside = compare_models([*models, held(noise=NOISE)], X, y, by="loo")
    assert any("Probabilities of whole numbers stand beside densities" in note for note in beside.notes)


def test_error_and_coverage_are_those_of_left_out_rows(numbers, labels):
    X, y = numbers
    one = compare_models([held(noise=NOISE)], X, y).rows[0]
    left = held(noise=NOISE).fit(X, y).loo()
    assert one.rmse == pytest.approx(np.sqrt(np.mean((left.mean - y) ** 2)), rel=1e-9)
    assert one.coverage == np.mean(np.abs(left.mean - y) <= norm.ppf(0.975) * left.std)
    folds = list(KFold(3).split(X))
    one = compare_models([held(noise=NOISE)], X, y, by="cv", cv=folds).rows[0]
    errors = [held(noise=NOISE).fit(X[a], y[a]).predict(X[b]) - y[b] for a, b in folds]
    assert one.rmse == pytest.approx(np.sqrt(np.mean(np.concatenate(errors) ** 2)), rel=1e-9)
    assert np.isnan(one.accuracy)
    X, y = labels
    model = gm.GPClassifier(2 * gm.RBF(1.0), optimize=False)
    one = compare_models([model], X, y).rows[0]
    assert one.accuracy == np.mean(model.fit(X, y).loo().probabilities.argmax(axis=1) == (y == "yes"))
    folds = list(KFold(4).split(X))
    one = compare_models([model], X, y, by="cv", cv=folds).rows[0]
    assert one.accuracy == np.mean([model.fit(X[a], y[a]).predict(X[b]) == y[b] for a, b in folds])
    assert np.isnan(one.rmse)


# Those that the data choose from. ---------------------------------------------------------------------------


def test_without_models_those_are_compared_that_the_data_choose_from(numbers, labels):
    X, y = numbers
    result = compare_models(X=X, y=np.exp(y / 10), random_state=0)
    warped = [one for one in result.rows if one.name.endswith("(y warped)")]
    assert sorted(one.name for one in result.rows if one not in warped) == sorted(OF_NUMBERS)
    assert len(warped) == 3
    assert all(result.fitted[one.name].fitted_.model.warp is not None for one in warped)
    assert result.winner in [one.name for one in warped]  # y is the exponential of a sine
    families = {name: str(gp.kernel_) for name, gp in result.fitted.items()}
    assert "Matern12" in families["matern52 + matern12"]
    assert "RBF" in families["rbf + matern52"]
    steps = np.where(y < np.median(y), 0.0, y)  # half of the rows have the same y
    assert [*default_models(steps)] == list(OF_NUMBERS)
    assert [*default_models(np.column_stack([y, y]))] == list(OF_NUMBERS)
    result = compare_models(None, *labels, random_state=0)
    assert sorted(result.fitted) == sorted([*OF_LABELS, CHOSEN])
    assert result.fitted[CHOSEN].outcome_.choice
    assert all(gp.classes_.tolist() == ["no", "yes"] for gp in result.fitted.values())
    with pytest.raises(ParameterError, match="Data are missing"):
        compare_models()


def test_tells_how_far_the_second_is_behind(numbers):
    X, y = numbers
    models = {name: gm.GPRegressor(kernel, n_restarts=0) for name, kernel in KERNELS.items()}
    result = compare_models(models, X, y)
    first, second = result.rows[:2]
    assert (result.winner, result.runner_up) == (first.name, second.name) == ("rbf", "matern")
    gap = first.evidence - second.evidence
    assert f"Best by evidence: rbf; next matern, {gap:.2f} nats behind" in str(result)
    by_row = compare_models({name: models[name] for name in ("line", "rbf")}, X, y, by="loo")
    behind = by_row.rows[1]
    assert -behind.loo_difference > 2 * behind.loo_difference_error
    assert by_row.verdict().startswith("Best by loo: rbf; next line, ")
    assert by_row.verdict().endswith("nats behind.")
    alike = compare_models({"a": models["rbf"], "b": models["rbf"]}, X, y, by="cv", cv=3, random_state=0)
    assert alike.verdict().endswith("nats a row behind, too little to tell them apart.")
    assert compare_models({"a": models["line"]}, X, y).verdict() == ""


def test_time_is_shared_by_the_fits(numbers, monkeypatch):
    """Three fits of two models by two folds each have a sixth of what is left, whatever those before took."""
    given, now = [], [100.0]

    def fit(self, X, y, **further):
        given.append(self.time_limit)
        now[0] += 2.0
        return as_it_is(self.set_params(time_limit=None), X, y)

    as_it_is = gm.GPRegressor.fit
    monkeypatch.setattr("gramian.clock.now", lambda: now[0])
    monkeypatch.setattr(gm.GPRegressor, "fit", fit)
    compare_models({"a": held(), "b": held()}, *numbers, by="cv", cv=2, random_state=0, time_limit=60.0)
    left = [60.0, 58.0, 56.0, 54.0, 52.0, 50.0]
    assert given == pytest.approx([left[k] / (6 - k) for k in range(6)])


def test_a_model_that_knows_fewer_rows_has_no_rank(numbers):
    X, y = numbers
    fitted = {name: held(noise=NOISE).fit(X, y) for name in "ab"} | {
        "c": held(noise=NOISE).fit(X[:20], y[:20])
    }
    scores = {name: left_out(gp) for name, gp in fitted.items()}
    result = _compared("evidence", fitted, scores, {name: Scores(None) for name in fitted})
    assert by_name(result)["c"].rank is None
    assert np.isnan(by_name(result)["c"].loo)
    assert any("c knows 20 of the 30 rows" in note for note in result.notes)


def test_a_frame_may_have_a_column_of_any_name(numbers):
    X, y = numbers
    frame = pd.DataFrame({"part": X[:, 0]})
    for by in ("evidence", "cv"):
        found = compare_models([held(noise=NOISE)], frame, y, by=by, cv=KFold(3)).rows[0]
        assert found.rmse == pytest.approx(
            compare_models([held(noise=NOISE)], X, y, by=by, cv=KFold(3)).rows[0].rmse, rel=1e-9
        )


def test_half_a_search_is_no_comparison(numbers, monkeypatch):
    def fit(self, X, y):
        self.fitted_ = dataclasses.replace(
            done, outcome=dataclasses.replace(done.outcome, stopped="interrupted")
        )
        return self

    done = held(noise=NOISE).fit(*numbers).fitted_
    monkeypatch.setattr(gm.GPRegressor, "fit", fit)
    with pytest.raises(KeyboardInterrupt):
        compare_models([held()], *numbers)


def test_half_a_search_on_a_fold_is_no_comparison(numbers, monkeypatch):
    fit, calls = gm.GPRegressor.fit, []

    def stopped(self, X, y):
        fit(self, X, y)
        calls.append(len(X))
        if len(calls) == 2:  # the first fold
            self.fitted_ = self.fitted_.told("", stopped="interrupted")
        return self

    monkeypatch.setattr(gm.GPRegressor, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        compare_models([held(noise=NOISE)], *numbers, by="cv", cv=KFold(3))
    assert len(calls) == 2


def test_a_missing_package_is_told_before_the_first_fit(numbers, monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    monkeypatch.setattr(gm.GPRegressor, "fit", None)
    with pytest.raises(ParameterError, match=r'blackjax.*pip install "gramian\[mcmc\]"'):
        compare_models([held(noise=NOISE), gm.GPRegressor(K, hyper="mcmc")], *numbers)


# What is given. ---------------------------------------------------------------------------------------------


def test_kernels_alone_become_what_suits_y(numbers, labels):
    fixed = gm.RBF(gm.fixed(1.0))
    assert isinstance(compare_models([fixed], *labels).best, gm.GPClassifier)
    assert isinstance(compare_models([fixed], *numbers).best, gm.GPRegressor)
    # whole numbers, but beside a regressor
    beside = compare_models([fixed, held(noise=NOISE)], numbers[0], np.repeat([1, 2, 3], 10))
    assert all(isinstance(gp, gm.GPRegressor) for gp in beside.fitted.values())
    same = compare_models([held(noise=NOISE), held(noise=NOISE)], *numbers)
    assert [one.name for one in same.rows] == [
        "1.3 * RBF(0.8), noise=0.9, optimize=False",
        "1.3 * RBF(0.8), noise=0.9, optimize=False #2",
    ]


@pytest.mark.parametrize(
    ("models", "settings", "message"),
    [
        ([], {}, "models is empty"),
        (gm.RBF(1.0), {}, "must be a list, or a dict by name"),
        ([3], {}, "models has 3"),
        ([gm.GPRegressor(), gm.GPClassifier()], {}, "regressors and classifiers"),
        ([gm.RBF(1.0)], {"by": "aic"}, "by='aic' is not known"),
        ([gm.RBF(1.0)], {"by": "cv", "cv": 1}, "cv=1 must be from 2"),
        ([gm.RBF(1.0)], {"by": "cv", "cv": "many"}, "cv='many' makes no folds"),
    ],
)
def test_what_cannot_be_compared_is_refused(numbers, models, settings, message):
    with pytest.raises(ParameterError, match=message):
        compare_models(models, *numbers, **settings)


def test_scikit_learn_searches_and_validates(labels):
    X, y = labels
    model = gm.GPClassifier(optimize=False)
    grid = {"kernel": [2 * gm.RBF(1.0), 0.01 * gm.RBF(0.01)], "link": ["logit", "probit"]}
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=3, error_score="raise").fit(X, y)
    assert str(search.best_params_["kernel"]) == "2 * RBF()"
    scores = cross_val_score(search.best_estimator_, X, y, scoring="neg_log_loss", cv=3, error_score="raise")
    assert np.mean(scores) == pytest.approx(search.best_score_, rel=1e-6)


def test_heights_of_labels_do_not_compare():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ParameterError, match="priors of different widths"):
        gm.compare_models(None, X, X[:, 0] > 0, by="height", verbose=False)


def test_height_is_the_evidence_with_the_priors_and_ranks_what_the_data_choose_from():
    """Numbers without models: the winner is the one that an estimator without a kernel takes."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    y = np.exp(np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=60))
    result = gm.compare_models(None, X, y, random_state=0, verbose=False)
    assert result.by == "height"
    for row in result.rows:
        model = result.fitted[row.name].fitted_.model
        prior = sum(
            float(np.sum(p.prior.log_density(p.value))) + float(p.support.log_jacobian(u)[0])
            for p, u in ((p, p.support.inverse(p.value)) for p in model.parameters().values())
            if p.prior is not None
        )
        assert row.height - row.evidence == pytest.approx(prior)
    heights = [row.height for row in result.rows]
    assert heights == sorted(heights, reverse=True)
    chosen = gm.GPRegressor(random_state=0).fit(X, y).outcome_.choice[0]
    assert chosen.endswith("Matern-5/2 of warped y")
    assert result.winner == "matern52 (y warped)"
    assert "Best by height" in str(result)
