"""The bound of deep models: one layer is SVGP, more are unbiased over draws and batches; gradients; KL."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.deep import bound
from gramian.deep.bound import LayerWeights, batch_of, programs
from gramian.deep.layers import Layer, pushed, shape_of
from gramian.deep.scheme import Deep, DeepVariational, last_of
from gramian.features.nystrom import LEAST_JITTER
from gramian.inference import Data, Model
from gramian.inference.model import Deeper
from gramian.inference.svgp.bound import LEAST, VariationalWeights, all_rows
from gramian.inference.svgp.inducing import SparseVariational
from gramian.kernels import RBF, Matern52
from gramian.likelihoods import Bernoulli, Gaussian, Heteroscedastic, Poisson, Softmax, StudentT
from gramian.means import ConstantMean
from gramian.params.tree import leaves

M = 7  # inducing points


def some_weights(m: int, rng: np.random.Generator) -> VariationalWeights:
    A = rng.standard_normal((m, m))
    return VariationalWeights.of(np.asfortranarray(np.tril(np.eye(m) + A @ A.T)), rng.standard_normal(m))


def rows_for(likelihood, X: np.ndarray, rng: np.random.Generator, gaps: bool = False) -> Data:
    if isinstance(likelihood, Gaussian):
        Y = np.column_stack([np.sin(X[:, 0]), 3 * X[:, 1]]) + 0.1 * rng.standard_normal((len(X), 2))
        if gaps:
            Y[3, 0] = Y[5, 1] = np.nan
        return Data(X, Y, np.array([1.0, 2.0]), rng.uniform(0.01, 0.1, len(X)))
    real = isinstance(likelihood, (Heteroscedastic, StudentT))
    y = X[:, [0]] if real else rng.integers(0, max(likelihood.latents, 2), (len(X), 1)).astype(float)
    y = np.hstack([y, np.ones((len(X), len(likelihood.columns) - 1))])
    return Data(X, y, likelihood.scales(1.5))


def model_for(likelihood, layers: int = 1) -> Model:
    L = 2 if isinstance(likelihood, Gaussian) else likelihood.latents
    mean = ConstantMean(np.linspace(-0.2, 0.3, L)) if L > 1 else ConstantMean(0.1)
    kernels = [1.3 * RBF([0.8, 1.2]), 0.4 * Matern52([1.0, 1.1]), 0.7 * RBF([1.5, 0.9])][:layers]
    return Model(
        kernels[0], mean, likelihood, deeper=tuple(Deeper(k, 2 + i) for i, k in enumerate(kernels[1:]))
    )


def start(layers: int, data: Data, q, rng: np.random.Generator, width: int | None = None) -> DeepVariational:
    """Points and inner weights at random."""
    method = Deep(layers=(Layer(width=width),) * layers, n_inducing=M)
    shape = shape_of(data.X, np.ones(1), method.layers, ())
    Z = pushed(shape, rng.standard_normal((M, data.X.shape[1])))
    widths = [len(c) for c in shape.maps.c]
    mu = tuple(0.5 * rng.standard_normal((M, W)) for W in widths)
    T = tuple(0.3 * rng.standard_normal((W, M, M)) - np.eye(M) for W in widths)
    wiring, maps = shape.wiring, shape.maps
    told = tuple(w.passed for w in wiring), tuple(w.order for w in wiring)
    return DeepVariational(Z, mu, T, maps.A, maps.c, maps.t, wiring[0].moved, *told, *last_of(q))


def stepped(found: DeepVariational, model: Model, data: Data, noise, share: float = 1.0, jitter=LEAST_JITTER):
    with programs():
        return bound.step(
            *(found.wiring, model.bare(), found.weights, found.maps(data.scale), found.last),
            *(batch_of(data), noise, share, jitter, 0.0),
        )


LIKELIHOODS = [
    Gaussian([0.05, 0.1], (1.0, 4.0)),
    Bernoulli(),
    Softmax(3),
    StudentT(4.0, 0.3),
    Heteroscedastic(),
    Poisson(),
]


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda own: type(own).__name__)
def test_one_layer_is_svgp(likelihood, rng):
    """Value, gradients by all parameters and points, and the sums of the natural gradient, to rounding."""
    X = rng.standard_normal((40, 2))
    model, data = model_for(likelihood), rows_for(likelihood, X, rng)
    L = len(data.scale) if likelihood.conjugate else likelihood.latents
    q = [some_weights(M, rng) for _ in range(L)]
    found = start(1, data, q, rng)
    jitter = LEAST_JITTER if likelihood.conjugate else LEAST
    made = stepped(found, model, data, (), jitter=jitter)
    with SparseVariational(found.Z, learned=True).bound(model, data) as known:
        sums = known.sums(q, all_rows(data), gradient=True, signed=False)
        *by_model, by_Z = known.gradient(sums)
    assert_allclose(float(made.value), sums.value, rtol=1e-11)
    for mine, theirs in zip(leaves(made.by_model), by_model, strict=True):
        assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6 * max(1.0, np.max(np.abs(theirs))))
    assert_allclose(made.by_weights.Z[0], by_Z, rtol=1e-6, atol=1e-6 * np.max(np.abs(by_Z)))
    for k in range(L):
        assert_allclose(np.tril(made.S[k]), sums.S[k], rtol=1e-8, atol=1e-8)
        assert_allclose(made.b[k], sums.b[k], rtol=1e-8, atol=1e-8)


def test_entries_not_observed_are_left_out(rng):
    likelihood = LIKELIHOODS[0]
    data = rows_for(likelihood, rng.standard_normal((30, 2)), rng)
    gone = dataclasses.replace(data, Y=data.Y.copy())
    gone.Y[[3, 5]] = np.nan
    model, q = model_for(likelihood, 2), [some_weights(M, rng) for _ in range(2)]
    found, kept = start(2, data, q, rng), np.delete(np.arange(30), [3, 5])
    noise = tuple(rng.standard_normal((3, 30, W)) for W in found.widths)
    with_gaps = stepped(found, model, gone, noise)
    without = stepped(found, model, data.take(kept), tuple(z[:, kept] for z in noise))
    assert_allclose(float(with_gaps.value), float(without.value), rtol=1e-12)
    for mine, theirs in zip(leaves(with_gaps.by_model), leaves(without.by_model), strict=True):
        assert_allclose(mine, theirs, rtol=1e-8)


@pytest.mark.parametrize("width", [None, 1, 3])
@pytest.mark.parametrize("layers", [2, 3])
def test_gradients_are_those_of_differences(layers, width, rng):
    """Of a bound whose draws are held, by every parameter and some weights of every kind."""
    likelihood, X = Gaussian(0.1), rng.standard_normal((12, 2))
    model = model_for(likelihood, layers)
    if width is not None:  # deeper layers see other columns
        wide = 1.0 * RBF(1.2)
        model = dataclasses.replace(model, deeper=tuple(Deeper(wide, 2 + k) for k in range(layers - 1)))
    data = Data(X, np.sin(X[:, [0]]), np.array([1.0]))
    model = dataclasses.replace(model, mean=ConstantMean(0.1))
    found = start(layers, data, [some_weights(M, rng)], rng, width)
    noise = tuple(rng.standard_normal((4, 12, W)) for W in found.widths)

    def value(model: Model, weights: LayerWeights) -> float:
        moved = dataclasses.replace(found, Z=weights.Z, mu=weights.mu, T=weights.T)
        made = stepped(moved, model, data, noise, jitter=1e-6)
        return float(made.value) - float(made.divergence)

    made, h = stepped(found, model, data, noise, jitter=1e-6), 1e-5
    for (path, parameter), slope in zip(model.parameters().items(), leaves(made.by_model), strict=True):
        unit = np.zeros(parameter.value.shape)
        unit.reshape(-1)[0] = h
        ends = [model.with_values({path: parameter.value + s * unit}) for s in (1, -1)]
        difference = (value(ends[0], found.weights) - value(ends[1], found.weights)) / (2 * h)
        assert_allclose(np.ravel(slope)[0], difference, rtol=2e-4, atol=1e-5, err_msg=path)
    for kind in ("Z", "mu", "T"):
        for k, array in enumerate(getattr(found.weights, kind)):
            at = tuple(s - 1 for s in array.shape)  # the last entry: on the diagonal of T
            ends = []
            for s in (1, -1):
                new = array.copy()
                new[at] += s * h
                arrays = list(getattr(found.weights, kind))
                arrays[k] = new
                ends.append(value(model, found.weights._replace(**{kind: tuple(arrays)})))
            slope = np.asarray(getattr(made.by_weights, kind)[k])[at]
            assert_allclose(
                slope, (ends[0] - ends[1]) / (2 * h), rtol=2e-4, atol=1e-5, err_msg=f"{kind}[{k}]"
            )


def test_the_divergence_is_that_of_gaussians(rng):
    """Against log det and trace of dense matrices, summed over outputs."""
    mu, T = rng.standard_normal((M, 2)), 0.3 * rng.standard_normal((2, M, M))
    with programs():
        found, R = float(bound.divergence(mu, T)), np.asarray(bound.roots(T))
    total = 0.0
    for k in range(2):
        S = R[k] @ R[k].T
        assert np.array_equal(R[k], np.tril(R[k]))
        assert np.all(np.diagonal(R[k]) > 0)
        total += 0.5 * (np.trace(S) + mu[:, k] @ mu[:, k] - M - np.linalg.slogdet(S)[1])
    assert_allclose(found, total, rtol=1e-12)


def test_batches_and_draws_are_unbiased(rng):
    """The mean over 400 batches of 10 of 40 rows with 2 draws each is the bound of all rows with 20,000
    draws, within five standard errors: by chance one time in a million."""
    likelihood, X = Gaussian(0.1), rng.standard_normal((40, 2))
    data = Data(X, np.sin(2 * X[:, [0]]), np.array([1.0]))
    model = dataclasses.replace(model_for(likelihood, 2), mean=ConstantMean(0.1))
    found = start(2, data, [some_weights(M, rng)], rng)
    values = []
    for _ in range(400):
        at = np.sort(rng.choice(40, 10, replace=False))
        noise = tuple(rng.standard_normal((2, 10, W)) for W in found.widths)
        values.append(float(stepped(found, model, data.take(at), noise, share=4.0).value))
    noise = tuple(rng.standard_normal((20_000, 40, W)) for W in found.widths)
    with programs():
        told = found.wiring, model.bare(), found.weights, found.maps(data.scale), found.last
        terms = np.asarray(bound.row_terms(*told, batch_of(data), noise, LEAST_JITTER, 0.0))
    gap = np.mean(values) - np.mean(terms.sum(axis=1))
    error = np.hypot(np.std(values) / np.sqrt(400), np.std(terms.sum(axis=1)) / np.sqrt(20_000))
    assert abs(gap) < 5 * error
    assert np.std(values) > 10 * error  # there was something to average


def test_inner_layers_that_are_certain_and_zero_leave_the_shallow_bound(rng):
    """With identity means, no inner variance and inner weights of the prior: one layer's bound at the same
    points."""
    likelihood, X = LIKELIHOODS[0], rng.standard_normal((30, 2))
    data, shallow = rows_for(likelihood, X, rng), model_for(likelihood)
    q = [some_weights(M, rng) for _ in range(2)]
    one = start(1, data, q, np.random.default_rng(3))
    deep = dataclasses.replace(
        shallow, kernel=1e-14 * RBF(1.0), deeper=(Deeper(1e-14 * RBF(1.0), 2), Deeper(shallow.kernel, 3))
    )
    found = start(3, data, q, np.random.default_rng(3))
    still = tuple(np.zeros_like(own) for own in found.mu), tuple(np.zeros_like(own) for own in found.T)
    found = dataclasses.replace(found, mu=still[0], T=still[1])
    noise = tuple(rng.standard_normal((3, 30, W)) for W in found.widths)
    made = stepped(found, deep, data, noise)
    # R = I: no divergence from the prior
    assert_allclose(float(made.divergence), 0.0, atol=1e-12)
    assert_allclose(float(made.value), float(stepped(one, shallow, data, ()).value), rtol=1e-5)


def test_a_full_natural_step_on_all_rows_is_the_optimum_of_the_last_layer(rng):
    """Under Gaussian noise, with draws that are held: no other q of the last layer has a higher bound."""
    likelihood, X = Gaussian(0.1), rng.standard_normal((25, 2))
    data = Data(X, np.sin(2 * X[:, [0]]), np.array([1.0]))
    model = dataclasses.replace(model_for(likelihood, 2), mean=ConstantMean(0.1))
    found = start(2, data, [VariationalWeights.prior(M)], rng)
    noise = tuple(rng.standard_normal((3, 25, W)) for W in found.widths)

    def height(q: VariationalWeights):
        mu, root, apart = last_of([q])
        made = stepped(dataclasses.replace(found, last_mu=mu, last_root=root), model, data, noise)
        return float(made.value) - apart, made

    before, made = height(VariationalWeights.prior(M))
    S, b = np.asfortranarray(np.tril(made.S[0])), np.asarray(made.b[0])
    best = VariationalWeights.prior(M).moved(S, b, 1.0)
    value, again = height(best)
    assert value > before + 1.0
    assert best.distance(np.asfortranarray(np.tril(again.S[0])), np.asarray(again.b[0])) < 1e-9
    for _ in range(5):
        other = VariationalWeights.of(best.B, best.h + 0.1 * rng.standard_normal(M))
        assert height(other)[0] < value
