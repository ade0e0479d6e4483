"""From a tree of parameters to the flat vector of an optimiser, and back.

theta stacks the unconstrained forms of all trainable parameters. This is the one place where a value is
transformed. What does not depend on theta is found once (where each parameter lies, which of them share a
transform or a kind of prior), so that an evaluation takes one call a kind, not one a parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import qmc

from gramian.arrays import Array
from gramian.errors import ParameterError, visible
from gramian.params.parameter import Parameter
from gramian.params.priors import Prior
from gramian.params.support import Support

STILL = 1e-3  # nats a unit of theta: the slope of a prior where nothing but it has put a parameter


class ThetaPart(NamedTuple):
    """Where a trainable parameter lies in theta."""

    path: str
    parameter: Parameter
    at: slice
    shape: tuple[int, ...]


class Map(NamedTuple):
    """A transform, and the entries of theta that go through it in one call."""

    support: Support
    at: Any  # a slice or indices of theta
    shape: tuple[int, ...]  # that the transform takes


class Belief(NamedTuple):
    """A prior, and the entries of theta that have it."""

    prior: Prior
    map: Map


@dataclass(frozen=True)
class ParameterSpace:
    """The trainable ones among named parameters, as a vector space."""

    parameters: Mapping[str, Parameter]

    @cached_property
    def trainable(self) -> dict[str, Parameter]:
        return {path: p for path, p in self.parameters.items() if p.trainable}

    @cached_property
    def pieces(self) -> tuple[ThetaPart, ...]:
        found, start = [], 0
        for path, p in self.trainable.items():
            found.append(ThetaPart(path, p, slice(start, start + p.value.size), p.value.shape))
            start += p.value.size
        return tuple(found)

    @cached_property
    def size(self) -> int:
        """Entries of theta."""
        return sum(p.value.size for p in self.trainable.values())

    @property
    def theta(self) -> Array:
        """The vector at the parameters' own values."""
        parts = [_support(p).inverse(p.value).ravel() for p in self.trainable.values()]
        return np.concatenate(parts) if parts else np.zeros(0)

    @property
    def names(self) -> list[str]:
        """One name an entry of theta: the path, with an index where the parameter is an array."""
        return [name for path, p in self.trainable.items() for name in entry_names(path, p)]

    @property
    def limits(self) -> list[tuple[float, float]]:
        """Bounds of each entry, for L-BFGS-B."""
        return [limits for p in self.trainable.values() for limits in p.limits]

    def split(self, theta: Array) -> dict[str, Array]:
        """theta cut into unconstrained pieces, one a parameter."""
        theta = self._checked(theta)
        return {piece.path: theta[piece.at].reshape(piece.shape) for piece in self.pieces}

    def values(self, theta: Array) -> dict[str, Array]:
        """The values of the trainable parameters at theta."""
        flat = self._forward(self._checked(theta))
        return {piece.path: flat[piece.at].reshape(piece.shape) for piece in self.pieces}

    def arrays(self, theta: Array) -> list[Array]:
        """The values of all parameters, fixed ones as they are, at theta: finite, and within their bounds."""
        flat = self._forward(self._checked(theta))
        low, high = self._bounds
        if not ((flat >= low) & (flat <= high)).all():
            # beyond a bound by no more than rounding, as where an optimiser stops: put back; else refused
            inside = [p.with_value(flat[at].reshape(shape)).value for _, p, at, shape in self.pieces]
            flat = np.concatenate([value.ravel() for value in inside])
        flat.setflags(write=False)
        arrays = list(self._values)
        for number, (_, _, at, shape) in zip(self._numbers, self.pieces, strict=True):
            arrays[number] = flat[at].reshape(shape)
        return arrays

    def pullback(self, theta: Array, gradients: Mapping[str, Array] | Sequence[Array]) -> Array:
        """The gradient with respect to theta, given those with respect to the values: by path, or all in the
        order of the parameters."""
        if isinstance(gradients, Mapping):
            own = [gradients[piece.path] for piece in self.pieces]
        else:
            own = [gradients[number] for number in self._numbers]
        theta, grad = self._checked(theta), np.empty(self.size)
        for piece, part in zip(self.pieces, own, strict=True):
            grad[piece.at] = part.reshape(-1)
        if self._common is not None:
            return self._common.pullback(theta, grad)
        for m in self._maps:
            grad[m.at] = m.support.pullback(theta[m.at].reshape(m.shape), grad[m.at].reshape(m.shape)).ravel()
        return grad

    @property
    def believes(self) -> bool:
        """Whether any parameter has a prior."""
        return bool(self._beliefs)

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """The log density of theta under the priors (with the Jacobian of the transform), and its gradient.
        Parameters without one add nothing."""
        theta, total, gradient = self._checked(theta), 0.0, np.zeros(self.size)
        for prior, (support, at, shape) in self._beliefs:
            u = theta[at].reshape(shape)
            v = support.forward(u)
            jacobian, jacobian_grad = support.log_jacobian(u)
            total += float(np.sum(prior.log_density(v))) + float(jacobian)
            gradient[at] = (support.pullback(u, prior.slope(v)) + jacobian_grad).ravel()
        return total, gradient

    def moved(self, theta: Array) -> int:
        """How many entries are not where their priors alone would put them; those without one are counted."""
        away = np.abs(self.log_prior(theta)[1]) > STILL
        for piece in self.pieces:
            away[piece.at] |= piece.parameter.prior is None
        return int(np.sum(away))

    # What is found once. ------------------------------------------------------------------------------------

    @cached_property
    def _values(self) -> list[Array]:
        """Of all parameters, as they are."""
        return [p.value for p in self.parameters.values()]

    @cached_property
    def _numbers(self) -> list[int]:
        """Which of the parameters the pieces are."""
        return [number for number, p in enumerate(self.parameters.values()) if p.trainable]

    @cached_property
    def _maps(self) -> tuple[Map, ...]:
        return tuple(Map(support, *_joined(pieces)) for support, pieces in _alike(self.pieces))

    @cached_property
    def _common(self) -> Support | None:
        """The transform of all entries, where it is one."""
        maps = self._maps
        return maps[0].support if len(maps) == 1 and maps[0].shape == (self.size,) else None

    @cached_property
    def _beliefs(self) -> tuple[Belief, ...]:
        found = []
        believed = [piece for piece in self.pieces if piece.parameter.prior is not None]
        for support, alike in _alike(believed):
            kinds: dict[type[Prior], list[ThetaPart]] = {}
            for piece in alike:
                kinds.setdefault(type(piece.parameter.prior), []).append(piece)  # type: ignore[arg-type]
            for kind, pieces in kinds.items():
                priors = [piece.parameter.prior for piece in pieces if piece.parameter.prior is not None]
                one = kind.stacked(priors, [piece.shape for piece in pieces]) if len(pieces) > 1 else None
                apart = [(prior, [piece]) for prior, piece in zip(priors, pieces, strict=True)]
                for prior, own in apart if one is None else [(one, pieces)]:
                    found.append(Belief(prior, Map(support, *_joined(own))))
        return tuple(found)

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        """Of the values, entry by entry; where there are none, the range of numbers."""
        most = np.finfo(np.float64).max
        boxes = [p.box for p in self.trainable.values()]
        low, high = (np.concatenate([np.zeros(0), *(box[k].ravel() for box in boxes)]) for k in (0, 1))
        return np.maximum(low, -most), np.minimum(high, most)

    def _forward(self, theta: Array) -> Array:
        if self._common is not None:
            return np.array(self._common.forward(theta))
        flat = np.empty(self.size)
        for m in self._maps:
            flat[m.at] = m.support.forward(theta[m.at].reshape(m.shape)).ravel()
        return flat

    def _checked(self, theta: Array) -> Array:
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != (self.size,):
            raise ParameterError(
                f"theta has shape {theta.shape}, but this model has {self.size} trainable numbers:"
                f" {', '.join(self.names)}."
            )
        return theta

    def restarts(self, count: int, rng: np.random.Generator, spread: float = 2.0) -> list[Array]:
        """Starting points other than the given one, evenly spread (scrambled Sobol points through each
        entry's own range).

        A bounded entry covers its bounds; any other lies within `spread` of where it starts (for a positive
        parameter: a factor 7 up or down).
        """
        start = self.theta
        if count <= 0 or start.size == 0:
            return []
        low, high = np.array(self.limits).T
        bounded = np.isfinite(low) & np.isfinite(high)
        low = np.where(bounded, low, np.maximum(start - spread, low))
        high = np.where(bounded, high, np.minimum(start + spread, high))
        if start.size > qmc.Sobol.MAXDIM:  # few points cannot be even in so many dimensions
            points = rng.random((count, start.size))
        else:
            sampler = qmc.Sobol(start.size, scramble=True, rng=rng)
            points = sampler.random_base2(max(0, int(np.ceil(np.log2(count)))))[:count]
        return [low + (high - low) * point for point in points]


