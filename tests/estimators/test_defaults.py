"""The model that the data choose, and the calibration of what it foretells."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import gramian as gm
from gramian import clock
from gramian.corrections import Calibration
from gramian.estimators import defaults
from gramian.estimators.defaults import Candidate
from gramian.predictive import Normals


def table(kind, n=150, seed=0):
    """Rows of two columns, with a target of that kind."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    if kind == "smooth":
        return X, f + 0.1 * rng.normal(size=n)
    if kind == "skewed":
        return X, np.exp(f + 0.2 * rng.normal(size=n))
    if kind == "rough":  # a smooth trend, and steps of one column
        return X, 3 * f + np.floor(3 * X[:, 1]) % 2
    return X, f + 0.1 * rng.standard_t(1.5, size=n)


@pytest.fixture(scope="module")
def fitted():
    return {kind: gm.GPRegressor(random_state=0).fit(*table(kind)) for kind in ("smooth", "skewed", "rough")}


def test_keeps_a_step_only_where_the_data_ask_for_it(fitted):
    assert fitted["smooth"].fitted_.model.warp is None
    assert "+" not in str(fitted["smooth"].kernel_)
    assert fitted["skewed"].fitted_.model.warp is not None
    assert "+" in str(fitted["rough"].kernel_)


@pytest.mark.parametrize("kind", ["skewed", "rough"])
def test_chosen_model_foretells_new_rows_better(fitted, kind):
    X, y = table(kind, 400, seed=1)
    plain = gm.GPRegressor("matern52", random_state=0).fit(*table(kind))
    gain = fitted[kind].log_density(X, y) - plain.log_density(X, y)
    assert gain.mean() > 4 * gain.std() / np.sqrt(400)


def test_says_why(fitted):
    first, others = fitted["skewed"].outcome_.choice
    assert "height of its parameters' posterior, on all rows: Matern-5/2" in first
    assert "of warped y" in first
    gaps = [float(part.split()[-1]) for part in others.removeprefix("others, in nats: ").split("; ")]
    assert len(gaps) == 3  # one part, rough, smoother, without a warp
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] < 0
    assert all(line in fitted["skewed"].summary() for line in (first, others))


def test_an_explicit_kernel_is_taken_as_it_is():
    gp = gm.GPRegressor("matern52", random_state=0).fit(*table("skewed"))
    assert gp.outcome_.choice == ()
    assert gp.fitted_.model.warp is None
    assert gp.fitted_.calibration is None


@pytest.mark.parametrize("settings", [{"hyper": "ml"}, {"optimize": False}, {"inference": "laplace"}])
def test_nothing_is_chosen_where_settings_leave_nothing_open(settings):
    assert gm.GPRegressor(**settings).fit(*table("skewed", 20)).outcome_.choice == ()


def test_y_is_not_warped_where_that_was_not_wanted_or_values_repeat():
    X, y = table("skewed")
    assert gm.GPRegressor(warp=None, random_state=0).fit(X, y).fitted_.model.warp is None
    steps = np.where(y < np.median(y), 0.0, y)  # half of the rows have the same y
    assert gm.GPRegressor(random_state=0).fit(X, steps).fitted_.model.warp is None


def test_a_rounded_target_is_warped_as_if_it_were_not():
    """Of 400 rows some 45 have the commonest of two dozen values: a warp found from these would be steep
    there. It must be that of what they were rounded from, and stay."""
    X, y = table("skewed", 400)
    step = 0.25
    rounded = np.round(y / step) * step
    gp = gm.GPRegressor(random_state=0).fit(X, rounded)
    warp = gp.fitted_.model.warp
    assert not any(p.trainable for p in warp.parameters().values())
    assert np.max(np.exp(warp.log_slope(rounded[:, None]))) < 20
    other = gm.GPRegressor(random_state=0).fit(X, y)
    X_new, y_new = table("skewed", 400, seed=1)
    # what rounding costs, and no more: its variance beside that of the noise
    assert gp.log_density(X_new, y_new).mean() > other.log_density(X_new, y_new).mean() - 0.3
    plain = gm.GPRegressor("matern52", random_state=0).fit(X, rounded)
    assert gp.log_density(X_new, y_new).mean() > plain.log_density(X_new, y_new).mean() + 0.3


