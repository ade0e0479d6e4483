"""Scores where LAPACK's method for a part of the eigenvalues gives up."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.landmarks import leverage


@pytest.mark.parametrize("score", ["leverage_scores", "ridge_scores", "recursive_scores"])
def test_scores_do_not_depend_on_the_eigensolver(score, rng, monkeypatch):
    X, kernel, real = rng.standard_normal((60, 2)), gm.RBF(0.4), leverage.eigh

    def scores() -> np.ndarray:
        if score == "recursive_scores":
            return leverage.recursive_scores(kernel, X, 20, np.random.default_rng(0))[0]
        return (
            leverage.leverage_scores(kernel, X, 7)
            if score == "leverage_scores"
            else leverage.ridge_scores(kernel, X, 7)[0]
        )

    expected, refused = scores(), []

    def gives_up(A, **options):
        if "subset_by_index" in options:
            refused.append(A)
            raise np.linalg.LinAlgError("Internal Error.")
        return real(A, **options)

    monkeypatch.setattr(leverage, "eigh", gives_up)
    # both to rounding times the condition of the eigenvectors
    np.testing.assert_allclose(scores(), expected, rtol=1e-8)
    assert refused
