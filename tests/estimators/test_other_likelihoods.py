"""GPRegressor with likelihoods other than Gaussian noise in closed form: what people use them for, and what
they are told."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import gramian as gm
from gramian.errors import InputError, KernelTextError, ParameterError
from gramian.testing import check_likelihood
from gramian.words import KERNELS, LIKELIHOODS

KERNEL = 1.0 * gm.RBF(0.8)


@pytest.fixture(scope="module")
def line():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3, 3, 50))[:, None]
    return X, np.sin(X[:, 0]), rng


@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.parametrize("mean", ["zero", "constant"])
def test_gaussian_noise_by_another_way_is_the_same(line, normalize_y, mean):
    """Laplace, EP and VI on Gaussian noise are exact inference, in the estimator's own units."""
    X, f, rng = line
    y = 5 + 3 * f + 0.3 * rng.standard_normal(50)
    same = {"optimize": False, "normalize_y": normalize_y, "mean": mean}
    closed = gm.GPRegressor(KERNEL, noise=0.09, **same).fit(X, y)
    for inference in ("laplace", "ep", "vi"):
        gp = gm.GPRegressor(KERNEL, likelihood=gm.Gaussian(0.09), inference=inference, **same).fit(X, y)
        assert_allclose(gp.evidence_.value, closed.evidence_.value, atol=1e-6)
        for a, b in zip(
            gp.predict(X[:7], return_std=True), closed.predict(X[:7], return_std=True), strict=True
        ):
            assert_allclose(a, b, atol=1e-6)


def test_the_most_probable_function_is_at_parameters_that_make_sense(line):
    """The joint density of f and the parameters has no maximum: the kernel's scale would grow until a mean of
    counts overflows."""
    X, f, _ = line
    y = np.random.default_rng(1).poisson(3 * np.exp(f))
    gp = gm.GPRegressor(KERNEL, likelihood=gm.Poisson(), inference="map", n_restarts=0, random_state=0).fit(
        X, y
    )
    assert np.sqrt(np.mean((gp.predict(X, target="f") - np.log(3) - f) ** 2)) < 0.3
    laplace = gm.GPRegressor(
        KERNEL, likelihood=gm.Poisson(), inference="laplace", n_restarts=0, random_state=0
    ).fit(X, y)
    assert_allclose(gp.theta_, laplace.theta_, rtol=1e-9)
    assert gp.evidence_.kind == "joint density"
    assert gp.evidence_.value > laplace.evidence_.value  # without the width of the peak


def test_a_likelihood_without_curvature_has_no_gaussian_at_its_mode(line):
    X, f, rng = line
    with pytest.raises(ParameterError, match=r"Laplacian has no curvature.*\"ep\""):
        gm.GPRegressor(KERNEL, likelihood=Laplacian(), inference="laplace", optimize=False).fit(
            X, f + rng.laplace(0, 0.3, 50)
        )


def test_counts_with_exposure(line):
    """Twice the time watched is twice the count, and no change of the rate."""
    X, f, _ = line
    rng = np.random.default_rng(1)
    hours = rng.uniform(1, 20, 50)
    y = rng.poisson(hours * np.exp(f))
    gp = gm.GPRegressor(likelihood=gm.Poisson(), n_restarts=0, random_state=0).fit(X, y, exposure=hours)
    assert np.sqrt(np.mean((gp.predict(X, target="f") - f) ** 2)) < 0.25
    once, twice = (
        gp.predict(X[:3], return_std=True),
        gp.predict(X[:3], return_std=True, exposure=[2.0, 2.0, 2.0]),
    )
    assert_allclose(twice[0], 2 * once[0], rtol=1e-9)
    assert np.all(twice[1] < 2 * once[1])  # the noise of counts grows less than the counts
    draws = gp.sample(X[:3], 4000, target="y", random_state=0)
    assert_allclose(draws.mean(axis=1), once[0], atol=6 * once[1].max() / np.sqrt(4000))
    ignored = gm.GPRegressor(likelihood=gm.Poisson(), n_restarts=0, random_state=0).fit(X, y)
    assert gp.evidence_.value > ignored.evidence_.value


