"""Sparse variational inference for any likelihood and any number of rows."""
