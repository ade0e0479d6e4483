"""Methods as a comparison writes them: a family, and after a colon how it chooses.

    nystrom:RULE     K ~ K_xz K_zz^-1 K_zx, landmarks by that rule; size: how many
    fourier:KIND     K ~ Phi Phi' with random frequencies of that kind; size: columns of Phi
    vfe:RULE, fitc:RULE, dtc:RULE       inducing points by that rule; size: how many
    svgp:RULE        the same bound as vfe, found by natural gradients on all rows; size: how many inducing
                     points
    cg:NAME, minres:NAME                K itself, systems by a Krylov solver with that preconditioner; size:
                                        its rank (none and jacobi have none)
    exact            K itself, by Cholesky; no size

Without a colon the family's usual choice is meant: "fourier" is "fourier:orf", "cg" is "cg:rpcholesky".

Classes are inferred by Laplace's approximation on each of these, and by the variational bound on vfe and
svgp; fitc and dtc are for Gaussian noise.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.arrays import Array
from gramian.choose.words import as_method, method_with
from gramian.engines import Krylov, LowRank
from gramian.engines.base import Engine
from gramian.engines.recipes import TREATED, Objective
from gramian.errors import ParameterError
from gramian.features.base import Basis
from gramian.features.fourier import FourierBasis
from gramian.features.nystrom import NystromBasis
from gramian.features.spectral import KINDS
from gramian.inference import Scheme, closed, on_engine
from gramian.inference.softmax.laplace import laplace_for
from gramian.inference.svgp.inducing import SparseVariational
from gramian.inference.variational import VI
from gramian.kernels.base import Kernel
from gramian.landmarks.rules import RULES, landmarks
from gramian.likelihoods import Likelihood
from gramian.solvers.cg import CG
from gramian.solvers.minres import MINRES
from gramian.solvers.preconditioners import NAMES

# what may follow the colon, and what is meant without one
FAMILIES: dict[str, tuple[tuple[str, ...], str]] = {
    "nystrom": (tuple(RULES), "rpcholesky"),
    "fourier": (KINDS, "orf"),
    **dict.fromkeys(("vfe", "fitc", "dtc", "svgp"), (tuple(RULES), "rpcholesky")),
    **dict.fromkeys(("cg", "minres"), (NAMES, "rpcholesky")),
    "exact": ((), ""),
}
KRYLOV = ("cg", "minres")
NOISY = ("fitc", "dtc")  # approximations of a model with Gaussian noise


class AsItIs(Krylov):
    """A solver without a second attempt at greater cost: this is what is compared. A system that misses its
    tolerance ends the run with a note."""

    def stronger(self, n: int) -> None:
        return None


@dataclass(frozen=True)
class Method:
    """A method of a comparison, without its size."""

    family: str
    variant: str

    @property
    def name(self) -> str:
        return f"{self.family}:{self.variant}" if self.variant else self.family

    @property
    def code(self) -> int:
        """A number that belongs to the name, on any machine: a part of the seed of a run."""
        return zlib.crc32(self.name.encode())

    @property
    def has_features(self) -> bool:
        """Whether it replaces K by Phi Phi'; the others work with K itself."""
        return self.family not in (*KRYLOV, "exact")

    @property
    def has_size(self) -> bool:
        return self.has_features or self.variant in ("pivoted", "rpcholesky")

    @property
    def objective(self) -> Objective:
        """What the features are used for: a model of their own ("dtc"), a bound ("vfe"), or with K's own
        diagonal ("fitc")."""
        return "vfe" if self.family == "vfe" else "fitc" if self.family == "fitc" else "dtc"

    def choose(
        self, kernel: Kernel, X: Array, size: int, rng: np.random.Generator
    ) -> tuple[Basis, float, float]:
        """Landmarks or frequencies for the rows of X, at most one landmark a row, each once; seconds for the
        probabilities that rows are drawn by, and for the rest of the choice."""
        began = time.perf_counter()
        if self.family == "fourier":
            basis: Basis = FourierBasis.draw(kernel, X.shape[1], size, self.variant, rng)
            return basis, 0.0, time.perf_counter() - began
        landmarked = landmarks(kernel, X, min(size, len(X)), self.variant, rng)
        # a row drawn twice adds nothing
        Z = np.unique(landmarked.Z, axis=0) if landmarked.indices is not None else landmarked.Z
        apart = landmarked.probabilities_seconds
        return NystromBasis(Z), apart, time.perf_counter() - began - apart

    def inference(self, basis: Basis, likelihood: Likelihood | None = None) -> Scheme:
        """Inference with features that have been chosen."""
        if self.family == "svgp":
            assert basis.landmarks is not None
            return SparseVariational((basis.landmarks,), described_as=self.name)
        return self.around(LowRank(basis, TREATED[self.objective], self.family, self.name), likelihood)

    def around(self, engine: Engine | Scheme, likelihood: Likelihood | None) -> Scheme:
        """Inference on an engine: in closed form for Gaussian noise (None), else by the rule that suits the
        engine."""
        if likelihood is None:
            return closed(engine)
        return on_engine(engine, VI() if self.family == "vfe" else laplace_for(likelihood))

    def solver(self, size: int, n: int, tol: float, max_iter: int, seed: int) -> CG | MINRES:
        """The Krylov solver with a preconditioner of that rank."""
        kind = CG if self.family == "cg" else MINRES
        name: Any = self.variant
        return kind(tol=tol, max_iter=max_iter, preconditioner=name, rank=min(max(size, 1), n), seed=seed)

    def bytes_needed(self, n: int, d: int, size: int, likelihood: Likelihood | None = None) -> int:
        """Predicted peak memory of a fit, the choice of landmarks included."""
        latents = 1 if likelihood is None else likelihood.latents
        fit = self.around(self.engine(size), likelihood).bytes_needed(n, d, latents)
        chooses = self.has_features and self.family != "fourier"
        return max(fit, RULES[self.variant].bytes_needed(n, min(size, n)) if chooses else 0)

    def engine(self, size: int) -> Engine | Scheme:
        """The method of the same name as an estimator would use it."""
        if self.family in KRYLOV:
            return Krylov(self.solver(size, max(size, 1), 1e-6, 1000, 0), 0)
        how = {"kind" if self.family == "fourier" else "sampling": self.variant} if self.variant else {}
        return as_method(method_with(self.family, size or None, **how))


def parse_methods(given: Sequence[str] | str) -> tuple[Method, ...]:
    """The methods of their names, each once, in their order."""
    names = [given] if isinstance(given, str) else list(given)
    if not names:
        raise ParameterError(
            'methods is empty. Name one or more, such as "nystrom:uniform" or "fourier:orf"; families:'
            f" {', '.join(FAMILIES)}."
        )
    return tuple(dict.fromkeys(map(_parse, names)))


def _parse(name: object) -> Method:
    if not isinstance(name, str):
        raise ParameterError(f'methods has {name!r}, which is not a name such as "nystrom:uniform".')
    family, colon, variant = name.strip().partition(":")
    if family not in FAMILIES:
        raise ParameterError(
            f"The method {name!r} is not known. It begins with {', '.join(FAMILIES)}; for example"
            " nystrom:uniform."
        )
    variants, usual = FAMILIES[family]
    if colon and variant not in variants:
        one = f"After the colon comes one of {', '.join(variants)}."
        cure = one if variants else f"Write {family} alone."
        raise ParameterError(f"The method {name!r} is not known. {cure}")
    return Method(family, variant or usual)