def test_outliers_are_forgiven(line):
    X, f, _ = line
    y = f + 0.05 * np.random.default_rng(2).standard_normal(50)
    y[[10, 30]] += 8.0
    robust = gm.GPRegressor(KERNEL, likelihood=gm.StudentT(), n_restarts=0).fit(X, y)
    plain = gm.GPRegressor(KERNEL, n_restarts=0).fit(X, y)
    errors = [np.sqrt(np.mean((gp.predict(X) - f) ** 2)) for gp in (robust, plain)]
    assert errors[0] < 0.1 < errors[1]


def test_noise_that_depends_on_x(line):
    X, f, _ = line
    rng = np.random.default_rng(3)
    X = np.repeat(X, 4, axis=0)
    sd = np.where(X[:, 0] > 0, 0.6, 0.05)
    y = np.repeat(f, 4) + sd * rng.standard_normal(200)
    kernels = [1.0 * gm.RBF(1.0), 2.0 * gm.RBF(1.0)]
    gp = gm.GPRegressor(kernels, likelihood=gm.Heteroscedastic(), n_restarts=0).fit(X, y)
    _, std = gp.predict(np.array([[-2.0], [2.0]]), return_std=True)
    assert_allclose(std, [0.05, 0.6], rtol=0.5)
    assert gp.predict(X[:3], target="f").shape == (3, 2)
    assert len(gp.fitted_.model.kernels) == 2


class Laplacian(gm.Likelihood):
    """Nothing but log_prob."""

    width: gm.Parameter = gm.positive(1.0)

    def log_prob(self, y, f):
        return -jnp.abs(y - f) / self.width - jnp.log(2 * self.width)


def test_a_likelihood_of_ones_own(line):
    X, f, _ = line
    y = f + np.random.default_rng(4).laplace(0, 0.1, 50)
    gp = gm.GPRegressor(KERNEL, likelihood=Laplacian(0.5), inference="ep", n_restarts=0).fit(X, y)
    assert np.sqrt(np.mean((gp.predict(X, target="f")) - f) ** 2) < 0.1
    assert 0.03 < float(gp.likelihood_.width.value) < 0.3
    with pytest.raises(ParameterError, match="conditional_moments"):
        gp.predict(X)
    with pytest.raises(AssertionError):
        check_likelihood(Wrong())


class Wrong(gm.Likelihood):
    """Does not add up to one."""

    def log_prob(self, y, f):
        return -((y - f) ** 2)


def test_maximum_likelihood_leaves_priors_out(line):
    X, f, rng = line
    kernel = gm.param(1.0, prior=gm.LogNormal(5.0, 0.1)) * gm.RBF(0.8)
    y = f + 0.1 * rng.standard_normal(50)
    kept, left = (gm.GPRegressor(kernel, hyper=hyper, n_restarts=0).fit(X, y) for hyper in ("map", "ml"))
    assert left.evidence_.value > kept.evidence_.value
    assert all(row.prior == "" for row in left.parameters_)


def test_left_out_rows_of_counts(line):
    """EP's cavities against a model that never saw the row."""
    X, f, _ = line
    y = np.random.default_rng(5).poisson(3 * np.exp(f))
    settings = {
        "likelihood": gm.Poisson(),
        "inference": "ep",
        "optimize": False,
        "mean": gm.ConstantMean(1.0),
    }
    loo = gm.GPRegressor(KERNEL, **settings).fit(X, y).loo()
    keep = np.arange(50) != 20
    mean, std = gm.GPRegressor(KERNEL, **settings).fit(X[keep], y[keep]).predict(X[[20]], return_std=True)
    assert_allclose([loo.mean[20], loo.std[20]], [mean[0], std[0]], rtol=0.02)


