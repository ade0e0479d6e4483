"""Landmarks: few points Z that stand for all rows of X, K ~ K_xz K_zz^-1 K_zx.

    base        the contract: LandmarkRule, and Landmarks, what a rule gives
    rules       the rules by name, and `landmarks(kernel, X, m, rule)`
    sampling    rows at random: all alike, by K_ii^2, by |K_:i|^2
    leverage    rows by leverage, by ridge leverage, exact or estimated by recursion
    pivoted     pivots of a partial Cholesky factor, greedy or at random
    kmeans      centres of clusters
    tables      rows of arrays and memory maps
    orders      all rows in order, and the nearest of each among those before it

A new rule: one file here with a `LandmarkRule`, and its line in `rules.py`. A rule of one's own needs
neither: `gm.landmarks`, `Nystrom(sampling=...)`, `Sparse(inducing=...)` and `SVGP(inducing=...)` take the
object.
"""
