"""MCMC against exact inference, a grid, and importance sampling; its coordinates and priors against their
definitions."""

from __future__ import annotations

import dataclasses
import sys
import time
from functools import cache

import jax
import numpy as np
import pytest
from arviz_stats.base import array_stats
from numpy.testing import assert_allclose
from scipy.special import log_ndtr, logsumexp

import gramian as gm
from gramian import RBF, Constant, Matern32, RationalQuadratic, clock
from gramian.engines import Exact, Nystrom
from gramian.engines.base import Workspace
from gramian.errors import ParameterError
from gramian.features.fourier import FourierBasis
from gramian.features.nystrom import NystromBasis
from gramian.fitting import Objective
from gramian.inference import Data, Model, closed
from gramian.inference.mcmc import sampling
from gramian.inference.mcmc.blocks import Point, Surface, _value, given, slice_along
from gramian.inference.mcmc.chains import Chains, ask_packages
from gramian.inference.mcmc.method import MCMC, sample_hyper, sample_latent
from gramian.inference.mcmc.mixture import Mixture
from gramian.inference.mcmc.sampling import Draws, _last_of, made_and_kept
from gramian.inference.mcmc.traced import CurveSites, problem, to_latent
from gramian.kernels import Kernel
from gramian.likelihoods import Gaussian, Likelihood
from gramian.likelihoods.binary import Bernoulli
from gramian.likelihoods.categorical import Softmax
from gramian.means import ConstantMean, ZeroMean
from gramian.params import (
    Gamma,
    HalfNormal,
    InverseGamma,
    LogNormal,
    Normal,
    ParameterSpace,
    Prior,
    Uniform,
    Value,
    fixed,
    param,
)
from gramian.testing import check_posterior
from tests.params.test_params import OwnLogNormal, OwnPositive, PlainNumpy

RNG = np.random.default_rng(7)
X = np.sort(RNG.uniform(-2, 2, (15, 1)), axis=0)
LABELS = (np.sin(2 * X[:, 0]) + 0.7 * RNG.standard_normal(15) > 0).astype(float)
KERNEL = fixed(4.0) * RBF(param(0.8, prior=LogNormal(-0.2, 0.5)))
PROBIT = Model(KERNEL, ZeroMean(), Bernoulli("probit"))
BINARY = Data(X, LABELS[:, None], np.ones(1))


def _within(chains_of: np.ndarray, truth: np.ndarray) -> None:
    """Means over (chains, draws, ...) within 5 standard errors, with the effective number of draws: odds of
    2e6 to 1 an entry."""
    for index in np.ndindex(chains_of.shape[2:]):
        draws = chains_of[(slice(None), slice(None), *index)]
        error = np.std(draws) / np.sqrt(float(array_stats.ess(draws)))
        assert abs(np.mean(draws) - truth[index]) < 5 * error, (index, np.mean(draws), truth[index], error)


def _at_rows(model: Model, data: Data, chains: Chains) -> np.ndarray:
    """f at the rows for every draw, from its definition but for mean and scale: (chains, draws, n)."""
    lengthscale = chains.values.get("kernel.lengthscale")
    K = (
        model.kernel(data.X)
        if lengthscale is None
        else 4 * np.exp(-0.5 * (X - X.T) ** 2 / lengthscale[:, :, None, None] ** 2)
    )
    K = K + 1e-8 * np.mean(np.diagonal(K, axis1=-2, axis2=-1), axis=-1)[..., None, None] * np.eye(15)
    return (np.linalg.cholesky(K) @ chains.latent)[..., 0]


@cache
def _probit(sampler: str) -> Chains:
    return sample_latent(PROBIT, BINARY, np.random.default_rng(3), warmup=200, draws=400, sampler=sampler)


