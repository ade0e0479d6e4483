"""The contract of a kernel: an immutable tree of parameters that says what k(x, z) is.

    pair(x, z)      k on two points (d,), (d,); the definition, in JAX
    cross(X, Z)     k on two blocks (n, d), (m, d) -> (n, m); by default `pair` lifted over both, overridden
                    where a matrix form is faster
    diagonal(X)     k(x, x) on a block (n, d) -> (n,)

`kernel(X)`, `kernel(X, Z)` and `kernel.diag(X)` are the NumPy face of the same. A user's own kernel is a
subclass with its parameters and `pair`:

    class Quadratic(gm.Kernel):
        offset: gm.Parameter = gm.positive(1.0)

        def pair(self, x, z):
            return (x @ z + self.offset) ** 2

Kernels know no noise, no jitter and no solver, and have unit variance unless their definition has a natural
scale: `2.0 * RBF(0.5)` scales.

What the library knows about a kernel, the kernel says itself. Each answer (`stationary`, `differentiable`,
`levels`, `waves`, ...) has a default that is true of any kernel; one that knows more overrides it, and
`gramian.testing.check_kernel` holds it to what it says.
"""

from __future__ import annotations

import dataclasses
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.kernels import expectations
from gramian.kernels.expectations import Expectations, Expected, ExpectedTerm
from gramian.params import Parameter, Tree

if TYPE_CHECKING:
    from gramian.kernels.algebra import Power, Product, Scaled, Sum
    from gramian.kernels.host import Host
    from gramian.kernels.inputs import Named, On
    from gramian.kernels.profiles import PatchSum, Radial
    from gramian.kernels.spectrum import Wave
    from gramian.kernels.statespace import StateForm


class Column(NamedTuple):
    """What a kernel may know of a column before it sees data: how people call it, whether its numbers are
    codes of categories, and of a column of times how many days its unit has."""

    name: str
    categorical: bool = False
    days: float | None = None


TERMS = 6  # of a series of Markov processes, unless somebody wants more
# what is known of a kernel's values, and not of those of a subclass that defines them anew
KNOWN = {"low_precision", "levels", "radial", "patch_sum", "waves", "gaussian_terms", "state_space"}


class ImagePatches(NamedTuple):
    """How images, as rows of pixels, fall into patches."""

    image: tuple[int, int]  # height and width
    patch: tuple[int, int]
    channels: int
    weights: Array  # (patches down, patches across), how much each counts
    of: Callable[[Array], Array]  # rows (n, d) to their patches as points, (n, patches, columns of a point)


