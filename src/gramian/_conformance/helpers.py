"""How suites compare, take differences and refuse."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from gramian.arrays import Array
from gramian.kernels import Kernel
from gramian.params import ParameterSpace


class Subject(NamedTuple):
    """What is on trial: a promise that it breaks is an AssertionError with its name."""

    name: str

    def about(self, what: str) -> Subject:
        return Subject(f"{self.name}, {what}")

    def must(self, holds: Any, otherwise: str) -> None:
        """`assert`, but never switched off; of an array, every entry must hold."""
        if not np.all(holds):
            raise AssertionError(f"{self.name}: {otherwise}")

    def within(self, ours: Any, theirs: Any, allowed: Any, what: str, but: str = "differences give") -> None:
        """Numbers that may be apart by what is allowed; `but`: where theirs come from."""
        a, b = (f"{v:.12g}" if np.ndim(v) == 0 else str(v) for v in (ours, theirs))
        gap = np.abs(np.subtract(ours, theirs))
        self.must(gap <= allowed, f"{what} is {a}, but {but} {b} (+- {np.max(allowed):.1g}).")

    def alike(self, ours: Array, theirs: Array, rtol: float, what: str, atol: Array | float = 0.0) -> None:
        """Entry by entry, relative to the entry and to the largest, and `atol` on top."""
        size = np.abs(theirs) + np.max(np.abs(theirs), initial=0.0) + 1e-300
        excess = np.abs(ours - theirs) - rtol * size - atol
        if excess.size:
            at = tuple(map(int, np.unravel_index(int(np.argmax(excess)), excess.shape)))
            pair = f"{float(ours[at]):.12g} and {float(theirs[at]):.12g}"
            self.must(excess[at] <= 0, f"{what}: {pair} at {at}.")

    def shaped(self, value: Any, shape: tuple[int, ...], what: str) -> None:
        self.must(np.shape(value) == shape, f"{what} has shape {np.shape(value)}, not {shape}.")

    def finite(self, value: Any, what: str) -> None:
        self.must(np.isfinite(value), f"{what} is not finite.")

    def semidefinite(self, K: Array, allowed: float, what: str) -> None:
        lowest = np.linalg.eigvalsh(K)[0]
        self.must(lowest >= -allowed, f"{what} has the eigenvalue {lowest:.3g}.")

    def grows(self, sizes: Sequence[float], what: str) -> None:
        self.must(sizes[0] > 0 and np.diff(sizes) > 0, f"{what} not grow with the rows: {sizes}.")

    @contextmanager
    def keeping(self, *given: Array, otherwise: str) -> Iterator[None]:
        """Arrays that must be the same afterwards."""
        before = [array.copy() for array in given]
        yield
        same = (np.array_equal(a, b, equal_nan=True) for a, b in zip(before, given, strict=True))
        self.must(all(same), otherwise)


def slope(f: Callable[[Any], Any], h: float, at: Array, unit: Array) -> Any:
    """df/dt of f(at + t unit) by four points, off by h^4 / 30 of the fifth derivative and rounding / h."""
    low, down, up, high = (f(at + k * h * unit) for k in (-2, -1, 1, 2))
    return (8 * (up - down) - (high - low)) / (12 * h)


def by_entries(f: Callable[[Any], Any], tree: Any, step: float) -> Iterator[tuple[str, tuple[int, ...], Any]]:
    """The slopes of f(tree) by every number among the parameters, with path and index; steps are relative."""
    for path, parameter in tree.parameters().items():

        def moved(value: Array, path: str = path) -> Any:
            return f(tree.with_values({path: value}))

        for index in np.ndindex(parameter.value.shape):
            unit = np.zeros(parameter.value.shape)
            unit[index] = 1.0
            h = step * (abs(float(parameter.value[index])) or 0.1)
            yield path, index, slope(moved, h, parameter.value, unit)


def by_theta(
    f: Callable[[Kernel], float], kernel: Kernel, gradients: Sequence[Array], h: float
) -> Iterator[tuple[str, float, float]]:
    """By each of the unconstrained coordinates of an optimiser: its name, the slope of f(kernel) that follows
    from the gradients by the parameters, and that of differences."""
    # a step may cross a bound
    free = kernel.with_parameters([dataclasses.replace(p, bounds=None) for p in kernel.parameters().values()])
    space = ParameterSpace(free.parameters())
    theta = space.theta
    ours = space.pullback(theta, dict(zip(space.parameters, gradients, strict=True)))
    for name, own, at, unit in zip(space.names, ours, theta, np.eye(len(theta)), strict=True):
        step = h * max(1.0, abs(at))
        yield name, own, slope(lambda t: f(free.with_values(space.values(t))), step, theta, unit)
