"""Full Bayes: Markov chain Monte Carlo for the latent function and the parameters.

    sample_latent   any likelihood: joint draws of the whitened latent variables v and the parameters theta
    sample_hyper    Gaussian noise: draws of theta alone, with f integrated out exactly
    MCMC            both as an inference method, whose posterior is the mixture over draws

Every trainable parameter needs a proper prior. One that has none gets a weak one around its starting value v:
positive parameters a LogNormal with median v and a log standard deviation of 2 (a factor of 7 either way is
one standard deviation), parameters in an interval a normal on the logit scale with 2, means in units of the
data a normal with 2 of these units, other real ones (and the root of a matrix) one with 2 (1 + |v|). Where
the data say little about a parameter, its posterior is this prior: give your own (`param(1.0, prior=...)`).

Cost: in blocks (the default) a draw takes about five densities a parameter, of n^3 flops each, and O(n^2) for
the latent function; with all parameters held the latter alone. By NUTS on all at once a draw takes 7 to 31
gradients of 15 n^3. With m landmarks or Fourier features n^3 is n m^2. Chains run on as many threads as there
are cores. There is no evidence: chains draw from the posterior without its normalising constant.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.arrays import Array, plain_numbers
from gramian.engines.base import Engine, Share, Workspace
from gramian.engines.dense import Exact
from gramian.errors import ParameterError
from gramian.features.base import Basis
from gramian.inference.base import Cavities, Graded, Scheme, noises_of
from gramian.inference.mcmc.chains import SAMPLERS, Chains
from gramian.inference.mcmc.mixture import Mixture
from gramian.inference.mcmc.sampling import CHAINS, DRAWS, WARMUP, ChainRun, Lengths, Rng, made_and_kept, run
from gramian.inference.mcmc.traced import TracedProblem, problem
from gramian.inference.model import Data, Evidence, Inferred, Model
from gramian.linalg.cost import Cost
from gramian.linalg.threads import count
from gramian.processes.base import Process
from gramian.processes.state import Context
from gramian.solvers.base import SolveOutcome

ROUNDS = 8  # 16 times the draws (`sampling.made_and_kept`)
# of a draw, in n^3, for plans: ten densities of two parameters, and what the latent function takes
FLOPS = 15.0


def sample_latent(
    model: Model, data: Data, rng: Rng, *, sampler: str = "blocks", basis: Basis | None = None, **lengths: Any
) -> Chains:
    """Joint draws of the latent variables and the parameters, of any likelihood.

    `lengths` are those of `Lengths`, and mean what they mean in `MCMC`. `basis`: landmarks or random
    frequencies instead of the whole of K. Ctrl-C ends the chains with the draws they have, as `deadline`
    does, of which warm-up takes half at most."""
    if sampler not in SAMPLERS:
        raise ParameterError(
            f"sampler={sampler!r} is not known. Use one of {', '.join(map(repr, SAMPLERS))}."
        )
    if sampler in ("blocks", "nuts") and not model.likelihood.smooth:
        raise ParameterError(
            f"{type(model.likelihood).__name__} is no smooth function of f, which NUTS needs. Use"
            ' sampler="ess".'
        )
    return _sampled(model, *problem(model, data, basis), rng, sampler, Lengths(**lengths))


def sample_hyper(
    model: Model, data: Data, rng: Rng, *, sampler: str = "nuts", basis: Basis | None = None, **lengths: Any
) -> Chains:
    """Draws of the parameters under Gaussian noise, by NUTS (or "slices") on the marginal likelihood."""
    if not model.likelihood.conjugate:
        raise ParameterError(
            f"f can be integrated out under Gaussian noise, not under {type(model.likelihood).__name__}. Use"
            " sample_latent."
        )
    made, start = problem(model, data, basis, marginal=True)
    if not made.size:
        raise ParameterError(
            "All parameters are fixed, so there is nothing to draw: the posterior is that of exact inference."
        )
    return _sampled(model, made, start, rng, sampler, Lengths(**lengths))


def _sampled(
    model: Model, made: TracedProblem, start: Array, rng: Rng, sampler: str, lengths: Lengths
) -> Chains:
    lengths.check()

    def chains(found: ChainRun) -> Chains:
        d, (c, s) = found.draws, found.draws.log_density.shape
        values, begin = {}, 0
        for path, p in model.parameters().items():
            if p.trainable:
                values[path] = d.values[:, :, begin : begin + p.value.size].reshape(c, s, *p.value.shape)
                begin += p.value.size
        latent = d.latent.reshape(c, s, *made.latent_shape)
        return Chains(values, latent, *d[2:], *found[1:])

    return chains(run(made, start, rng, sampler, lengths, lambda found: chains(found).settled))


@dataclass(frozen=True)
class MCMC(Scheme):
    """Markov chains over the parameters and, unless the noise is Gaussian, the latent function. The posterior
    is a `Mixture` with its `chains`.

    `chains` of them run side by side, each with `warmup` draws that only tune it, and `draws` that are kept.
    `draws` are the least: the same chains go on for up to `rounds` rounds of as many, until R-hat is below
    1.01 everywhere with 100 effective draws a chain. When four rounds (and 400 draws) are held and another
    one begins, every second draw is let go, and later ones are each the last of two, then of four, up to 32:
    eight rounds make 16 times `draws`, and leave four times as many. `sampler`: "blocks" (parameters by
    slices, the latent function by NUTS), "ess" (both by slices), "nuts" (all at once by NUTS), or "auto":
    blocks where the likelihood is smooth, otherwise "ess"; under Gaussian noise, with f integrated out, it is
    NUTS whatever is asked for. "slices" are those of "ess" and, under Gaussian noise, slices of the
    parameters, made so that next to nothing is compiled: they are taken in place of any other where a time
    limit is too short to compile that. `engine`: Nystrom or Fourier features instead of the whole of K.
    `seed` and `deadline` (of `clock.now()`, when the chains end with what they have) are set by an estimator,
    from its `random_state` and `time_limit`.
    """

    name = "mcmc"
    accuracy = "draws from the posterior"
    search = "none"
    smooth = False

    chains: int = CHAINS
    warmup: int = WARMUP
    draws: int = DRAWS
    sampler: str = "auto"
    rounds: int = ROUNDS
    engine: Engine | None = None
    seed: int = 0
    deadline: float | None = None

    def __post_init__(self) -> None:
        plain_numbers(self)
        Lengths(self.chains, self.warmup, self.draws, self.rounds).check()
        if self.sampler not in (*SAMPLERS, "auto"):
            raise ParameterError(
                f'MCMC: sampler={self.sampler!r} is not known. Use "auto", "blocks", "nuts", "ess" or'
                ' "slices".'
            )
        if not self._on.dense and self._on.features_for(1) is None:
            raise ParameterError(
                f"MCMC: engine={self.engine!r} has no features that chains could move. Use Nystrom(...),"
                " Fourier(...), or None for the whole of K."
            )

    @property
    def _on(self) -> Engine:
        return self.engine or Exact()

    @property
    def described(self) -> str:
        features = "" if self._on.dense else f", {self._on.described}"
        return f"{self.chains} chains of {self.draws} draws{features}"

    def check_fits(self, model: Model, d: int) -> None:
        self._on.check_fits(model.kernel, d)

    def prepared(self, model: Model, data: Data, rng: np.random.Generator) -> MCMC:
        engine = None if self.engine is None else self.engine.prepared(model.kernel, data.X, rng)
        return dataclasses.replace(self, engine=engine, seed=int(rng.integers(2**31)))

    def stored(self) -> MCMC:
        return dataclasses.replace(self, deadline=None)

    def context(self, model: Model, data: Data, d: int) -> Context:
        self._on.check_choices(data.X, d)
        basis = self._on.chosen_basis
        prior, kinds = data.prior(model), ("mixture",)
        return Context("MCMC", kinds, prior, model.others, data.X, d, lambda k: basis, model=model, data=data)

    def until(self, deadline: float) -> MCMC:
        return dataclasses.replace(self, deadline=deadline)

    def learns_from(self, n: int) -> bool:
        return False

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        rng, engine = np.random.default_rng(self.seed), self._on
        if engine.chosen_basis is None:
            engine = engine.prepared(model.kernel, data.X, np.random.default_rng(self.seed))
        basis = engine.chosen_basis
        lengths = Lengths(self.chains, self.warmup, self.draws, self.rounds, report, self.deadline)._asdict()
        if model.likelihood.conjugate:
            sampler = "slices" if self.sampler == "slices" else "nuts"
            chains = sample_hyper(model, data, rng, sampler=sampler, basis=basis, **lengths)
        else:
            automatic = "blocks" if model.likelihood.smooth else "ess"
            sampler = automatic if self.sampler == "auto" else self.sampler
            chains = sample_latent(model, data, rng, sampler=sampler, basis=basis, **lengths)
        steps, note = int(np.sum(chains.steps)), " ".join(chains.notes)
        ended: dict[str, Any] = {"converged": chains.converged, "stopped": chains.stopped}
        outcome = SolveOutcome(iterations=steps, note=note, **ended)
        mixture = Mixture.of(model, data, chains, basis)
        return Inferred(mixture, Evidence(float("nan"), "none"), outcome, mixture.average)

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        """None: chains draw from the posterior without its normalising constant."""
        return Evidence(float("nan"), "none")

    def evidence_and_gradient(self, model: Model, data: Data, workspace: Workspace) -> Graded:
        raise ParameterError(
            "MCMC has no evidence to maximise: it draws the parameters instead of choosing them. To choose"
            ' them by evidence use inference="laplace", "ep" or "vi", or hyper="map" or "ml" for a'
            " regression."
        )

    def cavities(self, model: Model, data: Data, posterior: Process) -> Cavities:
        # f is integrated out, so a draw has no log p(y_i | f_i) to weigh it by
        if model.likelihood.conjugate:
            raise ParameterError(
                "Chains have no closed form for leaving rows out. gramian.compare_models([estimator], X, y,"
                ' by="loo") estimates it from draws; hyper="map" and "ml" have one.'
            )
        raise ParameterError(
            "Chains have no closed form for leaving rows out. ArviZ estimates it from the draws:"
            ' arviz.loo(posterior.chains.inference_data()); inference="laplace", "ep" and "vi" have one.'
        )

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        count = 1 if gradient else self.chains * (self.warmup + self.draws)
        m = self._on.features_for(n)
        flops = noises_of(q) * FLOPS * (n**3 if m is None else m**3 + n * m * m)
        return Cost(count * flops / 0.75, 0.0, 10.0 * count * n * (n if m is None else m))

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        m = self._on.features_for(n)
        # K, its factor, what the gradient makes of them, and XLA's copies
        k = noises_of(q)  # each has its factor, and what comes back through it
        matrices = (11 + 3 * k) * n * n if m is None else (4 + 2 * k) * n * m + (8 + 2 * k) * m * m
        kept = 3 * self.chains * made_and_kept(self.draws, self.rounds)[1] * (q * (n if m is None else m) + n)
        return 8 * (min(self.chains, count()) * matrices + kept + n * (d + q))
