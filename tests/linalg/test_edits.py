"""Triangular roots whose rows come and go, against factorisations from the start."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular

from gramian.linalg.edits import Growing, append_to_factor, append_to_inverse, grown, without


def covariance(n: int, noise: float = 0.01) -> np.ndarray:
    x = np.random.default_rng(n).uniform(0, 0.2 * n, n)
    return np.exp(-0.5 * (x[:, None] - x) ** 2) + noise * np.eye(n)


def root_of(A: np.ndarray, inverted: bool) -> np.ndarray:
    L = cholesky(A, lower=True)
    return np.asfortranarray(solve_triangular(L, np.eye(len(A)), lower=True) if inverted else L)


@pytest.mark.parametrize("inverted", [True, False])
@pytest.mark.parametrize("n", [2, 3, 50, 300])
def test_random_edits_end_where_a_factorisation_does(n, inverted):
    A, rng = covariance(n + 9), np.random.default_rng(1)
    rows, store = list(range(n)), None
    root = root_of(A[:n, :n], inverted)
    for _ in range(60):
        outside = [k for k in range(len(A)) if k not in rows]
        if outside and rng.random() < 0.5:
            new = outside[: rng.integers(1, 3)]
            store = grown(root, store, len(new))
            append = append_to_inverse if inverted else append_to_factor
            append(store, len(rows), A[np.ix_(rows, new)], A[np.ix_(new, new)])
            rows += new
        elif len(rows) > 1:
            gone = rng.choice(len(rows), min(len(rows) - 1, int(rng.integers(1, 4))), replace=False)
            store = without(root, gone, inverted)
            rows = [row for k, row in enumerate(rows) if k not in gone]
        root = root_of(A[np.ix_(rows, rows)], inverted) if store is None else store.root(len(rows))
    wanted = root_of(A[np.ix_(rows, rows)], inverted)
    # A has a condition of some 1e3, its root of 30: 1e-13 and what 60 edits add
    assert np.allclose(root if inverted else np.tril(root), wanted, rtol=0, atol=1e-10)


def test_what_somebody_has_does_not_change():
    """Two who add to the same rows have rows of their own, and those without a row leave the others'."""
    A = covariance(12)
    first = grown(root_of(A[:10, :10], True), None, 1)
    append_to_inverse(first, 10, A[:10, [10]], A[10:11, 10:11])
    seen = first.root(11).copy()
    second = grown(first.root(10), first, 1)
    append_to_inverse(second, 10, A[:10, [11]], A[11:, 11:])
    assert second is not first
    assert np.array_equal(first.root(11), seen)
    assert np.allclose(second.root(11), root_of(A[np.ix_([*range(10), 11], [*range(10), 11])], True))
    without(first.root(11), np.array([0, 4]), True)
    assert np.array_equal(first.root(11), seen)


def test_a_store_is_copied_once_in_a_while():
    A = covariance(70)
    store, copies = grown(root_of(A[:10, :10], True), None, 1), 1
    append_to_inverse(store, 10, A[:10, [10]], A[10:11, 10:11])
    for n in range(11, 70):
        held = store
        store = grown(store.root(n), store, 1)
        append_to_inverse(store, n, A[:n, [n]], A[n : n + 1, n : n + 1])
        copies += store is not held
    assert copies == 1
    assert isinstance(store, Growing)
    assert np.allclose(store.root(70), root_of(A, True), rtol=0, atol=1e-10)


def test_rows_that_others_determine_are_told():
    A = covariance(6, noise=0.0)
    A[5] = A[4]
    A[:, 5] = A[:, 4]
    A[5, 5] = A[4, 4] - 1e-9
    store = grown(root_of(A[:5, :5], True), None, 1)
    with pytest.raises(np.linalg.LinAlgError):
        append_to_inverse(store, 5, A[:5, [5]], A[5:, 5:])
