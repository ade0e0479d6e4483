"""The contract of engines: a Gaussian prior N(0, K) at the rows of the data, and the same with Gaussian
sites.

An engine is K at the rows. A rule of inference multiplies N(g; 0, K) by sites exp(h_i g_i - lam_i g_i^2 / 2),
one a row, and asks for what follows:

    S = (K^-1 + Lam)^-1,  mean = S h,  alpha = K^-1 mean = h - Lam mean,  A = K + Lam^-1,  log det(I + K Lam)

With Gaussian noise D the sites are lam = 1 / D, h = lam r, and that is all; other likelihoods come to their
sites in several steps. `observe(D, r)` says the same as `condition(1 / D, r / D)`, and D may be zero there. A
row with lam = h = 0, or D = inf, was not observed. Several right-hand sides h (n, q) share lam.

The gradient of every evidence by K is 1/2 alpha alpha' - q/2 A^-1 + 1/2 (u alpha' + alpha u'), so that one
`pullback` serves all rules.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gramian.arrays import Array, Indices
from gramian.features.base import Basis
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.kernels.host import Pairs
from gramian.linalg.cost import Cost
from gramian.processes.base import Process
from gramian.processes.prior import GaussianProcess
from gramian.processes.stacked import side_by_side
from gramian.solvers.base import SolveOutcome, Solver

Share = Callable[[float], None]
Columns = Sequence[Sequence[int]]  # of each conditioned, the outputs that its right-hand sides are for
Sides = Sequence[int] | None  # right-hand sides; None: all


class Use(NamedTuple):
    """What a rule will do with a prior."""

    again: bool = False  # sites are put on it more than once
    signed: bool = False  # sites may curve the wrong way: lam of any sign
    back: bool = False  # gradients will be asked for
    whole: bool = False  # variances at the rows count what features leave out, where the engine has a bound


class Term(NamedTuple):
    """What one function adds to the gradient of an evidence: weights on K, and on what features leave out."""

    sited: Any  # Conditioned
    alpha: Array | None = None  # (n, q): a; its own where there is none
    u: Array | None = None  # (n, q)
    logdet: bool = True  # whether -q/2 A^-1 belongs to it
    by_outside: Array | None = None  # (n,): the weight of k(x, x) - |phi|^2, where variances count it


class Gradients(NamedTuple):
    """What an evidence changes by."""

    by_kernel: list[Array]  # one a parameter
    by_points: Array | None  # of points that are learned, (m, d)
    by_level: Array  # by a number added to all variances 1 / lam: one an output of each term


def added(total: list[Array], part: list[Array]) -> list[Array]:
    """The sum of two gradients, array by array; the second where the first is still empty."""
    return [one + more for one, more in zip(total, part, strict=True)] if total else part


def by_output(
    values: Sequence[Array], columns: Columns, sides: Sides, q: int
) -> tuple[Array, tuple[int, ...]]:
    """The columns of arrays (n, .), those of `sides` or all, by output; and which array each is from."""
    out, source = np.empty((len(values[0]), q)), [0] * q
    for k, (value, outputs) in enumerate(zip(values, columns, strict=True)):
        out[:, list(outputs)] = value if sides is None else value[:, list(sides)]
        for output in outputs:
            source[output] = k
    return out, tuple(source)


class Workspace:
    """The large array of an evaluation, kept for the next one instead of asked from the system and given back
    each time; and where an iterative rule may begin."""

    def __init__(self) -> None:
        self._array: Array | None = None
        self._points: Pairs | None = None
        self.start: Array | None = None  # what a rule found for the last parameters
        self.kept: Any = None  # what a rule has made of the rows, for the next parameters

    def square(self, n: int) -> Array:
        """An uninitialised Fortran-ordered (n, n) array."""
        if self._array is None or self._array.shape != (n, n):
            self._array = np.empty((n, n), order="F")
        return self._array

    def pairs(self, X: Array) -> Pairs:
        """The rows of X beside themselves, with what is known of them."""
        if self._points is None or self._points.X is not X:
            self._points = Pairs(X, X, kept=True)
        return self._points

    def release(self) -> None:
        """Gives the memory back."""
        self._array = self._points = None


class Conditioned(ABC):
    """The prior with sites: what `RowPrior.condition` gives."""

    prior: RowPrior  # whose factor it has
    lam: Array  # (n,), as used; infinite where there is no noise
    outcome: SolveOutcome

    @property
    @abstractmethod
    def logdet(self) -> float:
        """log det(I + K Lam)."""

    @property
    @abstractmethod
    def logdet_noisy(self) -> float:
        """log det A, of the rows that were observed."""

    @property
    def logdet_error(self) -> float:
        """The standard error of both, where they are estimates."""
        return 0.0

    @property
    @abstractmethod
    def mean(self) -> Array:
        """S h, (n, q)."""

    @property
    @abstractmethod
    def alpha(self) -> Array:
        """K^-1 mean, (n, q)."""

    @property
    @abstractmethod
    def quad(self) -> Array:
        """r'A^-1 r of the observations r = h / lam, (q,)."""

    @abstractmethod
    def var(self) -> Array:
        """The diagonal of S, (n,)."""

    @abstractmethod
    def precision(self) -> Array:
        """The diagonal of A^-1, (n,): what a row is known by from all the others. Zero where not observed."""

    @abstractmethod
    def spread(self, b: Array) -> Array:
        """S b for b (n,) or (n, k)."""

    def covariance(self) -> Array:
        """S, all of it (n, n), Fortran-ordered."""
        return np.asfortranarray(self.spread(np.eye(len(self.lam))))

    def pullback(self, alpha: Array | None = None, u: Array | None = None, **others: Any) -> Gradients:
        """The gradient of a `Term` with these arrays, and its other fields by name. Uses the factor up."""
        return self.prior.pullback([Term(self, alpha, u, **others)])

    def alone(self, prior: GaussianProcess, side: int) -> Process:
        """The posterior of one of its right-hand sides. Uses the factor up."""
        return self.prior.together(prior, [self], [[0]], [side])

    def release(self) -> None:
        """Gives its memory back, where that helps; afterwards only mean and alpha can be asked for."""
        return


