"""What a file keeps of each kind of posterior, and how that becomes a posterior again.

    kind               its arrays                                      the data (X, Y, noise_var)
    exact              alpha, a root for each noise or latent          in the file
    krylov             alpha, the pivots of the preconditioner, the    in the file: variances are solves with
                       sites' noise                                    K + D
    features           weights, a root for each noise or latent, the   not in the file, unless its rows are
                       basis                                           the basis
    coupled            alpha, a root for each class, and one for all   in the file
    coupled features   weights, a root for all classes, the basis      not in the file
    mixture            draws of the parameters and of latent           in the file
                       variables (`draws`)
    stacked            those of its parts                              as for its parts

Where the data are not in the file, what a summary tells of them is. A krylov posterior makes its
preconditioners when they are first needed. The method of the fit, with its choices made (the basis, the
pivots), stands beside the posterior.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from gramian.engines import Exact, Krylov, LowRank
from gramian.errors import ModelFileError
from gramian.estimators.fitted import Fitted
from gramian.gram.operator import GramOperator
from gramian.inference import Data, Model, RuleOnEngine, Scheme
from gramian.inference.conjugate import observed
from gramian.inference.mcmc.method import MCMC
from gramian.inference.mcmc.mixture import Mixture
from gramian.inference.svgp.inducing import SparseVariational
from gramian.kernels import Kernel
from gramian.likelihoods import Likelihood
from gramian.means import OneOutput
from gramian.modelfile import draws, features
from gramian.modelfile.arrays import TRIANGLE, Array, Arrays, of_part, root, roots, taken, within
from gramian.modelfile.document import entries, typed, typed_list
from gramian.processes.base import Process
from gramian.processes.coupled import CoupledFeatures, CoupledPosterior
from gramian.processes.krylov import KrylovPosterior, System
from gramian.processes.posterior import Posterior
from gramian.processes.prior import GaussianProcess
from gramian.processes.stacked import Stacked
from gramian.processes.weights import FeaturePosterior
from gramian.report.facts import Facts, NoData

FIELDS = {
    "exact": ("kind", "root_of", "inverted"),
    "krylov": ("kind", "stronger"),
    "features": ("kind", "root_of"),
    "coupled": ("kind",),
    "coupled features": ("kind",),
    "mixture": draws.FIELDS,
    "stacked": ("kind", "parts"),
}
SHARED_ROOT = "root.shared"


def engine_of(method: Scheme) -> Any:
    """What does the linear algebra: an engine, or the method itself where it is both."""
    return method.engine if isinstance(method, RuleOnEngine) else method


# The data. --------------------------------------------------------------------------------------------------


def describe_data(fitted: Fitted) -> tuple[dict[str, Any] | None, Arrays]:
    """The data as arrays, or what is told of them."""
    facts, data = fitted.facts, fitted.rows
    arrays: Arrays = {"scale": facts.scale}
    if not fitted.inference.holds_rows:
        counts = None if fitted.classes is None else list(fitted.class_counts())
        return {
            "rows": facts.rows,
            "known_noise": facts.known_noise,
            "notes": dict(facts.notes),
            "counts": counts,
        }, arrays
    arrays |= {name: np.asarray(getattr(data, name), dtype=np.float64) for name in ("X", "Y")}
    return None, arrays | ({} if data.noise_var is None else {"noise_var": data.noise_var})


def data_of(
    described: Any,
    arrays: Arrays,
    method: Scheme,
    columns: int,
    likelihood: Likelihood | None,
    classes: int | None,
) -> tuple[Data, Facts | None]:
    """The data, or what stands for them; then with the facts, which otherwise are made from the data.
    `likelihood`: whose columns y has; None: y has a column an output."""
    scale = taken(arrays, "scale", None)
    if not len(scale) or not np.all(scale > 0):
        raise ModelFileError("its scales must be positive, one an output.")
    if not method.holds_rows:
        rows, known, notes, counts = entries(described, "data", "rows", "known_noise", "notes", "counts")
        told = {
            name: typed(note, str, f"notes.{name[:40]}") for name, note in typed(notes, dict, "notes").items()
        }
        if typed(rows, int, "rows") < 1:
            raise ModelFileError(f"it is of {rows} rows, but must be of one at least.")
        if classes is None and counts is not None:
            raise ModelFileError("it has counts of classes, but no classes.")
        found = None if classes is None else tuple(typed_list(counts, int, "counts"))
        if found is not None and (len(found) != classes or min(found) < 0 or sum(found) != rows):
            raise ModelFileError(f"counts must be the rows of each of {classes} classes, {rows} in all.")
        return NoData(scale), Facts(rows, columns, scale, typed(known, bool, "known_noise"), told, found)
    if described is not None:
        raise ModelFileError("its data are in the file, and yet something stands for them.")
    n = len(taken(arrays, "X", (None, columns)))
    noise_var = taken(arrays, "noise_var", (n,)) if "noise_var" in arrays else None
    if n < 1 or (noise_var is not None and not np.all(noise_var >= 0)):
        raise ModelFileError("it must have a row at least, and noise variances that are not negative.")
    Y = taken(arrays, "Y", (n, len(scale) if likelihood is None else len(likelihood.columns)))
    return Data(arrays["X"], Y, scale, noise_var), None


# Writing. ---------------------------------------------------------------------------------------------------


def describe(posterior: Process, method: Scheme) -> tuple[dict[str, Any], Arrays]:
    """The posterior: a piece of the document, and its arrays."""
    if isinstance(posterior, Stacked):
        found = [describe(part, method) for part in posterior.parts]
        arrays = {name: a for k, (_, own) in enumerate(found) for name, a in within(own, f"part{k}").items()}
        return {"kind": "stacked", "parts": [piece for piece, _ in found]}, arrays
    if isinstance(posterior, Mixture):
        return draws.describe(posterior)
    if isinstance(posterior, FeaturePosterior):
        own = {
            "weights": posterior.weights,
            **_numbered(posterior.roots),
            **features.describe(posterior.features),
        }
        return {"kind": "features", "root_of": list(posterior.root_of)}, own
    if isinstance(posterior, KrylovPosterior):
        noises = (
            {f"noise.{r}": system.operator.noise for r, system in enumerate(posterior.systems)}
            if not method.closed
            else {}
        )
        return {
            "kind": "krylov",
            "stronger": [system.solver is not engine_of(method).solver for system in posterior.systems],
        }, {"alpha": posterior.alpha, **noises}
    if isinstance(posterior, Posterior):
        told = {"root_of": list(posterior.root_of), "inverted": posterior.inverted}
        return {"kind": "exact", **told}, {"alpha": posterior.alpha, **_numbered(posterior.roots)}
    if isinstance(posterior, CoupledPosterior):
        return {"kind": "coupled"}, {
            "alpha": posterior.alpha,
            **_numbered(posterior.roots),
            SHARED_ROOT: posterior.shared_root,
        }
    if isinstance(posterior, CoupledFeatures):
        maps = {
            name: a
            for k, own in enumerate(posterior.features)
            for name, a in within(features.describe(own), f"map{k}").items()
        }
        return {"kind": "coupled features"}, {
            "weights": posterior.weights,
            SHARED_ROOT: posterior.root,
            **maps,
        }
    raise ModelFileError(f"its posterior is a {type(posterior).__name__}, which this version does not store.")


def _numbered(matrices: tuple[Array, ...]) -> Arrays:
    return {f"{TRIANGLE}{k}": matrix for k, matrix in enumerate(matrices)}


# Reading. ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Context:
    """What all parts of a posterior have in common."""

    method: Scheme
    model: Model
    data: Data
    d: int

    @property
    def engine(self) -> Any:
        return engine_of(self.method)


def restore(
    described: Any, arrays: Arrays, method: Scheme, model: Model, data: Data, columns: int
) -> Process:
    """The posterior, from what `describe` gave; `data_of` has checked the data."""
    context = _Context(method, model, data, columns)
    engine, q = context.engine, len(data.scale)
    if isinstance(engine, Krylov):
        _check_krylov(engine, len(data.X))
    kind = _kind(described, "posterior")
    known = isinstance(method, (SparseVariational, MCMC)) or isinstance(engine, (Exact, Krylov, LowRank))
    if (
        not known
        or isinstance(method, MCMC) != (kind == "mixture")
        or _is_coupled(method) != kind.startswith("coupled")
    ):
        raise _contradiction(kind, method)
    if isinstance(method, MCMC):
        return draws.restore(described, arrays, method, model, data)
    if kind == "coupled":
        return _coupled(arrays, context)
    if kind == "coupled features":
        return _coupled_features(arrays, context)
    if not model.others:
        prior = GaussianProcess(model.kernel, model.mean, data.scale)
        return _one(described, arrays, context, prior, 0)
    if kind != "stacked":
        raise ModelFileError(
            f"its posterior is of the kind {kind!r}, but functions with kernels of their own are stacked."
        )
    parts = typed(described["parts"], list, "parts")
    if len(parts) != q:
        raise ModelFileError(f"its posterior has {len(parts)} parts for {q} functions.")
    priors = [
        GaussianProcess(kernel, OneOutput(model.mean, k), data.scale[[k]])
        for k, kernel in enumerate(_kernels(model))
    ]
    found = [
        _one(part, of_part(arrays, f"part{k}"), context, prior, k)
        for k, (part, prior) in enumerate(zip(parts, priors, strict=True))
    ]
    return Stacked(tuple(found), tuple((k,) for k in range(q)))


def _one(described: Any, arrays: Arrays, context: _Context, prior: GaussianProcess, k: int) -> Process:
    """A posterior of functions with one kernel, the k-th."""
    kind, engine, q = _kind(described, "posterior"), context.engine, len(prior.scale)
    if (
        kind == "features"
        and not isinstance(engine, Krylov)
        and not (isinstance(engine, Exact) and context.method.closed)
    ):
        made = features.restore(engine, arrays, prior.kernel, k, context.data, context.d)
        m = made.n_features
        matrices, of = _used_roots(described["root_of"], arrays, m, q)
        return FeaturePosterior(prior, made, taken(arrays, "weights", (m, q)), matrices, of)
    if kind == "exact" and isinstance(engine, (Exact, Krylov)):
        n = len(context.data.X)
        alpha, inverted = taken(arrays, "alpha", (n, q)), typed(described["inverted"], bool, "inverted")
        return Posterior(
            prior, context.data.X, alpha, *_used_roots(described["root_of"], arrays, n, q), inverted
        )
    if kind == "krylov" and isinstance(engine, Krylov):
        return _krylov(described, arrays, context, prior, engine)
    raise _contradiction(kind, context.method)


def _krylov(
    described: Any, arrays: Arrays, context: _Context, prior: GaussianProcess, engine: Krylov
) -> KrylovPosterior:
    data, model, q = context.data, context.model, len(prior.scale)
    n = len(data.X)
    alpha = taken(arrays, "alpha", (n, q))
    stronger = typed_list(described["stronger"], bool, "stronger")
    systems: list[System] = []

    def system(noise: Array, again: bool) -> System:
        solver = engine.solver.stronger(n) if again else engine.solver
        if solver is None:
            raise ModelFileError("its solver has no second attempt, and yet one was made.")
        return System(solver, GramOperator(prior.kernel, data.X, noise))

    if not context.method.closed:
        noises = [taken(arrays, f"noise.{r}", (n,)) for r in range(q)]
        if len(stronger) != q or not all(np.all(noise > 0) for noise in noises):
            raise ModelFileError(
                f"its {q} functions must have sites with positive variances, but stronger has {len(stronger)}"
                " entries."
            )
        systems = [system(noise, again) for noise, again in zip(noises, stronger, strict=True)]
        return KrylovPosterior(prior, data.X, alpha, tuple(systems), tuple(range(q)))
    together = list(observed(model, data))
    if len(stronger) != len(together):
        raise ModelFileError(
            f"its outputs have {len(together)} different noises, but stronger has {len(stronger)} entries."
        )
    system_of = [0] * q
    for r, group in enumerate(together):
        systems.append(system(group.D, stronger[r]))
        for k in group.outputs:
            system_of[k] = r
    return KrylovPosterior(prior, data.X, alpha, tuple(systems), tuple(system_of))


def _coupled(arrays: Arrays, context: _Context) -> CoupledPosterior:
    model, data = context.model, context.data
    if not isinstance(context.engine, Exact):
        raise _contradiction("coupled", context.method)
    n, C = len(data.X), len(data.scale)
    prior = GaussianProcess(model.kernel, model.mean, data.scale)
    alpha, matrices = taken(arrays, "alpha", (n, C)), roots(arrays, n, C)
    return CoupledPosterior(prior, model.others, data.X, alpha, matrices, root(arrays, SHARED_ROOT, n))


def _coupled_features(arrays: Arrays, context: _Context) -> CoupledFeatures:
    model, scale = context.model, context.data.scale
    if not isinstance(context.engine, LowRank):
        raise _contradiction("coupled features", context.method)
    made = [
        features.restore(context.engine, of_part(arrays, f"map{k}"), kernel, k, context.data, context.d)
        for k, kernel in enumerate(_kernels(model))
    ]
    m, C = made[0].n_features, len(scale)
    matrix = root(arrays, SHARED_ROOT, C * m)
    return CoupledFeatures(
        GaussianProcess(model.kernel, model.mean, scale),
        model.others,
        tuple(made),
        taken(arrays, "weights", (m, C)),
        matrix,
    )


def _kernels(model: Model) -> tuple[Kernel, ...]:
    return (model.kernel, *model.others)


def _kind(described: Any, where: str) -> str:
    """The kind of a posterior, whose entries are those of its kind."""
    kind = typed(described, dict, where).get("kind")
    if not (isinstance(kind, str) and kind in FIELDS):
        raise ModelFileError(
            f"its posterior is of the kind {str(kind)[:40]!r}, but must be one of {', '.join(FIELDS)}."
        )
    entries(described, where, *FIELDS[kind])
    return kind


def _is_coupled(method: Scheme) -> bool:
    return method.coupled


def _contradiction(kind: str, method: Scheme) -> ModelFileError:
    return ModelFileError(
        f"its posterior is of the kind {kind!r}, which the method {type(method).__name__} does not give."
    )


def _used_roots(root_of: Any, arrays: Arrays, size: int, q: int) -> tuple[tuple[Array, ...], tuple[int, ...]]:
    """The roots, which must all be used, and which output uses which."""
    of = tuple(typed_list(root_of, int, "root_of"))
    found = roots(arrays, size)
    if len(of) != q or set(of) != set(range(len(found))):
        raise ModelFileError(
            f"root_of is {list(of)[:8]}, but must name each of the {len(found)} roots for {q} outputs."
        )
    return found, of


def _check_krylov(engine: Krylov, n: int) -> None:
    pivots = getattr(engine.solver, "pivots", None)
    if pivots is not None and (
        pivots.ndim != 1 or not len(pivots) or len(set(pivots.tolist()) & set(range(n))) != len(pivots)
    ):
        raise ModelFileError(
            f"its pivots must be rows of the data, each once, but are {pivots.shape} numbers of {n} rows."
        )
    if (engine.cholesky_up_to or 0) < 0:
        raise ModelFileError("its solver has a negative number of rows.")


__all__ = ["data_of", "describe", "describe_data", "restore"]
