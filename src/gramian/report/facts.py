"""What a fitted model knows of its data besides the data: enough for a summary where a file brought the model
without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Never

import numpy as np

from gramian.arrays import Array
from gramian.errors import InputError
from gramian.inference import Data


@dataclass(frozen=True, eq=False)
class Facts:
    """About the data of a fit."""

    rows: int
    columns: int
    scale: Array  # (q,): one number an output
    known_noise: bool  # whether noise variances came with the rows
    notes: Mapping[str, str]  # what values of parameters mean for these data, by the parameter's name
    # the rows of each class, where a file brought them instead of the data
    counts: tuple[int, ...] | None = None
    spread: Array | None = None  # (d,): of each column; None where an older file does not tell

    @classmethod
    def of(cls, data: Data, notes: Mapping[str, str], spread: Array) -> Facts:
        """`spread`: that of each column, (d,)."""
        n, d = data.X.shape
        return cls(int(n), int(d), data.scale, data.noise_var is not None, dict(notes), spread=spread)


class NoData(Data):
    """In the place of data that are not there: its scale is known, all else is an error that says so."""

    def __init__(self, scale: Array) -> None:
        object.__setattr__(self, "scale", scale)

    @property
    def here(self) -> bool:
        return False

    def _absent(self) -> Never:
        raise InputError(
            "This model was loaded from a file that holds no data, only what predictions need: loo,"
            " log_evidence, certificate() and pictures of the data are not possible. Ask the model that was"
            " fitted, or fit again."
        )

    X = Y = noise_var = property(_absent)


def class_counts(facts: Facts, data: Data, classes: int) -> tuple[int, ...]:
    """How many rows each class has."""
    if facts.counts is not None:
        return facts.counts
    return tuple(map(int, np.bincount(np.asarray(data.Y[:, 0]).astype(int), minlength=classes)))
