"""Kernels on the outputs of networks: the networks' formulas, rivals, and the guard of a fit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import ParameterError
from gramian.kernels.deep import Plain
from gramian.testing import check_kernel


@pytest.mark.parametrize(
    "kernel",
    [
        gm.DeepKernel(gm.RBF(1.0), gm.MLP(3, (4, 2))),
        gm.DeepKernel(gm.Linear(), Plain(3, 0.5, spread=[1.0, 2.0, 3.0])),
    ],
    ids=str,
)
def test_kernel_keeps_the_contract(kernel):
    check_kernel(kernel)


def test_an_image_network_keeps_the_contract(rng):
    check_kernel(gm.DeepKernel(gm.RBF(1.0), gm.CNN((4, 4), 2, (2, 3), 2)), rng.standard_normal((12, 32)))


NAMES = ["a", "b", "c"]


def test_features_are_those_of_the_layers(rng):
    X, network = rng.standard_normal((5, 3)), gm.MLP(3, (4, 2), seed=3)
    w = network.weights.value
    hidden = np.tanh(X @ w[:12].reshape(3, 4) / np.sqrt(3) + w[12:16])
    features = hidden @ w[16:24].reshape(4, 2) / 2 + w[24:]
    assert len(w) == 26
    assert_allclose(gm.DeepKernel(gm.RBF(0.7), network)(X), gm.RBF(0.7)(features), rtol=1e-12)


def test_convolutions_and_averages(rng):
    X, network = rng.standard_normal((3, 4, 6, 2)), gm.CNN((4, 6), 2, (3,), 2)
    w = network.weights.value
    filters, bias = w[:54].reshape(3, 3, 2, 3) / np.sqrt(18), w[54:57]
    padded = np.pad(X, [(0, 0), (1, 1), (1, 1), (0, 0)])
    A = sum(padded[:, a : a + 4, b : b + 6] @ filters[a, b] for a in range(3) for b in range(3)) + bias
    A = A / (1 + np.exp(-A))
    A = A.reshape(3, 2, 2, 3, 2, 3).mean(axis=(2, 4)).reshape(3, -1)
    features = A @ w[57:93].reshape(18, 2) / np.sqrt(18) + w[93:]
    assert_allclose(gm.DeepKernel(gm.RBF(1.0), network)(X.reshape(3, -1)), gm.RBF(1.0)(features), rtol=1e-10)


def test_rivals_have_no_network_or_a_linear_head(rng):
    X = np.array([5.0, 0.0, -2.0]) + np.array([10.0, 0.1, 1.0]) * rng.standard_normal((50, 3))
    deep = gm.DeepKernel(gm.RBF([0.5, 2.0]), gm.MLP(3, (4, 2))).suited(X, NAMES)
    (_, plain), (_, head) = deep.rivals(X, NAMES)
    standard = (X - X.mean(axis=0)) / X.std(axis=0) * np.sqrt(2 / 3)
    assert_allclose(plain(X), gm.RBF(1.0)(standard), rtol=1e-10)
    assert np.linalg.matrix_rank(head(X), tol=1e-8) == 2
    assert plain.rivals(X, NAMES) == ()


def test_networks_on_some_columns_see_those_alone(rng):
    X = np.array([1.0, 10.0, 100.0]) * rng.standard_normal((20, 3))
    deep = gm.DeepKernel(gm.RBF(1.0), gm.MLP(2, (3, 1)))
    written = 2.0 * deep.on("c", "a") + gm.Linear().on("b")
    suited = written.suited(X, NAMES)
    expected = deep.suited(X[:, [2, 0]], ["c", "a"]).rivals(X[:, [2, 0]], ["c", "a"])
    for (name, rival), (same, own) in zip(suited.rivals(X, NAMES), expected, strict=True):
        assert name == same
        assert rival == 2.0 * own.on("c", "a") + gm.Linear().on("b")


# The guard. -------------------------------------------------------------------------------------------------


def step(rng, n):
    """Flat on both sides of a slanting line: what a network says well, and an RBF does not."""
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.where(X @ [1.0, -1.0, 0.5] > 0, 1.0, -1.0) + 0.05 * rng.standard_normal(n)


def test_a_network_is_taken_where_held_out_rows_want_it(tmp_path, rng):
    X, y = step(rng, 160)
    gp = gm.GPRegressor(1.0 * gm.DeepKernel(gm.RBF(1.0), gm.MLP(3, (8, 1))), random_state=0).fit(X, y)
    told = gp.outcome_.choice
    assert "the density it gives to 40 rows, from 120 of 160" in told[0]
    assert "without its network" not in told[0]
    assert "the kernel without its network -" in told[1]
    X_new, y_new = step(rng, 200)
    bare = gm.GPRegressor(1.0 * gm.RBF(1.0), random_state=0).fit(X, y)
    assert gp.score(X_new, y_new) > bare.score(X_new, y_new)
    gp.save(tmp_path / "deep.gp")
    assert np.array_equal(gm.load(tmp_path / "deep.gp").predict(X_new), gp.predict(X_new))
    assert len(gp.summary()) < 10_000


def test_a_network_is_refused_where_it_only_memorises(rng):
    X = rng.standard_normal((60, 6))
    y = np.sin(X[:, 0]) + 0.5 * rng.standard_normal(60)
    gp = gm.GPRegressor(1.0 * gm.DeepKernel(gm.RBF(1.0), gm.MLP(6, (40, 4))), random_state=0).fit(X, y)
    assert not gp.outcome_.choice[0].endswith("the deep kernel")
    assert "the deep kernel -" in gp.outcome_.choice[1]  # so much worse, in nats a row
    assert "RBF" not in str(gp.kernel_) or "MLP" not in str(gp.kernel_)


def test_labels_are_guarded_too(rng):
    X, y = step(rng, 80)
    gp = gm.GPClassifier(4.0 * gm.DeepKernel(gm.RBF(1.0), gm.MLP(3, (6, 1))), random_state=0).fit(X, y > 0)
    assert "to 20 rows, from 60 of 80" in gp.outcome_.choice[0]
    assert gp.score(X, y > 0) > 0.9


def test_few_rows_have_no_network(rng):
    X = rng.standard_normal((12, 3))
    gp = gm.GPRegressor(gm.DeepKernel(gm.RBF(1.0), gm.MLP(3)), random_state=0).fit(X, X[:, 0])
    assert "12 rows are too few to hold some out" in gp.outcome_.choice[0]


def test_units_do_not_matter(rng):
    X = rng.standard_normal((20, 3))
    moved = 1000.0 * X + np.array([5.0, 0.0, -300.0])
    deep = gm.DeepKernel(gm.RBF(1.0), gm.MLP(3, (3, 2)))
    for here, there in zip(_all(deep, X), _all(deep, moved), strict=True):
        assert_allclose(here(X), there(moved), rtol=1e-10)


def _all(deep, X):
    suited = deep.suited(X, NAMES)
    return [suited, *(kernel for _, kernel in suited.rivals(X, NAMES))]


def test_a_kernel_that_is_not_fitted_is_left_alone(rng):
    X, kernel = rng.standard_normal((30, 3)), gm.DeepKernel(gm.RBF(1.0), gm.MLP(3))
    gp = gm.GPRegressor(kernel, optimize=False).fit(X, X[:, 0])
    assert gp.kernel_ == kernel
    assert gp.outcome_.choice == ()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gm.DeepKernel(gm.RBF(1.0), np.tanh), "DeepKernel needs a network, such as MLP"),
        (lambda: gm.DeepKernel(1.0, gm.MLP(3)), "DeepKernel needs a kernel for the features"),
        (lambda: gm.DeepKernel(gm.RBF([1.0, 1.0, 1.0]), gm.MLP(3, (4, 2))), "lengthscale has 3 values"),
        (lambda: gm.MLP(0), "MLP: inputs must be a whole number from 1 on"),
        (lambda: gm.MLP(3, ()), "MLP: widths must name one layer at least"),
        (lambda: gm.MLP(3, weights=[1.0]), r"MLP has 194 weights and biases, but \(1,\) were given"),
        (lambda: gm.CNN((3, 8)), "CNN: 2 layers of filters halve an image as often"),
        (
            lambda: gm.DeepKernel(gm.RBF(1.0), gm.MLP(3))(np.zeros((2, 4))),
            r"for 3 columns, but the data have 4. Give MLP\(4, ...\)",
        ),
        (lambda: gm.DeepKernel(gm.RBF(1.0), gm.CNN(8))(np.zeros((2, 4))), "images of 8 x 8 pixels"),
    ],
)
def test_impossible_networks_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