class RowPrior(ABC):
    """N(0, K) at the rows of X."""

    X: Array  # (n, d)
    kernel: Kernel
    features: Any = None  # a FeatureMap, where K is that of features
    rooted: bool = False  # whether what it gives has root() and inverse() of A: what makes classes dependent

    @abstractmethod
    def condition(self, lam: Array, h: Array, report: Share | None = None) -> Conditioned:
        """With the sites lam (n,), h (n, q)."""

    @abstractmethod
    def observe(self, D: Array, r: Array, report: Share | None = None) -> Conditioned:
        """With observations r (n, q) of noise D (n,); rows where that is infinite were not observed."""

    def times(self, b: Array) -> Array:
        """K b for b (n,) or (n, k)."""
        return tiles.matmul(self.kernel, self.X, self.X, b.reshape(len(b), -1)).reshape(b.shape)

    def process(
        self, prior: GaussianProcess, conditioned: Sequence[Conditioned], columns: Columns
    ) -> Process:
        """The posterior of f: each of the conditioned is for some outputs. Uses them up."""
        if all(one.prior is self for one in conditioned):
            return self.together(prior, conditioned, columns)
        pairs = zip(conditioned, columns, strict=True)  # some have rows of their own
        alone = [(one.alone(prior.of_output(k), j), [k]) for one, own in pairs for j, k in enumerate(own)]
        return side_by_side(alone)

    @abstractmethod
    def together(
        self, prior: GaussianProcess, conditioned: Sequence[Any], columns: Columns, sides: Sides = None
    ) -> Process:
        """The posterior from what this prior has given: all right-hand sides of each, or those of `sides`."""

    @abstractmethod
    def pullback(self, terms: Sequence[Term]) -> Gradients:
        """The gradient of their sum, a a'/2 - q/2 A^-1 + (u a' + a u')/2 on K. Uses their factors up."""

    @property
    def outside(self) -> Array | float:
        """The part of k(x, x) that features leave out at the rows, where variances of the data count it."""
        return 0.0


