"""Runs gathered by method and size, and the table that people read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gramian.arrays import Array
from gramian.experiments.run import RunRecord
from gramian.linalg.memory import show_bytes
from gramian.params.space import aligned


class RunGroup(NamedTuple):
    """All runs of a method and a size."""

    method: str
    size: int
    runs: tuple[RunRecord, ...]

    def values(self, field: str) -> Array:
        """A column, without what is missing."""
        values = np.array([getattr(run, field) for run in self.runs], dtype=np.float64)
        return values[~np.isnan(values)]


def gathered(runs: Sequence[RunRecord]) -> list[RunGroup]:
    """The runs by method and size, in the order of their first appearance, sizes rising."""
    groups: dict[str, dict[int, list[RunRecord]]] = {}
    for run in runs:
        groups.setdefault(run.method, {}).setdefault(run.size, []).append(run)
    return [RunGroup(method, m, tuple(by[m])) for method, by in groups.items() for m in sorted(by)]


def _mean(values: Array) -> str:
    return f"{np.mean(values):.4g}"


def _spread(values: Array) -> str:
    """mean +- standard deviation over the runs."""
    return _mean(values) + (f" +- {np.std(values, ddof=1):.1g}" if len(values) > 1 else "")


def _seconds(values: Array) -> str:
    """The median: a single slow run is the machine's."""
    return f"{np.median(values):.2g} s"


def _size(values: Array) -> str:
    return show_bytes(float(np.median(values)))


COLUMNS: tuple[tuple[str, str, Callable[[Array], str]], ...] = (
    ("frobenius", "K: Frobenius", _spread),
    ("infinity", "K: infinity", _spread),
    ("probabilities_seconds", "probabilities", _seconds),
    ("construction_seconds", "construction", _seconds),
    ("fit_seconds", "fit", _seconds),
    ("predicted_bytes", "memory", _size),
    ("measured_bytes", "measured", _size),
    ("mse", "MSE", _spread),
    ("rmse", "RMSE", _mean),
    ("error", "error", _spread),
    ("nlpd", "NLPD", _spread),
    ("coverage95", "in 95 %", lambda values: f"{100 * np.mean(values):.1f} %"),
    ("brier", "Brier", _mean),
    ("ece", "ECE", lambda values: f"{np.mean(values):.2g}"),
    ("log_evidence", "evidence", lambda values: f"{np.mean(values):.1f}"),
    ("iterations", "steps", lambda values: f"{np.mean(values):.0f}"),
    ("residual", "residual", lambda values: f"{np.max(values):.1g}"),
)


def text_table(runs: Sequence[RunRecord], head: Sequence[str] = ()) -> str:
    """The table as text: a line a method and size. Columns in which nothing was measured are left out."""
    groups = gathered(runs)
    classes = any(group.values("error").size for group in groups)
    shown = [column for column in COLUMNS if classes or column[0] != "log_evidence"]
    used = [column for column in shown if any(group.values(column[0]).size for group in groups)]
    lines = [["method", "size", "runs", *(title for _, title, _ in used)]]
    for group in groups:
        cells = [show(values) if (values := group.values(field)).size else "-" for field, _, show in used]
        lines.append([group.method, str(group.size) if group.size else "-", str(len(group.runs)), *cells])
    return "\n".join([*head, "", *aligned(lines, ("method",)), "", *_remarks(runs)]).strip("\n")


def _remarks(runs: Sequence[RunRecord]) -> list[str]:
    """What a reader must know of the numbers."""
    remarks = ["+- is the standard deviation over runs; times are medians."]
    if any(not math.isnan(run.frobenius) for run in runs):
        part = next((run for run in runs if run.gram_rows < run.n_train), None)
        where = "all training rows"
        if part is not None:
            where = f"a random part of {part.gram_rows:.0f} of the {part.n_train:,} training rows"
        remarks.append(f"K: relative error of the kernel matrix, on {where}.")
    if any(not math.isnan(run.predicted_bytes) for run in runs):
        remarks.append(
            "memory: the predicted peak of a fit; measured: growth of the resident memory, which memory held"
            " in reserve can hide."
        )
    classes = any(not math.isnan(run.error) for run in runs)
    if classes:
        remarks.append(
            "error: share of wrong labels; ECE: calibration of the most probable class; evidence: Laplace's,"
            " a bound for vfe and svgp."
        )
    few = [run for run in runs if run.variance_rows < run.n_test]
    if few:
        what = "NLPD, Brier and ECE" if classes else "NLPD and coverage"
        remarks.append(
            f"{what} of CG and MINRES are of {few[0].variance_rows:.0f} test rows chosen at random: each"
            " variance is a solve."
        )
    if classes and any(not math.isnan(run.iterations) for run in runs):
        remarks.append("steps: of the solver, in all systems of Newton's method together.")
    notes = Counter((run.method, run.note) for run in runs if run.note)
    for (method, note), count in list(notes.items())[:10]:
        remarks.append(f"{method}, {count} run{'s' * (count > 1)}: {note}")
    if len(notes) > 10:
        remarks.append(f"... and {len(notes) - 10} further notes, in the column `note` of the runs.")
    return remarks