@cache
def _reference() -> tuple[float, np.ndarray]:
    """E log lengthscale and E f by a grid over the one and importance sampling from a Gaussian at the mode
    for the other: no Markov chain."""
    rng, sign = np.random.default_rng(11), 2 * LABELS - 1
    u = np.linspace(-2.2, 1.8, 41)
    logs, means = [], []
    for at in np.exp(u):
        K = 4 * np.exp(-0.5 * (X - X.T) ** 2 / at**2) + 4e-8 * np.eye(15)
        R, v = np.linalg.cholesky(K), np.zeros(15)
        for _ in range(40):  # Newton, damped
            f = R @ v
            ratio = np.exp(-0.5 * f**2 - log_ndtr(sign * f)) / np.sqrt(2 * np.pi)
            W = ratio * (ratio + sign * f)
            A = np.eye(15) + R.T @ (W[:, None] * R)
            v = v + 0.7 * np.linalg.solve(A, R.T @ (sign * ratio) - v)
        root = np.linalg.cholesky(np.linalg.inv(A))
        z = rng.standard_normal((4000, 15)) * np.sqrt(1.3)  # wider than the mode's curvature, for the tails
        V = v + z @ root.T
        F = V @ R.T
        weight = np.sum(log_ndtr(sign * F), axis=1) - 0.5 * np.sum(V**2, axis=1) + np.sum(z**2, axis=1) / 2.6
        logs.append(logsumexp(weight) + np.sum(np.log(np.diag(root))) - 0.5 * ((np.log(at) + 0.2) / 0.5) ** 2)
        p = np.exp(weight - logsumexp(weight))
        means.append(p @ F)
    p = np.exp(np.array(logs) - logsumexp(logs))
    return float(p @ u), p @ np.array(means)


@pytest.mark.parametrize("sampler", ["blocks", "nuts", "ess", "slices"])
def test_a_probit_model_agrees_with_importance_sampling_over_a_grid(sampler):
    chains = _probit(sampler)
    log_lengthscale, f = _reference()
    _within(np.log(chains.values["kernel.lengthscale"]), np.array(log_lengthscale))
    _within(_at_rows(PROBIT, BINARY, chains), f)
    # Eight half chains with some 60 independent draws in their tails: 60 (R-hat^2 - 1) is a chi^2_7 / 7.
    # Of 20 numbers one is beyond R-hat = 1.03 once in a hundred times, and beyond 1.01 nearly always.
    assert chains.worst_rhat < 1.03
    assert chains.divergences == 0
    assert all(note.startswith("R-hat") for note in chains.notes)
    assert min(chains.ess.values()) > 400


def test_the_mixture_keeps_the_contract_and_the_law_of_total_variance():
    mixture = Mixture.of(PROBIT, BINARY, _probit("nuts"), most=20)
    new = np.linspace(-3, 3, 7)[:, None]
    assert mixture.n_components == 20
    check_posterior(mixture, new)
    means, variances = (np.stack(parts) for parts in zip(*mixture.moments_of_draws(new), strict=True))
    mean, var = mixture.moments(new)
    assert_allclose(mean, means.mean(axis=0), rtol=1e-12)
    assert_allclose(var, variances.mean(axis=0) + means.var(axis=0), rtol=1e-10)
    # Far away nothing is known but the prior, of which the variance is 4; at the rows f is known given a
    # draw.
    assert_allclose(mixture.moments(np.array([[50.0]]))[1], 4.0, rtol=1e-12)
    assert np.all(mixture.component(3).moments(X)[1] < 1e-6)
    # the jitter: 2e-4
    assert_allclose(
        mixture.component(0).mean(X)[:, 0], _at_rows(PROBIT, BINARY, _probit("nuts"))[0, 0], atol=1e-3
    )


def test_the_same_seed_gives_the_same_draws_whatever_the_clock():
    told: list[float] = []
    short = {"chains": 4, "warmup": 30, "draws": 10}
    a = sample_latent(PROBIT, BINARY, np.random.default_rng(5), **short, report=told.append)
    b = sample_latent(
        PROBIT, BINARY, np.random.default_rng(5), **short, report=lambda share: time.sleep(0.02)
    )
    assert np.array_equal(a.latent, b.latent)
    assert np.array_equal(a.values["kernel.lengthscale"], b.values["kernel.lengthscale"])
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len({float(chain[0, 0, 0]) for chain in a.latent}) == 4  # chains of their own


def test_a_deadline_leaves_the_draws_that_there_are():
    chains = sample_latent(
        PROBIT, BINARY, np.random.default_rng(5), chains=4, warmup=300, draws=300, deadline=time.monotonic()
    )
    assert 0 < chains.n_draws < 300  # one piece, however late it is
    assert chains.warmup < 300
    assert chains.stopped == "time limit"
    assert "ended early" in chains.notes[0]
    assert "That is no posterior" in chains.notes[1]


