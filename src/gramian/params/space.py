"""From a tree of parameters to the flat vector of an optimiser, and back.

theta stacks the unconstrained forms of all trainable parameters. This is the one place where a value is
transformed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from gramian.errors import ParameterError
from gramian.params.parameter import Parameter
from gramian.params.support import Support

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ParameterSpace:
    """The trainable ones among named parameters, as a vector space."""

    parameters: Mapping[str, Parameter]

    @property
    def trainable(self) -> dict[str, Parameter]:
        return {path: p for path, p in self.parameters.items() if p.trainable}

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
        return [p.limits for p in self.trainable.values() for _ in range(p.value.size)]

    def split(self, theta: Array) -> dict[str, Array]:
        """theta cut into unconstrained pieces, one a parameter."""
        theta = np.asarray(theta, dtype=np.float64)
        size = sum(p.value.size for p in self.trainable.values())
        if theta.shape != (size,):
            raise ParameterError(
                f"theta has shape {theta.shape}, but this model has {size} trainable numbers:"
                f" {', '.join(self.names)}."
            )
        pieces, start = {}, 0
        for path, p in self.trainable.items():
            pieces[path] = theta[start : start + p.value.size].reshape(p.value.shape)
            start += p.value.size
        return pieces

    def values(self, theta: Array) -> dict[str, Array]:
        """The values of the trainable parameters at theta."""
        return {path: _support(self.parameters[path]).forward(u) for path, u in self.split(theta).items()}

    def pullback(self, theta: Array, gradients: Mapping[str, Array]) -> Array:
        """The gradient with respect to theta, given those with respect to the values."""
        parts = [
            _support(self.parameters[path]).pullback(u, np.asarray(gradients[path])).ravel()
            for path, u in self.split(theta).items()
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """The log density of theta under the priors (with the Jacobian of the transform), and its gradient.
        Parameters without one add nothing."""
        total, parts = 0.0, []
        for path, u in self.split(theta).items():
            p = self.parameters[path]
            grad = np.zeros_like(u)
            if p.prior is not None:
                support = _support(p)
                v = support.forward(u)
                jacobian, jacobian_grad = support.log_jacobian(u)
                total += float(np.sum(p.prior.log_density(v))) + jacobian
                grad = support.pullback(u, p.prior.slope(v)) + jacobian_grad
            parts.append(grad.ravel())
        return total, np.concatenate(parts) if parts else np.zeros(0)

    def restarts(self, count: int, rng: np.random.Generator, spread: float = 2.0) -> list[Array]:
        """Starting points other than the given one, evenly spread (scrambled Sobol points through each
        entry's own range).

        A bounded entry covers its bounds; any other lies within `spread` of where it starts (for a positive
        parameter: a factor 7 up or down).
        """
        start = self.theta
        if count <= 0 or start.size == 0:
            return []
        limits = np.array(self.limits)
        low = np.where(
            np.isfinite(limits).all(axis=1), limits[:, 0], np.maximum(start - spread, limits[:, 0])
        )
        high = np.where(
            np.isfinite(limits).all(axis=1), limits[:, 1], np.minimum(start + spread, limits[:, 1])
        )
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


@dataclass(frozen=True)
class ParameterTable:
    """All parameters of a model, one row a number. `table["kernel.lengthscale"]` gives a value; print it to
    read it."""

    rows: tuple[ParameterRow, ...]

    @classmethod
    def of(
        cls, parameters: Mapping[str, Parameter], notes: Mapping[str, str] | None = None
    ) -> ParameterTable:
        rows = []
        for path, p in parameters.items():
            for k, (name, value) in enumerate(zip(entry_names(path, p), p.value.ravel(), strict=True)):
                prior = "" if p.prior is None else p.prior.entry(k)
                rows.append(
                    ParameterRow(
                        name, float(value), p.trainable, prior, p.bounds, (notes or {}).get(name, "")
                    )
                )
        return cls(tuple(rows))

    def __getitem__(self, name: str) -> float | Array:
        exact = [row.value for row in self.rows if row.name == name]
        if exact:
            return exact[0]
        stacked = [row.value for row in self.rows if row.name.startswith(f"{name}[")]
        if not stacked:
            raise KeyError(f"no parameter named {name!r}; there are {', '.join(self.names)}")
        return np.array(stacked)

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

    def __str__(self) -> str:
        cells = [("name", "value", "", "prior", "note")]
        for row in self.rows:
            cells.append(
                (row.name, f"{row.value:.5g}", "" if row.trainable else "fixed", row.prior, row.note)
            )
        used = [k for k in range(5) if k < 2 or any(cell[k] for cell in cells[1:])]
        widths = {k: max(len(cell[k]) for cell in cells) for k in used}
        lines = [
            "  ".join(cell[k].ljust(widths[k]) if k != 1 else cell[k].rjust(widths[k]) for k in used).rstrip()
            for cell in cells
        ]
        return "\n".join(lines)

    __repr__ = __str__


def entry_names(path: str, parameter: Parameter) -> list[str]:
    """The names of a parameter's entries: its path, or path[i] and path[i,j] for arrays."""
    if parameter.value.ndim == 0:
        return [path]
    return [f"{path}[{','.join(map(str, index))}]" for index in np.ndindex(parameter.value.shape)]


def _support(parameter: Parameter) -> Support:
    if parameter.support is None:
        raise ParameterError(
            "a parameter without a support cannot be transformed; put it into a kernel, mean or likelihood"
            " first"
        )
    return parameter.support
