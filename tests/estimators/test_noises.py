"""Each output of a 2-D y has its own noise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import gramian as gm
from gramian.errors import InputError, ParameterError
from gramian.inference.base import OWN_NOISES

ROWS, TESTED = 300, 2000
SHARES = np.array([1e-3, 0.05, 0.5])  # of noise, in the variance of each output
UNITS = np.array([1.0, 10.0, 100.0])
HELD = {"optimize": False, "normalize_y": False, "mean": "zero"}
KERNEL = 0.9 * gm.RBF([0.8, 1.3])


def functions(X):
    return UNITS * np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 1]), np.sin(X[:, 0] + X[:, 1])])


def made(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    variances = SHARES / (1 - SHARES) * 0.5 * UNITS**2  # a sine's variance is one half
    F = functions(X)
    return X, F + np.sqrt(variances) * rng.normal(size=F.shape), variances


X, Y, TRUE = made(ROWS, 0)


@pytest.fixture(scope="module")
def fitted():
    return gm.GPRegressor(random_state=0).fit(X, Y)


def test_intervals_of_each_output_hold_what_they_promise(fitted):
    """A share of 2,000 rows has a standard deviation of 0.005; a noise variance from 300 rows one of 8 %,
    which moves the share by 0.009: five of both together are 0.05. With one relative noise for all the shares
    were 1.00, 1.00 and 0.78."""
    Z, seen, _ = made(TESTED, 1)
    _, low, high = fitted.predict(Z, interval=0.95)
    assert_allclose(np.mean((low < seen) & (seen < high), axis=0), 0.95, rtol=0, atol=0.05)


def test_noise_is_found_in_the_units_of_each_output(fitted):
    """Within five standard deviations of sqrt(2 / 300) in the logarithm."""
    assert fitted.noise_.shape == (3,)
    assert_allclose(np.log(fitted.noise_ / TRUE), 0.0, atol=5 * np.sqrt(2 / ROWS))
    assert_allclose(fitted.parameters_["noise"], fitted.noise_)


def test_the_order_of_outputs_does_not_matter(fitted):
    turned = gm.GPRegressor(random_state=0).fit(X, Y[:, [2, 0, 1]])
    assert_allclose(turned.noise_, fitted.noise_[[2, 0, 1]], rtol=1e-3)  # where two searches end


def test_predictions_have_the_noise_of_their_output(fitted):
    P = X[:5] + 0.1
    mean, std = fitted.predict(P, return_std=True)
    _, of_f = fitted.predict(P, return_std=True, target="f")
    assert_allclose(std**2 - of_f**2, np.broadcast_to(fitted.noise_, (5, 3)), rtol=1e-9)
    _, cov = fitted.predict(P, return_cov=True)
    assert_allclose(np.einsum("iik->ik", cov), std**2, rtol=1e-7)
    # of 4,000 draws a variance has a standard deviation of 2.2 %; five of them
    drawn = fitted.sample(P, 4000, target="y", random_state=1)
    assert drawn.shape == (5, 3, 4000)
    assert_allclose(np.var(drawn, axis=2) / std**2, 1.0, atol=0.12)
    density = fitted.predict_dist(P).log_density(mean)
    assert_allclose(density, -np.sum(np.log(std) + 0.5 * np.log(2 * np.pi), axis=1))


@pytest.mark.parametrize("holes", [False, True])
def test_outputs_are_as_they_would_be_alone(holes):
    noise, table = [0.01, 2.0, 500.0], Y[:60].copy()
    if holes:
        table[::4, 0], table[1:30:3, 2] = np.nan, np.nan
    gp = gm.GPRegressor(KERNEL, noise=gm.fixed(noise), **HELD).fit(X[:60], table)
    assert_allclose(gp.noise_, noise)
    left, P = gp.loo(), X[100:110]
    total = 0.0
    for k, each in enumerate(noise):
        seen = np.isfinite(table[:, k])
        own = gm.GPRegressor(KERNEL, noise=gm.fixed(each), **HELD).fit(X[:60][seen], table[seen, k])
        total += own.evidence_.value
        for ours, theirs in zip(gp.predict(P, return_std=True), own.predict(P, return_std=True), strict=True):
            assert_allclose(ours[:, k], theirs, rtol=1e-9)
        assert_allclose(left.std[seen, k], own.loo().std, rtol=1e-9)
    assert_allclose(gp.evidence_.value, total, rtol=1e-10)


def test_gaps_are_fitted_with_a_noise_an_output():
    table = Y.copy()
    table[np.random.default_rng(0).random(Y.shape) < 0.3] = np.nan
    gp = gm.GPRegressor(random_state=0).fit(X, table)
    assert_allclose(np.log(gp.noise_ / TRUE), 0.0, atol=5 * np.sqrt(2 / (0.7 * ROWS)))


@pytest.mark.parametrize("method", [gm.Sparse(60), gm.Nystrom(60), "cg"], ids=["vfe", "nystrom", "cg"])
def test_other_methods_find_the_same_noises(method, fitted):
    """60 landmarks leave less than a thousandth of these smooth functions out, whose least noise is that."""
    gp = gm.GPRegressor(method=method, random_state=0).fit(X, Y)
    assert_allclose(np.log(gp.noise_ / fitted.noise_), 0.0, atol=0.3)


def test_a_certificate_holds_for_every_noise():
    held = {"noise": gm.fixed([0.01, 2.0, 500.0]), **HELD}
    exact = gm.GPRegressor(KERNEL, **held).fit(X[:100], Y[:100])
    gp = gm.GPRegressor(KERNEL, method=gm.Nystrom(10), random_state=0, **held).fit(X[:100], Y[:100])
    found = gp.certificate()
    slack = 1e-9 * abs(exact.evidence_.value)
    assert found.evidence_lower.value - slack <= exact.evidence_.value <= found.evidence_upper.value + slack
    off = np.abs(gp.predict(X[:100]) - exact.predict(X[:100])).max()
    assert 0 < off <= found.mean_error.value * (1 + 1e-6)


def test_chains_draw_a_noise_an_output():
    gp = gm.GPRegressor(1.0 * gm.RBF(1.5), hyper="mcmc", random_state=0).fit(X[:40], Y[:40, :2])
    assert gp.noise_.shape == (2,)
    assert gp.noise_[1] > 20 * gp.noise_[0]  # of variances that differ by a factor of 5,000


# What people may give. --------------------------------------------------------------------------------------


def test_one_number_is_the_noise_of_all():
    gp = gm.GPRegressor(KERNEL, noise=0.1).fit(X[:40], Y[:40])
    assert isinstance(gp.noise_, float)
    assert gp.parameters_.names.count("noise") == 1


@pytest.mark.parametrize("kind", [list, tuple, np.array, gm.param, gm.fixed])
def test_a_list_has_a_start_for_each(kind):
    noise = [0.1, 0.2, 0.3]
    gp = gm.GPRegressor(KERNEL, noise=kind(noise), **HELD).fit(X[:40], Y[:40])
    assert_allclose(gp.noise_, noise)
    searched = clone(gp).set_params(optimize=True).fit(X[:40], Y[:40])
    assert np.all(searched.noise_ != noise) != (kind is gm.fixed)


def test_a_list_of_one_is_for_one_output():
    for y in (Y[:40, 0], Y[:40, :1]):
        gp = gm.GPRegressor(KERNEL, noise=[0.1]).fit(X[:40], y)
        assert_allclose(gp.noise_, gm.GPRegressor(KERNEL, noise=0.1).fit(X[:40], y).noise_, rtol=1e-6)


def test_noise_beside_known_variances():
    known = np.full(40, 0.3)
    gp = gm.GPRegressor(KERNEL, noise=gm.fixed([0.1, 0.2, 0.3]), **HELD).fit(X[:40], Y[:40], known)
    same = gm.GPRegressor(KERNEL, noise=gm.fixed([0.4, 0.5, 0.6]), **HELD).fit(X[:40], Y[:40])
    assert_allclose(gp.predict(X[:5], target="f"), same.predict(X[:5], target="f"), rtol=1e-9)


@pytest.mark.parametrize(
    ("noise", "y", "message"),
    [
        ([0.1, 0.2], Y, r"noise has 2 variances, but y has 3 outputs\. .* or a list of 3"),
        (gm.fixed([0.1]), Y, r"noise has 1 variance, but y has 3 outputs"),
        ([0.1, 0.2], Y[:, 0], r"noise has 2 variances, but y has 1 output\. .* noise_var"),
        ([0.1, -0.2, 0.3], Y, r"noise=\[0.1, -0.2, 0.3\] must be a variance: a number from 0 to"),
        ([0.1, "a", 0.3], Y, "must be a variance"),
        ([], Y, "must be a variance"),
        (gm.fixed(np.ones((2, 2))), Y, r"one an output, but has shape \(2, 2\)"),
        ([0.0, 0.1, 0.2], Y, r"hold it there: gramian.fixed\(\[0.0, 0.1, 0.2\]\)"),
    ],
)
def test_what_is_no_noise_is_refused(noise, y, message):
    with pytest.raises(ParameterError, match=message):
        gm.GPRegressor(KERNEL, noise=noise).fit(X, y)


def test_without_noise_in_one_output_its_equal_rows_must_agree():
    """The other output's noise explains its own difference."""
    twice, table = np.vstack([X[:20], X[:1]]), np.vstack([Y[:20], Y[:1]])
    table[-1, 1] += 1.0
    gm.GPRegressor(KERNEL, noise=gm.fixed([0.0, 1.0, 0.0]), **HELD).fit(twice, table)
    table[-1, 2] += 5.0
    with pytest.raises(InputError, match="Rows 0 and 20 of X are equal but y differs by 5 "):
        gm.GPRegressor(KERNEL, noise=gm.fixed([0.0, 1.0, 0.0]), **HELD).fit(twice, table)


