"""Landmarks: each rule against a slow dense version of it, what is proved of it, and what it may cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gramian as gm
from gramian.errors import InputError, NumericalError, ParameterError
from gramian.gram import programs, tiles
from gramian.landmarks import kmeans, leverage, sampling
from gramian.landmarks.rules import RULES, landmarks
from gramian.landmarks.sampling import SampledRule

KERNEL = 0.5 * gm.RBF(0.7) + gm.Linear([0.6, 0.2])  # its diagonal is uneven
DRAWN = [name for name, rule in RULES.items() if isinstance(rule, SampledRule)]
ROWS = [name for name, rule in RULES.items() if rule.takes_rows]


@pytest.fixture
def X(rng):
    return rng.normal(size=(70, 2))


def cluster_and_few(rng):
    """A dense cluster and a few points far from it and from each other: leverage lies with the few."""
    return np.concatenate([0.1 * rng.normal(size=(285, 2)), rng.uniform(-6, 6, (15, 2))])


@pytest.fixture
def uneven(rng):
    return cluster_and_few(rng)


@pytest.fixture
def evaluated(monkeypatch):
    """How many kernel values have been computed, padding included."""
    count = [0]
    tile = programs.tile

    def counted(kernel, A, B):
        count[0] += len(A) * len(B)
        return tile(kernel, A, B)

    monkeypatch.setattr(programs, "tile", counted)
    return count


def nystrom(K, indices, weights=None, rank=None):
    """C W_k^+ C' with columns scaled by the weights, by the eigenvectors of W."""
    w = np.ones(len(indices)) if weights is None else weights
    C, W = K[:, indices] * w, w[:, None] * K[np.ix_(indices, indices)] * w
    values, vectors = np.linalg.eigh(W)
    good = values > 1e-12 * values[-1]
    if rank is not None:
        good &= np.arange(len(values)) >= len(values) - rank
    return C @ (vectors[:, good] / values[good]) @ vectors[:, good].T @ C.T


