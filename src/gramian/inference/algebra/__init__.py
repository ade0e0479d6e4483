"""A Gaussian prior N(0, K) at the rows of the data, multiplied by Gaussian sites exp(h_i g_i - 1/2 lam_i
g_i^2): the linear algebra of every inference that replaces likelihood terms by such sites.

    S = (K^-1 + Lam)^-1,   mean = S h,   alpha = K^-1 mean = h - Lam mean,
    R = (K + Lam^-1)^-1,   log det(I + K Lam)

and the pullback of the symmetric weights 1/2 alpha alpha' - 1/2 R + 1/2 (u alpha' + alpha u') on K, which is
the gradient of every evidence here. Three ways:

    Dense       K + D with D = 1 / lam by Cholesky. Factoring is indifferent to the scale of rows, so this is
                as accurate as B = I + lam^1/2 K lam^1/2 (Rasmussen and Williams 2006, section 3.4.3) with one
                pass over memory less. lam must be positive. n^3 / 3 flops.
    Features    K ~ Phi Phi' by B = I + Phi' Lam Phi, for lam of any sign as long as B is positive definite.
                n m^2 flops.
    Krylov      K + D by conjugate gradients, log det by stochastic Lanczos quadrature. No variances in less
                than n solves.
"""

from gramian.inference.algebra.base import Prior, Sited, Term
from gramian.inference.algebra.dense import Dense, DenseSited
from gramian.inference.algebra.features import Features
from gramian.inference.algebra.krylov import Krylov

__all__ = ["Dense", "DenseSited", "Features", "Krylov", "Prior", "Sited", "Term"]
