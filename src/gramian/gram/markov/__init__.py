r"""Kernels with a state-space form at sorted rows: conditioning on Gaussian sites in time proportional to n.

Row k has a site a_k / b_k on g_k = H_k x_k: with lam as (a, b) = (lam, 1) and z = h, with noise as (1, D) and
z = r, and (0, 1) where nothing was observed. The Kalman filter in these terms, and the adjoint filter back:

    P- = A P A' + Q,  m- = A m            u = P- H,  F = b + a H'u,  w = z - a H'm-
    P = P- - a u u' / F,  m = m- + u w / F
    N- = a H H' / F + C'N C,  ell- = -H w / F + C'ell,  C = I - a u H' / F;    N = A'N- A,  ell = A'ell-

so that E g = H'(m- - P- ell-), var g = H'P-H - u'N-u, A^-1 r = w / F + a u'ell / F, and its diagonal is
a / F + a^2 u'N u / F^2. No matrix is inverted, and none needs to be regular. log det is the sum of log F.

A loop over rows with a state of a few numbers would be all overhead, so rows stand side by side in chunks of
LENGTH: one scan takes the next row of each chunk. Within a chunk the state theta before it is unknown, and
everything is affine in it (de Jong 1991): the end is Psi theta + c with covariance C, and the sites say
eta'theta - theta'J theta / 2. A short scan then links the chunks with N(m, P) for theta:

    T = (I + P J)^-1,   m <- Psi T (m + P eta) + c,   P <- Psi T P Psi' + C,   log det += log det(I + P J)

and, back again, N <- T'J + T'Psi'N Psi T. With both ends of a chunk known, all chunks are filtered at once.

The gradient by K is that by A and Q of each step: the weights on Q are ell B ell' - q/2 N, those on A are
-2 ell B x' - q N A P, x the smoothed state before the step and B = 1/2; any other weights V B V' on K are
those of sites a = 0, z = V.

Cost: A has blocks on its diagonal, so that n s^2 flops a few times the size of a block, and s^3 for each
chunk; n (s + q) numbers. Pieces of chunks are of a fixed size, a program each and a thread each; results do
not depend on how many there are.

What XLA fuses it makes again in every loop that uses it, and a barrier does not hinder it. So what is costly
crosses a scan: the steps of SEGMENT rows are made before it, sums over rows after it, and products with
which outer products are made are reductions (`kept_mv`).

Sources: Durbin and Koopman 2012, chapter 4 (the filter back), section 7.3 (the score); Sarkka and
Garcia-Fernandez 2021 (chunks as elements that compose).

    matrices    of small states entry by entry      steps     A, Q and H from row to row
    programs    elements, links, smoother, adjoint  chain     rows in chunks, on the host
"""

from gramian.gram.markov.chain import EPS, Chain, SitedChain, drawn, sorted_chain, variances
from gramian.gram.markov.programs import Smoothed, transitions

__all__ = ["EPS", "Chain", "SitedChain", "Smoothed", "drawn", "sorted_chain", "transitions", "variances"]
