"""The error of a kernel matrix in blocks is that of the dense formula."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.experiments import measures
from gramian.experiments.measures import gram_error
from gramian.features.fourier import FourierBasis
from gramian.features.nystrom import NystromBasis

KERNEL = 1.7 * gm.RBF(0.8)


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.standard_normal((70, 2))


@pytest.mark.parametrize("keeps_diagonal", [False, True])
def test_blocks_give_the_dense_formula(X, rng, keeps_diagonal, monkeypatch):
    # with phases, the diagonal is wrong as well
    features = FourierBasis.draw(KERNEL, 2, 30, "rff-phase", rng).at(KERNEL)
    K, Phi = KERNEL(X), features.block(X)
    R = K - Phi @ Phi.T
    if keeps_diagonal:
        np.fill_diagonal(R, 0.0)
    expected = np.linalg.norm(R) / np.linalg.norm(K), np.linalg.norm(R, np.inf) / np.linalg.norm(K, np.inf)
    monkeypatch.setattr(
        measures, "blocks_of", lambda n, row_bytes: [slice(0, 32), slice(32, 64), slice(64, n)]
    )
    np.testing.assert_allclose(gram_error(KERNEL, X, features, keeps_diagonal), expected, rtol=1e-12)
    np.testing.assert_allclose(gram_error(KERNEL, X, features, keeps_diagonal, K=K), expected, rtol=1e-12)


def test_all_rows_as_landmarks_leave_no_error(X):
    # The jitter of 1e-12 on K_zz is all that is left, times the condition number of what it meets.
    assert max(gram_error(KERNEL, X, NystromBasis(X).at(KERNEL))) < 1e-9
