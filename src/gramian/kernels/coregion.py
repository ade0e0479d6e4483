"""A kernel for the index of an output, by which outputs that are measured together inform each other.

    k(i, j) = B_ij,    B = W W' + diag(own)        W (outputs, rank), own > 0

Times a kernel of x it is the covariance of outputs that are weighted sums of `rank` functions which they
share, and each of one of its own (intrinsic coregionalisation). A sum of such products, each with a kernel of
x and a B of its own, is the linear model of coregionalisation: rank 1 and nothing of their own, the
semiparametric latent factor model.

Sources: Goovaerts 1997, chapter 4; Alvarez, Rosasco and Lawrence 2012, section 4.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.kernels.base import Column, Kernel
from gramian.params import Value, positive, real
from gramian.params.tree import whole_number

SHARED, BEND = 0.7, 0.3  # where the weights of the first shared function begin, and those of the others
LEAST_OWN = 0.05  # of an output's variance: what begins as its own at the least


class Coregion(Kernel):
    """k(i, j) = (W W')_ij + own_i [i = j] on one column, of codes 0, 1, ... or of categories, one an output.

    `Coregion(3, rank=2)` is of three outputs; without a number, `Coregion(rank=2)`, it is of as many as the
    data have, where an estimator is told so: `GPRegressor(outputs=Coregion(rank=2))`. An output that no row
    has shown is unlike all others, of variance 1.
    """

    outputs: int = 0  # 0: as many as the data have
    rank: int = 1
    weights: Value = real(0.0)  # (outputs, rank)
    own: Value = positive(0.5)  # (outputs,)

    low_precision = True
    differentiable = True  # its column has no gradient, and functions of the others keep theirs

    def __post_init__(self) -> None:
        super().__post_init__()
        q = whole_number(self.outputs, "Coregion: outputs", 0)
        rank = whole_number(self.rank, "Coregion: rank", 1, q or None)
        object.__setattr__(self, "outputs", q)
        object.__setattr__(self, "rank", rank)
        if not q:
            if self.weights.value.ndim or self.own.value.ndim:
                raise ParameterError("Coregion: weights and own belong to a number of outputs: give it.")
            return
        if self.weights.value.ndim == 0:  # a start in which no two shared functions are alike
            object.__setattr__(self, "weights", dataclasses.replace(self.weights, value=_start(q, rank)))
        if self.own.value.ndim == 0:
            value = np.full(q, float(self.own.value))
            object.__setattr__(self, "own", dataclasses.replace(self.own, value=value))
        for name, wanted in (("weights", (q, rank)), ("own", (q,))):
            shape = getattr(self, name).value.shape
            if shape != wanted:
                raise ParameterError(
                    f"Coregion: {name} has shape {shape}, but {q} outputs of rank {rank} have {wanted}."
                )

    @property
    def matrix(self) -> Array:
        """B."""
        bare = self.bare()
        W, own = np.asarray(bare.weights), np.asarray(bare.own)
        return np.asarray(W @ W.T + np.diag(own))

    def sized(self, outputs: int) -> Coregion:
        """The same of so many outputs, where that was left open."""
        if self.outputs == outputs:
            return self
        if self.outputs:
            raise ParameterError(f"{self} is of {self.outputs} outputs, but the data have {outputs}.")
        if self.rank > outputs:
            raise ParameterError(f"{self} has rank {self.rank}, but the data have {outputs} outputs.")
        return dataclasses.replace(self, outputs=outputs)

    def started(self, R: Array) -> Self:
        """The same with weights from which a search may begin: the first directions of R, the correlations of
        the outputs, and what they leave as each one's own. Weights that are held stay."""
        if not self.weights.trainable or not self.own.trainable:
            return self
        values, vectors = np.linalg.eigh(R)
        first = np.argsort(values)[::-1][: self.rank]
        W = vectors[:, first] * np.sqrt(np.maximum(values[first], 1e-3))
        W = W * np.where(W.sum(axis=0) < 0, -1.0, 1.0)  # of two signs the one that most have
        own = np.maximum(1.0 - np.sum(W * W, axis=1), LEAST_OWN)
        W, own = (np.clip(v, *p.box) if p.bounds else v for v, p in ((W, self.weights), (own, self.own)))
        weights, rest = self.weights.with_value(W), self.own.with_value(own)
        return dataclasses.replace(self, weights=weights, own=rest)

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return self.cross(x[None], z[None])[0, 0]

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        (V, own), (W, _) = self._of(X), self._of(Z)
        return V @ W.T + jnp.where(X[:, :1] == Z[:, 0][None], own[:, None], 0.0)

    def diagonal(self, X: jax.Array) -> jax.Array:
        V, own = self._of(X)
        return jnp.sum(V * V, axis=1) + own

    def check_columns(self, columns: Sequence[Column]) -> None:
        if len(columns) != 1:
            names = ", ".join(column.name for column in columns[:8])
            raise ParameterError(
                f'{self} is on the one column that says which output a row is of: {self}.on("output"). Here'
                f" it is on {len(columns)} ({names})."
            )
        self._check_outputs()

    def label(self, field: str) -> str:
        return "" if field else "outputs"

    def _check_outputs(self) -> None:
        if not self.outputs:
            raise ParameterError(f"{self} says nothing of how many outputs there are: Coregion(3, rank=2).")

    def _of(self, X: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The rows of W, and own, of some codes; those of unknown outputs are 0 and 1."""
        self._check_outputs()
        at = jnp.clip(X[:, 0], 0, self.outputs - 1).astype(jnp.int32)
        known = at == X[:, 0]
        W = jnp.where(known[:, None], jnp.asarray(self.weights)[at], 0.0)
        return W, jnp.where(known, jnp.asarray(self.own)[at], 1.0)


def correlations(Y: Array) -> Array:
    """Of the columns of Y, (n, q), each pair by the rows that have both, made positive definite."""
    seen = np.isfinite(Y)
    Z = np.where(seen, Y - np.nanmean(Y, axis=0), 0.0)
    both = seen.astype(np.float64)
    cov, squares = Z.T @ Z, (Z * Z).T @ both
    with np.errstate(divide="ignore", invalid="ignore"):
        R = np.nan_to_num(cov / np.sqrt(squares * squares.T))
    R = np.clip(R, -1.0, 1.0)
    few = both.T @ both
    R *= few / (few + 3.0)  # pairs that few rows have both of say little
    np.fill_diagonal(R, 1.0)
    values, vectors = np.linalg.eigh(R)
    R = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    spread = np.sqrt(np.diagonal(R))
    return np.asarray(R / (spread[:, None] * spread[None, :]))


def _start(q: int, rank: int) -> Array:
    """The first column the same for all, the others waves of different lengths: none a copy of another."""
    j, r = np.arange(q)[:, None], np.arange(rank)[None, :]
    return np.where(r == 0, SHARED, BEND * np.cos(np.pi * (j + 0.5) * r / q))