class SolvedConditioned(Conditioned):
    """A system A alpha = r that is solved: what follows from D, r, alpha and A^-1."""

    prior: Any  # with its own arrays
    D: Array  # (n,)
    r: Array  # (n, q)
    _alpha: Array  # (n, q)

    @abstractmethod
    def inverse_times(self, b: Array) -> Array:
        """A^-1 b for b (n,) or (n, k)."""

    @cached_property
    def lam(self) -> Array:  # type: ignore[override]  # from D, which is what is given
        with np.errstate(divide="ignore"):
            return 1 / self.D

    @property
    def logdet(self) -> float:
        return self.logdet_noisy - float(np.sum(np.log(self.D)))

    @property
    def alpha(self) -> Array:
        return self._alpha

    @property
    def quad(self) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused where it arrives
            return (self.r * self._alpha).sum(axis=0)

    def spread(self, b: Array) -> Array:
        Kb = self.prior.times(b)
        return Kb - self.prior.times(self.inverse_times(Kb))


class PartConditioned(Conditioned):
    """Sites on some of the rows, for engines whose factor has no place for a row without a site."""

    def __init__(self, whole: RowPrior, part: RowPrior, at: Indices, sited: Any) -> None:
        self.whole, self.part, self.at, self.sited = whole, part, at, sited  # a SolvedConditioned
        self.prior = part
        self.lam = self._spread_out(sited.lam)
        self.outcome = sited.outcome

    @property
    def logdet(self) -> float:
        return self.sited.logdet

    @property
    def logdet_noisy(self) -> float:
        return self.sited.logdet_noisy

    @property
    def logdet_error(self) -> float:
        return self.sited.logdet_error

    @property
    def quad(self) -> Array:
        return self.sited.quad

    @property
    def alpha(self) -> Array:
        return self._spread_out(self.sited.alpha)

    @property
    def mean(self) -> Array:
        return self.whole.times(self.alpha)

    def precision(self) -> Array:
        return self._spread_out(self.sited.precision())

    def var(self) -> Array:
        out = tiles.diagonal(self.whole.kernel, self.whole.X)
        others = np.setdiff1d(np.arange(len(self.lam)), self.at)
        cross = tiles.cross(self.whole.kernel, self.part.X, self.whole.X[others])
        out[others] -= np.einsum("ij,ij->j", cross, self.sited.inverse_times(cross))
        out[self.at] = self.sited.var()
        return np.maximum(out, 0.0)

    def spread(self, b: Array) -> Array:
        Kb = self.whole.times(b)
        return Kb - self.whole.times(self._spread_out(self.sited.inverse_times(Kb[self.at])))

    def pullback(self, alpha: Array | None = None, u: Array | None = None, **others: Any) -> Gradients:
        own = (None if array is None else array[self.at] for array in (alpha, u))
        return self.sited.pullback(*own, **others)

    def alone(self, prior: GaussianProcess, side: int) -> Process:
        return self.sited.alone(prior, side)

    def release(self) -> None:
        self.sited.release()

    def _spread_out(self, values: Array) -> Array:
        out = np.zeros((len(self.whole.X), *values.shape[1:]))
        out[self.at] = values
        return out


