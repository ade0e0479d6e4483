"""Latent functions with independent priors N(0, K_c) whose sites couple them: at each row the site is exp(h'g
- 1/2 g'W g) with W of the softmax,

    W = diag(s^2 pi) - (s pi)(s pi)',   S = (K^-1 + W)^-1,   mean = S h,   alpha = K^-1 mean,
    log det(I + K W)

for C classes with probabilities pi and scales s. Dense, with D_c = diag(s_c^2 pi_c) and E_c = (K_c +
D_c^-1)^-1: since the probabilities of a row add up to one, W is D minus a term of rank n whose capacitance
matrix is M = sum_c E_c / s_c^2, and with V_c = E_c / s_c

    S = K - K R K,   R = E - V M^-1 V',   log det(I + K W) = sum_c log det(I + K_c D_c) + log det M

which takes C n^3 flops where a factor of all C n rows would take C^3 n^3 / 3, and C + 3 arrays of n^2.
Source: Rasmussen and Williams 2006, section 3.5 and algorithm 3.3. They leave the gradient and the
covariances S_i of a row's classes out; these need F_c = L_M^-1 E_c, a block of rows at a time:

    R_cc = E_c - F_c'F_c / s_c^2,     E_c K_c = I - E_c D_c^-1
    (S_i)_cc' = delta_cc' (K_c - K_c E_c K_c)_ii + (L_M^-1 E_c K_c)_i' (L_M^-1 E_c' K_c')_i / (s_c s_c')

With features K_c ~ Phi_c Phi_c' the weights of all classes have the precision B_cc' = delta_cc' I + Phi_c'
W_cc' Phi_c': (C m)^2 sums over blocks of rows, C^2 n m^2 + C^3 m^3 / 3 flops.
"""

from __future__ import annotations

from gramian.inference.model import Array
from gramian.inference.softmax.base import Coupled, Coupling, Groups, curvature, curved
from gramian.inference.softmax.dense import DenseCoupling
from gramian.inference.softmax.features import FeatureCoupling


def coupling(groups: Groups, scale: Array) -> Coupling:
    """For the priors of a problem, each with the classes it is for."""
    kind = DenseCoupling if groups[0][0].features is None else FeatureCoupling
    return kind(groups, scale)


__all__ = ["Coupled", "Coupling", "coupling", "curvature", "curved"]