def test_rows_beyond_those_of_the_path_judge_it():
    X, y = table("skewed", 1300)
    gp = gm.GPRegressor(random_state=0, method=gm.Sparse(30)).fit(X, y)
    assert "the density it gives to 300 rows, from 1,000 of 1,300" in gp.outcome_.choice[0]
    assert "nats a row" in gp.outcome_.choice[1]
    assert gp.fitted_.model.warp is not None


def test_rows_that_judge_take_the_simpler_of_two_that_chance_tells_apart():
    """100 rows that gain 0.1 each, give or take 0.7, are no reason; give or take 0.4 they are."""
    plain = Candidate("plain", None, None, densities=np.zeros(100))
    wave = np.tile([-1.0, 1.0], 50)
    assert not Candidate("lucky", None, None, densities=0.1 + 0.7 * wave).beats(plain)
    assert Candidate("better", None, None, densities=0.1 + 0.4 * wave).beats(plain)
    assert not Candidate("failed", None, None, densities=np.full(100, -np.inf)).beats(plain)


def test_rows_that_lie_together_and_say_the_same_judge_as_one():
    """100 rows in 10 places of one opinion each: 7 of 10 for it are no reason, as 70 of 100 would be."""
    plain = Candidate("plain", None, None, densities=np.zeros(100))
    places = np.repeat(np.arange(10), 10)
    step = Candidate("step", None, None, densities=np.where(places < 7, 1.0, -1.0))
    assert step.beats(plain)
    assert not step.beats(plain, places)


@pytest.mark.parametrize("d", [1, 3])
def test_parts_of_rows_are_small_and_lie_together(d):
    X = np.random.default_rng(0).uniform(size=(1000, d))
    X[:300] = X[0]  # equal rows can be cut, too
    places = defaults._parts(X, 32)
    counts = np.bincount(places)
    assert counts.min() > 0
    assert counts.max() <= 32
    spread = [np.mean(np.ptp(X[places == k], axis=0)) for k in range(len(counts))]
    assert np.mean(spread) < {1: 0.1, 3: 0.6}[d]


def test_rows_of_the_path_that_are_all_alike_choose_nothing():
    """Of 2,000 rows one differs, which a path of 1,000 may not have: it cannot say a thing."""
    X = np.random.default_rng(0).uniform(size=(2000, 1))
    y = np.where(np.arange(2000) == 3, 1.0, 0.0)
    for seed in range(2):
        gp = gm.GPRegressor(random_state=seed, method=gm.Sparse(20)).fit(X, y)
        assert np.all(np.isfinite(gp.predict(X[:5])))


@pytest.mark.parametrize("n", [150, 1600])
def test_a_column_of_y_chooses_as_its_numbers_do(n):
    """Rows without a target say nothing, whether they are left out before or not."""
    X, y = table("skewed", n)
    y[::6] = np.nan
    settings = {"random_state": 0, "method": "exact" if n < 1000 else gm.Sparse(30)}
    one, two = (gm.GPRegressor(**settings).fit(X, given) for given in (y, y[:, None]))
    assert two.fitted_.model.warp is not None
    assert one.outcome_.choice[0].split(": ")[-1] == two.outcome_.choice[0].split(": ")[-1]
    assert "nan" not in " ".join(two.outcome_.choice)


def test_copies_of_rows_do_not_make_new_ones_surer():
    X, y = table("smooth", 20)
    gp = gm.GPRegressor(random_state=0, hyper="map")
    alone, thrice = (clone(gp).fit(np.repeat(X, k, 0), np.repeat(y, k)) for k in (1, 3))
    assert thrice.fitted_.calibration.scale == pytest.approx(alone.fitted_.calibration.scale, rel=0.1)


def test_a_rounded_target_gives_the_same_model_without_a_seed():
    X, y = table("skewed", 150)
    rounded = np.round(y * 4) / 4
    one, two = (gm.GPRegressor().fit(X, rounded) for _ in range(2))
    assert one.evidence_.value == two.evidence_.value


def test_an_interrupt_on_the_path_keeps_what_was_found(monkeypatch):
    """The second search is stopped at its first evaluation: the first model is there already."""
    searched, calls = defaults.maximise, []

    def stopped(*given, **how):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return searched(*given, **how)

    monkeypatch.setattr(defaults, "maximise", stopped)
    gp = gm.GPRegressor(random_state=0).fit(*table("skewed"))
    assert len(calls) == 2
    assert gp.outcome_.stopped == "interrupted"
    assert "Matern-5/2" in gp.outcome_.choice[0]


