"""Fits that go on where they were stopped: `checkpoint="fit.ck"`.

What a fit finds is written down as it goes (`gramian.journal`), into a file (`gramian.modelfile.checkpoint`).
Fits inside a fit, of binary models or of rows with uncertain inputs, are parts of the same journal.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from gramian import journal
from gramian.arrays import AnyArray
from gramian.errors import ParameterError

Fit = TypeVar("Fit", bound=Callable[..., Any])


def resumable(fit: Fit) -> Fit:
    """A method `fit` that goes on from the estimator's `checkpoint`, and leaves one where it does not end."""

    @functools.wraps(fit)
    def kept(gp: Any, *given: Any, **named: Any) -> Any:
        if gp.checkpoint is None or journal.here() is not None:
            return fit(gp, *given, **named)
        from gramian.modelfile.checkpoint import opened

        with opened(gp.checkpoint):
            return fit(gp, *given, **named)

    return kept  # type: ignore[return-value]


def identify(gp: Any, rows: Mapping[str, AnyArray | None], **further: str) -> None:
    """Says what the fit of an estimator is of, where there is a checkpoint: which rows, and what follows from
    them and the settings."""

    def facts() -> Mapping[str, list[str]]:
        from gramian.modelfile.checkpoint import facts_of

        return facts_of(gp, rows, further)

    journal.identify(facts)


def generator(random_state: Any) -> np.random.Generator:
    """One stream of random numbers from whatever scikit-learn takes as a seed."""
    try:
        source = check_random_state(random_state)
    except ValueError as error:
        cure = "Give a whole number from 0 on. In Python a RandomState or None will do, too."
        raise ParameterError(f"random_state={random_state!r}: {error}. {cure}") from None
    # a fit that goes on has the seed that it began with
    seed = journal.chosen("seed", int, lambda: int(source.randint(2**31 - 1)), lasts=True)
    return np.random.default_rng(seed)