class Kernel(Tree):
    """Parent of all kernels. Subclass it with declared parameters and `pair` to make your own."""

    takes_numbers: ClassVar[bool] = False  # whether it measures, and columns of categories are refused
    one_number: ClassVar[tuple[str, ...]] = ()  # parameters that are one number whatever the data
    one_a_column: ClassVar[tuple[str, ...]] = ()  # parameters that are one number, or one a column

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A subclass of a whole kernel that defines values anew does not inherit what was known of the old
        ones."""
        annotations = vars(cls).get("__annotations__", {}).items()
        known = sorted(n for n, kind in annotations if "ClassVar" not in str(kind) and hasattr(Kernel, n))
        if known:
            raise ParameterError(
                f"{cls.__name__} declares {known[0]!r}, which is what every kernel says of itself. Call the"
                f" parameter otherwise; to say it, write `{known[0]} = ...` without a type, or a method."
            )
        super().__init_subclass__(**kwargs)
        whole = not any(getattr(base, "__abstractmethods__", ()) for base in cls.__bases__)
        if whole and vars(cls).keys() & {"pair", "cross", "diagonal", "profile", "of"}:
            for name in KNOWN - vars(cls).keys():
                setattr(cls, name, vars(Kernel)[name])

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in self.one_number:
            shape = getattr(self, field).value.shape
            if shape:
                raise ParameterError(
                    f"{type(self).__name__}: {field} must be one number, but has shape {shape}."
                )

    @abstractmethod
    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        """k(x, z) for two points (d,), as a JAX scalar."""

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        """k on all pairs of rows: (n, d), (m, d) -> (n, m)."""
        return jax.vmap(lambda x: jax.vmap(lambda z: self.pair(x, z))(Z))(X)

    def diagonal(self, X: jax.Array) -> jax.Array:
        """k(x, x) for each row: (n, d) -> (n,)."""
        return jax.vmap(lambda x: self.pair(x, x))(X)

    # What a kernel says of itself. --------------------------------------------------------------------------

    @property
    def plain_scale(self) -> Parameter | None:
        """The number that its formula begins with, where that is nothing more than a number."""
        return None

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels it is made of, not theirs in turn."""
        return tuple(child for _, child in self.branches() if isinstance(child, Kernel))

    def walk(self) -> Iterator[Kernel]:
        """Itself, and each kernel inside."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def stationary(self) -> bool:
        """Whether k(x, z) is known to be a function of x - z, so that moving all points changes nothing."""
        return False

    def on_host(self) -> Host | None:
        """Of a bare kernel: the same in NumPy (`kernels/host.py`), which is quicker for few rows; None where
        there is no such form, and all goes through JAX."""
        make = FORMS.get(type(self))  # not of subclasses: they may have changed the formula
        return None if make is None else make(self)

    @property
    def differentiable(self) -> bool:
        """Whether draws have a gradient (in mean square): what `predict_gradient` needs."""
        return all(part.differentiable for part in self.parts)

    @property
    def rough_parts(self) -> list[Kernel]:
        """The innermost kernels because of which draws have no gradient."""
        if self.differentiable:
            return []
        return [rough for part in self.parts for rough in part.rough_parts] or [self]

    @property
    def low_precision(self) -> bool:
        """Whether its programs may run in float32 and float64 in turn.

        Not known of one's own: JAX refuses a program of 64 bits with a NumPy array in it once it has seen
        that array in one of 32. A kernel of parameters and plain numbers may say `low_precision = True`.
        """
        return False

    def lengthscales(self, columns: Sequence[int]) -> list[tuple[Parameter, tuple[int, ...]]]:
        """The lengthscales of distances in a kernel on these columns, each with the columns it is for."""
        return [pair for part in self.parts for pair in part.lengthscales(columns)]

    def change_lengths(self, columns: Sequence[int]) -> list[tuple[int, float]]:
        """Lengths along these columns over which its functions change, each with its column: lengthscales,
        and of waves a period / 2 pi."""
        return [pair for part in self.parts for pair in part.change_lengths(columns)]

    def by_column(self, columns: Sequence[int]) -> list[tuple[Parameter, tuple[int, ...]]]:
        """The parameters that have an entry for each column, in a kernel on these columns, with them."""
        own = (getattr(self, field) for field in self.one_a_column)
        found = [(p, tuple(columns)) for p in own if p.value.shape == (len(columns),)]
        return found + [pair for part in self.parts for pair in part.by_column(columns)]

    def columns_asked(self) -> tuple[str | int, ...]:
        """The columns that it speaks of, by name or number, in the order in which they come; none: any."""
        sizes = [getattr(self, field).value.size for field in self.one_a_column]
        own = tuple(range(max(sizes, default=1)))
        parts = (column for part in self.parts for column in part.columns_asked())
        return tuple(dict.fromkeys((*(own if len(own) > 1 else ()), *parts)))

    def effort(self, d: int, points: bool = False) -> float:
        """How many values of an ordinary kernel one of its values takes as long as, on d columns; `points`:
        of one between a row and an inducing point."""
        return sum((part.effort(d, points) for part in self.parts), 0.0) or 1.0

    def image_patches(self) -> ImagePatches | None:
        """Of a kernel of images: which patches they fall into, and how much each counts."""
        return None

    def point_columns(self) -> tuple[int, int] | None:
        """The columns of a row, and those of an inducing point, where it knows points of another kind than
        rows: values between the two, that cost less. None: points are like rows."""
        return None

    def parted(self, *tables: Any) -> tuple[tuple[Any, ...], ...]:
        """Of a sum whose points are of another kind than rows: each term, with what it sees of tables of
        rows, or of points; else none. Terms are then made one by one, each in its own way."""
        return ()

    def points_among(self, X: Array, count: int, rng: np.random.Generator) -> Array:
        """So many candidates for inducing points, taken at random from rows X."""
        return np.asarray(X[np.sort(rng.integers(len(X), size=count))], dtype=np.float64)

    def suited(self, X: Array, names: Sequence[str]) -> Kernel:
        """The same, before a search of its parameters, for rows like these: networks take their units."""
        return self.rebuilt(lambda part: part.suited(X, names))

    def rivals(self, X: Array, names: Sequence[str]) -> tuple[tuple[str, Kernel], ...]:
        """Simpler kernels, each with a name, which it has to beat on held-out rows X to be taken, the
        simplest first; none: it is taken as it is."""
        told = next((found for part in self.parts if (found := part.rivals(X, names))), ())

        def rival(number: int) -> Kernel:
            def of(part: Kernel) -> Kernel:
                own = part.rivals(X, names)
                return own[number][1] if own else part

            return self.rebuilt(of)

        return tuple((name, rival(number)) for number, (name, _) in enumerate(told))

    def levels(self) -> list[Parameter] | None:
        """The parameters which, all multiplied by c, multiply k by c; None where there are none."""
        return None

    @property
    def title(self) -> str:
        """The name that a person has given it (`named`), or the only part of it that has one; else empty."""
        titles = [part.title for part in self.parts if part.title]
        return titles[0] if len(titles) == 1 else ""

    @property
    def summands(self) -> tuple[Kernel, ...]:
        """The kernels whose sum it is: those whose functions `components` tells apart."""
        return (self,)

    def radial(self) -> Radial | None:
        """k as factors times a function of one squared distance, in NumPy (`kernels/profiles.py`), where the
        factors and the lengthscale are all its parameters, in this order."""
        return None

    def patch_sum(self) -> PatchSum | None:
        """k as a sum over the patches of images of such a function, in NumPy (`kernels/profiles.py`)."""
        return None

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        """What a stationary kernel on these columns is an average of (`kernels/spectrum.py`): random Fourier
        features are made of it."""
        raise ParameterError(
            f"{type(self).__name__} has no known spectral measure, so there are no Fourier features for it."
        )

    def has_waves(self, d: int) -> bool:
        """Whether it has a spectral measure on d columns."""
        try:
            self.bare().waves(tuple(range(d)))
        except ParameterError:
            return False
        return True

    @property
    def without_waves(self) -> Kernel | None:
        """The first kernel inside that has no spectral measure."""
        if type(self).waves is Kernel.waves:
            return self
        return next((found for part in self.parts if (found := part.without_waves) is not None), None)

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        """Of a bare kernel on these columns: the Markov processes along one of them that it is the covariance
        of (`kernels/statespace.py`), so that rows cost time in proportion to their number; None where it is
        none, or sees several columns. `terms`: of a series, where it is one that must be cut."""
        return None

    def without_state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> Kernel | None:
        """Of a bare kernel: an innermost kernel because of which it has no state-space form; itself where
        each part has one, but not on one column; None where it has one."""
        if self.state_space(columns, terms) is not None:
            return None
        inside = (part.without_state_space(self.columns_of_part(columns), terms) for part in self.parts)
        return next((found for found in inside if found is not None), self)

    def columns_of_part(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        """Those of these columns that its parts see."""
        return columns

    def gaussian_terms(self, d: int) -> list[ExpectedTerm] | None:
        """Of a bare kernel on d columns: the Gaussians times linear forms in x that it is a sum of
        (`kernels/expectations.py`), so that its averages over uncertain points are closed; None where it is
        no such sum."""
        return None

    def expectations(self, mean: jax.Array, var: jax.Array, Z: jax.Array) -> Expectations:
        """E k(x, x), E k(x, Z) and E k(Z, x) k(x, Z) at each row of x ~ N(mean, diag(var)), in JAX: (n, d),
        (n, d), (m, d); closed where there are `gaussian_terms`, else by nodes."""
        terms = self.gaussian_terms(mean.shape[1])
        if terms is None:
            return expectations.by_nodes(self, mean, var, Z)
        return expectations.closed(terms, mean, var, Z)

    # What a kernel says of the columns it is given. ---------------------------------------------------------

    def check_columns(self, columns: Sequence[Column]) -> None:
        """Raises where the kernel does not fit the data's columns: a vector of lengthscales of the wrong
        length, categories in a numeric kernel."""
        if self.takes_numbers:
            self._check_numeric(columns)
        for field in self.one_a_column:
            self._check_vector(field, columns)
        for part in self.parts:
            part.check_columns(columns)

    def resolve(self, names: Sequence[str]) -> Kernel:
        """The same kernel with column names replaced by their indices."""
        return self.rebuilt(lambda part: part.resolve(names))

    def on_first_columns(self) -> Kernel:
        """The same kernel on as many of the first columns wherever it is on some: what it gives has the same
        shapes, and kernels that differ in their columns alone are one."""
        return self.rebuilt(lambda part: part.on_first_columns())

    def rebuilt(self, change: Callable[[Kernel], Kernel]) -> Kernel:
        """The same kernel of parts that are changed; itself, where none is."""
        changed: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Kernel) and (one := change(value)) is not value:
                changed[field.name] = one
            elif isinstance(value, tuple) and value and isinstance(value[0], Kernel):
                several = tuple(map(change, value))
                if any(new is not old for new, old in zip(several, value, strict=True)):
                    changed[field.name] = several
        return dataclasses.replace(self, **changed) if changed else self

    def in_units(self, columns: Sequence[Column]) -> Kernel:
        """The same kernel with periods that were given as text ("1 year") in the units of the columns."""
        return self.rebuilt(lambda part: part.in_units(columns))

    def _check_vector(self, field: str, columns: Sequence[Column]) -> None:
        value = getattr(self, field).value
        if value.ndim > 1:
            raise ParameterError(
                f"{type(self).__name__}: {field} has shape {value.shape}, but must be one number, or a list"
                " with one a column."
            )
        if value.ndim == 1 and value.size not in (1, len(columns)):
            shown = ", ".join(c.name for c in columns[:8]) + (", ..." if len(columns) > 8 else "")
            raise ParameterError(
                f"{field} has {value.size} values, but the data have {len(columns)} columns ({shown}). Give"
                f" one value, or {len(columns)}, or select columns: {type(self).__name__}([...]).on(...)."
            )

    def _check_numeric(self, columns: Sequence[Column]) -> None:
        text, own = [c.name for c in columns if c.categorical], type(self).__name__
        if text:
            raise ParameterError(
                f"{own} needs numbers, but column {text[0]!r} holds categories. Use"
                f' Categorical().on("{text[0]}") for it, and select the others: {own}(...).on(...).'
            )

    # The NumPy face. ----------------------------------------------------------------------------------------

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> Any:
        """The Gram matrix of X (n, n), or of X and Z (n, m), in float64. Two single points (d,) give one
        number."""
        from gramian.kernels.face import evaluate

        return evaluate(self, X, Z)

    def diag(self, X: ArrayLike) -> Array:
        """k(x, x) for each row of X."""
        from gramian.kernels.face import evaluate_diagonal

        return evaluate_diagonal(self, X)

    def expected(self, mean: ArrayLike, var: ArrayLike, Z: ArrayLike) -> Expected:
        """What it is on average at points that are known up to a variance, x ~ N(mean, diag(var)): E k(x, x)
        (n,), E k(x, Z) (n, m), E k(Z, x) k(x, Z) (n, m, m), and the error of a rule where they are not
        closed. `var` is one number, one a column, or one a cell."""
        from gramian.kernels.face import evaluate_expected

        return evaluate_expected(self, mean, var, Z)

    def sample(self, X: ArrayLike, n_samples: int = 1, seed: Any = 0) -> Array:
        """Functions that the kernel expects, at the rows of X: joint draws of N(0, K), (n, n_samples). The
        same seed gives the same functions. Cost: n^3, in one (n, n) array and its eigenvectors."""
        from gramian.kernels.face import draws

        return draws(self, X, n_samples, seed)

    def plot(self, X: Any = None, **settings: Any) -> Any:
        """A picture of the kernel: its shape, its matrix, and functions that it expects (see
        gramian.plots.plot_kernel)."""
        from gramian.plots.kernels import plot_kernel

        return plot_kernel(self, X, **settings)

    def on(self, *columns: str | int) -> On:
        """This kernel on some columns only, by name or index: `RBF(1.0).on("temp", "pressure")`."""
        from gramian.kernels.inputs import On

        return On(self, columns)

    def named(self, name: str) -> Named:
        """The same with a name, by which `components` knows its part of f: `Linear().named("trend")`."""
        from gramian.kernels.inputs import Named

        return Named(self, name)

    # The algebra. -------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Sum:
        from gramian.kernels.algebra import add

        return add(self, other)

    def __radd__(self, other: Any) -> Sum:
        from gramian.kernels.algebra import add

        return add(other, self)

    def __mul__(self, other: Any) -> Product | Scaled:
        from gramian.kernels.algebra import multiply

        return multiply(self, other)

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Power:
        from gramian.kernels.algebra import Power

        return Power(self, exponent)

    # Makes `numpy_scalar * kernel` come here instead of NumPy trying to spread the kernel over an array.
    __array_ufunc__ = None

    # Printing. ----------------------------------------------------------------------------------------------

    def formula(self, digits: int | None = None) -> str:
        """The kernel as text that the kernel language reads back; rounded when digits are given."""
        parts: list[str] = []
        for number, field in enumerate(dataclasses.fields(self)):
            value, default = getattr(self, field.name), field.default
            if isinstance(value, Parameter):
                text = value.text(digits)
                usual = default is not dataclasses.MISSING and text == Parameter(default).text(digits)
            else:
                text, usual = repr(value), value == default
            if not usual:
                parts.append(text if len(parts) == number else f"{field.name}={text}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __repr__(self) -> str:
        return self.formula()

    def __str__(self) -> str:
        return self.formula(4)

    def _repr_html_(self) -> str:
        return f"<code>{escape(self.formula(4))}</code>"

    def __eq__(self, other: object) -> bool:
        """The same structure with the same values; priors and bounds count too."""
        if isinstance(other, str):
            _meet_sklearn()
        return type(self) is type(other) and isinstance(other, Kernel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        described = [
            (path, p.value.shape, p.value.tobytes(), p.prior, p.bounds, p.trainable)
            for path, p in self.parameters().items()
        ]
        return (jax.tree_util.tree_structure(self.bare()), tuple(described))


class Inward(Kernel):
    """A kernel whose parts see other columns than those of the data (patches, features), of which nothing is
    known: neither their names nor their units."""

    def lengthscales(self, columns: Sequence[int]) -> list[tuple[Parameter, tuple[int, ...]]]:
        return []

    def change_lengths(self, columns: Sequence[int]) -> list[tuple[int, float]]:
        return []

    def by_column(self, columns: Sequence[int]) -> list[tuple[Parameter, tuple[int, ...]]]:
        return []

    def columns_asked(self) -> tuple[str | int, ...]:
        return ()

    def resolve(self, names: Sequence[str]) -> Kernel:
        return self

    def in_units(self, columns: Sequence[Column]) -> Kernel:
        return self


class Pointwise(Kernel):
    """A kernel whose value at (x, z) is a function of its parts' values there, and of nothing else: what is
    true of all parts is true of it."""

    @property
    def stationary(self) -> bool:
        return all(part.stationary for part in self.parts)

    @property
    def low_precision(self) -> bool:
        return all(part.low_precision for part in self.parts)


# What this library's kernels are in NumPy, from their bare trees: kernels/host.py says so.
FORMS: dict[type[Kernel], Callable[[Any], Host | None]] = {}


def _meet_sklearn() -> None:
    """Lets scikit-learn's machines (KernelRidge, KernelPCA, ...) call a kernel once with whole tables.

    Their `pairwise_kernels` does so with an instance of scikit-learn's own Kernel class, and calls any other
    function once a pair of rows, a few thousand pairs a second. It imports that class when it first runs,
    asks `metric == "precomputed"`, and then asks for the class: in between is the moment to be registered as
    one of them, without an import of our own (70 ms that few would need).
    """
    theirs = getattr(sys.modules.get("sklearn.gaussian_process.kernels"), "Kernel", None)
    if theirs is not None:
        theirs.register(Kernel)
