"""Landmarks: few points that stand for all rows.

base        the rules by name, and what a choice is
leverage    scores: diagonals, column norms, leverage, ridge leverage
pivoted     pivots of a partial Cholesky factor, greedy or at random
tables      rows of arrays and memory maps
"""