def test_what_takes_too_long_to_compile_is_not_begun(monkeypatch):
    """What takes twelve times as long as the 2 s of what comes first may be half of the time that is left."""
    for deadline, taken in ((51.0, "nuts"), (49.0, "slices"), (None, "nuts")):
        times = iter([0.0, 2.0])
        monkeypatch.setattr(clock, "now", lambda times=times: next(times))
        assert sampling.in_time("nuts", lambda: 7, deadline, 12.0) == (7, taken)


def test_chains_without_time_to_compile_draw_by_slices():
    data = Data(X, np.sin(2 * X), np.ones(1))
    model = Model(RBF(1.0), ZeroMean(), Gaussian(fixed(0.1)))
    hyper = sample_hyper(model, data, np.random.default_rng(0), chains=2, warmup=5, draws=4, deadline=-1.0)
    latent = sample_latent(
        PROBIT, BINARY, np.random.default_rng(0), chains=2, warmup=5, draws=4, deadline=-1.0
    )
    assert hyper.sampler == latent.sampler == "slices"
    assert np.all(np.isfinite(latent.latent))


def test_ctrl_c_leaves_the_draws_that_there_are():
    def impatient(share: float) -> None:
        if share > 0.3:
            raise KeyboardInterrupt

    chains = sample_latent(
        PROBIT, BINARY, np.random.default_rng(5), chains=4, warmup=40, draws=200, report=impatient
    )
    assert 4 <= chains.n_draws < 200
    assert chains.stopped == "interrupted"


def test_a_fit_whose_chains_were_stopped_says_so(monkeypatch):
    original = MCMC.infer

    def impatient(self, model, data, report=lambda share: None):
        def stop(share):
            if share > 0.3:
                raise KeyboardInterrupt

        return original(self, model, data, stop)

    monkeypatch.setattr(MCMC, "infer", impatient)
    chains = MCMC(chains=2, warmup=20, draws=100)
    gp = gm.GPClassifier(RBF(1.0), inference=chains).fit(X, BINARY.Y[:, 0])
    assert gp.outcome_.stopped == "interrupted"
    assert not gp.outcome_.converged
    assert any("ended early (interrupted)" in note for note in gp.outcome_.notes)


def test_with_gaussian_noise_latent_chains_are_exact_inference():
    y = np.sin(2 * X) + 0.3 * RNG.standard_normal(X.shape)
    model = Model(fixed(1.5) * Matern32(fixed(0.9)), ConstantMean(fixed(0.2)), Gaussian(fixed(0.1)))
    data = Data(X, 3 * y, np.array([3.0]), noise_var=np.linspace(0.0, 0.3, 15))
    chains = sample_latent(model, data, np.random.default_rng(2), warmup=100, draws=400, sampler="ess")
    exact = closed(Exact()).infer(model, data).posterior
    f = 0.2 + 3 * _at_rows(model, data, chains)
    _within(f, exact.mean(X)[:, 0])
    _within((f - exact.mean(X)[:, 0]) ** 2, exact.var(X)[:, 0])
    assert chains.worst_rhat < 1.01
    assert chains.values == {}