def probabilities(rule, K, m):
    """What a rule with scores draws by, from the whole matrix."""
    values, U = np.linalg.eigh(K)
    k = int(np.ceil(m / np.log(m)))
    scores = {
        "uniform": np.ones(len(K)),
        "diagonal": np.diag(K) ** 2,
        "column-norm": np.sum(K**2, axis=0),
        "leverage": np.sum(U[:, -m // 2 :] ** 2, axis=1),
        "rls": np.diag(K @ np.linalg.inv(K + np.sum(values[:-k]) / k * np.eye(len(K)))),
    }[rule]
    return scores / np.sum(scores)


# Rows drawn by probabilities. -------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["uniform", "diagonal", "column-norm", "leverage", "rls"])
def test_weights_and_frequencies_are_those_of_the_rule(rule, X, monkeypatch):
    monkeypatch.setattr(sampling, "NORM_ROWS", 32)  # several blocks, the last one short
    X = X[:40]
    few = landmarks(KERNEL, X, 12, rule, 0, replace=True)
    p = probabilities(rule, KERNEL(X), 12)
    assert_array_equal(few.Z, X[few.indices])
    # an eigenvalue problem of condition 1e5 below it
    assert_allclose(few.weights, 1 / np.sqrt(12 * p[few.indices]), rtol=1e-9)
    if rule == "leverage":  # of rank m / 2, so no other m may stand in: draw often with the same one
        drawn = np.concatenate(
            [landmarks(KERNEL, X, 12, rule, seed, replace=True).indices for seed in range(100)]
        )
    else:
        m = 4000
        p = (
            p
            if rule != "rls"
            else leverage.ridge_scores(KERNEL, X, 12, 0.3)[0]
            / np.sum(leverage.ridge_scores(KERNEL, X, 12, 0.3)[0])
        )
        drawn = landmarks(KERNEL, X, m, rule, 1, replace=True, ridge=0.3 if rule == "rls" else None).indices
    expected = len(drawn) * p
    deviation = (np.bincount(drawn, minlength=len(X)) - expected) / np.sqrt(expected * (1 - p))
    assert np.max(np.abs(deviation)) < 6  # 40 near-normal numbers: 1e-7


def test_exact_ridge_scores_and_their_default_ridge(X):
    K = KERNEL(X)
    values = np.linalg.eigvalsh(K)
    scores, ridge = leverage.ridge_scores(KERNEL, X, 9)
    k = 5  # 9 / log 9 = 4.1
    assert_allclose(ridge, np.sum(values[:-k]) / k, rtol=1e-10)
    assert_allclose(scores, np.diag(K @ np.linalg.inv(K + ridge * np.eye(70))), rtol=1e-9)
    assert np.sum(scores) <= 2 * k
    given, kept = leverage.ridge_scores(KERNEL, X, 9, 0.05)
    assert kept == 0.05
    assert_allclose(given, np.diag(K @ np.linalg.inv(K + 0.05 * np.eye(70))), rtol=1e-9)


@pytest.mark.parametrize("rule", DRAWN)
def test_without_replacement_no_row_comes_twice(rule, X):
    found = landmarks(KERNEL, X, 35, rule, 0, replace=False)
    assert len(set(found.indices)) == len(found.indices) == 35
    assert found.weights is None
    assert_array_equal(np.sort(landmarks(KERNEL, X, 70, "uniform", 0).indices), np.arange(70))


def test_rows_of_probability_zero_are_never_drawn(X):
    X[10:] = 0.0  # k(0, 0) = 0 for a linear kernel
    assert sorted(landmarks(gm.Linear(), X, 20, "diagonal", 0, replace=False).indices) == list(range(10))
    with pytest.raises(InputError, match="no row that matters"):
        landmarks(gm.Linear(), 0 * X, 5, "diagonal")


def test_recursive_scores_that_round_to_zero_draw_any_rows(X):
    """One landmark that explains all rows leaves nothing but rounding, at some scales nothing at all."""
    for scale in (0.1, 0.5, 1.0, 2.0, 3.0):
        kernel = scale * gm.RBF(1.0)
        assert landmarks(kernel, X[:1], 1, "recursive-rls", 0).indices == [0]
        taken = [
            int(landmarks(kernel, np.repeat(X[:1], 20, axis=0), 1, "recursive-rls", seed).indices[0])
            for seed in range(60)
        ]
        # of 20 rows by 60 draws; that so few are seen has a chance below 20!/(10!)^2 2^-60 < 1e-12
        assert len(set(taken)) > 10
    assert gm.NystromFeatures(gm.RBF(1.0), 5, sampling="recursive-rls").fit(X[:1]).transform(X[:2]).shape == (
        2,
        1,
    )
    assert landmarks(gm.Linear(), [[0.0], [0.0], [1.0], [0.0]], 1, "recursive-rls", 0).indices == [2]
    with pytest.raises(InputError, match="no row that matters"):
        landmarks(gm.Linear(), 0 * X, 1, "recursive-rls", 0)


def test_repeats_and_scaling_change_nothing_unless_truncated(X):
    """Drineas and Mahoney: C W^+ C' is the projection on the columns drawn, however often and however
    scaled."""
    K = KERNEL(X)
    found = landmarks(KERNEL, X, 60, "diagonal", 3)
    once = found.distinct()
    assert len(once.indices) < 60
    assert len(set(once.indices)) == len(once.indices)
    full = nystrom(K, found.indices, found.weights)
    tolerance = {
        "rtol": 1e-7,
        "atol": 1e-7,
        # 1e-12, where eigenvalues are cut, leaves errors up to eps / 1e-12 = 2e-4 of parts of size 1e-4 and
        # below
    }
    assert_allclose(full, nystrom(K, np.unique(found.indices)), **tolerance)
    assert_array_equal(once.Z, X[once.indices])
    truncated = nystrom(K, found.indices, found.weights, rank=4)
    assert_allclose(nystrom(K, once.indices, once.weights, rank=4), truncated, rtol=1e-9, atol=1e-9)
    # here scaling does matter
    assert np.max(np.abs(nystrom(K, np.unique(found.indices), rank=4) - truncated)) > 1e-3


def test_the_bounds_of_drineas_and_mahoney_hold(rng):
    """Theorem 3: E |K - C W_k^+ C'|_2 <= |K - K_k|_2 + eps sum K_ii^2 with eps = 2 / sqrt(m), and in
    Frobenius norm with eps = (64 k / m)^(1/4)."""
    # three rows hold nearly all of sum K_ii^2
    X = np.concatenate([0.05 * rng.normal(size=(57, 3)), np.diag([1.5, 1.5, 1.0])])
    kernel, m, rank = gm.Linear(), 400, 2
    K = kernel(X)
    values = np.sort(np.linalg.eigvalsh(K))
    total = np.sum(np.diag(K) ** 2)
    spectral, frobenius = [], []
    for seed in range(30):
        found = landmarks(kernel, X, m, "diagonal", seed)
        error = K - nystrom(K, found.indices, found.weights, rank)
        spectral.append(np.linalg.norm(error, 2))
        frobenius.append(np.linalg.norm(error))
    assert np.mean(spectral) <= values[-rank - 1] + 2 / np.sqrt(m) * total
    assert np.mean(frobenius) <= np.linalg.norm(values[:-rank]) + (64 * rank / m) ** 0.25 * total
    assert np.mean(spectral) >= values[-rank - 1]  # no rank-k matrix does better


# Recursive ridge leverage. ----------------------------------------------------------------------------------


def test_scores_from_weighted_landmarks_are_the_formula(X, rng):
    """(K_ii - K_iS (K_SS + ridge W^-2)^-1 K_Si) / ridge, for the ridge (1/k) sum_{j > k} s_j(W K_SS W)."""
    K, S, w, k = KERNEL(X), rng.permutation(70)[:20], rng.uniform(1, 3, 20), 6
    ridge = np.sum(np.linalg.eigvalsh(w[:, None] * K[np.ix_(S, S)] * w)[:-k]) / k
    left = np.diag(K) - np.diag(K[:, S] @ np.linalg.inv(K[np.ix_(S, S)] + ridge * np.diag(w**-2)) @ K[S])
    scores, found = leverage._scores_from(KERNEL, X, None, np.diag(K), S, w, k)
    assert_allclose(found, ridge, rtol=1e-10)
    assert_allclose(scores, np.minimum(left / ridge, 1.0), rtol=1e-8)
    level = rng.permutation(70)[:30]
    assert_allclose(leverage._scores_from(KERNEL, X, level, np.diag(K), S, w, k)[0], scores[level], rtol=1e-8)


def test_recursive_scores_are_ridge_scores_within_a_constant(uneven, rng):
    """The half stands for the whole: with high probability scores are not underestimated, and their sum is at
    most a few times too large."""
    kernel, K = gm.RBF(0.5), gm.RBF(0.5)(uneven)
    for _ in range(10):
        estimate, ridge = leverage.recursive_scores(kernel, uneven, 60, rng)
        exact = np.diag(K @ np.linalg.inv(K + ridge * np.eye(300)))
        # seen: 0.94 and 3.4 at most in 20 runs
        assert np.all((estimate > exact / 2) & (estimate < 5 * exact))
        assert np.sum(exact) / 2 < np.sum(estimate) < 2.5 * np.sum(exact)
        assert np.min(estimate[285:]) > 4 * np.median(estimate[:285])  # the few far points stand out


def test_recursive_ridge_follows_the_eigenvalues_of_the_half(uneven, rng):
    """(1/k) times the eigenvalues beyond k of the half, k = m / (4 log m): at most that of the whole, and
    about a half of it."""
    values = np.linalg.eigvalsh(gm.RBF(0.5)(uneven))
    k = int(np.ceil(80 / (4 * np.log(80))))
    ridges = [leverage.recursive_scores(gm.RBF(0.5), uneven, 80, rng)[1] for _ in range(20)]
    assert 0.25 < np.mean(ridges) / (np.sum(values[:-k]) / k) < 1


@pytest.mark.parametrize(
    ("kernel", "m"), [(gm.Linear(), 20), (gm.RBF(0.5), 1), (gm.RBF(0.5), 300), (gm.RBF(1e3), 40)]
)
def test_recursion_at_its_edges(kernel, m, uneven):
    found = landmarks(kernel, uneven, m, "recursive-rls", 0)
    assert 1 <= len(found.indices) <= m
    assert len(set(found.indices)) == len(found.indices)


# Centres. ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [2.0 * gm.RBF([0.5, 40.0]), gm.RBF(1.0) * gm.RBF(2.0)])
def test_each_centre_is_the_mean_of_the_rows_closest_to_it(kernel, rng):
    X = rng.normal(size=(200, 2)) * [1.0, 30.0]
    scale = [0.5, 40.0] if isinstance(kernel, gm.kernels.algebra.Scaled) else np.std(X, axis=0)
    found = landmarks(kernel, X, 7, "kmeans", 0)
    assert found.indices is None
    assert found.weights is None
    closest = np.argmin(np.sum(((X[:, None] - found.Z) / scale) ** 2, axis=2), axis=1)
    means = np.array([np.mean(X[closest == c], axis=0) for c in range(7)])
    assert_allclose(
        found.Z, means, atol=0.02 * np.std(X, axis=0).max()
    )  # scikit-learn stops once centres move by 1 % of the spread (tol=1e-4 of variance)


def test_many_rows_give_the_clusters_that_are_there(rng, monkeypatch):
    monkeypatch.setattr(kmeans, "LLOYD_ROWS", 300)
    corners = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    X = (corners[:, None] + 0.1 * rng.normal(size=(3, 500, 2))).reshape(-1, 2)
    Z = landmarks(gm.RBF(2.0), X, 3, "kmeans", 0).Z
    # means of 100 rows and more: standard error 0.01
    assert_allclose(Z[np.lexsort(np.round(Z).T)], corners, atol=0.05)


def test_fewer_different_rows_than_centres(rng):
    X = np.repeat(rng.normal(size=(5, 2)), 4, axis=0)
    assert_array_equal(landmarks(gm.RBF(1.0), X, 8, "kmeans", 0).Z, np.unique(X, axis=0))


# What all rules share. --------------------------------------------------------------------------------------


def test_rules_that_look_at_the_kernel_beat_uniform_where_leverage_is_uneven(uneven):
    """Uniform draws of 40 in 300 see 2 of the 15 far points on average, and miss 1 in trace for each other
    one."""
    kernel, K = gm.RBF(0.5), gm.RBF(0.5)(uneven)

    def error(rule):
        found = [landmarks(kernel, uneven, 40, rule, seed).indices for seed in range(8)]
        return np.mean([np.trace(K - nystrom(K, indices)) for indices in found])

    base = error("uniform")
    assert base > 10
    for rule in ("leverage", "rls", "recursive-rls"):
        # far points are drawn with 5 times the chance at least: more than half of them are seen
        assert error(rule) < 0.7 * base, rule
    for rule in ("pivoted", "rpcholesky"):
        assert error(rule) < 0.02 * base, rule  # all of them are taken


@pytest.mark.parametrize("rule", RULES)
def test_the_seed_decides(rule, X):
    first, again, other = (landmarks(KERNEL, X, 20, rule, seed) for seed in (5, 5, 6))
    assert_array_equal(first.Z, again.Z)
    assert first.rule == rule
    assert (first.probabilities_seconds > 0) == (rule in DRAWN and rule != "uniform")
    if rule != "pivoted":
        assert not np.array_equal(first.Z, other.Z)
    generators = [landmarks(KERNEL, X, 20, rule, np.random.default_rng(1)).Z for _ in range(2)]
    assert_array_equal(*generators)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", RULES)
def test_a_file_gives_what_memory_gives(rule, dtype, X, tmp_path):
    held = np.memmap(tmp_path / "X.bin", dtype, "w+", shape=X.shape)
    held[:] = X
    expected = landmarks(KERNEL, np.array(held, dtype=np.float64), 20, rule, 0)
    found = landmarks(KERNEL, held, 20, rule, 0)
    assert_array_equal(found.Z, expected.Z)
    assert type(found.Z) is np.ndarray
    assert found.Z.dtype == np.float64


@pytest.mark.parametrize("rule", ["uniform", "diagonal", "recursive-rls", "kmeans", "pivoted", "rpcholesky"])
def test_a_file_is_never_read_as_a_whole(rule, rng, tmp_path):
    longest = [0]

    class Watched(np.memmap):
        def __getitem__(self, key):
            part = super().__getitem__(key)
            longest[0] = max(longest[0], len(part) if np.ndim(part) == 2 else 0)
            return part

    held = Watched(tmp_path / "X.bin", np.float32, "w+", shape=(24_000, 2))
    held[:] = rng.normal(size=held.shape)
    longest[0] = 0
    assert len(landmarks(gm.RBF(0.2), held, 12, rule, 0).Z) == 12
    assert 12 <= longest[0] <= 20_000


def test_kernel_values_computed(evaluated, rng):
    n, m = 8192, 160
    X, kernel = rng.normal(size=(n, 3)), gm.RBF(0.3)
    for rule, most in {
        "uniform": 0,
        "diagonal": 0,  # k(x, x) is no pair
        # n, n/2, n/4, ... rows against landmarks that are m/2 on average, and padding
        "recursive-rls": 4 * n * m,
        "rpcholesky": 1.5 * n * m,  # blocks of 16, less what repeats itself, padded to 16 again
        "pivoted": 1.3 * (n + 4096) * m,  # the candidates' own columns, padded; and blocks of 4, 16 or 64
    }.items():
        evaluated[0] = 0
        landmarks(kernel, X, m, rule, 0)
        assert evaluated[0] <= most, rule
        assert evaluated[0] >= (n * m / 4 if most else 0), rule
    evaluated[0] = 0
    landmarks(kernel, X[:5000], m, "column-norm", 0)
    assert evaluated[0] <= 0.8 * 5000**2  # the blocks above the diagonal stand for those below


def test_one_column_costs_no_more_than_a_column(evaluated, rng):
    X = rng.normal(size=(8192, 3))
    for few in (1, 3, 70):
        assert_allclose(
            tiles.strip(KERNEL, X[:few, :2], X[:, :2]), KERNEL(X[:few, :2], X[:, :2]), rtol=1e-13, atol=1e-15
        )
    evaluated[0] = 0
    tiles.strip(gm.RBF(0.3), X[:1], X)
    assert evaluated[0] == 8192


def test_names_of_columns_are_understood(X):
    frame = pd.DataFrame(X, columns=["a", "b"])
    found = landmarks(gm.RBF(0.5).on("b"), frame, 10, "pivoted")
    assert_array_equal(found.indices, landmarks(gm.RBF(0.5).on(1), X, 10, "pivoted").indices)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"m": 0}, ParameterError, "m=0 is no number of landmarks"),
        ({"m": 2.5}, ParameterError, "m=2.5"),
        ({"m": True}, ParameterError, "m=True"),
        ({"m": 71}, InputError, "m=71 .* 70 rows.*Give m <= 70"),
        ({"m": 71, "rule": "uniform"}, InputError, "replace=True"),
        ({"m": 71, "rule": "diagonal", "replace": False}, InputError, "m=71"),
        (
            {"rule": "best"},
            ParameterError,
            "uniform, diagonal, column-norm, leverage, rls, recursive-rls, kmeans, pivoted, rpcholesky",
        ),
        ({"rule": "pivoted", "replace": True}, ParameterError, "cannot choose a row twice"),
        ({"rule": "kmeans", "replace": True}, ParameterError, "cannot choose a row twice"),
        ({"rule": "uniform", "replace": "yes"}, ParameterError, "replace='yes'"),
        ({"rule": "uniform", "ridge": 1.0}, ParameterError, 'for rule="rls"'),
        ({"rule": "rls", "ridge": 0.0}, ParameterError, "ridge=0.0"),
        ({"rule": "pivoted", "block": 3}, ParameterError, 'for rule="rpcholesky"'),
        ({"block": 0}, ParameterError, "block=0"),
        ({"random_state": "x"}, ParameterError, "random_state='x'"),
        ({"kernel": "RBF"}, ParameterError, "not a kernel"),
        ({"kernel": gm.RBF([1.0, 2.0, 3.0])}, ParameterError, "3 values, but the data have 2 columns"),
        ({"X": np.ones(5)}, InputError, r"shape \(5,\)"),
        ({"X": np.array([[1.0], [np.nan]]), "m": 1}, InputError, "row 1, column 0 of X is nan"),
        ({"X": [["a"]], "m": 1}, InputError, "not a number"),
        ({"X": np.full((9, 2), 1e200), "kernel": gm.Linear()}, NumericalError, "k\\(x, x\\) is inf at row 0"),
    ],
)
def test_what_cannot_be_is_said(options, error, message, X):
    given = {"kernel": KERNEL, "X": X, "m": 5, **options}
    with pytest.raises(error, match=message):
        landmarks(**given)


@pytest.mark.parametrize("rule", ["leverage", "rls"])
def test_exact_scores_of_many_rows_are_refused(rule, monkeypatch, X):
    monkeypatch.setattr(leverage, "MAX_ROWS", 60)
    with pytest.raises(InputError, match=r"up to 60 rows, but X has 70.*recursive-rls"):
        landmarks(KERNEL, X, 5, rule)