def test_an_interrupt_while_the_first_model_is_judged_keeps_it(monkeypatch):
    """Its parameters are found; rows that were held out are to judge it."""
    found, searched = [], defaults.maximise

    def kept(*given, **how):
        found.append(searched(*given, **how))
        return found[-1]

    def stopped(self, step, held):
        raise KeyboardInterrupt

    monkeypatch.setattr(defaults, "ROWS", 60)
    monkeypatch.setattr(defaults, "QUICK_ROWS", 60)
    monkeypatch.setattr(defaults, "FEWEST_HELD", 20)
    monkeypatch.setattr(defaults, "maximise", kept)
    monkeypatch.setattr(defaults.NumbersWalk, "densities", stopped)
    gp = gm.GPRegressor(random_state=0).fit(*table("skewed", 150))
    assert len(found) == 1
    assert gp.outcome_.stopped == "interrupted"
    assert gp.outcome_.evaluations == found[0].evaluations > 2
    assert_allclose(gp.theta_, found[0].theta, rtol=1e-12)


def test_categories_have_a_part_in_the_rough_kernel():
    pd = pytest.importorskip("pandas")
    X, y = table("rough")
    frame = pd.DataFrame({"x": X[:, 0], "step": np.floor(3 * X[:, 1]).astype(int).astype(str)})
    gp = gm.GPRegressor(random_state=0).fit(frame, y)
    assert np.all(np.isfinite(gp.predict(frame)))


def test_does_not_depend_on_units():
    X, y = table("skewed", 60)
    gp = gm.GPRegressor(random_state=0).fit(X, y)
    other = gm.GPRegressor(random_state=0).fit(1e3 * X + 5, 1e-2 * y + 3)
    assert_allclose(other.predict(1e3 * X + 5), 1e-2 * gp.predict(X) + 3, rtol=1e-5)


# Calibration. -----------------------------------------------------------------------------------------------


def test_residuals_of_a_good_model_need_no_calibration():
    assert Calibration.of(np.random.default_rng(0).normal(size=500)) is None


def test_finds_what_residuals_were_made_with():
    """Of 20,000 residuals: their standard errors are some 1 %, 5 % and 5 %."""
    rng = np.random.default_rng(0)
    wide = rng.random(20_000) < 0.1
    found = Calibration.of(rng.normal(size=20_000) * 0.8 * np.where(wide, 5.0, 1.0))
    assert found.scale == pytest.approx(0.8, rel=0.04)
    assert found.shares == pytest.approx((0.1,), rel=0.2)
    assert found.wider == pytest.approx((5.0,), rel=0.2)
    assert found.at(np.zeros((1, 1)), np.zeros(1)).factor == pytest.approx(
        0.8 * np.sqrt(0.9 + 0.1 * 25), rel=0.05
    )