@pytest.mark.parametrize("sampler", ["auto", "slices"])
def test_parameters_of_a_regression_agree_with_a_grid(sampler):
    y = np.sin(2 * X) + 0.3 * RNG.standard_normal(X.shape)
    # no prior: the default is LogNormal(0, 2)
    model, data = Model(RBF(1.0), ZeroMean(), Gaussian(fixed(0.1))), Data(X, y, np.ones(1))
    inferred = (
        MCMC(chains=4, warmup=200, draws=500, sampler=sampler)
        .prepared(model, data, np.random.default_rng(1))
        .infer(model, data)
    )
    u = np.linspace(-4, 6, 400)
    logs = [
        closed(Exact()).evidence(model.with_values({"kernel.lengthscale": at}), data, Workspace()).value
        for at in np.exp(u)
    ]
    p = np.exp(logs - 0.5 * (u / 2) ** 2 - np.max(logs))
    p /= p.sum()
    mixture = inferred.posterior
    assert isinstance(mixture, Mixture)
    assert mixture.chains is not None
    draws = np.log(mixture.chains.values["kernel.lengthscale"])
    _within(draws, np.array(p @ u))
    _within((draws - p @ u) ** 2, np.array(p @ (u - p @ u) ** 2))
    assert mixture.chains.worst_rhat < 1.01
    assert mixture.chains.sampler == ("nuts" if sampler == "auto" else sampler)
    assert inferred.outcome.converged
    assert str(inferred.evidence) == "not computed"
    assert np.isnan(inferred.evidence.value)
    # A component is the exact posterior at its parameters.
    first = {path: values[0] for path, values in mixture.values.items()}
    assert_allclose(
        mixture.component(0).mean(X),
        closed(Exact()).infer(model.with_values(first), data).posterior.mean(X),
        rtol=1e-12,
    )
    assert mixture.n_components == 100


def test_chains_go_on_until_they_agree():
    """20 draws cannot have 400 effective ones: the same chains go on, and the draws before are the ones they
    were."""
    once = sample_latent(PROBIT, BINARY, np.random.default_rng(5), warmup=30, draws=20)
    on = sample_latent(PROBIT, BINARY, np.random.default_rng(5), warmup=30, draws=20, rounds=3)
    assert (once.n_draws, on.n_draws) == (20, 60)
    assert np.array_equal(on.latent[:, :20], once.latent)
    assert any("effective draws" in note for note in once.notes)
    assert not once.settled


def test_long_chains_keep_every_second_draw(monkeypatch):
    """After four rounds: those of the first four that stay are the second, the fourth, ..., and a divergence
    between kept draws is not forgotten."""
    monkeypatch.setattr(sampling, "KEPT_DRAWS", 60)
    four = sample_latent(PROBIT, BINARY, np.random.default_rng(5), warmup=30, draws=15, rounds=4)
    six = sample_latent(PROBIT, BINARY, np.random.default_rng(5), warmup=30, draws=15, rounds=6)
    assert (four.n_draws, six.n_draws) == (60, 60)
    assert np.array_equal(six.latent[:, :30], four.latent[:, 1::2])
    assert np.array_equal(six.steps[:, :30], four.steps[:, ::2] + four.steps[:, 1::2])
    assert [made_and_kept(15, rounds) for rounds in (4, 6, 8)] == [(60, 60), (120, 60), (240, 60)]
    rows = np.arange(4.0)
    draws = Draws(
        rows[:, None],
        rows[:, None],
        rows,
        np.array([True, False, False, False]),
        rows,
        rows.astype(int),
        rows[:, None],
    )
    last = _last_of(2, draws)
    assert last.values.ravel().tolist() == [1.0, 3.0]
    assert not np.shares_memory(last.latent, draws.latent)  # which would be held with it
    assert last.divergent.tolist() == [True, False]
    assert last.acceptance.tolist() == [0.5, 2.5]


def test_few_draws_a_round_can_be_enough():
    """Four rounds of 20 could never have 100 effective draws: as many rounds are held as 400 draws take."""
    assert made_and_kept(20, 20) == (400, 400)
    assert made_and_kept(20, 22) == (480, 400)


def test_slices_draw_from_the_density_along_their_line():
    """A gamma's logarithm, skewed, from a start in its tail: mean digamma(2), variance trigamma(2)."""
    rng = np.random.default_rng(0)

    def density(t):
        return Point(t, float(2 * t[0] - np.exp(t[0])), None)

    here, draws = density(np.array([-6.0])), []
    for _ in range(4000):
        here, count = slice_along(density, here, np.array([0.8]), rng)
        draws.append(float(here.t[0]))
        assert count >= 1
    draws = np.array(draws[10:]).reshape(1, 2, -1)[0]
    _within(draws, np.array(1 - np.euler_gamma))
    _within((draws - 1 + np.euler_gamma) ** 2, np.array(np.pi**2 / 6 - 1))


