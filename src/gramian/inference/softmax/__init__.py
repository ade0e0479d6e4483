"""Laplace's approximation for classes that depend on each other: see base.py for the algebra."""
