"""What a person writes as `method=`: the engines with features, before they have seen data.

    Nystrom(rank, sampling)     K ~ K_xz K_zz^-1 K_zx taken as the model
    Fourier(n_features, kind)   K ~ Phi Phi' with random frequencies
    Sparse(n_inducing, objective, inducing, optimize_inducing)
                                the bounds and approximations with inducing points: "vfe", "fitc", "dtc"

Each chooses its basis in `prepared`; from then on they are one and the same engine (lowrank.py).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gramian.arrays import Array, deviation, is_whole, plain_numbers
from gramian.engines.base import RowPrior, Use, Workspace
from gramian.engines.lowrank import ACCURACY, FeatureEngine, LowRank, Outside
from gramian.errors import ParameterError
from gramian.features.fourier import KINDS, FourierBasis
from gramian.features.nystrom import NystromBasis
from gramian.kernels.base import Kernel
from gramian.landmarks.base import LandmarkRule
from gramian.landmarks.rules import as_rule, landmarks, named
from gramian.linalg.cost import Cost

Objective = Literal["vfe", "fitc", "dtc"]

CANDIDATES, FEWEST_CANDIDATES = 10, 1000  # patches and their like, for a point
TREATED: dict[str, Outside] = {"vfe": "bound", "fitc": "noise", "dtc": "nothing"}


@dataclass(frozen=True)
class Recipe(FeatureEngine):
    """An engine with features whose basis is still to be chosen: used as it is, with a fixed seed."""

    @abstractmethod
    def prepared(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> LowRank:
        """With its basis."""

    @abstractmethod
    def size(self, n: int) -> int:
        """How many features n rows get."""

    def features_for(self, n: int) -> int:
        return self.size(n)

    @property
    def chosen_by(self) -> LandmarkRule | None:
        """The rule that chooses points among the rows, where one does."""
        return None

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        """Points are chosen once more for the final inference: c m^2 flops among c candidates, as a partial
        Cholesky factor takes, and about that many other rules."""
        own, rule, m = super().work(n, d, q, gradient), self.chosen_by, self.size(n)
        if gradient or rule is None:
            return own
        candidates = float(rule.candidates(n, m))
        return own._replace(flops=own.flops + candidates * m * m, values=own.values + candidates * m)

    def ready(self, kernel: Kernel, X: Array) -> LowRank:
        return self.prepared(kernel, X, np.random.default_rng(0))

    def at(self, kernel: Kernel, X: Array, use: Use, workspace: Workspace | None = None) -> RowPrior:
        return self.ready(kernel, X).at(kernel, X, use, workspace)


@dataclass(frozen=True)
class Nystrom(Recipe):
    """K ~ K_xz K_zz^-1 K_zx with `rank` landmarks that the rule `sampling` chooses among the rows.

    The rules: uniform, diagonal, column-norm, leverage, rls, recursive-rls, kmeans, pivoted, rpcholesky (the
    default), or a LandmarkRule of one's own.
    """

    rank: int = 1000
    sampling: str | LandmarkRule = "rpcholesky"
    name = "nystrom"
    accuracy = ACCURACY["nothing"]
    at_points = True

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_size(self.rank, "Nystrom: rank")
        object.__setattr__(self, "sampling", named(as_rule(self.sampling, "Nystrom: sampling")))

    @property
    def described(self) -> str:
        return f"{self.rank} landmarks by {self.sampling}"

    @property
    def label(self) -> str:
        return f"nystrom, rank {self.rank}" + _unusual(self.sampling, Nystrom.sampling, " by {}")

    def size(self, n: int) -> int:
        return min(self.rank, n)

    @property
    def chosen_by(self) -> LandmarkRule:
        return as_rule(self.sampling)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        return max(super().bytes_needed(n, d, q), bytes_of_rule(self.sampling, n, self.size(n)))

    def prepared(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> LowRank:
        Z = chosen(kernel, X, self.rank, self.sampling, rng)
        return LowRank(NystromBasis(Z), "nothing", self.name, f"{len(Z)} landmarks by {self.sampling}")


@dataclass(frozen=True)
class Fourier(Recipe):
    """K ~ Phi Phi' with `n_features` random Fourier features.

    The kinds: rff (plain), rff-phase, orf (orthogonal, the default), sorf (orthogonal by fast Hadamard
    transforms), qmc (quasi-Monte Carlo).
    """

    n_features: int = 1000
    kind: str = "orf"
    name = "fourier"
    accuracy = "approximation, random"
    whitened = False

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_size(self.n_features, "Fourier: n_features")
        if self.kind not in KINDS:
            raise ParameterError(f"Fourier: kind={self.kind!r} is not known. There are {', '.join(KINDS)}.")

    @property
    def described(self) -> str:
        return f"{self.n_features} Fourier features ({self.kind})"

    @property
    def label(self) -> str:
        return f"fourier, {self.n_features} features" + _unusual(self.kind, Fourier.kind, " ({})")

    def size(self, n: int) -> int:
        return self.n_features

    def learns_from(self, n: int) -> bool:
        # with fewer rows a feature, a search can tune the random frequencies to them: too high an evidence
        return n >= 10 * self.n_features

    def check_fits(self, kernel: Kernel, d: int) -> None:
        FourierBasis.draw(kernel, d, self.n_features, self.kind, np.random.default_rng(0), np.zeros(d))

    def prepared(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> LowRank:
        # small phases keep their digits
        centre = np.median(_some(X), axis=0)
        basis = FourierBasis.draw(kernel, X.shape[1], self.n_features, self.kind, rng, centre)
        return LowRank(basis, "nothing", self.name, self.described)


class Inducing:
    """What methods with inducing points share: `n_inducing` of them, given as a table or chosen by a rule."""

    n_inducing: int
    inducing: str | LandmarkRule | tuple[tuple[float, ...], ...]
    optimize_inducing: bool

    def check_inducing(self) -> None:
        """Makes of a rule its name, and of a table what is hashable and nobody else's array."""
        who = type(self).__name__
        if not isinstance(self.inducing, (str, LandmarkRule)):
            Z = np.asarray(self.inducing, dtype=np.float64)
            if Z.ndim != 2 or not len(Z) or not np.all(np.isfinite(Z)):
                raise ParameterError(
                    f"{who}: inducing must be a landmark rule, or a table of finite points, one a row; its"
                    f" shape is {Z.shape}."
                )
            object.__setattr__(self, "inducing", tuple(map(tuple, Z.tolist())))
            object.__setattr__(self, "n_inducing", len(Z))
        else:
            object.__setattr__(self, "inducing", named(as_rule(self.inducing, f"{who}: inducing")))
        check_size(self.n_inducing, f"{who}: n_inducing")

    @property
    def rule(self) -> LandmarkRule | None:
        """What chooses the points, unless they are given."""
        return None if isinstance(self.inducing, tuple) else as_rule(self.inducing)

    @property
    def described(self) -> str:
        return self.points_described(self.n_inducing)

    def points_described(self, m: int) -> str:
        how = "learned" if self.optimize_inducing else "as given" if self.rule is None else f"by {self.rule}"
        return f"{m} inducing points, {how}"

    def points_label(self, usual: object) -> str:
        """How many points, and how they are chosen where that is not the usual way."""
        how = "given ones" if self.rule is None else str(self.rule)
        return f"{self.n_inducing} points" + _unusual(how, usual, " by {}")

    def size(self, n: int) -> int:
        """How many points n rows get."""
        return self.n_inducing if self.rule is None else min(self.n_inducing, n)

    def check_columns(self, kernel: Kernel, d: int) -> None:
        """Refuses points that are given and do not have the d columns of the data, or those of the kernel's
        own kind of points."""
        own = kernel.point_columns()
        count, whose = (d, "the data") if own is None else (own[1], "points of this kernel")
        if isinstance(self.inducing, tuple) and len(self.inducing[0]) != count:
            given = f"{type(self).__name__}: the inducing points have {len(self.inducing[0])} columns"
            raise ParameterError(f"{given}, but {whose} have {count}.")

    def points(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> Array:
        self.check_columns(kernel, X.shape[1])
        rule = self.rule
        return np.array(self.inducing) if rule is None else chosen(kernel, X, self.n_inducing, rule, rng)


@dataclass(frozen=True)
class Sparse(Inducing, Recipe):
    """Inducing points: the variational bound ("vfe", the default), "fitc" or "dtc".

    `inducing` is a landmark rule, or the points themselves; `optimize_inducing` moves them with the
    parameters, by the gradient of the objective.
    """

    n_inducing: int = 512
    objective: Objective = "vfe"
    inducing: str | LandmarkRule | tuple[tuple[float, ...], ...] = "rpcholesky"
    optimize_inducing: bool = False
    at_points = True

    def __post_init__(self) -> None:
        plain_numbers(self)
        self.check_inducing()
        if self.objective not in ("vfe", "fitc", "dtc"):
            raise ParameterError(
                f'Sparse: objective={self.objective!r} is not known. Use "vfe", "fitc" or "dtc".'
            )

    @property
    def name(self) -> str:
        return self.objective

    @property
    def label(self) -> str:
        return f"{self.name}, {self.points_label(Sparse.inducing)}"

    @property
    def accuracy(self) -> str:
        return ACCURACY[TREATED[self.objective]]

    @property
    def bound(self) -> bool:
        return self.objective == "vfe"

    @property
    def chosen_by(self) -> LandmarkRule | None:
        return self.rule

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        return max(super().bytes_needed(n, d, q), bytes_of_rule(self.rule, n, self.size(n)))

    def check_fits(self, kernel: Kernel, d: int) -> None:
        self.check_columns(kernel, d)

    def prepared(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> LowRank:
        Z = self.points(kernel, X, rng)
        basis = NystromBasis(Z, learned=self.optimize_inducing)
        units = units_of(X if Z.shape[1] == X.shape[1] else Z)
        return LowRank(basis, TREATED[self.objective], self.name, self.points_described(len(Z)), *units)


def units_of(X: Array) -> tuple[Array, Array]:
    """The centre and the spread of the columns, (d,) each: points are moved in these units."""
    some = _some(X)
    spread = deviation(some)
    return np.mean(some, axis=0), np.where(spread > 0, spread, 1.0)


def _some(X: Array) -> Array:
    """Rows enough to tell where the columns lie."""
    return np.asarray(X[:: max(1, len(X) // 10_000)], dtype=np.float64)


def chosen(kernel: Kernel, X: Array, m: int, rule: str | LandmarkRule, rng: np.random.Generator) -> Array:
    """Landmarks for a fit: at most one a row, each once, among as many random rows as the rule wants; of a
    kernel with points of another kind, among some of those."""
    n = len(X)
    if kernel.point_columns() is not None:
        points = np.unique(kernel.points_among(X, max(CANDIDATES * m, FEWEST_CANDIDATES), rng), axis=0)
        return as_rule(rule).choose(kernel, points, min(m, len(points)), rng).Z
    rows = as_rule(rule).candidates(n, min(m, n))
    if rows < n:
        X = np.asarray(X[np.sort(rng.choice(n, rows, replace=False))], dtype=np.float64)
    found = landmarks(kernel, X, min(m, n), rule, np.random.RandomState(rng.integers(2**32)))
    return np.unique(found.Z, axis=0) if found.indices is not None else found.Z


def bytes_of_rule(rule: str | LandmarkRule | None, n: int, m: int) -> int:
    """Of a choice of landmarks for a fit; None: points that are given."""
    return 0 if rule is None else as_rule(rule).bytes_needed(as_rule(rule).candidates(n, m), m)


def _unusual(how: object, usual: object, text: str) -> str:
    return "" if how == usual else text.format(how)


def check_size(value: object, what: str) -> None:
    if not is_whole(value):
        raise ParameterError(f"{what}={value!r} must be a whole number from 1 on.")