@pytest.mark.parametrize("basis", [None, "landmarks"])
def test_the_blocks_have_the_density_of_the_coordinates(basis, rng):
    """Factors and density by LAPACK against the compiled ones, at a t where the sites have moved away from
    those at the centre; f = mu + G z."""
    model = Model(1.3 * RBF(0.7), ConstantMean(0.1), Softmax(2), (2.0 * Matern32(1.5),))
    data = Data(X, LABELS[:, None], np.array([1.0, 2.0]))
    made_of, change = (
        np.stack([rng.uniform(0.1, 2, (15, 2)), *rng.standard_normal((2, 15, 2))]),
        0.2 * rng.standard_normal((5, 3, 15, 2)),
    )
    with jax.enable_x64(True):
        made, t = problem(model, data, None if basis is None else NystromBasis(X[::2]))
        surface = Surface(t - 0.3, np.tril(rng.uniform(0.5, 1.0, (5, 5))), made_of, change)
        at, z = given(made, t, surface), rng.standard_normal(made.latent_shape)
        v, sites = at.v_of(z), surface.at(t)
        assert not np.allclose(sites.W, made_of[0])
        direct = jax.jit(made.log_density)(np.concatenate([t, z.ravel()]), sites)
        mu, H = at.affine
    # landmarks whiten by a factor of a condition of 1e8 or so, times epsilon, in two orders of summation
    assert_allclose(_value(made, t, at, v), direct, rtol=1e-8 if basis is None else 1e-7)
    assert_allclose(at.z_of(v), z, atol=1e-8)
    assert_allclose(
        mu + np.stack([z[:, k] @ np.asarray(G) for k, G in enumerate(H)], axis=1), at.f_of(v), atol=1e-8
    )


# Without chains. --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("basis", [None, "landmarks", "fourier"])
def test_coordinates_with_sites_have_the_same_density(basis, rng):
    model = Model(1.3 * RBF(0.7) + Constant(0.2), ConstantMean(0.1), Softmax(3))
    data = Data(X, np.arange(15.0)[:, None] % 3, np.array([1.0, 2.0, 0.5]))
    chosen = {
        None: None,
        "landmarks": NystromBasis(X[::2]),
        "fourier": FourierBasis.draw(model.kernel, 1, 12, rng=rng),
    }[basis]
    sites = CurveSites(rng.uniform(0, 2, (15, 3)), rng.standard_normal((15, 3)))

    def facts(t, z):
        """v and f of z; the density of (t, z), that of (t, v) from its definition, that of (t, v) as a
        position without sites, and the Jacobian."""
        here = made.at(t)
        roots = here.roots()
        parts = here.conditioned(roots, sites)
        v, _ = to_latent(parts, z)
        F = here.latent(roots, v)
        plain = (
            here.log_likelihoods(F).sum()
            - 0.5 * (v**2).sum()
            - 0.5 * v.size * np.log(2 * np.pi)
            + made.log_prior(t)
        )
        nothing = CurveSites(np.zeros((15, 3)), np.zeros((15, 3)))
        unsited = made.log_density(jax.numpy.concatenate([t, v.ravel()]), nothing)
        sited = made.log_density(jax.numpy.concatenate([t, z.ravel()]), sites)
        return v, F, roots[1], sited, plain, unsited, jax.jacfwd(lambda z: to_latent(parts, z)[0].ravel())(z)

    with jax.enable_x64(True):
        made, t = problem(model, data, chosen)
        z = rng.standard_normal(made.latent_shape)
        v, F, root, sited, plain, unsited, jacobian = (np.asarray(part) for part in jax.jit(facts)(t, z))
    assert_allclose(unsited, plain, rtol=1e-10)
    assert_allclose(sited, plain + np.linalg.slogdet(jacobian.reshape(z.size, z.size))[1], rtol=1e-8)
    # The features are those of the engines, and a component of the mixture gives f back.
    if chosen is not None:
        # a jitter of 1e-8 instead of 1e-12
        assert_allclose(root, 2.0 * chosen.at(model.kernel).block(X), atol=2e-3)
    chains = Chains({}, v[None, None], *(np.zeros((1, 1)) for _ in range(4)), np.zeros((1, 1, 15)))
    assert_allclose(Mixture.of(model, data, chains, chosen).mean(X), F, atol=2e-3)


