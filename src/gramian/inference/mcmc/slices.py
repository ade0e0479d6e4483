"""A draw along a line, by stepping out and shrinkage. Source: Neal 2003, Slice sampling, figures 3 and 5."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gramian.inference.model import Array

WIDTH = 2.5  # of a slice's first bracket, in standard deviations of t along it
EXPANSIONS = 10
SHRINKAGES = 60


class Point(NamedTuple):
    """A place, its log density, and what was computed there."""

    t: Array
    value: float
    at: Any = None


def slice_along(
    density: Callable[[Array], Point], here: Point, direction: Array, rng: np.random.Generator
) -> tuple[Point, int]:
    """A draw from the density along a line through `here`, by stepping out and shrinkage (Neal 2003, figures
    3 and 5), and the densities it took."""
    level = here.value + math.log(1.0 - rng.random())
    left = -WIDTH * rng.random()
    right, count = left + WIDTH, 0
    down = int(EXPANSIONS * rng.random())
    up = EXPANSIONS - 1 - down

    def inside(a: float) -> bool:
        return density(here.t + a * direction).value >= level

    while down > 0:
        count += 1
        if not inside(left):
            break
        left, down = left - WIDTH, down - 1
    while up > 0:
        count += 1
        if not inside(right):
            break
        right, up = right + WIDTH, up - 1
    for _ in range(SHRINKAGES):
        a = left + rng.random() * (right - left)
        there = density(here.t + a * direction)
        count += 1
        if there.value >= level:
            return there, count
        left, right = (a, right) if a < 0 else (left, a)
    return here, count