def test_bad_input_has_a_cure(line):
    X, f, _ = line
    for y, settings, word in (
        (f, {"likelihood": gm.Poisson()}, "row 0"),
        (f, {"likelihood": gm.Beta()}, "between"),
        (np.column_stack([f, f]), {"likelihood": gm.StudentT()}, "2 columns"),
    ):
        with pytest.raises(InputError, match=word):
            gm.GPRegressor(**settings).fit(X, y)
    for settings, extra, word in (
        ({"likelihood": "poison"}, {}, "gramian likelihood"),
        ({"likelihood": gm.StudentT(), "noise": 0.1}, {}, "closed form"),
        ({}, {"exposure": np.ones(50)}, "counts"),
        ({"likelihood": gm.StudentT(), "inference": "magic"}, {}, "laplace"),
        ({"likelihood": gm.Heteroscedastic(), "inference": "ep"}, {}, "several latent"),
        ({"hyper": "guess"}, {}, "mcmc"),
        ({"kernel": [gm.RBF(1.0), gm.RBF(2.0)], "likelihood": gm.StudentT()}, {}, "2 kernels"),
    ):
        with pytest.raises(ParameterError, match=word):
            gm.GPRegressor(**settings).fit(X, f, **extra)
    gp = gm.GPRegressor(likelihood=gm.StudentT(), optimize=False).fit(X, f)
    with pytest.raises(ParameterError, match="Gaussian noise"):
        gp.certificate()
    with pytest.raises(ParameterError, match="target"):
        gp.predict(X, return_cov=True)


@pytest.mark.parametrize("word", [word for word in LIKELIHOODS if word != "gaussian"])
def test_a_word_is_the_likelihood_it_names(word, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 1)), rng.integers(0, 2, 20).astype(float)
    y = 0.25 + 0.5 * y if word in ("beta", "gamma") else y
    made = getattr(gm.likelihoods, LIKELIHOODS[word])()
    by_word = gm.GPRegressor(gm.RBF(1.0), likelihood=word, optimize=False).fit(X, y)
    by_object = gm.GPRegressor(gm.RBF(1.0), likelihood=made, optimize=False).fit(X, y)
    assert repr(by_word.likelihood_) == repr(by_object.likelihood_)
    np.testing.assert_array_equal(by_word.predict(X), by_object.predict(X))
    assert clone(by_word).likelihood == word
    by_word.save(tmp_path / "m.gm")
    loaded = gm.load(tmp_path / "m.gm")
    assert loaded.likelihood == word
    np.testing.assert_array_equal(loaded.predict(X), by_word.predict(X))


def test_words_of_likelihoods_that_are_not_known_are_answered_with_those_that_are():
    X, y = np.arange(4.0)[:, None], np.arange(4.0)
    with pytest.raises(ParameterError, match='"student-t", "poisson", "negative-binomial", "binomial"'):
        gm.GPRegressor(likelihood="poison").fit(X, y)
    assert gm.GPRegressor(likelihood="gaussian").fit(X, y).fitted_.closed_form
    assert gm.GPRegressor(likelihood="Student_T", optimize=False).fit(X, y).likelihood_.columns == ("y",)


