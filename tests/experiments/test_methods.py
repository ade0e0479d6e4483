"""Names of methods, what they mean, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.errors import ParameterError
from gramian.experiments.methods import FAMILIES, Method, parse_methods
from gramian.solvers.cg import CG
from gramian.solvers.minres import MINRES


def test_every_family_and_variant_has_a_name_of_its_own_and_a_seed_of_its_own():
    names = [
        f"{family}:{variant}" if variant else family
        for family, (variants, _) in FAMILIES.items()
        for variant in variants or ("",)
    ]
    methods = parse_methods(names)
    assert [method.name for method in methods] == names
    assert len({method.code for method in methods}) == len(names)


def test_a_family_alone_is_its_usual_choice_and_a_method_counts_once():
    assert parse_methods(["fourier", "cg", "cg:rpcholesky", "exact"]) == (
        Method("fourier", "orf"),
        Method("cg", "rpcholesky"),
        Method("exact", ""),
    )
    assert parse_methods("vfe") == (Method("vfe", "rpcholesky"),)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "methods is empty"),
        (["nystroem"], "'nystroem' is not known. It begins with nystrom, "),
        (["nystrom:best"], "one of uniform, diagonal"),
        (["exact:cholesky"], "Write exact alone"),
        (["cg:"], "one of none, jacobi"),
        ([3], "which is not a name"),
    ],
)
def test_what_is_no_method_is_refused_with_the_cure(given, message):
    with pytest.raises(ParameterError, match=message):
        parse_methods(given)


def test_sizes_belong_to_features_and_to_low_rank_preconditioners():
    sized = {
        method.name
        for method in parse_methods(
            ["nystrom", "fourier", "fitc", "cg:none", "cg:jacobi", "cg:pivoted", "minres", "exact"]
        )
        if method.has_size
    }
    assert sized == {
        "nystrom:rpcholesky",
        "fourier:orf",
        "fitc:rpcholesky",
        "cg:pivoted",
        "minres:rpcholesky",
    }


@pytest.mark.parametrize("rule", FAMILIES["nystrom"][0])
def test_landmarks_come_once_each_and_probabilities_are_timed_apart(rule, rng):
    X = rng.standard_normal((60, 2))
    basis, probabilities, seconds = Method("nystrom", rule).choose(
        gm.RBF(0.7), X, 20, np.random.default_rng(0)
    )
    Z = basis.at(gm.RBF(0.7)).Z
    assert len(np.unique(Z, axis=0)) == len(Z) <= 20
    assert (probabilities > 0) == (rule in ("diagonal", "column-norm", "leverage", "rls", "recursive-rls"))
    assert seconds > 0


def test_the_three_sparse_families_differ_in_their_objective():
    assert [method.objective for method in parse_methods(["vfe", "fitc", "dtc", "nystrom", "fourier"])] == [
        "vfe",
        "fitc",
        "dtc",
        "dtc",
        "dtc",
    ]


def test_solvers_have_the_preconditioner_and_at_most_n_for_its_rank():
    cg, minres = (
        Method("cg", "jacobi").solver(0, 50, 1e-5, 7, 3),
        Method("minres", "pivoted").solver(80, 50, 1e-5, 7, 3),
    )
    assert cg == CG(tol=1e-5, max_iter=7, preconditioner="jacobi", rank=1, seed=3)
    assert minres == MINRES(tol=1e-5, max_iter=7, preconditioner="pivoted", rank=50, seed=3)


def test_memory_of_the_choice_is_in_the_prediction():
    n = 10_000
    assert Method("nystrom", "leverage").bytes_needed(n, 3, 50) >= 8 * n * n
    assert Method("nystrom", "uniform").bytes_needed(n, 3, 50) < 8 * n * n / 10
    assert Method("exact", "").bytes_needed(n, 3, 0) >= 8 * n * n
