"""Rules for landmarks as objects: one class is enough for a new one, everywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_info, threadpool_limits

import gramian as gm
from gramian.engines.dense import FIT_RULES
from gramian.errors import GramianError, ParameterError
from gramian.landmarks import tables
from gramian.landmarks.base import LandmarkRule, Landmarks
from gramian.landmarks.pivoted import RPCholeskyRule
from gramian.landmarks.rules import RULES, as_rule, landmarks, named
from gramian.landmarks.sampling import UniformRule


def _blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@dataclass(frozen=True)
class Farthest(LandmarkRule):
    """Each time the row farthest from those taken, from row `first` on; sees at most `most` rows."""

    first: int = 0
    most: int = 10**6
    name = "farthest"

    def choose(self, kernel, X, m, rng):
        X, taken = tables.take(X, np.arange(len(X))), [self.first]
        for _ in range(m - 1):
            apart = np.min(np.sum((X[:, None] - X[taken]) ** 2, axis=2), axis=1)
            taken.append(int(np.argmax(apart)))
        return Landmarks(X[taken], np.array(taken), rule=self.name)

    def candidates(self, n, m):
        return min(n, self.most)

    def bytes_needed(self, n, m):
        return 10**12 * n


@pytest.fixture
def data(rng):
    X = rng.uniform(-2, 2, (80, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)


def test_a_rule_of_ones_own_chooses_landmarks(data):
    X, _ = data
    found = gm.landmarks(gm.RBF(1.0), X, 6, Farthest(3))
    assert found.indices[0] == 3
    assert len(set(found.indices)) == 6
    assert found.rule == "farthest"
    assert_array_equal(gm.NystromFeatures(gm.RBF(1.0), 6, sampling=Farthest(3)).fit(X).landmarks_, found.Z)


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (gm.Nystrom(6, Farthest(3)), "6 landmarks by farthest"),
        (gm.Sparse(6, inducing=Farthest(3)), "6 inducing points, by farthest"),
    ],
    ids=["nystrom", "sparse"],
)
def test_a_rule_of_ones_own_in_a_fit(method, text, data):
    X, y = data
    gp = gm.GPRegressor(1.0 * gm.RBF(1.0), method=method, optimize=False, memory_limit="900TB").fit(X, y)
    Z = gm.landmarks(gm.RBF(1.0), X, 6, Farthest(3)).Z
    assert_array_equal(gp.posterior_.features.Z, np.unique(Z, axis=0))
    assert text in gp.summary()
    assert method.label.endswith("by farthest")


def test_a_rule_of_ones_own_for_svgp():
    method = gm.SVGP(6, Farthest(3), optimize_inducing=False)
    assert method.described == "6 inducing points, by farthest"
    assert method.bytes_needed(80, 2, 1) >= 80 * 10**12


def test_what_a_rule_costs_counts_in_a_fit():
    """Of the rows it says it looks at, for memory and for the choice."""
    for method in (gm.Nystrom(6, Farthest(most=50)), gm.Sparse(6, inducing=Farthest(most=50))):
        assert method.bytes_needed(10**6, 2, 1) == 50 * 10**12


def test_a_fit_shows_a_rule_as_many_rows_as_it_wants(data):
    X, y = data
    seen = []

    class Watching(Farthest):
        def choose(self, kernel, X, m, rng):
            seen.append(len(X))
            return super().choose(kernel, X, m, rng)

    method = gm.Nystrom(6, Watching(most=50))
    gm.GPRegressor(1.0 * gm.RBF(1.0), method=method, optimize=False, memory_limit="900TB").fit(X, y)
    assert set(seen) == {50}


def test_options_are_fields_of_the_rule(data):
    X, _ = data
    kernel = gm.RBF(0.5)
    assert_array_equal(
        landmarks(kernel, X, 9, RPCholeskyRule(block=1), 0).indices,
        landmarks(kernel, X, 9, "rpcholesky", 0, block=1).indices,
    )
    assert landmarks(kernel, X, 200, UniformRule(replace=True), 0).weights is not None
    with pytest.raises(ParameterError, match=r'block=3 is for rule="rpcholesky", not for "farthest"'):
        landmarks(kernel, X, 9, Farthest(), block=3)
    with pytest.raises(ParameterError, match='"farthest" cannot choose a row twice'):
        landmarks(kernel, X, 9, Farthest(), replace=True)
    with pytest.raises(ParameterError, match="block=0"):
        RPCholeskyRule(block=0)


def test_a_rule_of_the_registry_is_its_name():
    """So that methods that mean the same are equal, and can be saved."""
    assert gm.Nystrom(6, RULES["rls"]) == gm.Nystrom(6, "rls")
    assert gm.Sparse(6, inducing=RPCholeskyRule()) == gm.Sparse(6)
    assert gm.Nystrom(6, RPCholeskyRule(block=1)) != gm.Nystrom(6)
    assert named(Farthest()) == Farthest()
    assert all(rule.name == name and as_rule(name) is rule for name, rule in RULES.items())


def test_rules_that_take_rows_may_choose_the_rows_of_a_search():
    assert ("neighbours", *(name for name in RULES if name != "kmeans")) == FIT_RULES


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda rule: gm.Nystrom(6, rule), "Nystrom: sampling"),
        (lambda rule: gm.Sparse(6, inducing=rule), "Sparse: inducing"),
        (lambda rule: gm.SVGP(6, rule), "SVGP: inducing"),
    ],
)
def test_what_is_no_rule_is_said_with_those_there_are(make, what):
    with pytest.raises(
        ParameterError, match=rf"{what}='best' is not known. There are uniform, .*LandmarkRule"
    ):
        make("best")


def test_a_rule_of_ones_own_is_not_written_to_a_file(data, tmp_path):
    X, y = data
    method = gm.Nystrom(6, Farthest())
    gp = gm.GPRegressor(1.0 * gm.RBF(1.0), method=method, optimize=False, memory_limit="900TB").fit(X, y)
    with pytest.raises(GramianError, match="Farthest"):
        gp.save(tmp_path / "model.gm")


def test_k_means_leaves_blas_at_one_thread(monkeypatch):
    """scikit-learn gives back the threads that it found. Had it found two, a fit beside it, which needs one,
    would have two from then on."""
    seen, fit = [], KMeans.fit
    monkeypatch.setattr(KMeans, "fit", lambda *a, **k: (seen.append(_blas_threads()), fit(*a, **k))[1])
    with threadpool_limits(2, user_api="blas"):
        landmarks(gm.RBF(), np.random.default_rng(0).normal(size=(40, 2)), 5, "kmeans")
        assert _blas_threads() == {2}
    assert seen == [{1}]