def test_each_latent_may_have_a_kernel_of_its_own(rng):
    model = Model(RBF(0.7), ConstantMean(0.1), Softmax(2), (2.0 * Matern32(1.5),))
    data = Data(X, LABELS[:, None], np.ones(2))
    with jax.enable_x64(True):
        made, t = problem(model, data)
        v = rng.standard_normal((15, 2))
        F = np.asarray(jax.jit(lambda t, v: made.at(t).latent(made.at(t).roots(), v))(t, v))
    for k, kernel in enumerate((model.kernel, *model.others)):
        K = kernel(X)
        assert_allclose(
            F[:, k], 0.1 + np.linalg.cholesky(K + 1e-8 * K[0, 0] * np.eye(15)) @ v[:, k], rtol=1e-6, atol=1e-6
        )
    chains = Chains({}, v[None, None], *(np.zeros((1, 1)) for _ in range(4)), np.zeros((1, 1, 15)))
    mixture = Mixture.of(model, data, chains)
    assert_allclose(mixture.mean(X), F, atol=1e-3)
    assert mixture.cov(X[:3]).shape == (3, 3, 2)


PRIORS = [LogNormal(0.3, 0.7), HalfNormal(2.0), Gamma(2.5, 1.5), InverseGamma(2.0, 0.7), Normal(0.5, 2.0)]


@dataclasses.dataclass
class Unhashable(Prior):
    """Not frozen."""

    rate: float = 1.0

    def log_density(self, v):
        return -self.rate * v


class OwnRBF(Kernel):
    """As RBF, with a support of one's own."""

    lengthscale: Value = dataclasses.field(default=1.0, metadata={"support": OwnPositive()})

    def pair(self, x, z):
        return jax.numpy.exp(-0.5 * jax.numpy.sum(((x - z) / self.lengthscale) ** 2))


def test_ones_own_prior_and_support_are_searched_and_sampled_as_the_built_in_ones():
    """The same density and gradient in a search (MAP) and, in coordinates of chains, in MCMC."""
    own = Model(OwnRBF(param(0.6, prior=OwnLogNormal(-0.2, 0.5))), ZeroMean(), Gaussian(0.1))
    known = Model(RBF(param(0.6, prior=LogNormal(-0.2, 0.5))), ZeroMean(), Gaussian(0.1))
    data = Data(X, np.sin(X), np.ones(1))
    searched = [Objective(model, data, closed(Exact()))(np.array([-0.4, -2.0])) for model in (own, known)]
    assert_allclose(searched[0][0], searched[1][0], rtol=1e-12)
    assert_allclose(searched[0][1], searched[1][1], rtol=1e-10)
    t = np.array([-0.4, -2.0])
    densities = []
    with jax.enable_x64(True):
        for model in (own, known):
            made, start = problem(model, data, marginal=True)
            assert_allclose(start, [np.log(0.6), np.log(0.1)], rtol=1e-15)
            none = CurveSites(np.zeros((15, 1)), np.zeros((15, 1)))
            densities.append(jax.jit(jax.value_and_grad(made.log_density))(t, none))
    assert_allclose(densities[0][0], densities[1][0], rtol=1e-12)
    assert_allclose(densities[0][1], densities[1][1], rtol=1e-10)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (PlainNumpy(), "kernel.lengthscale has the support .* cannot be differentiated by JAX"),
        (Unhashable(), "which has no hash, .* dataclass"),
    ],
)
def test_a_prior_that_a_chain_cannot_use_is_refused_with_the_cure(prior, message):
    model = Model(RBF(param(0.6, prior=prior)), ZeroMean(), Gaussian(0.1))
    with pytest.raises(ParameterError, match=message):
        problem(model, Data(X, np.sin(X), np.ones(1)), marginal=True)


@pytest.mark.parametrize("prior", PRIORS)
def test_priors_and_jacobians_are_those_of_a_search(prior, rng):
    model = Model(
        RBF(param([0.6], prior=prior)), ConstantMean(param(0.4, prior=Normal(0.1, 0.5))), Gaussian(fixed(0.1))
    )
    with jax.enable_x64(True):
        made, t = problem(model, Data(X, X, np.ones(1)), marginal=True)
        for _ in range(3):
            at = t + rng.standard_normal(2)
            assert_allclose(
                jax.jit(made.log_prior)(at), ParameterSpace(model.parameters()).log_prior(at)[0], rtol=1e-12
            )