def test_a_prior_has_as_many_outputs_as_noises():
    gp = gm.GPRegressor(KERNEL, noise=[0.1, 0.2], mean="zero")
    _, std = gp.predict(X[:4], return_std=True)
    assert_allclose(std**2, np.broadcast_to([1.0, 1.1], (4, 2)))
    assert gp.sample(X[:4], 3).shape == (4, 2, 3)


def test_very_many_outputs_share_one_relative_noise():
    q, rng = OWN_NOISES + 1, np.random.default_rng(0)
    table = X[:30, :1] * np.linspace(1, 9, q) + 0.1 * rng.normal(size=(30, q))
    gp = gm.GPRegressor(KERNEL, n_restarts=0).fit(X[:30], table)
    assert gp.parameters_.names.count("noise") == 1
    assert_allclose(gp.noise_ / table.var(axis=0), gp.parameters_["noise"], rtol=1e-9)
    assert len(gp.posterior_.roots) == 1
    own = gm.GPRegressor(KERNEL, n_restarts=0).fit(X[:30], table[:, :-1])
    assert len(own.posterior_.roots) == OWN_NOISES


# What is told. ----------------------------------------------------------------------------------------------


def test_each_output_has_its_own_floor():
    """What equal rows disagree in is noise, of the output in which they do."""
    rng = np.random.default_rng(0)
    twice, pure = np.vstack([X[:60], X[:60]]), np.vstack([Y[:60, :2], Y[:60, :2]])
    pure[:, 1] += 3.0 * rng.normal(size=120)
    gp = gm.GPRegressor(KERNEL).fit(twice, pure)
    low, _ = gp.fitted_.model.parameters()["noise"].box
    assert_allclose(low[0], 1e-8 * pure[:, 0].var())
    # a sum of 60 squares has 60 degrees of freedom: 9 = 3^2 times 60 / chi2.ppf(0.999, 60) = 0.60, and five
    # standard deviations of sqrt(2 / 60)
    assert_allclose(low[1] / (9 * 0.60), 1.0, atol=5 * np.sqrt(2 / 60))


