"""One formula for NumPy and JAX: `xp = namespace(v)` is `numpy` for arrays of the host and `jax.numpy` for
those of a traced program, and the formula is written with `xp`.

What has no slope by hand gets it from JAX, on the host in 64 bits (`slopes`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
from scipy.special import expit

from gramian import forks


def namespace(v: Any) -> Any:
    """The module whose functions take `v`."""
    if isinstance(v, (np.ndarray, np.generic, float, int)):
        return np
    import jax.numpy

    return jax.numpy


def sigmoid(u: Any) -> Any:
    """1 / (1 + exp(-u)), with all digits where it is close to 0."""
    if namespace(u) is np:
        return expit(u)
    import jax

    return jax.nn.sigmoid(u)


def ndtr(z: Any) -> Any:
    """The normal cumulative distribution."""
    return _special(z).ndtr(z)


def log_ndtr(z: Any) -> Any:
    """Its logarithm, with all digits far below the mean."""
    return _special(z).log_ndtr(z)


def log_softmax(f: Any) -> Any:
    """f_c - log sum_k exp(f_k), along the last axis."""
    return f - _special(f).logsumexp(f, axis=-1, keepdims=True)


def _special(v: Any) -> Any:
    if namespace(v) is np:
        return scipy.special
    import jax.scipy.special

    return jax.scipy.special


def slopes(f: Callable[[Any], Any], at: Any) -> tuple[Any, Any]:
    """f(at), one number, and its gradient, by JAX. f is written with `namespace` or with operators alone."""
    import jax

    if namespace(at) is not np:
        return jax.value_and_grad(f)(at)
    forks.check()
    with jax.enable_x64(True):
        value, gradient = jax.value_and_grad(f)(jax.numpy.asarray(at, dtype=np.float64))
        return float(value), np.asarray(gradient)
