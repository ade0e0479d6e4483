"""Independent processes side by side: functions with kernels of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gramian.arrays import Array
from gramian.errors import StateError
from gramian.linalg.state import ObjectState, entries, joined, of_parts, typed, typed_list
from gramian.processes.base import Process
from gramian.processes.state import Context


@dataclass(frozen=True, eq=False)
class Stacked(Process):
    """Each part is for the outputs that `columns` says."""

    kind: ClassVar[str] = "stacked"
    many_kernels: ClassVar[bool] = True

    parts: tuple[Process, ...]
    columns: tuple[tuple[int, ...], ...]

    def mean(self, X: Array) -> Array:
        return self._together([part.mean(X) for part in self.parts])

    def moments(self, X: Array) -> tuple[Array, Array]:
        return self._both([part.moments(X) for part in self.parts])

    def cov(self, X: Array) -> Array:
        return self._together([part.cov(X) for part in self.parts])

    def gradient(self, X: Array) -> tuple[Array, Array]:
        return self._both([part.gradient(X) for part in self.parts])

    def state(self, context: Context) -> ObjectState:
        """Each part is for one output, as inference leaves it."""
        outputs = [k for (k,) in self.columns]
        states = [part.state(context.of_output(k)) for part, k in zip(self.parts, outputs, strict=True)]
        told = {"kind": self.kind, "outputs": outputs, "parts": [state.described for state in states]}
        return ObjectState(told, joined([state.arrays for state in states], "part"))

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> Stacked:
        _, outputs, parts = entries(state.described, "posterior", "kind", "outputs", "parts")
        outputs, parts = typed_list(outputs, int, "outputs"), typed(parts, list, "parts")
        q = context.q
        if len(parts) != q or q < 2 or sorted(outputs) != list(range(q)):
            raise StateError(f"its posterior has {len(parts)} parts for {q} functions, each for one of them.")
        inside = zip(outputs, parts, of_parts(state.arrays, "part", q), strict=True)
        found = [context.of_output(k).process(part, arrays) for k, part, arrays in inside]
        return cls(tuple(found), tuple((k,) for k in outputs))

    def _both(self, pairs: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        return self._together([mean for mean, _ in pairs]), self._together([var for _, var in pairs])

    def _together(self, arrays: list[Array]) -> Array:
        """Joined in the last axis, in the order of the outputs."""
        order = np.argsort([k for columns in self.columns for k in columns])
        return np.concatenate(arrays, axis=-1)[..., order]


def side_by_side(parts: list[tuple[Process, list[int]]]) -> Process:
    """One process from several, each with the outputs it is for."""
    if len(parts) == 1:
        return parts[0][0]
    return Stacked(tuple(process for process, _ in parts), tuple(tuple(columns) for _, columns in parts))