class Engine(ABC):
    """How K at the rows is treated: what a person writes as `method=`.

    What is chosen once (landmarks, frequencies, pivots) is chosen by `prepared`, before parameters are
    searched, so that a search sees one smooth function.
    """

    fit_rows: int | None = None  # rows to search parameters on, where somebody said so
    fit_rule: str = "uniform"  # how these are chosen
    # whether it asks a kernel for values alone, so that a search may hand it one without Parameters
    values_alone: ClassVar[bool] = False
    solver: Solver | None = None  # of systems with K + D, where it has one
    exact: bool = False  # whether it is K itself, to rounding or to the tolerance of a solver
    dense: bool = False  # whether it holds K as a matrix: what searches on few rows begin with
    linear: bool = False  # whether its work grows with the rows alone, so that it begins with itself
    # whether value and gradient agree to rounding, as estimates do not: a search then has all digits
    smooth: bool = True
    # whether the variances of all rows, and inverses, come with a factor; by solves they cost too much
    variances: bool = True
    # whether it looks at what is near alone, so that neighbourhoods of rows say nearly all about parameters
    local: bool = False
    conjugate_only: bool = False  # whether its K is that of one noise: rules of many steps have none to go on
    streams: bool = False  # whether rows may stay on disk: nothing has n^2 numbers
    programs: int = 6  # that are compiled for a kernel: its values in several shapes, and their gradients
    # the kinds of process (`Process.kind`) that its rules give with it: what can be restored
    kinds: tuple[str, ...] = ()

    @property
    def at_points(self) -> bool:
        """Whether most kernel values are those between rows and landmarks."""
        return False

    @property
    @abstractmethod
    def name(self) -> str:
        """As in `method=`."""

    @property
    @abstractmethod
    def described(self) -> str:
        """What does the linear algebra, for people."""

    @property
    def label(self) -> str:
        """The name with its size, and how it chooses where that is not the usual way."""
        return self.name

    @property
    @abstractmethod
    def accuracy(self) -> str:
        """What its answer is beside that of exact inference, for people."""

    @property
    def bound(self) -> bool:
        """Whether its evidence under Gaussian noise is a lower bound of the exact one."""
        return False

    def learns_from(self, n: int) -> bool:
        """Whether its evidence on n rows is a guide to parameters."""
        return True

    @property
    def chosen_basis(self) -> Basis | None:
        """The basis of its features, where it has features and they are chosen."""
        return None

    def basis_at(self, X: Array | None) -> Basis | None:
        """The basis of a process with features; of all rows X, where those are the features."""
        return self.chosen_basis

    def check_choices(self, X: Array | None, d: int) -> None:  # noqa: B027 most have none
        """Refuses, with a StateError, choices that were not made for such rows; they may be from a file."""

    def features_for(self, n: int) -> int | None:
        """How many features stand for n rows, where they do."""
        return None

    # Its work. ----------------------------------------------------------------------------------------------

    def check_fits(self, kernel: Kernel, d: int) -> None:  # noqa: B027 most have nothing to refuse
        """Refuses, before a fit, what it cannot do for such a kernel and d columns at any parameters."""

    def prepared(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> Engine:
        """The same engine with its choices made for these rows and, where it matters, these parameters."""
        return self

    def on_other_rows(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> Engine:
        """The same for other rows than it was prepared for. Landmarks and frequencies stay as they are."""
        return self

    def ready(self, kernel: Kernel, X: Array) -> Engine:
        """The same where its choices are made; else with choices by a fixed seed."""
        return self

    def stale(self, kernel: Kernel, X: Array) -> bool:
        """Whether its choices suit these parameters no more, and a search should go on with others."""
        return False

    def stored(self) -> Engine:
        """The same without choices that `ready` makes again, bit by bit."""
        return self

    @property
    def free(self) -> Array:
        """What a search moves besides parameters, a vector: points in units of their columns' spread."""
        return np.zeros(0)

    def with_free(self, values: Array) -> Engine:
        """The same with `free` moved."""
        return self

    def free_gradient(self, by_points: Array) -> Array:
        """The gradient by `free` from that by the points."""
        return by_points

    @abstractmethod
    def at(self, kernel: Kernel, X: Array, use: Use, workspace: Workspace | None = None) -> RowPrior:
        """N(0, K) at the rows."""

    # Its cost. ----------------------------------------------------------------------------------------------

    @abstractmethod
    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        """What one evaluation with gradient costs, or the final inference."""

    @abstractmethod
    def bytes_needed(self, n: int, d: int, q: int) -> int:
        """Peak memory of fitting n rows, d columns and q outputs."""

    def bytes_of_noise(self, n: int, d: int) -> int:
        """What each further noise holds to the end, where outputs differ in theirs."""
        return self.bytes_needed(n, d, 1)

    def bytes_of_sites(self, n: int, d: int, latents: int) -> int:
        """The same under a rule that puts sites on it again and again."""
        return self.bytes_needed(n, d, 1) + 80 * n * latents
