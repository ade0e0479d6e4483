"""What a notebook shows of models and what they give: readable, and nothing is computed for it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from gramian.estimators import fitted


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 2, (30, 2)), columns=["a<b", "c"])
    return X, np.sin(X["a<b"])


def test_kernels_are_formulas():
    kernel = 1.23456789 * gm.RBF(0.5).on("a<b")
    assert kernel._repr_html_() == "<code>1.235 * RBF(0.5).on(&#x27;a&lt;b&#x27;)</code>"
    assert gm.parse_kernel(repr(kernel)) == kernel


def test_tables_are_tables(rows):
    X, y = rows
    gp = gm.GPRegressor(1.0 * gm.RBF([1.0, 2.0]), optimize=False).fit(X, y)
    found = gp.parameters_._repr_html_()
    assert found.count("<tr>") == 1 + len(gp.parameters_)
    assert "<td>kernel.lengthscale[a&lt;b]</td>" in found
    assert "<td>a&lt;b</td>" in gp.relevance()._repr_html_()
    assert "<td>RMSE</td>" in gp.evaluate(X, y)._repr_html_()
    assert gp.certificate()._repr_html_().startswith("<pre>Certificate")


def test_comparisons_are_their_tables(rows):
    X, y = rows
    models = {"smooth": gm.RBF(), "rough": gm.Matern12()}
    candidates = {k: gm.GPRegressor(kernel, optimize=False) for k, kernel in models.items()}
    found = gm.compare_models(candidates, X, y)
    assert repr(found) == str(found)
    assert found._repr_html_().startswith("<pre>")
    assert "smooth" in found._repr_html_()


def test_nothing_is_computed_to_show_an_estimator(rows, monkeypatch):
    X, y = rows
    gp = gm.GPRegressor(1.0 * gm.RBF([1.0, 2.0]), optimize=False).fit(X, y)
    for name in ("certify", "quality", "relevance"):
        monkeypatch.setattr(fitted, name, None)
    assert "kernel_" in gp._repr_html_()
    assert repr(gp).startswith("GPRegressor(kernel=1.0 * RBF([1.0, 2.0])")
    assert repr(gp.fitted_) == "Fitted(1 * RBF([1, 2]), on 30 rows, Cholesky)"
    assert repr(gp.predict_dist(X)).startswith("Normals(30)")
    dir(gp)
