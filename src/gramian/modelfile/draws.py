"""Chains in a file: all draws of the parameters with what the sampler said of them, and of the latent
variables those that predictions average over.

The other draws of the latent variables stay behind, as do the rows' log likelihoods; what was found of them,
R-hat and the effective number of draws, is in the document.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from gramian.errors import ModelFileError
from gramian.features.fourier import FourierBasis
from gramian.features.nystrom import NystromBasis
from gramian.inference import Data, Model
from gramian.inference.mcmc.chains import Chains
from gramian.inference.mcmc.method import MCMC, SAMPLERS
from gramian.inference.mcmc.mixture import Mixture
from gramian.likelihoods import Gaussian
from gramian.modelfile.arrays import Array, Arrays, taken
from gramian.modelfile.document import decode, encode, typed, typed_list
from gramian.modelfile.features import check_fourier

FIELDS = ("kind", "latent", "sampler", "warmup", "stopped", "seconds", "rhat", "ess")


def describe(mixture: Mixture) -> tuple[dict[str, Any], Arrays]:
    """The draws: a piece of the document, and arrays."""
    chains = mixture.chains
    if chains is None:
        raise ModelFileError("its draws come without their chains, which this version does not store.")
    arrays: Arrays = {"latent": mixture.latent} if mixture.latent.size else {}
    for path, values in mixture.values.items():
        arrays[f"values.{path}"] = values
        arrays[f"chains.{path}"] = chains.values[path]
    arrays |= {
        "chain_log_density": chains.log_density,
        "chain_divergent": chains.divergent.astype(np.int64),
        "chain_acceptance": chains.acceptance,
        "chain_steps": np.asarray(chains.steps, dtype=np.int64),
    }
    told = {name: encode(getattr(chains, name), name) for name in ("sampler", "warmup", "stopped", "seconds")}
    found = {name: encode(tuple(getattr(chains, name).values()), name) for name in ("rhat", "ess")}
    return {"kind": "mixture", "latent": list(map(int, mixture.latent.shape)), **told, **found}, arrays


def restore(described: Any, arrays: Arrays, method: MCMC, model: Model, data: Data) -> Mixture:
    """The mixture, from what `describe` gave."""
    basis = None if method.engine is None else method.engine.chosen_basis
    d = data.X.shape[1]
    if isinstance(basis, FourierBasis):
        for kernel, _ in model.kernels:
            check_fourier(basis, kernel, d)
    elif isinstance(basis, NystromBasis) and (basis.Z.ndim != 2 or basis.Z.shape[1] != d or not len(basis.Z)):
        raise ModelFileError(f"its landmarks have the shape {basis.Z.shape}, but it has {d} columns.")
    shape = typed_list(described["latent"], int, "latent")
    rows = len(data.X) if basis is None else basis.n_features
    marginal = len(shape) == 3 and shape[1] == 0
    if len(shape) != 3 or shape[0] < 1 or shape[1] not in (0, rows) or shape[2] != len(data.scale):
        raise ModelFileError(
            f"latent is {shape[:8]}, but must be draws of {rows} variables for {len(data.scale)} functions."
        )
    if marginal != isinstance(model.likelihood, Gaussian):
        raise ModelFileError(
            "latent must be without variables where the function is integrated out, and only there."
        )
    log_density = taken(arrays, "chain_log_density", (None, None))
    c, s = log_density.shape
    if not 1 <= shape[0] <= c * s:
        raise ModelFileError(f"latent has {shape[0]} draws, but there are {c} chains of {s}.")
    trainable = {path: p for path, p in model.parameters().items() if p.trainable}
    held = {
        path: _valid(taken(arrays, f"values.{path}", (shape[0], *p.value.shape)), p, path)
        for path, p in trainable.items()
    }
    chains = Chains(
        {path: taken(arrays, f"chains.{path}", (c, s, *p.value.shape)) for path, p in trainable.items()},
        np.broadcast_to(np.zeros(()), (c, s, *shape[1:])),
        log_density,
        _flags(taken(arrays, "chain_divergent", (c, s), np.int64)),
        taken(arrays, "chain_acceptance", (c, s)),
        taken(arrays, "chain_steps", (c, s), np.int64),
        np.zeros((c, s, 0)),
        typed(described["sampler"], str, "sampler"),
        typed(described["warmup"], int, "warmup"),
        typed(described["stopped"], str, "stopped"),
        typed(described["seconds"], float, "seconds"),
    )
    if chains.sampler not in SAMPLERS or chains.warmup < 0 or not 0 <= chains.seconds < np.inf:
        raise ModelFileError(
            f"its chains are by {chains.sampler[:40]!r}, after a warm-up of {chains.warmup} in"
            f" {chains.seconds} s."
        )
    names = [name for name, _ in chains.numbers()]
    diagnostics = {kind: _numbers(described[kind], kind, names) for kind in ("rhat", "ess")}
    chains = dataclasses.replace(chains, latent=np.zeros((c, s, 0, shape[2])))
    vars(chains).update(diagnostics)  # as if they had been computed already
    latent = np.zeros(shape) if marginal else taken(arrays, "latent", tuple(shape))
    return Mixture(model, data, held, latent, basis, chains)


def _valid(draws: Array, parameter: Any, path: str) -> Array:
    problem = next(
        (
            found
            for value in draws
            if parameter.support is not None and (found := parameter.support.problem(value))
        ),
        None,
    )
    if problem:
        raise ModelFileError(f"a draw of {path} {problem}.")
    return draws


def _flags(numbers: Any) -> Any:
    if not np.all((numbers == 0) | (numbers == 1)):
        raise ModelFileError("chain_divergent must be zeros and ones.")
    return numbers.astype(bool)


def _numbers(value: Any, where: str, names: list[str]) -> dict[str, float]:
    found = decode(typed(value, list, where), where)
    if len(found) != len(names) or not all(type(number) is float for number in found):
        raise ModelFileError(f"{where} has {len(found)} entries, but must have {len(names)} numbers.")
    return dict(zip(names, found, strict=True))


__all__ = ["FIELDS", "describe", "restore"]
