"""Approximations of the Gram matrix: landmarks, Nystrom and Fourier features."""
