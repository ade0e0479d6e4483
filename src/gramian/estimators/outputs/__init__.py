"""Several outputs: each for itself, informing each other, or one after the other.

    independent   q functions with one kernel, each with its scale and noise
    coupled       f_k(x) = sum of weights times functions that all share, plus one of its own: a covariance
                  B between outputs, times a kernel of x (inference/coregional.py)
    chained       each output a function of x and of the outputs before it (inference/chained.py)
    auto          all three are fitted. Where outputs have gaps, entries that are like those that are missing
                  (the nearest that were seen) are held out, and the kind that gives them the highest density
                  is fitted again, to all: gaps beside each other are not foretold by what foretells single
                  rows. Without gaps the kind whose parameters' posterior is highest is taken: log p(Y) plus
                  the log density of the priors, which is what further parameters cost (`height_of`)

The paths on which the latter two find their kind, each step kept when it raises that height, or, in a chain,
the density of entries like those that are missing:

    warp      of each output by itself, a monotone map of y where that is clearly better (by CLEAR nats: what
              outputs have to do with each other is simplest in their own units); then held
    coupled   rank 1, 2, ... of B with a Matern-5/2 of x; a Matern-1/2 in its place; both, with a B each
    chained   for each output a Matern-5/2 or a Matern-1/2 of x; the outputs before it by a line, beside x or
              without; by a line and a curve

Paths are walked on some rows, and what they end with is then fitted on all.

    settings    reading `outputs=`          beginnings  what a fit begins with
    warping     a map of each output        paths       steps, and the entries that judge them
    coupled     the path of coupled ones    chain       the path of a chain
    judging     the best of several kinds
"""

from gramian.estimators.outputs.beginnings import between, in_a_chain, order_of, with_own_noises
from gramian.estimators.outputs.chain import chained_choice
from gramian.estimators.outputs.coupled import coupled_choice
from gramian.estimators.outputs.judging import JUDGED, RIVALS, highest, judged, like_all_gaps, without
from gramian.estimators.outputs.paths import like_gaps
from gramian.estimators.outputs.settings import check_outputs, read_outputs
from gramian.estimators.outputs.warping import warped

__all__ = [
    "JUDGED",
    "RIVALS",
    "between",
    "chained_choice",
    "check_outputs",
    "coupled_choice",
    "highest",
    "in_a_chain",
    "judged",
    "like_all_gaps",
    "like_gaps",
    "order_of",
    "read_outputs",
    "warped",
    "with_own_noises",
    "without",
]
