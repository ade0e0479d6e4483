"""Exact inference and its pieces: groups of outputs, workspaces, roots of covariances, and processes in
blocks."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import gramian as gm
from gramian.engines import Exact
from gramian.engines.base import Workspace
from gramian.inference import Data, Evidence, Model, closed
from gramian.inference.conjugate import observed
from gramian.likelihoods import Gaussian
from gramian.linalg import memory
from gramian.means import ConstantMean, LinearMean, ZeroMean
from gramian.processes.base import blocks_of, semidefinite_root


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 2))
    return Data(
        X, np.column_stack([np.sin(X[:, 0]), 10 * X[:, 1], np.cos(X[:, 1])]), np.array([1.0, 10.0, 1.0])
    )


def model(noise=0.1, unit=(1.0,), mean=None):
    return Model(0.8 * gm.RBF(1.0), mean or ZeroMean(), Gaussian(noise, unit))


def test_paths_of_parameters():
    assert list(model(mean=LinearMean(0.0, [1.0, 2.0])).parameters()) == [
        "kernel.scale",
        "kernel.lengthscale",
        "mean.value",
        "mean.slope",
        "noise",
    ]


def test_outputs_with_the_same_noise_share_a_factor(data):
    """Noise in the units of y: outputs of another scale have another D. Noise relative to the scale: one
    factor for all."""
    assert [group.outputs for group in observed(model(), data)] == [[0, 2], [1]]
    relative = model(unit=(1.0, 100.0, 1.0))
    assert [group.outputs for group in observed(relative, data)] == [[0, 1, 2]]
    known = dataclasses.replace(data, noise_var=np.full(40, 0.2))
    first, second = observed(model(), known)
    assert_allclose(first.D, 0.3)
    assert_allclose(second.D, 0.003)


def test_shared_factors_give_what_separate_ones_give(data):
    together = closed(Exact()).infer(model(unit=(1.0, 100.0, 1.0)), data)
    assert len(together.posterior.roots) == 1
    Z = np.random.default_rng(1).uniform(-2, 2, (5, 2))
    total = 0.0
    for k in range(3):
        alone = closed(Exact()).infer(
            model(noise=0.1 * data.scale[k] ** 2), Data(data.X, data.Y[:, [k]], data.scale[[k]])
        )
        total += alone.evidence.value
        for a, b in zip(alone.posterior.moments(Z), together.posterior.moments(Z), strict=True):
            assert_allclose(b[:, [k]], a, rtol=1e-10, atol=1e-12)
    assert_allclose(together.evidence.value, total, rtol=1e-12)


def test_gradient_of_a_mean_with_one_number_for_all_outputs(data):
    """A shared level gets the sum of the slopes of all outputs."""
    shared = closed(Exact()).evidence_and_gradient(model(mean=ConstantMean(0.5)), data, Workspace())[1][2]
    each = closed(Exact()).evidence_and_gradient(
        model(mean=ConstantMean([0.5, 0.5, 0.5])), data, Workspace()
    )[1][2]
    assert shared.shape == ()
    assert each.shape == (3,)
    assert_allclose(shared, each.sum(), rtol=1e-10)


def test_a_workspace_keeps_its_array_until_it_is_released(data):
    workspace = Workspace()
    first = workspace.square(5)
    assert first.flags.f_contiguous
    assert workspace.square(5) is first
    assert workspace.square(6).shape == (6, 6)
    workspace.release()
    assert workspace.square(6) is not first
    # What an earlier evaluation left in it must not show.
    dirty = Workspace()
    dirty.square(40)[:] = np.nan
    clean, used = (closed(Exact()).evidence_and_gradient(model(), data, w) for w in (Workspace(), dirty))
    assert clean[0].value == used[0].value
    assert all(np.array_equal(a, b) for a, b in zip(clean[1], used[1], strict=True))


def test_evidence_says_what_it_is():
    assert str(Evidence(-12.3456789)) == "-12.3457 (exact)"
    assert str(Evidence(-12.0, "estimate", 0.25)) == "-12 +- 0.25 (estimate)"
    assert float(Evidence(3.5, "lower bound")) == 3.5


def test_bytes_needed():
    n = 4000
    assert 8 * n**2 < Exact().bytes_needed(n, 8, 1) < 1.5 * 8 * n**2 + 2**28
    assert Exact().bytes_needed(41_000, 8, 1) < 14e9


@given(st.integers(1, 12), st.integers(0, 12), st.integers(0, 1000))
def test_root_of_a_semidefinite_matrix(n, rank, seed):
    """R R' = A to rounding, also where A is singular or zero, with nothing added."""
    B = np.random.default_rng(seed).normal(size=(n, min(rank, n)))
    A = B @ B.T
    R = semidefinite_root(A)
    assert_allclose(R @ R.T, A, atol=1e-12 * (1 + np.abs(A).max()))


def test_blocks_cover_all_rows_once():
    for n in (1, 511, 512, 513, 200_000):
        blocks = blocks_of(n, 8 * 300)
        assert blocks[0].start == 0
        assert blocks[-1].stop == n
        assert all(a.stop == b.start for a, b in itertools.pairwise(blocks))
        assert all((b.stop - b.start) * 8 * 300 <= memory.BLOCK_BYTES for b in blocks)


@pytest.mark.parametrize("size", [1, 512, 513, 1500])
def test_predictions_in_small_blocks_are_the_same(size, data, monkeypatch):
    """With blocks of one tile, means and variances are those of one large block, to rounding."""
    posterior = closed(Exact()).infer(model(), data).posterior
    Z = np.random.default_rng(2).uniform(-2, 2, (size, 2))
    whole = posterior.moments(Z), posterior.gradient(Z), posterior.mean(Z)
    monkeypatch.setattr(memory, "BLOCK_BYTES", 1)
    monkeypatch.setattr(memory.block_rows, "__defaults__", (1,))
    assert len(blocks_of(size, 8)) == -(-size // 512)
    parts = posterior.moments(Z), posterior.gradient(Z), posterior.mean(Z)
    for a, b in zip((*whole[0], *whole[1], whole[2]), (*parts[0], *parts[1], parts[2]), strict=True):
        assert_allclose(b, a, rtol=1e-10, atol=1e-12)


def test_diagonal_of_the_precision(data):
    posterior = closed(Exact()).infer(model(), data).posterior
    for k, noise in enumerate([0.1, 0.001, 0.1]):
        precision = np.linalg.inv(model().kernel(data.X) + noise * np.eye(40))
        assert_allclose(posterior.precision()[:, k], np.diag(precision), rtol=1e-8)
