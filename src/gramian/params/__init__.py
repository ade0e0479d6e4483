"""Parameters: values with a support, perhaps a prior and bounds, and the way from a tree of them to one flat
vector."""

from gramian.params.namespace import namespace
from gramian.params.parameter import (
    Parameter,
    Value,
    fixed,
    nonnegative,
    param,
    positive,
    real,
    unit_interval,
)
from gramian.params.priors import Gamma, HalfNormal, InverseGamma, LogNormal, Normal, Prior, Uniform
from gramian.params.space import ParameterSpace, ParameterTable
from gramian.params.support import (
    Affine,
    Interval,
    NonNegative,
    Positive,
    PositiveSemidefinite,
    Real,
    Support,
)
from gramian.params.tree import Tree

__all__ = [
    "Affine",
    "Gamma",
    "HalfNormal",
    "Interval",
    "InverseGamma",
    "LogNormal",
    "NonNegative",
    "Normal",
    "Parameter",
    "ParameterSpace",
    "ParameterTable",
    "Positive",
    "PositiveSemidefinite",
    "Prior",
    "Real",
    "Support",
    "Tree",
    "Uniform",
    "Value",
    "fixed",
    "namespace",
    "nonnegative",
    "param",
    "positive",
    "real",
    "unit_interval",
]
