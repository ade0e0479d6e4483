"""The cost of something, in units that can be measured on a machine."""

from __future__ import annotations

from typing import NamedTuple


class Cost(NamedTuple):
    """What is done; memory is said apart, in bytes."""

    flops: float  # in matrix products and factorisations
    values: float = 0.0  # kernel values, in tiles
    slopes: float = 0.0  # kernel values with their gradients
    products: float = 0.0  # kernel values inside matrix-free products, in float32
