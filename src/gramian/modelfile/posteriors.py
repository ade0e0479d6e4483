"""What a file keeps of each kind of posterior, and how that becomes a posterior again.

    kind        its arrays                                      the data (X, Y, noise_var)
    exact       alpha, a root for each noise                    in the file
    krylov      alpha, the pivots of the preconditioner         in the file: variances are solves with K + D
    features    weights, a root for each noise, the basis       not in the file: predictions need no rows, only how many there were

A krylov posterior makes its preconditioners when they are first needed. The method of the fit, with its choices made (the basis, the pivots), stands
beside the posterior. What it makes features of at the fitted parameters comes along: the root of the landmarks' kernel matrix, which another machine
would round otherwise (and close landmarks make much of that); frequencies and amplitudes, which a later version may compute in another way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.approx.fourier import KINDS, FourierBasis, FourierMap
from gramian.approx.nystrom import NystromBasis, NystromMap
from gramian.errors import ModelFileError
from gramian.estimators.facts import Facts, NoData
from gramian.estimators.regressor import GPRegressor
from gramian.inference import Data, Exact, FeaturePosterior, GaussianProcess, Inference, Model, Posterior, Process
from gramian.inference.base import noise_groups
from gramian.inference.exact import groups
from gramian.inference.iterative import Iterative, KrylovPosterior
from gramian.inference.lowrank import LowRank
from gramian.kernels.spectrum import Draw
from gramian.modelfile.document import Arrays, entries, typed, typed_list

Array = NDArray[np.float64]

FIELDS = {
    "exact": ("kind", "root_of", "inverted"),
    "krylov": ("kind", "stronger"),
    "features": ("kind", "root_of", "rows", "known_noise", "notes"),
}
METHODS: Mapping[str, tuple[type[Inference], ...]] = {"exact": (Exact, Iterative), "krylov": (Iterative,), "features": (LowRank,)}
LANDMARK_ROOT = "root.landmarks"


def describe(gp: GPRegressor) -> tuple[dict[str, Any], Arrays]:
    """The posterior of a fitted regressor: a piece of the document, and its arrays."""
    posterior, facts = gp.posterior_, gp._facts
    arrays: Arrays = {"scale": facts.scale}
    if isinstance(posterior, FeaturePosterior):
        arrays.update(weights=posterior.weights, **_roots(posterior.roots))
        if isinstance(posterior.features, NystromMap):
            arrays[LANDMARK_ROOT] = posterior.features.L
        if isinstance(posterior.features, FourierMap):
            arrays.update(frequencies=posterior.features.W, amplitudes=posterior.features.A)
        told = {"rows": facts.rows, "known_noise": facts.known_noise, "notes": dict(facts.notes)}
        return {"kind": "features", "root_of": list(posterior.root_of), **told}, arrays
    data = gp._data
    if isinstance(posterior, (Posterior, KrylovPosterior)):
        arrays.update(X=np.asarray(data.X, dtype=np.float64), Y=np.asarray(data.Y, dtype=np.float64), alpha=posterior.alpha)
        if data.noise_var is not None:
            arrays["noise_var"] = data.noise_var
    if isinstance(posterior, KrylovPosterior):
        return {"kind": "krylov", "stronger": [system.stronger for system in posterior.systems]}, arrays
    if isinstance(posterior, Posterior):
        told = {"root_of": list(posterior.root_of), "inverted": posterior.inverted}
        return {"kind": "exact", **told}, {**arrays, **_roots(posterior.roots)}
    raise ModelFileError(f"method={gp.method!r} gives a {type(posterior).__name__}, which this version does not store.")


def _roots(roots: tuple[Array, ...]) -> Arrays:
    return {f"root.{k}": root for k, root in enumerate(roots)}


def data_of(described: Any, arrays: Arrays, columns: int) -> tuple[Data, Facts | None]:
    """The data, or what stands for them; then with the facts, which otherwise are made from the data."""
    kind = typed(described, dict, "posterior").get("kind")
    if not (isinstance(kind, str) and kind in FIELDS):
        raise ModelFileError(f"its posterior is of the kind {str(kind)[:40]!r}, but must be one of {', '.join(FIELDS)}.")
    entries(described, "posterior", *FIELDS[kind])
    scale = taken(arrays, "scale", None)
    if not len(scale) or not np.all(scale > 0):
        raise ModelFileError("its scales must be positive, one an output.")
    if kind == "features":
        rows, known, notes = typed(described["rows"], int, "rows"), typed(described["known_noise"], bool, "known_noise"), described["notes"]
        told = {name: typed(note, str, f"notes.{name[:40]}") for name, note in typed(notes, dict, "notes").items()}
        if rows < 1:
            raise ModelFileError(f"it is of {rows} rows, but must be of one at least.")
        return NoData(scale), Facts(rows, columns, scale, known, told)
    n = len(taken(arrays, "X", (None, columns)))
    noise_var = taken(arrays, "noise_var", (n,)) if "noise_var" in arrays else None
    if n < 1 or (noise_var is not None and not np.all(noise_var >= 0)):
        raise ModelFileError("it must have a row at least, and noise variances that are not negative.")
    return Data(arrays["X"], taken(arrays, "Y", (n, len(scale))), scale, noise_var), None


def restore(described: Any, arrays: Arrays, method: Inference, model: Model, data: Data, columns: int) -> Process:
    """The posterior, from what `describe` gave; `data_of` has checked the entries and the data."""
    kind = described["kind"]
    if not isinstance(method, METHODS[kind]):
        raise ModelFileError(f"its posterior is of the kind {kind!r}, which the method {type(method).__name__} does not give.")
    prior = GaussianProcess(model.kernel, model.mean, data.scale)
    q = len(data.scale)
    if isinstance(method, LowRank):
        features = _features(method, arrays, model, columns)
        m = features.n_features
        roots, root_of = _restored_roots(described["root_of"], arrays, m, q)
        return FeaturePosterior(prior, features, taken(arrays, "weights", (m, q)), roots, root_of)
    n = len(data.X)
    alpha = taken(arrays, "alpha", (n, q))
    if isinstance(method, Iterative):
        _check_iterative(method, n)
    if kind == "exact":
        inverted = typed(described["inverted"], bool, "inverted")
        return Posterior(prior, data.X, alpha, *_restored_roots(described["root_of"], arrays, n, q), inverted)
    assert isinstance(method, Iterative)
    stronger = typed_list(described["stronger"], bool, "stronger")
    if len(stronger) != len(noise_groups(model, data)):
        raise ModelFileError(f"its outputs have {len(noise_groups(model, data))} different noises, but stronger has {len(stronger)} entries.")
    system_of, systems = [0] * q, []
    for r, group in enumerate(groups(model, data)):
        systems.append(method.system(group.operator, stronger[r]))
        for k in group.outputs:
            system_of[k] = r
    return KrylovPosterior(prior, data.X, alpha, tuple(systems), tuple(system_of))


def taken(arrays: Arrays, name: str, shape: tuple[int | None, ...] | None) -> Array:
    """An array of real numbers that must be there, in this shape (None: any length; no shape at all: a vector of any length)."""
    if name not in arrays:
        raise ModelFileError(f"it has no array {name!r}.")
    array, wanted = arrays[name], (None,) if shape is None else shape
    if array.dtype != np.float64:
        raise ModelFileError(f"its array {name!r} is of type {array.dtype}, but must be float64.")
    if array.ndim != len(wanted) or any(length not in (None, mine) for length, mine in zip(wanted, array.shape, strict=True)):
        shown = ", ".join("any" if length is None else str(length) for length in wanted)
        raise ModelFileError(f"its array {name!r} has the shape {array.shape}, but must have ({shown}).")
    return array


def _restored_roots(root_of: Any, arrays: Arrays, size: int, q: int) -> tuple[tuple[Array, ...], tuple[int, ...]]:
    """The roots, which must all be used, and which output uses which."""
    of = tuple(typed_list(root_of, int, "root_of"))
    count = max(1, sum(name.startswith("root.") and name != LANDMARK_ROOT for name in arrays))
    roots = tuple(_root(arrays, f"root.{k}", size) for k in range(count))
    if len(of) != q or set(of) != set(range(count)):
        raise ModelFileError(f"root_of is {list(of)[:8]}, but must name each of the {count} roots for {q} outputs.")
    return roots, of


def _root(arrays: Arrays, name: str, size: int) -> Array:
    root = taken(arrays, name, (size, size))
    if not np.all(np.diagonal(root) > 0):
        raise ModelFileError(f"its {name!r} has a diagonal that is not positive.")
    return root


def _check_iterative(method: Iterative, n: int) -> None:
    pivots = method.pivots
    if pivots is not None and (pivots.ndim != 1 or not len(pivots) or len(set(pivots.tolist()) & set(range(n))) != len(pivots)):
        raise ModelFileError(f"its pivots must be rows of the data, each once, but are {pivots.shape} numbers of {n} rows.")
    if method.solver.seed < 0 or method.cholesky_up_to < 0:
        raise ModelFileError("its solver has a negative seed or number of rows.")


# Features. ------------------------------------------------------------------------------------------------------------------------------------------


def _features(method: LowRank, arrays: Arrays, model: Model, d: int) -> NystromMap | FourierMap:
    if {method.centre.shape, method.spread.shape} not in ({(0,)}, {(d,)}) or not np.all(method.spread > 0):
        raise ModelFileError(f"its method has units of the shapes {method.centre.shape} and {method.spread.shape}, for {d} columns.")
    basis = method.basis
    if isinstance(basis, NystromBasis):
        if basis.Z.ndim != 2 or basis.Z.shape[1] != d or not len(basis.Z):
            raise ModelFileError(f"its landmarks have the shape {basis.Z.shape}, but it has {d} columns.")
        landmarks = basis.at(model.kernel)
        vars(landmarks)["L"] = _root(arrays, LANDMARK_ROOT, len(basis.Z))  # as if it had been computed already
        return landmarks
    assert isinstance(basis, FourierBasis)
    _check_fourier(basis, model, d)
    N = basis.take.size
    return replace(basis.at(model.kernel), W=taken(arrays, "frequencies", (d, N)), A=taken(arrays, "amplitudes", (N,)))


def _check_fourier(basis: FourierBasis, model: Model, d: int) -> None:
    """That draws, counts and columns belong to each other and to the kernel; sums first, so that nothing is as large as a count only says."""
    N, columns = sum(basis.counts), basis.take.size
    rows = 1 if basis.kind == "rff-phase" else 2
    shapes = basis.d == d and basis.kind in KINDS and basis.centre.shape == (d,) and basis.shift.shape == (rows, columns)
    if not (shapes and basis.take.shape == basis.gain.shape == (columns,)):
        raise ModelFileError(f"its Fourier features have impossible shapes for {d} columns: take {basis.take.shape}, shift {basis.shift.shape}.")
    if not 1 <= N <= columns or min(basis.counts) < 1 or np.any(np.diff(basis.take) < 0) or not np.array_equal(np.unique(basis.take), np.arange(N)):
        raise ModelFileError("its Fourier features must take each of their frequencies, in order.")
    waves = model.kernel.bare().waves(tuple(range(d)))
    if len(waves) != len(basis.counts):
        raise ModelFileError(f"its kernel has {len(waves)} waves, but its Fourier features have {len(basis.counts)} counts.")
    expected = [[_shapes(part.draw(_Blank(n))) for part in wave.parts] for wave, n in zip(waves, basis.counts, strict=True)]
    if expected != [[_shapes(draw) for draw in drawn] for drawn in basis.draws]:
        raise ModelFileError("its Fourier features have draws of other shapes than its kernel needs.")


def _shapes(draw: Draw) -> list[tuple[int, ...]]:
    return [part.shape for part in draw]


class _Blank:
    """A source of numbers that are all the same, to see the shapes of what is made from them."""

    def __init__(self, n: int) -> None:
        self.n = n

    def normals(self, d: int) -> Array:
        return np.ones((self.n, d))

    def uniforms(self) -> Array:
        return np.full(self.n, 0.5)

    def strata(self) -> Array:
        return self.uniforms()


__all__ = ["data_of", "describe", "restore", "taken"]
