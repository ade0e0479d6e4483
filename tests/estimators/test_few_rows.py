"""Few rows: predictions are averaged over what the parameters may be."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import gramian as gm
from gramian.errors import ModelFileError, ParameterError
from gramian.estimators.regressor import AVERAGED
from gramian.fitting import draws as drawing
from gramian.fitting.draws import DRAWS, FEW, drawn
from gramian.fitting.objective import Objective
from gramian.fitting.progress import progress
from gramian.kernels import Matern52
from gramian.params import fixed


def wave(rows: int, columns: int = 1, seed: int = 0, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows, columns))
    return X, np.sin(5 * X[:, 0]) + 0.5 * X[:, -1] + noise * rng.standard_normal(rows)


def from_the_model(rng: np.random.Generator, n: int, m: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """n + m rows of a Matern-5/2 with lengthscales 0.3 sqrt(d) on the unit cube, noise of 0.1."""
    X = rng.uniform(size=(n + m, d))
    K = np.asarray(Matern52(np.full(d, 0.3 * np.sqrt(d)))(X)) + 0.01 * np.eye(n + m)
    return X, np.linalg.cholesky(K) @ rng.standard_normal(n + m)


@pytest.mark.parametrize(("n", "d"), [(6, 1), (15, 2)])
def test_intervals_of_few_rows_cover_what_they_say(n: int, d: int) -> None:
    # By the best parameters alone 0.80 at n = 6. The coverage of 40 rows differs between data sets by
    # 0.12, so that the average over 50 has a standard error of 0.017: below 0.89 in one of 5,000 trials.
    held = []
    for seed in range(50):
        X, y = from_the_model(np.random.default_rng([seed, n, d]), n, 40, d)
        gp = gm.GPRegressor(random_state=0).fit(X[:n], y[:n])
        probabilities = gp.predict_dist(X[n:]).cdf(y[n:])
        held.append([np.mean(np.abs(probabilities - 0.5) < level / 2) for level in (0.5, 0.8, 0.95)])
    half, most, nearly_all = np.mean(held, axis=0)
    assert 0.89 < nearly_all < 0.99
    assert 0.7 < most < 0.93
    assert 0.4 < half < 0.7  # of 6 rows much noise is expected, and there is little, as in the line above


def test_the_average_is_that_of_long_chains() -> None:
    X, y = wave(12)
    grid = np.linspace(-0.2, 1.2, 30)[:, None]
    own = gm.GPRegressor("matern52", hyper="average").fit(X, y).predict_dist(grid)
    chains = gm.GPRegressor("matern52", hyper="mcmc", random_state=0, verbose=False).fit(X, y)
    long = chains.predict_dist(grid)
    best = gm.GPRegressor("matern52", hyper="map").fit(X, y).predict_dist(grid)
    # 32 draws leave a fifth of the spread between draws as the error of a mean, which is less than std / 2
    assert np.max(np.abs(own.mean - long.mean) / long.std) < 0.5
    width, of_best = own.std / long.std, best.std / long.std
    assert np.min(width) > 0.75
    assert np.max(width) < 1.35
    assert np.mean(np.abs(np.log(width))) < 0.5 * np.mean(np.abs(np.log(of_best)))


def test_draws_of_a_constant_mean_are_those_of_its_gaussian_posterior(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = wave(10)
    kernel = fixed(1.0) * Matern52(fixed(0.3))
    fitted = gm.GPRegressor(kernel, noise=fixed(0.02), normalize_y=False).fit(X, y).fitted_
    A = np.asarray(Matern52(0.3)(X)) + 0.02 * np.eye(10)
    precision = np.sum(np.linalg.inv(A))
    centre = np.sum(np.linalg.solve(A, y)) / precision
    monkeypatch.setattr(drawing, "DRAWS", 600)
    objective = Objective(fitted.model, fitted.rows, fitted.inference)
    with progress(False) as report:
        found = drawn(objective, fitted.theta, report)
    means = np.array([objective.at(theta).mean.parameters()["value"].value for theta in found.thetas])
    # 600 draws, hardly correlated: errors of 0.04 and 0.03 standard deviations; the weak prior around the
    # best value takes 0.5 % of the spread
    spread = 1 / np.sqrt(precision)
    assert abs(np.mean(means) - centre) < 0.2 * spread
    assert_allclose(np.std(means), spread, rtol=0.15)


def test_with_many_rows_the_average_is_the_best() -> None:
    X, y = wave(AVERAGED)
    grid = np.linspace(0.05, 0.95, 20)[:, None]
    average, best = (gm.GPRegressor(hyper=hyper).fit(X, y).predict_dist(grid) for hyper in ("average", "map"))
    assert np.max(np.abs(average.mean - best.mean) / best.std) < 0.1
    assert_allclose(average.std, best.std, rtol=0.1)


def test_who_is_averaged() -> None:
    X, y = wave(15)
    counted = {
        "default": gm.GPRegressor(),
        "map": gm.GPRegressor(hyper="map"),
        "kernel": gm.GPRegressor("matern52"),
        "asked": gm.GPRegressor("matern52", hyper="average"),
        "held": gm.GPRegressor(optimize=False),
        "vfe": gm.GPRegressor(method="vfe"),
        "student": gm.GPRegressor(likelihood="student-t"),
    }
    draws = {name: gp.fit(X, y).fitted_.draws for name, gp in counted.items()}
    assert {name for name, found in draws.items() if found is not None} == {"default", "asked"}
    assert draws["default"].shape == (2 * DRAWS, counted["default"].theta_.size)
    assert len(gm.GPRegressor().fit(*wave(FEW)).fitted_.draws) == DRAWS
    assert gm.GPRegressor().fit(*wave(AVERAGED + 1)).fitted_.draws is None
    told = counted["default"].summary()
    assert "averaged over 32 draws of the parameters" in told
    assert any("32 draws" in stage for stage in counted["default"].outcome_.stages)
    assert "draws of the parameters" not in counted["map"].summary()


def test_what_is_told_of_parameters_is_of_the_best() -> None:
    X, y = wave(20)
    average, best = (gm.GPRegressor(hyper=hyper).fit(X, y) for hyper in ("average", "map"))
    assert_array_equal(average.theta_, best.theta_)
    assert average.evidence_ == best.evidence_
    assert average.noise_ == best.noise_
    assert str(average.kernel_) == str(best.kernel_)
    assert_array_equal(average.posterior_.mean(X), best.posterior_.mean(X))
    assert average.relevance(8).rows == best.relevance(8).rows


def test_priors_that_are_set_by_few_rows_cost_one_of_them() -> None:
    for n, factor in ((6, np.sqrt(6 / 5)), (15, np.sqrt(15 / 14))):
        calibration = gm.GPRegressor(random_state=0).fit(*wave(n)).fitted_.calibration
        assert calibration is not None
        assert_allclose(calibration.scale, factor)
    assert gm.GPRegressor("matern52", hyper="average").fit(*wave(6)).fitted_.calibration is None


def test_an_average_is_refused_where_there_is_none() -> None:
    X, y = wave(15)
    with pytest.raises(ParameterError, match="under Gaussian noise"):
        gm.GPRegressor(hyper="average", likelihood="student-t").fit(X, y)
    with pytest.raises(ParameterError, match="exact posteriors"):
        gm.GPRegressor(hyper="average", method="vfe").fit(X, y)
    with pytest.raises(ParameterError, match=r'"auto".*"average".*"map".*"ml".*or "mcmc"'):
        gm.GPRegressor(hyper="best").fit(X, y)
    with pytest.raises(ParameterError, match='Use "map"'):
        gm.GPClassifier(hyper="average").fit(X, y > 0)


def test_the_same_data_give_the_same_numbers() -> None:
    X, y = wave(20, 2)
    new = np.random.default_rng(1).uniform(size=(5, 2))
    first, again = (gm.GPRegressor().fit(X, y) for _ in range(2))
    assert_array_equal(first.predict(new, return_std=True), again.predict(new, return_std=True))
    # no units: draws are of parameters in the units of the data
    scaled = gm.GPRegressor().fit(1e3 * X, 1e-4 * y + 7).predict(1e3 * new, return_std=True)
    assert_allclose((scaled[0] - 7) * 1e4, first.predict(new), rtol=1e-4)
    assert_allclose(scaled[1] * 1e4, first.predict(new, return_std=True)[1], rtol=1e-4)


def skewed(rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = wave(rows, noise=0.05)
    return X, np.exp(2 * y)


@pytest.mark.parametrize("data", [wave(20, 2), skewed(60)], ids=["plain", "warped"])
def test_a_saved_average_answers_to_the_last_bit(data: tuple[np.ndarray, np.ndarray], tmp_path) -> None:
    X, y = data
    gp = gm.GPRegressor(random_state=0).fit(X, y)
    assert gp.fitted_.draws is not None
    gp.save(tmp_path / "model.gm")
    for other in (gm.load(tmp_path / "model.gm"), pickle.loads(pickle.dumps(gp))):
        for target in ("y", "f"):
            ours, theirs = (
                one.predict_dist(X[:5] + 0.1, target).quantile([0.025, 0.5, 0.975]) for one in (gp, other)
            )
            assert_array_equal(ours, theirs)
        assert_array_equal(gp.loo().log_density, other.loo().log_density)
        assert_array_equal(gp.sample(X[:3], 20), other.sample(X[:3], 20))
        assert other.summary() == gp.summary()
    assert clone(gp).get_params()["hyper"] == "auto"


def test_a_file_with_impossible_draws_is_refused() -> None:
    from gramian.modelfile.record import describe, restore

    gp = gm.GPRegressor(random_state=0).fit(*wave(12))
    document, arrays = describe(gp)
    for wrong in (np.full_like(arrays["draws"], np.nan), np.full_like(arrays["draws"], 1e6)):
        with pytest.raises(ModelFileError, match="draws of parameters"):
            restore(document, {**arrays, "draws": wrong})


ANSWERS = {
    "plain": (wave(15, 2), {}, {}),
    "warped": (skewed(60), {}, {}),
    "calibrated": (wave(80), {}, {}),
    "known noise": (wave(15), {}, {"noise_var": np.linspace(0.01, 0.05, 15)}),
    "own mean": (wave(15, 2), {"mean": "linear"}, {}),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_agree_with_each_other(case: str) -> None:
    (X, y), settings, further = ANSWERS[case]
    gp = gm.GPRegressor(random_state=0, **settings).fit(X, y, **further)
    assert (gp.fitted_.model.warp is not None) == (case == "warped")
    new = X[:7] + 0.03
    for target in ("y", "f"):
        dist = gp.predict_dist(new, target)
        mean, std = gp.predict(new, return_std=True, target=target)
        assert_allclose(mean, dist.mean, rtol=1e-10)
        assert_allclose(std, dist.std, rtol=1e-10)
        assert_allclose(gp.predict(new, target=target), mean, rtol=1e-10)
        again, cov = gp.predict(new, return_cov=True, target=target)
        assert_allclose(again, mean, rtol=1e-10)
        assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-6)
        assert np.min(np.linalg.eigvalsh(cov)) > -1e-8 * np.max(cov)
        _, low, high = gp.predict(new, interval=0.9, target=target)
        assert_allclose(dist.cdf(high) - dist.cdf(low), 0.9, atol=1e-8)
        # 4,000 draws: the share below a quantile of 0.9 has a standard error of 0.005
        drawn = gp.sample(new, 4000, target=target, random_state=1)
        assert_allclose(np.mean(drawn <= dist.quantile([0.9]), axis=1), 0.9, atol=0.025)
    assert gp.sample(new, 3).shape == (7, 3)
    assert_allclose(gp.log_density(new, y[:7]), gp.predict_dist(new).log_density(y[:7]), rtol=1e-12)
    assert gp.evaluate(new, y[:7]).rows == 7
    assert gp.certificate() is gp.certificate_
    gp.plot()


def test_the_gradient_is_that_of_the_mean() -> None:
    X, y = wave(15, 2)
    gp = gm.GPRegressor(kernel="matern52", hyper="average").fit(X, y)
    new, step = X[:4] + 0.05, 1e-5
    mean, var = gp.predict_gradient(new)
    for j in range(2):
        ahead, behind = (gp.predict(new + s * step * np.eye(2)[j], target="f") for s in (1, -1))
        assert_allclose(mean[:, j], (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6)
    of_best = gm.GPRegressor(kernel="matern52", hyper="map").fit(X, y).predict_gradient(new)[1]
    assert np.all(var > 0)
    assert np.mean(var) > np.mean(of_best)


def test_summands_are_averaged_and_add_up() -> None:
    X, y = wave(20)
    gp = gm.GPRegressor("rbf + matern52", mean="zero", hyper="average").fit(X, y)
    parts = gp.components(X[:5])
    total = np.mean(y) + sum(mean for mean, _ in parts.values())
    assert_allclose(total, gp.predict(X[:5], target="f"), rtol=1e-8)
    assert all(np.all(std > 0) for _, std in parts.values())


def test_left_out_rows_are_foretold_as_a_fit_without_them_does() -> None:
    X, y = wave(12)
    left = gm.GPRegressor("matern52", hyper="average").fit(X, y).loo()
    density = []
    for i in range(12):
        others = np.arange(12) != i
        gp = gm.GPRegressor("matern52", hyper="average").fit(X[others], y[others])
        density.append(gp.log_density(X[[i]], y[[i]])[0])
    best = gm.GPRegressor("matern52", hyper="map").fit(X, y).loo().log_density
    # each is from 32 draws; the best parameters alone have seen the row that they foretell
    assert abs(np.mean(left.log_density) - np.mean(density)) < 0.35
    assert np.all(np.isfinite(left.log_density))
    assert left.mean.shape == best.shape == (12,)


def test_gaps_and_several_outputs_are_averaged_too() -> None:
    X, y = wave(20, 2)
    X[3, 1] = np.nan
    gp = gm.GPRegressor(random_state=0).fit(X, y)
    mean, std = gp.predict(np.array([[0.5, np.nan], [0.5, 0.5]]), return_std=True)
    assert gp.fitted_.draws is not None
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)
    X, y = wave(15)
    Y = np.column_stack([y, X[:, 0] ** 2])
    Y[2, 1] = np.nan
    gp = gm.GPRegressor(random_state=0).fit(X, Y)
    dist = gp.predict_dist(X[:4])
    assert gp.fitted_.draws is not None
    assert dist.mean.shape == (4, 2)
    assert_allclose(gp.predict(X[:4], return_std=True)[1], dist.std, rtol=1e-10)
    assert gp.predict(X[:4], return_cov=True)[1].shape == (4, 4, 2)
    assert gp.sample(X[:4], 5).shape == (4, 2, 5)
    assert gp.loo().mean.shape == (15, 2)


def test_copies_of_rows_say_nothing_new_of_the_parameters() -> None:
    X, y = wave(12)
    gp = gm.GPRegressor("matern52", hyper="average")
    alone, thrice = (clone(gp).fit(np.repeat(X, k, 0), np.repeat(y, k)) for k in (1, 3))
    # as draws of 36 different rows they would be half as far apart
    spreads = [np.std(gp.fitted_.draws, axis=0) for gp in (alone, thrice)]
    assert np.mean(spreads[1]) > 0.8 * np.mean(spreads[0])


def test_without_time_the_best_parameters_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from gramian.clock import OutOfTime
    from gramian.estimators import fitter

    def late(*_: object) -> None:
        raise OutOfTime

    monkeypatch.setattr(fitter, "drawn", late)
    gp = gm.GPRegressor().fit(*wave(15))
    assert gp.fitted_.draws is None
    assert any("average over what the parameters may be" in note for note in gp.outcome_.notes)
