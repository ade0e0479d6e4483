"""Observations of several columns: successes with their trials, counts with their exposure, and a likelihood
of one's own."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, gammaln
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_score

import gramian as gm
from gramian.errors import InputError, ParameterError
from gramian.modelfile import load
from gramian.params import Value, positive
from gramian.testing import check_likelihood

KERNEL = 1.5 * gm.RBF(1.0)


@pytest.fixture(scope="module")
def shots():
    """Rows, the logit of the share, successes and trials, some of which are none."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 6, 30)[:, None]
    f, trials = 2 * np.sin(X[:, 0]), rng.integers(0, 9, 30)
    return X, f, rng.binomial(trials, expit(f)), trials


def held(**settings):
    return gm.GPRegressor(KERNEL, likelihood=gm.Binomial(), mean="zero", optimize=False, **settings)


@pytest.mark.parametrize("inference", ["laplace", "vi"])
def test_trials_of_a_row_are_rows_of_one_trial(shots, inference):
    """The same posterior, and an evidence that differs by the number of orders in which successes can come:
    the sites of equal rows add up to one site."""
    X, _, k, n = shots
    gp = held(inference=inference).fit(X, np.column_stack([k, n]))
    labels = np.concatenate([np.arange(n_i) < k_i for k_i, n_i in zip(k, n, strict=True)])
    single = held(inference=inference).fit(np.repeat(X, n, axis=0), labels.astype(float))  # trials: 1 each
    orders = np.sum(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
    assert gp.evidence_.value == pytest.approx(single.evidence_.value + orders, rel=1e-7)
    for mine, theirs in zip(
        gp.predict(X, return_std=True, target="f"),
        single.predict(X, return_std=True, target="f"),
        strict=True,
    ):
        assert_allclose(mine, theirs, atol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"inference": "laplace"},
        {"inference": "ep"},
        {"inference": "vi"},
        {"inference": "map"},
        {"method": gm.SVGP(12)},
        {"method": gm.Nystrom(12), "inference": "laplace"},
        {"inference": gm.MCMC(chains=2, warmup=100, draws=100, rounds=1)},
    ],
    ids=str,
)
def test_shares_are_found_by_every_rule(shots, settings, tmp_path):
    X, f, k, n = shots
    gp = held(random_state=0, **settings).fit(X, k, trials=n)
    share = gp.predict(X)  # of one trial
    assert np.sqrt(np.mean((share - expit(f)) ** 2)) < 0.12
    many, spread = gp.predict(X, return_std=True, trials=20)
    assert_allclose(many, 20 * share, rtol=1e-9)
    assert np.all(spread**2 > 20 * share * (1 - share))  # f is not known
    gp.save(tmp_path / "model.gm")
    assert_array_equal(load(tmp_path / "model.gm").predict(X, trials=n), gp.predict(X, trials=n))


def test_what_is_predicted_goes_with_its_trials(shots):
    X, _, k, n = shots
    Y = np.column_stack([k, n])
    gp = held(inference="ep").fit(X, Y)
    assert_array_equal(gp.log_density(X, Y), gp.log_density(X, k, trials=n))
    total = np.sum([np.exp(gp.log_density(X[:4], np.full(4, float(j)), trials=7)) for j in range(8)], axis=0)
    assert_allclose(total, 1.0, rtol=1e-6)
    low, middle, high = gp.predict_quantiles(X[:4], trials=7).T
    assert np.all((low >= 0) & (low < middle) & (middle < high) & (high <= 7))
    wide = gp.predict_quantiles(X[:4], trials=5000)  # too many values to add up: from draws
    assert_allclose(wide[:, 1] / 5000, gp.predict(X[:4]), atol=0.1)
    draws = gp.sample(X[:4], 3000, target="y", random_state=0, trials=7)
    mean, std = gp.predict(X[:4], return_std=True, trials=7)
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 6 * std / np.sqrt(3000))
    left_out = gp.loo()
    assert np.all(left_out.mean <= n)
    assert np.all(left_out.log_density <= 0)
    assert gp.predict_table(X, trials=7)["upper95"].max() <= 7


def test_counts_take_their_exposure_as_a_column(shots):
    X = shots[0]
    rng = np.random.default_rng(1)
    hours = rng.uniform(1, 20, 30)
    y = rng.poisson(hours * 2.0)
    gps = [gm.GPRegressor(KERNEL, likelihood=gm.Poisson(), optimize=False) for _ in range(3)]
    gps[0].fit(X, y, exposure=hours)
    gps[1].fit(X, np.column_stack([y, hours]))
    gps[2].fit(X, y)
    assert gps[0].evidence_ == gps[1].evidence_ != gps[2].evidence_
    assert_array_equal(gps[0].fitted_.rows.Y, gps[1].fitted_.rows.Y)
    assert_array_equal(gps[2].fitted_.rows.Y[:, 1], 1.0)


