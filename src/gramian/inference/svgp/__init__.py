"""Sparse variational inference for any likelihood and any number of rows.

bound       the bound on some of the rows, and its gradients
inducing    the method: its points, its posterior at given parameters
"""