@pytest.mark.parametrize(
    "extra",
    [{"bounds": (0.2, 3.0)}, {"bounds": (0.2, 3.0), "prior": LogNormal(0, 1)}, {"prior": Uniform(0.2, 3.0)}],
)
def test_bounded_parameters_stay_inside_with_a_density_that_integrates(extra):
    """The density of t, integrated over the line, is the mass that the prior has between the bounds."""
    model = Model(RBF(param(0.6, **extra)), ZeroMean(), Gaussian(fixed(0.1)))
    with jax.enable_x64(True):
        made, t = problem(model, Data(X, X, np.ones(1)), marginal=True)
        grid = np.linspace(-30, 30, 6001)[:, None]
        values, logs = jax.jit(jax.vmap(lambda t: (made.values(t)[0], made.log_prior(t))))(
            np.concatenate([grid, t[None, :]])
        )
    values, density = np.asarray(values), np.exp(np.asarray(logs)[:-1])
    assert_allclose(values[-1], 0.6, rtol=1e-12)
    assert np.all((values >= 0.2 - 1e-12) & (values <= 3.0 + 1e-12))
    from scipy.stats import norm

    law = {True: (0.0, 1.0), False: (np.log(0.6), 2.0)}["prior" in extra]
    mass = (
        1.0
        if isinstance(extra.get("prior"), Uniform)
        else float(np.diff(norm(*law).cdf(np.log([0.2, 3.0])))[0])
    )
    assert_allclose(np.sum(density) * 0.01, mass, rtol=1e-6)


def test_the_marginal_density_is_the_evidence_with_any_engine(rng):
    """Two outputs of different scale and known noise, whole and with landmarks; log p of r = (y - m) / s as
    the engines have it."""
    Y = np.column_stack([np.sin(2 * X[:, 0]), 40 * X[:, 0] ** 2])
    model = Model(0.9 * RBF(0.8), ConstantMean([0.2, 3.0]), Gaussian(0.1, (1.0, 400.0)))
    data = Data(X, Y, np.array([0.7, 20.0]), rng.uniform(0, 0.2, 15))
    for engine in (Exact(), Nystrom(8)):
        prepared = closed(engine).prepared(model, data, np.random.default_rng(0))
        with jax.enable_x64(True):
            made, t = problem(model, data, prepared.engine.chosen_basis, marginal=True)
            nothing = CurveSites(np.zeros((15, 2)), np.zeros((15, 2)))
            value, slope = jax.jit(jax.value_and_grad(made.log_density))(t, nothing)
            prior, by_prior = jax.jit(jax.value_and_grad(made.log_prior))(t)
        evidence, gradients = prepared.evidence_and_gradient(model, data, Workspace())
        space = ParameterSpace(model.parameters())
        pulled = space.pullback(space.theta, dict(zip(model.parameters(), gradients, strict=True)))
        assert_allclose(value - prior, evidence.value, rtol=1e-6)
        assert_allclose(slope - by_prior, pulled, rtol=1e-4, atol=1e-4)


def test_diagnostics_see_chains_that_disagree():
    draws = np.random.default_rng(0).standard_normal((4, 200))
    draws[0] += 2.0
    zeros = np.zeros((4, 200))
    bad = Chains(
        {"a": draws},
        np.zeros((4, 200, 0, 1)),
        zeros,
        zeros > 0,
        zeros,
        zeros.astype(int),
        np.zeros((4, 200, 0)),
    )
    assert bad.worst_rhat > 1.2
    assert not bad.converged
    assert any("R-hat of a" in note for note in bad.notes)
    assert "R-hat" in str(bad)
    some = np.zeros((4, 200), dtype=bool)
    some[0, 3] = True
    good = Chains(
        {"a": draws - draws.mean(axis=1, keepdims=True)},
        bad.latent,
        zeros,
        some,
        zeros,
        zeros.astype(int),
        bad.log_likelihood,
    )
    assert good.divergences == 1
    assert "1 of 800 draws" in good.notes[0]


