"""Between estimators and likelihoods that are not closed-form Gaussian: which inference, which engine.

inference   "laplace", "ep", "vi", "map", "mcmc", or an object: EP(power=0.5), MCMC(draws=1000)
method      the engine: "exact", "statespace", "nystrom", "fourier", "vfe", "svgp", "cg", ...
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramian.choose.plan import WHY_MARKOV, Plan
from gramian.choose.words import RULES, Method, as_method, rule_for
from gramian.engines.base import Engine
from gramian.engines.dense import Exact
from gramian.errors import ParameterError
from gramian.estimators import build
from gramian.inference.base import Inference, Scheme, on_engine
from gramian.inference.mcmc.method import MCMC
from gramian.inference.model import Model
from gramian.inference.svgp.inducing import SVGP
from gramian.inference.variational import VI
from gramian.likelihoods import Likelihood
from gramian.linalg import memory
from gramian.params import Parameter

if TYPE_CHECKING:
    from gramian.estimators.base import Estimator

DENSE_ROWS = 5000  # up to here "auto" takes the whole of K: an evaluation is some ten factorisations
# latents of such a variance make a class certain; beyond, Laplace's evidence grows while its probabilities
# get all alike
LAPLACE_SCALE = 30.0
WORDS = (*RULES, "mcmc")


class InferenceChoice(NamedTuple):
    """The setting `inference`, read."""

    word: str  # one of WORDS, or "auto"
    written: Inference | MCMC | None = None  # the object, where a person gave one

    @property
    def is_variational(self) -> bool:
        """Whether stochastic variational inference is what was asked for, or may be."""
        return self.word in ("auto", "vi")


def read_inference(value: Any) -> InferenceChoice:
    """The setting `inference`: None, a word, or an object with its own settings."""
    if value is None or (isinstance(value, str) and value in ("auto", *WORDS)):
        return InferenceChoice(value or "auto")
    if isinstance(value, (Inference, MCMC)):
        return InferenceChoice(value.name, value)
    names = ", ".join(f'"{word}"' for word in WORDS)
    cure = f"Use {names}. In Python an object such as EP(power=0.5) or MCMC(draws=1000) will do, too."
    raise ParameterError(f"inference={value!r} is not known. {cure}")


def method_for(gp: Estimator, likelihood: Likelihood, shape: tuple[int, ...]) -> tuple[Scheme, str]:
    """The inference on its engine, and why these."""
    choice = read_inference(gp.inference)
    if gp.hyper == "mcmc" or choice.word == "mcmc":
        return sampled_parameters(gp)
    if gp.method == "auto":
        engine, reason = _automatic(gp, choice, likelihood, shape)
    else:
        engine, reason = as_method(gp.method, gp.memory_limit), "as given"
    return _around(engine, choice, likelihood), reason


def plan_for(gp: Estimator, likelihood: Likelihood, shape: tuple[int, ...]) -> Plan:
    """Memory and time of each engine with this likelihood, and what `method="auto"` takes."""
    choice = read_inference(gp.inference)
    taken, reason = _automatic(gp, choice, likelihood, shape)
    wrapped = partial(_around, choice=choice, likelihood=likelihood)
    return build.prospect(gp, shape, likelihood.latents).plan_around(wrapped, wrapped(taken), reason)


def sampled_parameters(gp: Estimator) -> tuple[Scheme, str]:
    """Full Bayes over the parameters: the chains that were given, or the default ones, on the engine."""
    written = read_inference(gp.inference).written
    chains = written if isinstance(written, MCMC) else MCMC()
    if gp.method in ("auto", "exact"):
        return chains, "parameters are sampled"
    engine = as_method(gp.method, gp.memory_limit)
    if not isinstance(engine, Engine) or not (engine.dense or engine.features_for(1) is not None):
        cure = 'Use "exact", "nystrom" or "fourier" with MCMC.'
        raise ParameterError(f"Chains cannot move through method={gp.method!r}. {cure}")
    return dataclasses.replace(chains, engine=engine), "parameters are sampled"


def _around(engine: Method, choice: InferenceChoice, likelihood: Likelihood) -> Scheme:
    """The inference that was asked for, on an engine; "svgp" is both."""
    if not isinstance(engine, Engine):
        if not choice.is_variational:
            shown = repr(choice.written or choice.word)
            what = f'method="svgp" is variational inference, but inference={shown} was asked for'
            raise ParameterError(f'{what}. Use inference="vi", or another method.')
        return engine
    rule = choice.written
    if not isinstance(rule, Inference):
        rule = RULES[rule_for(likelihood, engine) if choice.word == "auto" else choice.word](likelihood)
    rule.check(likelihood, engine)
    return on_engine(engine, rule)


def restrained(model: Model, method: Scheme) -> Model:
    """Softmax by Laplace: scales of kernels without bound or prior stay below `LAPLACE_SCALE`."""
    if not method.coupled:
        return model
    scales = [own for kernel, _ in model.kernels for part in kernel.walk() for own in part.levels() or ()]

    def held(parameter: Parameter) -> Parameter:
        free = parameter.trainable and parameter.bounds is None and parameter.prior is None
        if not free or not any(parameter is own for own in scales):
            return parameter
        value = float(np.max(parameter.value))
        return dataclasses.replace(parameter, bounds=(min(1e-4, value), max(LAPLACE_SCALE, value)))

    return model.with_parameters([held(parameter) for parameter in model.parameters().values()])


def _automatic(
    gp: Estimator, choice: InferenceChoice, likelihood: Likelihood, shape: tuple[int, ...]
) -> tuple[Method, str]:
    markov = build.prospect(gp, shape, likelihood.latents).takes_markov()
    if markov is not None and likelihood.latents == 1:
        return markov, WHY_MARKOV
    (n, d), dense = shape, on_engine(Exact(), VI())
    fits = dense.bytes_needed(n, d, likelihood.latents) <= memory.allowed(gp.memory_limit)
    if fits and n * likelihood.latents ** (1 / 3) <= DENSE_ROWS:
        return Exact(), f"{n:,} rows are few enough for the whole kernel matrix"
    many = f"{n:,} rows are too many for a search with the whole kernel matrix"
    why = many if fits else "the whole kernel matrix does not fit into the memory limit"
    if choice.is_variational:
        return SVGP(), f"{why}, so stochastic variational inference"
    return as_method("nystrom", gp.memory_limit), f"{why}, so landmarks"
