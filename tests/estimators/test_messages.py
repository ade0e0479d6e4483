"""Messages and reprs have numbers as people write them: 1.0, not np.float64(1.0)."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from gramian.errors import GramianError, InputError, ParameterError, plain
from gramian.inference.laplace import Laplace

f, i = np.float64, np.int64
X = np.linspace(0.0, 1.0, 12)[:, None]
Y = np.sin(5 * X[:, 0])


def fitted(**settings):
    return gm.GPRegressor(gm.RBF(0.5), optimize=False, **settings).fit(X, Y)


def certificate():
    return fitted(method=gm.Nystrom(3)).fitted_.certified(np.random.default_rng(0), 1e9).certificate


REFUSED = {
    "labels that are numbers": lambda: gm.GPClassifier().fit(X, Y),
    "one class": lambda: gm.GPClassifier().fit(X, np.ones(12, dtype=int)),
    "one class of text": lambda: gm.GPClassifier().fit(X, np.full(12, "a")),
    "a class that was not seen": lambda: (
        gm.GPClassifier(gm.RBF(), optimize=False).fit(X, np.arange(12) % 2).log_density(X, np.full(12, i(7)))
    ),
    "restarts": lambda: fitted(n_restarts=i(-1)),
    "noise": lambda: fitted(noise=f(-1.0)),
    "a time limit": lambda: fitted(time_limit=f(-3.0)),
    "a truth that is none": lambda: fitted(normalize_y=f(2.0)),
    "draws": lambda: fitted().sample(X, n_samples=i(0)),
    "points of a picture": lambda: fitted().plot(n_points=i(1)),
    "columns of a picture": lambda: fitted().plot(columns=[i(7)]),
    "a prior": lambda: gm.LogNormal(f(0.0), f(-1.0)),
    "bounds": lambda: gm.param(1.0, bounds=(f(1.0), f(2.0), f(3.0))),
    "a mean": lambda: fitted(mean=f(3.0)),
    "a method": lambda: fitted(method=f(3.0)),
    "an inference": lambda: fitted(inference=i(3)),
    "landmarks": lambda: gm.Nystrom(i(0)),
    "features": lambda: gm.Fourier(f(2.5)),
    "a tolerance": lambda: gm.CG(tol=f(2.0)),
    "a damping": lambda: gm.EP(damping=f(2.0)),
    "known noise": lambda: gm.GPRegressor().fit(X, Y, noise_var=np.r_[f(-1.0), np.ones(11)]),
    "a random state": lambda: fitted(random_state=f(2.5), method=gm.Nystrom(3)),
    "a kernel to a power": lambda: gm.RBF() ** f(2.5),
    "a kernel times": lambda: gm.RBF() * f(-2.0),
    "a cell": lambda: gm.GPRegressor().fit(pd.DataFrame({"a": [f(1.0), "x", f(2.0)]}), [1, 2, 3]),
    "an infinite cell": lambda: gm.GPRegressor().fit(np.r_[X[:-1], [[f(np.inf)]]], Y),
    "a memory limit": lambda: fitted(memory_limit=f(-3.0)),
    "sizes of a comparison": lambda: gm.compare(X, Y, sizes=[i(0)]),
    "a kernel": lambda: gm.GPRegressor(f(3.0)).fit(X, Y),
    "threads": lambda: gm.set_threads(i(0)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_errors_have_plain_numbers(what):
    with pytest.raises(GramianError) as caught:
        REFUSED[what]()
    assert "np." not in str(caught.value)
    assert "array(" not in str(caught.value)


SHOWN = {
    "a parameter": lambda: gm.param(f(1.0), prior=gm.Gamma(f(1.0), f(2.0)), bounds=(f(0.1), f(3.0))),
    "a kernel": lambda: f(2.0) * gm.RBF([f(0.5), f(1.0)]).on(i(0), i(1)) ** i(2),
    "nystrom": lambda: gm.Nystrom(i(5)),
    "fourier": lambda: gm.Fourier(i(6)),
    "sparse": lambda: gm.Sparse(i(5)),
    "svgp": lambda: gm.SVGP(i(5), learning_rate=f(0.1)),
    "cg": lambda: gm.CG(tol=f(1e-6), rank=i(3)),
    "minres": lambda: gm.MINRES(max_iter=i(10)),
    "exact": lambda: gm.Exact(fit_rows=i(30)),
    "ep": lambda: gm.EP(power=f(0.5)),
    "laplace": lambda: Laplace(tol=f(1e-6)),
    "mcmc": lambda: gm.MCMC(draws=i(10)),
    "hold": lambda: gm.Hold("noise", steps=i(3)),
    "an estimator": lambda: gm.GPRegressor(noise=f(0.1), n_restarts=i(1), time_limit=f(3.0)),
    "a likelihood": lambda: gm.StudentT(f(4.0)),
    "a mean": lambda: gm.ConstantMean(f(2.0)),
    "a process": lambda: gm.GP(gm.RBF(f(1.0)), noise=f(0.1)),
    "an outcome": lambda: fitted().outcome_,
    "an evidence": lambda: fitted().evidence_,
    "a row of parameters": lambda: fitted().parameters_.rows,
    "a certificate": lambda: fitted(method=gm.Nystrom(3)).certificate(),
    "a plan": lambda: gm.GPRegressor().plan(X, Y),
}


@pytest.mark.parametrize("what", SHOWN)
def test_reprs_have_plain_numbers(what):
    shown = SHOWN[what]()
    assert "np." not in repr(shown)
    assert "np." not in str(shown)


def test_what_numpy_writes_around_values_is_taken_off():
    given = f"{[f(1.5), i(-3), np.float32(0.5), np.True_, np.str_('a b'), np.uint8(7)]!r} in np.array"
    assert plain(given) == "[1.5, -3, 0.5, True, 'a b', 7] in np.array"
    error = pickle.loads(pickle.dumps(InputError("x is np.float64(2.0)")))
    assert (type(error), str(error)) == (InputError, "x is 2.0")
    assert str(ParameterError()) == ""


def test_what_is_printed_as_a_table_is_shown_as_one():
    """As the last line of a notebook cell; not every field with every number."""
    rows = np.column_stack([X, X**2])
    shown = {
        "nystrom:uniform": gm.compare(rows, Y, methods=["nystrom:uniform"], sizes=[3], repeats=1),
        "ranked by evidence": gm.compare_models([gm.RBF(1.0), gm.Matern32(1.0)], rows, Y),
        "memory limit": gm.GPRegressor().plan(rows, Y),
        "log evidence, at least": certificate(),
    }
    for part, table in shown.items():
        assert repr(table) == str(table)
        assert part in repr(table)
    assert repr(fitted().fitted_) == "Fitted(RBF(0.5), on 12 rows, Cholesky)"
    conditioned = gm.GP(gm.RBF(0.5), noise=0.1).condition(X, Y)
    assert repr(conditioned).startswith("ConditionedGP(GP(RBF(0.5), ")
    assert len(repr(conditioned)) < 200


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda: fitted().plan([1.0, 2.0]), "Expected 2D array, got 1D array instead"),
        (lambda: gm.GPRegressor(gm.RBF).fit(X, Y), r"a kernel is made by calling it: RBF\(\)"),
        (lambda: gm.GPRegressor().fit(X, ["a", "b"] * 6), "labels are for GPClassifier"),
    ],
)
def test_slips_are_told_with_their_cure(ask, told):
    with pytest.raises(GramianError, match=told):
        ask()
