"""How far an approximate answer can be from the exact one.

bounds          of the evidence, of means and of variances, without the exact solution
certificate     what a person is told
"""
