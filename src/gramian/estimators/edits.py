"""Rows that come and go after a fit: the same parameters, and the posterior that a fit with these parameters
to the rows that are left would have.

    Edits       what has happened since parameters were last searched for
    edited      a fitted model without some of its rows, and with others
    fell_off    whether new rows are foretold so much worse than left-out ones were that a search is due

Scales of y, categories, the calibration of intervals and the choice of landmarks stay those of the fit. How
the posterior is made from the one before, each rule on its engine knows (`Scheme.edited`): exact inference
under Gaussian noise in n^2 (linalg/edits.py), others by another inference, without a search.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramian.arrays import Array, Indices
from gramian.data.inputs import as_array
from gramian.errors import InputError, ParameterError
from gramian.inference import Data, Inferred
from gramian.solvers.base import SolveOutcome

if TYPE_CHECKING:
    from gramian.estimators.fitted import Fitted
    from gramian.estimators.learned import Learned

REFITS = {
    "never": "parameters stay",
    "auto": "searched again when new rows ask for it",
    "always": "each time",
}
# nats a row, and standard errors: how much worse new rows are foretold than left-out ones before it counts
WORSE, ERRORS = 0.5, 3.0


class Edits(NamedTuple):
    """Since parameters were last searched for."""

    added: int = 0
    forgotten: int = 0
    foretold: float = 0.0  # log densities of the rows that came, each given those before it, in all
    usual: float = 0.0  # the same a row, of left-out rows of the last search
    deviation: float = -1.0  # its standard deviation; negative where nobody has asked

    def __str__(self) -> str:
        parts = [
            f"{count:,} {word}"
            for count, word in ((self.added, "added"), (self.forgotten, "forgotten"))
            if count
        ]
        return f"{' and '.join(parts)} since the fit: parameters and scales of y are still its own"

    @property
    def fell_off(self) -> bool:
        """Whether rows that came were foretold much worse than left-out rows of the fit."""
        if not self.added or self.deviation < 0:
            return False
        least = self.usual - max(WORSE, ERRORS * self.deviation / np.sqrt(self.added))
        return self.foretold / self.added < least


def check_refit(refit: Any) -> None:
    """Refuses what is no rule for searching again."""
    if refit not in REFITS:
        known = ", ".join(f'"{name}" ({what})' for name, what in REFITS.items())
        raise ParameterError(f"refit={refit!r} is not known. Use {known}.")


def one_model(learned: Learned) -> Fitted:
    """The model whose rows may change."""
    if learned.models:
        cure = 'Fit again, or use multiclass="softmax", which is one model.'
        raise ParameterError(f"One model a class has rows of its own: they do not come and go here. {cure}")
    fitted = learned.first
    if not fitted.has_rows:
        raise InputError(
            "This model came from a file that holds no rows, only what predictions need: none can come or go."
            ' Edit the model that was fitted, save one of method="exact", or fit again.'
        )
    return fitted


def rows_that_stay(rows: Any, n: int) -> Indices:
    """Which of n rows stay when some go: numbers of rows, a slice, or one truth value a row."""
    every = np.arange(n)
    try:
        asked = rows if isinstance(rows, slice) else as_array(rows, "rows")
        if (
            isinstance(asked, np.ndarray)
            and asked.dtype != bool
            and not np.issubdtype(asked.dtype, np.integer)
        ):
            if asked.size:
                raise IndexError("rows are counted by whole numbers")
            asked = asked.astype(int)
        gone = np.atleast_1d(every[asked])
    except IndexError as error:
        raise InputError(
            f"forget({rows!r}): {error}. The model has {n:,} rows, counted from 0; give some of their"
            " numbers, a slice, or one truth value a row."
        ) from None
    kept = np.setdiff1d(every, gone)
    if not len(kept):
        raise InputError(f"forget: no row of {n:,} would be left. Leave at least one, or fit again.")
    return kept


def joined(rows: Data, kept: Indices, new: Data | None) -> Data:
    """The rows that stay, and then those that come."""
    old = rows.take(kept) if len(kept) < len(rows.X) else rows
    if new is None:
        return old
    n, k = len(old.X), len(new.X)
    if (old.noise_var is None) != (new.noise_var is None):
        has, lacks = (
            ("the rows of the fit", "these") if new.noise_var is None else ("these rows", "those of the fit")
        )
        raise InputError(
            f"{has} have known noise variances, but {lacks} have none. Give noise_var with both."
        )
    excess = None if old.excess is None else np.concatenate([old.excess, np.zeros(k)])
    noise_var = None
    if old.noise_var is not None and new.noise_var is not None:
        noise_var = np.concatenate([old.noise_var, new.noise_var])
    X, Y = np.empty((n + k, old.X.shape[1])), np.empty((n + k, old.Y.shape[1]))
    X[:n], X[n:], Y[:n], Y[n:] = old.X, new.X, old.Y, new.Y
    return Data(X, Y, old.scale, noise_var, excess)


def edited(fitted: Fitted, kept: Indices, new: Data | None, rng: np.random.Generator) -> Fitted:
    """The same model without the rows that are not kept, and with the new ones after those that are."""
    rows = joined(fitted.rows, kept, new)
    before = Inferred(fitted.process, fitted.evidence, SolveOutcome(jitter=fitted.outcome.jitter))
    inference, inferred = fitted.inference.edited(fitted.model, rows, kept, before, rng)
    made = fitted.of_rows(rows, inference, inferred)
    known, added = fitted.edits or Edits(), 0 if new is None else len(new.X)
    foretold = 0.0
    if added and len(kept) == len(fitted.rows.X):
        foretold = made.evidence_of_y()[0] - fitted.evidence_of_y()[0]
    gone = len(fitted.rows.X) - len(kept)
    edits = known._replace(
        added=known.added + added, forgotten=known.forgotten + gone, foretold=known.foretold + foretold
    )
    return dataclasses.replace(made, edits=edits)


def judged(fitted: Fitted) -> Fitted:
    """The same, knowing how well left-out rows are foretold: what new ones are held against. Rows that came
    before anybody asked count as foretold so well, too."""
    known = fitted.edits or Edits()
    if known.deviation >= 0:
        return fitted
    densities = _left_out(fitted)
    usual, deviation = float(np.mean(densities)), float(np.std(densities))
    known = known._replace(foretold=usual * known.added, usual=usual, deviation=deviation)
    return dataclasses.replace(fitted, edits=known)


def _left_out(fitted: Fitted) -> Array:
    """Log densities of left-out rows, of those that were observed."""
    if fitted.classes is not None:
        return fitted.left_out_classes().log_density
    densities = np.asarray(
        dataclasses.replace(fitted, calibration=None, draws=None).left_out_numbers().log_density
    )
    return densities[np.isfinite(densities)] * (densities.shape[1] if densities.ndim == 2 else 1)
