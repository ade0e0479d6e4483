"""Engines: K at the rows, and what it becomes with Gaussian sites.

    base        the contract: Engine, RowPrior, Conditioned
    dense       K as a matrix, by Cholesky                                  n^3, one n^2 array
    lowrank     K ~ Phi Phi': Nystrom, Fourier, VFE, FITC, DTC              n m^2, streamed
    recipes     the engines with features, before they have seen data
    statespace  kernels of one column as Markov processes: Kalman filters   n s^3, exact
    neighbours  each row given its nearest among those before it            n m^3, few columns
    krylov      K by products alone: CG, MINRES, a solver of your own       steps x n^2

A new engine: one file here, `check_engine` in its test, one line in choose/words.py.
"""

from gramian.engines.base import Conditioned, Engine, RowPrior
from gramian.engines.dense import Exact
from gramian.engines.krylov import Krylov
from gramian.engines.lowrank import LowRank
from gramian.engines.neighbours import Neighbours
from gramian.engines.recipes import Fourier, Nystrom, Sparse
from gramian.engines.statespace import StateSpace

__all__ = [
    "Conditioned",
    "Engine",
    "Exact",
    "Fourier",
    "Krylov",
    "LowRank",
    "Neighbours",
    "Nystrom",
    "RowPrior",
    "Sparse",
    "StateSpace",
]
