"""A kernel is a function, so scikit-learn's kernel machines take it: with whole tables at once, not pair by
pair."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process.kernels import RBF as TheirRBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR

from gramian.kernels import RBF, Linear, Matern52, face

rng = np.random.default_rng(8)
X = rng.standard_normal((60, 2))
y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(60)
kernel = 1.5 * RBF([0.7, 2.0]) + Linear()


@pytest.fixture
def calls(monkeypatch):
    """The number of evaluations of kernels so far."""
    counted = []
    evaluate = face.evaluate

    def counting(*arguments):
        counted.append(arguments)
        return evaluate(*arguments)

    monkeypatch.setattr(face, "evaluate", counting)
    return counted


def test_svc(calls):
    labels = y > 0
    machine = SVC(kernel=kernel).fit(X, labels)
    assert len(calls) == 1
    reference = SVC(kernel="precomputed").fit(kernel(X), labels)
    assert_allclose(machine.decision_function(X), reference.decision_function(kernel(X)), rtol=1e-10)


def test_svr():
    assert SVR(kernel=kernel, C=10.0).fit(X, y).score(X, y) > 0.9


def test_kernel_ridge(calls):
    machine = KernelRidge(kernel=kernel, alpha=0.1).fit(X, y)
    predictions = machine.predict(X[:7])
    assert len(calls) == 2  # one for fit, one for predict
    # cond(K + 0.1 I) is about 1e3, so 1e-10 is a thousand times the rounding error.
    assert_allclose(
        predictions, kernel(X[:7], X) @ np.linalg.solve(kernel(X) + 0.1 * np.eye(60), y), rtol=1e-10
    )


def test_kernel_pca(calls):
    machine = KernelPCA(3, kernel=Matern52(0.8)).fit(X)
    projected = machine.transform(X)
    assert len(calls) == 2
    centre = np.eye(60) - 1 / 60
    values = np.linalg.eigvalsh(centre @ Matern52(0.8)(X) @ centre)[::-1][:3]
    assert_allclose(machine.eigenvalues_, values, rtol=1e-10)
    assert_allclose(np.sum(projected**2, axis=0), values, rtol=1e-8)


def test_clones_and_grid_search():
    assert clone(KernelRidge(kernel=kernel)).kernel == kernel
    search = GridSearchCV(KernelRidge(alpha=0.01), {"kernel": [RBF(0.001), RBF(1.0)]}).fit(X, y)
    assert search.best_params_ == {"kernel": RBF(1.0)}  # the other one sees no neighbours


def test_values_are_those_of_scikit_learns_kernel():
    ours, theirs = (KernelRidge(kernel=k, alpha=0.1).fit(X, y).predict(X) for k in (RBF(0.7), TheirRBF(0.7)))
    assert_allclose(ours, theirs, rtol=1e-9)


def test_two_points_give_a_float():
    value = kernel(X[0], X[1])
    assert type(value) is float
    assert value == kernel(X[:2])[1, 0]


def test_whole_tables_whatever_is_imported_first():
    """In a process of its own, where scikit-learn's kernels are imported by the machine itself, after
    ours."""
    program = """if True:
        import sys
        import numpy as np
        from gramian.kernels import RBF, face
        counted, evaluate = [], face.evaluate
        face.evaluate = lambda *arguments: counted.append(1) or evaluate(*arguments)
        kernel = RBF(0.5)
        assert "sklearn.gaussian_process" not in sys.modules, "no longer a test: gramian itself imports it"
        from sklearn.kernel_ridge import KernelRidge
        KernelRidge(kernel=kernel).fit(np.arange(50.0)[:, None], np.arange(50.0))
        print(len(counted))
    """
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert finished.stdout.strip() == "1", finished.stderr
