"""Predictions averaged over draws: a mixture of Gaussian processes, one a draw.

Given the parameters and the whitened latent variables v of a draw, f at the data is known, and at a new x it
is Gaussian:

    mean = m(x) + s k(x, X) R^-T v,    var = s^2 (k(x, x) - |R^-1 k(X, x)|^2),    R R' = K + jitter

(with features: m(x) + s phi(x)'v, and what the features leave out of the prior). Where f was integrated out,
a draw of the parameters gives the posterior of exact inference.

Draws are thinned evenly to at most COMPONENTS of all chains: neighbours in a chain tell much the same, and
100 independent draws leave a tenth of a posterior standard deviation as the error of a mean. Cost a
component: one factor of K, n^3 / 3, kept while all of them fit into KEEP_BYTES. Draws at one and the same
parameters (none was sampled) share the factor and the variance, so that there may be WITH_ONE_FACTOR of them:
100 say little about the tails of f.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from gramian.arrays import Array
from gramian.engines.dense import Exact
from gramian.engines.lowrank import LowRank
from gramian.errors import StateError
from gramian.features.base import Basis
from gramian.gram import tiles
from gramian.inference.base import RuleOnEngine
from gramian.inference.conjugate import Conjugate
from gramian.inference.mcmc.chains import Chains
from gramian.inference.mcmc.traced import JITTER
from gramian.inference.model import Data, Model
from gramian.kernels.base import Kernel
from gramian.likelihoods import Likelihood
from gramian.linalg.factor import factored, zeros_above
from gramian.linalg.state import Arrays, ObjectState, taken, typed_list
from gramian.linalg.threads import one_blas_thread
from gramian.processes.base import Process
from gramian.processes.posterior import Posterior
from gramian.processes.prior import GaussianProcess
from gramian.processes.stacked import side_by_side
from gramian.processes.state import Context
from gramian.processes.weights import FeaturePosterior

COMPONENTS, WITH_ONE_FACTOR = 100, 2000
KEEP_BYTES = 256 * 2**20


@dataclass(frozen=True, eq=False)
class Mixture(Process):
    """The average of one process a draw, each with equal weight. Plain arrays, so that it can be saved."""

    kind: ClassVar[str] = "mixture"
    many_kernels: ClassVar[bool] = True

    model: Model  # its structure, and the parameters that were held
    data: Data
    values: Mapping[str, Array]  # of the sampled parameters: (draws, ...)
    latent: Array  # v: (draws, m, L); m = 0 where f was integrated out
    basis: Basis | None = None
    chains: Chains | None = None  # where the draws are from
    _kept: dict[int, Process] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, model: Model, data: Data, chains: Chains, basis: Basis | None = None, most: int | None = None
    ) -> Mixture:
        """At most `most` draws of all chains, evenly thinned."""
        total = chains.n_chains * chains.n_draws
        most = min(most or (COMPONENTS if chains.values else WITH_ONE_FACTOR), total)
        at = np.unique(np.round(np.linspace(0, total - 1, most)).astype(int))

        def thinned(draws: Array) -> Array:
            return draws.reshape(total, *draws.shape[2:])[at]

        values = {path: thinned(draws) for path, draws in chains.values.items()}
        return cls(model, data, values, thinned(chains.latent), basis, chains)

    @property
    def n_components(self) -> int:
        return len(self.latent)

    def model_at(self, k: int) -> Model:
        """The model with the parameters of a draw."""
        if not self.values:
            return self.model
        return self.model.with_values({path: draws[k] for path, draws in self.values.items()})

    def under(self, likelihood: Likelihood, X: Array) -> Iterator[tuple[Likelihood, Array, Array]]:
        for k, moments in enumerate(self.moments_of_draws(X)):
            yield self.model_at(k).likelihood, *moments

    def component(self, k: int) -> Process:
        """The process of a draw."""
        if k in self._kept:
            return self._kept[k]
        process = self._made(k)
        if self._bytes * self.n_components <= KEEP_BYTES:
            self._kept[k] = process
        return process

    def moments_of_draws(self, X: Array) -> Iterator[tuple[Array, Array]]:
        """Mean and variance of f at the rows of X for each draw: (n, q) each."""
        if self.values or self.model.others or not self.latent.shape[1]:
            return (self.component(k).moments(X) for k in range(self.n_components))
        at_zero = dataclasses.replace(self, latent=np.zeros_like(self.latent[:1]), _kept={}).component(0)
        (start, var), kernel = at_zero.moments(X), self.model.kernel
        if self.basis is None:
            K = tiles.cross(kernel, self.data.X, X)
            P = solve_triangular(self._root, K, lower=True, check_finite=False).T
        else:
            P = self.basis.for_chains(kernel, JITTER).block(X)
        return ((start + self.data.scale * (P @ v), var) for v in self.latent)

    @property
    def average(self) -> Model:
        """The model at the mean of the parameters that were drawn."""
        return self.model.with_values({path: np.mean(draws, axis=0) for path, draws in self.values.items()})

    def mean(self, X: Array) -> Array:
        return sum((mean for mean, _ in self.moments_of_draws(X)), np.zeros(())) / self.n_components

    def moments(self, X: Array) -> tuple[Array, Array]:
        mean: Array = np.zeros(())
        within, between = mean, mean
        # Welford's sums: no difference of large numbers
        for k, (m, v) in enumerate(self.moments_of_draws(X)):
            step = m - mean
            mean = mean + step / (k + 1)
            between = between + step * (m - mean)
            within = within + v
        return mean, (within + between) / self.n_components

    def cov(self, X: Array) -> Array:
        mean = self.mean(X)
        total = np.zeros((len(X), len(X), mean.shape[1]))
        for k in range(self.n_components):
            process = self.component(k)
            off = process.mean(X) - mean
            total += process.cov(X) + off[:, None, :] * off[None, :, :]
        total /= self.n_components
        np.einsum("iik->ik", total)[...] = self.moments(X)[1]
        return total

    def sample(self, rng: np.random.Generator, X: Array, n_samples: int, noise: Array | None = None) -> Array:
        """Joint draws, (n, q, n_samples), each from a component at random."""
        which = rng.integers(self.n_components, size=n_samples)
        draws = np.empty((len(X), len(self.data.scale), n_samples))
        for k in np.unique(which):
            mine = np.flatnonzero(which == k)
            draws[:, :, mine] = self.component(int(k)).sample(rng, X, len(mine), noise)
        return draws

    def drawn_under(
        self, likelihood: Likelihood, rng: np.random.Generator, X: Array, n_samples: int
    ) -> Iterator[tuple[Likelihood, Array]]:
        counts = np.bincount(rng.integers(self.n_components, size=n_samples), minlength=self.n_components)
        for k in map(int, np.flatnonzero(counts)):
            yield self.model_at(k).likelihood, self.component(k).sample(rng, X, int(counts[k]))

    def state(self, context: Context) -> ObjectState:
        """All draws of the parameters with what the sampler said of them, and of the latent variables those
        that predictions average over. The others stay behind, as do the rows' log likelihoods; what was found
        of them, R-hat and the effective number of draws, is told."""
        if self.chains is None:
            raise StateError("its draws come without their chains, which are part of its state.")
        arrays: Arrays = {"latent": self.latent} if self.latent.size else {}
        for path, values in self.values.items():
            arrays[f"values.{path}"] = values
        told, chains = self.chains.state()
        shape = list(map(int, self.latent.shape))
        return ObjectState({"kind": self.kind, "latent": shape, **told}, arrays | chains)

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> Mixture:
        told, arrays, basis = dict(state.described), state.arrays, context.basis(0)
        model: Model = context.model
        shape = typed_list(told.pop("latent", None), int, "latent")
        told.pop("kind")
        if basis is not None:
            for kernel in context.kernels:
                basis.check(kernel, context.d)
        rows = len(context.rows({})) if basis is None else basis.n_features
        if len(shape) != 3 or shape[0] < 1 or shape[1] not in (0, rows) or shape[2] != context.q:
            raise StateError(
                f"latent is {shape[:8]}, but must be draws of {rows} variables for {context.q} functions."
            )
        if (not shape[1]) != model.likelihood.conjugate:
            raise StateError(
                "latent must be without variables where the function is integrated out, and only there."
            )
        trainable = {path: p for path, p in model.parameters().items() if p.trainable}
        shapes = {path: p.value.shape for path, p in trainable.items()}
        chains = Chains.from_state(ObjectState(told, arrays), shapes, (shape[1], shape[2]))
        if shape[0] > chains.n_chains * chains.n_draws:
            raise StateError(
                f"latent has {shape[0]} draws, but there are {chains.n_chains} chains of {chains.n_draws}."
            )
        values = {path: taken(arrays, f"values.{path}", (shape[0], *shapes[path])) for path in trainable}
        for path, p in trainable.items():
            problems = (p.support.problem(value) for value in values[path] if p.support is not None)
            if problem := next(filter(None, problems), None):
                raise StateError(f"a draw of {path} {problem}.")
        latent = taken(arrays, "latent", tuple(shape)) if shape[1] else np.zeros(shape)
        return cls(model, context.data, values, latent, basis, chains)

    @property
    def _bytes(self) -> int:
        """Of one component."""
        m = self.basis.n_features if self.basis is not None else len(self.data.X)
        return 8 * m * m * (1 + len(self.model.others))

    @property
    def scheme(self) -> RuleOnEngine:
        """What a draw's posterior is by, where f was integrated out."""
        engine = Exact() if self.basis is None else LowRank(self.basis, "nothing", "mcmc", "features")
        return RuleOnEngine(Conjugate(), engine)

    def _made(self, k: int) -> Process:
        model = self.model_at(k)
        if not self.latent.shape[1]:
            return self.scheme.infer(model, self.data).posterior
        v, parts = self.latent[k], model.priors(self.data.scale)
        return side_by_side([(self._conditioned(prior, v[:, latents]), latents) for prior, latents in parts])

    def _conditioned(self, prior: GaussianProcess, v: Array) -> Process:
        kernel, root_of = prior.kernel, (0,) * v.shape[1]
        if self.basis is not None:
            features = self.basis.for_chains(kernel, JITTER)
            nothing = np.zeros((features.n_features, features.n_features), order="F")
            return FeaturePosterior(prior, features, np.asfortranarray(v), (nothing,), root_of)
        R = self._root if kernel is self.model.kernel else _root(kernel, self.data.X)
        alpha = solve_triangular(R, v, lower=True, trans="T", check_finite=False)
        return Posterior(prior, self.data.X, alpha, (R,), root_of, inverted=False)

    @cached_property
    def _root(self) -> Array:
        """Of all draws at the same parameters."""
        return _root(self.model.kernel, self.data.X)


def _root(kernel: Kernel, X: Array) -> Array:
    """R, lower triangular and Fortran-ordered, as the chains have it."""
    with one_blas_thread():
        what = "K at a draw of the parameters"
        R, _ = factored(lambda A, _: tiles.fill(kernel, X, A), len(X), ladder=(JITTER,), what=what)
    return zeros_above(R)