def test_scores_and_cross_validation_of_a_table(shots):
    """R^2 of successes predicted for the trials of their own row, in each fold too."""
    X, _, k, n = shots
    y = np.column_stack([k, n])
    gp = held().fit(X, y)
    assert gp.score(X, y) == pytest.approx(r2_score(k, gp.predict(X, trials=n)), rel=1e-12)
    assert gp.score(X, k / 8) == pytest.approx(r2_score(k / 8, gp.predict(X)), rel=1e-12)  # one trial each
    by_hand = []
    for kept, left in KFold(3).split(X):
        predicted = held().fit(X[kept], y[kept]).predict(X[left], trials=n[left])
        by_hand.append(r2_score(k[left], predicted))
    assert_allclose(cross_val_score(held(), X, y, cv=KFold(3)), by_hand, rtol=1e-10)


class Censored(gm.Likelihood):
    """A number, or a limit that it is above."""

    columns = ("y", "above")
    column_defaults = {"above": 0.0}  # noqa: RUF012 as a person writes it

    scale: Value = positive(1.0)

    def log_prob(self, y, f):
        value, above = y[..., 0], y[..., 1]
        return jnp.where(above > 0, norm.logsf(value, f, self.scale), norm.logpdf(value, f, self.scale))

    def conditional_moments(self, f, above):
        return f, jnp.broadcast_to(self.scale**2, f.shape)


class Within(gm.Likelihood):
    """A number that is known to lie between two others: three columns, taken apart at once."""

    columns = ("y", "low", "high")
    scale: Value = positive(1.0)

    def log_prob(self, y, f):
        y, low, high = jnp.moveaxis(y, -1, 0)
        inside = norm.cdf(high, f, self.scale) - norm.cdf(low, f, self.scale)
        return norm.logpdf(y, f, self.scale) - jnp.log(inside)

    def conditional_moments(self, f, low, high):
        return jnp.clip(f, low, high), jnp.broadcast_to(self.scale**2, f.shape)


def test_three_columns_in_a_file(shots, tmp_path):
    X, f, _, _ = shots
    gp = gm.GPRegressor(KERNEL, likelihood=Within(0.5), optimize=False, inference="vi")
    gp.fit(X, f, low=f - 1, high=f + 2).save(tmp_path / "model.gm")
    ends = {"low": f - 1, "high": f + 2}
    assert_array_equal(load(tmp_path / "model.gm").predict(X, **ends), gp.predict(X, **ends))


@pytest.mark.parametrize("inference", ["laplace", "ep", "vi"])
def test_a_likelihood_of_ones_own(shots, inference):
    """Rows above a limit count as what they are: without the flag they pull f down to it."""
    X, f, _, _ = shots
    y = np.minimum(f, 1.0)
    gp, plain = (
        gm.GPRegressor(KERNEL, likelihood=Censored(0.1), inference=inference, optimize=False).fit(
            X, y, **given
        )
        for given in ({"above": y == 1.0}, {})
    )
    top = np.argmax(f)
    assert gp.predict(X)[top] > 1.3 > plain.predict(X)[top]


def test_the_contract_of_ones_own():
    check_likelihood(Censored(0.7), y=[[0.3, 0], [1.2, 0], [0.4, 1], [-0.5, 1]])


class Needy(Censored):
    column_defaults = {}  # noqa: RUF012 as a person writes it


@pytest.mark.parametrize(
    ("likelihood", "columns", "given", "error", "message"),
    [
        (gm.Binomial(), 1, {}, InputError, r"y has 2 in row 0: successes.*\(1 where none are given\)"),
        (
            gm.Binomial(),
            3,
            {},
            InputError,
            r"y has 3 columns; Binomial.*successes, trials: y of shape \(n, 2\)",
        ),
        (gm.Binomial(), 2, {"trials": 5}, InputError, "trials was given too"),
        (gm.Binomial(), 1, {"trials": 2.5}, InputError, "the column trials has 2.5 in row 0"),
        (gm.Binomial(), 1, {"exposure": 5}, ParameterError, "An exposure is for counts"),
        (
            gm.Binomial(),
            1,
            {"trails": 5},
            ParameterError,
            "fit does not know 'trails'; it takes X, y, trials",
        ),
        (gm.StudentT(), 2, {}, InputError, r"y has 2 columns; StudentT.*takes one: y of shape \(n,\)"),
        (gm.StudentT(), 1, {"trials": 5}, ParameterError, "fit does not know 'trials'"),
        (Needy(), 1, {}, ParameterError, r"Needy reads the columns y, above: give above="),
    ],
)
def test_columns_that_do_not_fit(likelihood, columns, given, error, message):
    y = np.full((6, columns), 2.0)
    with pytest.raises(error, match=message):
        gm.GPRegressor(KERNEL, likelihood=likelihood, optimize=False).fit(
            np.arange(6.0)[:, None], y[:, 0] if columns == 1 else y, **given
        )


def test_columns_where_there_are_none(shots):
    X, f, k, n = shots
    plain = gm.GPRegressor(KERNEL, optimize=False).fit(X, f)
    with pytest.raises(ParameterError, match='for observations: target="y"'):
        plain.predict(X, trials=3)
    with pytest.raises(ParameterError, match="'trials' is not known: Gaussian noise has none beside"):
        plain.log_density(X, f, trials=3)
    gp = held().fit(X, k, trials=n)
    with pytest.raises(ParameterError, match="'exposed' is not known: Binomial has trials beside"):
        gp.predict(X, exposed=3)
    with pytest.raises(InputError, match="the column trials has -1 in row 0"):
        gp.predict(X, trials=-1)