def test_an_arviz_object_holds_the_draws():
    pytest.importorskip("arviz")
    chains = _probit("ess")
    found = chains.inference_data()
    assert_allclose(found.posterior["kernel.lengthscale"].values, chains.values["kernel.lengthscale"])
    assert found.posterior["v"].shape == (4, 400, 15, 1)
    assert found.log_likelihood["y"].shape == (4, 400, 15)
    f = _at_rows(PROBIT, BINARY, chains)
    assert_allclose(chains.log_likelihood, log_ndtr((2 * LABELS - 1) * f), rtol=1e-5, atol=1e-7)
    assert {"lp", "diverging"} <= set(found.sample_stats)


class _Jump(Likelihood):
    def log_prob(self, y, f):
        return -abs(y - f)

    @property
    def smooth(self):
        return False


def test_what_cannot_be_is_refused(monkeypatch):
    with pytest.raises(ParameterError, match=r'no smooth function of f.*sampler="ess"'):
        sample_latent(Model(KERNEL, ZeroMean(), _Jump()), BINARY, np.random.default_rng(0))
    with pytest.raises(ParameterError, match='inference="laplace"'):
        MCMC().evidence_and_gradient(PROBIT, BINARY, Workspace())
    posterior = (
        closed(Exact()).infer(Model(KERNEL, ZeroMean(), Gaussian(0.1)), Data(X, X, np.ones(1))).posterior
    )
    with pytest.raises(ParameterError, match=r"arviz\.loo"):
        MCMC().cavities(PROBIT, BINARY, posterior)
    # no log p(y_i | f_i) for ArviZ
    with pytest.raises(ParameterError, match=r'compare_models\(\[estimator\], X, y, by="loo"\).*hyper="map"'):
        MCMC().cavities(Model(KERNEL, ZeroMean(), Gaussian(0.1)), Data(X, X, np.ones(1)), posterior)
    with pytest.raises(ParameterError, match="Use sample_latent"):
        sample_hyper(PROBIT, BINARY, np.random.default_rng(0))
    kernel = RationalQuadratic(0.5)
    basis = FourierBasis.draw(kernel, 1, 10, rng=np.random.default_rng(0))
    with pytest.raises(ParameterError, match="computed outside JAX"):
        problem(Model(kernel, ZeroMean(), Bernoulli()), BINARY, basis)
    with pytest.raises(ParameterError, match="draws=3"):
        MCMC(draws=3)
    with pytest.raises(ParameterError, match="sampler='gibbs'"):
        sample_latent(PROBIT, BINARY, np.random.default_rng(0), sampler="gibbs")
    with pytest.raises(ParameterError, match="nothing to draw"):
        sample_hyper(
            Model(RBF(fixed(1.0)), ZeroMean(), Gaussian(fixed(0.1))),
            Data(X, X, np.ones(1)),
            np.random.default_rng(0),
        )
    monkeypatch.setitem(sys.modules, "arviz", None)
    nothing = Chains({}, *(np.zeros((1, 1)) for _ in range(6)))
    with pytest.raises(ParameterError, match=r'the package arviz,.*pip install "gramian\[arviz\]"'):
        nothing.inference_data()
    monkeypatch.setitem(sys.modules, "arviz_stats.base", None)
    with pytest.raises(ParameterError, match=r'the package arviz-stats,.*pip install "gramian\[mcmc\]"'):
        ask_packages()


def test_draws_at_fixed_parameters_share_what_they_can():
    """The short way through one factor gives each draw's own process, dense and with features; and there are
    more than of sampled parameters."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(30, 2)), rng.normal(size=(7, 2))
    model = Model(fixed(1.5) * RBF(fixed(0.8)), ZeroMean(), Bernoulli())
    data = Data(X, (X[:, :1] > 0).astype(float), np.array([2.0]))
    for basis in (None, NystromBasis(X[:9].copy())):
        m = 30 if basis is None else 9
        mixture = Mixture(model, data, {}, rng.normal(size=(4, m, 1)), basis)
        for k, (mean, var) in enumerate(mixture.moments_of_draws(new)):
            own = mixture.component(k).moments(new)
            assert_allclose(mean, own[0], atol=1e-9)
            assert_allclose(var, own[1], atol=1e-9)
        assert_allclose(
            mixture.mean(new), np.mean([mixture.component(k).mean(new) for k in range(4)], axis=0), atol=1e-9
        )
