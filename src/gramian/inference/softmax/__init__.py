"""Several classes whose sites couple them: Laplace's approximation of a softmax.

laplace     the rule
coupling    the priors of all classes with such sites: base (the contract), dense, features
"""