class ParameterRow(NamedTuple):
    """One number of a model, for people."""

    name: str
    value: float
    trainable: bool
    prior: str
    bounds: tuple[float, float] | None
    note: str
    path: str = ""  # of the parameter that it is an entry of


@dataclass(frozen=True)
class ParameterTable:
    """All parameters of a model, one row a number. `table["kernel.lengthscale"]` gives a value; print it to
    read it. Entries that belong to columns with names are called by these, `kernel.lengthscale[age]`, and
    are found by their number, too."""

    rows: tuple[ParameterRow, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)  # rows of a parameter that are not here

    @classmethod
    def of(
        cls,
        parameters: Mapping[str, Parameter],
        notes: Mapping[str, str] | None = None,
        along: Mapping[str, Sequence[str]] | None = None,
    ) -> ParameterTable:
        """`along`: names of the entries along a parameter's first axis, by its path."""
        rows, told, known = [], notes or {}, along or {}
        for path, p in parameters.items():
            numbered = entry_names(path, p)
            named = entry_names(path, p, known[path]) if path in known else numbered
            low, high = (end.ravel().tolist() for end in p.box)
            priors = [""] * p.value.size if p.prior is None else p.prior.entries(p.value.size)
            for k, (name, value) in enumerate(zip(named, p.value.ravel(), strict=True)):
                bounds = None if p.bounds is None else (low[k], high[k])
                note = told.get(name) or told.get(numbered[k], "")
                rows.append(ParameterRow(name, float(value), p.trainable, priors[k], bounds, note, path))
        return cls(tuple(rows))

    def __getitem__(self, name: str) -> float | Array:
        exact = [row.value for row in self.rows if row.name == name]
        if exact:
            return exact[0]
        stem, _, number = name.removesuffix("]").rpartition("[")
        if name.endswith("]") and number.isdecimal():
            entries = [row.value for row in self.rows if row.path == stem]
            if int(number) < len(entries):
                return entries[int(number)]
        stacked = [row.value for row in self.rows if row.name.startswith(f"{name}[")]
        if not stacked:
            raise KeyError(f"no parameter named {name!r}; there are {', '.join(self.names)}")
        return np.array(stacked)

    def brief(self, order: Mapping[str, Sequence[int]], most: int) -> ParameterTable:
        """For reading: of a parameter with many entries `most` of them, in the order given for its path, or
        the first."""
        paths: dict[str, list[ParameterRow]] = {}
        for row in self.rows:
            paths.setdefault(row.path, []).append(row)
        left_out = {path: len(rows) - most for path, rows in paths.items() if len(rows) > most + 2}
        for path in left_out:
            rows, wanted = paths[path], order.get(path, ())
            ordered = [rows[k] for k in wanted] if len(wanted) == len(rows) else rows
            paths[path] = ordered[:most]
        return ParameterTable(tuple(row for rows in paths.values() for row in rows), left_out)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(row.name for row in self.rows)

    def to_dict(self) -> dict[str, float]:
        """Name to value."""
        return {row.name: row.value for row in self.rows}

    def __iter__(self) -> Iterator[ParameterRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def cells(self) -> list[tuple[str, ...]]:
        """A line of titles, then one a number, with the columns in which something stands."""
        lines = [("name", "value", "", "prior", "note")]
        for row in self.rows:
            held = "" if row.trainable else "fixed"
            lines.append((row.name, f"{row.value:.5g}", held, row.prior, row.note))
            more = self.left_out.get(row.path, 0)
            if more and row is [own for own in self.rows if own.path == row.path][-1]:
                lines.append((f"... {more} more", "", "", "", ""))
        used = [k for k in range(5) if k < 2 or any(line[k] for line in lines[1:])]
        return [tuple(line[k] for k in used) for line in lines]

    def __str__(self) -> str:
        return "\n".join(aligned(self.cells(), ("name", "", "prior", "note")))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.cells())


