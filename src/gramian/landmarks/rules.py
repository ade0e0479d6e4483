"""The rules for landmarks by name.

    rule           how rows are chosen                   cost                    twice?  source
    uniform        all alike                             none                    asked   Williams, Seeger 2001
    diagonal       by K_ii^2                             n values                yes     Drineas, Mahoney 2005
    column-norm    by |K_:i|^2                           n^2 / 2 values          yes     Drineas et al. 2006
    leverage       by leverage in the m / 2 leading      n^3, n^2 memory         asked   Gittens, Mahoney 2016
                   eigenvectors
    rls            by ridge leverage, exact              n^3, n^2 memory         asked   Alaoui, Mahoney 2015
    recursive-rls  by ridge leverage, estimated by       n m values, n m^2       asked   Musco, Musco 2017
                   recursion
    kmeans         centres of m clusters: new points     n m d a round           -       Zhang et al. 2008
    pivoted        each time the row least explained     n m values, n m^2, n m  -       Burt et al. 2020
    rpcholesky     each time at random, by what is left  n m values, n m^2, n m  -       Chen et al. 2022
                   to explain

(Kernel values, flops, memory to leading order. Twice: whether rows are drawn with replacement.) pivoted is
also called greedy conditional variance.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from sklearn.utils import check_random_state

from gramian.arrays import is_whole
from gramian.errors import InputError, ParameterError
from gramian.kernels.base import Kernel
from gramian.landmarks import tables
from gramian.landmarks.base import LandmarkRule, Landmarks
from gramian.landmarks.kmeans import KMeansRule
from gramian.landmarks.leverage import LeverageRule, RecursiveRule, RidgeRule
from gramian.landmarks.pivoted import PivotedRule, RPCholeskyRule
from gramian.landmarks.sampling import ColumnNormRule, DiagonalRule, UniformRule

RULES: Final[Mapping[str, LandmarkRule]] = {
    rule.name: rule
    for rule in (
        UniformRule(),
        DiagonalRule(),
        ColumnNormRule(),
        LeverageRule(),
        RidgeRule(),
        RecursiveRule(),
        KMeansRule(),
        PivotedRule(),
        RPCholeskyRule(),
    )
}


def as_rule(rule: object, what: str = "rule") -> LandmarkRule:
    """The rule of that name, or the one that was given."""
    if isinstance(rule, LandmarkRule):
        return rule
    if not isinstance(rule, str) or rule not in RULES:
        raise ParameterError(
            f"{what}={rule!r} is not known. There are {', '.join(RULES)}. In Python a LandmarkRule of your"
            " own will do, too."
        )
    return RULES[rule]


def named(rule: str | LandmarkRule) -> str | LandmarkRule:
    """Its name where it is the rule of that name, as it is otherwise: a name can be saved and compared."""
    return next((name for name, known in RULES.items() if known == rule), rule)


def landmarks(
    kernel: Kernel,
    X: Any,
    m: int,
    rule: str | LandmarkRule = "rpcholesky",
    random_state: Any = None,
    *,
    replace: bool | None = None,
    ridge: float | None = None,
    block: int | None = None,
) -> Landmarks:
    """Chooses m landmarks for the rows of X (n, d), an array or a memory map, at the parameters that `kernel`
    has.

    `rule`: "uniform", "diagonal", "column-norm", "leverage", "rls", "recursive-rls", "kmeans", "pivoted" or
    "rpcholesky" (the default); what each does is at the head of this module. Or a `LandmarkRule` of your own.
    `random_state`: a whole number, a generator, or None for another choice each time.

    Fewer than m come back when the rows with something left to explain (pivoted, rpcholesky), of positive
    probability (drawn without replacement) or different from each other (kmeans) are fewer. `replace`
    overrides the rule's default. `ridge` is for rls: by default 1/k times the sum of the eigenvalues of K
    beyond the k = m / log m largest. `block` is for rpcholesky: rows drawn at once, m / 10 by default, 1 for
    the simple algorithm.
    """
    taken = as_rule(rule)
    table = tables.as_table(X)
    kernel = tables.as_kernel(kernel, X, table.shape[1])
    if not is_whole(m):
        raise ParameterError(f"m={m!r} is no number of landmarks. Give a whole number from 1 on.")
    taken = _with_options(taken, {"replace": replace, "ridge": ridge, "block": block})
    if int(m) > len(table) and not taken.replace:
        more = ", or replace=True" if "replace" in _options(taken) else ""
        raise InputError(
            f'm={m} landmarks are asked for, but X has {len(table)} rows, and rule="{taken}" takes each at'
            f" most once. Give m <= {len(table)}{more}."
        )
    return taken.choose(kernel, table, int(m), _generator(random_state))


def _options(rule: LandmarkRule) -> set[str]:
    return {field.name for field in dataclasses.fields(rule)}


def _with_options(rule: LandmarkRule, given: dict[str, Any]) -> LandmarkRule:
    """The rule with the options that are not None, all of which must have a meaning for it."""
    asked = {name: value for name, value in given.items() if value is not None}
    for name in asked.keys() - _options(rule):
        others = [other.name for other in RULES.values() if name in _options(other)]
        if name == "replace":
            if not asked.pop("replace"):
                continue
            raise ParameterError(
                f'rule="{rule}" cannot choose a row twice. Leave replace out, or take one of'
                f" {', '.join(others)}."
            )
        raise ParameterError(
            f'{name}={asked[name]!r} is for rule="{", ".join(others)}", not for "{rule}". Leave it out.'
        )
    return dataclasses.replace(rule, **asked) if asked else rule


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    try:
        return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise ParameterError(
            f"random_state={random_state!r}: {error}. Give a whole number from 0 on, a RandomState, a"
            " Generator, or None."
        ) from None