@pytest.mark.parametrize("word", KERNELS)
def test_a_word_of_a_kernel_is_the_default_one_of_that_family(word, tmp_path):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=20), "site": ["n", "s"] * 10, "b": rng.normal(size=20)})
    gp = gm.GPRegressor(word, n_restarts=0).fit(X, X["a"] + (X["site"] == "n"))
    names = {type(part).__name__ for part in gp.kernel_.walk()}
    assert {KERNELS[word], "Categorical", "Scaled"} <= names
    default = gm.GPRegressor(n_restarts=0).fit(X, X["a"] + (X["site"] == "n"))
    names = [name.replace(word, "matern52") for name in gp.parameters_.names]
    assert names == list(default.parameters_.names)
    assert [row.prior for row in gp.parameters_] == [row.prior for row in default.parameters_]
    gp.save(tmp_path / "m.gm")
    assert gm.load(tmp_path / "m.gm").kernel == word
    features = gm.FourierFeatures(word, n_features=20).fit(X[["a", "b"]])
    assert type(features.kernel_).__name__ == KERNELS[word]
    compared = gm.compare(X[["a", "b"]], X["a"], kernel=word, methods=["exact"], sizes=[3], repeats=1)
    assert KERNELS[word] in str(compared.kernel)
    labels = gm.GPClassifier(word.upper(), optimize=False).fit(X, X["site"])
    assert KERNELS[word] in str(labels.kernel_)


def test_words_with_a_plus_between_them_are_a_sum_of_default_kernels(tmp_path):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=20), "site": ["n", "s"] * 10, "b": rng.normal(size=20)})
    y, codes = X["a"] + (X["site"] == "n"), X.assign(site=[0, 1] * 10).to_numpy()

    def matrix(word):
        gp = gm.GPRegressor(word, optimize=False).fit(X, y)
        return gp.kernel_.resolve(["a", "site", "b"])(codes)

    assert_allclose(matrix(" RBF+ Matern12"), matrix("rbf") + 0.05 * matrix("matern12"), rtol=1e-12)
    gp = gm.GPRegressor("matern32 + rbf + matern12", n_restarts=0).fit(X, y)
    scales = [row for row in gp.parameters_ if row.path.endswith("scale") and "length" not in row.path]
    assert [row.prior for row in scales] == ["LogNormal(0, 1.5)", *["LogNormal(-2.996, 1.5)"] * 2]  # log 0.05
    gp.save(tmp_path / "m.gm")
    assert gm.load(tmp_path / "m.gm").kernel == "matern32 + rbf + matern12"
    labels = gm.GPClassifier("rbf + matern12", optimize=False).fit(X, X["site"])
    assert {"RBF", "Matern12"} <= {type(part).__name__ for part in labels.kernel_.walk()}
    numeric = X[["a", "b"]].to_numpy()
    kernels = [
        gm.NystromFeatures(word, rank=9).fit(numeric).kernel_
        for word in ("rbf + matern12", "rbf", "matern12")
    ]
    assert_allclose(kernels[0](numeric), kernels[1](numeric) + 0.05 * kernels[2](numeric), rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("matern53", "matern53"),
        ("rbf + mattern", "mattern"),
        ("rbf + Linear()", r"Linear\(\)"),
        ("rbf +", ""),
    ],
)
def test_a_word_that_is_no_kernel_is_answered_with_those_that_are(text, wrong):
    for estimator in (gm.GPRegressor(text), gm.GPClassifier(text), gm.FourierFeatures(text)):
        with pytest.raises(ParameterError, match=f'\'{wrong}\' is no word .* "rbf", .*"matern52"'):
            estimator.fit(np.eye(4), [0, 1, 0, 1])


def test_a_kernel_may_be_given_as_text(tmp_path):
    X = np.linspace(0, 1, 10)[:, None]
    text = "2.0 * RBF(0.5) + Linear()"
    gp = gm.GPRegressor(text, optimize=False).fit(X, X[:, 0])
    assert gp.kernel_ == 2.0 * gm.RBF(0.5) + gm.Linear()
    gp.save(tmp_path / "m.gm")
    assert gm.load(tmp_path / "m.gm").kernel == text
    with pytest.raises(KernelTextError, match="Did you mean RBF"):
        gm.GPRegressor("RBFF(0.5)").fit(X, X[:, 0])
    with pytest.raises(ParameterError, match='Give a word \\("rbf", "matern12"'):
        gm.GPRegressor(3.0).fit(X, X[:, 0])