def aligned(lines: Sequence[Sequence[str]], left: Collection[str]) -> list[str]:
    """Lines of cells under each other, the first of them titles: to the left in the columns called so, else
    to the right."""
    lines = [[visible(cell) for cell in line] for line in lines]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    sides = ["<" if title in left else ">" for title in lines[0]]
    return [
        "  ".join(f"{cell:{side}{w}}" for cell, side, w in zip(line, sides, widths, strict=True)).rstrip()
        for line in lines
    ]


def html_table(lines: Sequence[Sequence[str]]) -> str:
    """The same for notebooks."""
    titles, *rows = ([escape(visible(cell)) for cell in line] for line in lines)
    head = "".join(f"<th>{title}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_text(text: str) -> str:
    """Lines of text for notebooks, as they stand."""
    return f"<pre>{escape(visible(text))}</pre>"


def entry_names(path: str, parameter: Parameter, first: Sequence[str] = ()) -> list[str]:
    """The names of a parameter's entries: its path, or path[i] and path[i,j] for arrays; `first`: names along
    the first axis instead of numbers."""
    if parameter.value.ndim == 0:
        return [path]
    places = np.ndindex(parameter.value.shape)
    if not first:
        return [f"{path}[{','.join(map(str, index))}]" for index in places]
    names = [" ".join(name.split()) if "\n" in name else name for name in first]  # one line each
    return [f"{path}[{','.join([names[i], *map(str, rest)])}]" for i, *rest in places]


def _alike(pieces: Sequence[ThetaPart]) -> list[tuple[Support, list[ThetaPart]]]:
    """The pieces, gathered by their transform where it takes entries of any of them."""
    found: list[tuple[Support, list[ThetaPart]]] = []
    for piece in pieces:
        support = _support(piece.parameter).transform
        group = next((own for other, own in found if other == support), None) if support.entrywise else None
        if group is None:
            found.append((support, [piece]))
        else:
            group.append(piece)
    return found


def _joined(pieces: Sequence[ThetaPart]) -> tuple[Any, tuple[int, ...]]:
    """The entries of several parameters, and the shape to hand them over in."""
    if len(pieces) == 1:
        return pieces[0].at, pieces[0].shape
    at = np.concatenate([np.arange(piece.at.start, piece.at.stop) for piece in pieces])
    together = at[-1] - at[0] == len(at) - 1
    return slice(int(at[0]), int(at[-1]) + 1) if together else at, (len(at),)


def _support(parameter: Parameter) -> Support:
    if parameter.support is None:
        cure = "put it into a kernel, mean or likelihood first"
        raise ParameterError(f"a parameter without a support cannot be transformed; {cure}")
    return parameter.support