def test_parameters_and_notes_name_the_output():
    frame = pd.DataFrame(np.column_stack([np.sin(X[:80, 0]), Y[:80, 2]]), columns=["clean", "wind"])
    gp = gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), random_state=0).fit(X[:80], frame)
    names = [name for name in gp.parameters_.names if name.startswith("noise")]
    assert names == ["noise[clean]", "noise[wind]"]
    assert gp.parameters_["noise[wind]"] == gp.parameters_["noise[1]"] == gp.noise_[1]
    floors = [note for note in gp.outcome_.notes if "at its floor" in note]
    assert floors == ["noise[clean]: at its floor: the data look free of noise."]
    told = [line.split() for line in gp.summary().splitlines() if line.startswith("  noise ")]
    assert [word for word in told[0] if word in ("clean", "wind")] == ["clean", "wind"]


def test_a_warp_of_several_outputs():
    """Of exp(f + e): one warp with a noise an output, which is found through it."""
    rng = np.random.default_rng(0)
    sd = np.array([0.05, 0.5])
    table = np.exp(functions(X)[:, :1] + sd * rng.normal(size=(ROWS, 2)))
    gp = gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), warp=gm.SinhArcsinh(), n_restarts=0).fit(X, table)
    Z = rng.uniform(-3, 3, (TESTED, 2))
    seen = np.exp(functions(Z)[:, :1] + sd * rng.normal(size=(TESTED, 2)))
    _, low, high = gp.predict(Z, interval=0.95)
    assert_allclose(np.mean((low < seen) & (seen < high), axis=0), 0.95, rtol=0, atol=0.05)