def test_many_residuals_of_no_simple_kind_get_as_many_parts_as_they_ask_for():
    """Three parts of 13,000 residuals, of which 4,334 are looked at: shares have an error of 0.8 %."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=13_000) * rng.choice([0.3, 1.5, 6.0], 13_000, p=[0.45, 0.4, 0.15])
    found = Calibration.of(z)
    assert len(found.shares) == 2
    seen = Normals(np.zeros(len(z)), np.ones(len(z)))
    for level in (0.5, 0.8, 0.9, 0.95):
        low, high = found.at(np.zeros((1, 1)), seen.mean).observed(seen).interval(level)
        assert np.mean((low < z) & (z < high)) == pytest.approx(level, abs=0.025)


def test_residuals_that_are_zero_are_no_part_without_width():
    z = np.random.default_rng(0).normal(size=4000) * np.repeat([0.0, 1.0], 2000)
    found = Calibration.of(z)
    assert found.scale >= 0.01


def test_parameters_that_were_fitted_widen_what_is_foretold_of_new_rows():
    """(n + p) / (n - p): by least squares that is what new squared errors are times the fitted ones."""
    rng = np.random.default_rng(0)
    n, p, fitted, new = 60, 15, [], []
    for _ in range(400):
        A, B = rng.normal(size=(n, p)), rng.normal(size=(n, p))
        y, y_new = rng.normal(size=n), rng.normal(size=n)
        weights = np.linalg.lstsq(A, y, rcond=None)[0]
        fitted.append(np.mean((y - A @ weights) ** 2))
        new.append(np.mean((y_new - B @ weights) ** 2))
    factor = Calibration.fitted_to(None, n, p).scale
    # Akaike's is the first order of it in p / n: (n + p + 1) / (n - p - 1) here, which differs by 4 %
    assert_allclose(np.mean(new) / np.mean(fitted), factor**2, rtol=0.1)
    own = Calibration.fitted_to(Calibration(0.8, (0.1,), (4.0,)), n, p)
    assert (own.scale, own.shares, own.wider) == (pytest.approx(0.8 * factor), (0.1,), (4.0,))
    assert Calibration.fitted_to(None, 5000, 10) is None
    assert Calibration.fitted_to(None, 10, 40).scale == pytest.approx(np.sqrt(2))  # priors hold the others


def test_intervals_of_few_rows_and_many_columns_cover():
    """40 rows and 6 columns, ten times: coverage of 400 new rows varies by some 2 % from table to table."""
    covered = {None: [], "matern52": []}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(440, 6))
        y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=440)
        for kernel, found in covered.items():
            low, high = (
                gm.GPRegressor(kernel, random_state=0).fit(X[:40], y[:40]).predict(X[40:], interval=0.95)[1:]
            )
            found.append(np.mean((low < y[40:]) & (y[40:] < high)))
    assert np.mean(covered[None]) > np.mean(covered["matern52"])
    assert 0.9 < np.mean(covered[None]) < 0.99


def test_calibrated_density_integrates_to_one_and_has_its_variance():
    own, z = Calibration(0.8, (0.1,), (4.0,)), np.linspace(-60, 60, 200_001)
    density = np.exp(own.log_density(z))
    assert_allclose(np.trapezoid(density, z), 1.0, rtol=1e-8)
    assert_allclose(np.trapezoid(density * z**2, z), own.at(z, z).factor ** 2, rtol=1e-8)
    seen = Normals(np.array([1.0]), np.array([2.0]))
    placed = own.at(np.zeros((1, 1)), seen.mean)
    assert_allclose(placed.observed(seen).std, 2.0 * placed.factor, rtol=1e-12)


@pytest.fixture(scope="module")
def outliers():
    gp = gm.GPRegressor(warp=None, random_state=0).fit(*table("outliers", 200))
    assert gp.fitted_.calibration is not None
    return gp


def test_outliers_cost_less_after_calibration(outliers):
    X, y = table("outliers", 500, seed=1)
    plain = dataclasses.replace(outliers.fitted_, calibration=None).predictive(X)
    gain = outliers.log_density(X, y) - plain.log_density(y)
    assert gain.mean() > 0


def test_draws_and_moments_of_calibrated_predictions_agree(outliers):
    X, count = table("smooth", 5, seed=3)[0], 40_000
    draws = outliers.sample(X, count, target="y", random_state=0)
    mean, std = outliers.predict(X, return_std=True)
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 4 * std / np.sqrt(count))
    centred = draws - mean[:, None]
    products = centred[:, None] * centred[None]
    _, cov = outliers.predict(X, return_cov=True)
    error = products.std(axis=2) / np.sqrt(count)
    assert np.all(np.abs(products.mean(axis=2) - cov) < 4.5 * error)
    low, high = outliers.predict_quantiles(X, (0.05, 0.95)).T
    held = np.mean((draws > low[:, None]) & (draws < high[:, None]), axis=1)
    assert np.all(np.abs(held - 0.9) < 4 * np.sqrt(0.09 / count))
    f_mean, f_std = outliers.predict(X, return_std=True, target="f")
    assert_allclose(f_mean, mean)
    assert np.all(f_std < std)


def test_file_holds_the_calibration(outliers, tmp_path):
    outliers.save(tmp_path / "m.gm")
    again = gm.load(tmp_path / "m.gm")
    assert again.fitted_.calibration == outliers.fitted_.calibration
    assert again.outcome_.choice == outliers.outcome_.choice


def test_parameters_of_the_path_are_kept_where_there_is_no_time_to_judge_them(monkeypatch):
    def late(self, step, held):
        raise clock.OutOfTime

    monkeypatch.setattr(defaults.NumbersWalk, "densities", late)
    X, y = table("smooth", 800)
    gp = gm.GPRegressor(random_state=0, time_limit=9.0, method="exact").fit(X, y)
    assert len(gp.outcome_.choice) == 1  # there is nothing to say of the others
    assert gp.outcome_.choice[0].endswith("Matern-5/2")
    searched = int(gp.outcome_.stages[0].split(": ")[1].split()[0])
    assert gp.outcome_.evaluations > searched  # those of the path count
