"""The kernel of an output's number."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import ParameterError
from gramian.kernels.coregion import correlations
from gramian.testing import check_kernel


def test_its_gram_matrix_is_b():
    W, own = np.array([[1.0, 0.2], [-0.5, 0.3], [0.1, 0.9]]), np.array([0.3, 0.1, 0.2])
    kernel = gm.Coregion(3, 2, W, own)
    codes = np.array([[0.0], [2.0], [1.0], [2.0]])
    at = [0, 2, 1, 2]
    assert_allclose(kernel.matrix, W @ W.T + np.diag(own))
    assert_allclose(kernel(codes), kernel.matrix[np.ix_(at, at)], rtol=1e-12)
    # an output that nobody has seen is unlike all others
    assert_allclose(kernel(np.array([[5.0]]), codes), 0.0)
    assert_allclose(kernel.diag(np.array([[5.0], [0.0]])), [1.0, kernel.matrix[0, 0]])


def test_it_keeps_what_a_kernel_promises():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (7, 1)).astype(float)
    check_kernel(gm.Coregion(3, rank=2), codes)


def test_its_text_is_read_back():
    for kernel in (
        gm.Coregion(3, rank=2),
        gm.Coregion(rank=2),
        gm.Coregion(2, 1, [[0.5], [1.0]], [0.1, 0.2]),
    ):
        assert gm.parse_kernel(repr(kernel)) == kernel


def test_a_start_has_the_correlations_of_the_outputs():
    rng = np.random.default_rng(0)
    f = rng.normal(size=400)
    Y = np.column_stack([f, -f + 0.2 * rng.normal(size=400), rng.normal(size=400)])
    Y[::3, 1] = np.nan
    R = correlations(Y)
    assert np.all(np.linalg.eigvalsh(R) > 0)
    B = gm.Coregion(3).started(R).matrix
    assert B[0, 1] < -0.8
    assert abs(B[0, 2]) < 0.3
    held = gm.Coregion(2, 1, gm.fixed([[1.0], [2.0]]), gm.fixed([1.0, 1.0]))
    assert held.started(np.eye(2)) is held


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gm.Coregion(2, rank=3), "rank must be a whole number from 1 to 2"),
        (lambda: gm.Coregion(2, 1, np.ones((3, 1))), "weights has shape"),
        (lambda: gm.Coregion(weights=np.ones((3, 1))), "belong to a number of outputs"),
        (lambda: gm.Coregion(rank=1)(np.zeros((2, 1))), "how many outputs"),
        (lambda: gm.GPRegressor(gm.Coregion(2)).fit(np.zeros((3, 2)), np.arange(3.0)), "one column"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(ParameterError, match=words):
        make()
